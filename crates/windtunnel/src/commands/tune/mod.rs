//! `windtunnel tune`: vary settings in rounds, decide honestly, report.

/// How much it may cost.
mod budget;
/// Which settings are compared.
pub(crate) mod design;
/// Running the rounds.
mod drive;
/// What would be run.
mod dry;
/// What the model expects.
mod expected;
/// What is said at the end.
mod finish;
/// Pages of browsers.
mod har;
/// What is the same in every trial.
mod hold;
/// The A/A test.
pub(crate) mod identical;
/// A look at the path.
mod inspect;
/// The real path.
mod live;
/// Where trials are written down.
pub(crate) mod notebook;
/// Several far ends.
mod profile;
/// What a person sees meanwhile.
mod progress;
/// Going on with an experiment on another day.
mod resume;
/// Many knobs at once.
mod screen;
/// What each trial does.
pub(crate) mod workload;

use crate::commands::calibrate::kernel_stack;
use crate::commands::cc::controls::Controls;
use crate::commands::lab::{self, LabOptions};
use crate::commands::predict::asked::One;
use crate::commands::report::Forms;
use crate::edge::{Failure, Fault, Outcome, say};
use budget::Budget;
use clap::{Args, ValueEnum};
use design::{Design, Known, Levels};
use drive::{Driver, Plan};
use dry::{show, show_cost};
use expected::{Expected, Oracle};
use notebook::Notebook;
use progress::Progress;
use std::path::PathBuf;
use std::time::Duration;
use workload::Wanted;
use wt_experiment::{Config, Experiment, PlateauConfig};
use wt_lab::LabTunnel;
use wt_sys::clock::unix_us;
use wt_trial::{
    Amount, Cancel, Direction, Holding, PathFacts, Phase, Status, TrialOutcome, TrialRecord, TrialSpec, Tunnel,
    Workload,
};
use wt_units::{BitsPerSecond, Bytes, Knob, Level, Ratio, Settings, parse_duration};
use wt_wire::{Headers, IpVersion, Transport};

/// Finds the settings that make a path fastest, and says whether the difference is real
///
/// Runs real transfers in rounds: every round has each setting once, the current one among them, in random order. What
/// is claimed holds however long you watched (95 %). Ctrl-C stops and keeps what was measured.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel tune http://example.org/file.iso
  windtunnel tune https://example.org/file.iso --budget 200MB --dry-run
  windtunnel tune iperf3://192.0.2.1 --direction up --knobs cc
  windtunnel tune --lab adsl
  windtunnel tune --lab dialup --knobs rwin --levels rwin=1x..16x --budget 30min
  windtunnel tune --lab my-path.toml --knobs cc,mtu --html report.html
  windtunnel tune --lab transatlantic --workload page --knobs initcwnd,initrwnd
  windtunnel tune --lab lte --workload page --knobs initcwnd --hold cc=cubic
  windtunnel tune --lab adsl --screen --levels sack=on,off --levels timestamps=on,off
  windtunnel tune --resume last --budget 10min")]
