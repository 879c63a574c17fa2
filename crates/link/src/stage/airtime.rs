use super::line::time_of;
use super::{Bound, HoldEvent};
use crate::dice::{Chance, Dice};
use crate::framing::Meter;
use crate::{AirtimeConfig, DropReason, Packet, Time, time::nanos};
use std::collections::VecDeque;

/// A radio that sends what waits in exchanges of several packets.
#[derive(Debug)]
pub(crate) struct Airtime<P> {
    meter: Meter,
    bound: Bound,
    rate: u64,
    access: u64,
    backoff: u64,
    slot: u64,
    /// Whether an exchange ends within a packet: with slots.
    cuts: bool,
    max_packets: usize,
    max_bytes: u64,
    failure: Chance,
    max_retries: u8,
    retry_after: u64,
    dice: Dice,
    /// Arrivals that lie ahead, or are not looked at yet.
    arriving: VecDeque<(u64, Packet<P>)>,
    waiting: VecDeque<Frame<P>>,
    waiting_bytes: u64,
    /// When the exchange that is being prepared is put together.
    assembly: Option<u64>,
    /// Until when the last exchange occupies the radio.
    busy_until: u64,
    /// Packets and bytes (counted) that this exchange brought over.
    leaving: (u64, u64),
    /// Which of the waiting frames the exchange sends, and how many bytes of each; kept for its memory.
    sent: Vec<(usize, u32)>,
    /// The fullest it was: packets and bytes.
    pub(crate) fullest: (u64, u64),
}

#[derive(Debug)]
struct Frame<P> {
    packet: Packet<P>,
    /// What of it has yet to get over, bytes on the wire.
    left: u32,
    /// The length that the bound counts.
    len: u32,
    /// When it may be sent (again).
    ready: u64,
    /// How often the piece that is due has failed.
    tries: u8,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// It has arrived, but one before it has not.
    Arrived,
    GivenUp,
}

impl<P> Airtime<P> {
    pub(crate) fn new(config: &AirtimeConfig, dice: &mut Dice) -> Self {
        Self {
            meter: Meter::new(&config.framing),
            bound: Bound::new(&config.bound),
            rate: config.rate.get(),
            access: nanos(config.access),
            backoff: nanos(config.backoff),
            slot: config.slot.map_or(1, nanos).max(1),
            cuts: config.slot.is_some(),
            max_packets: config.max_packets.max(1) as usize,
            max_bytes: config.max_bytes.get(),
            failure: config.failure.into(),
            max_retries: config.max_retries,
            retry_after: nanos(config.retry_after),
            dice: dice.split(),
            arriving: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            assembly: None,
            busy_until: 0,
            leaving: (0, 0),
            sent: Vec::new(),
            fullest: (0, 0),
        }
    }

    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        self.arriving.push_back((at, packet));
    }

    pub(crate) fn due(&self) -> u64 {
        let arrival = self.arriving.front().map_or(u64::MAX, |first| first.0);
        self.assembly.unwrap_or(u64::MAX).min(arrival)
    }

    pub(crate) fn step(&mut self, out: &mut Vec<HoldEvent<P>>) {
        let assembly = self.assembly.unwrap_or(u64::MAX);
        match self.arriving.front() {
            Some((at, _)) if *at <= assembly => {
                if let Some((at, packet)) = self.arriving.pop_front() {
                    self.arrive(at, packet, out);
                }
            }
            _ => self.exchange(assembly, out),
        }
    }

    /// Packets and bytes inside at `now`, those on the air included.
    pub(crate) fn at(&self, now: u64) -> (u64, u64) {
        let leaving = if self.busy_until > now { self.leaving } else { (0, 0) };
        (self.waiting.len() as u64 + leaving.0, self.waiting_bytes + leaving.1)
    }

    fn arrive(&mut self, at: u64, packet: Packet<P>, out: &mut Vec<HoldEvent<P>>) {
        let wire_len = self.meter.wire_len(packet.ip_len);
        let len = self.bound.len_of(packet.ip_len, wire_len);
        let (packets, bytes) = self.at(at);
        if !self.bound.admits(packets as usize, bytes, len) {
            out.push(HoldEvent::Drop { at: Time(at), reason: DropReason::QueueFull, packet });
            return;
        }
        self.waiting.push_back(Frame { packet, left: wire_len, len, ready: at, tries: 0, state: State::Waiting });
        self.waiting_bytes += u64::from(len);
        self.fullest = (self.fullest.0.max(packets + 1), self.fullest.1.max(bytes + u64::from(len)));
        self.prepare(at);
    }

    /// Seeks access to the medium for whatever is ready first.
    fn prepare(&mut self, now: u64) {
        let window = self.waiting.iter().take(self.max_packets).filter(|frame| frame.state == State::Waiting);
        let Some(ready) = window.map(|frame| frame.ready).min() else { return };
        if self.assembly.is_some() {
            return;
        }
        let backoff = (self.backoff as f64 * self.dice.uniform()) as u64;
        let begin = ready.max(now).max(self.busy_until);
        let in_slot = begin.div_ceil(self.slot).saturating_mul(self.slot);
        self.assembly = Some(in_slot.saturating_add(self.access).saturating_add(backoff));
    }

    /// Sends what is ready in one piece, and lets go of what has arrived in order.
    fn exchange(&mut self, now: u64, out: &mut Vec<HoldEvent<P>>) {
        let mut sent = std::mem::take(&mut self.sent);
        let mut bytes = 0_u64;
        for (index, frame) in self.waiting.iter().take(self.max_packets).enumerate() {
            if frame.state != State::Waiting || frame.ready > now {
                continue;
            }
            let (left, room) = (u64::from(frame.left), self.max_bytes.saturating_sub(bytes));
            let whole = left <= room || (sent.is_empty() && !self.cuts);
            if !whole && (room == 0 || !self.cuts) {
                break;
            }
            let piece = if whole { left } else { room };
            bytes += piece;
            sent.push((index, piece as u32));
        }
        let end = now.saturating_add(time_of(bytes, self.rate));
        for (index, piece) in sent.drain(..) {
            let failed = self.dice.happens(self.failure);
            let frame = &mut self.waiting[index];
            if !failed {
                (frame.left, frame.tries, frame.ready) = (frame.left - piece, 0, end);
                frame.state = if frame.left == 0 { State::Arrived } else { State::Waiting };
            } else if frame.tries >= self.max_retries {
                frame.state = State::GivenUp;
            } else {
                // What wasn't sent of it waits, too: it would be of no use without this piece.
                (frame.tries, frame.ready) = (frame.tries + 1, end.saturating_add(self.retry_after));
            }
        }
        (self.assembly, self.busy_until, self.leaving, self.sent) = (None, end, (0, 0), sent);
        self.release(end, out);
        self.prepare(end);
    }

    fn release(&mut self, end: u64, out: &mut Vec<HoldEvent<P>>) {
        while self.waiting.front().is_some_and(|frame| frame.state != State::Waiting) {
            let Some(frame) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= u64::from(frame.len);
            self.leaving = (self.leaving.0 + 1, self.leaving.1 + u64::from(frame.len));
            let (at, packet) = (Time(end), frame.packet);
            out.push(match frame.state {
                State::GivenUp => HoldEvent::Drop { at, reason: DropReason::Retries, packet },
                _ => HoldEvent::Pass { at, packet },
            });
        }
    }
}
