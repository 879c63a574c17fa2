use super::evidence::Fate;
use super::{Flight, FlowTally, Purpose, Search, Stage};
use crate::{Kind, LossCount, RouterRefusal, Rtt, Time, likelihood_ratio};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The likelihood ratio above which two losses differ: wrong once in 1000 times.
pub(super) const CLEAR: f64 = 10.83;

/// What is the matter with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing: what is too long is told so, with the right MTU.
    Clean,
    /// What is too long vanishes without a word.
    BlackHole,
    /// A router names another MTU than its next link has.
    LyingRouter,
    /// What is too long gets there, and vanishes on its way back without a word.
    ReverseBlackHole,
    /// Long packets get lost more often than short ones.
    SizeDependentLoss,
    /// Routers say that packets are too long, but only so many times a second.
    RateLimited,
    /// The target doesn't answer ICMP.
    IcmpBlocked,
    /// Somebody on the way lowers the MSS of TCP's handshake.
    Clamped,
    /// Load balancers send some connections over a branch that carries less, without a word.
    NarrowBranch,
    /// A router clears "don't fragment", so that those behind it fragment what is too long.
    DfCleared,
    /// It can't be said.
    Inconclusive,
}

impl PathKind {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::BlackHole => "black-hole",
            Self::ReverseBlackHole => "reverse-black-hole",
            Self::LyingRouter => "lying-router",
            Self::SizeDependentLoss => "size-dependent-loss",
            Self::RateLimited => "rate-limited",
            Self::IcmpBlocked => "icmp-blocked",
            Self::Clamped => "clamped",
            Self::NarrowBranch => "narrow-branch",
            Self::DfCleared => "df-cleared",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What else was found, beside the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The target doesn't answer echo requests.
    EchoBlocked,
    /// Hints came that can't be true.
    AbsurdHints {
        /// How many.
        count: u32,
    },
    /// Longer packets vanish before they get to the router that tells of shorter ones.
    HoleAbove {
        /// The largest that is told of, bytes.
        told: u16,
        /// One that vanishes, bytes.
        lost: u16,
    },
    /// Long echoes get there, and vanish on their way back.
    EchoLostOnItsWayBack,
    /// Longer packets of the target vanish on their way back without a word.
    HoleOnTheWayBack {
        /// The largest that comes back, bytes.
        most: u16,
    },
    /// A small MSS comes back, and no router that was heard has lowered this host's own: it is the target's choice, or was lowered on its
    /// way back, or by the last router.
    TargetsMss {
        /// What comes back, bytes.
        mss: u16,
    },
    /// Packets get lost whatever their size.
    RandomLoss,
    /// Long packets get lost more often than short ones, and fewer or none where they leave slower.
    LossByRate,
    /// Longer packets may well get through: this host's TCP sends none to the target, and the target answers nothing else.
    LowerBound {
        /// The MSS that the target named, bytes, if that is why; `None` where this host holds itself to an MTU of a route, or that a router
        /// named.
        mss: Option<u16>,
    },
    /// Connections that would show other branches of a load balancer sent nothing: this host holds its TCP to shorter packets.
    FlowsTooLong {
        /// The length that they should have had, bytes.
        size: u16,
        /// The longest that this host's TCP sends, bytes.
        longest: u16,
    },
    /// Connections lost packets clearly more often than other probes of that length, and carried them when they had been retransmitted.
    FlowsRetransmitted {
        /// The length of their packets, bytes.
        size: u16,
        /// Connections that retransmitted them.
        late: u32,
        /// All connections that sent one.
        flows: u32,
    },
    /// What had got through before didn't any more.
    PathChanged,
    /// The target refuses connections at the port, and that is all that it answers.
    PortRefused,
    /// The target accepts connections at the port, or answered some probe, and it can't be told what gets through.
    LittleAnswered,
    /// Nothing answered at all.
    Unreachable {
        /// The code of an ICMP "unreachable", if one came.
        code: Option<u8>,
    },
    /// So few probes were answered that silence says nothing: answers are rationed, or nearly all get lost.
    TooFewAnswers,
    /// There was not enough evidence within the bounds of packets and rounds.
    GaveUp,
    /// The search was ended before it was done.
    OutOfTime,
}

