use crate::answer::SCHEMA_VERSION;
use crate::assess::{Assessor, TRY};
use crate::assign;
use crate::assigner::Assigner;
use crate::backend::{Keys, Outcomes};
use crate::opens::Opens;
use crate::record::{Kept, Record};
use crate::{PlannedArm, TrafficAnswer, TrafficEvent, TrafficPlan, TrafficRequest};
use std::time::Duration;
use wt_bpf::TrafficCounts;
use wt_journal::State;
use wt_problem::Problem;
use wt_sys::{clock, poll};
use wt_traffic::{HoldbackState, TrafficConfig, TrafficRun, TrafficTally, TrafficUnit};
use wt_trial::Cancel;

/// Between two words on how it goes, and between two notes in the journal: this, or a hundredth of the time so far.
const WORD_NS: u64 = 10_000_000_000;

/// What connections get that are about to end when somebody cancels.
const GRACE_NS: u64 = 1_000_000_000;

/// Assigns new connections to arms until it is cancelled or its time is up, and reports.
///
/// # Errors
/// A [`Problem`] that says what is wrong with the request, or why connections can't be assigned here.
pub fn start(
    request: &TrafficRequest,
    events: &mut dyn FnMut(TrafficEvent),
    cancel: &Cancel,
) -> Result<TrafficAnswer, Problem> {
    let with_holdback;
    let request = match &request.holdback {
        Some(holdback) => {
            let config = crate::after::holdback(holdback, request.journal.as_deref())?;
            with_holdback = TrafficRequest { config, ..request.clone() };
            &with_holdback
        }
        None => request,
    };
    request.config.check().map_err(|error| Problem::usage(error.to_string()).hint(TRY))?;
    if request.for_s.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
        return Err(Problem::usage("--for must be longer than nothing").hint("--for 10m"));
    }
    let keys = Keys::drawn()?;
    if request.dry_run {
        if request.backend != crate::BackendChoice::Auto {
            assign::choose(request.backend, &request.config)?;
        }
        return Ok(TrafficAnswer::Plan(Box::new(plan(&request.config, keys)?)));
    }
    if !request.beside_programs {
        assign::alone(&wt_bpf::other_programs())?;
    }
    let assessor = Assessor::new(&request.config)?;
    let mut backend = assign::begin(request.backend, &request.config, keys)?;
    let opens = Opens::since_now(backend.as_mut())?;
    let record = Record::begin(request, backend.name())?;
    events(TrafficEvent::Begin {
        id: record.id.clone(),
        whom: whom(&request.config),
        backend: backend.name(),
        arms: request.config.arms.iter().map(|arm| arm.name.clone()).collect(),
    });
    let outcomes = Outcomes::new(&request.config);
    let began_ns = clock::monotonic_ns();
    let mut session = Session {
        config: &request.config,
        keys,
        backend,
        opens,
        outcomes,
        assessor,
        record,
        events,
        began_ns,
        epoch: 0,
        epoch_ends_ns: 0,
        shares: Vec::new(),
        stopped: Vec::new(),
        holdback: None,
        next_word_ns: began_ns + 2_000_000_000,
    };
    let until = request.for_s.map(|seconds| began_ns + (seconds * 1e9) as u64);
    session.assign(until, cancel)?;
    session.drain(cancel)?;
    session.end(cancel)
}

/// Whom it touches, in one sentence.
fn whom(config: &TrafficConfig) -> String {
    let ports: Vec<String> = config.ports.iter().map(u16::to_string).collect();
    let clients = if config.private { "public and private addresses" } else { "public addresses" };
    let left = if config.private { "loopback" } else { "loopback, private ranges" };
    format!(
        "new connections of this network namespace to port {} from {clients}; left alone: {left}, other ports, and all \
         that runs already",
        ports.join(", ")
    )
}

fn plan(config: &TrafficConfig, keys: Keys) -> Result<TrafficPlan, Problem> {
    let rate = crate::opens::hourly()?;
    let shares = config.shares(keys.draw, 0, 0, &[]);
    let arm = |(arm, share): (&wt_traffic::TrafficArm, &f64)| PlannedArm {
        name: arm.name.clone(),
        settings: arm.settings.clone(),
        share: if config.unit == TrafficUnit::Slot { 1.0 / config.arms.len() as f64 } else { *share },
    };
    Ok(TrafficPlan {
        schema_version: SCHEMA_VERSION,
        whom: whom(config),
        arms: config.arms.iter().zip(&shares).map(arm).collect(),
        epoch_s: config.epoch.as_secs_f64(),
        backends: assign::backends_for(config),
        other_programs: wt_bpf::other_programs().iter().map(ToString::to_string).collect(),
        connections_per_hour: rate,
        expects: config.expectations(rate, &[0.05, 0.1, 0.2]),
    })
}

