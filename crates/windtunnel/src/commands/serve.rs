//! `windtunnel serve`: a far end of our own, for those who have its key.

use crate::commands::cc::available;
use crate::commands::cc::controls::{failure, ours};
use crate::edge::{Exit, Failure, Fault, Outcome, say};
use clap::Args;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_bpf::{LoadError, Loaded};
use wt_load::{Quota, Serve, ServeConfig, SharedKey};
use wt_sys::ns::read_net_sysctl;
use wt_trial::Cancel;
use wt_units::{Bytes, parse_duration};

/// Where it listens if nobody says where: this host only.
const USUAL: [&str; 2] = ["127.0.0.1:7411", "[::1]:7411"];

/// Serves tests to those who have the key: the far end of `tune wt://…`
///
/// The key is made at the first start and shown once, as the address that clients use. Those who don't have it get nothing
/// but a closed connection. One TCP port carries everything. It needs no privilege. Ctrl-C or SIGTERM lets running tests
/// finish, and nobody in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel serve
  windtunnel serve --listen 192.0.2.1:7411 --quota-bytes 20GB --quota-tests 500
  windtunnel serve --listen '[::]:7411' --metrics 127.0.0.1:9411
  windtunnel tune wt://KEY@192.0.2.1")]
pub(crate) struct ServeArgs {
    /// Listen here; may be repeated. [::]:7411 is every address of IPv6 and IPv4 [default: 127.0.0.1:7411 and [::1]:7411]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// Tests at once; others wait for their turn, so that tests don't disturb each other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_tests: u32,
    /// Clients that may wait
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_waiting: u32,
    /// The longest test
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = longest)]
    max_time: Duration,
    /// Payload that one client may have a day
    #[arg(long, value_name = "SIZE")]
    quota_bytes: Option<Bytes>,
    /// Time of tests that one client may have a day
    #[arg(long, value_name = "TIME", value_parser = duration)]
    quota_time: Option<Duration>,
    /// Tests that one client may have a day
    #[arg(long, value_name = "N")]
    quota_tests: Option<u64>,
    /// Congestion controls that clients may ask for, the kernel's or ours: cubic,chd@freebsd-hz100; ours are loaded for as
    /// long as this runs [default: those that every user of this host may use]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cc: Option<Vec<String>>,
    /// Where the key is kept [default: $XDG_STATE_HOME/windtunnel/serve.key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Make a new key; those who have the old one are out
    #[arg(long)]
    new_key: bool,
    /// The host's name in the address that is shown [default: where it listens]
    #[arg(long, value_name = "HOST")]
    name: Option<String>,
    /// Answer Prometheus here: /metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// How long running tests may take to finish when it is told to stop
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    drain: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn longest(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    if allowed.contains(&time) { Ok(time) } else { Err(format!("{text} is out of range: allowed is 1s to 24h")) }
}

/// Runs the command until it is told to stop.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &ServeArgs) -> Outcome {
    let stop = signals()?;
    // Where that isn't allowed there are fewer connections.
    let _ = wt_sys::process::raise_descriptor_limit();
    let (key, is_new) = key(args)?;
    let listeners = listeners(&args.listen)?;
    let metrics = args.metrics.map(listen).transpose()?;
    let (controls, _loaded) = controls(args)?;
    let config = config(args, key.clone(), controls);
    let serve = Serve::start(listeners, config).map_err(|error| Failure::environment(error.to_string()))?;
    tell(args, &serve, is_new.then_some(&key));
    if let Some(listener) = &metrics {
        let _ = listener.set_nonblocking(true);
    }
    while !stop.is_cancelled() {
        match &metrics {
            Some(listener) => answer_metrics(listener, &serve),
            None => drop(wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(500)))),
        }
    }
    say!("stopping: running tests may finish, {:.0} s at most", args.drain.as_secs_f64());
    if serve.drain(args.drain) {
        Ok(Exit::Done)
    } else {
        Err(Failure::new(Fault::Stopped, "stopped before all tests were done"))
    }
}

/// The first signal asks to stop; the second one ends the program at once.
fn signals() -> Result<Cancel, Failure> {
    let stop = Cancel::new();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The order matters: the shutdown looks at the flag before this very signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.flag())
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .map_err(|error| Failure::ours(format!("can't catch signals: {error}")))?;
    }
    Ok(stop)
}

/// What clients may ask for, with the kernel's names; and those of ours among them, loaded until this ends.
fn controls(args: &ServeArgs) -> Result<(BTreeMap<String, String>, Vec<Loaded>), Failure> {
    let Some(names) = &args.cc else {
        let allowed = read_net_sysctl("ipv4/tcp_allowed_congestion_control").unwrap_or_default();
        return Ok((allowed.split_whitespace().map(|name| (name.to_owned(), name.to_owned())).collect(), Vec::new()));
    };
    let (mut allowed, mut loaded) = (BTreeMap::new(), Vec::new());
    for name in names {
        let kernel_name = match ours(name).transpose()? {
            Some(choice) => {
                match Loaded::load(&choice) {
                    Ok(control) => loaded.push(control),
                    // Somebody else holds the very same one: its name tells all its parameters.
                    Err(LoadError::NameTaken { .. }) => {}
                    Err(error) => return Err(failure(&error, &choice)),
                }
                choice.kernel_name()
            }
            None if available().contains(name) => name.clone(),
            None => {
                return Err(Failure::usage(format!("this kernel has no congestion control {name}"))
                    .hint(format!("it has {}; windtunnel cc list shows ours", available().join(", "))));
            }
        };
        allowed.insert(name.clone(), kernel_name.clone());
        allowed.insert(kernel_name.clone(), kernel_name);
    }
    Ok((allowed, loaded))
}

