//! `windtunnel report` on journals made for the purpose.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{ran, windtunnel};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use wt_journal::{Arm, ExperimentConfig, Journal as _, NewExperiment, SqliteJournal, State, TuneConfig};
use wt_trial::{Amount, Direction, Lateness, Measures, Phase, Spread, Status, TrialOutcome, TrialSpec, Workload};
use wt_units::{Bytes, Settings};

/// A journal with one experiment of two arms; the second is ahead by a tenth until `changed`, and the same from there.
fn journal(path: &Path, trials: u32, changed: u32) {
    let mut journal = SqliteJournal::open(path).unwrap();
    let arms = ["current", "other"].map(|label| Arm { label: label.to_owned(), settings: Settings::new() }).to_vec();
    journal.create_experiment(&NewExperiment { arms, ..NewExperiment::new("many", "adsl", "lab") }).unwrap();
    let spec = TrialSpec {
        experiment: "many".into(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings: Settings::new(),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(1)) },
        deadline: Duration::from_secs(9),
        seed: 1,
    };
    let second = Duration::from_secs(1);
    let outcome = TrialOutcome { bytes: 1_000_000, ..TrialOutcome::empty(Status::Completed, second, "") };
    let trial = journal.begin_trial(&spec, 0).unwrap();
    journal.finish_trial(trial, &outcome).unwrap();
    journal.finish_experiment("many", State::Finished, 1, None).unwrap();
    drop(journal);
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {trials})
         INSERT INTO trials SELECT i, 1, 'round', 1 + (i - 1) / 2, 1 + (i - 1) % 2, (i - 1) % 2, 'completed', i, 1000000,
             1000000 + i * 7919 % 1009 + (CASE WHEN i % 2 = 0 AND i < {changed} THEN 100000 ELSE 0 END) FROM n;
         INSERT INTO details SELECT t.id, d.asked, d.workload, d.deadline_us, t.id, d.granted, d.scopes, d.observed, 1, 2,
             3, d.notes FROM trials t, details d WHERE t.id > 1 AND d.trial = 1;"
    );
    rusqlite::Connection::open(path).unwrap().execute_batch(&fill).unwrap();
}

fn report(path: &Path) -> Value {
    let home = path.parent().unwrap();
    let ran = ran(windtunnel(home).args(["report", "many", "--json", "--journal"]).arg(path).output().unwrap());
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

#[test]
fn an_export_says_why_it_cant_be_written_and_whoever_reads_may_have_enough() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    journal(&path, 20_000, 10_000);
    for format in ["csv", "json", "parquet"] {
        let export = |out: std::process::Stdio| {
            let mut command = windtunnel(home.path());
            command.args(["journal", "export", "many", "--format", format, "--journal"]).arg(&path).stdout(out);
            ran(command.output().unwrap())
        };
        let full = export(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into());
        assert!(
            full.code != 0 && full.err.contains("No space left") && full.err.contains("try:"),
            "{format}: {}",
            full.err
        );
        // Its end for reading is gone before the first byte.
        let (_, closed) = std::io::pipe().unwrap();
        let enough = export(closed.into());
        assert_eq!((enough.code, enough.err.as_str()), (0, ""), "{format}");
    }
}

#[test]
fn of_very_many_trials_the_table_shows_the_last_and_the_verdict_is_of_all() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    journal(&path, 24_000, 20_000);
    let report = report(&path);
    let table = report["trial_table"].as_array().unwrap();
    assert_eq!(
        (table.len(), report["trials"].as_u64(), report["rounds"].as_u64()),
        (2_000, Some(24_000), Some(12_000))
    );
    assert_eq!((&table[0]["trial"], &table[1_999]["trial"]), (&Value::from(22_001), &Value::from(24_000)));
    assert!(report["warnings"][0].as_str().unwrap().contains("last 2000 of 24000 trials"), "{}", report["warnings"]);
    // In the last 2000 the two are alike; in all of them the other is ahead.
    assert_eq!(report["verdict"]["kind"], "faster");
    let goodput = |arm: usize| report["arms"][arm]["goodput_bps"].as_f64().unwrap();
    assert!(goodput(1) / goodput(0) > 1.09, "{}", report["arms"]);
}

