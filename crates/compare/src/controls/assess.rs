use super::answer::{AgainstFirst, ControlResult, ControlsAnswer, ControlsVerdict, GoodputRuns, TrialDisturbance};
use super::beside::SharedWithFlow;
use super::control::{ControlTrials, CountedTrial};
use super::scripted::ScriptedDisturbance;
use super::{charts, words};
use std::time::Duration;
use wt_experiment::classic::{Table, against_the_first, blocked_anova};
use wt_trial::Status;
use wt_trial::bulk::{Arrivals, DisturbanceTimes, PathNow, Recovery};

/// What is the same in all trials of a comparison.
#[derive(Debug, Clone)]
pub(super) struct Circumstances {
    /// The path, as it was named.
    pub(super) lab: String,
    pub(super) path: PathNow,
    /// How long each trial is.
    pub(super) length: Duration,
    /// What is made to happen in each.
    pub(super) scripted: Option<ScriptedDisturbance>,
}

/// The answer to a comparison with that name in the journal.
pub(super) fn assess(id: &str, circumstances: &Circumstances, controls: &[ControlTrials]) -> ControlsAnswer {
    let Circumstances { lab, path, length, scripted } = circumstances;
    let completed = |trial: &CountedTrial| trial.outcome.status == Status::Completed;
    let rate = against(controls, |trial| completed(trial).then(|| trial.outcome.goodput_bps()));
    let start = against(controls, |trial| trial.metrics.first_100kb_s);
    let result = |(index, control): (usize, &ControlTrials)| {
        let of = |all: &[AgainstFirst]| index.checked_sub(1).and_then(|other| all.get(other).copied());
        result(control, circumstances, of(&rate), of(&start))
    };
    let algorithms: Vec<ControlResult> = controls.iter().enumerate().map(result).collect();
    let shown = |one: &AgainstFirst| one.is_larger() || one.is_smaller();
    let verdict = ControlsVerdict {
        difference_shown: algorithms.iter().any(|one| one.against_first.as_ref().is_some_and(shown)),
        text: words::verdict(&algorithms) + &words::beside_whom(*scripted, *length),
        start: words::start(&algorithms),
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
    start_against_first: Option<AgainstFirst>,
) -> ControlResult {
    let rtt_us = circumstances.path.base_rtt_us;
    let runs: Vec<f64> = control.counted.iter().map(|trial| trial.outcome.goodput_bps() / 8e3).collect();
    ControlResult {
        name: control.control.name.clone(),
        variant: control.control.variant.clone(),
        goodput: GoodputRuns { mean: runs.iter().sum::<f64>() / runs.len().max(1) as f64, runs },
        t90_s: control.median_of_those(|metrics| Some(metrics.t90_s)),
        t90_path_s: control.median_of_most(|metrics| metrics.t90_capacity_s),
        first_100kb_s: control.median_of_most(|metrics| metrics.first_100kb_s),
        first_1mb_s: control.median_of_most(|metrics| metrics.first_1mb_s),
        recovery_s: control
            .median_of_those(|metrics| (metrics.recovery.events > 0).then_some(metrics.recovery.median_s)),
        p95_queue_ms: control.median(|metrics| metrics.p95_queue_ms),
        retransmit_share: control.median(|metrics| metrics.retransmit_share),
        guard_hits: control.guard_hits,
        invalid_trials: control.invalid,
        failed_trials: control.failed(),
        against_first,
        start_against_first,
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
fn after(control: &ControlTrials, scripted: ScriptedDisturbance, rtt_us: u64) -> Recovery {
    let flows: Vec<(Arrivals, DisturbanceTimes)> = control
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

/// One measure of each against the first one's, within rounds; nothing where a trial lacks it.
fn against(controls: &[ControlTrials], measure: impl Fn(&CountedTrial) -> Option<f64>) -> Vec<AgainstFirst> {
    let rounds = controls.iter().map(|control| control.counted.len()).min().unwrap_or(0);
    let trials = controls.iter().flat_map(|control| &control.counted[..rounds]);
    let Some(values) = trials.map(&measure).collect::<Option<Vec<f64>>>() else { return Vec::new() };
    let logs = values.into_iter().map(f64::ln).collect();
    let names = |prefix: &str, count: usize| (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let Ok(table) = Table::new(names("a", controls.len()), names("r", rounds), logs) else { return Vec::new() };
    let Some(anova) = blocked_anova(&table) else { return Vec::new() };
    let all = against_the_first(&table, &anova);
    all.iter().map(|one| AgainstFirst { ratio: one.ratio, low: one.low, high: one.high }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_journal::ComparedControl;
    use wt_lab::scenario::Disturbance;
    use wt_trial::{Sample, TrialOutcome};

    /// Trials of 10 s at 200 kB/s whose first byte comes after so many ms.
    fn control(name: &str, starts_ms: &[u64]) -> ControlTrials {
        let path = PathNow { base_rtt_us: 100_000, capacity_bps: Some(1_700_000) };
        let compared = ComparedControl { asked: name.to_owned(), name: name.to_owned(), variant: "default".to_owned() };
        let mut control = ControlTrials::new(compared);
        for start in starts_ms {
            let at = |ms: u64| Sample { t_us: ms * 1_000, bytes: ms.saturating_sub(*start) * 200, ..Sample::default() };
            let outcome = TrialOutcome {
                bytes: (10_000 - start) * 200,
                elapsed_us: 10_000_000,
                receiver: (1..=1_000).map(|step| at(step * 10)).collect(),
                ..TrialOutcome::empty(Status::Completed, Duration::from_secs(10), "")
            };
            control.keep(outcome, &path);
        }
        control
    }

    fn assessed(controls: &[ControlTrials]) -> ControlsAnswer {
        let path = PathNow { base_rtt_us: 100_000, capacity_bps: Some(1_700_000) };
        let circumstances =
            Circumstances { lab: "path".to_owned(), path, length: Duration::from_secs(10), scripted: None };
        assess("id", &circumstances, controls)
    }

    #[test]
    fn who_starts_sooner_is_said_and_by_how_much_although_the_rate_is_the_same() {
        let slow = control("slow", &[500, 520, 480, 510, 490, 505]);
        let fast = control("fast", &[20, 30, 10, 25, 15, 20]);
        let answer = assessed(&[slow, fast]);
        let [of_slow, of_fast] = [&answer.algorithms[0], &answer.algorithms[1]];
        // 100 kB take 0.5 s at 200 kB/s; 90 % of 1.7 Mbit/s is below 200 kB/s.
        assert!((of_slow.first_100kb_s.unwrap() - 1.0).abs() < 0.03, "{of_slow:?}");
        assert!((of_fast.first_100kb_s.unwrap() - 0.52).abs() < 0.03, "{of_fast:?}");
        assert!((of_fast.first_1mb_s.unwrap() - 5.02).abs() < 0.03, "{of_fast:?}");
        assert!(of_slow.t90_path_s.unwrap() > of_fast.t90_path_s.unwrap(), "{of_slow:?} {of_fast:?}");
        let start = of_fast.start_against_first.unwrap();
        assert!(start.low < 0.52 && 0.52 < start.high && start.high < 0.6, "{start:?}");
        assert!(
            answer
                .verdict
                .start
                .starts_with("Start, by the time until the first 100 kB: sooner than slow: fast (-48 %")
        );
    }

    #[test]
    fn the_page_has_the_gain_and_what_was_retransmitted_before_single_runs() {
        let answer = assessed(&[control("slow", &[500, 520, 480, 510]), control("fast", &[20, 30, 10, 25])]);
        let against = answer.algorithms[1].against_first.unwrap().to_string();
        assert!(against.starts_with("+5 % (+"), "{against}");
        let html = answer.html();
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} isn't in {html}"));
        assert!(at("against the first") < at("retransmitted") && at("retransmitted") < at("single runs"));
        // As wide as the page at most: the times stand in a table below.
        assert!(at("p95 queue") < at("seconds until") && at("seconds until") < at("single runs"));
        assert!(html.contains(&against), "{against}");
    }

    #[test]
    fn trials_that_were_never_back_after_a_loss_count_and_those_without_a_loss_dont() {
        let told = |medians: &[Option<Option<f64>>]| {
            let mut control = control("a", &vec![20; medians.len()]);
            for (trial, median) in control.counted.iter_mut().zip(medians) {
                let events = usize::from(median.is_some());
                let median_s = median.flatten();
                trial.metrics.recovery = Recovery { events, median_s, ..Recovery::default() };
            }
            assessed(&[control]).algorithms[0].recovery_s
        };
        assert_eq!(told(&[Some(Some(1.0)), Some(None), Some(Some(2.0))]), Some(2.0));
        assert_eq!(told(&[Some(Some(1.0)), Some(None), Some(None)]), None);
        assert_eq!(told(&[Some(Some(1.0)), None, None, Some(Some(2.0))]), Some(1.5));
        assert_eq!(told(&[None]), None);
    }

    #[test]
    fn a_control_with_a_trial_that_moved_nothing_is_told_with_it_and_without_a_ratio() {
        let (good, mut bad) = (control("good", &[20, 40, 30]), control("bad", &[30, 20]));
        let empty = TrialOutcome::empty(Status::Failed, Duration::from_secs(10), "no byte arrived");
        assert!(bad.note(&empty) && !bad.note(&TrialOutcome { status: Status::Invalid, ..empty.clone() }));
        bad.keep(empty, &PathNow { base_rtt_us: 100_000, capacity_bps: Some(1_700_000) });
        let answer = assessed(&[good, bad]);
        let of_bad = &answer.algorithms[1];
        assert_eq!((of_bad.failed_trials, of_bad.invalid_trials, of_bad.goodput.runs[2]), (1, 1, 0.0));
        assert_eq!((of_bad.against_first, answer.verdict.difference_shown), (None, false));
        let text = &answer.verdict.text;
        assert!(text.starts_with("bad failed in 1 of 3 trials, so no ratio holds for all of them"), "{text}");
    }

    #[test]
    fn whose_goodput_it_is_beside_another_flow_is_said() {
        let (mut first, second) = (control("a", &[20, 40, 30]), control("b", &[30, 20, 40]));
        let late = TrialOutcome::empty(Status::Invalid, Duration::from_secs(10), "the lab was late");
        assert!(!first.note(&late));
        let path = PathNow { base_rtt_us: 100_000, capacity_bps: Some(1_700_000) };
        let flow = Disturbance::Flow { lasts: Duration::from_secs(3) };
        let of = |scripted| Circumstances { lab: "path".to_owned(), path, length: Duration::from_secs(10), scripted };
        let controls = [first, second];
        let scripted = ScriptedDisturbance { what: flow, at: Duration::from_secs(4) };
        let answer = assess("id", &of(Some(scripted)), &controls);
        assert!(
            answer.verdict.text.contains("a newreno flow beside each for 3.0 of 10.0 s"),
            "{}",
            answer.verdict.text
        );
        let thrown: Vec<String> = answer.thrown_away().collect();
        assert_eq!(thrown, ["a: 1 trial thrown away and run again; the kernel skipped a program 0 times."]);
        assert!(!assess("id", &of(None), &controls).verdict.text.contains("newreno"));
    }

    #[test]
    fn equal_starts_are_told_equal_and_trials_without_100_kb_tell_nothing() {
        let answer = assessed(&[control("a", &[20, 40, 30]), control("b", &[30, 20, 40])]);
        assert!(answer.verdict.start.ends_with("no difference from a is shown."), "{}", answer.verdict.start);
        let answer = assessed(&[control("a", &[20, 40, 30]), control("b", &[30, 9_900, 9_900])]);
        assert_eq!((answer.algorithms[1].first_100kb_s, answer.verdict.start.as_str()), (None, ""));
    }
}
