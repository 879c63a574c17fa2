//! Vegas, H-TCP, Illinois and Westwood+.

use super::{INFINITE, Tcp};

const BASE: i32 = 100_000;

/// Vegas alone on a path that holds `pipe` packets, whose queue takes the rest: its window after many round trips.
fn vegas_settles(begin: u32, pipe: u32) -> u32 {
    let mut tcp = Tcp::new("vegas", begin, begin.min(pipe));
    tcp.ack(1, BASE);
    for _ in 0..60 {
        let window = tcp.cwnd().max(pipe);
        tcp.round((f64::from(BASE) * f64::from(window) / f64::from(pipe)) as i32);
    }
    tcp.cwnd()
}

#[test]
fn vegas_settles_between_alpha_and_beta_packets_in_the_queue() {
    for pipe in [12, 20, 33] {
        for begin in [pipe / 2, pipe + 2, 2 * pipe] {
            let queued = vegas_settles(begin, pipe) - pipe;
            assert!((1..=4).contains(&queued), "a path of {pipe}, begun with {begin}: {queued} queued");
        }
    }
}

#[test]
fn vegas_grows_every_other_round_trip_in_slow_start() {
    let mut tcp = Tcp::new("vegas", 10, INFINITE);
    let mut windows = vec![tcp.cwnd()];
    for _ in 0..60 {
        tcp.ack(2, BASE);
        windows.push(tcp.cwnd());
    }
    let grew: Vec<bool> = windows.windows(2).map(|pair| pair[1] > pair[0]).collect();
    let phases = grew.chunk_by(|a, b| a == b).count();
    assert!(phases >= 4, "growth and rest alternate: {windows:?}");
    // A round trip in which it grows doubles the window at most.
    for phase in grew.iter().enumerate().collect::<Vec<_>>().chunk_by(|a, b| a.1 == b.1) {
        assert!(windows[phase[phase.len() - 1].0 + 1] <= 2 * windows[phase[0].0] + 2, "{windows:?}");
    }
}

/// Packets added in one round trip `since` seconds after the last congestion.
fn htcp_growth(variant: &str, since_s: f64, rtt_us: i32) -> u32 {
    let mut tcp = Tcp::new(variant, 1_000, 2_000);
    tcp.cc.fields().srtt_us_8 = (rtt_us as u32) << 3;
    for _ in 0..9 {
        tcp.ack(1, rtt_us);
    }
    tcp.loss();
    let cwnd = 1_000;
    let fields = tcp.cc.fields();
    fields.snd_cwnd = cwnd;
    fields.snd_ssthresh = 500;
    fields.snd_cwnd_cnt = 0;
    fields.mstamp_us += (since_s * 1e6) as u64;
    let una = fields.snd_una;
    for _ in 0..cwnd / 2 {
        tcp.cc.cong_avoid(una, 2);
    }
    tcp.cwnd() - cwnd
}

#[test]
fn htcps_growth_follows_its_parabola() {
    for (since, expected) in [(0.5, 1), (1.0, 1), (1.2, 3), (2.0, 11), (3.0, 22), (5.0, 45)] {
        let grown = htcp_growth("htcp", since, 100_000);
        assert_eq!(grown, expected, "1 + 10 d + (d/2)^2 at d = {since} - 1 s");
    }
}

#[test]
fn htcp_scales_its_growth_with_the_rtt_when_told_to() {
    assert_eq!(htcp_growth("htcp@rtt-scaling=on", 3.0, 100_000), 22);
    assert_eq!(htcp_growth("htcp@rtt-scaling=on", 3.0, 50_000), 11);
    assert_eq!(htcp_growth("htcp@rtt-scaling=on", 3.0, 400_000), 44, "at most double");
}

