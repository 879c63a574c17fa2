//! What commands share of the command line.

/// What the Tab key offers in bash.
pub(crate) mod bash;
/// Forms in which a command answers.
pub(crate) mod forms;
/// Lines of examples and footnotes.
pub(crate) mod help_lines;
/// Flags of commands that probe.
pub(crate) mod probe;
/// Ctrl-C.
pub(crate) mod signals;
/// What was typed.
pub(crate) mod typed;
/// Values of flags.
pub(crate) mod values;
