//! Words of the answer: what a setting does to a workload.

use wt_trial::{Amount, Direction, Scale, TrialRecord, Workload};

/// Which way the payload goes that is judged.
pub(super) fn direction_of(workload: &Workload) -> Direction {
    match workload {
        Workload::Bulk { direction, .. }
        | Workload::Soak { direction, .. }
        | Workload::Stream { direction, .. }
        | Workload::Competing { direction, .. }
        | Workload::Load { direction, .. } => *direction,
        // Answers are what counts of these.
        Workload::Duplex { .. } | Workload::Transactions { .. } | Workload::Bursts { .. } | Workload::Page { .. } => {
            Direction::Down
        }
    }
}

/// Whether what is judged shares the line with other flows of the same trial.
pub(super) fn has_rivals(records: &[&TrialRecord]) -> bool {
    records.first().is_some_and(|record| matches!(record.spec.workload, Workload::Competing { .. }))
}

/// What a setting does to this workload: `loads pages 18 % faster`.
pub(super) fn does(workload: &Workload, gain: &str) -> String {
    let moves = match direction_of(workload) {
        Direction::Down => "downloads",
        Direction::Up => "uploads",
    };
    match (workload, workload.scale()) {
        (Workload::Page { .. }, Scale::Time) => format!("loads pages {gain} faster"),
        (Workload::Bulk { amount: Amount::Size(size), .. }, _) => format!("{moves} {} {gain} faster", size.human()),
        (Workload::Duplex { .. }, _) => format!("transfers both ways {gain} faster"),
        (Workload::Competing { .. }, _) => format!("{moves} {gain} faster beside others"),
        (Workload::Bursts { .. }, Scale::Rate) => format!("gets {gain} more answers a second"),
        (_, Scale::Rate) => format!("does {gain} more transactions a second"),
        (_, Scale::Lateness) => format!("delivers messages {gain} less late"),
        (_, Scale::Responsiveness) => format!("makes {gain} more round trips a minute under load"),
        (_, Scale::Goodput | Scale::Time) => format!("{moves} {gain} faster"),
    }
}

/// `loads pages` as several do it.
pub(super) fn plural(does: String) -> String {
    match does.split_once(' ') {
        Some(("does", rest)) => format!("do {rest}"),
        Some((verb, rest)) => format!("{} {rest}", verb.trim_end_matches('s')),
        None => does,
    }
}

/// The text with a capital at its beginning.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// The verb that goes with a label: "your current settings" are several.
pub(super) fn looks(label: &str) -> &'static str {
    if label.ends_with("settings") { "look" } else { "looks" }
}

/// Whether a mean differs from the median, where there is one, by more than this share.
pub(super) fn is_far(mean: f64, median: Option<f64>, share: f64) -> bool {
    median.is_some_and(|median| (mean / median).ln().abs() > share.ln_1p())
}
