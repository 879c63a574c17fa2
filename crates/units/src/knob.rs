use crate::{Bytes, ParseError, nearest};
use std::collections::BTreeMap;

/// One thing that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// The receive window that the receiver will at most advertise, bytes.
    Rwin,
    /// The largest IP packet that the host sends, bytes.
    Mtu,
    /// The congestion control of the sender.
    Cc,
    /// The largest TCP payload of a segment, bytes.
    Mss,
    /// The initial congestion window of the sender, segments.
    Initcwnd,
    /// The initial receive window of the receiver, segments.
    Initrwnd,
    /// The sender's buffer, bytes.
    Sndbuf,
    /// The initial time to live (hop limit) of packets.
    Ttl,
    /// Selective acknowledgements, on or off.
    Sack,
    /// TCP timestamps, on or off.
    Timestamps,
    /// Window scaling, on or off.
    WindowScaling,
    /// Explicit congestion notification, on or off.
    Ecn,
    /// Black-hole detection by packetisation-layer probing, on or off.
    MtuProbing,
    /// Path MTU discovery, on or off.
    Pmtud,
}

/// What the levels of a knob are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Bytes, or multiples of the MSS.
    Size { min: u64, max: u64 },
    /// A bare number.
    Number { min: u64, max: u64 },
    /// A word.
    Name,
    /// On or off.
    Switch,
}

/// Name, kind and one line of help of each knob; the one table that all else reads.
const KNOBS: [(Knob, &str, Kind, &str); 14] = [
    (Knob::Rwin, "rwin", Kind::Size { min: 1_152, max: 1 << 30 }, "receive window, bytes or multiples of the MSS (4x)"),
    (Knob::Mtu, "mtu", Kind::Size { min: 552, max: 65_535 }, "largest IP packet, bytes"),
    (Knob::Cc, "cc", Kind::Name, "congestion control of the sender"),
    (Knob::Mss, "mss", Kind::Size { min: 88, max: 65_495 }, "largest TCP payload of a segment, bytes"),
    (Knob::Initcwnd, "initcwnd", Kind::Number { min: 1, max: 1_000 }, "initial congestion window, segments"),
    (Knob::Initrwnd, "initrwnd", Kind::Number { min: 1, max: 1_000 }, "initial receive window, segments"),
    (Knob::Sndbuf, "sndbuf", Kind::Size { min: 4_608, max: 1 << 30 }, "send buffer, bytes"),
    (Knob::Ttl, "ttl", Kind::Number { min: 1, max: 255 }, "initial time to live"),
    (Knob::Sack, "sack", Kind::Switch, "selective acknowledgements"),
    (Knob::Timestamps, "timestamps", Kind::Switch, "TCP timestamps"),
    (Knob::WindowScaling, "window-scaling", Kind::Switch, "window scaling"),
    (Knob::Ecn, "ecn", Kind::Switch, "explicit congestion notification"),
    (Knob::MtuProbing, "mtu-probing", Kind::Switch, "black-hole detection"),
    (Knob::Pmtud, "pmtud", Kind::Switch, "path MTU discovery"),
];

impl Knob {
    /// Every knob, in the order in which they are shown.
    #[must_use]
    pub fn all() -> [Self; 14] {
        KNOBS.map(|(knob, ..)| knob)
    }

    /// The names of all knobs.
    #[must_use]
    pub fn names() -> [&'static str; 14] {
        KNOBS.map(|(_, name, ..)| name)
    }

    /// The name in flags, files and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What it is, in one line.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.row().3
    }

    /// What may be written for it, as an error or a help text names it.
    #[must_use]
    pub fn allowed(self) -> String {
        match self.row().2 {
            Kind::Size { min, max } if self == Self::Rwin => {
                format!("auto, {min} to {max} bytes, or a multiple of the MSS such as 4x")
            }
            Kind::Size { min, max } => format!("auto or {min} to {max} bytes"),
            Kind::Number { min, max } => format!("auto or {min} to {max}"),
            Kind::Name => {
                "auto or a name of 1 to 15 letters, digits, _ and . (at most one @ before a variant)".to_owned()
            }
            Kind::Switch => "auto, on or off".to_owned(),
        }
    }

    /// Whether its levels have an order in which a smallest sufficient one can be sought.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        matches!(self.row().2, Kind::Size { .. } | Kind::Number { .. })
    }

    /// Reads a level of this knob: `auto`, a size, a multiple of the MSS (`4x`, RWIN only), a number, a name, `on`.
    ///
    /// # Errors
    /// [`ParseError::BadLevel`] with what is allowed.
    pub fn parse_level(self, text: &str) -> Result<Level, ParseError> {
        let word = text.trim();
        let bad = || ParseError::BadLevel { knob: self.name(), text: text.to_owned(), allowed: self.allowed() };
        if word.eq_ignore_ascii_case("auto") {
            return Ok(Level::Auto);
        }
        match self.row().2 {
            Kind::Size { min, max } => {
                if let Some(times) = word.strip_suffix(['x', '×']).filter(|_| self == Self::Rwin) {
                    let times: u32 = times.trim().parse().map_err(|_| bad())?;
                    return if (1..=100_000).contains(&times) { Ok(Level::TimesMss(times)) } else { Err(bad()) };
                }
                let bytes = word.parse::<Bytes>().map_err(|_| bad())?.get();
                if (min..=max).contains(&bytes) { Ok(Level::Number(bytes)) } else { Err(bad()) }
            }
            Kind::Number { min, max } => {
                let number: u64 = word.parse().map_err(|_| bad())?;
                if (min..=max).contains(&number) { Ok(Level::Number(number)) } else { Err(bad()) }
            }
            Kind::Name => {
                let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
                // Behind an @ stands a variant, or parameters such as queue-min=5ms+pmax=30%.
                let (base, variant) = word.split_once('@').unwrap_or((word, ""));
                let fine = base.chars().all(ok) && variant.chars().all(|c| ok(c) || matches!(c, '=' | '+' | '%'));
                if (1..=15).contains(&base.len()) && word.len() <= 120 && fine {
                    Ok(Level::Name(word.to_owned()))
                } else {
                    Err(bad())
                }
            }
            Kind::Switch => match word {
                "on" | "1" | "true" => Ok(Level::Name("on".to_owned())),
                "off" | "0" | "false" => Ok(Level::Name("off".to_owned())),
                _ => Err(bad()),
            },
        }
    }

    #[expect(clippy::expect_used, reason = "the table holds every variant; a test walks them all")]
    fn row(self) -> &'static (Self, &'static str, Kind, &'static str) {
        KNOBS.iter().find(|(knob, ..)| *knob == self).expect("every knob has a row")
    }
}

