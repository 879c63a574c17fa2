use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// What happened, the likely cause, and what to try.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What happened.
    pub(crate) what: String,
    /// The likely cause, if it is known.
    pub(crate) cause: Option<String>,
    /// What to try, if anything helps.
    pub(crate) hint: Option<String>,
    /// The exit code of the command, if one was run: 2 usage, 3 this machine can't, 4 the far end failed, 5 our fault.
    pub(crate) exit_code: Option<u8>,
}

/// The body of every answer that isn't a success.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: Problem,
}

/// A problem, and the status that it is answered with.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) problem: Problem,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self { status, problem: Problem { what: what.into(), cause: None, hint: None, exit_code: None } }
    }

    /// The request is wrong.
    pub(crate) fn bad(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }

    /// There is no such thing.
    pub(crate) fn missing(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// Our own fault.
    pub(crate) fn ours(what: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem.hint = Some(hint.into());
        self
    }

    /// What a command said that ended with an exit code of 2 or more.
    ///
    /// A machine that can't do what is asked is no fault of the server: 409, as for any state that forbids a request.
    pub(crate) fn of_exit(code: u8, stderr: &str) -> Self {
        let status = match code {
            2 => StatusCode::BAD_REQUEST,
            3 | 130 => StatusCode::CONFLICT,
            4 => StatusCode::FAILED_DEPENDENCY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, problem: Problem { exit_code: Some(code), ..Problem::read(stderr) } }
    }
}

impl From<crate::secret::NoRandom> for ApiError {
    fn from(error: crate::secret::NoRandom) -> Self {
        Self::ours(error.to_string())
    }
}

impl Problem {
    /// Takes a message of the command line apart.
    fn read(stderr: &str) -> Self {
        let text = stderr.trim();
        let text = text.strip_prefix("windtunnel: ").or_else(|| text.strip_prefix("error: ")).unwrap_or(text);
        let text = text.split("\n\nFor more information").next().unwrap_or(text);
        let text = text.split("\n\nUsage:").next().unwrap_or(text);
        let (text, hint) = cut(text, "\n  try:   ");
        let (what, cause) = cut(text, "\n  cause: ");
        let what = if what.is_empty() { "the command ended without saying why" } else { what };
        Self { what: what.trim_end().to_owned(), cause, hint, exit_code: None }
    }
}

fn cut<'a>(text: &'a str, at: &str) -> (&'a str, Option<String>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after.trim().to_owned())),
        None => (text, None),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, axum::Json(ErrorBody { error: self.problem })).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_apart_into_what_cause_and_hint() {
        let error = ApiError::of_exit(3, "windtunnel: can't set sack\n  cause: EPERM\n  try:   sudo windtunnel\n");
        assert_eq!(error.status, StatusCode::CONFLICT);
        assert_eq!(error.problem.what, "can't set sack");
        assert_eq!(error.problem.cause.as_deref(), Some("EPERM"));
        assert_eq!(error.problem.hint.as_deref(), Some("sudo windtunnel"));
        assert_eq!(error.problem.exit_code, Some(3));
    }

    #[test]
    fn usage_of_the_command_line_is_left_out() {
        let error = ApiError::of_exit(2, "error: there is no knob \"x\"\n\nFor more information, try '--help'.\n");
        assert_eq!((error.status, error.problem.what.as_str()), (StatusCode::BAD_REQUEST, "there is no knob \"x\""));
        assert_eq!(error.problem.cause, None);
    }
}
