//! The views of a journal say what its exports say, under the names and types that the guide promises.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;
use wt_journal::{
    Filter, Journal as _, NewExperiment, ParquetRows, SqliteJournal, WithSamples, export_csv, export_parquet,
    import_json,
};
use wt_trial::Sample;
use wt_units::{Knob, Level};

/// A journal with experiments of every kind and format, as programs wrote them.
fn journal(path: &Path) -> SqliteJournal {
    let mut journal = SqliteJournal::open(path).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../windtunnel/tests/golden/journal");
    let mut taken = 0;
    for entry in std::fs::read_dir(golden).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".json") && !name.ends_with(".report.json") {
            let imported = import_json(&mut journal, std::fs::File::open(&file).unwrap()).unwrap();
            assert_eq!(imported.refused, [], "{name}");
            taken += imported.taken.len();
        }
    }
    assert!(taken >= 15, "{taken} experiments");
    journal
}

fn temporary() -> (tempfile::TempDir, SqliteJournal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = journal(&dir.path().join("j.sqlite3"));
    (dir, journal)
}

/// As the guide says that others open it: by an address, and to read only.
fn to_read(journal: &SqliteJournal) -> Connection {
    let address = format!("file:{}?mode=ro", journal.path().display());
    Connection::open_with_flags(address, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI).unwrap()
}

/// All rows of a query, as maps from names of columns.
fn rows(connection: &Connection, sql: &str) -> Vec<std::collections::BTreeMap<String, Value>> {
    let mut query = connection.prepare(sql).unwrap();
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let rows =
        query.query_map([], |row| names.iter().enumerate().map(|(at, n)| Ok((n.clone(), row.get(at)?))).collect());
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:.0}"),
        Value::Null | Value::Blob(_) => String::new(),
    }
}