/// A router's word about the MTU of its next link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// Whose address it bears.
    pub router: Option<IpAddr>,
    /// What it says, bytes.
    pub mtu: u16,
    /// How often it was said.
    pub count: u32,
}

/// A hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// How many hops away, from 1.
    pub ttl: u8,
    /// Its address.
    pub address: IpAddr,
}

/// A lowered MSS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clamp {
    /// The MSS that this host offers.
    pub from: u16,
    /// The MSS that the target named, or that a router on the way made of ours.
    pub to: u16,
    /// The first hop that saw the lower one; `None` when no quotation showed it, so that it may be the target's choice.
    pub hop: Option<Hop>,
}

/// What became of the probes of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeTally {
    /// The length of the IP packet, bytes.
    pub size: u16,
    /// How many were sent.
    pub sent: u32,
    /// How many of them the target answered.
    pub answered: u32,
    /// How many of them somebody called too long.
    pub refused: u32,
    /// How many of them nothing was heard of.
    pub silent: u32,
    /// The shortest round-trip time.
    pub rtt: Option<Time>,
    /// The first round in which one was sent.
    pub(super) first_round: u32,
    /// The last one.
    pub(super) last_round: u32,
}

impl SizeTally {
    pub(super) const fn new(size: u16, round: u32) -> Self {
        Self { size, sent: 0, answered: 0, refused: 0, silent: 0, rtt: None, first_round: round, last_round: round }
    }
}

/// What the search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchReport {
    /// The largest packet that gets through, bytes.
    pub pmtu: Option<u16>,
    /// The largest packet that comes back, bytes. The search leaves it open: [`Reverse`](crate::Reverse) finds it.
    pub reverse_pmtu: Option<u16>,
    /// What is the matter.
    pub kind: PathKind,
    /// What else was found.
    pub findings: Vec<Finding>,
    /// The last hop that a packet just too long reached, where it then vanished.
    pub hole: Option<Hop>,
    /// A lowered MSS.
    pub clamp: Option<Clamp>,
    /// What the path answered.
    pub method: Option<Kind>,
    /// What routers said.
    pub hints: Vec<Hint>,
    /// Size by size.
    pub sizes: Vec<SizeTally>,
    /// The MSS that the target named.
    pub mss: Option<u16>,
    /// Who says that packets go no further, where nothing got through.
    pub refusal: Option<RouterRefusal>,
    /// What became of packets on connections that load balancers may send other ways.
    pub flows: Option<FlowTally>,
    /// The first hop that sees no "don't fragment" any more; the one before it, or a middlebox there, clears it.
    pub df_cleared: Option<Hop>,
    /// Loss of short packets, if it was looked at.
    pub short_loss: LossCount,
    /// Loss of the longest packets, if it was looked at.
    pub long_loss: LossCount,
    /// The round-trip time.
    pub rtt: Rtt,
    /// What the narrowest link needs for a packet of about 1400 bytes, roughly; zero
    /// where it can't be told from nothing.
    pub pace: Time,
    /// Probes sent.
    pub packets: u32,
    /// Bursts, each followed by a verdict.
    pub rounds: u32,
}

impl SearchReport {
    /// Whether longer packets than [`pmtu`](Self::pmtu) may well get through.
    #[must_use]
    pub fn is_lower_bound(&self) -> bool {
        self.pmtu.is_some() && self.findings.iter().any(|finding| matches!(finding, Finding::LowerBound { .. }))
    }
}

