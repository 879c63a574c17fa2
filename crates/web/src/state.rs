use crate::door::Door;
use crate::error::ApiError;
use crate::guest::Owner;
use crate::inside::Inside;
use crate::names::Names;
use crate::peer::Peer;
use crate::remembered::{self, RememberedAnswers};
use crate::room::Room;
use crate::runs::Runs;
use crate::secret::Secret;
use crate::worker::Program;
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, State};
use axum::response::Response;
use std::sync::Arc;
use wt_api::Request;

/// What every request can see.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) program: Program,
    pub(crate) inside: Inside,
    pub(crate) runs: Runs,
    pub(crate) names: Names,
    pub(crate) token: Secret,
    pub(crate) door: Option<Door>,
    pub(crate) owner: Owner,
    pub(crate) room: Arc<Room>,
    pub(crate) remembered: RememberedAnswers,
}

pub(crate) type SharedApp = State<Arc<App>>;

impl App {
    /// Answers what is computed in this process.
    ///
    /// # Errors
    /// [`ApiError`] for a problem, or for one who asks for too much at once.
    pub(crate) async fn compute(&self, peer: &Peer, request: Request) -> Result<Response, ApiError> {
        self.room.ready(peer.who).await?;
        let key = remembered::key(&request);
        if let Some(bytes) = key.as_ref().and_then(|key| self.remembered.get(key)) {
            return self.room.json(peer, bytes).await;
        }
        let (bytes, turn) = self.inside.answer(peer.who, request).await?;
        if let Some(key) = key {
            self.remembered.keep(key, &bytes);
        }
        let response = self.room.json(peer, bytes).await;
        // Until it has its room the next one isn't computed: only so many are held that have none.
        drop(turn);
        response
    }

    /// Answers what needs a process of its own.
    ///
    /// # Errors
    /// As [`compute`](Self::compute).
    pub(crate) async fn work<T>(&self, peer: &Peer, operation: &str, request: &T) -> Result<Response, ApiError>
    where
        T: serde::Serialize + Sync,
    {
        let (bytes, turn) = self.program.answer(peer.who, operation, request).await?;
        let response = self.room.json(peer, bytes).await;
        drop(turn);
        response
    }
}

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
pub(crate) struct Query<T>(pub(crate) T);

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

/// A body that is looked at only after the token.
pub(crate) type JsonBody<T> = Result<Body<T>, ApiError>;

/// A part of the path, which may not even be text.
pub(crate) type Place = Result<Path<String>, axum::extract::rejection::PathRejection>;

/// Two parts of the path.
pub(crate) type Places = Result<Path<(String, String)>, axum::extract::rejection::PathRejection>;

pub(crate) fn places(parts: Places) -> Result<(String, String), ApiError> {
    parts.map(|Path(texts)| texts).map_err(|rejection| ApiError::bad(rejection.body_text()))
}

pub(crate) fn place(part: Place) -> Result<String, ApiError> {
    part.map(|Path(text)| text).map_err(|rejection| ApiError::bad(rejection.body_text()))
}
