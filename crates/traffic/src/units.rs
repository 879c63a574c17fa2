//! What is known of units whose epoch is still open, and of prefixes' past; both bounded.

use crate::class::{ClassMeans, ClassRanks, OutcomeSpread, SizeSlopes, Transfer, class_of};
use crate::{ConnectionFate, ConnectionOutcome, ResponseOutcome, TrafficUnit, sip13};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many units may be live at once; those that come when all are taken are left out, whatever their arm, and counted.
pub(crate) const MAX_UNITS: usize = 100_000;
/// So many prefixes are remembered.
const MAX_PREFIXES: usize = 100_000;
/// A prefix that wasn't seen for so many epochs is forgotten when there is no room.
const FORGOTTEN: u64 = 24;
/// By connection, a prefix's connections in an epoch weigh no more than so many of others, however many there are.
pub(crate) const MOST_OF_A_PREFIX: u32 = 20;
/// By connection, so many of a prefix in an epoch bet, drawn whatever their arms; what comes beyond is counted, and doesn't.
const KEPT_OF_A_PREFIX: usize = 2000;
/// Connections of a unit share its prefix's mood: one is a fifth of a unit, 4 are half of one, none is more than one.
const MOOD: f64 = 4.0;
/// How much a prefix's past must weigh for half of it to be believed.
const PAST: f64 = 0.5;

/// The connections of one unit, added up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) arm: u8,
    /// By connection, how many of its prefix bet in the epoch; else 1.
    of_prefix: u32,
    pub(crate) connections: u32,
    /// Of the connections with a goodput, or their responses: class, how many, sum of its logarithms as they would be in the class's middle.
    pub(crate) classes: Vec<(u8, u32, f64)>,
    pub(crate) ranked: u32,
    pub(crate) ranks: f32,
    pub(crate) segments: u64,
    pub(crate) retransmitted: u64,
    /// Connections of which the number of RTOs is known, and those with one or more.
    pub(crate) rto_known: u32,
    pub(crate) with_rto: u32,
    pub(crate) aborted: u32,
    pub(crate) open: u32,
    pub(crate) min_rtt_us: u32,
}

impl Cell {
    fn new(arm: u8) -> Self {
        Self {
            arm,
            of_prefix: 1,
            connections: 0,
            classes: Vec::with_capacity(1),
            ranked: 0,
            ranks: 0.0,
            segments: 0,
            retransmitted: 0,
            rto_known: 0,
            with_rto: 0,
            aborted: 0,
            open: 0,
            min_rtt_us: 0,
        }
    }

    /// Takes the goodput of one of its connections, or of a response of one, and its rank.
    fn transfer(&mut self, transfer: Transfer, class: u8, expected: Option<f64>, tails: &mut OutcomeTails) {
        let OutcomeTails { ranks, spread, slopes } = tails;
        let goodput = transfer.log_goodput();
        if let Some(y) = goodput {
            let y = slopes.levelled(class, transfer.bytes, y);
            let y = expected.map_or(y, |expected| expected + spread.bounded(y - expected));
            match self.classes.iter_mut().find(|(k, ..)| *k == class) {
                Some((_, n, sum)) => (*n, *sum) = (*n + 1, *sum + y),
                None => self.classes.push((class, 1, y)),
            }
        }
        let value = goodput.filter(|_| !transfer.aborted).unwrap_or(f64::NEG_INFINITY);
        if let Some(rank) = ranks.rank(class, value) {
            self.ranked += 1;
            self.ranks += rank as f32;
        }
    }

    /// Takes what is counted of a connection.
    fn count(&mut self, outcome: &ConnectionOutcome) {
        self.connections += 1;
        self.segments += u64::from(outcome.sent_segments);
        self.retransmitted += u64::from(outcome.retransmitted_segments.min(outcome.sent_segments));
        if let Some(rtos) = outcome.rtos {
            self.rto_known += 1;
            self.with_rto += u32::from(rtos > 0);
        }
        self.aborted += u32::from(matches!(outcome.fate, ConnectionFate::Reset | ConnectionFate::TimedOut));
        self.open += u32::from(outcome.fate == ConnectionFate::Open);
        if outcome.min_rtt_us > 0 && (self.min_rtt_us == 0 || outcome.min_rtt_us < self.min_rtt_us) {
            self.min_rtt_us = outcome.min_rtt_us;
        }
    }

    /// How well a unit of so many connections is known, and how much it says of its prefix.
    pub(crate) fn weight(&self) -> f64 {
        let n = f64::from(self.connections.max(1));
        self.part() * n / (n + MOOD)
    }

