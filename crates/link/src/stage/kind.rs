use super::airtime::Airtime;
use super::delay::{DelaySteps, Jitter};
use super::line::TokenBucket;
use super::loss::{Loss, Outages};
use super::queue::{FairQueue, FifoQueue};
use super::shuffle::Shuffle;
use super::thin::Thinning;
use super::{HoldEvent, Verdict};
use crate::dice::{Chance, Dice};
use crate::framing::Meter;
use crate::stats::StageStats;
use crate::{Discipline, DropReason, Packet, QueueConfig, StageConfig, TokenBucketConfig, time::nanos};

/// What a stage is.
pub(super) enum Kind<P> {
    /// A router between two links.
    Router,
    /// Lets packets through in the order of time, for a stage behind it that needs them so.
    Gate(Box<Shuffle<P>>),
    Mtu(u32),
    Loss(Loss),
    Outages(Outages),
    Queue(Box<FifoQueue>),
    FairQueue(Box<FairQueue<P>>),
    Policer(Box<(Meter, TokenBucket)>),
    Delay(u64),
    DelaySteps(DelaySteps),
    Jitter(Jitter),
    JitterShuffle(Box<(Jitter, Shuffle<P>)>),
    Reorder {
        chance: Chance,
        by: u64,
        shuffle: Box<Shuffle<P>>,
    },
    Duplicate(Chance),
    Corrupt {
        chance: Chance,
        detected: bool,
    },
    Thinning(Box<Thinning<P>>),
    Airtime(Box<Airtime<P>>),
}

impl StageConfig {
    /// Whether packets may leave it later than they arrive, and so be computed ahead.
    pub(crate) const fn looks_ahead(&self) -> bool {
        match self {
            Self::Mtu { .. }
            | Self::Loss(_)
            | Self::Outages(_)
            | Self::Duplicate { .. }
            | Self::Corrupt { .. }
            | Self::Policer(_) => false,
            Self::Queue(_)
            | Self::Delay { .. }
            | Self::DelaySteps { .. }
            | Self::Jitter(_)
            | Self::Reorder { .. }
            | Self::Thinning(_)
            | Self::Airtime(_) => true,
        }
    }

    /// Whether what it does to one packet depends on the times of others, so that it needs them in the order of time.
    pub(crate) const fn needs_order(&self) -> bool {
        match self {
            Self::Jitter(jitter) => !jitter.reorder,
            Self::Queue(_) | Self::Policer(_) | Self::Thinning(_) | Self::Airtime(_) | Self::DelaySteps { .. } => true,
            _ => false,
        }
    }
}

impl<P> Kind<P> {
    pub(super) fn new(config: &StageConfig, dice: &mut Dice) -> Self {
        match config {
            StageConfig::Mtu { mtu } => Self::Mtu(u32::try_from(mtu.get()).unwrap_or(u32::MAX)),
            StageConfig::Loss(loss) => Self::Loss(Loss::new(loss, dice)),
            StageConfig::Outages(outages) => Self::Outages(Outages::new(outages)),
            StageConfig::Queue(queue) => Self::queue(queue, dice),
            StageConfig::Policer(policer) => {
                let bucket = TokenBucketConfig { rate: policer.rate, burst: policer.burst, peak: None };
                Self::Policer(Box::new((Meter::new(&policer.framing), TokenBucket::new(&bucket))))
            }
            StageConfig::Delay { delay } => Self::Delay(nanos(*delay)),
            StageConfig::DelaySteps { steps } => Self::DelaySteps(DelaySteps::new(steps)),
            StageConfig::Jitter(jitter) if jitter.reorder => {
                Self::JitterShuffle(Box::new((Jitter::new(jitter), Shuffle::new())))
            }
            StageConfig::Jitter(jitter) => Self::Jitter(Jitter::new(jitter)),
            StageConfig::Reorder { probability, by } => {
                Self::Reorder { chance: (*probability).into(), by: nanos(*by), shuffle: Box::new(Shuffle::new()) }
            }
            StageConfig::Duplicate { probability } => Self::Duplicate((*probability).into()),
            StageConfig::Corrupt { probability, detected } => {
                Self::Corrupt { chance: (*probability).into(), detected: *detected }
            }
            StageConfig::Thinning(thinning) => Self::Thinning(Box::new(Thinning::new(thinning))),
            StageConfig::Airtime(airtime) => Self::Airtime(Box::new(Airtime::new(airtime, dice))),
        }
    }

    fn queue(config: &QueueConfig, dice: &mut Dice) -> Self {
        match &config.discipline {
            Discipline::DropTail | Discipline::Red(_) | Discipline::Pie(_) => {
                Self::Queue(Box::new(FifoQueue::new(config, dice)))
            }
            Discipline::CoDel(codel) => Self::FairQueue(Box::new(FairQueue::codel(config, codel, dice))),
            Discipline::FqCoDel(fair) => Self::FairQueue(Box::new(FairQueue::new(config, fair, dice))),
        }
    }

