use crate::checked::{key, limited, limited_number, maybe, maybe_time, name, parsed, read, shipped, text};
use crate::error::ApiError;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use wt_agent::MeshRequest;
use wt_api::{Request, WhichChange};
use wt_compare::side_by_side::SideBySideRequest;
use wt_forecast::PredictRequest;
use wt_setup::journal::{EXPERIMENT_KINDS, ExperimentRequest, ListRequest, SamplesRequest};
use wt_setup::settings::{ApplyRequest, ChangeRequest, Confirmation};
use wt_units::Assignment;
use wt_wire::OverheadRequest;

/// So many experiments of the journal are listed.
const MOST_LISTED: u64 = 20_000;

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
    /// The question that it asks.
    ///
    /// # Errors
    /// [`ApiError`] where a text isn't of its grammar.
    pub(crate) fn request(&self) -> Result<Request, ApiError> {
        let mut question = Map::new();
        for (name, value) in [
            ("encap", &self.encap),
            ("proto", &self.proto),
            ("ip", &self.ip),
            ("mtu", &self.mtu),
            ("payload", &self.payload),
            ("tcp_options", &self.tcp_options),
            ("link_rate", &self.link_rate),
            ("link_mtu", &self.link_mtu),
            ("sweep", &self.sweep),
        ] {
            if let Some(value) = value {
                question.insert(name.to_owned(), text(name, value)?.into());
            }
        }
        if let Ok(request) = serde_json::from_value(Value::Object(question.clone())) {
            return Ok(Request::Overhead(Box::new(request)));
        }
        // One by one, so that it can be said which one is wrong.
        for (name, value) in &question {
            read::<OverheadRequest>(name, Value::Object(Map::from_iter([(name.clone(), value.clone())])))?;
        }
        Ok(Request::Overhead(Box::new(read("overhead", Value::Object(question))?)))
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
    /// The question that it asks.
    ///
    /// # Errors
    /// [`ApiError`] where a text isn't of its grammar, or the path isn't said or said twice.
    pub(crate) fn request(&self) -> Result<Request, ApiError> {
        let set = self.set.as_deref().into_iter().flat_map(|set| set.split(','));
        let set: Vec<Assignment> = set.map(|one| parsed("set", one)).collect::<Result<_, _>>()?;
        Ok(Request::Predict(Box::new(PredictRequest {
            set,
            size: maybe("size", self.size.as_deref())?,
            time: maybe_time("time", self.time.as_deref())?,
            seeds: limited_number("seeds", self.seeds.unwrap_or(20), 1..=100)?,
            samples: self.samples,
            ..PredictRequest::of(self.path()?)
        })))
    }

    fn path(&self) -> Result<wt_forecast::PathRequest, ApiError> {
        let described = [&self.rate, &self.up_rate, &self.rtt, &self.loss, &self.queue, &self.framing, &self.mtu];
        match (&self.lab, &self.rate) {
            (Some(_), _) if described.iter().any(|field| field.is_some()) => {
                Err(ApiError::bad("a preset and a description of a path exclude each other")
                    .hint("?lab=adsl or ?rate=8mbit"))
            }
            (Some(lab), _) => Ok(wt_forecast::PathRequest::Scenario(shipped(lab)?.to_owned())),
            (None, None) => Err(ApiError::bad("there is no path").hint("?lab=adsl or ?rate=8mbit&rtt=40ms")),
            (None, Some(rate)) => Ok(wt_forecast::PathRequest::Link(self.link(rate)?)),
        }
    }

    fn link(&self, rate: &str) -> Result<wt_forecast::LinkRequest, ApiError> {
        let mut link = Map::from_iter([("rate".to_owned(), Value::from(text("rate", rate)?))]);
        for (name, value) in [
            ("up_rate", &self.up_rate),
            ("rtt", &self.rtt),
            ("loss", &self.loss),
            ("queue", &self.queue),
            ("framing", &self.framing),
            ("mtu", &self.mtu),
        ] {
            if let Some(value) = value {
                link.insert(name.to_owned(), text(name, value)?.into());
            }
        }
        read("path", Value::Object(link))
    }
}

/// Which experiments of the journal are listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JournalQuery {
    /// The newest of them, at most so many; nothing means 20000
    #[param(minimum = 1, maximum = 20000)]
    limit: Option<u32>,
    /// Only those of one kind: `tune`, `screen`, `cc`, `stacks`, `test`, `traffic`, `flent` or `proof`
    #[param(max_length = 64)]
    kind: Option<String>,
}

