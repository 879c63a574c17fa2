use super::*;
use crate::{Sample, Status};
use std::time::Duration;

const RTT_US: u64 = 100_000;
const PATH: PathNow = PathNow { base_rtt_us: RTT_US, capacity_bps: Some(8_000_000) };

/// A trial with a sample every 20 ms, whose rate in bytes/s and count of retransmissions are functions of the time in s.
fn trial(seconds: u64, rate: impl Fn(f64) -> f64, retransmits: impl Fn(f64) -> u64) -> TrialOutcome {
    let mut outcome = TrialOutcome::empty(Status::Completed, Duration::from_secs(seconds), "");
    let mut bytes = 0.0;
    for step in 1..=seconds * 50 {
        let t = step as f64 / 50.0;
        bytes += rate(t - 0.01) / 50.0;
        let sample = Sample {
            t_us: step * 20_000,
            bytes: bytes as u64,
            rtt: RTT_US + (t * 1_000.0) as u64,
            retransmits: retransmits(t),
            ..Sample::default()
        };
        outcome.receiver.push(sample);
        outcome.sender.push(sample);
    }
    outcome.bytes = bytes as u64;
    outcome.observed.mss = Some(1_000);
    outcome
}

fn close(value: Option<f64>, expected: f64, tolerance: f64) {
    let value = value.unwrap_or(f64::NAN);
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected} ± {tolerance}");
}

#[test]
fn a_ramp_reaches_ninety_percent_where_arithmetic_says() {
    // Linear up to 1 MB/s in 4 s. The rate over 200 ms lags by 100 ms: 90 % at 3.6 s + 0.1 s.
    let metrics = BulkMetrics::of(&trial(20, |t| 1e6 * (t / 4.0).min(1.0), |_| 0), &PATH);
    close(metrics.steady_bps, 1e6, 1e3);
    close(metrics.t90_s, 3.7, 0.05);
    close(metrics.t90_rtts, 37.0, 0.5);
    close(metrics.t80_capacity_s, 3.3, 0.05);
    close(metrics.utilisation, 1.0, 0.001);
    // 125 kB/s² t² = 100 kB
    close(metrics.first_100kb_s, 0.894, 0.02);
    assert!(!metrics.steady, "no loss events");
    assert_eq!(metrics.recovery.events, 0);
    assert_eq!(metrics.recovery.median_s, None);
}

#[test]
fn a_rate_that_is_only_touched_does_not_count_as_reached() {
    // A single burst of 40 ms at 3 s; the level holds from 6 s on.
    let rate = |t: f64| if (3.0..3.04).contains(&t) || t > 6.0 { 1e6 } else { 1e5 };
    let metrics = BulkMetrics::of(&trial(20, rate, |_| 0), &PATH);
    close(metrics.t90_s, 6.2, 0.05);
}

#[test]
fn recovery_is_timed_from_each_loss_and_its_cost_is_an_area() {
    // Losses at 5, 10, 15 s; each halves the rate, which climbs back in a straight line over 2 s.
    let rate = |t: f64| {
        let since = if t < 5.0 { 9.0 } else { t % 5.0 };
        1e6 * (0.5 + since / 4.0).min(1.0)
    };
    let metrics = BulkMetrics::of(&trial(20, rate, |t| (t / 5.0).min(3.0) as u64), &PATH);
    let recovery = &metrics.recovery;
    assert_eq!((recovery.events, recovery.recovered), (3, 3));
    // 95 % after 1.8 s, seen 0.1 s later by a window of 0.2 s.
    close(recovery.median_s, 1.9, 0.06);
    // A triangle of 0.5 MB/s by 2 s is 0.5 MB; its tip beyond 1.9 s is missing.
    close(recovery.mean_cost_bytes, 0.5e6, 0.02e6);
    close(recovery.median_depth, 0.52, 0.04);
    close(metrics.depth, 0.52, 0.04);
}

#[test]
fn losses_that_follow_too_fast_are_censored_and_not_forgotten() {
    let rate = |t: f64| if t < 5.0 { 1e6 } else { 5e5 };
    let metrics = BulkMetrics::of(&trial(20, rate, |t| u64::from(t >= 5.0)), &PATH);
    assert_eq!((metrics.recovery.events, metrics.recovery.recovered), (1, 0));
    assert_eq!(metrics.recovery.median_s, None);
}

#[test]
fn kaplan_and_meiers_median_is_the_textbooks() {
    assert_eq!(median_until(&[(1.0, true), (2.0, true), (3.0, true)]), Some(2.0));
    assert_eq!(median_until(&[(1.0, true), (2.0, true), (3.0, true), (4.0, true)]), Some(2.0));
    // At risk 5, 4, (3 censored), 2: survival 0.8, 0.6, 0.3.
    let times = [(1.0, true), (2.0, true), (3.0, false), (4.0, true), (5.0, false)];
    assert_eq!(median_until(&times), Some(4.0));
    assert_eq!(median_until(&[(1.0, false), (2.0, false)]), None);
    assert_eq!(median_until(&[]), None);
}

