//! What the lab did that the path did not: how late packets left, what its own buffers lost.

use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wt_link::DropReason;

/// Upper bounds of the lateness histogram's bins, µs; the last bin is open.
const BINS_US: [u64; 9] = [100, 250, 500, 1_000, 2_000, 5_000, 10_000, 20_000, u64::MAX];

/// What was measured is invalid when more than this share of the packets …
const LATE_SHARE: f64 = 0.02;
/// … left more than a tenth of the RTT, and at least so long, behind their time.
const LATE_AT_LEAST: Duration = Duration::from_millis(5);
/// It is invalid, too, when more than this share of the packets …
const OFTEN: f64 = 0.15;
/// … left later than this, or than this part of the time that a full packet takes on the narrowest link: others had the cores
/// that the lab needed, and the hosts in it needed them as much. Where a packet takes half a second, a millisecond is nothing.
const LATER: Duration = Duration::from_millis(1);
const PART_OF_PACKET: u32 = 20;
/// The histogram tells nothing apart above this.
const LATEST: Duration = Duration::from_millis(20);

/// Counted by the engine, read by anyone.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    received: AtomicU64,
    delivered: AtomicU64,
    queue_full: AtomicU64,
    aqm: AtomicU64,
    marked: AtomicU64,
    lost: AtomicU64,
    too_big: AtomicU64,
    other: AtomicU64,
    refused: AtomicU64,
    overflowed: AtomicU64,
    latest_ns: AtomicU64,
    lateness: [AtomicU64; BINS_US.len()],
    /// The engine's thread; zero until it runs.
    thread: AtomicU64,
    /// The engine ended before it was told to.
    ended: AtomicBool,
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
    /// Dropped by the disciplines of queues, which weren't full.
    pub aqm: u64,
    /// Segments that arrived with "congestion experienced" on them, which no host had set.
    pub marked: u64,
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
    /// How many segments left at most 0.1, 0.25, 0.5, 1, 2, 5, 10, 20 ms behind their time, and later.
    pub lateness: [u64; BINS_US.len()],
    /// CPU time of the emulator's thread, ns.
    pub cpu_ns: u64,
    /// How long the emulator's thread could have run and had no core, ns.
    pub waited_ns: u64,
    /// How long a hypervisor ran something else on any of this machine's cores that had work, ns.
    pub stolen_ns: u64,
    /// The monotonic clock, ns.
    pub at_ns: u64,
    /// How long a full packet takes on the path's narrowest link; zero where that isn't known.
    pub packet: Duration,
    /// Whether the emulator ended before it was told to.
    pub ended: bool,
}

/// What was delivered in one round of the engine: counted apart, because counters that others read cost more.
#[derive(Debug, Default)]
pub(crate) struct Round {
    delivered: u64,
    marked: u64,
    latest_ns: u64,
    lateness: [u64; BINS_US.len()],
}

impl Round {
    /// A segment was handed over so long after its time.
    #[inline]
    pub(crate) fn delivered(&mut self, late_ns: u64) {
        self.delivered += 1;
        self.latest_ns = self.latest_ns.max(late_ns);
        // Nearly all are in the first bin.
        let bin = BINS_US.iter().position(|bound| late_ns < bound.saturating_mul(1000)).unwrap_or(BINS_US.len() - 1);
        self.lateness[bin] += 1;
    }

    /// A segment was handed over that the path had marked.
    pub(crate) fn marked(&mut self) {
        self.marked += 1;
    }
}

impl Counters {
    /// The engine says which thread it is.
    pub(crate) fn runs_here(&self) {
        self.thread.store(u64::from(wt_sys::process::thread_id()), Relaxed);
    }

    /// The engine ended before it was told to.
    pub(crate) fn ended(&self) {
        self.ended.store(true, Relaxed);
    }

    pub(crate) fn received(&self, segments: u32) {
        self.received.fetch_add(u64::from(segments), Relaxed);
    }

