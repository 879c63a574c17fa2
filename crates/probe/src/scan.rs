//! Loss by packet size.
//!
//! All sizes go in one stream in random order, so that a bad moment hits all of them alike. Where loss begins is where two
//! losses, one below and one above, explain the counts best.
//!
//! # What this leaves out
//! More than one threshold, and loss that the probes themselves cause by filling a queue: keep the rate well below the
//! path's.

use crate::{Answer, Kind, LossCount, Machine, Probe, Rtt, Said, Time};
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

/// The best of many thresholds counts from this likelihood ratio on: without a difference, fewer than one scan in a
/// thousand finds one, over up to a hundred sizes and six looks.
const CLEAR: f64 = 18.0;
/// Probes of each of both arms that are added at a time.
const BLOCK: u32 = 500;
/// Probes of a size that is too long anyway.
const BEYOND: u32 = 3;
/// Where loss begins is narrowed down to the thresholds whose likelihood ratio is at most so much below the best one's:
/// the true one is among them in some 97 of 100 scans.
const UNSURE: f64 = 5.0;
/// It needn't be narrowed down to less than so many sizes.
const NARROW: usize = 4;
/// Only a loss from here on is split into both directions more exactly than the scan itself does it.
const MUCH: f64 = 0.1;
/// Probes of each kind with which a loss of one half is split into both directions, to within 3 points.
const SPLIT: f64 = 2500.0;
/// And at least so many.
const LEAST_SPLIT: u32 = 200;

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
    /// Probes of all sizes together, at first.
    pub first: u32,
    /// Probes at most, before the loss is split into both directions.
    pub most: u32,
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
    /// The likelihood ratio.
    pub ratio: f64,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Arms,
    Narrow,
    Split,
    Done,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    size: u16,
    kind: Kind,
    sent: Time,
    block: usize,
    answered: bool,
}

/// A scan of loss by size.
#[derive(Debug)]
pub struct Scan {
    config: ScanConfig,
    rng: ChaCha8Rng,
    stage: Stage,
    over: bool,
    queue: VecDeque<(u16, Kind)>,
    flights: Vec<Flight>,
    /// By size; the probes that split directions are counted apart.
    sizes: BTreeMap<u16, (LossCount, Vec<Time>)>,
    kinds: BTreeMap<u16, [LossCount; 2]>,
    /// The same counts, stretch by stretch.
    blocks: Vec<BTreeMap<u16, LossCount>>,
    last_sent: Time,
    heard: Option<Time>,
    rtt: Rtt,
    open: bool,
    /// The latest probe that was answered, and how many were answered after a later one.
    latest: usize,
    reordered: u32,
}

impl Scan {
    /// A scan that has sent nothing yet.
    #[must_use]
    pub fn new(config: ScanConfig, rng: ChaCha8Rng) -> Self {
        let mut scan = Self {
            config,
            rng,
            stage: Stage::Arms,
            over: false,
            queue: VecDeque::new(),
            flights: Vec::new(),
            sizes: BTreeMap::new(),
            kinds: BTreeMap::new(),
            blocks: Vec::new(),
            last_sent: Time::ZERO,
            heard: None,
            rtt: Rtt::default(),
            open: false,
            latest: 0,
            reordered: 0,
        };
        let mut sizes = scan.config.sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let passing = sizes.iter().filter(|size| **size <= scan.config.pmtu).count();
        let each = (scan.config.first / u32::try_from(passing.max(1)).unwrap_or(1)).max(BEYOND);
        let counts = sizes.into_iter().map(|size| (size, if size <= scan.config.pmtu { each } else { BEYOND }));
        let stream: Vec<u16> = counts.flat_map(|(size, count)| std::iter::repeat_n(size, count as usize)).collect();
        if scan.config.split || scan.config.kind == Kind::OldSegment {
            scan.queue.push_back((44, Kind::Syn));
        }
        scan.send(stream);
        scan
    }

    /// Queues probes of these sizes in random order; where directions are told apart, half of each size are old segments.
    fn send(&mut self, mut sizes: Vec<u16>) {
        sizes.sort_unstable();
        self.blocks.push(BTreeMap::new());
        let kind = |index: usize| match self.config.kind {
            Kind::Echo if self.config.split && index % 2 == 1 => Kind::OldSegment,
            kind => kind,
        };
        let mut stream: Vec<(u16, Kind)> = sizes.into_iter().enumerate().map(|(i, size)| (size, kind(i))).collect();
        stream.shuffle(&mut self.rng);
        self.queue.extend(stream);
    }

