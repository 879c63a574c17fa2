use super::scale::Range;
use super::{Chart, Kind, RuleKind, Series, clean};

/// More points than this are thinned before they are drawn.
const MOST_POINTS: usize = 2_000;
/// More rows than this aren't drawn; the last one says how many are missing.
const MOST_ROWS: usize = 60;

/// One mark: where it stands, and its interval if it has one. Shares of the plot's width and height, 0 bottom left.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Mark {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Ends of the interval along the axis of values.
    pub(super) ends: Option<(f64, f64)>,
    /// Where a wait before the interval begins, if there was one.
    pub(super) wait: Option<f64>,
    /// Whether the interval goes on beyond each of them.
    pub(super) open: (bool, bool),
    /// Whether it is no point, and stands there for the line's sake.
    pub(super) is_corner: bool,
}

/// What a series looks like once it is laid out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) name: String,
    /// Whether the points are joined.
    pub(super) joined: bool,
    pub(super) marks: Vec<Mark>,
}

impl Shape {
    /// The marks that are points.
    pub(super) fn points(&self) -> impl Iterator<Item = &Mark> + '_ {
        self.marks.iter().filter(|mark| !mark.is_corner)
    }
}

/// A rule that lies inside the plot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) kind: RuleKind,
    pub(super) at: f64,
    pub(super) label: String,
    /// How many run the same way before it: its dashes are others than theirs.
    pub(super) pattern: usize,
}

/// A chart with numbers along both axes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plane {
    pub(super) x: Range,
    pub(super) y: Range,
    pub(super) shapes: Vec<Shape>,
    pub(super) lines: Vec<Line>,
}

/// One row of a chart with names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// Series and its marks, in the order of the series; `x` is the share along the values.
    pub(super) marks: Vec<(usize, Mark)>,
}

impl Row {
    /// How many series have marks here; each has a line of its own.
    pub(super) fn lanes(&self) -> usize {
        self.lane(usize::MAX)
    }

    /// Which line a series has.
    pub(super) fn lane(&self, series: usize) -> usize {
        let mut before: Vec<usize> = self.marks.iter().map(|(one, _)| *one).filter(|one| *one < series).collect();
        before.dedup();
        before.len()
    }
}

/// A chart with names along one axis, lying on its side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) values: Range,
    pub(super) rows: Vec<Row>,
    /// Rows that didn't fit.
    pub(super) left_out: usize,
    pub(super) lines: Vec<Line>,
}

/// The layout of a chart with numbers along x; `None` if there is nothing to show.
pub(super) fn plane(chart: &Chart) -> Option<Plane> {
    let rules = |kind| chart.rules.iter().filter(move |rule| rule.kind == kind).map(|rule| rule.at);
    let points = || chart.series.iter().flat_map(|series| series.points.iter());
    // A chart of rules alone has no data.
    let x = Range::of(&chart.x, points().map(|p| p.0))?;
    let y = Range::of(&chart.y, points().map(|p| p.1))?;
    let drawable = |p: &&(f64, f64)| x.share(p.0).is_some() && y.share(p.1).is_some();
    points().find(drawable)?;
    let x = Range::of(&chart.x, points().filter(drawable).map(|p| p.0).chain(rules(RuleKind::Vertical)))?;
    let ends = chart.series.iter().flat_map(ends);
    let y_values = points().filter(drawable).map(|p| p.1).chain(ends).chain(rules(RuleKind::Horizontal));
    let y = Range::of(&chart.y, y_values)?;
    let shapes = chart.series.iter().map(|series| shape(series, &x, &y)).collect();
    let lines = [(RuleKind::Horizontal, &y), (RuleKind::Vertical, &x)];
    let lines = lines.into_iter().flat_map(|(kind, range)| self::lines(chart, kind, range)).collect();
    Some(Plane { x, y, shapes, lines })
}

