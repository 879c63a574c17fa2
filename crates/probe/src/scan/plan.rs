use super::{Scan, Stage};
use crate::{Kind, LossCount};
use rand::RngExt as _;

/// A stake that has grown so many times says that the size makes a difference: wrong once in a thousand scans at most.
const CLEAR: f64 = 1000.0;
/// A loss of the longest packets below which nobody need care: a scan that can rule more out ends.
const HARMLESS: f64 = 0.005;
/// With fewer packets than this it isn't worth to go on: but as long as there are as many, neither few so far nor few that a quick scan
/// has left are a reason to end.
const FEWEST: u32 = 40;
/// So improbably is a size taken for one on the other side of the place.
const PROBABLY: f64 = 0.1;
/// From this loss on it takes many packets to tell it from the rate's.
const LARGE: f64 = 0.25;
/// It is narrowed down until the place and its neighbours are so probable.
const NARROW: f64 = 0.995;
/// Only losses of echoes from here on are split into both directions more exactly than the scan itself does it.
const MUCH: f64 = 0.12;
/// Each direction's loss shall be right to within so much, in 99 of 100 scans.
const EXACT: f64 = 0.03;
/// Probes at a time for that, also where it isn't sure yet that a loss is so large, and how many of a thousand are
/// echoes, which lose more.
const SPLIT: u32 = 1500;
const UNSURE: u32 = 300;
const ECHOES: u32 = 600;
/// So many packets are kept for the question whether it is the scan's rate that loses the long ones.
const RESERVE: u32 = 200;
/// Probes that routers may cut into fragments.
const LOOSE: u32 = 12;

/// What is drawn beside a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
    Both,
}

impl Scan {
    /// Fills the queue, or ends the scan.
    pub(super) fn plan(&mut self) {
        self.weigh();
        while self.queue.is_empty() && self.stage != Stage::Done {
            let more = match self.stage {
                Stage::Arms => self.plan_arms(),
                Stage::Rate => self.plan_rate_of_long(),
                Stage::Narrow => self.plan_narrow(),
                Stage::Split => self.plan_split(),
                Stage::Loose => self.plan_loose(),
                Stage::Done => false,
            };
            self.stage = match self.stage {
                stage if more => stage,
                Stage::Arms => Stage::Rate,
                Stage::Rate => Stage::Narrow,
                Stage::Narrow => Stage::Split,
                Stage::Split => Stage::Loose,
                Stage::Loose | Stage::Done => Stage::Done,
            };
        }
    }

    /// Goes on with what is being done, as long as the queue would run empty and some fates aren't known yet.
    pub(super) fn plan_ahead(&mut self) {
        self.weigh();
        match self.stage {
            Stage::Arms if self.evidence.is_none() && !self.checks_rate() => self.plan_arms(),
            Stage::Narrow => self.plan_narrow(),
            Stage::Split => self.plan_split(),
            _ => false,
        };
    }

    fn weigh(&mut self) {
        if self.evidence.is_none() {
            self.evidence = Some(self.stake()).filter(|stake| *stake >= CLEAR);
            self.clear_at = self.packets();
        }
    }

    /// More of the shortest and of the longest, as long as nothing is clear.
    fn plan_arms(&mut self) -> bool {
        let Some((short, long)) = self.ends() else { return false };
        if !self.rate_known && self.plan_rate(short) {
            return true;
        }
        let counts = self.counts_by_size();
        let longest = counts.iter().skip(counts.len() - counts.len().div_ceil(10));
        let longest = longest.fold(LossCount::default(), |sum, row| sum.plus(row.1));
        let harmless = longest.interval_at(0.999).1 < HARMLESS;
        // The last look before all must be quick comes just then, and leaves room for the question whether it is the rate.
        let until = match self.config.quick.saturating_sub(self.packets() + self.config.quick / 24) {
            left @ FEWEST.. => left,
            // Some are kept for that.
            _ => self.left().saturating_sub(RESERVE.min(self.config.most / 10)),
        };
        let block = (self.packets() / 4).max(self.config.quick / 8).max(FEWEST).min(until);
        if self.evidence.is_some() || harmless || block < FEWEST {
            return false;
        }
        // The shortest and the longest, and those that are probably on the same side of the place as they are: so the
        // place shows at the same time.
        let (ends, near) = (block / 8, block / 4);
        let mut sizes = self.draw(block - 2 * ends - 2 * near, (0.0, 1.0), Side::Both);
        sizes.extend(self.draw(near, (0.0, PROBABLY), Side::Below));
        sizes.extend(self.draw(near, (1.0 - PROBABLY, 1.0), Side::Above));
        sizes.extend(std::iter::repeat_n(short, ends as usize).chain(std::iter::repeat_n(long, ends as usize)));
        self.send(sizes, true, 0.0);
        true
    }

