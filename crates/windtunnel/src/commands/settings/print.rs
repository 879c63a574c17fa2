//! Answers of `settings` on the terminal.

use super::own;
use crate::edge::{emit, print_file, say};
use serde_json::json;
use std::io::Write as _;
use wt_host::{
    ApplyOutcome, ConfirmOutcome, Export, LastingFile, Plan, ReleasedChange, Risk, RouteChange, RouteFate, Undone,
    VerifyReport,
};
use wt_setup::settings::{CheckReport, Circumstance, DefaultsAnswer, HistoryAnswer, LaterProof, VerdictCheck};

/// A plan; `again` is what does it: `restore FILE`.
pub(super) fn plan(plan: &Plan, again: &str) {
    let head = ["setting", "old", "", "new", "scope", "on"].map(str::to_owned).to_vec();
    let row = |change: &wt_host::Change| {
        let mark = if change.unchanged { "=" } else { "->" };
        let scope = json!(change.scope).as_str().unwrap_or_default().to_owned();
        let levels = [change.old.to_string(), mark.to_owned(), change.new.to_string()];
        [vec![change.key.to_owned()], levels.to_vec(), vec![scope, change.target.to_string()]].concat()
    };
    let of_route = |change: &RouteChange| {
        let was = if change.done == RouteFate::Removed { "there" } else { "absent" };
        let words = ["route", was, "->", change.done.word(), "route", &change.route];
        words.map(str::to_owned).to_vec()
    };
    let rows = std::iter::once(head).chain(plan.changes.iter().map(row)).chain(plan.routes.iter().map(of_route));
    let lines = wt_report::table(&rows.collect::<Vec<_>>(), &[1]);
    say!("{}", lines[0]);
    lines.iter().skip(1).zip(&plan.changes).for_each(|(line, change)| say!("{line}\n    {}", change.why));
    lines.iter().skip(1 + plan.changes.len()).for_each(|line| say!("{line}"));
    let list = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            say!("\n{title}");
            lines.iter().for_each(|line| say!("  {line}"));
        }
    };
    let risks = |risks: &[Risk]| risks.iter().map(risk_line).collect::<Vec<_>>();
    list("The commands that would do it:", &plan.commands);
    list("What could go wrong:", &risks(&plan.risks));
    list("Left out:", &risks(&plan.skipped));
    for file in &plan.lasting {
        let LastingFile { device, manager, path, content, .. } = file;
        if content.is_empty() {
            say!(
                "\n{manager} configures {device}, and nothing is written for it, so that this ends with the next reboot:"
            );
        } else {
            say!("\n{manager} configures {device}. It keeps this if {path} says (a confirmation writes it):");
        }
        content.lines().for_each(|line| emit!("  {line}"));
        risks(&file.skipped).iter().for_each(|line| say!("  {line}"));
    }
    if plan.is_empty() && !plan.changes.is_empty() {
        say!(
            "\nEverything is so already; nothing would be written now. apply and confirm would make it stay after a reboot, where that can be."
        );
    } else if plan.is_empty() {
        say!("\nEverything is so already; nothing would be written.");
    } else {
        say!("\nNothing was written. {} {again} does it, and puts it back unless it is confirmed.", own());
    }
}

pub(super) fn nothing_to_restore(plan: &Plan, file: &std::path::Path) {
    if plan.skipped.is_empty() {
        say!("Nothing differs from {}: nothing was changed.", file.display());
        return;
    }
    plan.skipped.iter().for_each(|risk| say!("{}", risk_line(risk)));
    say!("Nothing else differs from {}: nothing was changed.", file.display());
}

fn number(value: &Option<wt_host::Value>) -> Option<u64> {
    value.as_ref().and_then(wt_host::Value::number)
}

/// Whether a connection was looked at before its window was as long as it may become; one that is held has all of it at once.
fn still_grows(row: &wt_host::AppliedRow) -> bool {
    let held = row.scope == wt_host::ScopeName::Connection;
    row.key == "rwin" && !held && number(&row.observed).is_some_and(|seen| Some(seen) < row.asked.number())
}

