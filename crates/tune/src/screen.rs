//! `tune --screen`: many knobs of two levels at once, then the best combination against the current settings.

use super::answer::{ScreenPlan, TuneAnswer, whole_time};
use super::delay_room::DelayRoom;
use super::drive::{Driver, Place};
use super::event::{Sink, TuneEvent};
use super::finish;
use super::measure::Start;
use super::notebook::{Notebook, config};
use super::observed::Attempts;
use super::plan::Plan;
use super::report::ReportedExperiment;
use super::request::TuneRequest;
use super::screen_report::{ScreenFindings, ScreenReport, settings_of};
use super::session::{Pilot, PreparedExperiment, Session};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use std::time::Duration;
use wt_experiment::factorial::{Run, Screen, ScreenError};
use wt_experiment::{Config, TrialEnd};
use wt_journal::{ExperimentConfig, Factor, ScreenConfig, ScreenRules, State, TuneConfig};
use wt_problem::Problem;
use wt_report::TuneReport;
use wt_setup::design::{self, Design, DesignFacts, Levels};
use wt_setup::{Budget, NamedArm, tunnel_problem};
use wt_sys::clock::monotonic_ns;
use wt_trial::{PathFacts, Phase, TrialRecord, TrialSpec, Tunnel};
use wt_units::{Assignment, Level, Settings, counted, format_minutes};

/// A confirmation with fewer trials than this can hardly show anything.
const LEAST_TO_CONFIRM: usize = 24;
/// Rounds that a screen has by default, at least: below ten no effect can be shown, however large.
const USUAL_ROUNDS: usize = 16;

