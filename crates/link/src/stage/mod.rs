//! The stages. Most of them know when a packet leaves as soon as it arrives: they *pass* it with its departure, which
//! may lie ahead, and the packet goes on at once to the next stage. The others *hold* packets until their time has come.

mod airtime;
mod delay;
mod kind;
mod line;
mod loss;
mod queue;
mod shuffle;
mod thin;

pub(crate) use queue::Bound;
pub(crate) use shuffle::TimedItem;

use crate::dice::Dice;
use crate::stats::StageStats;
use crate::{DropReason, Packet, StageConfig, Time};
use kind::Kind;

/// Names of the stages that no configuration has.
const ROUTER: &str = "router";
const GATE: &str = "gate";

/// What a stage does with an arriving packet.
pub(crate) enum Verdict {
    /// It leaves at this time.
    Pass(u64),
    /// It leaves twice, at the time of its arrival.
    Twice,
    /// It is lost.
    Drop(DropReason),
    /// The stage wants to hold it: give it to `hold`.
    Hold,
}

/// What a holding stage lets go of.
#[derive(Debug)]
pub(crate) enum HoldEvent<P> {
    Pass { at: Time, packet: Packet<P> },
    Drop { at: Time, reason: DropReason, packet: Packet<P> },
}

/// One stage with its generator and its counters.
pub(crate) struct Stage<P> {
    kind: Kind<P>,
    dice: Dice,
    stats: StageStats,
    /// The link that it belongs to.
    link: usize,
}

impl<P> Stage<P> {
    /// A stage of a link; `place` is its number among all stages of the path, for its generator.
    pub(crate) fn new(config: &StageConfig, link: usize, seed: u64, place: u64) -> Self {
        let mut dice = Dice::new(seed, place);
        let kind = Kind::new(config, &mut dice);
        Self { kind, dice, stats: StageStats::new(config.name()), link }
    }

    /// The router in front of a link.
    pub(crate) fn router(link: usize) -> Self {
        Self { kind: Kind::Router, dice: Dice::new(0, 0), stats: StageStats::new(ROUTER), link }
    }

    /// A gate in front of a stage that needs arrivals in the order of time, where an injected packet could be earlier
    /// than packets that have been computed ahead.
    pub(crate) fn gate(link: usize) -> Self {
        Self { kind: Kind::gate(), dice: Dice::new(0, 0), stats: StageStats::new(GATE), link }
    }

    /// Whether it holds packets.
    pub(crate) const fn holds(&self) -> bool {
        self.kind.holds()
    }

    /// Whether it stands in the configuration, so that its statistics mean something.
    pub(crate) const fn is_configured(&self) -> bool {
        !matches!(self.kind, Kind::Router | Kind::Gate(_))
    }

    pub(crate) const fn link(&self) -> usize {
        self.link
    }

    pub(crate) const fn is_gate(&self) -> bool {
        matches!(self.kind, Kind::Gate(_))
    }

    pub(crate) const fn is_router(&self) -> bool {
        matches!(self.kind, Kind::Router)
    }

    /// What every packet takes to pass it, ns.
    pub(crate) const fn fixed_delay(&self) -> u64 {
        if let Kind::Delay(delay) = self.kind { delay } else { 0 }
    }

    /// The largest packet that it lets through, bytes.
    pub(crate) const fn mtu(&self) -> u32 {
        if let Kind::Mtu(mtu) = self.kind { mtu } else { u32::MAX }
    }

    /// A packet arrives; `at` is not before the arrival of the one before it.
    #[inline]
    pub(crate) fn arrive(&mut self, at: u64, packet: &mut Packet<P>) -> Verdict {
        self.stats.entered += 1;
        self.stats.bytes += u64::from(packet.ip_len);
        let unmarked = (packet.ce, packet.corrupted);
        let verdict = self.kind.judge(at, packet, &mut self.dice);
        self.stats.marked += u64::from((packet.ce, packet.corrupted) != unmarked);
        match verdict {
            Verdict::Drop(_) => self.stats.dropped += 1,
            Verdict::Twice => self.stats.duplicated += 1,
            Verdict::Pass(_) | Verdict::Hold => {}
        }
        verdict
    }

    /// A holding stage takes the packet for which it said [`Verdict::Hold`].
    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        self.kind.hold(at, packet, &mut self.dice);
    }

    /// When a holding stage next does something.
    pub(crate) fn due(&self) -> u64 {
        self.kind.due()
    }

    /// The next packet of a gate; `None` for any other stage.
    #[inline]
    pub(crate) fn open_gate(&mut self) -> Option<(u64, Packet<P>)> {
        if let Kind::Gate(shuffle) = &mut self.kind { shuffle.pop() } else { None }
    }

    /// Does the one thing that is due, and adds what it lets go of.
    pub(crate) fn step(&mut self, out: &mut Vec<HoldEvent<P>>) {
        self.kind.step(out);
        self.stats.dropped += out.iter().filter(|held| matches!(held, HoldEvent::Drop { .. })).count() as u64;
    }

    /// The counters, with the queue as it is at `now`.
    pub(crate) fn stats_at(&self, now: u64) -> StageStats {
        let mut stats = self.stats.clone();
        self.kind.add_queue(now, &mut stats);
        stats
    }
}
