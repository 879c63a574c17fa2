use super::answer::StacksAnswer;
use super::assess::{Circumstances, assess};
use super::overhead::PairedOverhead;
use super::trials::StackTrials;
use crate::rounds::{STILL_RUNS, key};
use serde::Deserialize as _;
use std::collections::BTreeMap;
use wt_journal::{ComparedStack, Journal, StacksConfig, State, StoredExperiment, TrialId, WithSamples};
use wt_problem::Problem;
use wt_stacks::Choice;
use wt_stacks::conformance::Conformance;
use wt_trial::bulk::PathNow;
use wt_trial::{Status, TrialOutcome, TrialRecord};

/// Assesses a comparison of the journal again: the same trials give the same answer.
///
/// # Errors
/// A [`Problem`] that says what the journal lacks.
pub fn again(journal: &dyn Journal, stored: &StoredExperiment, config: &StacksConfig) -> Result<StacksAnswer, Problem> {
    let lacks = || Problem::internal(format!("{} doesn't say what was compared", stored.id));
    let compared = config.stacks.as_ref().ok_or_else(lacks)?;
    let workloads = compared.workloads.clone().ok_or_else(lacks)?;
    let mut conformance = compared.conformance.iter().flatten();
    let mut stacks = Vec::new();
    for ComparedStack { choice, window } in compared.arms.as_ref().ok_or_else(lacks)? {
        let choice: Choice = choice.parse().map_err(|_| lacks())?;
        let conformance = conformance.next().and_then(|kept| Conformance::deserialize(kept).ok());
        stacks.push(StackTrials::new(Choice { window: *window, ..choice }, conformance));
    }
    // The last of several is the one that counted: those before it were thrown away.
    let mut rounds: BTreeMap<(u32, &str), BTreeMap<usize, TrialOutcome>> = BTreeMap::new();
    let mut take = |trial: TrialRecord| {
        if !matches!(trial.outcome.status, Status::Running | Status::Aborted) {
            let key = (trial.spec.round, key(&trial.spec.workload));
            rounds.entry(key).or_default().insert(trial.spec.arm, trial.outcome);
        }
        Ok(())
    };
    let read = journal.for_each_trial_from(&stored.id, TrialId::MIN, WithSamples::Yes, &mut take);
    read.map_err(|error| wt_setup::journal::problem(&error))?;
    let all = stacks.len();
    for ((_, workload), outcomes) in rounds.into_iter().filter(|(_, outcomes)| outcomes.len() == all) {
        for (index, outcome) in outcomes {
            if let Some(stack) = stacks.get_mut(index) {
                stack.keep(workload, outcome);
            }
        }
    }
    let circumstances = Circumstances {
        lab: config.lab.clone().unwrap_or_else(|| stored.target.clone()),
        path: PathNow { base_rtt_us: stored.path.rtt_us, capacity_bps: stored.path.physical_goodput_bps },
        workloads,
    };
    let kept = stored.verdict.as_ref().map(|verdict| &verdict["adapter_overhead_paired"]);
    let mut answer = assess(&stored.id, &circumstances, &stacks, kept.and_then(PairedOverhead::from_json));
    if stored.state == State::Running {
        answer.sentences.insert(0, STILL_RUNS.to_owned());
    }
    Ok(answer)
}
