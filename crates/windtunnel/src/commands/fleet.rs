//! `windtunnel fleet`: many hosts that measure by one plan.

use crate::cli::forms::give;
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, Problem, say};
use clap::{Args, Subcommand};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use wt_agent::{
    AgentAnswer, AgentEvent, AgentRequest, FleetAddRequest, FleetApplyRequest, FleetRequest, FleetRunAnswer,
    FleetRunRequest, FleetUndoRequest, MeshRequest,
};
use wt_api::{Answer, Event, Request, Services};
use wt_setup::settings::ChangeRequest;
use wt_trial::Cancel;
use wt_units::counted;

/// Measures on many hosts by one plan, never two on one link
///
/// One PostgreSQL keeps the journal of all and grants turns on links that hosts share. Each host runs an agent with one outgoing
/// connection and a policy of its own, which nobody else can widen.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel fleet init postgresql://owner@db.example/windtunnel
  windtunnel fleet add berlin postgresql://owner@db.example/windtunnel
  windtunnel fleet run mesh.toml postgresql://owner@db.example/windtunnel
  windtunnel fleet status postgresql://owner@db.example/windtunnel
  windtunnel fleet report north postgresql://owner@db.example/windtunnel
  windtunnel fleet apply wider postgresql://owner@db.example/windtunnel --verdict 20261124-090002")]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Makes a fleet of a database of yours, or brings it up to date
    #[command(after_help = "Examples:
  windtunnel fleet init postgresql://owner@db.example/windtunnel")]
    Init(Owner),
    /// Takes a host in, and prints what belongs where
    #[command(after_help = "Examples:
  windtunnel fleet add berlin postgresql://owner@db.example/windtunnel")]
    Add {
        /// What it is called: its role, its certificate's name, its site
        host: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Shows agents, what they measure, what they refused and why, and who waits for which turn
    #[command(after_help = "Examples:
  windtunnel fleet status postgresql://owner@db.example/windtunnel")]
    Status(Owner),
    /// Writes down a mesh: who measures what to whom; what it has no more is stopped
    ///
    /// Returns at once: each agent begins at a random time within 10 minutes, or what the mesh says.
    #[command(after_help = "Examples:
  windtunnel fleet run mesh.toml postgresql://owner@db.example/windtunnel --dry-run
  windtunnel fleet run mesh.toml postgresql://owner@db.example/windtunnel")]
    Run {
        /// The mesh, a TOML file
        file: PathBuf,
        #[command(flatten)]
        owner: Owner,
        /// Only say what it comes to
        #[arg(long)]
        dry_run: bool,
    },
    /// Stops a mesh, or all of them; what was measured is kept
    #[command(after_help = "Examples:
  windtunnel fleet stop postgresql://owner@db.example/windtunnel --mesh north")]
    Stop {
        #[command(flatten)]
        owner: Owner,
        /// Only this one
        #[arg(long, value_name = "NAME")]
        mesh: Option<String>,
    },
    /// Reports where a setting helps: somewhere, everywhere, at which hosts, on a new one
    #[command(after_help = "Examples:
  windtunnel fleet report north postgresql://owner@db.example/windtunnel")]
    Report {
        /// The mesh's name
        mesh: String,
        #[command(flatten)]
        owner: Owner,
        /// Every time that it ran, instead of the newest of each pair
        #[arg(long)]
        all: bool,
    },
    /// Changes settings of all hosts in waves; back everywhere if one isn't well
    ///
    /// Each host applies the change so that its guard takes it back, is watched, and confirms only over a new connection. Where one
    /// doesn't, it is taken back everywhere and no further wave begins. What a host's own policy doesn't allow it doesn't do. Without
    /// settings and --verdict it goes on with the change of that name. Exit code 1: it was taken back.
    #[command(after_help = "Examples:
  windtunnel fleet apply wider postgresql://owner@db.example/windtunnel --verdict 20261124-090002
  windtunnel fleet apply iw20 postgresql://owner@db.example/windtunnel --set initcwnd=20 --to 192.0.2.0/24 --watch 30min")]
    Apply(Box<ApplyArgs>),
    /// Takes a change of settings back, wherever it is
    #[command(after_help = "Examples:
  windtunnel fleet undo wider postgresql://owner@db.example/windtunnel")]
    Undo {
        /// What the change is called
        name: String,
        #[command(flatten)]
        owner: Owner,
    },
    /// Measures what this host is asked to, as far as its policy allows
    ///
    /// It asks the fleet's server now and then; while that is away nothing begins, and nothing that was measured is lost.
    #[command(after_help = "Examples:
  windtunnel fleet agent --policy agent.toml --once")]
    Agent {
        /// Its policy, a TOML file
        #[arg(long, value_name = "FILE", default_value = "/etc/windtunnel/agent.toml")]
        policy: PathBuf,
        /// End when nothing is due
        #[arg(long)]
        once: bool,
        /// One JSON object at the end
        #[arg(long)]
        json: bool,
    },
}

