//! Loss by packet size.
//!
//! All sizes go in one stream in random order, so that a bad moment hits all of them alike. First every size, then more of
//! the shortest and of the longest until it is clear whether the size makes a difference, then more of those sizes at
//! which loss may begin. Whether it does is told by an e-process, so that looking often costs nothing; see `weigh`.
//!
//! # What this leaves out
//! More than one threshold.

/// What a size brings.
mod goodput;
/// The connection that old segments need.
mod opening;
/// What is sent next.
mod plan;
/// Whether it is the scan's own rate that loses packets.
mod rate;
/// How probes get lost: whether the size counts, and from which on.
mod weigh;

pub use goodput::{Goodput, goodput};

use crate::{Answer, Kind, LossCount, Machine, Probe, ProbeAnswer, Rtt, Time};
use opening::Opening;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};
use weigh::{Place, Stretch};

/// Probes of a size that is too long anyway.
const BEYOND: u32 = 3;
/// With less than this probability loss begins below the size that is called safe.
const UNSAFE: f64 = 0.025;
/// The block of what opens the connection.
const OPENING: usize = 0;
/// So surely do long packets get lost more often where that is said without the evidence.
const SURELY: f64 = 0.999;

/// What is known before the first probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanConfig {
    /// The sizes, bytes, in any order.
    pub sizes: Vec<u16>,
    /// The largest that gets through; longer ones are sent a few times only.
    pub pmtu: u16,
    /// What is sent.
    pub kind: Kind,
    /// Whether every other probe shall be an old segment, which tells the loss of the way there alone. Needs
    /// [`Kind::Syn`], and a target that accepts connections.
    pub split: bool,
    /// Whether [`Kind::LooseEcho`] can be sent, too.
    pub loose: bool,
    /// Probes of all sizes together, before anything is looked at.
    pub first: u32,
    /// Probes within which the place is told, if it was clear by then that there is one.
    pub quick: u32,
    /// Probes at most until the place is told.
    pub most: u32,
    /// Probes at most, with those that split the loss into both directions.
    pub most_in_all: u32,
}

/// One size.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScanSize {
    /// The length of the IP packet, bytes.
    pub size: u16,
    /// Probes and answers.
    pub count: LossCount,
    /// The median round-trip time.
    pub rtt: Option<Time>,
    /// The shortest one.
    pub least_rtt: Option<Time>,
}

/// Where loss begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// The largest size that belongs to those below, bytes.
    pub below: u16,
    /// The smallest size that belongs to those above, bytes.
    pub above: u16,
    /// Loss below.
    pub low: LossCount,
    /// Loss above.
    pub high: LossCount,
    /// The evidence that there is one at all: by how much a stake on it has grown.
    pub evidence: f64,
    /// The largest size that is surely below, bytes: at most [`below`](Self::below).
    pub safe: u16,
}

/// Loss by direction, of the longest packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Directions {
    /// On the way there.
    pub forward: f64,
    /// On the way back.
    pub reverse: f64,
}

/// Short packets at the scan's rate and at half of it; or long ones, where those get lost more often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateCheck {
    /// Loss at the scan's rate.
    pub full: LossCount,
    /// Loss at half of it.
    pub half: LossCount,
    /// How often the scan began anew at half its rate.
    pub halvings: u32,
    /// Whether even the last of the rates causes loss.
    pub persists: bool,
    /// Whether it is of long packets.
    pub long: bool,
}

impl RateCheck {
    /// Whether the last rate is ruled out as the cause: a target that answers so many a second would have lost far less at half of it
    /// than was. Where it isn't, and no difference is shown, it is open.
    #[must_use]
    pub fn is_ruled_out(&self) -> bool {
        !self.persists && self.half.interval().0 > self.of_rationing()
    }

    /// The most that a target that answers so many a second would lose at half the rate, by what was lost at the full one.
    fn of_rationing(&self) -> f64 {
        (2.0 * self.full.interval().1 - 1.0).max(0.0)
    }
}

/// Packets that routers may cut into fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loose {
    /// The length of the IP packet, bytes.
    pub size: u16,
    /// Probes and answers.
    pub count: LossCount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Arms,
    Rate,
    Narrow,
    Split,
    Loose,
    Done,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    size: u16,
    kind: Kind,
    sent: Time,
    block: usize,
    answered: Option<Time>,
    /// The round-trip time that the kernel measured, where it did.
    trip: Option<Time>,
}

