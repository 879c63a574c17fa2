//! The journal of many hosts where the way there is long: from within a lab, and to a server that says nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::{ran, windtunnel};
use std::net::TcpListener;
use wt_sys::clock::monotonic_ns;
use wt_testing::{PostgresServer, require};

#[test]
fn what_measures_in_a_lab_reaches_a_journal_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = ["listen_addresses=127.0.0.1".to_owned(), format!("port={port}")];
    let settings = settings.each_ref().map(String::as_str);
    let server = require!("postgres", PostgresServer::start_with(folder.path(), &settings));
    server.database("fleet").unwrap();
    let journal = format!("postgresql://wt@127.0.0.1:{port}/fleet");
    let tune = "tune --lab lan --levels cc=reno --workload bulk:size=64KiB --no-model --quiet --json";
    let mut command = windtunnel(&folder.path().join("home"));
    let tuned =
        ran(command.args(tune.split(' ')).args(["--budget", "4 trials", "--journal", &journal]).output().unwrap());
    assert!([0, 1].contains(&tuned.code), "{} {}", tuned.out, tuned.err);
    assert_eq!(server.sql("fleet", "SELECT count(*) FROM experiments WHERE state = 'finished'").unwrap(), "1");
}

#[test]
fn files_without_an_end_are_refused_and_long_lines_of_others_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| ran(windtunnel(folder.path()).args(args).output().unwrap());
    for args in [
        &["traffic", "start", "/dev/zero", "--dry-run"][..],
        &["fleet", "run", "/dev/zero", "postgresql://me@127.0.0.1/x", "--dry-run"],
        &["fleet", "agent", "--policy", "/dev/zero", "--once"],
        &["web", "--listen", "127.0.0.1:0", "--tls-cert", "/dev/zero", "--tls-key", "/dev/zero"],
    ] {
        let refused = run(args);
        assert!(
            refused.code == 2 && refused.err.contains("longer than 1 MiB"),
            "{args:?}: {} {}",
            refused.code,
            refused.err
        );
    }
    let file = folder.path().join("long.toml");
    std::fs::write(&file, "x".repeat(500_000)).unwrap();
    let refused = run(&["traffic", "start", file.to_str().unwrap(), "--dry-run"]);
    assert!(refused.code == 2 && refused.err.len() < 2000, "{}", refused.err.len());
}

#[test]
fn metrics_and_lists_dont_wait_for_a_server_that_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let journal = format!("postgresql://wt@{}/fleet", silent.local_addr().unwrap());
    let run = |args: &[&str]| {
        let begun = monotonic_ns();
        let ran = ran(windtunnel(folder.path()).args(args).args(["--journal", &journal]).output().unwrap());
        (ran, (monotonic_ns() - begun) / 1_000_000_000)
    };
    let (metrics, seconds) = run(&["metrics"]);
    assert!(metrics.code == 0 && metrics.out.contains("windtunnel_journal_up 0\n"), "{} {}", metrics.out, metrics.err);
    let (list, longer) = run(&["journal", "list"]);
    assert!(list.code == 3 && list.err.contains("the server hasn't answered for 10 s"), "{} {}", list.out, list.err);
    assert!(seconds < 8 && longer < 20, "{seconds} s, {longer} s");
}
