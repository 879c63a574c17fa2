use crate::record::{KeptAnswer, StoredReport};
use std::collections::BTreeMap;
use std::time::Duration;
use wt_problem::Problem;
use wt_traffic::{
    ConnectionOutcome, DrawKey, ResponseOutcome, TrafficAnalysis, TrafficConfig, TrafficRun, TrafficTally,
};

/// Outcomes on their way to evidence: each epoch is scored when its youngest connection is old enough, and what is open then counts
/// as it is.
#[derive(Debug)]
pub(crate) struct Assessor {
    pub(crate) analysis: TrafficAnalysis,
    age: Duration,
    /// When each epoch that isn't scored yet ended, ns of the monotonic clock.
    ended: BTreeMap<u64, u64>,
    current: Option<u64>,
}

impl Assessor {
    /// Nothing yet.
    ///
    /// # Errors
    /// A usage [`Problem`] that says what is wrong with the configuration.
    pub(crate) fn new(config: &TrafficConfig) -> Result<Self, Problem> {
        let analysis =
            TrafficAnalysis::new(config.clone()).map_err(|error| Problem::usage(error.to_string()).hint(TRY))?;
        Ok(Self { analysis, age: config.age, ended: BTreeMap::new(), current: None })
    }

    /// An epoch begins, and the one before has ended.
    pub(crate) fn begin(&mut self, epoch: u64, shares: &[f64], place: Option<usize>, now_ns: u64) {
        self.end(now_ns);
        self.analysis.begin_epoch(epoch, shares, place);
        self.current = Some(epoch);
    }

    /// Arms that get no connections in the epoch that has begun.
    pub(crate) fn hold(&mut self, arms: &[usize]) {
        if let Some(epoch) = self.current {
            self.analysis.hold(epoch, arms);
        }
    }

    /// Nothing more is assigned.
    pub(crate) fn end(&mut self, now_ns: u64) {
        if let Some(epoch) = self.current.take() {
            self.ended.insert(epoch, now_ns);
        }
    }

    pub(crate) fn record(&mut self, outcome: &ConnectionOutcome) {
        self.analysis.record(outcome);
    }

    pub(crate) fn respond(&mut self, outcome: &ResponseOutcome) {
        self.analysis.respond(outcome);
    }

    /// The epochs whose youngest connection is old enough; all that have ended, if no connection is open any more.
    pub(crate) fn ripe(&self, now_ns: u64, none_open: bool) -> Vec<u64> {
        let age = self.age.as_nanos() as u64;
        let old = |ended: &u64| none_open || now_ns.saturating_sub(*ended) >= age;
        self.ended.iter().filter(|(_, ended)| old(ended)).map(|(epoch, _)| *epoch).collect()
    }

    /// Scores an epoch.
    pub(crate) fn score(&mut self, epoch: u64) {
        self.ended.remove(&epoch);
        self.analysis.close_epoch(epoch);
    }

    /// How it stands, as it is kept.
    pub(crate) fn kept(&self, run: TrafficRun<'_>, tally: TrafficTally, draw: DrawKey) -> StoredReport {
        let report = self.analysis.report(run, &tally);
        let kind = serde_json::to_value(report.verdict.kind).ok();
        let mut kind = kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
        // As its report begins.
        let [headline, ..] = report.answer();
        if let Some(holdback) = &report.holdback {
            kind = serde_json::to_value(holdback.state)
                .ok()
                .and_then(|state| Some(state.as_str()?.to_owned()))
                .unwrap_or(kind);
        }
        let answer = KeptAnswer::of(&report);
        StoredReport {
            kind,
            headline,
            answer,
            tally,
            report,
            servers: self.analysis.server_evidence(draw),
            tells_end: true,
        }
    }
}

/// What to try where a configuration is refused.
pub(crate) const TRY: &str = "windtunnel traffic start --port 443 --levels initcwnd=10,32";
