use super::tune::HostConfig;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wt_trial::{Workload, kept_object, say_none};

kept_object! {
    /// A comparison of congestion controls.
    pub struct ControlsConfig {
        /// The path of the lab, as it was named.
        lab: String,
        /// What was typed.
        command: String,
        /// What was compared.
        compare: ComparedControls,
    }
}

kept_object! {
    /// Congestion controls against each other.
    pub struct ComparedControls {
        /// How long each trial is, µs.
        trial_us: u64,
        /// What happens to the path in each.
        disturbance: DisturbanceConfig,
        /// Which they are.
        arms: Vec<ComparedControl>,
        /// Seeds the order of the trials; the experiment's seed where nothing is said.
        order_seed: u64,
    }
}

impl ComparedControls {
    /// The same as this version writes it: that there is no disturbance is said.
    #[must_use]
    pub fn whole(mut self) -> Self {
        say_none!(self; disturbance);
        self
    }
}

kept_object! {
    /// What happens to a path in the middle of each trial.
    pub struct DisturbanceConfig {
        /// Its name.
        kind: String,
        /// When, µs since the trial began.
        at_us: u64,
        /// How long, µs.
        lasts_us: u64,
    }
}

/// One of the congestion controls that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, String, String)", into = "(String, String, String)")]
pub struct ComparedControl {
    /// The kernel's name of it.
    pub asked: String,
    /// What people call it.
    pub name: String,
    /// Its variant.
    pub variant: String,
}

impl From<(String, String, String)> for ComparedControl {
    fn from((asked, name, variant): (String, String, String)) -> Self {
        Self { asked, name, variant }
    }
}

impl From<ComparedControl> for (String, String, String) {
    fn from(ComparedControl { asked, name, variant }: ComparedControl) -> Self {
        (asked, name, variant)
    }
}

kept_object! {
    /// A comparison of TCP stacks.
    pub struct StacksConfig {
        /// The path of the lab, as it was named.
        lab: String,
        /// What was typed.
        command: String,
        /// What was compared.
        stacks: ComparedStacks,
    }
}

kept_object! {
    /// TCP stacks against each other.
    pub struct ComparedStacks {
        /// Which they are.
        arms: Vec<ComparedStack>,
        /// What each does.
        workloads: Vec<Workload>,
        /// What packet scripts said of each, in their own form; the first comparisons had none.
        conformance: Vec<Value>,
        /// Seeds the order of the trials; the experiment's seed where nothing is said.
        order_seed: u64,
    }
}

/// One of the stacks that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, Option<u32>)", into = "(String, Option<u32>)")]
pub struct ComparedStack {
    /// The stack with its profile or fault, as it is named on the command line.
    pub choice: String,
    /// The receive window that it was given, bytes.
    pub window: Option<u32>,
}

impl From<(String, Option<u32>)> for ComparedStack {
    fn from((choice, window): (String, Option<u32>)) -> Self {
        Self { choice, window }
    }
}

impl From<ComparedStack> for (String, Option<u32>) {
    fn from(ComparedStack { choice, window }: ComparedStack) -> Self {
        (choice, window)
    }
}

kept_object! {
    /// Transfers with the settings as they were, one for each line of the log.
    pub struct LoggedTestsConfig {
        /// What was typed.
        command: String,
        /// The machine.
        host: HostConfig,
        /// The settings that were in force, by the kernel's names.
        test: Map<String, Value>,
        /// What else was known of the moment, by name: the rate at which a modem had connected.
        covariates: Map<String, Value>,
    }
}

kept_object! {
    /// An experiment on a server's own connections.
    pub struct ServerTrafficConfig {
        /// Ports, arms, unit and rules, in the experiment's own form. It holds no key, no address and no client.
        traffic: Value,
        /// What assigned the connections: `sockops`.
        backend: String,
        /// What was typed.
        command: String,
    }
}

kept_object! {
    /// A test that flent ran.
    pub struct FlentConfig {
        /// Its name there.
        flent: String,
    }
}
