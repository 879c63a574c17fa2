//! What lies beyond the longest packet that this host's TCP sends to the target, where an ordinary user's probes are its.
//!
//! Datagrams tell it, if the target answers any. If it doesn't, all that is known is what TCP's packets have shown: a lower bound.

use super::plan::{COMMON, PATIENCE, RATION_PAUSE};
use super::{Above, Evidence, Fate, Flight, Item, Purpose, Search};
use crate::Kind;

/// A datagram is asked for so often: the first time, a target that rations its answers may have had none left.
const DATAGRAMS: u8 = 2;

/// What is known beyond the longest packet of this host's TCP.
#[derive(Debug, Default)]
pub(super) struct BeyondStreams {
    /// How often it was asked whether the target answers datagrams.
    asked: u8,
    /// What TCP's packets had shown when datagrams took over.
    aside: Option<Evidence>,
    /// The longest packet that this host's TCP sends, as its kernel says, bytes.
    pub(super) longest: Option<u16>,
    /// Nothing longer can be tried.
    pub(super) bounded: bool,
}

impl Search {
    /// Where this host's TCP makes no packets of the sizes that count, datagrams tell all: with answers that are rationed, a
    /// mixture of both would take what is unsaid for lost. Where datagrams aren't answered, nothing longer is tried. Tells whether anything
    /// is asked for.
    pub(super) fn looks_beyond_streams(&mut self) -> bool {
        let udp = self.config.kinds.iter().position(|kind| *kind == Kind::Udp);
        if self.method() != Kind::Stream || !self.streaming || !self.needs_longer() {
            return false;
        }
        let Some(udp) = udp else { return self.keep_to_streams() };
        let lied_to = self.may_be_lied_to(self.evidence.passed().unwrap_or(0));
        if self.beyond.bounded && !lied_to {
            return self.keep_to_streams();
        }
        let answered = |flight: &Flight| flight.item.kind == Kind::Udp && flight.fate == Fate::Answered;
        if lied_to || self.flights.iter().any(answered) {
            self.beyond.aside = (!lied_to).then(|| self.evidence.clone());
            self.begin_with(udp);
            return true;
        }
        if self.beyond.asked >= if self.config.patient { DATAGRAMS } else { 1 } {
            return self.keep_to_streams();
        }
        if self.beyond.asked > 0 {
            self.pause = RATION_PAUSE;
        }
        self.beyond.asked += 1;
        let size = self.least().min(self.max);
        self.queue.push_back(Item { kind: Kind::Udp, size, ttl: None, purpose: Purpose::Datagram });
        true
    }

    /// Whether sizes count that this host's TCP doesn't make.
    fn needs_longer(&self) -> bool {
        let passed = self.evidence.passed().unwrap_or(0);
        let all_that_it_makes = passed == self.stream_limit && (self.hole_at(passed) || self.may_be_lied_to(passed));
        self.stream_limit < COMMON.min(self.max) || passed > self.stream_limit || all_that_it_makes
    }

    /// Whether this host's TCP may hold itself to an MTU that a router named and that isn't its link's: a longer packet got through, or
    /// the router kept silent of what is just longer although it was given time.
    fn may_be_lied_to(&self, passed: u16) -> bool {
        let longer = |flight: &Flight| flight.item.purpose == Purpose::Hint && flight.item.size > passed;
        let asked = self.flights.iter().filter(|flight| longer(flight) && flight.of_evidence == self.begun);
        let got_through = asked.clone().any(|flight| flight.fate == Fate::Answered);
        got_through || self.pauses >= PATIENCE && self.is_unsaid_of(passed.saturating_add(1), passed)
    }

    /// Tries nothing that this host's TCP doesn't send; tells whether the search begins anew.
    fn keep_to_streams(&mut self) -> bool {
        self.beyond.bounded = true;
        self.stream_limit = self.beyond.longest.map_or(self.stream_limit, |longest| longest.min(self.stream_limit));
        self.max = self.max.min(self.stream_limit);
        self.evidence.forget_above(self.max);
        self.above = Above { over: true, ..Above::default() };
        let begins = self.evidence.passed().is_none();
        if begins {
            self.begin();
        }
        begins
    }

    /// Goes back to what TCP's packets have shown, where datagrams took over and none of them was answered.
    pub(super) fn goes_back_to_streams(&mut self) -> bool {
        let Some(streams) = self.config.kinds.iter().position(|kind| *kind == Kind::Stream) else { return false };
        let Some(before) = self.beyond.aside.take() else { return false };
        let hints = std::mem::take(&mut self.evidence.hints);
        self.change_to(streams);
        self.evidence = before;
        self.evidence.hints = hints;
        if !self.keep_to_streams() {
            self.plan_sizes();
        }
        true
    }

    /// Whether longer packets than these may well get through, and only this host's TCP sends none.
    pub(super) fn is_lower_bound(&self, pmtu: u16) -> bool {
        let told = self.evidence.hints.iter().any(|hint| hint.mtu == pmtu);
        self.beyond.bounded && pmtu == self.max && pmtu < self.config.max && !told
    }
}
