/// A line that sends one packet after the other at a constant rate, exact for ever.
///
/// The moment at which it is free is a whole number of nanoseconds and a rest in units of 1/rate nanoseconds, both
/// integers, so nothing is rounded away: after an hour of back-to-back packets the last one leaves when theory says.
#[derive(Debug, Clone)]
pub(crate) struct Serialiser {
    /// Bits per second, at least 1.
    rate: u64,
    /// When the line is free, rounded down.
    free: u64,
    /// What `free` lacks, in units of 1/rate ns; below `rate`.
    rest: u64,
    /// The length last asked for, bytes, and its time: whole nanoseconds and rest.
    known: (u32, u64, u64),
}

impl Serialiser {
    pub(crate) fn new(rate: u64) -> Self {
        Self { rate: rate.max(1), free: 0, rest: 0, known: (0, 0, 0) }
    }

    /// When the last bit of a packet is out that is ready at `at`, rounded up to the nanosecond.
    pub(crate) fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        if at > self.free {
            (self.free, self.rest) = (at, 0);
        }
        let (whole, part) = self.time_of(wire_len);
        self.free = self.free.saturating_add(whole);
        self.rest += part;
        if self.rest >= self.rate {
            self.rest -= self.rate;
            self.free = self.free.saturating_add(1);
        }
        self.free.saturating_add(u64::from(self.rest > 0))
    }

    /// Whole nanoseconds and rest of so many bytes.
    fn time_of(&mut self, wire_len: u32) -> (u64, u64) {
        if self.known.0 != wire_len {
            let work = u128::from(wire_len) * 8_000_000_000;
            let rate = u128::from(self.rate);
            let whole = u64::try_from(work / rate).unwrap_or(u64::MAX);
            self.known = (wire_len, whole, (work % rate) as u64);
        }
        (self.known.1, self.known.2)
    }
}
