use super::answer::{AgainstFirst, ControlResult, ControlsAnswer, ControlsVerdict, GoodputRuns, TrialDisturbance};
use super::beside::SharedWithFlow;
use super::control::ControlTrials;
use super::scripted::Scripted;
use super::{charts, words};
use std::time::Duration;
use wt_experiment::classic::{Table, against_the_first, blocked_anova};
use wt_trial::bulk::{Arrivals, Disturbed, PathNow, Recovery};

/// What is the same in all trials of a comparison.
#[derive(Debug, Clone)]
pub(super) struct Circumstances {
    /// The path, as it was named.
    pub(super) lab: String,
    pub(super) path: PathNow,
    /// How long each trial is.
    pub(super) length: Duration,
    /// What is made to happen in each.
    pub(super) scripted: Option<Scripted>,
}

/// The answer to a comparison with that name in the journal.
pub(super) fn assess(id: &str, circumstances: &Circumstances, controls: &[ControlTrials]) -> ControlsAnswer {
    let Circumstances { lab, path, length, scripted } = circumstances;
    let against = against(controls);
    let result = |(index, control): (usize, &ControlTrials)| {
        let others = index.checked_sub(1).and_then(|other| against.get(other).copied());
        result(control, circumstances, others)
    };
    let algorithms: Vec<ControlResult> = controls.iter().enumerate().map(result).collect();
    let shown = |one: &AgainstFirst| one.is_faster() || one.is_slower();
    let verdict = ControlsVerdict {
        difference_shown: algorithms.iter().any(|one| one.against_first.as_ref().is_some_and(shown)),
        text: words::verdict(&algorithms),
    };
    ControlsAnswer {
        schema_version: 1,
        id: id.to_owned(),
        lab: lab.clone(),
        trial_s: length.as_secs_f64(),
        path: (*path).into(),
        disturbance: scripted.map(|scripted| TrialDisturbance {
            kind: scripted.what.name(),
            at_s: scripted.at.as_secs_f64(),
            lasts_s: scripted.what.lasts().as_secs_f64(),
        }),
        pictures: charts::all(&algorithms, controls, *scripted),
        algorithms,
        verdict,
    }
}

/// What came of one.
fn result(
    control: &ControlTrials,
    circumstances: &Circumstances,
    against_first: Option<AgainstFirst>,
) -> ControlResult {
    let rtt_us = circumstances.path.base_rtt_us;
    let runs: Vec<f64> = control.counted.iter().map(|trial| trial.outcome.goodput_bps() / 8e3).collect();
    ControlResult {
        name: control.control.name.clone(),
        variant: control.control.variant.clone(),
        goodput: GoodputRuns { mean: runs.iter().sum::<f64>() / runs.len().max(1) as f64, runs },
        t90_s: control.median(|metrics| metrics.t90_s),
        recovery_s: control.median(|metrics| metrics.recovery.median_s),
        p95_queue_ms: control.median(|metrics| metrics.p95_queue_ms),
        retransmit_share: control.median(|metrics| metrics.retransmit_share),
        guard_hits: control.guard_hits,
        invalid_trials: control.invalid,
        against_first,
        runs: control.counted.iter().map(|trial| trial.metrics.clone()).collect(),
        after_disturbance: circumstances.scripted.map(|scripted| after(control, scripted, rtt_us)),
        beside: SharedWithFlow::of(control, window_us(rtt_us)),
        label: control.label(),
    }
}

/// The window of rates, µs.
fn window_us(rtt_us: u64) -> u64 {
    (2 * rtt_us).max(200_000)
}

/// The recovery from what was made to happen, over all trials.
fn after(control: &ControlTrials, scripted: Scripted, rtt_us: u64) -> Recovery {
    let flows: Vec<(Arrivals, Disturbed)> = control
        .counted
        .iter()
        .map(|trial| {
            let outcome = &trial.outcome;
            let arrivals = Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes);
            (arrivals, scripted.when(trial))
        })
        .collect();
    Recovery::of_disturbances(&flows, rtt_us, window_us(rtt_us))
}

/// Each against the first, within rounds.
fn against(controls: &[ControlTrials]) -> Vec<AgainstFirst> {
    let rounds = controls.iter().map(|control| control.counted.len()).min().unwrap_or(0);
    let goodput = |control: &ControlTrials| {
        control.counted[..rounds].iter().map(|one| one.outcome.goodput_bps()).collect::<Vec<_>>()
    };
    let logs: Vec<f64> = controls.iter().flat_map(goodput).map(f64::ln).collect();
    let names = |prefix: &str, count: usize| (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let Ok(table) = Table::new(names("a", controls.len()), names("r", rounds), logs) else { return Vec::new() };
    let Some(anova) = blocked_anova(&table) else { return Vec::new() };
    let all = against_the_first(&table, &anova);
    all.iter().map(|one| AgainstFirst { ratio: one.ratio, low: one.low, high: one.high }).collect()
}
