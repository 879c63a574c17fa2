//! `windtunnel lab`: the shipped paths, and running programs over them.

use crate::edge::{Exit, Failure, Outcome, say};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::ffi::OsString;
use wt_lab::{Backend, Lab, LabError, LabTunnel, Scenario, presets};
use wt_load::{Server, ServerConfig};
use wt_units::{BitsPerSecond, Bytes, format_duration};

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
        LabCommand::Show { path, json } => show(path, *json),
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

fn show(path: &str, json: bool) -> Outcome {
    let scenario = load(path)?;
    let full = scenario.full_size(scenario.pmtu());
    let bdp = full.goodput_down * full.rtt;
    if json {
        let links: Vec<_> = scenario.links.iter().map(|link| {
            let direction = |d: &wt_lab::scenario::Direction| json!({
                "rate_bps": d.rate.get(), "delay_us": d.delay.as_micros() as u64, "jitter_us": d.jitter.as_micros() as u64,
                "queue": match d.queue {
                    wt_lab::scenario::QueueBound::Bytes(b) => json!({"bytes": b.get()}),
                    wt_lab::scenario::QueueBound::Packets(p) => json!({"packets": p}),
                },
                "loss": d.loss.get(),
            });
            json!({"name": link.name, "mtu": link.mtu.get(), "icmp": link.icmp, "framing": link.framing_name,
                "half_duplex": link.half_duplex, "down": direction(&link.down), "up": direction(&link.up)})
        }).collect();
        say!(
            "{}",
            json!({
                "schema_version": 1, "name": scenario.name, "title": scenario.title, "source": scenario.source,
                "client_mtu": scenario.client_mtu, "server_mtu": scenario.server_mtu, "links": links,
                "path": {"rtt_us": full.rtt.as_micros() as u64, "pmtu": full.pmtu, "bdp_bytes": bdp.get()},
                "physical_goodput_bps": {"down": full.goodput_down.get(), "up": full.goodput_up.get()},
            })
        );
        return Ok(Exit::Done);
    }
    if let Some(text) = presets::text(&scenario.name).filter(|_| path == scenario.name) {
        say!("{}", text.trim_end());
    } else {
        say!("{}: {}", scenario.name, scenario.title);
    }
    say!("\nWhat follows for full-sized TCP segments of {} bytes:", full.pmtu);
    say!("  RTT (segment there, ACK back)  {:.1} ms", full.rtt.as_secs_f64() * 1e3);
    say!("  goodput at most, down          {}", rate(full.goodput_down));
    say!("  goodput at most, up            {}", rate(full.goodput_up));
    say!(
        "  bandwidth-delay product        {} bytes = {:.1} segments",
        bdp.get(),
        bdp.get() as f64 / full.payload as f64
    );
    for link in &scenario.links {
        if let wt_lab::scenario::QueueBound::Bytes(bytes) = link.down.queue {
            let full_queue: std::time::Duration = Bytes(bytes.get()) / link.down.rate;
            say!("  full queue of \"{}\", down       about {}", link.name, format_duration(round_ms(full_queue)));
        }
    }
    Ok(Exit::Done)
}

fn round_ms(time: std::time::Duration) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn rate(rate: BitsPerSecond) -> String {
    format!("{} = {:.1} kB/s", rate.human(), rate.get() as f64 / 8e3)
}

fn run_program(args: &RunArgs) -> Outcome {
    let lab = start(load(&args.path)?, &args.options)?;
    // Our own server, and plain HTTP on port 80 for programs that aren't ours.
    let tunnel = LabTunnel::new(lab).map_err(|error| failure(&error))?;
    let lab = tunnel.lab();
    let http =
        lab.server.run(|| wt_sys::tcp::listen(std::net::SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 80)));
    let http = http.and_then(|listener| listener).and_then(|listener| Server::start(listener, ServerConfig::default()));
    let _http = http.map_err(|error| Failure::environment(error.to_string()))?;
    // Ctrl-C is for the program in the lab; when that ends, so do we.
    wt_sys::process::ignore_signal(2);
    let program = wt_lab::Program { argv: args.argv.clone(), server: args.server.clone() };
    let code = lab.run_program(&program).map_err(|error| Failure::environment(error.to_string()))?;
    Ok(Exit::Passed(code))
}
