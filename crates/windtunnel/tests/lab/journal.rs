//! The journal's exchange with others, and experiments side by side, as a person does it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common;
use crate::common::{RunOutput, eventually_within, ran, shared, windtunnel};
use serde_json::Value;
use std::path::Path;

/// A path on which a window of 4 KiB is a quarter of what it takes; it loses packets, so that no two trials are alike.
const PATH: &str = "title = \"t\"\nsource = \"a test\"\n[[link]]\nname = \"line\"\nmtu = 1500\n\
    down = { rate = \"20mbit\", delay = \"4ms\", loss = \"0.5%\" }\nup = { rate = \"20mbit\", delay = \"4ms\" }\n";

fn wt(home: &Path, args: &[&str]) -> RunOutput {
    ran(windtunnel(home).args(args).current_dir(home).output().unwrap())
}

fn object(ran: &RunOutput) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

/// Runs a short experiment at a server behind the path and returns its name. Such trials count on a busy machine, too: those of
/// `tune --lab` are void where the lab itself was late.
fn tune(home: &Path, file: &str, more: &str) -> String {
    let told = ran(within_a_lab(home, file, &format!("--budget '8 trials' {more}")).wait_with_output().unwrap());
    object(&told)["id"].as_str().unwrap_or_else(|| panic!("{}{}", told.out, told.err)).to_owned()
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), PATH).unwrap();
    home
}

#[test]
fn experiments_are_put_side_by_side_or_it_is_said_why_not() {
    let _machine = shared();
    let home = home();
    let first = tune(home.path(), "10MB", "--levels rwin=4KiB");
    let second = tune(home.path(), "10MB", "--levels rwin=4KiB --seed 7");
    let up = tune(home.path(), "10MB", "--levels cc=reno --direction up");
    let elsewhere = tune(home.path(), "9MB", "--levels rwin=4KiB");

    let same = wt(home.path(), &["compare", &first, &second, "--json"]);
    let told = object(&same);
    assert_eq!((same.code, &told["comparable"], &told["schema_version"]), (0, &true.into(), &1.into()), "{told:#}");
    let difference = &told["current"][0]["difference"];
    // Hours aren't trials: there is what was seen, and nothing that would be shown by it.
    assert!((0.3..3.0).contains(&difference["ratio"].as_f64().unwrap()) && difference["p"].is_null(), "{difference}");
    assert!(told["current"][0]["evidence"].is_null());
    let window = &told["settings"][0];
    assert_eq!((&window["settings"]["rwin"], &window["combined"]), (&4096.into(), &"product".into()), "{told:#}");
    for tried in window["each"].as_array().unwrap() {
        assert!(tried["ratio"].as_f64().unwrap() < 0.6, "{tried}");
        assert!(tried["evidence"].as_f64().unwrap() < 1.0, "it is slower: {tried}");
    }
    let text = wt(home.path(), &["compare", &first, &second]);
    assert!(text.out.contains("Nothing was randomised between experiments"), "{}", text.out);

    for (other, because) in [(&up, "direction differs: down"), (&elsewhere, "target differs")] {
        let told = wt(home.path(), &["compare", &first, other, "--json"]);
        let object = object(&told);
        assert_eq!((told.code, &object["comparable"]), (1, &false.into()), "{object:#}");
        assert!(object["because"][0].as_str().unwrap().contains(because), "{because}: {object:#}");
        assert_eq!(object["current"], Value::Array(Vec::new()));
        assert!(object["text"].as_str().unwrap().starts_with("They can't be compared, because"));
    }
    let anyway = object(&wt(home.path(), &["compare", &first, &elsewhere, "--anyway", "--json"]));
    assert!(anyway["current"][0]["difference"]["ratio"].is_number() && anyway["comparable"] == false, "{anyway:#}");
    for (args, wanted) in [
        (vec![&first[..]], "2 values"),
        (vec![&first, &first], "named twice"),
        (vec![&first, "nosuch"], "no experiment"),
    ] {
        let told = wt(home.path(), &[&["compare"], &args[..]].concat());
        assert!(told.code == 2 && told.err.contains(wanted), "{wanted}: {}", told.err);
    }

    exchanged(home.path(), &first, &second);
}

