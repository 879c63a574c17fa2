use crate::chart::{clean, cut, cut_middle};
use crate::fold::{command_lines, words as unbroken};
use crate::tune::{Answer, AnswerAction, Arm, ArmState, TuneReport};
use crate::words;
use wt_experiment::VerdictKind;
use wt_trial::Scale;

/// Settings in the table at most; the report points to the others.
const MOST_ROWS: usize = 16;
/// Lines of the plot.
const PLOT: usize = 15;
/// What a row or column of a 2 × 2 is called in which a setting isn't made.
const WITHOUT: &str = "without";
/// The narrowest and the widest text that is written.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=200;
/// Columns of what is written into pipes and files: there sentences flow, commands and all.
pub const UNKNOWN_WIDTH: usize = 100;
/// So short a label says nothing: other columns go first.
const LABEL: usize = 24;

impl TuneReport {
    /// The whole report for a terminal of `width` columns (40 to 200 are used): the answer first and last, all that stands
    /// behind it between.
    #[must_use]
    pub fn to_terminal(&self, width: usize, color: bool) -> String {
        let page = Page::new(self, width, color);
        let answer = page.answer();
        let mut lines = answer.clone();
        lines.push(String::new());
        lines.extend(page.head());
        lines.extend(page.verdict());
        lines.push(String::new());
        lines.extend(page.table());
        lines.push(String::new());
        lines.extend(page.plot());
        lines.extend(page.remarks());
        lines.push(String::new());
        lines.extend(answer);
        page.text(&lines)
    }

    /// The answer alone, and that there are warnings, if there are: what fits on every screen.
    #[must_use]
    pub fn answer_to_terminal(&self, width: usize, color: bool) -> String {
        let page = Page::new(self, width, color);
        let mut lines = page.answer();
        if let Some((first, more)) = self.warnings.split_first() {
            let more = if more.is_empty() { String::new() } else { format!(" (and {} more: --full)", more.len()) };
            let wrapped = wrap(&format!("Warning: {first}{more}"), page.width, 2);
            lines.extend(wrapped.iter().map(|line| page.paint(line, "33")));
        }
        page.text(&lines)
    }
}

struct Page<'a> {
    report: &'a TuneReport,
    width: usize,
    color: bool,
}

impl<'a> Page<'a> {
    fn new(report: &'a TuneReport, width: usize, color: bool) -> Self {
        Self { report, width: width.clamp(*WIDTHS.start(), *WIDTHS.end()), color }
    }

