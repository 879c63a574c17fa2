//! `windtunnel lab`: the shipped paths, and running programs over them.

/// What a path is made of.
mod show;

use crate::edge::{Exit, Failure, Outcome, say};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::ffi::OsString;
use wt_lab::{Backend, Lab, LabError, LabTunnel, Scenario, presets};
use wt_load::{Server, ServerConfig};

/// The lab: two hosts joined by an emulated path, without root
///
/// The client and the server are network namespaces of this machine's own kernel; what lies between them is emulated in
/// user space. Nothing on the host is changed, and nothing is left behind.
#[derive(Debug, Args)]
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
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    Run(RunArgs),
}

/// Runs a program in the client, with its exit code
///
/// In the lab the names `client` and `server` are known (`client6` and `server6` for IPv6; also as $WT_SERVER and so on),
/// the server answers `http://server/bytes/12MB`, and `ip netns exec server CMD` runs a command there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab run adsl -- curl -o /dev/null http://server/bytes/3MB
  windtunnel lab run adsl --server 'iperf3 -s -1' -- sh -c 'sleep 0.2; iperf3 -c server -R'
  windtunnel lab run dialup -- ping -c 3 server")]
struct RunArgs {
    /// A preset's name or a TOML file
    path: String,
    #[command(flatten)]
    options: LabOptions,
    /// A shell command that runs in the server meanwhile; it ends with the program
    #[arg(long, value_name = "CMD")]
    server: Option<OsString>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    argv: Vec<OsString>,
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
        LabCommand::Show { path, json } => show::show(path, *json),
        LabCommand::Run(args) => run_program(args),
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
    wt_lab::enter().and_then(|()| Lab::start(scenario, options.backend.into(), options.seed)).map_err(|e| failure(&e))
}

/// What to say when the lab can't be made.
pub(crate) fn failure(error: &LabError) -> Failure {
    match error {
        LabError::UserNamespace(source) => Failure::environment(error.to_string())
            .because(match source.errno() {
                Some(1 | 13) => "this system forbids unprivileged user namespaces",
                Some(28) => "the limit of user namespaces is reached (user.max_user_namespaces)",
                _ => "the kernel refused",
            })
            .hint(super::doctor::USER_NAMESPACE_HELP),
        LabError::SetUp { source, advice } => {
            Failure::environment(format!("can't set up the lab: {source}")).hint((*advice).to_owned())
        }
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

/// Our HTTP on port 80 of every host but the client.
fn serve_http(lab: &Lab) -> Result<Vec<Server>, Failure> {
    let everywhere = std::net::SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 80);
    let start = |host: &wt_lab::Host| {
        let listener = host.run(|| wt_sys::tcp::listen(everywhere)).and_then(|listener| listener);
        listener.and_then(|listener| Server::start(listener, ServerConfig::default()))
    };
    let servers = lab.hosts().skip(1).map(start).collect::<Result<Vec<_>, _>>();
    servers.map_err(|error| Failure::environment(error.to_string()))
}

fn run_program(args: &RunArgs) -> Outcome {
    let lab = start(load(&args.path)?, &args.options)?;
    // Our own server, and plain HTTP on port 80 for programs that aren't ours.
    let tunnel = LabTunnel::new(lab).map_err(|error| failure(&error))?;
    let lab = tunnel.lab();
    let _http = serve_http(lab)?;
    // Ctrl-C is for the program in the lab; when that ends, so do we.
    wt_sys::process::ignore_signal(2);
    let program = wt_lab::Program { argv: args.argv.clone(), server: args.server.clone() };
    let code = lab.run_program(&program).map_err(|error| Failure::environment(error.to_string()))?;
    Ok(Exit::Passed(code))
}
