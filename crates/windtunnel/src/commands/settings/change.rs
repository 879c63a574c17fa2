//! `settings plan`, `apply`, `restore`, `confirm`, `undo`, and the guard.

use super::request::RequestArgs;
use super::{Session, errors};
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use wt_host::{Applied, ApplyOptions, Backup, CheckpointId, GuardOptions, Lasting, Plan, Survey, TxnError};
use wt_units::parse_duration;

/// How a change is made.
#[derive(Debug, Args)]
pub(super) struct HowArgs {
    /// Put everything back unless `settings confirm` comes within this time
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = within)]
    confirm_within: Duration,
    /// Confirm at once: nobody can if this cuts the machine off
    #[arg(long, conflicts_with = "confirm_within")]
    yes: bool,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

fn within(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_secs(1);
    const MOST: Duration = Duration::from_secs(7 * 86_400);
    // A bare number means seconds, as in netplan try.
    let time = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => parse_duration(text).map_err(|error| error.to_string())?,
    };
    if (LEAST..=MOST).contains(&time) {
        Ok(time)
    } else {
        Err(format!("\"{text}\" is out of range: allowed is 1s to 168h"))
    }
}

fn survey(session: &mut Session) -> Result<Survey, Failure> {
    Survey::take(&mut session.system).map_err(|error| errors::system(&error))
}

fn make(request: &RequestArgs, survey: &Survey, session: &mut Session) -> Result<Plan, Failure> {
    let request = request.read(survey)?;
    Plan::make(&mut session.system, survey, &request).map_err(|error| errors::plan(&error))
}

/// Ends changes that nobody watches any more.
pub(super) fn recover(session: &mut Session) -> Vec<wt_host::Finding> {
    match wt_host::recover(&mut session.system, &session.store) {
        Ok(recovered) => recovered.iter().map(wt_host::Recovered::finding).collect(),
        // Somebody is at it: then there is nothing to recover.
        Err(_) => Vec::new(),
    }
}

pub(super) fn plan(request: &RequestArgs, json: bool, session: &mut Session) -> Outcome {
    let survey = survey(session)?;
    let plan = make(request, &survey, session)?;
    show_plan(&plan, json);
    Ok(Exit::Done)
}

fn show_plan(plan: &Plan, json: bool) {
    if json {
        say!("{}", json!(plan));
        return;
    }
    say!("{:<24} {:>22}    {:<22} {:<6} on", "setting", "old", "new", "scope");
    for change in &plan.changes {
        let mark = if change.unchanged { "=" } else { "->" };
        let scope = json!(change.scope);
        let scope = scope.as_str().unwrap_or_default();
        say!(
            "{:<24} {:>22} {mark:>2} {:<22} {scope:<6} {}",
            change.key,
            change.old.to_string(),
            change.new.to_string(),
            change.target
        );
        say!("{:<24} {}", "", change.why);
    }
    let list = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            say!("\n{title}");
            lines.iter().for_each(|line| say!("  {line}"));
        }
    };
    let risks =
        |risks: &[wt_host::Risk]| risks.iter().map(|risk| format!("{}: {}", risk.key, risk.text)).collect::<Vec<_>>();
    list("The commands that would do it:", &plan.commands);
    list("What could go wrong:", &risks(&plan.risks));
    list("Left out:", &risks(&plan.skipped));
    for file in &plan.lasting {
        let Lasting { device, manager, path, content, .. } = file;
        let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
        lines.extend(risks(&file.skipped));
        list(
            &format!("{manager} configures {device}. It keeps this if {path} says (a confirmation writes it):"),
            &lines,
        );
    }
    if plan.is_empty() {
        say!("\nEverything is so already; nothing would be written.");
    } else {
        say!("\nNothing was written. windtunnel settings apply does it, and puts it back unless it is confirmed.");
    }
}

pub(super) fn apply(request: &RequestArgs, how: &HowArgs, session: &mut Session) -> Outcome {
    let survey = survey(session)?;
    let plan = make(request, &survey, session)?;
    carry_out(&plan, &survey, how, session)
}

