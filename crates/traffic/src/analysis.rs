//! From outcomes to evidence: units are collected while their epoch is open, and bet once it is old enough.

use crate::bets::{CoinBets, CoinOutcome, ServerEvidence};
use crate::class::{CLASSES, ClassMeans, SIZE_CLASSES, Transfer, size_class};
use crate::guard::{GUARD_THRESHOLD, GuardBets, TrafficGuard};
use crate::slots::SlotMeans;
use crate::units::{Cell, KnownPast, LiveUnits, Prefixes, UnitKey};
use crate::{
    ConnectionFate, ConnectionOutcome, DrawKey, ResponseOutcome, SocketSetting, TrafficAllocation, TrafficConfig,
    TrafficConfigError, TrafficUnit, sip13,
};
use std::collections::{BTreeMap, BTreeSet};

/// The evidence at which something is claimed of one arm; for each of several as many times as much.
pub const CLAIM_THRESHOLD: f64 = 40.0;
/// How much an epoch's first units must weigh until its level is theirs rather than the last epoch's.
const LEVEL: f64 = 2.0;
/// Epochs whose shares are remembered although nobody closed them.
const MAX_EPOCHS: usize = 10_000;
/// Blocks of epochs that are remembered although they never became complete.
const MAX_BLOCKS: usize = 64;

/// The outcomes of one arm and class by size, as they were: of responses where those are told, else of connections.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassFigures {
    pub(crate) outcomes: u64,
    pub(crate) log_goodput: f64,
    pub(crate) bytes: u64,
    pub(crate) time_us: u64,
    /// How many took 2^(k/4) µs to 2^((k+1)/4) µs.
    pub(crate) times: [u32; 160],
}

impl Default for ClassFigures {
    fn default() -> Self {
        Self { outcomes: 0, log_goodput: 0.0, bytes: 0, time_us: 0, times: [0; 160] }
    }
}

/// What was recorded of one arm.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArmFigures {
    pub(crate) recorded: u64,
    /// Connections whose responses were told one by one.
    pub(crate) by_response: u64,
    /// Responses that were told.
    pub(crate) responses: u64,
    pub(crate) set_errors: u64,
    pub(crate) not_compliant: u64,
    pub(crate) segments: u64,
    pub(crate) retransmitted: u64,
    pub(crate) rto_known: u64,
    pub(crate) rtos: u64,
    pub(crate) aborted: u64,
    pub(crate) open: u64,
    pub(crate) log_time: f64,
    pub(crate) timed: u64,
    pub(crate) classes: [ClassFigures; SIZE_CLASSES],
    /// How many had 2^(k/4) bit/s to 2^((k+1)/4) bit/s.
    rates: [u32; RATES],
}

/// The median rate is known from so many outcomes on.
const RATES_KNOWN: u64 = 100;
/// Rates are told apart up to 2⁴⁰ bit/s.
const RATES: usize = 160;

impl Default for ArmFigures {
    fn default() -> Self {
        Self {
            recorded: 0,
            by_response: 0,
            responses: 0,
            set_errors: 0,
            not_compliant: 0,
            segments: 0,
            retransmitted: 0,
            rto_known: 0,
            rtos: 0,
            aborted: 0,
            open: 0,
            log_time: 0.0,
            timed: 0,
            classes: Default::default(),
            rates: [0; RATES],
        }
    }
}

impl ArmFigures {
    fn add(&mut self, outcome: &ConnectionOutcome) {
        self.recorded += 1;
        self.by_response += u64::from(outcome.by_response);
        self.set_errors += u64::from(outcome.set_errors != 0);
        self.not_compliant += u64::from(!outcome.compliant);
        self.segments += u64::from(outcome.sent_segments);
        self.retransmitted += u64::from(outcome.retransmitted_segments);
        if let Some(rtos) = outcome.rtos {
            self.rto_known += 1;
            self.rtos += u64::from(rtos);
        }
        self.aborted += u64::from(matches!(outcome.fate, ConnectionFate::Reset | ConnectionFate::TimedOut));
        self.open += u64::from(outcome.fate == ConnectionFate::Open);
        if !outcome.by_response {
            self.transfer(Transfer::of_connection(outcome));
        }
    }

