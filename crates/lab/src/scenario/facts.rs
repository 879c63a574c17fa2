use super::{Direction, Link, LossBy, QueueBound, Scenario, radio};
use std::time::Duration;
use wt_link::{
    Discipline, Distribution, JitterConfig, LinkConfig, LossConfig, MediumConfig, PathConfig, PolicerConfig,
    QueueConfig, QueueLayer, RateConfig, StageConfig, WireLen,
};
use wt_trial::PathFacts;
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// Header bytes of the TCP segments that a Linux sends: IPv4 20, TCP 20, timestamps 12.
const HEADERS: u64 = 52;

/// What full-sized segments make of a scenario, by arithmetic alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullSize {
    /// The largest IP packet that gets through, bytes.
    pub pmtu: u64,
    /// TCP payload of a packet of that size with timestamps, bytes.
    pub payload: u64,
    /// From the first bit of a full-sized segment to the client until its ACK is back at the server, on an idle path.
    pub rtt: Duration,
    /// The same for a segment to the server.
    pub rtt_up: Duration,
    /// The most TCP payload that the path carries towards the client.
    pub goodput_down: BitsPerSecond,
    /// The most TCP payload that the path carries towards the server.
    pub goodput_up: BitsPerSecond,
}

impl Scenario {
    /// The stages of the path: host A is the client, so forward is up.
    #[must_use]
    pub fn path(&self) -> PathConfig {
        PathConfig { links: self.links.iter().map(Link::stages).collect() }
    }

    /// The largest IP packet that gets through in both directions, bytes.
    #[must_use]
    pub fn pmtu(&self) -> u64 {
        let hosts = u64::from(self.client_mtu.min(self.server_mtu));
        self.links.iter().map(|link| link.mtu.get()).fold(hosts, u64::min)
    }

    /// What follows for packets of `mtu` bytes (at most the path's).
    #[must_use]
    pub fn full_size(&self, mtu: u64) -> FullSize {
        let pmtu = mtu.min(self.pmtu());
        let payload = pmtu.saturating_sub(HEADERS).max(1);
        let goodput = |direction: fn(&Link) -> &Direction| {
            let ceiling = |link: &Link| {
                if direction(link).loses_everything() {
                    return 0;
                }
                let wire = link.framing.wire_len(Bytes(pmtu)).get().max(1);
                let sent = direction(link).carries(wire) * u128::from(payload) / u128::from(wire);
                let policed = |policer: &PolicerConfig| {
                    let counted = policer.framing.of(u32::try_from(pmtu).unwrap_or(u32::MAX)).max(1);
                    u128::from(policer.rate.get()) * u128::from(payload) / u128::from(counted)
                };
                direction(link).policers().map(policed).fold(sent, u128::min)
            };
            let bits = self.links.iter().map(ceiling).min().unwrap_or(0);
            BitsPerSecond(u64::try_from(bits).unwrap_or(u64::MAX))
        };
        let crossing = |link: &Link, there: &Direction, back: &Direction| {
            let over = |way: &Direction, wire: Bytes| wire / way.rate + way.mean_delay(wire.get());
            over(there, link.framing.wire_len(Bytes(pmtu))) + over(back, link.framing.wire_len(Bytes(HEADERS)))
        };
        FullSize {
            pmtu,
            payload,
            rtt: self.links.iter().map(|link| crossing(link, &link.down, &link.up)).sum(),
            rtt_up: self.links.iter().map(|link| crossing(link, &link.up, &link.down)).sum(),
            goodput_down: goodput(|link| &link.down),
            goodput_up: goodput(|link| &link.up),
        }
    }

    /// The first link that loses every packet, and which way; a connection over it is never established.
    #[must_use]
    pub fn dead_end(&self) -> Option<(&Link, wt_trial::Direction)> {
        let ways = |link| [(link, wt_trial::Direction::Down), (link, wt_trial::Direction::Up)];
        self.links.iter().flat_map(ways).find(|(link, way)| match way {
            wt_trial::Direction::Down => link.down.loses_everything(),
            wt_trial::Direction::Up => link.up.loses_everything(),
        })
    }

