use crate::ask::{self, ChangeRequest, CompareQuery, OverheadQuery, PredictQuery, SamplesQuery, WhichChange, words};
use crate::command::{Answer, Program};
use crate::door::Door;
use crate::drawn::PathRequest;
use crate::error::{ApiError, ErrorBody};
use crate::guard::{self, Names};
use crate::page;
use crate::running;
use crate::runs::Runs;
use crate::secret::Secret;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, State};
use axum::http::HeaderMap;
use axum::{Json, Router, middleware};
use serde::Serialize;
use std::sync::Arc;
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The largest body of a request.
const LARGEST_BODY: usize = 64 << 10;

/// What every request can see.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) program: Program,
    pub(crate) runs: Runs,
    pub(crate) names: Names,
    pub(crate) token: Secret,
    pub(crate) door: Option<Door>,
}

pub(crate) type Shared = State<Arc<App>>;

/// A body of JSON; what is wrong with it is told as every other problem.
#[derive(FromRequest)]
#[from_request(via(Json), rejection(ApiError))]
pub(crate) struct Body<T>(pub(crate) T);

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

/// A query; what is wrong with it is told as every other problem.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
struct Query<T>(T);

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

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
        .routes(routes!(settings_plan))
        .routes(routes!(settings_apply))
        .routes(routes!(settings_confirm))
        .routes(routes!(settings_undo))
        .routes(routes!(overhead))
        .routes(routes!(encapsulations))
        .routes(routes!(presets))
        .routes(routes!(preset))
        .routes(routes!(drawn_path))
        .routes(routes!(drawn_toml))
        .routes(routes!(predict))
        .merge(running::operations())
        .routes(routes!(journal))
        .routes(routes!(journaled))
        .routes(routes!(samples))
        .routes(routes!(report))
        .routes(routes!(compare))
}

/// The whole server: the API, its document, and the page for everything else.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, _) = operations().split_for_parts();
    router
        .route("/api/v1/openapi.json", axum::routing::get(|| async { Json(document()) }))
        .route("/api/{*rest}", axum::routing::any(|| async { ApiError::missing("the API has nothing there") }))
        .fallback(axum::routing::get(page::serve))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
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
#[utoipa::path(get, path = "/api/v1/doctor", responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn doctor(State(app): Shared) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["doctor", "--json"])).await
}

/// This host's adapters, settings and findings: `windtunnel settings show --json`
#[utoipa::path(get, path = "/api/v1/settings", responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn settings(State(app): Shared) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["settings", "show", "--json"])).await
}

/// The changes that were made: `windtunnel settings history --json`
#[utoipa::path(get, path = "/api/v1/settings/history", responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn settings_history(State(app): Shared) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["settings", "history", "--json"])).await
}

/// What would change: `windtunnel settings plan --json`. Writes nothing
#[utoipa::path(post, path = "/api/v1/settings/plan", request_body = ChangeRequest,
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn settings_plan(State(app): Shared, Body(ask): Body<ChangeRequest>) -> Result<Answer, ApiError> {
    app.program.ask(&ask.args(false)?).await
}

/// Changes this host until it is confirmed or put back: `windtunnel settings apply --json`
#[utoipa::path(post, path = "/api/v1/settings/apply", request_body = ChangeRequest,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn settings_apply(
    State(app): Shared,
    headers: HeaderMap,
    ask: JsonBody<ChangeRequest>,
) -> Result<Answer, ApiError> {
    guard::may_change(&app, &headers)?;
    change(app, ask?.0.args(true)?).await
}

/// Makes a change stay: `windtunnel settings confirm --json`
#[utoipa::path(post, path = "/api/v1/settings/confirm", request_body = WhichChange,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn settings_confirm(
    State(app): Shared,
    headers: HeaderMap,
    ask: JsonBody<WhichChange>,
) -> Result<Answer, ApiError> {
    guard::may_change(&app, &headers)?;
    change(app, ask?.0.args("confirm")?).await
}

/// Takes a change back: `windtunnel settings undo --json`
#[utoipa::path(post, path = "/api/v1/settings/undo", request_body = WhichChange,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn settings_undo(State(app): Shared, headers: HeaderMap, ask: JsonBody<WhichChange>) -> Result<Answer, ApiError> {
    guard::may_change(&app, &headers)?;
    change(app, ask?.0.args("undo")?).await
}

/// A body that is looked at only after the token.
pub(crate) type JsonBody<T> = Result<Body<T>, ApiError>;

/// Runs a command that changes the host to its end, even if whoever asked has gone.
async fn change(app: Arc<App>, args: Vec<String>) -> Result<Answer, ApiError> {
    let done = tokio::spawn(async move { app.program.ask(&args).await }).await;
    done.map_err(|error| ApiError::ours(error.to_string()))?
}