fn config(args: &ServeArgs, key: SharedKey, congestion_controls: BTreeMap<String, String>) -> ServeConfig {
    let usual = Quota::default();
    ServeConfig {
        key,
        max_tests: args.max_tests as usize,
        max_waiting: args.max_waiting as usize,
        longest: args.max_time,
        quota: Quota {
            bytes: args.quota_bytes.map_or(usual.bytes, Bytes::get),
            time: args.quota_time.unwrap_or(usual.time),
            tests: args.quota_tests.unwrap_or(usual.tests),
        },
        congestion_controls,
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    wt_sys::tcp::listen(address).map_err(|error| {
        let failure = Failure::environment(error.to_string());
        match error.source.kind() {
            std::io::ErrorKind::AddrInUse => {
                failure.because("another program listens there").hint("--listen with another port")
            }
            std::io::ErrorKind::PermissionDenied => failure.hint("a port above 1023"),
            _ => failure.hint("an address of this host, as ip address shows them"),
        }
    })
}

/// Without a word both loopback addresses; a host without IPv6 has only one of them.
fn listeners(asked: &[SocketAddr]) -> Result<Vec<TcpListener>, Failure> {
    if !asked.is_empty() {
        return asked.iter().map(|address| listen(*address)).collect();
    }
    let mut listeners = Vec::new();
    let mut last = Failure::ours("there is no address to listen on");
    for address in USUAL {
        match address.parse().map_err(|_| Failure::ours("an address of ours doesn't parse")).and_then(listen) {
            Ok(listener) => listeners.push(listener),
            Err(failure) => last = failure,
        }
    }
    if listeners.is_empty() { Err(last) } else { Ok(listeners) }
}

/// The key, and whether it is new.
fn key(args: &ServeArgs) -> Result<(SharedKey, bool), Failure> {
    let path = match &args.key_file {
        Some(path) => path.clone(),
        None => state_directory()?.join("serve.key"),
    };
    let named = |error: &dyn std::fmt::Display| {
        Failure::environment(format!("{}: {error}", path.display())).hint("another --key-file")
    };
    match std::fs::read_to_string(&path) {
        Ok(text) if !args.new_key => {
            let key = text.parse().map_err(|error| named(&error).hint("--new-key makes a new one"))?;
            Ok((key, false))
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound && !args.new_key => Err(named(&error)),
        _ => {
            let key = SharedKey::generate().map_err(|error| named(&error))?;
            keep(&path, &key).map_err(|error| named(&error))?;
            Ok((key, true))
        }
    }
}

fn state_directory() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    // systemd gives a service a directory of its own.
    let state = absolute("STATE_DIRECTORY").or_else(|| home.map(|home| home.join("windtunnel")));
    state.ok_or_else(|| {
        Failure::environment("there is no place for the key: neither XDG_STATE_HOME nor HOME is an absolute path")
            .hint("name a file with --key-file")
    })
}

/// Writes the key where only its owner can read it, whole or not at all.
fn keep(path: &Path, key: &SharedKey) -> std::io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&part)?;
    file.write_all(format!("{}\n", key.to_hex()).as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&part, path)
}

/// Says where it listens, and if the key is new, what clients type.
fn tell(args: &ServeArgs, serve: &Serve, key: Option<&SharedKey>) {
    for address in serve.addresses() {
        say!("listening on {address}");
    }
    let Some(key) = key else { return say!("with the key that was shown when it was made (--new-key makes another)") };
    say!("the address for clients, shown this once; whoever has it may test:");
    for address in serve.addresses() {
        let host = match &args.name {
            Some(name) if name.contains(':') => format!("[{name}]:{}", address.port()),
            Some(name) => format!("{name}:{}", address.port()),
            None => address.to_string(),
        };
        say!("  wt://{}@{host}", key.to_hex());
        if args.name.is_some() {
            break;
        }
    }
}

/// Answers one question for the metrics, if one comes soon.
fn answer_metrics(listener: &TcpListener, serve: &Serve) {
    use std::os::fd::AsFd as _;
    let ready = wt_sys::poll::wait_readable(&[listener.as_fd()], Some(Duration::from_millis(500)));
    if !matches!(ready, Ok(n) if n != 0) {
        return;
    }
    if let Ok((stream, _)) = listener.accept() {
        // Who asks for metrics and leaves, or asks slowly, gets none.
        let _ = answer(stream, serve);
    }
}

fn answer(mut stream: TcpStream, serve: &Serve) -> std::io::Result<()> {
    let patience = Some(Duration::from_millis(500));
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let mut head = [0; 2048];
    let length = stream.read(&mut head)?;
    let line = String::from_utf8_lossy(&head[..length]).into_owned();
    let (status, text) = match line.split_whitespace().take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics"] => ("200 OK", serve.metrics()),
        _ => ("404 Not Found", "There is /metrics.\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}
