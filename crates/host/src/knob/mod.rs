/// The settings that there are.
mod table;
/// Values as people write them.
mod value;

pub use table::ALL;
pub use value::Value;
pub(crate) use value::three;

use wt_sys::route::Metric;
use wt_units::{Bytes, nearest, parse_duration};

/// What may be written for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes.
    Size {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// Bytes, or multiples of the MSS.
    Window {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// Bytes, or what follows from the MTU.
    Segment {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A bare number.
    Number {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
        /// Whether 0 is a way to write `auto`.
        zero_is_auto: bool,
    },
    /// A duration in whole milliseconds.
    Millis {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// One of a few words, each with the kernel's number for it.
    Choice(&'static [(&'static str, u64)]),
    /// Least, initial and greatest size.
    Three {
        /// Least of each.
        min: u64,
        /// Most of each.
        max: u64,
        /// Whether they count pages rather than bytes.
        pages: bool,
    },
    /// The name of a kernel module or the like.
    Name,
    /// Several of them.
    Names,
}

/// Where it is set for the whole host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKnob {
    /// A kernel setting of its own.
    Sysctl(&'static str),
    /// The greatest of the three sizes in a kernel setting.
    Greatest(&'static str),
    /// The greatest receive window, which is part of the greatest receive buffer.
    Window,
}

impl HostKnob {
    /// The name of the kernel setting.
    #[must_use]
    pub fn sysctl(self) -> &'static str {
        match self {
            Self::Sysctl(name) | Self::Greatest(name) => name,
            Self::Window => "net.ipv4.tcp_rmem",
        }
    }
}

/// How it is set on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKnob {
    /// As a number.
    Number(Metric),
    /// As a number that the kernel heeds, or keeps, only if it is locked.
    Locked(Metric),
    /// As a bit among the features.
    Ecn,
    /// As the name of the congestion control.
    Congctl,
}

/// How it is set on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKnob {
    /// Largest packet.
    Mtu,
    /// Packets that the default qdisc holds.
    QueueLen,
    /// The root qdisc.
    Qdisc,
    /// Offloads that are switched together.
    Features(&'static [&'static str]),
    /// Descriptors to receive.
    RxRing,
    /// Descriptors to send.
    TxRing,
}

/// What the kernel does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelDefault {
    /// This, on every kernel that has the setting.
    Always(&'static str),
    /// One of these: it depends on the version, on memory or on how the kernel was built.
    OneOf(&'static [&'static str]),
    /// Nothing that could be known from outside.
    Unknown,
}

/// One thing that can be set: its name, where, to what, and why one would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knob {
    /// Its name in flags, files and JSON.
    pub name: &'static str,
    /// Other names that are understood. The kernel's own are always.
    pub aliases: &'static [&'static str],
    /// What may be written.
    pub kind: Kind,
    /// For the whole host.
    pub host: Option<HostKnob>,
    /// On a route.
    pub route: Option<RouteKnob>,
    /// On a device.
    pub link: Option<LinkKnob>,
    /// What a program can set on one connection for itself.
    pub socket: Option<&'static str>,
    /// What the kernel does by itself.
    pub default: KernelDefault,
    /// What it is.
    pub help: &'static str,
    /// What could go wrong when it is changed; empty if nothing is known.
    pub risk: &'static str,
}

/// What is wrong with a setting that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// There is no such setting.
    #[error("there is no setting \"{text}\"{}", did_you_mean(nearest))]
    Unknown {
        /// What was written.
        text: String,
        /// The nearest names.
        nearest: Vec<String>,
    },
    /// The setting exists, but not this value of it.
    #[error("\"{text}\" is not a value of {key}: allowed is {allowed}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// What was written.
        text: String,
        /// What may be written.
        allowed: String,
    },
    /// It isn't `KEY=VALUE`.
    #[error("\"{0}\" is not KEY=VALUE")]
    NoValue(String),
    /// The same setting twice, with different values.
    #[error("{key} is given twice: {first} and {second}")]
    Twice {
        /// The setting.
        key: &'static str,
        /// The first value.
        first: String,
        /// The other one.
        second: String,
    },
}

fn did_you_mean(nearest: &[String]) -> String {
    if nearest.is_empty() {
        "; windtunnel settings show lists them".to_owned()
    } else {
        format!(": did you mean {}?", nearest.join(" or "))
    }
}

/// A name as the table has it: lower case, dashes, without the kernel's prefixes.
fn normal(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase().replace('/', ".");
    let text = ["net.ipv4.", "net.core.", "net.ipv6."].iter().find_map(|p| text.strip_prefix(p)).unwrap_or(&text);
    text.replace(['_', '.'], "-")
}

