//! Which window matters on which request, among a client, an edge with nginx and a backend.

use crate::common::{alone, run, shared, windtunnel};
use serde_json::Value;
use std::process::Stdio;

#[test]
fn hits_depend_on_the_windows_near_the_client_and_misses_on_those_near_the_backend() {
    let _machine = alone();
    let ran = run(&["cdn", "--rounds", "20", "--json", "--quiet"]);
    assert!(!ran.err.contains("there is no nginx"), "this test needs nginx (package nginx-light)");
    let report: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    assert_eq!((ran.code, &report["rtt_ms"]["client_edge"]), (0, &20.0.into()), "{report:#}");
    let seconds = |request: &str, hop: &str, cwnd: u32, rwnd: u32| {
        let all = report["requests"][request]["combinations"].as_array().into_iter().flatten();
        let mut mine = all.filter(|one| one["hop"] == hop && one["initcwnd"] == cwnd && one["initrwnd"] == rwnd);
        mine.next().and_then(|one| one["seconds"].as_f64()).unwrap_or(f64::NAN)
    };
    for (request, own, other, round_trip) in
        [("hit", "edge to client", "backend to edge", 0.02), ("miss", "backend to edge", "edge to client", 0.08)]
    {
        let named = |window: &str| {
            report["requests"][request]["matters"].as_array().is_some_and(|all| all.contains(&window.into()))
        };
        let near = request == "hit";
        for (window, matters) in [("edge-send", near), ("client", near), ("backend", !near), ("edge-receive", !near)] {
            assert_eq!(named(window), matters, "{request} {window}: {:#}", report["requests"][request]);
        }
        // 100 kB are 70 segments: 10, 20 and 40 take three round trips, 40 and 80 take two, and a window of 10 held by the
        // receiver takes as long as one of the sender.
        let (small, large) = (seconds(request, own, 10, 40), seconds(request, own, 40, 40));
        assert!(small - large > 0.8 * round_trip && small - large < 2.5 * round_trip, "{request}: {small} {large}");
        let elsewhere = seconds(request, other, 40, 40) / seconds(request, other, 10, 10);
        assert!((0.8..1.25).contains(&elsewhere), "{request}: {elsewhere}");
    }
}

#[test]
fn with_varnish_at_the_edge_hits_are_answered_there_and_misses_fetched() {
    let _machine = shared();
    let ran = run(&["cdn", "--proxy", "varnish", "--rounds", "2", "--json", "--quiet"]);
    assert!(!ran.err.contains("there is no varnishd"), "this test needs varnishd (package varnish)");
    let report: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    assert_eq!(report["proxy"], "varnish");
    let seconds = |request: &str| report["requests"][request]["seconds"].as_f64().unwrap_or(f64::NAN);
    // Law: handshake and request take two round trips, of 20 ms to the edge and of 80 ms on to the backend.
    assert!((0.04..0.2).contains(&seconds("hit")) && seconds("miss") > 0.2, "{report:#}");
}

#[test]
fn paths_without_an_edge_and_levels_that_do_not_differ_are_usage() {
    for args in [&["cdn", "adsl"][..], &["cdn", "--low", "40"], &["cdn", "nowhere"], &["cdn", "--object", "0"]] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
    }
    // Nor is it said first what rounds can show that will never be run.
    let ran = run(&["cdn", "--low", "40", "--high", "10", "--rounds", "2"]);
    assert!(ran.code == 2 && !ran.err.contains("can show nothing"), "{}", ran.err);
}

#[test]
fn whatever_kills_it_no_folder_is_left_and_no_server_goes_on() {
    let _machine = shared();
    use std::io::{BufRead as _, BufReader};
    let home = tempfile::tempdir().unwrap();
    let temporary = home.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = windtunnel(home.path());
    command.args(["cdn", "--rounds", "100"]).env("TMPDIR", &temporary);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    assert!(first.starts_with("100 rounds take about "), "{first}");
    let servers = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("status"));
        let parent = format!("PPid:\t{}\n", child.id());
        let mine = all.filter(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains(&parent)));
        mine.map(|file| file.parent().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let running = servers();
    assert_eq!(running.len(), 2, "{running:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The pipe ends with the last process that holds it.
    assert!(said.all(|line| line.is_ok()));
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    // Those that are ended may still wait for whoever asks how.
    let runs = |place: &std::path::PathBuf| {
        std::fs::read_to_string(place.join("status"))
            .is_ok_and(|text| text.contains("\tnginx") && !text.contains("State:\tZ"))
    };
    let begin = wt_sys::clock::monotonic_ns();
    while running.iter().any(runs) {
        assert!(wt_sys::clock::monotonic_ns() - begin < 20_000_000_000, "{running:?} go on");
        std::thread::yield_now();
    }
}

#[test]
fn ctrl_c_at_the_terminal_ends_the_round_and_tells_of_those_before() {
    let _machine = shared();
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    let home = tempfile::tempdir().unwrap();
    let mut command = windtunnel(home.path());
    // As a shell has it: all of them are in the group that Ctrl-C reaches.
    command.args(["cdn", "--rounds", "100", "--object", "20kB"]).process_group(0);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.starts_with("round 1")), "no round was done");
    wt_sys::process::signal_group(child.id(), 2).unwrap();
    let ended = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.code() == Some(1) && out.contains("No window is shown to matter on a miss"), "{out}");
    assert!(said.all(|line| line.starts_with("round ")));
}
