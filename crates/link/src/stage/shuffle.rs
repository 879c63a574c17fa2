use super::Held;
use crate::{Packet, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets on their way in no order: they leave by time, and in order of arrival when the times are equal.
#[derive(Debug)]
pub(crate) struct Shuffle<P> {
    waiting: BinaryHeap<Reverse<Timed<Packet<P>>>>,
    arrived: u64,
}

/// Something with a time, ordered by it and then by number.
#[derive(Debug)]
pub(crate) struct Timed<T> {
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) item: T,
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<T> Eq for Timed<T> {}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<P> Shuffle<P> {
    pub(crate) const fn new() -> Self {
        Self { waiting: BinaryHeap::new(), arrived: 0 }
    }

    /// Takes a packet that leaves at `at`.
    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        self.waiting.push(Reverse(Timed { at, number: self.arrived, item: packet }));
        self.arrived += 1;
    }

    pub(crate) fn due(&self) -> u64 {
        self.waiting.peek().map_or(u64::MAX, |first| first.0.at)
    }

    pub(crate) fn step(&mut self) -> Option<Held<P>> {
        let first = self.waiting.pop()?.0;
        Some(Held::Pass { at: Time(first.at), packet: first.item })
    }
}
