use super::overhead::{self, Overhead};
use super::result::{Comparison, Row};
use super::verdict::{fewest_rounds, threshold};
use crate::commands::cc::controls::Controls;
use crate::commands::lab::{self, LabOptions};
use crate::commands::report::{Forms, write_whole};
use crate::commands::side_by_side::{REPEATS, Trials};
use crate::commands::tune::notebook::{Notebook, begun, command};
use crate::commands::tune::workload::{Wanted, expected};
use crate::commands::tune::{DirectionName, cancel_on_signals, minutes, trial_time};
use crate::edge::{Failure, Fault, Outcome};
use clap::Args;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha12Rng;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use wt_journal::{Journal, NewExperiment, State, StoredExperiment, TrialId, WithSamples};
use wt_stacks::{Choice, StackError, StackTunnel};
use wt_trial::bulk::PathNow;
use wt_trial::{Direction, Status, TrialOutcome, Tunnel as _, Workload};
use wt_units::{BitsPerSecond, Bytes};

/// Transactions of a trial are as many as fit into this time on an idle path, within bounds.
const TALK: Duration = Duration::from_secs(3);
/// Where to look for what can be chosen.
const LIST: &str = "windtunnel stacks list shows what there is";
/// How long a soak takes if nobody says it.
const SOAK: Duration = Duration::from_secs(300);

/// Compares TCP/IP stacks on an emulated path
///
/// Every round runs each stack once with each workload, in random order. Soaks are run once: they are judged by how they go on, not
/// by how fast they are. What a stack does wrong is told, and never ends the comparison.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel stacks compare --lab ethernet-hub --stacks linux,smoltcp --workloads transactions,bursts,download-12mb
  windtunnel stacks compare --stacks linux,smoltcp,windows-95 --rwin 8KiB,20KiB --workloads transactions
  windtunnel stacks compare --stacks smoltcp:cc=reno,smoltcp:cc=cubic --workloads bulk --direction up,both
  windtunnel stacks compare --stacks smoltcp:late-acks=6s --workloads soak --soak 40s")]
