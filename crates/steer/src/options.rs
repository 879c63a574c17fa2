use crate::{BackendChoice, TrafficRequest, arms_of_levels, identical_arms};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IntoDeserializer as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::time::Duration;
use utoipa::ToSchema;
use wt_problem::Problem;
use wt_traffic::{TrafficAllocation, TrafficConfig, TrafficRamp, TrafficUnit};
use wt_units::{parse_age, parse_duration, shell_word};

/// Who takes part although they are left alone as a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficInclusion {
    /// Clients in private ranges.
    Private,
    /// Clients from where somebody is logged in who runs the experiment.
    Administrator,
    /// Sockets with a congestion control of their own, where the arms differ in theirs.
    OwnCc,
}

/// An experiment on this server's own connections: the options of `windtunnel traffic start`, and what its experiment files hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = TrafficRequest)]
pub struct TrafficOptions {
    /// The local ports of the server
    #[serde(alias = "port", deserialize_with = "one_or_many")]
    #[schema(min_items = 1, max_items = 8, example = json!([443]))]
    pub ports: Vec<u16>,
    /// A setting and its levels each, the first being what the others are compared with; several make all combinations
    #[serde(deserialize_with = "one_or_many_texts")]
    #[schema(max_items = 64, example = json!(["initcwnd=10,32"]))]
    pub levels: Vec<String>,
    /// To what one coin gives a setting: prefix if nothing is said
    pub unit: Option<TrafficUnit>,
    /// What assigns connections; `auto`, the usual one: the first that works here
    pub backend: Option<BackendChoice>,
    /// How long coins hold, such as `10m`
    #[schema(max_length = 256)]
    pub epoch: Option<String>,
    /// How old a connection is when it is looked at, if it hasn't ended before, such as `60s`
    #[schema(max_length = 256)]
    pub age: Option<String>,
    /// How long after the beginning of an epoch connections don't count yet, with slots and mixed allocations
    #[serde(alias = "burn-in")]
    #[schema(max_length = 256)]
    pub burn_in: Option<String>,
    /// How shares change: fixed if nothing is said; mixed: epochs in which nobody, half and everybody have the new setting
    pub allocations: Option<TrafficAllocation>,
    /// The same as mixed allocations
    pub mixed: bool,
    /// Give half of the connections the new setting from the first on, instead of 5 %, 25 % and then 50 %
    #[serde(alias = "no-ramp")]
    pub no_ramp: bool,
    /// Clients in private ranges take part, too; those on this host never do
    pub private: bool,
    /// Who else takes part who is left alone as a rule
    #[serde(deserialize_with = "one_or_many_inclusions")]
    #[schema(max_items = 3)]
    pub include: Vec<TrafficInclusion>,
    /// Begin although BPF programs of others see the same connections, such as a tuner's
    #[serde(alias = "beside-programs")]
    pub beside_programs: bool,
    /// For how long, such as `2h`; nothing means until it is stopped
    #[serde(rename = "for")]
    #[schema(max_length = 256)]
    pub lasts: Option<String>,
    /// A/A test: the same setting twice
    pub identical: bool,
    /// Note stored with the experiment
    #[schema(max_length = 256)]
    pub comment: Option<String>,
}

/// One by itself, or a list of them.
struct OneOrMany<T>(&'static str, PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        T::deserialize(text.into_deserializer()).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }
}

/// A port by itself, or a list of them.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u16>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a port, or a list of them")]
    enum Ports {
        One(u16),
        Many(Vec<u16>),
    }
    Ok(match Ports::deserialize(from)? {
        Ports::One(port) => vec![port],
        Ports::Many(ports) => ports,
    })
}

/// A setting by itself, or a list of them.
pub(crate) fn one_or_many_texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    from.deserialize_any(OneOrMany("a setting with its level or levels, or a list of them", PhantomData))
}

/// Somebody who takes part by themselves, or a list of them.
fn one_or_many_inclusions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<TrafficInclusion>, D::Error> {
    from.deserialize_any(OneOrMany("who else takes part, or a list of them", PhantomData))
}