    /// Size by size.
    #[must_use]
    pub fn sizes(&self) -> Vec<ScanSize> {
        let row = |(size, (count, rtts)): (&u16, &(LossCount, Vec<Time>))| {
            let mut rtts = rtts.clone();
            rtts.sort_unstable();
            ScanSize { size: *size, count: *count, rtt: rtts.get(rtts.len() / 2).copied() }
        };
        self.sizes.iter().map(row).collect()
    }

    /// All round-trip times, by size and in the order of their coming.
    pub fn rtts(&self) -> impl Iterator<Item = Time> + '_ {
        self.sizes.values().flat_map(|(_, rtts)| rtts.iter().copied())
    }

    /// How many answers came after the answer to a later probe.
    #[must_use]
    pub const fn reordered(&self) -> u32 {
        self.reordered
    }

    /// Where loss begins, if it is clear that it does.
    #[must_use]
    pub fn threshold(&self) -> Option<Threshold> {
        let all = self.thresholds();
        let best = *all.iter().max_by(|one, other| one.ratio.total_cmp(&other.ratio))?;
        let safe = all.iter().find(|other| other.ratio >= best.ratio - UNSURE).map_or(best.below, |other| other.below);
        Some(Threshold { safe, ..best }).filter(|best| best.ratio >= CLEAR)
    }

    /// Every place at which loss may begin, from the smallest size on, with less loss below than above.
    ///
    /// Sizes are compared within each stretch of time, whose packets met the same moments: a bad second before one arm was
    /// sent more of is no difference between sizes.
    fn thresholds(&self) -> Vec<Threshold> {
        let passing: Vec<(u16, LossCount)> =
            self.sizes.range(..=self.config.pmtu).map(|(size, (count, _))| (*size, *count)).collect();
        let all = passing.iter().fold(LossCount::default(), |sum, (_, count)| sum.plus(*count));
        let sum = |block: &BTreeMap<u16, LossCount>| {
            block.range(..=self.config.pmtu).fold(LossCount::default(), |sum, (_, count)| sum.plus(*count))
        };
        let wholes: Vec<LossCount> = self.blocks.iter().map(sum).collect();
        let mut lows = vec![LossCount::default(); wholes.len()];
        let mut low = LossCount::default();
        let mut found = Vec::new();
        for pair in passing.windows(2) {
            low = low.plus(pair[0].1);
            for (sum, block) in lows.iter_mut().zip(&self.blocks) {
                *sum = sum.plus(block.get(&pair[0].0).copied().unwrap_or_default());
            }
            let high = LossCount { sent: all.sent - low.sent, answered: all.answered - low.answered };
            if high.loss() > low.loss() {
                let stretches: Vec<(LossCount, LossCount)> = lows.iter().copied().zip(wholes.iter().copied()).collect();
                let ratio = shared_ratio(&stretches);
                found.push(Threshold { below: pair[0].0, above: pair[1].0, low, high, ratio, safe: pair[0].0 });
            }
        }
        found
    }

    /// Loss by direction, if it was asked for and there was any.
    ///
    /// An echo gets lost either way, an old segment's short acknowledgement hardly ever, so the way back has lost what
    /// the way there doesn't explain.
    #[must_use]
    pub fn directions(&self) -> Option<Directions> {
        let from = self.threshold().map_or(0, |threshold| threshold.above);
        let kinds = self.kinds.range(from..=self.config.pmtu.max(from));
        let [echo, old] =
            kinds.fold([LossCount::default(); 2], |sum, (_, kind)| [sum[0].plus(kind[0]), sum[1].plus(kind[1])]);
        let (both, forward) = (echo.loss(), old.loss());
        if old.sent == 0 || echo.sent == 0 || forward >= 1.0 || echo.lost() + old.lost() == 0 {
            return None;
        }
        Some(Directions { forward, reverse: (1.0 - (1.0 - both) / (1.0 - forward)).max(0.0) })
    }

    /// Probes sent.
    #[must_use]
    pub fn packets(&self) -> u32 {
        u32::try_from(self.flights.len()).unwrap_or(u32::MAX)
    }

    fn ends(&self) -> Option<(u16, u16)> {
        let mut passing = self.sizes.range(..=self.config.pmtu).map(|(size, _)| *size);
        let first = passing.next()?;
        passing.next_back().map(|last| (first, last))
    }

    /// Fills the queue, or ends the scan.
    fn plan(&mut self) {
        while self.queue.is_empty() && self.stage != Stage::Done {
            let more = match self.stage {
                Stage::Arms => self.plan_arms(),
                Stage::Narrow => self.plan_narrow(),
                Stage::Split => self.plan_split(),
                Stage::Done => false,
            };
            self.stage = match self.stage {
                stage @ (Stage::Arms | Stage::Narrow) if more => stage,
                // What was clear may have become unclear by what was sent to narrow it down.
                Stage::Narrow if self.threshold().is_none() && self.has_budget() => Stage::Arms,
                Stage::Arms => Stage::Narrow,
                Stage::Narrow => Stage::Split,
                // Once is enough.
                Stage::Split | Stage::Done => Stage::Done,
            };
        }
    }

    fn has_budget(&self) -> bool {
        self.packets() + 2 * BLOCK <= self.config.most
    }

    /// More of the shortest and of the longest, as long as nothing is clear.
    fn plan_arms(&mut self) -> bool {
        let Some((short, long)) = self.ends() else { return false };
        if self.threshold().is_some() || !self.has_budget() {
            return false;
        }
        let arm = |size| std::iter::repeat_n(size, BLOCK as usize);
        self.send(arm(short).chain(arm(long)).collect());
        true
    }

    /// More of the sizes among which loss may begin, as long as those are many.
    fn plan_narrow(&mut self) -> bool {
        let Some(best) = self.threshold() else { return false };
        let all = self.thresholds();
        let unsure: Vec<u16> =
            all.iter().filter(|other| other.ratio >= best.ratio - UNSURE).map(|other| other.above).collect();
        if unsure.len() <= NARROW + 1 || self.packets() + BLOCK > self.config.most {
            return false;
        }
        // Beside them the longest, which show how much gets lost meanwhile.
        let long = self.ends().map(|(_, long)| long);
        let each = (BLOCK as usize * 3 / 4 / unsure.len()).max(1);
        let reference = std::iter::repeat_n(long, BLOCK as usize / 4).flatten();
        self.send(unsure.into_iter().flat_map(|size| std::iter::repeat_n(size, each)).chain(reference).collect());
        true
    }

    /// Of a large loss, more of the longest both ways.
    fn plan_split(&mut self) -> bool {
        let Some((_, long)) = self.ends() else { return false };
        let loss = self.threshold().map(|threshold| threshold.high.loss()).unwrap_or_else(|| {
            let all = self.sizes.range(..=self.config.pmtu).fold(LossCount::default(), |sum, (_, row)| sum.plus(row.0));
            if all.interval().0 > 0.0 { all.loss() } else { 0.0 }
        });
        if loss < MUCH || !self.config.split || !self.open || self.config.kind != Kind::Echo {
            return false;
        }
        let each = ((SPLIT * 4.0 * loss * (1.0 - loss)) as u32).max(LEAST_SPLIT);
        self.send(std::iter::repeat_n(long, 2 * each as usize).collect());
        true
    }

    fn due(&self) -> Option<Time> {
        self.queue.is_empty().then(|| self.rtt.verdict_at(self.last_sent, self.heard))
    }

    /// The counts of a probe: its size's, those of the kind alone, and those of the stretch.
    fn tally(&mut self, size: u16, kind: Kind, block: usize) -> Option<[&mut LossCount; 3]> {
        if kind == Kind::Syn {
            return None;
        }
        let kinds = self.kinds.entry(size).or_default();
        Some([
            &mut self.sizes.entry(size).or_default().0,
            &mut kinds[usize::from(kind == Kind::OldSegment)],
            self.blocks.get_mut(block)?.entry(size).or_default(),
        ])
    }
}

