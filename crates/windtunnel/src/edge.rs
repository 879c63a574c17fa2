//! The program's edge: exit codes, and how a command's answer is printed.

use std::io::Write as _;
pub(crate) use wt_problem::{Fault, Problem};

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

/// What every command returns.
pub(crate) type Outcome = Result<Exit, Problem>;

/// Prints a line on standard output; a closed pipe (`| head`) is no error. What it shows of files and servers can't make a
/// terminal do anything.
macro_rules! say {
    ($($arg:tt)*) => { $crate::edge::print_line(&format!($($arg)*)) };
}

/// See [`say!`].
pub(crate) fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", wt_units::harmless(line));
}
pub(crate) use say;
