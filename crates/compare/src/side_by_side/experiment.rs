//! An experiment as it is compared.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use utoipa::ToSchema;
use wt_experiment::Assessment;
use wt_experiment::meta::Effect;
use wt_journal::{Arm, HostConfig, Journal, StoredExperiment, WithSamples};
use wt_problem::Problem;
use wt_report::TrialFigure;
use wt_trial::{PathFacts, Phase, Status};
use wt_tune::History;
use wt_units::{Settings, counted, quantile, upper_median};

/// The RTT and the path MTU may differ by this factor before it is told.
const SAME: f64 = 1.25;

/// One experiment, with the sessions that it continues.
#[derive(Debug, Serialize, ToSchema)]
pub struct ComparedExperiment {
    /// Its name in the journal.
    pub id: String,
    /// What it was run against.
    pub target: String,
    /// Where: the lab, the real path.
    pub tunnel: String,
    /// How it ended.
    pub state: wt_journal::State,
    /// When it began, µs since 1970.
    pub started_unix_us: i64,
    /// The note stored with it.
    pub comment: String,
    /// Complete rounds.
    pub rounds: usize,
    /// Trials in them.
    pub trials: usize,
    /// `down` or `up`.
    pub direction: Option<String>,
    /// What each trial did.
    pub workload: Value,
    /// Which machine, as far as the journal says.
    #[schema(value_type = Option<Object>)]
    pub host: Option<HostConfig>,
    /// The path.
    pub path: PathFacts,
    /// What held.
    pub current: Settings,
    /// Trials of the current settings that moved nothing: they are in no figure of them.
    pub failed: usize,
    /// The median goodput of the current settings, bit/s.
    pub goodput_bps: Option<f64>,
    /// What its trials are compared by.
    pub measured: TrialFigure,
    /// The median of that with the current settings, in its unit.
    pub figure: Option<f64>,
    /// The links that its trials ran over: more than one if it changed.
    pub links: Vec<Value>,
    #[serde(skip)]
    pub(super) arms: Vec<Arm>,
    #[serde(skip)]
    boot: String,
    #[serde(skip)]
    judged: Vec<f64>,
    #[serde(skip)]
    assessment: Option<Assessment>,
    #[serde(skip)]
    screen: bool,
    /// Its own name and those of the experiments that it continues, each with what its order was drawn from.
    #[serde(skip)]
    sessions: Vec<(String, u64)>,
    #[serde(skip)]
    has_receivers_clock: bool,
}

/// What came of a setting in one experiment, against its current settings.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriedSetting {
    /// The experiment's name.
    pub experiment: String,
    /// Complete rounds with it.
    pub rounds: usize,
    /// Rate over that of the current settings.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's 95 % interval, from the random order alone, which holds whenever it was stopped.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The evidence at its end.
    pub evidence: f64,
    /// The log of the ratio, with its standard error.
    #[serde(skip)]
    pub(super) effect: Option<Effect>,
    #[serde(skip)]
    pub(super) sessions: Vec<(String, u64)>,
    /// Whether this experiment alone shows it to be faster by so much that it is worth a change.
    #[serde(skip)]
    pub(super) is_worth: bool,
}

impl ComparedExperiment {
    /// Reads it, and assesses it again.
    pub(super) fn read(journal: &dyn Journal, stored: &StoredExperiment) -> Result<Self, Problem> {
        if stored.arms.len() < 2 {
            return Err(Problem::usage(format!("{} has nothing to compare: it measured one setting alone", stored.id))
                .hint(format!("windtunnel report {} tells what came of it", stored.id)));
        }
        let screen = stored.config.screen().is_some();
        let config = stored.config.tune();
        let workload = config.said("workload");
        let mut experiment = Self {
            id: stored.id.clone(),
            target: stored.target.clone(),
            tunnel: stored.tunnel.clone(),
            state: stored.state,
            started_unix_us: stored.started_unix_us,
            comment: stored.comment.clone(),
            rounds: 0,
            trials: 0,
            direction: workload["direction"].as_str().map(str::to_owned),
            workload,
            host: config.host.clone(),
            path: stored.path.clone(),
            current: stored.reference().clone(),
            failed: 0,
            goodput_bps: None,
            measured: config.workload.as_ref().map_or_else(|| TrialFigure::of(&[]), TrialFigure::of_workload),
            figure: None,
            links: links(journal, &stored.id)?,
            arms: stored.arms.clone(),
            has_receivers_clock: stored.has_receivers_clock(),
            boot: stored.owner.boot_id.clone(),
            judged: Vec::new(),
            assessment: None,
            screen,
            sessions: Vec::new(),
        };
        if screen {
            return Ok(experiment);
        }
        let history = History::read(journal, stored)?;
        let assessment = history.replay()?.assessment();
        (experiment.rounds, experiment.trials) = (assessment.rounds, assessment.trials);
        experiment.assessment = Some(assessment);
        (experiment.judged, experiment.failed) = (history.judged(0), history.failed(0));
        experiment.sessions = history.sessions().map(|(id, seed)| (id.to_owned(), seed)).collect();
        experiment.goodput_bps = upper_median(history.rates(0));
        experiment.figure = if experiment.measured.is_goodput() {
            experiment.goodput_bps
        } else {
            let mut figures = figures(journal, &experiment)?;
            figures.sort_by(f64::total_cmp);
            // As `page` and `report` have it of loads in a browser, and `report` of all others.
            if config.browser.is_some() { quantile(&figures, 0.5) } else { upper_median(figures) }
        };
        Ok(experiment)
    }

