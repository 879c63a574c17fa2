use super::answer::{Answer, AnswerInputs};
use super::answer_words::has_rivals;
use super::delay::{DelayReport, DelayRules};
use super::figures::{device, figures, geometric_mean, goodputs, mean_seen, seen_level};
use super::granted::granted;
use super::limits::OVER;
use super::traces::traces;
use super::unfinished::{not_completed, why_all_failed};
use super::{
    Arm, ArmState, Path, Plateau, PlateauPoint, RunReport, SCHEMA_VERSION, Trial, TrialFigure, TuneReport, Verdict,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use wt_experiment::{ArmAssessment, Assessment, DropReason, PlateauAssessment, Text};
use wt_trial::{PathFacts, Phase, Scale, Status, TrialRecord};
use wt_units::{BitsPerSecond, Knob, Level, Settings, quantile};

/// So many more segments retransmitted in a trial are worth a word.
const MANY_MORE: f64 = 3.0;
/// Below this p value the drift of the path is worth a word.
const DRIFT: f64 = 0.01;

/// One of the settings that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// What people call it.
    pub label: String,
    /// What it asks for; everything else is as it was. Empty for the current settings.
    pub settings: Settings,
}

/// How an experiment was run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run {
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// How long the trials of the rounds took, cool-downs included.
    pub spent: Duration,
    /// The pause after each trial.
    pub cool_down: Duration,
    /// Seeds everything random.
    pub seed: u64,
    /// What to type to run the same again.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// What the user wrote about it.
    pub comment: String,
    /// The name of the machine that it ran on.
    pub host: Option<String>,
    /// The release of its kernel.
    pub kernel: Option<String>,
}

/// Everything that a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct TuneInputs<'a> {
    /// The experiment's name in the journal.
    pub id: &'a str,
    /// What was tuned.
    pub target: &'a str,
    /// Where the trials ran: `sim`, `lab` or `live`.
    pub tunnel: &'a str,
    /// What is known of the path.
    pub path: &'a PathFacts,
    /// The settings in force when nothing is asked for.
    pub current: &'a Settings,
    /// What was compared, by the assessment's numbers: 0 is the current settings.
    pub settings: &'a [Setting],
    /// The knob whose smallest sufficient level was sought.
    pub plateau: Option<Knob>,
    /// What the data allow one to say.
    pub assessment: &'a Assessment,
    /// The trials, with their samples if charts over time are wanted; those outside of rounds are left out.
    pub records: &'a [TrialRecord],
    /// How it was run.
    pub run: &'a Run,
    /// What else is known of it.
    pub facts: &'a RunFacts,
}

/// What is known of an experiment beyond its trials; by default nothing.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// What the model expected before the first round.
    pub model: Option<serde_json::Value>,
    /// The share of probes that got lost, on the real path.
    pub loss: Option<f64>,
    /// The addresses that served, on the real path: where the recommended settings are applied.
    pub addresses: Vec<IpAddr>,
    /// Whether its trials are still being run.
    pub is_running: bool,
    /// The experiment that goes on with this one: its report has the trials of both.
    pub continued_by: Option<String>,
    /// What a person must know before everything else: why it ended early.
    pub ended_early: Option<String>,
    /// What begins another one, where nothing goes on with this one: loads of a page in a browser.
    pub again: Option<NewComparison>,
    /// How less delay at the same speed is claimed, where it is.
    pub delay: Option<DelayRules>,
    /// Whether a test of less delay that is left open is told of: experiments from before budgets left room for it say nothing.
    pub tells_of_open_delay: bool,
    /// What a person should know of the machines that measured, and of the link.
    pub link: Vec<String>,
    /// Of very many trials the records are the last ones only: then all of them, in figures.
    pub all: Option<AllTrials>,
}

/// A comparison that begins anew: nothing carries over from the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewComparison {
    /// The command line, but for the number of its rounds.
    pub command: String,
    /// Fewer rounds show nothing, however clear it is.
    pub fewest_rounds: usize,
}

/// All trials of an experiment of which only the last ones are shown.
#[derive(Debug, Clone, Default)]
pub struct AllTrials {
    /// How many there are.
    pub count: usize,
    /// The median goodput of each arm, bit/s.
    pub goodput_bps: Vec<Option<f64>>,
}

