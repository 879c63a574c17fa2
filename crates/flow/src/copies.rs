//! Packets that stand in a capture twice: a mirror port that sends what comes in and what goes out, or a capture on all devices of
//! a host that passes packets on.
//!
//! # What this leaves out
//! Copies of IPv6 packets without data that come later than [`SURELY_NS`], since nothing tells them from another ACK that says the
//! same.

use crate::packet::Segment;
use wt_wire::TcpFlags;

/// A copy that has the same identification comes no later than this. A segment that is retransmitted has another one.
const SOON_NS: u64 = 5_000_000;
/// The same without an identification: nobody sends data again so soon.
const SURELY_NS: u64 = 100_000;
/// Packets that are remembered of each end.
const KEPT: usize = 16;

/// The packets of one end that were seen last: what each is known by, and when it was, in 1024 ns and as far as 32 bits count. Among
/// thousands of connections what is kept of each is seldom in the CPU's caches, so it shall be little.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    seen: [(u32, u32); KEPT],
}

impl Lately {
    /// Whether this very packet was here a moment ago; remembers it if not. `is_new` says that it can't have been: it brings
    /// something that is further than all before. `before` is how many packets this end had sent before it.
    pub(crate) fn is_copy(&mut self, s: &Segment, now: u64, is_new: bool, before: u64) -> bool {
        let (mark, now) = (mark(s), units(now));
        if !is_new {
            let takes_numbers = s.len > 0 || s.flags.has_any(TcpFlags::SYN | TcpFlags::FIN);
            let within = match (s.ident, takes_numbers) {
                (1.., _) => SOON_NS,
                (0, true) => SURELY_NS,
                (0, false) => 0,
            };
            // Packets of several queues may come in the wrong order by a little.
            let apart = |at: u32| now.wrapping_sub(at).cast_signed().unsigned_abs();
            let copy = |(other, at): &(u32, u32)| *other == mark && apart(*at) < units(within);
            if self.seen.iter().any(copy) {
                return true;
            }
        }
        if let Some(place) = self.seen.get_mut(before as usize % KEPT) {
            *place = (mark, now);
        }
        false
    }
}

/// A time in the units in which it is kept.
fn units(ns: u64) -> u32 {
    (ns >> 10) as u32
}

/// A number that stands for all that a copy has in common with its packet; never 0.
///
/// # Source
/// The mixing is that of splitmix64 (Steele, Lea and Flood 2014).
fn mark(s: &Segment) -> u32 {
    let (value, echo) = s.timestamps.unwrap_or_default();
    let sack = s.sacks.first().map_or(0, |(left, right)| u64::from(left.0) << 32 | u64::from(right.0));
    let words = [
        u64::from(s.seq.0) << 32 | u64::from(s.ack.0),
        u64::from(s.len) << 32 | u64::from(s.ident) << 16 | u64::from(s.window),
        u64::from(value) << 32 | u64::from(echo),
        sack,
    ];
    let mix = |state: u64, word: &u64| {
        let mut z = (state ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z ^ (z >> 27)
    };
    (words.iter().fold(u64::from(s.flags.0), mix) >> 32) as u32 | 1
}
