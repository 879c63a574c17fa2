//! What an experiment was: the column `config`.
//!
//! Rows of every version that ever wrote one are read here, and nowhere else. Which kind of experiment a row is of is told by
//! the key that only this kind has ([`ExperimentConfig::from`] a value); what a row of an older version lacks has the value
//! that this version then took for granted ([`TuneConfig::alpha`] and the like). Whatever isn't understood is kept, so that
//! reading a row and writing it again changes nothing.
//!
//! | kind | told by | since | fields that came later |
//! |---|---|---|---|
//! | [`Tune`](ExperimentConfig::Tune) | none of the others | the first journal: `alpha`, `indifference`, `max_trials`, `workload`, `per_trial_us`, `plateau` {`knob`, `levels`, `epsilon`} | in this order: `cool_down_us`, `command`, `plateau.strict`; `lab`, `continues`, `confirms`, `identical`; `live`; `host`; `weights`, `model`; `hold` |
//! | [`Screen`](ExperimentConfig::Screen) | `screen` | `lab` | as of a tune |
//! | [`Controls`](ExperimentConfig::Controls) | `compare` | `live` | none |
//! | [`Stacks`](ExperimentConfig::Stacks) | `stacks` | `weights` | `stacks.conformance` |
//! | [`Tests`](ExperimentConfig::Tests) | `test` | `flent` | none |
//! | [`Traffic`](ExperimentConfig::Traffic) | `traffic` | `model` | none |
//! | [`Flent`](ExperimentConfig::Flent) | `flent` | `host` | none |
//!
//! All of these are format 1, which no row says. A row of a later format has to say so (`format`, a number), and is
//! [`Unknown`](ExperimentConfig::Unknown) to this version.

/// Comparisons of what isn't a setting, and imports.
mod compared;
/// Comparisons of settings.
mod tune;

pub use compared::{
    ComparedControl, ComparedControls, ComparedStack, ComparedStacks, ControlsConfig, DisturbanceConfig, FlentConfig,
    LoggedTestsConfig, ServerTrafficConfig, StacksConfig,
};
pub use tune::{Factor, HostConfig, LiveConfig, PlateauConfig, ScreenConfig, ScreenRules, TuneConfig};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The newest format of the column.
const FORMAT: u64 = 1;

/// What an experiment was, and all that is needed to assess it again or to go on with it.
#[derive(Debug, Clone, PartialEq)]
pub enum ExperimentConfig {
    /// Settings against each other.
    Tune(Box<TuneConfig>),
    /// Many knobs of two levels at once.
    Screen(Box<ScreenConfig>),
    /// Congestion controls against each other.
    Controls(Box<ControlsConfig>),
    /// TCP stacks against each other.
    Stacks(Box<StacksConfig>),
    /// Single transfers with the settings as they were.
    Tests(Box<LoggedTestsConfig>),
    /// Settings of a server's own connections, assigned at random.
    Traffic(Box<ServerTrafficConfig>),
    /// One test that flent ran, imported.
    Flent(Box<FlentConfig>),
    /// What this version can't read: nothing was said, or a later format. It is kept as it is.
    Unknown(Value),
}

impl ExperimentConfig {
    /// The rules of an experiment that compares settings; of any other those of a row that says nothing.
    #[must_use]
    pub fn tune(&self) -> &TuneConfig {
        static SILENT: LazyLock<TuneConfig> = LazyLock::new(TuneConfig::default);
        match self {
            Self::Tune(tune) => tune,
            Self::Screen(screen) => &screen.tune,
            Self::Controls(_)
            | Self::Stacks(_)
            | Self::Tests(_)
            | Self::Traffic(_)
            | Self::Flent(_)
            | Self::Unknown(_) => &SILENT,
        }
    }

    /// The host that measured, as far as the row says.
    #[must_use]
    pub fn host(&self) -> Option<&HostConfig> {
        if let Self::Tests(tests) = self { tests.host.as_ref() } else { self.tune().host.as_ref() }
    }

    /// The rounds of an experiment on many knobs at once.
    #[must_use]
    pub fn screen(&self) -> Option<&ScreenRules> {
        if let Self::Screen(screen) = self { Some(&screen.screen) } else { None }
    }

    /// The path of the lab that it was run on, as it was named.
    #[must_use]
    pub fn lab(&self) -> Option<&str> {
        match self {
            Self::Tune(_) | Self::Screen(_) => self.tune().lab.as_deref(),
            Self::Controls(controls) => controls.lab.as_deref(),
            Self::Stacks(stacks) => stacks.lab.as_deref(),
            Self::Tests(_) | Self::Traffic(_) | Self::Flent(_) | Self::Unknown(_) => None,
        }
    }

    /// The format, if it is later than what this version reads.
    #[must_use]
    pub fn later_format(&self) -> Option<u64> {
        let Self::Unknown(Value::Object(map)) = self else { return None };
        later_format(map)
    }
}

/// The rule by which every row is read.
impl From<Value> for ExperimentConfig {
    fn from(value: Value) -> Self {
        let Value::Object(map) = value else { return Self::Unknown(value) };
        let is_object = |name: &str| map.get(name).is_some_and(Value::is_object);
        if later_format(&map).is_some() {
            Self::Unknown(Value::Object(map))
        } else if is_object("compare") {
            Self::Controls(Box::new(map.into()))
        } else if is_object("stacks") {
            Self::Stacks(Box::new(map.into()))
        } else if is_object("test") {
            Self::Tests(Box::new(map.into()))
        } else if is_object("traffic") {
            Self::Traffic(Box::new(map.into()))
        } else if map.get("flent").is_some_and(Value::is_string) {
            Self::Flent(Box::new(map.into()))
        } else if is_object("screen") {
            Self::Screen(Box::new(map.into()))
        } else {
            Self::Tune(Box::new(map.into()))
        }
    }
}

fn later_format(map: &Map<String, Value>) -> Option<u64> {
    map.get("format").and_then(Value::as_u64).filter(|format| *format > FORMAT)
}

impl Serialize for ExperimentConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tune(tune) => tune.serialize(serializer),
            Self::Screen(screen) => screen.serialize(serializer),
            Self::Controls(controls) => controls.serialize(serializer),
            Self::Stacks(stacks) => stacks.serialize(serializer),
            Self::Tests(tests) => tests.serialize(serializer),
            Self::Traffic(traffic) => traffic.serialize(serializer),
            Self::Flent(flent) => flent.serialize(serializer),
            Self::Unknown(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ExperimentConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests;
