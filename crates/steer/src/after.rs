//! After the verdict: a holdback that goes on measuring the gain, and several servers together.

use crate::answer::{CombinedArm, SCHEMA_VERSION, TrafficCombined};
use crate::record::{FinishedExperiment, finished};
use crate::{HoldbackRequest, TrafficCombineRequest};
use std::path::Path;
use wt_problem::Problem;
use wt_traffic::{
    ArmSettings, CLAIM_THRESHOLD, ServerEvidence, TrafficArm, TrafficConfig, TrafficUnit, TrafficVerdictKind,
    combine as together,
};

/// The holdback of an experiment that is done: everybody has the setting that won but for a share that keeps the old one.
///
/// # Errors
/// A usage [`Problem`] that says what is missing.
pub(crate) fn holdback(request: &HoldbackRequest, journal: Option<&Path>) -> Result<TrafficConfig, Problem> {
    if !(0.01..=0.5).contains(&request.share) {
        let share = 100.0 * request.share;
        return Err(
            Problem::usage(format!("a holdback of {share:.1}%: invalid, allowed are 1% to 50%")).hint("--keep-back 5%")
        );
    }
    let FinishedExperiment { id, config, report, .. } = finished(journal, &request.experiment)?;
    let won = report.verdict.arm.as_ref().filter(|_| report.verdict.kind == TrafficVerdictKind::Faster);
    let new = won.and_then(|won| config.arms.iter().find(|arm| arm.name == *won)).ok_or_else(|| {
        Problem::usage(format!("{id} shows nothing that is faster: there is no gain to go on measuring"))
            .hint(format!("windtunnel traffic report {id}"))
    })?;
    let mut old = config.arms.first().map_or_else(ArmSettings::current, |arm| arm.settings.clone());
    for pair in &request.old {
        let (name, level) = pair
            .split_once('=')
            .ok_or_else(|| Problem::usage(format!("{pair}: write KEY=LEVEL")).hint("--old initcwnd=10"))?;
        old.set(name, level).map_err(|error| Problem::usage(error.to_string()))?;
    }
    let has: Vec<&str> = old.iter().map(|(name, _)| name).collect();
    let missing: Vec<&str> = new.settings.iter().map(|(name, _)| name).filter(|name| !has.contains(name)).collect();
    if let Some(name) = missing.first() {
        return Err(Problem::usage(format!("{id} doesn't say what {} was before", missing.join(", ")))
            .because("its first arm had the settings of then, and by now the new ones may be in force")
            .hint(format!("--old {name}=LEVEL_OF_BEFORE")));
    }
    let old = TrafficArm { name: format!("old: {old}"), settings: old };
    // A holdback compares units beside each other, whomever the verdict is about.
    let beside = report.effects.iter().find(|effect| effect.arm == new.name);
    let claimed = beside.and_then(|effect| effect.low).unwrap_or(1.0);
    Ok(config.holdback(new.clone(), old, request.share, claimed))
}

/// Several experiments that tried the same arms, on one server or on many, together.
///
/// # Errors
/// A usage [`Problem`] that says which doesn't belong to the others.
pub fn combine(request: &TrafficCombineRequest) -> Result<TrafficCombined, Problem> {
    let mut all: Vec<FinishedExperiment> = Vec::new();
    for name in &request.experiments {
        let one = finished(request.journal.as_deref(), name)?;
        if all.iter().all(|other| other.id != one.id) {
            all.push(one);
        }
    }
    added_up(&all)
}

fn added_up(all: &[FinishedExperiment]) -> Result<TrafficCombined, Problem> {
    let [first, others @ ..] = all else {
        return Err(Problem::usage("no experiment is named").hint("windtunnel traffic combine ID ID"));
    };
    if let Some(slots) = all.iter().find(|one| one.config.unit == TrafficUnit::Slot) {
        return Err(Problem::usage(format!("{} compares slots, and those can't be added up", slots.id))
            .because("coins for clients or connections are added up, and in a slot everybody has the same settings")
            .hint(format!("windtunnel traffic report {}", slots.id)));
    }
    for other in others {
        if other.config.unit != first.config.unit {
            return Err(Problem::usage(format!("{} and {} don't count the same units", first.id, other.id))
                .because("one throws its coins for prefixes, the other for connections")
                .hint("combine experiments whose --unit is the same"));
        }
        if other.config.arms != first.config.arms || other.config.holdback != first.config.holdback {
            return Err(Problem::usage(format!("{} and {} didn't try the same settings", first.id, other.id))
                .hint("combine experiments whose --levels are the same"));
        }
    }
    if let Some(silent) = all.iter().find(|one| one.servers.len() + 1 != one.config.arms.len()) {
        return Err(Problem::usage(format!("{} holds no evidence that can be added up", silent.id))
            .because("it was written by an older version, or by another program")
            .hint("run it again, or leave it out"));
    }
    let needed = CLAIM_THRESHOLD * (first.config.arms.len() - 1) as f64;
    let arm = |at: usize| {
        let servers: Vec<ServerEvidence> =
            all.iter().filter_map(|one| one.servers.get(at.saturating_sub(1)).cloned()).collect();
        let sum = together(&servers);
        CombinedArm {
            name: first.config.arms[at].name.clone(),
            servers: servers.len(),
            keys: sum.keys,
            shared: sum.shared,
            units: sum.units,
            ratio: sum.effect.map(f64::exp),
            evidence_faster: sum.log_faster.min(690.0).exp(),
            evidence_slower: sum.log_slower.min(690.0).exp(),
            text: sum.text(needed),
        }
    };
    Ok(TrafficCombined {
        schema_version: SCHEMA_VERSION,
        experiments: all.iter().map(|one| one.id.clone()).collect(),
        first: first.config.arms[0].name.clone(),
        arms: (1..first.config.arms.len()).map(arm).collect(),
        needed,
        receiver_settings: first.report.receiver_settings.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms_of_levels;
    use wt_traffic::{DrawKey, TrafficAnalysis, TrafficRun, TrafficTally};

    fn of_unit((number, unit): (usize, &TrafficUnit)) -> FinishedExperiment {
        let arms = arms_of_levels(&["initcwnd=10,32".to_owned()]).unwrap();
        let config = TrafficConfig { ports: vec![443], arms, unit: *unit, ..TrafficConfig::default() };
        let (id, analysis) = (format!("traffic-{number}"), TrafficAnalysis::new(config.clone()).unwrap());
        let report = analysis.report(TrafficRun { id: &id, backend: "sockops" }, &TrafficTally::default());
        let servers = analysis.server_evidence(DrawKey([1, number as u64]));
        FinishedExperiment { id, config, report, servers }
    }

    #[test]
    fn only_coins_for_the_same_units_are_added_up() {
        use TrafficUnit::{Connection, Prefix, Slot};
        let combined = |units: &[TrafficUnit]| added_up(&units.iter().enumerate().map(of_unit).collect::<Vec<_>>());
        assert_eq!(combined(&[Prefix, Prefix]).unwrap().arms[0].keys, 2);
        for (units, said) in [
            (&[Slot, Slot][..], "traffic-0 compares slots, and those can't be added up"),
            (&[Slot], "traffic-0 compares slots"),
            (&[Connection, Slot], "traffic-1 compares slots"),
            (&[Prefix, Connection], "don't count the same units"),
        ] {
            let problem = combined(units).unwrap_err();
            assert!(problem.what.contains(said) && problem.hint.is_some(), "{problem}");
        }
    }
}
