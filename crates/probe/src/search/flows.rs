//! Whether every TCP connection may take the way that was measured: load balancers send each over a branch of its own.
//!
//! Echoes and the segments of one connection stay on one branch. So some connections more, each from a port of its own,
//! carry one packet each. A handshake shows that short packets get through; a packet that vanishes however often it is
//! retransmitted shows a branch that is narrow and silent.

use super::report::CLEAR;
use super::{Finding, Item, Purpose, Search, SizeTally, Stage};
use crate::{Kind, LossCount, ProbeAnswer, Time, likelihood_ratio, repeats_for};
use statrs::distribution::{Binomial, DiscreteCDF as _};

/// So many copies must all vanish where packets get lost anyway: more would take seconds, for the kernel doubles its
/// timeout.
const MOST_COPIES: u32 = 5;
/// Connections are asked for so often at most, should the PMTU turn out to be another one.
const MOST_TIMES: u8 = 3;
/// No connection is waited for longer.
const LONGEST: Time = Time::from_millis(3800);
/// Connections that lost all copies are called uneven where that happens no more often by chance.
const BY_CHANCE: f64 = 0.01;
/// The kernel retransmits no sooner than 200 ms after a packet has left (`TCP_RTO_MIN` of include/net/tcp.h).
const QUICK: Time = Time::from_millis(100);
/// A busy machine sees what its connections do so much later.
const SLACK: Time = Time::from_millis(30);

/// One connection and the packet that it carries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    sent: Time,
    /// When its data left first.
    connected: Option<Time>,
    /// How often its data has left, and when it did last.
    copies: (u32, Time),
    fate: FlowFate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowFate {
    Waiting,
    /// Acknowledged at once.
    Carried,
    /// Acknowledged when it had been retransmitted.
    Late,
    /// Its data never was.
    Silent,
    /// This host's TCP sends no packet so long.
    TooLong,
    /// Its handshake failed.
    Unknown,
}

/// What became of packets of one length on several TCP connections, each of which load balancers may send another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowTally {
    /// The length of their packets, bytes.
    pub size: u16,
    /// Connections that sent one.
    pub flows: u32,
    /// Those on which it was acknowledged.
    pub carried: u32,
    /// Those on which it vanished, retransmitted or not.
    pub silent: u32,
}

/// The packet that each connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FlowPacket {
    /// Its length, bytes.
    size: u16,
    /// Packets so long are known to vanish on the branch that was measured: one that gets through at once is enough to
    /// know, and retransmissions would only use up the words of routers that ration them.
    hole: bool,
}

/// The connections of a search.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// What was asked of them, once that was, and the number of the first one's probe.
    asked: Option<(FlowPacket, u32)>,
    /// How often that was.
    times: u8,
    flows: Vec<Flow>,
    /// The longest packet that this host's TCP sends, where that is shorter than asked for.
    longest: Option<u16>,
    /// The target accepts connections.
    pub(super) possible: bool,
}

impl Flows {
    pub(super) fn push(&mut self, now: Time) {
        self.flows.push(Flow { sent: now, connected: None, copies: (0, now), fate: FlowFate::Waiting });
    }

    /// Takes what became of one.
    pub(super) fn hear(&mut self, id: u32, said: ProbeAnswer, at: Time) {
        let Some((_, first)) = self.asked else { return };
        let Some(flow) = id.checked_sub(first).and_then(|index| self.flows.get_mut(index as usize)) else { return };
        match said {
            ProbeAnswer::Connected => (flow.connected, flow.copies) = (Some(at), (1, at)),
            ProbeAnswer::Retransmitted { copies } => flow.copies = (copies, at),
            ProbeAnswer::Reached { .. } => flow.fate = FlowFate::Carried,
            ProbeAnswer::Late => flow.fate = FlowFate::Late,
            ProbeAnswer::StreamLimit { longest } => self.longest = Some(longest),
            ProbeAnswer::LocalTooBig => flow.fate = FlowFate::TooLong,
            _ => {}
        }
    }
}

impl Search {
    /// Lets connections go along with a burst, with packets of what will probably turn out to be the PMTU.
    pub(super) fn send_flows_along(&mut self, passed: u16, failed: u16) {
        let between = |mtu: &u16| (passed..failed).contains(mtu);
        let hinted = self.evidence.hints.iter().map(|hint| hint.mtu).filter(between).min();
        let unsure = hinted.is_none() && passed < self.max;
        if self.flows.asked.is_none() && !unsure {
            self.ask_flows(FlowPacket { size: hinted.unwrap_or(passed), hole: false });
        }
    }

