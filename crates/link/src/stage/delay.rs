use crate::dice::{Chance, Dice};
use crate::{Distribution, JitterConfig, time::nanos};
use std::time::Duration;

/// A delay that changes at given times.
#[derive(Debug, Clone)]
pub(crate) struct DelaySteps {
    /// From when, which delay; in order.
    steps: Vec<(u64, u64)>,
    /// The latest departure so far; no packet leaves before it.
    latest: u64,
}

impl DelaySteps {
    pub(crate) fn new(steps: &[(Duration, Duration)]) -> Self {
        Self { steps: steps.iter().map(|(from, delay)| (nanos(*from), nanos(*delay))).collect(), latest: 0 }
    }

    /// When a packet leaves that arrives at `at`.
    pub(crate) fn departure(&mut self, at: u64) -> u64 {
        let begun = self.steps.partition_point(|(from, _)| *from <= at);
        let delay = begun.checked_sub(1).and_then(|last| self.steps.get(last)).map_or(0, |(_, delay)| *delay);
        self.latest = self.latest.max(at.saturating_add(delay));
        self.latest
    }
}

/// Draws delays, and repeats the last one with the chance that makes neighbours correlated.
#[derive(Debug, Clone)]
pub(crate) struct Jitter {
    distribution: Distribution,
    again: Chance,
    last: Option<u64>,
    /// The latest departure so far; no packet leaves before it when order is kept.
    latest: u64,
}

impl Jitter {
    pub(crate) fn new(config: &JitterConfig) -> Self {
        Self { distribution: config.distribution, again: config.correlation.into(), last: None, latest: 0 }
    }

    /// When a packet leaves that arrives at `at`, its delay alone considered.
    pub(crate) fn departure(&mut self, at: u64, dice: &mut Dice) -> u64 {
        let delay = match self.last {
            Some(last) if dice.happens(self.again) => last,
            _ => draw(self.distribution, dice),
        };
        self.last = Some(delay);
        at.saturating_add(delay)
    }

    /// The same, but never before the packet in front.
    pub(crate) fn in_order(&mut self, at: u64, dice: &mut Dice) -> u64 {
        self.latest = self.latest.max(self.departure(at, dice));
        self.latest
    }
}

/// One delay, nanoseconds. Floats convert with saturation, so nothing is negative.
fn draw(distribution: Distribution, dice: &mut Dice) -> u64 {
    match distribution {
        Distribution::Uniform { min, max } => {
            let (min, max) = (nanos(min), nanos(max));
            min.saturating_add((max.saturating_sub(min) as f64 * dice.uniform()).round() as u64)
        }
        Distribution::Normal { mean, deviation } => {
            dice.normal().mul_add(nanos(deviation) as f64, nanos(mean) as f64).round() as u64
        }
        Distribution::Pareto { scale, shape, max } => {
            let delay = nanos(scale) as f64 * dice.uniform().powf(-1.0 / shape);
            (delay.round() as u64).min(nanos(max))
        }
    }
}