impl Flight {
    /// It alone as a count.
    fn count(&self) -> LossCount {
        LossCount { sent: 1, answered: u32::from(self.answered.is_some()) }
    }

    /// The round-trip time that an answer at this time shows.
    fn rtt(&self, answered: Time) -> Time {
        self.trip.unwrap_or(answered.saturating_sub(self.sent) / self.kind.round_trips())
    }
}

/// Probes that were queued at once, in random order.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Whether its losses count for the sizes.
    counts: bool,
    /// How many times as far apart as the first ones that count; 0 for no further than the scan's gap.
    slower: f64,
}

/// A scan of loss by size.
#[derive(Debug)]
pub struct Scan {
    config: ScanConfig,
    rng: ChaCha8Rng,
    stage: Stage,
    over: bool,
    /// Whether and by how much it is clear that the size counts.
    evidence: Option<f64>,
    /// Whether it isn't the scan's rate that makes it do so.
    size_counts: bool,
    /// Packets sent when that became clear.
    clear_at: u32,
    /// Packets of blocks that left in pairs, one at half the rate and one at the full rate.
    compared: u32,
    /// What is to be sent, and with which block.
    queue: VecDeque<(u16, Kind, usize)>,
    flights: Vec<Flight>,
    blocks: Vec<Block>,
    /// Least time from one probe to the next, after halvings of the rate.
    gap: Time,
    /// When what has come was last looked at.
    asked: Time,
    /// Packets sent when it was last asked what to do before all fates were known.
    planned_at: u32,
    halvings: u32,
    /// Whether it is known that the rate costs nothing, or can't be lowered.
    rate_known: bool,
    checked: Option<RateCheck>,
    rtt: Rtt,
    heard: Option<Time>,
    opening: Opening,
    /// The latest probe that was answered, and how many were answered after a later one.
    latest: usize,
    reordered: u32,
}

impl Scan {
    /// A scan that has sent nothing yet.
    #[must_use]
    pub fn new(config: ScanConfig, rng: ChaCha8Rng) -> Self {
        let opening = Opening::new(config.split || config.kind == Kind::OldSegment);
        let mut scan = Self {
            config,
            rng,
            stage: Stage::Arms,
            over: false,
            evidence: None,
            size_counts: false,
            clear_at: 0,
            compared: 0,
            queue: VecDeque::new(),
            flights: Vec::new(),
            blocks: Vec::new(),
            gap: Time::ZERO,
            asked: Time::ZERO,
            planned_at: 0,
            halvings: 0,
            rate_known: false,
            checked: None,
            rtt: Rtt::default(),
            heard: None,
            opening,
            latest: 0,
            reordered: 0,
        };
        scan.config.sizes.sort_unstable();
        scan.config.sizes.dedup();
        debug_assert_eq!(scan.blocks.len(), OPENING);
        scan.blocks.push(Block { counts: false, slower: 0.0 });
        scan.cover();
        scan
    }

    /// Every size alike; too long ones a few times. With too few packets for that, as many sizes as there are packets for.
    fn cover(&mut self) {
        let number = |sizes: usize| u32::try_from(sizes.max(1)).unwrap_or(u32::MAX);
        let passing = self.passing().count();
        let each = (self.config.first / number(passing)).max(BEYOND);
        let all = self.config.sizes.len();
        let (each, beyond) = match self.left() / number(all) {
            enough if enough >= BEYOND => {
                let too_long = u32::try_from(all - passing).unwrap_or(u32::MAX);
                let rest = self.left() - BEYOND.saturating_mul(too_long).min(self.left());
                (each.min(rest / number(passing)).max(BEYOND), BEYOND)
            }
            few => (few.max(1), few.max(1)),
        };
        let count = |size: &u16| if *size <= self.config.pmtu { each } else { beyond };
        let room = (self.left() as usize).max(2);
        let step = all.div_ceil(room);
        let chosen = self.config.sizes.iter().rev().step_by(step.max(1));
        let sizes: Vec<u16> = chosen.flat_map(|size| std::iter::repeat_n(*size, count(size) as usize)).collect();
        self.send(sizes, true, 0.0);
    }

