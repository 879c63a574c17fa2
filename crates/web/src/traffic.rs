use crate::checked::{limited, maybe_time, name, text};
use crate::error::{ApiError, ErrorBody};
use crate::guard;
use crate::jobs::as_json;
use crate::peer::Peer;
use crate::runs::{Job, Kind, RunSummary};
use crate::state::{App, Body, JsonBody, Place, Shared, place};
use crate::worker::Work;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_api::Request;
use wt_steer::{
    BackendChoice, TrafficList, TrafficPlan, TrafficReportRequest, TrafficRequest, TrafficStop, arms_of_levels,
    identical_arms,
};
use wt_traffic::{TrafficAllocation, TrafficConfig, TrafficRamp, TrafficReport, TrafficUnit};
use wt_units::{parse_age, shell_word};

/// What traffic needs the token for.
const ASSIGNING: &str = "assigning settings to this server's own connections";

/// The operations of this file.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(status, start)).routes(routes!(plan)).routes(routes!(report, stop))
}

/// An experiment on this server's own connections: the options of `windtunnel traffic start`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TrafficRequest)]
pub(crate) struct TrafficBody {
    /// The local ports of the server
    #[schema(min_items = 1, max_items = 8, example = json!([443]))]
    ports: Vec<u16>,
    /// A setting and its levels each, the first being what the others are compared with; several make all combinations
    #[serde(default)]
    #[schema(max_items = 64, example = json!(["initcwnd=10,32"]))]
    levels: Vec<String>,
    /// To what one coin gives a setting
    #[serde(default)]
    unit: TrafficUnit,
    /// What assigns connections; `auto`: the first that works here
    #[serde(default)]
    backend: BackendChoice,
    /// How long coins hold, such as `10m`
    #[schema(max_length = 256)]
    epoch: Option<String>,
    /// How old a connection is when it is looked at, if it hasn't ended before, such as `60s`
    #[schema(max_length = 256)]
    age: Option<String>,
    /// How long after the beginning of an epoch connections don't count yet, with slots and mixed allocations
    #[schema(max_length = 256)]
    burn_in: Option<String>,
    /// Epochs in which nobody, half and everybody have the new setting: shows what it does to everybody
    #[serde(default)]
    mixed: bool,
    /// Give half of the connections the new setting from the first on, instead of 5 %, 25 % and then 50 %
    #[serde(default)]
    no_ramp: bool,
    /// Clients in private ranges take part, too; those on this host never do
    #[serde(default)]
    private: bool,
    /// For how long, such as `2h`; nothing means until it is stopped
    #[serde(rename = "for")]
    #[schema(max_length = 256)]
    lasts: Option<String>,
    /// A/A test: the same setting twice
    #[serde(default)]
    identical: bool,
    /// Note stored with the experiment
    #[schema(max_length = 256)]
    comment: Option<String>,
}

impl TrafficBody {
    /// What the worker is asked; with `dry_run` only what would be done.
    ///
    /// # Errors
    /// [`ApiError`] where a text isn't of its grammar, or the rules can't be.
    fn request(&self, dry_run: bool) -> Result<TrafficRequest, ApiError> {
        limited("levels", self.levels.len())?;
        for list in &self.levels {
            text("levels", list)?;
        }
        let arms = arms_of_levels(&self.levels)?;
        let usual = TrafficConfig::default();
        let time = |name, given: &Option<String>, usual: Duration| {
            Ok::<_, ApiError>(maybe_time(name, given.as_deref())?.unwrap_or(usual))
        };
        let config = TrafficConfig {
            ports: self.ports.clone(),
            arms: if self.identical { identical_arms(&arms) } else { arms },
            unit: self.unit,
            epoch: time("epoch", &self.epoch, usual.epoch)?,
            age: time("age", &self.age, usual.age)?,
            burn_in: time("burn_in", &self.burn_in, usual.burn_in)?,
            ramp: if self.no_ramp { TrafficRamp::none() } else { TrafficRamp::default() },
            allocation: if self.mixed { TrafficAllocation::Mixed } else { TrafficAllocation::Fixed },
            private: self.private,
            identical: self.identical,
            holdback: None,
        };
        config.check().map_err(|error| ApiError::bad(error.to_string()))?;
        let days = |time| parse_age(text("for", time)?).map_err(|error| ApiError::bad(format!("for: {error}")));
        let lasts = self.lasts.as_deref().map(days).transpose()?;
        Ok(TrafficRequest {
            command: self.command(),
            config,
            backend: self.backend,
            for_s: lasts.map(|time| time.as_secs_f64()),
            dry_run,
            comment: self.comment.as_deref().map_or(Ok(""), |comment| text("comment", comment))?.to_owned(),
            ..TrafficRequest::default()
        })
    }

