//! A change of settings on its way through a fleet: what is ordered of each host, and how far it has come.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// A word of a table and the variant that it stands for.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// The word in tables and JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// What a word stands for.
            #[must_use]
            pub fn of(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// What the owner wants of a host.
    RolloutOrder {
        /// Nothing yet, or no more.
        Nothing = "nothing",
        /// Apply it, to be confirmed.
        Apply = "apply",
        /// Make it stay.
        Confirm = "confirm",
        /// Take it back.
        Undo = "undo",
    }
}

words! {
    /// How far a host has come.
    RolloutPhase {
        /// It never heard of it.
        Untouched = "untouched",
        /// It was told to apply it and hasn't said what came of that.
        Applying = "applying",
        /// In force; a guard takes it back unless it is confirmed.
        Applied = "applied",
        /// In force, and stays.
        Confirmed = "confirmed",
        /// Taken back because that was ordered.
        Undone = "undone",
        /// Its policy doesn't allow it.
        Refused = "refused",
        /// It couldn't be applied or confirmed, and isn't in force.
        Failed = "failed",
        /// Its guard took it back.
        Reverted = "reverted",
    }
}

/// A host on the way.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RolloutHost {
    /// Its name.
    pub agent: String,
    /// From 1; wave 1 has the canaries.
    pub wave: u32,
    /// What is ordered.
    pub ordered: RolloutOrder,
    /// For how long that has been ordered, by the server's clock.
    #[serde(skip)]
    pub asked: Duration,
    /// How far it is.
    pub phase: RolloutPhase,
    /// For how long, by the server's clock.
    #[serde(skip)]
    pub since: Duration,
    /// Why, where there is something to say.
    pub reason: String,
}

/// A change on its way.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Rollout {
    /// What it is called.
    pub name: String,
    /// `running`, `done`, `undoing` or `undone`.
    pub state: String,
    /// Why it was stopped.
    pub reason: String,
    /// Its number at the server.
    #[serde(skip)]
    pub number: i64,
    /// What is changed, as JSON.
    #[serde(skip)]
    pub spec: String,
    /// The hosts, by wave and name.
    pub hosts: Vec<RolloutHost>,
}

impl Rollout {
    /// How far it is by what its hosts have come to. Its state is written by whoever drives it: where nobody does any more, it is over
    /// all the same once its last host has said so.
    #[must_use]
    pub fn standing(&self) -> &str {
        let has_it = |host: &RolloutHost| host.phase == RolloutPhase::Confirmed;
        let is_settled = |host: &RolloutHost| has_it(host) || host.phase == RolloutPhase::Refused;
        let is_without = |host: &RolloutHost| match host.phase {
            RolloutPhase::Untouched => host.ordered == RolloutOrder::Nothing,
            RolloutPhase::Applying | RolloutPhase::Applied | RolloutPhase::Confirmed => false,
            RolloutPhase::Undone | RolloutPhase::Refused | RolloutPhase::Failed | RolloutPhase::Reverted => true,
        };
        match self.state.as_str() {
            "undoing" if self.hosts.iter().all(is_without) => "undone",
            "running" if self.hosts.iter().all(is_settled) && self.hosts.iter().any(has_it) => "done",
            state => state,
        }
    }
}

/// What an agent has to do for a change, or has under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutTask {
    /// Its number at the server.
    pub number: i64,
    /// What it is called.
    pub name: String,
    /// What is changed, as JSON.
    pub spec: String,
    /// What is ordered.
    pub ordered: RolloutOrder,
    /// How far it is, as the server knows.
    pub phase: RolloutPhase,
}

#[cfg(test)]
mod tests {
    use super::*;
    use RolloutOrder as Order;
    use RolloutPhase as Phase;

    #[test]
    fn a_change_that_nobody_drives_any_more_is_over_once_its_last_host_is() {
        let standing = |state: &str, hosts: &[(Order, Phase)]| {
            let host = |(ordered, phase): &(Order, Phase)| RolloutHost {
                agent: "a".to_owned(),
                wave: 1,
                ordered: *ordered,
                asked: Duration::ZERO,
                phase: *phase,
                since: Duration::ZERO,
                reason: String::new(),
            };
            let hosts = hosts.iter().map(host).collect();
            let (name, spec, reason) = ("n".to_owned(), String::new(), String::new());
            Rollout { name, state: state.to_owned(), reason, number: 1, spec, hosts }.standing().to_owned()
        };
        let never = (Order::Nothing, Phase::Untouched);
        let refused = (Order::Apply, Phase::Refused);
        let over = [
            (Order::Undo, Phase::Undone),
            (Order::Apply, Phase::Reverted),
            (Order::Apply, Phase::Failed),
            refused,
            never,
        ];
        assert_eq!(standing("undoing", &over), "undone");
        for open in [(Order::Undo, Phase::Confirmed), (Order::Undo, Phase::Applied), (Order::Apply, Phase::Untouched)] {
            assert_eq!(standing("undoing", &[over[0], open]), "undoing", "{open:?}");
        }
        let has_it = (Order::Confirm, Phase::Confirmed);
        assert_eq!(standing("running", &[has_it, refused]), "done");
        for open in [never, (Order::Confirm, Phase::Applied), (Order::Apply, Phase::Reverted)] {
            assert_eq!(standing("running", &[has_it, open]), "running", "{open:?}");
        }
        assert_eq!(standing("running", &[refused]), "running", "whoever goes on stops it");
        assert_eq!(standing("done", &over), "done");
    }
}