impl<T: Tunnel> Session<'_, T> {
    /// Whether these knobs and levels can be screened here.
    ///
    /// # Errors
    /// A usage failure that says what is wrong with them.
    pub(crate) fn check_screen(&self, path: &PathFacts) -> Result<(), Problem> {
        let factors = self.factors(path)?;
        for run in [vec![false; factors.len()], vec![true; factors.len()]] {
            let settings = settings_of(&factors, &run);
            self.tunnel.check(&settings).map_err(|error| tunnel_problem(&error))?;
        }
        Screen::new(factors.len(), Config::new(2).alpha).map(drop).map_err(|error: ScreenError| {
            Problem::usage(error.to_string()).hint("--screen --levels sack=on,off --levels timestamps=on,off")
        })
    }

    /// The knobs with their two levels, as they were written.
    fn factors(&self, path: &PathFacts) -> Result<Vec<Factor>, Problem> {
        let current = self.tunnel.current();
        let mss = super::live::payload(self.live.as_ref(), path, self.tunnel.header_len());
        let known =
            DesignFacts { current: &current, path, congestion_controls: &self.controls, mss, best_mtu: self.best_mtu };
        let resolve = |level: &Level| level.clone().resolve(known.full_packet());
        let mut factors: Vec<Factor> = Vec::new();
        for Levels { knob, levels } in &self.request.levels {
            let [low, high] = levels.as_slice() else {
                return Err(Problem::usage(format!(
                    "a screen takes two levels of each knob; {knob} has {}",
                    levels.len()
                ))
                .hint(format!("--levels {knob}=LEVEL,LEVEL, or no --screen to compare levels one by one")));
            };
            let (low, high) = (resolve(low), resolve(high));
            if low == high || factors.iter().any(|factor| factor.knob == *knob) {
                return Err(Problem::usage(format!(
                    "{knob} needs two different levels, and is named once in a screen"
                )));
            }
            factors.push(Factor { knob: *knob, low, high });
        }
        Ok(factors)
    }

    /// What a screen compares.
    fn screened(&self, factors: &[Factor], path: PathFacts) -> PreparedExperiment {
        let (current, design) = (self.tunnel.current(), design_of(factors));
        PreparedExperiment { current, design, expected: None, config: Config::new(2), delay: None, path }
    }

    /// What would be run.
    pub(crate) fn screen_plan(&self, path: PathFacts, plan: &Plan) -> Result<TuneAnswer, Problem> {
        let factors = self.factors(&path)?;
        let prepared = self.screened(&factors, path);
        let screen = Screen::new(factors.len(), prepared.config.alpha).map_err(|e| Problem::usage(e.to_string()))?;
        let (rounds, most) = self.affordable(&screen, &prepared, plan)?;
        Ok(TuneAnswer::ScreenPlan(Box::new(ScreenPlan {
            schema_version: 1,
            trial_s: plan.length().as_secs_f64(),
            expected_s: whole_time(plan, &prepared.path, most).as_secs_f64(),
            path: prepared.path,
            current: prepared.current,
            factors,
            rounds,
            trials_per_round: screen.trials_per_round(),
            max_trials: most,
            fewest_rounds: screen.fewest_rounds(),
            reach: can_show_nothing(rounds, screen.fewest_rounds()),
        })))
    }

    /// Screens, confirms what came out, and reports.
    pub(crate) fn screen(
        mut self,
        path: PathFacts,
        plan: Plan,
        pilot: Pilot,
        events: Sink<'_>,
    ) -> Result<TuneAnswer, Problem> {
        let factors = self.factors(&path)?;
        let prepared = self.screened(&factors, path);
        let screen = Screen::new(factors.len(), prepared.config.alpha).map_err(|e| Problem::usage(e.to_string()))?;
        let (rounds, most) = self.affordable(&screen, &prepared, &plan)?;
        // Trials may take longer than was planned: one deadline for both, of which the confirmation has the last third.
        let (now, time) = (monotonic_ns(), self.time().map(|time| time.as_nanos() as u64));
        let [early, late] = [time.map(|time| now + time - time / 3), time.map(|time| now + time)];
        let mut screening = self.run_screen(&prepared, &plan, factors, screen, rounds, pilot, early, events)?;
        let left = most.saturating_sub(screening.screened.found.trials);
        screening.confirmation = self.confirm(&screening, &prepared, &plan, left, late, events)?;
        screening.stopped |= self.cancel.is_cancelled();
        screening.confirm_by = self.confirm_by(&screening);
        Ok(TuneAnswer::Screen(Box::new(screening)))
    }

    /// How many rounds fit into the screen's part of the budget, and the trials of all of it.
    fn affordable(
        &self,
        screen: &Screen,
        prepared: &PreparedExperiment,
        plan: &Plan,
    ) -> Result<(usize, usize), Problem> {
        let per_trial = plan.per_trial(Duration::from_micros(prepared.path.rtt_us));
        let bytes = self.bytes_per_trial(&prepared.path, plan);
        let round = screen.trials_per_round();
        let usual = Budget::Time(Duration::from_secs(150)).trials(per_trial, bytes);
        let most = match (self.request.budget, &self.live) {
            (Some(Budget::Size(total)), Some(live)) => live.trials_of(total, bytes),
            (Some(budget), _) => budget.trials(per_trial, bytes),
            (None, _) => usual.max(USUAL_ROUNDS * round + LEAST_TO_CONFIRM),
        };
        // A third is kept for the confirmation, which is what counts in the end, and enough for one, if the rest can show anything.
        let third = most / 3;
        let can_confirm = most.saturating_sub(LEAST_TO_CONFIRM) / round >= screen.fewest_rounds();
        let rounds = (most - if can_confirm { third.max(LEAST_TO_CONFIRM) } else { third }) / round;
        if rounds < 2 {
            return Err(Problem::usage(format!(
                "the budget allows {}, and two rounds of the screen with a confirmation take {}",
                counted(most, "trial"),
                round * 3
            ))
            .hint("a larger --budget, or a shorter --trial"));
        }
        Ok((rounds, most))
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are different things that a screen starts from")]
    fn run_screen(
        &mut self,
        prepared: &PreparedExperiment,
        plan: &Plan,
        factors: Vec<Factor>,
        mut screen: Screen,
        rounds: usize,
        (spec, outcome, started): Pilot,
        until_ns: Option<u64>,
        events: Sink<'_>,
    ) -> Result<ScreenReport, Problem> {
        let more = TuneConfig { hold: self.held(), ..TuneConfig::default() };
        let plan = &Plan { order_seed: self.request.draw_order_seed()?, ..plan.clone() };
        let tune = config(self.request, prepared, plan, more);
        let rules = ScreenRules { factors: Some(factors.clone()), rounds: Some(rounds), ..ScreenRules::default() };
        let config = ExperimentConfig::Screen(Box::new(ScreenConfig { screen: rules, tune }));
        let mut notebook = Notebook::create(self.request, &self.tunnel, prepared, plan, config)?;
        let plan = Plan { id: notebook.id().to_owned(), ..plan.clone() };
        notebook.keep(TrialSpec { experiment: plan.id.clone(), ..spec }, outcome, started)?;
        let trials = rounds * screen.trials_per_round();
        let expected = whole_time(&plan, &prepared.path, trials);
        if let Some(warning) = can_show_nothing(rounds, screen.fewest_rounds()) {
            events(TuneEvent::note(warning));
        }
        events(TuneEvent::begin(&plan, prepared.design.labels(), trials, expected));
        events(TuneEvent::note(format!(
            "{} knobs at once, rounds of {} trials, at most {rounds} of them: about {}, then the confirmation",
            factors.len(),
            screen.trials_per_round(),
            format_minutes(expected)
        )));
        let mut driver = Driver {
            tunnel: &mut self.tunnel,
            notebook: &mut notebook,
            events,
            cancel: self.cancel,
            turns: &mut self.turns,
            plan,
            records: Vec::new(),
            spent: Duration::ZERO,
            ran: 0,
            ended: None,
            until_ns,
            room: DelayRoom::default(),
        };
        driver.warm_up()?;
        let stopped = !rounds_of(&mut driver, &factors, &mut screen, rounds)?;
        (driver.events)(TuneEvent::Finished);
        let records: Vec<TrialRecord> = driver.records;
        let screened = ScreenFindings::of(factors, prepared.config.alpha, &records)?;
        let stored = notebook.stored()?;
        let report =
            ScreenReport { stored, screened, confirmation: None, stopped, is_running: false, confirm_by: None };
        notebook.end(if stopped { State::Stopped } else { State::Finished }, &report.verdict())?;
        Ok(report)
    }

    /// What tries what came out against the current settings, if that is still to be done.
    fn confirm_by(&self, screening: &ScreenReport) -> Option<String> {
        if screening.confirmation.is_some() || screening.is_current() {
            return None;
        }
        let chosen = screening.screened.chosen();
        let settings = chosen.iter().map(|(knob, level)| Assignment { knob, level: level.clone() }).collect();
        let arms = vec![NamedArm { name: String::new(), settings }];
        let (screen, levels, budget) = (false, Vec::new(), None);
        Some(TuneRequest { screen, levels, budget, arms, ..self.request.clone() }.command_line())
    }

    /// Tries what came out against the current settings, in rounds of its own.
    fn confirm(
        &mut self,
        screening: &ScreenReport,
        prepared: &PreparedExperiment,
        plan: &Plan,
        left: usize,
        until_ns: Option<u64>,
        events: Sink<'_>,
    ) -> Result<Option<TuneReport>, Problem> {
        let chosen = screening.screened.chosen();
        let holds = chosen.iter().all(|(knob, level)| prepared.current.get(knob) == Some(level));
        let least = plan.per_trial(Duration::ZERO) * LEAST_TO_CONFIRM as u32;
        let late = until_ns.is_some_and(|until| monotonic_ns() + least.as_nanos() as u64 > until);
        if screening.stopped || holds {
            return Ok(None);
        }
        if late || left < LEAST_TO_CONFIRM {
            events(TuneEvent::note(format!(
                "too little of the budget is left to try {chosen} against the current settings: that takes {LEAST_TO_CONFIRM} \
                 trials at least"
            )));
            return Ok(None);
        }
        let arm = |settings: &Settings, label: String| design::Arm {
            settings: settings.clone(),
            label,
            why: format!("came out of the screen {}", screening.stored.id),
        };
        let arms =
            vec![arm(&Settings::new(), format!("current ({})", prepared.current)), arm(&chosen, chosen.to_string())];
        let prepared = PreparedExperiment {
            path: prepared.path.clone(),
            current: prepared.current.clone(),
            design: Design { arms, plateau: None },
            expected: None,
            config: Config { max_trials: Some(left), ..Config::new(2) },
            delay: None,
        };
        let mut start = Start::fresh(&prepared, None)?;
        start.until_ns = until_ns;
        start.more.confirms = Some(screening.stored.id.clone());
        let plan = Plan { seed: plan.seed.wrapping_add(1 << 32), ..plan.clone() };
        let mut measured = self.measure(&prepared, plan, start, events)?;
        let stored = finish::close(&mut measured, None)?;
        let (experiment, records) = (&measured.experiment, measured.records.as_slice());
        Ok(Some(
            ReportedExperiment {
                stored: &stored,
                is_running: false,
                continued_by: None,
                records,
                experiment,
                history: None,
            }
            .report(),
        ))
    }
}