    fn transfer(&mut self, transfer: Transfer) {
        let Transfer { bytes, time_us, .. } = transfer;
        let class = &mut self.classes[size_class(bytes)];
        class.outcomes += 1;
        if let Some(y) = transfer.log_goodput() {
            class.log_goodput += y;
            class.bytes = class.bytes.saturating_add(bytes);
            class.time_us = class.time_us.saturating_add(time_us);
            class.times[((time_us as f64).log2() * 4.0).clamp(0.0, 159.0) as usize] += 1;
            let log_rate = y / std::f64::consts::LN_2 + 3.0;
            self.rates[(log_rate * 4.0).clamp(0.0, RATES as f64 - 1.0) as usize] += 1;
            self.log_time += (time_us as f64).ln();
            self.timed += 1;
        }
    }

    /// The rate that half of what was timed stayed below, bit/s, to a fifth.
    fn median_rate(&self) -> Option<f64> {
        let mut below = 0;
        let at = self.rates.iter().position(|n| {
            below += u64::from(*n);
            2 * below >= self.timed
        });
        at.filter(|_| self.timed > 0).map(|k| ((k + 1) as f64 / 4.0).exp2())
    }
}

/// One arm that is tried against the first.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    pub(crate) arm: usize,
    pub(crate) goodput: CoinBets,
    pub(crate) ranks: CoinBets,
    /// The coins themselves: does each arm come as often as its share says?
    pub(crate) coins: CoinBets,
    pub(crate) guards: [GuardBets; 4],
    /// Everybody with it against nobody with it.
    pub(crate) total: SlotMeans,
    /// The controls beside it against nobody with it.
    pub(crate) spillover: SlotMeans,
    pub(crate) stopped: Option<TrafficGuard>,
    /// The most that the guards' one stake has become.
    pub(crate) guards_together: f64,
    /// The parts of units and of whole epochs in what says that it is slower.
    slower_by: [f64; 2],
}

impl Comparison {
    fn new(arm: usize, config: &TrafficConfig) -> Self {
        let slower_by = match (config.unit, config.allocation) {
            (TrafficUnit::Slot, _) => [0.0, 1.0],
            (_, TrafficAllocation::Mixed) => [0.5, 0.5],
            (_, TrafficAllocation::Fixed) => [1.0, 0.0],
        };
        Self {
            arm,
            slower_by,
            guards_together: 1.0,
            goodput: CoinBets::with_interval(),
            ranks: CoinBets::default(),
            coins: CoinBets::default(),
            guards: Default::default(),
            total: SlotMeans::default(),
            spillover: SlotMeans::default(),
            stopped: None,
        }
    }

    /// The largest evidence of a guard so far, as a logarithm.
    pub(crate) fn guard_evidence(&self, guard: TrafficGuard) -> f64 {
        match TrafficGuard::COUNTS.iter().position(|g| *g == guard) {
            Some(i) => self.guards[i].best(),
            None => self.goodput.best()[1].max(self.total.best()[1]),
        }
    }

    /// The evidence of a guard now, as odds.
    fn guard_now(&self, guard: TrafficGuard) -> f64 {
        let odds = |log: f64| log.min(690.0).exp();
        match TrafficGuard::COUNTS.iter().position(|g| *g == guard) {
            Some(i) => odds(self.guards[i].now()),
            None => {
                let [units, blocks] = self.slower_by;
                units * odds(self.goodput.log_lower()) + blocks * odds(self.total.log_lower())
            }
        }
    }

    /// The guards bet with parts of one stake: an arm that isn't worse is stopped by any of them as rarely as one bet is won at
    /// these odds. The one that has won most is named.
    fn guard(&mut self) {
        let won = TrafficGuard::ALL.map(|guard| guard.stake() * self.guard_now(guard));
        self.guards_together = self.guards_together.max(won.iter().sum());
        if self.stopped.is_none() && self.guards_together >= GUARD_THRESHOLD {
            let most = won.iter().zip(TrafficGuard::ALL).max_by(|a, b| a.0.total_cmp(b.0));
            self.stopped = most.map(|(_, guard)| guard);
        }
    }
}

/// An experiment under way.
///
/// The caller says when an epoch begins and with which shares, hands over each outcome, and closes an epoch when its youngest
/// connection has reached the cohort's age. Closing in another order, or late, is allowed; each unit bets once.
#[derive(Debug, Clone)]
pub struct TrafficAnalysis {
    pub(crate) config: TrafficConfig,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) arms: Vec<ArmFigures>,
    pub(crate) live: LiveUnits,
    pub(crate) prefixes: Prefixes,
    pub(crate) epochs_scored: u64,
    /// Outcomes of arms or epochs that there aren't.
    pub(crate) strangers: u64,
    /// Connections that ended after their epoch had been scored, at which they were older than the cohort's age.
    pub(crate) late: u64,
    newest: Option<u64>,
    open: BTreeMap<u64, OpenEpoch>,
    means: ClassMeans,
    /// The mean over units of goodput less what was expected, in the last epoch.
    level: f64,
    rank_level: (f64, f64),
    /// For slots and mixed allocations: the blocks that aren't complete.
    blocks: BTreeMap<u64, EpochBlock>,
}

