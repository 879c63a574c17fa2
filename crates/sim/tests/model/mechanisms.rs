use crate::common::{Line, download, flow, goodput_bps, run, seconds_of, stack};
use std::time::Duration;
use wt_link::{OutageConfig, PathConfig, StageConfig};
use wt_sim::{Exchange, Job, Report, Simulation, StackConfig};

/// Two links, the second one with a smaller MTU.
fn narrow(stack: &StackConfig, icmp: bool, mtu: u64) -> Report {
    let wide = Line::new(10.0, 20, 100).path().links;
    let second = Line { mtu, ..Line::new(10.0, 20, 100) }.path().links;
    // The server sends over the second link first, so what is too big is stopped at the first one.
    let config = PathConfig { links: [second, wide].concat() };
    let mut simulation = Simulation::new(&config, vec![icmp, icmp], 1).unwrap();
    simulation.add_flow(flow(stack, download(200_000))).unwrap();
    simulation.run(Duration::from_secs(120))
}

#[test]
fn a_router_that_tells_of_a_smaller_mtu_is_heeded() {
    let report = narrow(&stack("cubic"), true, 1_400);
    assert_eq!((report.flows[0].bytes, report.flows[0].pmtu), (200_000, 1_400));
    assert!(report.flows[0].elapsed.unwrap() < Duration::from_secs(1));
}

#[test]
fn two_full_segments_are_acknowledged_together_however_short_a_full_one_is() {
    // Payload of 524 bytes (MTU 576, the old dial-up one) and less, which neither end knows at first; or an MSS that one end asks for.
    let full = stack("cubic");
    for (mtu, max_segment) in [(576, None), (560, None), (1_500, Some(88))] {
        let report = narrow(&StackConfig { max_segment, ..full.clone() }, true, mtu);
        let flow = &report.flows[0];
        assert_eq!((flow.bytes, u64::from(flow.pmtu)), (200_000, mtu));
        let share = flow.acks as f64 / flow.data_segments as f64;
        assert!(
            share < 0.65,
            "MTU {mtu}, MSS {max_segment:?}: {} acknowledgements of {}",
            flow.acks,
            flow.data_segments
        );
    }
}

#[test]
fn a_black_hole_swallows_everything_unless_it_is_looked_for() {
    let stuck = narrow(&stack("cubic"), false, 1_400);
    assert_eq!((stuck.flows[0].bytes, stuck.flows[0].elapsed), (0, None));
    let found = narrow(&StackConfig { mtu_probing: true, ..stack("cubic") }, false, 1_400);
    assert_eq!(found.flows[0].bytes, 200_000);
    let elapsed = found.flows[0].elapsed.unwrap();
    assert!((3.0..12.0).contains(&elapsed.as_secs_f64()), "after several time-outs, not {elapsed:?}");
    assert!((1_065..=1_400).contains(&found.flows[0].pmtu), "{}", found.flows[0].pmtu);
}

#[test]
fn after_a_black_hole_larger_packets_are_tried_until_the_search_is_over() {
    let mut path = Line { mtu: 1_400, ..Line::new(20.0, 40, 400) }.path();
    let found = |path: &PathConfig| {
        let mut simulation = Simulation::new(path, vec![false], 1).unwrap();
        let stack = StackConfig { mtu_probing: true, ..stack("reno") };
        simulation.add_flow(flow(&stack, download(20_000_000))).unwrap();
        simulation.run(Duration::from_secs(120))
    };
    let report = found(&path);
    let flow = &report.flows[0];
    assert_eq!(flow.bytes, 20_000_000);
    assert!((1_392..=1_400).contains(&flow.pmtu), "{}", flow.pmtu);
    // Each halving above the limit costs one packet, and the search began with a dozen that vanished.
    assert!(report.too_big < 40, "{}", report.too_big);
    // Until the hole is found it takes time-outs; after that a lost probe is no congestion.
    let ideal = 20e6 * 8.0 / 20e6 * 1_400.0 / 1_348.0;
    assert!(flow.timeouts <= 5 && flow.elapsed.unwrap().as_secs_f64() < ideal + 8.0, "{flow:?}");
    // Where nothing vanishes nothing is searched for.
    path = Line::new(20.0, 40, 400).path();
    let report = found(&path);
    assert_eq!((report.flows[0].pmtu, report.flows[0].timeouts), (1_500, 0));
}