impl TuneReport {
    /// Puts the report together. Arms of which the inputs know no label, and records of unknown arms, are no trouble.
    #[must_use]
    pub fn assemble(inputs: &TuneInputs<'_>) -> Self {
        let records: Vec<&TrialRecord> =
            inputs.records.iter().filter(|r| matches!(r.spec.phase, Phase::Round | Phase::Plateau)).collect();
        let granted = granted(&records);
        let not_set: BTreeSet<usize> = granted.iter().filter(|g| g.mostly_differs()).map(|g| g.arm).collect();
        let recommended = inputs.recommended(&not_set);
        let inputs = &TuneInputs { assessment: &recommended, ..*inputs };
        let a = inputs.assessment;
        let mut arms: Vec<Arm> = a.arms.iter().map(|arm| inputs.arm(arm, &records)).collect();
        for arm in arms.iter_mut().enumerate().filter(|(number, _)| not_set.contains(number)).map(|(_, arm)| arm) {
            arm.state = ArmState::NotSet;
        }
        let trial_table: Vec<_> = records.iter().map(|record| inputs.trial(record)).collect();
        let left_out = inputs.facts.all.as_ref().filter(|all| all.count > trial_table.len());
        let plateau =
            a.plateau.as_ref().zip(inputs.plateau).map(|(found, knob)| inputs.plateau(found, knob, &records, &not_set));
        let mut limits = super::limits_work::limits(
            inputs.path,
            &records,
            arms.iter().filter_map(|arm| arm.goodput_bps).reduce(f64::max),
            inputs.faster_window().as_deref(),
            arms.first().and_then(|arm| arm.figure),
        );
        limits.text = inputs.of_baseline(limits.text);
        let mut warnings = inputs.all_warnings(left_out.map(|all| (trial_table.len(), all.count)), &records, &arms);
        warnings.iter_mut().for_each(|line| *line = inputs.of_baseline(std::mem::take(line)));
        // The medians are of all trials, whatever the table shows.
        for (arm, goodput_bps) in arms.iter_mut().zip(left_out.iter().flat_map(|all| &all.goodput_bps)) {
            arm.goodput_bps = *goodput_bps;
        }
        let measured = TrialFigure::of(&records);
        let delay = inputs.facts.delay.and_then(|rules| rules.report(inputs.records, a.pick));
        let delay = delay.filter(|found| !a.unset.contains(&found.arm) && !a.unset.contains(&found.against));
        let open_delay = inputs.open_delay();
        let median = arms.first().and_then(|arm| arm.figure);
        let known = AnswerInputs {
            records: &records,
            measured: &measured,
            limits: &limits,
            delay: delay.as_ref(),
            open_delay: open_delay.as_ref(),
            median,
            granted: &granted,
        };
        let (answer, cells) = (inputs.answer(&known), inputs.cells(&known));
        if let Some(arm) = delay.as_ref().filter(|_| answer.is_of_delay()).and_then(|delay| arms.get_mut(delay.arm)) {
            arm.is_calmer = true;
        }
        warnings.extend(answer.scattered(&known).map(|line| inputs.of_baseline(line)));
        let (plan, apply) = if inputs.facts.is_running { Default::default() } else { inputs.apply() };
        // What was measured here is applied first; after a rehearsal come the words on it.
        let (first, last) = if !inputs.facts.addresses.is_empty() { (apply, None) } else { (None, apply) };
        let next = first.into_iter().chain(inputs.next(&measured, open_delay.as_ref())).chain(last).collect();
        let main: Vec<usize> = [0, a.pick, a.leader].into_iter().chain(plateau.as_ref().map(|p| p.arm)).collect();
        Self {
            schema_version: SCHEMA_VERSION,
            id: inputs.id.to_owned(),
            target: inputs.target.to_owned(),
            tunnel: inputs.tunnel.to_owned(),
            state: inputs.facts.is_running.then_some(super::under_way::RUNNING),
            continued_by: inputs.facts.continued_by.clone(),
            path: Path {
                rtt_us: inputs.path.rtt_us,
                pmtu: inputs.path.pmtu,
                bdp_bytes: inputs.path.bdp_bytes,
                loss: inputs.facts.loss,
            },
            current: inputs.current.clone(),
            baseline: inputs.baseline().map(|baseline| baseline.settings.clone()),
            cells,
            rounds: a.rounds,
            trials: a.trials,
            verdict: inputs.verdict(answer, delay.as_ref()),
            plateau,
            physical_goodput_bps: inputs.path.physical_goodput_bps,
            frontier: super::frontier::frontier(&arms, &measured),
            ceiling: inputs.ceiling(&records).filter(|_| measured.is_goodput() && !has_rivals(&records)),
            servers: super::servers::servers(&records, &measured),
            measured,
            delay,
            soak: super::soak::soaks(&records, arms.len()),
            limits,
            model: inputs.facts.model.clone(),
            trial_table,
            delay_trials: inputs.delay_trials(),
            traces: traces(&main, &records, |arm| inputs.label(arm)),
            granted,
            warnings,
            next,
            plan,
            run: inputs.run_report(&records),
            arms,
        }
    }
}

