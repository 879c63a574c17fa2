use crate::TraceConfig;
use std::sync::Arc;

const MILLI: u64 = 1_000_000;

/// A line that moves bytes only at the moments of a trace, as mahimahi's `mm-link` does.
///
/// Each opportunity carries a fixed number of bytes. What it doesn't use is lost, unless more packets wait that came
/// before it; a packet that doesn't fit goes on with the next one.
#[derive(Debug, Clone)]
pub(crate) struct Opportunities {
    /// When, milliseconds within the period; the last one is the period.
    at_ms: Arc<[u32]>,
    bytes: u64,
    /// The opportunity in use: its number over all periods, and the bytes it has left.
    current: u64,
    left: u64,
    last_departure: u64,
}

impl Opportunities {
    pub(crate) fn new(config: &TraceConfig) -> Self {
        let bytes = config.bytes.get().max(1);
        Self { at_ms: config.trace.at_ms(), bytes, current: 0, left: bytes, last_departure: 0 }
    }

    pub(crate) fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        let fresh = self.first_after(at);
        if fresh > self.current {
            (self.current, self.left) = (fresh, self.bytes);
        }
        // The whole opportunities that the packet needs beyond the one in use, at once.
        let more = u64::from(wire_len).saturating_sub(self.left).div_ceil(self.bytes);
        self.current = self.current.saturating_add(more);
        self.left = (self.left + more * self.bytes).saturating_sub(u64::from(wire_len));
        self.last_departure = self.time_of(self.current);
        self.last_departure
    }

    pub(crate) const fn free(&self) -> u64 {
        self.last_departure
    }

    fn time_of(&self, number: u64) -> u64 {
        let count = self.at_ms.len() as u64;
        let in_period = u64::from(self.at_ms[(number % count) as usize]);
        (number / count).saturating_mul(self.period()).saturating_add(in_period * MILLI)
    }

    /// The number of the first opportunity after `at`: what comes at the very moment comes too late.
    fn first_after(&self, at: u64) -> u64 {
        let (periods, phase_ms) = (at / self.period(), at % self.period() / MILLI);
        let index = self.at_ms.partition_point(|ms| u64::from(*ms) <= phase_ms);
        periods.saturating_mul(self.at_ms.len() as u64).saturating_add(index as u64)
    }

    fn period(&self) -> u64 {
        u64::from(self.at_ms.last().copied().unwrap_or(1).max(1)) * MILLI
    }
}