impl Search {
    /// What is known now; the outcome when the machine is done.
    #[must_use]
    pub fn report(&self) -> SearchReport {
        let pmtu = self.evidence.passed().filter(|_| !self.undecided && self.stage == Stage::Done);
        SearchReport {
            pmtu,
            reverse_pmtu: None,
            kind: pmtu.map_or(PathKind::Inconclusive, |pmtu| self.kind_of(pmtu)),
            findings: self.findings(),
            hole: pmtu.and_then(|pmtu| {
                let vanishes = self.hole_at(pmtu) && self.is_last() || self.hole_above().is_some();
                self.evidence.last_hop().filter(|_| vanishes)
            }),
            clamp: pmtu.and_then(|pmtu| self.clamp(pmtu)),
            method: pmtu.map(|_| self.method()),
            hints: self.evidence.hints.clone(),
            sizes: self.evidence.tallies(),
            mss: self.mss,
            refusal: self.refusal.filter(|_| pmtu.is_none()),
            flows: pmtu.and_then(|_| self.flow_tally()),
            df_cleared: pmtu.and_then(|_| self.df_cleared()),
            short_loss: self.arms[0],
            long_loss: self.arms[1],
            rtt: self.trip.map_or(self.rtt, |trip| self.rtt.with_min(trip)),
            pace: self.pace(),
            packets: self.packets(),
            rounds: self.round,
        }
    }

    fn kind_of(&self, pmtu: u16) -> PathKind {
        if self.uneven_flows().is_some() {
            return PathKind::NarrowBranch;
        }
        if self.long_lose_more() && self.is_by_rate() == Some(false) {
            return PathKind::SizeDependentLoss;
        }
        if self.hole_above().is_some() {
            return PathKind::BlackHole;
        }
        if pmtu < self.max {
            let truth = self.evidence.hints.iter().any(|hint| hint.mtu == pmtu);
            let (refused, silent) = self.failures_above(pmtu);
            match (truth, self.lie(pmtu)) {
                (false, true) => return PathKind::LyingRouter,
                (false, false) => return PathKind::BlackHole,
                (true, _) if self.refusals_rationed(pmtu, refused, silent) => return PathKind::RateLimited,
                _ => {}
            }
        }
        if self.df_cleared().is_some() {
            PathKind::DfCleared
        } else if self.clamp(pmtu).is_some() {
            PathKind::Clamped
        } else if self.is_lower_bound(pmtu) {
            PathKind::Inconclusive
        } else if self.echo_blocked() {
            PathKind::IcmpBlocked
        } else {
            PathKind::Clean
        }
    }

    /// Whether packets that are too long vanish more often than those that aren't.
    ///
    /// Rationing goes on: what was unsaid in one burst alone, and said for the same packets in another, was lost or late.
    fn refusals_rationed(&self, pmtu: u16, refused: u32, silent: u32) -> bool {
        if self.silent_in_one_burst_alone(pmtu) {
            return false;
        }
        if self.method() == Kind::Udp {
            // What gets through is rationed itself.
            return silent >= 4 && silent * 4 > refused + silent;
        }
        let refusals = LossCount { sent: refused + silent, answered: refused };
        silent >= 2 && likelihood_ratio(self.evidence.count_up_to(pmtu), refusals) >= CLEAR
    }

    /// Whether of several bursts with packets above the PMTU all but one had each of them called too long.
    fn silent_in_one_burst_alone(&self, pmtu: u16) -> bool {
        let told = |flight: &&Flight| flight.item.size > pmtu && flight.item.ttl.is_none();
        let mut bursts = BTreeMap::new();
        for flight in self.flights.iter().filter(told) {
            let (refused, silent): &mut (u32, u32) = bursts.entry(flight.round).or_default();
            *refused += u32::from(flight.fate == Fate::TooBig);
            *silent += u32::from(flight.fate == Fate::Silent);
        }
        let silent = bursts.values().filter(|(_, silent)| *silent > 0).count();
        let told = bursts.values().filter(|(refused, silent)| *silent == 0 && *refused > 1).count();
        silent == 1 && told > 0
    }

    /// How many packets above the PMTU were called too long, and how many vanished.
    pub(super) fn failures_above(&self, pmtu: u16) -> (u32, u32) {
        if self.method() == Kind::Stream {
            // What routers say reaches us for the datagrams that go along only.
            let asked = |flight: &&Flight| flight.item.purpose == Purpose::Hint && flight.item.size > pmtu;
            return self.flights.iter().filter(asked).fold((0, 0), |(r, s), flight| match flight.fate {
                Fate::TooBig => (r + 1, s),
                Fate::Silent => (r, s + 1),
                _ => (r, s),
            });
        }
        self.evidence.above(pmtu).fold((0, 0), |(r, s), tally| (r + tally.refused, s + tally.silent))
    }

