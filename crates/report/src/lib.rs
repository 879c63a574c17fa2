//! What is told: one file per form of report.
//!
//! [`TuneReport`] is what tuning came to. Its JSON form is the contract of `windtunnel tune --json`; from the same object
//! come the report for terminals, the self-contained HTML page and the CSV table, so that no two of them can disagree.
//! [`Chart`] is one description of a chart, drawn for terminals and as SVG.
//!
//! Pure: everything comes back as a `String`; the caller writes it.
#![forbid(unsafe_code)]

/// One description of a chart, drawn for terminals and as SVG.
mod chart;
/// The table of trials as CSV.
mod csv;
/// The report as one HTML page.
mod html;
/// The report for terminals.
mod terminal;
/// What tuning came to.
pub mod tune;
/// How figures are written.
mod words;

pub use chart::{Axis, Chart, Kind, Rule, RuleKind, Scale, Series};
pub use html::Page;
pub use tune::{LimitedBy, LimitsReport, Measured, PlanStep, Run, Setting, TuneInputs, TuneReport};