/// Out of one journal and into another one, as JSON, as flent's data, and thrown away.
fn exchanged(home: &Path, first: &str, second: &str) {
    let other = tempfile::tempdir().unwrap();
    let json = wt(home, &["journal", "export", first, "--format", "json"]).out;
    std::fs::write(other.path().join("first.json"), &json).unwrap();
    let own = home.join("data/windtunnel/journal.sqlite3");
    let own = own.to_str().unwrap();
    let taken = object(&wt(other.path(), &["journal", "import", "first.json", "--json"]));
    assert_eq!((&taken["imported"][0], &taken["known"]), (&Value::from(first), &Value::Array(Vec::new())), "{taken}");
    let merged = object(&wt(other.path(), &["journal", "import", own, "first.json", "--json"]));
    assert_eq!(
        (merged["imported"].as_array().unwrap().len(), merged["known"].as_array().unwrap().len()),
        (3, 2),
        "{merged}"
    );
    // The same verdict from the copy.
    let report = |home: &Path| object(&wt(home, &["report", second, "--json"]))["verdict"].clone();
    assert_eq!(report(other.path()), report(home));
    assert_eq!(wt(other.path(), &["journal", "export", first]).out.len(), json.len());

    let flent = object(&wt(home, &["journal", "export", first, "--format", "flent"]));
    let points = flent["x_values"].as_array().unwrap().len();
    assert!(points > 100 && flent["results"]["TCP download"].as_array().unwrap().len() == points, "{points}");
    let rates: Vec<f64> =
        flent["results"]["TCP download"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    // Single points are above the line's rate where a gap is filled and all that came behind it counts at once.
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    assert!((1.0..20.0).contains(&mean), "{mean} Mbit/s");
    // Into a third one and out of it again; and a test that flent itself ran.
    let third = tempfile::tempdir().unwrap();
    std::fs::write(third.path().join("first.flent"), flent.to_string()).unwrap();
    let taken = object(&wt(third.path(), &["journal", "import", "first.flent", "--json"]));
    assert_eq!(taken["imported"], serde_json::json!([first]), "{taken}");
    assert_eq!(object(&wt(third.path(), &["journal", "export", first, "--format", "flent"])), flent);
    let verdict = |home: &Path| object(&wt(home, &["report", first, "--json"]))["verdict"].clone();
    assert_eq!(verdict(third.path()), verdict(home));
    let one = serde_json::json!({
        "metadata": {"NAME": "tcp_download", "HOST": "far", "TIME": "2020-01-02T03:04:05.000000Z"}, "version": 4,
        "x_values": [0.0, 1.0, 2.0], "results": {"TCP download": [null, 8.0, 16.0]}, "raw_values": {},
    });
    std::fs::write(third.path().join("one.flent"), one.to_string()).unwrap();
    assert_eq!(object(&wt(third.path(), &["journal", "import", "one.flent", "--json"]))["trials"], 1);
    assert!(wt(third.path(), &["journal", "show", "2020"]).out.contains("12.0 Mbit/s"));
    let nothing = wt(third.path(), &["report", "2020"]);
    assert!(nothing.code == 2 && nothing.err.contains("compares no settings"), "{}", nothing.err);

    let csv = wt(home, &["journal", "export", first, "--form", "csv"]);
    assert!(csv.out.starts_with("trial,phase,round"), "{}", csv.out);

    let dry = object(&wt(other.path(), &["journal", "prune", first, "--dry-run", "--json"]));
    assert_eq!((&dry["pruned"][0], &dry["dry_run"]), (&Value::from(first), &true.into()));
    let none = object(&wt(other.path(), &["journal", "prune", "--older-than", "1d", "--json"]));
    assert_eq!(none["experiments"], 0);
    let gone = object(&wt(other.path(), &["journal", "prune", first, "--json"]));
    assert_eq!(gone["experiments"], 1);
    assert_eq!(object(&wt(other.path(), &["journal", "list", "--json"]))["experiments"].as_array().unwrap().len(), 3);
    std::fs::write(other.path().join("x"), "nonsense").unwrap();
    std::fs::write(other.path().join("x.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    std::fs::write(other.path().join("empty"), "").unwrap();
    for (args, wanted) in [
        (&["journal", "prune"][..], "required"),
        (&["journal", "prune", "--older-than", "soon"], "90d"),
        (&["journal", "import", "x"], "x: object 1 is no exported experiment"),
        (&["journal", "import", "x.gz"], "zcat x.gz | windtunnel journal import -"),
        (&["journal", "import", "empty"], "there is nothing"),
        (&["journal", "import", "missing"], "cannot read"),
        (&["journal", "prune", "nosuch"], "no experiment"),
    ] {
        let told = wt(other.path(), args);
        assert!(told.code == 2 && told.err.contains(wanted), "{wanted}: {}", told.err);
    }
}

#[test]
fn two_processes_at_once_and_a_kill_leave_one_trial_aborted_and_all_else_intact() {
    let _machine = shared();
    let home = home();
    let start = |seed: &str| {
        let args = [
            "tune",
            "--lab",
            "path.toml",
            "--quiet",
            "--json",
            "--trial",
            "300ms",
            "--budget",
            "8 trials",
            "--identical",
            "2",
            "--seed",
            seed,
        ];
        windtunnel(home.path())
            .args(args)
            .current_dir(home.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let (mut killed, other) = (start("1"), start("2"));
    // Both are in one journal; the first is killed in the middle of a trial.
    let journal = home.path().join("data/windtunnel/journal.sqlite3");
    let running = || {
        let opened =
            rusqlite::Connection::open_with_flags(&journal, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        let sql = "SELECT count(*) FROM trials t JOIN experiments e ON e.key = t.experiment WHERE e.owner_pid = ? AND t.status = ?";
        let count = |status: &str| opened.query_row(sql, (killed.id(), status), |row| row.get::<_, i64>(0)).ok();
        Some((count("completed")?, count("running")?))
    };
    eventually_within(60, "the first experiment is in the middle of its third trial", || {
        running().is_some_and(|(completed, running)| completed >= 3 && running == 1)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let done = ran(other.wait_with_output().unwrap());
    assert!(object(&done)["rounds"].as_u64().unwrap() >= 2, "{}{}", done.out, done.err);

    let list = object(&wt(home.path(), &["journal", "list", "--json"]));
    let states: Vec<&str> =
        list["experiments"].as_array().unwrap().iter().filter_map(|e| e["state"].as_str()).collect();
    assert_eq!((states.len(), states.iter().filter(|state| **state == "aborted").count()), (2, 1), "{list}");
    let aborted = list["experiments"].as_array().unwrap().iter().find(|e| e["state"] == "aborted").unwrap();
    let id = aborted["id"].as_str().unwrap();
    let shown = object(&wt(home.path(), &["journal", "show", id, "--json"]));
    let trials = shown["trials"].as_array().unwrap();
    let of = |status: &str| trials.iter().filter(|trial| trial["outcome"]["status"] == status).count();
    assert_eq!((of("aborted"), of("running")), (1, 0), "{trials:#?}");
    assert!(
        of("completed") >= 3 && of("completed") + of("incomplete") + of("invalid") + 1 == trials.len(),
        "{trials:#?}"
    );
    // And it goes on from there.
    let resumed = wt(home.path(), &["tune", "--resume", id, "--quiet", "--json", "--budget", "4 trials"]);
    assert!(object(&resumed)["rounds"].as_u64().unwrap() >= 1, "{}{}", resumed.out, resumed.err);
}

/// An experiment within `lab run`, whose processes have numbers of their own.
fn within_a_lab(home: &Path, file: &str, more: &str) -> std::process::Child {
    let mut command = windtunnel(home);
    command.current_dir(home).env("WT", common::binary()).args(["lab", "run", "path.toml", "--", "sh", "-c"]);
    command.arg(format!(
        "$WT tune http://server/bytes/{file} --trial 300ms --pause 20ms --no-probes --json --quiet {more}"
    ));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
}

#[test]
fn an_experiment_among_other_process_numbers_goes_on_whoever_opens_the_journal() {
    let _machine = shared();
    let home = home();
    let mut child = within_a_lab(home.path(), "10MB", "--levels rwin=8x --budget '8 trials'");
    let mut seen_running = 0;
    // Each look marks what it takes for dead.
    while child.try_wait().unwrap().is_none() {
        let list = object(&wt(home.path(), &["journal", "list", "--json"]));
        seen_running += usize::from(list["experiments"][0]["state"] == "running");
    }
    let told = ran(child.wait_with_output().unwrap());
    assert!(matches!(told.code, 0 | 1) && seen_running > 0, "{} {seen_running}: {}{}", told.code, told.out, told.err);
    let stored = object(&wt(home.path(), &["journal", "show", "--json"]));
    assert_eq!(stored["experiment"]["state"], "finished", "{}", told.err);
    assert!(stored["trials"].as_array().unwrap().iter().all(|trial| trial["outcome"]["status"] == "completed"));
}

#[test]
fn an_experiment_among_other_process_numbers_that_is_killed_is_marked_and_leaves_no_file() {
    let _machine = shared();
    let home = home();
    let mut child = within_a_lab(home.path(), "10MB", "--levels rwin=8x --budget 1h");
    let state = || {
        let list = object(&wt(home.path(), &["journal", "list", "--json"]));
        list["experiments"][0]["state"].as_str().unwrap_or_default().to_owned()
    };
    eventually_within(60, "the experiment has begun", || state() == "running");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually_within(20, "the experiment is marked", || state() == "aborted");
    let left = std::fs::read_dir(home.path().join("data/windtunnel")).unwrap();
    let left: Vec<String> = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| name.starts_with("journal.sqlite3") && !name.contains("running")), "{left:?}");
}
