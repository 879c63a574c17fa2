//! Running programs in the lab, and keeping it up.

use super::LabOptions;
use super::stats::{StatsForm, tell};
use super::virtual_time::VirtualArgs;
use crate::cli::forms::give;
use crate::cli::signals::cancel_on;
use crate::edge::{Exit, Outcome, Problem, say};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use wt_lab::{LinkEnd, Program, Recording, Scenario};
use wt_setup::lab::{LabUpAnswer, RunningLab};

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
    fn recording(&self, scenario: &Scenario) -> Result<Option<Recording>, Problem> {
        let Some(file) = &self.record else { return Ok(None) };
        wt_lab::check_target(file)
            .map_err(|error| Problem::usage(format!("can't record into {}: {error}", file.display())))?;
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
fn parse_end(scenario: &Scenario, text: &str) -> Result<Vec<LinkEnd>, Problem> {
    if text == "all" {
        return Ok(LinkEnd::all(scenario));
    }
    let (name, side) = text.rsplit_once(':').unwrap_or((text, ""));
    let mut named = (0..scenario.links.len()).filter(|link| scenario.links[*link].name == name);
    let (named, twin) = (named.next(), named.next());
    if let (Some(one), Some(other)) = (named, twin) {
        let all = format!("links {} and {} are both called \"{name}\"", one + 1, other + 1);
        return Err(Problem::usage(format!("--record-at {text:?}: {all}"))
            .hint(format!("write the number instead: {}:{side}", one + 1)));
    }
    let numbered = || name.parse::<usize>().ok()?.checked_sub(1).filter(|link| *link < scenario.links.len());
    match (named.or_else(numbered), side) {
        (Some(link), "client") => Ok(vec![LinkEnd { link, server_side: false }]),
        (Some(link), "server") => Ok(vec![LinkEnd { link, server_side: true }]),
        _ => {
            let names: Vec<String> = scenario.links.iter().map(|link| format!("\"{}\"", link.name)).collect();
            Err(Problem::usage(format!("--record-at {text:?} is no end of a link"))
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
        return Err(Problem::environment("there is no browser that I know")
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

fn needs(program: &str, install: &str) -> Result<(), Problem> {
    if in_path(program) {
        return Ok(());
    }
    Err(Problem::environment(format!("{program} isn't in PATH")).hint(format!("install it: {install}")))
}

impl On {
    fn start(&self) -> Result<RunningLab, Problem> {
        if let [other, ..] = wt_setup::journal::running().as_slice() {
            use std::io::Write as _;
            let line = "is being measured on this machine: each disturbs the other; wait for it, or stop one";
            let _ = writeln!(std::io::stderr().lock(), "windtunnel: {other} {line}");
        }
        RunningLab::start(&self.options.on(&self.path), self.cc.as_deref(), |scenario| self.recording(scenario))
    }

    /// Ends a lab, and says what there is to say.
    fn end(&self, running: RunningLab) -> Result<(), Problem> {
        let skipped = running.guard_hits();
        if skipped > 0 {
            use std::io::Write as _;
            let name = self.cc.as_deref().unwrap_or_default();
            let _ = writeln!(
                std::io::stderr().lock(),
                "windtunnel: this kernel skipped a program of {name} {skipped} times and took garbage for its window: a \
                 trap of some virtual machines' kernels; measure again"
            );
        }
        if let Some(form) = self.stats {
            tell(&running.stats(), running.rtt, form);
        }
        let recorded = running.stop()?;
        if let (Some(recorded), Some(file)) = (recorded, &self.record) {
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

fn run(on: &On, program: &Program) -> Outcome {
    if let Some(exit) = on.time.instead()? {
        return Ok(exit);
    }
    // Ctrl-C is for the program in the lab; when that ends, so do we.
    wt_sys::process::ignore_signal(SIGINT);
    let signals = Endings::catch(&[SIGTERM, SIGHUP, SIGQUIT])?;
    let running = on.start()?;
    let (endings, started) = signals.watch();
    let code = running.lab().run_program_with(program, move |pid| {
        let _ = started.send(pid);
    });
    let signal = endings.end();
    let code = code.map_err(|error| Problem::environment(error.to_string()))?;
    on.end(running)?;
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
    fn catch(numbers: &[i32]) -> Result<Self, Problem> {
        let signals =
            Signals::new(numbers).map_err(|error| Problem::internal(format!("can't catch signals: {error}")))?;
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
        return Err(Problem::usage("lab up --virtual: time would stand still for whoever enters")
            .hint("windtunnel lab run PATH --virtual --kernel FILE -- PROGRAM"));
    }
    let cancel = cancel_on(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    let running = args.on.start()?;
    running.stay(args.server.clone(), &cancel, |up| tell_how_to_enter(&up, args.json))?;
    args.on.end(running)?;
    Ok(Exit::Done)
}

/// How another shell gets in.
fn tell_how_to_enter(up: &LabUpAnswer, json: bool) {
    // The lab is up, whether or not anybody reads this.
    let _ = give(up, json, |up| {
        say!("{} is up, over {}. Enter its hosts from another shell:", up.path, up.backend);
        up.hosts.iter().for_each(|host| say!("  {:<8} {:<12} {}", host.name, host.ipv4, host.enter));
        say!("Ctrl-C takes it down.");
    });
}