impl Knob {
    /// The setting of this name, alias or kernel name.
    ///
    /// # Errors
    /// [`KnobError::Unknown`] with the nearest names.
    pub fn find(text: &str) -> Result<&'static Self, KnobError> {
        Self::find_spelt(text).map(|(knob, _)| knob)
    }

    /// The same, and whether the kernel's name was used, so that a number is the kernel's number.
    fn find_spelt(text: &str) -> Result<(&'static Self, bool), KnobError> {
        let dotted = text.trim().to_ascii_lowercase().replace('/', ".");
        let whole = |knob: &&Self| {
            knob.host.is_some_and(|host| host == HostKnob::Sysctl(host.sysctl()) && host.sysctl() == dotted)
        };
        if let Some(knob) = ALL.iter().find(whole) {
            return Ok((knob, true));
        }
        let word = normal(text);
        let by_name = ALL.iter().find(|knob| knob.name == word || knob.aliases.contains(&word.as_str()));
        let by_kernel =
            || ALL.iter().find(|knob| matches!(knob.host, Some(HostKnob::Sysctl(name)) if normal(name) == word));
        let short = word.strip_prefix("tcp-").unwrap_or(&word);
        let by_short = || ALL.iter().find(|knob| knob.name == short);
        if let Some(knob) = by_name {
            return Ok((knob, false));
        }
        if let Some(knob) = by_kernel() {
            return Ok((knob, true));
        }
        by_short().map(|knob| (knob, false)).ok_or_else(|| KnobError::Unknown {
            text: text.to_owned(),
            nearest: nearest(
                &word,
                ALL.iter().flat_map(|knob| std::iter::once(knob.name).chain(knob.aliases.iter().copied())),
            ),
        })
    }

    /// Reads `KEY=VALUE`.
    ///
    /// # Errors
    /// [`KnobError`] with the nearest key, or with what is allowed.
    pub fn parse_pair(text: &str) -> Result<(&'static Self, Value), KnobError> {
        let (key, value) = text.split_once('=').ok_or_else(|| KnobError::NoValue(text.to_owned()))?;
        let (knob, kernel) = Self::find_spelt(key)?;
        Ok((knob, knob.parse_spelt(value, kernel)?))
    }

    /// Reads a value of this setting.
    ///
    /// # Errors
    /// [`KnobError::BadValue`] with what is allowed.
    pub fn parse(&self, text: &str) -> Result<Value, KnobError> {
        self.parse_spelt(text, false)
    }

    fn parse_spelt(&self, text: &str, kernel: bool) -> Result<Value, KnobError> {
        let word = text.trim();
        let bad = || KnobError::BadValue { key: self.name, text: text.to_owned(), allowed: self.allowed() };
        if word.eq_ignore_ascii_case("auto") || word.eq_ignore_ascii_case("default") {
            return Ok(Value::Auto);
        }
        let within =
            |number: u64, min, max| if (min..=max).contains(&number) { Ok(Value::Number(number)) } else { Err(bad()) };
        let bytes = |word: &str| word.parse::<Bytes>().map(Bytes::get).map_err(|_| bad());
        match self.kind {
            Kind::Size { min, max } => within(bytes(word)?, min, max),
            Kind::Window { min, max } => match word.strip_suffix(['x', '×']) {
                Some(times) => match times.trim().parse() {
                    Ok(times @ 1..=100_000) => Ok(Value::TimesMss(times)),
                    _ => Err(bad()),
                },
                None => within(bytes(word)?, min, max),
            },
            Kind::Segment { .. } if matches!(word, "from-mtu" | "computed" | "mtu-40" | "mtu-60") => Ok(Value::FromMtu),
            Kind::Segment { min, max } => within(bytes(word)?, min, max),
            Kind::Number { zero_is_auto: true, .. } if word == "0" => Ok(Value::Auto),
            Kind::Number { min, max, .. } => within(word.replace('_', "").parse().map_err(|_| bad())?, min, max),
            Kind::Millis { min, max } => {
                let millis = match word.parse::<u64>() {
                    Ok(number) => number,
                    Err(_) => u64::try_from(parse_duration(word).map_err(|_| bad())?.as_millis()).unwrap_or(u64::MAX),
                };
                within(millis, min, max)
            }
            Kind::Choice(words) => choice(words, word, kernel).ok_or_else(bad),
            Kind::Three { min, max, .. } => {
                let parts: Vec<u64> = word
                    .split([' ', '\t', ','])
                    .filter(|part| !part.is_empty())
                    .map(bytes)
                    .collect::<Result<_, _>>()?;
                let parts: [u64; 3] = parts.try_into().map_err(|_| bad())?;
                let rising = parts[0] <= parts[1] && parts[1] <= parts[2];
                if rising && parts[0] >= min && parts[2] <= max { Ok(Value::Three(parts)) } else { Err(bad()) }
            }
            Kind::Name if is_name(word) => Ok(Value::word(word)),
            Kind::Names if !word.is_empty() && word.split([' ', ',']).all(is_name) => {
                Ok(Value::Word(word.replace(',', " ")))
            }
            Kind::Name | Kind::Names => Err(bad()),
        }
    }

    /// What may be written for it, as an error or a help text names it.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Size { min, max } => format!("auto or {min} to {max} bytes"),
            Kind::Window { min, max } => format!("auto, {min} to {max} bytes, or a multiple of the MSS such as 4x"),
            Kind::Segment { min, max } => format!("auto, {min} to {max} bytes, or from-mtu (MTU - 40, IPv6 MTU - 60)"),
            Kind::Number { min, max, zero_is_auto: true } => format!("auto (or 0) or {min} to {max}"),
            Kind::Number { min, max, .. } => format!("auto or {min} to {max}"),
            Kind::Millis { min, max } => format!("auto or {min}ms to {max}ms"),
            Kind::Choice(words) => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                format!("auto, {}", words.join(", "))
            }
            Kind::Three { min, max, pages } => {
                let unit = if pages { "pages" } else { "bytes" };
                format!("auto or three rising sizes from {min} to {max} {unit}, such as \"4096 131072 6291456\"")
            }
            Kind::Name => "auto or a name of at most 15 letters, digits, _, - and .".to_owned(),
            Kind::Names => "names of at most 15 letters, digits, _, - and ., with spaces between them".to_owned(),
        }
    }

    /// The value that the kernel's text for it means.
    #[must_use]
    pub fn decode(&self, text: &str) -> Value {
        let word = text.trim();
        match self.kind {
            Kind::Choice(words) => {
                let number = word.parse().ok();
                let known = words.iter().find(|(_, code)| Some(*code) == number).map(|(word, _)| Value::word(word));
                known.or_else(|| number.map(Value::Number)).unwrap_or_else(|| Value::word(word))
            }
            Kind::Three { .. } => three(word).map_or_else(|| Value::word(word), Value::Three),
            Kind::Name | Kind::Names => Value::word(word),
            _ => word.parse().map_or_else(|_| Value::word(word), Value::Number),
        }
    }

    /// The kernel's text for a value; `None` for one that isn't resolved.
    #[must_use]
    pub fn encode(&self, value: &Value) -> Option<String> {
        match (self.kind, value) {
            (Kind::Choice(words), Value::Word(word)) => {
                words.iter().find(|(known, _)| known == word).map(|(_, code)| code.to_string())
            }
            (_, Value::Number(_) | Value::Word(_)) => Some(value.to_string()),
            (_, Value::Three(sizes)) => Some(sizes.map(|size| size.to_string()).join("\t")),
            _ => None,
        }
    }

    /// The kernel's text for its default, if that is known for every kernel.
    #[must_use]
    pub fn sure_default(&self) -> Option<&'static str> {
        if let KernelDefault::Always(text) = self.default { Some(text) } else { None }
    }

    /// Whether the kernel's text may be its default.
    #[must_use]
    pub fn may_be_default(&self, text: &str) -> bool {
        let same = |known: &&str| known.split_whitespace().eq(text.split_whitespace());
        match self.default {
            KernelDefault::Always(known) => same(&known),
            KernelDefault::OneOf(known) => known.iter().any(same),
            KernelDefault::Unknown => true,
        }
    }
}

fn choice(words: &[(&str, u64)], word: &str, kernel: bool) -> Option<Value> {
    let lower = word.to_ascii_lowercase();
    let named = |wanted: &str| words.iter().find(|(known, _)| *known == wanted).map(|(known, _)| Value::word(known));
    if let Some(value) = named(&lower) {
        return Some(value);
    }
    match lower.as_str() {
        "true" | "yes" | "1" if !kernel => return named("on"),
        "false" | "no" | "0" if !kernel => return named("off"),
        _ => {}
    }
    let number: u64 = lower.parse().ok()?;
    words.iter().find(|(_, code)| *code == number).map(|(known, _)| Value::word(known))
}

fn is_name(word: &str) -> bool {
    (1..=15).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

#[cfg(test)]
mod tests;
