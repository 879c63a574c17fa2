//! The half-duplex shared medium: two stations on one 10 Mbit/s hub.
//!
//! What this leaves out: further stations, and the two-part deference that lets a station ignore a carrier in the last
//! third of the gap (with two stations it changes nothing: the carrier that would be ignored is the one collided with).

use crate::dice::Dice;
use crate::stage::Bound;
use crate::stats::MediumStats;
use crate::{
    Discipline, DropReason, Event, Packet, QueueBound, QueueConfig, QueueLayer, RateConfig, Side, Time, WireLen,
    time::nanos,
};
use std::collections::VecDeque;
use std::time::Duration;
use wt_units::BitsPerSecond;

/// A slot, in bits.
const SLOT_BITS: u64 = 512;
/// The gap between frames, in bits.
const GAP_BITS: u64 = 96;
/// Preamble and start of frame, in bits: sent to the end even when the collision is noticed before.
const PREAMBLE_BITS: u64 = 64;
/// The jam that makes sure that everybody notices, in bits.
const JAM_BITS: u64 = 32;
/// The frame is given up when so many attempts have collided.
const ATTEMPT_LIMIT: u32 = 16;
/// The range of the back-off doubles at most so often.
const BACKOFF_LIMIT: u32 = 10;
/// Addresses, type and checksum, bytes.
const FRAME_OVERHEAD: u32 = 18;
/// The shortest frame, bytes: one slot.
const MIN_FRAME: u32 = 64;

/// A medium that one station at a time can use: carrier sense, collision detection, jam and truncated binary
/// exponential back-off.
///
/// # Source
/// IEEE Std 802.3, clause 4: the procedure, and the parameters for 10 Mbit/s (slotTime 512 bit times, interPacketGap 96
/// bits, attemptLimit 16, backoffLimit 10, jamSize 32 bits, minFrameSize 512 bits).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MediumConfig {
    /// Bits per second, of the bits of the frame: 10 Mbit/s for the classic hub.
    pub rate: BitsPerSecond,
    /// How long a signal takes from one station to the other, repeaters included: a few microseconds, and half a slot at most.
    pub extent: Duration,
    /// What waits in each station, the frame being sent included; wire bytes count preamble, header and checksum.
    pub bound: QueueBound,
}

impl MediumConfig {
    /// The 10 Mbit/s hub, with so many packets waiting in each station at most.
    #[must_use]
    pub const fn hub(packets: u32) -> Self {
        Self {
            rate: BitsPerSecond(10_000_000),
            extent: Duration::from_nanos(2_500),
            bound: QueueBound { packets: Some(packets), bytes: None, counted: QueueLayer::IpLen },
        }
    }

    /// How long a slot of 512 bits takes.
    #[must_use]
    pub fn slot_time(&self) -> Duration {
        Duration::from_nanos(self.time_of(SLOT_BITS))
    }

    /// What one direction alone passes while the other is silent: a queue of the medium's rate and bound, with the bytes that a frame
    /// takes, the gap behind it included. The extent, and whatever contention costs, isn't in it.
    #[must_use]
    pub const fn one_way(&self) -> QueueConfig {
        const BESIDE: u32 = ((PREAMBLE_BITS + GAP_BITS) / 8) as u32;
        QueueConfig {
            framing: WireLen::Plain { add: FRAME_OVERHEAD + BESIDE, min: MIN_FRAME + BESIDE },
            rate: RateConfig::Constant(self.rate),
            bound: self.bound,
            discipline: Discipline::DropTail,
        }
    }

    fn time_of(&self, bits: u64) -> u64 {
        bits.saturating_mul(1_000_000_000).div_ceil(self.rate.get().max(1))
    }
}

/// Bytes of a frame from preamble to checksum.
fn wire_len(ip_len: u32) -> u32 {
    ip_len.saturating_add(FRAME_OVERHEAD).max(MIN_FRAME).saturating_add((PREAMBLE_BITS / 8) as u32)
}

