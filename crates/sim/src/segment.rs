//! What travels: TCP segments and the one ICMP message that TCP heeds, as handles of [`wt_link::Packet`].
//!
//! What this leaves out: payload and checksums, so nothing arrives damaged (a damaged packet is dropped on arrival); sequence
//! numbers don't wrap, which matters beyond 2^64 bytes; options that nobody uses here (Fast Open, MD5, MPTCP), which make
//! headers longer where they are used.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `struct tcphdr`, `tcp_options_write` | 9293 §3.1, 7323 §3.2, 2018 §3 | [`Segment`], [`SynOptions`] |

use wt_link::Packet;

/// Bytes of an IPv4 header.
pub(crate) const IP_HEADER: u32 = 20;
/// Bytes of a TCP header without options.
pub(crate) const TCP_HEADER: u32 = 20;
/// Bytes of the timestamp option, padded.
pub(crate) const TIMESTAMPS: u32 = 12;

/// Bits of [`Segment::flags`].
pub(crate) mod flag {
    pub(crate) const SYN: u8 = 1;
    pub(crate) const ACK: u8 = 2;
    pub(crate) const PSH: u8 = 8;
    pub(crate) const ECE: u8 = 16;
    pub(crate) const CWR: u8 = 32;
    /// The first block of SACK reports a duplicate (RFC 2883).
    pub(crate) const DSACK: u8 = 64;
    /// Asks for the window.
    pub(crate) const PROBE: u8 = 4;
    /// Not TCP: "fragmentation needed", the next hop's MTU in `window`.
    pub(crate) const TOO_BIG: u8 = 128;
}

/// What a SYN says (RFC 9293, 7323, 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SynOptions {
    /// Zero where a hop has taken it away.
    pub(crate) mss: u16,
    /// The shift of the window, if windows may be scaled.
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
}

/// What a hop on the path does to the options of a SYN that passes it. Options that aren't there stay away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SynChange {
    /// It lets no larger MSS through, bytes.
    ClampMss(u16),
    /// It writes this MSS, bytes.
    WriteMss(u16),
    /// It writes this shift of the window.
    WriteWindowScale(u8),
    /// It overwrites the MSS by padding.
    StripMss,
    /// It overwrites the window scale.
    StripWindowScale,
    /// It overwrites "SACK permitted".
    StripSack,
    /// It overwrites the timestamps.
    StripTimestamps,
}

impl SynOptions {
    /// Bytes of these options, as Linux lays them out.
    pub(crate) const fn len(self) -> u32 {
        let timestamps = if self.timestamps { TIMESTAMPS } else { 0 };
        // SACK-permitted shares the padding of the timestamps.
        let sack = if self.sack && !self.timestamps { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        4 + timestamps + sack + scale
    }

    /// What is left of them behind a hop that does this.
    pub(crate) fn changed(self, change: SynChange) -> Self {
        match change {
            SynChange::ClampMss(most) => Self { mss: self.mss.min(most), ..self },
            SynChange::WriteMss(mss) if self.mss > 0 => Self { mss, ..self },
            SynChange::WriteWindowScale(shift) => Self { window_scale: self.window_scale.and(Some(shift)), ..self },
            SynChange::WriteMss(_) | SynChange::StripMss => Self { mss: 0, ..self },
            SynChange::StripWindowScale => Self { window_scale: None, ..self },
            SynChange::StripSack => Self { sack: false, ..self },
            SynChange::StripTimestamps => Self { timestamps: false, ..self },
        }
    }
}

/// Blocks of SACK that one acknowledgement carries at most, beside timestamps.
pub(crate) const MAX_SACKS: usize = 3;

/// A range of the stream, from its first byte to the one behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A segment on its way. Sequence numbers are offsets in the stream, which never wrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The endpoint that it is for.
    pub(crate) to: u32,
    pub(crate) flags: u8,
    /// How many of `sacks` are in use.
    pub(crate) sack_count: u8,
    /// Payload, bytes.
    pub(crate) len: u16,
    /// The receive window in bytes, after scaling.
    pub(crate) window: u32,
    /// Timestamp and its echo, in the unit of the stack's clock (ms).
    pub(crate) ts_val: u32,
    pub(crate) ts_ecr: u32,
    pub(crate) syn: SynOptions,
    pub(crate) seq: u64,
    pub(crate) ack: u64,
    /// Offsets from `ack` (of a D-SACK: backwards), and lengths.
    sacks: [(u32, u32); MAX_SACKS],
    /// Number of the datagram that this is a fragment of; 0 for a whole one.
    pub(crate) fragment_of: u32,
}