impl JournalQuery {
    /// The question that it asks.
    ///
    /// # Errors
    /// [`ApiError`] for more than are listed.
    pub(crate) fn request(&self) -> Result<Request, ApiError> {
        let limit = self.limit.map(|limit| limited_number("limit", limit.into(), 1..=MOST_LISTED)).transpose()?;
        let limit = usize::try_from(limit.unwrap_or(MOST_LISTED)).ok();
        if let Some(kind) = self.kind.as_deref().filter(|kind| !EXPERIMENT_KINDS.contains(kind)) {
            let what = format!("there are no experiments of a kind {kind:?}");
            return Err(ApiError::bad(what).hint(format!("kinds are {}", EXPERIMENT_KINDS.join(", "))));
        }
        let kind = self.kind.clone();
        Ok(Request::JournalList(ListRequest { limit, kind, journal: None }))
    }
}

/// From where on events are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The number of the last event that was seen, for those who can't send `Last-Event-ID`, which goes before it
    pub(crate) after: Option<u64>,
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
    /// The samples of an experiment.
    ///
    /// # Errors
    /// [`ApiError`] where it can't be an experiment's name.
    pub(crate) fn request(&self, experiment: &str) -> Result<Request, ApiError> {
        let ExperimentRequest { experiment, journal } = named(experiment)?;
        Ok(Request::JournalSamples(SamplesRequest { experiment, trial: self.trial, journal }))
    }
}

/// An experiment of the usual journal.
///
/// # Errors
/// [`ApiError`] where it can't be an experiment's name.
pub(crate) fn named(experiment: &str) -> Result<ExperimentRequest, ApiError> {
    let experiment = name("an experiment", experiment)?.to_owned();
    Ok(ExperimentRequest { experiment, journal: None })
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
    /// The question that it asks.
    ///
    /// # Errors
    /// [`ApiError`] where it can't be an experiment's name.
    pub(crate) fn request(&self) -> Result<Request, ApiError> {
        let names = self.experiments.split(',').map(|one| name("an experiment", one.trim()).map(str::to_owned));
        let experiments: Vec<String> = names.collect::<Result<_, _>>()?;
        limited("experiments", experiments.len())?;
        if experiments.len() < 2 {
            return Err(ApiError::bad("two experiments or more are compared").hint("?experiments=NAME,NAME"));
        }
        Ok(Request::Compare(SideBySideRequest { experiments, anyway: self.anyway, journal: None }))
    }
}

/// Which mesh is meant.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MeshQuery {
    /// The mesh's name
    #[param(max_length = 256)]
    mesh: String,
    /// Every time that it ran, instead of the newest of each pair
    #[serde(default)]
    all: bool,
}

impl MeshQuery {
    /// The question that it asks; the server is the one that this program was started with.
    ///
    /// # Errors
    /// [`ApiError`] where it can't be a mesh's name.
    pub(crate) fn request(&self) -> Result<Request, ApiError> {
        let mesh = Some(name("a mesh", &self.mesh)?.to_owned());
        Ok(Request::FleetReport(MeshRequest { server: String::new(), mesh, all: self.all }))
    }
}

/// Changes to this host: the options of `windtunnel settings plan`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeRequest)]
pub(crate) struct ChangeBody {
    /// Setting and value: `{"initcwnd": "20"}`
    settings: BTreeMap<String, String>,
    /// Where: `host`, `default`, a target such as `192.0.2.1`, or a device such as `eth0`
    #[schema(max_length = 256)]
    to: Option<String>,
    /// Seconds until everything is put back, unless it is confirmed
    #[schema(minimum = 1, maximum = 604800)]
    confirm_within_s: Option<u32>,
}

/// How long may be waited for a confirmation, seconds: as long as `settings apply --confirm-within` may.
const CONFIRM_WITHIN_S: std::ops::RangeInclusive<u64> = 1..=7 * 24 * 3600;

