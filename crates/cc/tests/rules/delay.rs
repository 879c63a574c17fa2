//! HD's and CHD's reaction to delay: the curve of the probability, one cut per round trip, the shadow window.

use super::Tcp;

/// Base RTT of these tests, µs.
const BASE: i32 = 100_000;

/// How many of `trials` connections back off at one ACK with this queueing delay, the largest so far being `largest`.
fn share_of_hd_cuts(variant: &str, delay: i32, largest: i32, trials: u64) -> f64 {
    let mut cuts = 0;
    for seed in 0..trials {
        let mut tcp = Tcp::seeded(variant, 40, 40, seed);
        // The largest delay is seen in recovery, where nothing is drawn.
        tcp.ack(2, BASE);
        tcp.enter(wt_cc::CaState::Recovery);
        tcp.ack(2, BASE + largest);
        tcp.enter(wt_cc::CaState::Open);
        tcp.ack(2, BASE + delay);
        cuts += tcp.cc.counted().delay_cuts;
    }
    cuts as f64 / trials as f64
}

#[test]
fn hds_probability_has_its_points() {
    // queue-min 5 ms, queue-threshold 20 ms, pmax 50 %; the largest delay is 60 ms
    for (delay, expected) in
        [(4_000, 0.0), (5_000, 0.0), (12_500, 0.25), (20_000, 0.5), (40_000, 0.25), (50_000, 0.125), (60_000, 0.0)]
    {
        let share = share_of_hd_cuts("hd@pmax=50%", delay, 60_000, 4_000);
        // Four standard errors of 4000 draws are at most 3.2 %.
        assert!((share - expected).abs() < 0.033, "{delay} µs: {share} instead of {expected}");
    }
}

#[test]
fn hd_draws_at_every_ack_and_cuts_once_per_round_trip() {
    let mut tcp = Tcp::new("hd@pmax=100%", 40, 40);
    tcp.ack(2, BASE);
    tcp.enter(wt_cc::CaState::Recovery);
    tcp.ack(2, BASE + 200_000);
    tcp.enter(wt_cc::CaState::Open);
    let before = tcp.cwnd();
    for _ in 0..8 {
        tcp.ack(2, BASE + 20_000);
    }
    assert_eq!(tcp.cc.counted().delay_cuts, 1);
    assert_eq!(tcp.cwnd(), before / 2, "no growth until the round trip is over");
}

/// A round trip with a queue of `delay`, after one without, at pmax 100 %: `true` if it cut.
fn chd_round(tcp: &mut Tcp, delay: i32) -> bool {
    let before = tcp.cc.counted().delay_cuts;
    tcp.round(BASE + delay);
    tcp.cc.counted().delay_cuts > before
}

#[test]
fn chd_draws_once_per_round_trip() {
    let mut cuts = 0;
    let trials = 3_000;
    for seed in 0..trials {
        let mut tcp = Tcp::seeded("chd@loss-fair=off", 40, 40, seed);
        tcp.ack(2, BASE);
        tcp.enter(wt_cc::CaState::Recovery);
        tcp.ack(2, BASE + 60_000);
        tcp.round(BASE);
        tcp.enter(wt_cc::CaState::Open);
        tcp.round(BASE + 12_500);
        cuts += tcp.cc.counted().delay_cuts;
    }
    let share = cuts as f64 / trials as f64;
    assert!((share - 0.25).abs() < 0.033, "half of pmax=50 % at the middle of the rising branch: {share}");
}

#[test]
fn chd_judges_a_round_trip_by_its_longest_rtt_unless_told_otherwise() {
    for (variant, expected) in [("chd@pmax=100%", 1), ("chd@pmax=100%+use-max=off", 0)] {
        let mut tcp = Tcp::new(variant, 40, 40);
        tcp.round(BASE);
        tcp.ack(2, BASE + 20_000);
        tcp.round(BASE);
        assert_eq!(tcp.cc.counted().delay_cuts, expected, "{variant}");
    }
}

/// Two delay cuts of a window of 64 with queues of 30 and 31 ms, the longest queue ever being 120 ms; then a loss with a
/// queue of 30 ms. The windows before each cut and before the loss, and the threshold after it.
fn cuts_and_a_loss(variant: &str) -> ([u32; 3], u32) {
    let mut tcp = Tcp::new(variant, 64, 64);
    tcp.quiet_round(BASE);
    tcp.quiet_round(BASE + 120_000);
    let mut windows = [0; 3];
    for (window, delay) in windows.iter_mut().zip([30_000, 31_000]) {
        tcp.quiet_round(BASE);
        *window = tcp.cwnd();
        // The falling branch: 90 % and 89 %.
        let cut = (0..20).any(|_| {
            *window = tcp.cwnd();
            chd_round(&mut tcp, delay)
        });
        assert!(cut, "{variant}");
    }
    tcp.quiet_round(BASE + 30_000);
    windows[2] = tcp.cwnd();
    (windows, tcp.loss())
}

