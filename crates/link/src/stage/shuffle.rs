use super::HoldEvent;
use crate::{Packet, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Packets on their way in no order: they leave by time, and in order of arrival when the times are equal.
///
/// Those that come in order, nearly all, wait in a plain queue; only the others need a heap.
#[derive(Debug)]
pub(crate) struct Shuffle<P> {
    in_order: VecDeque<TimedItem<Packet<P>>>,
    others: BinaryHeap<Reverse<TimedItem<Packet<P>>>>,
    arrived: u64,
}

/// Something with a time, ordered by it and then by number.
#[derive(Debug)]
pub(crate) struct TimedItem<T> {
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) item: T,
}

impl<T> PartialEq for TimedItem<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<T> Eq for TimedItem<T> {}

impl<T> PartialOrd for TimedItem<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for TimedItem<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<P> Shuffle<P> {
    pub(crate) const fn new() -> Self {
        Self { in_order: VecDeque::new(), others: BinaryHeap::new(), arrived: 0 }
    }

    /// Takes a packet that leaves at `at`.
    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        let timed = TimedItem { at, number: self.arrived, item: packet };
        self.arrived += 1;
        if self.in_order.back().is_some_and(|last| last.at > at) {
            self.others.push(Reverse(timed));
        } else {
            self.in_order.push_back(timed);
        }
    }

    pub(crate) fn due(&self) -> u64 {
        let in_order = self.in_order.front().map_or(u64::MAX, |first| first.at);
        let other = self.others.peek().map_or(u64::MAX, |first| first.0.at);
        in_order.min(other)
    }

    pub(crate) fn step(&mut self, out: &mut Vec<HoldEvent<P>>) {
        out.extend(self.pop().map(|(at, packet)| HoldEvent::Pass { at: Time(at), packet }));
    }

    /// The first packet with its time.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, Packet<P>)> {
        let other_first = match (self.in_order.front(), self.others.peek()) {
            (Some(in_order), Some(other)) => other.0 < *in_order,
            (None, _) => true,
            (_, None) => false,
        };
        let first = if other_first { self.others.pop()?.0 } else { self.in_order.pop_front()? };
        Some((first.at, first.item))
    }
}