    /// The name of the machine, as far as the journal says.
    fn host_name(&self) -> Option<&str> {
        self.host.as_ref()?.name.as_deref()
    }

    /// What each trial of the current settings is judged by, larger being better.
    pub(super) fn judged(&self) -> &[f64] {
        &self.judged
    }

    /// Whether another experiment goes on with it, so that its trials are that one's.
    pub(super) fn is_continued_by(&self, other: &Self) -> bool {
        self.id != other.id && other.sessions.iter().any(|(id, _)| *id == self.id)
    }

    /// What each of its trials did, in a word.
    pub(super) fn kind(&self) -> &str {
        self.workload["kind"].as_str().unwrap_or("unknown")
    }

    /// Why it can't be compared with anything.
    pub(super) fn unusable(&self) -> Option<String> {
        if self.screen {
            return Some(format!("{} is a screen, which varies all knobs at once: compare its confirmation", self.id));
        }
        let why = if self.failed > 0 { "in which anything was moved" } else { "that counts" };
        self.judged.is_empty().then(|| format!("{} has no trial of the current settings {why}", self.id))
    }

    /// How many of the trials of the current settings are in no figure of them, if some aren't.
    pub(super) fn partly_failed(&self) -> Option<String> {
        (self.failed > 0 && !self.judged.is_empty()).then(|| {
            let all = counted(self.failed + self.judged.len(), "trial");
            let rest = "what is told of their rate is of the others";
            format!("in {} {} of {all} of the current settings failed; {rest}", self.id, self.failed)
        })
    }

    /// Why the two can't be compared.
    pub(super) fn obstacles(&self, other: &Self) -> Vec<String> {
        let mut obstacles = Vec::new();
        let mut unlike = |what: &str, own: &str, others: &str| {
            if own != others {
                obstacles.push(format!("the {what} differs: {own} against {others}"));
            }
        };
        unlike("tunnel", &self.tunnel, &other.tunnel);
        unlike("target", &self.target, &other.target);
        unlike("workload", self.kind(), other.kind());
        if let (Some(own), Some(others)) = (&self.direction, &other.direction) {
            unlike("direction", own, others);
        }
        if let (Some(own), Some(others)) = (self.host_name(), other.host_name()) {
            unlike("host", own, others);
        }
        let clock = |of: &Self| if of.has_receivers_clock { "their receiver" } else { "their sender" };
        unlike("clock of the uploads", clock(self), clock(other));
        obstacles
    }