#[test]
fn of_fewer_trials_the_table_shows_every_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    journal(&path, 3_000, 1_000);
    let report = report(&path);
    assert_eq!(report["trial_table"].as_array().unwrap().len(), 3_000);
    assert!(!report["warnings"].to_string().contains("The table shows"), "{}", report["warnings"]);
}

#[test]
fn show_lists_the_last_of_very_many_trials_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    journal(&path, 3_000, 1_000);
    let shown =
        ran(windtunnel(home.path()).args(["journal", "show", "many", "--journal"]).arg(&path).output().unwrap());
    assert!(shown.out.contains("The last 2000 of 3000 trials"), "{}", shown.out);
}

#[test]
fn whatever_still_runs_is_reported_as_such_and_isnt_gone_on_with() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    let run = |args: &[&str]| ran(windtunnel(home.path()).args(args).arg("--journal").arg(&path).output().unwrap());
    for (name, begins) in [
        ("tune-7", "Under way since 2026-11-23 08:59 UTC, 1 round so far"),
        ("screen-7", "The screen still runs"),
        ("controls", "The comparison still runs"),
        ("stacks-2", "The comparison still runs"),
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal").join(format!("{name}.json"));
        let taken: Value =
            serde_json::from_str(&run(&["journal", "import", file.to_str().unwrap(), "--json"]).out).unwrap();
        let id = taken["imported"][0].as_str().unwrap();
        let change = format!("UPDATE experiments SET state = 'running', ended_us = NULL WHERE id = '{id}'");
        rusqlite::Connection::open(&path).unwrap().execute_batch(&change).unwrap();
        // Somebody is at work on it.
        let _claim = wt_journal::Claim::take(&path, id).unwrap();
        let told = run(&["report", id]);
        assert!(told.out.contains(begins) && !told.out.contains("--resume"), "{name}: {}{}", told.out, told.err);
        if name == "tune-7" {
            let refused = run(&["tune", "--resume", id]);
            assert!(refused.code == 3 && refused.err.contains(&format!("{id} still runs")), "{}", refused.err);
        }
    }
}

#[test]
fn lists_of_the_journal_keep_their_columns_whatever_comments_and_settings_are_called() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    journal(&path, 4, 4);
    let label = "current (rwin=auto mtu=1500 cc=bbr)";
    let change =
        format!("UPDATE experiments SET comment = 'two\nlines'; UPDATE arms SET label = '{label}' WHERE arm = 0;");
    rusqlite::Connection::open(&path).unwrap().execute_batch(&change).unwrap();
    let told = |what: &[&str]| {
        ran(windtunnel(home.path()).arg("journal").args(what).arg("--journal").arg(&path).output().unwrap()).out
    };
    let list = told(&["list"]);
    assert!(list.contains("\n    “two\n     lines”\n"), "{list}");
    let shown = told(&["show", "many"]);
    let begins = |text: &str| {
        let line = shown.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {shown}"));
        line.chars().count() - line[line.find("  completed").or(line.find("  status")).unwrap()..].chars().count()
    };
    assert_eq!(begins("settings  "), begins(label), "{shown}");
    assert_eq!(begins("settings  "), begins("  other "), "{shown}");
}

