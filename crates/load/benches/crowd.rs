//! A thousand clients at once on one `serve`: how fair, and how much memory. `cargo bench -p wt-load --bench crowd`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops when it can't go on")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;
use wt_load::{Fetch, Quota, Reference, Serve, ServeConfig, SharedKey, Tls, Url, fetch};
use wt_trial::{Amount, Cancel};
use wt_units::Settings;

const ROLE: &str = "CROWD_ROLE";
const CLIENTS: usize = 1000;
const TIME: Duration = Duration::from_secs(10);

fn main() {
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
        congestion_controls: std::collections::BTreeMap::new(),
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
    let (rates, peak) = std::thread::scope(|scope| {
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
                    let fetched = fetch(&job, &mut Reference::new(), &cancel).map(|f| f.report);
                    fetched.map(|report| report.bytes as f64 / report.elapsed.as_secs_f64())
                };
                std::thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, work).unwrap()
            })
            .collect();
        let rates: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        (rates, peak_kib(child.id()))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let mut failures = std::collections::BTreeMap::<String, usize>::new();
    for error in rates.iter().filter_map(|rate| rate.as_ref().err()) {
        *failures.entry(error.to_string()).or_default() += 1;
    }
    for (why, count) in failures {
        println!("{count} times: {why}");
    }
    let rates: Vec<f64> = rates.into_iter().map(|rate| rate.unwrap_or(0.0)).collect();
    let served = rates.iter().filter(|rate| **rate > 0.0).count();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    let jain = sum * sum / (CLIENTS as f64 * squares);
    println!("{served} of {CLIENTS} clients served, {:.2} Gbit/s in all", sum * 8.0 / 1e9);
    println!("fairness (Jain): {jain:.3}");
    println!("the server's memory at most: {:.0} MiB", peak as f64 / 1024.0);
}

/// The most memory that a process has had, KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