    /// Queues probes of these sizes in random order; where directions are told apart, half of each size are old segments.
    fn send(&mut self, mut sizes: Vec<u16>, counts: bool, slower: f64) {
        sizes.sort_unstable();
        let kind = |index: usize| match self.config.kind {
            Kind::Echo if self.config.split && index % 2 == 1 => Kind::OldSegment,
            kind => kind,
        };
        let stream = sizes.into_iter().enumerate().map(|(index, size)| (size, kind(index))).collect();
        self.queue_up(stream, counts, slower);
    }

    fn queue_up(&mut self, mut stream: Vec<(u16, Kind)>, counts: bool, slower: f64) {
        stream.shuffle(&mut self.rng);
        let block = self.blocks.len();
        self.blocks.push(Block { counts, slower });
        self.queue.extend(stream.into_iter().map(|(size, kind)| (size, kind, block)));
    }

    fn passing(&self) -> impl Iterator<Item = u16> + '_ {
        self.config.sizes.iter().copied().filter(|size| *size <= self.config.pmtu)
    }

    /// The probes that count for the sizes and whose fate is known.
    fn counted(&self) -> impl Iterator<Item = &Flight> {
        self.known().filter(|(_, block)| block.counts).map(|(flight, _)| flight)
    }

    /// The probes of some size whose fate is known, with their blocks.
    fn known(&self) -> impl Iterator<Item = (&Flight, &Block)> {
        let wait = self.wait();
        let sized = |flight: &&Flight| !matches!(flight.kind, Kind::Syn | Kind::LooseEcho);
        let known = move |flight: &&Flight| flight.answered.is_some() || flight.sent + wait <= self.asked;
        let flights = self.flights.iter().filter(sized).filter(known);
        flights.filter_map(|flight| Some((flight, self.blocks.get(flight.block)?)))
    }

    /// So long after its sending a probe without an answer is lost.
    fn wait(&self) -> Time {
        self.rtt.smoothed().map_or(Rtt::UNKNOWN, |rtt| rtt + self.rtt.grace())
    }

    /// Size by size.
    #[must_use]
    pub fn sizes(&self) -> Vec<ScanSize> {
        let mut sizes: BTreeMap<u16, (LossCount, Vec<Time>)> = BTreeMap::new();
        for flight in self.counted() {
            let (count, rtts) = sizes.entry(flight.size).or_default();
            count.sent += 1;
            if let Some(at) = flight.answered {
                count.answered += 1;
                rtts.push(flight.rtt(at));
            }
        }
        let row = |(size, (count, mut rtts)): (u16, (LossCount, Vec<Time>))| {
            rtts.sort_unstable();
            ScanSize { size, count, rtt: rtts.get(rtts.len() / 2).copied(), least_rtt: rtts.first().copied() }
        };
        sizes.into_iter().map(row).collect()
    }

    /// All round-trip times, in the order of sending.
    pub fn rtts(&self) -> impl Iterator<Item = Time> + '_ {
        self.counted().filter_map(|flight| Some(flight.rtt(flight.answered?)))
    }

    /// How many answers came after the answer to a later probe.
    #[must_use]
    pub const fn reordered(&self) -> u32 {
        self.reordered
    }

    /// Where loss begins, if it is clear that it does, and not by the scan's rate.
    #[must_use]
    pub fn threshold(&self) -> Option<Threshold> {
        let evidence = self.evidence.filter(|_| self.size_counts)?;
        let (places, best) = (self.places(), self.best_place()?);
        let mut sum = 0.0;
        let safe = places.iter().find(|place| {
            sum += place.weight;
            sum > UNSAFE
        });
        let Place { below, above, low, high, .. } = best;
        Some(Threshold { below, above, low, high, evidence, safe: safe.map_or(below, |place| place.below.min(below)) })
    }

    /// The evidence that longer packets get lost more often, where it is enough, by whatever it is that they do: by how much a stake on it
    /// has grown.
    #[must_use]
    pub const fn evidence(&self) -> Option<f64> {
        self.evidence
    }

    /// Whether longer packets get lost more often, and nothing says why: neither is it known to be the scan's rate, nor not to be.
    ///
    /// Losses count that were too few, or came too late, for the evidence: those of the longest tenth of the sizes that are surely more than
    /// those of the shortest, among packets that left together.
    #[must_use]
    pub fn leaves_open(&self) -> bool {
        let by_rate = self.checked.is_some_and(|check| check.halvings > 0 || check.persists);
        !by_rate && !self.size_counts && (self.evidence.is_some() || self.longest_lose_more())
    }

    fn longest_lose_more(&self) -> bool {
        let sizes: Vec<u16> = self.passing().collect();
        let tenth = sizes.len().div_ceil(10).min(sizes.len() / 2);
        let ends = [&sizes[..tenth], &sizes[sizes.len() - tenth..]];
        let mut blocks: BTreeMap<usize, [LossCount; 2]> = BTreeMap::new();
        for flight in self.counted() {
            let Some(end) = ends.iter().position(|end| end.contains(&flight.size)) else { continue };
            let count = &mut blocks.entry(flight.block).or_default()[end];
            *count = count.plus(flight.count());
        }
        let together = blocks.into_values().filter(|[short, long]| short.sent > 0 && long.sent > 0);
        let [short, long] =
            together.fold([LossCount::default(); 2], |sum, [short, long]| [sum[0].plus(short), sum[1].plus(long)]);
        long.interval_at(SURELY).0 > short.interval_at(SURELY).1
    }

    /// Counts of the sizes that get through.
    fn counts_by_size(&self) -> Vec<(u16, LossCount)> {
        let passing = self.sizes().into_iter().filter(|row| row.size <= self.config.pmtu);
        passing.map(|row| (row.size, row.count)).collect()
    }

    fn places(&self) -> Vec<Place> {
        weigh::places(&self.counts_by_size())
    }

    fn best_place(&self) -> Option<Place> {
        self.places().into_iter().max_by(|one, other| one.weight.total_cmp(&other.weight))
    }

    /// How much the stake has become, by all blocks of which every probe's fate is known.
    fn stake(&self) -> f64 {
        let wait = self.wait();
        let pending = |flight: &&Flight| flight.answered.is_none() && flight.sent + wait > self.asked;
        let open = self.flights.iter().filter(pending).map(|flight| flight.block).min();
        let open = open.into_iter().chain(self.queue.iter().map(|item| item.2)).min().unwrap_or(usize::MAX);
        let mut stretches: BTreeMap<(usize, Kind), Stretch> = BTreeMap::new();
        for flight in self.counted().filter(|flight| flight.block < open && flight.size <= self.config.pmtu) {
            let stretch = stretches.entry((flight.block, flight.kind)).or_default();
            *stretch.sent.entry(flight.size).or_default() += 1;
            if flight.answered.is_none() {
                stretch.lost.push(flight.size);
            }
        }
        let sizes: Vec<u16> = self.passing().collect();
        weigh::stake(&sizes, &stretches.into_values().collect::<Vec<_>>())
    }

    /// Echoes and old segments from where loss begins on.
    fn by_kind(&self) -> [LossCount; 2] {
        let from = self.threshold().map_or(0, |threshold| threshold.above);
        let long = self.counted().filter(|flight| (from..=self.config.pmtu.max(from)).contains(&flight.size));
        long.fold([LossCount::default(); 2], |mut sum, flight| {
            let count = &mut sum[usize::from(flight.kind == Kind::OldSegment)];
            count.sent += 1;
            count.answered += u32::from(flight.answered.is_some());
            sum
        })
    }

    /// Loss by direction, if it was asked for and there was any.
    ///
    /// An echo gets lost either way, an old segment's short acknowledgement hardly ever, so the way back has lost what
    /// the way there doesn't explain.
    #[must_use]
    pub fn directions(&self) -> Option<Directions> {
        let [echo, old] = self.by_kind();
        let (both, forward) = (echo.loss(), old.loss());
        if old.sent == 0 || echo.sent == 0 || forward >= 1.0 || echo.lost() + old.lost() == 0 {
            return None;
        }
        Some(Directions { forward, reverse: (1.0 - (1.0 - both) / (1.0 - forward)).max(0.0) })
    }

    /// Whether losses come from the scan's own rate, if there were any to ask about.
    #[must_use]
    pub const fn rate_check(&self) -> Option<RateCheck> {
        self.checked
    }

    /// What became of packets that may be cut into fragments, if there was a reason to send any.
    #[must_use]
    pub fn loose(&self) -> Option<Loose> {
        let flights = self.flights.iter().filter(|flight| flight.kind == Kind::LooseEcho);
        flights.fold(None, |found: Option<Loose>, flight| {
            let mut found = found.unwrap_or(Loose { size: flight.size, count: LossCount::default() });
            found.count.sent += 1;
            found.count.answered += u32::from(flight.answered.is_some());
            Some(found)
        })
    }

    /// How many of the sizes weren't tried, for want of packets.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.config.sizes.len().saturating_sub(self.sizes().len())
    }

    /// Probes sent.
    #[must_use]
    pub fn packets(&self) -> u32 {
        u32::try_from(self.flights.len()).unwrap_or(u32::MAX)
    }

    fn ends(&self) -> Option<(u16, u16)> {
        let (first, last) = (self.passing().next()?, self.passing().last()?);
        (first < last).then_some((first, last))
    }

    fn left(&self) -> u32 {
        self.config.most.saturating_sub(self.packets())
    }

    fn due(&self) -> Option<Time> {
        let last = self.flights.last().map_or(Time::ZERO, |flight| flight.sent);
        self.queue.is_empty().then(|| self.rtt.verdict_at(last, self.heard))
    }

    /// When the next in the queue may leave.
    fn not_before(&self) -> Time {
        let Some((_, _, block)) = self.queue.front() else { return Time::ZERO };
        let slower = self.blocks.get(*block).map_or(0.0, |block| block.slower);
        let gap = if slower > 0.0 { self.gap_so_far().mul_f64(slower).max(self.gap) } else { self.gap };
        self.flights.last().map_or(Time::ZERO, |flight| flight.sent + gap)
    }

    /// Sends a probe.
    fn launch(&mut self, (size, kind, block): (u16, Kind, usize), now: Time) -> Probe {
        let id = self.packets();
        self.flights.push(Flight { size, kind, sent: now, block, answered: None, trip: None });
        Probe { id, kind, ip_len: size, ttl: None, flow: 0 }
    }
}

