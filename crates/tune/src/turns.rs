//! Turns on links and hosts that others measure on, too: one before each round, as late as possible and before the warm-up.
//!
//! A turn that can't be kept, since its server is away, ends the transfer before the turn ends there. The round is then finished in
//! the order in which it was drawn, under the next turn: what it has shown so far can't decide whether it counts.

use super::event::{Sink, TuneEvent};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_fleet::{HeldTurn, StoreAddress, TurnError, TurnTaker, TurnWaits};
use wt_problem::Problem;
use wt_setup::duration_or_none;
use wt_trial::Cancel;

/// How long a turn is asked for; it is kept as long as a round takes.
const HOLD: Duration = Duration::from_secs(30);

/// Which turns an experiment takes, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnsRequest {
    /// Who grants them: `postgresql://USER@HOST/DATABASE`.
    pub server: String,
    /// What nobody else may use during a round: `link:berlin`, `host:a`, `target:example.org`.
    pub resources: Vec<String>,
    /// How long each turn lasts unless it is kept; nothing means 30 s.
    #[serde(with = "duration_or_none")]
    pub hold: Option<Duration>,
}

impl TurnsRequest {
    /// The address of who grants them, if they can be asked for.
    ///
    /// # Errors
    /// A usage [`Problem`].
    pub fn check(&self) -> Result<StoreAddress, Problem> {
        let address = wt_setup::journal::store_address(&self.server)?;
        let fits = |word: &String| !word.is_empty() && word.len() <= 100 && !word.contains(char::is_whitespace);
        if self.resources.is_empty() || self.resources.len() > 60 || !self.resources.iter().all(fits) {
            return Err(Problem::usage("turns are on 1 to 60 words of at most 100 letters without spaces")
                .hint("--resource link:berlin"));
        }
        if self.hold.is_some_and(|hold| !(Duration::from_secs(1)..=Duration::from_secs(600)).contains(&hold)) {
            return Err(Problem::usage("a turn lasts 1 s to 10 minutes"));
        }
        Ok(address)
    }
}

/// The turns of an experiment; where none are asked for, everything is always granted.
#[derive(Debug, Default)]
pub(crate) struct RoundTurns {
    taker: Option<TurnTaker>,
    held: Option<HeldTurn>,
    names: String,
}

impl RoundTurns {
    /// For rounds: with others shut out.
    pub(crate) fn of(request: Option<&TurnsRequest>) -> Result<Self, Problem> {
        Self::with(request, TurnTaker::new)
    }

    /// For probes, which disturb each other too little to matter.
    pub(crate) fn shared(request: Option<&TurnsRequest>) -> Result<Self, Problem> {
        Self::with(request, TurnTaker::beside_others)
    }

    fn with(
        request: Option<&TurnsRequest>,
        taker: fn(StoreAddress, Vec<String>, Duration) -> TurnTaker,
    ) -> Result<Self, Problem> {
        let Some(request) = request else { return Ok(Self::default()) };
        let address = request.check()?;
        let taker = taker(address, request.resources.clone(), request.hold.unwrap_or(HOLD)).killed_with_its_turn();
        Ok(Self { taker: Some(taker), held: None, names: request.resources.join(", ") })
    }

    /// Waits for a turn, unless one is held; false when the user wants to stop or the monotonic clock says `until_ns`.
    ///
    /// # Errors
    /// A [`Problem`] where the server refuses.
    pub(crate) fn take(&mut self, cancel: &Cancel, until_ns: Option<u64>, events: Sink<'_>) -> Result<bool, Problem> {
        if self.is_cut() {
            self.give_back();
        }
        let Some(taker) = self.taker.as_mut().filter(|_| self.held.is_none()) else { return Ok(true) };
        let names = &self.names;
        let mut waits = |why| {
            events(TuneEvent::note(match why {
                TurnWaits::Behind(1) => format!("waiting for the turn on {names}: one is before you"),
                TurnWaits::Behind(ahead) => format!("waiting for the turn on {names}: {ahead} are before you"),
                TurnWaits::Unreachable(why) => {
                    format!("the server of turns doesn't answer ({why}): no round begins until it does")
                }
            }));
        };
        self.held = taker.take(cancel, until_ns, &mut waits).map_err(|error| problem(&error))?;
        Ok(self.held.is_some())
    }

    /// Gives the turn back, if one is held.
    pub(crate) fn give_back(&mut self) {
        if let (Some(taker), Some(held)) = (self.taker.as_mut(), self.held.take()) {
            taker.give_back(held);
        }
    }

    /// What ends a transfer: the turn where one is held, or else only the user.
    pub(crate) fn cancel<'a>(&'a self, user: &'a Cancel) -> &'a Cancel {
        self.held.as_ref().map_or(user, HeldTurn::cancel)
    }

    /// Whether the turn was over too early.
    pub(crate) fn is_cut(&self) -> bool {
        self.held.as_ref().is_some_and(HeldTurn::is_cut)
    }
}

fn problem(error: &TurnError) -> Problem {
    match error {
        TurnError::Unreachable(_) => Problem::environment(error.to_string()).hint("try again later"),
        TurnError::Refused(_) => Problem::environment(error.to_string())
            .because("this role may not take turns there, or nobody made a fleet of that database")
            .hint("windtunnel fleet init URL makes one, windtunnel fleet add HOST URL takes a host in"),
    }
}