impl Segment {
    pub(crate) fn new(to: u32, flags: u8, seq: u64, ack: u64) -> Self {
        Self {
            to,
            flags,
            sack_count: 0,
            len: 0,
            window: 0,
            ts_val: 0,
            ts_ecr: 0,
            syn: SynOptions::default(),
            seq,
            ack,
            sacks: [(0, 0); MAX_SACKS],
            fragment_of: 0,
        }
    }

    /// The same with another window, bytes.
    pub(crate) fn with_window(self, window: u32) -> Self {
        Self { window, ..self }
    }

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Adds a block; what has no room is left out.
    pub(crate) fn add_sack(&mut self, range: Range, duplicate: bool) {
        let at = usize::from(self.sack_count);
        let Some(slot) = self.sacks.get_mut(at) else { return };
        let offset = if duplicate && range.start < self.ack {
            self.flags |= flag::DSACK;
            self.ack - range.start
        } else {
            if duplicate {
                self.flags |= flag::DSACK;
            }
            range.start - self.ack
        };
        let below = u32::from(duplicate && range.start < self.ack) << 31;
        *slot = (offset as u32 & 0x7FFF_FFFF | below, (range.end - range.start) as u32);
        self.sack_count += 1;
    }

    /// The blocks, the first one being a duplicate's if the flag says so.
    pub(crate) fn sacks(&self) -> impl Iterator<Item = Range> + '_ {
        self.sacks[..usize::from(self.sack_count)].iter().map(|(offset, len)| {
            let distance = u64::from(offset & 0x7FFF_FFFF);
            let start = if offset >> 31 == 1 { self.ack.saturating_sub(distance) } else { self.ack + distance };
            Range { start, end: start + u64::from(*len) }
        })
    }

    /// The packet that carries it, with so many bytes of options.
    pub(crate) fn packet(self, options: u32, flow: u32) -> Packet<Self> {
        let len = u32::from(self.len);
        let mut packet = Packet::new(IP_HEADER + TCP_HEADER + options + len, self);
        packet.data_len = len;
        packet.flow = flow;
        packet.syn = packet.payload.flags & flag::SYN != 0;
        packet.pure_ack =
            len == 0 && packet.payload.flags & (flag::SYN | flag::TOO_BIG) == 0 && packet.payload.sack_count == 0;
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sack_blocks_come_back_as_they_went_in() {
        let mut segment = Segment::new(0, flag::ACK, 0, 10_000);
        let blocks = [(8_000, 9_000), (20_000, 21_448), (30_000, 90_000)].map(|(start, end)| Range { start, end });
        segment.add_sack(blocks[0], true);
        segment.add_sack(blocks[1], false);
        segment.add_sack(blocks[2], false);
        segment.add_sack(blocks[2], false);
        assert_eq!(segment.sacks().collect::<Vec<_>>(), blocks);
        assert!(segment.has(flag::DSACK));
    }

    #[test]
    fn a_syn_with_everything_is_sixty_bytes_and_a_handle_stays_small() {
        let all = SynOptions { mss: 1460, window_scale: Some(7), sack: true, timestamps: true };
        assert_eq!(IP_HEADER + TCP_HEADER + all.len(), 60);
        assert!(size_of::<Packet<Segment>>() <= 112, "{}", size_of::<Packet<Segment>>());
    }
}
