/// From what is asked to what is to be done.
mod build;
/// What somebody wants.
mod request;
/// Back to a state that was stored.
mod restore;
/// What could go wrong.
mod risks;

pub use request::{Request, RequestError, Target};

use crate::knob::{Knob, Value};
use crate::lasting::{self, Lasting};
use crate::read::KernelVersion;
use crate::read::Survey;
use crate::snapshot::{Scope, Snapshot, steps};
use crate::system::Action;
use serde::{Deserialize, Serialize};
use wt_sys::SysError;

/// The version of the JSON that [`Plan`] becomes.
const SCHEMA_VERSION: u32 = 1;

/// What is to be changed on this host, and everything that somebody should know before it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of this form.
    pub schema_version: u32,
    /// Where.
    pub to: String,
    /// Old and new.
    pub changes: Vec<Change>,
    /// The commands that would do it.
    pub commands: Vec<String>,
    /// The commands that would undo it.
    pub revert_commands: Vec<String>,
    /// What could go wrong.
    pub risks: Vec<Risk>,
    /// What was asked for but isn't done, and why.
    pub skipped: Vec<Risk>,
    /// What makes whoever configures the devices keep it; a confirmation writes that.
    #[serde(default)]
    pub lasting: Vec<Lasting>,
    /// What will be written. Not shown: the commands say the same.
    #[serde(skip)]
    pub actions: Vec<Action>,
    /// The state that is wanted, where it is meant. Not shown either.
    #[serde(skip)]
    pub wanted: Snapshot,
    /// What of the state is meant.
    #[serde(skip)]
    pub scope: Scope,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The setting.
    pub key: String,
    /// Its value now.
    pub old: Value,
    /// Its value then.
    pub new: Value,
    /// `host`, `route` or `link`.
    pub scope: ScopeName,
    /// Which route or device, or the kernel setting.
    pub target: String,
    /// Why here, and why at all if somebody said so.
    pub why: String,
    /// What was asked, where that is more than the value: `4x`, `from-mtu`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked: Option<Value>,
    /// Whether it is so already.
    pub unchanged: bool,
    /// Where to look for the value.
    #[serde(default)]
    pub place: Place,
}

/// The narrowest place that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeName {
    /// Every connection of the host.
    Host,
    /// Connections that use a route.
    Route,
    /// A device.
    Link,
}

/// Where a value is found in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Among the kernel settings.
    #[default]
    Host,
    /// On the route with this key.
    Route(String),
    /// On the device of this name.
    Link(String),
}

/// What could go wrong, or was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    /// The setting.
    pub key: String,
    /// In words.
    pub text: String,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Nothing was asked for.
    #[error("nothing to change: give KEY=VALUE, --file, --defaults or --verdict")]
    Nothing,
    /// It can't be set there.
    #[error("{key} can't be set on {place}: {instead}")]
    WrongPlace {
        /// The setting.
        key: &'static str,
        /// Where it was asked for.
        place: String,
        /// Where it can be set.
        instead: String,
    },
    /// This kernel, or this network namespace, doesn't have it.
    #[error("{key} ({kernel}) doesn't exist here: this kernel, or this network namespace, doesn't have it")]
    Missing {
        /// The setting.
        key: &'static str,
        /// The kernel's name.
        kernel: String,
    },
    /// There is no default route to set it on.
    #[error("there is no default route to set {key} on")]
    NoDefaultRoute {
        /// The setting.
        key: &'static str,
    },
    /// No route leads there.
    #[error("no route leads to {target}")]
    NoRoute {
        /// Where.
        target: String,
        /// What the kernel said.
        source: SysError,
    },
    /// There is no such device.
    #[error("there is no device \"{name}\"{}", suggestion(nearest))]
    NoDevice {
        /// What was written.
        name: String,
        /// The nearest name, or else all.
        nearest: Vec<String>,
    },
    /// It looks like an address or a network, and is none.
    #[error("\"{text}\" is neither an address nor a network: IPv4 has /0 to /32, IPv6 /0 to /128")]
    BadTarget {
        /// What was written.
        text: String,
    },
    /// Which device is meant can't be told.
    #[error("{key} needs a device: there is no default route, and not just one device that is up")]
    WhichDevice {
        /// The setting.
        key: &'static str,
    },
    /// The device, or what is known of it, doesn't allow the value.
    #[error("{key}={value} is out of range: {device} allows {allowed}")]
    OutOfRange {
        /// The setting.
        key: &'static str,
        /// The value.
        value: String,
        /// What sets the limit.
        device: String,
        /// The range.
        allowed: String,
    },
    /// The kernel has no such congestion control.
    #[error("this kernel has no congestion control \"{name}\": there are {}", known.join(", "))]
    NoCongestionControl {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The default isn't the same on all kernels.
    #[error("the kernel's own value of {key} can't be known: name a value")]
    NoDefault {
        /// The setting.
        key: &'static str,
    },
    /// It could not be undone.
    #[error("{what} could not be put back exactly, so it isn't changed: {why}")]
    Irreversible {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [one] => format!(": did you mean {one}?"),
        several => format!(": there are {}", several.join(", ")),
    }
}

impl Plan {
    /// Works out what is to be done. Nothing is written.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn make(system: &mut dyn crate::system::System, survey: &Survey, request: &Request) -> Result<Self, PlanError> {
        build::build(system, survey, request)
    }

    /// The plan that leads to a state that was stored: since then in this network namespace, or at another time, when
    /// routes are compared by where they lead only.
    #[must_use]
    pub fn to_snapshot(survey: &Survey, stored: &Snapshot, same_network: bool) -> Self {
        restore::to_snapshot(survey, stored, same_network)
    }

    /// Whether nothing would be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Fills in what follows from the wanted state.
    fn finish(mut self, survey: &Survey) -> Self {
        let names = survey.names();
        self.actions = steps(&survey.snapshot, &self.wanted, &self.scope);
        let back = steps(&self.wanted, &survey.snapshot, &self.scope);
        self.commands = self.actions.iter().map(|action| action.command(&names)).collect();
        self.revert_commands = back.iter().map(|action| action.command(&names)).collect();
        self.lasting = lasting::of_plan(&self, survey);
        self
    }

    fn new(to: String, wanted: Snapshot) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            to,
            changes: Vec::new(),
            commands: Vec::new(),
            revert_commands: Vec::new(),
            risks: Vec::new(),
            skipped: Vec::new(),
            lasting: Vec::new(),
            actions: Vec::new(),
            wanted,
            scope: Scope::default(),
        }
    }
}

impl Change {
    /// The value that is there now; `None` when the place is gone.
    #[must_use]
    pub fn value_in(&self, snapshot: &Snapshot, kernel: KernelVersion) -> Option<Value> {
        let knob = Knob::find(&self.key).ok()?;
        match &self.place {
            Place::Host => crate::read::host_value(knob, snapshot, kernel),
            Place::Link(name) => crate::read::link_value(knob, snapshot.devices.get(name)?),
            Place::Route(key) => {
                let route = snapshot.routes.iter().find(|route| crate::snapshot::route_key(route) == *key)?;
                crate::read::route_value(knob, &route.metrics())
            }
        }
    }
}