/// The two stations and what goes on between them.
pub(crate) struct Medium<P> {
    config: MediumConfig,
    bound: Bound,
    extent: u64,
    gap: u64,
    stations: [Station<P>; 2],
    phase: Phase,
    deliveries: VecDeque<(u64, Side, Packet<P>)>,
    drops: VecDeque<(u64, Side, DropReason, Packet<P>)>,
}

struct Station<P> {
    dice: Dice,
    waiting: VecDeque<(Packet<P>, u32)>,
    waiting_bytes: u64,
    /// Collisions of the frame at the head.
    attempts: u32,
    /// Before this the head isn't tried: its arrival, or the end of the back-off.
    ready: u64,
    /// When the station sees the medium fall silent.
    silent: u64,
    stats: MediumStats,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Nobody sends.
    Silent,
    /// One has begun, and its signal hasn't reached the other yet.
    Contending { first: Side, begin: u64 },
    /// One sends and the other knows.
    Busy { sender: Side, end: u64 },
}

impl<P> Medium<P> {
    pub(crate) fn new(config: MediumConfig, seed: u64, places: [u64; 2]) -> Self {
        let station = |side: Side| Station {
            dice: Dice::new(seed, places[side.index()]),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            attempts: 0,
            ready: 0,
            silent: 0,
            stats: MediumStats::default(),
        };
        Self {
            config,
            bound: Bound::new(&config.bound),
            extent: nanos(config.extent),
            gap: config.time_of(GAP_BITS),
            stations: [station(Side::AToB), station(Side::BToA)],
            phase: Phase::Silent,
            deliveries: VecDeque::new(),
            drops: VecDeque::new(),
        }
    }

    /// A packet wants to travel in the direction `side`. Arrivals come in the order of time.
    pub(crate) fn push(&mut self, side: Side, at: u64, packet: Packet<P>) {
        let len = self.bound.len_of(packet.ip_len, wire_len(packet.ip_len));
        let station = &mut self.stations[side.index()];
        if !self.bound.admits(station.waiting.len(), station.waiting_bytes, len) {
            station.stats.dropped += 1;
            return self.drops.push_back((at, side, DropReason::QueueFull, packet));
        }
        if station.waiting.is_empty() {
            station.ready = station.ready.max(at);
        }
        station.waiting.push_back((packet, len));
        station.waiting_bytes += u64::from(len);
        let stats = &mut station.stats;
        stats.max_queue_packets = stats.max_queue_packets.max(station.waiting.len() as u64);
    }

    /// The next event up to `now`, with its direction.
    pub(crate) fn poll(&mut self, now: u64) -> Option<(Side, Event<P>)> {
        loop {
            let deliver = self.deliveries.front().map_or(u64::MAX, |first| first.0);
            let drop = self.drops.front().map_or(u64::MAX, |first| first.0);
            let (first, change) = (deliver.min(drop), self.change());
            if first.min(change) > now {
                return None;
            }
            if change < first {
                self.step(change);
            } else if drop <= deliver {
                let (at, side, reason, packet) = self.drops.pop_front()?;
                return Some((side, Event::Drop { at: Time(at), reason, packet }));
            } else {
                let (at, side, packet) = self.deliveries.pop_front()?;
                return Some((side, Event::Deliver { at: Time(at), packet }));
            }
        }
    }

    pub(crate) fn due(&self) -> u64 {
        let deliver = self.deliveries.front().map_or(u64::MAX, |first| first.0);
        let drop = self.drops.front().map_or(u64::MAX, |first| first.0);
        deliver.min(drop).min(self.change())
    }

    pub(crate) fn stats(&self, side: Side) -> MediumStats {
        let station = &self.stations[side.index()];
        MediumStats { queue_packets: station.waiting.len() as u64, ..station.stats }
    }

