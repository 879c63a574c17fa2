//! `settings backup`, `export`, `history`, `verify` and `defaults`.

use super::request::RequestArgs;
use super::{Session, errors};
use crate::edge::{Exit, Failure, Outcome, say};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use wt_host::{Backup, ExportFormat, Plan, Request, Survey, System as _};
use wt_units::suggestion;

/// Writes settings in the words of another system or manager
///
/// Without settings, those of this host that aren't the kernel's own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel settings export --to sysctl.d cc=bbr rwin=4MiB
  windtunnel settings export --to netplan initcwnd=20 mtu=1400 --at eth0
  windtunnel settings export --to windows-reg ttl=128 mtu=1492")]
pub(super) struct ExportArgs {
    /// Whose words
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Form,
    /// Settings such as initcwnd=20, or a plan's file
    #[arg(value_name = "KEY=VALUE|PLAN")]
    items: Vec<String>,
    /// A plan
    #[arg(long, value_name = "PLAN")]
    file: Option<PathBuf>,
    /// Every setting as the kernel has it by itself
    #[arg(long)]
    defaults: bool,
    /// Where the settings are to hold: host, default, a target or a device
    #[arg(long, value_name = "ROUTE|IFACE|host")]
    at: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// [`ExportFormat`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form(ExportFormat);

impl ValueEnum for Form {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Form; 10] = {
            let mut all = [Form(ExportFormat::SysctlD); 10];
            let mut at = 0;
            while at < all.len() {
                all[at] = Form(ExportFormat::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

pub(super) fn export(args: &ExportArgs, session: &mut Session) -> Outcome {
    let survey = Survey::take(&mut session.system).map_err(|error| errors::system(&error))?;
    let asked = RequestArgs::of(args.items.clone(), args.file.clone(), args.defaults, args.at.clone());
    let request = if asked.is_empty() { Request::current(&survey) } else { asked.read(&survey)? };
    if asked.is_empty() && request.pairs.is_empty() {
        if args.json {
            say!("{}", json!({"schema_version": 1, "format": args.to.0.name(), "files": [], "skipped": []}));
        } else {
            let _ = writeln!(std::io::stderr().lock(), "nothing to export: every setting is the kernel's own");
        }
        return Ok(Exit::Done);
    }
    let plan = Plan::make(&mut session.system, &survey, &request).map_err(|error| errors::plan(&error))?;
    let export = wt_host::export(args.to.0, &plan, &survey);
    if args.json {
        say!("{}", json!(export));
        return Ok(Exit::Done);
    }
    let several = export.files.len() > 1;
    for file in &export.files {
        if several {
            say!("### {}", file.path);
        }
        let _ = std::io::stdout().lock().write_all(file.content.as_bytes());
    }
    for skipped in plan.skipped.iter().chain(&export.skipped) {
        let _ = writeln!(std::io::stderr().lock(), "not expressed: {}", skipped.text);
    }
    Ok(Exit::Done)
}

pub(super) fn backup(path: &Path, session: &mut Session) -> Outcome {
    let survey = Survey::take(&mut session.system).map_err(|error| errors::system(&error))?;
    let backup = Backup::of(&survey, session.system.now().unix_s);
    let text = serde_json::to_string(&backup).map_err(|error| Failure::ours(error.to_string()))?;
    let write = || {
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    write().map_err(|error| {
        Failure::environment(format!("{}: {error}", path.display())).hint("name a file that doesn't exist yet")
    })?;
    say!(
        "{} settings, {} devices and {} routes are in {}",
        backup.snapshot.sysctls.len(),
        backup.snapshot.devices.len(),
        backup.snapshot.routes.len(),
        path.display()
    );
    Ok(Exit::Done)
}

pub(super) fn history(json: bool, session: &mut Session) -> Outcome {
    let recovered = super::change::recover(session);
    let rows = wt_host::history(&mut session.system, &session.store).map_err(|error| errors::store(&error))?;
    if json {
        say!("{}", json!({"schema_version": 1, "changes": rows, "recovered": recovered}));
        return Ok(Exit::Done);
    }
    recovered.iter().for_each(|finding| say!("{}", finding.text));
    if rows.is_empty() {
        say!("No change was made yet.");
        return Ok(Exit::Done);
    }
    say!("{:>4}  {:<20}  {:<13}  changes", "id", "made", "state");
    for row in rows {
        let elsewhere = if row.here || row.created.is_none() { "" } else { " (in another network namespace)" };
        say!(
            "{:>4}  {:<20}  {:<13}  {}{elsewhere}",
            row.id.to_string(),
            row.created.unwrap_or_default(),
            row.phase.unwrap_or("unreadable"),
            row.changes.join(", ")
        );
        if let Some(error) = row.error {
            say!("      {error}");
        }
    }
    Ok(Exit::Done)
}

pub(super) fn verify(json: bool, session: &mut Session) -> Outcome {
    super::change::recover(session);
    let survey = Survey::take(&mut session.system).map_err(|error| errors::system(&error))?;
    let report = wt_host::verify(&mut session.system, &session.store, &survey).map_err(|error| errors::txn(&error))?;
    let exit = if report.drift.is_empty() { Exit::Done } else { Exit::No };
    if json {
        say!("{}", json!(report));
        return Ok(exit);
    }
    for drift in &report.drift {
        let found = drift.found.as_ref().map_or_else(|| "gone".to_owned(), ToString::to_string);
        say!("change {}: {} on {} was made {}, and is {found}", drift.id, drift.key, drift.target, drift.expected);
    }
    report.at_boot.iter().for_each(|text| say!("at the next boot: {text}"));
    match (report.checked.len(), report.drift.is_empty()) {
        (0, _) => say!("No change is in force."),
        (count, true) => say!("{count} change(s) in force, and everything is as they made it."),
        (_, false) => say!("Not everything is as it was made."),
    }
    Ok(exit)
}

pub(super) fn defaults(os: Option<&str>, json: bool) -> Outcome {
    let table = wt_host::os_defaults();
    let rows = match os {
        None => table.iter().collect(),
        Some(name) => vec![wt_host::os_default(name).map_err(|error| {
            let near = suggestion(name, error.known.iter().map(String::as_str));
            Failure::usage(format!("{error}{near}"))
        })?],
    };
    if json {
        say!("{}", json!({"schema_version": 1, "systems": rows}));
        return Ok(Exit::Done);
    }
    say!("{:<16} {:>6} {:>8} {:>9}  source", "system", "MTU", "RWIN", "initcwnd");
    for row in rows {
        let initcwnd = row.initcwnd.map_or_else(|| "-".to_owned(), |segments| segments.to_string());
        let grows = if row.grows { "+" } else { "" };
        say!("{:<16} {:>6} {:>8} {initcwnd:>9}  {}", row.name, row.mtu, format!("{}{grows}", row.rwin), row.source);
    }
    say!("\nBytes and segments; + grows by itself.");
    Ok(Exit::Done)
}
