use crate::checked::{preset as preset_name, shipped};
use crate::comparisons;
use crate::drawn::PathRequest;
use crate::error::{ApiError, ErrorBody};
use crate::files::{self, AnalyseQuery, FileAnalysis};
use crate::fleet;
use crate::guard;
use crate::inventory;
use crate::logged;
use crate::page;
use crate::peer::Peer;
use crate::queries::{
    ChangeBody, CompareQuery, JournalQuery, OverheadQuery, PredictQuery, SamplesQuery, WhichBody, named,
};
use crate::reported::AnyReport;
use crate::running;
use crate::scraped;
use crate::shipped::DrawnPreset;
use crate::state::{App, Body, JsonBody, Place, Places, Query, SharedApp, place, places};
use crate::traffic;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Json, Router, middleware};
use serde::Serialize;
use std::sync::Arc;
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_api::{Request, ScenarioRequest};
use wt_compare::side_by_side::SideBySideAnswer;
use wt_forecast::PredictAnswer;
use wt_host::{ConfirmOutcome, Plan, Report, Undone};
use wt_setup::doctor::DoctorAnswer;
use wt_setup::journal::{ListAnswer, PruneAnswer, PruneRequest, SamplesAnswer, ShowAnswer};
use wt_setup::lab::{PresetsAnswer, ScenarioAnswer};
use wt_setup::settings::{ChangeAnswer, HistoryAnswer, PendingAnswer, ShowRequest};
use wt_wire::{OverheadAnswer, OverheadWords};

/// What settings need the token for.
const CHANGING: &str = "changing this host";

#[derive(OpenApi)]
#[openapi(info(
    title = "Windtunnel",
    version = "1",
    description = "The commands of `windtunnel` over HTTP. Each answer is the very object that the command prints with --json; \
                   the guide describes its fields. Changing the host needs the header X-Windtunnel-Token.",
    license(name = "MIT OR Apache-2.0")
))]
struct Document;

/// Every operation with its document.
fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(health))
        .routes(routes!(doctor))
        .routes(routes!(settings))
        .routes(routes!(settings_history))
        .routes(routes!(settings_pending))
        .routes(routes!(settings_plan))
        .routes(routes!(settings_apply))
        .routes(routes!(settings_confirm))
        .routes(routes!(settings_undo))
        .routes(routes!(overhead))
        .routes(routes!(encapsulations))
        .routes(routes!(presets))
        .routes(routes!(preset))
        .routes(routes!(preset_drawn))
        .routes(routes!(drawn_path))
        .routes(routes!(drawn_toml))
        .routes(routes!(predict))
        .merge(running::operations())
        .merge(inventory::operations())
        .merge(traffic::operations())
        .merge(fleet::operations())
        .merge(logged::operations())
        .merge(comparisons::operations())
        .routes(routes!(journal))
        .routes(routes!(journaled))
        .routes(routes!(forget))
        .routes(routes!(samples))
        .routes(routes!(report))
        .routes(routes!(report_file))
        .routes(routes!(compare))
        .routes(routes!(analyse))
}

/// The whole server: the API, its document, and the page for everything else.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, _) = operations().split_for_parts();
    router
        .route("/api/v1/openapi.json", axum::routing::get(|| async { Json(document()) }))
        .route("/api/{*rest}", axum::routing::any(|| async { ApiError::missing("the API has nothing there") }))
        .route("/metrics", axum::routing::get(scraped::serve))
        .fallback(axum::routing::get(page::serve))
        .layer(DefaultBodyLimit::max(guard::LARGEST_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::check))
        .with_state(app)
}

fn document() -> utoipa::openapi::OpenApi {
    operations().into_openapi()
}

/// The OpenAPI document.
///
/// # Errors
/// Never in practice: the document is made of text only.
pub fn openapi_json() -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&document()).map(|text| text + "\n")
}

/// That the server answers.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The program's version.
    version: &'static str,
    /// Whether the page is in the program.
    page: bool,
}

/// Whether the server answers
#[utoipa::path(get, path = "/api/v1/health", responses((status = 200, body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), page: page::is_built() })
}

