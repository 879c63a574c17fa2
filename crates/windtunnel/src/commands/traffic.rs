//! `windtunnel traffic`: settings of a server's own connections, assigned at random, and what became of them.

use crate::cli::forms::{REPORT, give, write_measured};
use crate::cli::signals::cancel_on_signals;
use crate::cli::typed;
use crate::edge::{Exit, Outcome, Problem, emit, say};
use crate::screen::Screen;
use clap::{Args, Subcommand, ValueEnum};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use wt_api::{Answer, Event, Request, Services};
use wt_steer::{
    BackendChoice, HoldbackRequest, TrafficAnswer, TrafficCombineRequest, TrafficEvent, TrafficFile, TrafficInclusion,
    TrafficOptions, TrafficReportRequest, TrafficRequest, TrafficStatus, parse_share,
};
use wt_traffic::{HoldbackState, TrafficAllocation, TrafficHoldback, TrafficReport, TrafficUnit, TrafficVerdictKind};
use wt_trial::Cancel;

/// Compares settings on a server's own connections, at random
///
/// Each new connection to the port gets one of the settings by a secret coin for each client network and epoch; what became of it
/// is recorded without address, port or time. Nothing is left behind when it ends, however it ends. It needs root.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel traffic start --port 443 --levels initcwnd=10,32 --dry-run
  sudo windtunnel traffic start --port 443 --levels initcwnd=10,32 --for 2h
  sudo windtunnel traffic status
  windtunnel traffic report")]
