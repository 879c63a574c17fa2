//! Times from here to both ends.

/// What the connection knows of its times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownTimes {
    /// Of the handshake, from SYN to the last ACK.
    pub(crate) first_rtt_ns: Option<u64>,
    /// From here to the sender of the segment and back.
    pub(crate) back_ns: u64,
    /// From here to its receiver and back.
    pub(crate) forth_ns: u64,
}

impl KnownTimes {
    /// Of the whole path, at the least.
    pub(crate) fn rtt_ns(&self) -> Option<u64> {
        let loops = (self.back_ns > 0 && self.forth_ns > 0).then(|| self.back_ns.saturating_add(self.forth_ns));
        [self.first_rtt_ns, loops].into_iter().flatten().min()
    }
}
