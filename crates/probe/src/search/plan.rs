use super::evidence::Fate;
use super::{Above, Evidence, Flight, Item, Purpose, Search, Stage, USUAL_LEAST};
use crate::{Kind, Time, repeats_for};
use std::collections::BTreeMap;

/// The sizes of the first burst, bytes: MTUs of the real world (RFC 1191 section 7.1, and what tunnels, PPPoE and VPNs
/// leave of 1500), no two further apart than one burst can tell.
const FIRST: [u16; 15] = [576, 1280, 1308, 1336, 1364, 1392, 1420, 1448, 1472, 1492, 1500, 2000, 4000, 8000, 9000];
/// What goes behind them: some lines carry no more (RFC 1191 section 7.1), and every one carries the last (RFC 791).
const SHORT: [u16; 2] = [296, 68];
/// What is tried when none of these got through.
const TINY: [u16; 6] = [68, 128, 256, 296, 508, 576];
/// Nearly every path carries packets of this length.
pub(super) const COMMON: u16 = 1280;
/// Sizes of one later burst.
const FAN_OUT: usize = 28;
/// As many probes of the PMTU itself show a loss of 30 % in 998 of 1000 cases, with those of the first burst.
const CHECKS: u32 = 13;
/// So many packets just too long go along with the checks.
const REFUSALS: u32 = 3;
/// When any of those that are too long isn't refused, so many show whether refusals are rationed: Linux says so six times
/// at once and then once a second (`icmp_ratelimit` of icmp(7), `XRLIM_BURST_FACTOR` of net/ipv4/icmp.c).
const RATION: u32 = 12;
/// For so long nothing is asked of routers that ration what they say: most say something once a second.
pub(super) const RATION_PAUSE: Time = Time::from_millis(1100);
/// So often: on a busy path the only word of a pause may be lost, or come too late.
pub(super) const PATIENCE: u8 = 2;
/// Rounds that may say nothing before it's over.
const MOST_VOIDS: u32 = 3;
/// How far a hole is looked for when nothing tells how many hops there are.
const MOST_HOPS: u8 = 30;

