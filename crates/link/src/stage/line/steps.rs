use crate::StepsConfig;
use crate::time::nanos;

/// Work of one byte: 8 bits, each of which takes 10⁹ / rate nanoseconds.
const BYTE: u128 = 8_000_000_000;

/// A line whose rate changes at given times, in whole nanoseconds; as exact as [`super::Serialiser`].
///
/// A nanosecond at rate r does r units of work, and a byte is 8 × 10⁹ units: so a packet's end is found by counting
/// units through the steps, and what is left over in the last nanosecond is kept.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    /// Since when which rate, within the period.
    steps: Vec<(u64, u64)>,
    /// The length of the period and the work done in it; `None`: the last step lasts for ever.
    period: Option<(u64, u128)>,
    free: u64,
    /// Work already used of the nanosecond that begins at `free`.
    used: u128,
}

impl Steps {
    pub(crate) fn new(config: &StepsConfig) -> Self {
        let steps: Vec<(u64, u64)> = config.steps.iter().map(|(from, rate)| (nanos(*from), rate.get())).collect();
        let period = config.period.map(nanos).map(|period| {
            let ends = steps.iter().skip(1).map(|step| step.0).chain([period]);
            let work = steps.iter().zip(ends).map(|((from, rate), end)| work(*rate, end.saturating_sub(*from)));
            (period.max(1), work.sum::<u128>())
        });
        Self { steps, period, free: 0, used: 0 }
    }

    pub(crate) fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        if at > self.free {
            (self.free, self.used) = (at, 0);
        }
        let mut need = self.used + u128::from(wire_len) * BYTE;
        loop {
            if let Some((period, done)) = self.period.filter(|(_, done)| *done > 0) {
                // Whole periods at once, so that a slow line with a short period is no slower to compute.
                let periods = u64::try_from((need.saturating_sub(1)) / done).unwrap_or(u64::MAX);
                self.free = self.free.saturating_add(period.saturating_mul(periods));
                need -= done * u128::from(periods);
            }
            let (rate, end) = self.step_at(self.free);
            let capacity = end.map_or(u128::MAX, |end| work(rate, end - self.free));
            if (rate > 0 && need <= capacity) || self.free == u64::MAX {
                return self.end(need, rate);
            }
            need -= capacity;
            self.free = end.unwrap_or(u64::MAX);
        }
    }

    pub(crate) const fn free(&self) -> u64 {
        self.free
    }

    /// Uses the last of the work at this rate.
    fn end(&mut self, need: u128, rate: u64) -> u64 {
        let rate = u128::from(rate.max(1));
        self.free = self.free.saturating_add(u64::try_from(need / rate).unwrap_or(u64::MAX));
        self.used = need % rate;
        self.free.saturating_add(u64::from(self.used > 0))
    }

    /// The rate at a time, and when it ends.
    fn step_at(&self, at: u64) -> (u64, Option<u64>) {
        let (begin, phase) = self.period.map_or((0, at), |(period, _)| (at - at % period, at % period));
        let next = self.steps.partition_point(|(from, _)| *from <= phase);
        let rate = next.checked_sub(1).and_then(|last| self.steps.get(last)).map_or(0, |step| step.1);
        let end = self.steps.get(next).map(|step| step.0).or(self.period.map(|(period, _)| period));
        (rate, end.map(|end| begin.saturating_add(end)))
    }
}

fn work(rate: u64, nanos: u64) -> u128 {
    u128::from(rate) * u128::from(nanos)
}
