use super::answer::ControlsAnswer;
use super::assess::{Circumstances, assess};
use super::control::ControlTrials;
use super::scripted::ScriptedDisturbance;
use crate::rounds::STILL_RUNS;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_journal::{ControlsConfig, Journal, State, StoredExperiment, TrialId, WithSamples};
use wt_problem::Problem;
use wt_trial::bulk::PathNow;
use wt_trial::{Phase, Status, TrialOutcome, TrialRecord};

/// Assesses a comparison of the journal again: the same trials give the same answer.
///
/// # Errors
/// A [`Problem`] that says what the journal lacks.
pub fn again(
    journal: &dyn Journal,
    stored: &StoredExperiment,
    config: &ControlsConfig,
) -> Result<ControlsAnswer, Problem> {
    let lacks = || Problem::internal(format!("{} doesn't say what was compared", stored.id));
    let compared = config.compare.as_ref().ok_or_else(lacks)?;
    let controls = compared.arms.clone().ok_or_else(lacks)?;
    let mut controls: Vec<ControlTrials> = controls.into_iter().map(ControlTrials::new).collect();
    let circumstances = Circumstances {
        lab: config.lab.clone().unwrap_or_else(|| stored.target.clone()),
        path: PathNow { base_rtt_us: stored.path.rtt_us, capacity_bps: stored.path.physical_goodput_bps },
        length: Duration::from_micros(compared.trial_us.ok_or_else(lacks)?),
        scripted: compared.disturbance.as_ref().and_then(ScriptedDisturbance::from_config),
    };
    let mut rounds: BTreeMap<u32, BTreeMap<usize, TrialOutcome>> = BTreeMap::new();
    let mut take = |trial: TrialRecord| {
        let (round, index) = (trial.spec.round, trial.spec.arm);
        let tells = !matches!(trial.outcome.status, Status::Running | Status::Aborted);
        if let Some(control) = controls.get_mut(index).filter(|_| trial.spec.phase == Phase::Round && tells)
            && control.note(&trial.outcome)
        {
            rounds.entry(round).or_default().insert(index, trial.outcome);
        }
        Ok(())
    };
    let read = journal.for_each_trial_from(&stored.id, TrialId::MIN, WithSamples::Yes, &mut take);
    read.map_err(|error| wt_setup::journal::problem(&error))?;
    // A round that isn't complete compares nothing.
    let all = controls.len();
    for outcomes in rounds.into_values().filter(|outcomes| outcomes.len() == all) {
        for (index, outcome) in outcomes {
            controls[index].keep(outcome, &circumstances.path);
        }
    }
    if controls.iter().all(|control| control.counted.is_empty()) {
        return Err(Problem::usage(format!("{} has no complete round", stored.id)).because("it compares nothing yet").hint(
            "windtunnel journal list shows the experiments of before, windtunnel report EXPERIMENT reads one of them",
        ));
    }
    let mut answer = assess(&stored.id, &circumstances, &controls);
    if stored.state == State::Running {
        answer.verdict.text = format!("{STILL_RUNS} {}", answer.verdict.text);
    }
    Ok(answer)
}
