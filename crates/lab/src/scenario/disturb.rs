use super::Scenario;
use std::time::Duration;
use wt_link::{LossConfig, OutageConfig, QueueConfig, RateConfig, StageConfig, StepsConfig};
use wt_trial::Direction;
use wt_units::{BitsPerSecond, Bytes};

/// Something that happens once in every trial, so that one can time the recovery from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// The next packet of payload that comes out of the bottleneck is lost.
    Loss,
    /// The next ten are.
    Burst,
    /// Nothing passes for a second.
    Outage,
    /// The bottleneck has half its rate for so long, and then its own again.
    HalfRate {
        /// For how long.
        lasts: Duration,
    },
    /// The RTT of the empty path grows by half, for good: the route has changed.
    RttStep,
    /// Another connection transfers in the same direction for so long. The path itself stays as it is.
    Flow {
        /// For how long.
        lasts: Duration,
    },
}

/// Packets of a burst.
const BURST: u64 = 10;
/// How long an outage is.
const OUTAGE: Duration = Duration::from_secs(1);

impl Disturbance {
    /// What it is, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Burst => "burst",
            Self::Outage => "outage",
            Self::HalfRate { .. } => "half-rate",
            Self::RttStep => "rtt-step",
            Self::Flow { .. } => "flow",
        }
    }

    /// How long it lasts before one can recover from it; nothing for what happens at once or stays.
    #[must_use]
    pub fn lasts(self) -> Duration {
        match self {
            Self::Loss | Self::Burst | Self::RttStep => Duration::ZERO,
            Self::Outage => OUTAGE,
            Self::HalfRate { lasts } | Self::Flow { lasts } => lasts,
        }
    }
}

impl Scenario {
    /// The same path on which this happens at a time of each trial, to payload in one direction.
    ///
    /// Single packets are lost behind the bottleneck, so that its queue has them.
    #[must_use]
    pub fn disturbed(mut self, what: Disturbance, at: Duration, direction: Direction) -> Self {
        let full = Bytes(self.pmtu());
        let half_rtt = Duration::from_micros(self.facts(direction).rtt_us / 2);
        let slowest = |link: &super::Link| link.framing.wire_len(full) / link.down.rate;
        let Some(link) = self.links.iter_mut().max_by_key(|link| slowest(link)) else { return self };
        let framing = link.framing.clone();
        let way = match direction {
            Direction::Down => &mut link.down,
            Direction::Up => &mut link.up,
        };
        // The stages behind the delay see each packet later by it.
        let behind = at + way.delay;
        let lose = |packets| StageConfig::Loss(LossConfig::Next { from: behind, packets });
        match what {
            Disturbance::Loss => way.after.insert(0, lose(1)),
            Disturbance::Burst => way.after.insert(0, lose(BURST)),
            Disturbance::Outage => {
                let windows = vec![(at, at + OUTAGE)];
                way.before.push(StageConfig::Outages(OutageConfig { windows, period: None }));
            }
            Disturbance::HalfRate { lasts } => {
                let half = BitsPerSecond(way.rate.get() / 2);
                let steps = vec![(Duration::ZERO, way.rate), (at, half), (at + lasts, way.rate)];
                let rate = RateConfig::Steps(StepsConfig { steps, period: None });
                way.line = Some(StageConfig::Queue(QueueConfig { rate, ..way.drop_tail(framing.into()) }));
            }
            Disturbance::RttStep => {
                way.after.insert(0, StageConfig::DelaySteps { steps: vec![(behind, half_rtt)] });
            }
            Disturbance::Flow { .. } => {}
        }
        self
    }
}
