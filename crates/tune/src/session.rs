//! One run, from the path to the answer.

use super::answer::{PathWithLoss, TuneAnswer, TunePlan, model_of, whole_time};
use super::event::{Sink, TuneEvent};
use super::live;
use super::path_rtt;
use super::plan::{Plan, aside, deadline_of};
use super::request::TuneRequest;
use super::turns::RoundTurns;
use std::time::Duration;
use wt_experiment::{Config, Method, PlateauConfig};
use wt_forecast::{Expectation, Oracle};
use wt_problem::Problem;
use wt_report::tune::DelayRules;
use wt_setup::design::{self, Design, DesignFacts, DesignQuestion};
use wt_setup::{Budget, tunnel_problem, workload};
use wt_sys::clock::unix_us;
use wt_trial::{Amount, Cancel, Holding, PathFacts, Phase, TrialOutcome, TrialSpec, Tunnel, TunnelKind, Workload};
use wt_units::{BitsPerSecond, Knob, Level, Settings, counted};

/// One run.
pub(crate) struct Session<'a, T> {
    pub(crate) request: &'a TuneRequest,
    pub(crate) tunnel: Holding<T>,
    /// The MTU up to a bound that wastes least of the bottleneck's frames or cells.
    pub(crate) best_mtu: &'a dyn Fn(u64) -> Option<u64>,
    pub(crate) controls: Vec<String>,
    pub(crate) cancel: &'a Cancel,
    /// Turns on what is shared with others.
    pub(crate) turns: RoundTurns,
    /// The path's model, where enough is known of the path.
    pub(crate) oracle: Option<Oracle>,
    /// On the real path: what is known of the remote host.
    pub(crate) live: Option<live::Live>,
    /// It was told that another experiment runs on this machine.
    pub(crate) warned: bool,
}

impl<'a, T> Session<'a, T> {
    /// One of which nothing else is known: no model, no remote host, no MTU that wastes least.
    pub(crate) fn new(
        request: &'a TuneRequest,
        tunnel: Holding<T>,
        controls: Vec<String>,
        turns: RoundTurns,
        cancel: &'a Cancel,
    ) -> Self {
        let best_mtu = &|_| None;
        Self { request, tunnel, best_mtu, controls, cancel, turns, oracle: None, live: None, warned: false }
    }
}

/// The trial from which the path was learnt, and when it began.
pub(crate) type Pilot = (TrialSpec, TrialOutcome, i64);

/// What is fixed before the first round.
pub(crate) struct PreparedExperiment {
    pub(crate) path: PathFacts,
    pub(crate) current: Settings,
    pub(crate) design: Design,
    /// What the model expects of it.
    pub(crate) expected: Option<Expectation>,
    pub(crate) config: Config,
    /// How less delay is claimed, if it is.
    pub(crate) delay: Option<DelayRules>,
}

/// More rounds than the clearest gain ever takes.
const MOST_ROUNDS: usize = 40;

/// How many trials are run at most where nobody says: the usual number, or as many as show, where hardly anything is noise, that
/// none of so many settings gains, with one more round for trials that the machine spoils. Where even four rounds of all take longer
/// than usual, eight rounds: enough for settings to be dropped and the rest to be compared.
fn enough(usual: usize, arms: usize, alpha: f64) -> usize {
    if usual < arms * 4 { arms * 8 } else { usual.max(arms * (wt_experiment::fewest_to_exclude(alpha) + 1)) }
}

/// At least `most` trials, as many as can show a clear gain with a round to spare: how many that takes depends on the number of
/// settings, on what the model gives each of them of the risk, and on whether the smallest sufficient level of a knob is sought.
pub(crate) fn enough_for_a_gain(most: usize, config: &Config) -> usize {
    let shows = |max_trials: usize| {
        let config = Config { max_trials: Some(max_trials), ..config.clone() };
        matches!(wt_experiment::fewest_rounds(&config), Ok(Some(_)))
    };
    let by_rounds = (0..MOST_ROUNDS).map(|rounds| most + rounds * config.arms);
    by_rounds.into_iter().find(|most| shows(most.saturating_sub(config.arms).max(config.arms))).unwrap_or(most)
}

/// That a budget is too small for the clearest gain, and what isn't.
fn can_show_nothing(prepared: &PreparedExperiment) -> String {
    let (most, arms) = (prepared.config.max_trials.unwrap_or(0), prepared.design.arms.len());
    format!(
        "this budget can show no gain, however clear: {most} trials are {} of {arms} settings; a larger --budget or fewer \
         settings can",
        counted(most / arms.max(1), "round")
    )
}

