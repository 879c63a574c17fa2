use crate::checked::name;
use crate::error::{ApiError, ErrorBody};
use crate::peer::Peer;
use crate::state::{App, Query, Shared};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_agent::{FleetRequest, FleetStatusAnswer, MeshRequest};
use wt_api::Request;
use wt_compare::side_by_side::SideBySideAnswer;

/// The operations of this file.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(fleet)).routes(routes!(report))
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
    fn request(&self) -> Result<Request, ApiError> {
        let mesh = Some(name("a mesh", &self.mesh)?.to_owned());
        Ok(Request::FleetReport(MeshRequest { server: String::new(), mesh, all: self.all }))
    }
}

/// Who measures what to whom, what came of it, and who waits for which turn: `windtunnel fleet status URL --json`. Without a journal in
/// PostgreSQL: the newest experiment of each host and target of the journal
#[utoipa::path(get, path = "/api/v1/fleet", responses((status = 200, body = FleetStatusAnswer), (status = "4XX", body = ErrorBody)))]
async fn fleet(State(app): Shared, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::FleetStatus(FleetRequest::default())).await
}

/// Where a setting helps: somewhere, everywhere, at which hosts, on a new one: `windtunnel fleet report MESH URL --json`
#[utoipa::path(get, path = "/api/v1/fleet/report", params(MeshQuery),
    responses((status = 200, body = SideBySideAnswer), (status = "4XX", body = ErrorBody)))]
async fn report(State(app): Shared, peer: Peer, Query(ask): Query<MeshQuery>) -> Result<Response, ApiError> {
    if !app.inside.has_common() {
        return Err(ApiError::new(
            axum::http::StatusCode::CONFLICT,
            "this page reads one host's journal, and no fleet's",
        )
        .hint("windtunnel web --journal postgresql://USER@HOST/DATABASE"));
    }
    app.compute(&peer, ask.request()?).await
}

#[cfg(test)]
mod tests {
    use super::*;

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
