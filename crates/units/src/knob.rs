use crate::{Bytes, FullPacket, Multiple, ParseError, nearest};
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
    /// Bytes; the receive window in multiples of the MSS or the MTU, too.
    Size { min: u64, max: u64 },
    /// A bare number.
    Number { min: u64, max: u64 },
    /// A word.
    Name,
    /// On or off.
    Switch,
}

/// In what the levels of a knob are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Segments of the connection's MSS.
    Segments,
    /// Routers that a packet may cross.
    Hops,
    /// Not counted: a name, or on and off.
    Word,
}

/// On which end of a connection a knob acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On the one that sends the payload.
    Sender,
    /// On the one that receives the payload.
    Receiver,
    /// On each one for itself: it changes what that end sends or offers.
    Own,
}

/// How narrowly experiments can set a knob on Linux: several may be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scopes {
    /// On one socket.
    pub socket: bool,
    /// On a route.
    pub route: bool,
    /// On the whole host.
    pub host: bool,
}

/// All that is known of a knob.
struct Facts {
    name: &'static str,
    kind: Kind,
    unit: Unit,
    side: Side,
    scopes: Scopes,
    help: &'static str,
}

const fn facts(
    name: &'static str,
    kind: Kind,
    (unit, side): (Unit, Side),
    [socket, route, host]: [bool; 3],
    help: &'static str,
) -> Facts {
    Facts { name, kind, unit, side, scopes: Scopes { socket, route, host }, help }
}

const fn size(min: u64, max: u64) -> Kind {
    Kind::Size { min, max }
}

const fn number(min: u64, max: u64) -> Kind {
    Kind::Number { min, max }
}

/// A switch of the whole host; some can be set on a route, too.
const fn switch(name: &'static str, on_route: bool, help: &'static str) -> Facts {
    facts(name, Kind::Switch, (Unit::Word, Side::Own), [false, on_route, true], help)
}

/// Every knob, in the order in which they are shown.
const ALL: [Knob; 14] = [
    Knob::Rwin,
    Knob::Mtu,
    Knob::Cc,
    Knob::Mss,
    Knob::Initcwnd,
    Knob::Initrwnd,
    Knob::Sndbuf,
    Knob::Ttl,
    Knob::Sack,
    Knob::Timestamps,
    Knob::WindowScaling,
    Knob::Ecn,
    Knob::MtuProbing,
    Knob::Pmtud,
];

impl Knob {
    /// The one table that all else reads. The switches in square brackets: socket, route, host.
    const fn facts(self) -> Facts {
        use Side::{Own, Receiver, Sender};
        use Unit::{Bytes, Hops, Segments, Word};
        let (all, on_route) = ([true; 3], [false, true, false]);
        let window = "receive window, bytes or multiples of the MSS (4x) or the MTU (33xmtu)";
        match self {
            // A route's window bounds the SYN alone.
            Self::Rwin => facts("rwin", size(1_152, 1 << 30), (Bytes, Receiver), [true, false, true], window),
            // On a socket an MTU is a smaller MSS.
            Self::Mtu => facts("mtu", size(68, 65_535), (Bytes, Own), [true, true, false], "largest IP packet, bytes"),
            Self::Cc => facts("cc", Kind::Name, (Word, Sender), all, "congestion control of the sender"),
            Self::Mss => facts(
                "mss",
                size(88, 65_495),
                (Bytes, Own),
                [true, true, false],
                "largest TCP payload of a segment, bytes",
            ),
            Self::Initcwnd => {
                facts("initcwnd", number(1, 1_000), (Segments, Sender), on_route, "initial congestion window, segments")
            }
            Self::Initrwnd => {
                facts("initrwnd", number(1, 1_000), (Segments, Receiver), on_route, "initial receive window, segments")
            }
            Self::Sndbuf => {
                facts("sndbuf", size(4_608, 1 << 30), (Bytes, Sender), [true, false, true], "send buffer, bytes")
            }
            Self::Ttl => facts("ttl", number(1, 255), (Hops, Own), all, "initial time to live"),
            Self::Sack => switch("sack", false, "selective acknowledgements"),
            Self::Timestamps => switch("timestamps", false, "TCP timestamps"),
            Self::WindowScaling => switch("window-scaling", false, "window scaling"),
            Self::Ecn => switch("ecn", true, "explicit congestion notification"),
            Self::MtuProbing => switch("mtu-probing", false, "black-hole detection"),
            Self::Pmtud => switch("pmtud", false, "path MTU discovery"),
        }
    }

