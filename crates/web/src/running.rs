use crate::drawn::LabRequest;
use crate::error::{ApiError, ErrorBody};
use crate::experiment::{Experiment, ExperimentRequest};
use crate::guard;
use crate::jobs::{ProbeRequest, WorkRequest, as_json};
use crate::peer::Peer;
use crate::queries::EventsQuery;
use crate::runs::{Event, Job, KEPT_RUNS, Kind, Run, RunSummary, SAMPLE};
use crate::state::{App, Body, JsonBody, Place, Query, SharedApp, place};
use crate::worker::Work;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use hyper::body::Bytes;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_tune::{ScreenPlan, TunePlan};

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

/// What an experiment would do.
#[derive(ToSchema)]
#[schema(as = Planned)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum AnyPlan {
    /// In rounds.
    Tune(TunePlan),
    /// In a screen.
    Screen(ScreenPlan),
}

/// What was started, in its summary.
type StartedRun = (StatusCode, Json<RunSummary>);

fn started(run: &Run) -> StartedRun {
    (StatusCode::ACCEPTED, Json(run.summary()))
}

/// The experiments that this server started, the newest first
#[utoipa::path(get, path = "/api/v1/experiments", responses((status = 200, body = [RunSummary]), (status = "4XX", body = ErrorBody)))]
async fn experiments(State(app): SharedApp) -> Json<Vec<RunSummary>> {
    Json(app.runs.summaries(Some(Kind::Experiment)))
}

/// Starts an experiment in a worker. On the real path it needs the token
#[utoipa::path(post, path = "/api/v1/experiments", request_body = ExperimentRequest,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_experiment(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<ExperimentRequest>,
) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    let Body(ask) = ask?;
    if ask.is_live() {
        guard::may(&app, &headers, "measuring a real path, or going on with an experiment,")?;
    }
    let Experiment { request, kept } = ask.experiment(false)?;
    let job = Job { kind: Kind::Experiment, request: as_json(&ask)?, work: Work::request("tune", &request), kept };
    Ok(started(&*app.runs.start(&app.program, job)?))
}

/// What an experiment in the lab would compare, and how long it may take: `windtunnel tune --dry-run --json`
#[utoipa::path(post, path = "/api/v1/experiments/plan", request_body = ExperimentRequest,
    responses((status = 200, body = AnyPlan), (status = "4XX", body = ErrorBody)))]
async fn plan_experiment(
    State(app): SharedApp,
    peer: Peer,
    Body(ask): Body<ExperimentRequest>,
) -> Result<Response, ApiError> {
    if ask.is_live() {
        return Err(ApiError::bad("what a server offers is known only once it is asked")
            .hint("start it; it measures first, and stops when you say so"));
    }
    let Experiment { request, kept } = ask.experiment(true)?;
    let answer = app.work(&peer, "tune", &request).await;
    drop(kept);
    answer
}

/// An experiment that this server started
#[utoipa::path(get, path = "/api/v1/experiments/{id}", params(("id" = String, Path, description = "Its name here")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn experiment(State(app): SharedApp, id: Place) -> Result<Json<RunSummary>, ApiError> {
    Ok(Json(find(&app, id, Some(Kind::Experiment))?.summary()))
}

/// Stops an experiment and keeps what was measured, as Ctrl-C does
#[utoipa::path(delete, path = "/api/v1/experiments/{id}",
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "From other accounts of this machine: printed by `windtunnel web`"), ("id" = String, Path, description = "Its name here")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn stop_experiment(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    id: Place,
) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    stop(&app, id, Some(Kind::Experiment))
}

/// What happens in an experiment, as server-sent events: the lines of `--json-stream`, then `end`
///
/// Each event but samples of the transfer that runs has a number; with `Last-Event-ID`, or with `after`, they go on after that one.
#[utoipa::path(get, path = "/api/v1/experiments/{id}/events",
    params(("id" = String, Path, description = "Its name here"), ("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen"), EventsQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"),
        (status = 204, description = "It has ended, and all of it was seen: don't ask again"), (status = "4XX", body = ErrorBody)))]
async fn experiment_events(
    State(app): SharedApp,
    id: Place,
    Query(ask): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Ok(events(find(&app, id, Some(Kind::Experiment))?, &ask, &headers))
}

/// Probes a path: `windtunnel path`, `mtu`, `trace` or `first-window`, each with `--json`. To a host it needs the token
#[utoipa::path(post, path = "/api/v1/probes", request_body = ProbeRequest,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_probe(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<ProbeRequest>,
) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    let Body(ask) = ask?;
    if ask.is_live() {
        guard::may(&app, &headers, "probing a real path")?;
    }
    Ok(started(&*app.runs.start(&app.program, ask.job()?)?))
}

/// Brings a lab up, which stays until it is stopped: `windtunnel lab up --json`
#[utoipa::path(post, path = "/api/v1/labs", request_body = LabRequest, params(("X-Windtunnel-Token" = Option<String>, Header, description = "From other accounts of this machine: printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_lab(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<LabRequest>,
) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    let Body(ask) = ask?;
    let scenario = ask.scenario()?;
    let work = Work::request("lab_up", &scenario.request());
    let kept = scenario.drawn.into_iter().collect();
    let job = Job { kind: Kind::Lab, request: as_json(&ask)?, work, kept };
    Ok(started(&*app.runs.start(&app.program, job)?))
}

