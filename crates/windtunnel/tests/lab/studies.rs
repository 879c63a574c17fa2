//! `make studies` with a path.

use crate::common::binary;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use wt_testing::require;

fn reads_toml() -> Result<(), String> {
    let python = Command::new("/usr/bin/env").args(["python3", "-c", "import tomllib"]).output();
    let works = python.is_ok_and(|output| output.status.success());
    if works { Ok(()) } else { Err("python3 is older than 3.11 or isn't there".to_owned()) }
}

#[test]
fn a_question_is_asked_of_the_lab_and_the_answer_judged_by_its_interval() {
    require!("python3", reads_toml());
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("rows.toml");
    let row = "[[study]]\nname = \"adsl\"\ntitle = \"ADSL\"\nabout = \"A\"\nsource = \"S\"\n\
               [[row]]\nstudy = \"adsl\"\nname = \"window\"\nquestion = \"Is 48048 faster?\"\nauthor = \"it is\"\nsays = \"faster\"\n\
               read = \"tune\"\nkey = \"rwin=48048\"\nreason = \"none\"\n\
               command = [\"tune\", \"--lab\", \"adsl-2200\", \"--baseline\", \"rwin=2912\", \"--arm\", \"rwin=48048\", \"--trial\", \"300ms\", \
               \"--budget\", \"6 trials\", \"--no-model\", \"--json\"]\n";
    std::fs::write(&file, row).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/studies.py");
    let mut command = Command::new("/usr/bin/env");
    command.arg("python3").arg(script).arg(binary()).arg("--rows").arg(&file).arg("--out").arg(out.path());
    let output = command.output().unwrap();
    let text = std::fs::read_to_string(out.path().join("studies.json")).unwrap();
    let row = &serde_json::from_str::<Value>(&text).unwrap()["rows"][0];
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    // Three rounds of two settings can't prove anything, and that is what is said; on a machine too busy for the lab that.
    let outcome = row["outcome"].as_str().unwrap();
    assert!(["open", "not measured"].contains(&outcome), "{row}");
    assert_eq!(output.status.code(), Some(if outcome == "open" { 0 } else { 1 }), "{row}");
    if outcome == "open" {
        assert!(row["found"]["value"].as_f64().unwrap() > 1.5, "2912 bytes in 30 ms are 0.78 Mbit/s: {row}");
        assert!(row["conclusion"].as_str().unwrap().contains("don't suffice"), "{row}");
    }
    let page = std::fs::read_to_string(out.path().join("studies.html")).unwrap();
    assert!(page.contains("Is 48048 faster?") && page.contains("windtunnel tune --lab adsl-2200"), "{page}");
}
