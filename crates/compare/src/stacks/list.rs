use serde::Serialize;
use std::path::PathBuf;
use utoipa::ToSchema;
use wt_stacks::Stack;
use wt_stacks::catalogue::{Availability, STACKS};
use wt_stacks::profile::{Fact, PROFILES, Profile};

/// The TCP/IP stacks that can be compared. Its JSON is the contract of `windtunnel stacks list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StacksList {
    /// The version of this object.
    pub schema_version: u32,
    /// Those of today.
    pub stacks: Vec<ListedStack>,
    /// Old ones, as far as they are documented.
    pub profiles: Vec<ListedProfile>,
}

/// A stack of today.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedStack {
    /// The word that names it.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Whether it can be had.
    pub built: bool,
    /// The program that is its adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub program: Option<PathBuf>,
    /// How it can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<&'static str>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its settings beside rwin, mss and mtu.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
}

/// A documented value with its source, or that there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ListedFact<T> {
    /// Documented, and where.
    Known((T, &'static str)),
    /// Not documented where it could be read.
    Unknown,
}

impl<T> From<Fact<T>> for ListedFact<T> {
    fn from(fact: Fact<T>) -> Self {
        match fact {
            Fact::Known(value, source) => Self::Known((value, source)),
            Fact::Unknown => Self::Unknown,
        }
    }
}

impl<T: Copy> ListedFact<T> {
    /// The value, if it is known.
    #[must_use]
    pub fn value(&self) -> Option<T> {
        if let Self::Known((value, _)) = self { Some(*value) } else { None }
    }
}

/// An old stack: settings under which another stack stands in for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedProfile {
    /// The word that names it.
    pub name: &'static str,
    /// Its own name.
    pub title: &'static str,
    /// The stack that stands in.
    pub stands_on: &'static str,
    /// The receive window, bytes.
    pub window: ListedFact<u32>,
    /// Whether a user could set the window.
    pub window_can_be_set: ListedFact<bool>,
    /// The MSS on Ethernet, bytes.
    pub mss: ListedFact<u32>,
    /// How long it delayed ACKs, ms.
    pub ack_delay_ms: ListedFact<u32>,
    /// Whether it had selective acknowledgements.
    pub sack: ListedFact<bool>,
    /// Whether it had window scaling.
    pub window_scaling: ListedFact<bool>,
}

/// The stacks, and what the others need.
#[must_use]
pub fn list() -> StacksList {
    StacksList {
        schema_version: 1,
        stacks: STACKS.iter().map(listed).collect(),
        profiles: PROFILES.iter().map(profile).collect(),
    }
}

fn listed(stack: &Stack) -> ListedStack {
    let (program, install) = match stack.built() {
        Availability::Direct | Availability::In(_) => (None, None),
        Availability::Program(path) => (Some(path), None),
        Availability::No(how) => (None, Some(how)),
    };
    let (version, options) =
        stack.described().map_or((None, None), |described| (Some(described.version), Some(described.options)));
    ListedStack { name: stack.name, title: stack.title, built: install.is_none(), program, install, version, options }
}

fn profile(profile: &Profile) -> ListedProfile {
    ListedProfile {
        name: profile.name,
        title: profile.title,
        stands_on: profile.stands_on,
        window: profile.window.into(),
        window_can_be_set: profile.window_can_be_set.into(),
        mss: profile.mss.into(),
        ack_delay_ms: profile.ack_delay_ms.into(),
        sack: profile.sack.into(),
        window_scaling: profile.window_scaling.into(),
    }
}
