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
    /// The exit code of the command, if one was run: 2 usage, 3 this machine can't, 4 the remote host failed, 5 our fault.
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

    /// What a command said that ended with an exit code of 2 or more: a [`wt_problem::Problem`] as JSON, or anything else as it
    /// is.
    pub(crate) fn of_exit(code: u8, stderr: &str) -> Self {
        let said = stderr.trim();
        if let Ok(problem) = serde_json::from_str::<wt_problem::Problem>(said) {
            return problem.into();
        }
        let what = if said.is_empty() { "the command ended without saying why" } else { said };
        let problem = Problem { what: what.to_owned(), cause: None, hint: None, exit_code: Some(code) };
        Self { status: status_of(code), problem }
    }
}

/// A machine that can't do what is asked is no fault of the server: 409, as for any state that forbids a request.
fn status_of(exit_code: u8) -> StatusCode {
    match exit_code {
        2 => StatusCode::BAD_REQUEST,
        3 | 130 => StatusCode::CONFLICT,
        4 => StatusCode::FAILED_DEPENDENCY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<wt_problem::Problem> for ApiError {
    fn from(problem: wt_problem::Problem) -> Self {
        let exit_code = problem.fault.code();
        let wt_problem::Problem { what, cause, hint, .. } = problem;
        Self { status: status_of(exit_code), problem: Problem { what, cause, hint, exit_code: Some(exit_code) } }
    }
}

impl From<crate::secret::NoRandom> for ApiError {
    fn from(error: crate::secret::NoRandom) -> Self {
        Self::ours(error.to_string())
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
    fn a_problem_keeps_what_happened_the_cause_and_what_to_try() {
        let problem = wt_problem::Problem::environment("can't set sack").because("EPERM").hint("sudo windtunnel");
        let said = serde_json::to_string(&problem).unwrap();
        let error = ApiError::of_exit(3, &format!("{said}\n"));
        assert_eq!(error.status, StatusCode::CONFLICT);
        assert_eq!(error.problem.what, "can't set sack");
        assert_eq!(error.problem.cause.as_deref(), Some("EPERM"));
        assert_eq!(error.problem.hint.as_deref(), Some("sudo windtunnel"));
        assert_eq!(error.problem.exit_code, Some(3));
    }

    #[test]
    fn what_is_no_problem_of_ours_is_told_as_it_is() {
        let error = ApiError::of_exit(101, "Segmentation fault\n");
        assert_eq!(
            (error.status, error.problem.what.as_str()),
            (StatusCode::INTERNAL_SERVER_ERROR, "Segmentation fault")
        );
        assert_eq!(ApiError::of_exit(2, "").problem.what, "the command ended without saying why");
    }
}
