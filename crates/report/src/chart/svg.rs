use super::plan::{self, Line, Mark, Plane, Rows, Shape};
use super::{Chart, Kind, RuleKind, clean, cut};
use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::prelude::{Color, IntoFont, RGBColor};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{ShapeStyle, TextStyle};

/// The palette of Okabe and Ito without black and yellow, which need a light or a dark ground.
///
/// # Source
/// Okabe & Ito, "Color Universal Design", 2008.
const COLORS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xd5, 0x5e, 0x00),
];
/// Reads on white and on black with a contrast above 4 : 1.
const NEUTRAL: RGBColor = RGBColor(0x78, 0x78, 0x78);
/// How many marks differ in shape; colours come again after half of them.
const SHAPES: usize = 12;
/// Height of a line of text.
const LINE: i32 = 18;
/// Height that the plot has at least, its axes included.
const LEAST_PLOT: i32 = 230;
/// Size of ordinary text, and the width that is computed for one character of it.
const TEXT: f64 = 12.0;
const CHARACTER: f64 = 6.9;

pub(super) fn render(chart: &Chart, width: u32, height: u32) -> String {
    let width_px = width as i32;
    let mut out = String::new();
    let rows = if chart.categories.is_empty() { None } else { plan::rows(chart) };
    let plane = if chart.categories.is_empty() { plan::plane(chart) } else { None };
    let head = Head::of(chart, width_px);
    let height = match &rows {
        Some(rows) => (head.height + row_height(width_px) * rows.rows.len() as i32 + 56) as u32,
        None if plane.is_none() => (head.height + 60) as u32,
        // However long the legend is, the plot itself stays readable.
        None => height.max((head.height + LEAST_PLOT) as u32),
    };
    let mut pen = Pen { backend: SVGBackend::with_string(&mut out, (width, height)) };
    head.draw(&mut pen);
    match (&plane, &rows) {
        (Some(plane), _) => draw_plane(&mut pen, chart, plane, head.height, (width_px, height as i32)),
        (_, Some(rows)) => draw_rows(&mut pen, chart, rows, head.height, width_px),
        _ => pen.text("no data", (width_px / 2, head.height + 20), HPos::Center, TEXT, false),
    }
    let _ = pen.backend.present();
    drop(pen);
    named(chart, out)
}

/// Says to those who can't see it what the picture shows.
fn named(chart: &Chart, svg: String) -> String {
    let label = [&chart.title, &chart.subtitle].map(|text| clean(text)).join(". ");
    svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{}\" ", escape(label.trim_matches([' ', '.']))), 1)
}

/// Text as it may stand in XML and HTML, in an attribute too.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Pixels that a text takes, about.
fn wide(text: &str) -> i32 {
    (text.chars().count() as f64 * CHARACTER).ceil() as i32
}

/// Title, subtitle and legend, broken into lines that fit.
struct Head {
    texts: Vec<(String, bool)>,
    legend: Vec<Entry>,
    height: i32,
}

/// One entry of the legend and its place.
struct Entry {
    x: i32,
    y: i32,
    sign: Sign,
    name: String,
}

/// What an entry of the legend explains.
#[derive(Clone, Copy)]
enum Sign {
    Series { index: usize, joined: bool },
    Rule { pattern: usize },
}

impl Head {
    fn of(chart: &Chart, width: i32) -> Self {
        let most = |character: f64| ((f64::from(width) - 16.0) / character) as usize;
        let mut texts: Vec<(String, bool)> = Vec::new();
        for (text, bold, character) in [(&chart.title, true, CHARACTER * 1.25), (&chart.subtitle, false, CHARACTER)] {
            texts.extend(wrap(&clean(text), most(character)).into_iter().map(|line| (line, bold)));
        }
        let mut y = 6 + LINE * texts.len() as i32;
        let lying = !chart.categories.is_empty();
        let series = chart.series.iter().enumerate().map(|(index, series)| {
            let joined = matches!(series.kind, Kind::Line | Kind::Steps) && !lying;
            (Sign::Series { index, joined }, &series.name)
        });
        // On a plane the rules have their labels beside them.
        let rules = chart.rules.iter().filter(|rule| lying && rule.kind == RuleKind::Horizontal).enumerate();
        let rules = rules.map(|(pattern, rule)| (Sign::Rule { pattern }, &rule.label));
        let mut legend = Vec::new();
        let mut x = 8;
        for (sign, name) in series.chain(rules).filter(|(_, n)| !n.is_empty()) {
            let name = cut(&clean(name), most(CHARACTER).saturating_sub(6));
            let room = wide(&name) + 46;
            if x > 8 && x + room > width - 8 {
                (x, y) = (8, y + LINE);
            }
            legend.push(Entry { x, y, sign, name });
            x += room;
        }
        let height = if legend.is_empty() { y } else { y + LINE + 2 };
        Self { texts, legend, height }
    }