impl<T: Tunnel> Session<'_, T> {
    /// Says before the first trial if none of them can show anything.
    pub(crate) fn warn_of_a_small_budget(&self, prepared: &PreparedExperiment, events: Sink<'_>) {
        if matches!(wt_experiment::fewest_rounds(&prepared.config), Ok(None)) {
            events(TuneEvent::note(can_show_nothing(prepared)));
        }
        let lacks = self.lacks_room_for_delay(prepared).filter(|(_, is_warned_of)| *is_warned_of);
        if let Some((text, _)) = lacks {
            events(TuneEvent::note(text));
        }
    }

    /// What to say of a budget that keeps no room for the test of less delay; whether that is told before each run.
    pub(crate) fn lacks_room_for_delay(&self, prepared: &PreparedExperiment) -> Option<(String, bool)> {
        let most = prepared.config.max_trials.unwrap_or(0);
        self.delay_room(prepared, None, most).lacks(most, prepared.design.arms.len())
    }

    /// What would be run; `on_delay` is a sentence on the test of less delay.
    pub(crate) fn planned(&self, prepared: &PreparedExperiment, plan: &Plan, on_delay: Option<String>) -> TuneAnswer {
        let most = prepared.config.max_trials.unwrap_or(0);
        let (model, model_notes) = model_of(prepared.expected.as_ref());
        let fewest_rounds = wt_experiment::fewest_rounds(&prepared.config).ok().flatten();
        let reach = match fewest_rounds {
            Some(rounds) => format!("a gain shows after {rounds} rounds at the earliest, however clear it is"),
            None => can_show_nothing(prepared),
        };
        TuneAnswer::Plan(Box::new(TunePlan {
            schema_version: 1,
            path: PathWithLoss { facts: prepared.path.clone(), loss: self.live.as_ref().and_then(live::Live::loss) },
            current: prepared.current.clone(),
            arms: prepared.design.arms.clone(),
            max_trials: most,
            fewest_rounds,
            model,
            trial_s: plan.length().as_secs_f64(),
            expected_s: whole_time(plan, &prepared.path, most).as_secs_f64(),
            expected_bytes: self.bytes_at_most(plan, most),
            model_notes,
            cost_notes: std::iter::once(reach).chain(on_delay).chain(self.foreseen(plan, most)).collect(),
        }))
    }

    /// How each trial is run.
    pub(crate) fn plan(&self, path: &PathFacts) -> Plan {
        if let Some(live) = &self.live {
            return live.plan(self.request, path);
        }
        let rtt = Duration::from_micros(path.rtt_us);
        let usual = (rtt * 75).clamp(Duration::from_secs(3), Duration::from_secs(60));
        let length = self.request.trial.unwrap_or_else(|| self.request.workload.usual_time().unwrap_or(usual));
        let workload = self.request.each_trial(length);
        let rate = BitsPerSecond(path.physical_goodput_bps.unwrap_or(100_000_000).max(8));
        let expected = workload.time().unwrap_or_else(|| workload::expected(&workload, rtt, rate));
        let deadline = deadline_of(&workload, expected, rtt);
        Plan {
            id: String::new(),
            seed: self.request.seed,
            order_seed: 0,
            workload,
            expected,
            // The path is ours and is emptied before each trial; the ends need a few round trips to let go. A model doesn't.
            cool_down: if self.tunnel.kind() == TunnelKind::Sim {
                Duration::ZERO
            } else {
                (rtt * 4).clamp(Duration::from_millis(50), Duration::from_secs(5))
            },
            deadline,
        }
    }

    /// Says once if other experiments run on this machine.
    pub(crate) fn warn_of_others(&mut self, others: &[String], events: Sink<'_>) {
        let Some(other) = others.first().filter(|_| !self.warned) else { return };
        self.warned = true;
        let text = format!("{other} runs on this machine, too: each disturbs the other; wait for it, or stop one");
        events(TuneEvent::Warning { text });
    }

    /// Learns the RTT that TCP sees: with a window of half the bandwidth-delay product no queue builds up.
    pub(crate) fn pilot(&mut self, facts: &PathFacts, events: Sink<'_>) -> Result<Pilot, Problem> {
        // Before anything is measured: what the path is taken for comes from here.
        self.warn_of_others(&wt_setup::journal::running(), events);
        if self.live.is_some() {
            return self.pilot_live(facts, events);
        }
        let rtt = Duration::from_micros(facts.rtt_us);
        let length = (rtt * 20).clamp(Duration::from_millis(1500), Duration::from_secs(20));
        events(TuneEvent::note(format!("measuring the RTT first ({:.1} s)", length.as_secs_f64())));
        let mss = live::payload(self.live.as_ref(), facts, self.tunnel.header_len());
        let window = path_rtt::pilot_segments(facts, mss) * mss;
        let mut settings = Settings::new().with(Knob::Rwin, Level::Number(window));
        if self.tunnel.current().number(Knob::Mtu).is_some_and(|mtu| mtu > facts.pmtu) {
            settings.set(Knob::Mtu, Level::Number(facts.pmtu));
        }
        let spec = TrialSpec {
            phase: Phase::Pilot,
            settings,
            workload: Workload::Bulk { direction: self.request.payload_direction(), amount: Amount::Time(length) },
            deadline: length + Duration::from_secs(30),
            ..aside(&self.plan(facts), Phase::Pilot)
        };
        let started = unix_us();
        let outcome = self.tunnel.run(&spec, self.turns.cancel(self.cancel)).map_err(|error| tunnel_problem(&error))?;
        Ok((spec, outcome, started))
    }

    /// Chooses what is compared.
    pub(crate) fn prepare(&self, path: PathFacts, plan: &Plan) -> Result<PreparedExperiment, Problem> {
        let current = self.current_beside(&self.levels_asked_for());
        let known = DesignFacts {
            current: &current,
            path: &path,
            congestion_controls: &self.controls,
            mss: live::payload(self.live.as_ref(), &path, self.tunnel.header_len()),
            best_mtu: self.best_mtu,
        };
        let mut design = match self.request.identical {
            Some(candidates) => design::identical(candidates, &known)?,
            None => {
                let knobs = self.knobs();
                let (levels, arms) = (self.request.levels.as_slice(), self.request.arms.as_slice());
                let baseline = self.request.baseline.as_ref();
                design::design_of(&DesignQuestion { knobs: &knobs, levels, baseline, arms }, &known)?
            }
        };
        for arm in &design.arms {
            self.tunnel.check(&arm.settings).map_err(|error| tunnel_problem(&error))?;
        }
        let oracle = self.oracle.as_ref().filter(|_| self.request.identical.is_none());
        let expected =
            oracle.and_then(|oracle| oracle.choose(&mut design, &plan.workload, &path, &design::Arm::is_asked_for));
        let mut config = Config::new(design.arms.len());
        let (alpha, delay) = self.request.split(config.alpha, &plan.workload);
        config.alpha = alpha;
        let weights = expected.as_ref().map(Expectation::weights);
        config.weights = weights.filter(|weights| weights.iter().any(|weight| *weight != weights[0]));
        let asked: Vec<Settings> = design.arms.iter().map(|arm| arm.settings.clone()).collect();
        if let Some(square) = wt_report::tune::square(&asked) {
            // What two settings do to each other is told by rounds that have all four.
            config.method = Method::Uniform;
            config.cells = square.to_vec();
        }
        let plateau = design.plateau.as_ref();
        config.plateau = plateau.map(|(_, levels)| PlateauConfig {
            epsilon: self.request.epsilon.get(),
            strict: self.request.strict,
            ..PlateauConfig::new(levels.clone())
        });
        let per_trial = plan.per_trial(Duration::from_micros(path.rtt_us));
        let bytes = self.bytes_per_trial(&path, plan);
        let most = match (self.request.budget, &self.live) {
            (Some(Budget::Size(total)), Some(live)) => live.trials_of(total, bytes),
            (Some(budget), _) => budget.trials(per_trial, bytes),
            (None, _) => {
                let usual = Budget::Time(Duration::from_secs(150)).trials(per_trial, bytes);
                enough_for_a_gain(enough(usual, design.arms.len(), config.alpha), &config)
            }
        };
        if most < design.arms.len() * 2 {
            return Err(Problem::usage(format!(
                "the budget allows {}, and {} settings need at least {} to be compared at all",
                counted(most, "trial"),
                design.arms.len(),
                design.arms.len() * 2
            ))
            .hint("a larger --budget, shorter --trial, or fewer --knobs and --levels"));
        }
        config.max_trials = Some(most);
        Ok(PreparedExperiment { path, current, design, expected, config, delay })
    }

    /// Whether anything stands in the way of the trials right now.
    pub(crate) fn stands_ready(&mut self, prepared: &PreparedExperiment) -> Result<(), Problem> {
        let arms: Vec<&Settings> = prepared.design.arms.iter().map(|arm| &arm.settings).collect();
        self.tunnel.stands_ready(&arms).map_err(|error| tunnel_problem(&error))
    }

    /// What is varied; nothing that is held.
    pub(crate) fn knobs(&self) -> Vec<Knob> {
        let mut knobs = self.knobs_or_usual();
        knobs.retain(|knob| self.tunnel.held().get(*knob).is_none());
        knobs
    }

    fn knobs_or_usual(&self) -> Vec<Knob> {
        match &self.request.knobs {
            Some(knobs) => knobs.clone(),
            // Who names levels or arms has said what is compared.
            None if !self.request.levels.is_empty() || !self.request.arms.is_empty() => Vec::new(),
            // A page is over before much else matters than how it starts.
            None if self.request.workload.is_page() => vec![Knob::Initcwnd, Knob::Initrwnd],
            None => self.tunnel.usual_knobs(self.request.payload_direction()),
        }
    }

    /// How many bytes a trial may move.
    pub(crate) fn bytes_per_trial(&self, path: &PathFacts, plan: &Plan) -> u64 {
        if let Some(size) = plan.workload.size() {
            return size.get().max(1);
        }
        let assumed = self.live.as_ref().map_or(100_000_000, |live| live.rate().get());
        let rate = BitsPerSecond(path.physical_goodput_bps.unwrap_or(assumed));
        (rate * plan.length()).get().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha12Rng;
    use wt_experiment::{Experiment, Observation};

    #[test]
    fn a_slow_path_gets_eight_rounds_and_a_fast_one_its_time_where_that_is_enough() {
        assert_eq!([enough(7, 2, 0.05), enough(10, 4, 0.05), enough(900, 9, 0.05)], [8 * 2, 8 * 4, 900]);
    }

    #[test]
    fn without_a_budget_there_are_trials_enough_for_the_clearest_gain() {
        for arms in [2, 3, 5, 6, 7, 9, 16] {
            for alpha in [0.05, 0.04, 0.01] {
                let flat = Config { alpha, ..Config::new(arms) };
                let last_two = |arm| if arm + 2 >= arms { 1.0 } else { 0.5 };
                let expected = Config { weights: Some((1..arms).map(last_two).collect()), ..flat.clone() };
                let levels = |config: &Config| Config {
                    plateau: Some(PlateauConfig::new((1..arms).collect())),
                    ..config.clone()
                };
                let square = Config { method: Method::Uniform, cells: (0..arms.min(4)).collect(), ..flat.clone() };
                for config in [levels(&flat), levels(&expected), flat, expected, square] {
                    let most = enough_for_a_gain(enough(arms * 5, arms, alpha), &config);
                    // One round may be spoilt.
                    let shown = |max_trials| {
                        let config = Config { max_trials: Some(max_trials), ..config.clone() };
                        wt_experiment::fewest_rounds(&config).unwrap()
                    };
                    assert!(shown(most).is_some() && shown(most - arms).is_some(), "{most}: {config:?}");
                    assert!(most <= arms * 14, "{most}: {config:?}");
                    assert_eq!(enough_for_a_gain(900, &config), 900);
                }
            }
        }
    }

    #[test]
    fn a_quiet_path_shows_by_default_that_none_of_many_settings_gains() {
        for arms in 2..=14 {
            let (mut rng, mut noise) = (ChaCha12Rng::seed_from_u64(7), ChaCha12Rng::seed_from_u64(8));
            let config = Config::new(arms);
            let most = enough(arms * 4, arms, config.alpha);
            let mut experiment = Experiment::new(Config { max_trials: Some(most), ..config }).unwrap();
            while let Some(order) = experiment.next_round(&mut rng) {
                let mut of = |arm: usize| {
                    let behind = if arm % 4 == 1 { -0.6 } else { 0.0 };
                    Observation::of(arm, behind + 1e-3 * noise.random::<f64>())
                };
                let round: Vec<Observation> = order.into_iter().map(&mut of).collect();
                experiment.record(&round).unwrap();
            }
            let said = experiment.assessment();
            assert!(said.gain_at_most.is_some_and(|most| most < 0.05_f64.ln_1p()), "{arms}: {:?}", said.gain_at_most);
            assert_eq!(said.not_excluded().count(), 0, "{arms}");
        }
    }
}
