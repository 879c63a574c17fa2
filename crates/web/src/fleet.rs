use crate::error::{ApiError, ErrorBody};
use crate::peer::Peer;
use crate::queries::MeshQuery;
use crate::state::{App, Query, SharedApp};
use axum::extract::State;
use axum::response::Response;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_agent::{FleetRequest, FleetStatusAnswer};
use wt_api::Request;
use wt_compare::side_by_side::SideBySideAnswer;

/// The operations of this file.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(fleet)).routes(routes!(report))
}

/// Who measures what to whom, what came of it, and who waits for which turn: `windtunnel fleet status URL --json`. Without a journal in
/// PostgreSQL: the newest experiment of each host and target of the journal
#[utoipa::path(get, path = "/api/v1/fleet", responses((status = 200, body = FleetStatusAnswer), (status = "4XX", body = ErrorBody)))]
async fn fleet(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::FleetStatus(FleetRequest::default())).await
}

/// Where a setting helps: somewhere, everywhere, at which hosts, on a new one: `windtunnel fleet report MESH URL --json`
#[utoipa::path(get, path = "/api/v1/fleet/report", params(MeshQuery),
    responses((status = 200, body = SideBySideAnswer), (status = "4XX", body = ErrorBody)))]
async fn report(State(app): SharedApp, peer: Peer, Query(ask): Query<MeshQuery>) -> Result<Response, ApiError> {
    if !app.inside.has_common() {
        return Err(ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "this page reads one host's journal, and no fleet's",
        )
        .hint("windtunnel web --journal postgresql://USER@HOST/DATABASE"));
    }
    app.compute(&peer, ask.request()?).await
}
