//! The largest packet that gets through, found in a few bursts instead of one probe after the other.
//!
//! A serial search pays a timeout for every size that doesn't get through. Here a burst holds many sizes at once, so a
//! black hole costs a few round trips. What routers say (RFC 1191, RFC 8201) shortens the search and is verified: no
//! verdict rests on an ICMP error alone.
//!
//! # What this leaves out
//! Paths whose MTU changes from packet to packet (balancing of packets over unequal links): it shows as size-dependent
//! loss. Where flows are balanced, connections of their own show it.

/// What this host's TCP doesn't send.
mod bounded;
/// Whether routers keep "don't fragment".
mod dont_fragment;
/// Tallies, hints and hops.
mod evidence;
/// Connections that load balancers may send other ways.
mod flows;
/// Whether somebody lowers the MSS.
mod mss;
/// What the narrowest link needs for a packet.
mod pace;
/// What the next burst holds.
mod plan;
/// How many answers to UDP the target has left.
mod ration;
/// What it all means.
mod report;
/// Where nearly all probes stay unanswered.
mod scarce;
/// Whether losses are those of long packets.
mod size_loss;

pub use flows::FlowTally;
pub use report::{Clamp, Finding, Hint, Hop, PathKind, SearchReport, SizeTally};

use crate::{Answer, Kind, LossCount, Machine, Probe, ProbeAnswer, RouterRefusal, Rtt, Time};
use bounded::BeyondStreams;
use evidence::{Evidence, Fate};
use flows::Flows;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// More probes are never sent, whatever the path does.
const MOST_PACKETS: usize = 4000;
/// A Linux host says "port unreachable" so many times at once, and then once a second: `icmp_ratelimit` of icmp(7),
/// `XRLIM_BURST_FACTOR` of net/ipv4/icmp.c.
const UDP_BURST: f64 = 6.0;
/// Nearly every path of IPv4 carries packets of this length (RFC 791).
const USUAL_LEAST: u16 = 576;
/// More bursts neither.
const MOST_ROUNDS: u32 = 60;

/// What is known before the first probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchConfig {
    /// The largest packet to try: the MTU of this host's interface, bytes.
    pub max: u16,
    /// IPv6, or else IPv4.
    pub v6: bool,
    /// The kinds of probes that this host can send, the best first.
    pub kinds: Vec<Kind>,
    /// Whether a [`Kind::Syn`] goes along with the first burst: it tells the MSS, and old segments need it.
    pub handshake: bool,
    /// Whether routers that ration what they say are given time; with many targets at once they all do.
    pub patient: bool,
    /// Whether losses of short and of long packets are counted; not where a scan does it anyway.
    pub losses: bool,
    /// TCP connections that load balancers may send other ways, each with one packet of the path MTU; below two none are
    /// asked for. They are of [`Kind::Stream`], which must be possible, and need [`handshake`](Self::handshake).
    pub flows: u8,
    /// The path MTU that a router named to this host a moment ago: whoever rations what he says may have no word left.
    pub told: Option<u16>,
}

/// What a probe was sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To see whether it gets through.
    Size,
    /// To see how far it gets.
    Reach,
    /// To open a connection.
    Open,
    /// To see what routers saw of a SYN.
    Quote,
    /// To count losses of one arm.
    Loss(usize),
    /// To count losses of the longest at a lower rate.
    SlowLoss,
    /// To hear what routers say, where the probes themselves don't.
    Hint,
    /// To see whether the hop behind the last one that a longer packet reached says anything at all.
    Beyond,
    /// To see whether anything is there at all, when the first burst stays unanswered, or whether it only waits on a slow line.
    Hedge,
    /// To see whether echoes are answered after all.
    Again,
    /// To see whether it is the way back on which echoes vanish: its answer is short.
    There,
    /// To see whether a connection of its own carries it.
    Flow,
    /// To see whether the target answers datagrams at all.
    Datagram,
    /// To see whether the hop at which it ends still sees "don't fragment".
    Fragment,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    kind: Kind,
    size: u16,
    ttl: Option<u8>,
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    item: Item,
    sent: Time,
    answered: Time,
    round: u32,
    /// For which of the pieces of evidence that were begun it left: a late answer says nothing of probes of another kind.
    of_evidence: u32,
    fate: Fate,
}