#[test]
fn retransmissions_within_one_rtt_are_one_event() {
    let sender: Vec<Sample> = [(0, 0), (50, 1), (100, 3), (140, 4), (400, 4), (500, 5), (2_000, 5)]
        .map(|(ms, retransmits)| Sample { t_us: ms * 1_000, retransmits, ..Sample::default() })
        .to_vec();
    assert_eq!(loss_events(&sender, RTT_US), [50_000, 500_000]);
    assert_eq!(loss_events(&[], RTT_US), [] as [u64; 0]);
}

#[test]
fn queueing_delay_is_what_exceeds_the_base_rtt() {
    // The RTT of these trials grows by 1 ms per second: the queue is 0 to 20 ms.
    let metrics = BulkMetrics::of(&trial(20, |_| 1e6, |_| 0), &PATH);
    close(metrics.p50_queue_ms, 10.0, 0.1);
    close(metrics.p95_queue_ms, 19.0, 0.1);
    close(metrics.peak_queue_ms, 20.0, 0.01);
    close(metrics.cov_1s, 0.0, 1e-6);
}

#[test]
fn retransmissions_are_a_share_of_what_was_sent() {
    let metrics = BulkMetrics::of(&trial(10, |_| 1e5, |t| (t * 2.0) as u64), &PATH);
    // 1000 segments arrived, 20 were retransmitted.
    close(metrics.retransmit_share, 20.0 / 1020.0, 1e-4);
    assert!(metrics.overshoot_segments.unwrap() <= 2);
}

#[test]
fn a_trial_without_samples_has_no_measures_and_no_panic() {
    let metrics = BulkMetrics::of(&TrialOutcome::empty(Status::Failed, Duration::ZERO, ""), &PATH);
    assert_eq!(metrics.steady_bps, None);
    assert_eq!(metrics.p95_queue_ms, None);
    assert_eq!(metrics.t90_s, None);
}

#[test]
fn jains_index_and_the_smallest_share_have_their_extremes() {
    assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
    assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
    assert_eq!(jain(&[0.0]), None);
    assert_eq!(smallest_share(&[4.0, 1.0]), Some(0.25));
}

#[test]
fn two_flows_converge_when_their_shares_stay_near_a_half() {
    let flow = |seconds: u64, rate: &dyn Fn(f64) -> f64| {
        let outcome = trial(seconds, rate, |_| 0);
        Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes)
    };
    // The second begins at 10 s and takes over linearly until both have half, 8 s later.
    let first = flow(40, &|t| if t < 10.0 { 1e6 } else { 1e6 - 5e5 * ((t - 10.0) / 8.0).min(1.0) });
    let second = flow(30, &|t| 5e5 * (t / 8.0).min(1.0));
    let at = convergence(&first, &second, 10_000_000, 1_000_000, 0.1).unwrap();
    // Shares are within 45 to 55 % from 7.2 s on, seen by a window of 1 s half a second later.
    assert!((7_200_000..=8_200_000).contains(&at), "{at}");
    let starved = flow(30, &|_| 1e5);
    assert_eq!(convergence(&first, &starved, 10_000_000, 1_000_000, 0.1), None);
}

#[test]
fn a_scripted_disturbance_is_timed_over_all_runs() {
    // An outage of 1 s at 8 s; one flow is back at once, one climbs for 2 s, one never is.
    let flow = |climb: f64| {
        let rate = move |t: f64| match t {
            t if t < 8.0 => 1e6,
            t if t < 9.0 => 0.0,
            t => 1e6 * ((t - 9.0) / climb).min(1.0),
        };
        let outcome = trial(20, rate, |_| 0);
        Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes)
    };
    let outage = DisturbanceTimes { at_us: 8_000_000, over_us: 9_000_000 };
    let flows = [0.01, 2.0, 1e3].map(|climb| (flow(climb), outage));
    let recovery = Recovery::of_disturbances(&flows, RTT_US, 200_000);
    assert_eq!((recovery.events, recovery.recovered), (3, 2));
    // 1.9 s of climbing, 0.1 s of window.
    close(recovery.median_s, 2.0, 0.06);
    // 1 MB of outage; 0 to 1 MB of climbing, or 11 s far below.
    let mean = recovery.mean_cost_bytes.unwrap();
    close(Some(mean), (1e6 + 2e6 + 12e6) / 3.0, 0.3e6);
    // A flow that only falls a second after, and comes back two seconds later.
    let late = trial(20, |t| if (9.0..11.0).contains(&t) { 4e5 } else { 1e6 }, |_| 0);
    let late = Arrivals::new(&late.receiver, late.elapsed_us, late.bytes);
    let step = DisturbanceTimes { at_us: 8_000_000, over_us: 8_000_000 };
    let stepped = Recovery::of_disturbances(&[(late, step)], RTT_US, 200_000);
    close(stepped.median_s, 3.2, 0.06);
    // A flow that ended before the disturbance was over has nothing to recover from.
    let early = [(flow(0.01), DisturbanceTimes { at_us: 8_000_000, over_us: 30_000_000 })];
    assert_eq!(Recovery::of_disturbances(&early, RTT_US, 200_000).events, 0);
    close(recovery.median_depth, 0.0, 1e-9);
}
