//! `windtunnel lab`: the shipped paths, and running programs over them.

/// Paths for other emulators.
mod export;
/// Traces of another emulator.
mod import;
/// Paths drawn.
mod picture;
/// Running programs.
mod run;
/// What a path is made of.
mod show;
/// What the lab says of itself.
mod stats;
/// One transfer from within.
mod transfer;
/// On a kernel of its own.
pub(crate) mod virtual_time;

use crate::edge::{Exit, Failure, Outcome, say};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use wt_lab::{Backend, Lab, LabError, Recording, Scenario, presets};

/// The lab: two hosts joined by an emulated path, without root
///
/// The client and the server are network namespaces of this machine's own kernel; what lies between them is emulated in
/// user space. A lab is up within a fraction of a second. Nothing on the host is changed, and nothing is left behind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab list
  windtunnel lab show adsl
  windtunnel lab run adsl -- curl -o /dev/null http://server/bytes/3MB
  windtunnel lab up transatlantic")]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Lists the shipped paths
    List {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Shows a path: its file, and what follows from its figures
    Show {
        /// A preset's name or a TOML file
        path: String,
        /// Also draw the path as SVG
        #[arg(long, value_name = "FILE")]
        svg: Option<std::path::PathBuf>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    Run(run::RunArgs),
    Up(run::UpArgs),
    Ping(run::PingArgs),
    Iperf3(run::Iperf3Args),
    Browser(run::BrowserArgs),
    Transfer(transfer::TransferArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
}

/// What every command that makes a lab takes.
#[derive(Debug, Args, Clone)]
pub(crate) struct LabOptions {
    /// Seed of everything random on the path
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How the emulator reaches the hosts' kernels
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    pub(crate) backend: BackendName,
}

/// The backends by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// TUN where /dev/net/tun is open to us, or else veth
    Auto,
    /// TUN devices
    Tun,
    /// veth pairs with AF_PACKET rings
    Veth,
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Self {
        match name {
            BackendName::Auto => Self::Best,
            BackendName::Tun => Self::Tun,
            BackendName::Veth => Self::Veth,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &LabArgs) -> Outcome {
    match &args.command {
        LabCommand::List { json } => list(*json),
        LabCommand::Show { path, svg, json } => show::show(path, svg.as_deref(), *json),
        LabCommand::Run(args) => run::program(args),
        LabCommand::Up(args) => run::up(args),
        LabCommand::Ping(args) => run::ping(args),
        LabCommand::Iperf3(args) => run::iperf3(args),
        LabCommand::Browser(args) => run::browser(args),
        LabCommand::Transfer(args) => transfer::transfer(args),
        LabCommand::Export(args) => export::export(args),
        LabCommand::Import(args) => import::import(args),
    }
}

/// Loads a preset or a file.
///
/// # Errors
/// A usage failure with the nearest names, or with file, line and field.
pub(crate) fn load(path: &str) -> Result<Scenario, Failure> {
    presets::load(path).map_err(|error| match error {
        presets::PresetError::Unknown { .. } => {
            Failure::usage(error.to_string()).hint("windtunnel lab list shows them; a path of your own is a TOML file")
        }
        _ => Failure::usage(error.to_string()).hint("windtunnel lab show adsl prints an example"),
    })
}

/// Enters the user namespace and starts the lab. Must be called before any other thread runs.
///
/// # Errors
/// An environment failure that says what is missing.
pub(crate) fn start(scenario: Scenario, options: &LabOptions) -> Result<Lab, Failure> {
    start_recording(scenario, options, None)
}

/// As [`start`], with a recording.
///
/// # Errors
/// An environment failure that says what is missing.
fn start_recording(scenario: Scenario, options: &LabOptions, record: Option<Recording>) -> Result<Lab, Failure> {
    let options = wt_lab::LabOptions { backend: options.backend.into(), seed: options.seed, record };
    wt_lab::enter().and_then(|()| Lab::with(scenario, options)).map_err(|e| failure(&e))
}

/// What to say when the lab can't be made.
pub(crate) fn failure(error: &LabError) -> Failure {
    match error {
        LabError::UserNamespace(_) if super::doctor::apparmor_restricts() => Failure::environment(error.to_string())
            .because("AppArmor takes the rights from user namespaces here (kernel.apparmor_restrict_unprivileged_userns is 1)")
            .hint(super::doctor::APPARMOR_HELP),
        // ENOSPC; both kinds are made at once.
        LabError::UserNamespace(source) if source.errno() == Some(28) => Failure::environment(error.to_string())
            .because("a limit of namespaces is reached: user.max_user_namespaces or user.max_net_namespaces")
            .hint("let root raise it, here or where this container runs: sysctl -w user.max_user_namespaces=10000 user.max_net_namespaces=10000"),
        LabError::UserNamespace(source) if wt_sys::ns::is_root_that_may_map_nobody(source) => {
            Failure::environment(error.to_string())
                .because("this is root without CAP_SETFCAP, as in some containers: the kernel lets it map no user")
                .hint("run it as an ordinary user, or give the container CAP_SETFCAP")
        }
        LabError::UserNamespace(source) => Failure::environment(error.to_string())
            .because(match source.errno() {
                Some(1 | 13) => "this system forbids unprivileged user namespaces",
                _ => "the kernel refused",
            })
            .hint(super::doctor::USER_NAMESPACE_HELP),
        LabError::SetUp { source, advice } => {
            Failure::environment(format!("can't set up the lab: {source}")).hint((*advice).to_owned())
        }
        LabError::Record { .. } => Failure::environment(error.to_string()).hint("choose a file that you may write"),
        LabError::Engine(why) => Failure::ours(format!("the lab's emulator stopped: {why}")),
    }
}

fn list(json: bool) -> Outcome {
    let scenarios = presets::names().into_iter().map(load).collect::<Result<Vec<_>, _>>()?;
    if json {
        let presets: Vec<_> = scenarios.iter().map(|s| json!({"name": s.name, "title": s.title})).collect();
        say!("{}", json!({"schema_version": 1, "presets": presets}));
        return Ok(Exit::Done);
    }
    for scenario in scenarios {
        say!("{:<14} {}", scenario.name, scenario.title);
    }
    Ok(Exit::Done)
}
