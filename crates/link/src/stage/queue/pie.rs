use super::{Backlog, Signal};
use crate::dice::Dice;
use crate::{Packet, PieConfig, time::nanos};

/// Mean length of a packet, bytes (RFC 8033): two of them are no queue.
const MEAN_PACKET: u64 = 1_024;
/// Above this probability packets are dropped even if they could be marked (RFC 8033, ECN support).
const MARK_LIMIT: f64 = 0.1;
/// From `.0` on the probability grows at most by `.1` at once (RFC 8033, cap on the drop probability's growth).
const GROWTH_CAP: (f64, f64) = (0.1, 0.02);
/// What is left of the probability after each update in an idle time (RFC 8033, drop probability calculation).
const DECAY: f64 = 0.98;
/// Below the probability in `.0` each step is divided by `.1` (RFC 8033, drop probability calculation).
const TUNING: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];

/// Of the updates that a long idle time has missed, so many are made up for: a quarter of an hour of them, after which
/// nothing is left of what was before.
const MOST_UPDATES: u64 = 1 << 16;

/// PIE: drops at the entrance, with a probability that an integral controller sets by the delay.
///
/// What this leaves out: the spacing of drops ("derandomization" in RFC 8033), and switching off at light load. The delay
/// is the time until the last packet is out, known exactly here, not estimated from the rate of departures.
#[derive(Debug, Clone)]
pub(crate) struct Pie {
    config: PieConfig,
    probability: f64,
    /// The delay at the last update, nanoseconds.
    delay: u64,
    /// The burst that is still let through, nanoseconds.
    allowance: u64,
    next_update: u64,
}

impl Pie {
    pub(crate) fn new(config: PieConfig) -> Self {
        let update = nanos(config.update).max(1);
        Self { config, probability: 0.0, delay: 0, allowance: nanos(config.max_burst), next_update: update }
    }

    pub(crate) fn signal<P>(&mut self, at: u64, backlog: &Backlog, packet: &Packet<P>, dice: &mut Dice) -> Signal {
        self.update_until(at, backlog.drained_at());
        let half = nanos(self.config.target) / 2;
        let delay = backlog.drained_at().saturating_sub(at);
        if self.probability == 0.0 && delay < half && self.delay < half {
            self.allowance = nanos(self.config.max_burst);
        }
        let light = self.delay < half && self.probability < 0.2;
        if self.allowance > 0 || light || backlog.bytes() <= 2 * MEAN_PACKET || dice.uniform() >= self.probability {
            return Signal::None;
        }
        if self.config.ecn && packet.ect && self.probability <= MARK_LIMIT { Signal::Mark } else { Signal::Drop }
    }

    /// Makes up for the updates since the last arrival: nobody has come in the meantime, so the delay only fell.
    fn update_until(&mut self, at: u64, drained_at: u64) {
        let step = nanos(self.config.update).max(1);
        let due = at.saturating_sub(self.next_update) / step;
        self.next_update = self.next_update.saturating_add(due.saturating_sub(MOST_UPDATES).saturating_mul(step));
        while self.next_update <= at {
            self.update(drained_at.saturating_sub(self.next_update));
            let next = self.next_update.saturating_add(step);
            if next == self.next_update {
                break;
            }
            self.next_update = next;
        }
    }

    fn update(&mut self, delay: u64) {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let target = self.config.target.as_secs_f64();
        let mut change =
            self.config.alpha * (seconds(delay) - target) + self.config.beta * (seconds(delay) - seconds(self.delay));
        let divisor = TUNING.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, divisor)| *divisor);
        change /= divisor;
        if self.probability >= GROWTH_CAP.0 {
            change = change.min(GROWTH_CAP.1);
        }
        self.probability += change;
        if delay == 0 && self.delay == 0 {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay = delay;
        self.allowance = self.allowance.saturating_sub(nanos(self.config.update));
    }
}