/// Runs a workload in a lab that is up: a transfer, pings, or a probe of its path
#[utoipa::path(post, path = "/api/v1/labs/{id}/workloads", request_body = WorkRequest,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "From other accounts of this machine: printed by `windtunnel web`"), ("id" = String, Path, description = "The lab's name here")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_work(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    id: Place,
    ask: JsonBody<WorkRequest>,
) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
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
    Ok(started(&*app.runs.start(&app.program, ask.job(enter)?)?))
}

/// All that this server started, the newest first
#[utoipa::path(get, path = "/api/v1/runs", responses((status = 200, body = [RunSummary]), (status = "4XX", body = ErrorBody)))]
async fn runs(State(app): SharedApp) -> Json<Vec<RunSummary>> {
    Json(app.runs.summaries(None))
}

/// An experiment, probe, lab or workload that this server started
#[utoipa::path(get, path = "/api/v1/runs/{id}", params(("id" = String, Path, description = "Its name here")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn run(State(app): SharedApp, id: Place) -> Result<Json<RunSummary>, ApiError> {
    Ok(Json(find(&app, id, None)?.summary()))
}

/// Stops one of them, as Ctrl-C does
#[utoipa::path(delete, path = "/api/v1/runs/{id}",
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "From other accounts of this machine: printed by `windtunnel web`"), ("id" = String, Path, description = "Its name here")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn stop_run(State(app): SharedApp, peer: Peer, headers: HeaderMap, id: Place) -> Result<StartedRun, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    stop(&app, id, None)
}

/// What happens in one of them, as server-sent events: what the command says, then `end`
#[utoipa::path(get, path = "/api/v1/runs/{id}/events",
    params(("id" = String, Path, description = "Its name here"), ("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen"), EventsQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"),
        (status = 204, description = "It has ended, and all of it was seen: don't ask again"), (status = "4XX", body = ErrorBody)))]
async fn run_events(
    State(app): SharedApp,
    id: Place,
    Query(ask): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Ok(events(find(&app, id, None)?, &ask, &headers))
}

fn stop(app: &App, id: Place, kind: Option<Kind>) -> Result<StartedRun, ApiError> {
    let run = find(app, id, kind)?;
    run.cancel();
    Ok(started(&run))
}

/// So often somebody who waits for events hears that there are none.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Given to the connection at once. The log has the rest, once for all who read it.
const PIECE: usize = 16 << 10;

/// Server-sent events, those that are there and those that come.
fn events(run: Arc<Run>, ask: &EventsQuery, headers: &HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse::<u64>().ok());
    // A stream that a page begins anew can't send the header; one that the browser continues has the address of its beginning.
    let from = last.or(ask.after).map_or(0, |last| last.saturating_add(1));
    // Who has seen the end and asks again would be answered by an empty stream for ever. By the standard of server-sent events this is
    // what tells a client not to ask again.
    if run.is_over(from) {
        return StatusCode::NO_CONTENT.into_response();
    }
    let events = Box::pin(run.events(from));
    let pieces = futures_util::stream::unfold((events, VecDeque::new()), |(mut events, mut rest)| async move {
        loop {
            if let Some(piece) = rest.pop_front() {
                return Some((Ok::<_, Infallible>(piece), (events, rest)));
            }
            match tokio::time::timeout(KEEP_ALIVE, events.next()).await {
                Ok(Some(event)) => rest = told(&event),
                Ok(None) => return None,
                Err(_) => rest.push_back(Bytes::from_static(b":\n\n")),
            }
        }
    });
    let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (head, axum::body::Body::from_stream(pieces)).into_response()
}

/// An event in pieces.
fn told(event: &Event) -> VecDeque<Bytes> {
    let mut head = String::new();
    if event.kind != SAMPLE {
        // Whoever comes back goes on behind the last event that stays; samples don't.
        head = format!("id: {}\n", event.number);
    }
    head += &format!("event: {}\ndata: ", event.kind);
    if event.data.len() <= PIECE {
        return VecDeque::from([Bytes::from([head.as_bytes(), &event.data, b"\n\n"].concat())]);
    }
    let mut pieces = VecDeque::from([Bytes::from(head)]);
    let mut rest = event.data.clone();
    while !rest.is_empty() {
        pieces.push_back(rest.split_to(rest.len().min(PIECE)));
    }
    pieces.push_back(Bytes::from_static(b"\n\n"));
    pieces
}

fn find(app: &App, id: Place, kind: Option<Kind>) -> Result<Arc<Run>, ApiError> {
    let found = app.runs.find(&place(id)?).filter(|run| kind.is_none_or(|kind| kind == run.kind()));
    found.ok_or_else(|| {
        let (what, hint) = match kind {
            None => ("has no such run", "GET /api/v1/runs lists what it has"),
            Some(Kind::Experiment) => ("has no such experiment", "GET /api/v1/journal lists those of the past"),
            Some(_) => ("runs no such lab", "GET /api/v1/runs lists what it has"),
        };
        let kept = format!("it keeps the last {KEPT_RUNS} of each kind, and none from before it was started");
        ApiError::missing(format!("this server {what}: {kept}")).hint(hint)
    })
}
