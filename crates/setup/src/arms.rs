//! What candidates are compared with, and settings that belong together, as somebody writes them.

use crate::text;
use wt_host::{OsDefault, os_default, os_defaults};
use wt_problem::Problem;
use wt_units::{Assignment, FullPacket, Knob, Level, Settings};

/// What every candidate is compared with, instead of the current settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Baseline {
    /// What an operating system begins with: `os` is this one's.
    System(String),
    /// These settings; the rest is as it is.
    Settings(Vec<Assignment>),
}

/// The word for the system that this program runs on.
const THIS_SYSTEM: &str = "os";
/// What it is in the table of defaults.
const THIS_NAME: &str = "Linux";

impl std::fmt::Display for Baseline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System(name) => f.write_str(name),
            Self::Settings(list) => f.write_str(&listed(list)),
        }
    }
}

impl std::str::FromStr for Baseline {
    type Err = String;
    /// Reads `os`, the name of an operating system, or `rwin=8192,mtu=576`.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.contains('=') {
            return Ok(Self::Settings(assignments(text)?));
        }
        if text != THIS_SYSTEM {
            os_default(text).map_err(|_| format!("write KNOB=LEVEL,… or a system: {}", systems().join(", ")))?;
        }
        Ok(Self::System(text.to_owned()))
    }
}

text::serde_as_text!(Baseline);

/// A candidate of one or several settings that somebody named.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedArm {
    /// What it is called; nothing means after its settings.
    pub name: String,
    /// What is set; nothing means the current settings.
    pub settings: Vec<Assignment>,
}

/// The word for the current settings as a candidate.
const CURRENT: &str = "current";
/// The longest name, characters: tables have to hold it.
const LONGEST_NAME: usize = 40;

impl std::fmt::Display for NamedArm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.name.as_str(), self.settings.as_slice()) {
            (_, []) => f.write_str(CURRENT),
            ("", settings) => f.write_str(&listed(settings)),
            (name, settings) => write!(f, "{name}: {}", listed(settings)),
        }
    }
}

impl std::str::FromStr for NamedArm {
    type Err = String;
    /// Reads `probing: pmtud=on,mtu-probing=on`, the same without a name, or `current`.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == CURRENT {
            return Ok(Self { name: CURRENT.to_owned(), settings: Vec::new() });
        }
        let (name, list) = match text.split_once(':') {
            Some((name, list)) if !name.contains('=') => (name.trim(), list),
            _ => ("", text),
        };
        if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(format!("the name of an arm has at most {LONGEST_NAME} printable characters"));
        }
        if [CURRENT, "baseline"].iter().any(|word| name.starts_with(word)) {
            return Err(format!("an arm can't be called \"{name}\": that is what it is compared with"));
        }
        Ok(Self { name: name.to_owned(), settings: assignments(list)? })
    }
}

text::serde_as_text!(NamedArm);

fn listed(list: &[Assignment]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn assignments(text: &str) -> Result<Vec<Assignment>, String> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    let list: Vec<Assignment> =
        words.map(|word| word.parse::<Assignment>().map_err(|error| error.to_string())).collect::<Result<_, _>>()?;
    if list.is_empty() {
        return Err("write KNOB=LEVEL, several with commas between them: mtu=576,rwin=4x".to_owned());
    }
    let twice = |at: &usize| list[..*at].iter().any(|before| before.knob == list[*at].knob);
    match (0..list.len()).find(twice) {
        Some(at) => Err(format!("{} is set twice; name each knob once", list[at].knob)),
        None => Ok(list),
    }
}

/// What multiples are multiplied with where these settings hold: what their own MTU or MSS leaves.
pub(crate) fn full_with(list: &[Assignment], path: FullPacket) -> FullPacket {
    full_over(&Settings::new(), list, path)
}

/// The same over other settings.
fn full_over(base: &Settings, list: &[Assignment], path: FullPacket) -> FullPacket {
    let number = |knob| match list.iter().find(|one| one.knob == knob) {
        Some(own) => own.level.number(),
        None => base.number(knob),
    };
    path.within(number(Knob::Mtu), number(Knob::Mss))
}

/// Settings in bytes, over others; `auto` leaves a knob to the system.
pub(crate) fn over(base: &Settings, list: &[Assignment], path: FullPacket) -> Settings {
    let full = full_over(base, list, path);
    let mut settings = base.clone();
    for one in list {
        settings = match one.level.clone().resolve(full) {
            Level::Auto => settings.iter().filter(|(knob, _)| *knob != one.knob).map(|(k, l)| (k, l.clone())).collect(),
            level => settings.with(one.knob, level),
        };
    }
    settings
}

