//! Trials: their congestion control, and what becomes of one that is stopped. One process, one thread at the start: a user namespace can't be entered otherwise, so
//! this isn't run by the usual harness.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use wt_lab::{Backend, Lab, LabTunnel, Scenario};
use wt_testing::require;
use wt_trial::{
    Amount, Cancel, Direction, LoadedControl, Phase, Repeat, STOPPED, Status, TrialOutcome, TrialSpec, Tunnel as _,
    Workload,
};
use wt_units::{Bytes, Knob, Level, Settings};

/// The first window of 64 KiB, which is what the receiver offers, is twice what this queue holds; spread over the RTT it isn't.
const PATH: &str = r#"
title = "t"
source = "s"
[[link]]
name = "l"
mtu = 1500
down = { rate = "20mbit", delay = "200ms", queue_packets = 20 }
up = { rate = "20mbit", delay = "200ms", queue_packets = 20 }
"#;

const FILE: &str = "ipv4/tcp_congestion_control";

fn lab() -> Lab {
    Lab::start(Scenario::parse("test.toml", PATH).unwrap(), Backend::Best, 1).unwrap()
}

/// Sends one window of a hundred segments.
fn trial(tunnel: &mut LabTunnel, direction: Direction, cc: Option<&str>) -> TrialOutcome {
    run(tunnel, direction, cc, &Cancel::new())
}

fn run(tunnel: &mut LabTunnel, direction: Direction, cc: Option<&str>, cancel: &Cancel) -> TrialOutcome {
    let workload = Workload::Bulk { direction, amount: Amount::Size(Bytes(140_000)) };
    work(tunnel, workload, cc, cancel)
}