    /// The link that bounds downloads of full-sized segments.
    #[must_use]
    pub fn bottleneck(&self) -> &Link {
        let full = Bytes(self.pmtu());
        let slowest = self.links.iter().max_by_key(|link| link.framing.wire_len(full) / link.down.rate);
        // There is at least one link.
        slowest.unwrap_or(&self.links[0])
    }

    /// How long a full packet takes on the narrowest link, in the slower of its directions.
    #[must_use]
    pub fn packet_time(&self) -> Duration {
        let link = self.bottleneck();
        let wire = link.framing.wire_len(Bytes(self.pmtu()));
        (wire / link.down.rate).max(wire / link.up.rate)
    }

    /// The most that can be under way in one direction: what the path carries in an RTT, the bottleneck's queue, and what policers let
    /// through at once, bytes.
    #[must_use]
    pub fn in_flight(&self, direction: wt_trial::Direction) -> u64 {
        let full = self.full_size(self.pmtu());
        let link = self.bottleneck();
        let queue = match direction {
            wt_trial::Direction::Down => link.down.queue,
            wt_trial::Direction::Up => link.up.queue,
        };
        let queue = match queue {
            QueueBound::Bytes(bytes) => bytes.get(),
            QueueBound::Packets(packets) => u64::from(packets) * link.mtu.get(),
        };
        let (rate, rtt, way): (_, _, fn(&Link) -> &Direction) = match direction {
            wt_trial::Direction::Down => (full.goodput_down, full.rtt, |link| &link.down),
            wt_trial::Direction::Up => (full.goodput_up, full.rtt_up, |link| &link.up),
        };
        let bursts = self.links.iter().flat_map(|link| way(link).policers()).map(|policer| policer.burst.get());
        bursts.fold((rate * rtt).get().saturating_add(queue), u64::saturating_add)
    }

    fn is_steady(&self) -> bool {
        self.links.iter().all(|link| link.down.is_steady() && link.up.is_steady())
    }

    /// What is known of the path without running anything, for payload in this direction.
    #[must_use]
    pub fn facts(&self, direction: wt_trial::Direction) -> PathFacts {
        let full = self.full_size(self.pmtu());
        let (goodput, rtt) = match direction {
            wt_trial::Direction::Down => (full.goodput_down, full.rtt),
            wt_trial::Direction::Up => (full.goodput_up, full.rtt_up),
        };
        PathFacts {
            rtt_us: u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX),
            pmtu: full.pmtu,
            bdp_bytes: (goodput * rtt).get(),
            physical_goodput_bps: self.is_steady().then_some(goodput.get()),
        }
    }
}

impl Link {
    pub(super) fn stages(&self) -> LinkConfig {
        LinkConfig {
            forward: self.direction(&self.up),
            backward: self.direction(&self.down),
            medium: self.half_duplex.then(|| self.medium()),
        }
    }

    /// The shared medium: it has the rate, the queue and the propagation of both directions.
    fn medium(&self) -> MediumConfig {
        MediumConfig { rate: self.up.rate, extent: self.up.delay, bound: self.up.bound() }
    }

    fn direction(&self, direction: &Direction) -> Vec<StageConfig> {
        let mut stages = vec![StageConfig::Mtu { mtu: self.mtu }];
        if direction.loss.get() > 0.0 {
            let probability = direction.loss;
            stages.push(StageConfig::Loss(match direction.loss_by {
                LossBy::Random => LossConfig::Bernoulli { probability },
                LossBy::Index => LossConfig::ByDataIndex { probability },
            }));
        }
        stages.extend(direction.before.iter().cloned());
        if !self.half_duplex {
            let plain = || StageConfig::Queue(direction.drop_tail(self.framing.clone().into()));
            stages.push(direction.line.clone().unwrap_or_else(plain));
        }
        if !direction.delay.is_zero() && !self.half_duplex {
            stages.push(StageConfig::Delay { delay: direction.delay });
        }
        if !direction.jitter.is_zero() {
            let distribution =
                Distribution::Normal { mean: direction.jitter * JITTER_MEAN, deviation: direction.jitter };
            stages.push(StageConfig::Jitter(JitterConfig { distribution, correlation: Ratio(0.0), reorder: false }));
        }
        stages.extend(direction.after.iter().cloned());
        stages
    }
}

