//! No false word about traffic: where the arms are the same nothing is claimed and nothing stopped in more than one run of twenty,
//! whatever the clients do, and what differs is found as soon as the table in docs/results/traffic.md says.
//!
//! The short form runs with all tests; `make truth` runs it in full, 1,000 worlds each.

mod world;

use world::{NOTHING, Tails, config, gain, run};
use wt_traffic::{TrafficRamp, TrafficUnit};

#[test]
#[ignore]
fn explore() {
    for unit in [TrafficUnit::Prefix, TrafficUnit::Connection] {
        for tails in [Tails::Lognormal, Tails::Stalls] {
            let n = 60;
            let (mut claims, mut stops, mut t) = (0, 0, [0, 0]);
            let mut by = [0; 5];
            for seed in 0..n {
                let r = run(seed, tails, config(unit, TrafficRamp::none()), (12, 1500), NOTHING, false);
                claims += u32::from(r.claimed.is_some());
                stops += u32::from(r.stopped.is_some());
                for (i, g) in wt_traffic::TrafficGuard::ALL.into_iter().enumerate() {
                    by[i] += u32::from(r.analysis.guard_log_evidence(1, g) >= 20f64.ln());
                }
                t[0] += u32::from(r.t[0] > 1.96);
                t[1] += u32::from(r.t[1] > 1.96);
            }
            println!("{unit:?} {tails:?} of {n}: claims {claims}, stops {stops} {by:?}, t peek {} once {}", t[0], t[1]);
            for g in [1.2, 1.1] {
                let mut found: Vec<u64> = (0..20)
                    .map(|seed| run(1000 + seed, tails, config(unit, TrafficRamp::none()), (200, 500), gain(g), true))
                    .map(|r| r.claimed.map_or(u64::MAX, |c| c.0))
                    .collect();
                found.sort();
                println!("   gain {g}: median {} 80th {}", found[10], found[16]);
            }
        }
    }
}
