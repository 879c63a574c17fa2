//! Running programs in the lab, and keeping it up.

use super::stats::{StatsForm, tell};
use super::virtual_time::VirtualArgs;
use super::{LabOptions, failure, load, start_recording};
use crate::commands::cc::controls::Controls;
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;
use wt_lab::{EngineStats, Lab, LabTunnel, LinkEnd, Program, Recording, Scenario};
use wt_load::{Server, ServerConfig};

/// Runs a program in the client, with its exit code
///
/// In the lab the names `client` and `server` are known (`client6` and `server6` for IPv6; also as $WT_SERVER and so on),
/// the server answers `http://server/bytes/12MB`, and `ip netns exec server CMD` runs a command there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab run adsl -- curl -o /dev/null http://server/bytes/3MB
  windtunnel lab run adsl --record adsl.pcapng --stats -- curl -o /dev/null http://server/bytes/3MB
  windtunnel lab run adsl --server 'iperf3 -s -1' -- sh -c 'sleep 0.2; iperf3 -c server -R'
  windtunnel lab run dialup -- ping -c 3 server
  windtunnel lab run dialup --virtual --kernel target/uml/linux -- ping -c 100 server
  sudo windtunnel lab run freebsd-scp --cc chd@freebsd-hz100 -- scp file server:   # with an sshd in --server")]
pub(super) struct RunArgs {
    #[command(flatten)]
    on: On,
    /// A shell command that runs in the server meanwhile; it ends with the program
    #[arg(long, value_name = "CMD")]
    server: Option<OsString>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    argv: Vec<OsString>,
}

/// Keeps a lab up until Ctrl-C, and tells how to enter its hosts
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab up adsl")]
pub(super) struct UpArgs {
    #[command(flatten)]
    on: On,
    /// A shell command that runs in the server meanwhile
    #[arg(long, value_name = "CMD")]
    server: Option<OsString>,
    /// One JSON object when the lab is up
    #[arg(long)]
    json: bool,
}