impl ChangeBody {
    /// What is to be changed. A request over HTTP names no file.
    ///
    /// # Errors
    /// [`ApiError`] where a name or a text can't be one.
    pub(crate) fn change(&self) -> Result<ChangeRequest, ApiError> {
        limited("settings", self.settings.len())?;
        if let Some(seconds) = self.confirm_within_s {
            limited_number("confirm_within_s", seconds.into(), CONFIRM_WITHIN_S)?;
        }
        if self.settings.is_empty() {
            return Err(ApiError::bad("there is nothing to change").hint(r#"{"settings": {"initcwnd": "20"}}"#));
        }
        let pair = |(knob, value): (&String, &String)| Ok(format!("{}={}", key(knob)?, text(knob, value)?));
        let settings = self.settings.iter().map(pair).collect::<Result<_, ApiError>>()?;
        let to = self.to.as_deref().map(|to| text("to", to).map(str::to_owned)).transpose()?;
        Ok(ChangeRequest { settings, to, ..ChangeRequest::default() })
    }

    /// The same, to be made.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub(crate) fn apply(&self) -> Result<ApplyRequest, ApiError> {
        let usual = Confirmation::default();
        let within = self.confirm_within_s.map_or(usual.within, |seconds| Duration::from_secs(seconds.into()));
        Ok(ApplyRequest { change: self.change()?, confirmation: Confirmation { within, ..usual } })
    }
}

/// Which change is meant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WhichChange)]
pub(crate) struct WhichBody {
    /// The change; nothing means the one that waits, or the latest in force
    #[schema(max_length = 256)]
    id: Option<String>,
}

impl WhichBody {
    /// Which one.
    ///
    /// # Errors
    /// [`ApiError`] where it can't be a change's name.
    pub(crate) fn which(&self) -> Result<WhichChange, ApiError> {
        let id = self.id.as_deref().map(|id| name("a change", id).map(str::to_owned)).transpose()?;
        Ok(WhichChange { id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_values() {
        let query = OverheadQuery { encap: Some("--list".to_owned()), ..Default::default() };
        assert!(query.request().unwrap_err().problem.what.contains("--list"), "no flag, but an unknown word");
        let query = OverheadQuery { mtu: Some("15\0".to_owned()), ..Default::default() };
        assert!(query.request().is_err());
        let body = r#"{"settings": {"cc": "--help"}, "to": "host", "confirm_within_s": 30}"#;
        let change: ChangeBody = serde_json::from_str(body).unwrap();
        let ApplyRequest { change, confirmation } = change.apply().unwrap();
        assert_eq!((change.settings, change.to), (vec!["cc=--help".to_owned()], Some("host".to_owned())));
        assert_eq!((change.files.len(), confirmation.within.as_secs(), confirmation.at_once), (0, 30, false));
        for bad in ["a=b", "../x", "--file", ""] {
            let settings = BTreeMap::from([(bad.to_owned(), "1".to_owned())]);
            assert!(ChangeBody { settings, to: None, confirm_within_s: None }.change().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wait_for_confirmation_is_refused_alike_in_a_plan_and_in_a_change() {
        let of = |seconds| ChangeBody {
            settings: BTreeMap::from([("sack".to_owned(), "off".to_owned())]),
            to: None,
            confirm_within_s: seconds,
        };
        for seconds in [None, Some(1), Some(604_800)] {
            assert!(of(seconds).change().is_ok() && of(seconds).apply().is_ok(), "{seconds:?}");
        }
        for seconds in [0, 604_801, u32::MAX] {
            let why = of(Some(seconds)).change().unwrap_err().problem.what;
            assert_eq!(why, format!("confirm_within_s {seconds} is out of range: 1 to 604800"));
            assert!(of(Some(seconds)).apply().is_err());
        }
    }

    #[test]
    fn a_comparison_names_two_experiments_or_more_and_nothing_else() {
        let of = |experiments: &str| CompareQuery { experiments: experiments.to_owned(), anyway: true }.request();
        let Ok(Request::Compare(asked)) = of("a1, b2,last") else { panic!("it isn't read") };
        assert_eq!((asked.experiments, asked.anyway), (["a1", "b2", "last"].map(str::to_owned).to_vec(), true));
        for bad in ["", "a1", "a1,", "a1,--journal=/x", "a1,../b"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_kind_of_experiments_that_there_is_none_of_is_refused_and_not_an_empty_list() {
        let of = |kind: &str| JournalQuery { limit: None, kind: Some(kind.to_owned()) }.request();
        assert!(EXPERIMENT_KINDS.into_iter().all(|kind| of(kind).is_ok()));
        for bad in ["bogus", "Tune", "", "tune,cc"] {
            assert!(of(bad).unwrap_err().problem.hint.unwrap().contains("traffic"), "{bad}");
        }
    }

    #[test]
    fn a_mesh_is_named_and_never_a_server() {
        let asked = MeshQuery { mesh: "north".to_owned(), all: true }.request();
        let Ok(Request::FleetReport(asked)) = asked else { panic!("it isn't read") };
        assert_eq!((asked.server.as_str(), asked.mesh.as_deref(), asked.all), ("", Some("north"), true));
        for bad in ["", "postgresql://x/y", "--all", "a b"] {
            assert!(MeshQuery { mesh: bad.to_owned(), all: false }.request().is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<MeshQuery>(r#"{"mesh": "a", "server": "postgresql://x/y"}"#).is_err());
    }
}