fn work(tunnel: &mut LabTunnel, workload: Workload, cc: Option<&str>, cancel: &Cancel) -> TrialOutcome {
    let mut settings = Settings::new().with(Knob::Initcwnd, Level::Number(100));
    if let Some(name) = cc {
        settings.set(Knob::Cc, Level::Name(name.to_owned()));
    }
    let spec = TrialSpec {
        experiment: "t".to_owned(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings,
        workload,
        deadline: Duration::from_secs(20),
        seed: 1,
    };
    tunnel.run(&spec, cancel).unwrap()
}

fn drops(outcome: &TrialOutcome) -> u64 {
    outcome.observed.queue_drops.unwrap()
}

fn a_control_asked_for_isnt_paced_because_the_hosts_default_is() {
    let lab = lab();
    for host in [&lab.client, &lab.server] {
        let written = host.run(|| wt_sys::ns::write_net_sysctl(FILE, "bbr")).and_then(|done| done);
        require!("bbr", written);
    }
    let mut tunnel = LabTunnel::new(lab).unwrap();
    let other = tunnel.congestion_controls().iter().find(|name| *name == "cubic").cloned();
    let name = other.as_deref().unwrap_or("reno");
    for direction in [Direction::Down, Direction::Up] {
        let usual = trial(&mut tunnel, direction, None);
        assert_eq!(usual.observed.cc.as_deref(), Some("bbr"));
        let asked = trial(&mut tunnel, direction, Some(name));
        assert_eq!(asked.observed.cc.as_deref(), Some(name));
        let (at_once, spread) = (drops(&asked), drops(&usual));
        assert!(at_once > 15, "{name} sends its first window at once: {at_once} drops");
        assert!(spread * 2 < at_once, "bbr spreads its own: {spread} drops beside {at_once}");
        for host in [&tunnel.lab().client, &tunnel.lab().server] {
            assert_eq!(host.sysctl(FILE).unwrap(), "bbr", "the default is put back");
        }
    }
    assert_eq!(trial(&mut tunnel, Direction::Down, Some("bbr")).observed.cc.as_deref(), Some("bbr"));
}

fn whatever_mostly_goes_up_is_sent_with_the_control_that_is_asked_for() {
    let mut tunnel = LabTunnel::new(lab()).unwrap();
    let other = tunnel.congestion_controls().iter().find(|name| *name != "reno").cloned();
    // Connections begin with reno, so that only another one says anything.
    let name = require!("another congestion control than reno", other.ok_or("only reno"));
    let (direction, time) = (Direction::Up, Duration::from_millis(300));
    let once = Repeat::Count(1);
    for workload in [
        Workload::Transactions { request: Bytes(2_000), response: Bytes(200), think: Duration::ZERO, amount: once },
        Workload::Stream { direction, message: Bytes(200), interval: Duration::from_millis(100), time },
        Workload::Soak { direction, time },
        Workload::Competing { direction, rivals: 1, time },
        Workload::Load { direction, time },
    ] {
        let outcome = work(&mut tunnel, workload.clone(), Some(&name), &Cancel::new());
        assert_eq!(outcome.observed.cc.as_deref(), Some(&*name), "{workload}: {outcome:?}");
        assert_eq!(outcome.granted.name(Knob::Cc), Some(&*name), "{workload}");
    }
}

/// A control whose program the kernel skips in the second connection.
#[derive(Debug, Default)]
struct Skipped {
    connections: Cell<u64>,
}

impl LoadedControl for Skipped {
    fn kernel_name(&self) -> &str {
        "reno"
    }

    fn seed(&self, _: u64) {
        self.connections.set(self.connections.get() + 1);
    }

    fn guard_hits(&self) -> u64 {
        if self.connections.get() >= 2 { 3 } else { 0 }
    }
}

fn a_trial_in_which_a_program_was_skipped_says_nothing() {
    let mut tunnel = LabTunnel::new(lab()).unwrap();
    tunnel.add_control("mine@variant", Rc::new(Skipped::default()));
    let statuses: Vec<_> = (0..3)
        .map(|_| {
            let outcome = trial(&mut tunnel, Direction::Down, Some("mine@variant"));
            assert_eq!(outcome.granted.name(Knob::Cc), Some("mine@variant"));
            let told = outcome.notes.iter().any(|note| note.contains("skipped a program of mine@variant"));
            (outcome.status, outcome.observed.guard_hits.unwrap(), told)
        })
        .collect();
    // Hits of the trial itself count, and not those of trials before.
    assert_eq!(statuses[1], (Status::Invalid, 3, true));
    assert!(!statuses[0].2 && !statuses[2].2, "{statuses:?}");
    assert_eq!((statuses[0].1, statuses[2].1), (0, 0));
}

fn a_trial_that_is_stopped_is_aborted_whichever_way_it_goes_and_the_next_one_is_done() {
    let mut tunnel = LabTunnel::new(lab()).unwrap();
    let stopped = Cancel::new();
    stopped.cancel();
    for direction in [Direction::Up, Direction::Down] {
        let outcome = run(&mut tunnel, direction, None, &stopped);
        assert_eq!((outcome.status, outcome.notes), (Status::Aborted, vec![STOPPED.to_owned()]), "{direction:?}");
        let next = trial(&mut tunnel, direction, None);
        // On a busy machine the lab itself may be late.
        let late = next.status == Status::Invalid && next.notes.iter().any(|note| note.contains("the lab was late"));
        assert!(next.status == Status::Completed || late, "{next:?}");
    }
}

fn main() {
    wt_testing::without_threads(
        wt_lab::enter,
        &[
            (
                "a_control_asked_for_isnt_paced_because_the_hosts_default_is",
                a_control_asked_for_isnt_paced_because_the_hosts_default_is,
            ),
            (
                "whatever_mostly_goes_up_is_sent_with_the_control_that_is_asked_for",
                whatever_mostly_goes_up_is_sent_with_the_control_that_is_asked_for,
            ),
            (
                "a_trial_in_which_a_program_was_skipped_says_nothing",
                a_trial_in_which_a_program_was_skipped_says_nothing,
            ),
            (
                "a_trial_that_is_stopped_is_aborted_whichever_way_it_goes_and_the_next_one_is_done",
                a_trial_that_is_stopped_is_aborted_whichever_way_it_goes_and_the_next_one_is_done,
            ),
        ],
    );
}