    fn draw(&self, pen: &mut Pen<'_>) {
        for (place, (text, bold)) in self.texts.iter().enumerate() {
            let size = if *bold { 15.0 } else { TEXT };
            pen.text(text, (8, 6 + LINE * place as i32 + LINE / 2), HPos::Left, size, *bold);
        }
        for Entry { x, y, sign, name } in &self.legend {
            let middle = y + LINE / 2;
            match sign {
                Sign::Rule { pattern } => pen.dashed((x + 12, y + 1), (x + 12, y + LINE - 1), *pattern),
                Sign::Series { index, joined } => {
                    if *joined {
                        pen.line((*x, middle), (x + 24, middle), color_of(*index), 2);
                    }
                    pen.mark(*index, (x + 12, middle));
                }
            }
            pen.text(name, (x + 30, middle), HPos::Left, TEXT, false);
        }
    }
}

/// Breaks a text at blanks into lines of at most `most` characters, at most four of them.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let (word, full) = (cut(word, most), lines.len() == 4);
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(&word);
            }
            _ if full => break,
            _ => lines.push(word),
        }
    }
    lines
}

/// The plot's inner edges in pixels.
#[derive(Clone, Copy)]
struct Frame {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl Frame {
    fn x(&self, share: f64) -> i32 {
        self.left + (share.clamp(0.0, 1.0) * f64::from(self.right - self.left)).round() as i32
    }

    fn y(&self, share: f64) -> i32 {
        self.bottom - (share.clamp(0.0, 1.0) * f64::from(self.bottom - self.top)).round() as i32
    }

    fn at(&self, mark: &Mark) -> (i32, i32) {
        (self.x(mark.x), self.y(mark.y))
    }
}

fn draw_plane(pen: &mut Pen<'_>, chart: &Chart, plane: &Plane, head: i32, (width, height): (i32, i32)) {
    let uprights = plane.lines.iter().filter(|line| line.kind == RuleKind::Vertical).count() as i32;
    // Labels of upright rules stand above the plot, with room below them for the label of a level one.
    let top = head + LINE + 4 + if uprights > 0 { uprights * LINE + 10 } else { 0 };
    let bottom = (height - 44).max(top + 40);
    let y_ticks = plane.y.ticks((((bottom - top) / 30).clamp(2, 8)) as usize);
    let gutter = y_ticks.iter().map(|(_, text)| wide(text)).max().unwrap_or(0);
    let frame = Frame { left: gutter + 14, right: width - 16, top, bottom };
    pen.text(&fit(&chart.y.caption_of(&plane.y), width - 16), (8, head + LINE / 2), HPos::Left, TEXT, false);
    for (share, text) in &y_ticks {
        let y = frame.y(*share);
        pen.grid((frame.left, y), (frame.right, y));
        pen.text(text, (frame.left - 6, y), HPos::Right, TEXT, false);
    }
    x_axis(
        pen,
        frame,
        &plane.x.ticks((((frame.right - frame.left) / 62).clamp(2, 10)) as usize),
        &chart.x.caption(),
        width,
    );
    for (index, shape) in plane.shapes.iter().enumerate() {
        draw_shape(pen, index, shape, frame);
    }
    let taken: Vec<(i32, i32)> = plane.shapes.iter().flat_map(|shape| inked(shape, frame)).collect();
    rules(pen, plane, frame, head + LINE, &taken);
}

/// The axis at the bottom: line, ticks, labels that don't touch, caption.
fn x_axis(pen: &mut Pen<'_>, frame: Frame, ticks: &[(f64, String)], caption: &str, width: i32) {
    pen.line((frame.left, frame.bottom), (frame.right, frame.bottom), NEUTRAL, 1);
    let mut free = i32::MIN;
    for (share, text) in ticks {
        let x = frame.x(*share);
        pen.line((x, frame.bottom), (x, frame.bottom + 4), NEUTRAL, 1);
        let half = wide(text) / 2 + 1;
        let middle = x.min(width - 2 - half).max(half);
        if middle - half >= free {
            pen.text(text, (middle, frame.bottom + 13), HPos::Center, TEXT, false);
            free = middle + half + 6;
        }
    }
    let caption = fit(caption, width - 16);
    let half = wide(&caption) / 2;
    let middle = ((frame.left + frame.right) / 2).min(width - 8 - half).max(8 + half);
    pen.text(&caption, (middle, frame.bottom + 32), HPos::Center, TEXT, false);
}

/// The colour of a series: with [`SHAPES`], the first one that looks like an earlier one comes after all pairs of both.
fn color_of(series: usize) -> RGBColor {
    COLORS[(series + series / SHAPES) % COLORS.len()]
}

fn draw_shape(pen: &mut Pen<'_>, index: usize, shape: &Shape, frame: Frame) {
    let color = color_of(index);
    for mark in &shape.marks {
        if let Some((low, high)) = mark.ends {
            let (x, low, high) = (frame.x(mark.x), frame.y(low), frame.y(high));
            pen.line((x, low), (x, high), color, 2);
            for (y, _) in [(low, mark.open.0), (high, mark.open.1)].into_iter().filter(|(_, open)| !open) {
                pen.line((x - 5, y), (x + 5, y), color, 2);
            }
        }
    }
    if shape.joined {
        pen.path(shape.marks.iter().map(|mark| frame.at(mark)), color);
        // Many points make a line of marks; a few of them are enough to tell the series apart.
        let gap = (frame.right - frame.left) / 6;
        let mut next = frame.left + (index as i32 * 17) % gap.max(1);
        let few = shape.points().count() <= 12;
        for mark in shape.points() {
            let at = frame.at(mark);
            if few || at.0 >= next {
                pen.mark(index, at);
                next = at.0 + gap;
            }
        }
        return;
    }
    for mark in &shape.marks {
        pen.mark(index, frame.at(mark));
    }
}

/// Where the ink of a shape is: its marks, the bars of its intervals, and steps of 6 pixels along its lines.
fn inked(shape: &Shape, frame: Frame) -> Vec<(i32, i32)> {
    let mut ink: Vec<(i32, i32)> = shape.marks.iter().map(|mark| frame.at(mark)).collect();
    for mark in &shape.marks {
        if let Some((low, high)) = mark.ends {
            ink.extend((frame.y(high)..=frame.y(low)).step_by(6).map(|y| (frame.x(mark.x), y)));
        }
    }
    for pair in shape.marks.windows(2).filter(|_| shape.joined) {
        let (from, to) = (frame.at(&pair[0]), frame.at(&pair[1]));
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()) / 6;
        let between = |step: i32| (from.0 + (to.0 - from.0) * step / steps, from.1 + (to.1 - from.1) * step / steps);
        ink.extend((1..steps).map(between));
    }
    ink
}

