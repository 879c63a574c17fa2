use super::args::PredictArgs;
use crate::edge::{say, say_table};
use wt_forecast::{PredictAnswer, StackSettings};
use wt_trial::{Amount, Direction, Workload};
use wt_units::{Knob, format_about};

/// `6.68 Mbit/s`.
fn rate(bps: f64) -> String {
    if let Some(unit) = wt_units::RateUnit::chosen() {
        return unit.write(bps);
    }
    match bps {
        bps if bps >= 1e9 => format!("{:.3} Gbit/s", bps / 1e9),
        bps if bps >= 1e6 => format!("{:.2} Mbit/s", bps / 1e6),
        bps => format!("{:.2} kbit/s", bps / 1e3),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", wt_units::change(share * 100.0, 1))
}

/// What is known of the model's error here, in a sentence.
fn error_sentence(answer: &PredictAnswer) -> String {
    let knobs: Vec<&str> = answer.uncompared().into_iter().map(Knob::name).collect();
    let guess = answer.arms.iter().find_map(|arm| arm.least_gain).unwrap_or(answer.least_gain);
    let with =
        format!("compared with a kernel with {}; its error is taken as {:.0} %", knobs.join(", "), guess * 100.0);
    match &answer.model_error {
        None if !knobs.is_empty() => format!("The model was never {with}."),
        Some(error) => format!(
            "Known error on {} paths, against Linux {} ({} transfers): median {:.1} %, nine in ten within {:.1} %, worst {:.1} %.{}",
            error.paths(),
            error.kernel,
            error.transfers,
            error.median * 100.0,
            error.p90 * 100.0,
            error.worst * 100.0,
            if knobs.is_empty() { String::new() } else { format!(" The model was never {with} there.") }
        ),
        None if !answer.left_out.is_empty() => {
            format!("{} How far it is off there is unknown.", answer.left_out.join(" "))
        }
        None => format!(
            "The model was never compared with a kernel on such a path, or in such a workload; its error is taken as {:.0} %.",
            answer.least_gain * 100.0
        ),
    }
}

/// Whose the current settings are, and where this host has others.
fn current_sentence(answer: &PredictAnswer, here: &StackSettings) -> String {
    if let Some(settings) = &answer.this_host {
        return format!("The current settings are this host's: {settings}.");
    }
    let usual = StackSettings::usual();
    let said = format!("The current settings are Linux' own, on every host: {usual}.");
    match &here.differences(&usual)[..] {
        [] => said,
        others if here.are_known() => {
            format!("{said} This host has {}: compare with that by --this-host.", others.join(", "))
        }
        others => format!("{said} This host has {}; the model has no {}.", others.join(", "), here.cc),
    }
}

/// The table, the chart and what to do next.
pub(super) fn terminal(answer: &PredictAnswer, args: &PredictArgs) {
    let way = if answer.direction == Direction::Down { "to the client" } else { "to the server" };
    let what = match &answer.workload {
        Workload::Bulk { amount: Amount::Size(size), .. } => format!("{} {way}", size.human()),
        Workload::Bulk { amount: Amount::Time(time), .. } => format!("{} of payload {way}", format_about(*time)),
        other => other.to_string(),
    };
    say!("model of {}: {}", answer.path, answer.title);
    let seeds = match answer.seeds {
        _ if !answer.random && answer.changes_with_time => String::new(),
        _ if !answer.random => "nothing is left to chance".to_owned(),
        1 => "one random seed, which says little of others".to_owned(),
        seeds => format!("median of {seeds} random seeds"),
    };
    let begins = if answer.changes_with_time { "from the beginning of what changes with time" } else { "" };
    let how: Vec<&str> = [what.as_str(), &seeds, begins].into_iter().filter(|words| !words.is_empty()).collect();
    say!("{}", how.join("; "));
    say!("");
    table(answer);
    say!("");
    let chart = answer.chart();
    if chart.series.iter().any(|series| series.points.len() > 2) {
        say!("{}", chart.to_terminal(80, 16, false));
    }
    if answer.arms.iter().any(|arm| arm.cut_short > 0) {
        say!(
            "The model stopped early, after an hour of its own time or all that it computes for one answer: figures are of what was done until then. Ask for less: a smaller --size, a shorter --trial, or fewer --seeds."
        );
    }
    say!("{}", current_sentence(answer, &StackSettings::of_this_host()));
    say!("{}", error_sentence(answer));
    advise(answer, args);
}

/// A row for each setting; a star beside the gain where it is worth measuring.
fn table(answer: &PredictAnswer) {
    let measured = &answer.measured;
    let others = (!measured.is_goodput()).then_some(());
    let row = |cells: [String; 5], figure: String| {
        let [label, goodput, gain, rest @ ..] = cells;
        let figure = others.map(|()| figure);
        [label, goodput, gain].into_iter().chain(figure).chain(rest).collect::<Vec<String>>()
    };
    let head = ["setting", "goodput", "gain  ", "queueing", "retrans"].map(str::to_owned);
    let mut rows = vec![row(head, measured.head().to_owned())];
    for arm in &answer.arms {
        let mark = if arm.worth_measuring { "*" } else { " " };
        let gain = match arm.gain {
            Some(gain) => format!("{} {mark}", percent(gain)),
            None if arm.works_instead => format!("works {mark}"),
            None => String::new(),
        };
        let queueing = format!("{:.1} ms", arm.queueing_delay_us / 1e3);
        let retransmitted = format!("{:.2} %", arm.retransmitted_share * 100.0);
        let cells = [arm.label.clone(), rate(arm.goodput_bps), gain, queueing, retransmitted];
        rows.push(row(cells, measured.show(arm.figure)));
    }
    say_table(&rows, &[1, 2, 3, 4]);
}

/// What a gain must exceed, after the sentence about the known error.
fn least_gain(answer: &PredictAnswer) -> String {
    match &answer.model_error {
        Some(error) if error.p90 < answer.least_gain => {
            format!("{:.0} %, the least that is worth a measurement", answer.least_gain * 100.0)
        }
        None if !answer.left_out.is_empty() => format!("{:.0} %", answer.least_gain * 100.0),
        _ => "that".to_owned(),
    }
}

fn advise(answer: &PredictAnswer, args: &PredictArgs) {
    let others = answer.arms.get(1..).unwrap_or_default();
    let more = least_gain(answer) + if answer.random { ", and than chance explains" } else { "" };
    if answer.candidates.is_empty() {
        if !answer.left_out.is_empty() {
            say!(
                "In the model no setting gains more than {more}; only trials tell what they do here: windtunnel tune --lab."
            );
            return;
        }
        if answer.random && answer.seeds == 1 {
            say!("One seed doesn't tell gains from chance: ask for more of them with --seeds.");
        } else if let Some(share) = answer.untried_buffer() {
            say!(
                "No setting gains more than {more}, but none of them is what holds the transfer: for {:.0} % of its time the sender waits for room in its send buffer. Compare larger ones with --knobs sndbuf.",
                share * 100.0
            );
        } else if others.iter().all(|arm| arm.gain.is_some()) {
            say!("No setting gains more than {more}: nothing here is worth measuring.");
        } else {
            say!(
                "No setting gains more than {more}; where there is no gain, neither it nor the current ones get anything done."
            );
        }
        return;
    }
    if others.iter().any(|arm| arm.works_instead) {
        say!("works: gets done what the current settings don't.");
        say!("* works, or gains more than {more}. What to measure:");
    } else {
        say!("* gains more than {more}. What to measure:");
    }
    // What stands alone is a level of its knob; what is more than one setting is measured together, as it was asked.
    let mut words: Vec<String> = Vec::new();
    for settings in answer.candidates.iter().take(4) {
        let pairs: Vec<String> = settings.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
        match &pairs[..] {
            [pair] => words.push(format!("--levels {pair}")),
            _ => words.push(format!("--arm '{}'", pairs.join(","))),
        }
    }
    if words.iter().any(|word| word.starts_with("--arm")) {
        words = words.iter().map(|word| word.replacen("--levels", "--arm", 1)).collect();
        words.insert(0, "--arm current".to_owned());
    }
    words.extend(args.same_for_tune());
    say!("  windtunnel tune --lab {} {}", args.path_for_tune(), words.join(" "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_forecast::{PathRequest, PredictRequest, predict};
    use wt_trial::Cancel;
    use wt_units::Bytes;

    #[test]
    fn whose_the_current_settings_are_is_said_and_where_this_host_has_others() {
        let path = PathRequest::Scenario("lan".to_owned());
        let set = vec!["initcwnd=20".parse().unwrap()];
        let request = PredictRequest { set, size: Some(Bytes(1_000)), ..PredictRequest::of(path) };
        let answer = predict(&request, &Cancel::new()).unwrap();
        let usual = StackSettings::usual();
        let own = "The current settings are Linux' own, on every host: cc=cubic, tcp_rmem from 128 KiB to 32 MiB, \
            tcp_wmem to 4 MiB.";
        assert_eq!(current_sentence(&answer, &usual), own);
        let here = StackSettings { cc: "bbr".to_owned(), rmem_max: 6 << 20, ..usual.clone() };
        assert_eq!(
            current_sentence(&answer, &here),
            format!("{own} This host has cc=bbr, tcp_rmem from 128 KiB to 6 MiB: compare with that by --this-host.")
        );
        let unknown = StackSettings { cc: "dctcp".to_owned(), ..usual };
        let said = current_sentence(&answer, &unknown);
        assert!(said.ends_with("This host has cc=dctcp; the model has no dctcp."), "{said}");
    }
}