/// The rules that run one way, as far as they can be shown.
fn lines(chart: &Chart, kind: RuleKind, range: &Range) -> Vec<Line> {
    let rules = chart.rules.iter().filter(|rule| rule.kind == kind).enumerate();
    let line = |(pattern, rule): (usize, &super::Rule)| {
        Some(Line { kind, at: range.share(rule.at)?, label: clean(&rule.label), pattern })
    };
    rules.filter_map(line).collect()
}

/// Marks of one series of points in a row.
const MOST_MARKS: usize = 30;

/// The layout of a chart with names; `None` if there is nothing to show.
pub(super) fn rows(chart: &Chart) -> Option<Rows> {
    let shown = chart.categories.len().min(MOST_ROWS);
    let row_of = |x: f64| (x.is_finite() && x >= 0.0 && x.round() < shown as f64).then(|| x.round() as usize);
    let points = || chart.series.iter().flat_map(|s| s.points.iter()).filter(|p| row_of(p.0).is_some()).map(|p| p.1);
    Range::of(&chart.y, points())?;
    let rules = chart.rules.iter().filter(|rule| rule.kind == RuleKind::Horizontal);
    let ends = chart.series.iter().flat_map(ends);
    // A bar shows its value by its length, so that its begin must be seen.
    let zero = chart.series.iter().any(|series| series.kind == Kind::Bars).then_some(0.0);
    let values = Range::of(&chart.y, points().chain(ends).chain(zero).chain(rules.map(|rule| rule.at)))?;
    let mut rows: Vec<Row> =
        chart.categories.iter().take(shown).map(|name| Row { name: clean(name), marks: Vec::new() }).collect();
    for (index, series) in chart.series.iter().enumerate() {
        for (place, &(x, y)) in series.points.iter().enumerate() {
            let (Some(row), Some(share)) = (row_of(x), values.share(y)) else { continue };
            let (ends, open) = interval(series, place, &values);
            let wait = wait(series, place, &values);
            rows[row].marks.push((index, Mark { x: share, ends, wait, open, ..Mark::default() }));
        }
    }
    // A bound on the work, and on what a reader can tell apart.
    for row in &mut rows {
        let mut seen = (usize::MAX, 0);
        row.marks.retain(|(series, _)| {
            seen = if seen.0 == *series { (*series, seen.1 + 1) } else { (*series, 1) };
            let points = chart.series.get(*series).is_some_and(|series| series.kind == Kind::Points);
            seen.1 <= if points { MOST_MARKS } else { 1 }
        });
    }
    let lines = lines(chart, RuleKind::Horizontal, &values);
    Some(Rows { values, rows, left_out: chart.categories.len() - shown, lines })
}

/// All ends of a series' intervals, and where the waits before them begin.
fn ends(series: &Series) -> impl Iterator<Item = f64> {
    let ends = if let Kind::Intervals(ends) = &series.kind { ends.as_slice() } else { &[] };
    let waits = if let Kind::Waits(waits) = &series.kind { waits.as_slice() } else { &[] };
    let waits = waits.iter().flat_map(|&(from, low, high)| [from, low, high]);
    ends.iter().flat_map(|&(low, high)| [low, high]).chain(waits)
}

/// Where the wait before the interval of a point begins; nothing where it began at once.
fn wait(series: &Series, place: usize, range: &Range) -> Option<f64> {
    let Kind::Waits(waits) = &series.kind else { return None };
    waits.get(place).filter(|(from, low, _)| from < low).and_then(|(from, ..)| range.share_clamped(*from))
}

