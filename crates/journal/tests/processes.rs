//! What the death of a program, two programs at once and a full disk leave in the journal. The tests start themselves
//! anew as writers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_journal::{
    Filter, Journal as _, JournalError, NewExperiment, Orphans, Prune, SqliteJournal, State, WithSamples,
};
use wt_trial::{Amount, Direction, Phase, Sample, Status, TrialOutcome, TrialSpec, Workload};
use wt_units::{Bytes, Settings};

fn spec(experiment: &str, round: u32) -> TrialSpec {
    TrialSpec {
        experiment: experiment.into(),
        phase: Phase::Round,
        round,
        order: 1,
        arm: 0,
        settings: Settings::new(),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(1)) },
        deadline: Duration::from_secs(1),
        seed: 1,
    }
}

fn outcome() -> TrialOutcome {
    let sample = Sample { t_us: u64::MAX / 3, bytes: u64::MAX / 5, ..Sample::default() };
    TrialOutcome {
        bytes: 7,
        sender: vec![sample; 200],
        ..TrialOutcome::empty(Status::Completed, Duration::from_secs(1), "")
    }
}

/// Not a test: what the other tests run as a program of its own. Writes trials and says so on standard output.
#[test]
fn writer() {
    let (Ok(path), Ok(id), Ok(rounds)) =
        (std::env::var("WRITER_PATH"), std::env::var("WRITER_ID"), std::env::var("WRITER_ROUNDS"))
    else {
        return;
    };
    let write = || -> Result<(), JournalError> {
        let mut journal = SqliteJournal::open(Path::new(&path))?;
        journal.create_experiment(&NewExperiment::new(&id, "t", "lab"))?;
        for round in 1..=rounds.parse().unwrap() {
            let trial = journal.begin_trial(&spec(&id, round), i64::from(round))?;
            println!("begun {round}");
            journal.finish_trial(trial, &outcome())?;
            println!("done {round}");
        }
        journal.finish_experiment(&id, State::Finished, 1, None)
    };
    let words = match write() {
        Ok(()) => "written".to_owned(),
        Err(JournalError::Full { .. }) => "full".to_owned(),
        Err(e) => format!("error {e}"),
    };
    println!("{words}");
    std::io::stdout().flush().unwrap();
}

fn writer_command(program: &mut Command, path: &Path, id: &str, rounds: u32) -> Child {
    program
        .env("WRITER_PATH", path)
        .env("WRITER_ID", id)
        .env("WRITER_ROUNDS", rounds.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn start(path: &Path, id: &str, rounds: u32) -> Child {
    let mut program = Command::new(std::env::current_exe().expect("this test has a path"));
    writer_command(program.args(["writer", "--exact", "--nocapture"]), path, id, rounds)
}

#[test]
fn kill_9_loses_at_most_the_trial_in_flight() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.sqlite3");
    for kill_after in ["begun 1", "done 3", "begun 17", "done 40"] {
        let id = kill_after.replace(' ', "-");
        let mut child = start(&path, &id, 100_000);
        let mut done = 0;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        for line in &mut lines {
            done += u32::from(line.starts_with("done"));
            if line == kill_after {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let after = lines.filter(|line| line.starts_with("done")).count() as u32;

        let mut journal = SqliteJournal::open(&path).unwrap();
        let rows = journal.rows(&id).unwrap();
        let (completed, running): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.status == Status::Completed);
        assert!(completed.len() as u32 >= done + after, "{kill_after}: {} of {}", completed.len(), done + after);
        assert!(running.len() <= 1, "{kill_after}");
        let whole = journal.trials(&id, WithSamples::Yes).unwrap();
        assert!(whole.iter().filter(|t| t.outcome.status == Status::Completed).all(|t| t.outcome.sender.len() == 200));
        let found = journal.mark_orphans(&|_, _| false).unwrap();
        assert_eq!(found, Orphans { experiments: vec![id.clone()], trials: running.len() as u64 });
        assert_eq!(journal.load(&id).unwrap().state, State::Aborted);
    }
}

#[test]
fn two_programs_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.sqlite3");
    let children: Vec<Child> = ["a", "b"].map(|id| start(&path, id, 100)).into();
    for child in children {
        let out = child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&out.stdout).contains("\nwritten"), "{out:?}");
    }
    let journal = SqliteJournal::open(&path).unwrap();
    let list = journal.list(&Filter::default()).unwrap();
    assert_eq!(list.iter().map(|e| (e.state, e.trials)).collect::<Vec<_>>(), [(State::Finished, 100); 2]);
}

#[test]
fn a_full_disk_ends_in_a_clear_error_and_an_intact_journal() {
    let dir = tempfile::tempdir().unwrap();
    // The file system lives as long as its namespace: what is left must be looked at from inside.
    let script = "mount -t tmpfs -o size=512k none \"$1\" && \"$2\" writer --exact --nocapture && \
                  \"$2\" inspector --exact --nocapture";
    let mut program = Command::new("unshare");
    program.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    program.arg(dir.path()).arg(std::env::current_exe().unwrap());
    let child = writer_command(&mut program, &dir.path().join("journal.sqlite3"), "a", 100_000);
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() && !text.contains("begun") {
        let why = "CANNOT RUN: no user and mount namespaces here";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        println!("{why}; the same with a limit on pages runs as a unit test");
        return;
    }
    assert!(text.contains("\nfull\n"), "{text}");
    assert!(text.contains("inspected: intact"), "{text}");
}

#[test]
fn what_was_written_is_read_while_the_disk_has_no_room_for_a_byte() {
    let dir = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=512k none \"$1\" && \"$2\" writer --exact --nocapture && \
                  { cat /dev/zero > \"$1/rest\"; \"$2\" reader --exact --nocapture; }";
    let mut program = Command::new("unshare");
    program.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    program.arg(dir.path()).arg(std::env::current_exe().unwrap()).stderr(Stdio::null());
    let child = writer_command(&mut program, &dir.path().join("journal.sqlite3"), "a", 3);
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() && !text.contains("begun") {
        let why = "CANNOT RUN: no user and mount namespaces here";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        println!("{why}");
        return;
    }
    assert!(text.contains("\nwritten\n") && text.contains("read: 3 trials"), "{text}");
}

/// Not a test: reads the journal on a file system that is full to the last byte.
#[test]
fn reader() {
    let (Ok(path), Ok(id)) = (std::env::var("WRITER_PATH"), std::env::var("WRITER_ID")) else { return };
    let path = Path::new(&path);
    assert!(matches!(SqliteJournal::open(path), Err(JournalError::Full { .. })));
    let journal = SqliteJournal::open_to_read(path).unwrap();
    println!("read: {} trials", journal.trials(&id, WithSamples::Yes).unwrap().len());
}

/// Not a test: looks at the journal on the file system that is full, and makes room on it.
#[test]
fn inspector() {
    let (Ok(path), Ok(id)) = (std::env::var("WRITER_PATH"), std::env::var("WRITER_ID")) else { return };
    let mut journal = SqliteJournal::open(Path::new(&path)).unwrap();
    let trials = journal.trials(&id, WithSamples::Yes).unwrap();
    let (completed, running): (Vec<_>, Vec<_>) =
        trials.iter().partition(|trial| trial.outcome.status == Status::Completed);
    assert!(completed.len() > 5 && running.len() <= 1, "{} {}", completed.len(), running.len());
    assert!(completed.iter().all(|trial| trial.outcome.sender.len() == 200));
    println!("inspected: intact");
    let _ = journal.prune(Prune { keep_newest: Some(0), ..Prune::default() });
}
