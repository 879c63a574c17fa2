//! What a comparison says.

use super::{Comparison, Shared, Tried};
use wt_experiment::means::GroupComparison;

/// Below this an estimate counts as a difference of two experiments.
const LEVEL: f64 = 0.05;

/// The answer in a few sentences.
pub(super) fn text(comparison: &Comparison) -> String {
    let mut lines = Vec::new();
    if !comparison.comparable {
        lines.push(format!("They can't be compared, because {}.", comparison.because.join("; ")));
    }
    for between in &comparison.current {
        lines.push(match &between.difference {
            Some(found) => level(&between.experiment, &between.against, found),
            None => format!(
                "{} and {}: too few trials of the current settings for an interval, or all alike.",
                between.experiment, between.against
            ),
        });
    }
    if comparison.current.iter().any(|between| between.difference.is_some()) {
        lines.push(
            "Nothing was randomised between experiments: the hour, the load and whatever else changed is part of that \
             difference, and there is no evidence for its cause."
                .to_owned(),
        );
    }
    lines.extend(comparison.settings.iter().map(setting));
    if comparison.settings.is_empty() && !comparison.current.is_empty() {
        lines.push("No setting but the current one was tried in more than one of them.".to_owned());
    }
    lines.extend(comparison.notes.iter().map(|note| format!("Note: {note}.")));
    lines.join("\n")
}

fn level(experiment: &str, against: &str, found: &GroupComparison) -> String {
    let GroupComparison { ratio, low, high, p, .. } = found;
    let word = match (*p < LEVEL, *ratio > 1.0) {
        (false, _) => format!("No difference is seen between {experiment} and {against}"),
        (true, true) => format!("{experiment} is faster than {against}"),
        (true, false) => format!("{experiment} is slower than {against}"),
    };
    format!("{word}: its current settings give ×{ratio:.3} of the other's goodput (95 %: ×{low:.3} to ×{high:.3}).")
}

fn setting(shared: &Shared) -> String {
    let each = |tried: &Tried| {
        let ratio = tried.ratio.map_or_else(|| "no estimate".to_owned(), |ratio| format!("×{ratio:.3}"));
        let interval =
            tried.low.zip(tried.high).map_or_else(String::new, |(low, high)| format!(" (×{low:.3} to ×{high:.3})"));
        format!("{ratio}{interval} with evidence {} : 1 in {}", evidence(tried.evidence), tried.experiment)
    };
    let list: Vec<String> = shared.each.iter().map(each).collect();
    let shown = if shared.evidence >= shared.needed {
        "together they show that it is faster"
    } else {
        "together they don't show that it is faster"
    };
    let differ = match shared.gains_differ_p {
        Some(p) if p < LEVEL => " Its gain differs between them.",
        _ => "",
    };
    format!(
        "{} against the current settings: {}; {shown} ({} : 1 of {:.0} : 1).{differ}",
        shared.label,
        list.join(", "),
        evidence(shared.evidence),
        shared.needed
    )
}

fn evidence(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.1e}") } else { format!("{value:.2}") }
}

/// The answer for a terminal.
pub(super) fn table(comparison: &Comparison) -> String {
    let mut lines =
        vec![format!("{:<36} {:<7} {:<4} {:>7} {:>14}  target", "experiment", "tunnel", "way", "rounds", "goodput")];
    for side in &comparison.experiments {
        let rate = side.goodput_bps.map_or_else(|| "-".to_owned(), |bps| format!("{:.2} Mbit/s", bps / 1e6));
        let way = side.direction.as_deref().unwrap_or("?");
        lines.push(format!(
            "{:<36} {:<7} {way:<4} {:>7} {rate:>14}  {}",
            side.id, side.tunnel, side.rounds, side.target
        ));
    }
    lines.push(String::new());
    lines.push(comparison.text.clone());
    lines.join("\n")
}