pub(super) struct CompareArgs {
    /// The path: a preset's name or a TOML file
    #[arg(long, value_name = "PATH", default_value = "ethernet-hub")]
    lab: String,
    /// Which: names of windtunnel stacks list, each with settings of its own: smoltcp:rwin=8KiB:cc=reno
    #[arg(long, value_delimiter = ',', default_value = "linux,smoltcp")]
    stacks: Vec<String>,
    /// What they do: names of windtunnel tune --workload help, with their parameters
    #[arg(long, default_value = "transactions,bursts,download-12mb,page,soak")]
    workloads: String,
    /// Which way bulk transfers, soaks and streams go; several run each of them each way
    #[arg(long, value_enum, value_delimiter = ',', default_value = "down")]
    direction: Vec<DirectionName>,
    /// Run each stack with each of these receive windows
    #[arg(long, value_delimiter = ',', value_name = "BYTES")]
    rwin: Vec<Bytes>,
    /// Rounds [default: two more than a ranking needs at least]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// How long a soak takes
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = trial_time)]
    soak: Duration,
    /// Give a trial up after this time [default: 30 s and twenty times what it takes on the idle path]
    #[arg(long, value_name = "TIME", value_parser = trial_time)]
    give_up: Option<Duration>,
    /// Don't ask by packet scripts what each stack can do
    #[arg(long)]
    no_conformance: bool,
    #[command(flatten)]
    options: LabOptions,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Also write a self-contained page with the pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Kept with the comparison
    #[arg(long)]
    comment: Option<String>,
    /// Where every trial is kept [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(super) fn run(args: &CompareArgs) -> Outcome {
    let mut choices = choices(args)?;
    let scenario = lab::load(&args.lab)?;
    let facts = scenario.facts(Direction::Down);
    let path = PathNow { base_rtt_us: facts.rtt_us, capacity_bps: facts.physical_goodput_bps };
    let workloads = workloads(args, path)?;
    for choice in &choices {
        if let wt_stacks::Built::No(how) = choice.stack.built() {
            return Err(not_built(choice.stack.name, how));
        }
        choice.check().map_err(|error| Failure::usage(error.to_string()).hint(LIST))?;
    }
    // Ours are loaded before the lab is made, which lacks the right to, and until the comparison ends.
    let _loaded = controls(&mut choices)?;
    let tunnel = StackTunnel::new(lab::start(scenario, &args.options)?, choices).map_err(failure)?;
    let ranked = workloads.iter().filter(|workload| !is_soak(workload)).count();
    let arms = tunnel.arms().len();
    let needed = fewest_rounds(threshold(arms * (arms - 1) / 2, ranked)) + 2;
    let rounds = match args.rounds {
        _ if ranked == 0 => 1,
        Some(rounds) => rounds,
        None if arms == 1 => 3,
        None => needed,
    };
    let config = Config { lab: args.lab.clone(), path, workloads };
    let mut rows: Vec<Row> = tunnel.arms().iter().map(|choice| Row::new(choice.clone())).collect();
    if !args.no_conformance {
        // Before the rounds: nothing else shall run beside them.
        std::thread::scope(|scope| {
            for row in &mut rows {
                scope.spawn(|| row.glance());
            }
        });
    }
    let notebook = notebook(args, &tunnel, &config, &rows)?;
    let trials = Trials {
        tunnel,
        notebook,
        cancel: cancel_on_signals()?,
        seed: args.options.seed,
        rtt: Duration::from_micros(path.base_rtt_us),
        quiet: args.quiet,
        done: 0,
    };
    let mut session = Session { trials, config, give_up: args.give_up };
    session.announce(rounds);
    let stopped = session.rounds(rounds, &mut rows)?;
    let paired = if stopped { None } else { session.paired(&rows) };
    let comparison = Comparison::new(&session.config, rows).with(paired);
    let state = if stopped { State::Stopped } else { State::Finished };
    let id = session.trials.notebook.id().to_owned();
    session.trials.notebook.end(state, &comparison.verdict_json())?;
    if let Some(file) = &args.html {
        write_whole(file, &comparison.page(&id))?;
    }
    Ok(comparison.tell(&id, args.json))
}

/// What is compared, on what.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) lab: String,
    pub(super) path: PathNow,
    pub(super) workloads: Vec<Workload>,
}

pub(super) fn is_soak(workload: &Workload) -> bool {
    matches!(workload, Workload::Soak { .. })
}

/// Each stack with each window.
fn choices(args: &CompareArgs) -> Result<Vec<Choice>, Failure> {
    let mut all: Vec<Choice> = Vec::new();
    for text in &args.stacks {
        let usage = |why: String| Failure::usage(why).hint(LIST);
        let choice: Choice = text.parse().map_err(|error: wt_stacks::ChoiceError| usage(error.to_string()))?;
        if args.rwin.is_empty() {
            all.push(choice.clone());
        }
        for bytes in &args.rwin {
            let window = u32::try_from(bytes.get()).ok().filter(|bytes| (256..=1 << 30).contains(bytes));
            let window = window.ok_or_else(|| Failure::usage(format!("--rwin {bytes}: allowed is 256B to 1GiB")))?;
            all.push(choice.with_window(window));
        }
    }
    let twice = all.iter().enumerate().find(|(at, one)| all[..*at].iter().any(|other| other.title() == one.title()));
    match twice {
        Some((_, choice)) => Err(Failure::usage(format!("{} is named twice", choice.title()))),
        None if all.len() > 64 => Err(Failure::usage("more than 64 stacks and windows at once")),
        None => Ok(all),
    }
}

/// Loads those congestion controls of ours that this machine's kernel shall use, and writes down what it calls them.
fn controls(choices: &mut [Choice]) -> Result<Controls, Failure> {
    let on_this_kernel = |choice: &&mut Choice| ["linux", wt_stacks::catalogue::DIRECT].contains(&choice.stack.name);
    let names = |choices: &mut [Choice]| -> Vec<String> {
        choices.iter_mut().filter(on_this_kernel).filter_map(|choice| choice.options.get("cc").cloned()).collect()
    };
    let loaded = Controls::load(names(choices).iter().map(String::as_str))?;
    for choice in choices.iter_mut().filter(on_this_kernel) {
        if let Some(name) = choice.options.get_mut("cc") {
            *name = loaded.kernel_name(name)?;
        }
    }
    Ok(loaded)
}

