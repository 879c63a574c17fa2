use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::collections::BTreeMap;
use std::time::Duration;
use wt_units::{
    BitsPerSecond, Bytes, Knob, Level, ParseError, Settings, Side, format_duration, nearest, parse_duration,
};

/// The knobs that a server can set on each new connection.
const KNOBS: [Knob; 4] = [Knob::Cc, Knob::Initcwnd, Knob::Initrwnd, Knob::Ecn];
/// The largest first window, segments, that an experiment gives to people who weren't asked.
const MAX_INITCWND: u64 = 64;

/// Settings of one socket that aren't knobs elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SocketSetting {
    /// The largest cwnd, segments, 10 or more.
    CwndClamp,
    /// The smallest RTO, µs, 8 to 200 ms.
    RtoMin,
    /// The longest a delayed ACK waits, µs, 8 to 200 ms.
    DelackMax,
    /// How much unsent data the socket takes, bytes, 4 KiB or more.
    NotsentLowat,
    /// The largest receive window, bytes, 16 KiB or more.
    WindowClamp,
    /// The highest rate, bit/s, 1 Mbit/s or more; the caller holds it against the median rate of the connections.
    Pacing,
}

impl SocketSetting {
    /// All of them, in the order in which [`crate::ConnectionOutcome::set_errors`] has their bits, after cc (bit 0), initcwnd
    /// (1), initrwnd (2) and ECN (3).
    pub const ALL: [Self; 6] =
        [Self::CwndClamp, Self::RtoMin, Self::DelackMax, Self::NotsentLowat, Self::WindowClamp, Self::Pacing];

    /// Its name in `--levels`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CwndClamp => "cwnd-clamp",
            Self::RtoMin => "rto-min",
            Self::DelackMax => "delack-max",
            Self::NotsentLowat => "notsent-lowat",
            Self::WindowClamp => "window-clamp",
            Self::Pacing => "pacing",
        }
    }

    /// On which end of a connection it acts: the server sends its responses, and receives requests and uploads.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::CwndClamp | Self::RtoMin | Self::NotsentLowat | Self::Pacing => Side::Sender,
            Self::DelackMax | Self::WindowClamp => Side::Receiver,
        }
    }

    const fn range(self) -> (u64, u64) {
        match self {
            Self::CwndClamp => (10, 1 << 20),
            Self::RtoMin | Self::DelackMax => (8_000, 200_000),
            Self::NotsentLowat => (4_096, 1 << 30),
            Self::WindowClamp => (16_384, 1 << 30),
            Self::Pacing => (1_000_000, 1_000_000_000_000),
        }
    }

    fn read(self, text: &str) -> Result<u64, ArmSettingsError> {
        let bad =
            || ArmSettingsError::BadLevel { setting: self.name(), text: text.to_owned(), allowed: self.allowed() };
        let number = match self {
            Self::CwndClamp => text.trim().parse().ok(),
            Self::RtoMin | Self::DelackMax => parse_duration(text).ok().map(|d| d.as_micros() as u64),
            Self::NotsentLowat | Self::WindowClamp => text.parse::<Bytes>().ok().map(Bytes::get),
            Self::Pacing => text.parse::<BitsPerSecond>().ok().map(BitsPerSecond::get),
        };
        let (min, max) = self.range();
        number.filter(|n| (min..=max).contains(n)).ok_or_else(bad)
    }

    fn write(self, number: u64) -> String {
        match self {
            Self::CwndClamp => number.to_string(),
            Self::RtoMin | Self::DelackMax => format_duration(Duration::from_micros(number)),
            Self::NotsentLowat | Self::WindowClamp => Bytes(number).to_string(),
            Self::Pacing => BitsPerSecond(number).to_string(),
        }
    }

    fn allowed(self) -> String {
        let (min, max) = self.range();
        format!("{} to {}", self.write(min), self.write(max))
    }
}

