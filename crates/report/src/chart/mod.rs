//! One description of a chart, and its two renderings: for a terminal and as SVG.
//!
//! What this leaves out: stacked series, second axes, dates. A value that isn't finite, or that isn't
//! positive on a logarithmic axis, is skipped.

/// Points, rows and marks after cleaning, in shares of the plot's width and height.
mod plan;
/// Ranges of axes, their ticks and how numbers are written on them.
mod scale;
/// The rendering as SVG.
mod svg;
/// The rendering for terminals.
mod terminal;

pub(crate) use svg::escape;

/// How values are laid out along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal steps are equal differences.
    #[default]
    Linear,
    /// Equal steps are doublings; ticks of bytes are binary (KiB).
    Log2,
    /// Equal steps are factors of ten.
    Log10,
}

/// What is laid out along one side of the chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Axis {
    /// What the values are: `goodput`.
    pub label: String,
    /// Their unit: `Mbit/s`, `bytes`; empty for bare numbers.
    pub unit: String,
    /// How they are laid out.
    pub scale: Scale,
    /// What stands at 0, 1 and so on in place of numbers, where the values count things with names.
    pub names: Vec<String>,
}

/// How a series is drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Kind {
    /// Straight lines from point to point.
    #[default]
    Line,
    /// A mark for each point.
    Points,
    /// A level that holds until the next point.
    Steps,
    /// A mark with an interval: low and high of each point, in the order of the points. An infinite end runs to the
    /// edge of the plot.
    Intervals(Vec<(f64, f64)>),
    /// The same with a thin line before each interval, for a wait that is none of it: where that begins, low and high of each point.
    Waits(Vec<(f64, f64, f64)>),
    /// Bars that begin at zero, where there are categories; elsewhere as points.
    Bars,
}

/// Points that belong together. With categories, x is the index of the category.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// What the legend calls it; empty keeps it out of the legend.
    pub name: String,
    /// How it is drawn.
    pub kind: Kind,
    /// The points, (x, y).
    pub points: Vec<(f64, f64)>,
}

/// Which way a rule runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// At a value of y.
    Horizontal,
    /// At a value of x.
    Vertical,
}

/// A line through the whole plot: a limit, a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Which way it runs.
    pub kind: RuleKind,
    /// The value at which it stands.
    pub at: f64,
    /// What it means.
    pub label: String,
}

/// A chart, before it is drawn anywhere.
///
/// With [`categories`](Self::categories) the chart lies on its side: one row for each name, values from left to right.
///
/// # Example
/// ```
/// use wt_report::{Axis, Chart, Series};
/// let chart = Chart {
///     title: "Goodput".into(),
///     x: Axis::linear("MTU", "bytes"),
///     y: Axis::linear("efficiency", "%"),
///     series: vec![Series::line("ADSL", vec![(1400.0, 85.1), (1444.0, 85.45), (1454.0, 82.6)])],
///     ..Chart::default()
/// };
/// assert!(chart.to_terminal(80, 16, false).contains("Goodput"));
/// assert!(chart.to_svg(720, 400).starts_with("<svg "));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// What it shows; left out if empty.
    pub title: String,
    /// What must be known to read it; left out if empty.
    pub subtitle: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Lines through the whole plot.
    pub rules: Vec<Rule>,
    /// Names in place of numbers along x.
    pub categories: Vec<String>,
}

impl Axis {
    /// The places of things with names: the first at 0, the next at 1.
    #[must_use]
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Self {
        Self { names, ..Self::linear(label, "") }
    }

