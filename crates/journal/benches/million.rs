//! How long a million trials take to read: `cargo bench -p wt-journal`.
//!
//! Fails when the rows that an analysis needs take longer than two seconds, or a million trials as Parquet longer than five or more than
//! 100 MB.

use std::io::Write as _;
use std::time::{Duration, Instant};
use wt_journal::{Arm, Filter, Journal as _, NewExperiment, SqliteJournal, WithSamples};
use wt_testing::Goal;
use wt_trial::{Amount, Direction, Phase, Sample, Status, TrialOutcome, TrialSpec, Workload};
use wt_units::{Knob, Level, Settings};

const TRIALS: u32 = 1_000_000;
const EXPERIMENTS: u32 = 4;

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let done = work();
    let took = begin.elapsed();
    let _ = writeln!(std::io::stdout(), "{what:<46} {:>9.1} ms", took.as_secs_f64() * 1e3);
    (done, took)
}

fn spec(id: &str, number: u32) -> TrialSpec {
    TrialSpec {
        experiment: id.into(),
        phase: Phase::Round,
        round: number / 4,
        order: number % 4 + 1,
        arm: (number % 4) as usize,
        settings: Settings::new().with(Knob::Rwin, Level::Number(16_384)).with(Knob::Cc, Level::Name("cubic".into())),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(5)) },
        deadline: Duration::from_secs(20),
        seed: u64::from(number),
    }
}

/// Fills a journal the long way once, then multiplies the rows inside the database.
fn fill(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut journal = SqliteJournal::open(path)?;
    for experiment in 0..EXPERIMENTS {
        let id = format!("e{experiment}");
        let arms = (0..4).map(|n| Arm { label: n.to_string(), settings: Settings::new() }).collect();
        let new = NewExperiment { arms, started_unix_us: i64::from(experiment), ..NewExperiment::new(&id, "t", "lab") };
        journal.create_experiment(&new)?;
    }
    let samples: Vec<Sample> =
        (0..500).map(|i| Sample { t_us: i * 10_000, bytes: i * 9_000, ..Sample::default() }).collect();
    let outcome = TrialOutcome {
        bytes: 4_000_000,
        granted: spec("", 0).settings,
        observed: wt_trial::Observed { mss: Some(1_448), cc: Some("cubic".to_owned()), ..Default::default() },
        sender: samples.clone(),
        receiver: samples,
        ..TrialOutcome::empty(Status::Completed, Duration::from_secs(5), "")
    };
    let (_, took) = timed("1000 trials begun and finished, with samples", || {
        for number in 0..1_000 {
            let id = format!("e{}", number % EXPERIMENTS);
            let trial = journal.begin_trial(&spec(&id, number), i64::from(number))?;
            journal.finish_trial(trial, &outcome)?;
        }
        Ok::<(), wt_journal::JournalError>(())
    });
    assert!(took < Duration::from_secs(20), "a trial takes {took:?} / 1000 to journal");
    drop(journal);
    let database = rusqlite::Connection::open(path)?;
    database.execute_batch(&format!(
        "BEGIN; DELETE FROM samples WHERE trial > 100;
         WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < {TRIALS})
         INSERT INTO trials SELECT i, 1 + i % {EXPERIMENTS}, 'round', i / 4, 1 + i % 4, i % 4, 'completed', i, 5000000, 4000000 FROM n;
         INSERT INTO details SELECT t.id, d.asked, d.workload, d.deadline_us, t.id, d.granted, d.scopes, d.observed, 1, 2, 3, d.notes
         FROM trials t, details d WHERE t.id > 1000 AND d.trial = 1;
         COMMIT;"
    ))?;
    Ok(())
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("journal.sqlite3");
    timed("a million trials made", || fill(&path)).0?;
    let size = std::fs::metadata(&path)?.len();
    writeln!(std::io::stdout(), "{:<46} {:>9.1} MiB", "the file", size as f64 / 1_048_576.0)?;
    let (journal, _) = timed("opened", || SqliteJournal::open(&path));
    let journal = journal?;
    let _ = wt_testing::most_memory_mib();
    let file = std::fs::File::create(dir.path().join("trials.parquet"))?;
    let (written, parquet) = timed("a million trials as Parquet", || {
        let mut out = std::io::BufWriter::new(file);
        (0..EXPERIMENTS).try_for_each(|e| {
            wt_journal::export_parquet(&journal, &format!("e{e}"), wt_journal::ParquetRows::Trials, &mut out)
        })
    });
    written?;
    let memory = wt_testing::most_memory_mib();
    let (rows, took) = timed("rows for analysis, all experiments", || {
        (0..EXPERIMENTS).map(|e| journal.rows(&format!("e{e}"))).collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(rows?.iter().map(Vec::len).sum::<usize>(), TRIALS as usize);
    let (list, _) = timed("list of experiments with counts", || journal.list(&Filter::default()));
    assert_eq!(list?.len(), EXPERIMENTS as usize);
    let mut whole = 0;
    let (read, _) = timed("whole trials without samples, one experiment", || {
        journal.for_each_trial("e1", WithSamples::No, &mut |_| {
            whole += 1;
            Ok(())
        })
    });
    read?;
    writeln!(std::io::stdout(), "{whole} of them")?;
    for (what, took, most_ms) in [("a million rows", took, 2_000.0), ("a million trials as Parquet", parquet, 5_000.0)]
    {
        writeln!(std::io::stdout(), "{}", Goal::AtMost(most_ms).line(what, took.as_secs_f64() * 1e3, "ms"))?;
    }
    writeln!(std::io::stdout(), "{}", Goal::AtMost(95.0).line("memory while Parquet was written", memory, "MiB"))?;
    assert!(took < Duration::from_secs(2), "a million rows took {took:?}");
    assert!(parquet < Duration::from_secs(5), "a million rows of Parquet took {parquet:?}");
    assert!(memory < 95.0, "a million rows of Parquet took {memory:.0} MiB");
    Ok(())
}