impl TuneInputs<'_> {
    /// The assessment that recommends the smallest first window which is shown to be faster and to lie on the plateau, if that
    /// isn't the one recommended: a larger one is a larger burst, which costs others on the path, for next to nothing.
    fn sparing(&self) -> Option<Assessment> {
        let a = self.assessment;
        let found = a.plateau.as_ref().filter(|_| matches!(self.plateau, Some(Knob::Initcwnd | Knob::Initrwnd)))?;
        let claimed = a.arms.get(found.smallest)?.claimed.is_some();
        let wanted = claimed && found.smallest != 0 && found.anchor == a.pick && found.smallest != a.pick;
        wanted.then(|| Assessment { pick: found.smallest, regret: None, ..a.clone() })
    }

    /// The first window that is faster than the recommended one, which is the smallest on the plateau.
    pub(super) fn spared(&self) -> Option<&ArmAssessment> {
        let a = self.assessment;
        let found = a.plateau.as_ref().filter(|_| matches!(self.plateau, Some(Knob::Initcwnd | Knob::Initrwnd)))?;
        a.arms.get(found.anchor).filter(|_| found.smallest == a.pick && found.anchor != a.pick)
    }

    /// The assessment of what was compared: nothing is said of what wasn't set as asked in most trials, and of first windows the
    /// sparing one is recommended.
    fn recommended(&self, not_set: &BTreeSet<usize>) -> Assessment {
        let is_asked_for = |arm: &usize| *arm != 0 || self.baseline().is_some();
        let a = self.assessment.without(&not_set.iter().copied().filter(is_asked_for).collect());
        TuneInputs { assessment: &a, ..*self }.sparing().unwrap_or(a)
    }

    /// What an arm is called in tables; the current settings are listed elsewhere in full.
    pub(super) fn label(&self, arm: usize) -> String {
        match self.settings.get(arm) {
            _ if arm == 0 => self.baseline().map_or_else(|| "current".to_owned(), |baseline| baseline.label.clone()),
            Some(setting) => setting.label.clone(),
            None => format!("setting {arm}"),
        }
    }

    pub(super) fn asked(&self, arm: usize) -> Settings {
        self.settings.get(arm).map(|setting| setting.settings.clone()).unwrap_or_default()
    }

    /// The settings in full: what isn't asked for is as it was.
    fn in_full(&self, asked: &Settings) -> Settings {
        let mut full = self.current.clone();
        for (knob, level) in asked.iter().filter(|(_, level)| **level != Level::Auto) {
            full.set(knob, level.clone());
        }
        full
    }

    fn verdict(&self, answer: Answer, delay: Option<&DelayReport>) -> Verdict {
        let a = self.assessment;
        let labels: Vec<String> = (0..a.arms.len()).map(|arm| self.label(arm)).collect();
        let per_trial = self.run.spent / u32::try_from(a.trials.max(1)).unwrap_or(u32::MAX);
        let mut text = Text::new(a, &labels, per_trial);
        if let Some(delay) = delay.filter(|_| answer.is_of_delay()) {
            text = text.recommending(&delay.sentence(&self.label(delay.arm)));
        }
        let best = best_candidate(a);
        Verdict {
            answer,
            kind: a.kind,
            // A baseline that nothing beats is no recommendation.
            settings: if a.pick == 0 { self.current.clone() } else { self.in_full(&self.asked(a.pick)) },
            ratio: best.and_then(|arm| arm.ratio).and_then(finite),
            at_least: best.and_then(|arm| arm.at_least).map(f64::exp).and_then(finite),
            evidence: best.map_or(1.0, |arm| bounded(arm.evidence)),
            needed: best.and_then(|arm| arm.needed).and_then(finite),
            text: text.to_string(),
            arm: a.pick,
            label: self.label(a.pick),
            headline: text.headline,
            details: text.details,
            stop: a.stop,
            alpha: a.alpha,
            regret: a.regret.and_then(finite),
            noise_cv: a.noise.map(|noise| noise.cv).and_then(finite),
        }
    }

    /// What a person should know, the most pressing first; `shown` and `all` trials where the table doesn't have them all.
    fn all_warnings(&self, shown: Option<(usize, usize)>, records: &[&TrialRecord], arms: &[Arm]) -> Vec<String> {
        let tail = shown.map(|(shown, all)| {
            format!(
                "The table shows the last {shown} of {all} trials, and what is said of the path's drift and of single \
                 trials is of these. The verdict, the estimates, the evidence and the medians are of all trials. \
                 windtunnel journal export has them all."
            )
        });
        let first = self.is_a_part().into_iter().chain(tail).chain(self.facts.ended_early.clone());
        first.chain(self.warnings(records, arms)).chain(self.facts.link.iter().cloned()).collect()
    }

    fn arm(&self, arm: &ArmAssessment, records: &[&TrialRecord]) -> Arm {
        let mut goodputs = goodputs(records, arm.arm);
        goodputs.sort_by(f64::total_cmp);
        let mut figures = figures(records, arm.arm);
        figures.sort_by(f64::total_cmp);
        let current = arm.arm == 0;
        let state = state(arm);
        // What nothing moved has no speed: a ratio would be that of two failures.
        let told = |value: Option<f64>| value.and_then(finite).filter(|_| state != ArmState::Failing);
        let (model_low, model_high) = self.model_interval(arm).filter(|_| state != ArmState::Failing).unzip();
        Arm {
            label: self.label(arm.arm),
            settings: self.asked(arm.arm),
            state,
            goodput_bps: goodputs.get(goodputs.len() / 2).copied(),
            figure: self.middle(&figures),
            delay_us: super::delay::delay_of(records, arm.arm),
            retransmits: mean_seen(records, arm.arm, |seen| seen.retransmits),
            queue_drops: mean_seen(records, arm.arm, |seen| seen.queue_drops),
            aqm_drops: mean_seen(records, arm.arm, |seen| seen.aqm_drops),
            ce_marks: mean_seen(records, arm.arm, |seen| seen.ce_marks),
            ratio: told(arm.ratio),
            low: told(arm.lower.map(f64::exp)).filter(|_| !current),
            high: told(arm.upper.map(f64::exp)).filter(|_| !current),
            model_low,
            model_high,
            evidence: bounded(arm.evidence),
            needed: arm.needed.and_then(finite),
            is_calmer: false,
            rounds: if current { self.assessment.rounds } else { arm.rounds },
            trials: arm.trials,
            bad: arm.incomplete + arm.failed,
            series: arm.series.iter().map(|(round, evidence)| (*round, bounded(*evidence))).collect(),
        }
    }

    /// The median of sorted figures: of two in the middle the larger one, which was measured, and of loads in a browser the mean of the
    /// two, as `page` told it.
    fn middle(&self, sorted: &[f64]) -> Option<f64> {
        match self.facts.again {
            Some(_) => quantile(sorted, 0.5),
            None => sorted.get(sorted.len() / 2).copied(),
        }
    }

    /// The ratio's interval by the blocked model, as wide as it must be to hold at every look and for all settings.
    fn model_interval(&self, arm: &ArmAssessment) -> Option<(f64, f64)> {
        let a = self.assessment;
        let noise = a.noise.filter(|noise| noise.sigma > 0.0)?;
        let (estimate, error) = (arm.estimate?, arm.standard_error.filter(|_| arm.arm != 0)?);
        let share = a.alpha / (a.arms.len() - 1) as f64;
        let variance = noise.sigma * noise.sigma;
        let half = wt_experiment::anytime_half_width(variance, error * error / variance, noise.df as f64, share);
        Some((finite((estimate - half).exp())?, finite((estimate + half).exp())?))
    }

    fn plateau(
        &self,
        found: &PlateauAssessment,
        knob: Knob,
        records: &[&TrialRecord],
        not_set: &BTreeSet<usize>,
    ) -> Plateau {
        let level = |arm: usize| self.in_full(&self.asked(arm)).get(knob).cloned().unwrap_or(Level::Auto);
        let base = self.asked(0);
        let mut curve: Vec<PlateauPoint> = (0..self.assessment.arms.len())
            .filter(|arm| *arm == 0 || !base.is_empty() || !self.asked(*arm).is_empty())
            .filter(|arm| self.differs_in(*arm, knob))
            .filter(|arm| !not_set.contains(arm))
            .filter_map(|arm| {
                let goodputs = goodputs(records, arm);
                let level = level(arm);
                let x = level.number().map(|n| n as f64).or_else(|| seen_level(records, arm, knob))?;
                let figures = figures(records, arm);
                Some(PlateauPoint {
                    arm,
                    level,
                    x,
                    goodput_bps: geometric_mean(&goodputs),
                    trials_bps: goodputs,
                    figure: geometric_mean(&figures),
                    figures,
                })
            })
            .collect();
        curve.sort_by(|a, b| a.x.total_cmp(&b.x));
        Plateau {
            knob,
            unit: match knob {
                Knob::Initcwnd | Knob::Initrwnd => "segments",
                Knob::Rwin | Knob::Sndbuf | Knob::Mtu | Knob::Mss => "bytes",
                _ => "",
            },
            level: level(found.smallest),
            epsilon: found.epsilon,
            arm: found.smallest,
            anchor: found.anchor,
            shown: found.smallest != found.anchor,
            settled: found.settled,
            curve,
        }
    }

    pub(super) fn trial(&self, record: &TrialRecord) -> Trial {
        let last = record.outcome.sender.last().copied().unwrap_or_default();
        Trial {
            round: record.spec.round,
            order: record.spec.order,
            settings: self.in_full(&record.spec.settings),
            goodput_bps: record.outcome.goodput_bps(),
            figure: record.outcome.figure(record.spec.workload.scale()),
            measures: record.outcome.measures.clone(),
            status: record.outcome.status.name(),
            trial: record.id,
            arm: record.spec.arm,
            phase: record.spec.phase,
            bytes: record.outcome.bytes,
            elapsed_us: record.outcome.elapsed_us,
            retransmits: record.outcome.observed.retransmits.unwrap_or(last.retransmits),
            min_rtt_us: record.outcome.observed.min_rtt_us.unwrap_or(last.min_rtt),
            server: record.outcome.observed.target.clone(),
            notes: record.outcome.notes.clone(),
        }
    }

    fn warnings(&self, records: &[&TrialRecord], arms: &[Arm]) -> Vec<String> {
        let mut warnings = Vec::new();
        let spoilt = records.iter().filter(|r| r.outcome.status == Status::Invalid).count();
        if spoilt > 0 {
            let live = self.tunnel == "live";
            let whose: Vec<String> = self
                .assessment
                .arms
                .iter()
                .filter(|arm| arm.spoilt > 0)
                .map(|arm| format!("{} of {}", arm.spoilt, self.label(arm.arm)))
                .collect();
            let whose = if whose.is_empty() { String::new() } else { format!(" ({})", whose.join(", ")) };
            warnings.push(if live {
                format!(
                    "{spoilt} of {} trials{whose} don't count: the server refused them. It was left alone for a while each \
                     time.",
                    records.len()
                )
            } else { format!(
                "{spoilt} of {} trials{whose} don't count: this machine was too busy for the lab. Close other programs and \
                 repeat.",
                records.len()
            ) });
        }
        warnings.extend(self.spoilt_for_delay());
        warnings.extend(why_all_failed(records));
        warnings.extend(not_completed(records));
        let is_goodput = TrialFigure::of(records).is_goodput();
        if let Some(limit) = self.path.physical_goodput_bps.filter(|limit| *limit > 0 && is_goodput) {
            let best = arms.iter().filter_map(|arm| arm.goodput_bps).fold(0.0, f64::max);
            if best > limit as f64 * OVER {
                warnings.push(format!(
                    "Goodput of {} is above the limit of {} that the link's framing allows: the link isn't what its \
                     description says.",
                    rate(best),
                    rate(limit as f64)
                ));
            }
        }
        warnings.extend(self.price(records, arms));
        warnings.extend(self.drift(records));
        warnings
    }

    /// What a setting that makes short work faster costs: a larger first window is a burst, and what the path's queue doesn't
    /// hold of it is lost.
    fn price(&self, records: &[&TrialRecord], arms: &[Arm]) -> Vec<String> {
        let usual = arms.first().and_then(|arm| arm.retransmits).unwrap_or(0.0);
        if TrialFigure::of(records).scale != Scale::Time {
            return Vec::new();
        }
        let costly = arms.iter().skip(1).filter_map(|arm| Some((arm, arm.retransmits?)));
        let costly = costly.filter(|(_, again)| *again >= usual + MANY_MORE);
        costly
            .map(|(arm, again)| {
                let drops = arm.queue_drops.filter(|drops| *drops >= 1.0);
                let full = drops.map_or_else(String::new, |drops| match arm.aqm_drops.filter(|aqm| *aqm >= 0.5) {
                    Some(aqm) => format!(" (queues dropped {drops:.0}, {aqm:.0} of them by AQM)"),
                    None => format!(" (full queues dropped {drops:.0})"),
                });
                format!(
                    "{} loses more: {again:.0} segments a trial are retransmitted{full}, with the current settings {usual:.0}. \
                     Others on the path lose with it.",
                    arm.label
                )
            })
            .collect()
    }

    /// Whether the current settings' own goodput changed from round to round.
    fn drift(&self, records: &[&TrialRecord]) -> Option<String> {
        let logs: Vec<f64> = figures(records, 0).into_iter().filter(|f| *f > 0.0).map(f64::ln).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.run.seed);
        let trend = wt_experiment::drift::trend(&logs, &mut rng)?;
        (trend.p < DRIFT && trend.change.abs() > 0.05).then(|| {
            format!(
                "The path changed while it was measured: the current settings went to ×{:.2} of what they began with. \
                 Comparisons within rounds don't suffer from that.",
                trend.change.exp()
            )
        })
    }

    fn run_report(&self, records: &[&TrialRecord]) -> RunReport {
        let run = self.run;
        RunReport {
            started_unix_us: run.started_unix_us,
            spent_s: run.spent.as_secs_f64(),
            seed: run.seed,
            workload: records.first().map_or_else(String::new, |record| record.spec.workload.to_string()),
            cool_down_s: run.cool_down.as_secs_f64(),
            command: run.command.clone(),
            version: run.version.clone(),
            comment: run.comment.clone(),
            host: run.host.clone(),
            kernel: run.kernel.clone(),
            device: records.iter().rev().find_map(|record| device(&record.outcome.observed)),
        }
    }
}

