use super::answer::{HoursRatio, SharedSetting, SideBySideAnswer};
use super::experiment::TriedSetting;

/// The answer in a few sentences.
pub(super) fn text(answer: &SideBySideAnswer) -> String {
    let mut lines = Vec::new();
    if !answer.comparable {
        lines.push(format!("They can't be compared, because {}.", answer.because.join("; ")));
    }
    for between in &answer.current {
        lines.push(match &between.difference {
            Some(found) => level(&between.experiment, &between.against, *found),
            None => format!("{} and {}: too few trials of the current settings.", between.experiment, between.against),
        });
    }
    if answer.current.iter().any(|between| between.difference.is_some()) {
        lines.push(
            "Nothing was randomised between experiments, and trials don't say how far hours lie apart: the hour, the load and \
             whatever else changed is part of that difference, and nothing is shown by it."
                .to_owned(),
        );
    }
    lines.extend(answer.settings.iter().map(setting));
    if answer.settings.is_empty() && !answer.current.is_empty() {
        lines.push("No setting but the current one was tried in more than one of them.".to_owned());
    }
    lines.extend(answer.notes.iter().map(|note| format!("Note: {note}.")));
    lines.join("\n")
}

fn level(experiment: &str, against: &str, found: HoursRatio) -> String {
    format!(
        "The current settings gave ×{:.3} of the goodput in {experiment} that they gave in {against}, as it was seen.",
        found.ratio
    )
}

fn setting(shared: &SharedSetting) -> String {
    let each = |tried: &TriedSetting| {
        let ratio = tried.ratio.map_or_else(|| "no estimate".to_owned(), |ratio| format!("×{ratio:.3}"));
        let interval =
            tried.low.zip(tried.high).map_or_else(String::new, |(low, high)| format!(" (×{low:.3} to ×{high:.3})"));
        format!("{ratio}{interval} with evidence {} : 1 in {}", evidence(tried.evidence), tried.experiment)
    };
    let list: Vec<String> = shared.each.iter().map(each).collect();
    let how = if shared.combined == "mean" { ", the mean, since they share trials or an order" } else { "" };
    let shown = if shared.evidence >= shared.needed {
        "together they show that it is faster"
    } else {
        "together they don't show that it is faster"
    };
    let differ = if shared.gains_differ {
        " Its gain differs between them: their intervals have nothing in common."
    } else {
        ""
    };
    let held = if shared.everywhere >= shared.needed {
        " It is shown to be faster in each of them.".to_owned()
    } else if shared.shown_in.is_empty() {
        String::new()
    } else {
        format!(" It is shown to be faster in {}.", shared.shown_in.join(", "))
    };
    let elsewhere = shared.elsewhere.map_or_else(String::new, |other| {
        format!(
            " Where it wasn't measured expect ×{:.3} (×{:.3} to ×{:.3} by estimate, too narrow where few were measured; {:.0} % of the variation isn't noise).",
            other.ratio,
            other.low,
            other.high,
            other.heterogeneity * 100.0
        )
    });
    format!(
        "{} against the current settings: {}; {shown} ({} : 1 of {:.0} : 1{how}).{held}{differ}{elsewhere}",
        shared.label,
        list.join(", "),
        evidence(shared.evidence),
        shared.needed
    )
}

fn evidence(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.1e}") } else { format!("{value:.2}") }
}
