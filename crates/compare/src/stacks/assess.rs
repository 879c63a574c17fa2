use super::answer::{
    AckDelayTrend, ExchangeFigures, FailedTrials, LatenessFigures, RampUpFigures, StackFinding, StackResult,
    StacksAnswer, WayFigures, WorkloadResult,
};
use super::conformance::StackConformance;
use super::figures::{is_soak, kind, median, ramp_up, score, seen};
use super::overhead::PairedOverhead;
use super::trials::StackTrials;
use super::verdict::{SAME, StackVerdict, threshold};
use super::{charts, page, windows};
use crate::rounds::key;
use std::collections::BTreeMap;
use wt_stacks::StackObservation;
use wt_stacks::finding::Trend;
use wt_trial::bulk::PathNow;
use wt_trial::{Exchanges, Status, TrialOutcome, Workload};
use wt_units::median_time;

/// What is the same for all stacks of a comparison.
#[derive(Debug, Clone)]
pub(super) struct Circumstances {
    /// The path, as it was named.
    pub(super) lab: String,
    pub(super) path: PathNow,
    pub(super) workloads: Vec<Workload>,
}

/// The answer to a comparison with that name in the journal.
pub(super) fn assess(
    id: &str,
    circumstances: &Circumstances,
    stacks: &[StackTrials],
    paired: Option<PairedOverhead>,
) -> StacksAnswer {
    let Circumstances { lab, path, workloads } = circumstances;
    let keys: Vec<&'static str> = workloads.iter().map(key).collect();
    let mut answer = StacksAnswer {
        schema_version: 1,
        id: id.to_owned(),
        lab: lab.clone(),
        path: (*path).into(),
        same_bytes: same_bytes(workloads, stacks),
        same_within: SAME,
        adapter_overhead: adapter_overhead(&keys, stacks),
        adapter_overhead_paired: paired,
        windows: windows::all(stacks, path),
        stacks: stacks.iter().map(|stack| stack_result(stack, &keys, path)).collect(),
        verdicts: verdicts(workloads, stacks),
        rounds: stacks.iter().map(StackTrials::rounds).max().unwrap_or(0),
        sentences: Vec::new(),
        table: page::table(stacks, &keys),
        charts: charts::all(stacks, keys.iter().copied()),
    };
    answer.sentences = answer.to_sentences();
    answer
}

/// Whether each workload of fixed size moved the same bytes with every stack.
fn same_bytes(workloads: &[Workload], stacks: &[StackTrials]) -> bool {
    workloads.iter().filter(|workload| workload.size().is_some()).all(|workload| {
        let mut all: Vec<u64> = stacks.iter().flat_map(|stack| stack.bytes(key(workload))).collect();
        all.dedup();
        all.len() <= 1
    })
}