/// How much better it explains the losses of several stretches that larger sizes lose more, by one and the same factor:
/// twice the logarithm of the ratio of the likelihoods. Each stretch is the count of the smaller sizes, and of all.
///
/// Given how many were lost in a stretch, how many of them were large ones doesn't depend on how bad it was.
///
/// # Source
/// Conditioning as in Cornfield, Journal of the National Cancer Institute 11 (1951), 1269–1275, with the binomial in place
/// of the hypergeometric, which is right for rare losses and careful for frequent ones.
fn shared_ratio(stretches: &[(LossCount, LossCount)]) -> f64 {
    let told: Vec<(f64, f64, f64, f64)> = stretches
        .iter()
        .map(|(low, all)| {
            let (lost_low, lost_all) = (f64::from(low.lost()), f64::from(all.lost()));
            (lost_low, lost_all - lost_low, f64::from(low.sent), f64::from(all.sent) - f64::from(low.sent))
        })
        .filter(|(small, large, sent_small, sent_large)| small + large > 0.0 && *sent_small > 0.0 && *sent_large > 0.0)
        .collect();
    let ratio = |factor: f64| -> f64 {
        told.iter()
            .map(|(small, large, sent_small, sent_large)| {
                let (plain, more) = (sent_small + sent_large, sent_small + factor * sent_large);
                2.0 * ((small + large) * (plain / more).ln() + large * factor.ln())
            })
            .sum()
    };
    // The logarithm of the likelihood has one maximum over the logarithm of the factor: golden section.
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut from, mut to) = (0f64, 14f64);
    for _ in 0..24 {
        let (left, right) = (to - golden * (to - from), from + golden * (to - from));
        if ratio(left.exp()) < ratio(right.exp()) { from = left } else { to = right }
    }
    ratio(((from + to) / 2.0).exp()).max(0.0)
}

