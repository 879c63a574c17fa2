//! What each does at a loss and at a timeout.

use super::{INFINITE, Tcp};
use wt_cc::ALGORITHMS;

/// Rounds without a queue, then one with a queue of `delay_us`, without any drawing (below queue-min or in recovery).
fn chd_with_queue(variant: &str, cwnd: u32, delay_us: i32) -> Tcp {
    let mut tcp = Tcp::new(variant, cwnd, cwnd);
    tcp.ack(2, 100_000);
    tcp.ack(2, 100_000 + delay_us);
    assert_eq!(tcp.cc.counted().delay_cuts, 0, "only two ACKs of a round trip");
    tcp
}

#[test]
fn newreno_halves_at_a_loss_and_regains_the_window_in_half_as_many_rounds() {
    let mut tcp = Tcp::new("newreno", 40, 40);
    assert_eq!(tcp.loss(), 20);
    let mut rounds = 0;
    while tcp.cwnd() < 40 {
        tcp.round(100_000);
        rounds += 1;
    }
    assert!((18..=22).contains(&rounds), "W/2 = 20 round trips, not {rounds}");
}

#[test]
fn newreno_doubles_per_round_trip_in_slow_start() {
    let mut tcp = Tcp::new("newreno", 10, INFINITE);
    for packets in [10, 20, 40] {
        (0..packets / 2).for_each(|_| tcp.ack(2, 100_000));
        assert_eq!(tcp.cwnd(), 2 * packets);
    }
}

#[test]
fn beta_of_newreno_is_what_is_left_and_two_packets_are_the_least() {
    assert_eq!(Tcp::new("newreno@beta=80%", 50, 50).loss(), 40);
    assert_eq!(Tcp::new("newreno", 3, 3).loss(), 2);
    let mut tcp = Tcp::new("newreno@beta=80%", 50, 50);
    tcp.timeout();
    assert_eq!(tcp.ssthresh(), 25, "a timeout halves whatever beta is");
}

#[test]
fn chd_leaves_the_window_at_a_loss_without_a_queue() {
    let mut tcp = chd_with_queue("chd", 40, 3_000);
    assert_eq!(tcp.loss(), 40);
    assert_eq!(tcp.cwnd(), 40);
    let counted = tcp.cc.counted();
    assert_eq!((counted.losses, counted.tolerated), (1, 1));
}

#[test]
fn chd_halves_at_a_loss_with_a_queue_above_the_threshold() {
    let mut tcp = chd_with_queue("chd", 40, 25_000);
    assert_eq!(tcp.loss(), 20);
    assert_eq!(tcp.cc.counted().tolerated, 0);
}

#[test]
fn the_threshold_itself_still_tolerates() {
    assert_eq!(chd_with_queue("chd", 40, 20_000).loss(), 40);
    assert_eq!(chd_with_queue("chd", 40, 20_001).loss(), 20);
}

#[test]
fn the_clock_of_a_virtual_machine_tolerates_ten_times_the_queue() {
    assert_eq!(chd_with_queue("chd@freebsd-hz1000", 40, 150_000).loss(), 20);
    assert_eq!(chd_with_queue("chd@freebsd-hz100", 40, 150_000).loss(), 40);
    assert_eq!(chd_with_queue("chd@queue-min=5ms+queue-threshold=160ms", 40, 150_000).loss(), 40);
}

#[test]
fn chd_returns_to_the_old_window_at_once_after_a_tolerated_loss_where_newreno_needs_half_a_window_of_rounds() {
    let rounds = |name: &str| {
        let mut tcp = Tcp::new(name, 40, 40);
        tcp.round(100_000);
        let before = tcp.cwnd();
        tcp.loss();
        (0..)
            .find(|_| {
                tcp.cwnd() >= before || {
                    tcp.round(100_000);
                    false
                }
            })
            .unwrap()
    };
    assert_eq!(rounds("chd"), 0);
    assert!(rounds("newreno") >= 18);
}

#[test]
fn a_timeout_halves_whatever_else_is_tolerated() {
    // Westwood and Illinois have rules of their own for it.
    for algorithm in ALGORITHMS.iter().filter(|algorithm| !["westwood", "illinois"].contains(&algorithm.name)) {
        let mut tcp = Tcp::new(algorithm.name, 40, 40);
        tcp.round(100_000);
        let before = tcp.cwnd();
        tcp.timeout();
        let half = before / 2;
        assert!((half - 1..=half).contains(&tcp.ssthresh()), "{}: {} of {before}", algorithm.name, tcp.ssthresh());
        assert_eq!(tcp.cwnd(), 1);
    }
}

#[test]
fn nobody_goes_below_two_packets() {
    for algorithm in &ALGORITHMS {
        let mut tcp = Tcp::new(algorithm.name, 2, 2);
        tcp.ack(1, 100_000);
        tcp.ack(1, 900_000);
        assert!(tcp.loss() >= 2, "{}", algorithm.name);
    }
}

#[test]
fn a_mistaken_reduction_is_taken_back() {
    for algorithm in &ALGORITHMS {
        let mut tcp = Tcp::new(algorithm.name, 30, 30);
        tcp.cc.fields().prior_cwnd = 44;
        assert_eq!(tcp.cc.undo_cwnd(), 44, "{}", algorithm.name);
    }
}

#[test]
fn garbage_left_by_a_skipped_program_is_repaired_and_counted() {
    for algorithm in &ALGORITHMS {
        let mut tcp = Tcp::new(algorithm.name, 30, 30);
        let fields = tcp.cc.fields();
        fields.prior_cwnd = 30;
        fields.snd_ssthresh = 2_000_000_000;
        fields.snd_cwnd = 1_000_000_000;
        fields.packets_out = 30;
        tcp.ack(2, 100_000);
        assert_eq!(tcp.cc.counted().guard_hits, 1, "{}", algorithm.name);
        assert!(tcp.ssthresh() <= 30 && tcp.cwnd() <= 100, "{}: {}", algorithm.name, tcp.cwnd());
        tcp.ack(2, 100_000);
        assert_eq!(
            tcp.cc.counted().guard_hits,
            1,
            "{}: the threshold that isn't set yet is no garbage",
            algorithm.name
        );
    }
}