/// Left, top, right and bottom in pixels.
type Area = (i32, i32, i32, i32);

/// Rules with their labels: upright ones above the plot, a line each; level ones where they hide the fewest points.
fn rules(pen: &mut Pen<'_>, plane: &Plane, frame: Frame, strip: i32, taken: &[(i32, i32)]) {
    let mut boxes: Vec<Area> = Vec::new();
    let (uprights, levels): (Vec<&Line>, Vec<&Line>) =
        plane.lines.iter().partition(|line| line.kind == RuleKind::Vertical);
    for (row, line) in uprights.into_iter().enumerate() {
        let (x, y) = (frame.x(line.at), strip + 4 + row as i32 * LINE);
        pen.dashed((x, y + LINE / 2 + 7), (x, frame.bottom), line.pattern);
        let label = fit(&line.label, frame.right - 4);
        let half = wide(&label) / 2;
        let middle = x.min(frame.right - half).max(4 + half);
        pen.text(&label, (middle, y + LINE / 2), HPos::Center, TEXT, false);
        boxes.push((middle - half, y, middle + half, y + LINE - 2));
        boxes.push((x - 4, y, x + 4, frame.bottom));
    }
    let strokes: Vec<Area> =
        levels.iter().map(|line| frame.y(line.at)).map(|y| (frame.left, y - 1, frame.right, y + 1)).collect();
    for line in levels {
        let y = frame.y(line.at);
        pen.dashed((frame.left, y), (frame.right, y), line.pattern);
        let label = fit(&line.label, frame.right - frame.left);
        // Off the other rules' strokes; where they lie too close for that, on them rather than nowhere.
        let clear = roomiest(&label, y, frame, taken, &[&boxes[..], &strokes].concat());
        let Some(best) = clear.or_else(|| roomiest(&label, y, frame, taken, &boxes)) else { continue };
        pen.text(&label, (best.0, (best.1 + best.3) / 2), HPos::Left, TEXT, false);
        boxes.push(best);
    }
}

