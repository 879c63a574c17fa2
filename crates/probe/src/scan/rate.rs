//! Whether it is the scan's own rate that loses packets.

use super::{Block, Flight, OPENING, RateCheck, Scan, Stage};
use crate::{LossCount, Time, likelihood_ratio};

/// More short packets than this share must surely get lost before the scan asks whether its own rate is the cause.
const DOUBTFUL: f64 = 0.003;
/// Probes at half the rate, and as many at the full rate.
const RATE_CHECK: u32 = 200;
/// The rate is halved no more often.
const MOST_HALVINGS: u32 = 3;
/// Two losses at different rates differ from this likelihood ratio on (once in a thousand times by chance).
const DIFFER: f64 = 10.83;
/// So many long packets shall be lost again at half the rate, and so many are sent for that at least and at most.
const LOST_AGAIN: f64 = 3.0;
const FEWEST_LONG: u32 = 30;
const MOST_LONG: u32 = 250;
/// With fewer at half the rate it isn't said that they get lost by it.
const SURELY: u32 = 200;
/// The loss is taken for the same at both rates from this share of the way on from what a policer would still drop at half of it.
const ALIKE: f64 = 1.0 / 3.0;

impl Block {
    /// Whether it shows what gets lost at half the rate.
    fn is_slow(&self) -> bool {
        self.slower > 0.0 && !self.counts
    }

    /// Whether it shows what gets lost at the full rate, behind such a block.
    fn is_behind_slow(&self) -> bool {
        self.slower > 0.0 && self.counts
    }
}

impl Scan {
    /// Whether probes that check the rate are on their way.
    pub(super) fn checks_rate(&self) -> bool {
        self.blocks.iter().any(Block::is_slow)
    }

    /// Where short packets get lost: do they at half the rate, too?
    pub(super) fn plan_rate(&mut self, short: u16) -> bool {
        if self.checks_rate() {
            let checking = self.blocks.len().saturating_sub(2);
            let of_blocks = |slow: bool| {
                let short = self.known().filter(|(flight, block)| {
                    flight.size == short && (block.slower > 0.0) == slow && (block.counts || flight.block >= checking)
                });
                short.fold(LossCount::default(), |sum, (flight, _)| sum.plus(flight.count()))
            };
            return self.judge_rate(of_blocks(false), of_blocks(true), false);
        }
        // Of the shortest tenth: loss rarely begins among them.
        let counts = self.counts_by_size();
        let low = counts.iter().take(counts.len().div_ceil(10)).fold(LossCount::default(), |sum, row| sum.plus(row.1));
        if low.interval().0 < DOUBTFUL || self.left() < 2 * RATE_CHECK {
            return false;
        }
        for slower in [2.0, 0.0] {
            self.send(vec![short; RATE_CHECK as usize], false, slower);
        }
        true
    }

    /// Where it is clear that long packets get lost: do they at half as many bytes a second, too? A policer counts bytes, so that long
    /// packets are too many for it where short ones aren't.
    ///
    /// The first look is at packets at half the rate alone. Of a large loss the few that were lost by then are too few to say what
    /// a policer would still drop, so that as many at the full rate go behind each later block: what drops the slow ones has no burst
    /// left to let those pass.
    pub(super) fn plan_rate_of_long(&mut self) -> bool {
        let Some(place) = self.best_place().filter(|_| self.evidence.is_some()) else { return false };
        let slow = self.known().filter(|(_, block)| block.is_slow());
        let half = slow.fold(LossCount::default(), |sum, (flight, _)| sum.plus(flight.count()));
        let behind = self.behind_slow();
        // What was counted before had been lost more often than usual when it got clear.
        let full = if behind.sent > 0 { behind } else { place.high };
        let of_policer = (2.0 * full.loss() - 1.0).max(0.0);
        let alike = half.loss() >= of_policer + (full.loss() - of_policer) * ALIKE;
        if half.sent >= SURELY && !alike && is_caused(full, half) {
            return self.judge_rate(full, half, true);
        }
        let check = RateCheck { full, half, halvings: self.halvings, persists: false, long: true };
        self.checked = Some(check);
        self.size_counts = alike && check.is_ruled_out();
        let quick = self.config.quick.saturating_sub(self.packets()).max(FEWEST_LONG);
        let quick = if self.clear_at < self.config.quick && half.sent == 0 { quick } else { MOST_LONG };
        let few = ((LOST_AGAIN / full.loss().max(1e-3)) as u32).clamp(FEWEST_LONG, MOST_LONG).min(quick);
        // Only where so many get lost does it count how many exactly.
        let both = half.sent > 0 && check.of_rationing() > 0.0;
        let block = if both { few.max(half.sent).min(MOST_LONG).min(self.left() / 2) } else { few.min(self.left()) };
        let enough = half.sent >= 3 * MOST_LONG && !(both && alike);
        if self.size_counts || enough || block < FEWEST_LONG / 2 {
            self.blocks.iter_mut().for_each(|block| block.slower = 0.0);
            return false;
        }
        let long: Vec<u16> = self.passing().filter(|size| *size >= place.above).collect();
        let mean = |sizes: &[u16]| sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / sizes.len().max(1) as f64;
        let of_first: Vec<u16> = self.of_first_block().map(|flight| flight.size).collect();
        let as_many_bytes = (mean(&long) / mean(&of_first).max(1.0)).max(1.0);
        let sizes: Vec<u16> = long.into_iter().cycle().take(block as usize).collect();
        self.send(sizes.clone(), false, 2.0 * as_many_bytes);
        if both {
            self.compared += 2 * block;
            self.send(sizes, true, as_many_bytes);
        }
        true
    }

