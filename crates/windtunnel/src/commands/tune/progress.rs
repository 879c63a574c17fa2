//! What a person sees while an experiment runs: on stderr, and only if that is a terminal; or a line of JSON for each
//! event on standard output.

use super::drive::Plan;
use crate::edge::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal as _;
use std::time::Duration;
use wt_experiment::Experiment;
use wt_report::tune::Measured;
use wt_trial::{TrialOutcome, TrialSpec};

/// How progress is told.
pub(crate) struct Progress {
    bar: ProgressBar,
    stream: bool,
    labels: Vec<String>,
    quiet: bool,
}

impl Progress {
    /// `stream`: a line of JSON for each event. `json`: the answer is for a program, so people are told nothing unless
    /// they watch. `quiet`: they are told nothing at all.
    pub(crate) fn new(stream: bool, json: bool, quiet: bool) -> Self {
        if stream {
            crate::commands::samples::stream();
        }
        let watched = std::io::stderr().is_terminal();
        let quiet = quiet || stream || (json && !watched);
        let shown = !quiet && watched;
        let bar = ProgressBar::with_draw_target(
            None,
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        Self { bar, stream, labels: Vec::new(), quiet }
    }

    /// Says something to a person.
    pub(crate) fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        } else {
            self.bar.println(text);
        }
    }

    /// Says what a person must know however quiet it is to be.
    pub(crate) fn warn(&self, text: &str) {
        use std::io::Write as _;
        self.bar.suspend(|| drop(writeln!(std::io::stderr().lock(), "windtunnel: {text}")));
    }

    /// The experiment begins.
    pub(crate) fn begin(&mut self, plan: &Plan, labels: Vec<String>, most_trials: usize, at_most: Duration) {
        self.labels = labels;
        self.bar.set_length(most_trials as u64);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} trials at most · {elapsed} of {msg}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_message(super::minutes(at_most));
        if self.stream {
            let event = json!({"event": "begin", "id": plan.id, "arms": self.labels, "max_trials": most_trials, "expected_s": at_most.as_secs_f64(), "measured": Measured::of_workload(&plan.workload)});
            say!("{event}");
        }
    }

    /// A trial has ended.
    pub(crate) fn trial(&mut self, spec: &TrialSpec, outcome: &TrialOutcome) {
        if self.stream {
            say!(
                "{}",
                json!({
                    "event": "trial", "phase": spec.phase, "round": spec.round, "order": spec.order, "arm": spec.arm,
                    "settings": spec.settings, "goodput_bps": outcome.goodput_bps(),
                    "figure": outcome.figure(spec.workload.scale()), "status": outcome.status,
                    "notes": outcome.notes,
                })
            );
        }
        if spec.round > 0 {
            self.bar.inc(1);
        }
        match outcome.status {
            wt_trial::Status::Invalid => self.say(&format!("trial repeated: {}", outcome.notes.join("; "))),
            wt_trial::Status::Incomplete if !outcome.notes.is_empty() => {
                self.say(&format!("trial incomplete: {}", outcome.notes.join("; ")));
            }
            _ => {}
        }
    }

    /// A round has ended.
    pub(crate) fn round(&mut self, experiment: &Experiment, spent: Duration) {
        let assessment = experiment.assessment();
        let best = assessment.arms.iter().skip(1).max_by(|a, b| a.evidence.total_cmp(&b.evidence));
        if self.stream {
            let evidence: Vec<_> = assessment.arms.iter().map(|arm| arm.evidence).collect();
            say!(
                "{}",
                json!({"event": "round", "rounds": assessment.rounds, "trials": assessment.trials,
                "evidence": evidence, "spent_s": spent.as_secs_f64(), "left": experiment.planned().len()})
            );
        }
        if let Some((best, needed)) = best.and_then(|arm| arm.needed.map(|needed| (arm, needed))) {
            let label = self.labels.get(best.arm).map_or("", String::as_str);
            self.say(&format!(
                "round {:>2}: {} settings left; most evidence for \"{label}\": {:.1} : 1 of {needed:.0} : 1",
                assessment.rounds,
                experiment.planned().len(),
                best.evidence
            ));
        }
    }

    /// It is over.
    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
