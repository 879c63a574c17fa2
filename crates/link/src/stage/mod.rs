//! The stages. Most of them know when a packet leaves as soon as it arrives: they *pass* it with its departure, which
//! may lie ahead, and the packet goes on at once to the next stage. The others *hold* packets until their time has come.

mod delay;
mod loss;
mod queue;
mod serialiser;
mod shuffle;

pub(crate) use queue::Bound;
pub(crate) use shuffle::Timed;

use crate::dice::{Chance, Dice};
use crate::stats::StageStats;
use crate::{Discipline, DropReason, Packet, StageConfig, Time, time::nanos};
use delay::Jitter;
use loss::{Loss, Outages};
use queue::FifoQueue;
use shuffle::Shuffle;

/// Names of the stages that no configuration has.
const ROUTER: &str = "router";
const GATE: &str = "gate";

/// What a stage does with an arriving packet.
pub(crate) enum Verdict {
    /// It leaves at this time.
    Pass(u64),
    /// It leaves twice, at the time of its arrival.
    Twice,
    /// It is lost.
    Drop(DropReason),
    /// The stage wants to hold it: give it to `hold`.
    Hold,
}

/// What a holding stage lets go of.
pub(crate) enum Held<P> {
    Pass { at: Time, packet: Packet<P> },
}

/// One stage with its generator and its counters.
pub(crate) struct Stage<P> {
    kind: Kind<P>,
    dice: Dice,
    stats: StageStats,
    /// The link that it belongs to.
    link: usize,
}

enum Kind<P> {
    /// A router between two links.
    Router,
    /// Lets packets through in the order of time, for a stage behind it that needs them so.
    Gate(Shuffle<P>),
    Mtu(u32),
    Loss(Loss),
    Outages(Outages),
    Queue(FifoQueue),
    Delay(u64),
    Jitter(Jitter),
    Duplicate(Chance),
    Corrupt {
        chance: Chance,
        detected: bool,
    },
    JitterShuffle(Jitter, Shuffle<P>),
    Reorder {
        chance: Chance,
        by: u64,
        shuffle: Shuffle<P>,
    },
}

impl<P> Stage<P> {
    /// A stage of a link; `place` is its number among all stages of the path, for its generator.
    pub(crate) fn new(config: &StageConfig, link: usize, seed: u64, place: u64) -> Self {
        let mut dice = Dice::new(seed, place);
        let kind = Kind::new(config, &mut dice);
        Self { kind, dice, stats: StageStats::new(config.name()), link }
    }

    /// The router in front of a link.
    pub(crate) fn router(link: usize) -> Self {
        Self { kind: Kind::Router, dice: Dice::new(0, 0), stats: StageStats::new(ROUTER), link }
    }

    /// A gate in front of a stage that needs arrivals in the order of time, where an injected packet could be earlier
    /// than packets that have been computed ahead.
    pub(crate) fn gate(link: usize) -> Self {
        Self { kind: Kind::Gate(Shuffle::new()), dice: Dice::new(0, 0), stats: StageStats::new(GATE), link }
    }

    /// Whether it holds packets.
    pub(crate) const fn holds(&self) -> bool {
        matches!(self.kind, Kind::Gate(_) | Kind::JitterShuffle(..) | Kind::Reorder { .. })
    }

    /// Whether it stands in the configuration, so that its statistics mean something.
    pub(crate) const fn is_configured(&self) -> bool {
        !matches!(self.kind, Kind::Router | Kind::Gate(_))
    }

    pub(crate) const fn link(&self) -> usize {
        self.link
    }

    /// A packet arrives; `at` is not before the arrival of the one before it.
    #[inline]
    pub(crate) fn arrive(&mut self, at: u64, packet: &mut Packet<P>) -> Verdict {
        self.stats.entered += 1;
        self.stats.bytes += u64::from(packet.ip_len);
        let verdict = self.judge(at, packet);
        self.stats.dropped += u64::from(matches!(verdict, Verdict::Drop(_)));
        verdict
    }