#[test]
fn every_trial_of_the_view_is_a_line_of_the_csv() {
    let (_dir, journal) = temporary();
    let connection = to_read(&journal);
    let mut compared = 0;
    for experiment in journal.list(&Filter::default()).unwrap() {
        let mut csv = Vec::new();
        export_csv(&journal, &experiment.id, &mut csv).unwrap();
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let head = csv.headers().unwrap().clone();
        let lines: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        let seen =
            rows(&connection, &format!("SELECT * FROM v_trials WHERE experiment = '{}' ORDER BY trial", experiment.id));
        assert_eq!(seen.len(), lines.len(), "{}", experiment.id);
        for (line, row) in lines.iter().zip(&seen) {
            let of = |name: &str| line[head.iter().position(|column| column == name).unwrap()].to_owned();
            for (ours, theirs) in [
                ("trial", "trial"),
                ("phase", "phase"),
                ("round", "round"),
                ("ord", "order"),
                ("arm", "arm"),
                ("label", "label"),
                ("status", "status"),
                ("started_unix_us", "started_unix_us"),
                ("bytes", "bytes"),
                ("goodput_bps", "goodput_bps"),
            ] {
                assert_eq!(text(&row[ours]), of(theirs), "{ours} of {}", of("trial"));
            }
            let Value::Real(elapsed) = row["elapsed_s"] else { panic!("{row:?}") };
            assert_eq!((elapsed * 1e6).round().to_string(), of("elapsed_us"));
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} trials");
}

#[test]
fn every_knob_has_a_column_for_what_was_asked_and_one_for_what_was_granted() {
    let (_dir, journal) = temporary();
    let connection = to_read(&journal);
    let mut told = 0;
    for experiment in journal.list(&Filter::default()).unwrap() {
        let sql = format!("SELECT * FROM v_trials WHERE experiment = '{}' ORDER BY trial", experiment.id);
        let trials = journal.trials(&experiment.id, WithSamples::No).unwrap();
        for (trial, row) in trials.iter().zip(rows(&connection, &sql)) {
            for knob in Knob::all() {
                let column = knob.name().replace('-', "_");
                let asked = trial.spec.settings.get(knob).map(ToString::to_string).unwrap_or_default();
                assert_eq!(text(&row[&format!("asked_{column}")]), asked, "{knob} of {}", trial.id);
                let granted = &row[&format!("granted_{column}")];
                match trial.outcome.granted.get(knob) {
                    Some(Level::Number(number)) => assert_eq!(granted, &Value::Integer(*number as i64), "{knob}"),
                    Some(Level::Name(name)) => assert_eq!(granted, &Value::Text(name.clone()), "{knob}"),
                    _ => assert_eq!(granted, &Value::Null, "{knob}"),
                }
                told += usize::from(granted != &Value::Null);
            }
            let observed = &trial.outcome.observed;
            for (column, seen) in [
                ("rtt_us", observed.rtt_us),
                ("min_rtt_us", observed.min_rtt_us),
                ("retransmits", observed.retransmits),
            ] {
                assert_eq!(row[column], seen.map_or(Value::Null, |seen| Value::Integer(seen as i64)), "{column}");
            }
            assert_eq!(row["score"], trial.outcome.measures.score.map_or(Value::Null, Value::Real));
        }
    }
    assert!(told > 100, "{told} granted");
}

#[test]
fn every_experiment_of_the_view_is_one_of_the_list() {
    let (_dir, journal) = temporary();
    let seen = rows(&to_read(&journal), "SELECT * FROM v_experiments ORDER BY started_unix_us DESC");
    let list = journal.list(&Filter::default()).unwrap();
    assert_eq!(seen.len(), list.len());
    for one in list {
        let row = seen.iter().find(|row| row["id"] == Value::Text(one.id.clone())).unwrap();
        let word = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
        assert_eq!((text(&row["kind"]), text(&row["state"])), (one.kind, one.state.name().to_owned()), "{}", one.id);
        assert_eq!((&row["workload"], &row["verdict"]), (&word(&one.workload), &word(&one.verdict)), "{}", one.id);
        assert_eq!((&row["action"], &row["setting"]), (&word(&one.action), &word(&one.setting)), "{}", one.id);
        assert_eq!((&row["answer"], &row["trials"]), (&word(&one.answer), &Value::Integer(one.trials as i64)));
        let stored = journal.load(&one.id).unwrap();
        let verdict = stored.verdict.unwrap_or_default();
        for name in ["ratio", "at_least", "evidence", "needed", "alpha"] {
            assert_eq!(row[name], verdict[name].as_f64().map_or(Value::Null, Value::Real), "{name} of {}", one.id);
        }
        assert_eq!(row["arm"], verdict["arm"].as_i64().map_or(Value::Null, Value::Integer), "{}", one.id);
    }
}

#[test]
fn times_are_utc_to_the_microsecond_and_those_that_no_calendar_has_are_missing() {
    let (dir, mut journal) = temporary();
    let connection = to_read(&journal);
    for view in ["v_trials", "v_experiments"] {
        for row in rows(&connection, &format!("SELECT started, started_unix_us FROM {view}")) {
            let Value::Integer(us) = row["started_unix_us"] else { panic!("{row:?}") };
            assert_eq!(text(&row["started"]).parse::<jiff::Timestamp>().unwrap().as_microsecond(), us);
        }
    }
    // Whoever reads sees what is written meanwhile, and never keeps a writer waiting.
    for (id, started) in [("before", -1), ("never", i64::MIN), ("late", i64::MAX)] {
        let new = NewExperiment { started_unix_us: started, ..NewExperiment::new(id, "t", "sim") };
        journal.create_experiment(&new).unwrap();
        let row = rows(&connection, &format!("SELECT * FROM v_experiments WHERE id = '{id}'")).swap_remove(0);
        assert_eq!((&row["started"], &row["started_unix_us"]), (&Value::Null, &Value::Integer(started)));
    }
    drop(dir);
}

#[test]
fn json_that_is_none_is_missing_and_hides_no_other_row() {
    let (dir, journal) = temporary();
    let path = journal.path().to_owned();
    let count = |connection: &Connection| rows(connection, "SELECT * FROM v_trials").len();
    let before = count(&to_read(&journal));
    drop(journal);
    let connection = Connection::open(&path).unwrap();
    let broken = "UPDATE details SET asked = '{', granted = 'x', observed = '', workload = '[' WHERE trial = 1; \
                  UPDATE experiments SET config = '{', verdict = '', path = 'x' WHERE key = 1";
    connection.execute_batch(broken).unwrap();
    assert_eq!(count(&connection), before);
    let row = rows(&connection, "SELECT * FROM v_trials WHERE trial = 1").swap_remove(0);
    assert_eq!((&row["asked_rwin"], &row["workload"], &row["site"]), (&Value::Null, &Value::Null, &Value::Null));
    let row = rows(&connection, "SELECT * FROM v_experiments WHERE id IN (SELECT id FROM experiments WHERE key = 1)");
    assert_eq!((&row[0]["verdict"], text(&row[0]["kind"])), (&Value::Null, "tune".to_owned()));
    drop(dir);
}

/// The rows of a Parquet file, in the words of the view.
fn parquet_rows(file: &[u8]) -> Vec<std::collections::BTreeMap<String, Value>> {
    let mut kept = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut kept, file).unwrap();
    let reader = SerializedFileReader::new(kept).unwrap();
    let value = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::Str(text) => Value::Text(text.clone()),
        Field::Long(number) => Value::Integer(*number),
        Field::ULong(number) => Value::Integer(i64::try_from(*number).unwrap()),
        Field::Double(number) => Value::Real(*number),
        Field::TimestampMicros(us) => Value::Text(format!("{:.6}", jiff::Timestamp::from_microsecond(*us).unwrap())),
        other => panic!("{other:?}"),
    };
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()).collect()
}

