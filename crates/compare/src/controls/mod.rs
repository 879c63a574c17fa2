//! Several congestion controls over one emulated path, in rounds.

/// A comparison of the journal, assessed again.
mod again;
/// What comes out.
mod answer;
/// From trials to the answer.
mod assess;
/// Results of another flow beside the trials' own.
mod beside;
/// The pictures.
mod charts;
/// What is compared, with its trials.
mod control;
/// As a page.
mod page;
/// What is asked for.
mod request;
/// What is made to happen in each trial.
mod scripted;
/// From the first round to the last.
mod session;
/// The unit in which goodput is written.
mod units;
/// What is said.
mod words;

pub use again::again;
pub use answer::{ControlResult, ControlsAnswer};
pub use request::{ControlsRequest, DEFAULT_CONTROLS, DisturbanceKind};
pub use session::run;
pub use units::{goodput_figure, goodput_of_run, goodput_unit};
