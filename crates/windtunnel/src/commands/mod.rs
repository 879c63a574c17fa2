//! One file per command. Each has its clap arguments, and `run`, which returns an [`Outcome`](crate::edge::Outcome).

/// Framing arithmetic on the command line.
pub(crate) mod overhead;
