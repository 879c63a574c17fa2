use crate::{ArmSettings, ReceiverSettings, TrafficGuard, TrafficHoldback, TrafficUnit};
use serde::{Deserialize, Serialize};

/// The version of [`TrafficReport`]'s JSON; fields are only ever added within it.
pub const TRAFFIC_SCHEMA_VERSION: u32 = 1;

/// What an experiment on a server's connections shows. A figure that isn't known is `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficReport {
    /// [`TRAFFIC_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The experiment's name in the journal.
    pub id: String,
    /// To what one coin gave an arm.
    pub unit: TrafficUnit,
    /// What assigned and recorded.
    pub backend: String,
    /// The arms; the first is what the others are compared with.
    pub arms: Vec<TrafficArmReport>,
    /// Connections, or responses where those are timed by themselves, by the bytes that were acknowledged. Sizes can depend on the settings: compare the shares, too.
    pub classes: Vec<TrafficClassReport>,
    /// Each arm that was tried against the first.
    pub effects: Vec<TrafficEffect>,
    /// What may be claimed.
    pub verdict: TrafficVerdict,
    /// Settings of the arms that act on what the server receives, of which no figure here is; left out where there are none, and in
    /// reports of versions before this was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_settings: Option<ReceiverSettings>,
    /// What would stop an arm, or has.
    pub guardrails: Vec<TrafficGuardReport>,
    /// Whether the experiment itself can be trusted.
    pub self_checks: Vec<TrafficSelfCheck>,
    /// For a holdback: whether the gain is still there. Its first arm has the new settings, the second the old ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdback: Option<TrafficHoldback>,
    /// Where no unit has bet: what is known of why. `null` in reports of versions before this was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_data: Option<TrafficNoData>,
    /// Whether the experiment has ended, so that nothing will come any more; left out while it runs, where `no_data` tells it, and in
    /// reports of versions before this was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// What to do now, the first first.
    #[serde(default)]
    pub next: Vec<TrafficStep>,
}

/// What is known of why no unit has bet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficNoData {
    /// Connections that were left alone.
    pub left_alone: u64,
    /// Connections that were given an arm.
    pub assigned: u64,
    /// Epochs with connections that were old enough to be looked at.
    pub epochs: u64,
    /// Whether the experiment has ended, so that nothing will come any more.
    pub ended: bool,
}

/// Something to do after a look at a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficStep {
    /// In a sentence.
    pub text: String,
    /// What does it, to be typed on the server.
    pub command: Option<String>,
}

/// One arm's connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficArmReport {
    /// Its name.
    pub name: String,
    /// What it sets.
    pub settings: ArmSettings,
    /// Connections that were given it.
    pub assigned: u64,
    /// Of those, with an outcome.
    pub recorded: u64,
    /// Of those, without an outcome although they have ended: their record was lost.
    pub missed: u64,
    /// Of those, still without an outcome.
    pub open: u64,
    /// Connections that the shares, the evidence and the classes are of: those that have ended, and those still open that were as old as
    /// the cohort's age when they were looked at. Left out where they are those recorded, and in reports of versions before this was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<u64>,
    /// For which the kernel refused at least one setting.
    pub set_errors: u64,
    /// That had other settings at the end.
    pub not_compliant: u64,
    /// Segments that were retransmitted, of all that were sent.
    pub retransmitted_share: Option<f64>,
    /// Retransmission timeouts per 1000 connections.
    pub rto_per_1000: Option<f64>,
    /// Connections that were reset or timed out, of those with an outcome.
    pub aborted_share: Option<f64>,
    /// Connections that weren't finished at the cohort's age, of those with an outcome.
    pub unfinished_share: Option<f64>,
    /// Responses that were timed by themselves; `null` where only whole connections are.
    #[serde(default)]
    pub responses: Option<u64>,
}

impl TrafficArmReport {
    /// Connections that its figures are of.
    #[must_use]
    pub fn looked_at(&self) -> u64 {
        self.outcomes.unwrap_or(self.recorded)
    }
}

/// The connections of one class by size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficClassReport {
    /// Its sizes.
    pub name: String,
    /// By arm.
    pub arms: Vec<TrafficClassArm>,
}

