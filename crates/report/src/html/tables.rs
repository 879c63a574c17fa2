use crate::chart::escape;
use crate::tune::{ArmState, TuneReport};
use crate::words;
use wt_experiment::VerdictKind;

/// Trials in the table at most; a page of a hundred thousand rows opens nowhere.
const MOST_TRIALS: usize = 2_000;
/// Up to so many trials the table is open from the start.
const OPEN_TRIALS: usize = 24;

impl TuneReport {
    pub(super) fn settings_table(&self) -> String {
        let mut rows = String::new();
        let delays = self.arms.iter().any(|arm| arm.delay_us.is_some());
        for (number, arm) in self.arms.iter().enumerate() {
            let current = arm.state == ArmState::Current;
            let ranked = |text: String| if arm.is_ranked() { text } else { "–".to_owned() };
            let bad = if arm.bad > 0 { format!(", {} stalled or failed", arm.bad) } else { String::new() };
            let chosen = number == self.verdict.arm && self.verdict.kind == VerdictKind::Faster;
            let mut cells = vec![
                ("name", arm.label.clone()),
                ("", self.measured.show(arm.figure)),
                ("", if current { "×1".to_owned() } else { ranked(words::times(arm.ratio)) }),
                ("", ranked(arm.interval())),
                ("", ranked(arm.odds())),
                ("", arm.rounds.to_string()),
                ("left", format!("{}{bad}", arm.word())),
            ];
            if delays {
                let delay = arm.delay_us.map_or_else(|| "–".to_owned(), |us| words::milliseconds(us as u64));
                cells.insert(2, ("", delay));
            }
            let look = if chosen { Some("chosen") } else { (!arm.is_ranked()).then_some("unset") };
            rows.push_str(&row(look, &cells));
        }
        let interval = format!("{} interval", self.confidence());
        let figure = format!("{} (median)", self.measured.title());
        let mut head = vec!["Setting", &figure, "Ratio", &interval, "Evidence", "Rounds", "Shown"];
        if delays {
            head.insert(2, "Delay under load");
        }
        let model = self.arms.iter().any(|arm| arm.interval().starts_with('~'));
        let note = if model { "<p class=\"soft\">~ marks an estimate; it is not proof.</p>\n" } else { "" };
        table(&head, &rows) + note
    }

    /// Asked, granted, observed; nothing if nothing was asked.
    pub(super) fn html_granted(&self) -> String {
        if self.granted.is_empty() {
            return String::new();
        }
        let dash = |words: Vec<String>| if words.is_empty() { "–".to_owned() } else { words.join(" or ") };
        let rows: String = self
            .granted
            .iter()
            .map(|g| {
                let label = self.arms.get(g.arm).map_or_else(|| format!("setting {}", g.arm), |arm| arm.label.clone());
                row(
                    g.differs.then_some("differs"),
                    &[
                        ("name", label),
                        ("left", g.knob.to_string()),
                        ("", g.asked.to_string()),
                        ("", dash(g.granted.iter().map(ToString::to_string).collect())),
                        ("", dash(g.observed.clone())),
                        ("left", g.scope.clone()),
                    ],
                )
            })
            .collect();
        let head = ["Setting", "Knob", "Asked", "Granted", "Observed", "Set on"];
        let differs = self.granted.iter().any(|g| g.differs);
        let note = if differs {
            super::paragraph("Marked: what was granted or seen isn't what was asked.")
        } else {
            String::new()
        };
        super::section("Asked, granted, observed", &(note + &table(&head, &rows)))
    }

    pub(super) fn html_trials(&self) -> String {
        let all = self.trial_table.len() + self.delay_trials.len();
        let shown = all.min(MOST_TRIALS);
        let rows: String = self
            .trial_table
            .iter()
            .chain(&self.delay_trials)
            .take(shown)
            .map(|t| {
                let label = self.arms.get(t.arm).map_or_else(|| format!("setting {}", t.arm), |arm| arm.label.clone());
                row(
                    None,
                    &[
                        ("", t.round.to_string()),
                        ("", t.order.to_string()),
                        ("name", label),
                        ("", self.measured.show(t.figure)),
                        ("left", t.status.to_owned()),
                        ("", t.retransmits.to_string()),
                        ("", rtt(t.min_rtt_us)),
                        ("name", t.notes.join("; ")),
                    ],
                )
            })
            .collect();
        let figure = self.measured.title();
        let head = ["Round", "Order", "Setting", &figure, "Status", "Retransmitted", "Least RTT", "Notes"];
        let left_out = all - shown;
        let mut note = if left_out > 0 {
            super::paragraph(&format!("The first {shown}; {left_out} more are in the journal."))
        } else {
            String::new()
        };
        if let Some(first) = self.delay_trials.first() {
            note.push_str(&super::paragraph(&format!("From round {} on they are those for less delay.", first.round)));
        }
        let open = if shown <= OPEN_TRIALS { " open" } else { "" };
        format!(
            "<section>\n<details{open}>\n<summary>All {all} trials</summary>\n{note}{}</details>\n</section>\n",
            table(&head, &rows)
        )
    }
}

/// An RTT; a dash where nobody saw one.
fn rtt(us: u64) -> String {
    if us == 0 { "–".to_owned() } else { words::milliseconds(us) }
}

fn table(head: &[&str], rows: &str) -> String {
    let head: String = head
        .iter()
        .map(|name| {
            let left = matches!(*name, "Setting" | "Shown" | "Status" | "Knob" | "Set on" | "Notes");
            let class = if left { " class=\"left\"" } else { "" };
            format!("<th scope=\"col\"{class}>{}</th>", escape(name))
        })
        .collect();
    format!(
        "<div class=\"scroll\">\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}

fn row(class: Option<&str>, cells: &[(&str, String)]) -> String {
    let cells: String = cells
        .iter()
        .map(|(class, text)| match *class {
            "" => format!("<td>{}</td>", escape(text)),
            class => format!("<td class=\"{} left\">{}</td>", class, escape(text)),
        })
        .collect();
    let class = class.map_or_else(String::new, |class| format!(" class=\"{class}\""));
    format!("<tr{class}>{cells}</tr>\n")
}
