use crate::api::{App, Body, JsonBody, Place, Shared, place};
use crate::ask::{ExperimentRequest, words};
use crate::command::Answer;
use crate::drawn::LabRequest;
use crate::error::{ApiError, ErrorBody};
use crate::guard;
use crate::jobs::{ProbeRequest, WorkRequest, json};
use crate::runs::{Job, Kind, Run, RunSummary, SAMPLE, Said};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use std::convert::Infallible;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The operations of this file.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(experiments, start_experiment))
        .routes(routes!(plan_experiment))
        .routes(routes!(experiment, stop_experiment))
        .routes(routes!(experiment_events))
        .routes(routes!(start_probe))
        .routes(routes!(start_lab))
        .routes(routes!(start_work))
        .routes(routes!(runs))
        .routes(routes!(run, stop_run))
        .routes(routes!(run_events))
}

/// What was started, in its summary.
type Started = (StatusCode, Json<RunSummary>);

fn started(run: &Run) -> Started {
    (StatusCode::ACCEPTED, Json(run.summary()))
}

/// The experiments that this server started, the newest first
#[utoipa::path(get, path = "/api/v1/experiments", responses((status = 200, body = [RunSummary]), (status = "4XX", body = ErrorBody)))]
async fn experiments(State(app): Shared) -> Json<Vec<RunSummary>> {
    Json(app.runs.summaries(Some(Kind::Experiment)))
}

/// Starts an experiment: `windtunnel tune --json-stream`. On the real path it needs the token
#[utoipa::path(post, path = "/api/v1/experiments", request_body = ExperimentRequest,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_experiment(
    State(app): Shared,
    headers: HeaderMap,
    ask: JsonBody<ExperimentRequest>,
) -> Result<Started, ApiError> {
    let Body(ask) = ask?;
    if ask.is_live() {
        guard::may_change(&app, &headers)?;
    }
    let command = ask.command(&["--json-stream"])?;
    let (args, scenario) = (command.args, command.scenario);
    let request = json(&ask)?;
    let job = Job { kind: Kind::Experiment, request, program: None, args, said: Said::Events, scenario };
    Ok(started(&*app.runs.start(&app.program, job)?))
}

/// What an experiment in the lab would compare, and how long it may take: `windtunnel tune --dry-run --json`
#[utoipa::path(post, path = "/api/v1/experiments/plan", request_body = ExperimentRequest,
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn plan_experiment(State(app): Shared, Body(ask): Body<ExperimentRequest>) -> Result<Answer, ApiError> {
    if ask.is_live() {
        return Err(ApiError::bad("what a far end offers is known only once it is asked")
            .hint("start it; it measures first, and stops when you say so"));
    }
    let command = ask.command(&["--dry-run", "--json"])?;
    app.program.ask(&command.args).await
}

/// An experiment that this server started
#[utoipa::path(get, path = "/api/v1/experiments/{id}", params(("id" = String, Path, description = "Its name here")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn experiment(State(app): Shared, id: Place) -> Result<Json<RunSummary>, ApiError> {
    Ok(Json(find(&app, id, Some(Kind::Experiment))?.summary()))
}

/// Stops an experiment and keeps what was measured, as Ctrl-C does
#[utoipa::path(delete, path = "/api/v1/experiments/{id}", params(("id" = String, Path, description = "Its name here")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn stop_experiment(State(app): Shared, id: Place) -> Result<Started, ApiError> {
    stop(&app, id, Some(Kind::Experiment))
}

/// What happens in an experiment, as server-sent events: the lines of `--json-stream`, then `end`
///
/// Each event but samples of the transfer that runs has a number; with `Last-Event-ID` they go on after that one.
#[utoipa::path(get, path = "/api/v1/experiments/{id}/events",
    params(("id" = String, Path, description = "Its name here"), ("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen")),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "4XX", body = ErrorBody)))]
async fn experiment_events(State(app): Shared, id: Place, headers: HeaderMap) -> Result<Response, ApiError> {
    Ok(events(find(&app, id, Some(Kind::Experiment))?, &headers))
}

/// Probes a path: `windtunnel path`, `mtu` or `trace`, each with `--json`. To a host it needs the token
#[utoipa::path(post, path = "/api/v1/probes", request_body = ProbeRequest,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_probe(State(app): Shared, headers: HeaderMap, ask: JsonBody<ProbeRequest>) -> Result<Started, ApiError> {
    let Body(ask) = ask?;
    if ask.is_live() {
        guard::may_change(&app, &headers)?;
    }
    Ok(started(&*app.runs.start(&app.program, ask.job(&app.program.exe())?)?))
}

