use crate::cli::forms::Forms;
use crate::cli::probe::Ip;
use crate::cli::typed;
use crate::cli::values::{DirectionName, GoalName, rate_with_unit, trial_time};
use crate::commands::lab::LabOptions;
use crate::commands::lab::virtual_time::VirtualArgs;
use crate::edge::Problem;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use wt_prober::IpVersion;
use wt_report::RetypedOptions;
use wt_setup::{Baseline, Budget, Levels, NamedArm, WorkloadRequest};
use wt_tune::{LiveRequest, TuneRequest, TurnsRequest};
use wt_units::{Assignment, BitsPerSecond, Knob, Ratio, parse_duration};
use wt_wire::Framing;

/// Finds the fastest settings, and whether the gain is real
///
/// Runs real transfers in rounds: every round has each setting once, or on a quiet path twice, the current one among them, in
/// random order. What is claimed holds however long you watched (95 %). Ctrl-C stops and keeps what was measured.
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
  windtunnel tune --lab ethernet-hub --baseline windows-98 --arm current --arm 'tuned: rwin=64KiB,mtu=1400'
  windtunnel tune --lab adsl --screen --levels sack=on,off --levels timestamps=on,off
  windtunnel tune --resume last --budget 10min")]
pub(crate) struct TuneArgs {
    /// The server, on the real path: http(s)://HOST/FILE, ftp(s)://HOST/FILE, iperf3://HOST, wt://HOST; or a profile,
    /// a TOML file that names several
    #[arg(value_name = "TARGET", conflicts_with = "lab")]
    target: Option<String>,
    /// The key of `windtunnel serve`, in a file: in the address every user of this host could read it. Without it
    /// WINDTUNNEL_KEY counts, and then you are asked
    #[arg(long, value_name = "FILE", conflicts_with = "lab")]
    key_file: Option<PathBuf>,
    /// Rehearse on real kernels over this emulated path: a preset's name or a TOML file
    #[arg(long, value_name = "PATH")]
    lab: Option<String>,
    /// What to vary [default: rwin,mtu,cc, as far as they can be set in that direction; with --levels or --arm only what
    /// those name]
    #[arg(long, value_delimiter = ',', value_parser = knob)]
    knobs: Option<Vec<Knob>>,
    /// Levels of a knob, instead of those chosen from the path: rwin=4x,33xmtu,64KiB or rwin=1x..16x; may be repeated
    #[arg(long, value_name = "KNOB=LEVELS")]
    levels: Vec<Levels>,
    /// Compare with these settings instead of your current ones: rwin=8192,mtu=576; with what this system begins with: os;
    /// or another one: windows-98, windows-xp, freebsd (`windtunnel settings defaults` lists them)
    #[arg(long, value_name = "KNOB=LEVEL,…|SYSTEM", conflicts_with_all = ["identical", "resume", "screen"])]
    baseline: Option<Baseline>,
    /// A candidate of several settings that belong together, with a name: "probing: pmtud=on,mtu-probing=on"; "current"
    /// are your current settings; may be repeated. Of A, B and both, the report has the interaction
    #[arg(long = "arm", value_name = "NAME: KNOB=LEVEL,…", conflicts_with_all = ["identical", "resume", "screen"])]
    arms: Vec<NamedArm>,
    /// Settings fixed in every trial, the baseline's included: cc=reno,initrwnd=20
    #[arg(long, value_name = "KNOB=LEVEL,…", value_delimiter = ',', conflicts_with_all = ["identical", "resume"])]
    hold: Vec<Assignment>,
    /// What it may cost at most: a time (10min), a size (200MB), or a number of trials ("60 trials") [default: 150s, but
    /// at least six or seven rounds of all settings, eight where a path is slow, more where a clear gain takes more]
    #[arg(long)]
    budget: Option<Budget>,
    /// How long each trial transfers [default: about 75 RTTs, 3 s to 60 s; a soak 5 min]
    #[arg(long, alias = "length", value_name = "TIME", value_parser = trial_time)]
    trial: Option<Duration>,
    /// What each trial does, with its parameters if they aren't the usual ones: bulk, download-12mb, page,
    /// page:size=10kB, transactions:request=200B,response=10kB; --workload help lists all
    #[arg(long, value_name = "WORKLOAD[:KEY=VALUE,…]", default_value = "bulk", conflicts_with = "resume")]
    workload: WorkloadRequest,
    /// Which way the payload goes, seen from the client
    #[arg(long, value_enum, default_value_t = DirectionName::Down)]
    direction: DirectionName,
    /// What you wish for: the most goodput, the same with less delay, or both
    #[arg(long, value_enum, default_value_t, conflicts_with = "resume")]
    goal: GoalName,
    /// Loss of speed tolerated when choosing the smallest sufficient level (RWIN, MTU, initcwnd, initrwnd), or less delay
    #[arg(long, default_value = "10%", value_parser = epsilon)]
    epsilon: Ratio,
    /// Compare levels with the best of all of them instead of the current one; takes about twice the trials
    #[arg(long)]
    strict: bool,
    /// A/A test: N copies of the current settings; any "faster" is a false alarm
    #[arg(long, value_name = "N", conflicts_with_all = ["levels"])]
    identical: Option<usize>,
    /// Vary all knobs of --levels at once, two levels each: finds among many knobs the few that matter, then tries them
    /// together against the current settings
    #[arg(long, conflicts_with_all = ["identical", "resume", "strict", "csv"], requires = "levels")]
    screen: bool,
    /// Draws the order of the trials from this number, to repeat an order, or from EXPERIMENT@SITE, so that each site of a
    /// fleet has its own [default: the operating system draws one]
    #[arg(long, value_name = "N", value_parser = crate::cli::values::order_seed)]
    order_seed: Option<u64>,
    /// Go on with an experiment of the journal, on this or another day: its name, the beginning of it, or "last"
    #[arg(long, value_name = "EXPERIMENT", conflicts_with_all = ["levels", "identical", "trial", "knobs", "direction",
        "goal", "epsilon", "strict"])]
    resume: Option<String>,
    /// Take a turn before each round from this server, so that what is named by --resource is never measured on by two at
    /// once: postgresql://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", requires = "resource")]
    turns: Option<String>,
    /// What a turn is on, several times if need be: link:berlin, host:a, target:example.org
    #[arg(long, value_name = "WORD", requires = "turns")]
    resource: Vec<String>,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    options: LabOptions,
    #[command(flatten)]
    pub(super) time: VirtualArgs,
    /// Let no model choose which settings are worth a trial, nor weigh them; it never decides what is claimed
    #[arg(long)]
    no_model: bool,
    /// Note stored with the experiment
    #[arg(long)]
    comment: Option<String>,
    #[command(flatten)]
    pub(super) forms: Forms,
    /// A line of JSON for each event, the result last
    #[arg(long, conflicts_with = "json")]
    pub(super) json_stream: bool,
    /// Where every trial is kept [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Say what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// No progress
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// What only the real path needs.
#[derive(Debug, Clone, Args)]
pub(crate) struct LiveArgs {
    /// Believe the certificate authorities in this file, too (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "lab")]
    ca: Option<PathBuf>,
    /// The version of IP [default: what the name resolves to first]
    #[arg(long, value_enum, conflicts_with = "lab")]
    ip: Option<Ip>,
    /// Between two trials [default: 4 RTTs, and for servers on the Internet at least 1 s]
    #[arg(long, value_name = "TIME", value_parser = pause, conflicts_with = "lab")]
    pause: Option<Duration>,
    /// Let trials change settings of this whole host: other programs feel it meanwhile. Everything is put back after
    /// each trial, also if this program dies
    #[arg(long, conflicts_with = "lab")]
    allow_host_wide: bool,
    /// The rate of the link that bounds the path, for its physical limit: 16mbit
    #[arg(long, value_name = "RATE", conflicts_with = "lab", value_parser = rate_with_unit::<BitsPerSecond>)]
    link_rate: Option<BitsPerSecond>,
    /// How packets are framed on that link, as `windtunnel overhead --list` names it
    #[arg(long, value_name = "WORDS", default_value = "ethernet", value_parser = framing, requires = "link_rate")]
    encap: Framing,
    /// Don't probe the path MTU first; the device's is taken
    #[arg(long, conflicts_with = "lab")]
    no_probes: bool,
}