/// The box beside a level rule in which a label hides the fewest points and no other label.
fn roomiest(label: &str, y: i32, frame: Frame, taken: &[(i32, i32)], boxes: &[Area]) -> Option<Area> {
    let width = wide(label);
    let slack = (frame.right - frame.left - width - 8).max(0);
    let tops = [y - LINE, y + 2];
    let lefts = || (0..=16).rev().map(move |part| frame.left + 4 + slack * part / 16);
    let candidates =
        tops.into_iter().flat_map(|top| lefts().map(move |left| (left, top, left + width, top + LINE - 2)));
    let free = |b: &Area| {
        b.1 >= frame.top - LINE
            && b.3 <= frame.bottom
            && !boxes.iter().any(|o| b.0 < o.2 && o.0 < b.2 && b.1 < o.3 && o.1 < b.3)
    };
    candidates.filter(free).min_by_key(|b| {
        taken.iter().filter(|p| p.0 >= b.0 - 6 && p.0 <= b.2 + 6 && p.1 >= b.1 - 4 && p.1 <= b.3 + 4).count()
    })
}

/// Names stand beside their rows, or above them where that would leave too little room.
fn row_height(width: i32) -> i32 {
    if width < 480 { 42 } else { 28 }
}

fn draw_rows(pen: &mut Pen<'_>, chart: &Chart, plan: &Rows, head: i32, width: i32) {
    let above = width < 480;
    let longest = plan.rows.iter().map(|row| wide(&row.name)).max().unwrap_or(0);
    let left = if above { 14 } else { longest.min(width * 2 / 5) + 20 };
    let height = row_height(width);
    let top = head + 4;
    let bottom = top + height * plan.rows.len() as i32;
    let frame = Frame { left, right: width - 18, top, bottom };
    let ticks = plan.values.ticks((((frame.right - frame.left) / 70).clamp(2, 10)) as usize);
    for (share, _) in &ticks {
        pen.grid((frame.x(*share), top), (frame.x(*share), bottom));
    }
    for line in &plan.lines {
        pen.dashed((frame.x(line.at), top), (frame.x(line.at), bottom), line.pattern);
    }
    for (place, row) in plan.rows.iter().enumerate() {
        let start = top + height * place as i32;
        let (name_at, from) = if above { ((8, start + 9), start + 18) } else { ((8, start + height / 2), start) };
        pen.text(&fit(&row.name, if above { width - 16 } else { left - 16 }), name_at, HPos::Left, TEXT, false);
        let room = start + height - from;
        for (series, mark) in &row.marks {
            let y = from + room * (row.lane(*series) as i32 * 2 + 1) / (row.lanes() as i32 * 2);
            match chart.series.get(*series).map(|series| &series.kind) {
                // Bars of two series differ in colour alone, their marks in shape.
                Some(Kind::Bars) => {
                    pen.bar(*series, mark, frame, y);
                    pen.mark(*series, (frame.x(mark.x), y));
                }
                _ => draw_lying(pen, *series, mark, frame, y),
            }
        }
    }
    x_axis(pen, frame, &ticks, &chart.y.caption_of(&plan.values), width);
    if plan.left_out > 0 {
        pen.text(&format!("and {} more", plan.left_out), (8, bottom + 13), HPos::Left, TEXT, false);
    }
}

fn draw_lying(pen: &mut Pen<'_>, series: usize, mark: &Mark, frame: Frame, y: i32) {
    let color = color_of(series);
    if let Some((low, high)) = mark.ends {
        let (first, last) = (frame.x(low), frame.x(high));
        if let Some(wait) = mark.wait {
            pen.thin((frame.x(wait), y), (first, y), color);
        }
        pen.line((first, y), (last, y), color, 2);
        for (x, open, way) in [(first, mark.open.0, 5), (last, mark.open.1, -5)] {
            if open {
                pen.path([(x + way, y - 5), (x, y), (x + way, y + 5)].into_iter(), color);
            } else {
                pen.line((x, y - 5), (x, y + 5), color, 2);
            }
        }
    }
    pen.mark(series, (frame.x(mark.x), y));
}

/// A text cut to the pixels there are.
fn fit(text: &str, pixels: i32) -> String {
    cut(text, (f64::from(pixels.max(0)) / CHARACTER) as usize)
}

/// A stroke or a filling as plotters wants it.
fn stroke(color: RGBColor, opacity: f64, thick: u32) -> ShapeStyle {
    color.mix(opacity).stroke_width(thick)
}

