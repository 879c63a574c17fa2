use crate::error::ApiError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// The longest text in a request.
const LONGEST: usize = 256;
/// The most names in one request.
const MOST: usize = 64;

/// What the layers below TCP cost: the options of `windtunnel overhead`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OverheadQuery {
    /// Words joined by + from the packet outwards, such as `vlan+ethernet`
    #[param(max_length = 256)]
    encap: Option<String>,
    /// `tcp` or `udp`
    #[param(max_length = 256)]
    proto: Option<String>,
    /// `4` or `6`
    #[param(max_length = 256)]
    ip: Option<String>,
    /// The largest IP packet, in bytes
    #[param(max_length = 256)]
    mtu: Option<String>,
    /// Bytes of payload to send, in as many packets as it takes
    #[param(max_length = 256)]
    payload: Option<String>,
    /// Options on each data segment: none, timestamps, sack1 to sack4, or their bytes
    #[param(max_length = 256)]
    tcp_options: Option<String>,
    /// The rate of the wire, such as `8mbit`
    #[param(max_length = 256)]
    link_rate: Option<String>,
    /// The largest packet that the link carries
    #[param(max_length = 256)]
    link_mtu: Option<String>,
    /// Compare every MTU of a range: `1400..1500`
    #[param(max_length = 256)]
    sweep: Option<String>,
}

impl OverheadQuery {
    /// `overhead --json` with these options.
    ///
    /// # Errors
    /// [`ApiError`] where a text can't be an argument.
    pub(crate) fn args(&self) -> Result<Vec<String>, ApiError> {
        let mut args = words(&["overhead", "--json"]);
        for (name, value) in [
            ("encap", &self.encap),
            ("proto", &self.proto),
            ("ip", &self.ip),
            ("mtu", &self.mtu),
            ("payload", &self.payload),
            ("tcp-options", &self.tcp_options),
            ("link-rate", &self.link_rate),
            ("link-mtu", &self.link_mtu),
            ("sweep", &self.sweep),
        ] {
            option(&mut args, name, value.as_deref())?;
        }
        Ok(args)
    }
}

/// Which way the payload goes, seen from the client.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// From the server to the client
    Down,
    /// From the client to the server
    Up,
}

/// An experiment to start: the options of `windtunnel tune --lab`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExperimentRequest {
    /// The emulated path: a preset's name
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "adsl")]
    lab: String,
    /// What to vary; nothing means what the command line would vary
    #[serde(default)]
    #[schema(max_items = 64, example = json!(["rwin", "cc"]))]
    knobs: Vec<String>,
    /// Levels of a knob, instead of those chosen from the path: `{"rwin": "4x,16x,64KiB"}`
    #[serde(default)]
    levels: BTreeMap<String, String>,
    /// What it may cost at most: `10min`, `200MB` or `60 trials`
    #[schema(max_length = 256)]
    budget: Option<String>,
    /// How long each trial transfers, 200ms to 10min
    #[schema(max_length = 256)]
    trial: Option<String>,
    /// Which way the payload goes
    direction: Option<Direction>,
    /// Seed of everything random
    seed: Option<u64>,
    /// Kept with the experiment
    #[schema(max_length = 256)]
    comment: Option<String>,
}

impl ExperimentRequest {
    /// `tune --lab … --json-stream` with these options.
    ///
    /// # Errors
    /// [`ApiError`] where a text can't be an argument.
    pub(crate) fn args(&self) -> Result<Vec<String>, ApiError> {
        let mut args = words(&["tune", "--json-stream"]);
        args.push(format!("--lab={}", preset(&self.lab)?));
        limited("knobs", self.knobs.len())?;
        limited("levels", self.levels.len())?;
        if !self.knobs.is_empty() {
            let knobs: Result<Vec<_>, _> = self.knobs.iter().map(|knob| key(knob)).collect();
            args.push(format!("--knobs={}", knobs?.join(",")));
        }
        for (knob, levels) in &self.levels {
            args.push(format!("--levels={}={}", key(knob)?, text("levels", levels)?));
        }
        option(&mut args, "budget", self.budget.as_deref())?;
        option(&mut args, "trial", self.trial.as_deref())?;
        option(&mut args, "comment", self.comment.as_deref())?;
        if let Some(direction) = self.direction {
            args.push(format!("--direction={}", if matches!(direction, Direction::Down) { "down" } else { "up" }));
        }
        if let Some(seed) = self.seed {
            args.push(format!("--seed={seed}"));
        }
        Ok(args)
    }
}

