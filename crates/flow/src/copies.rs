//! Packets that stand in a capture twice: a mirror port that sends what comes in and what goes out, a capture on all devices of
//! a host that passes packets on, or captures of several places that were joined in one file.
//!
//! Of joined files the copy of a packet comes as late as the path between the places takes it there. Where routers are between them, the hops
//! that packets still have to go tell the places apart: once a packet was surely seen at both, nothing but these hops is needed.
//!
//! # What this leaves out
//! Copies of packets without data and without an identification (IPv6, or IPv4 of some systems) on a connection of which little
//! else was captured twice, unless a router is between the two places: nothing tells them from another ACK that says the same. And copies of
//! joined files without a router between the places: their connections look as if each packet was retransmitted, and are told as what they are.

use crate::packet::Segment;
use wt_wire::TcpFlags;

/// A copy that has the same identification, or fewer hops to go, comes no later than this. A segment that is retransmitted has another
/// identification.
const SOON_NS: u64 = 5_000_000;
/// The same without an identification: nobody sends data again so soon, unless half an RTT is longer.
const SURELY_NS: u64 = 100_000;
/// The same where routers are between the places, and something tells it from a retransmission: no SYN is retransmitted so soon.
///
/// # Source
/// RFC 6298 section 2.1: an initial RTO of a second.
const AFAR_NS: u64 = 1_000_000_000;
/// Packets that are remembered of each end.
const KEPT: usize = 16;
/// Copies of packets with numbers after which it isn't by chance.
const FEWEST: u32 = 2;
/// Packets with numbers after which an end speaks for itself.
const ENOUGH: u64 = 3;
/// Bits of a mark that say how many hops a packet still had to go.
const HOPS_BITS: u32 = 8;
/// Places beside the first whose packets are known by their hops.
const PLACES: usize = 3;

/// The packets of one end that were seen last: what each is known by, and when it was, in 1024 ns and as far as 32 bits count. Among
/// thousands of connections what is kept of each is seldom in the CPU's caches, so it shall be little.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    seen: [(u32, u32); KEPT],
    /// How many packets that take numbers came twice, and the longest time between two, in 1024 ns.
    twice: u32,
    apart: u32,
    /// The hops that packets still have to go at other places than the one that they pass first; 0 is none.
    elsewhere: [u8; PLACES],
    /// Such a place is farther away than a mirror port.
    is_afar: bool,
}

/// What is known when a packet may be a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyHints {
    /// How many packets this end has sent.
    pub(crate) before: u64,
    /// How far apart packets of the connection and their copies are, in 1024 ns.
    pub(crate) apart: Option<u32>,
    pub(crate) rtt_ns: Option<u64>,
}

impl Lately {
    /// Whether this very packet was here a moment ago; remembers it if not. `is_new` says that it can't have been: it brings
    /// something that is further than all before.
    pub(crate) fn is_copy(&mut self, s: &Segment, now: u64, is_new: bool, hints: CopyHints) -> bool {
        let (mark, now) = (mark(s), units(now));
        if !is_new {
            let takes_numbers = s.len > 0 || s.flags.has_any(TcpFlags::SYN | TcpFlags::FIN);
            let within = match (s.ident, takes_numbers) {
                (1.., _) => units(SOON_NS),
                // A SYN is retransmitted after a second, data after an RTT.
                (0, true) if s.has(TcpFlags::SYN) => units(SOON_NS),
                (0, true) => units(hints.rtt_ns.map_or(0, |rtt| rtt / 2).clamp(SURELY_NS, SOON_NS)),
                (0, false) => hints.apart.map_or(0, |apart| (2 * apart + 2).min(units(SOON_NS))),
            };
            // Packets of several queues may come in the wrong order by a little.
            let since = |at: u32| now.wrapping_sub(at).cast_signed().unsigned_abs();
            let is_sure = s.ident != 0 || s.timestamps.is_some() || s.has(TcpFlags::SYN);
            let routed = units(if is_sure { AFAR_NS } else { SOON_NS });
            let copy = |(other, at): &(u32, u32)| {
                let within = if *other == mark { within } else { routed };
                ((other ^ mark) >> HOPS_BITS == 0 && since(*at) < within).then(|| (*other, since(*at)))
            };
            if let Some((other, since)) = self.seen.iter().find_map(copy) {
                if takes_numbers {
                    self.twice = self.twice.saturating_add(1);
                    self.apart = self.apart.max(since);
                }
                if is_sure && other != mark {
                    self.learn_place(s.hops, other.to_le_bytes()[0], since);
                }
                return true;
            }
            if s.hops != 0 && self.elsewhere.contains(&s.hops) && !s.has(TcpFlags::RST) {
                self.twice = self.twice.saturating_add(u32::from(takes_numbers));
                return true;
            }
        }
        if let Some(place) = self.seen.get_mut(hints.before as usize % KEPT) {
            *place = (mark, now);
        }
        false
    }

    /// The same of one that waits for its ACK, was here so long before, and is the same by all but the hops that it had to go.
    pub(crate) fn is_far_copy(&mut self, s: &Segment, first_hops: u8, since_ns: u64) -> bool {
        let is_far = first_hops != s.hops && since_ns < AFAR_NS;
        if is_far {
            self.twice = self.twice.saturating_add(1);
            self.learn_place(s.hops, first_hops, units(since_ns));
        }
        is_far
    }

    /// A packet that has so many hops to go is a copy of one that had others. What came from such a place first was missed at the other.
    fn learn_place(&mut self, hops: u8, first_hops: u8, since: u32) {
        if self.elsewhere.contains(&hops) || self.elsewhere.contains(&first_hops) {
            return;
        }
        if let Some(free) = self.elsewhere.iter_mut().find(|hops| **hops == 0) {
            *free = hops;
            self.is_afar |= since >= units(SOON_NS);
        }
    }

    /// Whether copies come from a place that is farther away than a mirror port: files were joined.
    pub(crate) const fn is_afar(&self) -> bool {
        self.is_afar
    }

    /// How far apart packets and their copies are, in 1024 ns, if what takes numbers mostly came twice: of this end, which sent so
    /// many of the kind, or of both where it sent next to none.
    pub(crate) fn apart(&self, numbered: u64, (other, numbered_there): (&Self, u64)) -> Option<u32> {
        let (numbered, twice, apart) = if numbered >= ENOUGH {
            (numbered, self.twice, self.apart)
        } else {
            (numbered + numbered_there, self.twice.saturating_add(other.twice), self.apart.max(other.apart))
        };
        (twice >= FEWEST && u64::from(twice) * 2 >= numbered).then_some(apart)
    }
}

/// A time in the units in which it is kept.
fn units(ns: u64) -> u32 {
    (ns >> 10) as u32
}

/// A number that stands for all that a copy has in common with its packet, and behind it the hops that it had to go; never 0.
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
    let common = (words.iter().fold(u64::from(s.flags.0), mix) >> 32) as u32 | 1;
    common << HOPS_BITS | u32::from(s.hops)
}