/// What works on this machine: `windtunnel doctor --json`
#[utoipa::path(get, path = "/api/v1/doctor", responses((status = 200, body = DoctorAnswer), (status = "4XX", body = ErrorBody)))]
async fn doctor(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.work(&peer, "doctor", &()).await
}

/// This host's adapters, settings and findings: `windtunnel settings show --json`
#[utoipa::path(get, path = "/api/v1/settings", responses((status = 200, body = Report), (status = "4XX", body = ErrorBody)))]
async fn settings(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::SettingsShow(ShowRequest::default())).await
}

/// The changes that were made: `windtunnel settings history --json`
#[utoipa::path(get, path = "/api/v1/settings/history", responses((status = 200, body = HistoryAnswer), (status = "4XX", body = ErrorBody)))]
async fn settings_history(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::SettingsHistory).await
}

/// The change that waits for its confirmation, and how long it still does. Cheap: for asking again every few seconds
#[utoipa::path(get, path = "/api/v1/settings/pending", responses((status = 200, body = PendingAnswer), (status = "4XX", body = ErrorBody)))]
async fn settings_pending(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::SettingsPending).await
}

/// What would change: `windtunnel settings plan --json`. Writes nothing
#[utoipa::path(post, path = "/api/v1/settings/plan", request_body = ChangeBody,
    responses((status = 200, body = Plan), (status = "4XX", body = ErrorBody)))]
async fn settings_plan(State(app): SharedApp, peer: Peer, Body(ask): Body<ChangeBody>) -> Result<Response, ApiError> {
    app.compute(&peer, Request::SettingsPlan(Box::new(ask.change()?))).await
}

/// Changes this host until it is confirmed or put back: `windtunnel settings apply --json`
#[utoipa::path(post, path = "/api/v1/settings/apply", request_body = ChangeBody,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = ChangeAnswer), (status = "4XX", body = ErrorBody)))]
async fn settings_apply(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<ChangeBody>,
) -> Result<Response, ApiError> {
    guard::may(&app, &headers, CHANGING)?;
    change(app, peer, "settings_apply", ask?.0.apply()?).await
}

/// Makes a change stay: `windtunnel settings confirm --json`
#[utoipa::path(post, path = "/api/v1/settings/confirm", request_body = WhichBody,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = ConfirmOutcome), (status = "4XX", body = ErrorBody)))]
async fn settings_confirm(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<WhichBody>,
) -> Result<Response, ApiError> {
    guard::may(&app, &headers, CHANGING)?;
    change(app, peer, "settings_confirm", ask?.0.which()?).await
}

/// Takes a change back: `windtunnel settings undo --json`
#[utoipa::path(post, path = "/api/v1/settings/undo", request_body = WhichBody,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = Undone), (status = "4XX", body = ErrorBody)))]
async fn settings_undo(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    ask: JsonBody<WhichBody>,
) -> Result<Response, ApiError> {
    guard::may(&app, &headers, CHANGING)?;
    change(app, peer, "settings_undo", ask?.0.which()?).await
}

/// Changes the host in a worker, which runs to its end even if whoever asked has gone.
async fn change<T>(app: Arc<App>, peer: Peer, operation: &'static str, request: T) -> Result<Response, ApiError>
where
    T: Serialize + Send + Sync + 'static,
{
    let done = tokio::spawn(async move { app.work(&peer, operation, &request).await }).await;
    done.map_err(|error| ApiError::ours(error.to_string()))?
}

/// Framing arithmetic: `windtunnel overhead --json`
#[utoipa::path(get, path = "/api/v1/overhead", params(OverheadQuery),
    responses((status = 200, body = OverheadAnswer), (status = "4XX", body = ErrorBody)))]
async fn overhead(State(app): SharedApp, peer: Peer, Query(ask): Query<OverheadQuery>) -> Result<Response, ApiError> {
    app.compute(&peer, ask.request()?).await
}

/// The words of which encapsulations are made: `windtunnel overhead --list --json`
#[utoipa::path(get, path = "/api/v1/overhead/encapsulations",
    responses((status = 200, body = OverheadWords), (status = "4XX", body = ErrorBody)))]
async fn encapsulations(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::OverheadWords).await
}

