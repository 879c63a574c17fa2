//! A thousand clients at once on one `serve`: how fair, and how much memory. `cargo bench -p wt-load --bench crowd`.
//!
//! Shares are counted over the time in which all of them run: a client that came first had the machine for itself, which is no
//! unfairness of the server's.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops when it can't go on")]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use wt_load::{EndReport, Fetch, Quota, Reference, Serve, ServeConfig, SharedKey, Tls, Url, fetch};
use wt_testing::Goal;
use wt_trial::{Amount, Cancel, Sample};
use wt_units::Settings;

const ROLE: &str = "CROWD_ROLE";
const CLIENTS: usize = 1000;
const TIME: Duration = Duration::from_secs(20);

/// When samples were taken, by their own clock and bytes, which together no two connections share: µs of the monotonic clock.
static TAKEN: Mutex<Option<HashMap<(u64, u64), u64>>> = Mutex::new(None);

fn note(receiver: bool, sample: &Sample) {
    if receiver && let Some(taken) = TAKEN.lock().unwrap().as_mut() {
        taken.insert((sample.t_us, sample.bytes), wt_sys::clock::monotonic_ns() / 1000);
    }
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    match std::env::var(ROLE).as_deref() {
        Ok("server") => server(),
        _ => crowd(),
    }
}

/// Serves until it is killed.
fn server() {
    wt_sys::process::raise_descriptor_limit().unwrap();
    let key = SharedKey::generate().unwrap();
    let config = ServeConfig {
        key: key.clone(),
        max_tests: CLIENTS,
        max_waiting: CLIENTS,
        longest: Duration::from_secs(60),
        quota: Quota::default(),
        congestion_controls: BTreeMap::new(),
    };
    let serve = Serve::start(vec![TcpListener::bind("127.0.0.1:0").unwrap()], config).unwrap();
    println!("wt://{}@{}", key.to_hex(), serve.addresses()[0]);
    // Lives until its parent ends it.
    let _ = std::io::stdin().lines().next();
}

fn crowd() {
    wt_sys::process::raise_descriptor_limit().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    let mut child = child.env(ROLE, "server").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url: Url = line.trim().parse().unwrap();
    let peer = format!("{}:{}", url.host, url.port).parse().unwrap();
    let (tls, cancel) = (Tls::new(None).unwrap(), Cancel::new());
    let start = std::sync::Barrier::new(CLIENTS);
    *TAKEN.lock().unwrap() = Some(HashMap::new());
    wt_load::listen(note);
    let (results, peak) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let work = || {
                    start.wait();
                    let job = Fetch {
                        url: &url,
                        peer,
                        settings: &Settings::new(),
                        amount: Amount::Time(TIME),
                        deadline: TIME * 6,
                        tls: &tls,
                    };
                    fetch(&job, &mut Reference::new(), &cancel).map(|fetched| fetched.report)
                };
                std::thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, work).unwrap()
            })
            .collect();
        let results: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        (results, peak_kib(child.id()))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let mut failures = BTreeMap::<String, usize>::new();
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        *failures.entry(error.to_string()).or_default() += 1;
    }
    for (why, count) in failures {
        println!("{count} times: {why}");
    }
    let reports: Vec<EndReport> =
        results.into_iter().filter_map(Result::ok).filter(|report| report.bytes > 0).collect();
    tell(&reports);
    let most = peak as f64 / 1024.0;
    println!("{}", Goal::AtMost(100.0).line("serve's memory with 1000 clients", most, "MiB"));
}

/// How many were served, and how fairly.
fn tell(reports: &[EndReport]) {
    let taken = TAKEN.lock().unwrap().take().unwrap();
    let begins: Vec<Option<u64>> = reports
        .iter()
        .map(|report| {
            let seen =
                report.samples.iter().find_map(|sample| Some((sample, taken.get(&(sample.t_us, sample.bytes))?)));
            seen.map(|(sample, at)| at.saturating_sub(sample.t_us))
        })
        .collect();
    let from = begins.iter().flatten().max().copied().unwrap_or(0);
    let until = begins.iter().flatten().min().map_or(0, |first| first + TIME.as_micros() as u64);
    // One that wasn't served had nothing.
    let nothing = || std::iter::repeat_n(0.0, CLIENTS - reports.len());
    let own = reports.iter().map(|report| report.bytes as f64 / report.elapsed.as_secs_f64());
    let own: Vec<f64> = own.chain(nothing()).collect();
    let together: f64 = own.iter().sum();
    println!("{} of {CLIENTS} clients served, {:.2} Gbit/s in all", reports.len(), together * 8.0 / 1e9);
    println!("fairness (Jain), each over its own {} s: {:.3}", TIME.as_secs(), jain(&own));
    if until <= from {
        println!("at no time did all of them run");
        return;
    }
    // Nor had one that never got as far as a sample.
    let shares: Vec<f64> = reports
        .iter()
        .zip(&begins)
        .map(|(report, begin)| {
            begin.map_or(0.0, |begin| at(report, until - begin) - at(report, from.saturating_sub(begin)))
        })
        .chain(nothing())
        .collect();
    println!("  all ran for {:.1} s", (until - from) as f64 / 1e6);
    println!("{}", Goal::AtLeast(0.95).line("fair shares (Jain) of 1000 clients of serve", jain(&shares), "of 1"));
}

/// The bytes that had come by then, between two samples by a straight line.
fn at(report: &EndReport, t_us: u64) -> f64 {
    let (mut before, mut bytes) = (0, 0);
    for sample in &report.samples {
        if sample.t_us >= t_us {
            let part = (t_us - before) as f64 / (sample.t_us - before).max(1) as f64;
            return bytes as f64 + part * sample.bytes.saturating_sub(bytes) as f64;
        }
        (before, bytes) = (sample.t_us, sample.bytes);
    }
    bytes as f64
}

fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len().max(1) as f64 * squares)
}

/// The most memory that a process has had, KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