/// What the adapter's path costs: the kernel behind it against the kernel itself, where both were run alike.
fn adapter_overhead(workloads: &[&'static str], stacks: &[StackTrials]) -> Option<BTreeMap<&'static str, f64>> {
    let of =
        |name: &str| stacks.iter().find(|stack| stack.choice().stack.name == name && stack.choice().options.is_empty());
    let (direct, behind) = (of(wt_stacks::catalogue::DIRECT)?, of("linux")?);
    let ratio = |workload: &&'static str| {
        let [direct, behind] = [direct, behind].map(|stack| median(stack.scores(workload)));
        Some((*workload, behind? / direct?))
    };
    Some(workloads.iter().filter_map(ratio).collect())
}

/// Each pair of stacks at each workload that is ranked.
fn verdicts(workloads: &[Workload], stacks: &[StackTrials]) -> Vec<StackVerdict> {
    let ranked: Vec<&str> = workloads.iter().filter(|workload| !is_soak(workload)).map(key).collect();
    let pairs: Vec<(usize, usize)> =
        (0..stacks.len()).flat_map(|a| (a + 1..stacks.len()).map(move |b| (a, b))).collect();
    let needed = threshold(pairs.len(), ranked.len());
    let verdict = |workload: &str, (a, b): (usize, usize)| {
        let (a, b) = (&stacks[a], &stacks[b]);
        let both = a.of(workload).iter().zip(b.of(workload)).filter(|(a, b)| says(a) && says(b));
        let scores: Vec<_> = both.map(|(a, b)| [score(workload, a), score(workload, b)]).collect();
        let verdict = StackVerdict::of(workload, [&a.title(), &b.title()], &scores, needed);
        if a.choice().is_alike(b.choice()) { verdict.of_one_stack() } else { verdict }
    };
    ranked.iter().flat_map(|name| pairs.iter().map(|pair| verdict(name, *pair)).collect::<Vec<_>>()).collect()
}

/// Whether a trial says anything: one that wasn't finished does.
fn says(outcome: &TrialOutcome) -> bool {
    matches!(outcome.status, Status::Completed | Status::Incomplete | Status::Failed)
}

/// What came of one.
fn stack_result(stack: &StackTrials, workloads: &[&'static str], path: &PathNow) -> StackResult {
    let offer = stack.all().find_map(|(_, outcome)| seen(outcome)?.offer);
    let delay = stack.longest_seen().and_then(|seen| seen.ack_delay);
    let trend = delay.as_ref().and_then(Trend::of).map(|trend| AckDelayTrend {
        start_ms: Some(trend.start_ms),
        end_ms: Some(trend.end_ms),
        p: trend.p,
    });
    let finding = |(workload, finding): (String, wt_stacks::finding::Finding)| StackFinding {
        workload,
        text: finding.text(),
        finding,
    };
    StackResult {
        name: stack.choice().label.clone(),
        stack: stack.choice().stack.name,
        version: stack.version(),
        rwin: stack.choice().window,
        settings: stack.settings(),
        refused: stack.refused(),
        workloads: workloads.iter().map(|name| (*name, workload_result(stack, name, path))).collect(),
        integrity: stack.integrity(),
        integrity_checked: stack.is_checked(),
        ack_delay_trend: trend.unwrap_or_default(),
        memory_bytes: stack.memory(),
        conformance: StackConformance::new(stack.conformance(), offer.as_ref()),
        findings: stack.findings().into_iter().map(finding).collect(),
        failures: failures(stack),
        title: stack.title(),
    }
}

/// Trials that weren't completed, by workload and reason.
fn failures(stack: &StackTrials) -> Vec<FailedTrials> {
    let mut counted: BTreeMap<(&str, &'static str, String), u32> = BTreeMap::new();
    for (workload, outcome) in stack.all().filter(|(_, outcome)| outcome.status != Status::Completed) {
        *counted.entry((workload, outcome.status.name(), outcome.notes.join("; "))).or_default() += 1;
    }
    let one = |((workload, status, why), trials): ((&str, _, _), _)| FailedTrials {
        workload: workload.to_owned(),
        status,
        why,
        trials,
    };
    counted.into_iter().map(one).collect()
}

/// What came of one with one workload.
fn workload_result(stack: &StackTrials, workload: &str, path: &PathNow) -> WorkloadResult {
    let done: Vec<&TrialOutcome> = stack.completed(workload).collect();
    let of = |figure: &dyn Fn(&TrialOutcome) -> Option<f64>| {
        median(done.iter().filter_map(|outcome| figure(outcome)).collect())
    };
    let exchanges = |of: fn(&Exchanges) -> f64| {
        median(done.iter().filter_map(|outcome| outcome.measures.exchanges.as_ref().map(of)).collect())
    };
    let all_seen: Vec<StackObservation> = done.iter().filter_map(|outcome| seen(outcome)).collect();
    let middle = |of: fn(&StackObservation) -> Option<f64>| median(all_seen.iter().filter_map(of).collect());
    let flow = |at: usize| of(&|outcome| outcome.measures.flows_bps.get(at).copied());
    let up = kind(workload) != workload;
    WorkloadResult {
        trials: stack.of(workload).len(),
        completed: done.len(),
        bytes: stack.bytes(workload),
        seconds: of(&|outcome| Some(outcome.elapsed_us as f64 / 1e6)),
        goodput_bps: stack.goodput(workload),
        exchanges: matches!(workload, "transactions" | "bursts").then(|| ExchangeFigures {
            per_second: exchanges(|one| one.per_second),
            p50_us: exchanges(|one| one.latency.p50_us as f64),
            p99_us: exchanges(|one| one.latency.p99_us as f64),
        }),
        lateness: (kind(workload) == "stream").then(|| LatenessFigures {
            lateness_p99_us: of(&|outcome| outcome.measures.lateness.map(|late| late.spread.p99_us as f64)),
        }),
        ramp_up: matches!(kind(workload), "bulk" | "soak")
            .then(|| RampUpFigures { t90_s: median_time(done.iter().map(|outcome| ramp_up(outcome, path, up))) }),
        ways: (workload == "duplex").then(|| WayFigures { down_bps: flow(0), up_bps: flow(1) }),
        cpu_s_per_gb: stack.cpu_s_per_gb(workload),
        connect_us: of(&|outcome| outcome.observed.connect_us.map(|us| us as f64)),
        retransmissions: middle(|seen| seen.retransmissions.map(|count| count as f64)),
        server_retransmissions: middle(|seen| seen.server_retransmissions.map(|count| count as f64)),
        window_mean_bytes: middle(|seen| seen.window_mean),
        window_limit_bps: stack.limit(workload, path.base_rtt_us),
        window_bytes: middle(|seen| seen.window.map(f64::from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ok_is_told_to_say_nothing_of_a_stack_whose_data_never_came_to_its_end() {
        let told = |trials: &[(Status, &str)]| {
            let mut stack = StackTrials::new("smoltcp".parse().unwrap(), None);
            for (status, integrity) in trials {
                let mut outcome = TrialOutcome::empty(*status, Duration::from_secs(1), "the adapter crashed");
                outcome.observed.integrity = Some((*integrity).to_owned());
                stack.keep("bulk", outcome);
            }
            let path = PathNow { base_rtt_us: 10_000, capacity_bps: None };
            let result = serde_json::to_value(stack_result(&stack, &["bulk"], &path)).unwrap();
            (result["integrity"].as_str().unwrap().to_owned(), result.get("integrity_checked").cloned())
        };
        let (failed, completed) = (Status::Failed, Status::Completed);
        assert_eq!(told(&[(failed, "ok"), (failed, "ok")]), ("ok".to_owned(), Some(false.into())));
        assert_eq!(told(&[(failed, "ok"), (completed, "ok")]), ("ok".to_owned(), None));
        assert_eq!(told(&[(failed, "corrupt")]), ("corrupt".to_owned(), None));
    }
}
