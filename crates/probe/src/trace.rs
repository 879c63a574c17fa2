//! The hops of a path, all asked at once.
//!
//! # What this leaves out
//! Aliases: a router that answers from another address for every interface counts as several.

use crate::in_flight::InFlight;
use crate::{Answer, Kind, LossCount, Machine, Probe, ProbeAnswer, Quote, RouterRefusal, Rtt, SynOptions, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Hops that are asked in the first burst.
const FIRST: u8 = 20;
/// Hops that are ever asked.
const MOST_HOPS: u8 = 64;
/// Behind the last hop that answers, so many are asked for the target itself: mostly it is the next, and it rations its
/// answers to UDP.
const BEYOND: [u8; 2] = [2, 5];
/// Least time between two questions to a hop that may ration its answers.
const RATION: Time = Time::from_secs(1);
/// Too-big packets are followed over so many hops.
const MOST_MTUS: u32 = 8;

/// Longer probes than this, in bytes, could fill a slow line, and leave as answers come; shorter ones leave all at once.
const SHORT: u16 = 128;
/// Long probes wait so long for those before them as long as nobody answered.
const PATIENCE: Time = Time::from_millis(200);

/// What is known before the first probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    /// What goes to the hops: [`Kind::Echo`] or [`Kind::Udp`].
    pub kind: Kind,
    /// Whether [`Kind::Syn`] can be sent, too: it shows what hops change, and finds targets that answer no ICMP.
    pub handshake: bool,
    /// Flows, each of which load balancers may send another way; each asks every hop once.
    pub flows: u8,
    /// How many times each flow asks.
    pub probes: u8,
    /// The length of probes, bytes.
    pub size: u16,
    /// The MTU of this host's interface, bytes.
    pub max: u16,
    /// What a SYN of ours offers, and its type-of-service byte.
    pub offered: (SynOptions, u8),
}

/// What a hop changed in a SYN, as its quotation shows: done at this hop or on the link before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The maximum segment size: from, to.
    Mss(Option<u16>, Option<u16>),
    /// SACK permitted was removed.
    Sack,
    /// Timestamps were removed.
    Timestamps,
    /// The window scale: from, to.
    WindowScale(Option<u8>, Option<u8>),
    /// The offer of ECN was removed.
    Ecn,
    /// The request for a TCP Fast Open cookie was removed.
    FastOpen,
    /// The type-of-service byte: from, to.
    Tos(u8, u8),
    /// "Don't fragment" was cleared: routers behind fragment what is too long.
    DontFragment,
}

/// A hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceHop {
    /// How many hops away, from 1.
    pub ttl: u8,
    /// Who answered, in order of appearance; several where load is balanced.
    pub addresses: Vec<IpAddr>,
    /// Probes and answers.
    pub count: LossCount,
    /// Round-trip times in the order of their coming.
    pub rtts: Vec<Time>,
    /// The largest packet known to go on from here, bytes.
    pub mtu: Option<u16>,
    /// What changed in a SYN before it came here.
    pub changed: Vec<Change>,
    /// Whether the hop quoted a whole SYN, so that no change means none.
    pub quoted: bool,
    /// Whether it is the target.
    pub target: bool,
}

/// The hops of a path to one target.
#[derive(Debug)]
pub struct Trace {
    config: TraceConfig,
    hops: BTreeMap<u8, TraceHop>,
    quotes: BTreeMap<u8, Quote>,
    flights: Vec<Flight>,
    /// Where probes are long.
    in_flight: Option<InFlight>,
    queue: VecDeque<Probe>,
    round_from: usize,
    round: u32,
    last_sent: Time,
    heard: Option<Time>,
    not_before: Time,
    /// The longest round-trip time yet.
    longest: Option<Time>,
    /// It answers SYNs.
    open: bool,
    /// Its answer to a SYN was that the port is closed.
    refused: bool,
    /// Answered by TCP only.
    by_tcp: bool,
    /// Who says that packets go no further.
    refusal: Option<RouterRefusal>,
    /// The target answers what goes to the hops, too.
    usual_reached: bool,
    reply_ttl: Option<u8>,
    /// The size that is followed, and the routers that said it was too long.
    following: u16,
    told: Vec<(IpAddr, u16)>,
    arrived: Option<u16>,
    follows: u32,
    /// The size that was sent last.
    followed: u16,
    /// What has been done already.
    asked_all: bool,
    /// How far behind the last hop the target was looked for.
    sought: u8,
    extended: bool,
    retries: u32,
    done: bool,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    probe: Probe,
    sent: Time,
    answered: bool,
}

