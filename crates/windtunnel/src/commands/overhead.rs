//! `windtunnel overhead`: what the layers below TCP cost.

use crate::edge::{Exit, Outcome};

/// What the layers below TCP cost: bytes on the wire, efficiency, goodput ceiling.
#[derive(Debug, clap::Args)]
pub(crate) struct OverheadArgs {}

/// Runs the command.
///
/// # Errors
/// A [`Failure`](crate::edge::Failure) that says what to try.
pub(crate) fn run(_args: &OverheadArgs) -> Outcome {
    Ok(Exit::Done)
}