/// What is known of packets longer than those that a router calls too long: do they get as far as that router?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Above {
    /// Rounds in which the longer vanished and the shorter was called too long.
    rounds: u32,
    /// Rounds that said nothing: what should be heard of in any case was late, or lost.
    unclear: u32,
    /// The largest that was called too long, and one that vanished, bytes.
    between: Option<(u16, u16)>,
    over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Sizes,
    Flows,
    Loss,
    Clamp,
    Done,
}

/// The search for the largest packet that gets through to one target, and for why larger ones don't.
#[derive(Debug)]
pub struct Search {
    config: SearchConfig,
    rng: ChaCha8Rng,
    stage: Stage,
    /// The largest size worth a try: the interface's MTU, or what this host's kernel allows.
    max: u16,
    kind: usize,
    tried: Vec<Kind>,
    evidence: Evidence,
    /// How often it was begun anew.
    begun: u32,
    flights: Vec<Flight>,
    queue: VecDeque<Item>,
    /// The first flight of the current round.
    round_from: usize,
    round: u32,
    not_before: Time,
    last_sent: Time,
    heard: Option<Time>,
    rtt: Rtt,
    /// The shortest round-trip time that this host's kernel measured on connections of its own.
    trip: Option<Time>,
    /// Time between two probes of later bursts.
    pace: Time,
    voids: u32,
    /// The target has been seen to ration its answers more than most do.
    rationed: bool,
    /// How many answers to UDP the target still has, as far as is known, and when that was.
    ration: (f64, Time),
    hedged: bool,
    asked_again: bool,
    /// Echoes are answered after all.
    back: bool,
    /// For packets of which length it was asked whether short answers come where echoes vanish, and whether they did.
    asked_there: u16,
    gets_there: bool,
    /// So few probes were answered that silence said nothing.
    scarce: bool,
    /// Echoes get lost on the way back: another kind of probe measures the way there.
    short_answers: bool,
    /// What is longer than what routers call too long.
    above: Above,
    /// The longest packet that this host's TCP sends to the target.
    stream_limit: u16,
    beyond: BeyondStreams,
    /// Streams were begun with.
    streaming: bool,
    sweeps: u32,
    /// The length of the packets whose hops ran out.
    swept: u16,
    /// How often routers that ration what they say were given time.
    pauses: u8,
    /// Before the round that is planned.
    pause: Time,
    retried: bool,
    hops_away: Option<u8>,
    open: bool,
    /// The target refused a connection.
    refused: bool,
    flows: Flows,
    mss: Option<u16>,
    quoted_fragment: BTreeMap<u8, (IpAddr, bool)>,
    quoted_mss: BTreeMap<u8, (IpAddr, u16)>,
    quotes_asked: bool,
    unreachable: Option<u8>,
    refusal: Option<RouterRefusal>,
    arms: [LossCount; 2],
    /// Losses of the longest at a lower rate.
    slow_loss: LossCount,
    undecided: bool,
    changed: bool,
    gave_up: bool,
}

impl Search {
    /// A search that has sent nothing yet. The generator orders sizes when losses are counted.
    #[must_use]
    pub fn new(config: SearchConfig, rng: ChaCha8Rng) -> Self {
        let max = config.max.max(if config.v6 { 1280 } else { 68 });
        let mut search = Self {
            config,
            rng,
            stage: Stage::Sizes,
            max,
            kind: 0,
            tried: Vec::new(),
            evidence: Evidence::default(),
            begun: 0,
            flights: Vec::new(),
            queue: VecDeque::new(),
            round_from: 0,
            round: 0,
            not_before: Time::ZERO,
            last_sent: Time::ZERO,
            heard: None,
            rtt: Rtt::default(),
            trip: None,
            pace: Time::ZERO,
            voids: 0,
            rationed: false,
            ration: (UDP_BURST, Time::ZERO),
            hedged: false,
            asked_again: false,
            back: false,
            asked_there: 0,
            gets_there: false,
            scarce: false,
            short_answers: false,
            above: Above::default(),
            stream_limit: u16::MAX,
            beyond: BeyondStreams::default(),
            streaming: false,
            sweeps: 0,
            swept: 0,
            pauses: 0,
            pause: Time::ZERO,
            retried: false,
            hops_away: None,
            open: false,
            refused: false,
            flows: Flows::default(),
            mss: None,
            quoted_fragment: BTreeMap::new(),
            quoted_mss: BTreeMap::new(),
            quotes_asked: false,
            unreachable: None,
            refusal: None,
            arms: [LossCount::default(); 2],
            slow_loss: LossCount::default(),
            undecided: false,
            changed: false,
            gave_up: false,
        };
        search.begin();
        search
    }