struct Session<'a> {
    config: &'a TrafficConfig,
    keys: Keys,
    backend: Box<dyn Assigner>,
    opens: Opens,
    outcomes: Outcomes,
    assessor: Assessor,
    record: Record,
    events: &'a mut dyn FnMut(TrafficEvent),
    began_ns: u64,
    epoch: u64,
    epoch_ends_ns: u64,
    shares: Vec<f64>,
    /// The arms of which it has been said that they are stopped.
    stopped: Vec<usize>,
    /// What was last said of the holdback.
    holdback: Option<HoldbackState>,
    next_word_ns: u64,
}

impl Session<'_> {
    /// One epoch after the other, until the time is up or somebody cancels.
    fn assign(&mut self, until: Option<u64>, cancel: &Cancel) -> Result<(), Problem> {
        self.begin(clock::monotonic_ns())?;
        while !cancel.is_cancelled() {
            let now = clock::monotonic_ns();
            if until.is_some_and(|until| now >= until) {
                break;
            }
            self.backend.beat()?;
            self.take()?;
            self.assessor.score(now, false);
            self.say_stopped();
            if now >= self.epoch_ends_ns || self.shares_of(self.epoch) != self.shares {
                // Other shares within an epoch would give one client two arms.
                self.epoch += 1;
                self.begin(clock::monotonic_ns())?;
            }
            self.word(now)?;
            nap(self.backend.pause_between_looks())?;
        }
        self.backend.pause()?;
        self.assessor.end(clock::monotonic_ns());
        Ok(())
    }

    fn shares_of(&self, epoch: u64) -> Vec<f64> {
        let analysis = &self.assessor.analysis;
        self.config.shares(self.keys.draw, epoch, analysis.treated(), &self.stopped_arms())
    }

    /// Arms that a guardrail has stopped, and such whose settings the kernel refuses.
    fn stopped_arms(&self) -> Vec<usize> {
        let mut arms = self.assessor.analysis.stopped();
        for broken in self.assessor.analysis.broken_arms() {
            if !arms.contains(&broken) {
                arms.push(broken);
            }
        }
        arms
    }

    fn begin(&mut self, now: u64) -> Result<(), Problem> {
        self.shares = self.shares_of(self.epoch);
        self.backend.begin(self.epoch, &self.shares)?;
        self.outcomes.begin(self.epoch, now);
        self.assessor.begin(self.epoch, &self.shares, now);
        self.epoch_ends_ns = now + self.config.epoch.as_nanos() as u64;
        (self.events)(TrafficEvent::Epoch { epoch: self.epoch, shares: self.shares.clone() });
        Ok(())
    }

    fn take(&mut self) -> Result<(), Problem> {
        for record in self.backend.records()? {
            if let Some(outcome) = self.outcomes.of(&record) {
                self.assessor.record(&outcome);
            }
        }
        Ok(())
    }

    fn say_stopped(&mut self) {
        for arm in self.stopped_arms() {
            if !self.stopped.contains(&arm) {
                self.stopped.push(arm);
                let arm = self.config.arms.get(arm).map_or_else(String::new, |arm| arm.name.clone());
                (self.events)(TrafficEvent::Stopped { arm });
            }
        }
    }

    /// Says how it goes and writes it down, now and then.
    fn word(&mut self, now: u64) -> Result<(), Problem> {
        if now < self.next_word_ns {
            return Ok(());
        }
        let so_far = now - self.began_ns;
        self.next_word_ns = now + WORD_NS.max(so_far / 100);
        let kept = self.kept()?;
        self.record.note(&kept)?;
        self.say_holdback(&kept);
        let (tally, headline) = (kept.tally, kept.headline);
        (self.events)(TrafficEvent::Progress { elapsed_s: so_far as f64 / 1e9, tally, headline });
        Ok(())
    }

    fn say_holdback(&mut self, kept: &Kept) {
        if let Some(holdback) = kept.report.holdback.as_ref().filter(|now| self.holdback != Some(now.state)) {
            self.holdback = Some(holdback.state);
            (self.events)(TrafficEvent::Holdback { holdback: holdback.clone() });
        }
    }

    /// Waits until connections that are assigned have ended or are as old as they may become; a second if somebody cancels.
    fn drain(&mut self, cancel: &Cancel) -> Result<(), Problem> {
        let began = clock::monotonic_ns();
        let long = self.config.age.as_nanos() as u64;
        let open = self.backend.counts()?.open();
        if open > 0 {
            (self.events)(TrafficEvent::Draining { open });
        }
        let ends = |cancel: &Cancel| began + if cancel.is_cancelled() { GRACE_NS.min(long) } else { long };
        while self.awaits(began)? && clock::monotonic_ns() < ends(cancel) {
            self.take()?;
            nap(self.backend.pause_between_looks())?;
        }
        self.take()
    }

    /// Whether assigned connections are open, or, for a moment, the kernel has counted some whose end nobody has told yet.
    fn awaits(&mut self, began: u64) -> Result<bool, Problem> {
        let (opens, counts) = self.opens.now(self.backend.as_mut())?;
        let untold = opens.is_some_and(|opens| opens > counts.passive);
        Ok(counts.open() > 0 || (untold && clock::monotonic_ns() < began + GRACE_NS))
    }

    fn end(mut self, cancel: &Cancel) -> Result<TrafficAnswer, Problem> {
        let none_open = self.backend.counts()?.open() == 0;
        self.take()?;
        self.assessor.score(clock::monotonic_ns(), none_open);
        self.say_stopped();
        let kept = self.kept()?;
        self.say_holdback(&kept);
        let state = if cancel.is_cancelled() { State::Stopped } else { State::Finished };
        self.record.end(state, &kept)?;
        Ok(TrafficAnswer::Report(Box::new(kept.report)))
    }

    fn kept(&mut self) -> Result<Kept, Problem> {
        let (opens, counts) = self.opens.now(self.backend.as_mut())?;
        // What the count saw end is taken, too: no account is ahead of another.
        self.take()?;
        let tally = tally(opens, &counts, &self.outcomes);
        let run = TrafficRun { id: &self.record.id, backend: self.backend.name() };
        Ok(self.assessor.kept(run, tally, self.keys.draw))
    }
}

