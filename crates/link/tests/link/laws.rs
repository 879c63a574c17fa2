//! The laws of the emulator: what theory says of a line, a queue and a delay, asserted to the nanosecond and the byte.

use crate::common::{UNBOUNDED, all, deliveries, drops, packets, pipe, queue, queue_of, run, seeded};
use std::time::Duration;
use wt_link::{
    Discipline, DropReason, Event, LossConfig, OutageConfig, Packet, QueueBound, QueueConfig, QueueLayer, RateConfig,
    StageConfig, Time, WireLen,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};

fn framed(rate: u64, framing: WireLen, bound: QueueBound) -> StageConfig {
    let rate = RateConfig::Constant(BitsPerSecond(rate));
    StageConfig::Queue(QueueConfig { framing, rate, bound, discipline: Discipline::DropTail })
}

fn lost(loss: LossConfig, count: u64) -> u64 {
    let mut lossy = pipe(vec![StageConfig::Loss(loss)]);
    for number in 0..count {
        lossy.push(Time(number), Packet { data_len: 1_448, ..Packet::new(1_500, number) });
    }
    drops(&all(&mut lossy)).len() as u64
}

/// Within four standard deviations of the binomial, which one run in 16 000 misses; the seeds are fixed.
fn assert_binomial(hits: u64, of: u64, probability: f64) {
    let (mean, deviation) = (of as f64 * probability, (of as f64 * probability * (1.0 - probability)).sqrt());
    assert!((hits as f64 - mean).abs() < 4.0 * deviation, "{hits} of {of} at {probability}");
}

#[test]
fn departures_follow_the_rate_exactly_for_hours_and_for_millions_of_packets() {
    // 1500 bytes at these rates are no whole number of nanoseconds.
    for rate in [26_400, 1_000_003, 8_448_000, 999_999_937, 99_999_999_977] {
        let mut line = pipe(vec![queue(rate, UNBOUNDED)]);
        let in_hours = u128::from(rate) * 3 * 3_600 / 12_000;
        let count = in_hours.min(400_000) as u64;
        for number in 0..count {
            line.push(Time(5), Packet::new(1_500, number));
        }
        let exact = |number: u64| 5 + (u128::from(number + 1) * 12_000 * 1_000_000_000).div_ceil(u128::from(rate));
        for (number, at) in deliveries(&all(&mut line)) {
            assert_eq!(u128::from(at), exact(number), "packet {number} at {rate} bit/s");
        }
    }
}

#[test]
fn mixed_lengths_keep_the_remainder_too() {
    let rate = 7_654_321_u64;
    let mut line = pipe(vec![queue(rate, UNBOUNDED)]);
    let mut bits = 0_u128;
    let mut exact = Vec::new();
    for number in 0..50_000_u64 {
        let len = 40 + (number * 7_919 % 1_461) as u32;
        line.push(Time(0), Packet::new(len, number));
        bits += u128::from(len) * 8;
        exact.push((number, (bits * 1_000_000_000).div_ceil(u128::from(rate)) as u64));
    }
    assert_eq!(deliveries(&all(&mut line)), exact);
}

#[test]
fn two_lines_of_the_same_rate_in_a_row_add_one_packet_time_and_at_most_a_nanosecond() {
    let rate = 999_999_937;
    let one = deliveries(&run(vec![queue(rate, UNBOUNDED)], vec![0; 10_000]));
    let two = deliveries(&run(vec![queue(rate, UNBOUNDED), queue(rate, UNBOUNDED)], vec![0; 10_000]));
    for ((_, first), (_, second)) in one.iter().zip(&two) {
        assert!((first + 12_000..=first + 12_002).contains(second), "{first} {second}");
    }
}

#[test]
fn a_late_poll_shifts_no_departure() {
    let delay = StageConfig::Delay { delay: Duration::from_millis(5) };
    let mut line = pipe(vec![queue(10_000_000, UNBOUNDED), delay]);
    line.push(Time(0), Packet::new(1_500, 0));
    assert_eq!(line.poll(Time::from_micros(6_199)), None);
    line.push(Time::from_millis(10), Packet::new(1_500, 1));
    assert_eq!(deliveries(&all(&mut line)), [(0, 6_200_000), (1, 16_200_000)]);
}

