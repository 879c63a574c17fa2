/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// A flight was seen.
    Flight,
    /// Nobody accepts connections there.
    Refused,
    /// No answer to three SYNs.
    Silent,
    /// The server broke it off.
    Reset,
    /// It was accepted and the request got no answer.
    NoData,
    /// What answers speaks another protocol.
    Foreign,
}

/// What a connection has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The MSS that was offered, bytes.
    pub mss: u16,
    /// How it ended.
    pub end: End,
    /// Segments of the flight.
    pub segments: u32,
    /// How many of them may be a tail loss probe instead, so that the window is smaller.
    pub spare: u32,
    /// Whether none of them can be one, so that they agree with others or contradict them.
    pub firm: bool,
    /// Whether it was the window that stopped the server, and no pause of its application: a tail loss probe with new data
    /// followed.
    pub limited: bool,
    /// Bytes of the flight.
    pub bytes: u32,
    /// The longest segment, bytes.
    pub max_segment: u32,
    /// Where segments come merged, so that their number rests on the bytes: how many of these are left for one segment if all others
    /// are full; 0 if more than one must be short, and nobody knows how many are. `None` where each segment was seen.
    pub left_over: Option<u32>,
    /// Whether the server has told how much it sent, so that no lost segment is missing.
    pub sure: bool,
    /// Whether the server had more to send, and it was the window that stopped it.
    pub more: bool,
    /// Whether the response fits into the flight.
    pub exhausted: bool,
    /// Whether our own receive window may have stopped it.
    pub capped: bool,
    /// Whether the handshake was repeated or late: then the server begins with one segment (RFC 5681 section 3.1), and
    /// this isn't its initial window.
    pub late: bool,
}
