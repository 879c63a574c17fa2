use crate::{CoDelConfig, Packet, time::nanos};
use std::collections::VecDeque;

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct QueuedPacket<P> {
    pub(crate) since: u64,
    pub(crate) wire_len: u32,
    /// The length that the queue's bound counts.
    pub(crate) len: u32,
    /// Whether this queue has marked it.
    pub(crate) marked: bool,
    pub(crate) packet: Packet<P>,
}

/// Packets that wait in one queue, with CoDel at its exit.
#[derive(Debug)]
pub(crate) struct CoDelQueue<P> {
    waiting: VecDeque<QueuedPacket<P>>,
    /// Bytes on the wire that wait.
    bytes: u64,
    law: Law,
}

/// CoDel's constants, nanoseconds and bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    target: u64,
    interval: u64,
    ecn: bool,
    /// The longest packet so far, bytes on the wire: a queue of no more than that is left alone.
    one_packet: u64,
}

impl Limits {
    pub(crate) fn new(config: &CoDelConfig) -> Self {
        Self { target: nanos(config.target), interval: nanos(config.interval), ecn: config.ecn, one_packet: 0 }
    }

    /// Remembers the longest packet.
    pub(crate) fn saw(&mut self, wire_len: u32) {
        self.one_packet = self.one_packet.max(wire_len.into());
    }

    /// The time after `at` for the drop of this number: they come faster with the square root.
    fn next_drop(&self, at: u64, count: u32) -> u64 {
        at.saturating_add((self.interval as f64 / f64::from(count.max(1)).sqrt()) as u64)
    }
}

/// The state of CoDel's control law.
#[derive(Debug, Clone, Copy, Default)]
struct Law {
    /// When the delay will have been above the target for an interval, if it stays there.
    above_until: Option<u64>,
    dropping: bool,
    next_drop: u64,
    /// Drops since dropping began, and at the beginning of the last spell.
    count: u32,
    last_count: u32,
}

impl<P> CoDelQueue<P> {
    pub(crate) fn new() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, law: Law::default() }
    }

    pub(crate) fn push(&mut self, waiting: QueuedPacket<P>) {
        self.bytes += u64::from(waiting.wire_len);
        self.waiting.push_back(waiting);
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the head out because there is no room; CoDel counts it as a drop of its own.
    pub(crate) fn drop_head(&mut self) -> Option<QueuedPacket<P>> {
        self.law.count = self.law.count.saturating_add(1);
        self.pop()
    }

    /// The next packet to send, marked or not; those that are dropped go to `dropped`.
    ///
    /// # Source
    /// RFC 8289, the dequeue routine of its pseudocode.
    pub(crate) fn take(
        &mut self,
        now: u64,
        limits: &Limits,
        dropped: &mut Vec<QueuedPacket<P>>,
    ) -> Option<QueuedPacket<P>> {
        let (mut head, mut late) = self.inspect(now, limits);
        if self.law.dropping {
            self.law.dropping = late;
            while self.law.dropping && now >= self.law.next_drop {
                self.law.count = self.law.count.saturating_add(1);
                self.law.next_drop = limits.next_drop(self.law.next_drop, self.law.count);
                if mark(&mut head, limits.ecn) {
                    break;
                }
                dropped.extend(head);
                (head, late) = self.inspect(now, limits);
                self.law.dropping = late;
            }
        } else if late {
            if !mark(&mut head, limits.ecn) {
                dropped.extend(head);
                (head, _) = self.inspect(now, limits);
            }
            self.begin_dropping(now, limits);
        }
        head
    }

    /// Takes the head out, and says whether it may be dropped: the delay has been above the target for an interval.
    fn inspect(&mut self, now: u64, limits: &Limits) -> (Option<QueuedPacket<P>>, bool) {
        let Some(head) = self.pop() else {
            self.law.above_until = None;
            return (None, false);
        };
        if now.saturating_sub(head.since) < limits.target || self.bytes <= limits.one_packet {
            self.law.above_until = None;
            return (Some(head), false);
        }
        let until = *self.law.above_until.get_or_insert(now.saturating_add(limits.interval));
        (Some(head), now >= until)
    }

    /// Enters the dropping state, at the rate of the last spell if that ended not long ago.
    fn begin_dropping(&mut self, now: u64, limits: &Limits) {
        let law = &mut self.law;
        let more = law.count.saturating_sub(law.last_count);
        let recent = now.saturating_sub(law.next_drop) < limits.interval.saturating_mul(16);
        law.dropping = true;
        law.count = if more > 1 && recent { more } else { 1 };
        law.last_count = law.count;
        law.next_drop = limits.next_drop(now, law.count);
    }

    fn pop(&mut self) -> Option<QueuedPacket<P>> {
        let head = self.waiting.pop_front()?;
        self.bytes -= u64::from(head.wire_len);
        Some(head)
    }
}

/// Marks the packet instead of dropping it, if both ends can.
fn mark<P>(head: &mut Option<QueuedPacket<P>>, ecn: bool) -> bool {
    match head {
        Some(waiting) if ecn && waiting.packet.ect => {
            waiting.packet.ce = true;
            waiting.marked = true;
            true
        }
        _ => false,
    }
}
