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
    pub(crate) stats: StageStats,
}

enum Kind<P> {
    Mtu(u32),
    Loss(Loss),
    Outages(Outages),
    Queue(FifoQueue),
    Delay(u64),
    Jitter(Jitter),
    Duplicate(Chance),
    Corrupt { chance: Chance, detected: bool },
    JitterShuffle(Jitter, Shuffle<P>),
    Reorder { chance: Chance, by: u64, shuffle: Shuffle<P> },
}

impl<P> Stage<P> {
    pub(crate) fn new(config: &StageConfig, seed: u64, place: u64) -> Self {
        let mut dice = Dice::new(seed, place);
        let kind = Kind::new(config, &mut dice);
        Self { kind, dice, stats: StageStats::new(config.name()) }
    }

    /// Whether it holds packets.
    pub(crate) const fn holds(&self) -> bool {
        matches!(self.kind, Kind::JitterShuffle(..) | Kind::Reorder { .. })
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
            Kind::JitterShuffle(..) | Kind::Reorder { .. } => Verdict::Hold,
        }
    }

    /// A holding stage takes the packet for which it said [`Verdict::Hold`].
    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        match &mut self.kind {
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
            Kind::JitterShuffle(_, shuffle) | Kind::Reorder { shuffle, .. } => shuffle.due(),
            _ => u64::MAX,
        }
    }

    /// Does the one thing that is due.
    pub(crate) fn step(&mut self) -> Option<Held<P>> {
        match &mut self.kind {
            Kind::JitterShuffle(_, shuffle) | Kind::Reorder { shuffle, .. } => shuffle.step(),
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
