//! What spans several experiments on this machine's kernel: a screen with its confirmation, an experiment continued, the
//! method tested on itself.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, eventually_within, ran, shared, windtunnel};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// A path on which a window of 4 KiB is a quarter of what it takes, and every trial is light work.
const PATH: &str = r#"
title = "20 Mbit/s, RTT 8 ms"
source = "Made for a test."

[[link]]
name = "line"
mtu = 1500
framing = "ethernet"
down = { rate = "20mbit", delay = "4ms", queue = "64KiB" }
up = { rate = "20mbit", delay = "4ms", queue = "64KiB" }
"#;

/// A home of its own with the path in it.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), PATH).unwrap();
    home
}

fn wt(home: &Path, args: &[&str]) -> RunOutput {
    ran(windtunnel(home).args(args).current_dir(home).output().unwrap())
}

fn object(ran: &RunOutput) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

#[test]
fn a_screen_finds_the_knob_that_matters_and_tries_it_against_the_current_settings() {
    let _machine = shared();
    let home = home();
    let levels = ["--levels", "rwin=4KiB,64KiB", "--levels", "sack=on,off"];
    let common =
        [&["tune", "--lab", "path.toml", "--screen", "--trial", "250ms", "--budget", "96 trials"], &levels[..]];
    let dry = wt(home.path(), &[&common.concat()[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.contains("2 knobs at once, at most 16 rounds of 4 trials"), "{}", dry.out);
    assert!(dry.out.contains("4096 or 65536") && dry.out.contains("in at most 32 trials"), "{}", dry.out);
    assert!(!dry.out.contains("can show no effect"), "{}", dry.out);
    let small =
        [&["tune", "--lab", "path.toml", "--screen", "--dry-run", "--budget", "24 trials"], &levels[..]].concat();
    let small = wt(home.path(), &small);
    assert!(small.out.contains("4 rounds of the screen fit into it, 8 are needed"), "{}{}", small.out, small.err);
    assert!(!home.path().join("data").exists(), "a dry run leaves no journal");

    let told = wt(home.path(), &[&common.concat()[..], &["--quiet", "--json", "--html", "screen.html"]].concat());
    let screen = object(&told);
    let [rwin, sack] = screen["screen"]["factors"].as_array().unwrap().as_slice() else { panic!("{screen}") };
    assert_eq!((&rwin["knob"], &rwin["claimed"], &rwin["low"]), (&"rwin".into(), &true.into(), &4096.into()));
    assert!(rwin["at_least"].as_f64().unwrap() > 1.5, "{rwin}");
    // One screen of sixty may claim something of it, and then next to nothing.
    let is_little = |end: &str, least: f64| sack[end].as_f64().is_none_or(|ratio| (ratio - 1.0) * least < 0.01);
    assert!(is_little("at_least", 1.0) && is_little("at_most", -1.0), "{sack}");
    assert!(
        screen["chosen"]["rwin"] == 65536 && (sack["claimed"] == true || screen["chosen"]["sack"].is_null()),
        "{screen}"
    );
    // The current setting has room enough as well, so the confirmation has nothing to claim.
    assert_eq!((told.code, &screen["verdict"]["confirmed"]), (1, &false.into()), "{screen}");
    let confirmation = &screen["confirmation"];
    assert_eq!(confirmation["verdict"]["kind"], "no-difference", "{confirmation}");
    assert!(std::fs::read_to_string(home.path().join("screen.html")).unwrap().contains("<svg"));

    // People are told where it is kept, and what tries what nobody tried yet.
    let few = [&["tune", "--lab", "path.toml", "--screen", "--trial", "250ms", "--budget", "54 trials"], &levels[..]]
        .concat();
    let few = wt(home.path(), &few);
    let tried =
        few.out.contains("Confirmation (") || few.out.contains("Do: windtunnel tune --lab path.toml --arm rwin=65536 ");
    assert!(tried && few.out.contains("\nKept: windtunnel report "), "{}{}", few.out, few.err);

    // The journal has both, and from it everything can be told again.
    let id = screen["id"].as_str().unwrap();
    let again = object(&wt(home.path(), &["report", id, "--json"]));
    assert_eq!(again["screen"], screen["screen"]);
    assert_eq!(again["verdict"], screen["verdict"]);
    assert_eq!(again["confirmation"]["id"], confirmation["id"]);
    // There is no table of it: the answer is told all the same.
    let table = wt(home.path(), &["report", id, "--csv", "table.csv"]);
    assert!(table.code == 2 && table.err.contains("no table of settings"), "{}", table.err);
    assert!(table.out.contains(screen["verdict"]["text"].as_str().unwrap().lines().next().unwrap()), "{}", table.out);
    let refused = wt(home.path(), &["tune", "--resume", id]);
    assert!(refused.code == 2 && refused.err.contains("is a screen"), "{}", refused.err);
}

#[test]
fn an_experiment_goes_on_where_it_was_left_and_changes_nothing_that_was_journaled() {
    let _machine = shared();
    let home = home();
    let first = object(&wt(
        home.path(),
        &[
            "tune",
            "--lab",
            "path.toml",
            "--quiet",
            "--json",
            "--trial",
            "250ms",
            "--budget",
            "6 trials",
            "--identical",
            "2",
        ],
    ));
    assert_eq!((&first["rounds"], &first["verdict"]["kind"]), (&2.into(), &"no-difference".into()), "{first}");
    let id = first["id"].as_str().unwrap();
    let before = wt(home.path(), &["journal", "show", id, "--json"]).out;

    let dry = wt(home.path(), &["tune", "--resume", id, "--budget", "6 trials", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.err);
    let second =
        object(&wt(home.path(), &["tune", "--resume", id, "--quiet", "--json", "--budget", "6 trials", "--seed", "9"]));
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["rounds"], 4, "{second}");
    // Three a round; in the last two an identical one may have fallen too far behind to be measured on.
    let trials = second["trials"].as_u64().unwrap();
    assert!((8..=12).contains(&trials), "{second}");
    // The evidence of the first session is part of the second's, figure by figure.
    for (old, new) in first["arms"].as_array().unwrap().iter().zip(second["arms"].as_array().unwrap()) {
        let (old, new) = (old["series"].as_array().unwrap(), new["series"].as_array().unwrap());
        assert!(new.len() >= old.len() && new[..old.len()] == old[..], "{old:?} {new:?}");
    }
    assert_eq!(wt(home.path(), &["journal", "show", id, "--json"]).out, before);
    let again = object(&wt(home.path(), &["report", second["id"].as_str().unwrap(), "--json"]));
    assert_eq!(again["verdict"], second["verdict"]);

    // Nobody tries again from the same place until it goes on as hoped.
    let forked = wt(home.path(), &["tune", "--resume", id, "--budget", "6 trials"]);
    let next = format!("windtunnel tune --resume {}", second["id"].as_str().unwrap());
    assert!(forked.code == 2 && forked.err.contains("is continued by") && forked.err.contains(&next), "{}", forked.err);

    let elsewhere = wt(home.path(), &["tune", "--resume", id, "--lab", "lan"]);
    assert!(elsewhere.code == 2 && elsewhere.err.contains("not on lan"), "{}", elsewhere.err);
    let unknown = wt(home.path(), &["tune", "--resume", "19700101-0000"]);
    assert_eq!(unknown.code, 2, "{}", unknown.err);
}

#[test]
fn the_method_tested_on_real_kernels_prints_its_claims_with_their_interval() {
    let _machine = shared();
    let home = home();
    let told = wt(
        home.path(),
        &["self-test", "statistics", "--lab", "path.toml", "--runs", "2", "--trials", "6", "--settings", "3", "--json"],
    );
    let result = object(&told);
    assert_eq!(told.code, 0, "{result}");
    let lab = &result["lab"];
    assert_eq!((&lab["runs"], &lab["claims"], &result["passed"]), (&2.into(), &0.into(), &true.into()), "{result}");
    assert!(lab["low"].as_f64() == Some(0.0) && lab["high"].as_f64().unwrap() < 1.0, "{result}");
    // Every one of them is in the journal.
    for id in lab["experiments"].as_array().unwrap() {
        assert_eq!(wt(home.path(), &["report", id.as_str().unwrap(), "--json"]).code, 1);
    }
}

/// Ends with the test, however that ends.
struct Measuring(std::process::Child);

impl Drop for Measuring {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_measured_on_the_same_machine_is_noticed_whatever_its_journal_is() {
    let _machine = shared();
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let long = ["tune", "--lab", "adsl", "--levels", "rwin=60480", "--budget", "1000 trials", "--no-model", "--quiet"];
    let long = windtunnel(there.path()).args(long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let long = Measuring(long);
    let name = format!("windtunnel-measures/{}/", long.0.id());
    eventually_within(60, "another experiment", || {
        std::fs::read_to_string("/proc/net/unix").is_ok_and(|sockets| sockets.contains(&name))
    });
    let short = ["tune", "--lab", "lan", "--levels", "rwin=64KiB", "--trial", "200ms", "--budget", "4 trials"];
    let told = ran(windtunnel(here.path()).args(short).output().unwrap());
    let warned = told.err.find(" runs on this machine, too: each disturbs the other");
    let learns = told.err.find("measuring the RTT first");
    assert!(warned.is_some() && warned < learns, "before anything is measured: {}", told.err);
    let told = ran(windtunnel(here.path()).args(["lab", "run", "lan", "--", "true"]).output().unwrap());
    assert!(told.code == 0 && told.err.contains(" is being measured on this machine"), "{}", told.err);
}