pub(crate) struct TuneArgs {
    /// The far end, on the real path: http(s)://HOST/FILE, ftp(s)://HOST/FILE, iperf3://HOST, wt://KEY@HOST; or a profile,
    /// a TOML file that names several
    #[arg(value_name = "TARGET", required_unless_present_any = ["lab", "resume"], conflicts_with = "lab")]
    target: Option<String>,
    /// Rehearse on real kernels over this emulated path: a preset's name or a TOML file
    #[arg(long, value_name = "PATH")]
    lab: Option<String>,
    /// What to vary [default: rwin,mtu,cc, as far as they can be set in that direction]
    #[arg(long, value_delimiter = ',', value_parser = knob)]
    knobs: Option<Vec<Knob>>,
    /// Levels of a knob, instead of those chosen from the path: rwin=4x,8x,64KiB or rwin=1x..16x; may be repeated
    #[arg(long, value_name = "KNOB=LEVELS")]
    levels: Vec<Levels>,
    /// What holds in every trial, those of the current settings among them: cc=reno,initrwnd=20
    #[arg(long, value_name = "KNOB=LEVEL,…", value_delimiter = ',', conflicts_with_all = ["identical", "resume"])]
    hold: Vec<One>,
    /// What it may cost at most: a time (10min), a size (200MB), or a number of trials ("60 trials") [default: 150s, or
    /// eight rounds where a path is slow]
    #[arg(long)]
    budget: Option<Budget>,
    /// How long each trial transfers [default: about 75 RTTs, 3 s to 60 s; a soak 5 min]
    #[arg(long, visible_alias = "length", value_name = "TIME", value_parser = trial_time)]
    trial: Option<Duration>,
    /// What each trial does, with its parameters if they aren't the usual ones: bulk, download-12mb, page,
    /// page:size=10kB, transactions:request=200B,response=10kB; --workload help lists all
    #[arg(long, value_name = "WORKLOAD[:KEY=VALUE,…]", default_value = "bulk", conflicts_with = "resume")]
    workload: Wanted,
    /// Which way the payload goes, seen from the client
    #[arg(long, value_enum, default_value_t = DirectionName::Down)]
    direction: DirectionName,
    /// How far the smallest sufficient level of RWIN may lie behind
    #[arg(long, default_value = "10%", value_parser = epsilon)]
    epsilon: Ratio,
    /// Compare levels with the best of all of them instead of the current one; takes about twice the trials
    #[arg(long)]
    strict: bool,
    /// Compare so many candidates that are all the current settings: nothing may be found (A/A test)
    #[arg(long, value_name = "N", conflicts_with_all = ["levels"])]
    identical: Option<usize>,
    /// Vary all knobs of --levels at once, two levels each: finds among many knobs the few that matter, then tries them
    /// together against the current settings
    #[arg(long, conflicts_with_all = ["identical", "resume", "strict"], requires = "levels")]
    screen: bool,
    /// Go on with an experiment of the journal, on this or another day: its name, the beginning of it, or "last"
    #[arg(long, value_name = "EXPERIMENT", conflicts_with_all = ["levels", "identical", "trial"])]
    resume: Option<String>,
    #[command(flatten)]
    live: live::LiveArgs,
    #[command(flatten)]
    options: LabOptions,
    /// Let no model choose which settings are worth a trial, nor weigh them; it never decides what is claimed
    #[arg(long)]
    no_model: bool,
    /// Kept with the experiment
    #[arg(long)]
    comment: Option<String>,
    #[command(flatten)]
    forms: Forms,
    /// A line of JSON for each event, the result last
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
    /// Where every trial is kept [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Say what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionName {
    /// From the server to the client
    Down,
    /// From the client to the server
    Up,
    /// One each way at once
    Both,
}

impl TuneArgs {
    /// What each trial does; `length` is how long, where that can be chosen.
    fn each_trial(&self, length: Duration) -> Workload {
        let one_way = || self.workload.workload(self.direction.into(), length);
        if self.direction == DirectionName::Both {
            self.workload.both(length).unwrap_or_else(|_| one_way())
        } else {
            one_way()
        }
    }

    /// Whether what was asked for goes together.
    fn check(&self) -> Result<(), Failure> {
        if self.direction == DirectionName::Both {
            self.workload.both(Duration::ZERO).map_err(Failure::usage)?;
        }
        self.check_hold()?;
        Ok(())
    }
}

impl From<DirectionName> for Direction {
    fn from(name: DirectionName) -> Self {
        match name {
            // Where only one way counts, both are taken for the usual one.
            DirectionName::Down | DirectionName::Both => Self::Down,
            DirectionName::Up => Self::Up,
        }
    }
}

fn knob(text: &str) -> Result<Knob, String> {
    text.parse().map_err(|error: wt_units::ParseError| error.to_string())
}

pub(crate) fn trial_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_millis(200)..=Duration::from_secs(3600);
    if allowed.contains(&time) { Ok(time) } else { Err(format!("{text} is out of range: allowed is 200ms to 1h")) }
}