/// Where the interval of a point ends, and whether it goes on from there.
fn interval(series: &Series, place: usize, range: &Range) -> (Option<(f64, f64)>, (bool, bool)) {
    let bar = |&(_, y): &(f64, f64)| {
        // A logarithmic axis has no zero: there bars begin at its edge.
        let (value, zero) = (range.share(y)?, range.share(0.0).unwrap_or(0.0));
        Some((zero.min(value), zero.max(value)))
    };
    let between = |low: f64, high: f64| {
        let open = |end: f64| range.share(end).is_none();
        (range.share_clamped(low).zip(range.share_clamped(high)), (open(low), open(high)))
    };
    match &series.kind {
        Kind::Bars => (series.points.get(place).and_then(bar), (false, false)),
        Kind::Intervals(ends) => ends.get(place).map_or((None, (false, false)), |(low, high)| between(*low, *high)),
        Kind::Waits(waits) => waits.get(place).map_or((None, (false, false)), |(_, low, high)| between(*low, *high)),
        _ => (None, (false, false)),
    }
}

fn shape(series: &Series, x: &Range, y: &Range) -> Shape {
    let mut marks: Vec<Mark> = series
        .points
        .iter()
        .enumerate()
        .filter_map(|(place, &(px, py))| {
            let (ends, open) = interval(series, place, y);
            Some(Mark { x: x.share(px)?, y: y.share(py)?, ends, open, ..Mark::default() })
        })
        .collect();
    let joined = matches!(series.kind, Kind::Line | Kind::Steps);
    marks = if joined { thin(marks, MOST_POINTS) } else { sample(marks, MOST_POINTS) };
    if series.kind == Kind::Steps {
        marks = corners(&marks);
    }
    Shape { name: clean(&series.name), joined, marks }
}

/// At most `most` marks that lie as all of them do, and those furthest out. The lowest and the highest of each bucket would
/// show two bands where most marks lie between them.
pub(super) fn sample(marks: Vec<Mark>, most: usize) -> Vec<Mark> {
    if marks.len() <= most {
        return marks;
    }
    let furthest = [|mark: &Mark| mark.x, |mark: &Mark| mark.y].into_iter().flat_map(|of| {
        let by = |a: &&Mark, b: &&Mark| of(a).total_cmp(&of(b));
        [marks.iter().min_by(by), marks.iter().max_by(by)].into_iter().flatten()
    });
    let bucket = marks.len().div_ceil(most.saturating_sub(4).max(1));
    // Not the first of each: data that repeat themselves would lose whatever stands elsewhere in their period.
    let jump = |place: usize| (place.wrapping_mul(0x9e37_79b1) >> 7) % bucket;
    let picked = marks.chunks(bucket).enumerate().filter_map(|(place, chunk)| chunk.get(jump(place)));
    picked.chain(furthest).copied().collect()
}

/// At most `most` marks of a line: of each bucket the lowest and the highest, so that no peak is lost. The ends stay.
pub(super) fn thin(marks: Vec<Mark>, most: usize) -> Vec<Mark> {
    if marks.len() <= most {
        return marks;
    }
    let bucket = marks.len().div_ceil((most / 2).saturating_sub(1).max(1));
    let mut thinned = Vec::with_capacity(most);
    thinned.extend(marks.first());
    for chunk in marks.chunks(bucket) {
        let by_height = |a: &(usize, &Mark), b: &(usize, &Mark)| a.1.y.total_cmp(&b.1.y);
        let (low, high) = (chunk.iter().enumerate().min_by(by_height), chunk.iter().enumerate().max_by(by_height));
        if let (Some((i, low)), Some((j, high))) = (low, high) {
            let pair = if i <= j { [*low, *high] } else { [*high, *low] };
            thinned.extend(pair.into_iter().take(if i == j { 1 } else { 2 }));
        }
    }
    thinned.extend(marks.last());
    thinned
}

/// Puts the corners of a staircase between points.
fn corners(marks: &[Mark]) -> Vec<Mark> {
    let mut stairs = Vec::with_capacity(marks.len() * 2);
    for mark in marks {
        if let Some(Mark { y, .. }) = stairs.last().copied() {
            stairs.push(Mark { x: mark.x, y, is_corner: true, ..Mark::default() });
        }
        stairs.push(*mark);
    }
    stairs
}