impl std::fmt::Display for Knob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Knob {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let word = text.trim().to_ascii_lowercase().replace('_', "-");
        KNOBS
            .iter()
            .find(|(_, name, ..)| *name == word)
            .map(|(knob, ..)| *knob)
            .ok_or_else(|| ParseError::UnknownKnob { text: text.to_owned(), nearest: nearest(&word, Self::names()) })
    }
}

/// One value of a knob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What the system does by itself.
    Auto,
    /// Bytes, segments or a bare number: the knob says which.
    Number(u64),
    /// A multiple of the MSS, not resolved to bytes yet.
    TimesMss(u32),
    /// A name, or `on` and `off`.
    Name(String),
}

impl Level {
    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        if let Self::Number(n) = self { Some(*n) } else { None }
    }

    /// The name, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    /// Turns a multiple of the MSS into bytes; every other level stays as it is.
    #[must_use]
    pub fn resolve(self, mss: Bytes) -> Self {
        if let Self::TimesMss(times) = self { Self::Number(mss.get() * u64::from(times)) } else { self }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Number(n) => write!(f, "{n}"),
            Self::TimesMss(times) => write!(f, "{times}x"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A set of knob values, in the order of the knobs. In JSON: `{"rwin":16384,"cc":"cubic"}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Settings(BTreeMap<Knob, Level>);

impl Settings {
    /// No knob set: everything as the system does it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The level of a knob; `None` is left to the system, as `Auto` is.
    #[must_use]
    pub fn get(&self, knob: Knob) -> Option<&Level> {
        self.0.get(&knob)
    }

    /// The number that a knob is set to, if it is set to one.
    #[must_use]
    pub fn number(&self, knob: Knob) -> Option<u64> {
        self.get(knob).and_then(Level::number)
    }

    /// The name that a knob is set to, if it is set to one.
    #[must_use]
    pub fn name(&self, knob: Knob) -> Option<&str> {
        self.get(knob).and_then(Level::name)
    }

    /// Sets a knob.
    pub fn set(&mut self, knob: Knob, level: Level) {
        self.0.insert(knob, level);
    }

    /// The same with one knob set otherwise.
    #[must_use]
    pub fn with(&self, knob: Knob, level: Level) -> Self {
        let mut changed = self.clone();
        changed.set(knob, level);
        changed
    }

    /// Every knob that is named, with its level.
    pub fn iter(&self) -> impl Iterator<Item = (Knob, &Level)> {
        self.0.iter().map(|(knob, level)| (*knob, level))
    }

    /// Whether no knob is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These settings, and over them others: where both name a knob, the others' level.
    #[must_use]
    pub fn overlaid(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(others.0.iter().map(|(knob, level)| (*knob, level.clone())));
        all
    }

    /// What differs from other settings: the knobs of `self` whose level isn't that of `other`.
    #[must_use]
    pub fn differing_from(&self, other: &Self) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(knob, level)| other.0.get(knob) != Some(level))
                .map(|(k, l)| (*k, l.clone()))
                .collect(),
        )
    }

    /// Turns multiples of the MSS into bytes.
    #[must_use]
    pub fn resolve(self, mss: Bytes) -> Self {
        Self(self.0.into_iter().map(|(knob, level)| (knob, level.resolve(mss))).collect())
    }
}

impl FromIterator<(Knob, Level)> for Settings {
    fn from_iter<I: IntoIterator<Item = (Knob, Level)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl std::fmt::Display for Settings {
    /// `rwin=16384 mtu=1492 cc=cubic`, or `defaults`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("defaults");
        }
        let words: Vec<String> = self.0.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(feature = "serde")]
mod text {
    use super::{Knob, Level, Settings};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    impl Serialize for Level {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Number(n) => serializer.serialize_u64(*n),
                other => serializer.collect_str(other),
            }
        }
    }

    impl Serialize for Settings {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter())
        }
    }

    impl<'de> Deserialize<'de> for Settings {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            #[derive(Deserialize)]
            #[serde(untagged)]
            enum Raw {
                Number(u64),
                Switch(bool),
                Text(String),
            }
            let raw = std::collections::BTreeMap::<Knob, Raw>::deserialize(deserializer)?;
            raw.into_iter()
                .map(|(knob, raw)| {
                    let text = match raw {
                        Raw::Number(n) => n.to_string(),
                        Raw::Switch(on) => if on { "on" } else { "off" }.to_owned(),
                        Raw::Text(text) => text,
                    };
                    knob.parse_level(&text).map(|level| (knob, level)).map_err(D::Error::custom)
                })
                .collect()
        }
    }
}
