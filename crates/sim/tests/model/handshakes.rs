//! Handshakes of which packets are lost, beside what Linux 6.18 did on a path of 40 ms.

use crate::common::{Line, flow, stack};
use std::time::Duration;
use wt_link::{OutageConfig, StageConfig};
use wt_sim::{FlowReport, Job, Simulation, StackConfig};
use wt_trial::{Amount, Direction};
use wt_units::Bytes;

/// Ten segments over a line of 40 ms, on which until `dead_ms` everything is lost that goes the way of `lost`.
fn first_window(stack: &StackConfig, direction: Direction, lost: Direction, dead_ms: u64) -> FlowReport {
    let mut path = Line::new(100.0, 40, 1_000).path();
    if dead_ms > 0 {
        let windows = vec![(Duration::ZERO, Duration::from_millis(dead_ms))];
        let outage = StageConfig::Outages(OutageConfig { windows, period: None });
        match lost {
            Direction::Up => path.links[0].forward.insert(0, outage),
            Direction::Down => path.links[0].backward.insert(0, outage),
        }
    }
    let mut simulation = Simulation::new(&path, Vec::new(), 1).unwrap();
    let amount = Amount::Size(Bytes(10 * 1_400));
    simulation.add_flow(flow(stack, Job::Bulk { direction, amount })).unwrap();
    simulation.run(Duration::from_secs(60)).flows.remove(0)
}

#[test]
fn the_first_four_syns_follow_each_other_by_a_second() {
    // 1.9 s of silence: Linux 6.18 connected after 2.08 s. Its timers are late by up to 32 ms.
    let connect = |linear, dead_ms| {
        let stack = StackConfig { syn_linear_timeouts: linear, ..stack("cubic") };
        first_window(&stack, Direction::Up, Direction::Up, dead_ms).connect.unwrap().as_secs_f64()
    };
    let after = |seconds: f64| seconds..seconds * 1.033 + 0.041;
    assert!(after(2.04).contains(&connect(4, 1_900)));
    assert!(after(3.04).contains(&connect(0, 1_900)));
    assert!(after(5.04).contains(&connect(4, 4_900)), "5.17 s at Linux 6.18");
    assert!(after(7.04).contains(&connect(4, 5_900)));
}
