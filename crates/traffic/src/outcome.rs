/// How a connection ended, or that it hadn't when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionFate {
    /// Closed in order.
    Closed,
    /// Reset by either end, or given up with an error.
    Reset,
    /// Given up by the kernel after retransmissions without an answer.
    TimedOut,
    /// Open at the cohort's age, or at the end of the experiment: figures as they were then.
    Open,
}

/// What became of one assigned connection, at its end or at the cohort's age, whichever came first.
///
/// It has no address, no port and no time of day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConnectionOutcome {
    /// The arm that the draw gave; what was in force later doesn't matter.
    pub arm: usize,
    /// The epoch in which it was established.
    pub epoch: u64,
    /// How long after the beginning of that epoch it was established, µs: slots leave out their burn-in.
    pub offset_us: u64,
    /// The keyed tag of its client's prefix ([`crate::DrawKey::tag`]).
    pub tag: u64,
    /// What tells it from the other connections of its prefix and epoch; nothing else is read from it.
    pub connection: u64,
    /// Whether its responses are told one by one ([`ResponseOutcome`]): then they alone have a goodput.
    pub by_response: bool,
    /// Payload bytes that the client acknowledged.
    pub bytes_acked: u64,
    /// From establishment to the end or the cohort's age, µs.
    pub duration_us: u64,
    /// How long data was outstanding, µs, where the kernel says it.
    pub busy_us: Option<u64>,
    /// The smallest round-trip time, µs; 0 if none was measured.
    pub min_rtt_us: u32,
    /// Segments with data that were sent, retransmissions among them.
    pub sent_segments: u32,
    /// Segments that were retransmitted.
    pub retransmitted_segments: u32,
    /// Retransmission timeouts, where the kernel says it.
    pub rtos: Option<u32>,
    /// How it ended.
    pub fate: ConnectionFate,
    /// One bit for each setting that the kernel refused, in the order of [`crate::SocketSetting`]; 0 is none.
    pub set_errors: u32,
    /// Whether the arm's settings, read at the end, were still in force.
    pub compliant: bool,
}

/// What became of one response of an assigned connection: what was written without a pause in which all was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResponseOutcome {
    /// The arm of its connection.
    pub arm: usize,
    /// The epoch in which its connection was established.
    pub epoch: u64,
    /// How long after the beginning of that epoch its connection was established, µs.
    pub offset_us: u64,
    /// The keyed tag of its client's prefix ([`crate::DrawKey::tag`]).
    pub tag: u64,
    /// As [`ConnectionOutcome::connection`].
    pub connection: u64,
    /// Payload bytes, as far as they were acknowledged.
    pub bytes: u64,
    /// From its first byte written to its last byte acknowledged, or to its connection's end, µs.
    pub time_us: u64,
    /// Whether its connection was reset or timed out before all of it was acknowledged.
    pub aborted: bool,
}