/// The workloads that are named, each way that is asked for; a parameter after a comma belongs to the one before it.
fn workloads(args: &CompareArgs, path: PathNow) -> Result<Vec<Workload>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for piece in args.workloads.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
        match names.last_mut() {
            Some(last) if piece.contains('=') && !piece.contains(':') => *last = format!("{last},{piece}"),
            _ => names.push(piece.to_owned()),
        }
    }
    if names.is_empty() {
        return Err(Failure::usage("no workload is named").hint("--workloads transactions,download-12mb"));
    }
    let rtt = Duration::from_micros(path.base_rtt_us).max(Duration::from_millis(1));
    let count = (TALK.as_micros() / rtt.as_micros()).clamp(20, 500);
    let mut all: Vec<Workload> = Vec::new();
    for name in names {
        // So many rather than so long: the same bytes for every stack.
        let name = match name.split_once(':') {
            None if name == "transactions" => format!("{name}:count={count}"),
            Some(("transactions", rest)) if !rest.contains("count=") => format!("{name},count={count}"),
            _ => name,
        };
        let wanted: Wanted = name.parse().map_err(Failure::usage)?;
        let time = if name == "soak" { args.soak } else { SOAK / 30 };
        let mut each_way = Vec::new();
        let (down, up) = (wanted.workload(Direction::Down, time), wanted.workload(Direction::Up, time));
        let bulk = matches!(down, Workload::Bulk { .. });
        for direction in &args.direction {
            let workload = match direction {
                DirectionName::Down => down.clone(),
                DirectionName::Up => up.clone(),
                DirectionName::Both if down == up => down.clone(),
                // Beside other ways, what can't go both ways at once goes those.
                DirectionName::Both if !bulk && args.direction.len() > 1 => continue,
                DirectionName::Both => wanted.both(time).map_err(Failure::usage)?,
            };
            // What has no direction is the same each time.
            if !each_way.contains(&workload) {
                each_way.push(workload);
            }
        }
        for workload in each_way {
            if matches!(workload, Workload::Competing { .. } | Workload::Load { .. }) {
                return Err(Failure::usage(format!("{} isn't compared between stacks", workload.name()))
                    .hint("transactions, bursts, bulk, download-12mb, stream, page, soak"));
            }
            if all.iter().any(|other| key(other) == key(&workload)) {
                return Err(Failure::usage(format!("the workload {} is named twice", key(&workload))));
            }
            all.push(workload);
        }
    }
    Ok(all)
}

/// What a workload is called among others: `bulk`, and `bulk-up` where the client sends.
pub(super) fn key(workload: &Workload) -> &'static str {
    match workload {
        Workload::Bulk { direction: Direction::Up, .. } => "bulk-up",
        Workload::Soak { direction: Direction::Up, .. } => "soak-up",
        Workload::Stream { direction: Direction::Up, .. } => "stream-up",
        _ => workload.name(),
    }
}

/// What a workload of this key is, whichever way it goes.
pub(super) fn kind(key: &str) -> &str {
    key.strip_suffix("-up").unwrap_or(key)
}

fn not_built(name: &str, how: &str) -> Failure {
    Failure::environment(format!("the adapter of {name} isn't built")).hint(how.to_owned())
}

fn failure(error: StackError) -> Failure {
    match error {
        StackError::NotBuilt { name, how } => not_built(name, how),
        StackError::NoTun(_) => Failure::environment(error.to_string())
            .because("the adapters of stacks need a TUN device")
            .hint("run as root, or let everybody open it: sudo chmod 666 /dev/net/tun"),
        other => Failure::environment(other.to_string()).hint("run `windtunnel doctor`"),
    }
}

