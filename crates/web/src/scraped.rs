use crate::error::ApiError;
use crate::peer::Peer;
use crate::state::SharedApp;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use wt_setup::metrics::metrics;
use wt_setup::settings::HostAccess;

/// The text format of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What monitoring reads: what `windtunnel metrics` prints. Everything is read as it stands; no trial is begun for it.
pub(crate) async fn serve(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.room.ready(peer.who).await?;
    let (text, turn) = app.inside.read(peer.who, || metrics(None, HostAccess::open(None, None).ok().as_mut())).await?;
    let response = app.room.json(&peer, text.into_bytes()).await;
    drop(turn);
    let mut response = response?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
