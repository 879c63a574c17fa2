//! The end of an experiment: verdict, journal, reports.

use super::drive::Plan;
use super::notebook::Notebook;
use super::{Prepared, TuneArgs};
use crate::edge::{Exit, Failure, Outcome, say};
use serde_json::{Value, json};
use std::time::Duration;
use wt_experiment::{ArmAssessment, Assessment, Experiment, StopReason, Text, VerdictKind};
use wt_journal::State;
use wt_trial::{Phase, TrialRecord};
use wt_units::{Level, Settings};

/// An experiment that has ended.
pub(crate) struct Finished<'a> {
    pub(crate) args: &'a TuneArgs,
    pub(crate) target: String,
    pub(crate) tunnel: &'static str,
    pub(crate) prepared: &'a Prepared,
    pub(crate) plan: &'a Plan,
    pub(crate) experiment: &'a Experiment,
    pub(crate) records: &'a [TrialRecord],
    pub(crate) spent: Duration,
}

impl Finished<'_> {
    /// Journals the verdict, writes the reports that were asked for, and answers.
    ///
    /// # Errors
    /// A [`Failure`] when something can't be written; what was measured is in the journal all the same.
    pub(crate) fn conclude(&self, mut notebook: Notebook) -> Outcome {
        let assessment = self.experiment.assessment();
        let report = self.report(&assessment);
        let state = if assessment.stop == Some(StopReason::User) { State::Stopped } else { State::Finished };
        notebook.end(state, &report["verdict"])?;
        self.print(&assessment, &report)?;
        Ok(if assessment.kind == VerdictKind::Faster { Exit::Done } else { Exit::No })
    }

    /// The settings in full: what isn't asked for is as it was.
    fn in_full(&self, settings: &Settings) -> Settings {
        let mut full = self.prepared.current.clone();
        for (knob, level) in settings.iter().filter(|(_, level)| **level != Level::Auto) {
            full.set(knob, level.clone());
        }
        full
    }

    fn report(&self, assessment: &Assessment) -> Value {
        let design = &self.prepared.design;
        let trials = self.experiment.trials().max(1) as u32;
        let text = Text::new(assessment, &design.labels(), self.spent / trials);
        let best = best_candidate(assessment);
        let plateau = assessment.plateau.as_ref().zip(design.plateau.as_ref()).map(|(found, (knob, _))| {
            let level = self.in_full(&design.arms[found.smallest].settings).get(*knob).cloned();
            json!({"knob": knob.name(), "level": level, "epsilon": found.epsilon})
        });
        let rounds = self.records.iter().filter(|record| matches!(record.spec.phase, Phase::Round | Phase::Plateau));
        let table: Vec<Value> = rounds
            .map(|record| {
                json!({
                    "round": record.spec.round,
                    "order": record.spec.order,
                    "settings": self.in_full(&record.spec.settings),
                    "goodput_bps": record.outcome.goodput_bps(),
                    "status": record.outcome.status.name(),
                })
            })
            .collect();
        json!({
            "schema_version": 1,
            "id": self.plan.id,
            "target": self.target,
            "tunnel": self.tunnel,
            "path": {
                "rtt_us": self.prepared.path.rtt_us,
                "pmtu": self.prepared.path.pmtu,
                "bdp_bytes": self.prepared.path.bdp_bytes,
            },
            "current": self.prepared.current,
            "rounds": assessment.rounds,
            "trials": assessment.trials,
            "verdict": {
                "kind": assessment.kind,
                "settings": self.in_full(&design.arms[assessment.pick].settings),
                "ratio": best.ratio,
                "at_least": best.lower.map(f64::exp),
                "evidence": best.evidence,
                "needed": best.needed,
                "text": text.to_string(),
            },
            "plateau": plateau,
            "physical_goodput_bps": self.prepared.path.physical_goodput_bps,
            "trial_table": table,
        })
    }

    fn print(&self, _assessment: &Assessment, report: &Value) -> Result<(), Failure> {
        if self.args.json || self.args.json_stream {
            say!("{report}");
        } else {
            say!("{}", report["verdict"]["text"].as_str().unwrap_or(""));
        }
        Ok(())
    }
}

/// The setting that the verdict's figures speak of: the one that is recommended, else the leading candidate.
fn best_candidate(assessment: &Assessment) -> &ArmAssessment {
    let first = [assessment.pick, assessment.leader].into_iter().find(|arm| *arm != 0);
    let by_evidence = || assessment.arms.iter().skip(1).max_by(|a, b| a.evidence.total_cmp(&b.evidence));
    // An experiment has at least two arms.
    first.map(|arm| &assessment.arms[arm]).or_else(by_evidence).unwrap_or(&assessment.arms[0])
}
