use crate::common::{Line, download, flow, goodput_bps, run, seconds_of, stack};
use std::time::Duration;
use wt_link::{Event, Packet, Path, Side, Time};
use wt_sim::{Simulation, StackConfig};

#[test]
fn a_handshake_takes_one_round_trip_and_the_serialisation_of_two_syns() {
    let report = run(&Line::new(0.0264, 150, 20), flow(&stack("cubic"), download(1_000)), 1);
    let syn = Duration::from_nanos(60 * 8 * 1_000_000_000 / 26_400);
    let connect = report.flows[0].connect.unwrap();
    let expected = Duration::from_millis(150) + 2 * syn;
    assert!(connect.abs_diff(expected) < Duration::from_nanos(10), "{connect:?} against {expected:?}");
}

#[test]
fn a_transfer_that_fills_the_line_takes_its_serialisation_time() {
    let line = Line::new(10.0, 20, 200);
    let flow = run(&line, flow(&stack("reno"), download(5_000_000)), 1).flows.remove(0);
    let ideal = 5_000_000.0 * 8.0 / 10e6 * 1500.0 / 1448.0;
    let elapsed = flow.elapsed.unwrap().as_secs_f64();
    assert!(elapsed > ideal && elapsed < ideal + 0.1, "{elapsed} s, ideally {ideal} s and slow start");
}

#[test]
fn a_window_of_half_the_product_gives_half_the_line_and_one_of_the_product_all_of_it() {
    let line = Line::new(20.0, 100, 400);
    let product = 20e6 * 0.1 / 8.0;
    for (share, low, high) in [(0.25, 0.23, 0.26), (0.5, 0.47, 0.51), (1.1, 0.97, 1.0)] {
        let rwin = (product * share) as u32;
        let spec = flow(&StackConfig { rwin: Some(rwin), ..stack("cubic") }, seconds_of(20));
        let report = run(&line, spec, 1);
        let used = goodput_bps(&report.flows[0]) * 1500.0 / 1448.0 / 20e6;
        assert!((low..=high).contains(&used), "a window of {share} products uses {used} of the line");
        assert_eq!(report.queue_drops, 0);
    }
}

#[test]
fn loss_keeps_to_its_rate() {
    let line = Line { loss: 0.02, ..Line::new(50.0, 10, 300) };
    let report = run(&line, flow(&stack("bbr"), seconds_of(30)), 3);
    let sent = report.flows[0].data_segments as f64;
    let (expected, deviation) = (sent * 0.02, (sent * 0.02 * 0.98).sqrt());
    let losses = report.losses as f64;
    assert!(sent > 50_000.0, "{sent}");
    assert!((losses - expected).abs() < 4.0 * deviation + 20.0, "{losses} of {sent}, expected {expected}±{deviation}");
}

#[test]
fn nothing_vanishes_whatever_the_congestion_control() {
    for cc in ["reno", "cubic", "bbr"] {
        let line = Line { loss: 0.01, ..Line::new(20.0, 30, 20) };
        let report = run(&line, flow(&stack(cc), download(3_000_000)), 7);
        let path = &report.paths[0];
        assert_eq!(path.pushed + path.duplicated, path.delivered + path.dropped + path.held, "{cc}");
        assert_eq!(path.dropped, report.queue_drops + report.losses, "{cc}");
        let flow = &report.flows[0];
        assert_eq!(flow.bytes, 3_000_000, "{cc}");
        let originals = 3_000_000_u64.div_ceil(1448);
        assert_eq!(flow.data_segments, originals + flow.retransmits, "{cc}: nothing was cut in two");
        assert!(flow.retransmits >= report.queue_drops, "{cc}: {} for {} drops", flow.retransmits, report.queue_drops);
    }
}

/// What flows that are set up alike get of one line, bit/s each, and Jain's index of it.
fn shares(cc: &str, flows: u64) -> (Vec<f64>, f64) {
    let mut simulation = Simulation::new(&Line::new(20.0, 40, 70).path(), Vec::new(), 1).unwrap();
    for n in 0..flows {
        let spec = flow(&stack(cc), seconds_of(120));
        simulation.add_flow(wt_sim::FlowSpec { start: Duration::from_millis(13 * n), ..spec }).unwrap();
    }
    let report = simulation.run(Duration::from_secs(300));
    let rates: Vec<f64> = report.flows.iter().map(goodput_bps).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    (rates, sum * sum / (flows as f64 * squares))
}

