use super::Serialiser;
use crate::dice::Dice;
use crate::{ModemConfig, RetrainConfig, time::nanos};

/// Parts per million: the grain of the shares below.
const MILLION: f64 = 1e6;

/// Through so many pauses of a silence the line steps one by one.
const MOST_PAUSES: f64 = 1e5;

/// A modem's line: bytes that must be escaped, bits around each byte, compression, and pauses to train again.
#[derive(Debug, Clone)]
pub(crate) struct Modem {
    line: Serialiser,
    pauses: Option<Pauses>,
}

/// When the line stands still. The times don't depend on the traffic.
#[derive(Debug, Clone)]
struct Pauses {
    /// Mean time between them, and how long each lasts, nanoseconds.
    every: f64,
    lasts: u64,
    next: u64,
    dice: Dice,
}

impl Modem {
    pub(crate) fn new(config: &ModemConfig, dice: Dice) -> Self {
        // A byte takes bits × (1 + escapes) / (rate × compression) seconds; all as integers of a millionth.
        let bits = u64::from(config.bits_per_byte) * 1_000_000_000;
        let escaped = ((1.0 + config.escapes.get()) * MILLION).round() as u64;
        let compressed = (config.compression * MILLION).round() as u64;
        let line = Serialiser::scaled(bits.saturating_mul(escaped), config.rate.get().saturating_mul(compressed));
        Self { line, pauses: config.retrain.map(|retrain| Pauses::new(&retrain, dice)) }
    }

    pub(crate) fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        let Some(pauses) = &mut self.pauses else { return self.line.finish(at, wire_len) };
        let mut finish = self.line.finish(pauses.end_of_pause_at(at), wire_len);
        while finish > pauses.next {
            self.line.pause(pauses.lasts);
            finish = finish.saturating_add(pauses.lasts);
            pauses.advance();
        }
        finish
    }

    pub(crate) const fn free(&self) -> u64 {
        self.line.free()
    }
}

impl Pauses {
    fn new(config: &RetrainConfig, dice: Dice) -> Self {
        let mut pauses = Self { every: nanos(config.every) as f64, lasts: nanos(config.lasts), next: 0, dice };
        pauses.next = pauses.gap();
        pauses
    }

    /// The time from the end of a pause to the next one; at least a nanosecond.
    fn gap(&mut self) -> u64 {
        ((self.every * self.dice.exponential()) as u64).max(1)
    }

    fn advance(&mut self) {
        self.next = self.next.saturating_add(self.lasts).saturating_add(self.gap());
    }

    /// `at`, or the end of the pause that `at` lies in. Pauses that are over are forgotten.
    fn end_of_pause_at(&mut self, at: u64) -> u64 {
        if at.saturating_sub(self.next) as f64 > self.every * MOST_PAUSES {
            // The gaps have no memory: after a very long silence they may begin anew.
            self.next = at.saturating_add(self.gap());
        }
        while self.next <= at {
            let end = self.next.saturating_add(self.lasts);
            if at < end {
                // It stays the next one no longer: the packet waits for its end.
                self.advance();
                return end;
            }
            self.advance();
        }
        at
    }
}