pub(crate) struct TrafficArgs {
    #[command(subcommand)]
    command: TrafficCommand,
    /// The journal [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE", global = true)]
    journal: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum TrafficCommand {
    Start(Box<StartArgs>),
    /// Shows the experiments on connections that are under way
    #[command(after_help = "Examples:
  sudo windtunnel traffic status
  sudo windtunnel traffic status --json")]
    Status {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Ends an experiment, or all that are under way; it reports where it was started
    #[command(after_help = "Examples:
  sudo windtunnel traffic stop")]
    Stop {
        /// Its name, or the beginning of it
        experiment: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Reports what an experiment found, also while it runs
    #[command(after_help = "Examples:
  sudo windtunnel traffic report
  sudo windtunnel traffic report 20261121-0815 --json")]
    Report {
        /// Its name, the beginning of it, or "last"
        experiment: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Waits for the end of an experiment with routes, and removes them: what `start` calls
    #[command(hide = true)]
    Guard,
    /// Adds up experiments of several servers that tried the same settings
    #[command(after_help = "Examples:
  windtunnel journal import edge1.sqlite3 edge2.sqlite3
  windtunnel traffic combine 20261121-0815 20261121-0817")]
    Combine {
        /// Their names, or the beginnings of them
        #[arg(required = true, value_name = "EXPERIMENT")]
        experiments: Vec<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

/// What a holdback is of.
#[derive(Debug, Args)]
struct HoldbackArgs {
    /// Go on measuring the gain of an experiment that is done: everybody gets its faster setting but for a few
    #[arg(long, value_name = "EXPERIMENT")]
    holdback: Option<String>,
    /// How many keep the old setting, with --holdback: 1% to 50% [default: 5%]
    #[arg(long, value_parser = parse_share, value_name = "SHARE")]
    keep_back: Option<f64>,
    /// What a setting was before, with --holdback, where the experiment's first arm doesn't say
    #[arg(long, value_name = "KEY=LEVEL")]
    old: Vec<String>,
}

impl HoldbackArgs {
    /// The holdback that is asked for here, or where nothing is said in the file; takes what the file says of it.
    ///
    /// # Errors
    /// A usage [`Problem`] where something is said of a holdback, and not of what.
    fn request(&self, file: &mut TrafficFile) -> Result<Option<HoldbackRequest>, Problem> {
        let keep_back = self.keep_back.or(file.keep_back);
        let of_file = std::mem::take(&mut file.old);
        let old = if self.old.is_empty() { of_file } else { self.old.clone() };
        let experiment = self.holdback.clone().or(file.holdback.take());
        let alone = [("--keep-back", keep_back.is_some()), ("--old", !old.is_empty())];
        match (experiment, alone.iter().find(|(_, is_said)| *is_said)) {
            (None, Some((option, _))) => {
                Err(Problem::usage(format!("{option} says how a holdback is: it needs --holdback"))
                    .hint("windtunnel traffic start --holdback last --for 7d"))
            }
            (None, None) => Ok(None),
            (Some(experiment), _) => Ok(Some(HoldbackRequest { experiment, share: keep_back.unwrap_or(0.05), old })),
        }
    }
}

/// Assigns new connections to settings until Ctrl-C, or for a time, and reports
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel traffic start --port 443 --levels initcwnd=10,32 --dry-run
  sudo windtunnel traffic start --port 443 --levels cc=cubic,bbr --unit slot --epoch 10m --for 4h
  sudo windtunnel traffic start --port 443 --levels initcwnd=10,32 --identical --for 1h
  sudo windtunnel traffic start --holdback last --for 7d")]
struct StartArgs {
    /// An experiment file (TOML) with the names of these options but --dry-run and --json; options come before it
    file: Option<PathBuf>,
    /// The local port of the server; up to 8 times
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// A setting and its levels, the first being the one that the others are compared with; several times: all combinations
    #[arg(long, value_name = "KEY=LEVEL,LEVEL…")]
    levels: Vec<String>,
    #[command(flatten)]
    holdback: HoldbackArgs,
    /// To what one coin gives a setting [default: prefix]
    #[arg(long, value_enum)]
    unit: Option<UnitName>,
    /// What assigns connections; auto: the first that works here [default: auto]
    #[arg(long, value_enum)]
    backend: Option<BackendName>,
    /// How long coins hold [default: 10m]
    #[arg(long, value_name = "TIME")]
    epoch: Option<String>,
    /// How old a connection is when it is looked at, if it hasn't ended before [default: 60s]
    #[arg(long, value_name = "TIME")]
    age: Option<String>,
    /// How long after the beginning of an epoch connections don't count yet, with slots and mixed allocations [default: 0s]
    #[arg(long, value_name = "TIME")]
    burn_in: Option<String>,
    /// How shares change; mixed shows what a setting does to everybody [default: fixed]
    #[arg(long, value_enum)]
    allocations: Option<AllocationName>,
    /// The same as --allocations mixed
    #[arg(long)]
    mixed: bool,
    /// Give half of the connections the new setting from the first on, instead of 5 %, 25 % and then 50 %
    #[arg(long)]
    no_ramp: bool,
    /// Clients in private ranges take part, too; those on this host never do
    #[arg(long)]
    private: bool,
    /// Who else takes part who is left alone as a rule; several times
    #[arg(long, value_enum, value_name = "WHO")]
    include: Vec<InclusionName>,
    /// Begin although BPF programs of others see the same connections, such as a tuner's
    #[arg(long)]
    beside_programs: bool,
    /// For how long, such as 2h or 7d [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    lasts: Option<String>,
    /// A/A test: the same setting twice; any "faster" is a false alarm
    #[arg(long)]
    identical: bool,
    /// Say whom it would touch and how long it would take, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Note stored with the experiment
    #[arg(long)]
    comment: Option<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// A line of JSON for each event, the result last
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Backends by their names.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum BackendName {
    Auto,
    /// A BPF program, on each connection.
    Sockops,
    /// Marks of nftables and a table of routes for each, without BPF.
    Routes,
    /// Settings of the whole host, in turn; with --unit slot.
    Slots,
}

/// Units by their names.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum UnitName {
    /// A client's network for one epoch: IPv4 /24, IPv6 /48.
    Prefix,
    /// Each connection by itself.
    Connection,
    /// Everybody for one epoch.
    Slot,
}

/// Allocations by their names.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AllocationName {
    /// The ramp's share.
    Fixed,
    /// Epochs in which nobody, half and everybody have the new setting, in random order.
    Mixed,
}

/// Who is left alone as a rule.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum InclusionName {
    /// Clients in private ranges.
    Private,
    /// The address from which you are logged in.
    Administrator,
    /// Sockets with a congestion control of their own, where the arms differ in theirs.
    OwnCc,
}

impl StartArgs {
    /// What is asked, and whether no progress is to be said.
    fn request(&self, journal: Option<&Path>) -> Result<(TrafficRequest, bool), Problem> {
        let options = TrafficOptions {
            ports: self.port.clone(),
            levels: self.levels.clone(),
            unit: self.unit.map(|unit| match unit {
                UnitName::Prefix => TrafficUnit::Prefix,
                UnitName::Connection => TrafficUnit::Connection,
                UnitName::Slot => TrafficUnit::Slot,
            }),
            backend: self.backend.map(|backend| match backend {
                BackendName::Auto => BackendChoice::Auto,
                BackendName::Sockops => BackendChoice::Sockops,
                BackendName::Routes => BackendChoice::Routes,
                BackendName::Slots => BackendChoice::Slots,
            }),
            epoch: self.epoch.clone(),
            age: self.age.clone(),
            burn_in: self.burn_in.clone(),
            allocations: self.allocations.map(|allocations| match allocations {
                AllocationName::Fixed => TrafficAllocation::Fixed,
                AllocationName::Mixed => TrafficAllocation::Mixed,
            }),
            mixed: self.mixed,
            no_ramp: self.no_ramp,
            private: self.private,
            include: self
                .include
                .iter()
                .map(|who| match who {
                    InclusionName::Private => TrafficInclusion::Private,
                    InclusionName::Administrator => TrafficInclusion::Administrator,
                    InclusionName::OwnCc => TrafficInclusion::OwnCc,
                })
                .collect(),
            beside_programs: self.beside_programs,
            lasts: self.lasts.clone(),
            identical: self.identical,
            comment: self.comment.clone(),
        };
        let mut file = self.file.as_deref().map_or_else(|| Ok(TrafficFile::default()), TrafficFile::read)?;
        let holdback = self.holdback.request(&mut file)?;
        let options = options.or(file.options);
        let journal = journal.map(Path::to_owned).or(file.journal);
        let asked = TrafficRequest {
            dry_run: self.dry_run,
            journal,
            command: typed::command(),
            holdback,
            ..options.request()?
        };
        Ok((asked, self.quiet || file.quiet))
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &TrafficArgs) -> Outcome {
    let journal = args.journal.as_deref();
    let named = |experiment: &Option<String>| TrafficReportRequest {
        experiment: experiment.clone(),
        journal: journal.map(Path::to_owned),
        ..TrafficReportRequest::default()
    };
    let ask = |request| wt_api::run(request, &Services::default(), &mut |_| {}, &Cancel::new());
    let unexpected = || Problem::internal("another answer than was asked for");
    match &args.command {
        TrafficCommand::Start(start) => run_start(start, journal),
        TrafficCommand::Status { json } => match ask(Request::TrafficStatus(named(&None)))? {
            Answer::TrafficStatus(list) => {
                give(&list, *json, |list| list.lines().iter().for_each(|line| paragraph(line)))?;
                let gone = |one: &TrafficStatus| one.holdback.as_ref().is_some_and(is_gone);
                Ok(if list.running.iter().any(gone) { Exit::No } else { Exit::Done })
            }
            _ => Err(unexpected()),
        },
        TrafficCommand::Stop { experiment, json } => match ask(Request::TrafficStop(named(experiment)))? {
            Answer::TrafficStop(stop) => {
                give(&stop, *json, |stop| stop.lines().iter().for_each(|line| paragraph(line)))
            }
            _ => Err(unexpected()),
        },
        TrafficCommand::Report { experiment, json } => match ask(Request::TrafficReport(named(experiment)))? {
            Answer::TrafficReport(report) => give_report(&report, None, *json, journal),
            _ => Err(unexpected()),
        },
        TrafficCommand::Guard => wt_steer::guard().map(|()| Exit::Done),
        TrafficCommand::Combine { experiments, json } => {
            let asked =
                TrafficCombineRequest { experiments: experiments.clone(), journal: journal.map(Path::to_owned) };
            match ask(Request::TrafficCombine(asked))? {
                Answer::TrafficCombined(sum) => {
                    give(&sum, *json, |sum| sum.lines().iter().for_each(|line| paragraph(line)))?;
                    let faster = sum.arms.iter().any(|arm| arm.evidence_faster >= sum.needed);
                    Ok(if faster { Exit::Done } else { Exit::No })
                }
                _ => Err(unexpected()),
            }
        }
    }
}

fn run_start(args: &StartArgs, journal: Option<&Path>) -> Outcome {
    let (request, quiet) = args.request(journal)?;
    let journal = request.journal.clone();
    let journal = journal.as_deref();
    let cancel = cancel_on_signals()?;
    let (stream, json) = (args.json_stream, args.json);
    let mut sink = |event: Event| {
        let Event::Traffic(event) = event else { return };
        if let TrafficEvent::Unwritten { report } = &event
            && !stream
        {
            // What follows is the problem with the journal, whatever else may be wrong.
            drop(give_report(report, None, json, journal));
        } else if stream {
            let line = serde_json::to_string(&event).unwrap_or_default();
            emit!("{line}");
        } else if !quiet {
            let screen = Screen::stderr();
            let _ = writeln!(std::io::stderr().lock(), "{}", screen.fitted(&event.line()));
        }
    };
    let answer = wt_api::run(Request::TrafficStart(Box::new(request)), &Services::default(), &mut sink, &cancel)?;
    match answer {
        Answer::Traffic(TrafficAnswer::Plan(plan)) => {
            give(&*plan, args.json || stream, |plan| plan.lines().iter().for_each(|line| paragraph(line)))
        }
        Answer::Traffic(TrafficAnswer::Report(report)) => give_report(&report, None, args.json || stream, journal),
        _ => Err(Problem::internal("another answer than was asked for")),
    }
}

/// Gives a report to people or programs; the exit code says whether something is faster.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(crate) fn give_report(report: &TrafficReport, html: Option<&Path>, json: bool, journal: Option<&Path>) -> Outcome {
    let text = |report: &TrafficReport| typed::naming_journal(report.text().trim_end(), &report.id, journal);
    give(report, json, |report| say!("{}", text(report)))?;
    // Last, so that a file that can't be written costs nothing.
    if let Some(path) = html {
        write_measured(path, &wt_steer::page(report), REPORT)?;
    }
    let good = report.holdback.as_ref().map_or(report.verdict.kind == TrafficVerdictKind::Faster, |now| !is_gone(now));
    Ok(if good { Exit::Done } else { Exit::No })
}

fn is_gone(holdback: &TrafficHoldback) -> bool {
    holdback.state == HoldbackState::Gone
}

/// Says a text of more than one line, 80 columns wide as reports are, or as wide as a terminal that is narrower.
fn paragraph(text: &str) {
    let screen = Screen::stdout();
    let width = screen.width.min(80);
    // What fits is said as it is: it may be a row of a table.
    let lines = if text.chars().count() <= width { vec![text.to_owned()] } else { wt_report::wrap(text, width, 2) };
    for line in lines {
        say!("{line}");
    }
}