/// Why a text isn't a setting of an arm.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ArmSettingsError {
    /// There is no `=` in it.
    #[error("{0}: write KEY=LEVEL, such as initcwnd=32")]
    NoLevel(String),
    /// No such setting can be given to one connection.
    #[error("{text}: invalid, allowed are {allowed}{}", near(.nearest))]
    Unknown {
        /// What was written.
        text: String,
        /// The settings there are.
        allowed: String,
        /// The nearest of them.
        nearest: Vec<String>,
    },
    /// A level out of its range.
    #[error("{setting}={text}: invalid, allowed are {allowed}")]
    BadLevel {
        /// The setting.
        setting: &'static str,
        /// What was written.
        text: String,
        /// What is allowed.
        allowed: String,
    },
    /// A level of a knob that isn't one.
    #[error(transparent)]
    Knob(#[from] ParseError),
}

fn near(names: &[String]) -> String {
    names.first().map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// What an arm sets on its connections; what isn't named stays as it is. In JSON: `{"initcwnd":32,"rto-min":"50ms"}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ArmSettings {
    knobs: Settings,
    socket: BTreeMap<SocketSetting, u64>,
}

impl ArmSettings {
    /// Nothing set: the current settings.
    #[must_use]
    pub fn current() -> Self {
        Self::default()
    }

    /// Sets one, written as `initcwnd` and `32`.
    ///
    /// # Errors
    /// [`ArmSettingsError`], with what is allowed.
    pub fn set(&mut self, name: &str, level: &str) -> Result<(), ArmSettingsError> {
        let word = name.trim().to_ascii_lowercase().replace('_', "-");
        if let Some(setting) = SocketSetting::ALL.into_iter().find(|setting| setting.name() == word) {
            self.socket.insert(setting, setting.read(level)?);
            return Ok(());
        }
        let Some(knob) = KNOBS.into_iter().find(|knob| knob.name() == word) else {
            let names = || KNOBS.iter().map(|k| k.name()).chain(SocketSetting::ALL.iter().map(|s| s.name()));
            let allowed = names().collect::<Vec<_>>().join(", ");
            let nearest = nearest(&word, names()).into_iter().collect();
            return Err(ArmSettingsError::Unknown { text: name.to_owned(), allowed, nearest });
        };
        let level_read = knob.parse_level(level)?;
        if knob == Knob::Initcwnd && level_read.number().is_some_and(|n| n > MAX_INITCWND) {
            let (text, allowed) = (level.to_owned(), format!("1 to {MAX_INITCWND}"));
            return Err(ArmSettingsError::BadLevel { setting: "initcwnd", text, allowed });
        }
        self.knobs.set(knob, level_read);
        Ok(())
    }

    /// The congestion control to set, if one is named.
    #[must_use]
    pub fn cc(&self) -> Option<&str> {
        self.knobs.name(Knob::Cc)
    }

    /// The first congestion window to set, segments.
    #[must_use]
    pub fn initcwnd(&self) -> Option<u32> {
        self.number(Knob::Initcwnd)
    }

    /// The first receive window to set, segments.
    #[must_use]
    pub fn initrwnd(&self) -> Option<u32> {
        self.number(Knob::Initrwnd)
    }

    /// Whether ECN is to be accepted, if that is named.
    #[must_use]
    pub fn ecn(&self) -> Option<bool> {
        self.knobs.name(Knob::Ecn).map(|word| word == "on")
    }

    /// The number that a socket's setting is set to, in the unit that its variant says.
    #[must_use]
    pub fn socket(&self, setting: SocketSetting) -> Option<u64> {
        self.socket.get(&setting).copied()
    }

    /// The knobs among them, as other commands know them.
    #[must_use]
    pub fn knobs(&self) -> &Settings {
        &self.knobs
    }

