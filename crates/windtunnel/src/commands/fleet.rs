//! `windtunnel fleet`: many hosts that measure by one plan.

use crate::cli::forms::give;
use crate::cli::screen::Screen;
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, Problem, say};
use clap::{Args, Subcommand};
use std::io::Write as _;
use std::path::PathBuf;
use wt_agent::{
    AgentAnswer, AgentEvent, AgentRequest, FleetAddAnswer, FleetAddRequest, FleetRequest, FleetRunAnswer,
    FleetRunRequest, FleetStatusAnswer, MeshRequest,
};
use wt_api::{Answer, Event, Request, Services};
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
  windtunnel fleet report north postgresql://owner@db.example/windtunnel")]
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
                Answer::FleetAdd(added) => give(&*added, owner.json, added_host),
                _ => Err(unexpected()),
            }
        }
        FleetCommand::Status(owner) => match ask(Request::FleetStatus(of(owner)))? {
            Answer::FleetStatus(status) => give(&status, owner.json, show),
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
                    give(&*answer, owner.json, |answer| say!("{}", Screen::stdout().shown(answer.text.trim_end())))?;
                    let shown = answer.settings.iter().any(|setting| setting.evidence >= setting.needed);
                    Ok(if shown { Exit::Done } else { Exit::No })
                }
                _ => Err(unexpected()),
            }
        }
        FleetCommand::Agent { policy, once, json } => agent(policy, *once, *json),
    }
}

fn agent(policy: &std::path::Path, once: bool, json: bool) -> Outcome {
    let cancel = cancel_on_signals()?;
    let mut sink = |event: Event| {
        if let Event::Agent(AgentEvent::Agent { text }) = event {
            let _ = writeln!(std::io::stderr().lock(), "{}", Screen::stderr().shown(&text));
        }
    };
    let request = AgentRequest { policy: policy.to_owned(), once };
    match wt_api::run(Request::FleetAgent(request), &Services::default(), &mut sink, &cancel)? {
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

fn added_host(added: &FleetAddAnswer) {
    let host = &added.host;
    say!("{host} is {} the fleet. What is left to do:\n", if added.is_new { "in" } else { "already in" });
    say!(
        "1. In the server's pg_hba.conf, once, above other lines for this database; then reload it:\n   {}\n",
        added.hba
    );
    say!("2. Where your authority's key is (or by whatever else makes certificates; the name counts):");
    added.certificate.iter().for_each(|line| say!("   {line}"));
    say!("\n3. On {host}, in /etc/windtunnel: ca.crt, {host}.crt as agent.crt, and what only root may read,");
    say!("   {host}.key as secret/agent.key, and in agent.toml:");
    added.policy.lines().for_each(|line| say!("   {line}"));
    say!("\n4. On {host}: sudo systemctl enable --now windtunnel-agent");
}

fn written_down(written: &FleetRunAnswer) {
    let pairs = counted(written.jobs, "pair");
    if written.dry_run {
        say!("{}: {pairs}; nothing was written.", written.mesh);
    } else {
        say!("{}: {pairs}. Agents begin when they ask next, each at a random time within its span.", written.mesh);
    }
}

fn show(status: &FleetStatusAnswer) {
    let state = &status.state;
    if state.agents.is_empty() {
        say!("Nobody is in the fleet yet: windtunnel fleet add HOST URL");
        return;
    }
    say!("{:<20} {:>9} {:>10} {:>7}  version", "agent", "heard of", "clock", "to push");
    for agent in &state.agents {
        let seen = agent.seen_s.map_or("never".to_owned(), |seconds| format!("{} ago", span(seconds)));
        let skew = agent.skew_s.map_or(String::new(), |skew| format!("{skew:+.2} s"));
        say!("{:<20} {seen:>9} {skew:>10} {:>7}  {}", agent.agent, agent.outbox, agent.version);
    }
    if !state.jobs.is_empty() {
        say!("\n{:<12} {:<14} {:<8} {:>8} {:>4}  target", "mesh", "agent", "state", "due in", "run");
    }
    for job in &state.jobs {
        let due =
            job.due_s.map_or(String::new(), |seconds| if seconds > 0.0 { span(seconds) } else { "now".to_owned() });
        say!("{:<12} {:<14} {:<8} {due:>8} {:>4}  {}", job.mesh, job.agent, job.state, job.run, job.target);
        if !job.reason.is_empty() {
            say!("    {}", job.reason);
        }
        job.experiment.iter().for_each(|id| say!("    {id}"));
    }
    if !state.turns.is_empty() {
        say!("\n{:<14} {:<5} {:>6}  turn on", "agent", "", "since");
    }
    for turn in &state.turns {
        let words: Vec<&str> = turn.alone.iter().chain(&turn.shared).map(String::as_str).collect();
        let state = if turn.granted { "has" } else { "waits" };
        say!("{:<14} {state:<5} {:>6}  {}", turn.agent, span(turn.since_s), words.join(", "));
    }
}

/// A time in one figure.
fn span(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= 2.0 * size).unwrap_or((1.0, "s"));
    format!("{:.0} {unit}", seconds.max(0.0) / size)
}