/// The shipped paths: `windtunnel lab list --json`
#[utoipa::path(get, path = "/api/v1/lab/presets", responses((status = 200, body = PresetsAnswer), (status = "4XX", body = ErrorBody)))]
async fn presets(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::LabList).await
}

/// One of them, with its links: `windtunnel lab show NAME --json`
#[utoipa::path(get, path = "/api/v1/lab/presets/{name}", params(("name" = String, Path, description = "A preset's name")),
    responses((status = 200, body = ScenarioAnswer), (status = "4XX", body = ErrorBody)))]
async fn preset(State(app): SharedApp, peer: Peer, name: Place) -> Result<Response, ApiError> {
    let path = shipped(&place(name)?)?.to_owned();
    app.compute(&peer, Request::LabShow(ScenarioRequest { path })).await
}

/// A shipped path as one of one's own, to be changed: what can't be edited is kept, and named
#[utoipa::path(get, path = "/api/v1/lab/presets/{name}/drawn", params(("name" = String, Path, description = "A preset's name")),
    responses((status = 200, body = DrawnPreset), (status = "4XX", body = ErrorBody)))]
async fn preset_drawn(name: Place) -> Result<Json<DrawnPreset>, ApiError> {
    Ok(Json(DrawnPreset::of(preset_name(&place(name)?)?)?))
}

/// A path of one's own, checked: `windtunnel lab show FILE --json`. Starts nothing
#[utoipa::path(post, path = "/api/v1/lab/paths", request_body = PathRequest,
    responses((status = 200, body = ScenarioAnswer), (status = "4XX", body = ErrorBody)))]
async fn drawn_path(State(app): SharedApp, peer: Peer, Body(ask): Body<PathRequest>) -> Result<Response, ApiError> {
    checked_path(&app, &peer, &ask).await
}

/// What [`drawn_path`] answers.
///
/// # Errors
/// [`ApiError`]: what is wrong with the path.
async fn checked_path(app: &App, peer: &Peer, ask: &PathRequest) -> Result<Response, ApiError> {
    let drawn = ask.write()?;
    let path = drawn.file().display().to_string();
    let answer = app.compute(peer, Request::LabShow(ScenarioRequest { path })).await;
    answer.map_err(|mut error| {
        error.problem.what = drawn.plain(&error.problem.what);
        error
    })
}

/// A path of one's own as a scenario file, for the command line, which takes it: it is checked before
#[utoipa::path(post, path = "/api/v1/lab/paths/toml", request_body = PathRequest,
    responses((status = 200, body = String, content_type = "application/toml"), (status = "4XX", body = ErrorBody)))]
async fn drawn_toml(
    State(app): SharedApp,
    peer: Peer,
    Body(ask): Body<PathRequest>,
) -> Result<impl axum::response::IntoResponse, ApiError> {
    drop(checked_path(&app, &peer, &ask).await?);
    Ok(([(axum::http::header::CONTENT_TYPE, "application/toml")], ask.toml()?))
}

/// What other settings would do, by the model: `windtunnel predict --json`
#[utoipa::path(get, path = "/api/v1/predict", params(PredictQuery),
    responses((status = 200, body = PredictAnswer), (status = "4XX", body = ErrorBody)))]
async fn predict(State(app): SharedApp, peer: Peer, Query(ask): Query<PredictQuery>) -> Result<Response, ApiError> {
    app.compute(&peer, ask.request()?).await
}

/// Every experiment of the journal: `windtunnel journal list --json`
#[utoipa::path(get, path = "/api/v1/journal", params(JournalQuery), responses((status = 200, body = ListAnswer), (status = "4XX", body = ErrorBody)))]
async fn journal(State(app): SharedApp, peer: Peer, Query(ask): Query<JournalQuery>) -> Result<Response, ApiError> {
    app.compute(&peer, ask.request()?).await
}

/// An experiment of the journal, assessed again: `windtunnel report NAME --json`
#[utoipa::path(get, path = "/api/v1/reports/{name}", params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`")),
    responses((status = 200, body = AnyReport), (status = "4XX", body = ErrorBody)))]
async fn report(State(app): SharedApp, peer: Peer, name: Place) -> Result<Response, ApiError> {
    app.compute(&peer, Request::Report(named(&place(name)?)?)).await
}

