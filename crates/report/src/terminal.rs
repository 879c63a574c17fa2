use crate::chart::{clean, cut};
use crate::tune::{Arm, ArmState, TuneReport};
use crate::words;
use wt_experiment::VerdictKind;
use wt_trial::Scale;

/// Settings in the table at most; the report points to the others.
const MOST_ROWS: usize = 16;
/// Lines of the plot.
const PLOT: usize = 15;

impl TuneReport {
    /// The report for a terminal of `width` columns (64 to 100 are used), some 60 lines.
    #[must_use]
    pub fn to_terminal(&self, width: usize, color: bool) -> String {
        let page = Page { report: self, width: width.clamp(64, 100), color };
        let mut lines = page.head();
        lines.extend(page.verdict());
        lines.push(String::new());
        lines.extend(page.table());
        lines.push(String::new());
        lines.extend(page.plot());
        lines.extend(page.remarks());
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

struct Page<'a> {
    report: &'a TuneReport,
    width: usize,
    color: bool,
}

impl Page<'_> {
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
        let path = format!(
            "path: RTT {}, PMTU {}, BDP {} bytes; current settings: {}",
            words::milliseconds(r.path.rtt_us),
            r.path.pmtu,
            r.path.bdp_bytes,
            clean(&r.current.to_string())
        );
        let lines = [run, path];
        lines.iter().map(|line| self.paint(&cut(line, self.width), "2")).chain([String::new()]).collect()
    }

    fn verdict(&self) -> Vec<String> {
        let v = &self.report.verdict;
        let code = if v.kind == VerdictKind::Faster { "1;32" } else { "1" };
        let mut lines: Vec<String> =
            wrap(&v.headline, self.width, 0).iter().map(|line| self.paint(line, code)).collect();
        lines.extend(v.details.iter().flat_map(|detail| wrap(&format!("· {detail}"), self.width, 2)));
        lines
    }

    fn table(&self) -> Vec<String> {
        let r = self.report;
        let wide = self.width >= 90;
        let fixed = if wide { 77 } else { 56 };
        let longest = r.arms.iter().map(|arm| clean(&arm.label).chars().count()).max().unwrap_or(0);
        let name = longest.clamp(8, (self.width - fixed).max(8));
        let evidence = words::needed_by_all(&r.arms);
        let evidence = evidence.map_or_else(|| "evidence".to_owned(), |n| format!("of {}", words::odds(n)));
        let interval = format!("{} interval", r.confidence());
        let row = |cells: [&str; 7]| {
            let [label, goodput, ratio, interval, evidence, rounds, state] = cells;
            let label = cut(label, name);
            if wide {
                format!(
                    "{label:<name$}  {goodput:>11}  {ratio:>6}  {interval:>15}  {evidence:>11}  {rounds:>6}  {state}"
                )
            } else {
                format!("{label:<name$}  {ratio:>6}  {interval:>15}  {evidence:>11}  {state}")
            }
        };
        let head = row(["setting", r.measured.head(), "ratio", &interval, &evidence, "rounds", "shown"]);
        let mut lines = vec![self.paint(&head, "2")];
        for (number, arm) in r.arms.iter().enumerate().take(MOST_ROWS) {
            let current = arm.state == ArmState::Current;
            let cells = [
                clean(&arm.label),
                r.measured.show(arm.figure),
                if current { "×1".to_owned() } else { words::times(arm.ratio) },
                words::interval_of(arm),
                if current { String::new() } else { words::odds(arm.evidence) },
                arm.rounds.to_string(),
                self.state(arm),
            ];
            let line = row(cells.each_ref().map(String::as_str));
            let line = cut(line.trim_end(), self.width);
            let chosen = number == r.verdict.arm && r.verdict.kind == VerdictKind::Faster;
            lines.push(if chosen { self.paint(&line, "1;32") } else { line });
        }
        if r.arms.iter().any(|arm| words::interval_of(arm).starts_with('~')) {
            lines.push(self.paint("~ by the model, while the random order alone says nothing yet", "2"));
        }
        lines.extend(self.losses());
        if r.arms.len() > MOST_ROWS {
            lines.push(format!("and {} more, in --json and --html", r.arms.len() - MOST_ROWS));
        }
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
        wrap(&format!("Segments sent again in a trial: {}.", each.join(", ")), self.width, 2)
    }

    fn state(&self, arm: &Arm) -> String {
        let bad = if arm.bad > 0 { format!(", {} bad", arm.bad) } else { String::new() };
        format!("{}{bad}", words::state(arm))
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
        lines.extend(r.soak_lines().iter().flat_map(|line| wrap(line, self.width, 2)));
        lines.extend(r.limit_line().iter().flat_map(|line| wrap(line, self.width, 0)));
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
            let wrapped = wrap(&format!("Mind: {warning}"), self.width, 2);
            lines.extend(wrapped.iter().map(|line| self.paint(line, "33")));
        }
        for (number, step) in r.next.iter().enumerate() {
            let lead = if number == 0 { "Next: " } else { "      " };
            lines.extend(wrap(&format!("{lead}{step}"), self.width, 6));
        }
        lines
    }
}

fn or_dash(words: &[String]) -> String {
    if words.is_empty() { "–".to_owned() } else { words.join(" or ") }
}

/// Breaks a text at blanks; lines after the first are indented. Words longer than a line are cut.
fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let text = clean(text);
    let lead = text.chars().take_while(|c| *c == ' ').count().min(width / 2);
    let mut lines = vec![" ".repeat(lead)];
    let mut used = lead;
    let mut fresh = true;
    for word in text.split_whitespace() {
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
