//! `make studies` without a network: what is computed, what is refused, and that no difference goes without its reason.

#![expect(clippy::unwrap_used, reason = "a test that can't write or read its own files has failed")]

use crate::common::binary;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use wt_testing::require;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The script with Python 3.11 or later, which reads TOML by itself.
fn studies(out: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("/usr/bin/env");
    command.args(["python3", "scripts/studies.py"]).arg(binary()).arg("--out").arg(out).args(words);
    command.current_dir(root()).output().unwrap()
}

fn reads_toml() -> Result<(), String> {
    let python = Command::new("/usr/bin/env").args(["python3", "-c", "import tomllib"]).output();
    let works = python.is_ok_and(|output| output.status.success());
    if works { Ok(()) } else { Err("python3 is older than 3.11 or isn't there".to_owned()) }
}

fn rows(out: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(out.join("studies.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["rows"].as_array().unwrap().clone()
}

#[test]
fn what_the_studies_computed_is_computed_to_the_digit_and_their_tables_say_what_they_show() {
    require!("python3", reads_toml());
    let out = tempfile::tempdir().unwrap();
    let only = "freebsd/ethernet-64,freebsd/vlan-64,freebsd/qinq-64,freebsd/ethernet-full,adsl/cells,dial-up/ttl,dial-up/options";
    let output = studies(out.path(), &["--only", only]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = rows(out.path());
    let outcome = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["outcome"].clone();
    for name in ["ethernet-64", "vlan-64", "qinq-64", "ethernet-full", "cells"] {
        assert_eq!(outcome(name), "agrees", "{name}");
    }
    for name in ["ttl", "options"] {
        assert_eq!(outcome(name), "table", "{name}");
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        assert!(row["conclusion"].as_str().unwrap().contains("don't show it"), "{row}");
    }
    let page = std::fs::read_to_string(out.path().join("studies.html")).unwrap();
    assert!(page.contains("134 bytes") && page.contains("windtunnel overhead --proto udp --payload 64 --encap vlan"));
    assert!(page.contains("default-src &#x27;none&#x27;") || page.contains("default-src 'none'"), "it loads nothing");
}

/// A study of one row, and what the script made of it.
fn one_row(row: &str) -> (Output, String) {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("rows.toml");
    let study = "[[study]]\nname = \"s\"\ntitle = \"T\"\nabout = \"A\"\nsource = \"S\"\n";
    let head = "[[row]]\nstudy = \"s\"\nname = \"r\"\nquestion = \"How long?\"\nauthor = \"131 <bytes>\"\n";
    let command = "command = [\"overhead\", \"--proto\", \"udp\", \"--payload\", \"64\", \"--json\"]\n";
    std::fs::write(&file, format!("{study}{head}{command}{row}\n")).unwrap();
    let output = studies(out.path(), &["--rows", file.to_str().unwrap()]);
    (output, std::fs::read_to_string(out.path().join("studies.html")).unwrap_or_default())
}

#[test]
fn a_difference_without_a_reason_is_an_error_and_one_with_it_has_it_on_the_page() {
    require!("python3", reads_toml());
    let number = "read = \"number\"\nkey = \"wire_len\"\nfactor = 131";
    let (output, page) = one_row(number);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("without a reason: s/r: the author has 131"),
        "{output:?}"
    );
    assert!(page.contains("no reason is known") && page.contains("131 &lt;bytes&gt;"), "{page}");
    let (output, page) = one_row(&format!("{number}\nreason = \"A slip of the pen.\""));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(page.contains("Why: A slip of the pen."), "{page}");
    let (_, page) = one_row("read = \"number\"\nkey = \"wire_len\"\nfactor = 130\nreason = \"Not asked for.\"");
    assert!(!page.contains("Why:"), "where they agree nothing is excused: {page}");
}

#[test]
fn mistakes_are_told_with_what_there_is_and_what_cant_be_measured_is_no_success() {
    require!("python3", reads_toml());
    let out = tempfile::tempdir().unwrap();
    let output = studies(out.path(), &["--only", "dial-up/rwim"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("dial-up/rwin"), "{output:?}");
    for (row, part) in [
        ("read = \"number\"\nkey = \"wire_len\"\ncolour = 1", "unknown: colour"),
        ("read = \"numbre\"\nkey = \"wire_len\"", "read is one of"),
        ("read = \"number\"\nkey = \"wire_length\"\nfactor = 130", "has no wire_length"),
    ] {
        let (output, _) = one_row(row);
        assert_eq!(output.status.code(), Some(2), "{row}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{row}: {output:?}");
    }
    let file = out.path().join("rows.toml");
    let row = "[[study]]\nname = \"s\"\ntitle = \"T\"\nabout = \"A\"\nsource = \"S\"\n[[row]]\nstudy = \"s\"\nname = \"r\"\nquestion = \"?\"\n\
               author = \"130\"\nfactor = 130\nread = \"number\"\nkey = \"wire_len\"\ncommand = [\"overhead\", \"--encap\", \"nothing\", \"--json\"]\n";
    std::fs::write(&file, row).unwrap();
    let output = studies(out.path(), &["--rows", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rows(out.path())[0]["outcome"], "not measured");
}