impl TrafficAnalysis {
    /// An experiment without outcomes.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: TrafficConfig) -> Result<Self, TrafficConfigError> {
        config.check()?;
        Ok(Self {
            comparisons: (1..config.arms.len()).map(|arm| Comparison::new(arm, &config)).collect(),
            arms: vec![ArmFigures::default(); config.arms.len()],
            live: LiveUnits::default(),
            prefixes: Prefixes::default(),
            epochs_scored: 0,
            strangers: 0,
            late: 0,
            newest: None,
            open: BTreeMap::new(),
            means: ClassMeans::default(),
            level: 0.0,
            rank_level: (0.0, 0.5),
            blocks: BTreeMap::new(),
            config,
        })
    }

    /// An epoch begins, with these shares of the arms ([`TrafficConfig::shares`]) and the place that it has drawn
    /// ([`TrafficConfig::drawn_place`]). They hold to its end.
    pub fn begin_epoch(&mut self, epoch: u64, shares: &[f64], place: Option<usize>) {
        if self.open.len() >= MAX_EPOCHS {
            self.open.pop_first();
        }
        self.open.entry(epoch).or_insert_with(|| OpenEpoch { shares: shares.to_vec(), place, held: Vec::new() });
        self.newest = self.newest.max(Some(epoch));
    }

    /// Arms that get no connections in an epoch that has begun, for as long as somebody looks at it: what is held back when things are
    /// bad would otherwise be compared only where they are good. Of the block of such an epoch these arms are not compared.
    pub fn hold(&mut self, epoch: u64, arms: &[usize]) {
        if let Some(open) = self.open.get_mut(&epoch) {
            open.held.extend_from_slice(arms);
        }
    }

    /// Takes the outcome of a connection. Of an epoch that never began it is counted as a stranger, of one that is scored already
    /// as late, and doesn't bet.
    pub fn record(&mut self, outcome: &ConnectionOutcome) {
        let (Some(arm), Some(_)) = (self.arms.get_mut(outcome.arm), self.open.get(&outcome.epoch)) else {
            let late = outcome.arm < self.arms.len() && self.newest.is_some_and(|newest| outcome.epoch <= newest);
            *(if late { &mut self.late } else { &mut self.strangers }) += 1;
            return;
        };
        arm.add(outcome);
        if !self.is_burn_in(outcome.offset_us) {
            let past = KnownPast { prefixes: &self.prefixes, means: &self.means, level: self.level };
            self.live.add(outcome, self.config.unit, past);
        }
    }

    /// Takes the outcome of one response of a connection, before that of the connection. Where its epoch isn't open it is left out.
    pub fn respond(&mut self, outcome: &ResponseOutcome) {
        let (Some(arm), Some(_)) = (self.arms.get_mut(outcome.arm), self.open.get(&outcome.epoch)) else { return };
        arm.responses += 1;
        arm.transfer(Transfer::of_response(outcome));
        if !self.is_burn_in(outcome.offset_us) {
            let past = KnownPast { prefixes: &self.prefixes, means: &self.means, level: self.level };
            self.live.respond(outcome, self.config.unit, past);
        }
    }

    /// Whether a connection that was established so long after the beginning of its epoch doesn't count.
    fn is_burn_in(&self, offset_us: u64) -> bool {
        self.changes_for_everybody() && u128::from(offset_us) < self.config.burn_in.as_micros()
    }

    /// Whether everybody's settings change with the epoch.
    fn changes_for_everybody(&self) -> bool {
        self.config.places().is_some()
    }

    /// An epoch has reached the cohort's age: its units bet, once. Without it nothing is scored.
    pub fn close_epoch(&mut self, epoch: u64) {
        let Some(OpenEpoch { shares, place, held }) = self.open.remove(&epoch) else { return };
        let cells = self.live.take(epoch);
        let mut sums = [(0.0, 0.0); CLASSES];
        for cell in cells.values() {
            // No unit makes more of a class's mean than so many connections.
            let part = cell.part_of_mean();
            for (k, n, sum) in &cell.classes {
                let class = &mut sums[usize::from(*k)];
                *class = (class.0 + part * f64::from(*n), class.1 + part * sum);
            }
        }
        let means = self.means.for_epoch(&sums);
        self.score(epoch, &shares, &cells, &means);
        if let Some(length) = self.config.places() {
            // What a stopped arm left to the first has drawn no turn of the first: with it that arm would come earlier in more
            // than half of all blocks.
            let place = place.filter(|place| self.config.shares_of_place(*place) == shares);
            self.score_slot((epoch, length), (place, held), &cells, &means);
        }
        self.means.learn(&sums);
        self.epochs_scored += u64::from(!cells.is_empty());
        // What a holdback holds back is the slower setting on purpose.
        if self.config.holdback.is_none() {
            self.comparisons.iter_mut().for_each(Comparison::guard);
        }
    }

    /// The epochs that began and aren't closed, in order.
    #[must_use]
    pub fn open_epochs(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// Connections of the arms that are tried, recorded so far: what the ramp goes by.
    #[must_use]
    pub fn treated(&self) -> u64 {
        self.arms.iter().skip(1).map(|arm| arm.recorded).sum()
    }

    /// Connections of the first arm, recorded so far.
    #[must_use]
    pub fn controls(&self) -> u64 {
        self.arms[0].recorded
    }

    /// The arms that a guard has stopped.
    #[must_use]
    pub fn stopped(&self) -> Vec<usize> {
        self.comparisons.iter().filter(|c| c.stopped.is_some()).map(|c| c.arm).collect()
    }

    /// Arms whose pacing may slow down half of the connections: those that are paced below the median rate of the first arm's,
    /// or of which that isn't known yet. They get no connections.
    #[must_use]
    pub fn paced_too_low(&self) -> Vec<usize> {
        let first = &self.arms[0];
        let median = first.median_rate().filter(|_| first.timed >= RATES_KNOWN);
        let pacing = |at: usize| self.config.arms[at].settings.socket(SocketSetting::Pacing);
        let below = |pacing: u64| median.is_none_or(|median| median > pacing as f64);
        (1..self.config.arms.len()).filter(|at| pacing(*at).is_some_and(below)).collect()
    }

    /// How many units are live; at most 100,000.
    #[must_use]
    pub fn live_units(&self) -> usize {
        self.live.len()
    }

    /// The largest evidence so far that an arm is faster and that it is slower than the first, as logarithms: from whole slots
    /// by slots, else from units. 0 for the first arm.
    #[must_use]
    pub fn best_evidence(&self, arm: usize) -> [f64; 2] {
        let of = |comparison: &Comparison| match self.config.unit {
            TrafficUnit::Slot => comparison.total.best(),
            TrafficUnit::Prefix | TrafficUnit::Connection => comparison.goodput.best(),
        };
        self.comparisons.iter().find(|comparison| comparison.arm == arm).map_or([0.0; 2], of)
    }

    /// The largest evidence of a guard against an arm, as a logarithm.
    #[must_use]
    pub fn guard_log_evidence(&self, arm: usize, guard: TrafficGuard) -> f64 {
        self.comparisons.iter().find(|c| c.arm == arm).map_or(0.0, |comparison| comparison.guard_evidence(guard))
    }

    /// The evidence at which something is claimed of an arm.
    #[must_use]
    pub fn needed(&self) -> f64 {
        CLAIM_THRESHOLD * self.comparisons.len() as f64
    }

    /// What other servers need to add this one up.
    #[must_use]
    pub fn server_evidence(&self, key: DrawKey) -> Vec<ServerEvidence> {
        let of = |comparison: &Comparison| {
            let [faster, slower] = comparison.goodput.log_wealth();
            ServerEvidence {
                key_id: sip13(key.0, [0x6b65_792d_6964, 0, 0]),
                arm: self.config.arms[comparison.arm].name.clone(),
                units: comparison.goodput.units(),
                faster,
                slower,
                sums: comparison.goodput.sums(),
            }
        };
        self.comparisons.iter().map(of).collect()
    }

    fn score(&mut self, epoch: u64, shares: &[f64], cells: &BTreeMap<UnitKey, Cell>, means: &[f64]) {
        let by_connection = self.config.unit == TrafficUnit::Connection;
        let (mut level_weight, mut level_sum) = (LEVEL, LEVEL * self.level);
        for ((tag, _), cell) in cells {
            let weight = cell.weight();
            let known = if by_connection { 1.0 } else { weight };
            let outcome = cell.goodput(means);
            let level = level_sum / level_weight;
            let residual = outcome.map(|y| y - self.prefixes.expected(*tag) - level);
            let rank = (cell.ranked > 0).then(|| f64::from(cell.ranks) / f64::from(cell.ranked));
            for comparison in &mut self.comparisons {
                let (none, tried) = (shares[0], shares[comparison.arm]);
                let treated = usize::from(cell.arm) == comparison.arm;
                if !(treated || cell.arm == 0) || none <= 0.0 || tried <= 0.0 {
                    continue;
                }
                let p = tried / (none + tried);
                let bet = |residual: f64| CoinOutcome { treated, p, residual, weight: known, part: cell.part() };
                comparison.coins.push(CoinOutcome { treated, p, residual: 1.0, weight: 1.0, part: 1.0 });
                if let Some(residual) = residual {
                    comparison.goodput.push(bet(residual));
                }
                if let Some(rank) = rank {
                    comparison.ranks.push(bet(rank - self.rank_level.1));
                }
                for (guard, bets) in TrafficGuard::COUNTS.into_iter().zip(&mut comparison.guards) {
                    if let Some(share) = guard.share(cell) {
                        bets.push(share, CoinOutcome { part: cell.guard_part(), ..bet(share) });
                    }
                }
            }
            if let Some(residual) = residual {
                level_sum += weight * (residual + level);
                level_weight += weight;
            }
            if let Some(rank) = rank {
                let (all, mean) = &mut self.rank_level;
                *all += weight;
                *mean += weight / *all * (rank - *mean);
            }
            self.prefixes.learn(*tag, epoch, cell, residual.map(|r| r + self.prefixes.expected(*tag)));
        }
        self.level = level_sum / level_weight;
    }

    /// The means of a whole epoch, each prefix weighing at most 1; a complete block gives one difference for each comparison. An
    /// epoch without a place only counts.
    fn score_slot(
        &mut self,
        (epoch, length): (u64, u64),
        (place, held): (Option<usize>, Vec<usize>),
        cells: &BTreeMap<UnitKey, Cell>,
        means: &[f64; CLASSES],
    ) {
        let mixed = self.config.allocation == TrafficAllocation::Mixed;
        let block = self.blocks.entry(epoch / length).or_insert_with(|| EpochBlock::new(*means, length));
        for (first, now) in block.means.iter_mut().zip(means).filter(|(first, _)| **first == 0.0) {
            *first = *now;
        }
        let mean = |arm: usize| {
            let of_arm = cells.values().filter(|cell| usize::from(cell.arm) == arm);
            let weighed = of_arm.filter_map(|cell| Some((cell.goodput(&block.means)?, cell.weight())));
            let (sum, weight) = weighed.fold((0.0, 0.0), |(sum, all), (y, weight)| (sum + weight * y, all + weight));
            (weight > 0.0).then(|| sum / weight)
        };
        if let Some(place) = place {
            // Beside half of all the controls are looked at.
            let value = mean(if mixed && place == 2 { 0 } else { place });
            if let Some(place) = block.places.get_mut(place) {
                *place = value;
            }
        }
        block.held.extend(held);
        block.epochs += 1;
        if block.epochs == length
            && let Some(block) = self.blocks.remove(&(epoch / length))
        {
            let at = |place: usize| block.places.get(place).copied().flatten();
            for comparison in self.comparisons.iter_mut().filter(|comparison| !block.held.contains(&comparison.arm)) {
                if let (Some(none), Some(all)) = (at(0), at(comparison.arm)) {
                    comparison.total.push(all - none);
                }
                if let (true, Some(none), Some(beside)) = (mixed, at(0), at(2)) {
                    comparison.spillover.push(beside - none);
                }
            }
        }
        while self.blocks.len() > MAX_BLOCKS {
            self.blocks.pop_first();
        }
    }
}

/// An epoch that isn't scored yet.
#[derive(Debug, Clone)]
struct OpenEpoch {
    shares: Vec<f64>,
    /// What it has drawn.
    place: Option<usize>,
    /// Arms that get no connections in it.
    held: Vec<usize>,
}

/// Epochs that are compared as wholes.
#[derive(Debug, Clone)]
struct EpochBlock {
    /// The means of the classes when the first of them was scored: all are held against the same.
    means: [f64; CLASSES],
    /// How many were scored.
    epochs: u64,
    /// The mean of each: by arm in slots; without anybody, with everybody, and of the controls beside half.
    places: Vec<Option<f64>>,
    /// Arms that were held back in one of them.
    held: BTreeSet<usize>,
}

impl EpochBlock {
    fn new(means: [f64; CLASSES], length: u64) -> Self {
        Self { means, epochs: 0, places: vec![None; length as usize], held: BTreeSet::new() }
    }
}