    pub(super) fn gate() -> Self {
        Self::Gate(Box::new(Shuffle::new()))
    }

    pub(super) const fn holds(&self) -> bool {
        matches!(
            self,
            Self::Gate(_)
                | Self::FairQueue(_)
                | Self::JitterShuffle(_)
                | Self::Reorder { .. }
                | Self::Thinning(_)
                | Self::Airtime(_)
        )
    }

    #[inline]
    pub(super) fn judge(&mut self, at: u64, packet: &mut Packet<P>, dice: &mut Dice) -> Verdict {
        match self {
            Self::Router => {
                packet.ttl = packet.ttl.saturating_sub(1);
                drop_if(packet.ttl == 0, DropReason::HopLimit, at)
            }
            Self::Mtu(mtu) => drop_if(packet.ip_len > *mtu, DropReason::TooBig { mtu: *mtu }, at),
            Self::Loss(loss) => drop_if(loss.loses(at, packet, dice), DropReason::Loss, at),
            Self::Outages(outages) => drop_if(outages.cover(at), DropReason::Outage, at),
            Self::Queue(queue) => queue.pass(at, packet, dice).map_or_else(Verdict::Drop, Verdict::Pass),
            Self::Policer(policer) => {
                let (meter, bucket) = &mut **policer;
                drop_if(!bucket.take(at, meter.wire_len(packet.ip_len)), DropReason::Policed, at)
            }
            Self::Delay(delay) => Verdict::Pass(at.saturating_add(*delay)),
            Self::DelaySteps(steps) => Verdict::Pass(steps.departure(at)),
            Self::Jitter(jitter) => Verdict::Pass(jitter.in_order(at, dice)),
            Self::Duplicate(chance) if dice.happens(*chance) => Verdict::Twice,
            Self::Duplicate(_) => Verdict::Pass(at),
            Self::Corrupt { chance, detected } => {
                let hit = dice.happens(*chance);
                packet.corrupted |= hit && !*detected;
                drop_if(hit && *detected, DropReason::Corrupted, at)
            }
            Self::Gate(_)
            | Self::FairQueue(_)
            | Self::JitterShuffle(_)
            | Self::Reorder { .. }
            | Self::Thinning(_)
            | Self::Airtime(_) => Verdict::Hold,
        }
    }

    pub(super) fn hold(&mut self, at: u64, packet: Packet<P>, dice: &mut Dice) {
        match self {
            Self::Gate(shuffle) => shuffle.hold(at, packet),
            Self::FairQueue(queue) => queue.hold(at, packet),
            Self::JitterShuffle(both) => {
                let (jitter, shuffle) = &mut **both;
                shuffle.hold(jitter.departure(at, dice), packet);
            }
            Self::Reorder { chance, by, shuffle } => {
                let late = if dice.happens(*chance) { *by } else { 0 };
                shuffle.hold(at.saturating_add(late), packet);
            }
            Self::Thinning(thinning) => thinning.hold(at, packet),
            Self::Airtime(airtime) => airtime.hold(at, packet),
            _ => unreachable!("only stages that hold say so"),
        }
    }

    pub(super) fn due(&self) -> u64 {
        match self {
            Self::Gate(shuffle) | Self::Reorder { shuffle, .. } => shuffle.due(),
            Self::JitterShuffle(both) => both.1.due(),
            Self::FairQueue(queue) => queue.due(),
            Self::Thinning(thinning) => thinning.due(),
            Self::Airtime(airtime) => airtime.due(),
            _ => u64::MAX,
        }
    }

    pub(super) fn step(&mut self, out: &mut Vec<HoldEvent<P>>) {
        match self {
            Self::Gate(shuffle) | Self::Reorder { shuffle, .. } => shuffle.step(out),
            Self::JitterShuffle(both) => both.1.step(out),
            Self::FairQueue(queue) => queue.step(out),
            Self::Thinning(thinning) => thinning.step(out),
            Self::Airtime(airtime) => airtime.step(out),
            _ => {}
        }
    }

    /// Adds what is known of the queue at `now`.
    pub(super) fn add_queue(&self, now: u64, stats: &mut StageStats) {
        let (inside, fullest) = match self {
            Self::Queue(queue) => (queue.backlog().at(now), queue.backlog().fullest()),
            Self::FairQueue(queue) => {
                stats.marked += queue.marked;
                (queue.at(now), queue.fullest)
            }
            Self::Airtime(airtime) => (airtime.at(now), airtime.fullest),
            _ => return,
        };
        (stats.queue_packets, stats.queue_bytes) = inside;
        (stats.max_queue_packets, stats.max_queue_bytes) = fullest;
    }
}

/// A stage that lets a packet through at once, or not at all.
#[inline]
const fn drop_if(dropped: bool, reason: DropReason, at: u64) -> Verdict {
    if dropped { Verdict::Drop(reason) } else { Verdict::Pass(at) }
}