impl Machine for Scan {
    fn poll_probe(&mut self, now: Time) -> Option<Probe> {
        if self.due().is_some_and(|due| due <= now) {
            self.over = self.stage == Stage::Done;
            self.plan();
            self.over |= self.queue.is_empty();
        }
        // Old segments need the handshake first.
        let handshake = self.config.kind == Kind::OldSegment || self.config.split;
        let waits = handshake && !self.open && self.flights.len() == 1;
        if waits && now < self.last_sent + Rtt::UNKNOWN {
            return None;
        }
        if waits && self.config.kind == Kind::Echo {
            // The target has changed its mind: echoes alone.
            self.config.split = false;
            self.queue.iter_mut().for_each(|(_, kind)| *kind = Kind::Echo);
        }
        let (size, kind) = self.queue.pop_front()?;
        let index = self.flights.len();
        let block = self.blocks.len().saturating_sub(1);
        for count in self.tally(size, kind, block).into_iter().flatten() {
            count.sent += 1;
        }
        self.flights.push(Flight { size, kind, sent: now, block, answered: false });
        self.last_sent = now;
        Some(Probe { id: u32::try_from(index).unwrap_or(u32::MAX), kind, ip_len: size, ttl: None, flow: 0 })
    }

    fn handle(&mut self, answer: &Answer) {
        let index = answer.id as usize;
        let Some(Flight { size, kind, sent, block, answered: false }) = self.flights.get(index).copied() else {
            return;
        };
        match answer.said {
            Said::Open { sack, .. } if kind == Kind::Syn => self.open |= sack,
            Said::Reached { .. } if kind != Kind::Syn => {
                for count in self.tally(size, kind, block).into_iter().flatten() {
                    count.answered += 1;
                }
                let rtt = answer.at.saturating_sub(sent);
                self.sizes.entry(size).or_default().1.push(rtt);
                self.rtt.sample(rtt);
                self.heard = self.heard.max(Some(answer.at));
            }
            _ => return,
        }
        self.reordered += u32::from(index < self.latest);
        self.latest = self.latest.max(index);
        self.flights[index].answered = true;
    }

    fn wakeup(&self) -> Option<Time> {
        if self.over {
            None
        } else if self.queue.is_empty() {
            self.due()
        } else if self.flights.len() == 1 {
            Some(self.last_sent + Rtt::UNKNOWN)
        } else {
            Some(Time::ZERO)
        }
    }

    fn is_done(&self) -> bool {
        self.over
    }
}

/// What sending packets of one size brings, as far as loss lets a connection grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    /// Bytes a second with a congestion control that takes each loss for congestion, such as CUBIC and Reno.
    pub loss_based: f64,
    /// Bytes a second with one that doesn't, such as BBR.
    pub rate_based: f64,
}

/// Goodput by packets of this size at this loss, on a path of this capacity in bytes a second.
///
/// # Source
/// Mathis, Semke, Mahdavi and Ott, ACM CCR 27(3) (1997), with their constant √(3/2) for an acknowledgement per packet.
/// CUBIC does no better where its window is smaller than Reno's would be (RFC 9438 section 4.3).
#[must_use]
pub fn goodput(payload: u16, headers: u16, loss: f64, rtt: Time, capacity: f64) -> Goodput {
    let (payload, wire) = (f64::from(payload), f64::from(payload) + f64::from(headers));
    let ceiling = capacity * payload / wire * (1.0 - loss);
    let grown = payload / rtt.as_secs_f64().max(1e-6) * (1.5 / loss.max(1e-12)).sqrt();
    Goodput { loss_based: grown.min(ceiling), rate_based: ceiling }
}