    /// The probes at the full rate behind those at half of it, from the first loss of both on: what a policer lets pass before is its burst,
    /// which the slow ones may have left.
    fn behind_slow(&self) -> LossCount {
        let mut losing = None;
        let mut sum = LossCount::default();
        for (flight, block) in self.known() {
            let slow = match (block.is_slow(), block.is_behind_slow()) {
                (true, _) => flight.block,
                (_, true) => flight.block.saturating_sub(1),
                _ => continue,
            };
            if block.is_behind_slow() && losing == Some(slow) {
                sum = sum.plus(flight.count());
            }
            if flight.answered.is_none() {
                losing = Some(slow);
            }
        }
        sum
    }

    /// Begins anew at half the rate if packets got lost by the rate; tells whether it does.
    fn judge_rate(&mut self, full: LossCount, half: LossCount, long: bool) -> bool {
        let caused = is_caused(full, half);
        let again = caused && self.halvings < MOST_HALVINGS && self.left() >= self.config.first;
        self.halvings += u32::from(again);
        self.checked = Some(RateCheck { full, half, halvings: self.halvings, persists: caused && !again, long });
        self.rate_known = !again;
        if again {
            // What was counted at the old rate says nothing.
            self.gap = self.gap_so_far() * 2;
            self.blocks.iter_mut().for_each(|block| block.counts = false);
            (self.evidence, self.size_counts, self.stage) = (None, false, Stage::Arms);
            self.cover();
        }
        self.blocks.iter_mut().for_each(|block| block.slower = 0.0);
        again
    }

    /// The mean time from one probe to the next in the first block that counts; where it is the very first, with what it waited for after
    /// a packet that opened a connection: else the burst that leaves at once would make the rate a larger one.
    pub(super) fn gap_so_far(&self) -> Time {
        let first = self.of_first_block().next().filter(|first| first.block == OPENING + 1);
        let before = |flight: &&Flight| {
            let answered = |first: &Flight| flight.answered.is_some_and(|at| at <= first.sent);
            flight.block == OPENING && first.is_some_and(answered)
        };
        let opener = self.flights.iter().rfind(before);
        let times: Vec<Time> = opener.into_iter().chain(self.of_first_block()).map(|flight| flight.sent).collect();
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return self.gap };
        last.saturating_sub(*first) / u32::try_from(times.len().max(2) - 1).unwrap_or(1)
    }

    /// The probes of the first block that counts.
    fn of_first_block(&self) -> impl Iterator<Item = &Flight> {
        let first = self.blocks.iter().position(|block| block.counts);
        self.flights.iter().filter(move |flight| Some(flight.block) == first)
    }
}

/// Whether loss at half the rate is clearly less.
fn is_caused(full: LossCount, half: LossCount) -> bool {
    full.loss() > half.loss() && likelihood_ratio(full, half) >= DIFFER
}
