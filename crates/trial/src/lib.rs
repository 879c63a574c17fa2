//! What a trial is: the settings asked for, the workload, where it runs, and what came of it.
//!
//! [`Tunnel`] is the seam between the three places where a trial can run: the model (`sim`), real kernels over an
//! emulated path (`lab`) and the real path (`live`). All three turn a [`TrialSpec`] into a [`TrialOutcome`] and say what
//! they can't do. The types here are what the journal stores and the reports read.

/// What the samples of a bulk trial say.
pub mod bulk;
/// What came of a trial.
mod outcome;
/// What a trial is asked to do.
mod spec;
/// Where trials run.
mod tunnel;

pub use outcome::{Limits, PathFacts, Sample, Status, TrialOutcome, TrialRecord};
pub use spec::{Amount, Direction, Phase, TrialSpec, Workload};
pub use tunnel::{Cancel, Tunnel, TunnelError, TunnelKind};
