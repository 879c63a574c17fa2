//! One file per form of report: terminal, JSON, HTML.

/// One description of a chart, drawn for terminals and as SVG.
mod chart;

pub use chart::{Axis, Chart, Kind, Rule, RuleKind, Scale, Series};