fn epsilon(text: &str) -> Result<Ratio, String> {
    let share: Ratio = text.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
    if (0.001..=0.5).contains(&share.get()) {
        Ok(share)
    } else {
        Err(format!("{text} is out of range: allowed is 0.1% to 50%"))
    }
}

/// `2 min 30 s`.
pub(crate) fn minutes(time: Duration) -> String {
    match time.as_secs() {
        s if s < 60 => format!("{s} s"),
        s if s < 3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// What stands before the payload of a segment of ours: IPv4, and TCP with timestamps.
const SEGMENT: Headers = Headers { ip: IpVersion::V4, transport: Transport::Tcp { options_len: 12 } };

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &TuneArgs) -> Outcome {
    args.check()?;
    if let Some(key) = &args.resume {
        return resume::run(args, key);
    }
    if let Some(target) = &args.target {
        return live::run(args, target);
    }
    let scenario = lab::load(args.lab.as_deref().unwrap_or_default())?;
    let bottleneck = scenario.bottleneck().framing.clone();
    // Only where packets are cut into cells does a smaller packet waste less: look one cell below.
    let best_mtu = |most: u64| {
        bottleneck.cells(Bytes(most))?;
        bottleneck.best_mtu(Bytes(most.saturating_sub(47)), SEGMENT).ok().map(Bytes::get)
    };
    let loaded = Controls::load(args.names())?;
    let path = scenario.clone();
    let mut tunnel = LabTunnel::new(lab::start(scenario, &args.options)?).map_err(|error| lab::failure(&error))?;
    let held = args.held(&tunnel)?;
    let mut stack = kernel_stack(&tunnel);
    // Where a congestion control is set the lab lets connections begin without the default one's pacing.
    stack.pacing &= held.get(Knob::Cc).is_none();
    let oracle = if args.no_model { None } else { Oracle::new(&path, stack).map(|oracle| oracle.holding(&held)) };
    loaded.attach(&mut tunnel);
    let controls = tunnel.congestion_controls().to_vec();
    let tunnel = Holding::new(tunnel, held);
    Session { args, tunnel, best_mtu: &best_mtu, controls, cancel: cancel_on_signals()?, oracle, live: None }.run()
}

/// The first Ctrl-C (or SIGTERM) asks everybody to stop; the second one ends the program at once.
pub(crate) fn cancel_on_signals() -> Result<Cancel, Failure> {
    let cancel = Cancel::new();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        // The order matters: the shutdown looks at the flag before this very signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, cancel.flag())
            .and_then(|_| signal_hook::flag::register(signal, cancel.flag()))
            .map_err(|error| Failure::ours(format!("can't catch signals: {error}")))?;
    }
    Ok(cancel)
}

/// One run of the command.
struct Session<'a, T> {
    args: &'a TuneArgs,
    tunnel: Holding<T>,
    /// The MTU up to a bound that wastes least of the bottleneck's frames or cells.
    best_mtu: &'a dyn Fn(u64) -> Option<u64>,
    controls: Vec<String>,
    cancel: Cancel,
    /// The path's model, where enough is known of the path.
    oracle: Option<Oracle>,
    /// On the real path: what is known of the far end.
    live: Option<live::Live>,
}

/// The trial from which the path was learnt, and when it began.
type Pilot = (TrialSpec, TrialOutcome, i64);

/// What is fixed before the first round.
struct Prepared {
    path: PathFacts,
    current: Settings,
    design: Design,
    /// What the model expects of it.
    expected: Option<Expected>,
    config: Config,
}

