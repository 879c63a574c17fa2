//! The congestion controls of `bpf/` in the model: the case for which they are there, and what theory says of them.

use crate::common::{Line, flow, goodput_bps, run, seconds_of, stack};
use std::time::Duration;
use wt_link::{LinkConfig, LossConfig, PathConfig, QueueConfig, StageConfig};
use wt_sim::Simulation;
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// The mean goodput of so many seeds over a far, lossy line, kB/s.
fn far_copy(cc: &str, seeds: u64) -> f64 {
    // The preset freebsd-scp in one link.
    let delay = StageConfig::Delay { delay: Duration::from_millis(64) };
    let mtu = StageConfig::Mtu { mtu: Bytes(1500) };
    let loss = StageConfig::Loss(LossConfig::ByDataIndex { probability: Ratio(0.03) });
    let queue = StageConfig::Queue(QueueConfig::drop_tail(BitsPerSecond(800_000), 30));
    let path = PathConfig {
        links: vec![LinkConfig {
            forward: vec![mtu.clone(), queue.clone(), delay.clone()],
            backward: vec![mtu, loss, queue, delay],
            medium: None,
        }],
    };
    let one = |seed| {
        let mut simulation = Simulation::new(&path, Vec::new(), seed).unwrap();
        simulation.bound_events(20_000_000);
        simulation.add_flow(flow(&stack(cc), seconds_of(40))).unwrap();
        goodput_bps(&simulation.run(Duration::from_secs(600)).flows[0]) / 8e3
    };
    (1..=seeds).map(one).sum::<f64>() / seeds as f64
}

#[test]
fn chd_with_the_slow_clocks_thresholds_is_the_one_that_bears_random_loss() {
    let (reno, newreno) = (far_copy("reno", 12), far_copy("newreno", 12));
    let (slow, fast) = (far_copy("chd@freebsd-hz100", 12), far_copy("chd@freebsd-hz1000", 12));
    let hd = far_copy("hd@freebsd-hz100", 12);
    println!("reno {reno:.1} newreno {newreno:.1} hd@hz100 {hd:.1} chd@hz100 {slow:.1} chd@hz1000 {fast:.1} kB/s");
    assert!(slow > 1.4 * newreno, "{slow} against {newreno}");
    assert!(fast < 0.85 * newreno, "{fast} against {newreno}");
    assert!((hd / newreno - 1.0).abs() < 0.15, "hd tolerates no loss: {hd} against {newreno}");
    assert!((newreno / reno - 1.0).abs() < 0.1, "two writings of one algorithm: {newreno} and {reno}");
}

#[test]
fn newreno_under_random_loss_keeps_to_the_square_root() {
    // Mathis and others, CCR 27(3), 1997: 1.22 MSS / (RTT sqrt p), for ACKs of every packet; within 15 %.
    for (rtt_ms, loss) in [(40, 0.01), (100, 0.01), (40, 0.003)] {
        let line = Line { loss, ..Line::new(100.0, rtt_ms, 2_000) };
        let mean =
            (1..=6).map(|seed| goodput_bps(&run(&line, flow(&stack("newreno"), seconds_of(120)), seed).flows[0]));
        let measured = mean.sum::<f64>() / 6.0;
        let theory = 1.22 * 1448.0 * 8.0 / (rtt_ms as f64 / 1e3 * f64::sqrt(loss));
        let ratio = measured / theory;
        println!("{rtt_ms} ms, {loss}: {ratio:.3} of the theory");
        assert!((0.85..=1.15).contains(&ratio), "{rtt_ms} ms, loss {loss}: {ratio} of the theory");
    }
}

#[test]
fn every_source_carries_a_transfer_through_loss_byte_for_byte() {
    for algorithm in &wt_cc::ALGORITHMS {
        let line = Line { loss: 0.02, ..Line::new(20.0, 30, 40) };
        let report = run(&line, flow(&stack(algorithm.name), crate::common::download(2_000_000)), 5);
        assert_eq!(report.flows[0].bytes, 2_000_000, "{}", algorithm.name);
    }
}