#[test]
fn parquet_of_trials_is_the_view_row_by_row() {
    let (_dir, journal) = temporary();
    let connection = to_read(&journal);
    for experiment in journal.list(&Filter::default()).unwrap() {
        let mut file = Vec::new();
        export_parquet(&journal, &experiment.id, ParquetRows::Trials, &mut file).unwrap();
        let sql = format!("SELECT * FROM v_trials WHERE experiment = '{}' ORDER BY trial", experiment.id);
        let mut written = parquet_rows(&file);
        // The view came before profiles of several servers.
        assert!(written.iter_mut().all(|row| row.remove("server").is_some()), "{}", experiment.id);
        assert_eq!(written, rows(&connection, &sql), "{}", experiment.id);
    }
}

#[test]
fn what_an_import_has_put_in_the_place_of_a_figure_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::open(&dir.path().join("j.sqlite3")).unwrap();
    let golden = include_str!("../../windtunnel/tests/golden/journal/tune-7.json");
    let mut export: serde_json::Value = serde_json::from_str(golden).unwrap();
    let nonsense = serde_json::json!({"rtt_us": "x", "min_rtt_us": 0.5, "retransmits": u64::MAX, "target": [7]});
    export["trials"][0]["outcome"]["observed"] = nonsense;
    let taken = import_json(&mut journal, export.to_string().as_bytes()).unwrap().taken;
    let mut file = Vec::new();
    export_parquet(&journal, &taken[0], ParquetRows::Trials, &mut file).unwrap();
    let row = parquet_rows(&file).swap_remove(0);
    assert_eq!(["rtt_us", "min_rtt_us", "retransmits"].map(|figure| &row[figure]), [&Value::Null; 3]);
    assert_eq!(row["server"], row["target"]);
}

