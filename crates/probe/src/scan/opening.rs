//! The connection that old segments need: a SYN, and then an old segment that is answered.
//!
//! Either may get lost, and so may the acknowledgement that completes the handshake: until that has come, the target answers old
//! segments as little as if they were lost. So a SYN is repeated, ever more slowly. Sizes go right behind its answer, and mostly the first
//! old segment of them shows that the connection stands. Where it isn't answered, those before the first that is don't count, and leave
//! again; where none is, short ones are sent alone until one is answered.

use super::{Flight, OPENING, Scan, Stage};
use crate::{Answer, Kind, Probe, ProbeAnswer, Rtt, Time};

/// What shows that the connection stands, bytes: every path carries it (RFC 791).
const SHOWING: u16 = 68;
const SYN: u16 = 44;
/// Each leaves so often at most. Where every other packet gets lost on its way or back, the SYN of one connection in four thousand fails.
const TRIES: u32 = 6;
/// The first answer is waited for so many round trips, the next twice as long, and so on up to a second, or as long as the first.
const TRIPS: u32 = 4;
const LEAST: Time = Time::from_millis(50);
const LONGEST: Time = Time::from_secs(1);

/// What a handshake takes where nothing gets lost: the SYN, and an old segment.
const HANDSHAKE: u32 = 2;

/// How far the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// None is needed, or it stands.
    Over,
    /// A SYN is answered next.
    Syn,
    /// An old segment is answered next.
    Showing,
    /// There won't be one.
    Failed,
}

/// What opens the connection.
#[derive(Debug)]
pub(super) struct Opening {
    step: Step,
    /// Whether a connection was asked for.
    needed: bool,
    /// The round-trip time, if it is known before.
    rtt: Option<Time>,
    /// How often this step's packet has left, and when that was.
    tries: u32,
    last: Time,
    /// Whether sizes may go although nothing shows yet that the connection stands.
    hopes: bool,
}

impl Opening {
    pub(super) const fn new(needed: bool) -> Self {
        let step = if needed { Step::Syn } else { Step::Over };
        Self { step, needed, rtt: None, tries: 0, last: Time::ZERO, hopes: false }
    }

    pub(super) const fn know(&mut self, rtt: Option<Time>) {
        self.rtt = rtt;
    }

    /// Whether old segments are answered.
    pub(super) fn stands(&self) -> bool {
        self.needed && self.step == Step::Over
    }

    /// Whether a connection was needed, and none came about.
    pub(super) fn failed(&self) -> bool {
        self.step == Step::Failed
    }

    /// When something must be done for it; `None` where nothing is left to do.
    pub(super) fn due(&self) -> Option<Time> {
        let waits = matches!(self.step, Step::Syn | Step::Showing);
        waits.then(|| if self.tries == 0 { self.last } else { self.last + self.patience() })
    }

    /// How long the last packet's answer is waited for.
    fn patience(&self) -> Time {
        let Some(rtt) = self.rtt else { return Rtt::UNKNOWN };
        let first = (rtt * TRIPS).max(LEAST);
        (first * (1 << self.tries.saturating_sub(1).min(TRIES))).min(LONGEST.max(first))
    }

    /// The packet that is due now; `None` after the last one.
    fn next(&mut self, now: Time) -> Option<(u16, Kind)> {
        if self.tries >= TRIES {
            self.step = Step::Failed;
            return None;
        }
        (self.tries, self.last) = (self.tries + 1, now);
        Some(if self.step == Step::Syn { (SYN, Kind::Syn) } else { (SHOWING, Kind::OldSegment) })
    }

    fn go_to(&mut self, step: Step, at: Time) {
        (self.step, self.tries, self.last) = (step, 0, at);
    }
}

impl Flight {
    /// Whether it may show that the connection stands, or left before it did.
    fn is_hoped_for(&self) -> bool {
        self.kind == Kind::OldSegment && self.block == OPENING + 1
    }
}

impl Scan {
    /// A scan of a path whose round-trip time is known: what gets lost of a handshake is repeated sooner.
    #[must_use]
    pub fn with_rtt(mut self, rtt: Option<Time>) -> Self {
        self.opening.know(rtt);
        self
    }

    /// Whether old segments were to be sent alone, and no connection came about on which they are answered: nothing was counted.
    #[must_use]
    pub fn lacks_connection(&self) -> bool {
        self.opening.failed() && self.config.kind == Kind::OldSegment
    }

