use super::value::SpannedValue;
use serde::{Deserialize, Deserializer};
use std::time::Duration;
use wt_units::{BitsPerSecond, Bytes, Ratio, parse_duration, serde_duration};

/// Reads an optional `150ms`.
fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
}

/// What a field of the tables below may hold, where its text can't even be read: by its table, its name and, in a list, the
/// place there. A direction's own fields say their ranges themselves, once they are texts.
pub(super) fn allowed(table: &str, field: &str, item: Option<u32>) -> Option<&'static str> {
    Some(match (table, field) {
        ("retrain", "every") => "1s to 24h",
        ("jitter_model", "min") => "0 to max",
        ("jitter_model", "max") => "0 to 24h",
        ("steps", "rates") if item == Some(0) => "0 to 24h",
        (_, field) => return allowed_anywhere(field),
    })
}

/// The same for fields that mean one thing in all tables.
fn allowed_anywhere(field: &str) -> Option<&'static str> {
    Some(match field {
        "duplicate" | "probability" | "to_bad" | "to_good" | "loss_good" | "loss_bad" | "long" | "short"
        | "correlation" | "escapes" | "failure" | "max_probability" => "0% to 100%",
        "by" | "mean" | "deviation" | "hold" | "access" | "backoff" | "retry_after" | "max_burst" => "0 to 24h",
        "target" | "interval" | "slot" | "lasts" => "1ns to 24h",
        "update" => "100us to 24h",
        "every" | "n" => "1 or more",
        "min" => "1 or more packets",
        "max" => "more than min, in packets",
        "scale" => "1ns to max",
        "period" | "windows" => "0 to 24h",
        "above" => "0B to 65535B",
        "rate" | "rates" | "peak" => "1bit to 1000000gbit",
        "burst" | "max_bytes" | "bytes_per_opportunity" => "1B to 1TiB",
        "quantum" => "256B to 1MiB",
        "flows" => "1 to 65536",
        "max_packets" => "1 to 4096",
        "max_retries" => "0 to 255",
        "bits_per_byte" => "8 to 12",
        _ => return None,
    })
}

/// How a field is written that has a value of another type: by its table, its name and, in a list, the place there.
pub(super) fn written(table: &str, field: &str, item: Option<u32>) -> Option<&'static str> {
    const TIME: &str = "a time in quotes, with its unit: \"8ms\"";
    const SHARE: &str = "a share in quotes, with its sign: \"0.1%\"";
    const SIZE: &str = "a size in quotes, with its unit: \"64KiB\"";
    const RATE: &str = "a rate in quotes, with its unit: \"50mbit\"";
    const NUMBER: &str = "a whole number, without quotes: 100";
    const BYTES: &str = "a whole number of bytes, without quotes: 1500";
    const SWITCH: &str = "true or false, without quotes";
    Some(match (table, field) {
        ("retrain", "every") | ("steps", "period") | ("outages", _) => TIME,
        ("jitter_model", "min" | "max" | "mean" | "deviation" | "scale") => TIME,
        ("steps", "rates") if item == Some(0) => TIME,
        (_, "delay" | "jitter" | "by" | "hold" | "access" | "backoff" | "slot" | "retry_after" | "lasts") => TIME,
        (_, "target" | "interval" | "update" | "max_burst" | "nat_idle") => TIME,
        (_, "loss" | "duplicate" | "probability" | "to_bad" | "to_good" | "loss_good" | "loss_bad") => SHARE,
        (_, "long" | "short" | "correlation" | "escapes" | "failure" | "max_probability") => SHARE,
        (_, "queue" | "burst" | "max_bytes" | "bytes_per_opportunity" | "quantum" | "above") => SIZE,
        (_, "rate" | "rates" | "peak") => RATE,
        (_, "queue_packets" | "n" | "every" | "flows" | "max_packets" | "max_retries" | "bits_per_byte") => NUMBER,
        (_, "min" | "max" | "icmp_per_second" | "icmp_burst") => NUMBER,
        (_, "mtu" | "mss" | "too_big_mtu" | "host_mtu") => BYTES,
        (_, "policer") => "a table: { rate = \"5mbit\", burst = \"64KiB\" }",
        ("aqm", "ecn" | "gentle") | ("corrupt", "detected") | ("jitter_model", "reorder") => SWITCH,
        (_, "icmp" | "half_duplex" | "nat" | "echo" | "time_exceeded") => SWITCH,
        (_, "name" | "title" | "source" | "framing" | "loss_by" | "kind" | "file") => "a text in quotes",
        _ => return None,
    })
}

