//! What a trial is: the settings asked for, the workload, where it runs, and what came of it.
//!
//! [`Tunnel`] is the seam between the three places where a trial can run: the model (`sim`), real kernels over an
//! emulated path (`lab`) and the real path (`live`). All three turn a [`TrialSpec`] into a [`TrialOutcome`] and say what
//! they can't do. The types here are what the journal stores and the reports read.

/// What the samples of a bulk trial say.
pub mod bulk;
/// Samples as columns.
mod columns;
/// Congestion controls that were loaded for trials.
mod control;
/// Settings that hold for every trial.
mod holding;
/// Objects of JSON that are read by field and written again as they were.
pub mod kept;
/// How late the messages of a steady stream were.
mod lateness;
/// What workloads measure beyond payload and time.
mod measures;
/// What was seen of a trial.
mod observed;
/// What came of a trial.
mod outcome;
/// Pages: objects over several connections.
mod page;
/// Long transfers by their thirds.
mod soak;
/// What a trial is asked to do.
mod spec;
/// Where trials run.
mod tunnel;
/// What connections are asked to do.
mod workload;

pub use columns::SampleColumns;
pub use control::LoadedControl;
pub use holding::Holding;
pub use lateness::{MessageTimes, floor_of_stall};
pub use measures::{Exchanges, Lateness, Measures, ObjectTime, Spread, Third, UnderLoad};
pub use observed::{Observed, ObservedConnection};
pub use outcome::{Limits, PathFacts, STOPPED, Sample, Status, TrialOutcome, TrialRecord};
pub use page::{MOST_OBJECTS, Page, PageObject, USUAL_CONNECTIONS};
pub use soak::{SHORTEST_SOAK, ack_gaps, thirds};
pub use spec::{Phase, TrialSpec};
pub use tunnel::{Advice, Cancel, Tunnel, TunnelError, TunnelKind};
pub use workload::{Amount, Direction, Repeat, Scale, Workload};

/// For [`kept_object!`].
#[doc(hidden)]
pub mod json {
    pub use serde_json::{Error, Map, Value};
}