impl TrafficOptions {
    /// What is said here, and where nothing is said what `file` says.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        let list = |own: Vec<String>, other| if own.is_empty() { other } else { own };
        Self {
            ports: if self.ports.is_empty() { file.ports } else { self.ports },
            levels: list(self.levels, file.levels),
            unit: self.unit.or(file.unit),
            backend: self.backend.or(file.backend),
            epoch: self.epoch.or(file.epoch),
            age: self.age.or(file.age),
            burn_in: self.burn_in.or(file.burn_in),
            allocations: self.allocations.or(file.allocations),
            mixed: self.mixed || file.mixed,
            no_ramp: self.no_ramp || file.no_ramp,
            private: self.private || file.private,
            include: if self.include.is_empty() { file.include } else { self.include },
            beside_programs: self.beside_programs || file.beside_programs,
            lasts: self.lasts.or(file.lasts),
            identical: self.identical || file.identical,
            comment: self.comment.or(file.comment),
        }
    }

    /// The experiment.
    ///
    /// # Errors
    /// A usage [`Problem`] where a text isn't of its grammar.
    pub fn request(&self) -> Result<TrafficRequest, Problem> {
        let usual = TrafficConfig::default();
        let time = |name: &str, given: &Option<String>, usual: Duration| match given {
            Some(text) => parse_duration(text).map_err(|error| Problem::usage(format!("{name}: {error}"))),
            None => Ok(usual),
        };
        let arms = arms_of_levels(&self.levels)?;
        let includes = |what| self.include.contains(&what);
        let is_mixed = self.mixed || self.allocations == Some(TrafficAllocation::Mixed);
        let config = TrafficConfig {
            ports: self.ports.clone(),
            arms: if self.identical { identical_arms(&arms) } else { arms },
            unit: self.unit.unwrap_or_default(),
            epoch: time("epoch", &self.epoch, usual.epoch)?,
            age: time("age", &self.age, usual.age)?,
            burn_in: time("burn-in", &self.burn_in, usual.burn_in)?,
            ramp: if self.no_ramp { TrafficRamp::none() } else { TrafficRamp::default() },
            allocation: if is_mixed { TrafficAllocation::Mixed } else { TrafficAllocation::Fixed },
            private: self.private || includes(TrafficInclusion::Private),
            administrator: includes(TrafficInclusion::Administrator),
            own_cc: includes(TrafficInclusion::OwnCc),
            identical: self.identical,
            holdback: None,
        };
        let lasts = self.lasts.as_deref().map(parse_age).transpose();
        let lasts = lasts.map_err(|error| Problem::usage(format!("for: {error}")))?;
        Ok(TrafficRequest {
            config,
            backend: self.backend.unwrap_or_default(),
            for_s: lasts.map(|time| time.as_secs_f64()),
            beside_programs: self.beside_programs,
            comment: self.comment.clone().unwrap_or_default(),
            command: self.command(),
            ..TrafficRequest::default()
        })
    }

    /// The same in a terminal.
    #[must_use]
    pub fn command(&self) -> String {
        let mut command = "windtunnel traffic start".to_owned();
        for port in &self.ports {
            let _ = write!(command, " --port {port}");
        }
        for list in &self.levels {
            let _ = write!(command, " --levels {}", shell_word(list));
        }
        let words = [
            ("unit", self.unit.filter(|unit| *unit != TrafficUnit::default()).map(|unit| word(&unit))),
            ("backend", self.backend.filter(|one| *one != BackendChoice::default()).map(|one| word(&one))),
            ("epoch", self.epoch.clone()),
            ("age", self.age.clone()),
            ("burn-in", self.burn_in.clone()),
            ("for", self.lasts.clone()),
            ("allocations", self.allocations.filter(|one| *one != TrafficAllocation::Fixed).map(|one| word(&one))),
        ];
        for (flag, value) in words {
            if let Some(value) = value {
                let _ = write!(command, " --{flag} {}", shell_word(&value));
            }
        }
        for one in &self.include {
            let _ = write!(command, " --include {}", word(one));
        }
        for (flag, is_set) in [
            ("mixed", self.mixed),
            ("no-ramp", self.no_ramp),
            ("private", self.private),
            ("beside-programs", self.beside_programs),
            ("identical", self.identical),
        ] {
            if is_set {
                let _ = write!(command, " --{flag}");
            }
        }
        if let Some(comment) = &self.comment {
            let _ = write!(command, " --comment {}", shell_word(comment));
        }
        command
    }
}

/// A choice by the name that options and JSON have for it.
fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
