//! The trials that a claim of less delay rests on: rounds of two after the race, which the assessment of the race knows nothing of.

use super::{Trial, TuneInputs};
use wt_trial::{Phase, Status, TrialRecord};
use wt_units::counted;

impl TuneInputs<'_> {
    fn delay_records(&self) -> impl Iterator<Item = &TrialRecord> {
        self.records.iter().filter(|record| record.spec.phase == Phase::Delay)
    }

    /// All of them, in the order in which they ran.
    pub(super) fn delay_trials(&self) -> Vec<Trial> {
        self.delay_records().map(|record| self.trial(record)).collect()
    }

    /// How many of them don't count, if some don't.
    pub(super) fn spoilt_for_delay(&self) -> Option<String> {
        let spoilt = self.delay_records().filter(|record| record.outcome.status == Status::Invalid).count();
        (spoilt > 0).then(|| {
            let all = counted(self.delay_records().count(), "trial");
            format!("Of the rounds for less delay, {spoilt} of {all} don't count.")
        })
    }
}
