//! What stopped an operation, as every front end tells it: what happened, the likely cause, what to try.
//!
//! The crates that do one thing (`lab`, `load`, `host`, `probe`, …) have typed errors of their own. An operation of the
//! application puts many of them together; what its caller can do about a failure is [`Fault`], and the rest is for
//! people to read. The command line prints a [`Problem`] and exits with [`Fault::code`]; the HTTP API and `--json` write
//! it as an object. Nobody decides anything by its texts.

use serde::{Deserialize, Serialize};

/// The version of the JSON object.
const SCHEMA_VERSION: u32 = 1;

/// Whose fault it is; fixes the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The request or a file it names is invalid: 2.
    Usage,
    /// This machine can't: a missing privilege, kernel feature or tool: 3.
    Environment,
    /// The remote host failed: 4.
    Remote,
    /// Our own: 5.
    Internal,
    /// Nobody's: the user stopped it before there was an answer. 130, as shells have it.
    Stopped,
}

impl Fault {
    /// The exit code of a command that ends with it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Environment => 3,
            Self::Remote => 4,
            Self::Internal => 5,
            Self::Stopped => 130,
        }
    }
}

/// What stopped an operation: what happened, the likely cause, what to try.
///
/// # Example
/// ```
/// use wt_problem::{Fault, Problem};
///
/// let problem = Problem::usage("9000 is out of range: allowed is 68 to 1500").hint("a smaller MTU");
/// assert_eq!(problem.fault, Fault::Usage);
/// assert_eq!(problem.fault.code(), 2);
/// ```
///
/// As JSON it is `{"schema_version", "fault", "code", "what", "cause", "try"}`; `code` is the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "ProblemObject", from = "ProblemObject")]
pub struct Problem {
    /// Whose fault it is.
    pub fault: Fault,
    /// What happened.
    pub what: String,
    /// The likely cause, if it isn't in `what`.
    pub cause: Option<String>,
    /// What to try.
    pub hint: Option<String>,
}

/// A problem as JSON.
#[derive(Serialize, Deserialize)]
struct ProblemObject {
    #[serde(default)]
    schema_version: u32,
    fault: Fault,
    #[serde(default)]
    code: u8,
    what: String,
    cause: Option<String>,
    r#try: Option<String>,
}

impl From<Problem> for ProblemObject {
    fn from(problem: Problem) -> Self {
        let Problem { fault, what, cause, hint } = problem;
        Self { schema_version: SCHEMA_VERSION, fault, code: fault.code(), what, cause, r#try: hint }
    }
}

impl From<ProblemObject> for Problem {
    fn from(object: ProblemObject) -> Self {
        let ProblemObject { fault, what, cause, r#try: hint, .. } = object;
        Self { fault, what, cause, hint }
    }
}

impl Problem {
    /// A problem of which only is known what happened.
    pub fn new(fault: Fault, what: impl Into<String>) -> Self {
        Self { fault, what: what.into(), cause: None, hint: None }
    }

    /// The request or a file it names is invalid.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Fault::Usage, what)
    }

    /// This machine can't.
    pub fn environment(what: impl Into<String>) -> Self {
        Self::new(Fault::Environment, what)
    }

    /// The remote host failed.
    pub fn remote(what: impl Into<String>) -> Self {
        Self::new(Fault::Remote, what)
    }

    /// We are wrong.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(Fault::Internal, what)
    }

    /// The user stopped it.
    pub fn stopped(what: impl Into<String>) -> Self {
        Self::new(Fault::Stopped, what)
    }

    /// Adds the likely cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Problem {
    /// Three lines at most: what happened, `cause:`, `try:`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)?;
        if let Some(cause) = &self.cause {
            write!(f, "\n  cause: {cause}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  try:   {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let problem = Problem::remote("nobody answers").because("a firewall").hint("another port");
        let text = serde_json::to_string(&problem).unwrap();
        assert_eq!(
            text,
            r#"{"schema_version":1,"fault":"remote","code":4,"what":"nobody answers","cause":"a firewall","try":"another port"}"#,
            "the names are a contract"
        );
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
    }

    #[test]
    fn each_fault_has_an_exit_code_of_its_own() {
        let codes = [Fault::Usage, Fault::Environment, Fault::Remote, Fault::Internal, Fault::Stopped].map(Fault::code);
        assert_eq!(codes, [2, 3, 4, 5, 130]);
    }

    #[test]
    fn cause_and_remedy_stand_on_lines_of_their_own() {
        let problem = Problem::usage("a").because("b").hint("c");
        assert_eq!(problem.to_string(), "a\n  cause: b\n  try:   c");
        assert_eq!(Problem::usage("a").to_string(), "a");
    }
}
