use super::report::CLEAR;
use super::{Flight, Item, Purpose, Search, Stage, USUAL_LEAST};
use crate::{Kind, Time, likelihood_ratio};
use rand::seq::SliceRandom as _;

/// Probes of one arm and block when losses are counted.
const BLOCK: u32 = 40;
/// Probes of one arm at most.
const MOST_OF_AN_ARM: u32 = 200;
/// So many times further apart leave those that show whether it is their rate that loses the long ones.
const SLOWER: u32 = 4;
/// The loss is taken for the same from this share of the way on from what a policer would still drop.
const ALIKE: f64 = 1.0 / 3.0;
/// They are no nearer to each other.
const SLOW_GAP: Time = Time::from_millis(2);

impl Search {
    /// Short and long packets in random order, when any that should get through was lost; then long ones alone, slower.
    pub(super) fn plan_loss(&mut self) {
        let Some(pmtu) = self.evidence.passed() else { return self.finish() };
        let lost = self.evidence.loss_below(pmtu) > 0.0 || self.flows_lost_some();
        let lossy = self.config.losses && lost && self.kind_for(pmtu) != Kind::Udp;
        let [short, long] = self.arms;
        let uneven = self.uneven_flows().is_some();
        let clear = self.long_lose_more() || likelihood_ratio(short, long) >= CLEAR || uneven;
        let lossless = short.sent > 0 && short.plus(long).lost() == 0;
        let kind = self.method();
        let slow = Item { kind, size: pmtu, ttl: None, purpose: Purpose::SlowLoss };
        if lossy
            && self.long_lose_more()
            && !uneven
            && self.is_by_rate().is_none()
            && self.slow_loss.sent < MOST_OF_AN_ARM
        {
            self.queue.extend([slow; BLOCK as usize]);
            return;
        }
        if !lossy || clear || lossless || long.sent >= MOST_OF_AN_ARM {
            self.stage = Stage::Clamp;
            return;
        }
        let small = if self.config.v6 { 1280 } else { USUAL_LEAST }.min(pmtu);
        let mut block = Vec::with_capacity(2 * BLOCK as usize);
        for (arm, size) in [(0, small), (1, pmtu)] {
            let item = Item { kind, size, ttl: None, purpose: Purpose::Loss(arm) };
            block.extend(std::iter::repeat_n(item, BLOCK as usize));
        }
        block.shuffle(&mut self.rng);
        self.queue.extend(block);
    }

    /// Whether it is clear that long packets get lost more often than short ones.
    pub(super) fn long_lose_more(&self) -> bool {
        let [short, long] = self.arms;
        likelihood_ratio(short, long) >= CLEAR && long.loss() > short.loss()
    }

    /// Whether long packets get lost by their own rate: clearly fewer do where they leave slower, or not; `None` as long as that isn't
    /// known. A policer counts bytes, and a short queue is full of long packets sooner.
    pub(super) fn is_by_rate(&self) -> Option<bool> {
        let (fast, slow) = (self.arms[1], self.slow_loss);
        if slow.sent == 0 {
            return None;
        }
        // What a policer that passes so few would still drop at a lower rate.
        let of_policer = |fast: f64| (1.0 - f64::from(SLOWER) * (1.0 - fast)).max(0.0);
        let expected = of_policer(fast.loss());
        let alike = slow.loss() >= expected + (fast.loss() - expected) * ALIKE;
        if !alike && slow.sent >= 2 * BLOCK && likelihood_ratio(fast, slow) >= CLEAR {
            return Some(true);
        }
        let all = slow.sent >= MOST_OF_AN_ARM;
        (alike && slow.interval().0 > of_policer(if all { fast.loss() } else { fast.interval().1 })).then_some(false)
    }

    /// How far apart long packets leave that shall not get lost by their own rate.
    pub(super) fn slow_gap(&self) -> Time {
        let counted = |flight: &&Flight| matches!(flight.item.purpose, Purpose::Loss(_));
        let block = self.flights.iter().filter(counted).map(|flight| flight.sent).take(2 * BLOCK as usize);
        let (first, last) = block.fold((None, Time::ZERO), |(first, _), at| (first.or(Some(at)), at));
        // Long ones alone are up to twice as many bytes.
        (last.saturating_sub(first.unwrap_or(last)) / (2 * BLOCK) * (2 * SLOWER)).max(SLOW_GAP)
    }
}