/// Brings a lab up, which stays until it is stopped: `windtunnel lab up --json`
#[utoipa::path(post, path = "/api/v1/labs", request_body = LabRequest,
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_lab(State(app): Shared, Body(ask): Body<LabRequest>) -> Result<Started, ApiError> {
    let scenario = ask.scenario()?;
    let args = words(&["lab", "up", &scenario.argument, "--json"]);
    let request = json(&ask)?;
    let job = Job { kind: Kind::Lab, request, program: None, args, said: Said::Events, scenario: Some(scenario) };
    Ok(started(&*app.runs.start(&app.program, job)?))
}

/// Runs a workload in a lab that is up: a transfer, pings, or a probe of its path
#[utoipa::path(post, path = "/api/v1/labs/{id}/workloads", request_body = WorkRequest,
    params(("id" = String, Path, description = "The lab's name here")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_work(State(app): Shared, id: Place, ask: JsonBody<WorkRequest>) -> Result<Started, ApiError> {
    let lab = find(&app, id, Some(Kind::Lab))?;
    let Body(ask) = ask?;
    let not_up = |what: &str| ApiError::new(StatusCode::CONFLICT, what).hint("POST /api/v1/labs brings one up");
    if lab.has_ended() {
        return Err(not_up("this lab is down"));
    }
    let up = lab.result().ok_or_else(|| not_up("this lab isn't up yet"))?;
    // The shell at its end is replaced by what is to be run.
    let enter = up["hosts"][0]["enter"].as_str().and_then(|enter| enter.strip_suffix(" sh"));
    let enter = enter.ok_or_else(|| ApiError::ours("the lab doesn't say how to enter it"))?;
    let enter: Vec<String> = enter.split_whitespace().map(str::to_owned).collect();
    Ok(started(&*app.runs.start(&app.program, ask.job(&app.program.exe(), &enter)?)?))
}

/// All that this server started, the newest first
#[utoipa::path(get, path = "/api/v1/runs", responses((status = 200, body = [RunSummary]), (status = "4XX", body = ErrorBody)))]
async fn runs(State(app): Shared) -> Json<Vec<RunSummary>> {
    Json(app.runs.summaries(None))
}

/// An experiment, probe, lab or workload that this server started
#[utoipa::path(get, path = "/api/v1/runs/{id}", params(("id" = String, Path, description = "Its name here")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn run(State(app): Shared, id: Place) -> Result<Json<RunSummary>, ApiError> {
    Ok(Json(find(&app, id, None)?.summary()))
}

/// Stops one of them, as Ctrl-C does
#[utoipa::path(delete, path = "/api/v1/runs/{id}", params(("id" = String, Path, description = "Its name here")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn stop_run(State(app): Shared, id: Place) -> Result<Started, ApiError> {
    stop(&app, id, None)
}

/// What happens in one of them, as server-sent events: what the command says, then `end`
#[utoipa::path(get, path = "/api/v1/runs/{id}/events",
    params(("id" = String, Path, description = "Its name here"), ("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen")),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = "4XX", body = ErrorBody)))]
async fn run_events(State(app): Shared, id: Place, headers: HeaderMap) -> Result<Response, ApiError> {
    Ok(events(find(&app, id, None)?, &headers))
}

fn stop(app: &App, id: Place, kind: Option<Kind>) -> Result<Started, ApiError> {
    let run = find(app, id, kind)?;
    run.cancel();
    Ok(started(&run))
}

/// Server-sent events, those that are there and those that come.
fn events(run: Arc<Run>, headers: &HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse::<u64>().ok());
    let events = run.events(last.map_or(0, |last| last.saturating_add(1)));
    let told = events.map(|event| {
        let told = Event::default().event(&event.kind).data(&event.data);
        // Whoever comes back goes on behind the last event that stays; samples don't.
        Ok::<_, Infallible>(if event.kind == SAMPLE { told } else { told.id(event.number.to_string()) })
    });
    Sse::new(told).keep_alive(KeepAlive::default()).into_response()
}

fn find(app: &App, id: Place, kind: Option<Kind>) -> Result<Arc<Run>, ApiError> {
    let found = app.runs.find(&place(id)?).filter(|run| kind.is_none_or(|kind| kind == run.kind()));
    found.ok_or_else(|| match kind {
        None | Some(Kind::Experiment) => {
            ApiError::missing("this server runs no such experiment").hint("GET /api/v1/journal lists those of the past")
        }
        Some(_) => ApiError::missing("this server runs no such lab").hint("GET /api/v1/runs lists what it runs"),
    })
}
