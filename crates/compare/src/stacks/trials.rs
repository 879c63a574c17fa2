use super::figures::{median, score, seen};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wt_stacks::conformance::Conformance;
use wt_stacks::finding::Finding;
use wt_stacks::{Choice, StackObservation};
use wt_trial::{Status, TrialOutcome};

/// One stack with one window, and its trials.
#[derive(Debug)]
pub(super) struct StackTrials {
    choice: Choice,
    trials: BTreeMap<String, Vec<TrialOutcome>>,
    /// What packet scripts said, if any were played.
    conformance: Option<Conformance>,
}

impl StackTrials {
    /// One without any trial yet, and with what packet scripts said, if any were played.
    pub(super) fn new(choice: Choice, conformance: Option<Conformance>) -> Self {
        Self { choice, trials: BTreeMap::new(), conformance }
    }

    /// What it is called.
    pub(super) fn title(&self) -> String {
        self.choice.title()
    }

    /// What it is.
    pub(super) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// What the packet scripts said.
    pub(super) fn conformance(&self) -> Option<&Conformance> {
        self.conformance.as_ref()
    }

    /// Plays the packet scripts.
    pub(super) fn play_scripts(&mut self) {
        self.conformance = Some(Conformance::of(&self.choice));
    }

    /// Keeps a trial of a complete round.
    pub(super) fn keep(&mut self, workload: &str, outcome: TrialOutcome) {
        self.trials.entry(workload.to_owned()).or_default().push(outcome);
    }

    /// Its trials with a workload.
    pub(super) fn of(&self, workload: &str) -> &[TrialOutcome] {
        self.trials.get(workload).map_or(&[], Vec::as_slice)
    }

    /// Those that were completed.
    pub(super) fn completed(&self, workload: &str) -> impl Iterator<Item = &TrialOutcome> {
        self.of(workload).iter().filter(|outcome| outcome.status == Status::Completed)
    }