impl Baseline {
    /// Its settings for a host whose current ones these are; multiples of the MSS and the MTU become bytes.
    ///
    /// # Errors
    /// A usage [`Problem`] where the table has no such system.
    pub fn settings(&self, current: &Settings, path: FullPacket) -> Result<Settings, Problem> {
        match self {
            Self::Settings(list) => Ok(over(&Settings::new(), list, path)),
            Self::System(name) => {
                let name = if name == THIS_SYSTEM { THIS_NAME } else { name };
                let os = os_default(name).map_err(|error| Problem::usage(error.to_string()))?;
                Ok(of_system(os, current))
            }
        }
    }

    /// What it is called in tables.
    #[must_use]
    pub fn label(&self, settings: &Settings) -> String {
        match self {
            Self::Settings(_) => format!("baseline ({settings})"),
            Self::System(name) if settings.is_empty() => format!("baseline ({name}: your current settings)"),
            Self::System(name) => format!("baseline ({name}: {settings})"),
        }
    }
}

/// What a system begins with, as far as it differs from what holds. A larger MTU than the current one can't be had, and
/// a window that grows by itself isn't held at what it begins with.
fn of_system(os: &OsDefault, current: &Settings) -> Settings {
    let mut settings = Settings::new();
    if !os.grows {
        settings.set(Knob::Rwin, Level::Number(os.rwin.into()));
    }
    let mtu = u64::from(os.mtu);
    if current.number(Knob::Mtu).is_some_and(|now| mtu < now) {
        settings.set(Knob::Mtu, Level::Number(mtu));
    }
    if let Some(segments) = os.initcwnd {
        settings.set(Knob::Initcwnd, Level::Number(segments.into()));
    }
    if let Some(control) = &os.cc {
        settings.set(Knob::Cc, Level::Name(control.clone()));
    }
    settings.differing_from(current)
}

/// All systems that can be named, as they are typed: `windows-98-se`, with all their names.
#[must_use]
pub fn systems() -> Vec<String> {
    let typed = |name: &String| name.to_lowercase().replace(' ', "-");
    let named = os_defaults().iter().flat_map(|os| std::iter::once(&os.name).chain(&os.aliases));
    std::iter::once(THIS_SYSTEM.to_owned()).chain(named.map(typed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["os", "windows-98", "rwin=8192,mtu=576", "rwin=33xmtu"] {
            assert_eq!(text.parse::<Baseline>().unwrap().to_string(), text);
        }
        for text in ["current", "mtu=576,rwin=4x", "probing: pmtud=on,mtu-probing=on"] {
            assert_eq!(text.parse::<NamedArm>().unwrap().to_string(), text);
        }
        assert!(systems().iter().all(|system| system.parse::<Baseline>().is_ok()), "{:?}", systems());
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        let error = "windows-97".parse::<Baseline>().unwrap_err();
        for name in
            ["os,", "windows-98-se,", "windows-98,", "windows-me,", "linux-2.6.18,", "linux-2.6.39,", "freebsd,"]
        {
            assert!(error.contains(name), "{name}: {error}");
        }
        assert!("rwin=8192,rwin=4x".parse::<Baseline>().unwrap_err().contains("twice"));
        for text in ["", "a:", "a: mtu", "current: mtu=576", "baseline: mtu=576"] {
            assert!(text.parse::<NamedArm>().is_err(), "{text}");
        }
    }

    #[test]
    fn multiples_are_of_the_packet_that_the_same_settings_leave() {
        let of = |text: &str| {
            let list = text.parse::<NamedArm>().unwrap().settings;
            over(&Settings::new(), &list, FullPacket { mtu: 1500, mss: 1448 }).number(Knob::Rwin)
        };
        assert_eq!(of("rwin=4x"), Some(5792));
        assert_eq!(of("rwin=4x,mtu=576"), Some(4 * 524));
        assert_eq!(of("rwin=4x,mss=536"), Some(2144));
        assert_eq!(of("rwin=4x,mtu=9000"), Some(5792), "a larger MTU doesn't get through");
        assert_eq!(of("rwin=33xmtu"), Some(49_500));
        assert_eq!(of("rwin=33xmtu,mtu=1456"), Some(48_048));
        assert_eq!(of("mss=536,rwin=4xmtu"), Some(6_000), "a smaller MSS isn't a smaller MTU");
    }

    #[test]
    fn an_old_system_brings_its_window_and_a_newer_one_lets_it_grow() {
        let current = Settings::new().with(Knob::Mtu, Level::Number(1492)).with(Knob::Cc, Level::Name("bbr".into()));
        let of = |name: &str| {
            name.parse::<Baseline>().unwrap().settings(&current, FullPacket { mtu: 1492, mss: 1440 }).unwrap()
        };
        assert_eq!(of("windows-98").to_string(), "rwin=8192");
        let own = of("os");
        assert_eq!((own.number(Knob::Rwin), own.name(Knob::Cc)), (None, Some("cubic")));
        assert_eq!(own.number(Knob::Initcwnd), Some(10));
    }
}
