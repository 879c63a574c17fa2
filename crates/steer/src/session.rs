use crate::answer::SCHEMA_VERSION;
use crate::assess::{Assessor, TRY};
use crate::assign;
use crate::assigner::Assigner;
use crate::backend::{Outcomes, Secrets, known_cc};
use crate::claims::{self, PortClaims};
use crate::opens::Opens;
use crate::record::{Record, StoredReport};
use crate::{OpenNow, PlannedArm, TrafficAnswer, TrafficEvent, TrafficPlan, TrafficRequest};
use std::collections::BTreeMap;
use std::time::Duration;
use wt_bpf::{TrafficCounts, TrafficRecords};
use wt_journal::State;
use wt_problem::Problem;
use wt_sys::{clock, poll};
use wt_traffic::{
    ConnectionFate, ConnectionOutcome, HoldbackState, ReceiverSettings, ResponseOutcome, TrafficConfig, TrafficRun,
    TrafficTally, TrafficUnit,
};
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
    // Whatever assigns them: a name that is mistyped, or isn't loaded yet, is told before anything begins.
    request.config.arms.iter().filter_map(|arm| arm.settings.cc()).try_for_each(known_cc)?;
    let secrets = Secrets::drawn(&request.config)?;
    if request.dry_run {
        if request.backend != crate::BackendChoice::Auto {
            assign::choose(request.backend, &request.config)?;
        }
        claims::are_free(request.backend, &request.config.ports)?;
        return Ok(TrafficAnswer::Plan(Box::new(plan(&request.config, &secrets)?)));
    }
    if !request.beside_programs {
        assign::alone(&wt_bpf::other_programs())?;
    }
    let assessor = Assessor::new(&request.config)?;
    let chosen = assign::choose(request.backend, &request.config)?;
    let mut claims = PortClaims::take(chosen, &request.config.ports)?;
    // What is current is what the host has by itself, and not what was left of another experiment.
    crate::record::put_back_settings()?;
    let mut backend = assign::begin(chosen, &request.config, &secrets)?;
    let opens = Opens::since_now(backend.as_mut())?;
    let record = Record::begin(request, backend.name())?;
    claims.name(&record.id);
    events(TrafficEvent::Begin {
        id: record.id.clone(),
        whom: whom(&request.config),
        touches: touches(&request.config),
        left_alone: left_alone(&request.config),
        backend: backend.name(),
        arms: request.config.arms.iter().map(|arm| arm.name.clone()).collect(),
        receiver_settings: ReceiverSettings::of(&request.config.arms),
    });
    let outcomes = Outcomes::new(&request.config, backend.times_responses()).not_below(backend.shortest_us());
    let began_ns = clock::monotonic_ns();
    let mut session = Session {
        config: &request.config,
        secrets,
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
        stopped: BTreeMap::new(),
        is_short_of_memory: false,
        next_memory_ns: began_ns,
        holdback: None,
        next_word_ns: began_ns + 2_000_000_000,
        is_unwritten: false,
    };
    session.assign(request.for_s.map(|seconds| ends_ns(began_ns, seconds)), cancel)?;
    session.drain(cancel)?;
    session.end(cancel)
}

/// When so many seconds are over, ns: never, where that is later than in 584 years.
fn ends_ns(began_ns: u64, seconds: f64) -> u64 {
    began_ns.saturating_add((seconds * 1e9) as u64)
}

/// Whom it touches.
fn touches(config: &TrafficConfig) -> String {
    let ports: Vec<String> = config.ports.iter().map(u16::to_string).collect();
    let clients = if config.private { "public and private addresses" } else { "public addresses" };
    format!("new connections to port {} from {clients}", ports.join(", "))
}

/// Whom it leaves alone.
fn left_alone(config: &TrafficConfig) -> String {
    let varies_cc = config.arms.iter().any(|arm| arm.settings.cc().is_some());
    let all = [
        (true, "this host"),
        (!config.private, "private ranges"),
        (!config.administrator, "the address from which you are logged in"),
        (varies_cc && !config.own_cc, "sockets with a congestion control of their own"),
        (true, "other ports, other network namespaces, and all that runs already"),
    ];
    all.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)).collect::<Vec<_>>().join(", ")
}

/// Both in one sentence.
fn whom(config: &TrafficConfig) -> String {
    format!("{}; left alone: {}", touches(config), left_alone(config))
}