#[test]
fn without_path_mtu_discovery_routers_cut_packets_to_pieces() {
    let report = narrow(&StackConfig { pmtud: false, ..stack("cubic") }, false, 1_400);
    assert_eq!((report.flows[0].bytes, report.flows[0].pmtu, report.flows[0].retransmits), (200_000, 1_500, 0));
    assert!(report.too_big >= 130, "{}", report.too_big);
}

/// A line that is dead from `from` until `until`, ms, towards the client.
fn outage(from: u64, until: u64, size: u64) -> Report {
    let mut path = Line::new(10.0, 40, 100).path();
    let windows = vec![(Duration::from_millis(from), Duration::from_millis(until))];
    path.links[0].backward.insert(0, StageConfig::Outages(OutageConfig { windows, period: None }));
    let mut simulation = Simulation::new(&path, Vec::new(), 1).unwrap();
    simulation.add_flow(flow(&stack("cubic"), download(size))).unwrap();
    simulation.run(Duration::from_secs(120))
}

#[test]
fn after_an_outage_the_retransmission_timer_brings_the_transfer_back() {
    let report = outage(300, 2_300, 1_000_000);
    let flow = &report.flows[0];
    assert_eq!(flow.bytes, 1_000_000);
    assert!(flow.timeouts >= 2, "{}", flow.timeouts);
    let elapsed = flow.elapsed.unwrap().as_secs_f64();
    // 0.8 s of transfer, 2 s of outage, and the last time-out may begin just before its end.
    assert!((2.8..5.5).contains(&elapsed), "{elapsed}");
}

#[test]
fn a_lost_tail_is_probed_for_before_the_timer_fires() {
    // The last segments of the answer fall into the outage, and all of them are full: a short one's round trip would be
    // shorter than any before, and RACK, as in the kernel, takes such a copy's acknowledgement for the original's.
    const SIZE: u64 = 35 * 1_448;
    let whole = outage(10_000, 10_001, SIZE).flows[0].elapsed.unwrap().as_millis() as u64;
    let report = outage(40 + whole - 28, 40 + whole - 20, SIZE);
    let flow = &report.flows[0];
    assert_eq!((flow.bytes, flow.timeouts), (SIZE, 0));
    assert!(flow.retransmits > 0);
    assert!(flow.elapsed.unwrap() < Duration::from_millis(whole + 280), "{:?}", flow.elapsed);
}

#[test]
fn a_lost_packet_costs_about_a_round_trip_and_no_time_out() {
    let mut line = Line::new(10.0, 40, 200).path();
    line.links[0].backward.insert(0, StageConfig::Loss(wt_link::LossConfig::EveryNth { n: 300 }));
    let mut simulation = Simulation::new(&line, Vec::new(), 1).unwrap();
    simulation.add_flow(flow(&stack("cubic"), download(700_000))).unwrap();
    let report = simulation.run(Duration::from_secs(60));
    let flow = &report.flows[0];
    assert_eq!((flow.retransmits, flow.timeouts, flow.undos), (report.losses, 0, 0));
    assert!(report.losses >= 1);
}

#[test]
fn without_sack_one_hole_is_filled_per_round_trip() {
    // The queue overflows once, with a few dozen losses in one flight.
    let line = Line::new(20.0, 40, 66);
    let elapsed = |sack| {
        let spec = flow(&StackConfig { sack, ..stack("reno") }, download(2_000_000));
        run(&line, spec, 2).flows[0].elapsed.unwrap()
    };
    assert!(elapsed(false) > elapsed(true) + 8 * line.rtt, "{:?} against {:?}", elapsed(false), elapsed(true));
}