    /// When the phase changes.
    fn change(&self) -> u64 {
        match self.phase {
            Phase::Silent => self.begin_of(Side::AToB).min(self.begin_of(Side::BToA)),
            Phase::Contending { first, begin } => {
                // A station that begins when the signal just reaches it has not sensed it yet.
                self.begin_of(first.opposite()).clamp(begin, begin.saturating_add(self.extent))
            }
            Phase::Busy { end, .. } => end,
        }
    }

    /// When a station would begin to send, if it saw no carrier from now on.
    fn begin_of(&self, side: Side) -> u64 {
        let station = &self.stations[side.index()];
        if station.waiting.is_empty() {
            return u64::MAX;
        }
        station.ready.max(station.silent.saturating_add(self.gap))
    }

    fn step(&mut self, now: u64) {
        match self.phase {
            Phase::Silent => {
                let a_first = self.begin_of(Side::AToB) <= self.begin_of(Side::BToA);
                let first = if a_first { Side::AToB } else { Side::BToA };
                self.phase = Phase::Contending { first, begin: now };
            }
            Phase::Contending { first, begin } => {
                let other = self.begin_of(first.opposite());
                if other <= begin.saturating_add(self.extent) {
                    self.collide(first, begin, other.max(begin));
                } else {
                    let end = begin.saturating_add(self.time_of_head(first));
                    self.phase = Phase::Busy { sender: first, end };
                }
            }
            Phase::Busy { sender, end } => self.succeed(sender, end),
        }
    }

    fn time_of_head(&self, side: Side) -> u64 {
        let head = self.stations[side.index()].waiting.front();
        self.config.time_of(head.map_or(0, |(packet, _)| u64::from(wire_len(packet.ip_len)) * 8))
    }

    fn succeed(&mut self, sender: Side, end: u64) {
        let arrival = end.saturating_add(self.extent);
        self.phase = Phase::Silent;
        self.stations[sender.opposite().index()].silent = arrival;
        let station = &mut self.stations[sender.index()];
        station.silent = end;
        station.stats.sent += 1;
        if let Some(packet) = station.take_head(end) {
            self.deliveries.push_back((arrival, sender, packet));
        }
    }

    /// Both have begun: each sends its preamble and the jam, and waits for a random number of slots.
    fn collide(&mut self, first: Side, begin: u64, second_begin: u64) {
        let (preamble, jam) = (self.config.time_of(PREAMBLE_BITS), self.config.time_of(JAM_BITS));
        let end = |begin: u64, other: u64| {
            let noticed = begin.max(other.saturating_add(self.extent));
            noticed.max(begin.saturating_add(preamble)).saturating_add(jam)
        };
        let ends = [end(begin, second_begin), end(second_begin, begin)];
        let slot = self.config.time_of(SLOT_BITS);
        self.phase = Phase::Silent;
        for (side, own, other) in [(first, ends[0], ends[1]), (first.opposite(), ends[1], ends[0])] {
            let station = &mut self.stations[side.index()];
            station.silent = own.max(other.saturating_add(self.extent));
            if let Some(packet) = station.back_off(own, slot) {
                self.drops.push_back((second_begin, side, DropReason::Collisions, packet));
            }
        }
    }
}

impl<P> Station<P> {
    /// Takes the head out; the next one may be tried from `now` on.
    fn take_head(&mut self, now: u64) -> Option<Packet<P>> {
        let (packet, len) = self.waiting.pop_front()?;
        self.waiting_bytes -= u64::from(len);
        (self.attempts, self.ready) = (0, now);
        Some(packet)
    }

    /// Counts a collision that ended at `end`; gives the frame back when it was one too many.
    fn back_off(&mut self, end: u64, slot: u64) -> Option<Packet<P>> {
        self.stats.collisions += 1;
        self.attempts += 1;
        if self.attempts == ATTEMPT_LIMIT {
            self.stats.dropped += 1;
            return self.take_head(end);
        }
        let slots = self.dice.below(1 << self.attempts.min(BACKOFF_LIMIT));
        self.ready = end.saturating_add(slots.saturating_mul(slot));
        None
    }
}
