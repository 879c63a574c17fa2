/// Implements serde by the text grammar, `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;

/// `#[serde(with = "wt_setup::as_text")]` reads and writes anything by its text, `Display` and `FromStr`.
pub mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    /// Writes the text.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: Display, S: serde::Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// Reads the text.
    ///
    /// # Errors
    /// Those of the type's own grammar.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: serde::Deserializer<'de>,
    {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// `#[serde(with = "wt_setup::duration_or_none")]` reads and writes an `Option<Duration>`: `150ms`, `2d`, or nothing.
pub mod duration_or_none {
    use std::time::Duration;

    /// Writes `150ms`, or null.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.collect_str(&wt_units::format_duration(*time)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads `150ms`, `2d`, or null.
    ///
    /// # Errors
    /// Those of the text grammar.
    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text = <Option<String> as serde::Deserialize>::deserialize(deserializer)?;
        text.map(|text| wt_units::parse_age(&text).map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Budget, Levels, WorkloadRequest};

    fn there_and_back<T>(text: &str)
    where
        T: std::str::FromStr<Err = String> + std::fmt::Display + PartialEq + std::fmt::Debug,
    {
        let read: T = text.parse().unwrap();
        assert_eq!(read.to_string().parse::<T>().unwrap(), read, "{text}");
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for text in ["10min", "2500ms", "200MB", "12345B", "60 trials"] {
            there_and_back::<Budget>(text);
        }
        for text in ["rwin=1x..16x", "rwin=4x,64KiB,auto", "cc=reno,cubic", "sack=on,off"] {
            there_and_back::<Levels>(text);
        }
        for text in ["bulk", "page:size=10kB", "transactions:request=200B,response=10kB", "stream:interval=10ms"] {
            there_and_back::<WorkloadRequest>(text);
        }
    }
}