    /// All of its trials, each with its workload's key.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &TrialOutcome)> {
        self.trials.iter().flat_map(|(name, trials)| trials.iter().map(move |trial| (name.as_str(), trial)))
    }

    /// Rounds of the workload that has most.
    pub(super) fn rounds(&self) -> usize {
        self.trials.values().map(Vec::len).max().unwrap_or(0)
    }

    /// What each completed trial was ranked by.
    pub(super) fn scores(&self, workload: &str) -> Vec<f64> {
        self.of(workload).iter().filter_map(|outcome| score(workload, outcome)).collect()
    }

    /// What was seen in the trial that lasted longest.
    pub(super) fn longest_seen(&self) -> Option<StackObservation> {
        let with_delay = self.all().filter_map(|(_, outcome)| Some((outcome.observed.took_us?, seen(outcome)?)));
        let longest = with_delay.filter(|(_, seen)| seen.ack_delay.is_some()).max_by_key(|(took_us, _)| *took_us);
        longest.map(|(_, seen)| seen)
    }

    /// Which stack it is with which window, if it has one of its own.
    pub(super) fn window(&self) -> Option<(&str, u32)> {
        let label = self.choice.label.split(":rwin=").next()?;
        Some((label, self.choice.window?))
    }

    /// The median goodput of its completed trials, bit/s.
    pub(super) fn goodput(&self, workload: &str) -> Option<f64> {
        median(self.completed(workload).map(TrialOutcome::goodput_bps).collect())
    }

    /// What the windows that it offered allowed, bit/s: the median of its completed trials.
    pub(super) fn limit(&self, workload: &str, rtt_us: u64) -> Option<f64> {
        median(self.completed(workload).filter_map(|outcome| seen(outcome)?.window_limit_bps(rtt_us)).collect())
    }

    /// The median of its transactions' median times, µs.
    pub(super) fn transaction_us(&self) -> Option<f64> {
        let time = |outcome: &TrialOutcome| Some(outcome.measures.exchanges.as_ref()?.latency.p50_us as f64);
        median(self.completed("transactions").filter_map(time).collect())
    }

    /// The mean window that it offered, bytes: the median of its completed trials.
    pub(super) fn offered(&self, workload: &str) -> Option<f64> {
        median(self.of(workload).iter().filter_map(|outcome| seen(outcome)?.window_mean).collect())
    }

    /// `ok`, or the worst that happened to data.
    pub(super) fn integrity(&self) -> &'static str {
        let is = |word: &str| self.all().any(|(_, outcome)| outcome.observed.integrity.as_deref() == Some(word));
        if is("corrupt") {
            "corrupt"
        } else if is("lost") {
            "lost"
        } else {
            "ok"
        }
    }

    /// Whether its data came to its end in any trial, or was found wrong: of data that never arrived nothing is known.
    pub(super) fn is_checked(&self) -> bool {
        self.integrity() != "ok" || self.all().any(|(_, outcome)| outcome.status == Status::Completed)
    }

    /// What is wrong with it: each kind once, where it was seen first.
    pub(super) fn findings(&self) -> Vec<(String, Finding)> {
        let mut found: Vec<(String, Finding)> = Vec::new();
        for (workload, outcome) in self.all() {
            let seen = seen(outcome).unwrap_or_default();
            let integrity = outcome.observed.integrity.as_deref().unwrap_or("ok");
            let took = outcome.observed.took_us.unwrap_or(0);
            let what = outcome.notes.join("; ");
            let new = [Finding::ack_delay(&seen), Finding::data(integrity, took, &what, &seen)];
            for finding in new.into_iter().flatten() {
                let same = |old: &(String, Finding)| std::mem::discriminant(&old.1) == std::mem::discriminant(&finding);
                if !found.iter().any(same) {
                    found.push((workload.to_owned(), finding));
                }
            }
        }
        found
    }

    fn sum(&self, workload: &str, of: impl Fn(&TrialOutcome) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.of(workload).iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// CPU seconds of the adapter's process per 10⁹ bytes of payload.
    pub(super) fn cpu_s_per_gb(&self, workload: &str) -> Option<f64> {
        let bytes = self.sum(workload, |outcome| outcome.observed.cpu_ns.map(|_| outcome.bytes as f64))?;
        let cpu_ns = self.sum(workload, |outcome| outcome.observed.cpu_ns.map(|ns| ns as f64))?;
        (bytes > 0.0).then_some(cpu_ns / bytes)
    }

    /// Bytes of payload of each completed trial, each number once.
    pub(super) fn bytes(&self, workload: &str) -> Vec<u64> {
        let mut all: Vec<u64> = self.completed(workload).map(|outcome| outcome.bytes).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The stack's version, by its adapter's word; the kernel's release where it is the kernel.
    pub(super) fn version(&self) -> Option<String> {
        let told = self.all().find_map(|(_, outcome)| outcome.observed.version.clone());
        told.or_else(|| {
            let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
            (self.choice.stack.name == wt_stacks::catalogue::DIRECT).then(|| kernel.trim().to_owned())
        })
    }

    /// What was set, by the adapter's own word, and what was asked where there is none.
    pub(super) fn settings(&self) -> Value {
        let granted = self.all().find_map(|(_, outcome)| outcome.observed.granted.clone());
        let mut settings = granted.unwrap_or_else(|| {
            let pairs = self.choice.settings();
            pairs
                .iter()
                .map(|(knob, level)| (knob.name().to_owned(), json!(level.to_string())))
                .collect::<Map<_, _>>()
                .into()
        });
        if let (Some(profile), Some(settings)) = (self.choice.profile, settings.as_object_mut()) {
            settings.insert("stands_in_for".to_owned(), json!(profile.title));
            let lacks = profile.lacks();
            if !lacks.is_empty() {
                settings.insert("unlike_the_original".to_owned(), json!(lacks));
            }
        }
        settings
    }

    /// What its adapter was told and can't, in its own words.
    pub(super) fn refused(&self) -> Vec<String> {
        self.all().find_map(|(_, outcome)| outcome.observed.refused.clone()).unwrap_or_default()
    }

    /// The most memory that the adapter's process ever had, bytes.
    pub(super) fn memory(&self) -> Option<f64> {
        self.all().filter_map(|(_, outcome)| outcome.observed.peak_bytes).max().map(|bytes| bytes as f64)
    }

    /// Segments that were retransmitted in all of its trials, by it and to it; `None` where nobody saw them.
    pub(super) fn retransmitted(&self) -> Option<u64> {
        let of = |seen: StackObservation| Some(seen.retransmissions? + seen.server_retransmissions?);
        let counts: Vec<u64> = self.all().filter_map(|(_, outcome)| of(seen(outcome)?)).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }
}
