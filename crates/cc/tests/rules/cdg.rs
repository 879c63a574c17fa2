//! CDG: the exponential curve, the states of the queue, and back-offs without effect.

use super::Tcp;

const BASE: i32 = 100_000;

/// The share of connections that back off in the round trip in which the RTT grows by this much, for the first time.
fn share_of_cuts(variant: &str, growth: i32, trials: u64) -> f64 {
    let mut cuts = 0;
    for seed in 0..trials {
        // In slow start the raw gradient is judged.
        let mut tcp = Tcp::seeded(variant, 8, 1_000_000, seed);
        tcp.round(BASE);
        tcp.round(BASE);
        tcp.round(BASE + growth);
        cuts += tcp.cc.counted().delay_cuts;
    }
    cuts as f64 / trials as f64
}

#[test]
fn the_probability_is_one_minus_an_exponential() {
    for growth in [0, 300, 1_500, 3_000, 6_000, 12_000] {
        let expected = 1.0 - (-f64::from(growth) / 3_000.0).exp();
        let share = share_of_cuts("cdg", growth, 4_000);
        assert!((share - expected).abs() < 0.033, "{growth} µs: {share} instead of {expected}");
    }
    assert_eq!(share_of_cuts("cdg", 15_100, 200), 1.0, "certain above five times the scale");
}

#[test]
fn the_clock_of_a_virtual_machine_stretches_the_scale_tenfold() {
    let share = share_of_cuts("cdg@freebsd-hz100", 3_000, 4_000);
    assert!((share - 0.0952).abs() < 0.02, "1 - exp(-0.1): {share}");
}

#[test]
fn a_delay_cut_leaves_seventy_percent() {
    let mut tcp = Tcp::new("cdg", 100, 100);
    tcp.round(BASE);
    tcp.round(BASE);
    let before = tcp.cwnd();
    // The average of eight of 160 ms is 20 ms, above five times the scale.
    tcp.round(BASE + 160_000);
    let grown = before + 1;
    let left = [before * 7 / 10, grown * 7 / 10];
    assert!(left.contains(&tcp.cwnd()) || left.contains(&(tcp.cwnd() - 1)), "{} of {before}", tcp.cwnd());
}

#[test]
fn losses_count_while_nothing_is_known_and_are_tolerated_while_the_queue_rises_or_falls() {
    let mut tcp = Tcp::new("cdg", 100, 100);
    assert_eq!(tcp.loss(), 50, "unknown: as NewReno");
    // Falling: both gradients negative.
    let mut tcp = Tcp::new("cdg", 100, 100);
    for delay in [60_000, 60_000, 50_000, 40_000, 30_000] {
        tcp.round(BASE + delay);
    }
    let cwnd = tcp.cwnd();
    assert_eq!(tcp.loss(), cwnd);
    assert_eq!(tcp.cc.counted().tolerated, 1);
}

#[test]
fn growth_is_one_packet_per_round_trip_whatever_the_window() {
    let mut tcp = Tcp::new("cdg", 60, 30);
    tcp.round(BASE);
    let begun = tcp.cwnd();
    for _ in 0..20 {
        tcp.round(BASE);
    }
    // A round of the test is a packet or two longer than one of the algorithm.
    assert!((20..=21).contains(&(tcp.cwnd() - begun)), "{}", tcp.cwnd() - begun);
}

#[test]
fn back_offs_without_effect_stop_after_five_and_resume_after_ten() {
    // A queue that grows in every round trip, by more than five times the scale: always a signal.
    let mut tcp = Tcp::new("cdg", 400, 400);
    tcp.round(BASE);
    let mut delay = 0;
    let mut cuts = Vec::new();
    for _ in 0..60 {
        let before = tcp.cc.counted().delay_cuts;
        delay += 100_000;
        tcp.round(BASE + delay);
        cuts.push(tcp.cc.counted().delay_cuts > before);
    }
    let total = cuts.iter().filter(|cut| **cut).count();
    assert!(total >= 10, "it resumes: {cuts:?}");
    let fifth = cuts.iter().enumerate().filter(|(_, cut)| **cut).nth(4).unwrap().0;
    let sixth = cuts.iter().enumerate().filter(|(_, cut)| **cut).nth(5).unwrap().0;
    assert!(sixth - fifth >= 6, "five signals are ignored in between: {cuts:?}");
}
