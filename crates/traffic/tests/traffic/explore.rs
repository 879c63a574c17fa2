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
            for ramp in [TrafficRamp::none(), TrafficRamp::default()] {
                let n = 200;
                let (mut claims, mut any) = (0, [0; 4]);
                let mut by = [0; 5];
                for seed in 0..n {
                    let r = run(seed, tails, config(unit, ramp.clone()), (12, 1500), NOTHING, false);
                    claims += u32::from(r.claimed.is_some());
                    let logs = wt_traffic::TrafficGuard::ALL.map(|g| r.analysis.guard_log_evidence(1, g));
                    let top = logs.iter().fold(0.0f64, |a, b| a.max(*b));
                    for (i, l) in logs.iter().enumerate() {
                        by[i] += u32::from(*l >= 20f64.ln());
                    }
                    for (i, t) in [20f64, 40., 100.].iter().enumerate() {
                        any[i] += u32::from(top >= t.ln());
                    }
                    any[3] += u32::from(logs.iter().map(|l| l.exp()).sum::<f64>() / 5.0 >= 20.0);
                }
                println!(
                    "{unit:?} {tails:?} {} of {n}: claims {claims}, by guard {by:?}, any >= 20,40,100, mean {any:?}",
                    ramp.steps.len()
                );
            }
            for ratio in [0.7, 0.5] {
                let mut found: Vec<[u64; 3]> = (0..30)
                    .map(|seed| {
                        let mut at = [u64::MAX; 3];
                        let mut treated = 0;
                        world::run_with(
                            1000 + seed,
                            tails,
                            config(unit, TrafficRamp::default()),
                            (200, 200),
                            gain(ratio),
                            |a| {
                                treated = a.treated();
                                for (i, t) in [20f64, 40., 100.].iter().enumerate() {
                                    if at[i] == u64::MAX
                                        && a.guard_log_evidence(1, wt_traffic::TrafficGuard::Slower) >= t.ln()
                                    {
                                        at[i] = treated;
                                    }
                                }
                                at[2] != u64::MAX
                            },
                        );
                        at
                    })
                    .collect();
                found.sort();
                println!("   {ratio}: treated at 20, 40, 100: median {:?}", found[15]);
            }
        }
    }
}