fn plan(config: &TrafficConfig, secrets: &Secrets) -> Result<TrafficPlan, Problem> {
    let rate = crate::opens::hourly()?;
    let shares = config.shares(secrets.draw, 0, 0, &[]);
    let arm = |(arm, share): (&wt_traffic::TrafficArm, &f64)| PlannedArm {
        name: arm.name.clone(),
        settings: arm.settings.clone(),
        share: if config.unit == TrafficUnit::Slot { 1.0 / config.arms.len() as f64 } else { *share },
    };
    Ok(TrafficPlan {
        schema_version: SCHEMA_VERSION,
        whom: whom(config),
        touches: touches(config),
        left_alone: left_alone(config),
        arms: config.arms.iter().zip(&shares).map(arm).collect(),
        epoch_s: config.epoch.as_secs_f64(),
        open_now: OpenNow::look(config, secrets),
        backends: assign::backends_for(config),
        other_programs: wt_bpf::other_programs().iter().map(ToString::to_string).collect(),
        connections_per_hour: rate,
        expects: config.expectations(rate, &[0.05, 0.1, 0.2]),
        receiver_settings: ReceiverSettings::of(&config.arms),
    })
}

struct Session<'a> {
    config: &'a TrafficConfig,
    secrets: Secrets,
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
    /// The arms of which it has been said that they get no connections, and why.
    stopped: BTreeMap<usize, &'static str>,
    is_short_of_memory: bool,
    next_memory_ns: u64,
    /// What was last said of the holdback.
    holdback: Option<HoldbackState>,
    next_word_ns: u64,
    /// Whether it has been said that the journal takes no notes now.
    is_unwritten: bool,
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
            self.score(now, false)?;
            self.look_at_memory(now);
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
        let held: Vec<usize> = self.held_arms().into_keys().collect();
        self.config.shares(self.secrets.draw, epoch, self.assessor.analysis.treated(), &held)
    }

    /// The arms that get no connections now, and why.
    fn held_arms(&self) -> BTreeMap<usize, &'static str> {
        let analysis = &self.assessor.analysis;
        let mut held = BTreeMap::new();
        if self.is_short_of_memory {
            held.extend((1..self.config.arms.len()).map(|arm| (arm, "the kernel is short of memory for TCP")));
        }
        held.extend(
            analysis
                .paced_too_low()
                .into_iter()
                .map(|arm| (arm, "its pacing must not be below the median rate, and isn't known to be above it")),
        );
        held.extend(analysis.broken_arms().into_iter().map(|arm| (arm, "the kernel refuses its settings")));
        held.extend(analysis.stopped().into_iter().map(|arm| (arm, "a guardrail")));
        held
    }

    /// While the kernel is short of memory for TCP nothing is tried on anybody.
    fn look_at_memory(&mut self, now: u64) {
        if now >= self.next_memory_ns {
            self.next_memory_ns = now + 1_000_000_000;
            self.is_short_of_memory = wt_sys::tcp::is_short_of_memory();
        }
    }

    /// Scores the epochs that are old enough, with what is still open of them.
    fn score(&mut self, now: u64, none_open: bool) -> Result<(), Problem> {
        let ripe = self.assessor.ripe(now, none_open);
        if ripe.is_empty() {
            return Ok(());
        }
        let open = if none_open { TrafficRecords::default() } else { self.backend.still_open()? };
        // What has ended meanwhile is told by its record.
        self.take()?;
        for response in open.responses.iter().filter(|one| ripe.contains(&one.epoch)) {
            self.respond(self.outcomes.response(response));
        }
        for record in open.connections.iter().filter(|one| ripe.contains(&one.epoch)) {
            let Some(outcome) = self.outcomes.of(record) else { continue };
            let outcome = ConnectionOutcome { fate: ConnectionFate::Open, ..outcome };
            self.respond(self.outcomes.last_response(record, outcome.fate));
            self.assessor.record(&outcome);
        }
        ripe.into_iter().for_each(|epoch| self.assessor.score(epoch));
        Ok(())
    }

    fn respond(&mut self, outcome: Option<ResponseOutcome>) {
        if let Some(outcome) = outcome {
            self.assessor.respond(&outcome);
        }
    }

    fn begin(&mut self, now: u64) -> Result<(), Problem> {
        self.shares = self.shares_of(self.epoch);
        self.backend.begin(self.epoch, &self.shares)?;
        self.outcomes.begin(self.epoch, now);
        let place = self.config.drawn_place(self.secrets.draw, self.epoch);
        let held: Vec<usize> = self.held_arms().into_keys().collect();
        self.assessor.begin(self.epoch, &self.shares, place, now);
        self.assessor.hold(&held);
        self.epoch_ends_ns = now + self.config.epoch.as_nanos() as u64;
        (self.events)(TrafficEvent::Epoch { epoch: self.epoch, shares: self.shares.clone() });
        Ok(())
    }

    fn take(&mut self) -> Result<(), Problem> {
        let TrafficRecords { responses, connections } = self.backend.records()?;
        for response in &responses {
            self.respond(self.outcomes.response(response));
        }
        for record in &connections {
            let Some(outcome) = self.outcomes.of(record) else { continue };
            self.outcomes.count(&outcome);
            self.respond(self.outcomes.last_response(record, outcome.fate));
            self.assessor.record(&outcome);
        }
        Ok(())
    }

    /// Says which arms get no connections any more, and why.
    fn say_stopped(&mut self) {
        let held = self.held_arms();
        for (arm, why) in held.iter().filter(|(arm, why)| self.stopped.get(arm) != Some(why)) {
            let arm = self.config.arms.get(*arm).map_or_else(String::new, |arm| arm.name.clone());
            (self.events)(TrafficEvent::Stopped { arm, why: (*why).to_owned() });
        }
        self.stopped = held;
    }

    /// Says how it goes and writes it down, now and then.
    fn word(&mut self, now: u64) -> Result<(), Problem> {
        if now < self.next_word_ns {
            return Ok(());
        }
        let so_far = now - self.began_ns;
        self.next_word_ns = now + WORD_NS.max(so_far / 100);
        let kept = self.kept()?;
        let noted = self.record.note(&kept);
        if noted.is_err() {
            self.next_word_ns = now + WORD_NS;
        }
        self.say_unwritten(noted);
        self.say_holdback(&kept);
        let (tally, headline) = (kept.tally, kept.headline);
        (self.events)(TrafficEvent::Progress { elapsed_s: so_far as f64 / 1e9, tally, headline });
        Ok(())
    }

    /// Says once that the journal takes no notes now: only the last one matters, and what was found is in memory.
    fn say_unwritten(&mut self, noted: Result<(), Problem>) {
        let before = std::mem::replace(&mut self.is_unwritten, noted.is_err());
        if let Err(problem) = noted
            && !before
        {
            let text = format!("{}. It goes on, and is written as soon as it can be.", problem.what);
            (self.events)(TrafficEvent::Warning { text });
        }
    }

    fn say_holdback(&mut self, kept: &StoredReport) {
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
        self.score(clock::monotonic_ns(), none_open)?;
        self.say_stopped();
        let mut kept = self.kept()?;
        kept.report.end(self.config);
        self.say_holdback(&kept);
        let state = if cancel.is_cancelled() { State::Stopped } else { State::Finished };
        match self.record.end(state, &kept) {
            Ok(()) => Ok(TrafficAnswer::Report(Box::new(kept.report))),
            Err(problem) => {
                (self.events)(TrafficEvent::Unwritten { report: Box::new(kept.report) });
                Err(problem)
            }
        }
    }

    fn kept(&mut self) -> Result<StoredReport, Problem> {
        let (opens, counts) = self.opens.now(self.backend.as_mut())?;
        // What the count saw end is taken, too: no account is ahead of another.
        self.take()?;
        let tally = tally(opens, &counts, &self.outcomes);
        let run = TrafficRun { id: &self.record.id, backend: self.backend.name() };
        Ok(self.assessor.kept(run, tally, self.secrets.draw))
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
        left_alone: counts.left_alone(),
        own_cc: counts.own_cc,
        short: outcomes.short.filter(|short| short.connections > 0),
        not_assigned: counts.not_assigned(),
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
    fn no_time_is_so_long_that_it_is_over_before_it_has_begun() {
        assert_eq!(ends_ns(7, 2.5), 2_500_000_007);
        for long in [213_504.0 * 86_400.0, 1e6 * 86_400.0, f64::MAX] {
            assert_eq!(ends_ns(7, long), u64::MAX, "{long}");
        }
    }

    #[test]
    fn whom_it_touches_is_one_line_and_who_is_left_alone_is_named() {
        let said = touches(&config());
        assert_eq!(said, "new connections to port 443, 8443 from public addresses");
        let alone = left_alone(&config());
        assert!(alone.starts_with("this host, private ranges, the address from which"), "{alone}");
        let asked = TrafficConfig { private: true, administrator: true, ..config() };
        assert!(
            whom(&asked).contains("public and private addresses; left alone: this host, other ports"),
            "{}",
            whom(&asked)
        );
        let cc = TrafficConfig { arms: arms_of_levels(&["cc=cubic,bbr".to_owned()]).unwrap(), ..asked };
        assert!(left_alone(&cc).contains("a congestion control of their own"), "{}", left_alone(&cc));
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
        let mut outcomes = Outcomes::new(&config(), false);
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