    /// Which part of a whole unit it counts.
    pub(crate) fn part(&self) -> f64 {
        (f64::from(MOST_OF_A_PREFIX) / f64::from(self.of_prefix)).min(1.0)
    }

    /// The same where rare events count: all connections of its prefix together are no more than one.
    pub(crate) fn guard_part(&self) -> f64 {
        1.0 / f64::from(self.of_prefix)
    }

    /// How much of each of its outcomes counts for the mean of their class: none of a unit's weighs more than so many.
    pub(crate) fn part_of_mean(&self) -> f64 {
        let outcomes: u32 = self.classes.iter().map(|(_, n, _)| n).sum();
        (f64::from(MOST_OF_A_PREFIX) / f64::from(outcomes.max(1) * self.of_prefix)).min(1.0)
    }

    /// The mean over its outcomes of the logarithm of goodput less its class's mean.
    pub(crate) fn goodput(&self, means: &[f64]) -> Option<f64> {
        let n: u32 = self.classes.iter().map(|(_, n, _)| n).sum();
        let sum = self.classes.iter().map(|(k, n, sum)| sum - f64::from(*n) * means[usize::from(*k)]).sum::<f64>();
        (n > 0).then(|| sum / f64::from(n))
    }
}

/// What a prefix was like before.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    /// Σ weight × outcome and Σ weight.
    outcome: f64,
    weight: f64,
    min_rtt_us: u32,
    last_epoch: u64,
    connections: u64,
}

/// Prefixes by their tags, in memory only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefixes {
    past: HashMap<u64, Past>,
    pub(crate) forgotten: u64,
    connections: u64,
    largest: u64,
}

impl Prefixes {
    pub(crate) fn min_rtt_us(&self, tag: u64) -> u32 {
        self.past.get(&tag).map_or(0, |past| past.min_rtt_us)
    }

    /// What the prefix's next outcome is expected to be, drawn towards 0 by how little is known.
    pub(crate) fn expected(&self, tag: u64) -> f64 {
        self.past.get(&tag).map_or(0.0, |past| past.outcome / (past.weight + PAST))
    }

    pub(crate) fn learn(&mut self, tag: u64, epoch: u64, cell: &Cell, outcome: Option<f64>) {
        self.connections += u64::from(cell.connections);
        if !self.past.contains_key(&tag) && self.past.len() >= MAX_PREFIXES {
            self.past.retain(|_, past| past.last_epoch + FORGOTTEN > epoch);
            if self.past.len() >= MAX_PREFIXES {
                self.forgotten += 1;
                return;
            }
        }
        let past = self.past.entry(tag).or_default();
        if let Some(outcome) = outcome {
            past.outcome += cell.weight() * outcome;
            past.weight += cell.weight();
        }
        if cell.min_rtt_us > 0 && (past.min_rtt_us == 0 || cell.min_rtt_us < past.min_rtt_us) {
            past.min_rtt_us = cell.min_rtt_us;
        }
        past.last_epoch = epoch;
        past.connections += u64::from(cell.connections);
        self.largest = self.largest.max(past.connections);
    }

    /// The largest prefix's share of all connections that were scored.
    pub(crate) fn largest_share(&self) -> Option<f64> {
        (self.connections > 0).then(|| self.largest as f64 / self.connections as f64)
    }
}

/// The key of a unit within its epoch: its prefix's tag, and by connection a hash of which it is.
pub(crate) type UnitKey = (u64, u64);

/// What outcomes have been like, for what lies far from them.
#[derive(Debug, Clone, Default)]
struct OutcomeTails {
    ranks: ClassRanks,
    spread: OutcomeSpread,
    slopes: SizeSlopes,
}

/// What was known before an outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownPast<'a> {
    pub(crate) prefixes: &'a Prefixes,
    pub(crate) means: &'a ClassMeans,
    pub(crate) level: f64,
}

impl KnownPast<'_> {
    /// The class of so many bytes of a client, and what is expected of their goodput, where the class isn't new.
    fn of(&self, tag: u64, bytes: u64) -> (u8, Option<f64>) {
        let class = class_of(bytes, self.prefixes.min_rtt_us(tag));
        (class, self.means.known(class).map(|mean| mean + self.prefixes.expected(tag) + self.level))
    }
}

/// Where an outcome belongs.
#[derive(Debug, Clone, Copy)]
struct Place {
    epoch: u64,
    tag: u64,
    connection: u64,
    arm: usize,
}

