//! A server on the loopback that redirects, as the real path that it is.

use super::*;
use crate::single::{TestRequest, test};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;
use wt_journal::{Journal as _, SqliteJournal, WithSamples};
use wt_trial::TrialRecord;

/// At 127.0.0.1 it redirects `/moved` to 127.0.0.2, packs `/packed`, which nobody asked for, and knows nothing else; at 127.0.0.2 it
/// has a large file. Its port.
fn server() -> u16 {
    let listener = TcpListener::bind(("0.0.0.0", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut asked = [0; 4096];
                let length = stream.read(&mut asked).unwrap_or(0);
                let here = stream.local_addr().unwrap().ip().to_string();
                let head = if here == "127.0.0.2" {
                    "200 OK\r\nContent-Length: 10000000000".to_owned()
                } else if asked.starts_with(b"GET /moved ") {
                    format!("302 Found\r\nLocation: http://127.0.0.2:{port}/file\r\nContent-Length: 0")
                } else if asked.starts_with(b"GET /packed ") {
                    "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5".to_owned()
                } else {
                    "404 Not Found\r\nContent-Length: 0".to_owned()
                };
                let mut sent = stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes());
                while here == "127.0.0.2" && length > 0 && sent.is_ok() {
                    sent = stream.write_all(&[0; 65_536]);
                    // As a line of some 500 Mbit/s: trials end by their time.
                    let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(1)));
                }
            });
        }
    });
    port
}

/// Four short trials.
fn request(folder: &std::path::Path, target: String) -> TuneRequest {
    TuneRequest {
        target: Some(target),
        levels: vec!["mss=1000".parse().unwrap()],
        budget: Some(Budget::Trials(4)),
        trial: Some(Duration::from_millis(200)),
        live: LiveRequest { pause: Some(Duration::ZERO), no_probes: true, ..LiveRequest::default() },
        no_model: true,
        journal: Some(folder.join("journal")),
        ..TuneRequest::default()
    }
}

/// What was run last, with its trials.
fn last(folder: &std::path::Path) -> (StoredExperiment, Vec<TrialRecord>) {
    let journal = SqliteJournal::open(&folder.join("journal")).unwrap();
    let stored = journal.load("last").unwrap();
    let mut trials = Vec::new();
    let mut keep = |trial: TrialRecord| {
        trials.push(trial);
        Ok(())
    };
    journal.for_each_trial(&stored.id, WithSamples::No, &mut keep).unwrap();
    (stored, trials)
}

#[test]
fn where_a_redirection_leads_is_whom_the_path_its_facts_and_the_command_are_of() {
    let (folder, port) = (tempfile::tempdir().unwrap(), server());
    let (named, served) = (format!("http://127.0.0.1:{port}/moved"), format!("http://127.0.0.2:{port}/file"));
    let address = Some("127.0.0.2".parse().unwrap());
    crate::run(&request(folder.path(), named.clone()), &Cancel::new(), &mut |_| {}).unwrap();
    let (stored, trials) = last(folder.path());
    let live = stored.config.tune().live.clone().unwrap();
    assert_eq!((live.address, live.targets, live.asked), (address, Some(vec![served]), Some(vec![named.clone()])));
    assert!(trials.len() >= 5 && trials.iter().all(|trial| trial.outcome.observed.address == address), "{trials:#?}");
    // By either name it is gone on with, and where it isn't the same file it isn't.
    for (target, goes_on) in [
        (Some(named.clone()), true),
        (None, true),
        (stored.config.tune().live.clone().unwrap().targets.map(|mut all| all.remove(0)), true),
        (Some(format!("http://127.0.0.2:{port}/other")), false),
        (Some(format!("http://127.0.0.1:{port}/file")), false),
    ] {
        let more = TuneRequest {
            target: target.clone(),
            levels: Vec::new(),
            trial: None,
            resume: Some("last".to_owned()),
            dry_run: true,
            ..request(folder.path(), String::new())
        };
        let went_on = crate::run(&more, &Cancel::new(), &mut |_| {});
        match went_on {
            Ok(_) => assert!(goes_on, "{target:?}"),
            Err(why) => assert!(!goes_on && why.what.contains(", not on http://127.0.0."), "{target:?}: {why:?}"),
        }
    }
    let once = TestRequest {
        target: named,
        time: Duration::from_millis(100),
        no_hops: true,
        journal: Some(folder.path().join("journal")),
        ..TestRequest::default()
    };
    let logged = test(&once, &Cancel::new(), &mut |_| {}).unwrap();
    assert_eq!((logged.tests[0].address, logged.hosts[0].address), (address, address));
}

