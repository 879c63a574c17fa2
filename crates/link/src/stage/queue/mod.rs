//! Queues in front of a line.

mod codel;
mod fair;
mod pie;
mod red;

pub(crate) use fair::FairQueue;

use super::line::{Line, time_of};
use crate::dice::Dice;
use crate::framing::Meter;
use crate::{Discipline, DropReason, Packet, QueueBound, QueueConfig, QueueLayer, RateConfig};
use pie::Pie;
use red::Red;
use std::collections::VecDeque;

/// A typical packet, bytes: RED ages its average in idle times by so many packets as could have passed.
const TYPICAL_PACKET: u64 = 1_000;

/// A first-in first-out queue in front of a line. When a packet leaves is known when it arrives, so the packet itself
/// moves on at once; what stays is the pair of its departure and length, to know how full the queue is.
#[derive(Debug)]
pub(crate) struct FifoQueue {
    meter: Meter,
    line: Line,
    backlog: Backlog,
    entrance: Entrance,
}

/// Who decides at the entrance.
#[derive(Debug)]
enum Entrance {
    Open,
    Red(Box<Red>),
    Pie(Box<Pie>),
}

/// What an active queue management says to an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    None,
    Mark,
    Drop,
}

impl FifoQueue {
    pub(crate) fn new(config: &QueueConfig, dice: &mut Dice) -> Self {
        let entrance = match &config.discipline {
            Discipline::Red(red) => {
                Entrance::Red(Box::new(Red::new(*red, time_of(TYPICAL_PACKET, mean_rate(&config.rate)))))
            }
            Discipline::Pie(pie) => Entrance::Pie(Box::new(Pie::new(*pie))),
            Discipline::DropTail | Discipline::CoDel(_) | Discipline::FqCoDel(_) => Entrance::Open,
        };
        Self {
            meter: Meter::new(&config.framing),
            line: Line::new(&config.rate, dice),
            backlog: Backlog::new(&config.bound),
            entrance,
        }
    }

    /// When the packet leaves, or why it doesn't.
    #[inline]
    pub(crate) fn pass<P>(&mut self, at: u64, packet: &mut Packet<P>, dice: &mut Dice) -> Result<u64, DropReason> {
        self.backlog.leave(at);
        let wire_len = self.meter.wire_len(packet.ip_len);
        let len = self.backlog.bound.len_of(packet.ip_len, wire_len);
        let signal = match &mut self.entrance {
            Entrance::Open => Signal::None,
            Entrance::Red(red) => red.signal(at, &self.backlog, packet, dice),
            Entrance::Pie(pie) => pie.signal(at, &self.backlog, packet, dice),
        };
        if signal == Signal::Drop {
            return Err(DropReason::Aqm);
        }
        if !self.backlog.has_room(len) {
            return Err(DropReason::QueueFull);
        }
        packet.ce |= signal == Signal::Mark;
        let departure = self.line.finish(at, wire_len);
        self.backlog.enter(departure, len);
        Ok(departure)
    }

    pub(crate) const fn backlog(&self) -> &Backlog {
        &self.backlog
    }
}

/// The rate in the long run, roughly.
fn mean_rate(config: &RateConfig) -> u64 {
    match config {
        RateConfig::Constant(rate) => rate.get(),
        RateConfig::Steps(steps) => steps.steps.iter().map(|step| step.1.get()).max().unwrap_or(1),
        RateConfig::Trace(trace) => {
            let bits = trace.trace.len() as u64 * trace.bytes.get().saturating_mul(8);
            (bits as f64 / trace.trace.period().as_secs_f64()) as u64
        }
        RateConfig::TokenBucket(bucket) => bucket.rate.get(),
        RateConfig::Modem(modem) => modem.rate.get(),
    }
}

/// A [`QueueBound`] in numbers that compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    packets: usize,
    bytes: u64,
    counted: QueueLayer,
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
            QueueLayer::IpLen => ip_len,
            QueueLayer::WireLen => wire_len,
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
    /// When the last packet that came in leaves.
    drained_at: u64,
    /// The fullest it was: packets and bytes.
    fullest: (u64, u64),
}

impl Backlog {
    fn new(bound: &QueueBound) -> Self {
        Self { bound: Bound::new(bound), inside: VecDeque::new(), bytes_inside: 0, drained_at: 0, fullest: (0, 0) }
    }

    /// Forgets what has left by `now`.
    #[inline]
    fn leave(&mut self, now: u64) {
        while let Some((departure, len)) = self.inside.front() {
            if *departure > now {
                break;
            }
            self.bytes_inside -= u64::from(*len);
            self.inside.pop_front();
        }
    }

    fn has_room(&self, len: u32) -> bool {
        self.bound.admits(self.inside.len(), self.bytes_inside, len)
    }

    #[inline]
    fn enter(&mut self, departure: u64, len: u32) {
        self.inside.push_back((departure, len));
        self.bytes_inside += u64::from(len);
        self.drained_at = departure;
        self.fullest = (self.fullest.0.max(self.inside.len() as u64), self.fullest.1.max(self.bytes_inside));
    }

    /// Packets inside, as of the last arrival.
    fn len(&self) -> usize {
        self.inside.len()
    }

    /// Bytes inside, as of the last arrival.
    const fn bytes(&self) -> u64 {
        self.bytes_inside
    }

    /// When the last packet leaves, or left.
    const fn drained_at(&self) -> u64 {
        self.drained_at
    }

    /// Since when it is empty, if it is.
    fn idle_since(&self) -> Option<u64> {
        self.inside.is_empty().then_some(self.drained_at)
    }

    /// Packets and bytes inside at `now`, which is not before the last arrival.
    pub(crate) fn at(&self, now: u64) -> (u64, u64) {
        let gone = self.inside.partition_point(|(departure, _)| *departure <= now);
        let bytes = self.inside.iter().skip(gone).map(|(_, len)| u64::from(*len)).sum();
        ((self.inside.len() - gone) as u64, bytes)
    }

    /// The fullest it was: packets and bytes.
    pub(crate) const fn fullest(&self) -> (u64, u64) {
        self.fullest
    }
}