    fn text(&self, lines: &[String]) -> String {
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The four lines.
    fn answer(&self) -> Vec<String> {
        let answer = &self.report.verdict.answer;
        let code = if answer.action == AnswerAction::Set { "1;32" } else { "1" };
        let [what, sure, to_do, kept] = &answer.lines;
        let mut lines: Vec<String> = wrap(what, self.width, 0).iter().map(|line| self.paint(line, code)).collect();
        lines.extend(wrap(sure, self.width, 2));
        if answer.steps.is_empty() || to_do.chars().count() <= self.width {
            lines.extend(wrap(to_do, self.width, 2));
        } else {
            lines.extend(self.steps(answer));
        }
        lines.extend(wrap_command(kept, self.width, 0));
        lines
    }

    /// What to type, where one line is too short for it: each command on lines of its own, so that it can be copied.
    fn steps(&self, answer: &Answer) -> Vec<String> {
        let each = answer.steps.iter().enumerate().flat_map(|(at, step)| {
            let lead = if at == 0 { "Do: " } else { "    " };
            let is_same_place = at > 0 && answer.steps[at - 1].host == step.host;
            let place = (!is_same_place).then(|| format!("{lead}{}:", step.host.place()));
            place.into_iter().chain(command_lines(&clean(&step.command), self.width, 2))
        });
        each.collect()
    }

    fn paint(&self, text: &str, code: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn head(&self) -> Vec<String> {
        let r = self.report;
        let run = format!(
            "{} ({}), {}, {}, {}",
            clean(&r.target),
            r.tunnel,
            wt_units::counted(r.rounds, "round"),
            wt_units::counted(r.trials, "trial"),
            words::duration(r.run.spent_s),
        );
        let current = format!("current settings: {}", clean(&r.current.to_string()));
        let path = r.path.known().map_or_else(|| current.clone(), |path| format!("path: {path}; {current}"));
        let lines = [run, path].into_iter().flat_map(|line| wrap(&line, self.width, 2));
        lines.map(|line| self.paint(&line, "2")).chain([String::new()]).collect()
    }

    fn verdict(&self) -> Vec<String> {
        let v = &self.report.verdict;
        std::iter::once(&v.headline)
            .chain(&v.details)
            .flat_map(|detail| wrap(&format!("· {detail}"), self.width, 2))
            .collect()
    }

    /// One row for each setting; columns that matter least go first where the terminal is narrow.
    fn table(&self) -> Vec<String> {
        let r = self.report;
        let mut arms: Vec<(usize, &Arm)> = r.arms.iter().enumerate().collect();
        arms.sort_by_key(|(_, arm)| arm.state == ArmState::NotSet);
        arms.truncate(MOST_ROWS);
        let column = |head: &str, cell: &dyn Fn(&Arm) -> String| -> Vec<String> {
            std::iter::once(head.to_owned()).chain(arms.iter().map(|(_, arm)| cell(arm))).collect()
        };
        let ranked = |arm: &Arm, text: String| if arm.is_ranked() { text } else { String::new() };
        let labels = column("setting", &|arm| clean(&arm.label));
        let mut columns = vec![
            (0, column(r.measured.head(), &|arm| r.measured.show(arm.figure))),
            (
                0,
                column("ratio", &|arm| {
                    if arm.state == ArmState::Current { "×1".into() } else { ranked(arm, words::times(arm.ratio)) }
                }),
            ),
            (2, column("delay", &|arm| arm.delay_us.map_or_else(|| "–".into(), |us| words::milliseconds(us as u64)))),
            (3, column(&format!("{} interval", r.confidence()), &|arm| ranked(arm, arm.interval()))),
            (1, column("evidence", &|arm| ranked(arm, arm.odds()))),
            (4, column("rounds", &|arm| arm.rounds.to_string())),
        ];
        let states = column("shown", &|arm| self.state(arm));
        let widest = |cells: &[String]| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let longest = widest(&labels);
        let fixed = |columns: &[(u8, Vec<String>)]| {
            columns.iter().map(|(_, cells)| widest(cells) + 2).sum::<usize>() + widest(&states) + 2
        };
        if r.arms.iter().all(|arm| arm.delay_us.is_none()) || !r.measured.is_goodput() {
            columns.retain(|(_, cells)| cells[0] != "delay");
        }
        // Those that matter least go first; of those that matter most, one that is narrow enough for the room that is left stays.
        let all = columns.clone();
        let fits = |columns: &[(u8, Vec<String>)]| fixed(columns) + longest.min(LABEL) <= self.width;
        let mut most = 4;
        while most > 0 && !fits(&columns) {
            columns.retain(|(weight, _)| *weight < most);
            most -= 1;
        }
        for weight in most + 1..=2 {
            let with: Vec<_> = all.iter().filter(|one| one.0 == weight || columns.contains(one)).cloned().collect();
            if fits(&with) {
                columns = with;
            }
        }
        let name = longest.min(self.width.saturating_sub(fixed(&columns)).max(8));
        let row = |at: usize| {
            let mut line = format!("{:<name$}", cut_middle(&labels[at], name));
            for (_, cells) in &columns {
                line.push_str(&format!("  {:>1$}", cells[at], widest(cells)));
            }
            cut(format!("{line}  {}", states[at]).trim_end(), self.width)
        };
        let mut lines = vec![self.paint(&row(0), "2")];
        for (at, (number, arm)) in arms.iter().enumerate() {
            let line = row(at + 1);
            let chosen = *number == r.verdict.arm && r.verdict.kind == VerdictKind::Faster;
            let code = if arm.state == ArmState::NotSet { "9;2" } else { "1;32" };
            lines.push(if chosen || arm.state == ArmState::NotSet { self.paint(&line, code) } else { line });
        }
        let has_delay = |columns: &[(u8, Vec<String>)]| columns.iter().any(|(_, cells)| cells[0] == "delay");
        if has_delay(&all) && !has_delay(&columns) {
            lines.extend(self.delays(&arms));
        }
        let shows_intervals = columns.iter().any(|(_, cells)| cells[0].ends_with("interval"));
        if shows_intervals && r.arms.iter().any(|arm| arm.is_ranked() && arm.interval().starts_with('~')) {
            lines.push(self.paint("~ estimate, not yet proven", "2"));
        }
        lines.extend(self.cells());
        lines.extend(self.losses());
        if r.arms.len() > MOST_ROWS {
            lines.push(format!("and {} more, in --json and --html", r.arms.len() - MOST_ROWS));
        }
        lines
    }

    /// The delay of each setting, where the table has no room for it.
    fn delays(&self, arms: &[(usize, &Arm)]) -> Vec<String> {
        let known = |arm: &Arm| Some(format!("{} {}", clean(&arm.label), words::milliseconds(arm.delay_us? as u64)));
        let known: Vec<String> = arms.iter().filter_map(|(_, arm)| known(arm)).collect();
        wrap(&format!("Delay, for which the table has no room: {}.", known.join(", ")), self.width, 2)
    }

    /// Two settings, each alone and both together.
    fn cells(&self) -> Vec<String> {
        let Some(cells) = &self.report.cells else { return Vec::new() };
        let show = |cell: usize| self.report.measured.show(Some(cells.figures[cell]));
        let (first, second) = (clean(&cells.first), clean(&cells.second));
        let side = first.chars().count().max(WITHOUT.len());
        let head = second.chars().count().max(WITHOUT.len());
        let mut lines = vec![
            String::new(),
            format!("{:side$}  {WITHOUT:>head$}  {second:>head$}", ""),
            format!("{WITHOUT:side$}  {:>head$}  {:>head$}", show(0), show(2)),
            format!("{first:side$}  {:>head$}  {:>head$}", show(1), show(3)),
        ];
        lines.iter_mut().for_each(|line| *line = cut(line, self.width));
        lines.extend(wrap(&cells.sentence(), self.width, 2));
        lines
    }

    /// What each setting lost, where it is the time that counts: what makes it shorter may be a larger burst.
    fn losses(&self) -> Vec<String> {
        let r = self.report;
        let lossy = r.arms.iter().any(|arm| arm.retransmits.is_some_and(|again| again >= 1.0));
        if r.measured.scale != Scale::Time || !lossy {
            return Vec::new();
        }
        let of = |arm: &Arm| Some(format!("{} {:.0}", clean(&arm.label), arm.retransmits?));
        let each: Vec<String> = r.arms.iter().take(MOST_ROWS).filter_map(of).collect();
        wrap(&format!("Segments retransmitted in a trial: {}.", each.join(", ")), self.width, 2)
    }

    fn state(&self, arm: &Arm) -> String {
        let bad = if arm.bad > 0 { format!(", {} bad", arm.bad) } else { String::new() };
        format!("{}{bad}", arm.word())
    }

    fn plot(&self) -> Vec<String> {
        let r = self.report;
        let curve = r.plateau_chart().filter(|_| r.plateau.as_ref().is_some_and(|p| p.curve.len() >= 3));
        let Some(chart) = curve.or_else(|| r.settings_chart()) else { return Vec::new() };
        let mut lines: Vec<String> =
            chart.to_terminal(self.width, PLOT, self.color).lines().map(str::to_owned).collect();
        lines.push(String::new());
        lines
    }

    fn remarks(&self) -> Vec<String> {
        let r = self.report;
        let mut lines = Vec::new();
        if r.tunnel == "live" || r.limits_say_more() {
            lines.extend(wrap(&r.limits.text, self.width, 0));
        }
        lines.extend(r.server_lines().iter().flat_map(|line| wrap(line, self.width, 2)));
        lines.extend(r.soak_lines().iter().flat_map(|line| wrap(line, self.width, 2)));
        let limits = [r.limit_line(), r.ceiling_line()];
        lines.extend(limits.iter().flatten().flat_map(|line| wrap(line, self.width, 0)));
        for row in r.granted.iter().filter(|row| row.differs).take(6) {
            let label = r.arms.get(row.arm).map_or("", |arm| arm.label.as_str());
            let granted: Vec<String> = row.granted.iter().map(ToString::to_string).collect();
            let line = format!(
                "{label}: {} asked {}, granted {}, observed {}.",
                row.knob,
                row.asked,
                or_dash(&granted),
                or_dash(&row.observed)
            );
            lines.extend(wrap(&line, self.width, 2));
        }
        for warning in &r.warnings {
            let wrapped = wrap(&format!("Warning: {warning}"), self.width, 2);
            lines.extend(wrapped.iter().map(|line| self.paint(line, "33")));
        }
        for (number, step) in r.next.iter().enumerate() {
            let lead = if number == 0 { "Next: " } else { "      " };
            let text = format!("{lead}{step}");
            let is_read_by_people = self.width != UNKNOWN_WIDTH;
            lines.extend(if is_read_by_people { wrap_command } else { wrap }(&text, self.width, 6));
        }
        lines
    }
}

fn or_dash(words: &[String]) -> String {
    if words.is_empty() { "–".to_owned() } else { words.join(" or ") }
}

/// The same of a text that ends with commands behind a colon: where it is too long, each stands on lines of its own, so that it can
/// be copied.
fn wrap_command(text: &str, width: usize, indent: usize) -> Vec<String> {
    let begins = [": sudo windtunnel ", ": windtunnel "].iter().filter_map(|begin| text.find(begin)).min();
    let Some(at) = begins.filter(|_| text.chars().count() > width) else { return wrap(text, width, indent) };
    let mut lines = wrap(&text[..=at], width, indent);
    for command in text[at + 2..].split("; then ") {
        lines.extend(command_lines(&clean(command), width, indent + 2));
    }
    lines
}

/// Breaks a text at blanks; lines after the first are indented. Words longer than a line are cut.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let text = clean(text);
    let lead = text.chars().take_while(|c| *c == ' ').count().min(width / 2);
    let mut lines = vec![" ".repeat(lead)];
    let mut used = lead;
    let mut fresh = true;
    for (_, word) in unbroken(&text) {
        let word = cut(word, width - indent.max(lead));
        let length = word.chars().count();
        if !fresh && used + 1 + length > width {
            lines.push(" ".repeat(indent));
            used = indent;
            fresh = true;
        }
        if let Some(line) = lines.last_mut() {
            if !fresh {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += length;
            fresh = false;
        }
    }
    lines
}
