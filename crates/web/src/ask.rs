use crate::drawn::{PathRequest, Scenario, scenario};
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

/// What the model is asked: the options of `windtunnel predict`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PredictQuery {
    /// A preset's path, or describe one by `rate` and its companions
    #[param(max_length = 64)]
    lab: Option<String>,
    /// Rate of the link towards the client
    #[param(max_length = 256)]
    rate: Option<String>,
    /// Rate the other way
    #[param(max_length = 256)]
    up_rate: Option<String>,
    /// Round-trip time of the idle path
    #[param(max_length = 256)]
    rtt: Option<String>,
    /// Share of packets to the client lost at random
    #[param(max_length = 256)]
    loss: Option<String>,
    /// What the queue in front of the link holds
    #[param(max_length = 256)]
    queue: Option<String>,
    /// What a packet occupies on the link
    #[param(max_length = 256)]
    framing: Option<String>,
    /// The largest packet that the link takes
    #[param(max_length = 256)]
    mtu: Option<String>,
    /// Settings to compare with the usual ones, together: `rwin=64KiB,initcwnd=20,cc=bbr`
    #[param(max_length = 256)]
    set: Option<String>,
    /// A transfer of this size
    #[param(max_length = 256)]
    size: Option<String>,
    /// Or as much as goes in so long
    #[param(max_length = 256)]
    time: Option<String>,
    /// How many fates of chance each setting meets
    #[param(minimum = 1, maximum = 100)]
    seeds: Option<u64>,
    /// Whether the first run of each is told over time
    #[serde(default)]
    samples: bool,
}

impl PredictQuery {
    /// `predict --json` with these options.
    ///
    /// # Errors
    /// [`ApiError`] where a text can't be an argument.
    pub(crate) fn args(&self) -> Result<Vec<String>, ApiError> {
        let mut args = words(&["predict", "--json"]);
        if self.samples {
            args.push("--samples".to_owned());
        }
        for (name, value) in [
            ("rate", &self.rate),
            ("up-rate", &self.up_rate),
            ("rtt", &self.rtt),
            ("loss", &self.loss),
            ("queue", &self.queue),
            ("framing", &self.framing),
            ("mtu", &self.mtu),
            ("set", &self.set),
            ("size", &self.size),
            ("time", &self.time),
        ] {
            option(&mut args, name, value.as_deref())?;
        }
        if let Some(seeds) = self.seeds {
            args.push(format!("--seeds={}", limited_number("seeds", seeds, 1..=100)?));
        }
        if let Some(lab) = &self.lab {
            args.push(preset(lab)?.to_owned());
        }
        Ok(args)
    }
}

/// Which trials' samples are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SamplesQuery {
    /// One trial, by its number in the journal; nothing means all of the experiment
    trial: Option<i64>,
}

impl SamplesQuery {
    /// `journal samples` of an experiment.
    ///
    /// # Errors
    /// [`ApiError`] where it can't be an experiment's name.
    pub(crate) fn args(&self, experiment: &str) -> Result<Vec<String>, ApiError> {
        let mut args = words(&["journal", "samples", name("an experiment", experiment)?, "--json"]);
        args.extend(self.trial.map(|trial| format!("--trial={trial}")));
        Ok(args)
    }
}

/// Which experiments are put side by side: the options of `windtunnel compare`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CompareQuery {
    /// Two experiments or more, joined by commas: their names, or beginnings of them; the others are compared with the first
    #[param(max_length = 1024, example = "20261121-0815,20261122-0815")]
    experiments: String,
    /// Put them side by side though they can't be compared
    #[serde(default)]
    anyway: bool,
}

impl CompareQuery {
    /// `compare --json` of these experiments.
    ///
    /// # Errors
    /// [`ApiError`] where it can't be an experiment's name.
    pub(crate) fn args(&self) -> Result<Vec<String>, ApiError> {
        let mut args = words(&["compare", "--json"]);
        if self.anyway {
            args.push("--anyway".to_owned());
        }
        let names: Vec<&str> = self.experiments.split(',').map(str::trim).collect();
        limited("experiments", names.len())?;
        if names.len() < 2 {
            return Err(ApiError::bad("two experiments or more are compared").hint("?experiments=NAME,NAME"));
        }
        for one in names {
            args.push(name("an experiment", one)?.to_owned());
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

/// An experiment to start: the options of `windtunnel tune`. It runs on one of `lab`, `path` and `target`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExperimentRequest {
    /// An emulated path: a preset's name
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "adsl")]
    lab: Option<String>,
    /// An emulated path of one's own
    path: Option<PathRequest>,
    /// The real path to a far end: `https://HOST/FILE`, `ftp://…`, `iperf3://HOST`; needs the token
    #[schema(max_length = 256)]
    target: Option<String>,
    /// What to vary; nothing means what the command line would vary
    #[serde(default)]
    #[schema(max_items = 64, example = json!(["rwin", "cc"]))]
    knobs: Vec<String>,
    /// Levels of a knob, instead of those chosen from the path: `{"rwin": "4x,16x,64KiB"}`
    #[serde(default)]
    levels: BTreeMap<String, String>,
    /// What each trial does: `bulk`, `page`, `transactions:request=200B,response=10kB`; `tune --workload help` lists all
    #[schema(max_length = 256)]
    workload: Option<String>,
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

/// An experiment's command line, and what must be kept for as long as it runs.
pub(crate) struct Experiment {
    pub(crate) args: Vec<String>,
    pub(crate) scenario: Option<Scenario>,
}

impl ExperimentRequest {
    /// Whether it leaves this machine.
    pub(crate) fn is_live(&self) -> bool {
        self.target.is_some()
    }

