//! How long `windtunnel settings` takes, whole processes on a real kernel: `cargo bench -p windtunnel --bench settings`.
//!
//! Fails above 60 ms for showing everything, and above 150 ms for applying and verifying 20 settings (medians).
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::process::{Command, Stdio};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_testing::Goal;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const RUNS: usize = 41;
const MOST_SHOW: Duration = Duration::from_millis(60);
const MOST_APPLY: Duration = Duration::from_millis(150);
/// Of the host, of a device with several parts, of routes of both families: 20 settings, 23 changes.
const SETTINGS: [&str; 20] = [
    "mtu=1400",
    "txqueuelen=500",
    "qdisc=pfifo",
    "tso=off",
    "mss=from-mtu",
    "initcwnd=20",
    "initrwnd=30",
    "rwin=256KiB",
    "sndbuf=256KiB",
    "ttl=128",
    "window-scaling=off",
    "sack=off",
    "timestamps=off",
    "ecn=on",
    "mtu-probing=on",
    "slow-start-after-idle=off",
    "no-metrics-save=on",
    "keepalive-time=600",
    "fin-timeout=30",
    "syn-retries=4",
];
const WORLD: &str = "set -e; export PATH=$PATH:/usr/sbin:/sbin
    ip link set lo up; ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
    ip addr add 10.0.0.1/24 dev v0; ip addr add 2001:db8::1/64 dev v0 nodad
    ip route add default via 10.0.0.2; ip -6 route add default via 2001:db8::2";
const ROUTES: &str = "for a in 1 2 3 4; do for b in $(seq 250); do echo route add 10.$a.$b.0/24 via 10.0.0.2; done; done \
    | PATH=$PATH:/usr/sbin:/sbin ip -batch -";

fn shell(text: &str) -> Result<()> {
    let status = Command::new("sh").args(["-c", text]).status()?;
    if status.success() { Ok(()) } else { Err(format!("{text}: {status}").into()) }
}

/// Runs `windtunnel settings` to its end, and returns how long that took.
fn settings(state: &std::path::Path, args: &[&str]) -> Result<Duration> {
    let began = monotonic_ns();
    let status = Command::new(env!("CARGO_BIN_EXE_windtunnel"))
        .args(["settings", "--state-dir"])
        .arg(state)
        .arg("--root")
        .arg(state.join("root"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let took = Duration::from_nanos(monotonic_ns() - began);
    if status.success() { Ok(took) } else { Err(format!("settings {args:?}: {status}").into()) }
}

/// The median of several runs.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Prints a median beside its bound; whether it holds.
fn told(what: &str, times: Vec<Duration>, most: Duration) -> bool {
    let (worst, median) = (times.iter().max().copied().unwrap_or_default(), median(times));
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("{}  (worst of {RUNS} {:.1} ms)", Goal::AtMost(ms(most)).line(what, ms(median), "ms"), ms(worst));
    median <= most
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() -> Result<()> {
    wt_sys::ns::enter_user_namespace()?;
    wt_sys::ns::enter_network_namespace()?;
    shell(WORLD)?;
    let directory = tempfile::tempdir()?;
    let state = directory.path();
    let show = || (0..RUNS).map(|_| settings(state, &["show", "--json"])).collect::<Result<Vec<_>>>();
    let mut holds = told("show --json", show()?, MOST_SHOW);
    let mut apply = vec!["apply", "--confirm-within", "1h", "--json"];
    apply.extend(SETTINGS);
    let mut times = Vec::new();
    for _ in 0..RUNS {
        times.push(settings(state, &apply)? + settings(state, &["verify", "--json"])?);
        settings(state, &["undo"])?;
    }
    holds &= told("apply and verify of 20 settings", times, MOST_APPLY);
    shell(ROUTES)?;
    holds &= told("show --json with 1000 routes", show()?, MOST_SHOW);
    if holds { Ok(()) } else { Err("slower than promised".into()) }
}