/// A duration within a list.
#[derive(Deserialize)]
pub(super) struct Span(#[serde(with = "serde_duration")] pub(super) Duration);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LossKind {
    GilbertElliott,
    EveryNth,
    Numbered,
    BySize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Loss {
    pub(super) kind: LossKind,
    pub(super) to_bad: Option<Ratio>,
    pub(super) to_good: Option<Ratio>,
    pub(super) loss_good: Option<Ratio>,
    pub(super) loss_bad: Option<Ratio>,
    pub(super) n: Option<u64>,
    pub(super) packets: Option<Vec<u64>>,
    pub(super) above: Option<Bytes>,
    pub(super) long: Option<Ratio>,
    pub(super) short: Option<Ratio>,
}

fn none() -> Ratio {
    Ratio(0.0)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outages {
    pub(super) windows: Vec<(Span, Span)>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) period: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum JitterKind {
    Uniform,
    Normal,
    Pareto,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jitter {
    pub(super) kind: JitterKind,
    #[serde(default, deserialize_with = "optional")]
    pub(super) min: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) max: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) mean: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) deviation: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) scale: Option<Duration>,
    pub(super) shape: Option<f64>,
    #[serde(default = "none")]
    pub(super) correlation: Ratio,
    #[serde(default)]
    pub(super) reorder: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reorder {
    pub(super) probability: Ratio,
    #[serde(with = "serde_duration")]
    pub(super) by: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Corrupt {
    pub(super) probability: Ratio,
    #[serde(default)]
    pub(super) detected: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Steps {
    pub(super) rates: Vec<(Span, BitsPerSecond)>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) period: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TraceFile {
    pub(super) file: String,
    pub(super) bytes_per_opportunity: Option<Bytes>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bucket {
    pub(super) burst: Bytes,
    pub(super) peak: Option<BitsPerSecond>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Modem {
    #[serde(default = "eight")]
    pub(super) bits_per_byte: u8,
    #[serde(default = "none")]
    pub(super) escapes: Ratio,
    #[serde(default = "one")]
    pub(super) compression: f64,
    pub(super) retrain: Option<Retrain>,
}

fn eight() -> u8 {
    8
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retrain {
    #[serde(with = "serde_duration")]
    pub(super) every: Duration,
    #[serde(with = "serde_duration")]
    pub(super) lasts: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AqmKind {
    Red,
    Codel,
    FqCodel,
    Pie,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Aqm {
    pub(super) kind: AqmKind,
    pub(super) ecn: Option<bool>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) target: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) interval: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) update: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) max_burst: Option<Duration>,
    pub(super) alpha: Option<f64>,
    pub(super) beta: Option<f64>,
    pub(super) flows: Option<u32>,
    pub(super) quantum: Option<Bytes>,
    pub(super) min: Option<u32>,
    pub(super) max: Option<u32>,
    pub(super) max_probability: Option<Ratio>,
    pub(super) weight: Option<f64>,
    pub(super) gentle: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policer {
    pub(super) rate: BitsPerSecond,
    pub(super) burst: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Airtime {
    #[serde(with = "serde_duration")]
    pub(super) access: Duration,
    #[serde(default, deserialize_with = "optional")]
    pub(super) backoff: Option<Duration>,
    #[serde(default, deserialize_with = "optional")]
    pub(super) slot: Option<Duration>,
    pub(super) max_packets: u32,
    pub(super) max_bytes: Bytes,
    #[serde(default = "none")]
    pub(super) failure: Ratio,
    #[serde(default)]
    pub(super) max_retries: u8,
    #[serde(default, deserialize_with = "optional")]
    pub(super) retry_after: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thinning {
    pub(super) every: u32,
    #[serde(with = "serde_duration")]
    pub(super) hold: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHop {
    pub(super) mss_clamp: Option<SpannedValue<toml::Value>>,
    pub(super) mss: Option<SpannedValue<i64>>,
    pub(super) window_scale: Option<SpannedValue<i64>>,
    pub(super) strip: Option<Vec<SpannedValue<String>>>,
    pub(super) ecn: Option<SpannedValue<String>>,
    pub(super) block: Option<Vec<SpannedValue<String>>>,
    pub(super) direction: Option<SpannedValue<String>>,
    pub(super) nat: Option<bool>,
    pub(super) nat_idle: Option<SpannedValue<String>>,
    pub(super) too_big: Option<SpannedValue<String>>,
    pub(super) too_big_mtu: Option<SpannedValue<i64>>,
    pub(super) time_exceeded: Option<bool>,
    pub(super) echo: Option<bool>,
    pub(super) icmp_per_second: Option<SpannedValue<i64>>,
    pub(super) icmp_burst: Option<SpannedValue<i64>>,
    pub(super) host: Option<SpannedValue<String>>,
    pub(super) host_mtu: Option<SpannedValue<i64>>,
}