#[test]
fn a_loss_among_flows_that_fill_the_queue_is_answered_from_the_shadow() {
    let (windows, threshold) = cuts_and_a_loss("chd@pmax=100%");
    assert!(windows[2] < windows[0] * 2 / 3, "two cuts: {windows:?}");
    assert!(threshold >= windows[0] / 2, "half of the window before the cuts: {threshold} of {windows:?}");
    assert!(threshold > windows[2] / 2 + 2, "more than half of what there is");
}

#[test]
fn without_loss_fair_a_loss_halves_what_there_is() {
    let (windows, threshold) = cuts_and_a_loss("chd@pmax=100%+loss-fair=off");
    assert_eq!(threshold, windows[2].div_ceil(2), "{windows:?}");
}

#[test]
fn a_delay_cut_halves_in_whole_packets() {
    let mut tcp = Tcp::new("chd@pmax=100%", 41, 41);
    tcp.round(BASE);
    let before = tcp.cwnd();
    assert!(chd_round(&mut tcp, 20_000));
    // The window may have grown by a packet before the cut. FreeBSD keeps the odd packet.
    let half = before.div_ceil(2);
    assert!((half..=half + 1).contains(&tcp.ssthresh()), "{} of {before}", tcp.ssthresh());
    // Unlike NewReno and HD it grows on while it recovers: FreeBSD's cc_chd.c doesn't look.
    assert!(tcp.cwnd() >= tcp.ssthresh());
}

#[test]
fn hd_and_chd_go_on_with_the_latest_sample_where_an_ack_gives_none() {
    // A queue of 20 ms is known; then come ACKs of single packets, which may have been delayed and give no sample.
    let single = |variant: &str, delay: i32| {
        let mut tcp = Tcp::new(variant, 40, 40);
        tcp.ack(2, BASE);
        tcp.enter(wt_cc::CaState::Recovery);
        (0..4).for_each(|_| tcp.ack(2, BASE + delay));
        tcp.ack(2, BASE + delay);
        tcp.enter(wt_cc::CaState::Open);
        tcp.ack(1, BASE);
        tcp
    };
    assert_eq!(single("hd@pmax=100%", 20_000).cc.counted().delay_cuts, 1, "HD draws at every ACK");
    assert_eq!(single("hd@pmax=100%", 0).cc.counted().delay_cuts, 0);
    // CHD: one ACK of a round trip tells of 20 ms, wherever in it; only single packets follow, and they end it all the same.
    let cuts: Vec<u64> = (0..4)
        .map(|before| {
            let mut tcp = Tcp::new("chd@pmax=100%", 4, 4);
            tcp.round(BASE);
            (0..before).for_each(|_| tcp.ack(2, BASE));
            tcp.ack(2, BASE + 20_000);
            (0..5).for_each(|_| tcp.ack(1, BASE));
            tcp.cc.counted().delay_cuts
        })
        .collect();
    assert!(cuts.iter().all(|cuts| *cuts >= 1), "{cuts:?}");
}

#[test]
fn the_same_seed_makes_the_same_choices_and_another_seed_others() {
    let cuts = |seed| {
        let mut tcp = Tcp::seeded("hd@pmax=20%", 40, 40, seed);
        tcp.ack(2, BASE);
        (0..60)
            .map(|_| {
                tcp.round(BASE + 20_000);
                tcp.cwnd()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(cuts(7), cuts(7));
    assert_ne!(cuts(7), cuts(8));
}

#[test]
fn acks_of_single_packets_count_only_after_the_delayed_ones_are_used_up() {
    let mut tcp = Tcp::new("chd@pmax=100%", 40, 40);
    tcp.ack(2, BASE);
    tcp.ack(2, BASE);
    // Two ACKs of several packets went before: two single ones may be delayed and don't tell of a queue.
    tcp.ack(1, BASE + 40_000);
    tcp.ack(1, BASE + 40_000);
    assert_eq!(tcp.loss(), tcp.cwnd(), "no queue is known");
    tcp.ack(1, BASE + 40_000);
    assert!(tcp.loss() < 40, "now it is");
}
