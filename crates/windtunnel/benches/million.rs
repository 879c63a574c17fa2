//! How long a report of an experiment with a million trials takes, and how much memory: `cargo bench -p windtunnel`.
//!
//! Fails above two seconds or 500 MB.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wt_journal::{Arm, Journal as _, NewExperiment, SqliteJournal, State};
use wt_testing::Goal;
use wt_trial::{Amount, Direction, Phase, Sample, Status, TrialOutcome, TrialSpec, Workload};
use wt_units::{Knob, Level, Settings};

const TRIALS: u32 = 1_000_000;
const ARMS: u32 = 4;
const MOST_TIME: Duration = Duration::from_secs(2);
const MOST_KIB: u64 = 500_000_000 / 1024;

/// Writes one trial with samples the long way, then multiplies it inside the database: goodput spread by ±10 %, arm 2
/// ahead by 2 %.
fn fill(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut journal = SqliteJournal::open(path)?;
    let level = |arm: u32| Settings::new().with(Knob::Rwin, Level::Number(16_384 * u64::from(arm + 1)));
    let arms = (0..ARMS).map(|arm| Arm { label: format!("arm {arm}"), settings: level(arm) }).collect();
    journal.create_experiment(&NewExperiment { arms, ..NewExperiment::new("million", "adsl", "lab") })?;
    let spec = TrialSpec {
        experiment: "million".into(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings: Settings::new(),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(5)) },
        deadline: Duration::from_secs(20),
        seed: 1,
    };
    let samples: Vec<Sample> =
        (0..500).map(|i| Sample { t_us: i * 10_000, bytes: i * 9_000, ..Sample::default() }).collect();
    let outcome = TrialOutcome {
        bytes: 4_000_000,
        observed: wt_trial::Observed { mss: Some(1_448), ..Default::default() },
        sender: samples.clone(),
        receiver: samples,
        ..TrialOutcome::empty(Status::Completed, Duration::from_secs(5), "")
    };
    let trial = journal.begin_trial(&spec, 0)?;
    journal.finish_trial(trial, &outcome)?;
    journal.finish_experiment("million", State::Finished, 1, None)?;
    drop(journal);
    rusqlite::Connection::open(path)?.execute_batch(&format!(
        "BEGIN;
         WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {TRIALS})
         INSERT INTO trials SELECT i, 1, 'round', 1 + (i - 1) / {ARMS}, 1 + (i - 1) % {ARMS}, (i - 1) % {ARMS},
             'completed', i, 5000000,
             (3600000 + i * 2654435761 % 800009) * (CASE (i - 1) % {ARMS} WHEN 2 THEN 102 ELSE 100 END) / 100 FROM n;
         INSERT INTO details SELECT t.id, d.asked, d.workload, d.deadline_us, t.id, d.granted, d.scopes, d.observed, 1, 2,
             3, d.notes FROM trials t, details d WHERE t.id > 1 AND d.trial = 1;
         INSERT INTO samples SELECT t.id, s.side, s.data FROM trials t, samples s WHERE t.id > {TRIALS} - 5000 AND s.trial = 1;
         COMMIT;"
    ))?;
    Ok(())
}

/// Runs the binary; what it printed, how long it took, and the peak of its resident memory in KiB.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn measured(args: &[&str], journal: &Path) -> Result<(String, Duration, u64), Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_windtunnel"))
        .args(args)
        .arg("--journal")
        .arg(journal)
        .stdout(Stdio::piped())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let (stop, stopped) = mpsc::channel::<()>();
    // The kernel keeps the peak; it is read until there is no more to read.
    let watcher = std::thread::spawn(move || {
        let mut peak = 0;
        while stopped.recv_timeout(Duration::from_millis(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
            peak = kib.unwrap_or(0).max(peak);
        }
        peak
    });
    let mut out = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut out)?;
    child.wait()?;
    let took = begin.elapsed();
    drop(stop);
    Ok((out, took, watcher.join().map_err(|_| "the watcher failed")?))
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("journal.sqlite3");
    fill(&path)?;
    let mut holds = true;
    for args in [&["report", "million", "--json"][..], &["report", "million"], &["journal", "show", "million"]] {
        let (out, took, peak) = measured(args, &path)?;
        writeln!(
            std::io::stdout(),
            "{:<24} {:>7.0} ms {:>7.0} MB peak, {:>8} bytes of output",
            args.join(" "),
            took.as_secs_f64() * 1e3,
            peak as f64 * 1024.0 / 1e6,
            out.len()
        )?;
        let (ms, mb) = (took.as_secs_f64() * 1e3, peak as f64 * 1024.0 / 1e6);
        let most_mb = MOST_KIB as f64 * 1024.0 / 1e6;
        let (command, most_ms) = (args.join(" "), MOST_TIME.as_secs_f64() * 1e3);
        writeln!(std::io::stdout(), "{}", Goal::AtMost(most_ms).line(&format!("{command}: time"), ms, "ms"))?;
        writeln!(std::io::stdout(), "{}", Goal::AtMost(most_mb.round()).line(&format!("{command}: memory"), mb, "MB"))?;
        assert!(out.contains("of 1000000 trials"), "{args:?} doesn't say what it left out");
        assert!(peak > 0, "{args:?}: nobody says how much memory it took");
        holds &= took < MOST_TIME && peak < MOST_KIB;
    }
    if holds { Ok(()) } else { Err("slower or larger than promised".into()) }
}