/// Draws into a string, which can't fail.
struct Pen<'a> {
    backend: SVGBackend<'a>,
}

impl Pen<'_> {
    fn line(&mut self, from: (i32, i32), to: (i32, i32), color: RGBColor, thick: u32) {
        let _ = self.backend.draw_line(from, to, &stroke(color, 1.0, thick));
    }

    /// What is told of beside what counts.
    fn thin(&mut self, from: (i32, i32), to: (i32, i32), color: RGBColor) {
        let _ = self.backend.draw_line(from, to, &stroke(color, 0.5, 1));
    }

    fn grid(&mut self, from: (i32, i32), to: (i32, i32)) {
        let _ = self.backend.draw_line(from, to, &stroke(NEUTRAL, 0.3, 1));
    }

    /// A dashed line, level or upright.
    fn dashed(&mut self, from: (i32, i32), to: (i32, i32), pattern: usize) {
        let (dash, gap) = [(5, 4), (2, 3), (11, 4)][pattern % 3];
        let length = (to.0 - from.0).max(to.1 - from.1);
        let (dx, dy) = if to.0 > from.0 { (1, 0) } else { (0, 1) };
        for start in (0..length).step_by(dash + gap) {
            let end = (start + dash as i32).min(length);
            let point = |along: i32| (from.0 + dx * along, from.1 + dy * along);
            let _ = self.backend.draw_line(point(start), point(end), &stroke(NEUTRAL, 1.0, 2));
        }
    }

    fn path(&mut self, points: impl Iterator<Item = (i32, i32)>, color: RGBColor) {
        let _ = self.backend.draw_path(points, &stroke(color, 1.0, 2));
    }

    /// A thick line along the interval, lower than the mark at its end.
    fn bar(&mut self, series: usize, mark: &Mark, frame: Frame, y: i32) {
        let Some((low, high)) = mark.ends else { return };
        let style = stroke(color_of(series), 1.0, 1);
        let _ = self.backend.draw_rect((frame.x(low), y - 3), (frame.x(high), y + 3), &style, true);
    }

    /// The mark of a series; the shapes differ as well as the colours.
    fn mark(&mut self, series: usize, (x, y): (i32, i32)) {
        let style = stroke(color_of(series), 1.0, 2);
        let mut outline = |points: &[(i32, i32)]| self.backend.draw_path(points.iter().copied(), &style);
        let _ = match series % SHAPES {
            6 => self.backend.fill_polygon([(x, y + 5), (x + 5, y - 4), (x - 5, y - 4)], &style),
            7 => self.backend.draw_rect((x - 4, y - 4), (x + 4, y + 4), &style, false),
            8 => outline(&[(x, y - 5), (x + 5, y + 4), (x - 5, y + 4), (x, y - 5)]),
            9 => outline(&[(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y), (x, y - 5)]),
            10 => self
                .backend
                .draw_line((x - 5, y), (x + 5, y), &style)
                .and_then(|()| self.backend.draw_line((x, y - 5), (x, y + 5), &style)),
            11 => outline(&[(x, y + 5), (x + 5, y - 4), (x - 5, y - 4), (x, y + 5)]),
            0 => self.backend.draw_circle((x, y), 4, &style, true),
            1 => self.backend.draw_rect((x - 4, y - 4), (x + 4, y + 4), &style, true),
            2 => self.backend.fill_polygon([(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)], &style),
            3 => self.backend.fill_polygon([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)], &style),
            4 => self.backend.draw_circle((x, y), 4, &style, false),
            _ => self
                .backend
                .draw_line((x - 4, y - 4), (x + 4, y + 4), &style)
                .and_then(|()| self.backend.draw_line((x - 4, y + 4), (x + 4, y - 4), &style)),
        };
    }

    fn text(&mut self, text: &str, at: (i32, i32), side: HPos, size: f64, bold: bool) {
        // The backend divides the size by this factor.
        let font = ("sans-serif", size * 1.24).into_font();
        let font = if bold { font.style(plotters::style::FontStyle::Bold) } else { font };
        let style = TextStyle::from(font).color(&NEUTRAL).pos(Pos::new(side, VPos::Center));
        let _ = self.backend.draw_text(text, &style, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_differ_in_colour_or_shape_as_long_as_there_are_pairs_of_both() {
        let pairs = SHAPES * COLORS.len();
        let looks: std::collections::HashSet<_> =
            (0..pairs).map(|series| (color_of(series).rgb(), series % SHAPES)).collect();
        assert_eq!(looks.len(), pairs);
    }
}