/// Begins to write the comparison down.
fn notebook(args: &CompareArgs, tunnel: &StackTunnel, config: &Config, rows: &[Row]) -> Result<Notebook, Failure> {
    let arm = |choice: &Choice| wt_journal::Arm { label: choice.title(), settings: choice.settings() };
    let new = NewExperiment {
        comment: args.comment.clone().unwrap_or_default(),
        current: tunnel.current(),
        arms: tunnel.arms().iter().map(arm).collect(),
        config: json!({
            "lab": config.lab,
            "command": command(),
            "stacks": {
                "arms": tunnel.arms().iter().map(|choice| json!([choice.label, choice.window])).collect::<Vec<_>>(),
                "workloads": config.workloads,
                "conformance": rows.iter().map(Row::glanced).collect::<Vec<_>>(),
            },
        }),
        seed: args.options.seed,
        path: tunnel.path(Direction::Down),
        ..begun(tunnel)
    };
    Notebook::open(args.journal.as_deref(), &new)
}

struct Session {
    trials: Trials<StackTunnel>,
    config: Config,
    /// What the user said how long a trial may take.
    give_up: Option<Duration>,
}

impl Session {
    /// How long a workload takes, roughly.
    fn expected(&self, workload: &Workload) -> Duration {
        let rtt = Duration::from_micros(self.config.path.base_rtt_us);
        let fixed = || expected(workload, rtt, BitsPerSecond(self.config.path.capacity_bps.unwrap_or(1).max(1)));
        workload.time().unwrap_or_else(fixed)
    }

    fn announce(&self, rounds: u32) {
        let arms = u32::try_from(self.trials.tunnel.arms().len()).unwrap_or(u32::MAX);
        let each = self.config.workloads.iter().map(|workload| {
            let times = if is_soak(workload) { 1 } else { rounds };
            (self.expected(workload) + self.trials.cool_down()) * times
        });
        let all = each.sum::<Duration>() * arms;
        self.trials.say(&format!("{arms} stacks, {rounds} rounds: about {}, longer with small windows", minutes(all)));
    }

    /// Whether it was stopped before its end.
    fn rounds(&mut self, rounds: u32, rows: &mut [Row]) -> Result<bool, Failure> {
        let mut rng = ChaCha12Rng::seed_from_u64(self.trials.seed);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        for round in 1..=rounds {
            for at in 0..self.config.workloads.len() {
                let workload = self.config.workloads[at].clone();
                if is_soak(&workload) && round > 1 {
                    continue;
                }
                order.shuffle(&mut rng);
                let mut outcomes = Vec::with_capacity(order.len());
                for index in &order {
                    match self.place(round, *index, &workload, &rows[*index])? {
                        Some(outcome) => outcomes.push((*index, outcome)),
                        // A round that isn't complete compares nothing; those before it do.
                        None if round > 1 || at > 0 => return Ok(true),
                        None => return Err(Failure::new(Fault::Stopped, "stopped before anything was compared")),
                    }
                }
                for (index, outcome) in outcomes {
                    rows[index].take(key(&workload), outcome);
                }
            }
        }
        Ok(false)
    }

    /// One trial, again when the lab misbehaved; `None` when the user wants to stop.
    fn place(
        &mut self,
        round: u32,
        index: usize,
        workload: &Workload,
        row: &Row,
    ) -> Result<Option<TrialOutcome>, Failure> {
        let mut last = None;
        // A soak is judged by how it goes on, and takes its time: it isn't run again and again on a busy machine.
        let repeats = if is_soak(workload) { 1 } else { REPEATS };
        for _ in 0..=repeats {
            let outcome = self.trial(round, index, workload)?;
            if outcome.status == Status::Aborted || self.trials.cancel.is_cancelled() {
                return Ok(None);
            }
            let told = match outcome.status {
                Status::Completed => super::result::figure(key(workload), &outcome),
                status => format!("{}: {}", status.name(), outcome.notes.join("; ")),
            };
            self.trials.say(&format!("  round {round}: {:<28} {:<13} {told}", row.title(), key(workload)));
            if outcome.status != Status::Invalid {
                return Ok(Some(outcome));
            }
            last = Some(outcome);
        }
        Ok(last)
    }

