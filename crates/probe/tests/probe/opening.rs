//! What opens the connection that old segments need, where some of it gets lost.

use crate::common::rng;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_probe::{Answer, Kind, LossCount, Machine as _, Probe, ProbeAnswer, Scan, ScanConfig, Time};

const RTT: Time = Duration::from_millis(20);
const ASKED: u32 = 100;

fn scan(kind: Kind, split: bool, most: u32) -> Scan {
    let sizes = (0..10).map(|i| 600 + 100 * i).collect();
    let config = ScanConfig {
        sizes,
        pmtu: 1500,
        kind,
        split,
        loose: false,
        first: ASKED,
        quick: ASKED,
        most,
        most_in_all: most,
    };
    Scan::new(config, rng(1)).with_rtt(Some(RTT))
}

/// Runs a scan over a target that gives these answers a round trip later; tells what was sent, and how long it took.
fn run(scan: &mut Scan, mut target: impl FnMut(&Probe, Time) -> Option<ProbeAnswer>) -> (Vec<Probe>, Time) {
    let (mut now, mut sent, mut coming) = (Time::ZERO, Vec::new(), BTreeMap::new());
    while !scan.is_done() {
        assert!(now < Duration::from_secs(60), "still not done after a minute");
        while let Some(probe) = scan.poll_probe(now) {
            if let Some(said) = target(&probe, now) {
                coming.insert((now + RTT, probe.id), said);
            }
            sent.push(probe);
            now += Duration::from_micros(500);
        }
        let next = coming.keys().next().map(|(at, _)| *at).into_iter().chain(scan.wakeup()).min();
        now = now.max(next.unwrap_or(now)) + Duration::from_nanos(1);
        while let Some(((at, id), said)) = coming.first_key_value().filter(|((at, _), _)| *at <= now) {
            scan.handle(&Answer { id: *id, at: *at, from: None, said: *said });
            let key = (*at, *id);
            coming.remove(&key);
        }
    }
    (sent, now)
}

/// A target whose connection stands, for a SYN or an old segment.
fn accepted(probe: &Probe) -> ProbeAnswer {
    match probe.kind {
        Kind::Syn => ProbeAnswer::Open { mss: Some(1460), sack: true },
        _ => ProbeAnswer::Reached { ttl: None },
    }
}

fn of(sent: &[Probe], kind: Kind) -> usize {
    sent.iter().filter(|probe| probe.kind == kind).count()
}

#[test]
fn a_handshake_of_which_nothing_gets_lost_takes_two_probes_and_two_round_trips() {
    for (kind, split) in [(Kind::OldSegment, false), (Kind::Echo, true)] {
        let mut scan = scan(kind, split, ASKED);
        let (sent, time) = run(&mut scan, |probe, _| Some(accepted(probe)));
        assert_eq!((of(&sent, Kind::Syn), sent.len()), (1, ASKED as usize + 2), "{kind:?}");
        assert!(time < RTT * 4 + Duration::from_micros(500) * (ASKED + 2), "{time:?}");
        assert!(!scan.lacks_connection() && scan.sizes().iter().all(|row| row.count.lost() == 0), "{:?}", scan.sizes());
    }
}

#[test]
fn a_lost_syn_or_acknowledgement_costs_no_size_a_probe() {
    // So many SYNs get lost, and for so long old segments aren't answered, for want of an acknowledgement.
    for (kind, split) in [(Kind::OldSegment, false), (Kind::Echo, true)] {
        for most in [ASKED, 4 * ASKED] {
            for (syns, silence) in [(1, 0), (3, 0), (0, 10), (0, 1000), (2, 200)] {
                let (mut lost, silent) = (syns, RTT + Duration::from_millis(silence));
                let mut scan = scan(kind, split, most);
                let (sent, time) = run(&mut scan, |probe, now| {
                    let answered = match probe.kind {
                        Kind::Syn => {
                            lost -= 1;
                            lost < 0
                        }
                        Kind::OldSegment => silence == 0 || now >= silent,
                        _ => true,
                    };
                    answered.then(|| accepted(probe))
                });
                let count = scan.sizes().iter().fold(LossCount::default(), |sum, row| sum.plus(row.count));
                assert!(count.lost() == 0 && count.sent >= ASKED - 10, "{kind:?}, {syns}, {silence}: {count:?}");
                assert!(sent.len() <= most as usize + 12 && time < Duration::from_secs(4), "{}, {time:?}", sent.len());
            }
        }
    }
}

#[test]
fn without_a_connection_old_segments_count_nothing_and_echoes_go_alone() {
    for opens in [false, true] {
        let answer = |probe: &Probe, _| {
            let answered = probe.kind == Kind::Echo || opens && probe.kind == Kind::Syn;
            answered.then(|| accepted(probe))
        };
        let mut old = scan(Kind::OldSegment, false, ASKED);
        let (sent, time) = run(&mut old, answer);
        assert!(old.lacks_connection() && old.sizes().is_empty() && sent.len() < 20, "{:?}", old.sizes());
        assert!(time < Duration::from_secs(4), "{time:?}");
        let mut echoes = scan(Kind::Echo, true, ASKED);
        run(&mut echoes, answer);
        let count = echoes.sizes().iter().fold(LossCount::default(), |sum, row| sum.plus(row.count));
        assert!(!echoes.lacks_connection() && count.lost() == 0 && count.sent >= ASKED - 20, "{count:?}");
    }
}