#[test]
fn metrics_tell_the_newest_experiment_of_each_target_without_writing_to_the_journal() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    journal(&path, 40, 40);
    let file = home.path().join("windtunnel.prom");
    let before = std::fs::read(&path).unwrap();
    let metrics = |more: &[&str]| {
        let mut command = windtunnel(home.path());
        command.args(["metrics", "--state-dir"]).arg(home.path().join("state")).arg("--journal").arg(&path);
        ran(command.args(more).output().unwrap())
    };
    let told = metrics(&[]);
    assert_eq!(told.code, 0, "{}", told.err);
    for line in ["windtunnel_journal_up 1", "windtunnel_settings_pending 0", "windtunnel_settings_drift 0"] {
        assert!(told.out.lines().any(|told| told == line), "{line}: {}", told.out);
    }
    let labels = "{target=\"adsl\",tunnel=\"lab\",workload=\"bulk\"}";
    assert!(told.out.contains(&format!("windtunnel_experiment_trials{labels} 40\n")), "{}", told.out);
    assert_eq!(metrics(&["--textfile", file.to_str().unwrap()]).out, "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), told.out);
    assert_eq!(std::fs::read(&path).unwrap(), before, "the journal is only read");
    // Every metric that an alert asks for is one that is told.
    let alerts = include_str!("../../../../packaging/prometheus/windtunnel.rules.yml");
    let words = alerts.lines().filter(|line| line.contains("expr:")).flat_map(|line| line.split([' ', '(', ')', '{']));
    let asked: Vec<&str> = words.filter(|word| word.starts_with("windtunnel_")).collect();
    // That of a holdback is told where there is one (see the kernel's tests of traffic), that of an agent by an agent.
    let (elsewhere, asked): (Vec<&str>, Vec<&str>) =
        asked.into_iter().partition(|name| *name == "windtunnel_holdback" || name.contains("_agent_"));
    assert_eq!((elsewhere.len(), asked.len()), (2, 7));
    assert!(asked.iter().all(|name| told.out.contains(&format!("# TYPE {name} gauge"))), "{asked:?}");
    // A rehearsal in the lab is nothing to be repeated every week, and root's changes are no fault of whoever may not read them.
    for limit in
        ["seconds{tunnel=\"live\"}", "unless windtunnel_settings_hidden == 1", "agent_server_up == 0\n        for: 6h"]
    {
        assert!(alerts.contains(limit), "{limit}");
    }
    // Another experiment on the same target takes its place.
    let mut all = SqliteJournal::open(&path).unwrap();
    all.create_experiment(&NewExperiment::new("newer", "adsl", "lab")).unwrap();
    all.finish_experiment("newer", State::Stopped, 2, None).unwrap();
    drop(all);
    let newer = metrics(&[]).out;
    assert!(newer.contains(&format!("windtunnel_experiment_trials{labels} 0\n")), "{newer}");
    std::fs::write(home.path().join("damaged"), "no journal").unwrap();
    std::fs::rename(home.path().join("damaged"), &path).unwrap();
    assert!(metrics(&[]).out.contains("windtunnel_journal_up 0\n"));
    // A name that is wrong, or a disk that isn't there, is no journal that has nothing yet.
    std::fs::remove_file(&path).unwrap();
    let missing = metrics(&[]);
    assert!(missing.code == 0 && missing.out.contains("windtunnel_journal_up 0\n"), "{}", missing.out);
}

#[test]
fn a_journal_that_lost_trials_is_called_damaged_by_everything_that_reads_them() {
    let home = tempfile::tempdir().unwrap();
    let (path, copy) = (home.path().join("j.sqlite3"), home.path().join("copy.sqlite3"));
    journal(&path, 40, 40);
    rusqlite::Connection::open(&path).unwrap().execute("DELETE FROM details WHERE trial BETWEEN 5 AND 8", []).unwrap();
    let said = |command: &[&str], journal: &Path| {
        ran(windtunnel(home.path()).args(command).arg("--journal").arg(journal).output().unwrap())
    };
    for command in [
        &["report", "many"][..],
        &["journal", "show", "many"],
        &["journal", "samples", "many"],
        &["journal", "export", "many"],
        &["journal", "export", "many", "--format", "csv"],
        &["journal", "export", "many", "--format", "parquet"],
    ] {
        let said = said(command, &path);
        assert!(said.code == 3 && said.err.contains("is damaged: trial 5"), "{command:?}: {} {}", said.code, said.err);
        assert!(said.err.contains("cause:") && said.err.contains("journal import"), "{}", said.err);
    }
    let taken = said(&["journal", "import", path.to_str().unwrap()], &copy);
    assert!(taken.code == 1 && (taken.out + &taken.err).contains("damaged"));
}

