//! One file per command. Each has its clap arguments, and `run`, which returns an [`Outcome`](crate::edge::Outcome).

/// What works on this machine.
pub(crate) mod doctor;
/// Every trial ever run.
pub(crate) mod journal;
/// The lab's paths, and programs in it.
pub(crate) mod lab;
/// Framing arithmetic on the command line.
pub(crate) mod overhead;
/// An experiment from the journal in any form.
pub(crate) mod report;
/// The main job: vary, measure, decide.
pub(crate) mod tune;