/// A change of settings.
#[derive(Debug, Args)]
struct ApplyArgs {
    /// What the change is called
    name: String,
    #[command(flatten)]
    owner: Owner,
    /// A setting; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "verdict")]
    set: Vec<String>,
    /// What this experiment recommends, of the fleet's journal
    #[arg(long, value_name = "EXPERIMENT")]
    verdict: Option<String>,
    /// Where: an address, a network, default, host [default: where the verdict was measured]
    #[arg(long, value_name = "WHERE")]
    to: Option<String>,
    /// The hosts, in the order of their waves [default: all]
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    on: Vec<String>,
    /// How many hosts try it first
    #[arg(long, value_name = "N", default_value_t = 1)]
    canaries: usize,
    /// How many hosts follow at once
    #[arg(long, value_name = "N", default_value_t = 10)]
    wave: usize,
    /// How long each host is watched before it confirms
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = wt_units::parse_age)]
    watch: Duration,
    /// A host's guard takes it back unless it is confirmed in so long [default: --watch and 5min]
    #[arg(long, value_name = "TIME", value_parser = wt_units::parse_age)]
    confirm_within: Option<Duration>,
    /// How long a host may take to ask for what it is to do
    #[arg(long, value_name = "TIME", default_value = "15min", value_parser = wt_units::parse_age)]
    patience: Duration,
    /// A server that each host with the change must reach by a new connection; may be given more than once
    #[arg(long, value_name = "HOST:PORT")]
    reach: Vec<String>,
}

impl ApplyArgs {
    fn request(&self) -> FleetApplyRequest {
        let (settings, verdict, to) = (self.set.clone(), self.verdict.clone(), self.to.clone());
        FleetApplyRequest {
            server: self.owner.server.clone(),
            name: self.name.clone(),
            change: ChangeRequest { settings, verdict, to, ..ChangeRequest::default() },
            on: self.on.clone(),
            canaries: self.canaries,
            wave: self.wave,
            watch: self.watch,
            within: self.confirm_within,
            patience: self.patience,
            reach: self.reach.clone(),
        }
    }
}