impl Trace {
    /// A trace that has sent nothing yet.
    #[must_use]
    pub fn new(config: TraceConfig) -> Self {
        let following = config.max;
        let in_flight = (config.size > SHORT).then(InFlight::new);
        let mut trace = Self {
            config,
            hops: BTreeMap::new(),
            quotes: BTreeMap::new(),
            flights: Vec::new(),
            in_flight,
            queue: VecDeque::new(),
            round_from: 0,
            round: 0,
            last_sent: Time::ZERO,
            heard: None,
            not_before: Time::ZERO,
            longest: None,
            open: false,
            refused: false,
            by_tcp: false,
            refusal: None,
            usual_reached: false,
            reply_ttl: None,
            following,
            told: Vec::new(),
            arrived: None,
            follows: 0,
            followed: 0,
            asked_all: false,
            sought: 0,
            extended: false,
            retries: 0,
            done: false,
        };
        if trace.config.handshake {
            trace.push(Kind::Syn, 44, None, 0);
        }
        for ttl in 1..=trace.first_burst() {
            trace.push(trace.config.kind, trace.config.size, Some(ttl), 0);
        }
        // Last, for on a slow line the others would wait for it.
        trace.follow();
        trace
    }

    /// The hops up to the target, or up to the last that answered.
    #[must_use]
    pub fn hops(&self) -> Vec<TraceHop> {
        let end = self.target().or_else(|| self.last()).unwrap_or(0);
        let told =
            |hop: &TraceHop| self.told.iter().find(|(router, _)| hop.addresses.contains(router)).map(|(_, mtu)| *mtu);
        let (options, tos) = self.config.offered;
        // IPv6 has no such flag, and no quotation has it.
        let mut before = Quote { tos: Some(tos), dont_fragment: Some(true), options: Some(options) };
        let mut passing = self.config.max;
        let mut hops: Vec<TraceHop> = (1..=end).map(|ttl| self.hops.get(&ttl).cloned().unwrap_or_default()).collect();
        for (ttl, hop) in (1..).zip(&mut hops) {
            hop.ttl = ttl;
            if hop.target && !self.usual_reached {
                // What it never answers isn't lost.
                hop.count.sent = hop.count.answered;
            }
            passing = told(hop).unwrap_or(passing);
            // Of a hop from which on nothing is known to have arrived, nothing is known.
            let arrived = !hop.target && self.arrived.is_some_and(|size| size <= passing);
            hop.mtu = told(hop).or(arrived.then_some(passing));
            if let Some(quote) = self.quotes.get(&ttl) {
                hop.quoted = quote.options.is_some();
                hop.changed = changes(&before, quote);
                before = Quote {
                    tos: quote.tos.or(before.tos),
                    dont_fragment: quote.dont_fragment.or(before.dont_fragment),
                    options: quote.options.or(before.options),
                };
            }
        }
        hops
    }

    /// The hop at which the target answers.
    #[must_use]
    pub fn target(&self) -> Option<u8> {
        self.hops.iter().find(|(_, hop)| hop.target).map(|(ttl, _)| *ttl)
    }

    /// The time to live of what the target sends, as it arrives here.
    #[must_use]
    pub const fn reply_ttl(&self) -> Option<u8> {
        self.reply_ttl
    }

    /// Who says that packets go no further, where the target doesn't answer.
    #[must_use]
    pub fn refusal(&self) -> Option<RouterRefusal> {
        self.refusal.filter(|_| self.target().is_none())
    }

