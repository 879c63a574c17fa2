use super::plan::{self, Line, Mark, Plane, Rows, Shape};
use super::{Chart, Kind, RuleKind, clean, cut, cut_middle};
use crate::fold::fold;

/// Marks of the series; they differ without colour.
const MARKS: [char; 12] = ['●', '■', '▲', '◆', '○', '×', '▼', '□', '△', '◇', '+', '▽'];
/// The palette of Okabe and Ito as near as 256 colours come to it, without black and yellow.
const COLORS: [u8; 6] = [32, 172, 36, 175, 74, 166];
/// Dashes of level and of upright rules; they differ as the marks do.
const LEVEL: [char; 3] = ['╌', '┈', '═'];
const UPRIGHT: [char; 3] = ['┆', '┊', '║'];
/// In place of a series' number: belongs to a rule.
const RULE: u8 = u8::MAX;

pub(super) fn render(chart: &Chart, width: usize, height: usize, color: bool) -> String {
    let mut out = Vec::new();
    for head in [&chart.title, &chart.subtitle] {
        if !head.is_empty() {
            let folded = fold(&clean(head), width).into_owned();
            out.extend(folded.lines().map(|line| cut(line, width)));
        }
    }
    if chart.categories.is_empty() {
        match plan::plane(chart) {
            Some(plane) => draw_plane(chart, &plane, (width, height), color, &mut out),
            None => out.push("no data".to_owned()),
        }
    } else {
        match plan::rows(chart) {
            Some(rows) => draw_rows(chart, &rows, width, color, &mut out),
            None => out.push("no data".to_owned()),
        }
    }
    out.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn draw_plane(chart: &Chart, plane: &Plane, (width, height): (usize, usize), color: bool, out: &mut Vec<String>) {
    let legend = legend(&plane.shapes, &plane.lines, width, color);
    let rows = height.saturating_sub(out.len() + legend.len() + 4).max(4);
    let ticks = plane.y.ticks((rows / 3).clamp(2, 8));
    let gutter = ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(gutter + 3).max(10);
    let mut canvas = Canvas::new(columns, rows);
    for line in &plane.lines {
        canvas.rule(line);
    }
    let several = plane.shapes.iter().filter(|shape| !shape.marks.is_empty()).count() > 1;
    for (index, shape) in plane.shapes.iter().enumerate() {
        canvas.shape(index, shape, several);
    }
    out.push(cut(&chart.y.caption_of(&plane.y), width));
    let at_row: Vec<(usize, &str)> = ticks.iter().map(|(s, text)| (canvas.row(*s), text.as_str())).collect();
    for row in 0..rows {
        let tick = at_row.iter().find(|(at, _)| *at == row).map(|(_, text)| *text);
        let edge = if tick.is_some() { '┤' } else { '│' };
        out.push(format!("{:>gutter$} {edge}{}", tick.unwrap_or(""), canvas.line(row, color)));
    }
    let (axis, labels) = bottom(&plane.x.ticks((columns / 12).clamp(2, 8)), columns);
    out.push(format!("{:gutter$} └{axis}", ""));
    out.push(format!("{:gutter$}  {labels}", ""));
    let caption = cut(&chart.x.caption(), columns);
    let indent = gutter + 2 + (columns - caption.chars().count()) / 2;
    out.push(format!("{:indent$}{caption}", ""));
    out.extend(legend);
}

fn draw_rows(chart: &Chart, plan: &Rows, width: usize, color: bool, out: &mut Vec<String>) {
    let longest = plan.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let gutter = longest.clamp(4, width * 2 / 5);
    let columns = width.saturating_sub(gutter + 3).max(10);
    for row in &plan.rows {
        let name = cut_middle(&row.name, gutter);
        let mut canvas = Canvas::new(columns, row.lanes().max(1));
        for line in &plan.lines {
            canvas.upright(line);
        }
        for (series, mark) in &row.marks {
            match chart.series.get(*series).map(|series| &series.kind) {
                Some(Kind::Bars) => canvas.lying_bar(row.lane(*series), *series, mark),
                _ => canvas.interval(row.lane(*series), *series, mark),
            }
        }
        for place in 0..canvas.rows {
            out.push(format!("{:<gutter$} │{}", if place == 0 { &name } else { "" }, canvas.line(place, color)));
        }
    }
    if plan.left_out > 0 {
        out.push(format!("{:gutter$} │ and {} more", "", plan.left_out));
    }
    let (axis, labels) = bottom(&plan.values.ticks((columns / 10).clamp(2, 8)), columns);
    out.push(format!("{:gutter$} └{axis}", ""));
    out.push(format!("{:gutter$}  {labels}", ""));
    let caption = cut(&chart.y.caption_of(&plan.values), columns);
    let indent = gutter + 2 + (columns - caption.chars().count()) / 2;
    out.push(format!("{:indent$}{caption}", ""));
    let shapes: Vec<Shape> =
        chart.series.iter().map(|s| Shape { name: clean(&s.name), joined: false, marks: Vec::new() }).collect();
    let upright: Vec<Line> = plan.lines.iter().map(|l| Line { kind: RuleKind::Vertical, ..l.clone() }).collect();
    out.extend(legend(&shapes, &upright, width, color));
}

/// The axis at the bottom with its ticks, and the line of labels below it; labels that would touch are left out.
fn bottom(ticks: &[(f64, String)], columns: usize) -> (String, String) {
    let mut axis = vec!['─'; columns];
    let mut labels = vec![' '; columns + 1];
    let mut free = 0;
    for (share, text) in ticks {
        let at = column(*share, columns);
        axis[at] = '┬';
        let length = text.chars().count();
        let start = (at + 1).saturating_sub(length.div_ceil(2)).min((columns + 1).saturating_sub(length));
        if start < free || start + length > labels.len() {
            continue;
        }
        for (place, c) in labels[start..].iter_mut().zip(text.chars()) {
            *place = c;
        }
        free = start + length + 1;
    }
    (axis.into_iter().collect(), labels.into_iter().collect())
}

/// What the marks and rules mean, in as few lines as go.
fn legend(shapes: &[Shape], lines: &[Line], width: usize, color: bool) -> Vec<String> {
    let mut entries: Vec<(String, usize)> = Vec::new();
    for (index, shape) in shapes.iter().enumerate().filter(|(_, shape)| !shape.name.is_empty()) {
        let name = cut(&shape.name, width.saturating_sub(6));
        let mark = MARKS[index % MARKS.len()];
        let sign = if shape.joined { format!("─{mark}─") } else { mark.to_string() };
        let length = sign.chars().count() + 1 + name.chars().count();
        entries.push((format!("{} {name}", paint(&sign, index as u8, color)), length));
    }
    for line in lines.iter().filter(|line| !line.label.is_empty()) {
        let label = cut(&line.label, width.saturating_sub(6));
        let sign = if line.kind == RuleKind::Horizontal {
            LEVEL[line.pattern % 3].to_string().repeat(2)
        } else {
            UPRIGHT[line.pattern % 3].to_string()
        };
        let length = sign.chars().count() + 1 + label.chars().count();
        entries.push((format!("{sign} {label}"), length));
    }
    let mut wrapped: Vec<String> = Vec::new();
    let mut used = usize::MAX / 2;
    for (entry, length) in entries {
        if used + length + 3 > width {
            wrapped.push(format!("  {entry}"));
            used = length + 2;
        } else if let Some(last) = wrapped.last_mut() {
            last.push_str("   ");
            last.push_str(&entry);
            used += length + 3;
        }
    }
    wrapped
}

fn paint(text: &str, owner: u8, color: bool) -> String {
    if !color {
        return text.to_owned();
    }
    let number = if owner == RULE { 245 } else { COLORS[usize::from(owner) % COLORS.len()] };
    format!("\x1b[38;5;{number}m{text}\x1b[0m")
}

fn column(share: f64, columns: usize) -> usize {
    ((share.clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize).min(columns - 1)
}

/// One cell of the plot: braille dots, or a character over them.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    dots: u8,
    over: Option<char>,
    owner: u8,
}

/// Two by four dots to a cell.
struct Canvas {
    columns: usize,
    rows: usize,
    cells: Vec<Cell>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, cells: vec![Cell::default(); columns * rows] }
    }

    fn rule(&mut self, line: &Line) {
        if line.kind == RuleKind::Vertical {
            self.upright(line);
        } else {
            let row = self.row(line.at);
            (0..self.columns).for_each(|column| self.put(column, row, LEVEL[line.pattern % 3], RULE));
        }
    }

    fn upright(&mut self, line: &Line) {
        let column = column(line.at, self.columns);
        (0..self.rows).for_each(|row| self.put(column, row, UPRIGHT[line.pattern % 3], RULE));
    }

    fn shape(&mut self, index: usize, shape: &Shape, several: bool) {
        let owner = index as u8;
        for mark in &shape.marks {
            if let Some((low, high)) = mark.ends {
                self.bar(mark, low, high, owner);
            }
        }
        if shape.joined {
            for pair in shape.marks.windows(2) {
                self.segment(pair[0], pair[1], owner);
            }
            if !several && shape.marks.len() > 1 {
                return;
            }
            return self.marks_along(index, shape);
        }
        for mark in &shape.marks {
            self.put(column(mark.x, self.columns), self.row(mark.y), MARKS[index % MARKS.len()], owner);
        }
    }

    /// Some marks along a line, so that it can be told from the others without colour.
    fn marks_along(&mut self, index: usize, shape: &Shape) {
        let gap = (self.columns / 5).max(4);
        let mut next = 2 + index * 3;
        for mark in shape.points() {
            let at = column(mark.x, self.columns);
            if at >= next || shape.marks.len() == 1 {
                self.put(at, self.row(mark.y), MARKS[index % MARKS.len()], index as u8);
                next = at + gap;
            }
        }
    }

    fn bar(&mut self, mark: &Mark, low: f64, high: f64, owner: u8) {
        let (top, bottom, at) = (self.row(high), self.row(low), column(mark.x, self.columns));
        for row in top..=bottom {
            let sign = match row {
                row if row == top && !mark.open.1 => '┬',
                row if row == bottom && !mark.open.0 => '┴',
                _ => '│',
            };
            self.put(at, row, sign, owner);
        }
    }

    /// A mark in a row with its interval from left to right.
    fn interval(&mut self, row: usize, series: usize, mark: &Mark) {
        let owner = series as u8;
        if let Some((low, high)) = mark.ends {
            let (first, last) = (column(low, self.columns), column(high, self.columns));
            let wait = mark.wait.map_or(first, |wait| column(wait, self.columns));
            (wait..first).for_each(|column| self.put(column, row, '┄', owner));
            (first..=last).for_each(|column| self.put(column, row, '─', owner));
            self.put(first, row, if mark.open.0 { '◁' } else { '├' }, owner);
            self.put(last, row, if mark.open.1 { '▷' } else { '┤' }, owner);
        }
        self.put(column(mark.x, self.columns), row, MARKS[series % MARKS.len()], owner);
    }

    /// A bar in a row, in a filling of its series.
    fn lying_bar(&mut self, row: usize, series: usize, mark: &Mark) {
        let (low, high) = mark.ends.unwrap_or((mark.x, mark.x));
        let filling = ['█', '▒', '▓', '░'][series % 4];
        let columns = column(low, self.columns)..=column(high, self.columns);
        columns.for_each(|column| self.put(column, row, filling, series as u8));
        self.put(column(mark.x, self.columns), row, MARKS[series % MARKS.len()], series as u8);
    }

    /// A straight line in dots.
    fn segment(&mut self, from: Mark, to: Mark, owner: u8) {
        let dot = |mark: Mark| {
            let x = mark.x.clamp(0.0, 1.0) * (self.columns * 2 - 1) as f64;
            let y = (1.0 - mark.y.clamp(0.0, 1.0)) * (self.rows * 4 - 1) as f64;
            (x, y)
        };
        let ((x0, y0), (x1, y1)) = (dot(from), dot(to));
        let steps = (x1 - x0).abs().max((y1 - y0).abs()).ceil().max(1.0);
        for step in 0..=steps as usize {
            let share = step as f64 / steps;
            self.dot((x0 + (x1 - x0) * share).round() as usize, (y0 + (y1 - y0) * share).round() as usize, owner);
        }
    }

    fn dot(&mut self, x: usize, y: usize, owner: u8) {
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        if let Some(cell) = self.cells.get_mut((y / 4) * self.columns + x / 2) {
            cell.dots |= BITS[x % 2][y % 4];
            cell.owner = owner;
            // A line hides a rule, never a mark.
            cell.over = cell.over.filter(|c| !LEVEL.contains(c) && !UPRIGHT.contains(c));
        }
    }

    fn put(&mut self, column: usize, row: usize, sign: char, owner: u8) {
        if let Some(cell) = self.cells.get_mut(row * self.columns + column) {
            cell.over = Some(sign);
            cell.owner = owner;
        }
    }

    fn row(&self, share: f64) -> usize {
        self.rows - 1 - column(share, self.rows.max(1))
    }

    fn line(&self, row: usize, color: bool) -> String {
        let cells = &self.cells[row * self.columns..(row + 1) * self.columns];
        cells.iter().fold(String::new(), |mut line, cell| {
            match (cell.over, cell.dots) {
                (Some(sign), _) => line.push_str(&paint(&sign.to_string(), cell.owner, color)),
                (None, 0) => line.push(' '),
                (None, dots) => {
                    let sign = char::from_u32(0x2800 + u32::from(dots)).unwrap_or('·');
                    line.push_str(&paint(&sign.to_string(), cell.owner, color));
                }
            }
            line
        })
    }
}