/// Pings the server from the client
#[derive(Debug, Args)]
#[command(after_help = "Example: windtunnel lab ping adsl -- -c 5 -s 1400")]
pub(super) struct PingArgs {
    #[command(flatten)]
    on: On,
    /// Options of ping(8); without any: -c 4
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Measures with iperf3 from the client to the server
#[derive(Debug, Args)]
#[command(after_help = "Example: windtunnel lab iperf3 adsl -- -R -t 10")]
pub(super) struct Iperf3Args {
    #[command(flatten)]
    on: On,
    /// Options of the iperf3 client: -R for a download
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Starts a browser in the client, with a profile of its own that is forgotten afterwards
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab browser adsl")]
pub(super) struct BrowserArgs {
    #[command(flatten)]
    on: On,
    /// What it shows
    #[arg(long, default_value = "http://server/")]
    url: String,
    /// The browser; without it $BROWSER, or the first of the known ones that is there
    #[arg(long, value_name = "PROGRAM")]
    program: Option<OsString>,
    /// Further options of the browser
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// The path, and what is watched.
#[derive(Debug, Args)]
struct On {
    /// A preset's name or a TOML file
    path: String,
    #[command(flatten)]
    options: LabOptions,
    /// Records packets into a pcapng file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Where to record: LINK:client, LINK:server (the ends of a link), or all; may be repeated. Without it: the devices of
    /// client and server
    #[arg(long, value_name = "END", requires = "record")]
    record_at: Vec<String>,
    /// The congestion control of every connection in the lab, on both ends and whatever programs ask for: one of the
    /// kernel's, or with the rights to load it one of ours, as chd@freebsd-hz100
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Says on stderr how the lab itself did: how late packets left, what it lost, CPU that it didn't get
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<StatsForm>,
    #[command(flatten)]
    time: VirtualArgs,
}

impl On {
    fn recording(&self, scenario: &Scenario) -> Result<Option<Recording>, Failure> {
        let Some(file) = &self.record else { return Ok(None) };
        wt_lab::check_target(file)
            .map_err(|error| Failure::usage(format!("can't record into {}: {error}", file.display())))?;
        let mut ends = Vec::new();
        for text in &self.record_at {
            for end in parse_end(scenario, text)? {
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
        }
        if ends.is_empty() {
            ends = LinkEnd::outer(scenario);
        }
        Ok(Some(Recording { file: file.clone(), ends }))
    }
}

/// `all`, or `LINK:client`, by name or by number from 1.
fn parse_end(scenario: &Scenario, text: &str) -> Result<Vec<LinkEnd>, Failure> {
    if text == "all" {
        return Ok(LinkEnd::all(scenario));
    }
    let (name, side) = text.rsplit_once(':').unwrap_or((text, ""));
    let mut named = (0..scenario.links.len()).filter(|link| scenario.links[*link].name == name);
    let (named, twin) = (named.next(), named.next());
    if let (Some(one), Some(other)) = (named, twin) {
        let all = format!("links {} and {} are both called \"{name}\"", one + 1, other + 1);
        return Err(Failure::usage(format!("--record-at {text:?}: {all}"))
            .hint(format!("write the number instead: {}:{side}", one + 1)));
    }
    let numbered = || name.parse::<usize>().ok()?.checked_sub(1).filter(|link| *link < scenario.links.len());
    match (named.or_else(numbered), side) {
        (Some(link), "client") => Ok(vec![LinkEnd { link, server_side: false }]),
        (Some(link), "server") => Ok(vec![LinkEnd { link, server_side: true }]),
        _ => {
            let names: Vec<String> = scenario.links.iter().map(|link| format!("\"{}\"", link.name)).collect();
            Err(Failure::usage(format!("--record-at {text:?} is no end of a link"))
                .hint(format!("write LINK:client, LINK:server or all; the links are {}", names.join(", "))))
        }
    }
}

/// `lab run`.
pub(super) fn program(args: &RunArgs) -> Outcome {
    run(&args.on, &Program { argv: args.argv.clone(), server: args.server.clone() })
}

/// `lab ping`.
pub(super) fn ping(args: &PingArgs) -> Outcome {
    let few = ["-c", "4"].map(OsString::from);
    let options = if args.options.is_empty() { &few[..] } else { &args.options };
    let argv = ["ping".into()].into_iter().chain(options.iter().cloned()).chain(["server".into()]).collect();
    run(&args.on, &Program { argv, server: None })
}

/// Waits until the server listens on iperf3's port, 5201, and becomes the client.
const IPERF3: &str = "\
    n=0; until ip netns exec server cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ':1451 .* 0A '; do \
    n=$((n+1)); [ $n -gt 100 ] && { echo 'windtunnel: iperf3 does not listen in the server' >&2; exit 4; }; sleep 0.05; \
    done; exec iperf3 -c server \"$@\"";

/// `lab iperf3`.
pub(super) fn iperf3(args: &Iperf3Args) -> Outcome {
    needs("iperf3", "apt-get install iperf3")?;
    let shell = ["sh", "-c", IPERF3, "iperf3"].map(OsString::from);
    let argv = shell.into_iter().chain(args.options.iter().cloned()).collect();
    run(&args.on, &Program { argv, server: Some("exec iperf3 -s -1 >/dev/null".into()) })
}

/// Browsers that are tried, the first one that is there is taken.
const BROWSERS: [&str; 6] =
    ["firefox", "firefox-esr", "chromium", "chromium-browser", "google-chrome", "brave-browser"];

/// A browser's profile lies in the lab's own file system in memory, which goes with the lab, whatever ends it.
const PROFILE: &str = "/run/browser-profile";
/// Makes it, and becomes the browser.
const WITH_PROFILE: &str = "mkdir -m 700 /run/browser-profile /run/browser-tmp || exit 126; \
    TMPDIR=/run/browser-tmp; XDG_CONFIG_HOME=$TMPDIR; XDG_CACHE_HOME=$TMPDIR; export TMPDIR XDG_CONFIG_HOME XDG_CACHE_HOME; exec \"$@\"";

/// `lab browser`.
pub(super) fn browser(args: &BrowserArgs) -> Outcome {
    let program = args.program.clone().or_else(|| std::env::var_os("BROWSER").filter(|name| !name.is_empty()));
    let known = || BROWSERS.iter().find(|name| in_path(name)).map(OsString::from);
    let Some(program) = program.or_else(known) else {
        return Err(Failure::environment("there is no browser that I know")
            .because(format!("none of {} is in PATH", BROWSERS.join(", ")))
            .hint("name one: windtunnel lab browser PATH --program /usr/bin/BROWSER"));
    };
    let name = PathBuf::from(&program).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut argv = ["sh", "-c", WITH_PROFILE, "sh"].map(OsString::from).to_vec();
    argv.push(program);
    if name.contains("firefox") {
        argv.extend(["--no-remote", "--new-instance", "--profile", PROFILE].map(OsString::from));
    } else {
        // One is root in the lab, where Chromium wants no sandbox of its own; the lab reaches nothing outside.
        argv.extend(["--no-first-run", "--no-sandbox"].map(OsString::from));
        argv.push(format!("--user-data-dir={PROFILE}").into());
    }
    argv.extend(args.options.iter().cloned());
    argv.push(args.url.clone().into());
    run(&args.on, &Program { argv, server: None })
}

fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn needs(program: &str, install: &str) -> Result<(), Failure> {
    if in_path(program) {
        return Ok(());
    }
    Err(Failure::environment(format!("{program} isn't in PATH")).hint(format!("install it: {install}")))
}

/// A lab with our servers in it.
struct Running {
    tunnel: LabTunnel,
    controls: Controls,
    _http: Vec<Server>,
    rtt: Duration,
    before: EngineStats,
}

impl Running {
    fn start(on: &On) -> Result<Self, Failure> {
        let scenario = load(&on.path)?;
        let record = on.recording(&scenario)?;
        let rtt = scenario.full_size(scenario.pmtu()).rtt;
        // Loading takes rights that one doesn't have in the lab, and its name must be known before.
        let controls = Controls::load(on.cc.as_deref())?;
        let control = on.cc.as_deref().map(|name| controls.kernel_name(name)).transpose()?;
        let lab = start_recording(scenario, &on.options, record)?;
        for host in lab.hosts() {
            let locked = control.as_deref().map_or(Ok(()), |name| host.lock_control(name));
            locked.map_err(|error| {
                Failure::environment(format!("{} can't have this congestion control: {error}", host.name))
                    .hint("windtunnel cc list shows what there is")
            })?;
        }
        // Our own server, and plain HTTP on port 80 for programs that aren't ours.
        let tunnel = LabTunnel::new(lab).map_err(|error| failure(&error))?;
        let http = serve_http(tunnel.lab())?;
        let before = tunnel.lab().stats();
        Ok(Self { tunnel, controls, _http: http, rtt, before })
    }