    /// In what its levels are counted.
    #[must_use]
    pub fn unit(self) -> Unit {
        self.facts().unit
    }

    /// On which end of a connection it acts.
    #[must_use]
    pub fn side(self) -> Side {
        self.facts().side
    }

    /// Where Linux can set it.
    #[must_use]
    pub fn scopes(self) -> Scopes {
        self.facts().scopes
    }

    /// Whether trials set it for the connections with one target alone, and settings can, too: what only sockets have by a
    /// program that sees connections begin.
    #[must_use]
    pub fn is_per_target(self) -> bool {
        let scopes = self.scopes();
        scopes.socket || (scopes.route && !scopes.host)
    }

    /// Every knob, in the order in which they are shown.
    #[must_use]
    pub fn all() -> [Self; 14] {
        ALL
    }

    /// The names of all knobs.
    #[must_use]
    pub fn names() -> [&'static str; 14] {
        ALL.map(Self::name)
    }

    /// The name in flags, files and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// What it is, in one line.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.facts().help
    }

    /// What may be written for it, as an error or a help text names it.
    #[must_use]
    pub fn allowed(self) -> String {
        match self.facts().kind {
            Kind::Size { min, max } if self == Self::Rwin => {
                format!("auto, {min} to {max} bytes, or a multiple of the MSS such as 4x or of the MTU such as 33xmtu")
            }
            Kind::Size { min, max } => format!("auto or {min} to {max} bytes"),
            Kind::Number { min, max } if self == Self::Ttl => format!("auto (or 0) or {min} to {max}"),
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
        matches!(self.facts().kind, Kind::Size { .. } | Kind::Number { .. })
    }

    /// Reads a level of this knob: `auto`, a size, a multiple of the MSS (`4x`) or of the MTU (`33xmtu`), both
    /// for RWIN alone, a number, a name, `on`.
    ///
    /// # Errors
    /// [`ParseError::BadLevel`] with what is allowed.
    pub fn parse_level(self, text: &str) -> Result<Level, ParseError> {
        let word = text.trim();
        let bad = || ParseError::BadLevel { knob: self.name(), text: text.to_owned(), allowed: self.allowed() };
        if word.eq_ignore_ascii_case("auto") {
            return Ok(Level::Auto);
        }
        match self.facts().kind {
            Kind::Size { min, max } => {
                if let Some(multiple) = Multiple::read(word).filter(|_| self == Self::Rwin) {
                    return multiple.map(Level::from).map_err(|()| bad());
                }
                let bytes = word.parse::<Bytes>().map_err(|_| bad())?.get();
                if (min..=max).contains(&bytes) { Ok(Level::Number(bytes)) } else { Err(bad()) }
            }
            Kind::Number { min, max } => {
                let number: u64 = word.parse().map_err(|_| bad())?;
                // As the old optimisers wrote the system's own.
                if number == 0 && self == Self::Ttl {
                    return Ok(Level::Auto);
                }
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
        ALL.into_iter()
            .find(|knob| knob.name() == word)
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
    /// A multiple of the MTU, not resolved to bytes yet.
    TimesMtu(u32),
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

    /// Turns a multiple of the MSS or the MTU into bytes; every other level stays as it is.
    #[must_use]
    pub fn resolve(self, full: FullPacket) -> Self {
        match self {
            Self::TimesMss(times) => Self::Number(full.mss * u64::from(times)),
            Self::TimesMtu(times) => Self::Number(full.mtu * u64::from(times)),
            other => other,
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Number(n) => write!(f, "{n}"),
            Self::TimesMss(times) => Multiple::OfMss(*times).fmt(f),
            Self::TimesMtu(times) => Multiple::OfMtu(*times).fmt(f),
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

    /// Turns multiples of the MSS and the MTU into bytes.
    #[must_use]
    pub fn resolve(self, full: FullPacket) -> Self {
        Self(self.0.into_iter().map(|(knob, level)| (knob, level.resolve(full))).collect())
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
    use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema};
    use utoipa::{PartialSchema, ToSchema};

    impl PartialSchema for Level {
        fn schema() -> RefOr<Schema> {
            OneOfBuilder::new().item(u64::schema()).item(String::schema()).into()
        }
    }

    impl ToSchema for Level {}

    impl PartialSchema for Settings {
        fn schema() -> RefOr<Schema> {
            ObjectBuilder::new().additional_properties(Some(Level::schema())).into()
        }
    }

    impl ToSchema for Settings {}

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
