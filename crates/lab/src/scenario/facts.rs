use super::{Direction, Link, LossBy, QueueBound, Scenario, radio};
use std::time::Duration;
use wt_link::{
    Discipline, Distribution, JitterConfig, LinkConfig, LossConfig, MediumConfig, OutageConfig, PathConfig,
    PolicerConfig, QueueConfig, QueueLayer, RateConfig, StageConfig, WireLen,
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
        let goodput = |direction| self.goodput(pmtu, direction, |_, _| 1.0);
        let crossing = |link: &Link, there: &Direction, back: &Direction| {
            let over = |way: &Direction, wire: Bytes| wire / way.rate + way.mean_delay(wire.get());
            over(there, link.framing.wire_len(Bytes(pmtu))) + over(back, link.framing.wire_len(Bytes(HEADERS)))
        };
        FullSize {
            pmtu,
            payload,
            rtt: self.links.iter().map(|link| crossing(link, &link.down, &link.up)).sum(),
            rtt_up: self.links.iter().map(|link| crossing(link, &link.up, &link.down)).sum(),
            goodput_down: goodput(wt_trial::Direction::Down),
            goodput_up: goodput(wt_trial::Direction::Up),
        }
    }

    /// The most TCP payload that the path carries in a direction in packets of `pmtu` bytes, where each link carries a share of what it
    /// otherwise would. What a link duplicates takes room behind that, on the links that follow, too; but a short queue or burst is full
    /// for the copy, which comes right behind, and so has room for what the copy is of.
    fn goodput(
        &self,
        pmtu: u64,
        direction: wt_trial::Direction,
        share: impl Fn(&Link, &Direction) -> f64,
    ) -> BitsPerSecond {
        let payload = u128::from(pmtu.saturating_sub(HEADERS).max(1));
        let down = direction == wt_trial::Direction::Down;
        let mut copies = 1.0;
        let mut ceiling = |link: &Link| {
            let way = if down { &link.down } else { &link.up };
            if way.loses_everything() {
                return 0;
            }
            let wire = link.framing.wire_len(Bytes(pmtu)).get().max(1);
            let mut least = u128::MAX;
            for stage in &way.before {
                match stage {
                    StageConfig::Duplicate { probability } => copies *= 1.0 + probability.get(),
                    StageConfig::Policer(policer) => {
                        let counted = policer.framing.of(u32::try_from(pmtu).unwrap_or(u32::MAX)).max(1);
                        let policed = u128::from(policer.rate.get()) * payload / u128::from(counted);
                        if policer.burst.get() < ROOM * pmtu {
                            copies = 1.0;
                        }
                        least = least.min(part(policed, 1.0 / copies));
                    }
                    _ => {}
                }
            }
            if way.holds(pmtu) < ROOM {
                copies = 1.0;
            }
            least.min(part(way.carries(wire) * payload / u128::from(wire), share(link, way) / copies))
        };
        // A download meets the link beside the server first.
        let bits = if down {
            self.links.iter().rev().map(&mut ceiling).min()
        } else {
            self.links.iter().map(&mut ceiling).min()
        };
        BitsPerSecond(u64::try_from(bits.unwrap_or(0)).unwrap_or(u64::MAX))
    }

    /// The most TCP payload that full-sized packets carry in a direction in the long run: while an outage lasts that comes again and
    /// again, only what waits in the queue goes on.
    #[must_use]
    pub fn goodput_at_most(&self, direction: wt_trial::Direction) -> BitsPerSecond {
        let pmtu = self.pmtu();
        self.goodput(pmtu, direction, |link, way| {
            let packet = pmtu.min(link.mtu.get()).max(1);
            let wire = link.framing.wire_len(Bytes(packet));
            way.open_share(Bytes(wire.get().saturating_mul(way.holds(packet))) / way.rate)
        })
    }

    /// Whether more than [`goodput_at_most`](Self::goodput_at_most) goes through in a direction for a while: a bucket's or a policer's
    /// burst, a trace.
    #[must_use]
    pub fn has_bursts(&self, direction: wt_trial::Direction) -> bool {
        self.links.iter().any(|link| match direction {
            wt_trial::Direction::Down => link.down.has_bursts(),
            wt_trial::Direction::Up => link.up.has_bursts(),
        })
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
            physical_goodput_bps: self.is_steady().then(|| self.goodput_at_most(direction).get()),
        }
    }
}

/// A share of a rate; exactly the rate where that is all of it.
fn part(bits: u128, share: f64) -> u128 {
    if share >= 1.0 { bits } else { (bits as f64 * share) as u128 }
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

/// Where fewer packets wait, copies are dropped rather than what they are of.
const ROOM: u64 = 10;

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

    /// How many packets of so many bytes its queue holds, a last one that is cut counted whole.
    fn holds(&self, packet: u64) -> u64 {
        match self.queue {
            QueueBound::Bytes(bytes) => bytes.get().div_ceil(packet.max(1)),
            QueueBound::Packets(packets) => packets.into(),
        }
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

    /// The share of the time in which it sends at most, where a full queue lasts so long: outages that come again and again close what is
    /// before the queue, and it goes on until that is empty.
    fn open_share(&self, queue: Duration) -> f64 {
        if !self.has_steady_line() {
            return 1.0;
        }
        let away = |stage: &StageConfig| match stage {
            StageConfig::Outages(OutageConfig { windows, period: Some(period) }) if !period.is_zero() => {
                let idle = |(from, until): &(Duration, Duration)| {
                    (*until).min(*period).saturating_sub(*from).saturating_sub(queue).as_secs_f64()
                };
                (windows.iter().map(idle).sum::<f64>() / period.as_secs_f64()).min(1.0)
            }
            _ => 0.0,
        };
        self.before.iter().map(|stage| 1.0 - away(stage)).product()
    }

    /// Whether nothing on it can be faster than what it carries for a while, be it within a policer's burst.
    fn is_steady(&self) -> bool {
        self.has_brief_policers() && self.has_steady_line()
    }

    fn has_brief_policers(&self) -> bool {
        let is_brief = |policer: &PolicerConfig| policer.rate >= self.rate || policer.burst / policer.rate <= BRIEF;
        self.policers().all(is_brief)
    }

    fn has_bursts(&self) -> bool {
        let saves = match &self.line {
            Some(StageConfig::Queue(queue)) => matches!(queue.rate, RateConfig::TokenBucket(_) | RateConfig::Trace(_)),
            _ => false,
        };
        saves || !self.has_brief_policers()
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
