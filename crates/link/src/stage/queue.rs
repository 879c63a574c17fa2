use super::serialiser::Serialiser;
use crate::framing::Meter;
use crate::{Counted, DropReason, Packet, QueueBound, QueueConfig, RateConfig};
use std::collections::VecDeque;

/// A first-in first-out queue in front of a line. When a packet leaves is known when it arrives, so the packet itself
/// moves on at once; what stays is the pair of its departure and length, to know how full the queue is.
#[derive(Debug)]
pub(crate) struct FifoQueue {
    meter: Meter,
    line: Line,
    backlog: Backlog,
}

/// How fast the queue is emptied.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    Constant(Serialiser),
}

impl Line {
    pub(crate) fn new(config: &RateConfig) -> Self {
        match config {
            RateConfig::Constant(rate) => Self::Constant(Serialiser::new(rate.get())),
        }
    }

    /// When the last bit is out of a packet that is ready at `at`; never before an earlier packet's.
    pub(crate) fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        match self {
            Self::Constant(serialiser) => serialiser.finish(at, wire_len),
        }
    }
}

/// A [`QueueBound`] in numbers that compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    packets: usize,
    bytes: u64,
    counted: Counted,
}

impl Bound {
    pub(crate) fn new(bound: &QueueBound) -> Self {
        Self {
            packets: bound.packets.map_or(usize::MAX, |packets| packets as usize),
            bytes: bound.bytes.map_or(u64::MAX, wt_units::Bytes::get),
            counted: bound.counted,
        }
    }

    /// The length that counts.
    pub(crate) const fn len_of(self, ip_len: u32, wire_len: u32) -> u32 {
        match self.counted {
            Counted::IpLen => ip_len,
            Counted::WireLen => wire_len,
        }
    }

    /// Whether one more of this length fits to so many packets and bytes.
    pub(crate) const fn admits(self, packets: usize, bytes: u64, len: u32) -> bool {
        packets < self.packets && bytes.saturating_add(len as u64) <= self.bytes
    }
}

/// What is in a queue, at any moment from the last arrival on.
#[derive(Debug)]
pub(crate) struct Backlog {
    bound: Bound,
    inside: VecDeque<(u64, u32)>,
    bytes_inside: u64,
    /// The fullest it was: packets and bytes.
    pub(crate) fullest: (u64, u64),
}

impl Backlog {
    pub(crate) fn new(bound: &QueueBound) -> Self {
        Self { bound: Bound::new(bound), inside: VecDeque::new(), bytes_inside: 0, fullest: (0, 0) }
    }

    /// Forgets what has left by `now`.
    pub(crate) fn leave(&mut self, now: u64) {
        while let Some((departure, len)) = self.inside.front() {
            if *departure > now {
                break;
            }
            self.bytes_inside -= u64::from(*len);
            self.inside.pop_front();
        }
    }

    pub(crate) const fn bound(&self) -> Bound {
        self.bound
    }

    pub(crate) fn has_room(&self, len: u32) -> bool {
        self.bound.admits(self.inside.len(), self.bytes_inside, len)
    }

    pub(crate) fn enter(&mut self, departure: u64, len: u32) {
        self.inside.push_back((departure, len));
        self.bytes_inside += u64::from(len);
        self.fullest = (self.fullest.0.max(self.inside.len() as u64), self.fullest.1.max(self.bytes_inside));
    }

    /// Packets and bytes inside at `now`, which is not before the last arrival.
    pub(crate) fn at(&self, now: u64) -> (u64, u64) {
        let gone = self.inside.partition_point(|(departure, _)| *departure <= now);
        let bytes = self.inside.iter().skip(gone).map(|(_, len)| u64::from(*len)).sum();
        ((self.inside.len() - gone) as u64, bytes)
    }
}

impl FifoQueue {
    pub(crate) fn new(config: &QueueConfig) -> Self {
        Self { meter: Meter::new(config.framing), line: Line::new(&config.rate), backlog: Backlog::new(&config.bound) }
    }

    /// When the packet leaves, or why it doesn't.
    pub(crate) fn pass<P>(&mut self, at: u64, packet: &Packet<P>) -> Result<u64, DropReason> {
        self.backlog.leave(at);
        let wire_len = self.meter.wire_len(packet.ip_len);
        let len = self.backlog.bound().len_of(packet.ip_len, wire_len);
        if !self.backlog.has_room(len) {
            return Err(DropReason::QueueFull);
        }
        let departure = self.line.finish(at, wire_len);
        self.backlog.enter(departure, len);
        Ok(departure)
    }

    pub(crate) const fn backlog(&self) -> &Backlog {
        &self.backlog
    }
}
