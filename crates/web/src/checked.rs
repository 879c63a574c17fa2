use crate::error::ApiError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use wt_setup::WorkloadRequest;
use wt_units::{HostPort, Scheme, Url, UrlError, parse_duration};

/// The longest text in a request.
const LONGEST: usize = 256;
/// The most names in one request.
const MOST: usize = 64;

/// Reads a part of a request.
pub(crate) fn read<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| ApiError::bad(format!("{name}: {error}")))
}

/// Reads a text of a request.
pub(crate) fn parsed<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, ApiError> {
    text(name, value)?.trim().parse().map_err(|error| ApiError::bad(format!("{name}: {error}")))
}

/// Reads a text of a request, if it is there.
pub(crate) fn maybe<T: FromStr<Err: Display>>(name: &str, value: Option<&str>) -> Result<Option<T>, ApiError> {
    value.map(|value| parsed(name, value)).transpose()
}

/// Reads a time of a request, if it is there.
pub(crate) fn maybe_time(name: &str, value: Option<&str>) -> Result<Option<Duration>, ApiError> {
    let read = |value| parse_duration(text(name, value)?).map_err(|error| ApiError::bad(format!("{name}: {error}")));
    value.map(read).transpose()
}

pub(crate) fn limited(what: &str, count: usize) -> Result<(), ApiError> {
    if count <= MOST { Ok(()) } else { Err(ApiError::bad(format!("{what}: at most {MOST} at once"))) }
}

/// What a trial does. No request may name a file, and a HAR is one.
///
/// # Errors
/// [`ApiError`] for what there isn't, and for a file.
pub(crate) fn workload(value: &str) -> Result<WorkloadRequest, ApiError> {
    if WorkloadRequest::names_file(value) {
        return Err(ApiError::bad("workload: a HAR file can be named on the command line only"));
    }
    parsed("workload", value)
}

/// A number within bounds.
///
/// # Errors
/// [`ApiError`] that names them.
pub(crate) fn limited_number(name: &str, value: u64, allowed: std::ops::RangeInclusive<u64>) -> Result<u64, ApiError> {
    if allowed.contains(&value) {
        Ok(value)
    } else {
        Err(ApiError::bad(format!("{name} {value} is out of range: {} to {}", allowed.start(), allowed.end())))
    }
}

/// A text: short, and without control characters.
pub(crate) fn text<'a>(name: &str, value: &'a str) -> Result<&'a str, ApiError> {
    if value.len() > LONGEST {
        Err(ApiError::bad(format!("{name} is longer than {LONGEST} bytes")))
    } else if value.chars().any(char::is_control) {
        Err(ApiError::bad(format!("{name} has control characters in it")))
    } else {
        Ok(value)
    }
}

/// The name of an experiment or a change: it can be neither a flag nor a file elsewhere.
///
/// # Errors
/// [`ApiError`] for anything else.
pub(crate) fn name<'a>(what: &str, value: &'a str) -> Result<&'a str, ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good = value.len() <= LONGEST && value.starts_with(|c: char| c.is_ascii_alphanumeric());
    if good && value.chars().all(plain) {
        Ok(value)
    } else {
        Err(ApiError::bad(format!("that can't be the name of {what}")))
    }
}

/// A preset's name: letters, digits and hyphens, so that it names no file.
///
/// # Errors
/// [`ApiError`] for anything else.
pub(crate) fn preset(value: &str) -> Result<&str, ApiError> {
    let good = value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let error = || ApiError::bad("that can't be the name of a preset").hint("GET /api/v1/lab/presets lists them");
    if good && !value.starts_with('-') && (1..=64).contains(&value.len()) { Ok(value) } else { Err(error()) }
}

/// The name of a shipped path, which is there: a file of that name where the server runs is none.
///
/// # Errors
/// [`ApiError`] for anything else.
pub(crate) fn shipped(value: &str) -> Result<&str, ApiError> {
    let names = wt_lab::presets::names();
    if names.contains(&preset(value)?) {
        return Ok(value);
    }
    let near = wt_units::suggestion(value, names.iter().copied());
    Err(ApiError::bad(format!("there is no preset \"{value}\"{near}"))
        .hint(format!("the presets are {}", names.join(", "))))
}

/// The address of a server: a profile's file is none.
pub(crate) fn url(value: &str) -> Result<&str, ApiError> {
    let error = || ApiError::bad("that is no address of a server");
    match value.parse::<Url>() {
        // Not wt:// either, whose key would be listed with the request.
        Err(UrlError::Scheme { .. }) | Ok(Url { scheme: Scheme::Wt, .. }) => {
            Err(error().hint("begin with one of http://, https://, ftp://, ftps://, iperf3://"))
        }
        Err(wrong) => Err(error().hint(wrong.to_string())),
        Ok(_) => text("target", value),
    }
}

/// A host to probe, with or without a port: a name or an address, and never a flag.
///
/// # Errors
/// [`ApiError`] for anything else.
pub(crate) fn host(value: &str) -> Result<&str, ApiError> {
    let good = value.len() <= LONGEST && value.parse::<HostPort>().is_ok();
    if good { Ok(value) } else { Err(ApiError::bad("that can't be a host").hint("example.org, 192.0.2.1:443")) }
}

/// A knob's name.
pub(crate) fn key(value: &str) -> Result<&str, ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good = (1..=64).contains(&value.len()) && value.chars().all(plain) && !value.starts_with('-');
    if good { Ok(value) } else { Err(ApiError::bad("that can't be the name of a setting")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_can_name_a_flag_or_a_file() {
        for bad in ["", "-", "--html", "../x", "a/b", "a b", "x.toml", "Ä", &"a".repeat(65)] {
            assert!(preset(bad).is_err(), "{bad}");
        }
        for bad in ["", "-x", "--json", "../x", "a/b", "a b", "\0", &"a".repeat(300)] {
            assert!(name("a change", bad).is_err(), "{bad}");
            assert!(key(bad).is_err(), "{bad}");
        }
        assert!(shipped("adsl").is_ok() && shipped("adsl-mine").is_err(), "a file of that name is no preset");
        assert!(preset("adsl-yahoo").is_ok() && name("experiment", "20261121-0815-adsl").is_ok());
    }

    #[test]
    fn a_host_is_neither_a_flag_nor_a_sentence() {
        for bad in ["", "-x", "--file=/etc/passwd", "a b", "a/b", "a\n", "a:http", "me@a", &"a".repeat(300)] {
            assert!(host(bad).is_err(), "{bad}");
        }
        for good in ["example.org", "192.0.2.1:443", "[2001:db8::1]:80", "fe80::1%eth0"] {
            assert!(host(good).is_ok(), "{good}");
        }
    }
}