    /// Ends it, and says what there is to say.
    fn end(self, on: &On) -> Result<(), Failure> {
        let skipped = self.controls.guard_hits();
        if skipped > 0 {
            use std::io::Write as _;
            let name = on.cc.as_deref().unwrap_or_default();
            let _ = writeln!(
                std::io::stderr().lock(),
                "windtunnel: this kernel skipped a program of {name} {skipped} times and took garbage for its window: a \
                 trap of some virtual machines' kernels; measure again"
            );
        }
        if let Some(form) = on.stats {
            tell(&self.tunnel.lab().stats().since(&self.before), self.rtt, form);
        }
        let recorded = self.tunnel.into_lab().stop().map_err(|error| failure(&error))?;
        if let (Some(recorded), Some(file)) = (recorded, &on.record) {
            use std::io::Write as _;
            let missed = match recorded.missed {
                0 => String::new(),
                missed => format!("; {missed} more came faster than they could be written"),
            };
            let file = file.display();
            let _ = writeln!(std::io::stderr().lock(), "windtunnel: {} packets in {file}{missed}", recorded.packets);
        }
        Ok(())
    }
}

/// Our HTTP on port 80 of every host but the client.
fn serve_http(lab: &Lab) -> Result<Vec<Server>, Failure> {
    let listen = |any: std::net::IpAddr| wt_sys::tcp::listen(std::net::SocketAddr::new(any, 80));
    // A listener for IPv6 is one for IPv4, too (ipv6(7), `IPV6_V6ONLY`).
    let both =
        || listen(std::net::Ipv6Addr::UNSPECIFIED.into()).or_else(|_| listen(std::net::Ipv4Addr::UNSPECIFIED.into()));
    let start = |host: &wt_lab::Host| {
        let listener = host.run(both).and_then(|listener| listener);
        listener.and_then(|listener| Server::start(listener, ServerConfig::default()))
    };
    let servers = lab.hosts().skip(1).map(start).collect::<Result<Vec<_>, _>>();
    servers.map_err(|error| Failure::environment(error.to_string()))
}

fn run(on: &On, program: &Program) -> Outcome {
    if let Some(exit) = on.time.instead()? {
        return Ok(exit);
    }
    // Ctrl-C is for the program in the lab; when that ends, so do we.
    wt_sys::process::ignore_signal(SIGINT);
    let signals = Endings::catch(&[SIGTERM, SIGHUP, SIGQUIT])?;
    let running = Running::start(on)?;
    let (endings, started) = signals.watch();
    let code = running.tunnel.lab().run_program_with(program, move |pid| {
        let _ = started.send(pid);
    });
    let signal = endings.end();
    let code = code.map_err(|error| Failure::environment(error.to_string()))?;
    running.end(on)?;
    Ok(Exit::Passed(signal.map_or(code, |signal| 128 + signal)))
}

/// Signals that end a lab. What was recorded until then is completed first.
struct Endings(Signals);

/// The thread that waits for them; what it gives is the signal that came.
struct Watching {
    handle: Handle,
    thread: std::thread::JoinHandle<Option<u8>>,
}

impl Endings {
    /// From now on these signals wait for [`Endings::watch`]. Starts no thread.
    fn catch(numbers: &[i32]) -> Result<Self, Failure> {
        let signals = Signals::new(numbers).map_err(|error| Failure::ours(format!("can't catch signals: {error}")))?;
        Ok(Self(signals))
    }

