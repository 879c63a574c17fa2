use super::{Hint, Hop, SizeTally};
use crate::{LossCount, ProbeAnswer, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// No more hints than this are kept: whoever floods us with forged ones costs no memory.
const MOST_HINTS: usize = 32;

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing heard yet.
    Waiting,
    /// The target answered.
    Answered,
    /// Somebody said that it is too long.
    TooBig,
    /// Its hops ran out.
    Expired,
    /// Nothing came in time.
    Silent,
    /// Lost in a round in which nothing else got through either: says nothing.
    Void,
}

/// All that is known of sizes and hops, for one kind of probe.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    sizes: BTreeMap<u16, SizeTally>,
    pub(super) hints: Vec<Hint>,
    /// Which hops answered for packets just too long to get through, and how long those were.
    pub(super) hops: BTreeMap<u8, (IpAddr, u16)>,
    /// Hints that can't be: an MTU below the least that IP allows, or above the packet that didn't fit.
    pub(super) absurd: u32,
    /// Who gave them.
    pub(super) absurd_from: Vec<Option<IpAddr>>,
}

impl Evidence {
    pub(super) fn sent(&mut self, size: u16, round: u32) {
        let tally = self.sizes.entry(size).or_insert_with(|| SizeTally::new(size, round));
        tally.sent += 1;
        tally.last_round = round;
    }

    /// Changes what became of one probe of this size.
    pub(super) fn recount(&mut self, size: u16, from: Fate, to: Fate) {
        let Some(tally) = self.sizes.get_mut(&size) else { return };
        for (fate, up) in [(from, false), (to, true)] {
            let count = match fate {
                Fate::Answered => &mut tally.answered,
                Fate::TooBig => &mut tally.refused,
                Fate::Silent => &mut tally.silent,
                // What is void was never sent.
                Fate::Void => {
                    tally.sent = if up { tally.sent.saturating_sub(1) } else { tally.sent + 1 };
                    continue;
                }
                Fate::Waiting | Fate::Expired => continue,
            };
            *count = if up { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    pub(super) fn rtt(&mut self, size: u16, rtt: Time) {
        if let Some(tally) = self.sizes.get_mut(&size) {
            tally.rtt = Some(tally.rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Takes a router's word, if it can be true at all.
    pub(super) fn hint(&mut self, router: Option<IpAddr>, said: ProbeAnswer, size: u16, least: u32) -> bool {
        let ProbeAnswer::TooBig { mtu } = said else { return false };
        let possible = u16::try_from(mtu).ok().filter(|mtu| (least..u32::from(size)).contains(&u32::from(*mtu)));
        let Some(mtu) = possible else {
            self.absurd = self.absurd.saturating_add(1);
            if self.absurd_from.len() < MOST_HINTS && !self.absurd_from.contains(&router) {
                self.absurd_from.push(router);
            }
            return false;
        };
        if let Some(known) = self.hints.iter_mut().find(|hint| hint.router == router && hint.mtu == mtu) {
            known.count = known.count.saturating_add(1);
        } else if self.hints.len() < MOST_HINTS {
            self.hints.push(Hint { router, mtu, count: 1 });
        }
        true
    }

    /// The largest size that got through.
    pub(super) fn passed(&self) -> Option<u16> {
        self.sizes.values().rev().find(|tally| tally.answered > 0).map(|tally| tally.size)
    }

    /// The smallest size above all that got through of which something is known to have not.
    pub(super) fn failed_above(&self, passed: u16) -> Option<u16> {
        self.above(passed).find(|tally| tally.refused + tally.silent > 0).map(|tally| tally.size)
    }

    pub(super) fn above(&self, size: u16) -> impl Iterator<Item = &SizeTally> {
        self.sizes.range(size.saturating_add(1)..).map(|(_, tally)| tally).filter(|tally| tally.sent > 0)
    }

    /// Forgets what became of longer packets.
    pub(super) fn forget_above(&mut self, size: u16) {
        self.sizes.retain(|of, _| *of <= size);
    }

    pub(super) fn of(&self, size: u16) -> SizeTally {
        self.sizes.get(&size).copied().unwrap_or_else(|| SizeTally::new(size, 0))
    }

    pub(super) fn tallies(&self) -> Vec<SizeTally> {
        self.sizes.values().copied().filter(|tally| tally.sent > 0).collect()
    }

    /// The loss among the sizes that get through, from the smallest that lost anything on, as high as it may well be; 0
    /// if nothing was lost.
    pub(super) fn loss_below(&self, passed: u16) -> f64 {
        let count = self.lossy_below(passed);
        if count.lost() == 0 { 0.0 } else { count.interval().1 }
    }

    /// The probes that this loss is of.
    pub(super) fn lossy_below(&self, passed: u16) -> LossCount {
        let lossy = self.sizes.range(..=passed).map(|(_, tally)| tally).skip_while(|tally| tally.silent == 0);
        lossy.fold(LossCount::default(), |sum, tally| {
            sum.plus(LossCount { sent: tally.sent, answered: tally.sent.saturating_sub(tally.silent) })
        })
    }

    /// Answered and silent, of all sizes up to this one.
    pub(super) fn count_up_to(&self, size: u16) -> LossCount {
        self.sizes.range(..=size).fold(LossCount::default(), |sum, (_, tally)| {
            sum.plus(LossCount { sent: tally.answered + tally.silent, answered: tally.answered })
        })
    }

    /// In how many rounds something above this size failed: one or several.
    pub(super) fn failed_in_several_rounds(&self, passed: u16) -> bool {
        let first = self.above(passed).map(|tally| tally.first_round).min();
        let last = self.above(passed).map(|tally| tally.last_round).max();
        first != last
    }

    /// The last hop that a packet just too long reached.
    pub(super) fn last_hop(&self) -> Option<Hop> {
        let passed = self.passed().unwrap_or(0);
        let (ttl, (address, _)) = self.hops.iter().rev().find(|(_, (_, size))| *size > passed)?;
        Some(Hop { ttl: *ttl, address: *address })
    }
}