/// The units of one epoch.
#[derive(Debug, Clone, Default)]
struct EpochUnits {
    /// Where each unit's cell is.
    places: HashMap<UnitKey, usize>,
    cells: Vec<(UnitKey, Cell)>,
    /// By connection: the hashes of those of a prefix that are kept.
    kept: HashMap<u64, BTreeSet<u64>>,
}

/// Units of the epochs that are still open.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveUnits {
    epochs: BTreeMap<u64, EpochUnits>,
    tails: OutcomeTails,
    live: usize,
    /// Outcomes that found no room.
    pub(crate) overflowed: u64,
    /// Outcomes of a prefix beyond the connections that bet.
    pub(crate) beyond: u64,
    /// Outcomes of a prefix that had another arm before, in the same epoch.
    pub(crate) two_arms: u64,
}

impl LiveUnits {
    /// Takes the outcome of a connection whose epoch is still open.
    pub(crate) fn add(&mut self, outcome: &ConnectionOutcome, unit: TrafficUnit, past: KnownPast<'_>) {
        let &ConnectionOutcome { epoch, tag, connection, arm, .. } = outcome;
        let transfer = Transfer::of_connection(outcome);
        let (class, expected) = past.of(tag, outcome.bytes_acked);
        self.within(Place { epoch, tag, connection, arm }, unit, |cell, tails| {
            cell.count(outcome);
            if !outcome.by_response {
                cell.transfer(transfer, class, expected, tails);
            }
        });
    }

    /// Takes the outcome of a response whose epoch is still open.
    pub(crate) fn respond(&mut self, outcome: &ResponseOutcome, unit: TrafficUnit, past: KnownPast<'_>) {
        let &ResponseOutcome { epoch, tag, connection, arm, .. } = outcome;
        let transfer = Transfer::of_response(outcome);
        let (class, expected) = past.of(tag, outcome.bytes);
        let place = Place { epoch, tag, connection, arm };
        self.within(place, unit, |cell, tails| cell.transfer(transfer, class, expected, tails));
    }

    /// Gives an outcome to its unit, if there is room for it.
    fn within(&mut self, place: Place, unit: TrafficUnit, take: impl FnOnce(&mut Cell, &mut OutcomeTails)) {
        let Place { epoch, tag, connection, arm } = place;
        let Ok(arm) = u8::try_from(arm) else { return };
        let by_connection = unit == TrafficUnit::Connection;
        // Which of a prefix's connections bet is drawn by their hashes, whatever their arms and whenever they end.
        let key = (tag, if by_connection { sip13([tag, epoch], [connection, 0, 0]) } else { 0 });
        let units = self.epochs.entry(epoch).or_default();
        if let Some(at) = units.places.get(&key) {
            let cell = &mut units.cells[*at].1;
            if cell.arm == arm {
                take(cell, &mut self.tails)
            } else {
                self.two_arms += 1
            }
            return;
        }
        let mut evicts = None;
        if let Some(kept) = units.kept.get(&tag).filter(|kept| kept.len() >= KEPT_OF_A_PREFIX) {
            evicts = kept.last().copied().filter(|last| *last > key.1);
            self.beyond += 1;
            if evicts.is_none() {
                return;
            }
        }
        if evicts.is_none() && self.live >= MAX_UNITS {
            self.overflowed += 1;
            return;
        }
        if by_connection {
            let kept = units.kept.entry(tag).or_default();
            if let Some(last) = evicts {
                kept.remove(&last);
            }
            kept.insert(key.1);
        }
        let mut cell = Cell::new(arm);
        take(&mut cell, &mut self.tails);
        let at = evicts.and_then(|last| units.places.remove(&(tag, last)));
        match at {
            Some(at) => units.cells[at] = (key, cell),
            None => {
                self.live += 1;
                units.cells.push((key, cell));
            }
        }
        units.places.insert(key, at.unwrap_or(units.cells.len() - 1));
    }

    /// The units of an epoch, in the order of their tags, which are hashes; they aren't live any more.
    pub(crate) fn take(&mut self, epoch: u64) -> BTreeMap<UnitKey, Cell> {
        let EpochUnits { cells, kept, .. } = self.epochs.remove(&epoch).unwrap_or_default();
        self.live -= cells.len();
        let mut cells: BTreeMap<UnitKey, Cell> = cells.into_iter().collect();
        for ((tag, _), cell) in &mut cells {
            cell.of_prefix = kept.get(tag).map_or(1, |kept| u32::try_from(kept.len()).unwrap_or(u32::MAX));
        }
        cells
    }

    /// How many units are live.
    pub(crate) fn len(&self) -> usize {
        self.live
    }
}
