//! The program's edge: exit codes, and errors as people read them.

use std::fmt::Write as _;

/// How a command that ran to its end answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Done, and the answer is "no": no difference shown, drift found, comparison differs.
    No,
    /// A command that we ran for the user ended with this code.
    Passed(u8),
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::No => Self::from(1),
            Exit::Passed(code) => Self::from(code),
        }
    }
}

/// Whose fault it is; fixes the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// What was asked makes no sense: 2.
    Usage,
    /// The environment can't: a missing privilege, kernel feature or tool: 3.
    Environment,
    /// The far end failed: 4.
    FarEnd,
    /// Our own: 5.
    Ours,
    /// Nobody's: the user stopped it before there was an answer. 130, as shells have it.
    Stopped,
}

/// What stopped a command: what happened, the likely cause, what to try.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Whose fault it is.
    pub(crate) fault: Fault,
    /// What happened.
    pub(crate) what: String,
    /// The likely cause, if it isn't in `what`.
    pub(crate) cause: Option<String>,
    /// What to try.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// A failure of which only is known what happened.
    pub(crate) fn new(fault: Fault, what: impl Into<String>) -> Self {
        Self { fault, what: what.into(), cause: None, hint: None }
    }

    /// The command line or a file is wrong.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Fault::Usage, what)
    }

    /// This machine can't.
    pub(crate) fn environment(what: impl Into<String>) -> Self {
        Self::new(Fault::Environment, what)
    }

    /// We are wrong.
    pub(crate) fn ours(what: impl Into<String>) -> Self {
        Self::new(Fault::Ours, what)
    }

    /// Adds the likely cause.
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds what to try.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self.fault {
            Fault::Usage => 2,
            Fault::Environment => 3,
            Fault::FarEnd => 4,
            Fault::Ours => 5,
            Fault::Stopped => 130,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = format!("windtunnel: {}", self.what);
        if let Some(cause) = &self.cause {
            let _ = write!(text, "\n  cause: {cause}");
        }
        if let Some(hint) = &self.hint {
            let _ = write!(text, "\n  try:   {hint}");
        }
        f.write_str(&text)
    }
}

/// What every command returns.
pub(crate) type Outcome = Result<Exit, Failure>;

/// Prints a line on standard output; a closed pipe (`| head`) is no error.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($arg)*);
    }};
}
pub(crate) use say;