#[test]
fn a_full_queue_drops_who_arrives_and_counts_the_packet_being_sent() {
    let mut line = pipe(vec![queue(12_000_000, packets(3))]);
    for number in 0..5 {
        line.push(Time(0), Packet::new(1_500, number));
    }
    // One millisecond later the first one is out.
    line.push(Time::from_millis(1), Packet::new(1_500, 5));
    line.push(Time::from_millis(1), Packet::new(1_500, 6));
    let events = all(&mut line);
    assert_eq!(deliveries(&events).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 5]);
    assert_eq!(drops(&events), [3, 4, 6].map(|number| (number, DropReason::QueueFull)));
    assert_eq!(line.stats().stages[0].max_queue_packets, 3);
}

#[test]
fn a_queue_counts_bytes_at_the_layer_it_says() {
    let held = |counted| {
        let bound = QueueBound { packets: None, bytes: Some(Bytes(10_600)), counted };
        let mut line = pipe(vec![framed(1_000_000, WireLen::Atm { add: 8 }, bound)]);
        (0..100).for_each(|number| line.push(Time(0), Packet::new(1_000, number)));
        deliveries(&all(&mut line)).len()
    };
    assert_eq!(held(QueueLayer::IpLen), 10);
    // 1008 bytes fill 21 cells, 1113 bytes.
    assert_eq!(held(QueueLayer::WireLen), 9);
}

#[test]
fn a_packet_longer_than_the_queue_never_fits() {
    let bound = QueueBound { bytes: Some(Bytes(1_499)), ..UNBOUNDED };
    assert_eq!(drops(&run(vec![queue(1_000_000, bound)], [0])), [(0, DropReason::QueueFull)]);
}

#[test]
fn cells_are_counted_to_the_byte() {
    for ip_len in 1..=3_000 {
        let mut line = pipe(vec![framed(8_000_000_000, WireLen::Atm { add: 40 }, UNBOUNDED)]);
        line.push(Time(0), Packet::new(ip_len, 0));
        let cells = u64::from(ip_len + 40).div_ceil(48);
        // One byte takes one nanosecond.
        assert_eq!(deliveries(&all(&mut line)), [(0, cells * 53)]);
    }
}

#[test]
fn one_bdp_in_flight_saturates_and_half_of_it_gives_half_the_rate() {
    // 12 Mbit/s: a packet a millisecond; with 20 ms to the other end and 20 ms for the answer, and the millisecond itself.
    let round_trip_ms = 41;
    let goodput = |window: u64| {
        let delay = StageConfig::Delay { delay: Duration::from_millis(20) };
        let mut line = pipe(vec![queue(12_000_000, packets(1_000)), delay]);
        (0..window).for_each(|number| line.push(Time(0), Packet::new(1_500, number)));
        let mut delivered = 0;
        // Each arrival is answered by one new packet 20 ms later.
        while let Some(due) = line.next_due().filter(|due| *due <= Time::from_secs(10)) {
            if let Some(Event::Deliver { at, packet }) = line.poll(due) {
                delivered += 1;
                line.push(at + Duration::from_millis(20), packet);
            }
        }
        delivered as f64 / (10_000.0 - 21.0)
    };
    assert!(goodput(round_trip_ms) > 0.999);
    assert!(goodput(10 * round_trip_ms) > 0.999 && goodput(10 * round_trip_ms) < 1.001);
    let half = goodput(round_trip_ms / 2) * 41.0 / 20.0;
    assert!((0.99..1.01).contains(&half), "{half}");
}

#[test]
fn a_saturated_line_carries_its_rate_in_every_window() {
    let rate = 10_000_000;
    let times = deliveries(&run(vec![queue(rate, packets(50))], (0..200_000).map(|number| number * 1_000_000)));
    let bin = 100_000_000;
    // Every 100 ms of 200 s, the last left out: 83 or 84 packets.
    for window in 0..1_990 {
        let inside = times.iter().filter(|(_, at)| at / bin == window).count();
        assert!((83..=84).contains(&inside), "{inside} packets in window {window}");
    }
}

