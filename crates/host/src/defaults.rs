use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use wt_units::nearest;

/// What an operating system begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsDefault {
    /// Its name.
    pub name: String,
    /// Other names that are understood.
    #[serde(default, skip_serializing)]
    pub aliases: Vec<String>,
    /// MTU on Ethernet, bytes.
    pub mtu: u32,
    /// Receive window, bytes.
    pub rwin: u32,
    /// Initial congestion window, segments, where it is known.
    #[serde(default)]
    pub initcwnd: Option<u32>,
    /// Congestion control, where the kernel's own is one that Linux has, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// Whether the window grows by itself.
    #[serde(default)]
    pub grows: bool,
    /// Where the figures can be checked.
    pub source: String,
}

/// There is no such system in the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the table has no operating system \"{text}\"; it has {}", known.join(", "))]
pub struct OsDefaultError {
    /// What was written.
    pub text: String,
    /// The nearest names.
    pub nearest: Vec<String>,
    /// All names.
    pub known: Vec<String>,
}

/// The table, in the order in which it is shown.
///
/// # Panics
/// Never: a test reads the table.
#[must_use]
#[expect(clippy::expect_used, reason = "the table is part of the program, and a test reads it")]
pub fn os_defaults() -> &'static [OsDefault] {
    #[derive(Deserialize)]
    struct Table {
        os: Vec<OsDefault>,
    }
    static TABLE: OnceLock<Vec<OsDefault>> = OnceLock::new();
    TABLE.get_or_init(|| {
        toml::from_str::<Table>(include_str!("../data/os-defaults.toml"))
            .map(|table| table.os)
            .expect("the table is right")
    })
}

/// What the system of this name begins with.
///
/// # Errors
/// [`OsDefaultError`] with the nearest names.
pub fn os_default(text: &str) -> Result<&'static OsDefault, OsDefaultError> {
    let plain = |text: &str| text.to_lowercase().split(|c: char| c.is_whitespace() || c == '-').collect::<String>();
    let wanted = plain(text);
    let table = os_defaults();
    let named = |os: &&OsDefault| plain(&os.name) == wanted || os.aliases.iter().any(|alias| plain(alias) == wanted);
    let names = || table.iter().map(|os| os.name.as_str());
    table.iter().find(named).ok_or_else(|| OsDefaultError {
        text: text.to_owned(),
        nearest: nearest(text, names()),
        known: names().map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{os_default, os_defaults};

    #[test]
    fn the_classic_systems_have_their_known_initial_values() {
        for (name, mtu, rwin) in [
            ("Windows 98SE", 1500, 8_192),
            ("Windows ME", 1500, 16_384),
            ("Windows 2000", 1500, 16_384),
            ("Windows XP", 1500, 65_536),
        ] {
            let os = os_default(name).unwrap();
            assert_eq!((os.mtu, os.rwin), (mtu, rwin), "{name}");
        }
    }

    #[test]
    fn every_row_says_where_it_is_from() {
        assert!(os_defaults().len() >= 8);
        assert!(os_defaults().iter().all(|os| os.source.len() > 10));
        assert!(os_default("windws xp").unwrap_err().nearest.contains(&"Windows XP".to_owned()));
    }
}