/// The connections of one class and arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficClassArm {
    /// How many; of their responses where those are timed by themselves.
    pub connections: u64,
    /// Of all of the arm.
    pub share: Option<f64>,
    /// The geometric mean of their goodputs, bit/s.
    pub goodput_bps: Option<f64>,
    /// All their bits over all their time, bit/s.
    pub overall_bps: Option<f64>,
    /// The time that 90 % of them stayed below, ms, to a fifth.
    pub p90_ms: Option<f64>,
}

/// One arm that was tried against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficEffect {
    /// Its name.
    pub arm: String,
    /// Its goodput over the first's: a typical gain, exact if all units gain alike. Where few gain much it lies nearer to what the many
    /// gain than the mean does.
    pub ratio: Option<f64>,
    /// The interval of the ratio, at the evidence needed on either side: of the one gain that all units would have, not of their mean.
    pub low: Option<f64>,
    /// Its other end.
    pub high: Option<f64>,
    /// By how much the time of a typical connection is shorter, ms; negative is longer.
    pub saved_ms: Option<f64>,
    /// The lower end of the interval of that, ms.
    #[serde(default)]
    pub saved_low_ms: Option<f64>,
    /// Its upper end, ms.
    #[serde(default)]
    pub saved_high_ms: Option<f64>,
    /// Evidence that it is faster, the largest so far.
    pub evidence_faster: f64,
    /// Evidence that it is slower, the largest so far.
    pub evidence_slower: f64,
    /// The evidence at which either is claimed.
    #[serde(default)]
    pub needed: f64,
    /// Units that bet: prefixes × epochs, connections, or blocks of slots.
    pub units: u64,
    /// Evidence by ranks, aborted connections as the worst, that it is better; the second reading.
    pub evidence_better_rank: f64,
    /// The same that it is worse.
    pub evidence_worse_rank: f64,
    /// With mixed allocations: everybody with it over nobody with it.
    pub total_ratio: Option<f64>,
    /// The interval of that, at the evidence needed on either side.
    #[serde(default)]
    pub total_low: Option<f64>,
    /// Its other end.
    #[serde(default)]
    pub total_high: Option<f64>,
    /// With mixed allocations: those without it beside it over nobody with it.
    pub spillover_ratio: Option<f64>,
}

/// What may be claimed, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrafficVerdictKind {
    /// An arm is faster than the first.
    Faster,
    /// An arm is slower than the first.
    Slower,
    /// A guard has stopped an arm.
    Stopped,
    /// Nothing is shown.
    Undecided,
    /// No unit has bet yet.
    NoData,
}

/// About whom something is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrafficClaim {
    /// Connections with the arm, beside connections without it.
    Beside,
    /// Everybody, if everybody has it.
    Everybody,
}

/// What may be claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficVerdict {
    /// In one word.
    pub kind: TrafficVerdictKind,
    /// Of which arm.
    pub arm: Option<String>,
    /// Its goodput over the first's, estimated.
    pub ratio: Option<f64>,
    /// The end of the interval that is nearer to "no difference", only if something is claimed.
    pub at_least: Option<f64>,
    /// The largest evidence so far for what is claimed, or for what leads.
    pub evidence: f64,
    /// The evidence at which something is claimed.
    pub needed: f64,
    /// In one sentence.
    pub text: String,
    /// About whom.
    pub claim: TrafficClaim,
    /// With mixed allocations, where it is of everybody: of how many blocks of whole epochs ratio, end and evidence are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
}

/// One guard of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficGuardReport {
    /// Which.
    pub guard: TrafficGuard,
    /// The arm's name.
    pub arm: String,
    /// The largest evidence so far that the arm is worse.
    pub evidence: f64,
    /// The evidence at which it stops the arm.
    pub needed: f64,
    /// Whether it has stopped the arm.
    pub stopped: bool,
}

/// One question to the experiment itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficSelfCheck {
    /// Its name: `sample_ratio`, `accounting`, `largest_prefix`, `units`, `set_errors`, `compliance`, `own_cc` (only
    /// where sockets were left alone for that), `clock` (only where some were too short for it).
    pub name: String,
    /// Whether all is well.
    pub ok: bool,
    /// What was seen.
    pub text: String,
}

/// Evidence as a number that JSON can hold.
pub(crate) fn evidence(log: f64) -> f64 {
    log.min(690.0).exp()
}

/// A finite number.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