/// As the fleet's owner.
#[derive(Debug, Args)]
struct Owner {
    /// The fleet's server: postgresql://USER@HOST/DATABASE
    #[arg(value_name = "URL")]
    server: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &FleetArgs) -> Outcome {
    let ask = |request| wt_api::run(request, &Services::default(), &mut |_| {}, &Cancel::new());
    let of = |owner: &Owner| FleetRequest { server: owner.server.clone() };
    match &args.command {
        FleetCommand::Init(owner) => match ask(Request::FleetInit(of(owner)))? {
            Answer::FleetInit(made) => give(&made, owner.json, |made| {
                say!("{} is a fleet's server now. Next: windtunnel fleet add HOST URL", made.server);
            }),
            _ => Err(unexpected()),
        },
        FleetCommand::Add { host, owner } => {
            let request = FleetAddRequest { server: owner.server.clone(), host: host.clone() };
            match ask(Request::FleetAdd(request))? {
                Answer::FleetAdd(added) => give(&*added, owner.json, |added| say!("{}", added.text())),
                _ => Err(unexpected()),
            }
        }
        FleetCommand::Status(owner) => match ask(Request::FleetStatus(of(owner)))? {
            Answer::FleetStatus(status) => give(&status, owner.json, |status| say!("{}", status.text())),
            _ => Err(unexpected()),
        },
        FleetCommand::Run { file, owner, dry_run } => {
            let request = FleetRunRequest { server: owner.server.clone(), file: file.clone(), dry_run: *dry_run };
            match ask(Request::FleetRun(request))? {
                Answer::FleetRun(written) => give(&written, owner.json, written_down),
                _ => Err(unexpected()),
            }
        }
        FleetCommand::Stop { owner, mesh } => {
            let request = MeshRequest { server: owner.server.clone(), mesh: mesh.clone(), all: false };
            match ask(Request::FleetStop(request))? {
                Answer::FleetStop(stop) => give(&stop, owner.json, |stop| {
                    say!("Stopped: {}.", counted(usize::try_from(stop.stopped).unwrap_or(usize::MAX), "pair"));
                }),
                _ => Err(unexpected()),
            }
        }
        FleetCommand::Report { mesh, owner, all } => {
            let request = MeshRequest { server: owner.server.clone(), mesh: Some(mesh.clone()), all: *all };
            match ask(Request::FleetReport(request))? {
                Answer::Compare(answer) => {
                    give(&*answer, owner.json, |answer| say!("{}", answer.text.trim_end()))?;
                    let shown = answer.settings.iter().any(|one| one.evidence >= one.needed && !one.faster_by_little);
                    Ok(if shown { Exit::Done } else { Exit::No })
                }
                _ => Err(unexpected()),
            }
        }
        FleetCommand::Apply(args) => in_waves(Request::FleetApply(Box::new(args.request())), args.owner.json),
        FleetCommand::Undo { name, owner } => {
            let request = FleetUndoRequest { server: owner.server.clone(), name: name.clone() };
            in_waves(Request::FleetUndo(request), owner.json)
        }
        FleetCommand::Agent { policy, once, json } => agent(policy, *once, *json),
    }
}

/// Asks for what takes its time; what happens meanwhile is said to people.
fn followed(request: Request) -> Result<Answer, Problem> {
    let mut sink = |event: Event| {
        if let Event::Agent(AgentEvent::Agent { text }) = event {
            let _ = writeln!(std::io::stderr().lock(), "{}", crate::screen::Screen::stderr().fitted(&text));
        }
    };
    wt_api::run(request, &Services::default(), &mut sink, &cancel_on_signals()?)
}

fn in_waves(request: Request, json: bool) -> Outcome {
    let answer = followed(request)?;
    let is_no = answer.is_no();
    match answer {
        Answer::FleetApply(change) | Answer::FleetUndo(change) => {
            give(&*change, json, |change| say!("{}", change.text()))?;
            Ok(if is_no { Exit::No } else { Exit::Done })
        }
        _ => Err(unexpected()),
    }
}

fn agent(policy: &std::path::Path, once: bool, json: bool) -> Outcome {
    let request = AgentRequest { policy: policy.to_owned(), once };
    match followed(Request::FleetAgent(request))? {
        Answer::FleetAgent(answer) => {
            give(&answer, json, |answer: &AgentAnswer| {
                let AgentAnswer { measured, refused, failed, .. } = answer;
                say!("measured {measured}, refused {refused}, failed {failed}");
            })?;
            Ok(if answer.refused + answer.failed == 0 { Exit::Done } else { Exit::No })
        }
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Problem {
    Problem::internal("another answer than was asked for")
}

fn written_down(written: &FleetRunAnswer) {
    let pairs = counted(written.jobs, "pair");
    if written.dry_run {
        say!("{}: {pairs}; nothing was written.", written.mesh);
    } else {
        say!("{}: {pairs}. Agents begin when they ask next, each at a random time within its span.", written.mesh);
    }
}