#[test]
fn htcp_keeps_more_where_the_queue_is_short_when_told_to() {
    let left = |variant: &str, longest: u32| {
        let mut tcp = Tcp::new(variant, 100, 100);
        for srtt in [100_000, longest] {
            tcp.cc.fields().srtt_us_8 = srtt << 3;
            for _ in 0..9 {
                tcp.ack(1, srtt as i32);
            }
        }
        tcp.cc.fields().snd_cwnd = 100;
        tcp.loss()
    };
    assert_eq!(left("htcp", 110_000), 50);
    assert!((78..=80).contains(&left("htcp@adaptive-backoff=on", 110_000)), "at most 80 %");
    let middle = left("htcp@adaptive-backoff=on", 150_000);
    assert!((66..=69).contains(&middle), "100/150, the longest RTT less 5 % of its excess: {middle}");
    assert_eq!(left("htcp@adaptive-backoff=on", 400_000), 50, "at least 50 %");
}

#[test]
fn htcps_first_timeout_does_not_restart_its_clock_and_the_second_does() {
    let grown = |retransmits: u8| {
        let mut tcp = Tcp::new("htcp", 1_000, 2_000);
        tcp.ack(1, BASE);
        tcp.cc.fields().mstamp_us += 3_000_000;
        tcp.cc.fields().retransmits = retransmits;
        tcp.timeout();
        tcp.enter(wt_cc::CaState::Open);
        let fields = tcp.cc.fields();
        (fields.snd_cwnd, fields.snd_ssthresh, fields.snd_cwnd_cnt) = (1_000, 500, 0);
        for _ in 0..500 {
            tcp.cc.cong_avoid(0, 2);
        }
        tcp.cwnd() - 1_000
    };
    assert_eq!((grown(0), grown(1)), (22, 1));
}

/// Illinois after round trips with these RTTs: packets grown in the last one, and what a loss leaves of 100.
fn illinois(rtts: &[i32]) -> (u32, u32) {
    let mut tcp = Tcp::new("illinois", 100, 100);
    let mut grown = 0;
    for rtt in rtts {
        tcp.cc.fields().snd_cwnd = 100;
        tcp.cc.fields().snd_cwnd_cnt = 0;
        let before = tcp.cwnd();
        tcp.round(*rtt);
        grown = tcp.cwnd() - before;
    }
    tcp.cc.fields().snd_cwnd = 100;
    (grown, tcp.loss())
}

#[test]
fn illinois_grows_fast_and_yields_little_while_the_queue_is_short() {
    // The longest queue is seen first.
    let (fast, left) = illinois(&[BASE, 200_000, BASE, BASE, BASE, BASE, BASE, BASE, BASE, BASE]);
    assert!((9..=11).contains(&fast), "ten packets per round trip: {fast}");
    assert_eq!(left, 88, "an eighth off");
    let (slow, left) = illinois(&[BASE, 200_000, 200_000, 200_000]);
    assert!(slow <= 1, "0.3 packets per round trip: {slow}");
    assert_eq!(left, 50);
    let (_, left) = illinois(&[BASE, 200_000, 145_000, 145_000, 145_000]);
    assert!((66..=72).contains(&left), "half-way between 1/8 and 1/2: {left}");
}

#[test]
fn illinois_is_newreno_with_small_windows() {
    let mut tcp = Tcp::new("illinois", 10, 10);
    tcp.round(BASE);
    tcp.round(BASE);
    let before = tcp.cwnd();
    tcp.round(BASE);
    assert!(tcp.cwnd() - before <= 2);
    tcp.cc.fields().snd_cwnd = 10;
    assert_eq!(tcp.loss(), 5);
}

#[test]
fn westwood_sets_the_window_to_what_the_rate_fills_in_the_shortest_rtt() {
    let mut tcp = Tcp::new("westwood", 30, 30);
    // 20 packets per 100 ms, while a queue holds the window at 30: RTT 150 ms after a start at 100 ms.
    tcp.ack(2, 100_000);
    for _ in 0..400 {
        tcp.cc.fields().mstamp_us += 10_000;
        tcp.ack(2, 150_000);
        tcp.cc.fields().snd_cwnd = 30;
    }
    tcp.loss();
    assert!((19..=21).contains(&tcp.cwnd()), "20 packets fill the path: {}", tcp.cwnd());
    tcp.timeout();
    assert!((19..=21).contains(&tcp.ssthresh()), "also after a timeout: {}", tcp.ssthresh());
}
