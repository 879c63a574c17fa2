//! `windtunnel settings`: this host's TCP/IP settings, read, planned, applied, confirmed or undone.

/// Flags.
mod args;
/// Answers to people.
mod print;
/// With a change and without it.
mod prove;
/// The screen.
mod show;

use crate::cli::forms::give;
use crate::cli::typed;
use crate::edge::{Exit, Outcome, emit, say};
use args::{CheckArgs, ExportArgs, HowArgs, RequestArgs, ShowArgs};
use clap::{Args, Subcommand};
pub(crate) use prove::give_proof;
use serde_json::json;
use std::path::PathBuf;
use std::sync::OnceLock;
use wt_setup::HostAccess;
use wt_setup::settings::{self, ApplyRequest, ChangeAnswer, ShowRequest};
use wt_units::suggestion;

/// Manages this host's TCP/IP settings: show, plan, apply, undo
///
/// A change is put back by itself unless it is confirmed in time, also when the connection over which it was made is
/// gone. Nothing that is written before the confirmation survives a reboot.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel settings show
  windtunnel settings plan initcwnd=20 --to 192.0.2.1
  windtunnel settings apply sack=on cc=bbr --confirm-within 2m
  windtunnel settings confirm
  windtunnel settings undo")]
pub(crate) struct SettingsArgs {
    #[command(subcommand)]
    command: SettingsCommand,
    /// Where checkpoints are kept [default: /var/lib/windtunnel for root, $XDG_STATE_HOME/windtunnel for others;
    /// environment: WINDTUNNEL_STATE_DIR]
    #[arg(long, value_name = "DIR", global = true)]
    state_dir: Option<PathBuf>,
    /// Read and write configuration files below this directory instead of / [environment: WINDTUNNEL_ROOT]
    #[arg(long, value_name = "DIR", global = true)]
    root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum SettingsCommand {
    Show(ShowArgs),
    /// Shows what would change: old and new, the commands, what could go wrong. Writes nothing
    #[command(after_help = "Examples:
  windtunnel settings plan rwin=8x mtu=1492
  windtunnel settings plan initcwnd=20 --to 192.0.2.1")]
    Plan {
        #[command(flatten)]
        request: RequestArgs,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Changes settings, and reverts them unless confirmed in time
    #[command(after_help = "Examples:
  sudo windtunnel settings apply sack=on cc=bbr --confirm-within 2m
  sudo windtunnel settings apply --verdict last")]
    Apply {
        #[command(flatten)]
        request: RequestArgs,
        #[command(flatten)]
        how: HowArgs,
        /// Then measure with the change and without it: `settings prove`
        #[arg(long)]
        prove: bool,
        #[command(flatten)]
        proof: prove::ProveHow,
    },
    /// Confirms the pending change and makes it persistent
    #[command(after_help = "Examples:
  sudo windtunnel settings confirm")]
    Confirm {
        /// The change [default: the one that waits]
        id: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Reverts a change
    #[command(after_help = "Examples:
  sudo windtunnel settings undo
  sudo windtunnel settings undo 3
  sudo windtunnel settings undo 3 --force  # where something of it can't be put back")]
    Undo {
        /// The change [default: the latest in force]
        id: Option<String>,
        /// Put back what can be, say what stays, and be done with the change
        #[arg(long)]
        force: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Leaves everything as it is and is done with a change: says what of it stays
    #[command(after_help = "Examples:
  sudo windtunnel settings forget 3")]
    Forget {
        /// The change
        id: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    Prove(prove::ProveArgs),
    /// Lists the changes that were made
    History {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Checks whether what was changed is still so; exit code 1 if not
    Verify {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Checks whether changes and the verdicts behind them still hold; exit code 1 if not
    ///
    /// Compares every setting with what a change made it, and kernel, device, RTT and path MTU with what they were when the
    /// verdict behind it was measured; the path by five connections to the server, without data. A later `settings prove` counts, too.
    #[command(after_help = "Examples:
  sudo windtunnel settings check
  sudo windtunnel settings check --offline --json")]
    Check(CheckArgs),
    /// Stores all settings in a file
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
    /// Makes all settings as a file has them, like a change: it must be confirmed, and can be undone
    Restore {
        /// A file that `backup` wrote
        file: PathBuf,
        /// Shows what would change, and writes nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        how: HowArgs,
    },
    Export(ExportArgs),
    /// Shows what operating systems begin with
    Defaults {
        /// One of them, such as "Windows XP"
        #[arg(long, value_name = "NAME")]
        os: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Stops showing a finding, or shows it again
    Mute {
        /// Its id, as `show` prints it
        id: String,
        /// Shows it again
        #[arg(long)]
        off: bool,
    },
    /// Holds settings on connections with a target; what a unit runs at boot
    #[command(hide = true)]
    Hold {
        /// An address or a network
        target: String,
        /// Such as rwin=8192, in bytes
        #[arg(value_name = "KEY=BYTES", required = true)]
        settings: Vec<String>,
    },
    /// Waits for the confirmation of a change; for internal use
    #[command(hide = true)]
    Guard {
        /// The change
        id: String,
    },
}

impl SettingsCommand {
    fn is_json(&self) -> bool {
        match self {
            Self::Show(args) => args.json,
            Self::Apply { how, .. } | Self::Restore { how, .. } => how.json,
            Self::Export(args) => args.json,
            Self::Prove(args) => args.json,
            Self::Check(args) => args.json,
            Self::Plan { json, .. }
            | Self::Confirm { json, .. }
            | Self::Undo { json, .. }
            | Self::Forget { json, .. }
            | Self::History { json }
            | Self::Verify { json }
            | Self::Defaults { json, .. } => *json,
            Self::Backup { .. } | Self::Mute { .. } | Self::Guard { .. } | Self::Hold { .. } => false,
        }
    }
}

/// How this command was called, but for what was asked: with the folders that somebody named.
static OWN: OnceLock<String> = OnceLock::new();

/// See [`OWN`].
fn own() -> &'static str {
    OWN.get().map_or("windtunnel settings", String::as_str)
}

impl SettingsArgs {
    fn own(&self) -> String {
        let options = [("--state-dir", &self.state_dir), ("--root", &self.root)];
        let given = options.iter().filter_map(|(name, path)| Some((name, path.as_ref()?)));
        let words = given.map(|(name, path)| format!(" {name} {}", wt_units::shell_word_of_os(path.as_os_str())));
        format!("windtunnel settings{}", words.collect::<String>())
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try. With `--json`, the object says so too.
pub(crate) fn run(args: &SettingsArgs) -> Outcome {
    let json = args.command.is_json();
    let mut said = false;
    let _ = OWN.set(args.own());
    let host = HostAccess::open(args.state_dir.as_deref(), args.root.as_deref());
    let result = host.and_then(|mut host| dispatch(&args.command, &mut host, &mut said));
    if let (Err(failure), true, false) = (&result, json, said) {
        let error =
            json!({"what": failure.what, "cause": failure.cause, "try": failure.hint, "code": failure.fault.code()});
        emit!("{}", json!({"schema_version": 1, "error": error}));
    }
    result
}

/// `said` is set when the JSON object is out though the command fails.
fn dispatch(command: &SettingsCommand, host: &mut HostAccess, said: &mut bool) -> Outcome {
    match command {
        SettingsCommand::Show(args) => show(args, host),
        SettingsCommand::Plan { request, json } => {
            give(&host.plan(&request.request())?, *json, |plan| print::plan(plan, &typed::behind("plan", "apply")))
        }
        SettingsCommand::Apply { request, how, prove, proof } => {
            let request = ApplyRequest { change: request.request(), confirmation: how.confirmation() };
            if *prove {
                return prove::apply_and_prove(&request, proof, how.json, said, host);
            }
            proof.is_unused()?;
            changed(host.apply(&request)?, how.json, said)
        }
        SettingsCommand::Prove(args) => prove::run(args, host),
        SettingsCommand::Confirm { id, json } => give(&host.confirm(id.as_deref())?, *json, print::confirmed),
        SettingsCommand::Undo { id, force: true, json } => {
            give(&host.undo_by_force(id.as_deref())?, *json, print::released)
        }
        SettingsCommand::Undo { id, json, .. } => give(&host.undo(id.as_deref())?, *json, print::undone),
        SettingsCommand::Forget { id, json } => give(&host.forget(id)?, *json, print::released),
        SettingsCommand::History { json } => give(&host.history()?, *json, print::history),
        SettingsCommand::Verify { json } => {
            let report = host.verify()?;
            give(&report, *json, print::verified)?;
            Ok(if report.drift.is_empty() { Exit::Done } else { Exit::No })
        }
        SettingsCommand::Check(args) => {
            let report = host.check(&args.request())?;
            give(&report, args.json, print::checked)?;
            Ok(if report.holds { Exit::Done } else { Exit::No })
        }
        SettingsCommand::Backup { file } => {
            let stored = host.back_up(file)?;
            let (settings, devices, routes) = (stored.settings, stored.devices, stored.routes);
            say!("{settings} settings, {devices} devices and {routes} routes are in {}", file.display());
            Ok(Exit::Done)
        }
        SettingsCommand::Restore { file, dry_run: true, how } => {
            let again = format!("restore {}", wt_units::shell_word_of_os(file.as_os_str()));
            give(&host.plan_backup(file)?, how.json, |plan| print::plan(plan, &again))
        }
        SettingsCommand::Restore { file, how, .. } => {
            let plan = host.plan_backup(file)?;
            if !plan.is_empty() {
                return changed(host.restore(file, how.confirmation())?, how.json, said);
            }
            let nothing = json!({"schema_version": 1, "applied": [], "skipped": plan.skipped});
            give(&nothing, how.json, |_| print::nothing_to_restore(&plan, file))
        }
        SettingsCommand::Export(args) => {
            let (export, left_out) = host.export(&args.request())?;
            give(&export, args.json, |export| print::exported(export, &left_out))
        }
        SettingsCommand::Defaults { os, json } => give(&settings::defaults(os.as_deref())?, *json, print::defaults),
        SettingsCommand::Mute { id, off } => {
            let changed = if host.mute(id, *off)? { "is now" } else { "was already" };
            say!("{id} {changed} {}", if *off { "shown" } else { "muted" });
            if !off {
                say_if_nothing_is_muted(id, host);
            }
            Ok(Exit::Done)
        }
        SettingsCommand::Hold { target, settings } => settings::hold_connections(target, settings).map(|()| Exit::Done),
        SettingsCommand::Guard { id } => host.guard(id).map(|()| Exit::Done),
    }
}

/// Gives what was changed; of what failed half-way only programs are told how far it came.
fn changed(answer: ChangeAnswer, json: bool, said: &mut bool) -> Outcome {
    if json || answer.problem.is_none() {
        give(&answer, json, |answer| print::applied(&answer.applied))?;
        *said = json;
    }
    answer.problem.map_or(Ok(Exit::Done), Err)
}

/// Says if this host has no such finding now: a typing mistake hides nothing.
fn say_if_nothing_is_muted(id: &str, host: &mut HostAccess) {
    let Ok(report) = host.show(&ShowRequest::default()) else { return };
    if report.muted.iter().all(|muted| muted != id) {
        let near = suggestion(id, report.findings.iter().map(|finding| finding.id.as_str()));
        say!("This host has no such finding now{near}; windtunnel settings mute --off {id} takes it back");
    }
}

fn show(args: &ShowArgs, host: &mut HostAccess) -> Outcome {
    let mut request = args.request();
    if args.pick {
        let adapter = show::pick(&host.show(&request)?)?.name.clone();
        request = ShowRequest { adapter: Some(adapter), ..request };
    }
    let report = host.show(&request)?;
    let chosen = request.adapter.as_ref().or(report.default_adapter.as_ref());
    let chosen = report.adapters.iter().find(|adapter| Some(&adapter.name) == chosen);
    give(&report, args.json, |report| show::print(report, chosen, args.all))
}