    /// `tune …` with these options; `form` is `--json-stream`, or what else shall be said.
    ///
    /// # Errors
    /// [`ApiError`] where a text can't be an argument, or it isn't said where to run it.
    pub(crate) fn command(&self, form: &[&str]) -> Result<Experiment, ApiError> {
        let mut args = words(&["tune"]);
        args.extend(words(form));
        let scenario = match &self.target {
            Some(_) if self.lab.is_some() || self.path.is_some() => {
                return Err(ApiError::bad("an experiment runs in the lab or on the real path, not on both"));
            }
            Some(_) => None,
            None => Some(scenario(self.lab.as_deref(), self.path.as_ref())?),
        };
        args.extend(scenario.as_ref().map(|scenario| format!("--lab={}", scenario.argument)));
        self.options(&mut args)?;
        if let Some(target) = &self.target {
            args.extend(["--".to_owned(), url(target)?.to_owned()]);
        }
        Ok(Experiment { args, scenario })
    }

    fn options(&self, args: &mut Vec<String>) -> Result<(), ApiError> {
        limited("knobs", self.knobs.len())?;
        limited("levels", self.levels.len())?;
        if !self.knobs.is_empty() {
            let knobs: Result<Vec<_>, _> = self.knobs.iter().map(|knob| key(knob)).collect();
            args.push(format!("--knobs={}", knobs?.join(",")));
        }
        for (knob, levels) in &self.levels {
            args.push(format!("--levels={}={}", key(knob)?, text("levels", levels)?));
        }
        option(args, "workload", self.workload.as_deref())?;
        option(args, "budget", self.budget.as_deref())?;
        option(args, "trial", self.trial.as_deref())?;
        option(args, "comment", self.comment.as_deref())?;
        if let Some(direction) = self.direction {
            args.push(format!("--direction={}", if matches!(direction, Direction::Down) { "down" } else { "up" }));
        }
        if let Some(seed) = self.seed {
            args.push(format!("--seed={seed}"));
        }
        Ok(())
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

pub(crate) fn option(args: &mut Vec<String>, name: &str, value: Option<&str>) -> Result<(), ApiError> {
    if let Some(value) = value {
        args.push(format!("--{name}={}", text(name, value)?));
    }
    Ok(())
}

fn limited(what: &str, count: usize) -> Result<(), ApiError> {
    if count <= MOST { Ok(()) } else { Err(ApiError::bad(format!("{what}: at most {MOST} at once"))) }
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

/// A text that may be an argument: short, and without control characters.
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

/// The address of a far end: a profile's file is none.
fn url(value: &str) -> Result<&str, ApiError> {
    let known = ["http://", "https://", "ftp://", "ftps://", "iperf3://"];
    if known.iter().any(|scheme| value.starts_with(scheme)) {
        return text("target", value);
    }
    Err(ApiError::bad("that is no address of a far end").hint(format!("begin with one of {}", known.join(", "))))
}

/// A host to probe, with or without a port: a name or an address, and never a flag.
///
/// # Errors
/// [`ApiError`] for anything else.
pub(crate) fn host(value: &str) -> Result<&str, ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:[]%".contains(c);
    let good = (1..=LONGEST).contains(&value.len()) && value.chars().all(plain) && !value.starts_with('-');
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
    fn a_comparison_names_two_experiments_or_more_and_nothing_else() {
        let of = |experiments: &str, anyway| CompareQuery { experiments: experiments.to_owned(), anyway }.args();
        assert_eq!(of("a1, b2,last", true).unwrap(), ["compare", "--json", "--anyway", "a1", "b2", "last"]);
        for bad in ["", "a1", "a1,", "a1,--journal=/x", "a1,../b"] {
            assert!(of(bad, false).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_experiment_becomes_one_command_line() {
        let body = r#"{"lab": "adsl", "knobs": ["rwin", "cc"], "levels": {"rwin": "4x,16x"}, "budget": "9 trials",
            "trial": "500ms", "direction": "up", "seed": 7}"#;
        let request: ExperimentRequest = serde_json::from_str(body).unwrap();
        let command = request.command(&["--json-stream"]).unwrap();
        let expected = "tune --json-stream --lab=adsl --knobs=rwin,cc --levels=rwin=4x,16x --budget=9 trials \
             --trial=500ms --direction=up --seed=7";
        assert_eq!(command.args.join(" "), expected);
        let experiment = |text: &str| serde_json::from_str::<ExperimentRequest>(text).unwrap().command(&[]);
        let live = experiment(r#"{"target": "https://example.org/x", "knobs": ["rwin"]}"#).unwrap();
        assert_eq!(live.args.join(" "), "tune --knobs=rwin -- https://example.org/x");
        for bad in [
            "{}",
            r#"{"lab": "adsl", "target": "http://a/b"}"#,
            r#"{"target": "profile.toml"}"#,
            r#"{"target": "--lab"}"#,
        ] {
            assert!(experiment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_is_neither_a_flag_nor_a_sentence() {
        for bad in ["", "-x", "--file=/etc/passwd", "a b", "a/b", "a\n", &"a".repeat(300)] {
            assert!(host(bad).is_err(), "{bad}");
        }
        for good in ["example.org", "192.0.2.1:443", "[2001:db8::1]:80", "fe80::1%eth0"] {
            assert!(host(good).is_ok(), "{good}");
        }
    }
}