/// Framing arithmetic: `windtunnel overhead --json`
#[utoipa::path(get, path = "/api/v1/overhead", params(OverheadQuery),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn overhead(State(app): Shared, Query(ask): Query<OverheadQuery>) -> Result<Answer, ApiError> {
    app.program.ask(&ask.args()?).await
}

/// The words of which encapsulations are made: `windtunnel overhead --list --json`
#[utoipa::path(get, path = "/api/v1/overhead/encapsulations",
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn encapsulations(State(app): Shared) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["overhead", "--list", "--json"])).await
}

/// The shipped paths: `windtunnel lab list --json`
#[utoipa::path(get, path = "/api/v1/lab/presets", responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn presets(State(app): Shared) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["lab", "list", "--json"])).await
}

/// One of them, with its links: `windtunnel lab show NAME --json`
#[utoipa::path(get, path = "/api/v1/lab/presets/{name}", params(("name" = String, Path, description = "A preset's name")),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn preset(State(app): Shared, name: Place) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["lab", "show", ask::preset(&place(name)?)?, "--json"])).await
}

/// A path of one's own, checked: `windtunnel lab show FILE --json`. Starts nothing
#[utoipa::path(post, path = "/api/v1/lab/paths", request_body = PathRequest,
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn drawn_path(State(app): Shared, Body(ask): Body<PathRequest>) -> Result<Answer, ApiError> {
    let drawn = ask.write()?;
    let answer = app.program.ask(&words(&["lab", "show", &drawn.file().display().to_string(), "--json"])).await;
    answer.map_err(|mut error| {
        error.problem.what = drawn.plain(&error.problem.what);
        error
    })
}

/// A path of one's own as a scenario file, for the command line
#[utoipa::path(post, path = "/api/v1/lab/paths/toml", request_body = PathRequest,
    responses((status = 200, body = String, content_type = "application/toml"), (status = "4XX", body = ErrorBody)))]
async fn drawn_toml(Body(ask): Body<PathRequest>) -> Result<impl axum::response::IntoResponse, ApiError> {
    Ok(([(axum::http::header::CONTENT_TYPE, "application/toml")], ask.toml()?))
}

/// What other settings would do, by the model: `windtunnel predict --json`
#[utoipa::path(get, path = "/api/v1/predict", params(PredictQuery),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn predict(State(app): Shared, Query(ask): Query<PredictQuery>) -> Result<Answer, ApiError> {
    app.program.ask(&ask.args()?).await
}

/// Every experiment of the journal: `windtunnel journal list --json`
#[utoipa::path(get, path = "/api/v1/journal", responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn journal(State(app): Shared) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["journal", "list", "--limit=500", "--json"])).await
}

/// An experiment of the journal, assessed again: `windtunnel report NAME --json`
#[utoipa::path(get, path = "/api/v1/reports/{name}", params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`")),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn report(State(app): Shared, name: Place) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["report", ask::name("an experiment", &place(name)?)?, "--json"])).await
}

/// Experiments of the journal side by side: `windtunnel compare NAME NAME --json`. Whether they can be compared is in the answer
#[utoipa::path(get, path = "/api/v1/compare", params(CompareQuery),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn compare(State(app): Shared, Query(ask): Query<CompareQuery>) -> Result<Answer, ApiError> {
    app.program.ask(&ask.args()?).await
}

/// An experiment of the journal with its trials, without samples: `windtunnel journal show NAME --json`
#[utoipa::path(get, path = "/api/v1/journal/{name}", params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`")),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn journaled(State(app): Shared, name: Place) -> Result<Answer, ApiError> {
    app.program.ask(&words(&["journal", "show", ask::name("an experiment", &place(name)?)?, "--json"])).await
}

/// What TCP said over time: `windtunnel journal samples NAME --json`
#[utoipa::path(get, path = "/api/v1/journal/{name}/samples",
    params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`"), SamplesQuery),
    responses((status = 200, body = Object), (status = "4XX", body = ErrorBody)))]
async fn samples(State(app): Shared, name: Place, Query(ask): Query<SamplesQuery>) -> Result<Answer, ApiError> {
    app.program.ask(&ask.args(&place(name)?)?).await
}

/// A part of the path, which may not even be text.
pub(crate) type Place = Result<Path<String>, axum::extract::rejection::PathRejection>;

pub(crate) fn place(part: Place) -> Result<String, ApiError> {
    part.map(|Path(text)| text).map_err(|rejection| ApiError::bad(rejection.body_text()))
}