    /// Ends the lab's process 1, and with it everything in the lab, when a signal comes; the process is to be sent.
    fn watch(mut self) -> (Watching, Sender<u32>) {
        let handle = self.0.handle();
        let (started, process) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let signal = self.0.forever().next()?;
            let _ = wt_sys::process::signal(process.recv().ok()?, 9);
            u8::try_from(signal).ok()
        });
        (Watching { handle, thread }, started)
    }
}

impl Watching {
    /// The signal that has ended the lab, if one has.
    fn end(self) -> Option<u8> {
        self.handle.close();
        self.thread.join().ok().flatten()
    }
}

/// `lab up`.
pub(super) fn up(args: &UpArgs) -> Outcome {
    if args.on.time.is_asked() {
        return Err(Failure::usage("lab up --virtual: time would stand still for whoever enters")
            .hint("windtunnel lab run PATH --virtual --kernel FILE -- PROGRAM"));
    }
    let outside = user_namespace();
    let signals = Endings::catch(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    let running = Running::start(&args.on)?;
    let inside = user_namespace();
    let lab = running.tunnel.lab();
    // The thread that starts the lab's process 1 can't start threads any more: its children are in another namespace.
    let (endings, started) = signals.watch();
    let ran = lab.run_program_with(&Program::nothing(args.server.clone()), move |pid| {
        let _ = started.send(pid);
        // Who enters too early finds the host's files instead of the lab's.
        let ready = PathBuf::from(format!("/proc/{pid}/root/run/netns/server"));
        (0..200).take_while(|_| !ready.exists()).for_each(|_| {
            let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(10)));
        });
        tell_how_to_enter(lab, pid, inside != outside, args.json);
    });
    let signal = endings.end();
    let code = ran.map_err(|error| Failure::environment(error.to_string()))?;
    running.end(&args.on)?;
    // 128 + SIGKILL, and it wasn't we who sent it.
    if signal.is_none() && code == 137 {
        return Err(Failure::environment("the lab has ended: its process 1 was killed")
            .because("somebody's kill, or too little memory")
            .hint("start it anew"));
    }
    Ok(Exit::Done)
}

fn user_namespace() -> Option<PathBuf> {
    std::fs::read_link("/proc/self/ns/user").ok()
}

/// How another shell gets in: into process 1 of the lab, and from there to the other hosts.
fn tell_how_to_enter(lab: &Lab, pid: u32, user: bool, json: bool) {
    let user = if user { "-U --preserve-credentials " } else { "" };
    let enter = |host: &wt_lab::Host| {
        let there = if host.name == "client" { String::new() } else { format!(" ip netns exec {}", host.name) };
        format!("nsenter -t {pid} {user}-n -m -p --{there} sh")
    };
    if json {
        let hosts = lab.hosts().map(|host| {
            json!({"name": host.name, "ipv4": host.v4.to_string(), "ipv6": host.v6.to_string(), "enter": enter(host)})
        });
        let name = &lab.scenario().name;
        say!(
            "{}",
            json!({"schema_version": 1, "path": name, "backend": lab.backend(), "pid": pid, "hosts": hosts.collect::<Vec<_>>()})
        );
        return;
    }
    say!("{} is up, over {}. Enter its hosts from another shell:", lab.scenario().name, lab.backend());
    for host in lab.hosts() {
        say!("  {:<8} {:<12} {}", host.name, host.v4.to_string(), enter(host));
    }
    say!("Ctrl-C takes it down.");
}