    /// Equal differences are equal steps.
    #[must_use]
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear, names: Vec::new() }
    }

    /// Equal factors are equal steps, ticks at powers of two.
    #[must_use]
    pub fn log2(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Log2, names: Vec::new() }
    }

    /// Equal factors are equal steps, ticks at powers of ten.
    #[must_use]
    pub fn log10(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Log10, names: Vec::new() }
    }

    /// What an axis of outcomes is called, and that it doesn't begin at 0 where that is so.
    fn caption_of(&self, range: &scale::Range) -> String {
        let caption = self.caption();
        if range.is_cut() { format!("{caption} (the axis doesn't begin at 0)") } else { caption }
    }

    /// Label and unit as they are written beside the axis.
    fn caption(&self) -> String {
        match (clean(&self.label), clean(&self.unit)) {
            (label, unit) if unit.is_empty() => label,
            (label, unit) if label.is_empty() => unit,
            (label, unit) => format!("{label}, {unit}"),
        }
    }
}

impl Series {
    /// Straight lines from point to point.
    #[must_use]
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), kind: Kind::Line, points }
    }

    /// A mark for each point.
    #[must_use]
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), kind: Kind::Points, points }
    }

    /// A level that holds until the next point.
    #[must_use]
    pub fn steps(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), kind: Kind::Steps, points }
    }

    /// Bars from zero to each value.
    #[must_use]
    pub fn bars(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), kind: Kind::Bars, points }
    }

    /// Estimates with their intervals: (x, low, estimate, high).
    #[must_use]
    pub fn intervals(name: impl Into<String>, estimates: &[(f64, f64, f64, f64)]) -> Self {
        let points = estimates.iter().map(|&(x, _, y, _)| (x, y)).collect();
        let ends = estimates.iter().map(|&(_, low, _, high)| (low, high)).collect();
        Self { name: name.into(), kind: Kind::Intervals(ends), points }
    }

    /// Intervals with the wait before them: (x, begin of the wait, low, estimate, high).
    #[must_use]
    pub fn waits(name: impl Into<String>, rows: &[(f64, f64, f64, f64, f64)]) -> Self {
        let points = rows.iter().map(|&(x, _, _, y, _)| (x, y)).collect();
        let ends = rows.iter().map(|&(_, from, low, _, high)| (from, low, high)).collect();
        Self { name: name.into(), kind: Kind::Waits(ends), points }
    }
}

impl Rule {
    /// A line at a value of y.
    #[must_use]
    pub fn horizontal(at: f64, label: impl Into<String>) -> Self {
        Self { kind: RuleKind::Horizontal, at, label: label.into() }
    }

    /// A line at a value of x.
    #[must_use]
    pub fn vertical(at: f64, label: impl Into<String>) -> Self {
        Self { kind: RuleKind::Vertical, at, label: label.into() }
    }
}

impl Chart {
    /// Draws the chart with characters, `width` columns (30 to 100) by about `height` lines (8 to 60).
    ///
    /// Without colour the series still differ by their marks. Characters that move the cursor are taken out of labels.
    #[must_use]
    pub fn to_terminal(&self, width: usize, height: usize, color: bool) -> String {
        terminal::render(self, width.clamp(30, 100), height.clamp(8, 60), color)
    }

    /// Draws the chart as an SVG element, `width` (240 to 4000) by `height` (120 to 4000) pixels.
    ///
    /// A chart of categories takes the height that its rows need instead, one with a long legend more than was asked. Colours read on light and on dark; a page may
    /// give `svg text` its own `fill`.
    #[must_use]
    pub fn to_svg(&self, width: u32, height: u32) -> String {
        svg::render(self, width.clamp(240, 4000), height.clamp(120, 4000))
    }
}

/// A label without characters that move a cursor or break XML.
pub(crate) fn clean(text: &str) -> String {
    let ok = |c: char| {
        !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}'..='\u{ffff}')
    };
    text.chars().map(|c| if ok(c) { c } else { ' ' }).collect()
}

/// At most `most` characters, the last one an ellipsis if some were cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// At most `most` characters, an ellipsis in the middle if some were cut: what differs at either end stays different.
pub(crate) fn cut_middle(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most || most < 3 {
        return cut(text, most);
    }
    let tail = (most - 1) / 2;
    let head: String = text.chars().take(most - 1 - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{head}…{end}")
}

#[cfg(test)]
mod tests;
