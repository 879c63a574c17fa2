use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wt_units::{Level, Multiple};

/// A value of a setting, as people write and read it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Left to the system.
    Auto,
    /// A number; the setting says of what.
    Number(u64),
    /// Three sizes: least, at first, most.
    Three([u64; 3]),
    /// A multiple of the MSS, not resolved to bytes yet.
    TimesMss(u32),
    /// A multiple of the MTU, not resolved to bytes yet.
    TimesMtu(u32),
    /// What follows from the MTU: MTU − 40 for IPv4, MTU − 60 for IPv6. Not resolved to bytes yet.
    FromMtu,
    /// A word: `on`, `off`, a congestion control, a qdisc.
    Word(String),
}

impl Value {
    /// A word.
    #[must_use]
    pub fn word(text: &str) -> Self {
        Self::Word(text.to_owned())
    }

    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Three([least, first, most]) => write!(f, "{least} {first} {most}"),
            Self::TimesMss(times) => Multiple::OfMss(*times).fmt(f),
            Self::TimesMtu(times) => Multiple::OfMtu(*times).fmt(f),
            Self::FromMtu => f.write_str("from-mtu"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl PartialSchema for Value {
    fn schema() -> RefOr<Schema> {
        <Level as PartialSchema>::schema()
    }
}

impl ToSchema for Value {
    fn name() -> Cow<'static, str> {
        <Level as ToSchema>::name()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            other => serializer.collect_str(other),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    /// The forms that [`Serialize`] writes; which word is meant for which setting is the setting's business.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(u64),
            Text(String),
        }
        Ok(match Raw::deserialize(deserializer)? {
            Raw::Number(number) => Self::Number(number),
            Raw::Text(text) => match text.as_str() {
                "auto" => Self::Auto,
                "from-mtu" => Self::FromMtu,
                _ => three(&text).map_or(Self::Word(text), Self::Three),
            },
        })
    }
}

/// Three numbers with white space between them.
pub(crate) fn three(text: &str) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn values_survive_json() {
        let values = [
            Value::Auto,
            Value::Number(20),
            Value::Three([4096, 131_072, 6_291_456]),
            Value::FromMtu,
            Value::word("on"),
        ];
        for value in values {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value, "{text}");
        }
    }
}