pub(super) fn restore(file: &Path, dry_run: bool, how: &HowArgs, session: &mut Session) -> Outcome {
    let bytes = std::fs::read(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let backup = Backup::parse(&bytes, file).map_err(|error| Failure::usage(error.to_string()))?;
    let survey = survey(session)?;
    let plan = backup.plan(&survey);
    if dry_run {
        show_plan(&plan, how.json);
        return Ok(Exit::Done);
    }
    carry_out(&plan, &survey, how, session)
}

fn carry_out(plan: &Plan, survey: &Survey, how: &HowArgs, session: &mut Session) -> Outcome {
    let options = ApplyOptions { confirm_within: how.confirm_within, yes: how.yes, guard: session.guard.clone() };
    match wt_host::apply(&mut session.system, &session.store, survey, plan, &options) {
        Ok(applied) => {
            show_applied(&applied, how.json);
            Ok(Exit::Done)
        }
        Err(error) => {
            if let (TxnError::Failed { report, .. }, true) = (&error, how.json) {
                say!("{}", json!(report));
                session.has_said = true;
            }
            Err(errors::txn(&error))
        }
    }
}

fn show_applied(applied: &Applied, json: bool) {
    if json {
        say!("{}", json!(applied));
        return;
    }
    say!("{:<24} {:>22}    {:<22} on", "setting", "asked", "granted");
    for row in &applied.applied {
        let granted = row.granted.as_ref().map_or_else(|| "gone".to_owned(), ToString::to_string);
        say!("{:<24} {:>22}    {granted:<22} {}", row.key, row.asked.to_string(), row.target);
    }
    for note in applied.skipped.iter().chain(&applied.notes) {
        say!("{}: {}", note.key, note.text);
    }
    let id = applied.id;
    match &applied.confirm_deadline {
        Some(deadline) => {
            let within = applied.confirm_within_s.unwrap_or_default();
            say!("\nChange {id} is in force, and is put back at {deadline} (in {within} s) unless you confirm it:");
            say!("  windtunnel settings confirm");
            say!("To put it back now: windtunnel settings undo");
        }
        None => {
            applied.files.iter().for_each(|file| say!("wrote {file}"));
            say!("\nChange {id} is in force and stays. windtunnel settings undo {id} takes it back.");
        }
    }
}

fn id(text: Option<&str>) -> Result<Option<CheckpointId>, Failure> {
    text.map(str::parse).transpose().map_err(|error| errors::store(&error))
}

pub(super) fn confirm(which: Option<&str>, json: bool, session: &mut Session) -> Outcome {
    let which = id(which)?;
    let confirmed =
        wt_host::confirm(&mut session.system, &session.store, which).map_err(|error| errors::txn(&error))?;
    if json {
        say!("{}", json!(confirmed));
        return Ok(Exit::Done);
    }
    confirmed.files.iter().for_each(|file| say!("wrote {file}"));
    confirmed.notes.iter().for_each(|note| say!("{}: {}", note.key, note.text));
    say!("Change {} stays. windtunnel settings undo {} takes it back.", confirmed.id, confirmed.id);
    Ok(Exit::Done)
}

pub(super) fn undo(which: Option<&str>, json: bool, session: &mut Session) -> Outcome {
    let which = id(which)?;
    let undone = wt_host::undo(&mut session.system, &session.store, which, &session.guard)
        .map_err(|error| errors::txn(&error))?;
    if json {
        say!("{}", json!(undone));
        return Ok(Exit::Done);
    }
    undone.changes.iter().for_each(|change| say!("{change}"));
    say!("Change {} was taken back; everything is as it was before it.", undone.id);
    Ok(Exit::Done)
}

pub(super) fn guard(which: &str, session: &mut Session) -> Outcome {
    let id: CheckpointId = which.parse().map_err(|error| errors::store(&error))?;
    let options = GuardOptions { store: session.store.clone(), id };
    wt_host::guard(&mut session.system, &options).map_err(|error| errors::store(&error))?;
    Ok(Exit::Done)
}