fn pause(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time <= Duration::from_secs(3600) { Ok(time) } else { Err(format!("{text} is out of range: at most 1h")) }
}

fn framing(text: &str) -> Result<Framing, String> {
    Framing::parse(text).map_err(|error| error.to_string())
}

impl TuneArgs {
    /// What must be typed again to go on with it.
    pub(super) fn retyped(&self) -> RetypedOptions {
        typed::retyped(self.journal.as_deref(), self.key_file.as_deref())
    }

    /// What is asked for.
    ///
    /// # Errors
    /// A [`Problem`] when the key can't be read.
    pub(super) fn request(&self) -> Result<TuneRequest, Problem> {
        Ok(TuneRequest {
            target: self.target.clone(),
            key: super::key::find(self.target.as_deref(), self.key_file.as_deref())?,
            lab: self.lab.clone(),
            model: false,
            knobs: self.knobs.clone(),
            levels: self.levels.clone(),
            baseline: self.baseline.clone(),
            arms: self.arms.clone(),
            hold: self.hold.clone(),
            budget: self.budget,
            trial: self.trial,
            workload: self.workload.clone(),
            direction: self.direction.into(),
            goal: self.goal.into(),
            epsilon: self.epsilon,
            strict: self.strict,
            identical: self.identical,
            screen: self.screen,
            resume: self.resume.clone(),
            live: self.live.request(),
            seed: self.options.seed,
            order_seed: self.order_seed,
            backend: self.options.backend.into(),
            sharp: self.options.sharp,
            turns: self.turns.as_ref().map(|server| TurnsRequest {
                server: server.clone(),
                resources: self.resource.clone(),
                hold: None,
            }),
            no_model: self.no_model,
            comment: self.comment.clone().unwrap_or_default(),
            journal: self.journal.clone(),
            dry_run: self.dry_run,
            command: typed::command(),
        })
    }
}

impl LiveArgs {
    fn request(&self) -> LiveRequest {
        LiveRequest {
            ca: self.ca.clone(),
            ip: self.ip.map(IpVersion::from),
            pause: self.pause,
            allow_host_wide: self.allow_host_wide,
            link_rate: self.link_rate,
            encap: self.encap.clone(),
            no_probes: self.no_probes,
        }
    }
}

fn knob(text: &str) -> Result<Knob, String> {
    text.parse().map_err(|error: wt_units::ParseError| error.to_string())
}

fn epsilon(text: &str) -> Result<Ratio, String> {
    let share: Ratio = text.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
    if (0.001..=0.5).contains(&share.get()) {
        Ok(share)
    } else {
        Err(format!("{text} is out of range: allowed is 0.1% to 50%"))
    }
}
