//! `windtunnel cc compare`: several congestion controls over one emulated path, in rounds.

/// A comparison of the journal, told again.
mod again;
/// What another flow beside the trials' own came to.
mod beside;
/// The pictures.
mod charts;
/// What came of it, in words and as JSON.
mod result;

use super::controls::{Controls, ours};
use crate::commands::lab::{self, LabOptions};
use crate::commands::report::write_whole;
use crate::commands::side_by_side::{REPEATS, Trials};
use crate::commands::tune::notebook::{Notebook, begun, command};
use crate::commands::tune::{cancel_on_signals, minutes, trial_time};
use crate::edge::{Failure, Fault, Outcome};
use clap::Args;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha12Rng;
use result::Comparison;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use wt_journal::{NewExperiment, State};
use wt_lab::scenario::Disturbance;
use wt_lab::{Competitor, LabTunnel};
use wt_trial::bulk::{BulkMetrics, PathNow};
use wt_trial::{Amount, Direction, Status, TrialOutcome, Tunnel, Workload};
use wt_units::{Knob, Level, Settings};

/// Compares congestion controls on an emulated path
///
/// Runs a bulk transfer with each in every round, in random order. All of a round meet the same random losses. Which trials
/// were thrown away, and why, is told. Every trial is kept: windtunnel report tells it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cc compare --lab freebsd-scp --algorithms reno,cubic,hd@freebsd-hz100,chd@freebsd-hz100,chd@freebsd-hz1000
  windtunnel cc compare --lab adsl --algorithms reno,cubic --disturb outage --html outage.html
  windtunnel cc compare --lab adsl --algorithms reno,cubic,bbr --disturb flow")]
pub(super) struct CompareArgs {
    /// The path: a preset's name or a TOML file
    #[arg(long, value_name = "PATH", default_value = "freebsd-scp")]
    lab: String,
    /// Which, the first one being the yardstick; with variants: chd@freebsd-hz100
    #[arg(long, value_delimiter = ',', default_value = "newreno,cubic,htcp,vegas,hd,chd")]
    algorithms: Vec<String>,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// How long each trial transfers [default: about 300 RTTs, 10 s to 60 s]
    #[arg(long, value_name = "TIME", value_parser = trial_time)]
    trial: Option<Duration>,
    /// Let this happen once in every trial, after four tenths of it, and time the recovery from it
    #[arg(long, value_enum)]
    disturb: Option<DisturbanceName>,
    #[command(flatten)]
    options: LabOptions,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Also write a self-contained page with the pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Draw the results as SVG files into this folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
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

/// Disturbances by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DisturbanceName {
    /// One packet is lost
    Loss,
    /// Ten packets in a row are lost
    Burst,
    /// Nothing passes for a second
    Outage,
    /// Half the rate for a fifth of the trial
    HalfRate,
    /// The RTT grows by half, for good
    RttStep,
    /// A newreno flow beside it for 10 s, or 3 tenths of a short trial
    Flow,
}

/// How long the other flow lasts where trials are long enough.
const FLOW: Duration = Duration::from_secs(10);

impl DisturbanceName {
    fn in_trial(self, length: Duration) -> (Disturbance, Duration) {
        let what = match self {
            Self::Loss => Disturbance::Loss,
            Self::Burst => Disturbance::Burst,
            Self::Outage => Disturbance::Outage,
            Self::HalfRate => Disturbance::HalfRate { lasts: length / 5 },
            Self::RttStep => Disturbance::RttStep,
            Self::Flow => Disturbance::Flow { lasts: FLOW.min(length * 3 / 10) },
        };
        (what, length * 2 / 5)
    }
}

pub(crate) use again::again;

/// One trial that counts.
#[derive(Debug)]
struct Run {
    outcome: TrialOutcome,
    metrics: BulkMetrics,
}

/// One of the compared.
#[derive(Debug)]
struct Arm {
    /// As it was asked for.
    asked: String,
    /// The algorithm's own name.
    name: String,
    /// `kernel`, or the variant of ours.
    variant: String,
    runs: Vec<Run>,
    /// Trials that were thrown away.
    invalid: u32,
    /// Impossible values that a skipped program left, in all of its trials.
    guard_hits: u64,
}

