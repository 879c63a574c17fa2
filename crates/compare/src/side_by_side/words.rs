use super::answer::{SharedSetting, SideBySideAnswer};
use super::experiment::TriedSetting;
use wt_report::times_of as times;
use wt_units::counted;

/// More columns than this are written below each other.
const WIDTH: usize = 100;

/// The answer, whose headline and remarks are there: what is shown, the experiments by number, what was tried in them, and what to know of it.
pub(super) fn text(answer: &SideBySideAnswer) -> String {
    let mut lines = vec![answer.headline.clone(), String::new()];
    lines.extend(wt_report::tables(&experiments(answer), &[3, 4], WIDTH));
    if !answer.settings.is_empty() {
        lines.push(String::new());
        lines.extend(wt_report::tables(&settings(answer), &[], WIDTH));
    }
    if !answer.remarks.is_empty() {
        lines.push(String::new());
        lines.extend(answer.remarks.iter().cloned());
    }
    lines.join("\n")
}

/// What is shown, in a sentence.
pub(super) fn headline(answer: &SideBySideAnswer) -> String {
    let many = counted(answer.experiments.len(), "experiment");
    let labels = |are: &dyn Fn(&SharedSetting) -> bool| -> Vec<&str> {
        answer.settings.iter().filter(|one| are(one)).map(|one| one.label.as_str()).collect()
    };
    let little = labels(&|one| one.faster_by_little);
    let relevant = answer.settings.iter().map(|one| one.relevant).fold(0.0, f64::max);
    match labels(&|one| one.is_shown() && !one.faster_by_little).as_slice() {
        _ if !answer.comparable => format!("They can't be compared, because {}.", answer.because.join("; ")),
        [] if answer.settings.is_empty() => {
            "No setting but the current one was tried in more than one of them.".to_owned()
        }
        [] if !little.is_empty() => {
            let are = if little.len() == 1 { "is" } else { "are" };
            let least = (relevant * 1e3).round() / 10.0;
            let little = little.join(" and ");
            format!("{little} {are} faster by less than {least} % by these {many} together: not worth a change.")
        }
        [] => format!("No setting is shown to be faster by these {many} together."),
        [one] => format!("{one} is shown to be faster by these {many} together."),
        several => format!("{} are shown to be faster by these {many} together.", several.join(", ")),
    }
}

/// Each experiment with its number, and how its current settings did beside those of the first.
fn experiments(answer: &SideBySideAnswer) -> Vec<Vec<String>> {
    let mut measured = answer.experiments.iter().map(|one| one.measured.head());
    let first = measured.next().unwrap_or_default();
    let name = if measured.all(|name| name == first) { first } else { "figure" };
    let head = ["", "experiment", "target", "rounds", name, "of 1"].map(str::to_owned).to_vec();
    let row = |(at, one): (usize, &super::experiment::ComparedExperiment)| {
        let found = answer.current.iter().find(|current| current.experiment == one.id);
        let of_first = found.and_then(|current| current.difference).map(|difference| fine(difference.ratio));
        let target = if one.tunnel == "lab" { format!("lab {}", one.target) } else { one.target.clone() };
        vec![
            (at + 1).to_string(),
            one.id.clone(),
            target,
            one.rounds.to_string(),
            one.measured.show(one.figure),
            of_first.unwrap_or_default(),
        ]
    };
    std::iter::once(head).chain(answer.experiments.iter().enumerate().map(row)).collect()
}

/// Each setting against the current ones of each experiment, and what all say together.
fn settings(answer: &SideBySideAnswer) -> Vec<Vec<String>> {
    let numbers = (1..=answer.experiments.len()).map(|number| format!("in {number}"));
    let head = ["setting", "together", "evidence"].map(str::to_owned).into_iter().chain(numbers).collect();
    let row = |shared: &SharedSetting| {
        let together = match shared {
            shared if shared.faster_by_little => "faster by little",
            shared if shared.everywhere >= shared.needed => "faster in each",
            shared if shared.is_shown() => "faster",
            _ => "not shown",
        };
        let odds = format!("{} : 1 of {:.0} : 1", evidence(shared.evidence), shared.needed);
        let mut row = vec![shared.label.clone(), together.to_owned(), odds];
        let in_one = |one: &super::experiment::ComparedExperiment| {
            shared.each.iter().find(|tried| tried.experiment == one.id).map_or_else(|| "–".to_owned(), tried)
        };
        row.extend(answer.experiments.iter().map(in_one));
        row
    };
    std::iter::once(head).chain(answer.settings.iter().map(row)).collect()
}

/// `×0.997`: hours lie closer together than settings.
fn fine(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) { format!("×{ratio:.3}") } else { times(ratio) }
}

/// `×1.05 (1.02 to 1.09)`.
fn tried(tried: &TriedSetting) -> String {
    let Some(ratio) = tried.ratio else { return "no estimate".to_owned() };
    let interval = tried.low.zip(tried.high).map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", times(low).trim_start_matches('×'), times(high).trim_start_matches('×'))
    });
    format!("{}{interval}", times(ratio))
}

/// What to know of it.
pub(super) fn remarks(answer: &SideBySideAnswer) -> Vec<String> {
    let mut lines = Vec::new();
    if answer.current.iter().any(|between| between.difference.is_some()) {
        lines.push(
            "Nothing was randomised between experiments: the hour, the load and whatever else changed are part of how far their \
             current settings lie apart."
                .to_owned(),
        );
    }
    if answer.comparable && answer.experiments.iter().any(|one| one.measured.better == "smaller") {
        lines.push("Ratios are so that larger is better.".to_owned());
    }
    if answer.settings.iter().any(|shared| shared.combined == "mean") {
        lines.push("Evidence together is the mean of theirs, since they share trials or an order.".to_owned());
    }
    lines.extend(answer.settings.iter().flat_map(of_setting));
    lines.extend(answer.notes.iter().map(|note| format!("Note: {note}.")));
    lines
}

/// What a table has no room for.
fn of_setting(shared: &SharedSetting) -> Vec<String> {
    let label = &shared.label;
    let mut lines = Vec::new();
    // Of three or more the mean with its spread is told below.
    let told = shared.faster_by_little || shared.is_shown() && shared.elsewhere.is_none();
    if let Some(ratio) = shared.ratio.filter(|_| told) {
        let little = if shared.faster_by_little { ", too little to be worth a change" } else { "" };
        lines.push(format!("By estimate over all their rounds {label} is {}{little}.", fine(ratio)));
    }
    if !shared.shown_in.is_empty() && shared.everywhere < shared.needed {
        lines.push(format!("{label} is shown to be faster in {}.", shared.shown_in.join(", ")));
    }
    if shared.gains_differ {
        lines.push(format!("The gain of {label} differs between them: intervals of two have nothing in common."));
    }
    if let Some(other) = shared.elsewhere {
        lines.push(format!(
            "Where {label} wasn't measured expect {} ({} to {}, an estimate, too narrow where few were measured; {:.0} % \
             of the variation isn't noise).",
            times(other.ratio),
            times(other.low),
            times(other.high),
            other.heterogeneity * 100.0
        ));
    }
    lines
}

impl SharedSetting {
    /// Whether the experiments together show that it is faster.
    fn is_shown(&self) -> bool {
        self.evidence >= self.needed
    }
}

fn evidence(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.1e}") } else { format!("{value:.1}") }
}
