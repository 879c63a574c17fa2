//! Each stage by itself: lines that aren't constant, delays that differ, packets that are changed.

use crate::common::{UNBOUNDED, all, deliveries, drops, packets, pipe, queue, queue_of, run};
use std::time::Duration;
use wt_link::{
    AirtimeConfig, Discipline, Distribution, DropReason, Event, JitterConfig, LossConfig, ModemConfig, Packet,
    PolicerConfig, QueueConfig, RateConfig, RetrainConfig, StageConfig, StepsConfig, ThinningConfig, Time,
    TokenBucketConfig, Trace, TraceConfig, WireLen,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};
use wt_wire::Framing;

const MS: u64 = 1_000_000;

fn line(rate: RateConfig) -> Vec<StageConfig> {
    vec![queue_of(rate, UNBOUNDED, Discipline::DropTail)]
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn times(events: &[Event<u64>]) -> Vec<u64> {
    deliveries(events).into_iter().map(|(_, at)| at).collect()
}

#[test]
fn a_framing_costs_on_the_line_what_it_says() {
    let stacks = [
        "raw",
        "ethernet",
        "pppoe-llc-bridged-fcs-atm",
        "pppoe-ptm",
        "wireguard+ethernet",
        "ether-vlan mpu 64",
        "docsis",
    ];
    for text in stacks {
        let framing: Framing = text.parse().unwrap();
        let wire_len = WireLen::from(framing.clone());
        for ip_len in 0..4_000 {
            assert_eq!(u64::from(wire_len.of(ip_len)), framing.wire_len(Bytes(ip_len.into())).get(), "{text} {ip_len}");
        }
    }
}

#[test]
fn steps_of_one_rate_are_a_constant_rate() {
    let rate = BitsPerSecond(7_654_321);
    let constant = run(line(RateConfig::Constant(rate)), (0..2_000).map(|number| number / 3 * 4 * MS));
    for (steps, period) in [
        (vec![(Duration::ZERO, rate)], None),
        (vec![(Duration::ZERO, rate), (Duration::from_nanos(777), rate), (ms(3), rate)], None),
        (vec![(Duration::ZERO, rate), (Duration::from_nanos(777), rate)], Some(Duration::from_nanos(1_003))),
    ] {
        let steps = RateConfig::Steps(StepsConfig { steps, period });
        assert_eq!(times(&run(line(steps), (0..2_000).map(|number| number / 3 * 4 * MS))), times(&constant));
    }
}

#[test]
fn a_packet_that_meets_a_step_goes_on_at_the_new_rate() {
    // 12 Mbit/s is a packet a millisecond. Half of the third packet is out when the rate falls to a quarter.
    let steps = vec![(ms(0), BitsPerSecond(12_000_000)), (Duration::from_micros(2_500), BitsPerSecond(3_000_000))];
    let events = run(line(RateConfig::Steps(StepsConfig { steps, period: None })), [0; 4]);
    assert_eq!(times(&events), [MS, 2 * MS, 4_500_000, 8_500_000]);
}

#[test]
fn a_rate_of_zero_is_a_pause() {
    let steps = vec![(ms(0), BitsPerSecond(12_000_000)), (ms(2), BitsPerSecond(0))];
    let steps = RateConfig::Steps(StepsConfig { steps, period: Some(ms(10)) });
    assert_eq!(times(&run(line(steps), [0; 5])), [MS, 2 * MS, 11 * MS, 12 * MS, 21 * MS]);
}

#[test]
fn a_slow_line_with_a_short_period_is_computed_at_once() {
    let steps = vec![(Duration::ZERO, BitsPerSecond(2)), (Duration::from_nanos(1), BitsPerSecond(0))];
    let steps = RateConfig::Steps(StepsConfig { steps, period: Some(Duration::from_nanos(2)) });
    // One bit per second on the mean: 12 000 seconds a packet.
    assert_eq!(times(&run(line(steps), [0])), [12_000 * 1_000 * MS - 1]);
}

#[test]
fn a_trace_sends_at_its_moments_as_mahimahi_does() {
    let trace = Trace::parse(b"2\n4\n4\n10\n").unwrap();
    let config = |bytes| TraceConfig { trace: trace.clone(), bytes: Bytes(bytes) };
    let at_ms = |bytes, arrivals: &[u64]| -> Vec<u64> {
        let events = run(line(RateConfig::Trace(config(bytes))), arrivals.iter().map(|at| at * MS));
        times(&events).into_iter().map(|at| at / MS).collect()
    };
    // One packet per opportunity; the trace begins anew after its last line.
    assert_eq!(at_ms(1_500, &[0; 6]), [2, 4, 4, 10, 12, 14]);
    // Unused opportunities are lost, and one at the moment of the arrival is over.
    assert_eq!(at_ms(1_500, &[3, 3, 10, 24]), [4, 4, 12, 30]);
    // Two packets share an opportunity only if both were there.
    assert_eq!(at_ms(3_000, &[0, 1, 1]), [2, 2, 4]);
    assert_eq!(at_ms(3_000, &[0, 3]), [2, 4]);
    // A packet that doesn't fit goes on with the next opportunity, and the rest of that serves the next packet.
    assert_eq!(at_ms(1_000, &[0, 0]), [4, 4]);
}

#[test]
fn a_trace_of_garbage_is_refused_with_its_line() {
    let error = |text: &[u8]| Trace::parse(text).unwrap_err().to_string();
    assert!(error(b"1\n2\nx\n").starts_with("line 3: \"x\""));
    assert!(error(b"1\n\n2\n").starts_with("line 2: \"\""));
    assert!(error(b"-1\n").starts_with("line 1"));
    assert!(error(b"99999999999999999999\n").starts_with("line 1"));
    assert!(error(&[0xFF; 1_000]).starts_with("line 1"));
    assert!(error(b"7\n5").starts_with("line 2: 5 ms comes after 7 ms"));
    assert!(error(b"").contains("line 1"));
    assert!(error(b"0\n").contains("no line above 0 ms"));
    assert!(error(&vec![b'1'; wt_link::MAX_TRACE_BYTES + 1]).contains("at most"));
    assert_eq!(Trace::parse(b"0\r\n 5 \r\n").unwrap().len(), 2);
}

#[test]
fn a_token_bucket_lets_a_burst_through_and_then_its_rate() {
    let bucket = |peak| TokenBucketConfig { rate: BitsPerSecond(12_000_000), burst: Bytes(4_500), peak };
    let at_once =
        times(&run(line(RateConfig::TokenBucket(bucket(None))), [0, 0, 0, 0, 0, 20 * MS, 20 * MS, 20 * MS, 20 * MS]));
    assert_eq!(at_once, [0, 0, 0, MS, 2 * MS, 20 * MS, 20 * MS, 20 * MS, 21 * MS]);
    let peak = Some(BitsPerSecond(120_000_000));
    let peaked = times(&run(line(RateConfig::TokenBucket(bucket(peak))), [0; 5]));
    assert_eq!(peaked, [100_000, 200_000, 300_000, 1_100_000, 2_100_000]);
}

#[test]
fn a_token_bucket_carries_at_most_its_burst_and_rate_in_every_window() {
    let bucket = TokenBucketConfig { rate: BitsPerSecond(9_999_991), burst: Bytes(15_000), peak: None };
    let out = times(&run(line(RateConfig::TokenBucket(bucket)), (0..4_000).map(|number| (number / 40) * 37 * MS)));
    for (first, from) in out.iter().enumerate().step_by(7) {
        for (count, to) in out[first..].iter().take(200).enumerate() {
            let allowed = 15_000.0 + (to - from + 1) as f64 * 9_999_991.0 / 8e9;
            assert!((count * 1_500) as f64 <= allowed, "{count} packets more from {from} to {to}");
        }
    }
}

#[test]
fn a_policer_passes_a_burst_and_drops_the_rest_without_delay() {
    let policer = PolicerConfig { framing: WireLen::IP, rate: BitsPerSecond(12_000_000), burst: Bytes(4_500) };
    let events = run(vec![StageConfig::Policer(policer)], [0, 0, 0, 0, MS, MS, 100 * MS]);
    assert_eq!(deliveries(&events), [(0, 0), (1, 0), (2, 0), (4, MS), (6, 100 * MS)]);
    assert_eq!(drops(&events), [(3, DropReason::Policed), (5, DropReason::Policed)]);
}

fn modem(escapes: f64, compression: f64, bits_per_byte: u8, retrain: Option<RetrainConfig>) -> RateConfig {
    let rate = BitsPerSecond(26_400);
    RateConfig::Modem(ModemConfig { rate, bits_per_byte, escapes: Ratio(escapes), compression, retrain })
}

#[test]
fn a_modem_pays_for_escapes_and_start_bits_and_gains_by_compression() {
    let last = |rate| *times(&run(line(rate), [0; 1_000])).last().unwrap();
    let plain = 1_500.0 * 8.0 * 1_000.0 * 1e9 / 26_400.0;
    let close = |at: u64, ratio: f64| assert!((at as f64 / plain / ratio - 1.0).abs() < 1e-6, "{at} {ratio}");
    close(last(modem(0.0, 1.0, 8, None)), 1.0);
    close(last(modem(0.0, 1.0, 10, None)), 1.25);
    close(last(modem(34.0 / 256.0, 1.0, 8, None)), 1.0 + 34.0 / 256.0);
    close(last(modem(0.0, 2.5, 8, None)), 0.4);
}

#[test]
fn a_modem_that_trains_again_sends_nothing_meanwhile_and_loses_nothing() {
    let retrain = RetrainConfig { every: Duration::from_secs(60), lasts: Duration::from_secs(10) };
    let count = 5_000;
    let with = times(&run(line(modem(0.0, 1.0, 8, Some(retrain))), vec![0; count]));
    let without = times(&run(line(modem(0.0, 1.0, 8, None)), vec![0; count]));
    assert_eq!(with.len(), count);
    let mut late = 0;
    for (with, without) in with.iter().zip(&without) {
        let now_late = with - without;
        assert!(now_late >= late && (now_late - late).is_multiple_of(10_000 * MS), "pauses last what they last");
        late = now_late;
    }
    let pauses = late / (10_000 * MS);
    let expected = without[count - 1] as f64 / 60e9;
    assert!((pauses as f64 - expected).abs() < 4.0 * expected.sqrt(), "{pauses} pauses, {expected} expected");
}

fn jitter(distribution: Distribution, correlation: f64, reorder: bool) -> Vec<StageConfig> {
    vec![StageConfig::Jitter(JitterConfig { distribution, correlation: Ratio(correlation), reorder })]
}

/// The delays of packets that are a second apart, in milliseconds.
fn delays(stages: Vec<StageConfig>, count: u64) -> Vec<f64> {
    let mut delays = vec![0.0; count as usize];
    for (number, at) in deliveries(&run(stages, (0..count).map(|number| number * 1_000 * MS))) {
        delays[number as usize] = (at - number * 1_000 * MS) as f64 / 1e6;
    }
    delays
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

#[test]
fn delays_have_the_moments_of_their_distribution() {
    let count = 100_000;
    let close = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 0.02, "{value}, not {expected}");
    for correlation in [0.0, 0.5] {
        let uniform = delays(jitter(Distribution::Uniform { min: ms(10), max: ms(30) }, correlation, true), count);
        close(mean(&uniform), 20.0);
        close(deviation(&uniform), 20.0 / 12_f64.sqrt());
        assert!(uniform.iter().all(|delay| (10.0..=30.0).contains(delay)));
        let normal = delays(jitter(Distribution::Normal { mean: ms(50), deviation: ms(5) }, correlation, true), count);
        close(mean(&normal), 50.0);
        close(deviation(&normal), 5.0);
        let pareto = Distribution::Pareto { scale: ms(10), shape: 5.0, max: ms(1_000) };
        let pareto = delays(jitter(pareto, correlation, true), count);
        close(mean(&pareto), 10.0 * 5.0 / 4.0);
        assert!(pareto.iter().all(|delay| (10.0..=1_000.0).contains(delay)));
    }
}

#[test]
fn neighbours_are_as_correlated_as_asked() {
    for correlation in [0.0, 0.3, 0.9] {
        let distribution = Distribution::Normal { mean: ms(100), deviation: ms(10) };
        let delays = delays(jitter(distribution, correlation, true), 100_000);
        let (mean, deviation) = (mean(&delays), deviation(&delays));
        let products: f64 = delays.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
        let measured = products / delays.len() as f64 / deviation.powi(2);
        assert!((measured - correlation).abs() < 0.02, "{measured}, not {correlation}");
    }
}

#[test]
fn jitter_reorders_only_if_it_may() {
    let distribution = Distribution::Uniform { min: ms(0), max: ms(10) };
    let order = |reorder| -> Vec<u64> {
        let events = run(jitter(distribution, 0.0, reorder), (0..1_000).map(|number| number * MS));
        deliveries(&events).into_iter().map(|(number, _)| number).collect()
    };
    assert!(order(false).is_sorted());
    assert!(!order(true).is_sorted());
    let mut sorted = order(true);
    sorted.sort_unstable();
    assert_eq!(sorted, (0..1_000).collect::<Vec<_>>());
}

#[test]
fn held_back_packets_are_overtaken_by_those_sent_meanwhile() {
    let events = run(vec![StageConfig::Reorder { probability: Ratio(0.1), by: ms(3) }], (0..10_000).map(|n| n * MS));
    let out = deliveries(&events);
    assert_eq!(out.len(), 10_000);
    let late = out.iter().filter(|(number, at)| *at == number * MS + 3 * MS).count();
    let in_time = out.iter().filter(|(number, at)| *at == number * MS).count();
    assert_eq!(late + in_time, 10_000);
    assert!((900..1_100).contains(&late), "{late}");
    // One that is held back arrives together with the one sent three milliseconds later, and was there before it.
    assert!(out.is_sorted_by_key(|(_, at)| *at));
}

#[test]
fn duplicates_follow_at_once_and_are_counted() {
    let mut doubling = pipe(vec![StageConfig::Duplicate { probability: Ratio(0.25) }, queue(12_000_000, UNBOUNDED)]);
    (0..1_000).for_each(|number| doubling.push(Time(0), Packet::new(1_500, number)));
    let out = deliveries(&all(&mut doubling));
    let stats = doubling.stats();
    assert_eq!(out.len() as u64, 1_000 + stats.duplicated);
    assert!((200..300).contains(&stats.duplicated), "{}", stats.duplicated);
    assert!(out.is_sorted_by_key(|(number, _)| *number));
    assert_eq!(out.last().map(|last| last.1), Some(out.len() as u64 * MS));
}

#[test]
fn corruption_is_noticed_by_a_checksum_or_marked() {
    let corrupt = |detected| vec![StageConfig::Corrupt { probability: Ratio(0.2), detected }];
    let noticed = run(corrupt(true), 0..1_000);
    let marked = run(corrupt(false), 0..1_000);
    let gone: Vec<u64> = drops(&noticed).into_iter().map(|(number, _)| number).collect();
    let flipped: Vec<u64> =
        marked.iter().map(Event::packet).filter(|packet| packet.corrupted).map(|packet| packet.payload).collect();
    assert_eq!(gone, flipped);
    assert!((150..250).contains(&gone.len()), "{}", gone.len());
}

#[test]
fn of_four_acknowledgements_the_last_goes_on_and_none_waits_too_long() {
    let thinning = ThinningConfig { every: 4, hold: ms(10) };
    let mut thin = pipe(vec![StageConfig::Thinning(thinning)]);
    let ack = |number| Packet { pure_ack: true, flow: 1, ..Packet::new(52, number) };
    (0..6).for_each(|number| thin.push(Time(number * MS), ack(number)));
    // Data of the same flow drives what is held before it; other flows don't.
    thin.push(Time(20 * MS), ack(6));
    thin.push(Time(21 * MS), Packet { flow: 2, ..Packet::new(1_500, 7) });
    thin.push(Time(22 * MS), Packet { flow: 1, ..Packet::new(1_500, 8) });
    let events = all(&mut thin);
    assert_eq!(deliveries(&events), [(3, 3 * MS), (5, 14 * MS), (7, 21 * MS), (6, 22 * MS), (8, 22 * MS)]);
    assert_eq!(drops(&events), [0, 1, 2, 4].map(|number| (number, DropReason::Thinned)));
}

fn radio() -> AirtimeConfig {
    AirtimeConfig {
        framing: WireLen::IP,
        rate: BitsPerSecond(120_000_000),
        access: ms(1),
        backoff: Duration::ZERO,
        slot: None,
        max_packets: 8,
        max_bytes: Bytes(1 << 20),
        failure: Ratio(0.0),
        max_retries: 7,
        retry_after: Duration::ZERO,
        bound: packets(1_000),
    }
}

#[test]
fn a_radio_sends_what_waits_in_one_piece() {
    // A packet takes 100 µs, an access a millisecond. What comes while the first access is sought goes along.
    let arrivals = [0, 500_000, 1_050_000, 1_050_000].into_iter().chain([10 * MS; 10]);
    let events = run(vec![StageConfig::Airtime(radio())], arrivals);
    let (first, second) = (1_200_000, 2_400_000);
    let mut expected = vec![first, first, second, second];
    expected.extend([11_800_000; 8]);
    expected.extend([13 * MS; 2]);
    assert_eq!(times(&events), expected);
}

#[test]
fn a_radio_carries_more_the_more_it_may_send_at_once() {
    let goodput = |max_packets| {
        let events = run(vec![StageConfig::Airtime(AirtimeConfig { max_packets, ..radio() })], vec![0; 640]);
        640.0 * 12_000.0 / (*times(&events).last().unwrap() as f64 / 1e9)
    };
    for max_packets in [1, 8, 64] {
        let expected = 12_000.0 * f64::from(max_packets) / (0.001 + 0.000_1 * f64::from(max_packets));
        assert!((goodput(max_packets) / expected - 1.0).abs() < 1e-6);
    }
}

#[test]
fn a_radio_repeats_what_fails_keeps_the_order_and_gives_up_in_the_end() {
    let radio = AirtimeConfig { failure: Ratio(0.3), max_retries: 2, retry_after: ms(8), slot: Some(ms(1)), ..radio() };
    let radio = AirtimeConfig { max_packets: 256, bound: UNBOUNDED, ..radio };
    let events = run(vec![StageConfig::Airtime(radio)], (0..20_000).map(|number| number * 500_000));
    assert!(deliveries(&events).is_sorted_by_key(|(number, _)| *number));
    let gone = drops(&events);
    assert!(gone.iter().all(|(_, reason)| *reason == DropReason::Retries));
    let (expected, deviation) = (20_000.0 * 0.027, (20_000.0_f64 * 0.027 * 0.973).sqrt());
    assert!((gone.len() as f64 - expected).abs() < 4.0 * deviation, "{}", gone.len());
}

/// LTE's uplink: 15 Mbit/s are 1875 bytes of each subframe, a packet and a quarter.
fn uplink(failure: f64, max_retries: u8) -> AirtimeConfig {
    AirtimeConfig {
        rate: BitsPerSecond(15_000_000),
        access: Duration::ZERO,
        slot: Some(ms(1)),
        max_packets: 256,
        max_bytes: Bytes(1_875),
        failure: Ratio(failure),
        max_retries,
        retry_after: ms(8),
        bound: UNBOUNDED,
        ..radio()
    }
}

#[test]
fn a_slot_carries_the_head_of_the_next_packet_which_arrives_with_its_last_byte() {
    // Law: of five packets four slots are full; each arrives at the end of the slot in which its last byte is.
    let events = run(vec![StageConfig::Airtime(uplink(0.0, 3))], vec![0; 10]);
    let full = [1, 2, 3, 4, 4].map(|slot| slot * MS);
    assert_eq!(times(&events), [full, full.map(|at| at + 4 * MS)].concat());
    // One that is longer than a slot takes several.
    let short = AirtimeConfig { max_bytes: Bytes(700), ..uplink(0.0, 3) };
    let third = 2 * MS + (100 * 8 * 1_000_u64).div_ceil(15);
    assert_eq!(times(&run(vec![StageConfig::Airtime(short.clone())], vec![0])), [third]);
    // Without slots packets stay whole, and one always goes.
    let whole = AirtimeConfig { slot: None, ..short };
    assert_eq!(times(&run(vec![StageConfig::Airtime(whole)], vec![0, 0])), [800_000, 1_600_000]);
}

#[test]
fn a_packet_whose_head_failed_arrives_once_its_head_was_repeated() {
    let events = run(vec![StageConfig::Airtime(uplink(0.1, 7))], vec![0; 20_000]);
    let delivered = deliveries(&events);
    assert!(delivered.iter().map(|(number, _)| *number).eq(0..20_000), "each once, in order");
    // Law: a tenth of what is sent is sent again, and no slot stays empty but the last few.
    let ideal = 20_000.0 * 1_500.0 * 8.0 / 15e6 / 0.9;
    let took = delivered[19_999].1 as f64 / 1e9;
    assert!((took / ideal - 1.0).abs() < 0.02, "{took} s, not {ideal} s");
    // One that is given up holds back nothing of the others.
    let events = run(vec![StageConfig::Airtime(uplink(0.3, 0))], vec![0; 20_000]);
    let gone = drops(&events).len() as f64;
    assert!((0.3..0.51).contains(&(gone / 20_000.0)), "in one piece or in two: {gone}");
    assert_eq!(deliveries(&events).len() + drops(&events).len(), 20_000);
}

#[test]
fn a_stage_counts_what_it_does() {
    let config = QueueConfig::drop_tail(BitsPerSecond(12_000_000), 2);
    let mut counted = pipe(vec![StageConfig::Mtu { mtu: Bytes(1_500) }, StageConfig::Queue(config)]);
    counted.push(Time(0), Packet::new(2_000, 0));
    (1..5).for_each(|number| counted.push(Time(0), Packet::new(1_000, number)));
    let stats = counted.stats();
    assert_eq!((stats.pushed, stats.held, stats.delivered, stats.dropped), (5, 5, 0, 0));
    assert_eq!((stats.stages[0].entered, stats.stages[0].dropped, stats.stages[0].bytes), (5, 1, 6_000));
    assert_eq!((stats.stages[1].entered, stats.stages[1].dropped), (4, 2));
    assert_eq!((stats.stages[1].queue_packets, stats.stages[1].queue_bytes), (2, 2_000));
    all(&mut counted);
    let stats = counted.stats();
    assert_eq!((stats.held, stats.delivered, stats.dropped), (0, 2, 3));
    assert_eq!((stats.stages[1].queue_packets, stats.stages[1].max_queue_bytes), (0, 2_000));
}

#[test]
fn the_next_packets_with_data_are_lost_from_a_time_on() {
    let mut pipe = pipe(vec![StageConfig::Loss(LossConfig::Next { from: ms(5), packets: 3 })]);
    for number in 0..12_u64 {
        let mut packet = Packet::new(1500, number);
        // Every other one is an acknowledgement.
        packet.data_len = if number % 2 == 0 { 1448 } else { 0 };
        pipe.push(Time(number * 1_000_000), packet);
    }
    let lost: Vec<u64> = drops(&all(&mut pipe)).into_iter().map(|(number, _)| number).collect();
    assert_eq!(lost, [6, 8, 10]);
}

#[test]
fn a_delay_that_changes_holds_from_its_time_on_and_keeps_order() {
    let steps = vec![(ms(10), ms(50)), (ms(20), ms(2))];
    let mut pipe = pipe(vec![StageConfig::DelaySteps { steps }]);
    for (number, at) in [0, 9, 10, 19, 20, 30, 80].into_iter().enumerate() {
        pipe.push(Time(at * 1_000_000), Packet::new(1500, number as u64));
    }
    let out: Vec<(u64, u64)> = deliveries(&all(&mut pipe)).into_iter().map(|(n, at)| (n, at / 1_000_000)).collect();
    // The fifth and the sixth wait for the fourth, which left at 69 ms.
    assert_eq!(out, [(0, 0), (1, 9), (2, 60), (3, 69), (4, 69), (5, 69), (6, 82)]);
}