#[test]
fn what_is_to_be_typed_names_a_journal_that_isnt_the_usual_one() {
    let home = tempfile::tempdir().unwrap();
    let usual = home.path().join("data/windtunnel/journal.sqlite3");
    std::fs::create_dir_all(usual.parent().unwrap()).unwrap();
    let other = home.path().join("my journal.sqlite3");
    [&usual, &other].into_iter().for_each(|path| journal(path, 6, 0));
    let text = |args: &[&str]| ran(windtunnel(home.path()).args(["report", "many"]).args(args).output().unwrap()).out;
    let (plain, named) = (text(&[]), text(&["--journal", other.to_str().unwrap()]));
    assert!(plain.contains("windtunnel tune --resume many") && !plain.contains("--journal"), "{plain}");
    assert_eq!(text(&["--journal", usual.to_str().unwrap()]), plain);
    let option = format!("--journal '{}'", other.display());
    let typed: Vec<&str> = named.lines().filter(|line| line.contains("windtunnel ")).collect();
    assert!(typed.len() >= 2, "{named}");
    let one_line = named.replace(" \\\n      ", " ");
    for begun in ["tune --resume many", "windtunnel report many"] {
        assert!(one_line.contains(&format!("{begun} {option}")), "{begun} {option}\n{one_line}");
    }
    // For programs it is the same, wherever it stands.
    let json = |args: &[&str]| text(&[&["--json"], args].concat());
    assert_eq!(json(&["--journal", other.to_str().unwrap()]), json(&[]));
}

#[test]
fn what_a_failure_says_to_try_names_the_journal_that_was_typed() {
    let home = tempfile::tempdir().unwrap();
    let usual = home.path().join("data/windtunnel/journal.sqlite3");
    std::fs::create_dir_all(usual.parent().unwrap()).unwrap();
    let other = home.path().join("my journal.sqlite3");
    [&usual, &other].into_iter().for_each(|path| journal(path, 6, 0));
    let failed = |args: &[&str]| {
        let told = ran(windtunnel(home.path()).args(["report", "nobody", "--json"]).args(args).output().unwrap());
        let problem: Value = serde_json::from_str(&told.err).unwrap();
        (told.code, problem["try"].as_str().unwrap().to_owned())
    };
    let plain = (2, "windtunnel journal list shows what there is".to_owned());
    assert_eq!(failed(&[]), plain);
    assert_eq!(failed(&["--journal", usual.to_str().unwrap()]), plain);
    let named = format!("windtunnel journal list --journal '{}' shows what there is", other.display());
    assert_eq!(failed(&["--journal", other.to_str().unwrap()]), (2, named));
}

#[test]
fn who_only_reads_makes_no_journal_of_an_empty_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("empty");
    std::fs::write(&path, "").unwrap();
    for command in [&["journal", "list"][..], &["report", "last"]] {
        let said = ran(windtunnel(home.path()).args(command).arg("--journal").arg(&path).output().unwrap());
        assert!(said.code == 3 && said.err.contains("it is empty"), "{}", said.err);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}