    fn ask_flows(&mut self, packet: FlowPacket) {
        let times = self.flows.times + 1;
        // Once more when all sizes are known: whatever was asked along with them may have been of other lengths.
        let most = MOST_TIMES + u8::from(self.stage == Stage::Flows);
        if !self.flows.possible || self.config.flows < 2 || times > most {
            return;
        }
        // What waits in the queue leaves before.
        let first = self.packets() + u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        self.flows = Flows { asked: Some((packet, first)), times, flows: Vec::new(), longest: None, possible: true };
        let kind = if packet.hole { Kind::Stream } else { Kind::LastingStream };
        let item = Item { kind, size: packet.size, ttl: None, purpose: Purpose::Flow };
        self.queue.extend(std::iter::repeat_n(item, usize::from(self.config.flows)));
    }

    /// The packet that tells branches apart: of the length of the PMTU, or where longer ones vanish, one that does.
    fn flow_packet(&self) -> Option<FlowPacket> {
        let passed = self.evidence.passed()?;
        let hole = self.hole_at(passed);
        Some(FlowPacket { size: passed + u16::from(hole), hole })
    }

    /// Asks for connections of the right length, unless they have been.
    pub(super) fn plan_flows(&mut self) {
        let Some(packet) = self.flow_packet() else { return };
        if self.flows.asked.is_none_or(|(asked, _)| asked != packet) {
            self.ask_flows(packet);
        }
    }

    /// When more will be known of the connections; `None` when all is.
    pub(super) fn flows_due(&self) -> Option<Time> {
        self.flows.flows.iter().filter(|flow| flow.fate == FlowFate::Waiting).map(|flow| self.flow_due(flow)).min()
    }

    fn flow_due(&self, flow: &Flow) -> Time {
        let rtt = self.rtt.smoothed().unwrap_or(Time::from_millis(100));
        let wait = rtt + self.rtt.grace() + SLACK;
        let Some(connected) = flow.connected else { return flow.sent + wait + rtt };
        let hole = self.evidence.passed().is_some_and(|passed| self.hole_at(passed));
        if hole {
            // One that gets through at once is enough to know.
            return connected + wait;
        }
        let (copies, left) = flow.copies;
        if copies >= self.copies_needed() { left + wait } else { (flow.sent + LONGEST).max(left + wait) }
    }

    /// How many copies must all vanish before it isn't by chance.
    fn copies_needed(&self) -> u32 {
        let loss = self.evidence.loss_below(self.evidence.passed().unwrap_or(0));
        if self.method() == Kind::Stream { MOST_COPIES } else { repeats_for(loss).min(MOST_COPIES) }
    }

    /// Gives up waiting for those whose time is over.
    pub(super) fn settle_flows(&mut self, now: Time) {
        let due: Vec<bool> = self.flows.flows.iter().map(|flow| self.flow_due(flow) <= now).collect();
        let (needed, hole) = (self.copies_needed(), self.evidence.passed().is_some_and(|passed| self.hole_at(passed)));
        for (flow, due) in self.flows.flows.iter_mut().zip(due) {
            if flow.fate == FlowFate::Waiting && due {
                let tried = flow.connected.is_some() && (hole || flow.copies.0 >= needed);
                flow.fate = if tried { FlowFate::Silent } else { FlowFate::Unknown };
            }
        }
    }

    /// What became of the connections' packets, if any was sent.
    pub(super) fn flow_tally(&self) -> Option<FlowTally> {
        let (FlowPacket { size, .. }, _) = self.flows.asked.filter(|(asked, _)| Some(*asked) == self.flow_packet())?;
        let count = |wanted: &[FlowFate]| {
            let flows = self.flows.flows.iter().filter(|flow| wanted.contains(&flow.fate));
            u32::try_from(flows.count()).unwrap_or(u32::MAX)
        };
        let (carried, silent) = (count(&[FlowFate::Carried, FlowFate::Late]), count(&[FlowFate::Silent]));
        (carried + silent > 0).then_some(FlowTally { size, flows: carried + silent, carried, silent })
    }

