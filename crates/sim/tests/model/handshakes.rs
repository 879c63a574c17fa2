//! Handshakes of which packets are lost, beside what Linux 6.18 did on a path of 40 ms.

use crate::common::{Line, download, flow, goodput_bps, stack};
use std::time::Duration;
use wt_link::{OutageConfig, StageConfig};
use wt_sim::{FlowReport, Job, Simulation, StackConfig, SynChange};
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
    // The request of an upload is a segment of its own.
    let payload = if direction == Direction::Up { 9 } else { 10 };
    let amount = Amount::Size(Bytes(payload * 1_400));
    simulation.add_flow(flow(stack, Job::Bulk { direction, amount })).unwrap();
    simulation.run(Duration::from_secs(60)).flows.remove(0)
}

/// The round trips of its answer, or of what it was sent.
fn round_trips(flow: &FlowReport) -> u32 {
    (flow.elapsed.unwrap().as_secs_f64() / 0.040) as u32
}

#[test]
fn a_syn_that_is_lost_once_leaves_the_initial_window() {
    let dead = |ms| first_window(&stack("cubic"), Direction::Up, Direction::Up, ms);
    // The RTT is that of the timestamp that came back.
    let (none, once, twice) = (dead(0), dead(500), dead(1_500));
    assert_eq!((none.srtt_us / 1_000, once.srtt_us / 1_000, twice.srtt_us / 1_000), (40, 40, 40));
    assert_eq!(round_trips(&once), round_trips(&none), "{once:?}");
    assert_eq!(round_trips(&twice), round_trips(&none) + 3, "1, 2 and 4 of ten segments, and the rest: {twice:?}");
}

#[test]
fn an_answer_to_the_first_syn_shows_that_its_time_out_was_too_early() {
    // What the server answers again echoes the first SYN, though the client sent three: the client keeps its window, and
    // takes all that time for its RTT. The server's own time-outs were no error.
    let dead = |direction, ms| first_window(&stack("cubic"), direction, Direction::Down, ms);
    let (client, server) = (dead(Direction::Up, 1_500), dead(Direction::Down, 1_500));
    assert!(client.connect.unwrap() > Duration::from_secs(2) && client.srtt_us > 1_000_000, "{client:?}");
    assert_eq!(round_trips(&client), round_trips(&dead(Direction::Up, 0)));
    assert_eq!(round_trips(&server), round_trips(&dead(Direction::Down, 0)) + 3, "{server:?}");
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

#[test]
fn a_lost_syn_without_timestamps_leaves_three_seconds_for_the_first_time_out() {
    // Nothing tells the RTT, and all of the first window is lost, too.
    let mut path = Line::new(100.0, 40, 1_000).path();
    let windows =
        [(0, 500), (1_050, 1_150)].map(|(from, until)| (Duration::from_millis(from), Duration::from_millis(until)));
    path.links[0].forward.insert(0, StageConfig::Outages(OutageConfig { windows: windows.to_vec(), period: None }));
    let mut simulation = Simulation::new(&path, Vec::new(), 1).unwrap();
    let plain = StackConfig { timestamps: false, sack: false, ..stack("cubic") };
    let job = Job::Bulk { direction: Direction::Up, amount: Amount::Size(Bytes(9 * 1_400)) };
    simulation.add_flow(flow(&plain, job)).unwrap();
    let report = simulation.run(Duration::from_secs(60));
    let done = report.flows[0].exchanges[0].done.as_secs_f64();
    assert!((4.06..4.3).contains(&done), "{:?}", report.flows[0]);
}

#[test]
fn ends_agree_to_what_is_left_of_their_syns_behind_hops_that_change_them() {
    let behind = |up: &[SynChange], down: &[SynChange]| {
        let mut simulation = Simulation::new(&Line::new(100.0, 40, 1_000).path(), Vec::new(), 1).unwrap();
        simulation.change_syns([up.to_vec(), down.to_vec()]);
        simulation.add_flow(flow(&stack("cubic"), download(1_000_000))).unwrap();
        simulation.run(Duration::from_secs(600)).flows.remove(0)
    };
    let plain = behind(&[], &[]);
    // The MSS without the timestamps' 12 bytes: written, clamped in turn, taken away (536, RFC 9293 section 3.7.1), not put back.
    let (write, clamp) = (SynChange::WriteMss(300), SynChange::ClampMss(1_000));
    for (changes, payload) in
        [(vec![write], 288), (vec![clamp, SynChange::ClampMss(1_400)], 988), (vec![SynChange::StripMss, write], 524)]
    {
        let there = behind(&changes, &[]);
        assert_eq!(there.mss, payload, "{changes:?}");
        assert!(there.data_segments >= 1_000_000_u64.div_ceil(payload.into()), "{there:?}");
        assert_eq!(behind(&[], &changes).mss, plain.mss, "it is the client's SYN that bounds what the server sends");
    }
    assert_eq!(plain.agreed, (true, true, false));
    assert_eq!(behind(&[SynChange::StripSack], &[]).agreed, (true, false, false));
    assert_eq!(behind(&[], &[SynChange::StripTimestamps]).mss, plain.mss, "the server still sends them");
    assert_eq!(behind(&[SynChange::StripTimestamps], &[]).mss, plain.mss + 12);
    // Law: 65535 bytes a round trip at most. A server that reads scaled windows where none are is held by none, as Linux in the lab.
    let unscaled = behind(&[SynChange::StripWindowScale], &[]);
    assert_eq!(unscaled.window_scale, 0);
    let most = 65_535.0 * 8.0 / 0.04;
    assert!(goodput_bps(&unscaled) < most, "{unscaled:?}");
    assert!(goodput_bps(&behind(&[], &[SynChange::StripWindowScale])) > most * 1.5);
    // Windows that are read too small: over 60 ms Linux had moved 79 kB of it after 40 s.
    let misread = behind(&[SynChange::WriteWindowScale(2)], &[]);
    assert!(misread.elapsed.is_none_or(|elapsed| elapsed > Duration::from_secs(60)), "{misread:?}");
}