impl Machine for Scan {
    fn poll_probe(&mut self, now: Time) -> Option<Probe> {
        if let Some(opening) = self.poll_opening(now) {
            return opening;
        }
        if self.queue.is_empty() && !self.over {
            self.asked = now;
            if self.due().is_some_and(|due| due <= now) {
                self.over = self.stage == Stage::Done;
                self.plan();
                self.over |= self.queue.is_empty();
            } else if self.packets() >= self.config.quick && self.planned_at != self.packets() {
                self.planned_at = self.packets();
                self.plan_ahead();
            }
        }
        if self.not_before() > now {
            return None;
        }
        let item = self.queue.pop_front()?;
        Some(self.launch(item, now))
    }

    fn handle(&mut self, answer: &Answer) {
        let index = answer.id as usize;
        let Some(flight) = self.flights.get_mut(index).filter(|flight| flight.answered.is_none()) else { return };
        let (kind, block) = (flight.kind, flight.block);
        match answer.said {
            ProbeAnswer::Open { .. } | ProbeAnswer::Refused if kind == Kind::Syn => {}
            ProbeAnswer::Timed { trip } => {
                flight.trip = Some(trip);
                return;
            }
            ProbeAnswer::Reached { .. } if flight.kind != Kind::Syn => {
                // What routers put together again says nothing about the others' time.
                if flight.kind != Kind::LooseEcho {
                    self.rtt.sample(answer.at.saturating_sub(flight.sent));
                }
                self.heard = self.heard.max(Some(answer.at));
            }
            _ => return,
        }
        flight.answered = Some(answer.at);
        self.hear_opening((kind, block), answer);
        self.reordered += u32::from(index < self.latest);
        self.latest = self.latest.max(index);
    }

    fn wakeup(&self) -> Option<Time> {
        if self.over {
            return None;
        }
        let sizes = || if self.queue.is_empty() { self.due() } else { Some(self.not_before()) };
        self.opening_due().or_else(sizes)
    }

    fn is_done(&self) -> bool {
        self.over
    }
}
