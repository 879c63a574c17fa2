use super::result::Comparison;
use super::{Arm, Run};
use crate::commands::journal;
use crate::commands::report::{Forms, write_whole};
use crate::edge::{Failure, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_journal::{Journal, StoredExperiment, TrialId, WithSamples};
use wt_lab::scenario::Disturbance;
use wt_trial::bulk::PathNow;
use wt_trial::{Phase, Status, TrialRecord};

/// Tells a comparison of the journal again: the same trials give the same answer.
///
/// # Errors
/// A [`Failure`] that says what the journal lacks.
pub(crate) fn again(journal: &dyn Journal, stored: &StoredExperiment, forms: &Forms) -> Outcome {
    if forms.csv.is_some() {
        return Err(Failure::usage("a comparison of congestion controls has no table of settings")
            .hint("windtunnel journal export last --form csv writes every trial"));
    }
    let compare = &stored.config["compare"];
    let lacks = || Failure::ours(format!("{} doesn't say what was compared", stored.id));
    let path = PathNow { base_rtt_us: stored.path.rtt_us, capacity_bps: stored.path.physical_goodput_bps };
    let mut arms = arms(compare).ok_or_else(lacks)?;
    let length = Duration::from_micros(compare["trial_us"].as_u64().ok_or_else(lacks)?);
    let mut rounds: BTreeMap<u32, BTreeMap<usize, Run>> = BTreeMap::new();
    let mut take = |trial: TrialRecord| {
        let (round, index) = (trial.spec.round, trial.spec.arm);
        let tells = !matches!(trial.outcome.status, Status::Running | Status::Aborted);
        if let Some(arm) = arms.get_mut(index).filter(|_| trial.spec.phase == Phase::Round && tells)
            && let Some(run) = arm.take(trial.outcome, &path)
        {
            rounds.entry(round).or_default().insert(index, run);
        }
        Ok(())
    };
    let read = journal.for_each_trial_from(&stored.id, TrialId::MIN, WithSamples::Yes, &mut take);
    read.map_err(|error| journal::failure(&error))?;
    // A round that isn't complete compares nothing.
    let all = arms.len();
    for runs in rounds.into_values().filter(|runs| runs.len() == all) {
        for (index, run) in runs {
            arms[index].runs.push(run);
        }
    }
    if arms.iter().all(|arm| arm.runs.is_empty()) {
        return Err(Failure::usage(format!("{} has no complete round", stored.id)));
    }
    let lab = stored.config["lab"].as_str().unwrap_or(&stored.target);
    let comparison = Comparison::new(lab, path, length, disturbance(&compare["disturbance"]), &arms);
    if let Some(file) = &forms.html {
        write_whole(file, &comparison.page(&arms, &stored.id))?;
    }
    Ok(comparison.tell(&stored.id, forms.json))
}

fn arms(compare: &Value) -> Option<Vec<Arm>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let arm = |one: &Value| {
        let (asked, name, variant) = (text(&one[0])?, text(&one[1])?, text(&one[2])?);
        Some(Arm { asked, name, variant, runs: Vec::new(), invalid: 0, guard_hits: 0 })
    };
    compare["arms"].as_array()?.iter().map(arm).collect()
}

fn disturbance(value: &Value) -> Option<(Disturbance, Duration)> {
    let lasts = Duration::from_micros(value["lasts_us"].as_u64()?);
    let what = match value["kind"].as_str()? {
        "loss" => Disturbance::Loss,
        "burst" => Disturbance::Burst,
        "outage" => Disturbance::Outage,
        "half-rate" => Disturbance::HalfRate { lasts },
        "rtt-step" => Disturbance::RttStep,
        "flow" => Disturbance::Flow { lasts },
        _ => return None,
    };
    Some((what, Duration::from_micros(value["at_us"].as_u64()?)))
}
