use crate::error::ApiError;
use crate::guest::GuestId;
use crate::places::Seat;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;

/// Whom a request comes from.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// The address.
    pub(crate) ip: IpAddr,
    /// With whom it shares.
    pub(crate) who: GuestId,
    /// Whether a process of the owner asks, on this host.
    pub(crate) own: bool,
    /// Its connection's place.
    pub(crate) seat: Arc<Seat>,
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // There always is one.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| ApiError::ours("nobody knows where this comes from"))
    }
}
