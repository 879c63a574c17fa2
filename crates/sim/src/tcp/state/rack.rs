//! What tells losses by time.

/// What RACK remembers.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tcp) struct Rack {
    /// The youngest segment that was delivered: when it was sent, its end, its RTT.
    pub(in crate::tcp) sent_ns: u64,
    pub(in crate::tcp) end: u64,
    pub(in crate::tcp) rtt_us: u32,
    pub(in crate::tcp) advanced: bool,
    pub(in crate::tcp) dsack_seen: bool,
    pub(in crate::tcp) steps: u32,
    pub(in crate::tcp) last_delivered: u64,
    pub(in crate::tcp) persist: u32,
}
