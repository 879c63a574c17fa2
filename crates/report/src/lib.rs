//! What is told: one file per form of report.
//!
//! [`TuneReport`] is the report of a tuning experiment. Its JSON form is the contract of `windtunnel tune --json`; from the same object
//! come the report for terminals, the self-contained HTML page and the CSV table, so that no two of them can disagree.
//! [`Chart`] is one description of a chart, drawn for terminals and as SVG.
//!
//! [`analyse`] asks what a table or a capture tells; [`overhead_text`] draws what `wt_wire` computed.
//!
//! Pure: everything comes back as a `String`; the caller writes it.
#![forbid(unsafe_code)]

/// Tables and captures as one question.
mod analyse;
/// The connections of a capture.
mod capture;
/// One description of a chart, drawn for terminals and as SVG.
mod chart;
/// The table of trials as CSV.
mod csv;
/// Lines that fit a terminal.
mod fold;
/// The report as one HTML page.
mod html;
/// What the layers below TCP cost.
mod overhead;
/// Text for terminals that know no more than ASCII.
mod plain;
/// Tables that somebody measured.
mod tables;
/// The report for terminals.
mod terminal;
/// Report of a tuning experiment.
pub mod tune;
/// How figures are written.
mod words;

pub use analyse::{AnalyseAnswer, AnalyseError, AnalyseRequest, analyse, analyse_means};
pub use capture::capture_text;
pub use chart::{Axis, Chart, Kind, Rule, RuleKind, Scale, Series};
pub use fold::{command_lines, fold, table, tables};
pub use html::{Filmstrip, Page};
pub use overhead::{overhead_chart, overhead_text, overhead_words_text};
pub use plain::ascii;
pub use tables::{table_charts, table_text};
pub use terminal::{UNKNOWN_WIDTH, wrap};
pub use tune::{
    AllTrials, Answer, AnswerAction, AnswerHost, AnswerStep, LimitedBy, LimitsReport, NewComparison, PlanStep,
    RetypedOptions, Run, RunFacts, Setting, TrialFigure, TuneInputs, TuneReport,
};
pub use words::{date, times_of};
