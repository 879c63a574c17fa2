use super::granted::granted;
use super::traces::traces;
use super::{
    Arm, ArmState, Measured, Path, Plateau, PlateauPoint, RunReport, SCHEMA_VERSION, Trial, TuneReport, Verdict,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_experiment::{ArmAssessment, Assessment, DropReason, PlateauAssessment, StopReason, Text, VerdictKind};
use wt_trial::{PathFacts, Phase, Scale, Status, TrialRecord};
use wt_units::{BitsPerSecond, Knob, Level, Settings};

/// So many more segments sent again in a trial are worth a word.
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
}

impl TuneReport {
    /// Puts the report together. Arms of which the inputs know no label, and records of unknown arms, are no trouble.
    #[must_use]
    pub fn assemble(inputs: &TuneInputs<'_>) -> Self {
        let sparing = inputs.sparing();
        let inputs = &TuneInputs { assessment: sparing.as_ref().unwrap_or(inputs.assessment), ..*inputs };
        let a = inputs.assessment;
        let records: Vec<&TrialRecord> =
            inputs.records.iter().filter(|r| matches!(r.spec.phase, Phase::Round | Phase::Plateau)).collect();
        let arms: Vec<Arm> = a.arms.iter().map(|arm| inputs.arm(arm, &records)).collect();
        let plateau = a.plateau.as_ref().zip(inputs.plateau).map(|(found, knob)| inputs.plateau(found, knob, &records));
        let main: Vec<usize> = [0, a.pick, a.leader].into_iter().chain(plateau.as_ref().map(|p| p.arm)).collect();
        Self {
            schema_version: SCHEMA_VERSION,
            id: inputs.id.to_owned(),
            target: inputs.target.to_owned(),
            tunnel: inputs.tunnel.to_owned(),
            path: Path {
                rtt_us: inputs.path.rtt_us,
                pmtu: inputs.path.pmtu,
                bdp_bytes: inputs.path.bdp_bytes,
                loss: None,
            },
            current: inputs.current.clone(),
            rounds: a.rounds,
            trials: a.trials,
            verdict: inputs.verdict(),
            plateau,
            physical_goodput_bps: inputs.path.physical_goodput_bps,
            measured: Measured::of(&records),
            soak: super::soak::soaks(&records, arms.len()),
            limits: super::limits::limits(
                inputs.path,
                &records,
                arms.iter().filter_map(|arm| arm.goodput_bps).reduce(f64::max),
            ),
            model: None,
            plan: Vec::new(),
            trial_table: records.iter().map(|record| inputs.trial(record)).collect(),
            traces: traces(&main, &records, |arm| inputs.label(arm)),
            granted: granted(&records),
            warnings: inputs.warnings(&records, &arms),
            next: inputs.next(),
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

    /// What an arm is called in tables; the current settings are listed elsewhere in full.
    fn label(&self, arm: usize) -> String {
        match self.settings.get(arm) {
            _ if arm == 0 => "current".to_owned(),
            Some(setting) => setting.label.clone(),
            None => format!("setting {arm}"),
        }
    }

    fn asked(&self, arm: usize) -> Settings {
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

    fn verdict(&self) -> Verdict {
        let a = self.assessment;
        let labels: Vec<String> = (0..a.arms.len()).map(|arm| self.label(arm)).collect();
        let per_trial = self.run.spent / u32::try_from(a.trials.max(1)).unwrap_or(u32::MAX);
        let text = Text::new(a, &labels, per_trial);
        let best = best_candidate(a);
        Verdict {
            kind: a.kind,
            settings: self.in_full(&self.asked(a.pick)),
            ratio: best.and_then(|arm| arm.ratio).and_then(finite),
            at_least: best.and_then(|arm| arm.lower).map(f64::exp).and_then(finite),
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

    fn arm(&self, arm: &ArmAssessment, records: &[&TrialRecord]) -> Arm {
        let mut goodputs = goodputs(records, arm.arm);
        goodputs.sort_by(f64::total_cmp);
        let mut figures = figures(records, arm.arm);
        figures.sort_by(f64::total_cmp);
        let current = arm.arm == 0;
        let (model_low, model_high) = self.model_interval(arm).unzip();
        Arm {
            label: self.label(arm.arm),
            settings: self.asked(arm.arm),
            state: state(arm),
            goodput_bps: goodputs.get(goodputs.len() / 2).copied(),
            figure: figures.get(figures.len() / 2).copied(),
            retransmits: mean_seen(records, arm.arm, "retransmits"),
            queue_drops: mean_seen(records, arm.arm, "queue_drops"),
            ratio: arm.ratio.and_then(finite),
            low: arm.lower.map(f64::exp).and_then(finite).filter(|_| !current),
            high: arm.upper.map(f64::exp).and_then(finite).filter(|_| !current),
            model_low,
            model_high,
            evidence: bounded(arm.evidence),
            needed: arm.needed.and_then(finite),
            rounds: if current { self.assessment.rounds } else { arm.rounds },
            trials: arm.trials,
            bad: arm.incomplete + arm.failed,
            series: arm.series.iter().map(|(round, evidence)| (*round, bounded(*evidence))).collect(),
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

    fn plateau(&self, found: &PlateauAssessment, knob: Knob, records: &[&TrialRecord]) -> Plateau {
        let level = |arm: usize| self.in_full(&self.asked(arm)).get(knob).cloned().unwrap_or(Level::Auto);
        // Arms that differ in this knob alone lie on one curve.
        let alone = |arm: &usize| self.asked(*arm).iter().all(|(asked, _)| asked == knob);
        let mut curve: Vec<PlateauPoint> = (0..self.assessment.arms.len())
            .filter(|arm| *arm == 0 || !self.asked(*arm).is_empty())
            .filter(alone)
            .filter_map(|arm| {
                let goodputs = goodputs(records, arm);
                let level = level(arm);
                let x = level.number().map(|n| n as f64).or_else(|| largest_window(records, arm, knob))?;
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
            level: level(found.smallest),
            epsilon: found.epsilon,
            arm: found.smallest,
            anchor: found.anchor,
            shown: found.smallest != found.anchor,
            settled: found.settled,
            curve,
        }
    }

    fn trial(&self, record: &TrialRecord) -> Trial {
        let last = record.outcome.sender.last().copied().unwrap_or_default();
        let observed = |name: &str| record.outcome.observed.get(name).and_then(serde_json::Value::as_u64);
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
            retransmits: observed("retransmits").unwrap_or(last.retransmits),
            min_rtt_us: observed("min_rtt_us").unwrap_or(last.min_rtt),
            notes: record.outcome.notes.clone(),
        }
    }

    fn warnings(&self, records: &[&TrialRecord], arms: &[Arm]) -> Vec<String> {
        let mut warnings = Vec::new();
        let spoilt = records.iter().filter(|r| r.outcome.status == Status::Invalid).count();
        if spoilt > 0 {
            let live = self.tunnel == "live";
            warnings.push(if live {
                format!(
                    "{spoilt} of {} trials don't count: the far end refused them. It was left alone for a while each time.",
                    records.len()
                )
            } else { format!(
                "{spoilt} of {} trials were spoilt by this machine (emulator late, CPU taken away) and don't count; \
                 close other programs, or use a slower path.",
                records.len()
            ) });
        }
        warnings.extend(why_all_failed(records));
        warnings.extend(not_completed(records));
        let is_goodput = Measured::of(records).is_goodput();
        if let Some(limit) = self.path.physical_goodput_bps.filter(|limit| *limit > 0 && is_goodput) {
            let best = arms.iter().filter_map(|arm| arm.goodput_bps).fold(0.0, f64::max);
            if best > limit as f64 * 1.02 {
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
        if Measured::of(records).scale != Scale::Time {
            return Vec::new();
        }
        let costly = arms.iter().skip(1).filter_map(|arm| Some((arm, arm.retransmits?)));
        let costly = costly.filter(|(_, again)| *again >= usual + MANY_MORE);
        costly
            .map(|(arm, again)| {
                let full = arm.queue_drops.filter(|drops| *drops >= 1.0);
                let full = full.map_or_else(String::new, |drops| format!(" (full queues dropped {drops:.0})"));
                format!(
                    "{} loses more: {again:.0} segments a trial are sent again{full}, with the current settings {usual:.0}. Others \
                     on the path lose with it.",
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

    fn next(&self) -> Vec<String> {
        let a = self.assessment;
        let mut next = Vec::new();
        if a.kind == VerdictKind::Faster {
            let larger = a.plateau.as_ref().filter(|found| found.smallest == a.pick && found.anchor != a.pick);
            let why = larger.filter(|_| matches!(self.plateau, Some(Knob::Initcwnd | Knob::Initrwnd)));
            let why = why.map_or_else(String::new, |found| {
                format!(
                    ", not {}, which gains less than {:.0} % more by a larger burst",
                    self.label(found.anchor),
                    found.epsilon * 100.0
                )
            });
            next.push(format!("Set {}{why}; the rest stays as it is.", self.asked(a.pick)));
        }
        let undecided = a.kind == VerdictKind::Stopped || a.stop == Some(StopReason::Budget);
        let gain = a.needed.iter().find(|n| n.more_rounds > 0 && n.more_trials <= 2_000);
        match gain {
            Some(n) if a.kind != VerdictKind::Faster => next.push(format!(
                "To see a gain of {:.0} % if there is one: run about {} trials more (--budget \"{} trials\").",
                n.gain * 100.0,
                n.more_trials,
                a.trials + n.more_trials
            )),
            _ if undecided => next.push("A larger --budget may decide what is open.".to_owned()),
            _ => {}
        }
        if self.tunnel == "lab" || self.tunnel == "sim" {
            next.push(
                "This was a rehearsal on an emulated path: what holds there is worth a test on the real one.".into(),
            );
        }
        if a.kind == VerdictKind::Faster {
            next.push(format!("To apply it here: windtunnel settings apply --verdict {}", self.id));
        }
        next
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
        }
    }
}

/// How many trials weren't completed for a reason that is known, and what the last of them says.
fn not_completed(records: &[&TrialRecord]) -> Option<String> {
    let told = |record: &&&TrialRecord| record.outcome.status == Status::Incomplete && !record.outcome.notes.is_empty();
    let last = records.iter().rev().find(told)?.outcome.notes.join("; ");
    let number = records.iter().filter(told).count();
    Some(format!(
        "{number} of {} weren't completed; the last of them says: {last}.",
        wt_units::counted(records.len(), "trial")
    ))
}

/// Why all trials failed, if they did: what most of them say.
fn why_all_failed(records: &[&TrialRecord]) -> Option<String> {
    let ran: Vec<_> =
        records.iter().filter(|r| !matches!(r.outcome.status, Status::Invalid | Status::Aborted)).collect();
    let worked = ran.iter().any(|record| record.outcome.status != Status::Failed);
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for note in ran.iter().filter_map(|record| record.outcome.notes.last()) {
        *told.entry(note).or_default() += 1;
    }
    let (note, times) = told.into_iter().max_by_key(|(_, times)| *times).filter(|_| !worked)?;
    Some(format!("All trials failed; {times} of {} say: {note}.", ran.len()))
}

/// The setting that the verdict's figures speak of: the recommended one, else the leading candidate, else the one with
/// most evidence. The current settings are no candidate: nothing can be shown of them.
fn best_candidate(a: &Assessment) -> Option<&ArmAssessment> {
    let named = [a.pick, a.leader].into_iter().find(|arm| *arm != 0).and_then(|arm| a.arms.get(arm));
    named.or_else(|| a.arms.iter().skip(1).max_by(|a, b| a.evidence.total_cmp(&b.evidence)))
}

fn state(arm: &ArmAssessment) -> ArmState {
    match arm.dropped.map(|dropped| dropped.reason) {
        _ if arm.arm == 0 => ArmState::Current,
        _ if arm.claimed.is_some() => ArmState::Faster,
        _ if arm.slower => ArmState::Slower,
        _ if arm.equivalent => ArmState::Same,
        Some(DropReason::Behind) => ArmState::Behind,
        Some(DropReason::Failing) => ArmState::Failing,
        None => ArmState::Open,
    }
}

/// Goodput of an arm's trials that moved something and count, in their order, bit/s.
fn goodputs(records: &[&TrialRecord], arm: usize) -> Vec<f64> {
    let counts = |r: &&&TrialRecord| {
        r.spec.arm == arm && matches!(r.outcome.status, Status::Completed | Status::Incomplete) && r.outcome.bytes > 0
    };
    records.iter().filter(counts).map(|r| r.outcome.goodput_bps()).filter(|bps| bps.is_finite() && *bps > 0.0).collect()
}

/// What was counted under this name in an arm's trials, the mean.
fn mean_seen(records: &[&TrialRecord], arm: usize, name: &str) -> Option<f64> {
    let seen = |r: &&TrialRecord| r.outcome.observed.get(name).and_then(serde_json::Value::as_f64);
    let own = records.iter().filter(|r| r.spec.arm == arm && r.outcome.status == Status::Completed);
    let all: Vec<f64> = own.filter_map(seen).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// The figures of an arm's trials that count, in their order.
fn figures(records: &[&TrialRecord], arm: usize) -> Vec<f64> {
    let counts = |r: &&&TrialRecord| {
        r.spec.arm == arm && matches!(r.outcome.status, Status::Completed | Status::Incomplete) && r.outcome.bytes > 0
    };
    let own = records.iter().filter(counts);
    own.filter_map(|r| r.outcome.figure(r.spec.workload.scale())).collect()
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// The largest window that the peer of an arm advertised, where the system chose it.
fn largest_window(records: &[&TrialRecord], arm: usize, knob: Knob) -> Option<f64> {
    if knob != Knob::Rwin {
        return None;
    }
    let seen = |r: &&TrialRecord| r.outcome.observed.get("rwin_max").and_then(serde_json::Value::as_f64);
    records.iter().filter(|r| r.spec.arm == arm).filter_map(seen).reduce(f64::max).filter(|x| *x > 0.0)
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
