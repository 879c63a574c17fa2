//! What the lab did that the path did not: how late packets left, what its own buffers lost.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wt_link::DropReason;

/// Upper bounds of the lateness histogram's bins, µs; the last bin is open.
const BINS_US: [u64; 7] = [100, 250, 500, 1_000, 5_000, 20_000, u64::MAX];

/// Counted by the engine, read by anyone.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    received: AtomicU64,
    delivered: AtomicU64,
    queue_full: AtomicU64,
    lost: AtomicU64,
    too_big: AtomicU64,
    other: AtomicU64,
    refused: AtomicU64,
    overflowed: AtomicU64,
    latest_ns: AtomicU64,
    lateness: [AtomicU64; BINS_US.len()],
}

/// What the engine had counted at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineStats {
    /// Segments that hosts sent.
    pub received: u64,
    /// Segments that reached the other host.
    pub delivered: u64,
    /// Dropped at full queues.
    pub queue_full: u64,
    /// Lost at random or by plan.
    pub lost: u64,
    /// Longer than a link's MTU.
    pub too_big: u64,
    /// Dropped for another reason.
    pub other: u64,
    /// Packets that a kernel didn't take back.
    pub refused: u64,
    /// Packets that found the lab's own buffers full.
    pub overflowed: u64,
    /// The longest that a segment left behind its time since the last reset of this figure, ns.
    pub latest_ns: u64,
    /// How many segments left at most 0.1, 0.25, 0.5, 1, 5, 20 ms behind their time, and later.
    pub lateness: [u64; BINS_US.len()],
}

impl Counters {
    pub(crate) fn received(&self, segments: u32) {
        self.received.fetch_add(u64::from(segments), Relaxed);
    }

    pub(crate) fn delivered(&self, late: Duration) {
        self.delivered.fetch_add(1, Relaxed);
        let ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.latest_ns.fetch_max(ns, Relaxed);
        let bin = BINS_US.iter().position(|bound| ns / 1000 < *bound).unwrap_or(BINS_US.len() - 1);
        self.lateness[bin].fetch_add(1, Relaxed);
    }

    pub(crate) fn dropped(&self, reason: DropReason) {
        let counter = match reason {
            DropReason::QueueFull => &self.queue_full,
            DropReason::Loss | DropReason::Outage => &self.lost,
            DropReason::TooBig { .. } => &self.too_big,
            DropReason::Overflow => &self.overflowed,
            _ => &self.other,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// A hop didn't let a packet through.
    pub(crate) fn stopped(&self) {
        self.other.fetch_add(1, Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn overflowed(&self, packets: u64) {
        self.overflowed.fetch_add(packets, Relaxed);
    }

    /// What was counted so far; the longest lateness begins anew.
    pub(crate) fn read(&self) -> EngineStats {
        EngineStats {
            received: self.received.load(Relaxed),
            delivered: self.delivered.load(Relaxed),
            queue_full: self.queue_full.load(Relaxed),
            lost: self.lost.load(Relaxed),
            too_big: self.too_big.load(Relaxed),
            other: self.other.load(Relaxed),
            refused: self.refused.load(Relaxed),
            overflowed: self.overflowed.load(Relaxed),
            latest_ns: self.latest_ns.swap(0, Relaxed),
            lateness: std::array::from_fn(|bin| self.lateness[bin].load(Relaxed)),
        }
    }
}

impl EngineStats {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            received: self.received - earlier.received,
            delivered: self.delivered - earlier.delivered,
            queue_full: self.queue_full - earlier.queue_full,
            lost: self.lost - earlier.lost,
            too_big: self.too_big - earlier.too_big,
            other: self.other - earlier.other,
            refused: self.refused - earlier.refused,
            overflowed: self.overflowed - earlier.overflowed,
            latest_ns: self.latest_ns,
            lateness: std::array::from_fn(|bin| self.lateness[bin] - earlier.lateness[bin]),
        }
    }

    /// The share of segments that left more than `bound` behind their time (rounded up to the next bin).
    #[must_use]
    pub fn later_than(&self, bound: Duration) -> f64 {
        let us = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
        let late: u64 = BINS_US.iter().zip(&self.lateness).filter(|(top, _)| **top > us).map(|(_, count)| count).sum();
        let first_above = BINS_US.iter().zip(&self.lateness).find(|(top, _)| **top > us).map_or(0, |(_, count)| *count);
        let strictly = if BINS_US.contains(&us) { late } else { late - first_above };
        if self.delivered == 0 { 0.0 } else { strictly as f64 / self.delivered as f64 }
    }
}