    /// Whether only TCP found the target.
    #[must_use]
    pub const fn by_tcp(&self) -> bool {
        self.by_tcp
    }

    /// Whether the target accepted a connection.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open && !self.refused
    }

    /// Whether the target refused one.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refused
    }

    /// Probes sent, and bursts.
    #[must_use]
    pub fn cost(&self) -> (u32, u32) {
        (u32::try_from(self.flights.len()).unwrap_or(u32::MAX), self.round)
    }

    /// Hops that are asked in the first burst: fewer by UDP, whose answers the target rations.
    const fn first_burst(&self) -> u8 {
        if matches!(self.config.kind, Kind::Udp) { FIRST / 2 } else { FIRST }
    }

    fn last(&self) -> Option<u8> {
        self.hops.iter().rev().find(|(_, hop)| hop.count.answered > 0).map(|(ttl, _)| *ttl)
    }

    fn push(&mut self, kind: Kind, ip_len: u16, ttl: Option<u8>, flow: u8) {
        self.queue.push_back(Probe { id: 0, kind, ip_len, ttl, flow });
    }

    /// A long packet after the hop that names its next link's MTU.
    fn follow(&mut self) {
        self.follows += 1;
        self.followed = self.following;
        self.push(self.config.kind, self.following, None, 0);
    }

    /// Whether the next probe must wait for answers to others.
    fn is_held_back(&mut self, now: Time) -> bool {
        let patience = self.patience();
        let next = self.queue.front().map(|probe| probe.ip_len);
        self.in_flight.as_mut().zip(next).is_some_and(|(in_flight, len)| !in_flight.has_room(len, now, patience))
    }

    fn patience(&self) -> Time {
        self.longest.map_or(PATIENCE, |longest| longest + longest / 4 + Time::from_millis(10))
    }

    fn due(&self) -> Option<Time> {
        if !self.queue.is_empty() {
            return None;
        }
        let target = self.target().unwrap_or(u8::MAX);
        let pressing = |f: &&Flight| f.probe.ttl.is_some_and(|ttl| ttl <= target);
        let waiting = self.flights[self.round_from..].iter().filter(pressing).any(|flight| !flight.answered);
        // Long packets are only waited for in the end: what hops say of them lets others follow meanwhile.
        let long = |f: &&Flight| f.probe.ttl.is_none() && f.probe.kind != Kind::Syn;
        let waiting = waiting || self.asked_all && self.flights.iter().filter(long).any(|flight| !flight.answered);
        if !waiting && self.target().is_some() {
            return Some(self.last_sent);
        }
        // Hops are nearer than the target, so that their answers tell little of its.
        let Some(longest) = self.longest else { return Some(self.last_sent + Rtt::UNKNOWN) };
        let sure = self.open || self.target().is_some();
        let (due, grace) = if sure { (longest, longest / 4) } else { (longest.max(Time::from_millis(200)), longest) };
        Some((self.last_sent + due).max(self.heard.unwrap_or_default()) + grace + Time::from_millis(10))
    }

    fn plan(&mut self, now: Time) {
        match self.target() {
            // The target is found: the other flows, and what hops change.
            Some(target) if !self.asked_all => self.second_burst(target),
            None if self.sought < BEYOND[1] => self.seek_target(now),
            _ => {}
        }
        if self.arrived.is_none() && self.following != self.followed && self.follows < MOST_MTUS {
            self.follow();
        }
        if !self.queue.is_empty() {
            return;
        }
        let silent: Vec<u8> = self.silent();
        if silent.is_empty() || self.retries >= 2 {
            self.done = true;
            return;
        }
        // At once for what was lost, and after a second for what is rationed.
        if self.retries > 0 {
            self.not_before = now + RATION;
        }
        self.retries += 1;
        for ttl in silent {
            self.push(self.config.kind, self.config.size, Some(ttl), 0);
        }
    }

    /// Hops before the target, or before the last that answered, that never did.
    fn silent(&self) -> Vec<u8> {
        let end = self.target().or_else(|| self.last()).unwrap_or(0);
        let answered = |ttl: &u8| self.hops.get(ttl).is_some_and(|hop| hop.count.answered > 0);
        (1..end).filter(|ttl| !answered(ttl)).collect()
    }

    fn second_burst(&mut self, target: u8) {
        self.asked_all = true;
        if self.config.handshake {
            for ttl in 1..target {
                self.push(Kind::Syn, 64, Some(ttl), 0);
            }
        }
        let (probes, flows) = (self.config.probes, self.config.flows);
        let rounds = (0..probes).flat_map(|_| 0..flows);
        for flow in rounds.skip(1) {
            // A target rations its answers to UDP: what it doesn't say would look like loss.
            let end = if self.config.kind == Kind::Udp { target } else { target + 1 };
            for ttl in 1..end {
                self.push(self.config.kind, self.config.size, Some(ttl), flow);
            }
        }
    }

    /// The target keeps silent: it may be further away, or answer something else.
    fn seek_target(&mut self, now: Time) {
        let last = self.last().unwrap_or(0);
        if last >= self.first_burst() && !self.extended {
            self.extended = true;
            for ttl in self.first_burst() + 1..=MOST_HOPS {
                self.push(self.config.kind, self.config.size, Some(ttl), 0);
            }
            return;
        }
        let from = self.sought;
        self.sought = if from == 0 { BEYOND[0] } else { BEYOND[1] };
        if self.config.kind == Kind::Udp {
            self.sought = BEYOND[1];
            // The target may have used up what it says in a second.
            self.not_before = now + RATION;
            for ttl in last + 1..=last + 2 {
                self.push(Kind::Udp, self.config.size, Some(ttl), 0);
            }
            return;
        }
        for ttl in last.saturating_add(from + 1)..=last.saturating_add(self.sought) {
            if self.open {
                self.push(Kind::Syn, 64, Some(ttl), 0);
            }
            if self.config.kind != Kind::Udp {
                self.push(Kind::Udp, self.config.size, Some(ttl), 0);
            }
        }
    }

    fn answered(&mut self, answer: &Answer, flight: Flight, ttl: u8, target: bool) {
        let Some(from) = answer.from else { return };
        let rtt = answer.at.saturating_sub(flight.sent);
        self.longest = self.longest.max(Some(rtt));
        let hop = self.hops.entry(ttl).or_default();
        if target && !hop.target && self.in_flight.is_some() {
            // What it answers to long probes that could go further costs time and says nothing more.
            self.queue.retain(|probe| probe.ttl.is_none_or(|asked| asked <= ttl));
        }
        hop.target |= target;
        if !hop.addresses.contains(&from) && hop.addresses.len() < 16 {
            hop.addresses.push(from);
        }
        hop.rtts.push(rtt);
        // A SYN is asked for what hops change, and answered by others than echoes: it counts where it is the only one.
        self.usual_reached |= target && flight.probe.kind == self.config.kind;
        if flight.probe.kind == self.config.kind || target {
            if flight.probe.kind != self.config.kind {
                hop.count.sent += 1;
            }
            hop.count.answered += 1;
        }
    }
}

