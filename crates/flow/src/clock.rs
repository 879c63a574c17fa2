/// Packets of several queues come in the wrong order by less than this. Who sets a clock sets it by more: ntpd slews up to 128 ms.
const STEP_NS: u64 = 100_000_000;

/// Times as they stand with packets, as those of a clock that is never set back.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// How far it was set back, and is ahead since.
    ahead_ns: u64,
}

impl Clock {
    /// The time of a packet behind one of `last_ns`, as this clock tells it, and whether the other one was set back between
    /// them: nobody knows how much later it is, so it is next to nothing.
    pub(crate) fn read(&mut self, at_ns: u64, last_ns: u64) -> (u64, bool) {
        if at_ns >= last_ns {
            // One packet alone stood behind later ones.
            self.ahead_ns = 0;
        }
        let now = at_ns.saturating_add(self.ahead_ns);
        if now.saturating_add(STEP_NS) >= last_ns {
            return (now, false);
        }
        let now = last_ns.saturating_add(1);
        self.ahead_ns = now - at_ns;
        (now, true)
    }
}
