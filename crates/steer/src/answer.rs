use crate::{BackendState, ClaimedPorts, OpenNow};
use serde::Serialize;
use utoipa::ToSchema;
use wt_traffic::{ArmSettings, ReceiverSettings, TrafficExpectation, TrafficHoldback, TrafficReport, TrafficTally};

/// The version of these objects.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// What comes of a start.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum TrafficAnswer {
    /// What would be done.
    Plan(Box<TrafficPlan>),
    /// What was found.
    Report(Box<TrafficReport>),
}

/// What a start would do. Its JSON is the contract of `windtunnel traffic start --dry-run --json`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TrafficPlan {
    /// The version of this object.
    pub schema_version: u32,
    /// Whom it touches, and whom not.
    pub whom: String,
    /// Whom it touches.
    pub touches: String,
    /// Whom it leaves alone.
    pub left_alone: String,
    /// The arms, the first of which the others are compared with.
    pub arms: Vec<PlannedArm>,
    /// How long coins hold, s.
    pub epoch_s: f64,
    /// What is open on the ports now; none where the kernel doesn't tell.
    pub open_now: Option<OpenNow>,
    /// What assigns connections, and whether it works here.
    pub backends: Vec<BackendState>,
    /// BPF programs of others that see the same connections: beside them it isn't begun unless that is asked for.
    pub other_programs: Vec<String>,
    /// Connections of all ports that this network namespace accepts in an hour, by a look of a second.
    pub connections_per_hour: f64,
    /// How long it takes to find an effect, for some effects; none where arms differ in what the server receives alone.
    pub expects: Vec<TrafficExpectation>,
    /// Settings of the arms that act on what the server receives, which isn't compared; left out where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_settings: Option<ReceiverSettings>,
}

/// An arm before the first connection.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PlannedTrafficArm)]
pub struct PlannedArm {
    /// What reports call it.
    pub name: String,
    /// What it sets.
    pub settings: ArmSettings,
    /// Its share of the first connections, 0 to 1.
    pub share: f64,
}

/// One experiment that is under way.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TrafficStatus {
    /// Its name.
    pub id: String,
    /// The local ports.
    pub ports: Vec<u16>,
    /// What the arms are called.
    pub arms: Vec<String>,
    /// Since it began, s.
    pub elapsed_s: f64,
    /// The accounts when it last wrote them down.
    pub tally: Option<TrafficTally>,
    /// What could be said then.
    pub headline: Option<String>,
    /// For a holdback: whether the gain is still there.
    pub holdback: Option<TrafficHoldback>,
}

/// The experiments that are under way. Its JSON is the contract of `windtunnel traffic status --json`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TrafficList {
    /// The version of this object.
    pub schema_version: u32,
    /// All of them.
    pub running: Vec<TrafficStatus>,
    /// Those of other journals in this network namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<ClaimedPorts>,
    /// Whether routing rules of an experiment stand here that was killed with its guard; they steer nobody.
    pub rules_left: bool,
    /// Whether this host has a setting of an experiment that was killed with its guards.
    pub settings_left: bool,
}

/// Which experiments were ended. Its JSON is the contract of `windtunnel traffic stop --json`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TrafficStop {
    /// The version of this object.
    pub schema_version: u32,
    /// Their names.
    pub stopped: Vec<String>,
    /// Those of other journals in this network namespace, which go on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<ClaimedPorts>,
    /// Whether routing rules were removed that an experiment had left which was killed with its guard.
    pub rules_removed: bool,
    /// Whether a setting of this host was put back that an experiment had left which was killed with its guards.
    pub settings_put_back: bool,
}

/// Several experiments together. Its JSON is the contract of `windtunnel traffic combine --json`.
#[derive(Debug, Clone, Serialize)]
pub struct TrafficCombined {
    /// The version of this object.
    pub schema_version: u32,
    /// The experiments that were added up.
    pub experiments: Vec<String>,
    /// What each arm is compared with.
    pub first: String,
    /// Each arm that was tried.
    pub arms: Vec<CombinedArm>,
    /// The evidence at which something is claimed.
    pub needed: f64,
    /// Settings of the arms that act on what the servers receive, which isn't compared; left out where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_settings: Option<ReceiverSettings>,
}

/// One arm over all servers.
#[derive(Debug, Clone, Serialize)]
pub struct CombinedArm {
    /// Its name.
    pub name: String,
    /// How many experiments tried it.
    pub servers: usize,
    /// How many keys threw their coins.
    pub keys: usize,
    /// Whether some share a key; their wealth is averaged then.
    pub shared: bool,
    /// Units that bet.
    pub units: u64,
    /// The goodput over the first arm's, over all units.
    pub ratio: Option<f64>,
    /// Evidence that it is faster on at least one server.
    pub evidence_faster: f64,
    /// Evidence that it is slower on at least one server.
    pub evidence_slower: f64,
    /// In a sentence or two.
    pub text: String,
}