/// What differs between what one hop quoted and what was there before; nothing where a quotation lacks it.
fn changes(before: &Quote, after: &Quote) -> Vec<Change> {
    let mut changes = Vec::new();
    if let (Some(old), Some(new)) = (before.options, after.options) {
        if old.mss != new.mss {
            changes.push(Change::Mss(old.mss, new.mss));
        }
        if old.window_scale != new.window_scale {
            changes.push(Change::WindowScale(old.window_scale, new.window_scale));
        }
        let lost = [
            (old.sack && !new.sack, Change::Sack),
            (old.timestamps && !new.timestamps, Change::Timestamps),
            (old.ecn && !new.ecn, Change::Ecn),
            (old.fast_open && !new.fast_open, Change::FastOpen),
        ];
        changes.extend(lost.into_iter().filter(|(lost, _)| *lost).map(|(_, change)| change));
    }
    if let (Some(old), Some(new)) = (before.tos, after.tos)
        && old != new
    {
        changes.push(Change::Tos(old, new));
    }
    if (before.dont_fragment, after.dont_fragment) == (Some(true), Some(false)) {
        changes.push(Change::DontFragment);
    }
    changes
}

impl Machine for Trace {
    fn poll_probe(&mut self, now: Time) -> Option<Probe> {
        while !self.done && self.due().is_some_and(|due| due <= now) {
            self.round += 1;
            self.round_from = self.flights.len();
            self.heard = None;
            self.plan(now);
        }
        if self.not_before > now || self.is_held_back(now) {
            return None;
        }
        let mut probe = self.queue.pop_front()?;
        probe.id = u32::try_from(self.flights.len()).unwrap_or(u32::MAX);
        if let (Some(ttl), true) = (probe.ttl, probe.kind == self.config.kind) {
            self.hops.entry(ttl).or_default().count.sent += 1;
        }
        self.flights.push(Flight { probe, sent: now, answered: false });
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.send(probe.id, probe.ip_len, now);
        }
        self.last_sent = now;
        Some(probe)
    }

    fn handle(&mut self, answer: &Answer) {
        let index = answer.id as usize;
        let Some(flight) = self.flights.get(index).copied().filter(|flight| !flight.answered) else { return };
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.hear(answer.id, answer.from, answer.at.saturating_sub(flight.sent));
        }
        if index >= self.round_from {
            self.heard = Some(answer.at);
        }
        match (answer.said, flight.probe.ttl) {
            (ProbeAnswer::Expired { quote }, Some(ttl)) => {
                if flight.probe.kind == Kind::Syn {
                    self.quotes.entry(ttl).or_insert(quote);
                }
                self.answered(answer, flight, ttl, false);
            }
            (ProbeAnswer::Reached { ttl: reply }, Some(ttl)) => {
                self.reply_ttl = self.reply_ttl.or(reply);
                self.answered(answer, flight, ttl, true);
            }
            (ProbeAnswer::Open { .. } | ProbeAnswer::Refused, Some(ttl)) => {
                self.by_tcp |= self.target().is_none();
                self.answered(answer, flight, ttl, true);
            }
            (ProbeAnswer::Open { .. } | ProbeAnswer::Refused, None) => {
                self.refused |= answer.said == ProbeAnswer::Refused;
                self.open = true;
                self.longest = self.longest.max(Some(answer.at.saturating_sub(flight.sent)));
            }
            (ProbeAnswer::Reached { .. }, None) => self.arrived = self.arrived.max(Some(flight.probe.ip_len)),
            (ProbeAnswer::TooBig { mtu }, None) => {
                let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
                let (Some(router), true) = (answer.from, (68..self.following).contains(&mtu)) else { return };
                self.told.push((router, mtu));
                self.following = mtu;
                if self.follows < MOST_MTUS {
                    // At once, for the next link may say something, too.
                    self.follow();
                }
            }
            (ProbeAnswer::Unreachable { code }, _) => {
                let said = RouterRefusal { from: answer.from, expired: false, code };
                self.refusal = RouterRefusal::or(self.refusal, said);
                return;
            }
            (ProbeAnswer::Expired { .. }, None) => {
                let said = RouterRefusal { from: answer.from, expired: true, code: 0 };
                self.refusal = RouterRefusal::or(self.refusal, said);
                return;
            }
            _ => return,
        }
        self.flights[index].answered = true;
    }

    fn wakeup(&self) -> Option<Time> {
        if self.done {
            return None;
        }
        if self.queue.is_empty() {
            return self.due();
        }
        let opens_at = self.in_flight.as_ref().and_then(|in_flight| in_flight.opens_at(self.patience()));
        opens_at.max(Some(self.not_before))
    }

    fn is_done(&self) -> bool {
        self.done
    }
}