fn nap(long: Duration) -> Result<(), Problem> {
    poll::wait_readable(&[], Some(long)).map(drop).map_err(|error| Problem::internal(error.to_string()))
}

fn tally(opens: Option<u64>, counts: &TrafficCounts, outcomes: &Outcomes) -> TrafficTally {
    let mut arms = outcomes.tallies.clone();
    for (at, arm) in arms.iter_mut().enumerate() {
        arm.assigned = counts.assigned[at];
        arm.lost = counts.lost[at];
        arm.open = arm.assigned.saturating_sub(arm.recorded + arm.lost);
    }
    TrafficTally {
        passive_opens: opens,
        seen: counts.passive,
        left_alone: counts.other_port + counts.private + counts.own_cc,
        not_assigned: counts.paused + counts.outside + counts.without_note,
        arms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms_of_levels;

    fn config() -> TrafficConfig {
        let arms = arms_of_levels(&["initcwnd=10,32".to_owned()]).unwrap();
        TrafficConfig { ports: vec![443, 8443], arms, ..TrafficConfig::default() }
    }

    #[test]
    fn whom_it_touches_is_one_sentence_with_the_ports_and_who_is_left_alone() {
        let said = whom(&config());
        assert!(said.contains("port 443, 8443 from public addresses;"), "{said}");
        assert!(said.contains("left alone: loopback, private ranges, other ports"), "{said}");
        let said = whom(&TrafficConfig { private: true, ..config() });
        assert!(said.contains("from public and private addresses; left alone: loopback, other ports"), "{said}");
    }

    #[test]
    fn a_plan_has_the_shares_of_the_first_connections_and_does_nothing() {
        let request = TrafficRequest { config: config(), dry_run: true, ..TrafficRequest::default() };
        let answer = start(&request, &mut |_| panic!("nothing happens"), &Cancel::new()).unwrap();
        let TrafficAnswer::Plan(plan) = answer else { panic!("{answer:?}") };
        let shares: Vec<f64> = plan.arms.iter().map(|arm| arm.share).collect();
        assert_eq!((plan.arms[1].name.as_str(), shares), ("initcwnd=32", vec![0.95, 0.05]));
    }

    #[test]
    fn every_connection_is_in_one_account() {
        let mut outcomes = Outcomes::new(&config());
        outcomes.tallies[1].recorded = 3;
        let mut counts =
            TrafficCounts { passive: 20, other_port: 4, private: 3, paused: 1, ..TrafficCounts::default() };
        (counts.assigned[0], counts.assigned[1], counts.lost[1]) = (6, 6, 2);
        let tally = tally(Some(21), &counts, &outcomes);
        assert_eq!((tally.left_alone, tally.not_assigned, tally.missed()), (7, 1, Some(1)));
        assert_eq!((tally.arms[0].open, tally.arms[1].open), (6, 1));
        assert_eq!(tally.discrepancies().len(), 2, "{:?}", tally.discrepancies());
    }
}