#[test]
fn losses_lie_within_the_binomial_interval() {
    for probability in [0.000_1, 0.03, 0.5] {
        let loss = LossConfig::Bernoulli { probability: Ratio(probability) };
        assert_binomial(lost(loss, 400_000), 400_000, probability);
        let loss = LossConfig::ByDataIndex { probability: Ratio(probability) };
        assert_binomial(lost(loss, 400_000), 400_000, probability);
    }
}

#[test]
fn certain_and_impossible_losses_are_just_that() {
    for (probability, expected) in [(0.0, 0), (1.0, 1_000)] {
        assert_eq!(lost(LossConfig::Bernoulli { probability: Ratio(probability) }, 1_000), expected);
        assert_eq!(lost(LossConfig::ByDataIndex { probability: Ratio(probability) }, 1_000), expected);
    }
}

#[test]
fn bursts_of_loss_have_the_length_and_the_share_that_theory_gives() {
    let (to_bad, to_good) = (0.01, 0.2);
    let loss = LossConfig::GilbertElliott {
        to_bad: Ratio(to_bad),
        to_good: Ratio(to_good),
        loss_good: Ratio(0.0),
        loss_bad: Ratio(1.0),
    };
    let count = 1_000_000;
    let mut lossy = pipe(vec![StageConfig::Loss(loss)]);
    (0..count).for_each(|number| lossy.push(Time(number), Packet::new(1_500, number)));
    let gone: Vec<u64> = drops(&all(&mut lossy)).into_iter().map(|(number, _)| number).collect();
    let spells = 1 + gone.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let (share, length) = (gone.len() as f64 / count as f64, gone.len() as f64 / spells as f64);
    assert!((share / (to_bad / (to_bad + to_good)) - 1.0).abs() < 0.05, "{share}");
    assert!((length * to_good - 1.0).abs() < 0.05, "{length}");
}

#[test]
fn every_nth_is_every_nth() {
    let stages = vec![StageConfig::Loss(LossConfig::EveryNth { n: 3 })];
    let gone: Vec<u64> = drops(&run(stages, 0..10)).into_iter().map(|(number, _)| number).collect();
    assert_eq!(gone, [2, 5, 8]);
}

#[test]
fn packets_of_certain_numbers_are_lost_of_each_connection_anew() {
    let mut lossy = pipe(vec![StageConfig::Loss(LossConfig::Numbered { packets: vec![1, 4] })]);
    let mut number = 0;
    let mut push = |syn: bool, data_len: u32| {
        lossy.push(Time(number), Packet { data_len, syn, ..Packet::new(52 + data_len, number) });
        number += 1;
    };
    for _ in 0..2 {
        push(true, 0);
        push(false, 0);
        (0..6).for_each(|_| push(false, 1_448));
        push(false, 0);
    }
    let gone: Vec<u64> = drops(&all(&mut lossy)).into_iter().map(|(number, _)| number).collect();
    assert_eq!(gone, [2, 5, 11, 14]);
}

#[test]
fn long_packets_are_lost_at_their_own_rate() {
    let loss = LossConfig::BySize { above: Bytes(512), long: Ratio(0.35), short: Ratio(0.04) };
    let mut lossy = pipe(vec![StageConfig::Loss(loss)]);
    let lengths = [100, 512, 513, 1_500];
    for number in 0..400_000_u64 {
        lossy.push(Time(number), Packet::new(lengths[(number % 4) as usize], number));
    }
    let gone = drops(&all(&mut lossy));
    for (index, probability) in [0.04, 0.04, 0.35, 0.35].into_iter().enumerate() {
        let hits = gone.iter().filter(|(number, _)| number % 4 == index as u64).count();
        assert_binomial(hits as u64, 100_000, probability);
    }
}

