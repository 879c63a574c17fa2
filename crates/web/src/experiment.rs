use crate::checked::{key, limited, maybe, maybe_time, name, parsed, read, text, url, workload};
use crate::drawn::{PathRequest, RequestFile, scenario};
use crate::error::ApiError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use wt_setup::{Levels, NamedArm, WorkloadRequest};
use wt_tune::{Goal, LiveRequest, TrialDirection, TuneRequest};
use wt_units::{Assignment, Knob};

/// The most of certificates that is taken.
const LONGEST_PEM: usize = 32 << 10;

/// An experiment to start: what `windtunnel tune` takes. It runs on one of `lab`, `path` and `target`, or goes on with `resume`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExperimentRequest {
    /// An emulated path: a preset's name
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "adsl")]
    lab: Option<String>,
    /// An emulated path of one's own
    path: Option<PathRequest>,
    /// The real path to a server: `https://HOST/FILE`, `ftp://…`, `iperf3://HOST`; needs the token
    #[schema(max_length = 256)]
    target: Option<String>,
    /// An experiment of the journal to go on with: its name, the beginning of it, or `last`; needs the token
    #[schema(max_length = 256, example = "last")]
    resume: Option<String>,
    /// What to vary; nothing means what the command line would vary
    #[serde(default)]
    #[schema(max_items = 64, example = json!(["rwin", "cc"]))]
    knobs: Vec<String>,
    /// Levels of a knob, instead of those chosen from the path: `{"rwin": "4x,16x,64KiB"}`
    #[serde(default)]
    levels: BTreeMap<String, String>,
    /// What every candidate is compared with, instead of the current settings: `rwin=8192,mtu=576`, `os`, `windows-98`
    #[schema(max_length = 256)]
    baseline: Option<String>,
    /// Candidates of several settings that belong together: `probing: pmtud=on,mtu-probing=on`; `current`
    #[serde(default)]
    #[schema(max_items = 64)]
    arms: Vec<String>,
    /// Settings fixed in every trial, the baseline's included: `{"cc": "reno"}`
    #[serde(default)]
    hold: BTreeMap<String, String>,
    /// What each trial does: `bulk`, `page`, `transactions:request=200B,response=10kB`; `tune --workload help` lists all
    #[schema(max_length = 256)]
    workload: Option<String>,
    /// What it may cost at most: `10min`, `200MB` or `60 trials`
    #[schema(max_length = 256)]
    budget: Option<String>,
    /// How long each trial transfers, 200ms to 1h
    #[schema(max_length = 256)]
    trial: Option<String>,
    /// Which way the payload goes
    direction: Option<TrialDirection>,
    /// What is wished for: how the risk of a false claim is shared between speed and delay
    goal: Option<Goal>,
    /// Goodput loss tolerated when choosing the smallest sufficient RWIN, such as `10%`
    #[schema(max_length = 256)]
    epsilon: Option<String>,
    /// Compare levels with the best of all of them instead of the current one
    #[serde(default)]
    strict: bool,
    /// Compare so many candidates that are all the current settings (A/A test)
    identical: Option<usize>,
    /// Vary all knobs of `levels` at once, two levels each
    #[serde(default)]
    screen: bool,
    /// Let no model choose which settings are worth a trial
    #[serde(default)]
    no_model: bool,
    /// Certificate authorities that are believed, too, on the real path: PEM
    #[schema(max_length = 32768)]
    ca: Option<String>,
    /// The version of IP, on the real path: `4` or `6`
    #[schema(pattern = "^[46]$")]
    ip: Option<String>,
    /// Between two trials, on the real path
    #[schema(max_length = 256)]
    pause: Option<String>,
    /// The rate of the link that bounds the real path, such as `16mbit`
    #[schema(max_length = 256)]
    link_rate: Option<String>,
    /// How packets are framed on that link
    #[schema(max_length = 256)]
    encap: Option<String>,
    /// Don't probe the real path's MTU first
    #[serde(default)]
    no_probes: bool,
    /// Let trials on the real path change settings of this whole host
    #[serde(default)]
    allow_host_wide: bool,
    /// Seed of everything random
    seed: Option<u64>,
    /// Note stored with the experiment
    #[schema(max_length = 256)]
    comment: Option<String>,
}

