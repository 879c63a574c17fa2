//! Quantities with units, and the one text grammar in which people write them.
//!
//! Flags, TOML files and the API all read `50ms`, `8mbit`, `64KiB` and `0.1%` through this crate, so a value means the
//! same wherever it is written. Rates are decimal (1 Mbit/s = 10⁶ bit/s), sizes binary (1 KiB = 1024 bytes).
//!
//! Nothing here knows of time, files or sockets: where something is looked up, the caller hands the environment in.

/// One knob and its level.
mod assignment;
/// Sizes in bytes.
mod bytes;
/// Numbers of things.
mod count;
/// Errors of the text grammar.
mod error;
/// Where programs keep what belongs to their user.
mod folder;
/// Knobs, their levels, and settings.
mod knob;
/// Multiples of the MSS and the MTU, and what they are multiplied with.
mod multiple;
/// Quantiles, each by its definition.
mod quantile;
/// Rates in bits per second.
mod rate;
/// Shares: loss, efficiency, ε.
mod ratio;
/// What an experiment recommends for one of the two hosts.
mod recommendation;
/// Commands that people type again.
mod shell;
/// Did you mean …?
mod suggest;
/// Texts of others on a terminal.
mod terminal;
/// Durations as people write them.
mod time;
/// Addresses of servers, and of what is fetched there.
mod url;

pub use assignment::{Assignment, AssignmentError};
pub use bytes::Bytes;
pub use count::{change, counted};
pub use error::ParseError;
pub use folder::UserFolder;
pub use knob::{Knob, Level, Scopes, Settings, Side, Unit};
pub use multiple::{FullPacket, Multiple};
pub use quantile::{median_time, quantile, upper_median};
pub use rate::{BitsPerSecond, RateUnit, three_digits};
pub use ratio::Ratio;
pub use recommendation::{Recommendation, RecommendedSetting, Role};
pub use shell::{shell_word, shell_word_of_os};
pub use suggest::{nearest, suggestion};
pub use terminal::{harmless, harmless_and_plain, shortened};
pub use time::{format_about, format_duration, format_minutes, parse_age, parse_duration};
pub use url::{HostPort, Login, Scheme, Url, UrlError, UrlPart};

#[cfg(feature = "serde")]
pub use time::serde_duration;

/// Splits `12.5ms` into the number and the suffix.
fn split_number(text: &str, what: &'static str, example: &'static str) -> Result<(f64, String), ParseError> {
    let trimmed = text.trim();
    let end = trimmed
        .char_indices()
        .find(|(i, c)| {
            !(c.is_ascii_digit() || *c == '.' || (*i == 0 && (*c == '-' || *c == '+')) || (*c == '_' && *i > 0))
        })
        .map_or(trimmed.len(), |(i, _)| i);
    let number = trimmed[..end].replace('_', "");
    let value: f64 = number.parse().map_err(|_| ParseError::NotANumber { what, text: text.to_owned(), example })?;
    if value < 0.0 {
        return Err(ParseError::Negative { what, text: text.to_owned() });
    }
    Ok((value, trimmed[end..].trim().to_owned()))
}

/// Implements the text grammar for serde by `Display` and `FromStr`.
#[cfg(feature = "serde")]
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
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                String::schema()
            }
        }
        impl utoipa::ToSchema for $type {}
    };
}

#[cfg(feature = "serde")]
serde_as_text!(Bytes);
#[cfg(feature = "serde")]
serde_as_text!(BitsPerSecond);
#[cfg(feature = "serde")]
serde_as_text!(Ratio);
#[cfg(feature = "serde")]
serde_as_text!(Knob);
#[cfg(feature = "serde")]
serde_as_text!(Assignment);

#[cfg(test)]
mod tests;
