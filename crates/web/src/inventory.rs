//! What can be compared: congestion controls and TCP/IP stacks.

use crate::checked::text;
use crate::error::{ApiError, ErrorBody};
use crate::peer::Peer;
use crate::state::{App, Place, SharedApp, place};
use axum::extract::State;
use axum::response::Response;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_api::{ControlName, Request};
use wt_compare::stacks::StacksList;
use wt_setup::controls::{ControlShown, ControlsList};

/// Its operations with their document.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(controls)).routes(routes!(control)).routes(routes!(stacks))
}

/// The congestion controls that there are: `windtunnel cc list --json`
#[utoipa::path(get, path = "/api/v1/cc", responses((status = 200, body = ControlsList), (status = "4XX", body = ErrorBody)))]
async fn controls(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::ControlsList).await
}

/// What one of them does: `windtunnel cc show NAME --json`
#[utoipa::path(get, path = "/api/v1/cc/{name}", params(("name" = String, Path, description = "Its name, with a variant where it has some: `chd@freebsd-hz100`")),
    responses((status = 200, body = ControlShown), (status = "4XX", body = ErrorBody)))]
async fn control(State(app): SharedApp, peer: Peer, name: Place) -> Result<Response, ApiError> {
    let name = text("name", &place(name)?)?.to_owned();
    app.compute(&peer, Request::ControlShow(ControlName { name })).await
}

/// The TCP/IP stacks that there are: `windtunnel stacks list --json`
#[utoipa::path(get, path = "/api/v1/stacks", responses((status = 200, body = StacksList), (status = "4XX", body = ErrorBody)))]
async fn stacks(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::StacksList).await
}