pub(super) fn applied(applied: &ApplyOutcome) {
    let head = ["setting", "asked", "granted", "on a connection", "on"].map(str::to_owned).to_vec();
    let row = |row: &wt_host::AppliedRow| {
        let granted = row.granted.as_ref().map_or_else(|| "gone".to_owned(), ToString::to_string);
        let so_far = if still_grows(row) { " so far" } else { "" };
        let observed = row.observed.as_ref().map_or_else(|| "not looked at".to_owned(), |has| format!("{has}{so_far}"));
        vec![row.key.to_owned(), row.asked.to_string(), granted, observed, row.target.to_string()]
    };
    let of_route = |change: &RouteChange| {
        let done = change.done.word();
        ["route", done, done, "", &change.route].map(str::to_owned).to_vec()
    };
    let settings = std::iter::once(head).chain(applied.applied.iter().map(row));
    let rows: Vec<Vec<String>> = settings.chain(applied.routes.iter().map(of_route)).collect();
    say!("{}", wt_report::table(&rows, &[1]).join("\n"));
    for note in applied.skipped.iter().chain(&applied.notes) {
        say!("{}", risk_line(note));
    }
    if applied.applied.iter().any(still_grows) {
        say!(
            "rwin: so far, because a window grows with what a connection moves, and the one that was looked at moved little"
        );
    }
    let larger = |row: &&wt_host::AppliedRow| row.key == "rwin" && number(&row.observed) > number(&row.granted);
    if applied.applied.iter().any(|row| larger(&row)) {
        say!(
            "rwin: granted is what a buffer is meant to hold; full packets leave more room for payload, up to twice as much"
        );
    }
    let id = applied.id;
    match &applied.confirm_deadline {
        Some(deadline) => {
            let within = applied.confirm_within_s.unwrap_or_default();
            say!("\nChange {id} is in force, and is put back at {deadline} (in {within} s) unless you confirm it:");
            say!("  {} confirm", own());
            say!("To put it back now: {} undo", own());
        }
        None => {
            applied.files.iter().for_each(|file| say!("wrote {file}"));
            let except = except(&applied.notes);
            say!("\nChange {id} is in force and stays. {} undo {id} takes it back.{except}", own());
        }
    }
}

pub(super) fn confirmed(confirmed: &ConfirmOutcome) {
    confirmed.files.iter().for_each(|file| say!("wrote {file}"));
    confirmed.notes.iter().for_each(|note| say!("{}", risk_line(note)));
    let except = except(&confirmed.notes);
    say!("Change {} stays. {} undo {} takes it back.{except}", confirmed.id, own(), confirmed.id);
}

/// What is said of a setting, or of all of them.
fn risk_line(risk: &Risk) -> String {
    if risk.key == "*" { risk.text.clone() } else { format!("{}: {}", risk.key, risk.text) }
}

/// That not all of a change outlives a reboot, where that is said.
fn except(notes: &[Risk]) -> &'static str {
    if notes.is_empty() { "" } else { " What is named above doesn't outlive a reboot." }
}

pub(super) fn undone(undone: &Undone) {
    undone.changes.iter().for_each(|change| say!("{change}"));
    undone.routes.iter().for_each(|change| say!("{change}"));
    undone.notes.iter().for_each(|note| say!("{note}"));
    let except = if undone.notes.is_empty() { "" } else { "apart from that, " };
    say!("Change {} was taken back; {except}everything is as it was before it.", undone.id);
}

pub(super) fn released(released: &ReleasedChange) {
    released.errors.iter().for_each(|error| say!("couldn't be put back: {error}"));
    released.stays.iter().for_each(|what| say!("stays: {what}"));
    released.files.iter().for_each(|file| say!("stays: {file}, so that each boot sets it again until you remove it"));
    let nothing = released.files.is_empty() && released.stays.is_empty() && released.errors.is_empty();
    let rest =
        if nothing { "Nothing of it stays.".to_owned() } else { format!("The old state is in {}.", released.backup) };
    say!("Change {} is done with: nobody waits for it, and nothing puts it back any more. {rest}", released.id);
}

pub(super) fn history(history: &HistoryAnswer) {
    history.recovered.iter().for_each(|finding| say!("{}", finding.text));
    if let Some(hidden) = &history.hidden {
        say!("{hidden}; sudo {} history shows it", own());
    }
    if history.changes.is_empty() {
        if history.hidden.is_none() {
            say!("No change was made yet.");
        }
        return;
    }
    say!("{:>4}  {:<20}  {:<13}  changes", "id", "made", "state");
    for row in &history.changes {
        let elsewhere = if row.here || row.created.is_none() { "" } else { " (in another network namespace)" };
        say!(
            "{:>4}  {:<20}  {:<13}  {}{elsewhere}",
            row.id.to_string(),
            row.created.as_deref().unwrap_or_default(),
            row.phase.unwrap_or("unreadable"),
            row.changes
                .iter()
                .cloned()
                .chain(row.routes.iter().map(ToString::to_string))
                .collect::<Vec<_>>()
                .join(", ")
        );
        row.error.iter().chain(&row.notes).for_each(|line| say!("      {line}"));
    }
}

