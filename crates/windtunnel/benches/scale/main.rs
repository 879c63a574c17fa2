//! How cost grows with the amount of work: CPU time and memory of each main job over three decades or more.
//!
//! `cargo bench -p windtunnel --bench scale [-- WORD...]` (`make scale`) writes `docs/results/scale.html`, or with words prints
//! the jobs that hold one. Time is that of processors, so that other work on the machine changes no exponent; each point is a
//! process of its own. Fails where a job grows faster than n log n and no reason is told. Everything is in namespaces of its own.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops when it can't go on")]

/// Captures, the model, the lab.
mod compute;
/// The growth of a curve.
mod growth;
/// Journals.
mod journal;
/// The page.
mod page;
/// Surveys of hosts.
mod survey;
/// Settings of a host, and the server for others.
mod world;

use growth::{Curve, Point};
use std::path::Path;
use std::process::{Command, ExitCode};
use wt_sys::process::usage;

/// Names the job and its size that a process of its own measures.
const ROLE: &str = "SCALE_ROLE";
/// Names the folder of journals that several jobs read; it goes with the bench.
const SHARED: &str = "SCALE_SHARED";

/// A job, and the sizes at which it is measured.
struct Job {
    name: &'static str,
    /// What is counted.
    of: &'static str,
    sizes: &'static [u64],
    work: fn(u64),
    /// Why it may grow faster than n log n, if it may.
    reason: Option<&'static str>,
}

impl Job {
    const fn new(name: &'static str, of: &'static str, sizes: &'static [u64], work: fn(u64)) -> Self {
        Self { name, of, sizes, work, reason: None }
    }
}

