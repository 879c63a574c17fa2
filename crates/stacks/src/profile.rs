//! Seven TCP/IP stacks of the nineties, as far as they are documented: settings under which a stack of today stands in for each.
//!
//! What nobody wrote down is [`Fact::Unknown`], and then the stack that stands in keeps its own. The stand-in shares
//! the documented settings, and nothing else: no claim about the old code follows from how it does.

use serde::Serialize;

/// A documented value, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact<T> {
    /// Documented, and where.
    Known(T, &'static str),
    /// Nobody wrote it down where we could read it.
    Unknown,
}

impl<T: Copy> Fact<T> {
    /// The value, if it is known.
    #[must_use]
    pub fn number(&self) -> Option<T> {
        if let Self::Known(value, _) = self { Some(*value) } else { None }
    }
}

/// What is documented of an old stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// The word in flags.
    pub name: &'static str,
    /// Its own name.
    pub title: &'static str,
    /// The stack that stands in.
    pub stands_on: &'static str,
    /// The receive window that it had unless somebody set another, bytes.
    pub window: Fact<u32>,
    /// Whether a user could set the window.
    pub window_can_be_set: Fact<bool>,
    /// The MSS on Ethernet, bytes.
    pub mss: Fact<u32>,
    /// How long it delayed ACKs, ms.
    pub ack_delay_ms: Fact<u32>,
    /// Whether it had selective acknowledgements.
    pub sack: Fact<bool>,
    /// Whether it had window scaling.
    pub window_scaling: Fact<bool>,
}

impl Profile {
    /// What is known to have been missing in the original, and which every stack of today that stands in has.
    #[must_use]
    pub fn lacks(&self) -> Vec<&'static str> {
        let facts = [(self.sack, "SACK"), (self.window_scaling, "window scaling")];
        facts.into_iter().filter(|(fact, _)| fact.number() == Some(false)).map(|(_, name)| name).collect()
    }

    /// Whether its window is known to be fixed.
    #[must_use]
    pub fn has_fixed_window(&self) -> bool {
        self.window_can_be_set.number() == Some(false)
    }
}

/// The comparison set every stack from 8 KB to 20 KB that could be set.
const COMPARED: &str = "the magazine's comparison, which raised those that can be set from 8 KB to 20 KB";
/// What it says of the one that can't.
const FIXED: &str = "the magazine's comparison: it has no setting for the window";
const Q158474: &str = "Microsoft Knowledge Base Q158474 (DefaultRcvWindow)";
const MATRIX: &str = "tables of Windows registry settings by version (dslreports.com, Tweak Matrix)";

const fn unknown(name: &'static str, title: &'static str) -> Profile {
    Profile {
        name,
        title,
        stands_on: "smoltcp",
        window: Fact::Known(8192, COMPARED),
        window_can_be_set: Fact::Known(true, COMPARED),
        mss: Fact::Unknown,
        ack_delay_ms: Fact::Unknown,
        sack: Fact::Unknown,
        window_scaling: Fact::Unknown,
    }
}

/// The seven.
pub const PROFILES: [Profile; 7] = [
    unknown("supertcp", "SuperTCP"),
    unknown("onnet-2.0", "OnNet 2.0"),
    unknown("onnet32", "OnNet32"),
    unknown("wfw-tcpip-32b", "Microsoft TCP/IP-32b for Windows for Workgroups"),
    Profile {
        window: Fact::Known(8192, Q158474),
        window_can_be_set: Fact::Known(true, Q158474),
        sack: Fact::Known(false, MATRIX),
        window_scaling: Fact::Known(false, MATRIX),
        ..unknown("windows-95", "Microsoft TCP/IP for Windows 95")
    },
    Profile {
        window_can_be_set: Fact::Known(true, "Trumpet Winsock's set-up: TCP RWIN, TCP MSS, MTU (its INSTALL.DOC)"),
        ..unknown("trumpet-2.0b", "Trumpet Winsock 2.0b")
    },
    Profile { window_can_be_set: Fact::Known(false, FIXED), ..unknown("chameleon", "Chameleon") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_fact_has_a_source_and_there_are_seven() {
        for profile in &PROFILES {
            for fact in [profile.window, profile.mss, profile.ack_delay_ms] {
                assert!(
                    matches!(fact, Fact::Unknown) || matches!(fact, Fact::Known(1.., source) if !source.is_empty())
                );
            }
            assert_eq!(profile.window.number(), Some(8192), "{}", profile.name);
        }
        assert_eq!(PROFILES.len(), 7);
        let of = |name: &str| PROFILES.iter().find(|profile| profile.name == name).unwrap();
        assert!(of("chameleon").has_fixed_window() && !of("windows-95").has_fixed_window());
        assert_eq!(of("windows-95").lacks(), ["SACK", "window scaling"]);
        assert!(of("trumpet-2.0b").lacks().is_empty(), "nobody wrote it down");
    }
}