impl Search {
    /// The first burst of the current kind.
    pub(super) fn begin(&mut self) {
        let (kind, least) = (self.method(), if self.config.v6 { 1280 } else { USUAL_LEAST });
        self.tried.push(kind);
        let wants_tcp = self.round == 0 && self.config.handshake;
        if wants_tcp {
            self.queue.push_back(Item { kind: Kind::Syn, size: 44, ttl: None, purpose: Purpose::Open });
        }
        if kind == Kind::Udp || (kind == Kind::Stream && !self.open) {
            // Answers are rationed: only what tells most, and last what most likely gets through.
            let hinted = self.evidence.hints.iter().map(|hint| hint.mtu).min().unwrap_or(COMMON).max(self.least());
            let common = if self.retried && kind == Kind::Udp { least } else { COMMON }.min(hinted).min(self.max);
            let item = |size, purpose| Item { kind: Kind::Udp, size, ttl: None, purpose };
            if kind == Kind::Stream {
                // Not before it is known whether the target accepts connections.
                self.hedged = true;
                self.queue.extend([item(self.max, Purpose::Hint), item(common, Purpose::Hedge)]);
                return;
            }
            self.push(self.max, u32::from(self.max > common));
            return self.push(common, 1);
        }
        let jumbo = self.max > 1500;
        let sizes: Vec<u16> = FIRST.into_iter().filter(|size| jumbo || *size <= 1500).chain([self.max]).collect();
        let mut sizes: Vec<u16> = sizes.into_iter().filter(|size| (least..=self.max).contains(size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if self.max < least {
            sizes.push(self.max);
        }
        sizes.extend(SHORT.into_iter().filter(|size| *size < self.max && !self.config.v6));
        for size in sizes {
            self.push(size, 1);
        }
    }

    pub(super) fn push(&mut self, size: u16, count: u32) {
        let item = Item { kind: self.kind_for(size), size, ttl: None, purpose: Purpose::Size };
        // UDP's answers are rationed.
        let count = if item.kind == Kind::Udp && self.method() == Kind::Stream { count.min(2) } else { count };
        self.queue.extend(std::iter::repeat_n(item, count as usize));
    }

    /// Where routers' words don't reach us beside the probes, datagrams of the largest sizes go along with them.
    fn ask_for_hints(&mut self) {
        let passed = self.evidence.passed().unwrap_or(0);
        let sizes = self.queue.iter().filter(|item| item.kind == Kind::Stream && item.purpose == Purpose::Size);
        let mut sizes: Vec<u16> = sizes.map(|item| item.size).filter(|size| *size > passed).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let few = sizes.len() <= 2;
        for size in sizes.into_iter().rev().take(3) {
            let item = Item { kind: Kind::Udp, size, ttl: None, purpose: Purpose::Hint };
            self.queue.extend(std::iter::repeat_n(item, if few { 2 * REFUSALS as usize } else { 1 }));
        }
    }

    /// Fills the queue for the next round, or ends the stage.
    pub(super) fn plan(&mut self) {
        if self.stage == Stage::Sizes {
            self.plan_sizes();
            if self.method() == Kind::Stream {
                self.ask_for_hints();
            }
        }
        if self.stage == Stage::Flows && self.queue.is_empty() {
            self.plan_flows();
            if self.queue.is_empty() && self.flows_due().is_none() {
                self.stage = Stage::Loss;
            }
        }
        if self.stage == Stage::Loss && self.queue.is_empty() {
            self.plan_loss();
        }
        if self.stage == Stage::Clamp && self.queue.is_empty() {
            self.plan_clamp();
        }
    }

    pub(super) fn plan_sizes(&mut self) {
        if std::mem::take(&mut self.back) {
            self.kind = 0;
            self.forget(false);
            return self.begin();
        }
        if self.looks_beyond_streams() {
            return;
        }
        let Some(passed) = self.evidence.passed() else { return self.nothing_got_through() };
        if self.voids <= MOST_VOIDS && self.is_scarcely_answered(passed) {
            return;
        }
        if self.gets_there && self.vanishes_for_sure(passed) {
            (self.gets_there, self.short_answers) = (false, true);
            self.sweeps = 0;
            return self.begin_with(self.short_kind().unwrap_or(self.kind));
        }
        if self.voids > MOST_VOIDS {
            (self.undecided, self.changed) = (true, true);
            return self.finish();
        }
        let failed = self.evidence.failed_above(passed).unwrap_or(self.max.saturating_add(1));
        if let Some(mtu) = self.next_hint(passed, failed) {
            self.verify(mtu, passed);
        } else if failed > passed.saturating_add(1) && passed < self.max {
            self.split(passed, failed);
        } else {
            self.confirm(passed);
        }
        // Of few packets all may vanish by chance, where every second one does.
        self.push(passed, 2 * self.voids * u32::from(self.method() != Kind::Udp && !self.queue.is_empty()));
        self.shuffle_sizes();
        if self.queue.is_empty() {
            self.look_above(passed);
        }
        if self.queue.is_empty() {
            self.stage = Stage::Flows;
            return;
        }
        if self.round == 1 {
            self.ask_for_fragment();
        }
        if failed == passed.saturating_add(1) && self.hole_at(passed) {
            self.plan_flows();
        } else {
            self.send_flows_along(passed, failed);
        }
    }

    /// A router calls packets too long: do longer ones get as far as to it? Where those vanish before it, and those just
    /// too long are told of in the same rounds, another router keeps silent.
    fn look_above(&mut self, passed: u16) {
        if self.above.over || passed >= self.max || self.hole_at(passed) {
            return;
        }
        if let Some((loud, mute)) = self.above.between {
            let last = |size| {
                let of_size = |flight: &&Flight| flight.item.size == size && flight.item.ttl.is_none();
                let round = self.flights.iter().rev().filter(of_size).take_while(|f| f.round + 1 == self.round);
                round.fold((0, 0), |(told, silent), flight| match flight.fate {
                    Fate::TooBig => (told + 1, silent),
                    Fate::Silent => (told, silent + 1),
                    _ => (told, silent),
                })
            };
            let ((told, silent), heard) = (last(mute), last(loud).0 > 0);
            // A round without its control is void, and where there is none, words may be late.
            let unclear = told == 0 && (silent == 0 || !heard && self.method() == Kind::Stream);
            self.above.unclear += u32::from(unclear);
            // Whoever rations his words has none left for the shorter ones either: they were asked last.
            if told > 0 || !unclear && !heard || self.above.unclear > MOST_VOIDS {
                self.above = Above { over: true, ..Above::default() };
                return;
            }
            self.above.rounds += u32::from(!unclear);
            if self.above.rounds > 2 {
                self.above.over = true;
                return;
            }
        } else {
            let told = self.told_above(passed);
            let loud = told.iter().rev().find(|(_, (refused, _))| *refused > 0).map(|(size, _)| *size);
            let mute = |loud| told.range(loud + 1..).find(|(_, (_, silent))| *silent > 0).map(|(size, _)| *size);
            self.above.between = loud.and_then(|loud| Some((loud, mute(loud)?)));
        }
        let Some((loud, mute)) = self.above.between else {
            self.above.over = true;
            return;
        };
        let copies = self.repeats(passed).clamp(2, 8);
        if self.method() == Kind::Stream {
            let item = |size| Item { kind: Kind::Udp, size, ttl: None, purpose: Purpose::Hint };
            let sizes = std::iter::repeat_n(mute, copies as usize).chain([loud; 2]);
            self.queue.extend(sizes.map(item));
        } else {
            self.push(mute, copies);
            self.push(loud, 2);
            self.push(passed, 1);
        }
        if self.above.rounds > 0 {
            self.sweep(mute);
        }
    }

    /// How many packets of each size above the PMTU were called too long, and how many vanished.
    fn told_above(&self, pmtu: u16) -> BTreeMap<u16, (u32, u32)> {
        let purpose = if self.method() == Kind::Stream { Purpose::Hint } else { Purpose::Size };
        let asked = self.flights.iter().filter(|f| f.item.purpose == purpose && f.item.size > pmtu);
        asked.fold(BTreeMap::new(), |mut told, flight| {
            let (refused, silent): &mut (u32, u32) = told.entry(flight.item.size).or_default();
            *refused += u32::from(flight.fate == Fate::TooBig);
            *silent += u32::from(flight.fate == Fate::Silent);
            told
        })
    }

    /// Whether this size was never called too long, where longer ones were.
    pub(super) fn is_unsaid_of(&self, size: u16, passed: u16) -> bool {
        let told = self.told_above(passed);
        let longer = told.range(size.saturating_add(1)..).any(|(_, (refused, _))| *refused > 0);
        longer && told.get(&size).is_some_and(|(refused, silent)| *refused == 0 && *silent > 0)
    }

    /// Goes on with another kind of probe, of which nothing is known but what routers said.
    pub(super) fn change_to(&mut self, kind: usize) {
        self.kind = kind;
        self.forget(true);
    }

    /// Begins anew with what is known of sizes; what routers said may be kept.
    fn forget(&mut self, keep_hints: bool) {
        let hints = std::mem::take(&mut self.evidence.hints);
        self.evidence = Evidence::default();
        self.begun += 1;
        if keep_hints {
            self.evidence.hints = hints;
        }
    }

    pub(super) fn begin_with(&mut self, kind: usize) {
        self.change_to(kind);
        self.begin();
    }

    /// The kind of probe with short answers that the target is known to take, where echoes are sent now.
    pub(super) fn short_kind(&self) -> Option<usize> {
        let connects = |kind: Kind| matches!(kind, Kind::OldSegment | Kind::Stream);
        let short = |kind: Kind| match kind {
            Kind::Udp => true,
            Kind::RefusedSyn => self.refused,
            kind => connects(kind) && self.open,
        };
        (self.method() == Kind::Echo).then(|| self.config.kinds.iter().position(|kind| short(*kind))).flatten()
    }

    /// The smallest hint within the bounds that hasn't been verified.
    fn next_hint(&self, passed: u16, failed: u16) -> Option<u16> {
        let repeats = self.repeats(passed);
        // Where packets get lost at random, a smaller one that vanished refutes nothing.
        let end = if repeats > 3 { self.max } else { failed };
        let untested = |size: u16, times| size <= self.max && self.evidence.of(size).sent < times;
        let hints = self.evidence.hints.iter().map(|hint| hint.mtu).filter(|mtu| (passed..end).contains(mtu));
        let open = hints.filter(|mtu| {
            let times = if *mtu > failed && self.method() != Kind::Udp { repeats } else { 1 };
            untested(*mtu, times) && self.evidence.of(*mtu).refused == 0
                || *mtu < failed && untested(mtu.saturating_add(1), 1)
        });
        open.min()
    }

    /// A router names an MTU: is it the largest that gets through?
    fn verify(&mut self, mtu: u16, passed: u16) {
        if self.method() == Kind::Udp {
            // What is too long costs none of the target's answers.
            self.push(mtu.saturating_add(1), 2 * REFUSALS);
            return self.push(mtu, 1);
        }
        let repeats = self.repeats(passed);
        self.push(passed, if passed < mtu { repeats / 3 } else { 0 });
        let checks = CHECKS.max(repeats).saturating_sub(self.evidence.of(mtu).sent);
        self.push(mtu, checks.max(1));
        self.push(mtu.saturating_add(1), REFUSALS);
    }

    /// Many sizes between what got through and what didn't, and one that got through, lest a dead path looks like a
    /// small one.
    fn split(&mut self, passed: u16, failed: u16) {
        if self.method() == Kind::Udp {
            // What vanishes costs none of the rationed answers, so the upper third is worth more tries.
            let step = u32::from(failed - passed) * 2 / 3;
            self.push(passed + u16::try_from(step).unwrap_or(1).clamp(1, failed - passed - 1), 1);
            return self.push(passed, u32::from(self.rationed));
        }
        let gap = usize::from(failed - passed - 1);
        let repeats = self.repeats(passed);
        // A path that loses packets needs several of each size.
        let fan_out = if repeats > 3 { (FAN_OUT * 2 / repeats as usize).max(2) } else { FAN_OUT };
        let copies = if repeats > 3 { repeats } else { 1 };
        let parts = fan_out.min(gap);
        let span = usize::from(failed - passed);
        for part in 1..=parts {
            let step = if parts == gap { part } else { span * part / (parts + 1) };
            self.push(passed + u16::try_from(step.max(1)).unwrap_or(1), copies);
        }
        self.push(passed, copies);
    }

    /// How many probes must all vanish before a size is called too large.
    pub(super) fn repeats(&self, passed: u16) -> u32 {
        repeats_for(self.evidence.loss_below(passed))
    }

    /// The PMTU stands between two neighbouring sizes: is it so, and where does the larger one vanish?
    fn confirm(&mut self, passed: u16) {
        let above = passed.saturating_add(1);
        let vanishes = passed < self.max && self.hole_at(passed);
        let of_passed = self.evidence.of(passed);
        let wanted = match (self.kind_for(passed), vanishes) {
            (Kind::Udp, _) => 2,
            (_, true) => 4,
            (_, false) => CHECKS,
        };
        if passed < self.max {
            let (refused, silent) = self.failures_above(passed);
            let unsaid = !vanishes && silent > 0;
            if self.method() == Kind::Stream {
                let item = Item { kind: Kind::Udp, size: above, ttl: None, purpose: Purpose::Hint };
                let more = if unsaid { RATION.saturating_sub(refused + silent) } else { 0 };
                self.queue.extend(std::iter::repeat_n(item, more as usize));
            }
            // A router that says the truth of its link says it of what is just too long, too, first of all where it is asked first.
            let limited = self.method() == Kind::Stream && passed == self.stream_limit && self.config.patient;
            if limited && !vanishes && self.pauses < PATIENCE && self.is_unsaid_of(above, passed) {
                self.pauses += 1;
                self.pause = RATION_PAUSE;
                self.queue.clear();
                let item = |size| Item { kind: Kind::Udp, size, ttl: None, purpose: Purpose::Hint };
                self.queue.extend([above, above, self.max].map(item));
                return self.push(passed, 1);
            }
            let ration = if unsaid && self.method() != Kind::Stream { RATION } else { 0 };
            let needed = self.repeats(passed).max(ration);
            self.push(above, needed.saturating_sub(self.evidence.of(above).sent));
            if !self.evidence.failed_in_several_rounds(passed) && self.queue.is_empty() {
                self.push(above, 1);
            }
            if std::mem::replace(&mut self.swept, above) != above {
                self.sweeps = 0;
            }
            if vanishes && std::mem::replace(&mut self.asked_there, above) != above {
                self.gets_there = false;
                // An echo is as long as what it answers: perhaps it is the way back on which it vanishes.
                let kind = self.short_kind().and_then(|index| self.config.kinds.get(index));
                let item = kind.map(|kind| Item { kind: *kind, size: above, ttl: None, purpose: Purpose::There });
                self.queue.extend(item.into_iter().flat_map(|item| [item; 3]));
            }
            if vanishes && self.sweeps < 2 {
                self.sweep(above);
            } else if vanishes
                && self.config.patient
                && self.pauses < PATIENCE
                && (self.hops_ration() || self.config.told == Some(passed))
            {
                // Routers that ration what they say may have no words left: silence says nothing yet.
                self.pauses += 1;
                self.pause = RATION_PAUSE;
                if self.method() == Kind::Stream {
                    // The kernel would hear the only word, and not we.
                    let item = Item { kind: Kind::Udp, size: above, ttl: None, purpose: Purpose::Hint };
                    self.queue.extend([item; 2]);
                } else {
                    self.push(above, 2);
                }
                self.sweeps = 0;
                self.sweep(above);
                self.sweeps = 2;
            } else if vanishes && !self.config.patient && self.sweeps == 2 && self.lie(passed) {
                // Before anybody is called a liar: with many targets at once, routers ration what they say.
                self.sweeps += 1;
                self.ask_beyond(above, passed);
            }
        }
        let failing = self.queue.iter().any(|item| item.purpose == Purpose::Size);
        self.push(passed, wanted.saturating_sub(of_passed.sent));
        if of_passed.answered < 2 && of_passed.sent >= wanted {
            self.push(passed, 2);
        }
        // Without one that gets through, a round says nothing.
        if failing && !self.queue.iter().any(|item| item.size == passed) {
            self.push(passed, if self.method() == Kind::Udp { 1 } else { self.repeats(passed) / 3 });
        }
    }

    /// Lets a packet that is too large run out of hops everywhere at once: the last hop that says so stands before the
    /// hole. The second time only just behind it, should an answer have been lost.
    fn sweep(&mut self, size: u16) {
        let most = self.hops_away.map_or(MOST_HOPS, |hops| hops.saturating_add(1)).min(MOST_HOPS);
        let ttls = match self.evidence.last_hop() {
            _ if self.sweeps == 0 => 1..=most,
            Some(hop) => hop.ttl + 1..=hop.ttl.saturating_add(3),
            None => 1..=3,
        };
        let kind = if self.method() == Kind::Stream { Kind::Udp } else { self.method() };
        let last = self.evidence.last_hop().filter(|_| self.sweeps > 0);
        // A hop that answers once and then no more rations its answers, and so may one behind it that never does,
        // unless a packet that isn't too long makes it.
        let again = last.map(|hop| [hop.ttl; 2]);
        let ttls = ttls.chain(again.into_iter().flatten());
        // Where packets get lost, the next hop may have been silent by chance.
        let lossy = if self.repeats(self.evidence.passed().unwrap_or(0)) > 3 { 2 } else { 0 };
        let next =
            last.map(|hop| hop.ttl.saturating_add(1)).into_iter().flat_map(|ttl| std::iter::repeat_n(ttl, lossy));
        let ttls = ttls.chain(next);
        if let (Some(hop), Some(passed)) = (last, self.evidence.passed()) {
            let (ttl, purpose) = (Some(hop.ttl.saturating_add(1)), Purpose::Beyond);
            self.queue.push_back(Item { kind, size: passed, ttl, purpose });
        }
        self.sweeps += 1;
        self.queue.extend(ttls.map(|ttl| Item { kind, size, ttl: Some(ttl), purpose: Purpose::Reach }));
    }

    /// Asks the hop behind the last that told of a packet just too long, several times, and by packets that aren't too long,
    /// too.
    fn ask_beyond(&mut self, above: u16, passed: u16) {
        let Some(hop) = self.evidence.last_hop() else { return };
        let (kind, ttl) = (self.method(), Some(hop.ttl.saturating_add(1)));
        let long = Item { kind, size: above, ttl, purpose: Purpose::Reach };
        let short = Item { kind, size: passed, ttl, purpose: Purpose::Beyond };
        self.queue.extend([long, short, long, long, short, long, long, short]);
    }

    /// Whether hops that must have seen a packet's hops run out didn't always say so.
    fn hops_ration(&self) -> bool {
        let last = self.evidence.last_hop().map_or(u8::MAX, |hop| hop.ttl);
        let asked = |flight: &&Flight| match flight.item.purpose {
            Purpose::Reach => flight.item.ttl.is_some_and(|ttl| ttl <= last),
            purpose => purpose == Purpose::Beyond,
        };
        self.flights.iter().filter(asked).any(|flight| !matches!(flight.fate, Fate::Expired | Fate::Answered))
    }

    /// Another try with tiny packets, then the next kind of probe.
    fn nothing_got_through(&mut self) {
        let connects = |kind: Kind| matches!(kind, Kind::OldSegment | Kind::Stream);
        // Streams are first only asked whether there can be any.
        let from = self.kind + usize::from(self.method() != Kind::Stream || self.streaming);
        let next = self.config.kinds.iter().enumerate().skip(from);
        let answered = |kind: Kind| match kind {
            Kind::RefusedSyn => self.refused,
            kind => !connects(kind) || self.open,
        };
        // What it takes for those before may have come late.
        let kinds = self.config.kinds.iter().enumerate();
        let passed_over = kinds.take(self.kind).filter(|(_, kind)| !self.tried.contains(kind));
        let usable = next.chain(passed_over).find(|(_, kind)| answered(**kind)).map(|(index, _)| index);
        match usable {
            Some(index) => {
                let before = self.method();
                self.kind = index;
                self.streaming |= self.method() == Kind::Stream;
                self.forget(self.method() == Kind::Stream);
                if !self.asked_again && before == Kind::Echo {
                    // The first burst may have waited for an address to be resolved, or met an outage.
                    self.asked_again = true;
                    let size = self.least().max(if self.config.v6 { 1280 } else { USUAL_LEAST }).min(self.max);
                    self.queue.push_back(Item { kind: Kind::Echo, size, ttl: None, purpose: Purpose::Again });
                }
                self.begin();
            }
            None if !self.retried && !self.config.kinds.is_empty() => {
                self.retried = true;
                if self.method() == Kind::Udp {
                    // Its answers may have run out before we came.
                    self.pause = RATION_PAUSE;
                    if self.rtt.min().is_some() {
                        self.ration = (0.0, self.last_sent);
                        return self.begin();
                    }
                }
                let sizes = if self.config.v6 { &[1280, 1280, 1280][..] } else { &TINY[..] };
                for size in sizes {
                    self.push(*size, 1);
                }
            }
            None if self.goes_back_to_streams() => {}
            None => {
                self.undecided = true;
                self.finish();
            }
        }
    }

    /// The target names a small MSS: what did the routers on the way see of ours?
    fn plan_clamp(&mut self) {
        if self.seek_fragmenting_hop() {
            return;
        }
        let suspicious = self.evidence.passed().is_some_and(|pmtu| self.clamp(pmtu).is_some());
        if !suspicious || self.quotes_asked || !self.config.kinds.contains(&Kind::OldSegment) {
            return self.finish();
        }
        self.push_quotes();
    }

    /// SYNs whose hops run out, one for each router.
    pub(super) fn push_quotes(&mut self) {
        self.quotes_asked = true;
        let hops = self.hops_away.unwrap_or(MOST_HOPS).min(MOST_HOPS);
        let item = |ttl| Item { kind: Kind::Syn, size: 44, ttl: Some(ttl), purpose: Purpose::Quote };
        self.queue.extend((1..hops.max(2)).map(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_burst_tells_any_two_neighbours_of_the_first_apart() {
        let ordinary: Vec<u16> = FIRST.into_iter().filter(|size| (1280..=1500).contains(size)).collect();
        assert!(ordinary.windows(2).all(|pair| usize::from(pair[1] - pair[0] - 1) <= FAN_OUT), "{ordinary:?}");
    }
}