#[test]
fn parquet_of_samples_has_every_field_of_every_sample() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::open(&dir.path().join("j.sqlite3")).unwrap();
    journal.create_experiment(&NewExperiment::new("a", "t", "sim")).unwrap();
    let sample = |n: u64| Sample {
        t_us: n,
        bytes: n + 1,
        snd_cwnd: n + 2,
        ssthresh: n + 3,
        rtt: n + 4,
        min_rtt: n + 5,
        retransmits: n + 6,
        snd_wnd: n + 7,
        delivery_rate_bps: n + 8,
    };
    let names =
        ["t_us", "bytes", "snd_cwnd", "ssthresh", "rtt", "min_rtt", "retransmits", "snd_wnd", "delivery_rate_bps"];
    let mut told = Vec::new();
    for round in 1..=3u32 {
        let spec = wt_trial::TrialSpec {
            experiment: "a".to_owned(),
            phase: wt_trial::Phase::Round,
            round,
            order: 2,
            arm: 0,
            settings: wt_units::Settings::new(),
            workload: wt_trial::Workload::Duplex { time: Duration::from_secs(1) },
            deadline: Duration::from_secs(9),
            seed: 1,
        };
        let id = journal.begin_trial(&spec, 7).unwrap();
        let begin = u64::from(round) * 1_000;
        let outcome = wt_trial::TrialOutcome {
            sender: vec![sample(begin), sample(begin + 100)],
            receiver: vec![sample(begin + 200)],
            ..wt_trial::TrialOutcome::empty(wt_trial::Status::Completed, Duration::from_secs(1), "")
        };
        journal.finish_trial(id, &outcome).unwrap();
        told.extend([("sender", begin), ("sender", begin + 100), ("receiver", begin + 200)].map(|(s, n)| (id, s, n)));
    }
    let mut file = Vec::new();
    export_parquet(&journal, "a", ParquetRows::Samples, &mut file).unwrap();
    let found = parquet_rows(&file);
    assert_eq!(found.len(), told.len());
    for (row, (trial, side, begin)) in found.iter().zip(told) {
        assert_eq!((&row["trial"], text(&row["side"])), (&Value::Integer(trial), side.to_owned()));
        for (name, more) in names.iter().zip(0..) {
            assert_eq!(row[*name], Value::Integer((begin + more) as i64), "{name}");
        }
    }
    let mut none = Vec::new();
    assert!(export_parquet(&journal, "b", ParquetRows::Samples, &mut none).is_err() && none.is_empty());
}

/// Column and type of each line `| name | type | … |` under a heading of the guide.
fn promised(heading: &str) -> Vec<(String, String)> {
    let guide = include_str!("../../../docs/guide/journal.md");
    let section = guide.split(heading).nth(1).unwrap().split("\n#").next().unwrap();
    let mut all = Vec::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        for name in cells[1].split(',') {
            let name = name.trim().trim_matches('`');
            let all_knobs = Knob::all();
            let knobs = if name.ends_with("KNOB") { &all_knobs[..] } else { &all_knobs[..1] };
            for knob in knobs {
                let name = name.replace("KNOB", &knob.name().replace('-', "_"));
                let is_number = knob.is_ordered();
                let kind = match cells[2] {
                    "INTEGER or TEXT" => {
                        if is_number {
                            "INTEGER"
                        } else {
                            "TEXT"
                        }
                    }
                    kind => kind,
                };
                all.push((name, kind.to_owned()));
            }
        }
    }
    all
}

#[test]
fn names_and_types_are_those_that_the_guide_promises() {
    let (_dir, journal) = temporary();
    let connection = to_read(&journal);
    for view in ["v_trials", "v_experiments"] {
        let columns = rows(&connection, &format!("SELECT name, type FROM pragma_table_info('{view}') ORDER BY cid"));
        let found: Vec<_> = columns.iter().map(|row| (text(&row["name"]), text(&row["type"]))).collect();
        // The affinity that an expression is CAST to is told by its beginning.
        let short = |kind: &str| if kind.starts_with("INT") { "INT".to_owned() } else { kind.to_owned() };
        let found: Vec<_> = found.into_iter().map(|(name, kind)| (name, short(&kind))).collect();
        let told: Vec<_> =
            promised(&format!("### `{view}`")).into_iter().map(|(name, kind)| (name, short(&kind))).collect();
        assert_eq!(found, told, "{view}");
        for (name, kind) in &found {
            let other = rows(
                &connection,
                &format!(
                    "SELECT typeof({name}) AS t FROM {view} WHERE typeof({name}) NOT IN ('null', '{}')",
                    match kind.as_str() {
                        "INT" => "integer",
                        "REAL" => "real",
                        _ => "text",
                    }
                ),
            );
            assert_eq!(other, [], "{view}.{name}");
        }
    }
}
