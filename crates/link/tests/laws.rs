//! The laws of the emulator: what theory says of a line, a queue and a delay, asserted to the nanosecond and the byte.

use std::time::Duration;
use wt_link::{
    Counted, Discipline, DropReason, Event, LossConfig, Packet, Pipe, PipeConfig, QueueBound, QueueConfig, RateConfig,
    StageConfig, Time, WireLen,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};

fn pipe(stages: Vec<StageConfig>) -> Pipe<u64> {
    Pipe::new(&PipeConfig { stages }, 7).expect("the stages of a test are valid")
}

fn queue(rate: u64, framing: WireLen, bound: QueueBound) -> StageConfig {
    let rate = RateConfig::Constant(BitsPerSecond(rate));
    StageConfig::Queue(QueueConfig { framing, rate, bound, discipline: Discipline::DropTail })
}

const UNBOUNDED: QueueBound = QueueBound { packets: None, bytes: None, counted: Counted::IpLen };

fn all(pipe: &mut Pipe<u64>) -> Vec<Event<u64>> {
    std::iter::from_fn(|| pipe.poll(Time::MAX)).collect()
}

fn deliveries(events: &[Event<u64>]) -> Vec<(u64, u64)> {
    let delivered = |event: &Event<u64>| match event {
        Event::Deliver { at, packet } => Some((packet.payload, at.0)),
        Event::Drop { .. } => None,
    };
    events.iter().filter_map(delivered).collect()
}

#[test]
fn departures_follow_the_rate_exactly_after_hours_of_any_rate() {
    // 1500 bytes at these rates are no whole number of nanoseconds.
    for rate in [26_400, 1_000_003, 8_448_000, 999_999_937, 99_999_999_977] {
        let mut line = pipe(vec![queue(rate, WireLen::IP, UNBOUNDED)]);
        let in_hours = u128::from(rate) * 3 * 3_600 / 12_000;
        let count = in_hours.min(1_000_000) as u64;
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
fn a_late_poll_shifts_no_departure() {
    let mut line =
        pipe(vec![queue(10_000_000, WireLen::IP, UNBOUNDED), StageConfig::Delay { delay: Duration::from_millis(5) }]);
    line.push(Time(0), Packet::new(1_500, 0));
    assert_eq!(line.poll(Time::from_micros(6_199)), None);
    line.push(Time::from_millis(10), Packet::new(1_500, 1));
    assert_eq!(deliveries(&all(&mut line)), [(0, 6_200_000), (1, 16_200_000)]);
}

#[test]
fn a_full_queue_drops_who_arrives_and_counts_the_packet_being_sent() {
    let bound = QueueBound { packets: Some(3), ..UNBOUNDED };
    let mut line = pipe(vec![queue(12_000_000, WireLen::IP, bound)]);
    for number in 0..5 {
        line.push(Time(0), Packet::new(1_500, number));
    }
    // One millisecond later the first one is out.
    line.push(Time::from_millis(1), Packet::new(1_500, 5));
    line.push(Time::from_millis(1), Packet::new(1_500, 6));
    let events = all(&mut line);
    assert_eq!(deliveries(&events).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 5]);
    let full = |event: &&Event<u64>| matches!(event, Event::Drop { reason: DropReason::QueueFull, .. });
    assert_eq!(events.iter().filter(full).count(), 3);
    assert_eq!(line.stats().stages[0].max_queue_packets, 3);
}

#[test]
fn a_queue_counts_bytes_at_the_layer_it_says() {
    let held = |counted| {
        let bound = QueueBound { packets: None, bytes: Some(Bytes(10_600)), counted };
        let mut line = pipe(vec![queue(1_000_000, WireLen::Atm { add: 8 }, bound)]);
        (0..100).for_each(|number| line.push(Time(0), Packet::new(1_000, number)));
        deliveries(&all(&mut line)).len()
    };
    assert_eq!(held(Counted::IpLen), 10);
    // 1008 bytes fill 21 cells, 1113 bytes.
    assert_eq!(held(Counted::WireLen), 9);
}

#[test]
fn cells_are_counted_to_the_byte() {
    for ip_len in 1..=3_000 {
        let framing = WireLen::Atm { add: 40 };
        let mut line = pipe(vec![queue(8_000_000_000, framing, UNBOUNDED)]);
        line.push(Time(0), Packet::new(ip_len, 0));
        let cells = u64::from(ip_len + 40).div_ceil(48);
        // One byte takes one nanosecond.
        assert_eq!(deliveries(&all(&mut line)), [(0, cells * 53)]);
    }
}

#[test]
fn losses_lie_within_the_binomial_interval() {
    let (packets, probability) = (1_000_000_u64, 0.03);
    let mut lossy = pipe(vec![StageConfig::Loss(LossConfig::Bernoulli { probability: Ratio(probability) })]);
    (0..packets).for_each(|number| lossy.push(Time(number), Packet::new(1_500, number)));
    let lost = packets - deliveries(&all(&mut lossy)).len() as u64;
    let (mean, deviation) = (packets as f64 * probability, (packets as f64 * probability * (1.0 - probability)).sqrt());
    assert!((lost as f64 - mean).abs() < 4.0 * deviation, "{lost} lost");
}