/// An experiment as the worker takes it, and the files that it needs for as long as it runs.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) request: TuneRequest,
    pub(crate) kept: Vec<RequestFile>,
}

impl ExperimentRequest {
    /// Whether it may leave this machine: what it goes on with may have run on a real path.
    pub(crate) fn is_live(&self) -> bool {
        self.target.is_some() || self.resume.is_some()
    }

    /// What the worker is asked; with `dry_run` only what would be compared.
    ///
    /// # Errors
    /// [`ApiError`] where a text isn't of its grammar, or it isn't said where to run it.
    pub(crate) fn experiment(&self, dry_run: bool) -> Result<Experiment, ApiError> {
        let in_lab = self.lab.is_some() || self.path.is_some();
        let scenario = match (&self.target, &self.resume) {
            (Some(_), None) if in_lab => {
                return Err(ApiError::bad("an experiment runs in the lab or on the real path, not on both"));
            }
            (target, Some(_)) if in_lab || target.is_some() => {
                return Err(ApiError::bad("what goes on does so where it began").hint("leave lab, path and target out"));
            }
            (Some(_), _) | (_, Some(_)) => None,
            (None, None) => Some(scenario(self.lab.as_deref(), self.path.as_ref())?),
        };
        let usual = TuneRequest::default();
        let ca = self.ca.as_deref().map(authorities).transpose()?;
        let request = TuneRequest {
            target: self.target.as_deref().map(url).transpose()?.map(str::to_owned),
            lab: scenario.as_ref().map(|scenario| scenario.argument.clone()),
            resume: self.resume.as_deref().map(|id| name("an experiment", id).map(str::to_owned)).transpose()?,
            knobs: Some(self.knobs()?).filter(|knobs| !knobs.is_empty()),
            levels: self.levels()?,
            baseline: maybe("baseline", self.baseline.as_deref())?,
            arms: self.arms()?,
            hold: self.hold()?,
            budget: maybe("budget", self.budget.as_deref())?,
            trial: maybe_time("trial", self.trial.as_deref())?,
            workload: self.workload()?,
            direction: self.direction.unwrap_or(usual.direction),
            goal: self.goal.unwrap_or(usual.goal),
            epsilon: maybe("epsilon", self.epsilon.as_deref())?.unwrap_or(usual.epsilon),
            strict: self.strict,
            identical: self.identical,
            screen: self.screen,
            live: LiveRequest { ca: ca.as_ref().map(RequestFile::file), ..self.live(usual.live)? },
            seed: self.seed.unwrap_or(usual.seed),
            no_model: self.no_model,
            comment: self.comment.as_deref().map_or(Ok(""), |comment| text("comment", comment))?.to_owned(),
            dry_run,
            ..usual
        };
        request.check()?;
        let request = TuneRequest { command: request.command_line(), ..request };
        Ok(Experiment { request, kept: scenario.and_then(|scenario| scenario.drawn).into_iter().chain(ca).collect() })
    }

    fn knobs(&self) -> Result<Vec<Knob>, ApiError> {
        limited("knobs", self.knobs.len())?;
        self.knobs.iter().map(|knob| parsed("knobs", key(knob)?)).collect()
    }

    fn levels(&self) -> Result<Vec<Levels>, ApiError> {
        limited("levels", self.levels.len())?;
        let levels = |(knob, levels): (&String, &String)| {
            text("levels", levels)?;
            parsed("levels", &format!("{}={levels}", key(knob)?))
        };
        self.levels.iter().map(levels).collect()
    }

    fn arms(&self) -> Result<Vec<NamedArm>, ApiError> {
        limited("arms", self.arms.len())?;
        self.arms.iter().map(|arm| parsed("arms", text("arms", arm)?)).collect()
    }

    fn hold(&self) -> Result<Vec<Assignment>, ApiError> {
        limited("hold", self.hold.len())?;
        let held = |(knob, level): (&String, &String)| parsed("hold", &format!("{}={level}", key(knob)?));
        self.hold.iter().map(held).collect()
    }

    fn workload(&self) -> Result<WorkloadRequest, ApiError> {
        self.workload.as_deref().map_or_else(|| Ok(WorkloadRequest::default()), workload)
    }