impl Arm {
    fn new(asked: &str) -> Result<Self, Failure> {
        let choice = ours(asked).transpose()?;
        let (name, variant) = match choice {
            Some(choice) => (choice.algorithm.name.to_owned(), choice.variant_text()),
            None => (asked.to_owned(), "kernel".to_owned()),
        };
        Ok(Self { asked: asked.to_owned(), name, variant, runs: Vec::new(), invalid: 0, guard_hits: 0 })
    }

    fn settings(&self) -> Settings {
        Settings::new().with(Knob::Cc, Level::Name(self.asked.clone()))
    }

    /// Counts a trial: one that counts, or one that is thrown away.
    fn take(&mut self, outcome: TrialOutcome, path: &PathNow) -> Option<Run> {
        self.guard_hits += outcome.observed.get("guard_hits").and_then(Value::as_u64).unwrap_or(0);
        if outcome.status == Status::Completed {
            let metrics = BulkMetrics::of(&outcome, path);
            return Some(Run { outcome, metrics });
        }
        self.invalid += 1;
        None
    }

    /// In tables and legends.
    fn label(&self) -> String {
        match self.variant.as_str() {
            "kernel" => format!("{} (kernel)", self.name),
            "default" => self.name.clone(),
            variant => format!("{}@{variant}", self.name),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(super) fn run(args: &CompareArgs) -> Outcome {
    let scenario = lab::load(&args.lab)?;
    let mut arms = args.algorithms.iter().map(|name| Arm::new(name)).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = arms.iter().enumerate().find(|(i, arm)| arms[..*i].iter().any(|one| one.asked == arm.asked)) {
        return Err(Failure::usage(format!("{} is named twice", twice.1.asked)));
    }
    let names = || args.algorithms.iter().map(String::as_str);
    let flow = args.disturb == Some(DisturbanceName::Flow);
    // The other flow is ours where we may load one, and else the kernel's.
    let (controls, beside) = match Controls::load(names().chain(flow.then_some(beside::OURS))) {
        Ok(controls) => (controls, beside::OURS),
        Err(_) if flow => (Controls::load(names())?, beside::KERNELS),
        Err(failure) => return Err(failure),
    };
    let facts = scenario.facts(Direction::Down);
    let rtt = Duration::from_micros(facts.rtt_us);
    let length = args.trial.unwrap_or_else(|| (rtt * 300).clamp(Duration::from_secs(10), Duration::from_secs(60)));
    let disturbance = args.disturb.map(|name| name.in_trial(length));
    let scenario = match disturbance {
        Some((what, at)) => scenario.disturbed(what, at, Direction::Down),
        None => scenario,
    };
    let mut tunnel = LabTunnel::new(lab::start(scenario, &args.options)?).map_err(|error| lab::failure(&error))?;
    controls.attach(&mut tunnel);
    if let Some((Disturbance::Flow { lasts }, at)) = disturbance {
        tunnel.compete(Some(Competitor { at, lasts, control: beside.to_owned() }));
    }
    for arm in &arms {
        let asked = Settings::new().with(Knob::Cc, Level::Name(arm.asked.clone()));
        tunnel.check(&asked).map_err(|error| {
            Failure::environment(error.to_string())
                .hint("windtunnel cc list shows what there is; modprobe may bring more")
        })?;
    }
    let notebook = notebook(args, &tunnel, &arms, length, disturbance)?;
    let trials = Trials {
        tunnel,
        notebook,
        cancel: cancel_on_signals()?,
        seed: args.options.seed,
        rtt,
        quiet: args.quiet,
        done: 0,
    };
    let path = PathNow { base_rtt_us: facts.rtt_us, capacity_bps: facts.physical_goodput_bps };
    let mut session = Session { trials, rounds: args.rounds, path, length };
    session.announce(arms.len());
    session.run(&mut arms)?;
    let comparison = Comparison::new(&args.lab, session.path, length, disturbance, &arms);
    let state = if session.trials.cancel.is_cancelled() { State::Stopped } else { State::Finished };
    let id = session.trials.notebook.id().to_owned();
    session.trials.notebook.end(state, &comparison.verdict_json())?;
    if let Some(folder) = &args.svg {
        charts::write(folder, &comparison, &arms)?;
    }
    if let Some(file) = &args.html {
        write_whole(file, &comparison.page(&arms, &id))?;
    }
    Ok(comparison.tell(&id, args.json))
}

/// Begins to write the comparison down.
fn notebook(
    args: &CompareArgs,
    tunnel: &LabTunnel,
    arms: &[Arm],
    length: Duration,
    disturbance: Option<(Disturbance, Duration)>,
) -> Result<Notebook, Failure> {
    let one = |arm: &Arm| wt_journal::Arm { label: arm.label(), settings: arm.settings() };
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let new = NewExperiment {
        comment: args.comment.clone().unwrap_or_default(),
        current: tunnel.current(),
        arms: arms.iter().map(one).collect(),
        config: json!({
            "lab": args.lab,
            "command": command(),
            "compare": {
                "trial_us": micros(length),
                "disturbance": disturbance.map(|(what, at)| {
                    json!({"kind": what.name(), "at_us": micros(at), "lasts_us": micros(what.lasts())})
                }),
                "arms": arms.iter().map(|arm| json!([arm.asked, arm.name, arm.variant])).collect::<Vec<_>>(),
            },
        }),
        seed: args.options.seed,
        path: tunnel.path(Direction::Down),
        ..begun(tunnel)
    };
    Notebook::open(args.journal.as_deref(), &new)
}

struct Session {
    trials: Trials<LabTunnel>,
    rounds: u32,
    path: PathNow,
    length: Duration,
}

impl Session {
    fn announce(&self, arms: usize) {
        let trials = u32::try_from(arms).unwrap_or(u32::MAX).saturating_mul(self.rounds);
        let each = self.length + self.trials.cool_down();
        self.trials.say(&format!(
            "{arms} congestion controls, {} rounds, trials of {:.0} s: about {}",
            self.rounds,
            self.length.as_secs_f64(),
            minutes(each * trials)
        ));
    }

    fn run(&mut self, arms: &mut [Arm]) -> Result<(), Failure> {
        let mut rng = ChaCha12Rng::seed_from_u64(self.trials.seed);
        let mut order: Vec<usize> = (0..arms.len()).collect();
        for round in 1..=self.rounds {
            order.shuffle(&mut rng);
            let mut runs = Vec::with_capacity(arms.len());
            for index in &order {
                match self.place(round, *index, &mut arms[*index]) {
                    Ok(Some(run)) => runs.push((*index, run)),
                    // A round that isn't complete compares nothing; those before it do.
                    Ok(None) if round > 1 => return Ok(()),
                    Ok(None) => return Err(Failure::new(Fault::Stopped, "stopped in the first round")),
                    Err(failure) if round > 1 => {
                        self.trials.say(&format!("{failure}\n  so it ends here, after {} complete rounds", round - 1));
                        return Ok(());
                    }
                    Err(failure) => return Err(failure),
                }
            }
            for (index, run) in runs {
                arms[index].runs.push(run);
            }
        }
        Ok(())
    }

    /// One trial of a round, again when it says nothing; `None` when the user wants to stop.
    fn place(&mut self, round: u32, index: usize, arm: &mut Arm) -> Result<Option<Run>, Failure> {
        let mut why = String::new();
        for _ in 0..=REPEATS {
            let outcome = self.trial(round, index, arm)?;
            if outcome.status == Status::Aborted || self.trials.cancel.is_cancelled() {
                return Ok(None);
            }
            why = outcome.notes.join("; ");
            if let Some(run) = arm.take(outcome, &self.path) {
                let rate = run.outcome.goodput_bps() / 8e3;
                self.trials.say(&format!("  round {round}: {:<24} {rate:7.1} kB/s", arm.label()));
                return Ok(Some(run));
            }
            self.trials.say(&format!("  round {round}: {:<24} thrown away: {why}", arm.label()));
        }
        Err(Failure::new(Fault::Environment, format!("{} can't be measured: {why}", arm.label()))
            .hint("let the machine be idle; on some virtual machines' kernels BPF programs are skipped now and then"))
    }

    fn trial(&mut self, round: u32, index: usize, arm: &Arm) -> Result<TrialOutcome, Failure> {
        let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Time(self.length) };
        let deadline = self.length + Duration::from_secs(30);
        let outcome = self.trials.run((round, index), arm.settings(), workload, deadline)?;
        if !outcome.notes.is_empty() && outcome.status == Status::Completed {
            let refused = outcome.notes.iter().find(|note| note.contains("congestion control"));
            if let Some(note) = refused {
                return Err(Failure::environment(format!("{} can't be used: {note}", arm.asked)));
            }
        }
        Ok(outcome)
    }
}