#[test]
fn which_data_packets_are_lost_depends_on_the_seed_and_the_index_alone() {
    let stages = || vec![StageConfig::Loss(LossConfig::ByDataIndex { probability: Ratio(0.1) })];
    let gone = |seed: u64, acks_between: u64, spacing: u64| {
        let mut lossy = seeded(stages(), seed);
        for number in 0..1_000 {
            let at = Time(number * spacing);
            (0..acks_between).for_each(|_| lossy.push(at, Packet::new(52, u64::MAX)));
            lossy.push(at, Packet { data_len: 1 + number as u32, ..Packet::new(1_500, number) });
        }
        drops(&all(&mut lossy)).into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(gone(1, 0, 1), gone(1, 3, 77_777));
    assert_ne!(gone(1, 0, 1), gone(2, 0, 1));
    assert!(!gone(1, 3, 1).contains(&u64::MAX), "packets without data always pass");
}

#[test]
fn outages_lose_what_arrives_from_their_beginning_to_before_their_end() {
    let ms = Duration::from_millis;
    let outages = |period| StageConfig::Outages(OutageConfig { windows: vec![(ms(1), ms(2)), (ms(5), ms(6))], period });
    let times = || (0..24).map(|half_ms| half_ms * 500_000);
    let gone = |period| drops(&run(vec![outages(period)], times())).iter().map(|drop| drop.0).collect::<Vec<_>>();
    assert_eq!(gone(None), [2, 3, 10, 11]);
    assert_eq!(gone(Some(ms(8))), [2, 3, 10, 11, 18, 19]);
}

#[test]
fn an_extra_draw_in_one_stage_shifts_no_other() {
    let loss = |probability| StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(probability) });
    let corrupt = |probability| StageConfig::Corrupt { probability: Ratio(probability), detected: false };
    let gone = |first| drops(&run(vec![first, loss(0.05)], 0..10_000));
    // A stage that never draws, and one that draws for every packet, in front of the same loss.
    assert_eq!(gone(corrupt(0.0)), gone(corrupt(0.5)));
    // Two stages alike lose different packets.
    let (one, both) = (drops(&run(vec![loss(0.05)], 0..10_000)), drops(&run(vec![loss(0.05), loss(0.05)], 0..10_000)));
    assert!(both.len() > one.len() * 18 / 10);
}

#[test]
fn a_hop_of_a_smaller_mtu_says_how_small() {
    let mut hop = pipe(vec![StageConfig::Mtu { mtu: Bytes(1_400) }]);
    hop.push(Time(3), Packet::new(1_400, 0));
    hop.push(Time(3), Packet::new(1_401, 1));
    let events = all(&mut hop);
    assert_eq!(deliveries(&events), [(0, 3)]);
    assert_eq!(drops(&events), [(1, DropReason::TooBig { mtu: 1_400 })]);
}

#[test]
fn delays_add_up_and_an_hour_is_a_delay() {
    let delay = |nanos| StageConfig::Delay { delay: Duration::from_nanos(nanos) };
    let hour = 3_600_000_000_000;
    let stages = vec![delay(1), delay(hour), delay(0)];
    assert_eq!(deliveries(&run(stages, [0, 0, 7])), [(0, hour + 1), (1, hour + 1), (2, hour + 8)]);
}

#[test]
fn queues_of_each_discipline_are_work_conserving_below_their_thresholds() {
    // A load of nine tenths in bursts of three: nothing is dropped, and the last bits are out when a plain queue's are.
    let times = || (0..3_000).map(|number| number / 3 * 3_333_333);
    let rate = || RateConfig::Constant(BitsPerSecond(12_000_000));
    let plain = run(vec![queue_of(rate(), packets(100), Discipline::DropTail)], times());
    let disciplines = [
        Discipline::Red(wt_link::RedConfig::between(5, 15)),
        Discipline::CoDel(Default::default()),
        Discipline::FqCoDel(Default::default()),
        Discipline::Pie(Default::default()),
    ];
    for discipline in disciplines {
        let events = run(vec![queue_of(rate(), packets(100), discipline)], times());
        assert_eq!(deliveries(&events), deliveries(&plain), "{discipline:?}");
    }
}