impl<T: Tunnel> Session<'_, T> {
    fn run(mut self) -> Outcome {
        let facts = self.tunnel.path(self.args.direction.into());
        let mut progress = Progress::new(self.args.json_stream, self.args.forms.json, self.args.quiet);
        if self.args.screen {
            self.check_screen(&facts)?;
        }
        if self.args.dry_run {
            let plan = self.plan(&facts);
            if self.args.screen {
                return self.show_screen(facts, &plan);
            }
            let prepared = self.prepare(facts, &plan)?;
            let foreseen = self.foreseen(&plan, prepared.config.max_trials.unwrap_or(0));
            if self.args.forms.json {
                return Ok(self.show_json(&prepared, &plan));
            }
            return show(&prepared, &plan).inspect(|_| foreseen.iter().for_each(|line| say!("{line}")));
        }
        // What can't be run at all shall be told before anything is measured.
        if !self.args.screen {
            let prepared = self.prepare(facts.clone(), &self.plan(&facts))?;
            self.stands_ready(&prepared)?;
        }
        let pilot = self.pilot(&facts, &progress)?;
        if self.cancel.is_cancelled() {
            return Err(Failure::new(Fault::Stopped, "stopped before anything was measured; nothing was journaled"));
        }
        let path = match &self.live {
            Some(live) => live::measured(live, &facts, &pilot.1),
            None => measured(&facts, &pilot.1),
        };
        let plan = self.plan(&path);
        if self.args.screen {
            return self.screen(path, plan, pilot, progress);
        }
        let prepared = self.prepare(path, &plan)?;
        let start = Start::fresh(&prepared, Some(pilot))?;
        let measured = self.measure(&prepared, plan, start, &mut progress)?;
        finish::conclude(self.args, measured, None)
    }

    /// How each trial is run.
    fn plan(&self, path: &PathFacts) -> Plan {
        if let Some(live) = &self.live {
            return live.plan(self.args, path);
        }
        let rtt = Duration::from_micros(path.rtt_us);
        let usual = (rtt * 75).clamp(Duration::from_secs(3), Duration::from_secs(60));
        let length = self.args.trial.unwrap_or_else(|| self.args.workload.usual_time().unwrap_or(usual));
        let workload = self.args.each_trial(length);
        let rate = BitsPerSecond(path.physical_goodput_bps.unwrap_or(100_000_000).max(8));
        let expected = workload.time().unwrap_or_else(|| workload::expected(&workload, rtt, rate));
        // What has no fixed time may take a few times what is expected.
        let length = if workload.time().is_some() { expected } else { expected * 4 };
        Plan {
            id: String::new(),
            seed: self.args.options.seed,
            workload,
            expected,
            // The path is ours and is emptied before each trial; the ends need a few round trips to let go.
            cool_down: (rtt * 4).clamp(Duration::from_millis(50), Duration::from_secs(5)),
            deadline: length + (rtt * 40).max(Duration::from_secs(10)),
        }
    }

    /// Learns the RTT that TCP sees: with a window of half the bandwidth-delay product no queue builds up.
    fn pilot(&mut self, facts: &PathFacts, progress: &Progress) -> Result<Pilot, Failure> {
        if self.live.is_some() {
            return self.pilot_live(facts, progress);
        }
        let rtt = Duration::from_micros(facts.rtt_us);
        let length = (rtt * 20).clamp(Duration::from_millis(1500), Duration::from_secs(20));
        progress.say(&format!("measuring the RTT first ({:.1} s)", length.as_secs_f64()));
        let mss = live::payload(self.live.as_ref(), facts, self.tunnel.header_len());
        let window = (facts.bdp_bytes / 2 / mss).max(2) * mss;
        let mut settings = Settings::new().with(Knob::Rwin, Level::Number(window));
        if self.tunnel.current().number(Knob::Mtu).is_some_and(|mtu| mtu > facts.pmtu) {
            settings.set(Knob::Mtu, Level::Number(facts.pmtu));
        }
        let spec = TrialSpec {
            phase: Phase::Pilot,
            settings,
            workload: Workload::Bulk { direction: self.args.direction.into(), amount: Amount::Time(length) },
            deadline: length + Duration::from_secs(30),
            ..drive::aside(&self.plan(facts), Phase::Pilot)
        };
        let started = unix_us();
        let outcome = self.tunnel.run(&spec, &self.cancel).map_err(|error| drive::tunnel_failure(&error))?;
        Ok((spec, outcome, started))
    }

    /// Chooses what is compared.
    fn prepare(&self, path: PathFacts, plan: &Plan) -> Result<Prepared, Failure> {
        let current = self.tunnel.current();
        let known = Known {
            current: &current,
            path: &path,
            congestion_controls: &self.controls,
            mss: live::payload(self.live.as_ref(), &path, self.tunnel.header_len()),
            best_mtu: self.best_mtu,
        };
        let mut design = match self.args.identical {
            Some(candidates) => design::identical(candidates, &known)?,
            None => design::design(&self.knobs(), &self.args.levels, &known)?,
        };
        for arm in &design.arms {
            self.tunnel.check(&arm.settings).map_err(|error| drive::tunnel_failure(&error))?;
        }
        let named = |arm: &design::Arm| {
            arm.settings.iter().any(|(knob, _)| self.args.levels.iter().any(|levels| levels.knob == knob))
        };
        let oracle = self.oracle.as_ref().filter(|_| self.args.identical.is_none());
        let expected = oracle.and_then(|oracle| oracle.choose(&mut design, &plan.workload, &path, &named));
        let mut config = Config::new(design.arms.len());
        let weights = expected.as_ref().map(Expected::weights);
        config.weights = weights.filter(|weights| weights.iter().any(|weight| *weight != weights[0]));
        let per_trial = plan.per_trial(Duration::from_micros(path.rtt_us));
        let bytes = self.bytes_per_trial(&path, plan);
        let rounds = |n: usize| design.arms.len() * n;
        let usual = Budget::Time(Duration::from_secs(150)).trials(per_trial, bytes);
        // Where that is too short for settings to be dropped and the rest to be compared, eight rounds are.
        let most = match (self.args.budget, &self.live) {
            (Some(Budget::Size(total)), Some(live)) => live.trials_of(total, bytes),
            (Some(budget), _) => budget.trials(per_trial, bytes),
            (None, _) if usual >= rounds(4) => usual,
            (None, _) => rounds(8),
        };
        if most < design.arms.len() * 2 {
            return Err(Failure::usage(format!(
                "the budget allows {most} trials, and {} settings need at least {} to be compared at all",
                design.arms.len(),
                design.arms.len() * 2
            ))
            .hint("a larger --budget, shorter --trial, or fewer --knobs and --levels"));
        }
        config.max_trials = Some(most);
        let plateau = design.plateau.as_ref();
        config.plateau = plateau.map(|(_, levels)| PlateauConfig {
            epsilon: self.args.epsilon.get(),
            strict: self.args.strict,
            ..PlateauConfig::new(levels.clone())
        });
        Ok(Prepared { path, current, design, expected, config })
    }

    /// Whether anything stands in the way of the trials right now.
    fn stands_ready(&mut self, prepared: &Prepared) -> Result<(), Failure> {
        let arms: Vec<&Settings> = prepared.design.arms.iter().map(|arm| &arm.settings).collect();
        self.tunnel.stands_ready(&arms).map_err(|error| drive::tunnel_failure(&error))
    }

    /// What is varied; nothing that is held.
    fn knobs(&self) -> Vec<Knob> {
        let mut knobs = self.knobs_or_usual();
        knobs.retain(|knob| self.tunnel.held().get(*knob).is_none());
        knobs
    }

    fn knobs_or_usual(&self) -> Vec<Knob> {
        match &self.args.knobs {
            Some(knobs) => knobs.clone(),
            None if !self.args.levels.is_empty() && self.live.is_some() => Vec::new(),
            // A page is over before much else matters than how it starts.
            None if self.args.workload.is_page() => vec![Knob::Initcwnd, Knob::Initrwnd],
            None => self.tunnel.usual_knobs(self.args.direction.into()),
        }
    }

    /// How many bytes a trial may move.
    fn bytes_per_trial(&self, path: &PathFacts, plan: &Plan) -> u64 {
        if let Some(size) = plan.workload.size() {
            return size.get().max(1);
        }
        let assumed = self.live.as_ref().map_or(100_000_000, |live| live.rate().get());
        path.physical_goodput_bps.unwrap_or(assumed).max(8) / 8 * plan.length().as_secs().max(1)
    }
}

