//! `windtunnel lab`: the shipped paths, and running programs over them.

/// Paths for other emulators.
mod export;
/// Traces of another emulator.
mod import;
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

use crate::cli::forms::give;
use crate::edge::{Outcome, say};
use clap::{Args, Subcommand, ValueEnum};
use wt_lab::Backend;
use wt_setup::lab::{LabRequest, PresetsAnswer};

/// Runs any program over an emulated path, without root
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
    /// Keep this machine's processors awake while the lab is up, as root: RTTs are truer by a third; costs all of their idle time
    #[arg(long)]
    pub(crate) sharp: bool,
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

impl LabOptions {
    /// A path with these.
    pub(crate) fn on(&self, path: &str) -> LabRequest {
        LabRequest { path: path.to_owned(), seed: self.seed, backend: self.backend.into(), sharp: self.sharp }
    }
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
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &LabArgs) -> Outcome {
    match &args.command {
        LabCommand::List { json } => give(&wt_setup::lab::list()?, *json, list),
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

fn list(answer: &PresetsAnswer) {
    answer.presets.iter().for_each(|preset| say!("{:<14} {}", preset.name, preset.title));
}