    /// What the adapter's path costs, where the kernel was run with and without it.
    fn paired(&mut self, rows: &[Row]) -> Option<Result<Overhead, String>> {
        let arms = overhead::both(rows)?;
        let workload = self.config.workloads.iter().find(|one| matches!(one, Workload::Transactions { .. }))?.clone();
        let done = rows[arms[0]].transaction_us().map(|us| Duration::from_nanos((us * 1e3) as u64));
        let each = done.unwrap_or(Duration::from_micros(self.config.path.base_rtt_us)).max(Duration::from_micros(100));
        Some(overhead::measure(&mut self.trials, arms, &workload, each))
    }

    fn trial(&mut self, round: u32, index: usize, workload: &Workload) -> Result<TrialOutcome, Failure> {
        let settings = self.trials.tunnel.arms()[index].settings();
        // A stack with a small window takes its time; one that hangs shall not take the night.
        let deadline = self.give_up.unwrap_or_else(|| self.expected(workload) * 20 + Duration::from_secs(30));
        self.trials.run((round, index), settings, workload.clone(), deadline)
    }
}

/// Tells a comparison of the journal again: the same trials give the same answer.
///
/// # Errors
/// A [`Failure`] that says what the journal lacks.
pub(crate) fn again(journal: &dyn Journal, stored: &StoredExperiment, forms: &Forms) -> Outcome {
    if forms.csv.is_some() {
        return Err(Failure::usage("a comparison of stacks has no table of settings")
            .hint("windtunnel journal export last --form csv writes every trial"));
    }
    let lacks = || Failure::ours(format!("{} doesn't say what was compared", stored.id));
    let stacks = &stored.config["stacks"];
    let workloads = serde_json::from_value(stacks["workloads"].clone()).map_err(|_| lacks())?;
    let mut rows = Vec::new();
    for (at, arm) in stacks["arms"].as_array().ok_or_else(lacks)?.iter().enumerate() {
        let choice: Choice = arm[0].as_str().and_then(|text| text.parse().ok()).ok_or_else(lacks)?;
        let window = arm[1].as_u64().and_then(|window| u32::try_from(window).ok());
        let glanced = serde_json::from_value(stacks["conformance"][at].clone()).unwrap_or_default();
        rows.push(Row::known(Choice { window, ..choice }, glanced));
    }
    // The last of several is the one that counted: those before it were thrown away.
    let mut rounds: BTreeMap<(u32, &str), BTreeMap<usize, TrialOutcome>> = BTreeMap::new();
    let mut take = |trial: wt_trial::TrialRecord| {
        if !matches!(trial.outcome.status, Status::Running | Status::Aborted) {
            let key = (trial.spec.round, key(&trial.spec.workload));
            rounds.entry(key).or_default().insert(trial.spec.arm, trial.outcome);
        }
        Ok(())
    };
    let read = journal.for_each_trial_from(&stored.id, TrialId::MIN, WithSamples::Yes, &mut take);
    read.map_err(|error| crate::commands::journal::failure(&error))?;
    let all = rows.len();
    for ((_, workload), outcomes) in rounds.into_iter().filter(|(_, outcomes)| outcomes.len() == all) {
        for (index, outcome) in outcomes {
            if let Some(row) = rows.get_mut(index) {
                row.take(workload, outcome);
            }
        }
    }
    let path = PathNow { base_rtt_us: stored.path.rtt_us, capacity_bps: stored.path.physical_goodput_bps };
    let lab = stored.config["lab"].as_str().unwrap_or(&stored.target).to_owned();
    let told = stored.verdict.as_ref().map(|verdict| &verdict["adapter_overhead_paired"]);
    let paired = told.and_then(|told| {
        let why = || told["why"].as_str().map(|why| Err(why.to_owned()));
        Overhead::from_json(told).map(Ok).or_else(why)
    });
    let comparison = Comparison::new(&Config { lab, path, workloads }, rows).with(paired);
    if let Some(file) = &forms.html {
        write_whole(file, &comparison.page(&stored.id))?;
    }
    Ok(comparison.tell(&stored.id, forms.json))
}