#[test]
fn a_server_of_a_profile_that_is_passed_over_is_nobody_to_set_anything_for() {
    let (folder, port) = (tempfile::tempdir().unwrap(), server());
    let profile = folder.path().join("two.toml");
    let targets = ["http://127.0.0.1:PORT/none", "http://127.0.0.2:PORT/file"];
    let text = targets.map(|url| format!("[[target]]\nurl = \"{url}\"\n").replace("PORT", &port.to_string())).concat();
    std::fs::write(&profile, text).unwrap();
    let request = request(folder.path(), profile.to_str().unwrap().to_owned());
    crate::run(&request, &Cancel::new(), &mut |_| {}).unwrap();
    let (stored, trials) = last(folder.path());
    let live = stored.config.tune().live.clone().unwrap();
    let address = Some("127.0.0.2".parse().unwrap());
    assert_eq!((live.address, live.asked), (address, None));
    assert!(trials.iter().all(|trial| trial.outcome.observed.address == address), "{trials:#?}");
}

#[test]
fn a_transfer_that_fails_at_once_has_taken_no_longer_than_that() {
    let (folder, port) = (tempfile::tempdir().unwrap(), server());
    let once = TestRequest {
        target: format!("http://127.0.0.1:{port}/packed"),
        no_hops: true,
        journal: Some(folder.path().join("journal")),
        ..TestRequest::default()
    };
    let logged = test(&once, &Cancel::new(), &mut |_| {}).unwrap();
    let seconds = logged.tests[0].seconds;
    assert!(logged.tests[0].status == "failed" && (1e-6..30.0).contains(&seconds), "{logged:#?}");
}

#[test]
fn a_transfer_of_a_size_isnt_cut_off_earlier_after_a_resume_than_before() {
    let (folder, port) = (tempfile::tempdir().unwrap(), server());
    let request = request(folder.path(), format!("http://127.0.0.2:{port}/file"));
    let first = TuneRequest { trial: None, workload: "bulk:size=1MB".parse().unwrap(), ..request.clone() };
    crate::run(&first, &Cancel::new(), &mut |_| {}).unwrap();
    let (begun, trials) = last(folder.path());
    let of_rounds = |trials: Vec<TrialRecord>| {
        let trials = trials.into_iter().filter(|trial| trial.spec.phase == wt_trial::Phase::Round);
        trials.map(|trial| (trial.spec.workload, trial.spec.deadline)).collect::<Vec<_>>()
    };
    let had = of_rounds(trials);
    let more = TuneRequest { trial: None, levels: Vec::new(), resume: Some("last".to_owned()), ..request };
    crate::run(&more, &Cancel::new(), &mut |_| {}).unwrap();
    let (resumed, trials) = last(folder.path());
    assert_eq!(resumed.config.tune().continues, Some(begun.id));
    let has = of_rounds(trials);
    assert!(has.len() >= 2 && has.iter().chain(&had).all(|trial| *trial == had[0]), "{had:?} {has:?}");
    assert_eq!(resumed.config.tune().per_trial_us, begun.config.tune().per_trial_us);
}

#[test]
fn where_nothing_was_probed_before_a_resume_nothing_is_probed_by_it() {
    let of = |unprobed, no_probes| {
        let live = LiveRequest { no_probes, ..LiveRequest::default() };
        FixedChoices { unprobed, ..FixedChoices::default() }.look(&TuneRequest { live, ..TuneRequest::default() })
    };
    assert!(!of(false, false).live.no_probes, "what was probed may be probed again");
    assert!([of(true, false), of(false, true), of(true, true)].iter().all(|look| look.live.no_probes));
    assert!(!FixedChoices::default().unprobed, "an experiment that begins probes unless it is asked not to");
}

#[test]
fn who_names_a_path_of_the_lab_in_place_of_a_server_reads_how_to_measure_there() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("mine.toml");
    std::fs::write(&scenario, wt_lab::presets::text("adsl").unwrap()).unwrap();
    let tried = |target: &str| named(target, None).unwrap_err().hint.unwrap_or_default();
    assert!(tried("adsl").contains("windtunnel tune --lab adsl"), "{}", tried("adsl"));
    let own = scenario.to_str().unwrap();
    assert!(tried(own).contains(&format!("--lab {own}")), "{}", tried(own));
    assert!(tried("adsl.example").contains("a profile"), "{}", tried("adsl.example"));
}