const TO_1000: &[u64] = &[1, 3, 10, 30, 100, 300, 1_000];
const HOPS: &[u64] = &[1, 2, 4, 8, 16, 32, 64];
const TO_10_000: &[u64] = &[1, 10, 100, 1_000, 10_000];
const TRIALS: &[u64] = &[100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const CONNECTIONS: &[u64] = &[10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const TO_100_000: &[u64] = &[10, 100, 1_000, 10_000, 100_000];
const FROM_10: &[u64] = &[10, 100, 1_000, 10_000];

/// Of paths: a third of the time with 1,000, by a profile.
const ONE_CHAIN: &str = "the kernel looks for a file of /proc/sys among those of the same name of all network namespaces \
                         (proc_sys_compare), and each path has two";
/// Of flows in the model.
const FLOWS_OUT_OF_CACHE: &str =
    "what a flow and its packets take, 9 KB, no longer stays in the processor's caches: 42 to 60 µs a flow become 76";
/// Of captures.
const CONNECTIONS_OUT_OF_CACHE: &str = "what is kept of each connection, 3 KB, no longer stays in the processor's caches: 4 µs a connection become \
                                        5 to 8, and are 7 up to 10,000,000";
/// Of a survey.
const OUT_OF_CACHE: &str = "what is kept for each host no longer stays in the processor's caches: 2.3 µs a host become 4.7, a hundredth of \
                            a processor at 1,700 hosts a second";

const JOBS: [Job; 16] = [
    Job {
        reason: Some(FLOWS_OUT_OF_CACHE),
        ..Job::new("model-flows", "flows of 100 kB over one link", TO_10_000, compute::flows)
    },
    Job::new("link-hops", "links of a path, which has 64 at most; 10,000 packets", HOPS, compute::hops),
    Job { reason: Some(ONE_CHAIN), ..Job::new("lab-paths", "paths set up and taken down", TO_1000, compute::paths) },
    Job {
        reason: Some(CONNECTIONS_OUT_OF_CACHE),
        ..Job::new("captures", "connections in a capture", CONNECTIONS, compute::capture)
    },
    Job::new("journal-list", "trials in the journal", TRIALS, journal::list),
    Job::new("journal-report", "trials of an experiment", TRIALS, journal::report),
    Job::new("journal-compare", "trials of two experiments", TRIALS, journal::compare),
    Job::new("journal-export", "trials exported as Parquet", TRIALS, journal::export),
    Job::new("journal-push", "trials pushed to PostgreSQL, its time among it", TRIALS, journal::push),
    Job::new("page-list", "experiments in the journal, of which the page asks for 20,000", TO_100_000, journal::page),
    Job {
        reason: Some(OUT_OF_CACHE),
        ..Job::new("survey-hosts", "hosts of a survey, without their network", TO_100_000, survey::hosts)
    },
    Job::new("settings-routes", "routes of the host", FROM_10, world::routes),
    Job::new("settings-devices", "devices of the host", FROM_10, world::devices),
    Job::new(
        "settings-changes",
        "changes that were made and undone, where settings are shown",
        FROM_10,
        world::changes,
    ),
    Job::new("serve", "tests of 10 kB, one after the other", TO_10_000, world::serve),
    Job::new(
        "serve-at-once",
        "clients that come 1 ms after each other, and wait for their turn among four",
        TO_10_000,
        world::serve_at_once,
    ),
];

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        let (name, size) = role.split_once(':').unwrap();
        let job = JOBS.iter().find(|job| job.name == name).unwrap();
        (job.work)(size.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    if let Ok(role) = std::env::var(world::SERVER) {
        world::server(&role);
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    // Without --bench all targets are run as tests: then it is enough that the smallest runs.
    let quick = !std::env::args().any(|arg| arg == "--bench");
    let mut curves = Vec::new();
    let shared = tempfile::tempdir().unwrap();
    for job in JOBS.iter().filter(|job| words.is_empty() || words.iter().any(|word| job.name.contains(word.as_str()))) {
        let sizes = if quick { &job.sizes[..1] } else { job.sizes };
        let points = sizes.iter().map_while(|size| point(job, *size, shared.path())).collect();
        let curve = Curve { name: job.name, of: job.of, reason: job.reason, points };
        println!("{}", curve.line());
        curves.push(curve);
    }
    let failed = !quick && curves.iter().any(Curve::is_unexplained);
    if words.is_empty() && !quick {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/scale.html");
        std::fs::write(file, page::html(&curves)).unwrap();
        println!("written: docs/results/scale.html");
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// One size of a job, measured in a process of its own; `None`, told, where it didn't run.
fn point(job: &Job, size: u64, shared: &Path) -> Option<Point> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.env(ROLE, format!("{}:{size}", job.name)).env(SHARED, shared).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.lines().last().unwrap_or_default().split_whitespace().map(str::parse::<f64>);
    if let (Some(Ok(cpu_s)), Some(Ok(peak_mib))) = (numbers.next(), numbers.next()) {
        return Some(Point { size: size as f64, cpu_s, peak_mib });
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let why = why.lines().find(|line| !line.is_empty() && !line.starts_with("thread '")).unwrap_or("it said nothing");
    println!("{} of {size}: not measured: {why}", job.name);
    None
}

/// CPU time of this process, s; of what it has waited for, too, in hundredths of a second.
fn own_cpu(with_children: bool) -> f64 {
    if !with_children {
        return wt_sys::clock::thread_cpu_ns() as f64 / 1e9;
    }
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Does something until it has taken a tenth of a second of this thread, and tells what once took, and the most memory.
fn tell(mut work: impl FnMut()) {
    tell_of(false, &mut work);
}

/// The same of all threads and of what was started and waited for.
fn tell_with_all(mut work: impl FnMut()) {
    tell_of(true, &mut work);
}

fn tell_of(all: bool, work: &mut dyn FnMut()) {
    // The peak of what was prepared isn't the work's.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (least, before) = (if all { 0.3 } else { 0.1 }, own_cpu(all));
    let mut turns = 0;
    while turns == 0 || own_cpu(all) - before < least && turns < 1_000 {
        work();
        turns += 1;
    }
    let spent = (own_cpu(all) - before) / f64::from(turns);
    say(spent, usage(std::process::id()).map_or(0, |used| used.peak_bytes));
}

/// What the parent reads: time of processors, s, and the most memory, bytes.
fn say(cpu_s: f64, peak_bytes: u64) {
    println!("{cpu_s} {}", peak_bytes as f64 / 1_048_576.0);
}
