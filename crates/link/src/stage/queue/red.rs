use super::{Backlog, Signal};
use crate::dice::Dice;
use crate::{Packet, RedConfig};

/// Random early detection, by packets.
///
/// What this leaves out: weighting by packet size (the paper's byte mode).
#[derive(Debug, Clone)]
pub(crate) struct Red {
    config: RedConfig,
    /// The average queue, packets.
    average: f64,
    /// Packets since the last signal; `None` while the average is below the thresholds.
    since: Option<u32>,
    /// How long a typical packet takes on the line, nanoseconds: so many arrivals at an empty queue an idle time is worth.
    packet_time: f64,
}

impl Red {
    pub(crate) fn new(config: RedConfig, packet_time: u64) -> Self {
        Self { config, average: 0.0, since: None, packet_time: packet_time.max(1) as f64 }
    }

    pub(crate) fn signal<P>(&mut self, at: u64, backlog: &Backlog, packet: &Packet<P>, dice: &mut Dice) -> Signal {
        self.update_average(at, backlog);
        let (min, max) = (f64::from(self.config.min), f64::from(self.config.max));
        let ceiling = if self.config.gentle { 2.0 * max } else { max };
        if self.average < min {
            self.since = None;
            return Signal::None;
        }
        if self.average >= ceiling {
            self.since = Some(0);
            return Signal::Drop;
        }
        let since = self.since.map_or(0, |since| since.saturating_add(1));
        self.since = Some(since);
        let probability = self.probability(min, max);
        // Spaces the signals evenly: the chance grows with each packet that was spared.
        let spread = f64::from(since) * probability;
        let chance = if spread >= 1.0 { 1.0 } else { probability / (1.0 - spread) };
        if dice.uniform() >= chance {
            return Signal::None;
        }
        self.since = Some(0);
        if self.config.ecn && packet.ect && self.average < max { Signal::Mark } else { Signal::Drop }
    }

    fn probability(&self, min: f64, max: f64) -> f64 {
        let most = self.config.max_probability.get();
        if self.average < max {
            most * (self.average - min) / (max - min).max(1.0)
        } else {
            most + (1.0 - most) * (self.average - max) / max.max(1.0)
        }
    }

    fn update_average(&mut self, at: u64, backlog: &Backlog) {
        match backlog.idle_since() {
            Some(since) => {
                let arrivals = at.saturating_sub(since) as f64 / self.packet_time;
                self.average *= (1.0 - self.config.weight).powf(arrivals);
            }
            None => self.average += self.config.weight * (backlog.len() as f64 - self.average),
        }
    }
}
