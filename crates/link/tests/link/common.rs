//! What the tests share: pipes from stages, and what came out of them.

use wt_link::{
    Discipline, DropReason, Event, Packet, Pipe, PipeConfig, QueueBound, QueueConfig, QueueLayer, RateConfig,
    StageConfig, Time, WireLen,
};
use wt_units::BitsPerSecond;

/// No bound at all.
pub(crate) const UNBOUNDED: QueueBound = QueueBound { packets: None, bytes: None, counted: QueueLayer::IpLen };

/// A bound in packets.
pub(crate) const fn packets(packets: u32) -> QueueBound {
    QueueBound { packets: Some(packets), ..UNBOUNDED }
}

/// A pipe of these stages.
pub(crate) fn pipe(stages: Vec<StageConfig>) -> Pipe<u64> {
    seeded(stages, 7)
}

/// A pipe of these stages with this seed.
pub(crate) fn seeded(stages: Vec<StageConfig>, seed: u64) -> Pipe<u64> {
    Pipe::new(&PipeConfig { stages }, seed).expect("the stages of a test are valid")
}

/// A queue of this rate and discipline.
pub(crate) fn queue_of(rate: RateConfig, bound: QueueBound, discipline: Discipline) -> StageConfig {
    StageConfig::Queue(QueueConfig { framing: WireLen::IP, rate, bound, discipline })
}

/// A drop-tail queue in front of a constant rate.
pub(crate) fn queue(rate: u64, bound: QueueBound) -> StageConfig {
    queue_of(RateConfig::Constant(BitsPerSecond(rate)), bound, Discipline::DropTail)
}

/// Everything that ever comes out.
pub(crate) fn all(pipe: &mut Pipe<u64>) -> Vec<Event<u64>> {
    std::iter::from_fn(|| pipe.poll(Time::MAX)).collect()
}

/// The payload and time of each delivery.
pub(crate) fn deliveries(events: &[Event<u64>]) -> Vec<(u64, u64)> {
    let delivered = |event: &Event<u64>| match event {
        Event::Deliver { at, packet } => Some((packet.payload, at.0)),
        Event::Drop { .. } => None,
    };
    events.iter().filter_map(delivered).collect()
}

/// The payload and reason of each drop.
pub(crate) fn drops(events: &[Event<u64>]) -> Vec<(u64, DropReason)> {
    let dropped = |event: &Event<u64>| match event {
        Event::Drop { reason, packet, .. } => Some((packet.payload, *reason)),
        Event::Deliver { .. } => None,
    };
    events.iter().filter_map(dropped).collect()
}

/// Pushes packets of 1500 bytes at these nanoseconds, numbered from zero, and gives everything that comes out.
pub(crate) fn run(stages: Vec<StageConfig>, times: impl IntoIterator<Item = u64>) -> Vec<Event<u64>> {
    let mut pipe = pipe(stages);
    for (number, at) in (0..).zip(times) {
        pipe.push(Time(at), Packet::new(1_500, number));
    }
    all(&mut pipe)
}
