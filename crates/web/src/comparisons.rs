//! Comparisons over a path of the lab: of congestion controls, and of TCP/IP stacks.

use crate::checked::{limited, limited_number, maybe_time, text, workload};
use crate::drawn::{PathRequest, Scenario, scenario};
use crate::error::{ApiError, ErrorBody};
use crate::guard;
use crate::jobs::as_json;
use crate::peer::Peer;
use crate::runs::{Job, Kind, RunSummary};
use crate::state::{App, Body, JsonBody, SharedApp};
use crate::worker::Work;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_compare::LabRequest;
use wt_compare::controls::{ControlsRequest, DisturbanceKind};
use wt_compare::stacks::StacksRequest;
use wt_units::shell_word;

/// Its operations with their document.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(compare_controls)).routes(routes!(compare_stacks))
}

/// What a path that was drawn is called in a terminal.
const DRAWN: &str = "drawn.toml";

/// What was started.
type StartedRun = (StatusCode, Json<RunSummary>);

/// What happens once in every trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DisturbanceBody {
    /// One packet is lost
    Loss,
    /// Ten packets in a row are lost
    Burst,
    /// Nothing passes for a second
    Outage,
    /// Half the rate for a fifth of the trial
    HalfRate,
    /// The RTT grows by half, for good
    RttStep,
    /// Another flow beside it
    Flow,
}

impl DisturbanceBody {
    /// As it is typed.
    fn word(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Burst => "burst",
            Self::Outage => "outage",
            Self::HalfRate => "half-rate",
            Self::RttStep => "rtt-step",
            Self::Flow => "flow",
        }
    }
}

impl From<DisturbanceBody> for DisturbanceKind {
    fn from(body: DisturbanceBody) -> Self {
        match body {
            DisturbanceBody::Loss => Self::Loss,
            DisturbanceBody::Burst => Self::Burst,
            DisturbanceBody::Outage => Self::Outage,
            DisturbanceBody::HalfRate => Self::HalfRate,
            DisturbanceBody::RttStep => Self::RttStep,
            DisturbanceBody::Flow => Self::Flow,
        }
    }
}

/// Congestion controls to compare over a path of the lab: the options of `windtunnel cc compare`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ControlsComparisonRequest)]
pub(crate) struct ControlsBody {
    /// A preset's path
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "adsl")]
    lab: Option<String>,
    /// Or one of one's own
    path: Option<PathRequest>,
    /// Which; the others are compared with the first
    #[schema(min_items = 1, max_items = 64, example = json!(["cubic", "bbr"]))]
    algorithms: Vec<String>,
    /// Each is run once a round
    #[schema(minimum = 1, maximum = 1000)]
    rounds: Option<u64>,
    /// How long each trial transfers
    #[schema(max_length = 256, example = "10s")]
    trial: Option<String>,
    /// What happens once in every trial, after four tenths of it
    disturb: Option<DisturbanceBody>,
}

impl ControlsBody {
    /// # Errors
    /// [`ApiError`] where a text isn't of its grammar, or no path is named.
    fn job(&self) -> Result<Job, ApiError> {
        let scenario = scenario(self.lab.as_deref(), self.path.as_ref())?;
        let usual = ControlsRequest::default();
        let request = ControlsRequest {
            lab: lab(&scenario, self.command()),
            algorithms: words("algorithms", &self.algorithms)?,
            rounds: rounds(self.rounds)?.unwrap_or(usual.rounds),
            trial: maybe_time("trial", self.trial.as_deref())?,
            disturb: self.disturb.map(DisturbanceKind::from),
        };
        job(as_json(self)?, Work::request("compare_controls", &request), scenario)
    }

    /// The same in a terminal.
    fn command(&self) -> String {
        let disturb = self.disturb.map(DisturbanceBody::word);
        command(
            "cc compare",
            &[
                ("lab", Some(self.lab.as_deref().unwrap_or(DRAWN).to_owned())),
                ("algorithms", Some(self.algorithms.join(","))),
                ("rounds", self.rounds.map(|rounds| rounds.to_string())),
                ("trial", self.trial.clone()),
                ("disturb", disturb.map(str::to_owned)),
            ],
        )
    }
}

