//! The journal of many hosts whose server says nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::{ran, windtunnel};
use std::net::TcpListener;
use wt_sys::clock::monotonic_ns;

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
