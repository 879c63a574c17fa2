//! What a report tells of one end: what it offered, and how often it did what.

use serde::Serialize;

/// What an end sent, counted. All bytes are payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// Payload, retransmissions counted again, bytes.
    pub bytes_sent: u64,
    /// Segments that were retransmitted, SYNs and FINs among them: those for which ACKs asked and those that a timer set off.
    pub retransmissions: u64,
    /// Of these, with payload: SYNs and FINs alone don't count.
    pub data_retransmissions: u64,
    /// Of all that were retransmitted, for which ACKs had asked a moment before: two or more duplicate ones, or blocks behind what is missing.
    pub fast_retransmissions: u64,
    /// Of these, of data that had arrived: it had been acknowledged already, or the receiver says that it came twice (D-SACK).
    pub spurious_retransmissions: u64,
    /// Of these, of data that had passed here before and isn't known to have arrived: lost behind this point, on the way to the
    /// receiver.
    pub lost_after: u64,
    /// Of these, of data that had not passed here: lost before this point, on the way from the sender.
    pub lost_before: u64,
    /// Payload of retransmissions, bytes.
    pub bytes_retransmitted: u64,
    /// Segments that came behind later ones, too soon to be retransmissions.
    pub out_of_order: u64,
    /// Gaps: a segment came before an earlier one.
    pub gaps: u64,
    /// ACKs that repeat the one before.
    pub duplicate_acks: u64,
    /// ACKs of data that never passed here.
    pub acked_unseen: u64,
    /// ACKs that report that data arrived twice (RFC 2883): retransmissions that weren't needed.
    pub duplicate_reports: u64,
    /// Segments that only ask whether the other end is there.
    pub keep_alives: u64,
    /// Segments of one byte into a closed window.
    pub zero_window_probes: u64,
    /// Segments that closed their sender's receive window.
    pub zero_windows: u64,
    /// ACKs whose only news is the window.
    pub window_updates: u64,
    /// Segments that filled the other end's window to the last byte.
    pub window_full: u64,
    /// SYNs that were retransmitted.
    pub syn_retransmissions: u64,
    /// Packets with the mark of congestion.
    pub ce_marks: u64,
    /// Packets that echo such a mark.
    pub ece: u64,
    /// Packets that are longer than a link carries: captured before a device split them, or after one joined them.
    pub super_packets: u64,
}

/// What an end's SYN offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Offer {
    /// Largest segment that it takes, bytes.
    pub mss: Option<u16>,
    /// The shift of its windows.
    pub window_scale: Option<u8>,
    /// Whether it understands SACK.
    pub sack: bool,
    /// Whether it sends timestamps.
    pub timestamps: bool,
    /// Whether it asks for ECN or agrees to it.
    pub ecn: bool,
}