    /// What else differs, and so is part of any difference.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut notes = Vec::new();
        let between = |what: &str, own: String, others: String| format!("{what}: {own} against {others}");
        if self.current != other.current {
            notes.push(between("the current settings differ", self.current.to_string(), other.current.to_string()));
        }
        if self.kind() == other.kind() && self.workload["amount"] != other.workload["amount"] {
            let amount = |of: &Self| amount(&of.workload["amount"]);
            notes.push(between("transfers were of different size or length", amount(self), amount(other)));
        }
        let ms = |us: u64| format!("{:.1} ms", us as f64 / 1e3);
        let (own, others) = (self.path.rtt_us as f64, other.path.rtt_us as f64);
        // 0 is of a path that nobody knows.
        if own.min(others) > 0.0 && own.max(others) > own.min(others) * SAME {
            notes.push(between("the path's RTT differed", ms(self.path.rtt_us), ms(other.path.rtt_us)));
        }
        if self.path.pmtu.min(other.path.pmtu) > 0 && self.path.pmtu != other.path.pmtu {
            notes.push(between("the path MTU differed", self.path.pmtu.to_string(), other.path.pmtu.to_string()));
        }
        let kernel = |of: &Self| of.host.as_ref()?.kernel.clone();
        if let (Some(own), Some(others)) = (kernel(self), kernel(other))
            && own != others
        {
            notes.push(between("the kernel differed", own, others));
        }
        if self.host_name().is_none() || other.host_name().is_none() {
            let rebooted = if self.boot == other.boot {
                ""
            } else {
                ", and the machine was started anew between them, or is another one"
            };
            notes.push(format!("the journal doesn't say for both on which host they ran{rebooted}"));
        }
        if !self.links.is_empty() && !other.links.is_empty() && self.links != other.links {
            let told = |of: &Self| of.links.iter().map(Value::to_string).collect::<Vec<_>>().join(" then ");
            notes.push(between("the link differed", told(self), told(other)));
        }
        notes
    }

    /// Whether the link changed in the course of it.
    pub(super) fn link_changed(&self) -> Option<String> {
        (self.links.len() > 1).then(|| {
            let links: Vec<String> = self.links.iter().map(Value::to_string).collect();
            format!("in {} the link changed between trials: {}", self.id, links.join(", "))
        })
    }

    /// The evidence that a claim needs in it.
    pub(super) fn needed(&self) -> f64 {
        let arms = self.assessment.iter().flat_map(|assessment| &assessment.arms);
        arms.filter_map(|arm| arm.needed).fold(1.0, f64::max)
    }

    /// What came of a setting in it.
    pub(super) fn tried(&self, settings: &Settings) -> Option<TriedSetting> {
        let number = self.arms.iter().skip(1).position(|arm| arm.settings == *settings)? + 1;
        let arm = self.assessment.as_ref()?.arms.get(number)?;
        Some(TriedSetting {
            experiment: self.id.clone(),
            rounds: arm.rounds,
            ratio: arm.ratio,
            low: arm.lower.map(f64::exp),
            high: arm.upper.map(f64::exp),
            // The value at the end, not the largest on the way: only those multiply.
            evidence: arm.evidence_together,
            effect: arm
                .estimate
                .zip(arm.standard_error)
                .map(|(estimate, standard_error)| Effect { estimate, standard_error }),
            sessions: self.sessions.clone(),
            is_worth: arm.claimed.is_some(),
        })
    }

    /// The share below which a gain isn't worth a change by its rules.
    pub(super) fn relevant(&self) -> f64 {
        self.assessment.as_ref().map_or(0.0, |assessment| assessment.relevant)
    }
}

/// What people are told of each trial of the current settings, where that isn't goodput.
fn figures(journal: &dyn Journal, experiment: &ComparedExperiment) -> Result<Vec<f64>, Problem> {
    let mut figures = Vec::new();
    for (id, _) in &experiment.sessions {
        let read = journal.for_each_trial(id, WithSamples::No, &mut |trial| {
            let counts = matches!(trial.outcome.status, Status::Completed | Status::Incomplete);
            let of_round = matches!(trial.spec.phase, Phase::Round | Phase::Plateau) && trial.spec.arm == 0;
            figures.extend(trial.outcome.figure(experiment.measured.scale).filter(|_| counts && of_round));
            Ok(())
        });
        read.map_err(|error| wt_setup::journal::problem(&error))?;
    }
    Ok(figures)
}

/// The different links that the trials of an experiment ran over, in the order in which they were first seen.
fn links(journal: &dyn Journal, id: &str) -> Result<Vec<Value>, Problem> {
    let (mut seen, mut links) = (BTreeSet::new(), Vec::new());
    let read = journal.for_each_trial(id, WithSamples::No, &mut |trial| {
        if let Some(link) = trial.outcome.observed.link.as_ref().and_then(steady)
            && links.len() < 8
            && seen.insert(link.to_string())
        {
            links.push(link);
        }
        Ok(())
    });
    read.map_err(|error| wt_setup::journal::problem(&error))?;
    Ok(links)
}

/// How much each trial moved, as it was asked for: `3s`, `10MB`.
fn amount(value: &Value) -> String {
    let inner = value.as_object().and_then(|fields| fields.values().next()).unwrap_or(value);
    inner.as_str().map_or_else(|| inner.to_string(), str::to_owned)
}

/// What of a link is a state of it: a signal strength, which never stands still, is none.
fn steady(link: &Value) -> Option<Value> {
    let mut link = link.as_object()?.clone();
    link.remove("signal_dbm");
    Some(Value::Object(link))
}
