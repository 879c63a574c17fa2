//! Journals.

use super::{say, tell};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_api::{Request, Services};
use wt_compare::side_by_side::{self, SideBySideRequest};
use wt_journal::{Arm, Filter, Journal as _, NewExperiment, SqliteJournal, State};
use wt_setup::journal::{ExperimentRequest, ListRequest, PushRequest};
use wt_sys::process::usage;
use wt_testing::PostgresServer;
use wt_trial::{Amount, Cancel, Direction, Phase, Sample, Status, TrialOutcome, TrialSpec, Workload};
use wt_units::{Knob, Level, Settings};

const ARMS: u32 = 4;

/// The journal of so many trials in so many experiments, whose trials jobs only read: the first that wants it makes it.
fn filled(experiments: u64, trials: u64) -> PathBuf {
    let folder = PathBuf::from(std::env::var_os(super::SHARED).unwrap());
    let path = folder.join(format!("{experiments}-{trials}.sqlite3"));
    if !path.exists() {
        let begun = path.with_extension("begun");
        fill(&begun, experiments, trials);
        std::fs::rename(begun, &path).unwrap();
    }
    path
}

/// Experiments `e0`, `e1`, …: the first trial is written the long way, the others inside the database; goodput is spread by ±10 %.
fn fill(path: &Path, experiments: u64, trials: u64) {
    let mut journal = SqliteJournal::open(path).unwrap();
    let level = |arm: u32| Settings::new().with(Knob::Rwin, Level::Number(16_384 * u64::from(arm + 1)));
    let arms: Vec<Arm> = (0..ARMS).map(|arm| Arm { label: format!("arm {arm}"), settings: level(arm) }).collect();
    journal.create_experiment(&NewExperiment { arms, ..NewExperiment::new("e0", "adsl", "lab") }).unwrap();
    let spec = TrialSpec {
        experiment: "e0".into(),
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
        (0..50).map(|i| Sample { t_us: i * 100_000, bytes: i * 90_000, ..Sample::default() }).collect();
    let outcome = TrialOutcome {
        bytes: 4_000_000,
        sender: samples.clone(),
        receiver: samples,
        ..TrialOutcome::empty(Status::Completed, Duration::from_secs(5), "")
    };
    let trial = journal.begin_trial(&spec, 0).unwrap();
    journal.finish_trial(trial, &outcome).unwrap();
    journal.finish_experiment("e0", State::Finished, 1, None).unwrap();
    drop(journal);
    let database = rusqlite::Connection::open(path).unwrap();
    let columns = |table: &str, without: &[&str]| -> String {
        let mut ask = database.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
        let names = ask.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
        names.filter(|name| !without.contains(&name.as_str())).collect::<Vec<_>>().join(", ")
    };
    let others = columns("experiments", &["key", "id"]);
    let (of_experiment, each) = (trials / experiments, experiments);
    database
        .execute_batch(&format!(
            "BEGIN;
             WITH RECURSIVE n(i) AS (SELECT 1 WHERE 1 < {each} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {each})
             INSERT INTO experiments (id, {others}) SELECT 'e' || n.i, {others} FROM n, (SELECT {others} FROM experiments WHERE id = 'e0');
             INSERT INTO arms SELECT e.key, a.arm, a.label, a.settings FROM experiments e, arms a WHERE e.id <> 'e0' AND a.experiment = 1;
             WITH RECURSIVE n(i) AS (SELECT 2 WHERE 2 <= {trials} UNION ALL SELECT i + 1 FROM n WHERE i < {trials})
             INSERT INTO trials SELECT i, 1 + (i - 1) / {of_experiment}, 'round', 1 + ((i - 1) % {of_experiment}) / {ARMS},
                 1 + (i - 1) % {ARMS}, (i - 1) % {ARMS}, 'completed', i, 5000000, 3600000 + i * 2654435761 % 800009 FROM n;
             INSERT INTO details SELECT t.id, d.asked, d.workload, d.deadline_us, t.id, d.granted, d.scopes, d.observed, 1, 2,
                 3, d.notes FROM trials t, details d WHERE t.id > 1 AND d.trial = 1;
             COMMIT;"
        ))
        .unwrap();
}

pub(crate) fn list(trials: u64) {
    let journal = SqliteJournal::open(&filled(4, trials)).unwrap();
    tell(|| assert_eq!(journal.list(&Filter::default()).unwrap().len(), 4));
}

/// As the page's history does.
pub(crate) fn page(experiments: u64) {
    const MOST: usize = 20_000;
    let path = filled(experiments, experiments);
    tell(|| {
        let request = ListRequest { limit: Some(MOST), kind: None, journal: Some(path.clone()) };
        let list = wt_api::run(Request::JournalList(request), &Services::default(), &mut |_| {}, &Cancel::new());
        assert!(serde_json::to_vec(&list.unwrap()).unwrap().len() > 100);
    });
}

/// As `windtunnel report` does.
pub(crate) fn report(trials: u64) {
    let path = filled(1, trials);
    tell(|| {
        let request = ExperimentRequest { experiment: "e0".to_owned(), journal: Some(path.clone()) };
        wt_api::run(Request::Report(request), &Services::default(), &mut |_| {}, &Cancel::new()).unwrap();
    });
}

/// As `windtunnel compare` does.
pub(crate) fn compare(trials: u64) {
    let path = filled(2, trials);
    tell(|| {
        let experiments = vec!["e0".to_owned(), "e1".to_owned()];
        side_by_side::run(&SideBySideRequest { experiments, anyway: true, journal: Some(path.clone()) }).unwrap();
    });
}

pub(crate) fn export(trials: u64) {
    let journal = SqliteJournal::open(&filled(1, trials)).unwrap();
    tell(|| {
        let rows = wt_journal::ParquetRows::Trials;
        wt_journal::export_parquet(&journal, "e0", rows, std::io::sink()).unwrap();
    });
}

/// As `windtunnel journal push` does to an empty journal of many hosts. What the server needs counts, too: it is on this machine.
pub(crate) fn push(trials: u64) {
    let path = filled(1, trials);
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path()).unwrap();
    let (mut databases, mut spent) = (0, 0.0);
    while databases == 0 || spent < 0.3 && databases < 20 {
        let store = server.database(&format!("j{databases}")).unwrap();
        let before = wt_sys::clock::thread_cpu_ns() as f64 / 1e9 + cpu_with_children(server.id());
        let request = PushRequest { store, journal: Some(path.clone()), ..PushRequest::default() };
        assert_eq!(wt_setup::journal::push(&request).unwrap().trials, trials);
        spent += wt_sys::clock::thread_cpu_ns() as f64 / 1e9 + cpu_with_children(server.id()) - before;
        databases += 1;
    }
    say(spent / f64::from(databases), usage(std::process::id()).map_or(0, |used| used.peak_bytes));
}

/// CPU time of a process, of its children and of those that have ended, s; in hundredths.
fn cpu_with_children(parent: u32) -> f64 {
    let times = |stat: &str, most: usize| -> Option<(u32, f64)> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let times = fields.get(11..11 + most)?.iter().filter_map(|field| field.parse::<f64>().ok());
        Some((fields.get(1)?.parse().ok()?, times.sum::<f64>() / 100.0))
    };
    let stat = |process: u32| std::fs::read_to_string(format!("/proc/{process}/stat")).ok();
    let own = stat(parent).and_then(|stat| times(&stat, 4)).map_or(0.0, |(_, spent)| spent);
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let children = processes.filter_map(|process| times(&stat(process)?, 2)).filter(|(of, _)| *of == parent);
    own + children.map(|(_, spent)| spent).sum::<f64>()
}
