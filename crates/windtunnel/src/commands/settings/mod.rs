//! `windtunnel settings`: this host's TCP/IP settings, read, planned, applied, confirmed or undone.

/// Making changes, and taking them back.
mod change;
/// What errors say.
mod errors;
/// Backups, exports, tables.
mod files;
/// What is to be changed, on the command line.
mod request;
/// The screen.
mod show;

use crate::edge::{Failure, Outcome, say};
use clap::{Args, Subcommand};
use request::RequestArgs;
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use wt_host::{GuardCommand, RealSystem, Store};

/// This host's TCP/IP settings: show, plan, apply, confirm, undo
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
    Show(show::ShowArgs),
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
    /// Changes settings; puts everything back unless it is confirmed in time
    #[command(after_help = "Examples:
  sudo windtunnel settings apply sack=on cc=bbr --confirm-within 2m
  sudo windtunnel settings apply --verdict last")]
    Apply {
        #[command(flatten)]
        request: RequestArgs,
        #[command(flatten)]
        how: change::HowArgs,
    },
    /// Makes the change that waits for it stay, also after a reboot
    #[command(after_help = "Examples:
  sudo windtunnel settings confirm")]
    Confirm {
        /// The change [default: the one that waits]
        id: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Takes a change back
    #[command(after_help = "Examples:
  sudo windtunnel settings undo
  sudo windtunnel settings undo 3")]
    Undo {
        /// The change [default: the latest in force]
        id: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Lists the changes that were made
    History {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Tells whether what was changed is still so; exit code 1 if not
    Verify {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
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
        how: change::HowArgs,
    },
    Export(files::ExportArgs),
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
            Self::Plan { json, .. }
            | Self::Confirm { json, .. }
            | Self::Undo { json, .. }
            | Self::History { json }
            | Self::Verify { json }
            | Self::Defaults { json, .. } => *json,
            Self::Backup { .. } | Self::Mute { .. } | Self::Guard { .. } => false,
        }
    }
}

/// What every subcommand needs.
struct Session {
    system: RealSystem,
    store: Store,
    /// What starts a guard: this program.
    guard: GuardCommand,
    /// Whether the JSON object is out, though the command fails.
    has_said: bool,
}

/// The machine, where checkpoints are kept, and what starts a guard, for other commands that change settings.
///
/// # Errors
/// A [`Failure`] when there is no place for checkpoints.
pub(crate) fn parts() -> Result<(RealSystem, Store, GuardCommand), Failure> {
    let session = Session::open(&SettingsArgs {
        command: SettingsCommand::History { json: false },
        state_dir: None,
        root: None,
    })?;
    Ok((session.system, session.store, session.guard))
}

impl Session {
    fn open(args: &SettingsArgs) -> Result<Self, Failure> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = args.root.clone().or_else(|| variable("WINDTUNNEL_ROOT"));
        let root = root.map(|root| absolute(&root)).transpose()?;
        let state = args.state_dir.clone().or_else(|| variable("WINDTUNNEL_STATE_DIR"));
        let state = match state {
            Some(state) => absolute(&state)?,
            None => default_state(root.as_deref())?,
        };
        let mut guard: Vec<OsString> =
            vec!["settings".into(), "guard".into(), "--state-dir".into(), state.clone().into()];
        if let Some(root) = &root {
            guard.extend(["--root".into(), root.clone().into()]);
        }
        let guard = GuardCommand { program: "/proc/self/exe".into(), args: guard };
        let system = RealSystem::open(root).map_err(|error| Failure::environment(error.to_string()))?;
        Ok(Self { system, store: Store::at(state), guard, has_said: false })
    }
}

fn absolute(path: &std::path::Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// Root's place, unless root is only root of a user namespace, to whom /var/lib belongs as little as to anybody.
fn default_state(root: Option<&std::path::Path>) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::MetadataExt as _;
    const SYSTEM: &str = "/var/lib";
    if let Some(root) = root {
        return Ok(root.join("var/lib/windtunnel"));
    }
    let owns_system = std::fs::metadata(SYSTEM).is_ok_and(|data| data.uid() == 0);
    if wt_sys::process::effective_uid() == 0 && owns_system {
        return Ok(PathBuf::from(SYSTEM).join("windtunnel"));
    }
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = home("XDG_STATE_HOME").or_else(|| home("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("windtunnel")).ok_or_else(|| {
        Failure::environment("there is no place for checkpoints: neither XDG_STATE_HOME nor HOME is an absolute path")
            .hint("name a directory with --state-dir")
    })
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try. With `--json`, the object says so too.
pub(crate) fn run(args: &SettingsArgs) -> Outcome {
    let mut has_said = false;
    let result = Session::open(args).and_then(|mut session| {
        let result = dispatch(&args.command, &mut session);
        has_said = session.has_said;
        result
    });
    if let (Err(failure), true, false) = (&result, args.command.is_json(), has_said) {
        let error = json!({"what": failure.what, "cause": failure.cause, "try": failure.hint, "code": failure.code()});
        say!("{}", json!({"schema_version": 1, "error": error}));
    }
    result
}

fn dispatch(command: &SettingsCommand, session: &mut Session) -> Outcome {
    match command {
        SettingsCommand::Show(args) => show::run(args, session),
        SettingsCommand::Plan { request, json } => change::plan(request, *json, session),
        SettingsCommand::Apply { request, how } => change::apply(request, how, session),
        SettingsCommand::Confirm { id, json } => change::confirm(id.as_deref(), *json, session),
        SettingsCommand::Undo { id, json } => change::undo(id.as_deref(), *json, session),
        SettingsCommand::History { json } => files::history(*json, session),
        SettingsCommand::Verify { json } => files::verify(*json, session),
        SettingsCommand::Backup { file } => files::backup(file, session),
        SettingsCommand::Restore { file, dry_run, how } => change::restore(file, *dry_run, how, session),
        SettingsCommand::Export(args) => files::export(args, session),
        SettingsCommand::Defaults { os, json } => files::defaults(os.as_deref(), *json),
        SettingsCommand::Mute { id, off } => show::mute(id, *off, session),
        SettingsCommand::Guard { id } => change::guard(id, session),
    }
}
