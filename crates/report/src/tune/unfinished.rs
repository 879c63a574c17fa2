//! What trials say that weren't completed.

use std::collections::BTreeMap;
use wt_trial::{Status, TrialRecord};

/// How many trials weren't completed for a reason that is known, and what the last of them says.
pub(super) fn not_completed(records: &[&TrialRecord]) -> Option<String> {
    let told = |record: &&&TrialRecord| record.outcome.status == Status::Incomplete && !record.outcome.notes.is_empty();
    let last = records.iter().rev().find(told)?.outcome.notes.join("; ");
    let number = records.iter().filter(told).count();
    Some(format!(
        "{number} of {} weren't completed; the last of them says: {last}.",
        wt_units::counted(records.len(), "trial")
    ))
}

/// Why all trials failed, if they did: what most of them say.
pub(super) fn why_all_failed(records: &[&TrialRecord]) -> Option<String> {
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