/// An experiment that has been run, with its verdict not yet written down.
struct Measured {
    notebook: Notebook,
    experiment: Experiment,
    records: Vec<TrialRecord>,
}

/// From where an experiment starts.
struct Start {
    experiment: Experiment,
    /// Rounds that were run in earlier sessions.
    rounds: u32,
    /// Trials that belong to it already.
    records: Vec<TrialRecord>,
    pilot: Option<Pilot>,
    /// Goes into the journaled configuration.
    more: Vec<(&'static str, serde_json::Value)>,
}

impl Start {
    /// From nothing.
    fn fresh(prepared: &Prepared, pilot: Option<Pilot>) -> Result<Self, Failure> {
        let experiment = Experiment::new(prepared.config.clone()).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Self { experiment, rounds: 0, records: Vec::new(), pilot, more: Vec::new() })
    }
}

impl<T: Tunnel> Session<'_, T> {
    /// Runs the rounds and journals them.
    fn measure(
        &mut self,
        prepared: &Prepared,
        plan: Plan,
        start: Start,
        progress: &mut Progress,
    ) -> Result<Measured, Failure> {
        let Start { mut experiment, rounds, mut records, pilot, more } = start;
        let live = self.live.as_ref().map(|live| ("live", live.config()));
        let expected = prepared.expected.as_ref().map(|expected| ("model", expected.to_json()));
        let held = self.held();
        let more: Vec<(&str, serde_json::Value)> = more.into_iter().chain(live).chain(expected).chain(held).collect();
        let mut notebook = Notebook::create(self.args, &self.tunnel, prepared, &plan, &more)?;
        let plan = Plan { id: notebook.id().to_owned(), ..plan };
        if let Some((spec, outcome, started)) = pilot {
            let spec = TrialSpec { experiment: plan.id.clone(), ..spec };
            records.push(notebook.keep(spec, outcome, started)?);
        }
        let most = experiment.trials_left().unwrap_or(0);
        self.announce(prepared, &plan, most, progress);
        let mut driver = Driver {
            tunnel: &mut self.tunnel,
            notebook: &mut notebook,
            progress,
            cancel: &self.cancel,
            plan: plan.clone(),
            records,
            spent: Duration::ZERO,
            ended: None,
            until_ns: self.live.as_ref().and_then(|_| match self.args.budget {
                Some(Budget::Time(time)) => Some(wt_sys::clock::monotonic_ns() + time.as_nanos() as u64),
                _ => None,
            }),
        };
        driver.warm_up()?;
        driver.rounds(&prepared.design, rounds, &mut experiment)?;
        let records = driver.records;
        progress.end();
        Ok(Measured { notebook, experiment, records })
    }

    /// Says how long it may take.
    fn announce(&self, prepared: &Prepared, plan: &Plan, most: usize, progress: &mut Progress) {
        let per_trial = plan.per_trial(Duration::from_micros(prepared.path.rtt_us));
        let expected = per_trial * u32::try_from(most).unwrap_or(u32::MAX);
        progress.begin(plan, prepared.design.labels(), most, expected);
        progress.say(&format!(
            "{} settings, trials of {:.1} s, at most {most} of them: {} or less; Ctrl-C stops and keeps what was measured",
            prepared.design.arms.len(),
            plan.length().as_secs_f64(),
            minutes(expected)
        ));
        for line in prepared.expected.iter().flat_map(Expected::lines) {
            progress.say(&line);
        }
        if let Some(bytes) = self.expected_bytes(plan, most) {
            progress.say(&bytes);
        }
    }
}

/// The path with the RTT as it was measured, and what follows from it.
fn measured(facts: &PathFacts, pilot: &TrialOutcome) -> PathFacts {
    let rtt = pilot.observed.get("rtt_us").and_then(serde_json::Value::as_u64).filter(|rtt| *rtt > 0);
    let Some(rtt_us) = rtt.filter(|_| pilot.status == Status::Completed) else { return facts.clone() };
    let rate = facts.physical_goodput_bps.unwrap_or(0);
    let bdp = BitsPerSecond(rate) * Duration::from_micros(rtt_us);
    PathFacts { rtt_us, bdp_bytes: bdp.get(), ..facts.clone() }
}
