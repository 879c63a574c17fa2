use super::TuneInputs;
use wt_trial::{Phase, Status, TrialRecord};

impl TuneInputs<'_> {
    /// What goes on with the experiment until a large gain would show.
    pub(super) fn go_on(&self, records: &[&TrialRecord]) -> String {
        // Who is ahead but for attempts that came to nothing needs about as many again that don't.
        let again = self.assessment.trials.max(10);
        if self.assessment.arms.iter().any(|arm| arm.doubtful) {
            return self.go_on_for(&format!("\"{again} trials\""));
        }
        let wanted = self.assessment.needed.iter().map(|n| n.more_trials).filter(|more| (1..=2_000).contains(more));
        // So will who is ahead once the round is complete that somebody interrupted: it counts as lost.
        let wanted = wanted.min().map(|more| if ends_interrupted(records) { more.max(again) } else { more });
        let budget = wanted.map_or_else(|| "10min".to_owned(), |more| format!("\"{more} trials\""));
        self.go_on_for(&budget)
    }

    /// What goes on with it for so long, or runs another one.
    pub(super) fn go_on_for(&self, budget: &str) -> String {
        let resumed = || format!("windtunnel tune --resume {} --budget {budget}", self.id);
        self.facts.again.clone().unwrap_or_else(resumed)
    }
}

/// Whether a trial of the last round was interrupted and not run anew yet.
fn ends_interrupted(records: &[&TrialRecord]) -> bool {
    let last = records.iter().rfind(|record| record.spec.phase == Phase::Round);
    last.is_some_and(|last| last.outcome.status == Status::Aborted)
}
