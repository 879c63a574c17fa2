//! What is known of units whose epoch is still open, and of prefixes' past; both bounded.

use crate::class::{ClassRanks, class_of, log_goodput};
use crate::{ConnectionFate, ConnectionOutcome, TrafficUnit};
use std::collections::{BTreeMap, HashMap};

/// So many units may be live at once; those that come when all are taken are left out, whatever their arm, and counted.
pub(crate) const MAX_UNITS: usize = 100_000;
/// So many prefixes are remembered.
const MAX_PREFIXES: usize = 100_000;
/// A prefix that wasn't seen for so many epochs is forgotten when there is no room.
const FORGOTTEN: u64 = 24;
/// By connection, so many of a prefix in an epoch bet; what comes beyond is counted, and doesn't.
pub(crate) const MOST_OF_A_PREFIX: u16 = 20;
/// Connections of a unit share its prefix's mood: one is a fifth of a unit, 4 are half of one, none is more than one.
const MOOD: f64 = 4.0;
/// How much a prefix's past must weigh for half of it to be believed.
const PAST: f64 = 0.5;

/// The connections of one unit, added up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) arm: u8,
    pub(crate) connections: u32,
    /// Of the connections with a goodput: class, how many, sum of its logarithms.
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

    fn add(&mut self, outcome: &ConnectionOutcome, class: u8, ranks: &mut ClassRanks) {
        self.connections += 1;
        let aborted = matches!(outcome.fate, ConnectionFate::Reset | ConnectionFate::TimedOut);
        let goodput = log_goodput(outcome);
        if let Some(y) = goodput {
            match self.classes.iter_mut().find(|(k, ..)| *k == class) {
                Some((_, n, sum)) => (*n, *sum) = (*n + 1, *sum + y),
                None => self.classes.push((class, 1, y)),
            }
        }
        let value = if aborted { f64::NEG_INFINITY } else { goodput.unwrap_or(f64::NEG_INFINITY) };
        if let Some(rank) = ranks.rank(class, value) {
            self.ranked += 1;
            self.ranks += rank as f32;
        }
        self.segments += u64::from(outcome.sent_segments);
        self.retransmitted += u64::from(outcome.retransmitted_segments.min(outcome.sent_segments));
        if let Some(rtos) = outcome.rtos {
            self.rto_known += 1;
            self.with_rto += u32::from(rtos > 0);
        }
        self.aborted += u32::from(aborted);
        self.open += u32::from(outcome.fate == ConnectionFate::Open);
        if outcome.min_rtt_us > 0 && (self.min_rtt_us == 0 || outcome.min_rtt_us < self.min_rtt_us) {
            self.min_rtt_us = outcome.min_rtt_us;
        }
    }

    /// The weight of a unit of so many connections.
    pub(crate) fn weight(&self) -> f64 {
        let n = f64::from(self.connections);
        n / (n + MOOD)
    }

    /// The mean over its connections of the logarithm of goodput less its class's mean.
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

/// The key of a unit within its epoch: its prefix's tag, and by connection a number.
pub(crate) type UnitKey = (u64, u16);

/// Units of the epochs that are still open.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveUnits {
    epochs: BTreeMap<u64, BTreeMap<UnitKey, Cell>>,
    /// By connection: how many of a prefix came in an epoch.
    serials: HashMap<(u64, u64), u16>,
    ranks: ClassRanks,
    live: usize,
    /// Connections that found no room.
    pub(crate) overflowed: u64,
    /// Connections of a prefix beyond those that bet.
    pub(crate) beyond: u64,
    /// Connections of a prefix that had another arm before, in the same epoch.
    pub(crate) two_arms: u64,
}

impl LiveUnits {
    /// Takes one outcome of an epoch that is still open.
    pub(crate) fn add(&mut self, outcome: &ConnectionOutcome, unit: TrafficUnit, prefixes: &Prefixes) {
        let Ok(arm) = u8::try_from(outcome.arm) else { return };
        let mut serial = 0;
        if unit == TrafficUnit::Connection {
            let full = self.serials.len() >= MAX_UNITS;
            match self.serials.get_mut(&(outcome.epoch, outcome.tag)) {
                Some(n) if *n >= MOST_OF_A_PREFIX => {
                    self.beyond += 1;
                    return;
                }
                Some(n) => (serial, *n) = (*n, *n + 1),
                None if full => {
                    self.overflowed += 1;
                    return;
                }
                None => _ = self.serials.insert((outcome.epoch, outcome.tag), 1),
            }
        }
        let class = class_of(outcome.bytes_acked, prefixes.min_rtt_us(outcome.tag));
        let cells = self.epochs.entry(outcome.epoch).or_default();
        match cells.get_mut(&(outcome.tag, serial)) {
            Some(cell) if cell.arm != arm => self.two_arms += 1,
            Some(cell) => cell.add(outcome, class, &mut self.ranks),
            None if self.live >= MAX_UNITS => self.overflowed += 1,
            None => {
                let mut cell = Cell::new(arm);
                cell.add(outcome, class, &mut self.ranks);
                cells.insert((outcome.tag, serial), cell);
                self.live += 1;
            }
        }
    }

    /// The units of an epoch, in the order of their tags, which are hashes; they aren't live any more.
    pub(crate) fn take(&mut self, epoch: u64) -> BTreeMap<UnitKey, Cell> {
        let cells = self.epochs.remove(&epoch).unwrap_or_default();
        self.live -= cells.len();
        self.serials.retain(|(of, _), _| *of != epoch);
        cells
    }

    /// How many units are live.
    pub(crate) fn len(&self) -> usize {
        self.live
    }
}