/// An experiment of the journal as a file: `windtunnel report NAME --html FILE`, or `--csv FILE`
#[utoipa::path(get, path = "/api/v1/reports/{name}/{form}",
    params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`"), ("form" = String, Path, description = "`html` or `csv`")),
    responses((status = 200, content((String = "text/html"), (String = "text/csv"))), (status = "4XX", body = ErrorBody)))]
async fn report_file(State(app): SharedApp, peer: Peer, parts: Places) -> Result<Response, ApiError> {
    let (name, form) = places(parts)?;
    app.room.ready(peer.who).await?;
    let (report, turn) = app.inside.ask(peer.who, Request::Report(named(&name)?)).await?;
    let (kind, text) = files::report(&form, report)?;
    let response = app.room.file(&peer, kind, &format!("{name}.{form}"), text.into_bytes()).await;
    drop(turn);
    response
}

/// Deletes an experiment of the journal: `windtunnel journal prune NAME --json`. It needs the token
///
/// One that can't go is a problem: 409 where it is under way, or where another one continues it.
#[utoipa::path(delete, path = "/api/v1/journal/{name}",
    params(("name" = String, Path, description = "An experiment's whole name"), ("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = PruneAnswer), (status = "4XX", body = ErrorBody)))]
async fn forget(State(app): SharedApp, peer: Peer, headers: HeaderMap, name: Place) -> Result<Response, ApiError> {
    guard::may(&app, &headers, "deleting an experiment")?;
    let name = named(&place(name)?)?.experiment;
    let request = PruneRequest { experiments: vec![name], whole_names: true, ..Default::default() };
    app.compute(&peer, Request::JournalPrune(request)).await
}

/// A capture or a table, sent as the body: `windtunnel analyse FILE --json`. The file is gone once it is answered
#[utoipa::path(post, path = "/api/v1/analyse", params(AnalyseQuery),
    request_body(content = String, content_type = "application/octet-stream", description = "The file, at most 256 MiB"),
    responses((status = 200, body = FileAnalysis), (status = "4XX", body = ErrorBody)))]
async fn analyse(
    State(app): SharedApp,
    peer: Peer,
    headers: HeaderMap,
    Query(ask): Query<AnalyseQuery>,
    body: axum::body::Body,
) -> Result<Response, ApiError> {
    guard::may_start(&app, &peer, &headers)?;
    app.room.ready(peer.who).await?;
    let (analysed, turn) = files::analyse(&app.inside, peer.who, &ask, body).await?;
    let bytes = serde_json::to_vec(&analysed).map_err(|error| ApiError::ours(error.to_string()))?;
    let response = app.room.json(&peer, bytes).await;
    drop(turn);
    response
}

/// Experiments of the journal side by side: `windtunnel compare NAME NAME --json`. Whether they can be compared is in the answer
#[utoipa::path(get, path = "/api/v1/compare", params(CompareQuery),
    responses((status = 200, body = SideBySideAnswer), (status = "4XX", body = ErrorBody)))]
async fn compare(State(app): SharedApp, peer: Peer, Query(ask): Query<CompareQuery>) -> Result<Response, ApiError> {
    app.compute(&peer, ask.request()?).await
}

/// An experiment of the journal with its trials, without samples: `windtunnel journal show NAME --json`
#[utoipa::path(get, path = "/api/v1/journal/{name}", params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`")),
    responses((status = 200, body = ShowAnswer), (status = "4XX", body = ErrorBody)))]
async fn journaled(State(app): SharedApp, peer: Peer, name: Place) -> Result<Response, ApiError> {
    app.compute(&peer, Request::JournalShow(named(&place(name)?)?)).await
}

/// What TCP said over time: `windtunnel journal samples NAME --json`
#[utoipa::path(get, path = "/api/v1/journal/{name}/samples",
    params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`"), SamplesQuery),
    responses((status = 200, body = SamplesAnswer), (status = "4XX", body = ErrorBody)))]
async fn samples(
    State(app): SharedApp,
    peer: Peer,
    name: Place,
    Query(ask): Query<SamplesQuery>,
) -> Result<Response, ApiError> {
    app.compute(&peer, ask.request(&place(name)?)?).await
}
