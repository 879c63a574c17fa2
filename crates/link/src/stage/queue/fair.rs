use super::codel::{CoDelQueue, Limits, QueuedPacket};
use super::{Bound, Line};
use crate::dice::{Dice, mix};
use crate::framing::Meter;
use crate::stage::HoldEvent;
use crate::{CoDelConfig, DropReason, FqCoDelConfig, Packet, QueueConfig, Time};
use std::collections::VecDeque;

/// Drops at once when the queue overflows (RFC 8290, enqueueing): half of the longest flow's bytes, at most so many.
const BATCH: usize = 64;

/// One queue with CoDel, or a queue for each flow, in front of a line.
///
/// Whom it drops depends on who arrives later, so unlike a [`super::FifoQueue`] it holds its packets until the line takes
/// them.
#[derive(Debug)]
pub(crate) struct FairQueue<P> {
    meter: Meter,
    line: Line,
    bound: Bound,
    limits: Limits,
    /// Arrivals that lie ahead, or are not looked at yet.
    arriving: VecDeque<(u64, Packet<P>)>,
    flows: Vec<Flow<P>>,
    /// Flows with packets: those that have just begun are served first.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
    /// Shuffles flows into queues.
    salt: u64,
    inside: Inside,
    /// The fullest it was: packets and bytes.
    pub(crate) fullest: (u64, u64),
    /// Packets that were marked.
    pub(crate) marked: u64,
    dropped: Vec<QueuedPacket<P>>,
}

/// What waits, and what the line is busy with.
#[derive(Debug, Clone, Copy, Default)]
struct Inside {
    packets: usize,
    bytes: u64,
    /// Until when the line sends, and the counted length of what it sends.
    sending: (u64, u32),
}

impl Inside {
    /// Packets and bytes at `now`, the one on the line included.
    const fn at(&self, now: u64) -> (usize, u64) {
        if self.sending.0 > now {
            (self.packets + 1, self.bytes + self.sending.1 as u64)
        } else {
            (self.packets, self.bytes)
        }
    }
}

#[derive(Debug)]
struct Flow<P> {
    queue: CoDelQueue<P>,
    /// Bytes that it may still send in this turn.
    credit: i64,
    listed: bool,
}

impl<P> FairQueue<P> {
    /// One queue for all.
    pub(crate) fn codel(config: &QueueConfig, codel: &CoDelConfig, dice: &mut Dice) -> Self {
        Self::new(config, &FqCoDelConfig { codel: *codel, flows: 1, ..FqCoDelConfig::default() }, dice)
    }