    fn method(&self) -> Kind {
        self.config.kinds.get(self.kind).copied().unwrap_or(Kind::Echo)
    }

    /// What probes of this size are: where TCP's can't be that long, UDP's.
    fn kind_for(&self, size: u16) -> Kind {
        match self.method() {
            Kind::Stream if size > self.stream_limit => Kind::Udp,
            kind => kind,
        }
    }

    fn packets(&self) -> u32 {
        u32::try_from(self.flights.len()).unwrap_or(u32::MAX)
    }

    fn least(&self) -> u16 {
        if self.config.v6 { 1280 } else { 68 }
    }

    /// When this round's verdict is due; `None` while probes are still to be sent.
    ///
    /// A round is over when everything is answered. What a router called too long isn't: anybody can say so, and the
    /// target's own answer may still be on its way, for a round-trip time.
    fn due(&self) -> Option<Time> {
        if !self.queue.is_empty() {
            return None;
        }
        if self.stage == Stage::Flows {
            return Some(self.flows_due().unwrap_or(self.last_sent));
        }
        let connects = self.flights[self.round_from..]
            .iter()
            .any(|flight| flight.item.kind == Kind::Stream && flight.item.purpose != Purpose::Flow);
        let more = self.rtt.smoothed().filter(|_| connects).unwrap_or_default();
        let mut late = self.rtt.verdict_at(self.last_sent + more, self.heard);
        late = late.max(self.last_sent + self.first_answer());
        if self.round == 0 {
            late = late.max(self.last_sent + self.crawl());
        }
        // A SYN is only waited for when nothing else gets through.
        let pressing = |flight: &&Flight| {
            let aside = match flight.item.purpose {
                Purpose::Fragment => self.stage == Stage::Sizes,
                purpose => matches!(purpose, Purpose::Open | Purpose::Again),
            };
            !(aside && self.evidence.passed().is_some() || flight.item.purpose == Purpose::Flow)
        };
        let mut fates = self.flights[self.round_from..].iter().filter(pressing).map(|flight| flight.fate);
        let worst = fates.try_fold(Time::ZERO, |due, fate| match fate {
            Fate::Waiting => None,
            Fate::TooBig => Some(self.rtt.smoothed().map_or(late, |rtt| self.last_sent + more + rtt)),
            _ => Some(due),
        });
        Some(worst.unwrap_or(late))
    }

    /// Ends rounds that are over, and plans the next one.
    fn advance(&mut self, now: Time) {
        while self.stage != Stage::Done && self.due().is_some_and(|due| due <= now) {
            if self.stage == Stage::Flows {
                self.settle_flows(now);
                if self.flows_due().is_some() {
                    continue;
                }
                if self.flights.len() == self.round_from {
                    // They went along with an earlier burst: this was no round.
                    self.plan();
                    if !self.queue.is_empty() {
                        return;
                    }
                    continue;
                }
            }
            self.close_round(now);
            self.pace = self.pace();
            self.round += 1;
            self.round_from = self.flights.len();
            self.heard = None;
            self.plan();
            self.wait_for_ration(now);
            self.not_before = self.not_before.max(now + std::mem::take(&mut self.pause));
            if self.flights.len() + self.queue.len() > MOST_PACKETS || self.round > MOST_ROUNDS {
                self.gave_up = true;
                // What got through is no path MTU as long as longer packets may.
                let passed = self.evidence.passed().unwrap_or(0);
                self.undecided |= passed < self.max && self.stage == Stage::Sizes;
                self.finish();
            }
            if !self.queue.is_empty() {
                return;
            }
        }
    }