    fn live(&self, usual: LiveRequest) -> Result<LiveRequest, ApiError> {
        Ok(LiveRequest {
            ip: self.ip.as_deref().map(|ip| read("ip", ip.into())).transpose()?,
            pause: maybe_time("pause", self.pause.as_deref())?,
            link_rate: maybe("link_rate", self.link_rate.as_deref())?,
            encap: maybe("encap", self.encap.as_deref())?.unwrap_or(usual.encap),
            no_probes: self.no_probes,
            allow_host_wide: self.allow_host_wide,
            ..LiveRequest::default()
        })
    }
}

/// Certificates in a file of their own. No request may name a file.
fn authorities(pem: &str) -> Result<RequestFile, ApiError> {
    if pem.len() > LONGEST_PEM || !pem.trim_start().starts_with("-----BEGIN CERTIFICATE-----") {
        return Err(ApiError::bad("ca: write certificates in PEM form, at most 32 KiB"));
    }
    RequestFile::write("ca.pem", pem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ask(body: Value) -> Result<Value, ApiError> {
        let request: ExperimentRequest = serde_json::from_value(body).unwrap();
        Ok(serde_json::to_value(request.experiment(false)?.request).unwrap())
    }

    #[test]
    fn an_experiment_becomes_one_request() {
        let request =
            ask(json!({"lab": "adsl", "knobs": ["rwin", "cc"], "levels": {"rwin": "4x,16x"}, "budget": "9 trials",
            "trial": "500ms", "direction": "up", "goal": "delay", "seed": 7}))
            .unwrap();
        assert_eq!((&request["lab"], &request["knobs"]), (&json!("adsl"), &json!(["rwin", "cc"])));
        assert_eq!((&request["levels"], &request["budget"]), (&json!(["rwin=4x,16x"]), &json!("9 trials")));
        assert_eq!(
            (&request["trial"], &request["seed"], &request["direction"]),
            (&json!("500ms"), &json!(7), &json!("up"))
        );
        assert_eq!(
            request["command"],
            "windtunnel tune --lab adsl --knobs rwin,cc --levels rwin=4x,16x --budget '9 trials' --trial 500ms \
             --direction up --goal delay --seed 7"
        );
        let live = ask(json!({"target": "https://example.org/x", "knobs": ["rwin"]})).unwrap();
        assert_eq!((&live["target"], &live["lab"]), (&json!("https://example.org/x"), &Value::Null));
    }

    #[test]
    fn it_goes_on_with_another_and_believes_an_authority_of_ones_own() {
        let on = ask(json!({"resume": "last", "budget": "9 trials"})).unwrap();
        assert_eq!(
            (&on["resume"], &on["lab"], &on["command"]),
            (&json!("last"), &Value::Null, &json!("windtunnel tune --budget '9 trials' --resume last"))
        );
        let body = json!({"target": "https://a/b", "ip": "6", "ca": "-----BEGIN CERTIFICATE-----\nMA==\n"});
        let request: ExperimentRequest = serde_json::from_value(body).unwrap();
        let Experiment { request, kept } = request.experiment(false).unwrap();
        let file = request.live.ca.unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("MA==") && request.live.ip.is_some());
        drop(kept);
        assert!(!file.exists(), "the file goes away with the experiment");
    }

    #[test]
    fn what_is_nowhere_or_no_server_or_a_file_is_refused() {
        for bad in [
            json!({}),
            json!({"lab": "adsl", "target": "http://a/b"}),
            json!({"target": "profile.toml"}),
            json!({"target": "--lab"}),
            json!({"target": "https://"}),
            json!({"target": "http://a b/"}),
            json!({"target": "wt://key@host"}),
            json!({"lab": "adsl", "workload": "page:har=/etc/passwd"}),
            json!({"lab": "adsl", "workload": "page:connections=6, har = /etc/passwd"}),
            json!({"lab": "adsl", "knobs": ["--html"]}),
            json!({"lab": "adsl", "trial": "1ms"}),
            json!({"lab": "adsl", "resume": "last"}),
            json!({"target": "http://a/b", "resume": "last"}),
            json!({"resume": "../x"}),
            json!({"resume": "last", "levels": {"rwin": "4x"}}),
            json!({"target": "https://a/b", "ca": "/etc/passwd"}),
            json!({"target": "https://a/b", "ip": "5"}),
        ] {
            assert!(ask(bad.clone()).is_err(), "{bad}");
        }
    }
}