#[test]
fn twins_share_alike() {
    for (cc, flows, least) in [("reno", 2, 0.999), ("cubic", 2, 0.999), ("bbr", 2, 0.999), ("reno", 4, 0.95)] {
        let (rates, jain) = shares(cc, flows);
        let sum: f64 = rates.iter().sum();
        assert!(jain > least, "Jain's index of {flows} {cc} flows is {jain}: {rates:?}");
        assert!(sum * 1500.0 / 1448.0 > 0.93 * 20e6 && sum < 20e6, "together {sum}");
    }
}

#[test]
fn reno_under_loss_follows_the_square_root_law() {
    // Mathis, Semke, Mahdavi and Ott (CCR 27(3), 1997): 1.22 MSS / (RTT √p) when every segment is acknowledged.
    for (loss, rtt_ms) in [(0.001, 50), (0.005, 50), (0.01, 100)] {
        let line = Line { loss, ..Line::new(1_000.0, rtt_ms, 10_000) };
        let mean = (0..4)
            .map(|seed| goodput_bps(&run(&line, flow(&stack("reno"), seconds_of(120)), seed).flows[0]))
            .sum::<f64>()
            / 4.0;
        let rtt = rtt_ms as f64 / 1e3;
        // Acknowledgements of two segments leave √(1/2) of it in theory; Linux counts segments, not acknowledgements.
        let law = 1.22 * 1448.0 * 8.0 / (rtt * loss.sqrt());
        assert!((0.92..1.08).contains(&(mean / law)), "{mean} bit/s at {loss}, the law says {law}");
    }
}

#[test]
fn the_same_seed_gives_the_same_and_another_one_another() {
    let line = Line { loss: 0.01, ..Line::new(20.0, 40, 40) };
    let once = |seed| run(&line, flow(&stack("bbr"), download(2_000_000)), seed);
    let here = once(5);
    let there = std::thread::scope(|scope| scope.spawn(|| once(5)).join().unwrap());
    assert_eq!(here, there);
    assert_eq!(format!("{here:?}"), format!("{there:?}"));
    assert_ne!(here.flows[0].elapsed, once(6).flows[0].elapsed);
}

#[test]
fn a_larger_initial_window_saves_round_trips() {
    let elapsed = |initcwnd| {
        let spec = flow(&StackConfig { initcwnd, ..stack("cubic") }, download(40_000));
        run(&Line::new(1_000.0, 100, 1_000), spec, 1).flows[0].elapsed.unwrap().as_millis() / 100
    };
    // 28 segments: 1+2+4+8+16, 4+8+16, 10+20, 32.
    assert_eq!([1, 4, 10, 32].map(elapsed), [5, 3, 2, 1]);
}

/// The mean wait in front of the line, in service times, of packets that come at random at this share of its rate.
fn mean_wait(line: &Line, load: f64) -> f64 {
    const PACKETS: u64 = 300_000;
    let service = Duration::from_nanos(1_500 * 8 * 1_000_000_000 / line.bps).as_secs_f64();
    let mut path: Path<Time> = Path::new(&line.path(), 1).unwrap();
    let (mut state, mut at, mut waited, mut seen) = (0x9E37_79B9_7F4A_7C15_u64, 0.0, 0.0, 0_u64);
    let mut take = |path: &mut Path<Time>, now: Time| {
        while let Some(event) = path.poll(now) {
            let Event::Deliver { at, packet } = event.event else { panic!("nothing is dropped: {event:?}") };
            waited += (at - packet.payload).as_secs_f64() - service - line.rtt.as_secs_f64() / 2.0;
            seen += 1;
        }
    };
    for _ in 0..PACKETS {
        // A Poisson process: exponential times between arrivals, from the bits of an xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let uniform = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        at += -uniform.ln() * service / load;
        let now = Time((at * 1e9) as u64);
        while let Some(due) = path.next_due().filter(|due| due.0 <= now.0) {
            take(&mut path, due);
        }
        path.push(Side::BToA, now, Packet::new(1_500, now));
    }
    take(&mut path, Time(u64::MAX / 2));
    assert_eq!(seen, PACKETS);
    waited / seen as f64 / service
}

#[test]
fn packets_that_come_at_random_wait_as_the_formula_of_pollaczek_and_khinchine_says() {
    // M/D/1: half the load over what is left of the line, in service times.
    for load in [0.3, 0.5, 0.8] {
        let (wait, theory) = (mean_wait(&Line::new(12.0, 20, 1_000_000), load), load / (2.0 * (1.0 - load)));
        println!("load {load}: waits {wait:.4} service times, the formula says {theory:.4}");
        assert!((wait / theory - 1.0).abs() < 0.03, "load {load}: {wait} against {theory}");
    }
}