#[test]
fn bbr_keeps_the_queue_short_and_cubic_fills_it() {
    let line = Line::new(20.0, 40, 400);
    let srtt = |cc| {
        let report = run(&line, flow(&stack(cc), seconds_of(9)), 1);
        assert!(goodput_bps(&report.flows[0]) > 0.9 * 20e6, "{cc}");
        report.flows[0].srtt_us
    };
    assert!(srtt("bbr") < 60_000, "{}", srtt("bbr"));
    assert!(srtt("cubic") > 80_000, "{}", srtt("cubic"));
}

#[test]
fn without_scaling_no_window_exceeds_64_kib() {
    let spec = flow(&StackConfig { window_scaling: false, ..stack("cubic") }, seconds_of(10));
    let report = run(&Line::new(100.0, 100, 1_000), spec, 1);
    assert!(report.flows[0].widest_window <= 65_535);
    let share = goodput_bps(&report.flows[0]) / (65_535.0 * 8.0 / 0.1);
    assert!((0.9..1.01).contains(&share), "{share} of window over RTT");
}

#[test]
fn the_receive_buffer_follows_the_path() {
    let report = run(&Line::new(200.0, 100, 2_000), flow(&stack("cubic"), seconds_of(10)), 1);
    let flow = &report.flows[0];
    assert!(flow.widest_window > 2 * 2_500_000, "{}", flow.widest_window);
    assert!(flow.busy[1] < Duration::from_millis(50), "waited {:?} for the window", flow.busy[1]);
    assert!(goodput_bps(flow) > 0.85 * 200e6, "{}", goodput_bps(flow));
}

#[test]
fn a_pause_cuts_the_window_unless_it_is_told_not_to() {
    let exchange = |pause| Exchange { ask: 100, answer: 400_000, pause: Duration::from_secs(pause) };
    let last = |slow_start_after_idle| {
        let stack = StackConfig { slow_start_after_idle, ..stack("cubic") };
        let report =
            run(&Line::new(1_000.0, 100, 2_000), flow(&stack, Job::Exchanges(vec![exchange(0), exchange(10)])), 1);
        let times = &report.flows[0].exchanges;
        (times[1].done - times[0].done - Duration::from_secs(10)).as_millis() / 100
    };
    assert!(last(true) > last(false), "{} against {} round trips", last(true), last(false));
}

#[test]
fn marks_of_congestion_take_the_place_of_loss() {
    let mut path = Line::new(20.0, 40, 400).path();
    let codel = wt_link::CoDelConfig { ecn: true, ..wt_link::CoDelConfig::default() };
    for stage in &mut path.links[0].backward {
        if let StageConfig::Queue(queue) = stage {
            queue.discipline = wt_link::Discipline::CoDel(codel);
        }
    }
    let mut simulation = Simulation::new(&path, Vec::new(), 1).unwrap();
    simulation.add_flow(flow(&StackConfig { ecn: true, ..stack("cubic") }, seconds_of(20))).unwrap();
    let report = simulation.run(Duration::from_secs(60));
    assert!(report.flows[0].agreed.2);
    let marked: u64 = report.paths[0].links[0].backward.iter().map(|stage| stage.marked).sum();
    assert!(marked > 5, "{marked}");
    assert_eq!((report.queue_drops, report.flows[0].retransmits), (0, 0));
    assert!(goodput_bps(&report.flows[0]) > 0.85 * 20e6);
}

#[test]
fn a_link_that_doubles_and_reorders_breaks_nothing() {
    let mut path = Line::new(20.0, 40, 400).path();
    let reorder = StageConfig::Reorder { probability: wt_units::Ratio(0.05), by: Duration::from_millis(3) };
    path.links[0].backward.push(reorder);
    path.links[0].backward.push(StageConfig::Duplicate { probability: wt_units::Ratio(0.02) });
    for cc in ["reno", "cubic", "bbr"] {
        let mut simulation = Simulation::new(&path, Vec::new(), 1).unwrap();
        simulation.add_flow(flow(&stack(cc), download(3_000_000))).unwrap();
        let report = simulation.run(Duration::from_secs(60));
        assert_eq!(report.flows[0].bytes, 3_000_000, "{cc}");
        assert!(goodput_bps(&report.flows[0]) > 10e6, "{cc}: {}", goodput_bps(&report.flows[0]));
    }
}