/// Changes to this host: the options of `windtunnel settings plan`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeRequest {
    /// Setting and value: `{"initcwnd": "20"}`
    settings: BTreeMap<String, String>,
    /// Where: `host`, `default`, a target such as `192.0.2.1`, or a device such as `eth0`
    #[schema(max_length = 256)]
    to: Option<String>,
    /// Seconds until everything is put back, unless it is confirmed
    #[schema(minimum = 1, maximum = 86400)]
    confirm_within_s: Option<u32>,
}

impl ChangeRequest {
    /// `settings plan` or `settings apply` with these changes.
    ///
    /// # Errors
    /// [`ApiError`] where a text can't be an argument.
    pub(crate) fn args(&self, apply: bool) -> Result<Vec<String>, ApiError> {
        let mut args = words(&["settings", if apply { "apply" } else { "plan" }, "--json"]);
        limited("settings", self.settings.len())?;
        if self.settings.is_empty() {
            return Err(ApiError::bad("there is nothing to change").hint(r#"{"settings": {"initcwnd": "20"}}"#));
        }
        option(&mut args, "to", self.to.as_deref())?;
        if let (true, Some(seconds)) = (apply, self.confirm_within_s) {
            args.push(format!("--confirm-within={seconds}s"));
        }
        args.push("--".to_owned());
        for (name, value) in &self.settings {
            args.push(format!("{}={}", key(name)?, text(name, value)?));
        }
        Ok(args)
    }
}

/// Which change is meant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhichChange {
    /// The change; nothing means the one that waits, or the latest in force
    #[schema(max_length = 256)]
    id: Option<String>,
}

impl WhichChange {
    /// `settings confirm` or `settings undo`.
    ///
    /// # Errors
    /// [`ApiError`] where it can't be a change's name.
    pub(crate) fn args(&self, verb: &str) -> Result<Vec<String>, ApiError> {
        let mut args = words(&["settings", verb, "--json"]);
        if let Some(id) = &self.id {
            args.push(name("a change", id)?.to_owned());
        }
        Ok(args)
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn option(args: &mut Vec<String>, name: &str, value: Option<&str>) -> Result<(), ApiError> {
    if let Some(value) = value {
        args.push(format!("--{name}={}", text(name, value)?));
    }
    Ok(())
}

fn limited(what: &str, count: usize) -> Result<(), ApiError> {
    if count <= MOST { Ok(()) } else { Err(ApiError::bad(format!("{what}: at most {MOST} at once"))) }
}

/// A text that may be an argument: short, and without control characters.
fn text<'a>(name: &str, value: &'a str) -> Result<&'a str, ApiError> {
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

/// A knob's name.
fn key(value: &str) -> Result<&str, ApiError> {
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
        assert!(preset("adsl-yahoo").is_ok() && name("experiment", "20261121-0815-adsl").is_ok());
    }

    #[test]
    fn values_stay_values() {
        let query = OverheadQuery { encap: Some("--list".to_owned()), ..Default::default() };
        assert_eq!(query.args().unwrap(), ["overhead", "--json", "--encap=--list"]);
        let query = OverheadQuery { mtu: Some("15\0".to_owned()), ..Default::default() };
        assert!(query.args().is_err());
        let body = r#"{"settings": {"cc": "--help"}, "to": "host", "confirm_within_s": 30}"#;
        let change: ChangeRequest = serde_json::from_str(body).unwrap();
        let expected = ["settings", "apply", "--json", "--to=host", "--confirm-within=30s", "--", "cc=--help"];
        assert_eq!(change.args(true).unwrap(), expected);
        assert!(!change.args(false).unwrap().contains(&"--confirm-within=30s".to_owned()));
    }

    #[test]
    fn an_experiment_becomes_one_command_line() {
        let body = r#"{"lab": "adsl", "knobs": ["rwin", "cc"], "levels": {"rwin": "4x,16x"}, "budget": "9 trials",
            "trial": "500ms", "direction": "up", "seed": 7}"#;
        let request: ExperimentRequest = serde_json::from_str(body).unwrap();
        let expected = "tune --json-stream --lab=adsl --knobs=rwin,cc --levels=rwin=4x,16x --budget=9 trials \
             --trial=500ms --direction=up --seed=7";
        assert_eq!(request.args().unwrap().join(" "), expected);
    }
}