    /// So many sizes beside the places at which loss may begin, the more of each the likelier it is; of the places that
    /// have these shares of the probability before them.
    fn draw(&mut self, count: u32, shares: (f64, f64), side: Side) -> Vec<u16> {
        let places = self.places();
        let sum: f64 = places.iter().map(|place| place.weight).sum();
        let phase: f64 = self.rng.random();
        let mut drawn = Vec::with_capacity(count as usize);
        let (mut passed, mut turn) = (0.0, 0u32);
        for (index, place) in places.iter().enumerate() {
            passed += if sum > 0.0 { place.weight } else { 1.0 / places.len() as f64 };
            let at = |turn: u32| shares.0 + (f64::from(turn) + phase) / f64::from(count) * (shares.1 - shares.0);
            while turn < count && (at(turn) <= passed || index + 1 == places.len()) {
                // From both sides: the one shall lose none, the other some.
                let above = side == Side::Above || side == Side::Both && turn % 2 == 0;
                drawn.push(if above { place.above } else { place.below });
                turn += 1;
            }
        }
        drawn
    }

    /// More of the sizes at which loss may begin, as long as those are many.
    fn plan_narrow(&mut self) -> bool {
        let Some((short, long)) = self.ends().filter(|_| self.evidence.is_some() && self.size_counts) else {
            return false;
        };
        let places = self.places();
        let best = places.iter().enumerate().max_by(|one, other| one.1.weight.total_cmp(&other.1.weight));
        let Some((best, place)) = best else { return false };
        let neighbours = places.iter().skip(best.saturating_sub(1)).take(if best == 0 { 2 } else { 3 });
        let near: f64 = neighbours.map(|place| place.weight).sum();
        // What a large loss took to be told from the rate's isn't taken off the place.
        let compared = if place.high.loss() >= LARGE { self.compared } else { 0 };
        let quick = self.config.quick.saturating_add(compared).min(self.config.most);
        let limit = if self.clear_at <= self.config.quick { quick } else { self.config.most };
        let left = limit.saturating_sub(self.packets() + if self.config.loose { LOOSE } else { 0 });
        let block = ((3.0 / place.high.loss().max(1e-3)) as u32).clamp(100, 400).min(left);
        if near >= NARROW || block < FEWEST {
            return false;
        }
        // Beside them the ends, which show how much gets lost meanwhile.
        let (shorts, longs) = (block / 20, block / 10);
        let mut sizes = self.draw(block - shorts - longs, (0.0, 1.0), Side::Both);
        sizes.extend(std::iter::repeat_n(short, shorts as usize).chain(std::iter::repeat_n(long, longs as usize)));
        self.send(sizes, true, 0.0);
        true
    }

    /// Of a large loss, more of the longest both ways.
    fn plan_split(&mut self) -> bool {
        if !self.config.split || !self.opening.stands() || self.config.kind != Kind::Echo {
            return false;
        }
        let Some(long) = self.passing().last() else { return false };
        let [echo, old] = self.by_kind();
        let (low, high) = echo.interval();
        let room = |limit: u32| limit.saturating_sub(self.packets());
        // As long as it isn't sure that the loss is so large, what a quick scan has left makes sure.
        let left = room(self.config.most_in_all).min(match low < MUCH {
            true => room(self.config.quick.saturating_sub(LOOSE)).min(UNSURE),
            false => SPLIT,
        });
        if high < MUCH || left < 100 || split_error(echo, old) * 2.576 <= EXACT {
            return false;
        }
        let echoes = left * ECHOES / 1000;
        let stream = (0..left).map(|turn| (long, if turn < echoes { Kind::Echo } else { Kind::OldSegment }));
        self.queue_up(stream.collect(), true, 0.0);
        true
    }

    /// Packets that routers may cut: do they get through where others don't?
    fn plan_loose(&mut self) -> bool {
        let asked = self.loose().is_some();
        if asked || !self.config.loose || self.config.kind != Kind::Echo || self.left() < LOOSE {
            return false;
        }
        let beyond = self.config.sizes.last().copied().filter(|size| *size > self.config.pmtu);
        // A dozen tell from this loss on.
        let lossy = self.threshold().filter(|found| found.high.loss() >= 0.25).and_then(|_| self.passing().last());
        let Some(size) = beyond.or(lossy) else { return false };
        self.queue_up(vec![(size, Kind::LooseEcho); LOOSE as usize], false, 0.0);
        true
    }
}

/// The standard error of the worse known direction's loss.
fn split_error(echo: LossCount, old: LossCount) -> f64 {
    let odds = |count: LossCount| count.loss() / (1.0 - count.loss()).max(1e-3);
    let (echoes, olds) = (f64::from(echo.sent.max(1)), f64::from(old.sent.max(1)));
    let forward = (old.loss() * (1.0 - old.loss()) / olds).sqrt();
    let back = (1.0 - echo.loss()) / (1.0 - old.loss()).max(1e-3);
    forward.max(back * (odds(echo) / echoes + odds(old) / olds).sqrt())
}
