//! Settings of a host, and the server for others.

use super::say;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wt_load::{Fetch, Quota, Reference, Serve, ServeConfig, SharedKey, Tls, Url, fetch};
use wt_sys::process::usage;
use wt_trial::{Amount, Cancel};
use wt_units::{Bytes, Settings};

/// Says that a process is the server, and for how many at once.
pub(crate) const SERVER: &str = "SCALE_SERVER";

/// Gives `ip` these commands, in a network namespace of this process.
fn with_ip(commands: &str) {
    wt_sys::ns::enter_user_namespace().unwrap();
    wt_sys::ns::enter_network_namespace().unwrap();
    let world = "link set lo up\nlink add v0 type veth peer name v1\nlink set v0 up\nlink set v1 up\n\
                 addr add 10.255.0.1/24 dev v0\nroute add default via 10.255.0.2\n";
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut ip = Command::new("ip").args(["-batch", "-"]).env("PATH", path).stdin(Stdio::piped()).spawn().unwrap();
    ip.stdin.take().unwrap().write_all(format!("{world}{commands}").as_bytes()).unwrap();
    assert!(ip.wait().unwrap().success(), "ip -batch failed");
}

/// `windtunnel settings` with its state in this folder.
fn settings(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command.arg("settings").arg("--state-dir").arg(folder).arg("--root").arg(folder.join("root"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Runs `windtunnel settings show --json` several times: CPU time of one, and the most memory.
fn show(folder: &Path) {
    let before = super::own_cpu(true);
    let (mut peak, mut turns) = (0, 0);
    while turns == 0 || super::own_cpu(true) - before < 0.5 && turns < 40 {
        let mut child = settings(folder).args(["show", "--json"]).spawn().unwrap();
        // Its peak can be read only while it lives.
        while child.try_wait().unwrap().is_none() {
            peak = usage(child.id()).map_or(0, |used| used.peak_bytes).max(peak);
            let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(2)));
        }
        turns += 1;
    }
    say((super::own_cpu(true) - before) / f64::from(turns), peak);
}

pub(crate) fn routes(count: u64) {
    let route = |n: u64| format!("route add 10.{}.{}.{}/32 via 10.255.0.2\n", n / 62_500, n / 250 % 250, n % 250 + 1);
    with_ip(&(0..count).map(route).collect::<String>());
    show(tempfile::tempdir().unwrap().path());
}

pub(crate) fn devices(count: u64) {
    let pair = |n: u64| format!("link add d{n} type veth peer name e{n}\n");
    with_ip(&(0..count / 2).map(pair).collect::<String>());
    show(tempfile::tempdir().unwrap().path());
}

/// One that is really made and undone, and copies of what is kept of it.
pub(crate) fn changes(count: u64) {
    with_ip("");
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| assert!(settings(folder.path()).args(words).status().unwrap().success());
    run(&["apply", "ttl=65", "initcwnd=20", "--confirm-within", "1h", "--json"]);
    run(&["undo"]);
    let kept = folder.path().join("checkpoints");
    let read = |name: &str| std::fs::read(kept.join("1").join(name)).unwrap();
    let mut checkpoint: serde_json::Value = serde_json::from_slice(&read("checkpoint.json")).unwrap();
    for number in 2..=count {
        let change = kept.join(number.to_string());
        std::fs::create_dir(&change).unwrap();
        checkpoint["id"] = number.into();
        std::fs::write(change.join("checkpoint.json"), checkpoint.to_string()).unwrap();
        std::fs::write(change.join("state.json"), read("state.json")).unwrap();
    }
    show(folder.path());
}

/// Tests that run at once; other clients wait.
const AT_ONCE: usize = 4;
/// From one client's first connection to the next one's.
const APART: Duration = Duration::from_millis(1);

/// Serves until its parent ends it.
pub(crate) fn server(at_once: &str) {
    wt_sys::process::raise_descriptor_limit().unwrap();
    let at_once = at_once.parse().unwrap();
    let key = SharedKey::generate().unwrap();
    let config = ServeConfig {
        key: key.clone(),
        max_tests: AT_ONCE,
        max_waiting: at_once,
        longest: Duration::from_secs(60),
        quota: Quota::default(),
        congestion_controls: BTreeMap::new(),
    };
    let serve = Serve::start(vec![TcpListener::bind("127.0.0.1:0").unwrap()], config).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "wt://{}@{}", key.to_hex(), serve.addresses()[0]).unwrap();
    let _ = std::io::stdin().lines().next();
}

/// CPU time of a process since it began, s, threads that ended among it; in hundredths.
fn cpu_of(child: &Child) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// So many tests by so many clients at once.
fn served(tests: u64, at_once: u64, amount: Amount) {
    wt_sys::process::raise_descriptor_limit().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env_remove(super::ROLE).env(SERVER, at_once.max(4).to_string());
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url: Url = line.trim().parse().unwrap();
    let peer = format!("{}:{}", url.host, url.port).parse().unwrap();
    let (tls, cancel, next) = (Tls::new(None).unwrap(), Cancel::new(), AtomicU64::new(0));
    let before = cpu_of(&child);
    let (mut turns, most) = (0, if tests < 100 { 200 / tests } else { 1 });
    while turns == 0 || turns < most && cpu_of(&child) - before < 0.3 {
        next.store(0, Ordering::Relaxed);
        let one = |number: u32| {
            let _ = wt_sys::poll::wait_readable(&[], Some(APART * number));
            while next.fetch_add(1, Ordering::Relaxed) < tests {
                let settings = Settings::new();
                let deadline = Duration::from_secs(120);
                let job = Fetch { url: &url, peer, settings: &settings, amount, deadline, tls: &tls };
                // Of one address, few may come at the same moment, and 10,000 threads of clients leave the server little of two
                // processors: who is turned away or isn't heard comes again.
                let mut tries = 0;
                while let Err(error) = fetch(&job, &mut Reference::new(), &cancel) {
                    tries += 1;
                    assert!(tries < 1_000, "{error}");
                    let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(50)));
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 0..at_once as u32 {
                std::thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, move || one(number)).unwrap();
            }
        });
        turns += 1;
    }
    let spent = (cpu_of(&child) - before) / turns as f64;
    say(spent, usage(child.id()).map_or(0, |used| used.peak_bytes));
    child.kill().unwrap();
    child.wait().unwrap();
}

pub(crate) fn serve(tests: u64) {
    served(tests, 1, Amount::Size(Bytes(10_000)));
}

pub(crate) fn serve_at_once(clients: u64) {
    served(clients, clients, Amount::Size(Bytes(10_000)));
}