/// The setting that the verdict's figures speak of: the recommended one, else the leading candidate, else the one with
/// most evidence. The current settings are no candidate: nothing can be shown of them.
fn best_candidate(a: &Assessment) -> Option<&ArmAssessment> {
    let named = [a.pick, a.leader].into_iter().find(|arm| *arm != 0).and_then(|arm| a.arms.get(arm));
    named.or_else(|| a.compared().max_by(|a, b| a.evidence.total_cmp(&b.evidence)))
}

fn state(arm: &ArmAssessment) -> ArmState {
    match arm.dropped.map(|dropped| dropped.reason) {
        _ if arm.arm == 0 => ArmState::Current,
        _ if arm.failed > 0 && arm.failed == arm.trials - arm.void => ArmState::Failing,
        _ if arm.claimed.is_some() => ArmState::Faster,
        _ if arm.slower => ArmState::Slower,
        _ if arm.equivalent => ArmState::Same,
        Some(DropReason::Behind) => ArmState::Behind,
        Some(DropReason::Failing) => ArmState::Failing,
        None => ArmState::Open,
    }
}

fn rate(bps: f64) -> String {
    BitsPerSecond(bps as u64).human()
}

/// JSON knows no infinity.
fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|v| v.is_finite())
}

/// Evidence beyond all measure, as a number.
fn bounded(evidence: f64) -> f64 {
    if evidence.is_nan() { 1.0 } else { evidence.clamp(0.0, 1e300) }
}
