/// Bit·nanoseconds per second of one byte: 8 bits × 10⁹.
const BYTE: u64 = 8_000_000_000;

/// A line that sends one packet after the other at a constant rate, exact for ever.
///
/// The moment at which it is free is a whole number of nanoseconds and a rest in units of 1/rate nanoseconds, both
/// integers, so nothing is rounded away: after an hour of back-to-back packets the last one leaves when theory says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serialiser {
    /// What a byte costs, and what the line does in a nanosecond: a byte takes `per_byte / per_nano` nanoseconds.
    per_byte: u64,
    per_nano: u64,
    /// When the line is free, rounded down.
    free: u64,
    /// What `free` lacks, in units of 1/`per_nano` ns; below `per_nano`.
    rest: u64,
    /// The length last asked for, bytes, and its time: whole nanoseconds and rest.
    known: (u32, u64, u64),
}

impl Serialiser {
    /// A line of so many bits per second.
    pub(crate) fn new(rate: u64) -> Self {
        Self::scaled(BYTE, rate)
    }

    /// A line on which a byte takes `per_byte / per_nano` nanoseconds; `per_nano` at most 2⁶².
    pub(crate) fn scaled(per_byte: u64, per_nano: u64) -> Self {
        Self { per_byte, per_nano: per_nano.clamp(1, 1 << 62), free: 0, rest: 0, known: (0, 0, 0) }
    }

    /// When the last bit of a packet is out that is ready at `at`, rounded up to the nanosecond.
    #[inline]
    pub(crate) fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        if at > self.free {
            (self.free, self.rest) = (at, 0);
        }
        if self.known.0 != wire_len {
            self.known = self.time_of(wire_len);
        }
        let (_, whole, part) = self.known;
        self.free = self.free.saturating_add(whole);
        self.rest += part;
        if self.rest >= self.per_nano {
            self.rest -= self.per_nano;
            self.free = self.free.saturating_add(1);
        }
        self.free.saturating_add(u64::from(self.rest > 0))
    }

    /// When the line is free, rounded down: a packet that is ready then follows without a gap.
    pub(crate) const fn free(&self) -> u64 {
        self.free
    }

    /// The line stands still for so long.
    pub(crate) fn pause(&mut self, nanos: u64) {
        self.free = self.free.saturating_add(nanos);
    }

    fn time_of(&self, wire_len: u32) -> (u32, u64, u64) {
        let work = u128::from(wire_len) * u128::from(self.per_byte);
        let per_nano = u128::from(self.per_nano);
        let whole = u64::try_from(work / per_nano).unwrap_or(u64::MAX);
        (wire_len, whole, (work % per_nano) as u64)
    }
}

/// How long so many bytes take at a rate, nanoseconds, rounded up.
pub(crate) fn time_of(bytes: u64, rate: u64) -> u64 {
    let nanos = (u128::from(bytes) * u128::from(BYTE)).div_ceil(u128::from(rate.max(1)));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