/// A policer's burst of no more than what it lets through in this time hardly shows in what a path carries.
const BRIEF: Duration = Duration::from_secs(1);

/// A normal jitter lies around so many standard deviations: what is cut at zero is one packet in 740.
const JITTER_MEAN: u32 = 3;

impl Direction {
    /// Propagation, with the mean of the jitter, and of what a radio adds for a packet that is so long on the wire.
    fn mean_delay(&self, wire: u64) -> Duration {
        let modelled = self.after.iter().map(|stage| match stage {
            StageConfig::Jitter(jitter) => jitter.distribution.mean(),
            _ => Duration::ZERO,
        });
        let radio = match &self.line {
            Some(StageConfig::Airtime(radio)) => radio::mean_wait(radio, wire),
            _ => Duration::ZERO,
        };
        self.delay + self.jitter * JITTER_MEAN + modelled.sum::<Duration>() + radio
    }

    /// The most bits per second that it carries of packets that are so long on the wire: of a radio's time not all is bits.
    fn carries(&self, wire: u64) -> u128 {
        match &self.line {
            Some(StageConfig::Airtime(radio)) => radio::carries(radio, wire),
            _ => self.rate.get().into(),
        }
    }

    pub(super) fn policers(&self) -> impl Iterator<Item = &PolicerConfig> {
        self.before.iter().filter_map(|stage| match stage {
            StageConfig::Policer(policer) => Some(policer),
            _ => None,
        })
    }

    /// Whether no packet passes it undamaged, whatever its size and whenever it comes.
    fn loses_everything(&self) -> bool {
        let all = |share: &Ratio| share.get() >= 1.0;
        let is_total = |stage: &StageConfig| match stage {
            StageConfig::Loss(loss) => match loss {
                LossConfig::Bernoulli { probability } | LossConfig::ByDataIndex { probability } => all(probability),
                LossConfig::GilbertElliott { loss_good, loss_bad, .. } => all(loss_good) && all(loss_bad),
                LossConfig::EveryNth { n } => *n == 1,
                LossConfig::BySize { long, short, .. } => all(long) && all(short),
                LossConfig::Numbered { .. } | LossConfig::Next { .. } => false,
            },
            StageConfig::Corrupt { probability, .. } => all(probability),
            StageConfig::Airtime(radio) => all(&radio.failure),
            _ => false,
        };
        all(&self.loss) || self.before.iter().chain(&self.line).any(is_total)
    }

    /// Whether nothing on it can be faster than what it carries for a while, be it within a policer's burst.
    fn is_steady(&self) -> bool {
        let is_brief = |policer: &PolicerConfig| policer.rate >= self.rate || policer.burst / policer.rate <= BRIEF;
        self.policers().all(is_brief) && self.has_steady_line()
    }

    fn has_steady_line(&self) -> bool {
        match &self.line {
            Some(StageConfig::Queue(queue)) => matches!(queue.rate, RateConfig::Constant(_) | RateConfig::Modem(_)),
            _ => true,
        }
    }

    pub(super) fn bound(&self) -> wt_link::QueueBound {
        let (packets, bytes) = match self.queue {
            QueueBound::Bytes(bytes) => (None, Some(bytes)),
            QueueBound::Packets(packets) => (Some(packets), None),
        };
        wt_link::QueueBound { packets, bytes, counted: QueueLayer::IpLen }
    }

    pub(super) fn drop_tail(&self, framing: WireLen) -> QueueConfig {
        QueueConfig {
            framing,
            rate: RateConfig::Constant(self.rate),
            bound: self.bound(),
            discipline: Discipline::DropTail,
        }
    }
}