    /// Calls lost what wasn't answered. A round in which not even sizes that got through before do says nothing.
    fn close_round(&mut self, now: Time) {
        let passed = self.evidence.passed().unwrap_or(0);
        let flights = &self.flights[self.round_from..];
        let of_sizes = || flights.iter().filter(|flight| flight.item.purpose == Purpose::Size);
        let answered = of_sizes().any(|flight| flight.fate == Fate::Answered);
        let control = of_sizes().any(|flight| flight.item.size <= passed);
        // UDP's answers are rationed: the control comes last, and when it fails, so may have all before it.
        let last = of_sizes().next_back().is_some_and(|flight| flight.fate == Fate::Answered);
        let dead = if self.method() == Kind::Udp { !last } else { !answered };
        let void = control && dead && passed > 0;
        for index in self.round_from..self.flights.len() {
            if self.flights[index].fate == Fate::Waiting {
                self.set_fate(index, if void { Fate::Void } else { Fate::Silent });
            }
        }
        if void {
            self.voids += 1;
            self.not_before = now + self.rtt.grace();
        } else {
            self.voids = 0;
        }
        if void && self.method() == Kind::Udp {
            // Its answers had run out, nobody knows since when: whatever vanished may have got through.
            self.rationed |= self.ration_at(now) >= 1.0 && self.voids > 1;
            self.ration = (0.0, now);
            for index in 0..self.flights.len() {
                if self.flights[index].fate == Fate::Silent && self.flights[index].item.purpose == Purpose::Size {
                    self.set_fate(index, Fate::Void);
                }
            }
        }
    }

    fn set_fate(&mut self, index: usize, fate: Fate) {
        let flight = &mut self.flights[index];
        let before = std::mem::replace(&mut flight.fate, fate);
        match flight.item.purpose {
            Purpose::Size if flight.of_evidence == self.begun => {
                self.evidence.recount(flight.item.size, before, fate);
            }
            Purpose::Loss(arm) if fate == Fate::Answered && before != Fate::Answered => self.arms[arm].answered += 1,
            Purpose::SlowLoss if fate == Fate::Answered && before != Fate::Answered => self.slow_loss.answered += 1,
            _ => {}
        }
    }

    fn reached(&mut self, index: usize, at: Time, ttl: Option<u8>) {
        let flight = self.flights[index];
        let rtt = at.saturating_sub(flight.sent) / flight.item.kind.round_trips();
        if flight.round == self.round {
            self.heard = Some(self.heard.map_or(at, |heard| heard.max(at)));
        }
        if flight.fate == Fate::Answered {
            return;
        }
        self.rtt.sample(rtt);
        self.flights[index].answered = at;
        self.back |= flight.item.purpose == Purpose::Again;
        self.gets_there |= flight.item.purpose == Purpose::There;
        if flight.item.kind == Kind::Udp {
            self.ration = ((self.ration_at(at) - 1.0).max(0.0), at);
        }
        if let Some(ttl) = ttl {
            // Hosts start at 64, 128 or 255.
            let start = [64u8, 128, 255].into_iter().find(|start| *start >= ttl).unwrap_or(255);
            self.hops_away = Some((start - ttl).saturating_add(1));
        }
        self.set_fate(index, Fate::Answered);
        if flight.item.purpose == Purpose::Size && flight.of_evidence == self.begun {
            self.evidence.rtt(flight.item.size, rtt);
        }
    }

    fn finish(&mut self) {
        self.stage = Stage::Done;
        self.queue.clear();
    }
}

impl Machine for Search {
    fn poll_probe(&mut self, now: Time) -> Option<Probe> {
        self.advance(now);
        if self.hedge_at().is_some_and(|at| at <= now) {
            self.hedged = true;
            let size = if self.config.v6 { 1280 } else { USUAL_LEAST }.min(self.max);
            let kind =
                self.rtt.min().and_then(|_| self.short_kind()).map_or(Kind::Udp, |index| self.config.kinds[index]);
            self.queue.push_back(Item { kind, size, ttl: None, purpose: Purpose::Hedge });
        }
        if self.not_before > now {
            return None;
        }
        let item = self.queue.pop_front()?;
        let id = self.packets();
        match item.purpose {
            Purpose::Size => self.evidence.sent(item.size, self.round),
            Purpose::Loss(arm) => self.arms[arm].sent += 1,
            Purpose::SlowLoss => self.slow_loss.sent += 1,
            Purpose::Flow => self.flows.push(now),
            _ => {}
        }
        let gap = if item.purpose == Purpose::SlowLoss { self.slow_gap() } else { self.pace };
        self.not_before = self.not_before.max(now + gap);
        let (round, of_evidence) = (self.round, self.begun);
        self.flights.push(Flight { item, sent: now, answered: now, round, of_evidence, fate: Fate::Waiting });
        if item.purpose != Purpose::Hedge {
            self.last_sent = now;
        }
        Some(Probe { id, kind: item.kind, ip_len: item.size, ttl: item.ttl, flow: 0 })
    }