/// TCP/IP stacks to compare over a path of the lab: the options of `windtunnel stacks compare`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StacksComparisonRequest)]
pub(crate) struct StacksBody {
    /// A preset's path
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "ethernet-hub")]
    lab: Option<String>,
    /// Or one of one's own
    path: Option<PathRequest>,
    /// Which, each with settings of its own
    #[schema(min_items = 1, max_items = 64, example = json!(["linux", "smoltcp:rwin=8KiB"]))]
    stacks: Vec<String>,
    /// What each does
    #[schema(min_items = 1, max_items = 64, example = json!(["transactions", "download-12mb"]))]
    workloads: Option<Vec<String>>,
    /// Each is run once a round with each workload
    #[schema(minimum = 1, maximum = 1000)]
    rounds: Option<u64>,
    /// How long a soak takes
    #[schema(max_length = 256, example = "5min")]
    soak: Option<String>,
    /// Don't ask by packet scripts what each stack can do
    #[serde(default)]
    no_conformance: bool,
}

impl StacksBody {
    /// # Errors
    /// [`ApiError`] where a text isn't of its grammar, or no path is named.
    fn job(&self) -> Result<Job, ApiError> {
        let scenario = scenario(self.lab.as_deref(), self.path.as_ref())?;
        let usual = StacksRequest::default();
        let workloads = match &self.workloads {
            Some(workloads) => {
                limited("workloads", workloads.len())?;
                workloads.iter().map(|name| workload(name)).collect::<Result<_, _>>()?
            }
            None => usual.workloads,
        };
        let request = StacksRequest {
            lab: lab(&scenario, self.command()),
            stacks: words("stacks", &self.stacks)?,
            workloads,
            rounds: rounds(self.rounds)?,
            soak: maybe_time("soak", self.soak.as_deref())?,
            no_conformance: self.no_conformance,
            ..StacksRequest::default()
        };
        job(as_json(self)?, Work::request("compare_stacks", &request), scenario)
    }

    /// The same in a terminal.
    fn command(&self) -> String {
        let flags = [
            ("lab", Some(self.lab.as_deref().unwrap_or(DRAWN).to_owned())),
            ("stacks", Some(self.stacks.join(","))),
            ("workloads", self.workloads.as_ref().map(|workloads| workloads.join(","))),
            ("rounds", self.rounds.map(|rounds| rounds.to_string())),
            ("soak", self.soak.clone()),
        ];
        let command = command("stacks compare", &flags);
        if self.no_conformance { command + " --no-conformance" } else { command }
    }
}

fn job(request: serde_json::Value, work: Work, scenario: Scenario) -> Result<Job, ApiError> {
    Ok(Job { kind: Kind::Comparison, request, work, kept: scenario.drawn.into_iter().collect() })
}

fn lab(scenario: &Scenario, command: String) -> LabRequest {
    LabRequest { path: scenario.argument.clone(), command, ..LabRequest::default() }
}

fn command(name: &str, flags: &[(&str, Option<String>)]) -> String {
    let given = flags.iter().filter_map(|(flag, value)| Some(format!(" --{flag} {}", shell_word(value.as_ref()?))));
    format!("windtunnel {name}{}", given.collect::<String>())
}

fn rounds(rounds: Option<u64>) -> Result<Option<u32>, ApiError> {
    let rounds = rounds.map(|rounds| limited_number("rounds", rounds, 1..=1000)).transpose()?;
    Ok(rounds.and_then(|rounds| u32::try_from(rounds).ok()))
}

/// Names of what is compared, as they are typed.
fn words(name: &str, words: &[String]) -> Result<Vec<String>, ApiError> {
    limited(name, words.len())?;
    words.iter().map(|word| Ok(text(name, word)?.trim().to_owned())).collect()
}

/// Compares congestion controls over a path of the lab, in rounds: `windtunnel cc compare`
#[utoipa::path(post, path = "/api/v1/cc/comparisons", request_body = ControlsBody,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "From other accounts of this machine: printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn compare_controls(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<ControlsBody>,
) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    let Body(ask) = ask?;
    start(&app, ask.job()?)
}

