use super::Scenario;
use std::time::Duration;
use wt_link::{OutageConfig, QueueConfig, RateConfig, StageConfig, StepsConfig};
use wt_trial::Direction;
use wt_units::{BitsPerSecond, Bytes};

/// Something that happens once in every trial, so that one can time the recovery from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// The next packet that leaves the bottleneck is lost.
    Loss,
    /// The next ten packets are.
    Burst,
    /// Nothing passes for a second.
    Outage,
    /// The bottleneck has half its rate for so long, and then its own again.
    HalfRate {
        /// For how long.
        lasts: Duration,
    },
}

/// Packets of a burst.
const BURST: u32 = 10;

impl Disturbance {
    /// What it is, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Burst => "burst",
            Self::Outage => "outage",
            Self::HalfRate { .. } => "half-rate",
        }
    }
}

impl Scenario {
    /// The same path on which this happens at a time of each trial, to payload in one direction.
    ///
    /// Single packets are lost behind the bottleneck, where they come one serialisation time apart while it is busy.
    #[must_use]
    pub fn disturbed(mut self, what: Disturbance, at: Duration, direction: Direction) -> Self {
        let full = Bytes(self.pmtu());
        let slowest = |link: &super::Link| link.framing.wire_len(full) / link.down.rate;
        let Some(link) = self.links.iter_mut().max_by_key(|link| slowest(link)) else { return self };
        let framing = link.framing.clone();
        let way = match direction {
            Direction::Down => &mut link.down,
            Direction::Up => &mut link.up,
        };
        let packet: Duration = framing.wire_len(full) / way.rate;
        let gone = |from: Duration, lasts: Duration| {
            StageConfig::Outages(OutageConfig { windows: vec![(from, from + lasts)], period: None })
        };
        match what {
            // The stages behind the delay see each packet later by it.
            Disturbance::Loss => way.after.insert(0, gone(at + way.delay, packet)),
            Disturbance::Burst => way.after.insert(0, gone(at + way.delay, packet * BURST)),
            Disturbance::Outage => way.before.push(gone(at, Duration::from_secs(1))),
            Disturbance::HalfRate { lasts } => {
                let half = BitsPerSecond(way.rate.get() / 2);
                let steps = vec![(Duration::ZERO, way.rate), (at, half), (at + lasts, way.rate)];
                let rate = RateConfig::Steps(StepsConfig { steps, period: None });
                way.line = Some(StageConfig::Queue(QueueConfig { rate, ..way.drop_tail(framing.into()) }));
            }
        }
        self
    }
}
