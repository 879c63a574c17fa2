//! Packets that stand in a capture twice: a mirror port that sends what comes in and what goes out, or a capture on all devices of
//! a host that passes packets on.
//!
//! # What this leaves out
//! Copies of packets without data and without an identification (IPv6, or IPv4 of some systems) on a connection of which little
//! else was captured twice, unless a router is between the two places: nothing tells them from another ACK that says the same.

use crate::packet::Segment;
use wt_wire::TcpFlags;

/// A copy that has the same identification, or fewer hops to go, comes no later than this. A segment that is retransmitted has another
/// identification.
const SOON_NS: u64 = 5_000_000;
/// The same without an identification: nobody sends data again so soon, unless half an RTT is longer.
const SURELY_NS: u64 = 100_000;
/// Packets that are remembered of each end.
const KEPT: usize = 16;
/// Copies of packets with numbers after which it isn't by chance.
const FEWEST: u32 = 2;
/// Packets with numbers after which an end speaks for itself.
const ENOUGH: u32 = 3;

/// The packets of one end that were seen last: what each is known by, and when it was, in 1024 ns and as far as 32 bits count. Among
/// thousands of connections what is kept of each is seldom in the CPU's caches, so it shall be little.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    seen: [(u32, u32); KEPT],
    /// How many hops each still had to go.
    hops: [u8; KEPT],
    /// Packets that take numbers, how many of them came twice, and the longest time between two, in 1024 ns.
    numbered: u32,
    twice: u32,
    apart: u32,
}

impl Lately {
    /// Whether this very packet was here a moment ago; remembers it if not. `is_new` says that it can't have been: it brings
    /// something that is further than all before. `before` is how many packets this end had sent before it, `apart` how far apart
    /// packets of the connection and their copies are, in 1024 ns, and `rtt_ns` the RTT, where they are known.
    pub(crate) fn is_copy(
        &mut self,
        s: &Segment,
        now: u64,
        is_new: bool,
        before: u64,
        (apart, rtt_ns): (Option<u32>, Option<u64>),
    ) -> bool {
        let (mark, now) = (mark(s), units(now));
        let takes_numbers = s.len > 0 || s.flags.has_any(TcpFlags::SYN | TcpFlags::FIN);
        if !is_new {
            let within = match (s.ident, takes_numbers) {
                (1.., _) => units(SOON_NS),
                // A SYN is retransmitted after a second, data after an RTT.
                (0, true) if s.has(TcpFlags::SYN) => units(SOON_NS),
                (0, true) => units(rtt_ns.map_or(0, |rtt| rtt / 2).clamp(SURELY_NS, SOON_NS)),
                (0, false) => apart.map_or(0, |apart| (2 * apart + 2).min(units(SOON_NS))),
            };
            // Packets of several queues may come in the wrong order by a little.
            let since = |at: u32| now.wrapping_sub(at).cast_signed().unsigned_abs();
            let copy = |((other, at), hops): (&(u32, u32), &u8)| {
                let within = if *hops == s.hops { within } else { units(SOON_NS) };
                (*other == mark && since(*at) < within).then(|| since(*at))
            };
            if let Some(since) = self.seen.iter().zip(&self.hops).find_map(copy) {
                if takes_numbers {
                    self.twice = self.twice.saturating_add(1);
                    self.apart = self.apart.max(since);
                }
                return true;
            }
        }
        self.numbered = self.numbered.saturating_add(u32::from(takes_numbers));
        let place = before as usize % KEPT;
        if let (Some(seen), Some(hops)) = (self.seen.get_mut(place), self.hops.get_mut(place)) {
            (*seen, *hops) = ((mark, now), s.hops);
        }
        false
    }

    /// How far apart packets and their copies are, in 1024 ns, if what takes numbers mostly came twice: of this end, or of the other
    /// one where this one sent next to nothing of the kind.
    pub(crate) fn apart(&self, other: &Self) -> Option<u32> {
        let (numbered, twice, apart) = if self.numbered >= ENOUGH {
            (self.numbered, self.twice, self.apart)
        } else {
            (
                self.numbered.saturating_add(other.numbered),
                self.twice.saturating_add(other.twice),
                self.apart.max(other.apart),
            )
        };
        (twice >= FEWEST && twice.saturating_mul(2) >= numbered).then_some(apart)
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