pub(super) fn verified(report: &VerifyReport) {
    for drift in &report.drift {
        say!("change {}: {drift}", drift.id);
    }
    report.at_boot.iter().for_each(|text| say!("at the next boot: {text}"));
    match (report.checked.len(), report.drift.is_empty()) {
        (0, _) => say!("No change is in force."),
        (count, true) => say!("{count} change(s) in force, and everything is as they made it."),
        (_, false) => say!("Not everything is as it was made."),
    }
}

pub(super) fn checked(report: &CheckReport) {
    for drift in &report.drift {
        say!("change {}: {drift}", drift.id);
    }
    report.at_boot.iter().for_each(|text| say!("at the next boot: {text}"));
    report.verdicts.iter().for_each(verdict);
    for one in &report.proofs {
        say!("change {}: {}", one.change, one.settings.join(", "));
        proved(&one.proof, "measured", "no difference is shown");
    }
    let again = report.verdicts.iter().filter_map(|one| Some((&one.change, one.proof.as_ref()?)));
    let mut all = again.chain(report.proofs.iter().map(|one| (&one.change, &one.proof)));
    let slower = all.find(|(_, proof)| proof.slower).map(|(change, _)| change);
    match (report.checked.len(), report.holds) {
        (0, _) => {
            say!("No change is in force.");
            if wt_sys::process::effective_uid() != 0 {
                say!("Those of root are checked by: sudo windtunnel settings check");
            }
        }
        (count, true) => say!("{count} change(s) in force; what was changed holds."),
        (_, false) if !report.drift.is_empty() => {
            say!("Not everything is as it was made. Apply it again, or take the rest back: {} undo", own());
        }
        (_, false) => match slower {
            Some(change) => say!("Change {change} makes it slower. Take it back: {} undo {change}", own()),
            None => say!("What was measured may not hold here any more. Measure again: windtunnel settings prove"),
        },
    }
}

fn verdict(one: &VerdictCheck) {
    say!("change {}: {}", one.change, one.settings.join(", "));
    say!("  measured as {} on {} ({}), {}", one.experiment, one.target, one.tunnel, one.measured);
    for Circumstance { name, then, now, same, note } in &one.circumstances {
        let (name, unit) = match *name {
            "rtt_us" => ("RTT", "ms"),
            "path_mtu" => ("path MTU", "bytes"),
            other => (other, ""),
        };
        let shown = |value: &serde_json::Value| match (value, unit) {
            (serde_json::Value::Null, _) => "not known".to_owned(),
            (value, "ms") => format!("{:.1} ms", value.as_f64().unwrap_or_default() / 1e3),
            (value, unit) => format!("{} {unit}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
        };
        let word = match same {
            Some(true) => "same",
            Some(false) => "OTHER",
            None => "?",
        };
        let note = note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        say!("  {word:<6}{name:<9} {}; then {}{note}", shown(now).trim_end(), shown(then).trim_end());
    }
    if let Some(proof) = &one.proof {
        proved(proof, "measured again", "no gain is shown any more");
    }
}

fn proved(proof: &LaterProof, measured: &str, neither: &str) {
    let found = match (proof.faster, proof.slower) {
        (true, _) => "it is faster with the change",
        (_, true) => "it is SLOWER with the change",
        _ => neither,
    };
    let ratio = proof.ratio.map_or_else(String::new, |ratio| format!(", ×{ratio:.2} by estimate"));
    say!("  {measured} as {}, {}: {found}{ratio}", proof.experiment, proof.measured);
}

pub(super) fn defaults(answer: &DefaultsAnswer) {
    say!("{:<16} {:>6} {:>8} {:>9}  source", "system", "MTU", "RWIN", "initcwnd");
    for row in &answer.systems {
        let initcwnd = row.initcwnd.map_or_else(|| "-".to_owned(), |segments| segments.to_string());
        let grows = if row.grows { "+" } else { "" };
        say!("{:<16} {:>6} {:>8} {initcwnd:>9}  {}", row.name, row.mtu, format!("{}{grows}", row.rwin), row.source);
    }
    say!("\nBytes and segments; + grows by itself.");
}

/// Prints the files; what they can't express goes to standard error, `left_out` by the plan itself first.
pub(super) fn exported(export: &Export, left_out: &[Risk]) {
    if export.files.is_empty() && export.skipped.is_empty() && left_out.is_empty() {
        let _ = writeln!(std::io::stderr().lock(), "nothing to export: every setting is the kernel's own");
        return;
    }
    let several = export.files.len() > 1;
    for file in &export.files {
        if several {
            emit!("### {}", file.path);
        }
        print_file(&file.content);
    }
    for skipped in left_out.iter().chain(&export.skipped) {
        let _ = writeln!(std::io::stderr().lock(), "not expressed: {}", skipped.text);
    }
}