    /// Whether the last hop that told of a packet just too long is the last that such packets reach. Without the time to
    /// find out whether those behind it only ration what they say, one of them must have said something.
    fn is_last(&self) -> bool {
        let mut beyond = self.flights.iter().filter(|flight| flight.item.purpose == Purpose::Beyond);
        self.config.patient || beyond.any(|flight| matches!(flight.fate, Fate::Expired | Fate::Answered))
    }

    /// Whether some router named an MTU other than what it does.
    ///
    /// A packet just too long vanishes at a router that has told of another MTU: it lies. When it vanishes at another
    /// one, the first told the truth about its own link, and the other is silent about its. A word from an address that
    /// no hop has may be anybody's.
    pub(super) fn lie(&self, pmtu: u16) -> bool {
        if !self.is_last() {
            return false;
        }
        let last = self.evidence.last_hop().map(|hop| hop.address);
        let others = self.evidence.hints.iter().filter(|hint| hint.mtu != pmtu).map(|hint| hint.router);
        others.chain(self.evidence.absurd_from.iter().copied()).any(|router| router.is_some() && router == last)
    }

    /// The largest packet that a router calls too long, and one that vanishes before it gets there.
    pub(super) fn hole_above(&self) -> Option<(u16, u16)> {
        self.above.between.filter(|_| self.above.over && self.above.rounds > 2)
    }

    /// Whether packets just too long vanish without the truth being told.
    pub(super) fn hole_at(&self, pmtu: u16) -> bool {
        pmtu < self.max && !self.evidence.hints.iter().any(|hint| hint.mtu == pmtu)
    }

    fn echo_blocked(&self) -> bool {
        self.tried.contains(&Kind::Echo) && self.method() != Kind::Echo && !self.short_answers && !self.scarce
    }

    fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if self.scarce {
            found.push(Finding::TooFewAnswers);
        } else if self.evidence.passed().is_none() {
            let answered = self.open || self.flights.iter().any(|flight| flight.fate == Fate::Answered);
            let nothing = match (self.refused, answered) {
                (true, _) => Finding::PortRefused,
                (false, true) => Finding::LittleAnswered,
                (false, false) => Finding::Unreachable { code: self.unreachable },
            };
            found.extend(Some(nothing).filter(|_| self.stage == Stage::Done));
        } else if self.echo_blocked() {
            found.push(Finding::EchoBlocked);
        }
        if self.evidence.absurd > 0 {
            found.push(Finding::AbsurdHints { count: self.evidence.absurd });
        }
        if let Some((told, lost)) = self.hole_above() {
            found.push(Finding::HoleAbove { told, lost });
        }
        if self.evidence.passed().is_some_and(|pmtu| self.is_lower_bound(pmtu)) {
            found.push(Finding::LowerBound { mss: self.mss });
        }
        found.extend(self.flows_too_long().or_else(|| self.flows_retransmitted()));
        if self.short_answers {
            found.push(Finding::EchoLostOnItsWayBack);
        }
        if let Some(mss) = self.evidence.passed().and_then(|pmtu| self.small_mss_of_target(pmtu)) {
            found.push(Finding::TargetsMss { mss });
        }
        let both = self.arms[0].plus(self.arms[1]);
        if both.lost() > 0 && likelihood_ratio(self.arms[0], self.arms[1]) < CLEAR {
            found.push(Finding::RandomLoss);
        }
        if self.long_lose_more() && self.is_by_rate() != Some(false) && self.slow_loss.sent > 0 {
            found.push(Finding::LossByRate);
        }
        if self.changed {
            found.push(Finding::PathChanged);
        }
        if self.gave_up {
            found.push(Finding::GaveUp);
        }
        if self.stage != Stage::Done {
            found.push(Finding::OutOfTime);
        }
        found
    }
}