    /// Whether nothing is set.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.socket.is_empty() && self.knobs.iter().all(|(_, level)| *level == Level::Auto)
    }

    /// Each with its level as text, and on which end of a connection it acts.
    pub(crate) fn sides(&self) -> impl Iterator<Item = (&'static str, String, Side)> + '_ {
        let knobs = self.knobs.iter().map(|(knob, level)| (knob.name(), level.to_string(), knob.side()));
        let socket = self.socket.iter().map(|(one, number)| (one.name(), one.write(*number), one.side()));
        knobs.chain(socket)
    }

    /// Each with its level as text.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.sides().map(|(name, level, _)| (name, level))
    }

    fn number(&self, knob: Knob) -> Option<u32> {
        self.knobs.number(knob).and_then(|n| u32::try_from(n).ok())
    }
}

impl std::fmt::Display for ArmSettings {
    /// `initcwnd=32 rto-min=50ms`, or `current settings`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.iter().map(|(name, level)| format!("{name}={level}")).collect();
        f.write_str(if words.is_empty() { "current settings".to_owned() } else { words.join(" ") }.as_str())
    }
}

impl std::str::FromStr for ArmSettings {
    type Err = ArmSettingsError;
    /// Reads what `Display` writes, and `KEY=LEVEL` with commas between them.
    fn from_str(text: &str) -> Result<Self, ArmSettingsError> {
        let mut settings = Self::current();
        if text.trim() == "current settings" {
            return Ok(settings);
        }
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            let (name, level) = word.split_once('=').ok_or_else(|| ArmSettingsError::NoLevel(word.to_owned()))?;
            settings.set(name, level)?;
        }
        Ok(settings)
    }
}

impl Serialize for ArmSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum NumberOrText {
            Number(u64),
            Text(String),
        }
        let written =
            self.iter().map(|(name, text)| (name, text.parse().map_or(NumberOrText::Text(text), NumberOrText::Number)));
        serializer.collect_map(written)
    }
}

impl utoipa::PartialSchema for ArmSettings {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new().additional_properties(Some(Level::schema())).into()
    }
}

impl utoipa::ToSchema for ArmSettings {}

impl<'de> Deserialize<'de> for ArmSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(u64),
            Text(String),
        }
        let mut settings = Self::current();
        for (name, raw) in BTreeMap::<String, Raw>::deserialize(deserializer)? {
            let text = match raw {
                Raw::Number(n) => n.to_string(),
                Raw::Text(text) => text,
            };
            settings.set(&name, &text).map_err(D::Error::custom)?;
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_they_are_read_as_text_and_as_json() {
        let all = "cc=bbr initcwnd=32 initrwnd=40 ecn=on cwnd-clamp=100 rto-min=50ms delack-max=20ms \
                   notsent-lowat=16KiB window-clamp=1MiB pacing=20mbit";
        for text in ["current settings", "initcwnd=10", "cc=cubic cwnd-clamp=40", all] {
            let read: ArmSettings = text.parse().unwrap();
            assert_eq!(read.to_string().parse::<ArmSettings>().unwrap(), read, "{text}: {read}");
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<ArmSettings>(&json).unwrap(), read, "{json}");
        }
        let one: ArmSettings = "initcwnd=32,rto-min=50ms".parse().unwrap();
        assert_eq!(serde_json::to_string(&one).unwrap(), r#"{"initcwnd":32,"rto-min":"50ms"}"#);
        assert_eq!((one.initcwnd(), one.socket(SocketSetting::RtoMin)), (Some(32), Some(50_000)));
    }

    #[test]
    fn what_no_connection_can_be_given_and_what_isnt_safe_is_refused_with_what_is_allowed() {
        for (text, said) in [
            ("initcwnd", "KEY=LEVEL"),
            ("initcwnd=65", "1 to 64"),
            ("initcwmd=10", "did you mean initcwnd?"),
            ("mtu=1500", "allowed are cc, initcwnd"),
            ("cwnd-clamp=9", "10 to"),
            ("rto-min=1s", "8ms to 200ms"),
            ("rto-min=1ms", "8ms to 200ms"),
            ("ecn=perhaps", "on or off"),
            ("pacing=9kbit", "allowed are"),
        ] {
            let error = text.parse::<ArmSettings>().unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
