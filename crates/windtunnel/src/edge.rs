//! The program's edge: exit codes, and how a command's answer is printed.

use crate::screen::Screen;
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};
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

impl Exit {
    /// What the codes of all commands mean, those of a [`Problem`] among them.
    pub(crate) const MEANINGS: [(u8, &str); 7] = [
        (0, "Done; of what asks a question: yes (something is shown to be faster, a change holds)."),
        (1, "Done, and the answer is no: nothing is shown, or something doesn't hold."),
        (Fault::Usage.code(), "The request, or a file that it names, is invalid."),
        (Fault::Environment.code(), "This machine can't: a privilege, a kernel feature, a tool, room on a disk."),
        (Fault::Remote.code(), "The remote host failed."),
        (Fault::Internal.code(), "An error of Windtunnel's own."),
        (Fault::Stopped.code(), "Stopped (Ctrl-C) before there was an answer."),
    ];
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

/// Prints lines for people on standard output, as wide as the terminal and with its characters; a closed pipe (`| head`) is no
/// error. What they show of files and servers can't make a terminal do anything.
macro_rules! say {
    ($($arg:tt)*) => { $crate::edge::print_text(&format!($($arg)*)) };
}

/// Prints lines for programs, character by character as they are: JSON, and what is to be written into a file.
macro_rules! emit {
    ($($arg:tt)*) => { $crate::edge::print_line(&format!($($arg)*)) };
}

static SCREEN: LazyLock<Screen> = LazyLock::new(Screen::stdout);

/// Says on stderr what isn't the command's output, or that of a program that it runs.
pub(crate) fn note(line: &str) {
    let line = format!("windtunnel: {line}");
    let screen = Screen::stderr();
    let _ = writeln!(std::io::stderr().lock(), "{}", screen.harmless(&screen.fitted(&line)));
}

/// See [`say!`].
pub(crate) fn print_text(text: &str) {
    print_line(&SCREEN.fitted(text));
}

/// How wide lines on standard output may be.
pub(crate) fn room() -> usize {
    SCREEN.room()
}

/// Prints rows in columns for people, below each other where the terminal is too narrow for all; those in `right` end together.
pub(crate) fn say_table(rows: &[Vec<String>], right: &[usize]) {
    print_text(&wt_report::tables(rows, right, SCREEN.room()).join("\n"));
}

/// See [`emit!`].
pub(crate) fn print_line(line: &str) {
    put_out(&format!("{}\n", SCREEN.harmless(line)));
}

/// Prints what is to be a file, byte by byte as it is.
pub(crate) fn print_file(text: &str) {
    put_out(text);
}

fn put_out(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever closed the pipe has seen enough.
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error.to_string());
    }
}

/// Why the answer isn't on standard output, if it isn't.
static LOST: OnceLock<String> = OnceLock::new();

/// What came of a command, once all is printed.
///
/// # Errors
/// A [`Problem`] where its answer got lost: a full disk behind standard output.
pub(crate) fn printed(outcome: Outcome) -> Outcome {
    let Some(why) = LOST.get().filter(|_| outcome.is_ok()) else { return outcome };
    Err(Problem::environment(format!("the answer can't be written to standard output: {why}"))
        .hint("let it go to a place with room; what was measured is in the journal"))
}
pub(crate) use {emit, say};
