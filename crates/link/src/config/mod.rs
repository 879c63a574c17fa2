//! What a path is made of. Every value is checked by `validate`.

/// Queues, lines and their disciplines.
mod queue;
/// Radio links, thinning of acknowledgements, policers.
mod radio;

pub use queue::{
    CoDelConfig, Discipline, FqCoDelConfig, ModemConfig, PieConfig, QueueBound, QueueConfig, QueueLayer, RateConfig,
    RedConfig, RetrainConfig, StepsConfig, TokenBucketConfig, TraceConfig,
};
pub use radio::{AirtimeConfig, PolicerConfig, ThinningConfig};

use crate::MediumConfig;
use std::time::Duration;
use wt_units::{Bytes, Ratio};

/// A path between two hosts: links in order, the first one at host A.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathConfig {
    /// The links; between each two of them stands a router.
    pub links: Vec<LinkConfig>,
}

/// One link with its two directions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkConfig {
    /// What packets from A to B pass, in order.
    pub forward: Vec<StageConfig>,
    /// What packets from B to A pass, in order.
    pub backward: Vec<StageConfig>,
    /// A medium for which both directions contend, behind the stages of each.
    pub medium: Option<MediumConfig>,
}

/// One direction by itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipeConfig {
    /// What packets pass, in order.
    pub stages: Vec<StageConfig>,
}

/// One stage of a direction.
#[derive(Debug, Clone, PartialEq)]
pub enum StageConfig {
    /// Longer packets are dropped; the engine sends the ICMP message.
    Mtu {
        /// The longest IP packet.
        mtu: Bytes,
    },
    /// Random or planned loss.
    Loss(LossConfig),
    /// Windows of time in which every packet is lost.
    Outages(OutageConfig),
    /// A queue in front of a line of a rate.
    Queue(QueueConfig),
    /// A rate above which packets are dropped.
    Policer(PolicerConfig),
    /// The same delay for every packet: propagation.
    Delay {
        /// One way.
        delay: Duration,
    },
    /// A delay that changes at given times, as when a route changes. Order is kept.
    DelaySteps {
        /// From when on which delay, in order; none before the first.
        steps: Vec<(Duration, Duration)>,
    },
    /// A delay that differs from packet to packet.
    Jitter(JitterConfig),
    /// Some packets are held back, so that later ones overtake them.
    Reorder {
        /// How many.
        probability: Ratio,
        /// How long each of them is held back.
        by: Duration,
    },
    /// Some packets arrive twice.
    Duplicate {
        /// How many.
        probability: Ratio,
    },
    /// Some packets have bits flipped.
    Corrupt {
        /// How many.
        probability: Ratio,
        /// Whether the link has a checksum and drops them; otherwise they are marked and the engine flips bits.
        detected: bool,
    },
    /// Fewer acknowledgements.
    Thinning(ThinningConfig),
    /// A radio link that sends several packets at once, with its queue.
    Airtime(AirtimeConfig),
}

impl StageConfig {
    /// Its name in files and in statistics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Mtu { .. } => "mtu",
            Self::Loss(_) => "loss",
            Self::Outages(_) => "outages",
            Self::Queue(_) => "queue",
            Self::Policer(_) => "policer",
            Self::Delay { .. } => "delay",
            Self::DelaySteps { .. } => "delay_steps",
            Self::Jitter(_) => "jitter",
            Self::Reorder { .. } => "reorder",
            Self::Duplicate { .. } => "duplicate",
            Self::Corrupt { .. } => "corrupt",
            Self::Thinning(_) => "thinning",
            Self::Airtime(_) => "airtime",
        }
    }
}

/// Which packets are lost.
#[derive(Debug, Clone, PartialEq)]
pub enum LossConfig {
    /// Each packet independently.
    Bernoulli {
        /// How many.
        probability: Ratio,
    },
    /// Two states, each with a loss rate of its own: losses come in bursts.
    ///
    /// # Source
    /// E. N. Gilbert, Bell Syst. Tech. J. 39, 1960; E. O. Elliott, Bell Syst. Tech. J. 42, 1963. The state changes
    /// before each packet.
    ///
    /// # Differs from Linux
    /// netem's `loss gemodel` loses by the state before the change.
    GilbertElliott {
        /// From good to bad, per packet.
        to_bad: Ratio,
        /// From bad to good, per packet: one over the mean length of a bad spell.
        to_good: Ratio,
        /// Loss while good.
        loss_good: Ratio,
        /// Loss while bad.
        loss_bad: Ratio,
    },
    /// The n-th, the 2n-th, … packet.
    EveryNth {
        /// n.
        n: u64,
    },
    /// By the length of the IP packet.
    BySize {
        /// Packets longer than this are the long ones.
        above: Bytes,
        /// Loss of long packets.
        long: Ratio,
        /// Loss of the others.
        short: Ratio,
    },
    /// By the index of the data packet: which indices are lost follows from the seed alone, whatever is sent and
    /// whenever, so that settings which are compared meet the same losses. Packets without data always pass.
    ByDataIndex {
        /// How many of the indices.
        probability: Ratio,
    },
    /// Of each connection certain packets with data: their numbers, from 1, ascending. A SYN begins to count anew; connections
    /// at the same time are counted together. Packets without data always pass, and what is retransmitted has a number of its own.
    Numbered {
        /// The numbers.
        packets: Vec<u64>,
    },
    /// The next packets with data from a time on. Packets without data always pass.
    Next {
        /// From when on.
        from: Duration,
        /// How many packets, one after another.
        packets: u64,
    },
}

/// When nothing passes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutageConfig {
    /// From (inclusive) and until (exclusive) when, in order and apart.
    pub windows: Vec<(Duration, Duration)>,
    /// After this long the windows come again; `None`: once only.
    pub period: Option<Duration>,
}

/// How delays vary.
#[derive(Debug, Clone, PartialEq)]
pub struct JitterConfig {
    /// The delay's distribution.
    pub distribution: Distribution,
    /// The chance that a packet has the delay of the packet before: the correlation of neighbours, while the
    /// distribution stays exactly as it is.
    ///
    /// # Differs from Linux
    /// netem mixes each draw with the one before, which also narrows the distribution.
    pub correlation: Ratio,
    /// Whether a packet with a short delay overtakes; otherwise it waits for the one before it.
    pub reorder: bool,
}

/// A distribution of delays; none is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Evenly between two delays.
    Uniform {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// Normal, cut at zero.
    Normal {
        /// Mean before the cut.
        mean: Duration,
        /// Standard deviation before the cut.
        deviation: Duration,
    },
    /// Pareto's, from `scale` on: heavy-tailed. The mean is scale × shape / (shape − 1).
    Pareto {
        /// The shortest delay.
        scale: Duration,
        /// Heavier tails with smaller shapes; the variance is finite above 2.
        shape: f64,
        /// Longer delays are cut to this.
        max: Duration,
    },
}

impl Distribution {
    /// Its mean; what the cuts at its ends change is left out.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match *self {
            Self::Uniform { min, max } => min + max.saturating_sub(min) / 2,
            Self::Normal { mean, .. } => mean,
            // Close to a shape of 1 the mean is beyond any duration.
            Self::Pareto { scale, shape, max } if shape > 1.0 => {
                Duration::try_from_secs_f64(scale.as_secs_f64() * shape / (shape - 1.0))
                    .map_or(max, |mean| mean.min(max))
            }
            Self::Pareto { max, .. } => max,
        }
    }
}