    /// The same in a terminal.
    fn command(&self) -> String {
        let mut command = "windtunnel traffic start".to_owned();
        for port in &self.ports {
            let _ = write!(command, " --port {port}");
        }
        for list in &self.levels {
            let _ = write!(command, " --levels {}", shell_word(list));
        }
        if self.unit != TrafficUnit::default() {
            let _ = write!(command, " --unit {}", word(&self.unit));
        }
        if self.backend != BackendChoice::default() {
            let _ = write!(command, " --backend {}", word(&self.backend));
        }
        for (flag, time) in
            [("epoch", &self.epoch), ("age", &self.age), ("burn-in", &self.burn_in), ("for", &self.lasts)]
        {
            if let Some(time) = time {
                let _ = write!(command, " --{flag} {}", shell_word(time));
            }
        }
        for (flag, is_set) in
            [("mixed", self.mixed), ("no-ramp", self.no_ramp), ("private", self.private), ("identical", self.identical)]
        {
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

/// A choice by the name that flags and JSON have for it.
fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// One of the journal.
fn one(experiment: String) -> Result<TrafficReportRequest, ApiError> {
    let experiment = name("an experiment", &experiment)?.to_owned();
    Ok(TrafficReportRequest { experiment: Some(experiment), journal: None })
}

/// The experiments on this server's connections that are under way: `windtunnel traffic status --json`
#[utoipa::path(get, path = "/api/v1/traffic", responses((status = 200, body = TrafficList), (status = "4XX", body = ErrorBody)))]
async fn status(State(app): Shared, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::TrafficStatus(TrafficReportRequest::default())).await
}

/// Whom an experiment would touch, what assigns connections here, and how long it may take: `windtunnel traffic start --dry-run --json`
#[utoipa::path(post, path = "/api/v1/traffic/plan", request_body = TrafficBody,
    responses((status = 200, body = TrafficPlan), (status = "4XX", body = ErrorBody)))]
async fn plan(State(app): Shared, peer: Peer, Body(ask): Body<TrafficBody>) -> Result<Response, ApiError> {
    app.work(&peer, "traffic_start", &ask.request(true)?).await
}

/// Assigns this server's new connections to settings until it is stopped: `windtunnel traffic start`. It needs the token
#[utoipa::path(post, path = "/api/v1/traffic", request_body = TrafficBody,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start(
    State(app): Shared,
    headers: HeaderMap,
    ask: JsonBody<TrafficBody>,
) -> Result<(StatusCode, Json<RunSummary>), ApiError> {
    guard::may(&app, &headers, ASSIGNING)?;
    let Body(ask) = ask?;
    let work = Work::request("traffic_start", &ask.request(false)?);
    let job = Job { kind: Kind::Traffic, request: as_json(&ask)?, work, kept: Vec::new() };
    let run = app.runs.start(&app.program, job)?;
    Ok((StatusCode::ACCEPTED, Json(run.summary())))
}

/// What an experiment on this server's connections shows: `windtunnel traffic report NAME --json`
#[utoipa::path(get, path = "/api/v1/traffic/{name}", params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`")),
    responses((status = 200, body = TrafficReport), (status = "4XX", body = ErrorBody)))]
async fn report(State(app): Shared, peer: Peer, name: Place) -> Result<Response, ApiError> {
    app.compute(&peer, Request::TrafficReport(one(place(name)?)?)).await
}

/// Ends an experiment on this server's connections, whoever began it: `windtunnel traffic stop NAME --json`. It needs the token
#[utoipa::path(delete, path = "/api/v1/traffic/{name}",
    params(("name" = String, Path, description = "An experiment's name"), ("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = TrafficStop), (status = "4XX", body = ErrorBody)))]
async fn stop(State(app): Shared, peer: Peer, headers: HeaderMap, name: Place) -> Result<Response, ApiError> {
    guard::may(&app, &headers, "ending an experiment on connections")?;
    app.work(&peer, "traffic_stop", &one(place(name)?)?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(body: Value) -> Result<TrafficRequest, ApiError> {
        serde_json::from_value::<TrafficBody>(body).unwrap().request(false)
    }

    #[test]
    fn a_body_is_what_the_command_line_would_ask_and_says_how() {
        let request = asked(json!({"ports": [80, 443], "levels": ["initcwnd=10,32"]})).unwrap();
        assert_eq!(request.command, "windtunnel traffic start --port 80 --port 443 --levels initcwnd=10,32");
        let usual = TrafficConfig::default();
        assert_eq!(
            (request.config.epoch, request.config.age, request.config.unit),
            (usual.epoch, usual.age, usual.unit)
        );
        let names: Vec<&str> = request.config.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!((names, request.for_s, request.dry_run), (vec!["initcwnd=10", "initcwnd=32"], None, false));
        let all =
            asked(json!({"ports": [80], "levels": ["cc=cubic,bbr"], "unit": "slot", "backend": "slots", "epoch": "5m",
            "age": "30s", "burn_in": "10s", "private": true, "no_ramp": true, "for": "2h", "comment": "two words"}));
        let all = all.unwrap();
        assert_eq!(
            all.command,
            "windtunnel traffic start --port 80 --levels cc=cubic,bbr --unit slot --backend slots --epoch 5m --age 30s \
             --burn-in 10s --for 2h --no-ramp --private --comment 'two words'"
        );
        assert_eq!(all.for_s, Some(7200.0));
        let written = serde_json::to_value(&all).unwrap();
        let request: Request =
            serde_json::from_value(json!({"operation": "traffic_start", "request": written})).unwrap();
        let Request::TrafficStart(read) = request else { panic!("{request:?}") };
        assert_eq!((read.config, read.backend), (all.config, all.backend));
    }

    #[test]
    fn what_cant_be_is_refused_before_anything_is_started() {
        for bad in [
            json!({"ports": [], "levels": ["initcwnd=10,32"]}),
            json!({"ports": [443], "levels": []}),
            json!({"ports": [443], "levels": ["initcwnd=10,65"]}),
            json!({"ports": [443], "levels": ["mtu=1400"]}),
            json!({"ports": [443], "levels": ["initcwnd=10,32"], "epoch": "soon"}),
            json!({"ports": [443], "levels": ["initcwnd=10,32"], "unit": "slot", "mixed": true}),
        ] {
            assert!(asked(bad.clone()).is_err(), "{bad}");
        }
        assert!(one("../x".to_owned()).is_err() && one("--help".to_owned()).is_err());
    }
}
