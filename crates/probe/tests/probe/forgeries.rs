//! The search among forged answers.

use crate::common::{Net, run_with};
use crate::search::{ALL, search};
use proptest::prelude::*;
use std::time::Duration;
use wt_probe::{Answer, PathKind, ProbeAnswer};

#[test]
fn a_flood_of_forged_icmp_changes_no_verdict() {
    // A hundred thousand a second: two hundred for each millisecond in which a probe leaves.
    for hole in [false, true] {
        for said in [0, 68, 1399, 1401, 1300, 65_535] {
            let mut net = Net { pps: 500, ..Net::new(3) };
            net.links[2].icmp = !hole;
            let (liar, mut search) = (net.router(66), search(&net, &ALL));
            let mut number = 0u32;
            run_with(&net, &mut search, |probe, now| {
                let mut forge = || {
                    number = number.wrapping_add(1);
                    // Most are about no probe; some about this one, or one of those around it.
                    let id = if number.is_multiple_of(4) { probe.id ^ (number >> 2 & 7) } else { number | 1 << 20 };
                    let at = now + Duration::from_micros(u64::from(number % 2000) * 10);
                    Answer { id, at, from: Some(liar), said: ProbeAnswer::TooBig { mtu: said } }
                };
                (0..200).map(|_| forge()).collect()
            });
            let report = search.report();
            let kind = if hole { PathKind::BlackHole } else { PathKind::Clean };
            assert_eq!((report.pmtu, report.kind), (Some(1400), kind), "{said}: {report:#?}");
            assert!(report.hints.len() <= 40, "{}", report.hints.len());
        }
    }
}

/// Whatever anybody answers in place of a router.
fn forged() -> impl Strategy<Value = ProbeAnswer> {
    let mtu = prop_oneof![Just(0u32), Just(68), Just(576), Just(1280), Just(65_535), Just(u32::MAX), 0u32..2000];
    prop_oneof![
        4 => mtu.prop_map(|mtu| ProbeAnswer::TooBig { mtu }),
        1 => Just(ProbeAnswer::Unreachable { code: 13 }),
        1 => Just(ProbeAnswer::Expired { quote: wt_probe::Quote::default() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forged_icmp_changes_no_verdict(
        seed in 0u64..1000, hole in any::<bool>(), early in 0u64..60_000, said in prop::collection::vec(forged(), 1..40)
    ) {
        let mut net = Net::new(seed);
        net.links[2].icmp = !hole;
        let mut search = search(&net, &ALL);
        let quotes_truth = said.contains(&ProbeAnswer::TooBig { mtu: 1400 });
        let expires = said.iter().any(|said| matches!(said, ProbeAnswer::Expired { .. }));
        let mut turn = said.into_iter().cycle();
        let liar = net.router(66);
        run_with(&net, &mut search, |probe, now| {
            let said = turn.next().expect("a cycle never ends");
            // To this probe, and to one that was never sent.
            let answer = |id| Answer { id, at: now + Duration::from_micros(early), from: Some(liar), said };
            vec![answer(probe.id), answer(probe.id.wrapping_add(100_000))]
        });
        let report = search.report();
        prop_assert_eq!(report.pmtu, Some(1400));
        // Nobody can tell a forgery that says the truth, or that plays the hop itself.
        if !quotes_truth && !expires {
            prop_assert_eq!(report.kind, if hole { PathKind::BlackHole } else { PathKind::Clean });
        }
    }

    #[test]
    fn answers_without_order_or_sense_never_break_it(
        answers in prop::collection::vec((0u32..80, 0u64..500_000, 0usize..7, any::<u32>()), 0..200)
    ) {
        let net = Net::new(1);
        let mut search = search(&net, &ALL);
        let mut rest = answers.into_iter();
        let ran = run_with(&net, &mut search, |_, now| {
            rest.by_ref().take(3).map(|(id, at, what, number)| {
                let said = match what {
                    0 => ProbeAnswer::Reached { ttl: Some(number as u8) },
                    1 => ProbeAnswer::Open { mss: Some(number as u16), sack: number % 2 == 0 },
                    2 => ProbeAnswer::Refused,
                    3 => ProbeAnswer::TooBig { mtu: number },
                    4 => ProbeAnswer::LocalTooBig,
                    5 => ProbeAnswer::Unreachable { code: number as u8 },
                    _ => ProbeAnswer::Expired { quote: wt_probe::Quote::default() },
                };
                Answer { id, at: now + Duration::from_micros(at), from: None, said }
            }).collect()
        });
        prop_assert!(ran.packets <= 4000);
        let _ = search.report();
    }
}