    /// A queue for each flow.
    pub(crate) fn new(config: &QueueConfig, fair: &FqCoDelConfig, dice: &mut Dice) -> Self {
        let flow = || Flow { queue: CoDelQueue::new(), credit: 0, listed: false };
        Self {
            meter: Meter::new(&config.framing),
            line: Line::new(&config.rate, dice),
            bound: Bound::new(&config.bound),
            limits: Limits::new(&fair.codel),
            arriving: VecDeque::new(),
            flows: (0..fair.flows.max(1)).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::try_from(fair.quantum.get()).unwrap_or(i64::MAX).max(1),
            salt: dice.bits(),
            inside: Inside::default(),
            fullest: (0, 0),
            marked: 0,
            dropped: Vec::new(),
        }
    }

    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        self.arriving.push_back((at, packet));
    }

    /// The next arrival, or when the line takes the next packet.
    pub(crate) fn due(&self) -> u64 {
        let arrival = self.arriving.front().map_or(u64::MAX, |first| first.0);
        let send = if self.inside.packets > 0 { self.line.free() } else { u64::MAX };
        arrival.min(send)
    }

    pub(crate) fn step(&mut self, out: &mut Vec<HoldEvent<P>>) {
        match self.arriving.front() {
            Some((at, _)) if self.inside.packets == 0 || *at <= self.line.free() => {
                if let Some((at, packet)) = self.arriving.pop_front() {
                    self.arrive(at, packet, out);
                }
            }
            _ => self.send(self.line.free(), out),
        }
    }

    /// Packets and bytes inside at `now`.
    pub(crate) fn at(&self, now: u64) -> (u64, u64) {
        let (packets, bytes) = self.inside.at(now);
        (packets as u64, bytes)
    }

    fn arrive(&mut self, at: u64, packet: Packet<P>, out: &mut Vec<HoldEvent<P>>) {
        let wire_len = self.meter.wire_len(packet.ip_len);
        let len = self.bound.len_of(packet.ip_len, wire_len);
        self.limits.saw(wire_len);
        let (packets, bytes) = self.inside.at(at);
        if !self.bound.admits(packets, bytes, len) && (self.flows.len() == 1 || !self.make_room(at, len, out)) {
            out.push(HoldEvent::Drop { at: Time(at), reason: DropReason::QueueFull, packet });
            return;
        }
        let index = (u128::from(mix(self.salt, packet.flow.into())) * self.flows.len() as u128) >> 64;
        let flow = &mut self.flows[index as usize];
        flow.queue.push(QueuedPacket { since: at, wire_len, len, marked: false, packet });
        if !flow.listed {
            (flow.listed, flow.credit) = (true, self.quantum);
            self.new.push_back(index as usize);
        }
        self.inside.packets += 1;
        self.inside.bytes += u64::from(len);
        let (packets, bytes) = self.inside.at(at);
        self.fullest = (self.fullest.0.max(packets as u64), self.fullest.1.max(bytes));
        if self.line.free() <= at {
            self.send(at, out);
        }
    }

    /// Drops from the head of the longest flow until one more fits; says whether it does.
    fn make_room(&mut self, at: u64, len: u32, out: &mut Vec<HoldEvent<P>>) -> bool {
        let Some(longest) = self.flows.iter_mut().max_by_key(|flow| flow.queue.bytes()) else { return false };
        let half = longest.queue.bytes() / 2;
        for _ in 0..BATCH {
            let Some(head) = longest.queue.drop_head() else { break };
            self.inside.packets -= 1;
            self.inside.bytes -= u64::from(head.len);
            out.push(HoldEvent::Drop { at: Time(at), reason: DropReason::QueueFull, packet: head.packet });
            if longest.queue.bytes() <= half {
                break;
            }
        }
        let (packets, bytes) = self.inside.at(at);
        self.bound.admits(packets, bytes, len)
    }

    /// The line takes the next packet.
    fn send(&mut self, now: u64, out: &mut Vec<HoldEvent<P>>) {
        let next = self.next(now);
        for gone in self.dropped.drain(..) {
            self.inside.packets -= 1;
            self.inside.bytes -= u64::from(gone.len);
            out.push(HoldEvent::Drop { at: Time(now), reason: DropReason::Aqm, packet: gone.packet });
        }
        let Some(QueuedPacket { since, wire_len, len, marked, packet }) = next else { return };
        self.inside.packets -= 1;
        self.inside.bytes -= u64::from(len);
        self.marked += u64::from(marked);
        let departure = self.line.finish_waiting(since, now, wire_len);
        self.inside.sending = (departure, len);
        out.push(HoldEvent::Pass { at: Time(departure), packet });
    }

    /// Takes the next packet out of the flow whose turn it is.
    ///
    /// # Source
    /// RFC 8290, dequeueing.
    fn next(&mut self, now: u64) -> Option<QueuedPacket<P>> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                flow.credit = flow.credit.saturating_add(self.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            if let Some(head) = flow.queue.take(now, &self.limits, &mut self.dropped) {
                flow.credit -= i64::from(head.wire_len);
                return Some(head);
            }
            list.pop_front();
            if from_new && !self.old.is_empty() {
                // It waits behind the old flows once, or new flows could starve them.
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_being_busy_counts_as_one_packet_inside() {
        let inside = Inside { packets: 2, bytes: 3_000, sending: (100, 1_500) };
        assert_eq!((inside.at(99), inside.at(100)), ((3, 4_500), (2, 3_000)));
    }
}