    fn handle(&mut self, answer: &Answer) {
        let index = answer.id as usize;
        let Some(flight) = self.flights.get(index).copied() else { return };
        if flight.item.purpose == Purpose::Flow {
            return self.flows.hear(answer.id, answer.said, answer.at);
        }
        match answer.said {
            ProbeAnswer::Reached { ttl } => self.reached(index, answer.at, ttl),
            ProbeAnswer::Open { mss, sack } if flight.item.kind == Kind::Syn => {
                self.open |= sack || self.config.kinds.contains(&Kind::Stream);
                self.flows.possible = true;
                // The first SYN-ACK counts: a later one would be for a SYN whose hops should have run out.
                self.mss = self.mss.or(mss);
                self.reached(index, answer.at, None);
            }
            ProbeAnswer::Refused if flight.item.kind == Kind::Syn => {
                self.refused |= flight.item.purpose == Purpose::Open;
                self.reached(index, answer.at, None);
            }
            ProbeAnswer::Unreachable { .. } | ProbeAnswer::TooBig { .. } if flight.item.kind == Kind::Stream => {}
            ProbeAnswer::TooBig { .. } => {
                let least = u32::from(self.least());
                let believable = self.evidence.hint(answer.from, answer.said, flight.item.size, least);
                // Late words count, too: nothing else can have become of it.
                if believable && matches!(flight.fate, Fate::Waiting | Fate::Silent) {
                    self.set_fate(index, Fate::TooBig);
                }
            }
            ProbeAnswer::Expired { .. } if flight.item.ttl.is_none() => {
                let said = RouterRefusal { from: answer.from, expired: true, code: 0 };
                self.refusal = RouterRefusal::or(self.refusal, said);
            }
            ProbeAnswer::Expired { quote } => {
                let (Some(ttl), Some(from)) = (flight.item.ttl, answer.from) else { return };
                if flight.fate == Fate::Waiting {
                    self.set_fate(index, Fate::Expired);
                }
                if flight.item.purpose == Purpose::Reach {
                    let hop = self.evidence.hops.entry(ttl).or_insert((from, flight.item.size));
                    hop.1 = hop.1.max(flight.item.size);
                }
                if let Some(kept) = quote.dont_fragment {
                    self.quoted_fragment.entry(ttl).or_insert((from, kept));
                }
                if let Some(mss) = quote.options.and_then(|options| options.mss) {
                    self.quoted_mss.entry(ttl).or_insert((from, mss));
                }
            }
            ProbeAnswer::Timed { trip } => {
                self.trip = Some(self.trip.map_or(trip, |least| least.min(trip)));
                self.evidence.rtt(flight.item.size, trip);
            }
            ProbeAnswer::StreamLimit { longest } => self.beyond.longest = Some(longest),
            ProbeAnswer::LocalTooBig if flight.item.kind == Kind::Stream => {
                self.stream_limit = self.stream_limit.min(flight.item.size.saturating_sub(1));
                self.set_fate(index, Fate::Void);
            }
            ProbeAnswer::LocalTooBig => {
                self.max = self.max.min(flight.item.size.saturating_sub(1)).max(self.least());
                if flight.fate == Fate::Waiting {
                    self.set_fate(index, Fate::TooBig);
                }
            }
            ProbeAnswer::Unreachable { code } => {
                self.unreachable = self.unreachable.or(Some(code));
                let said = RouterRefusal { from: answer.from, expired: false, code };
                self.refusal = RouterRefusal::or(self.refusal, said);
            }
            ProbeAnswer::Open { .. }
            | ProbeAnswer::Refused
            | ProbeAnswer::Connected
            | ProbeAnswer::Retransmitted { .. }
            | ProbeAnswer::Late => {}
        }
    }

    fn wakeup(&self) -> Option<Time> {
        if self.stage == Stage::Done {
            return None;
        }
        if self.queue.is_empty() { self.due().into_iter().chain(self.hedge_at()).min() } else { Some(self.not_before) }
    }

    fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }
}