    #[inline]
    fn judge(&mut self, at: u64, packet: &mut Packet<P>) -> Verdict {
        match &mut self.kind {
            Kind::Router => {
                packet.ttl = packet.ttl.saturating_sub(1);
                if packet.ttl == 0 { Verdict::Drop(DropReason::HopLimit) } else { Verdict::Pass(at) }
            }
            Kind::Mtu(mtu) if packet.ip_len > *mtu => Verdict::Drop(DropReason::TooBig { mtu: *mtu }),
            Kind::Mtu(_) => Verdict::Pass(at),
            Kind::Loss(loss) => {
                if loss.loses(packet, &mut self.dice) {
                    Verdict::Drop(DropReason::Loss)
                } else {
                    Verdict::Pass(at)
                }
            }
            Kind::Outages(outages) => outages.reason_at(at).map_or(Verdict::Pass(at), Verdict::Drop),
            Kind::Queue(queue) => queue.pass(at, packet).map_or_else(Verdict::Drop, Verdict::Pass),
            Kind::Delay(delay) => Verdict::Pass(at.saturating_add(*delay)),
            Kind::Jitter(jitter) => Verdict::Pass(jitter.in_order(at, &mut self.dice)),
            Kind::Duplicate(chance) => {
                if self.dice.happens(*chance) {
                    self.stats.duplicated += 1;
                    Verdict::Twice
                } else {
                    Verdict::Pass(at)
                }
            }
            Kind::Corrupt { chance, detected } => {
                if !self.dice.happens(*chance) {
                    return Verdict::Pass(at);
                }
                if *detected {
                    return Verdict::Drop(DropReason::Corrupted);
                }
                packet.corrupted = true;
                self.stats.marked += 1;
                Verdict::Pass(at)
            }
            Kind::Gate(_) | Kind::JitterShuffle(..) | Kind::Reorder { .. } => Verdict::Hold,
        }
    }

    /// A holding stage takes the packet for which it said [`Verdict::Hold`].
    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        match &mut self.kind {
            Kind::Gate(shuffle) => shuffle.hold(at, packet),
            Kind::JitterShuffle(jitter, shuffle) => shuffle.hold(jitter.departure(at, &mut self.dice), packet),
            Kind::Reorder { chance, by, shuffle } => {
                let late = if self.dice.happens(*chance) { *by } else { 0 };
                shuffle.hold(at.saturating_add(late), packet);
            }
            _ => unreachable!("only stages that hold say so"),
        }
    }

    /// When a holding stage next does something.
    pub(crate) fn due(&self) -> u64 {
        match &self.kind {
            Kind::Gate(shuffle) | Kind::JitterShuffle(_, shuffle) | Kind::Reorder { shuffle, .. } => shuffle.due(),
            _ => u64::MAX,
        }
    }

    /// Does the one thing that is due.
    pub(crate) fn step(&mut self) -> Option<Held<P>> {
        match &mut self.kind {
            Kind::Gate(shuffle) | Kind::JitterShuffle(_, shuffle) | Kind::Reorder { shuffle, .. } => shuffle.step(),
            _ => None,
        }
    }

    /// The counters, with the queue as it is at `now`.
    pub(crate) fn stats_at(&self, now: u64) -> StageStats {
        let mut stats = self.stats.clone();
        if let Kind::Queue(queue) = &self.kind {
            (stats.queue_packets, stats.queue_bytes) = queue.backlog().at(now);
            (stats.max_queue_packets, stats.max_queue_bytes) = queue.backlog().fullest;
        }
        stats
    }
}

impl StageConfig {
    /// Whether packets may leave it later than they arrive, and so be computed ahead.
    pub(crate) const fn looks_ahead(&self) -> bool {
        match self {
            Self::Mtu { .. } | Self::Loss(_) | Self::Outages(_) | Self::Duplicate { .. } | Self::Corrupt { .. } => {
                false
            }
            Self::Queue(_) | Self::Delay { .. } | Self::Jitter(_) | Self::Reorder { .. } => true,
        }
    }

    /// Whether what it does to one packet depends on the times of others, so that it needs them in the order of time.
    pub(crate) const fn needs_order(&self) -> bool {
        match self {
            Self::Jitter(jitter) => !jitter.reorder,
            Self::Queue(_) => true,
            _ => false,
        }
    }
}

impl<P> Kind<P> {
    fn new(config: &StageConfig, dice: &mut Dice) -> Self {
        match config {
            StageConfig::Mtu { mtu } => Self::Mtu(u32::try_from(mtu.get()).unwrap_or(u32::MAX)),
            StageConfig::Loss(loss) => Self::Loss(Loss::new(loss, dice)),
            StageConfig::Outages(outages) => Self::Outages(Outages::new(outages)),
            StageConfig::Queue(queue) => match queue.discipline {
                Discipline::DropTail => Self::Queue(FifoQueue::new(queue)),
            },
            StageConfig::Delay { delay } => Self::Delay(nanos(*delay)),
            StageConfig::Jitter(jitter) if jitter.reorder => Self::JitterShuffle(Jitter::new(jitter), Shuffle::new()),
            StageConfig::Jitter(jitter) => Self::Jitter(Jitter::new(jitter)),
            StageConfig::Reorder { probability, by } => {
                Self::Reorder { chance: (*probability).into(), by: nanos(*by), shuffle: Shuffle::new() }
            }
            StageConfig::Duplicate { probability } => Self::Duplicate((*probability).into()),
            StageConfig::Corrupt { probability, detected } => {
                Self::Corrupt { chance: (*probability).into(), detected: *detected }
            }
        }
    }
}