/// That so many rounds are too few for the clearest effect; `None` if they aren't.
pub(crate) fn can_show_nothing(rounds: usize, fewest: usize) -> Option<String> {
    (rounds < fewest).then(|| {
        format!(
            "this budget can show no effect, however clear: {} of the screen fit into it, {fewest} are needed; a larger --budget or \
             a shorter --trial",
            counted(rounds, "round")
        )
    })
}

/// Runs rounds, as many as there is time for; false where something else ended them.
pub(crate) fn rounds_of(
    driver: &mut Driver<'_>,
    factors: &[Factor],
    screen: &mut Screen,
    most: usize,
) -> Result<bool, Problem> {
    let mut rng = ChaCha12Rng::seed_from_u64(driver.plan.order_seed);
    for number in 1..=u32::try_from(most).unwrap_or(u32::MAX) {
        if driver.is_late(screen.trials_per_round()) {
            (driver.events)(TuneEvent::note("the time for the screen is up"));
            break;
        }
        let mut round: Vec<(Run, f64)> = Vec::new();
        for (place, run) in (1u32..).zip(screen.next_round(&mut rng)) {
            let at = Place {
                round: number,
                order: place,
                arm: place as usize,
                phase: Phase::Round,
                attempts: Attempts::default(),
                own_losses: false,
            };
            let Some(seen) = driver.place(&settings_of(factors, &run), at)? else {
                let waits = driver.ended.is_none() && !driver.cancel.is_cancelled() && !driver.turns.is_cut();
                return Ok(waits && driver.until_ns.is_some());
            };
            if seen.ended != TrialEnd::Void {
                round.push((run, seen.y));
            }
        }
        screen.record(&round).map_err(|error| Problem::internal(error.to_string()))?;
        if screen.is_decided() {
            break;
        }
    }
    Ok(true)
}

/// The current settings, and a name for each run of a round; what a run asks for differs from round to round.
fn design_of(factors: &[Factor]) -> Design {
    let runs = Screen::new(factors.len(), 0.05).map_or(0, |screen| screen.trials_per_round());
    let arm = |number: usize| design::Arm {
        settings: Settings::new(),
        label: if number == 0 { "current".to_owned() } else { format!("run {number}") },
        why: "a run of the screen".to_owned(),
    };
    Design { arms: (0..=runs).map(arm).collect(), plateau: None }
}

#[cfg(test)]
mod tests;
