//! What the Tab key offers.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{binary, host, ran, windtunnel};
use std::path::Path;
use std::process::Command;
use wt_journal::{
    ExperimentConfig, Journal as _, LoggedTestsConfig, NewExperiment, ServerTrafficConfig, SqliteJournal,
};

/// What is offered for the last of these words behind the program's name, as bash asks.
fn offered(home: &Path, words: &[&str]) -> Vec<String> {
    let mut command = windtunnel(home);
    command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_IFS", "\n");
    let asked = ran(command.args(["--", "windtunnel"]).args(words).output().unwrap());
    assert_eq!((asked.code, asked.err.as_str()), (0, ""), "{words:?}");
    asked.out.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn commands_that_take_controls_levels_stacks_systems_or_framings_offer_them() {
    let home = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        (&["cc", "load", "ch"][..], "chd@freebsd-hz100"),
        (&["cc", "show", "new"], "newreno"),
        (&["cc", "compare", "--algorithms", "newreno,ch"], "newreno,chd"),
        (&["lab", "up", "adsl", "--cc", "ch"], "chd"),
        (&["settings", "apply", "cc=ch"], "cc=chd"),
        (&["settings", "apply", "sack="], "sack=off"),
        (&["tune", "--levels", "cc=newreno,ch"], "cc=newreno,chd"),
        (&["tune", "--levels", "sack=o"], "sack=on"),
        (&["tune", "--levels", "initc"], "initcwnd="),
        (&["tune", "--hold", "sack=on,timestamps=of"], "sack=on,timestamps=off"),
        (&["predict", "--set", "sack=on,cc=ch"], "sack=on,cc=chd"),
        (&["tune", "--baseline", "windows-9"], "windows-98"),
        (&["tune", "--baseline", "sack=on,mt"], "sack=on,mtu="),
        (&["stacks", "compare", "--stacks", "linux,smol"], "linux,smoltcp"),
        (&["stacks", "run", "windows-9"], "windows-95"),
        (&["overhead", "--encap", "wireguard+pppoe-p"], "wireguard+pppoe-ptm"),
        (&["tune", "--encap", "ether"], "ethernet"),
    ] {
        let offered = offered(home.path(), words);
        assert!(offered.iter().any(|one| one == wanted), "{words:?}: {offered:?}");
    }
    // Of a control or a level that doesn't fit what is typed nothing is offered.
    assert!(offered(home.path(), &["tune", "--levels", "sack=x"]).is_empty());
}

#[test]
fn commands_are_offered_the_experiments_that_they_take() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data/windtunnel");
    std::fs::create_dir_all(&folder).unwrap();
    let mut journal = SqliteJournal::open(&folder.join("journal.sqlite3")).unwrap();
    let logged = LoggedTestsConfig { test: Some(serde_json::Map::new()), ..LoggedTestsConfig::default() };
    let steered = ServerTrafficConfig { traffic: Some(serde_json::json!({})), ..ServerTrafficConfig::default() };
    let kinds = [
        ("tuned", NewExperiment::new("tuned", "adsl", "lab").config),
        ("tested", ExperimentConfig::Tests(Box::new(logged))),
        ("steered", ExperimentConfig::Traffic(Box::new(steered))),
    ];
    for (id, config) in kinds {
        journal.create_experiment(&NewExperiment { config, ..NewExperiment::new(id, "adsl", "lab") }).unwrap();
    }
    drop(journal);
    for (words, wanted) in [
        (&["compare", "tuned", ""][..], &["tuned"][..]),
        (&["report", ""], &["steered", "tuned"]),
        (&["settings", "apply", "--verdict", ""], &["steered", "tuned"]),
        (&["tune", "--resume", ""], &["tuned"]),
        (&["traffic", "report", ""], &["steered"]),
        (&["traffic", "combine", "steered", ""], &["steered"]),
        (&["journal", "show", ""], &["steered", "tested", "tuned"]),
    ] {
        let offered = offered(home.path(), words);
        let mut ids: Vec<&str> = offered.iter().map(String::as_str).filter(|id| id.ends_with("ed")).collect();
        ids.sort_unstable();
        assert_eq!(ids, wanted, "{words:?}: {offered:?}");
    }
}

#[test]
fn undo_is_offered_the_changes_in_force_and_confirm_the_one_that_waits() {
    let directory = host::directory();
    let ran = host::script(
        directory.path(),
        "wt apply sack=off --yes > out; wt apply ttl=77 --yes > out; wt undo > out
         wt apply ttl=78 --confirm-within 1h > out
         asked() { COMPLETE=bash _CLAP_COMPLETE_INDEX=3 _CLAP_IFS=' ' \"$WT\" -- windtunnel settings \"$1\" ''; echo; }
         asked undo; asked confirm; wt undo > out; asked confirm; wt undo > out",
    );
    let numbers =
        |line: &str| line.split_whitespace().filter(|word| !word.starts_with('-')).collect::<Vec<_>>().join(" ");
    let said: Vec<String> = ran.out.lines().map(numbers).collect();
    assert_eq!(said, ["3 1", "3", ""], "{}{}", ran.out, ran.err);
}

#[test]
fn bash_offers_what_fits_behind_an_equals_sign_although_it_breaks_words_there() {
    let home = tempfile::tempdir().unwrap();
    let written = ran(windtunnel(home.path()).args(["self", "completions"]).arg(home.path()).output().unwrap());
    assert_eq!(written.code, 0, "{}", written.err);
    let path = format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
    for (words, current, wanted) in [
        ("windtunnel tune --levels sack = of", "of", "off"),
        ("windtunnel tune --levels sack =", "", "off"),
        ("windtunnel settings apply sack = o", "o", "on"),
        ("windtunnel tune --lab = ads", "ads", "adsl"),
        ("windtunnel tune --lab ads", "ads", "adsl"),
        ("windtunnel tune http : //host/ --lab ads", "ads", "adsl"),
        ("windtunnel tu", "tu", "tune"),
    ] {
        let line = format!(
            "source windtunnel.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9
             _whole_words_windtunnel windtunnel '{current}' before; printf '%s\\n' \"${{COMPREPLY[@]}}\"; complete -p windtunnel"
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &line]).env("PATH", &path).env("HOME", home.path()).current_dir(home.path());
        let asked = ran(bash.output().unwrap());
        assert_eq!((asked.code, asked.err.as_str()), (0, ""), "{words}");
        assert!(asked.out.lines().any(|one| one.trim_end() == wanted), "{words}: {}", asked.out);
        assert!(asked.out.contains("-F _whole_words_windtunnel windtunnel"), "{}", asked.out);
    }
}