#[test]
fn an_export_as_parquet_is_a_whole_file_and_samples_are_of_parquet_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    journal(&path, 40, 40);
    let export = |more: &[&str]| {
        let mut command = windtunnel(home.path());
        command.args(["journal", "export", "many", "--journal"]).arg(&path).args(more).output().unwrap()
    };
    for (more, rows) in [(&["--format", "parquet"][..], 40), (&["--format", "parquet", "--samples"], 0)] {
        let output = export(more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &output.stdout).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        // These trials have no samples.
        assert_eq!(reader.metadata().file_metadata().num_rows(), rows, "{more:?}");
    }
    let refused = ran(export(&["--format", "csv", "--samples"]));
    assert!(refused.code == 2 && refused.err.contains("--samples is of --format parquet"), "{}", refused.err);
    let missing = windtunnel(home.path())
        .args(["journal", "export", "nobody", "--format", "parquet", "--journal"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(missing.stdout.is_empty() && missing.status.code() == Some(2), "{missing:?}");
}

#[test]
fn whoever_only_reads_makes_no_journal_and_one_file_is_no_two_forms() {
    let home = tempfile::tempdir().unwrap();
    let typo = home.path().join("folder/typo.sqlite3");
    for args in
        [&["journal", "list"][..], &["journal", "prune", "--keep", "1"], &["report", "last"], &["compare", "a", "b"]]
    {
        let ran = ran(windtunnel(home.path()).args(args).arg("--journal").arg(&typo).output().unwrap());
        assert!(ran.code == 2 && ran.err.contains("there is no journal"), "{args:?}: {}{}", ran.out, ran.err);
        assert!(!typo.parent().unwrap().exists(), "{args:?}");
    }
    let path = home.path().join("j.sqlite3");
    journal(&path, 20, 10);
    let twice = ["report", "many", "--html", "x", "--csv", "x", "--journal"];
    let told = ran(windtunnel(home.path()).current_dir(home.path()).args(twice).arg(&path).output().unwrap());
    assert!(told.code == 2 && told.err.contains("can't be the page and the table"), "{}{}", told.out, told.err);
    assert!(!home.path().join("x").exists());
    // A screen has no table: that is said before it measures anything.
    let screen = ["tune", "--lab", "lan", "--screen", "--levels", "sack=on,off", "--csv", "x"];
    let told = ran(windtunnel(home.path()).args(screen).output().unwrap());
    assert!(told.code == 2 && told.err.contains("--csv") && told.out.is_empty(), "{}{}", told.out, told.err);
    let told = ran(windtunnel(home.path()).args(["journal", "prune", "--json"]).output().unwrap());
    let problem: Value = serde_json::from_str(&told.err).unwrap();
    assert!(problem["what"].as_str().unwrap().contains("<EXPERIMENT>"), "{problem}");
}

#[test]
fn experiments_are_compared_by_what_their_trials_measured() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("j.sqlite3");
    let mut journal = SqliteJournal::open(&path).unwrap();
    let second = Duration::from_secs(1);
    let workload = Workload::Stream {
        direction: Direction::Down,
        message: Bytes(500),
        interval: Duration::from_millis(20),
        time: second,
    };
    // The same bytes in the same time; the messages of the second come a thousand times as late.
    for (id, p99_us) in [("early", 1_000), ("late", 1_000_000)] {
        let arms =
            ["current", "other"].map(|label| Arm { label: label.to_owned(), settings: Settings::new() }).to_vec();
        let tune = TuneConfig { workload: Some(workload.clone()), ..TuneConfig::default() };
        let config = ExperimentConfig::Tune(Box::new(tune));
        journal.create_experiment(&NewExperiment { arms, config, ..NewExperiment::new(id, "lan", "lab") }).unwrap();
        for (round, arm) in [(1, 0), (1, 1), (2, 1), (2, 0)] {
            let spec = TrialSpec {
                experiment: id.into(),
                phase: Phase::Round,
                round,
                order: 1 + u32::from((round == 1) == (arm == 1)),
                arm,
                settings: Settings::new(),
                workload: workload.clone(),
                deadline: 9 * second,
                seed: 1,
            };
            let spread = Spread { count: 50, p99_us, max_us: p99_us, ..Spread::default() };
            let lateness = Lateness { expected: 50, spread, ..Lateness::default() };
            let score = Some(lateness.score());
            let measures = Measures { lateness: Some(lateness), score, ..Measures::default() };
            let outcome =
                TrialOutcome { bytes: 25_000, measures, ..TrialOutcome::empty(Status::Completed, second, "") };
            let trial = journal.begin_trial(&spec, 0).unwrap();
            journal.finish_trial(trial, &outcome).unwrap();
        }
        journal.finish_experiment(id, State::Finished, 1, None).unwrap();
    }
    drop(journal);
    let compare = |more: &[&str]| {
        let args = [&["compare", "early", "late", "--journal"][..], &[path.to_str().unwrap()], more].concat();
        ran(windtunnel(home.path()).args(args).output().unwrap())
    };
    let told = compare(&["--json"]);
    let answer: Value = serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{}{}", told.out, told.err));
    let [early, late] = answer["experiments"].as_array().unwrap().as_slice() else { panic!("{answer:#}") };
    assert_eq!((&early["measured"]["name"], &early["goodput_bps"]), (&"lateness (99 %)".into(), &200_000.0.into()));
    assert_eq!((&early["figure"], &late["figure"]), (&0.001.into(), &1.0.into()));
    let ratio = answer["current"][0]["difference"]["ratio"].as_f64().unwrap();
    assert!((ratio - 0.001).abs() < 1e-9, "larger is better: {ratio}");
    let text = compare(&[]).out;
    assert!(text.contains("late (99 %)") && text.contains("1.00 ms") && text.contains("×0.001"), "{text}");
    assert!(!text.contains("goodput") && text.contains("larger is better"), "{text}");
}