/// Compares TCP/IP stacks over a path of the lab, in rounds: `windtunnel stacks compare`
#[utoipa::path(post, path = "/api/v1/stacks/comparisons", request_body = StacksBody,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "From other accounts of this machine: printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn compare_stacks(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<StacksBody>,
) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    let Body(ask) = ask?;
    start(&app, ask.job()?)
}

fn start(app: &App, job: Job) -> Result<StartedRun, ApiError> {
    let run = app.runs.start(&app.program, job)?;
    Ok((StatusCode::ACCEPTED, Json(run.summary())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wt_api::Request;

    fn asked(job: Result<Job, ApiError>) -> Request {
        let Ok(Job { kind: Kind::Comparison, work: Work::Request { request, .. }, .. }) = job else {
            panic!("no comparison: {:?}", job.err())
        };
        serde_json::from_str(&request).unwrap()
    }

    fn controls(body: Value) -> Result<Job, ApiError> {
        serde_json::from_value::<ControlsBody>(body).unwrap().job()
    }

    fn stacks(body: Value) -> Result<Job, ApiError> {
        serde_json::from_value::<StacksBody>(body).unwrap().job()
    }

    #[test]
    fn what_is_asked_for_is_what_the_command_would_ask_for() {
        let body =
            json!({"lab": "adsl", "algorithms": ["cubic", "bbr"], "rounds": 3, "trial": "10s", "disturb": "half-rate"});
        let Request::CompareControls(request) = asked(controls(body)) else { panic!("something else") };
        assert_eq!((request.lab.path.as_str(), request.rounds), ("adsl", 3));
        assert_eq!(request.algorithms, ["cubic", "bbr"]);
        assert_eq!((request.trial.unwrap().as_secs(), request.disturb), (10, Some(DisturbanceKind::HalfRate)));

        let body = json!({"lab": "adsl", "stacks": ["linux", "smoltcp:rwin=8KiB"], "workloads": ["bulk", "page:size=10kB"], "no_conformance": true});
        let Request::CompareStacks(request) = asked(stacks(body)) else { panic!("something else") };
        assert_eq!(request.stacks, ["linux", "smoltcp:rwin=8KiB"]);
        let typed = "windtunnel stacks compare --lab adsl --stacks linux,smoltcp:rwin=8KiB --workloads bulk,page:size=10kB --no-conformance";
        assert_eq!(request.lab.command, typed);
        assert!(request.workloads.len() == 2 && request.no_conformance && request.rounds.is_none());
        let Request::CompareStacks(usual) = asked(stacks(json!({"lab": "adsl", "stacks": ["linux"]}))) else {
            panic!("something else")
        };
        assert_eq!(usual.workloads.len(), StacksRequest::default().workloads.len());
    }

    #[test]
    fn a_drawn_path_is_kept_for_as_long_as_it_runs() {
        let body = json!({"path": {"links": [{"down": {"rate": "8mbit", "delay": "15ms"}}]}, "algorithms": ["cubic"]});
        let Job { kept, .. } = controls(body).unwrap();
        let [drawn] = kept.as_slice() else { panic!("{} files", kept.len()) };
        assert!(drawn.file().is_file());
    }

    #[test]
    fn what_names_no_path_or_a_file_is_refused() {
        for bad in [
            json!({"algorithms": ["cubic"]}),
            json!({"lab": "/etc/passwd", "algorithms": ["cubic"]}),
            json!({"lab": "adsl", "algorithms": ["cu\u{1b}bic"]}),
            json!({"lab": "adsl", "algorithms": vec!["cubic"; 65]}),
            json!({"lab": "adsl", "algorithms": ["cubic"], "rounds": 0}),
            json!({"lab": "adsl", "algorithms": ["cubic"], "rounds": 1001}),
            json!({"lab": "adsl", "algorithms": ["cubic"], "trial": "soon"}),
        ] {
            assert!(controls(bad.clone()).is_err(), "{bad}");
        }
        for bad in [
            json!({"lab": "adsl", "stacks": ["linux"], "workloads": ["page:har=/etc/passwd"]}),
            json!({"lab": "adsl", "stacks": ["linux"], "workloads": ["nonsense"]}),
            json!({"lab": "adsl", "stacks": ["linux"], "soak": "long"}),
        ] {
            assert!(stacks(bad.clone()).is_err(), "{bad}");
        }
    }
}