    /// Adds what was delivered in one round.
    pub(crate) fn delivered(&self, round: &Round) {
        if round.delivered == 0 {
            return;
        }
        self.delivered.fetch_add(round.delivered, Relaxed);
        self.latest_ns.fetch_max(round.latest_ns, Relaxed);
        if round.marked > 0 {
            self.marked.fetch_add(round.marked, Relaxed);
        }
        for (bin, count) in self.lateness.iter().zip(&round.lateness) {
            if *count > 0 {
                bin.fetch_add(*count, Relaxed);
            }
        }
    }

    pub(crate) fn dropped(&self, reason: DropReason) {
        let counter = match reason {
            DropReason::QueueFull => &self.queue_full,
            DropReason::Aqm => &self.aqm,
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
        let thread = u32::try_from(self.thread.load(Relaxed)).unwrap_or(0);
        let (cpu_ns, waited_ns) = wt_sys::process::thread_times(thread).unwrap_or_default();
        EngineStats {
            received: self.received.load(Relaxed),
            delivered: self.delivered.load(Relaxed),
            queue_full: self.queue_full.load(Relaxed),
            aqm: self.aqm.load(Relaxed),
            marked: self.marked.load(Relaxed),
            lost: self.lost.load(Relaxed),
            too_big: self.too_big.load(Relaxed),
            other: self.other.load(Relaxed),
            refused: self.refused.load(Relaxed),
            overflowed: self.overflowed.load(Relaxed),
            latest_ns: self.latest_ns.swap(0, Relaxed),
            lateness: std::array::from_fn(|bin| self.lateness[bin].load(Relaxed)),
            cpu_ns,
            waited_ns,
            stolen_ns: wt_sys::process::stolen_ns(),
            at_ns: wt_sys::clock::monotonic_ns(),
            packet: Duration::ZERO,
            ended: self.ended.load(Relaxed),
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
            aqm: self.aqm - earlier.aqm,
            marked: self.marked - earlier.marked,
            lost: self.lost - earlier.lost,
            too_big: self.too_big - earlier.too_big,
            other: self.other - earlier.other,
            refused: self.refused - earlier.refused,
            overflowed: self.overflowed - earlier.overflowed,
            latest_ns: self.latest_ns,
            lateness: std::array::from_fn(|bin| self.lateness[bin] - earlier.lateness[bin]),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
            stolen_ns: self.stolen_ns.saturating_sub(earlier.stolen_ns),
            at_ns: self.at_ns.saturating_sub(earlier.at_ns),
            packet: self.packet,
            ended: self.ended,
        }
    }

    /// What queues dropped, be it since they were full or by their discipline.
    #[must_use]
    pub fn queue_drops(&self) -> u64 {
        self.queue_full + self.aqm
    }

    /// Why what was measured meanwhile isn't the path but this machine; `None` if it is the path.
    #[must_use]
    pub fn complaint(&self, rtt: Duration) -> Option<String> {
        if self.ended {
            return Some("the lab's emulator stopped meanwhile".to_owned());
        }
        let lost = self.refused + self.overflowed;
        let bounds =
            [(LATE_AT_LEAST.max(rtt / 10), LATE_SHARE), (LATER.max(self.packet / PART_OF_PACKET).min(LATEST), OFTEN)];
        let late = bounds.into_iter().map(|(bound, allowed)| (bound, self.later_than(bound), allowed));
        let worst = late.max_by(|one, other| (one.1 / one.2).total_cmp(&(other.1 / other.2)))?;
        let (bound, share, allowed) = worst;
        (share > allowed || lost > 0).then(|| {
            format!(
                "the lab was late or lost packets itself: {:.1} % left more than {} ms late, {lost} lost; the machine was busy",
                share * 100.0,
                bound.as_millis()
            )
        })
    }

    /// The bins of the lateness histogram: their upper bounds in µs, the last one open, and how many segments fell into each.
    pub fn histogram(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        BINS_US.iter().zip(&self.lateness).map(|(top, count)| ((*top < u64::MAX).then_some(*top), *count))
    }

    /// As one object, for reports.
    ///
    /// # Units
    /// `_us`: microseconds; `late_us`: the histogram of how far behind their time segments left, by upper bounds. Of the packets
    /// in `queue_drops`, `aqm_drops` are those that a discipline dropped from a queue with room.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let bins = self.histogram().map(|(top, count)| json!({"up_to_us": top, "segments": count}));
        json!({
            "elapsed_us": self.at_ns / 1000,
            "received": self.received, "delivered": self.delivered, "queue_drops": self.queue_drops(),
            "aqm_drops": self.aqm, "ce_marks": self.marked, "losses": self.lost, "too_big": self.too_big, "other_drops": self.other,
            "own_drops": {"not_taken_by_kernel": self.refused, "buffers_full": self.overflowed},
            "late_max_us": self.latest_ns / 1000, "late_us": bins.collect::<Vec<_>>(),
            "cpu_us": self.cpu_ns / 1000, "waited_for_cpu_us": self.waited_ns / 1000, "stolen_us": self.stolen_ns / 1000,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What remains of 1000 segments of which so many were so late, in µs.
    fn of(late: &[(u64, usize)]) -> EngineStats {
        let counters = Counters::default();
        let count: usize = late.iter().map(|(_, count)| count).sum();
        let all = late.iter().flat_map(|(us, count)| std::iter::repeat_n(*us, *count));
        let mut round = Round::default();
        all.chain(std::iter::repeat_n(10, 1000 - count)).for_each(|us| round.delivered(us * 1000));
        counters.delivered(&round);
        counters.read()
    }

    #[test]
    fn a_lab_that_is_late_complains_and_one_that_is_not_does_not() {
        let complains = |late: &[(u64, usize)], rtt_ms| of(late).complaint(Duration::from_millis(rtt_ms)).is_some();
        assert!(!complains(&[], 10));
        assert!(!complains(&[(7_000, 20)], 10) && complains(&[(7_000, 21)], 10), "2 % may be later than 5 ms");
        assert!(!complains(&[(7_000, 100)], 100) && complains(&[(12_000, 100)], 100), "a tenth of the RTT");
        assert!(!complains(&[(1_500, 150)], 500) && complains(&[(1_500, 151)], 500), "15 % may be later than 1 ms");
        let slow = |late: &[(u64, usize)]| {
            EngineStats { packet: Duration::from_millis(455), ..of(late) }
                .complaint(Duration::from_millis(600))
                .is_some()
        };
        assert!(!slow(&[(15_000, 400)]) && slow(&[(25_000, 151)]), "a packet takes 455 ms: 20 ms are a part of it");
        let counters = Counters::default();
        counters.overflowed(1);
        assert!(counters.read().complaint(Duration::from_millis(10)).is_some(), "a packet that the lab lost itself");
        let counters = Counters::default();
        counters.ended();
        assert!(counters.read().complaint(Duration::from_millis(10)).is_some(), "an emulator that has stopped");
    }

    #[test]
    fn what_a_discipline_drops_is_the_queues_and_nothing_else_is() {
        let counters = Counters::default();
        [DropReason::QueueFull, DropReason::Aqm, DropReason::Aqm, DropReason::Policed, DropReason::Loss]
            .into_iter()
            .for_each(|reason| counters.dropped(reason));
        let mut round = Round::default();
        round.delivered(10);
        round.marked();
        counters.delivered(&round);
        let told = counters.read().to_json();
        let counts = ["queue_drops", "aqm_drops", "ce_marks", "losses", "other_drops"].map(|key| told[key].as_u64());
        assert_eq!(counts, [3, 2, 1, 1, 1].map(Some), "{told:#}");
    }

    #[test]
    fn the_histogram_has_each_segment_once() {
        let stats = of(&[(99, 1), (100, 2), (1_500, 3), (9_000, 4), (50_000, 5)]);
        let bins: Vec<u64> = stats.histogram().map(|(_, count)| count).collect();
        assert_eq!(bins, [986, 2, 0, 0, 3, 0, 4, 0, 5]);
        assert_eq!(stats.latest_ns, 50_000_000);
    }
}