    /// What opens the connection, as long as it is needed and isn't known to stand: the packet that leaves now, if any. `None` where sizes
    /// may be sent.
    pub(super) fn poll_opening(&mut self, now: Time) -> Option<Option<Probe>> {
        let due = self.settled_at().or_else(|| self.opening.due())?;
        if now < due {
            let sizes_go = self.opening.hopes && !self.queue.is_empty();
            return (!sizes_go).then_some(None);
        }
        if self.opening.hopes && self.settle() {
            return None;
        }
        if let Some((size, kind)) = self.opening.next(now) {
            return Some(Some(self.launch((size, kind, OPENING), now)));
        }
        self.go_on_without();
        None
    }

    /// When [`poll_opening`](Self::poll_opening) has something to do; `None` where sizes go as they may.
    pub(super) fn opening_due(&self) -> Option<Time> {
        let due = self.settled_at().or_else(|| self.opening.due())?;
        Some(if self.opening.hopes && !self.queue.is_empty() { due.min(self.not_before()) } else { due })
    }

    /// When it is clear whether the first old segment of the sizes is answered, where that is awaited.
    fn settled_at(&self) -> Option<Time> {
        let due = self.opening.due().filter(|_| self.opening.hopes)?;
        let first = self.flights.iter().find(|flight| flight.is_hoped_for());
        Some(first.map_or(due, |first| due.min(first.sent + self.wait())))
    }

    /// Takes an answer to a packet of this kind and block, once it is known to be one.
    pub(super) fn hear_opening(&mut self, (kind, block): (Kind, usize), answer: &Answer) {
        match (self.opening.step, kind, answer.said) {
            (Step::Syn, Kind::Syn, ProbeAnswer::Open { sack: true, .. }) => {
                if self.opening.tries == 1 {
                    let trip = answer.at.saturating_sub(self.opening.last);
                    self.opening.rtt = self.opening.rtt.or(Some(trip));
                }
                self.opening.go_to(Step::Showing, answer.at);
                // Only where so many may be sent that all can leave twice.
                self.opening.hopes = self.queue.len() <= self.config.most as usize / 2;
                self.opening.tries = u32::from(self.opening.hopes);
            }
            (Step::Syn, Kind::Syn, ProbeAnswer::Open { .. } | ProbeAnswer::Refused) => {
                self.opening.go_to(Step::Failed, answer.at);
                self.go_on_without();
            }
            (Step::Showing, Kind::OldSegment, ProbeAnswer::Reached { .. }) if block == OPENING => {
                self.opening.go_to(Step::Over, answer.at);
                // What was sent in vain isn't sent on top of what was allowed.
                let most = self.config.most.saturating_add(HANDSHAKE).saturating_sub(self.packets());
                self.queue.truncate(most.max(2) as usize);
            }
            (Step::Showing, Kind::OldSegment, ProbeAnswer::Reached { .. }) => {
                let first = self.flights.iter().find(|flight| flight.is_hoped_for());
                if first.is_some_and(|flight| flight.answered.is_some()) {
                    self.opening.go_to(Step::Over, answer.at);
                    self.opening.hopes = false;
                }
            }
            _ => {}
        }
    }

    /// The first sizes went in the hope that the connection stands, and the first of them wasn't answered: takes back those before the
    /// one that was. Tells whether there is one.
    fn settle(&mut self) -> bool {
        self.opening.hopes = false;
        let old = |flight: &Flight| flight.is_hoped_for();
        let answered = self.flights.iter().position(|flight| old(flight) && flight.answered.is_some());
        let doubtful = self.flights.iter_mut().take(answered.unwrap_or(usize::MAX)).rev();
        for flight in doubtful.filter(|flight| old(flight)) {
            self.queue.push_front((flight.size, flight.kind, flight.block));
            flight.block = OPENING;
        }
        if answered.is_some() {
            self.opening.step = Step::Over;
        } else {
            self.opening.tries = 0;
        }
        answered.is_some()
    }

    /// The target has changed its mind, or everything got lost: echoes alone, or nothing.
    fn go_on_without(&mut self) {
        self.config.split = false;
        if self.config.kind == Kind::OldSegment {
            (self.stage, self.over) = (Stage::Done, true);
            self.queue.clear();
        } else {
            let kind = self.config.kind;
            self.queue.iter_mut().for_each(|item| item.1 = kind);
        }
    }
}