    /// That no connection could send a packet of this length, where it isn't the target's MSS that no connection ever exceeds.
    pub(super) fn flows_too_long(&self) -> Option<Finding> {
        let (FlowPacket { size, .. }, _) = self.flows.asked.filter(|(asked, _)| Some(*asked) == self.flow_packet())?;
        let longest = self.flows.longest.filter(|_| self.flow_tally().is_none())?;
        let by_mss = self.mss.is_some_and(|mss| longest >= mss.saturating_add(self.headers()));
        (!by_mss).then_some(Finding::FlowsTooLong { size, longest })
    }

    /// Whether some connections carry longer packets than others: by chance, a retransmission would mostly help, and packets that other
    /// probes lose as well say nothing about branches.
    pub(super) fn uneven_flows(&self) -> Option<FlowTally> {
        let tally = self.flow_tally()?;
        let hole = self.evidence.passed().is_some_and(|passed| self.hole_at(passed));
        let uneven = if hole {
            tally.carried as usize > self.late_flows()
        } else {
            let differ = self.are_quick(tally) && self.others(tally).lost() == 0 || self.first_copies_differ(tally);
            let more = tally.silent as usize > self.late_flows() || differ;
            tally.silent > 0 && more && self.silent_by_chance(tally) < BY_CHANCE
        };
        uneven.then_some(tally)
    }

    /// Whether a connection's packet that should get through vanished, for good or once.
    pub(super) fn flows_lost_some(&self) -> bool {
        let hole = self.evidence.passed().is_some_and(|passed| self.hole_at(passed));
        !hole && self.flow_tally().is_some_and(|tally| tally.silent > 0 || self.late_flows() > 0)
    }

    /// Whether the connections' first copies got lost clearly more often than other probes of their length. By chance they wouldn't; on
    /// a narrow branch they do, and a retransmission may take the other one where the kernel changes flow labels.
    fn first_copies_differ(&self, tally: FlowTally) -> bool {
        let (others, first) = (self.others(tally), self.first_copies(tally));
        self.are_quick(tally) && first.loss() > others.loss() && likelihood_ratio(others, first) >= CLEAR
    }

    /// Whether the narrowest link takes the packets of all connections before a kernel would retransmit the last of them.
    fn are_quick(&self, tally: FlowTally) -> bool {
        self.pace() * tally.flows <= QUICK
    }

    /// That so many connections had to retransmit what other probes seldom lose, and none lost it for good.
    pub(super) fn flows_retransmitted(&self) -> Option<Finding> {
        let hole = self.evidence.passed().is_some_and(|passed| self.hole_at(passed));
        let tally = self.flow_tally().filter(|tally| !hole && self.first_copies_differ(*tally))?;
        let late = u32::try_from(self.late_flows()).unwrap_or(u32::MAX);
        let FlowTally { size, flows, .. } = tally;
        (self.uneven_flows().is_none() && !self.long_lose_more()).then_some(Finding::FlowsRetransmitted {
            size,
            late,
            flows,
        })
    }

    fn late_flows(&self) -> usize {
        self.flows.flows.iter().filter(|flow| flow.fate == FlowFate::Late).count()
    }

    /// The other probes of the connections' length.
    fn others(&self, tally: FlowTally) -> LossCount {
        let SizeTally { answered, silent, .. } = self.evidence.of(tally.size);
        self.arms[1].plus(LossCount { sent: answered + silent, answered })
    }

    /// What the connections sent first.
    fn first_copies(&self, tally: FlowTally) -> LossCount {
        let late = u32::try_from(self.late_flows()).unwrap_or(u32::MAX);
        LossCount { sent: tally.flows, answered: tally.carried.saturating_sub(late) }
    }

    /// How probably so many connections or more lose all copies of their packet where as much gets lost as may well be: by what the
    /// other probes of that length have lost, and by what the connections' first copies have. Where each of those probes was a connection of
    /// its own, it was the branch that decided its fate, and only a second copy tells the two apart.
    fn silent_by_chance(&self, tally: FlowTally) -> f64 {
        let silent = self.flows.flows.iter().filter(|flow| flow.fate == FlowFate::Silent);
        let copies = silent.map(|flow| flow.copies.0).min().unwrap_or(0);
        let lost = self.others(tally).interval().1.min(self.first_copies(tally).interval().1);
        let each = lost.powi(i32::try_from(copies).unwrap_or(i32::MAX)).clamp(0.0, 1.0);
        Binomial::new(each, tally.flows.into())
            .map_or(1.0, |chance| chance.sf(u64::from(tally.silent).saturating_sub(1)))
    }
}
