//! `tune TARGET`: the real path to servers that mostly aren't ours.

use super::budget::Budget;
use super::drive::{self, Plan};
use super::expected::{Oracle, Seen};
use super::hold::held_in;
use super::inspect::{reached, unfound};
use super::profile::{self, Named};
use super::{DirectionName, Pilot, Progress, Session, TuneArgs, cancel_on_signals, workload};
use crate::commands::calibrate::host_stack;
use crate::commands::cc::controls::{self, Controls};
use crate::commands::probing::Ip;
use crate::commands::settings;
use crate::edge::{Failure, Fault, Outcome};
use clap::Args;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use wt_journal::StoredExperiment;
use wt_live::{Changer, Control, LiveConfig, LiveTunnel, Target};
use wt_load::{Scheme, Tls, Url};
use wt_sys::clock::unix_us;
use wt_sys::ns::read_net_sysctl;
use wt_trial::{
    Amount, Direction, Holding, LoadedControl, PathFacts, Phase, Status, TrialOutcome, TrialSpec, Tunnel, Workload,
};
use wt_units::{BitsPerSecond, Bytes, Knob, Settings, parse_duration};
use wt_wire::Framing;

/// What a path is taken to carry before anything is known.
pub(super) const ASSUMED: BitsPerSecond = BitsPerSecond(100_000_000);
/// Of a budget of bytes, the pilot takes at most this part.
const PILOT_PART: u64 = 20;
/// A budget of bytes is cut into so many trials, if they don't get too short by that.
const TRIALS_OF_A_BUDGET: u64 = 60;
/// A budget of time is cut into so many, if the usual ones would be longer.
const TRIALS_OF_A_TIME: u32 = 40;
/// But into no fewer than these, so that trials outlast slow start.
const FEWEST_OF_A_BUDGET: u64 = 30;
/// A trial of fewer bytes says little.
const LEAST: u64 = 64 * 1024;
/// And takes no longer than this beyond its time.
const PILOT_PATIENCE: Duration = Duration::from_secs(10);
/// No path that carries TCP in earnest has smaller segments (RFC 9293 section 3.7.1, less the options).
const LEAST_MSS: u64 = 500;
/// With less than this a pilot has shown nothing: a segment or so.
const NOTHING: u64 = 2000;
/// How often each server may refuse the pilot.
const PILOTS: usize = 3;

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
    #[arg(long, value_name = "RATE", conflicts_with = "lab")]
    pub(super) link_rate: Option<BitsPerSecond>,
    /// How packets are framed on that link, as `windtunnel overhead --list` names it
    #[arg(long, value_name = "WORDS", default_value = "ethernet", value_parser = framing, requires = "link_rate")]
    pub(super) encap: Framing,
    /// Don't probe the path MTU first; the device's is taken
    #[arg(long, conflicts_with = "lab")]
    pub(super) no_probes: bool,
}

fn pause(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time <= Duration::from_secs(3600) { Ok(time) } else { Err(format!("{text} is out of range: at most 1h")) }
}

fn framing(text: &str) -> Result<Framing, String> {
    Framing::parse(text).map_err(|error| error.to_string())
}

/// What is known of the far end, and what follows for each trial.
#[derive(Debug)]
pub(super) struct Live {
    pause: Option<Duration>,
    near: bool,
    /// Whether an upload can be ended by the clock: the far end counts what it received.
    by_time: bool,
    /// Payload per second, once it was measured.
    rate: Cell<Option<BitsPerSecond>>,
    /// Bytes of the file, if they are known.
    length: Cell<Option<u64>>,
    /// The largest segment that was seen, bytes of payload.
    mss: Cell<Option<u64>>,
    /// What it is taken for before that.
    assumed: BitsPerSecond,
    /// Bytes that the pilot cost.
    spent: Cell<u64>,
    /// The share of probes that got lost, if there were any.
    loss: Option<f64>,
    description: Value,
}

impl Live {
    pub(super) fn rate(&self) -> BitsPerSecond {
        self.rate.get().unwrap_or(self.assumed)
    }

    /// How many far ends there are.
    fn targets(&self) -> usize {
        self.description["targets"].as_array().map_or(1, Vec::len)
    }

    /// The largest segment that was seen, bytes of payload.
    pub(super) fn mss(&self) -> Option<u64> {
        self.mss.get()
    }

    /// The share of probes that got lost, if there were any.
    pub(super) fn loss(&self) -> Option<f64> {
        self.loss
    }

    /// The model of the path as the pilot found it; none where nothing was measured.
    pub(super) fn oracle(&self, path: &PathFacts, direction: Direction) -> Option<Oracle> {
        let goodput = path.physical_goodput_bps.map(BitsPerSecond).or(self.rate.get())?;
        let seen = Seen { goodput, loss: self.loss.unwrap_or(0.0), direction };
        let mut stack = host_stack();
        if direction == Direction::Down {
            // What the far end has nobody says; this is what most have.
            (stack.congestion_control, stack.pacing) = ("cubic".to_owned(), false);
        }
        Oracle::of_real_path(&seen, path, &stack)
    }

    /// Goes into the journaled configuration.
    pub(super) fn config(&self) -> Value {
        let mut config = self.description.clone();
        config["loss"] = json!(self.loss);
        config["rate_bps"] = json!(self.rate.get().map(|rate| rate.get()));
        config["length"] = json!(self.length.get());
        config
    }

    /// How each trial is run.
    pub(super) fn plan(&self, args: &TuneArgs, path: &PathFacts) -> Plan {
        let rtt = Duration::from_micros(path.rtt_us);
        let usual = (rtt * 75).clamp(Duration::from_secs(3), Duration::from_secs(60));
        let length = args.trial.unwrap_or_else(|| match args.budget {
            // In little time rather many short trials than a few long ones.
            Some(Budget::Time(time)) => {
                usual.min((time / TRIALS_OF_A_TIME).max(rtt * 15).max(Duration::from_millis(300)))
            }
            _ => usual,
        });
        let rate = self.rate();
        if !args.workload.is_plain() || args.direction == DirectionName::Both {
            return self.plan_of(args, path, length);
        }
        let whole = (rate * length).get().max(LEAST);
        let direction: Direction = args.direction.into();
        let size = match args.budget {
            Some(Budget::Size(total)) => {
                let left = total.get().saturating_sub(self.spent.get());
                let telling = (path.bdp_bytes * 10).min(left / FEWEST_OF_A_BUDGET);
                let size = (left / TRIALS_OF_A_BUDGET).max(telling).max(LEAST);
                Some(whole.min(size).min(self.length.get().unwrap_or(u64::MAX)))
            }
            _ if direction == Direction::Up && !self.by_time => Some(whole),
            // A file that is over before its time is the same amount each time.
            _ => self.length.get().filter(|length| *length < whole + whole / 4),
        };
        let (amount, expected, most) = match size {
            Some(size) => {
                let expected = Bytes(size) / rate;
                (Amount::Size(Bytes(size)), expected, expected * 4)
            }
            None => (Amount::Time(length), length, length),
        };
        let least = if self.near { Duration::from_millis(50) } else { Duration::from_secs(1) };
        Plan {
            id: String::new(),
            seed: args.options.seed,
            workload: Workload::Bulk { direction, amount },
            expected,
            cool_down: self.pause.unwrap_or_else(|| (rtt * 4).clamp(least, Duration::from_secs(5))),
            deadline: most + (rtt * 40).max(Duration::from_secs(10)),
        }
    }

    /// How each trial of a workload is run whose amount doesn't follow from the budget.
    fn plan_of(&self, args: &TuneArgs, path: &PathFacts, length: Duration) -> Plan {
        let rtt = Duration::from_micros(path.rtt_us);
        let length = args.trial.or_else(|| args.workload.usual_time()).unwrap_or(length);
        let workload = args.each_trial(length);
        let expected = workload.time().unwrap_or_else(|| workload::expected(&workload, rtt, self.rate()));
        let most = if workload.time().is_some() { expected } else { expected * 4 };
        let least = if self.near { Duration::from_millis(50) } else { Duration::from_secs(1) };
        Plan {
            id: String::new(),
            seed: args.options.seed,
            workload,
            expected,
            cool_down: self.pause.unwrap_or_else(|| (rtt * 4).clamp(least, Duration::from_secs(5))),
            deadline: most + (rtt * 40).max(Duration::from_secs(10)),
        }
    }

    /// The most trials that a budget of bytes allows: one more is run to warm up.
    pub(super) fn trials_of(&self, total: Bytes, bytes_per_trial: u64) -> usize {
        let left = total.get().saturating_sub(self.spent.get());
        usize::try_from((left / bytes_per_trial.max(1)).saturating_sub(1)).unwrap_or(usize::MAX)
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(super) fn run(args: &TuneArgs, target: &str) -> Outcome {
    let names: Vec<String> = args.names().map(str::to_owned).collect();
    let named = named(target)?;
    for one in &named {
        args.workload.check(one.url.scheme).map_err(|why| Failure::usage(format!("{}: {why}", one.url)))?;
        if args.direction == DirectionName::Both && one.url.scheme != Scheme::Wt {
            let why = format!("{}: both ways at once need a far end of ours, wt://KEY@HOST", one.url);
            return Err(Failure::usage(why).hint("or --direction up and --direction down, one after the other"));
        }
    }
    session(args, named, &names, &Again::default())?.run()
}

/// The far ends that a target stands for.
fn named(target: &str) -> Result<Vec<Named>, Failure> {
    if !profile::is_profile(target) {
        let url: Url = target.parse().map_err(|error: wt_load::UrlError| {
            Failure::usage(error.to_string()).hint("or name a profile, a .toml file with [[target]] url = \"…\"")
        })?;
        return Ok(vec![Named { url, comment: String::new() }]);
    }
    let text = std::fs::read_to_string(target).map_err(|error| Failure::usage(format!("{target}: {error}")))?;
    profile::parse(&text).map_err(|error| Failure::usage(format!("{target}: {error}")))
}

/// Opens the target that an experiment of the journal was run on.
///
/// # Errors
/// A [`Failure`] when it isn't there any more.
pub(super) fn again<'a>(args: &'a TuneArgs, stored: &StoredExperiment) -> Result<Session<'a, LiveTunnel>, Failure> {
    let urls: Vec<String> = stored.config["live"]["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    // What was typed now counts: a password isn't kept.
    let urls = args.target.clone().map_or(urls, |target| vec![target]);
    if urls.is_empty() {
        return Err(Failure::ours(format!("{} doesn't say where it was run", stored.id)));
    }
    let mut all = Vec::new();
    for url in urls {
        let kept = args.target.is_none();
        all.extend(named(&url).map_err(|failure| {
            match url.strip_prefix("wt://").filter(|_| kept) {
                Some(host) => failure
                    .because("no key is kept in the journal")
                    .hint(format!("windtunnel tune wt://KEY@{host} --resume {}", stored.id)),
                None => failure,
            }
        })?);
    }
    let held = held_in(stored)?;
    let arms = stored.arms.iter().map(|arm| &arm.settings).chain([&held]);
    let names = arms.filter_map(|settings| settings.name(Knob::Cc).map(str::to_owned));
    let workload: Option<Workload> = serde_json::from_value(stored.config["workload"].clone()).ok();
    let address: Option<IpAddr> = stored.config["live"]["address"].as_str().and_then(|text| text.parse().ok());
    let before = Again {
        direction: workload.map(|workload| workload.direction()),
        v6: address.map(|address| address.is_ipv6()),
        held: Some(held.clone()),
    };
    let session = session(args, all, &names.collect::<Vec<_>>(), &before)?;
    if let Some(live) = &session.live {
        live.rate.set(stored.config["live"]["rate_bps"].as_u64().map(BitsPerSecond));
        live.length.set(stored.config["live"]["length"].as_u64());
    }
    Ok(session)
}

/// What an experiment that is gone on with has fixed, whatever is said now.
#[derive(Debug, Default)]
struct Again {
    direction: Option<Direction>,
    v6: Option<bool>,
    held: Option<Settings>,
}

/// Opens the far ends; `names` are the levels that may be congestion controls of ours.
fn session<'a>(
    args: &'a TuneArgs,
    named: Vec<Named>,
    names: &[String],
    before: &Again,
) -> Result<Session<'a, LiveTunnel>, Failure> {
    let direction = before.direction.unwrap_or_else(|| args.direction.into());
    let v6 = args.live.ip.map(|ip| ip == Ip::V6).or(before.v6);
    let ours = ours(direction, names)?;
    let told = Progress::new(args.json_stream, args.forms.json, args.quiet);
    let mut targets = Vec::new();
    let mut first_found = None;
    let mut last = Failure::usage("there is no target");
    // Of several, those that aren't there are passed over.
    for Named { url, comment } in named {
        let mut found = Target::find(url.clone(), v6).map_err(|error| unfound(&error));
        if first_found.is_none() && found.is_ok() {
            found = reached(args, &url, v6, &told).map(|(target, inspected)| {
                first_found = Some(inspected);
                target
            });
        }
        match found {
            Ok(target) => targets.push(target.commented(comment)),
            Err(failure) => {
                told.say(&failure.what);
                last = failure;
            }
        }
    }
    let (Some(first), Some(inspected)) = (targets.first(), first_found) else { return Err(last) };
    let near = targets.iter().all(Target::is_near);
    let tls = Tls::new(args.live.ca.as_deref()).map_err(|error| Failure::usage(error.to_string()))?;
    let controls = controls();
    let allowance = if let Some(Budget::Size(total)) = args.budget { Some(total.get()) } else { None };
    let live = Live {
        pause: args.live.pause,
        near,
        by_time: matches!(first.url.scheme, Scheme::Iperf3 | Scheme::Wt),
        rate: Cell::new(None),
        length: Cell::new(None),
        mss: Cell::new(None),
        assumed: inspected.facts.physical_goodput_bps.map_or(ASSUMED, BitsPerSecond),
        spent: Cell::new(0),
        loss: inspected.loss,
        description: json!({
            "targets": targets.iter().map(|target| target.url.to_string()).collect::<Vec<_>>(),
            "address": first.peer.ip().to_string(),
            "ca": args.live.ca,
        }),
    };
    let tunnel = LiveTunnel::new(LiveConfig {
        direction,
        v6,
        tls,
        changer: changer(args)?,
        facts: inspected.facts,
        device_mtu: inspected.device_mtu,
        congestion_control: read_net_sysctl("ipv4/tcp_congestion_control").unwrap_or_default(),
        congestion_controls: controls.clone(),
        controls: ours,
        allowance,
        targets,
    });
    let held = before.held.clone().map_or_else(|| args.held(&tunnel), Ok)?;
    let tunnel = Holding::new(tunnel, held);
    Ok(Session {
        args,
        tunnel,
        best_mtu: &|_| None,
        controls,
        cancel: cancel_on_signals()?,
        oracle: None,
        live: Some(live),
    })
}

/// Congestion controls of ours among these names: loaded here where this end sends; where the far end does, the name under
/// which a `windtunnel serve` has it.
fn ours(direction: Direction, names: &[String]) -> Result<BTreeMap<String, Control>, Failure> {
    if direction == Direction::Up {
        let loaded = Controls::load(names.iter().map(String::as_str))?;
        let one = |(name, control): (String, Rc<dyn LoadedControl>)| {
            let kernel_name = control.kernel_name().to_owned();
            (name, Control { kernel_name, loaded: Some(control) })
        };
        return Ok(loaded.loaded().map(one).collect());
    }
    let mut found = BTreeMap::new();
    for name in names.iter().filter(|name| name.contains('@')) {
        if let Some(choice) = controls::ours(name).transpose()? {
            found.insert(name.clone(), Control { kernel_name: choice.kernel_name(), loaded: None });
        }
    }
    Ok(found)
}

/// The congestion controls that this process may use.
fn controls() -> Vec<String> {
    let all = ["ipv4/tcp_available_congestion_control", "ipv4/tcp_allowed_congestion_control"];
    let file = all[usize::from(wt_sys::process::effective_uid() != 0)];
    read_net_sysctl(file).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// What changes routes and the host; only asked for when a knob needs it.
fn changer(args: &TuneArgs) -> Result<Option<Changer>, Failure> {
    let (system, store, guard) = settings::parts()?;
    Ok(Some(Changer { system, store, guard, allow_host_wide: args.live.allow_host_wide }))
}

impl<T: Tunnel> Session<'_, T> {
    /// Learns what the path carries with the settings as they are.
    pub(super) fn pilot_live(&mut self, facts: &PathFacts, progress: &Progress) -> Result<Pilot, Failure> {
        let rtt = Duration::from_micros(facts.rtt_us);
        let length = (rtt * 20).clamp(Duration::from_millis(1500), Duration::from_secs(10));
        let direction: Direction = self.args.direction.into();
        let budget =
            if let Some(Budget::Size(total)) = self.args.budget { Some(total.get() / PILOT_PART) } else { None };
        progress.say(&format!("measuring what the path carries first ({:.1} s)", length.as_secs_f64()));
        let mut size = match (budget, direction) {
            (Some(part), Direction::Down) => Some(part.max(LEAST)),
            (None, Direction::Down) => None,
            (None, Direction::Up) if self.live.as_ref().is_some_and(|live| live.by_time) => None,
            (part, Direction::Up) => Some(part.unwrap_or(u64::MAX).clamp(LEAST, 4 * LEAST)),
        };
        loop {
            let amount = size.map_or(Amount::Time(length), |size| Amount::Size(Bytes(size)));
            let pilot = self.pilot_of(facts, amount, length)?;
            let spent = self.live.as_ref().map_or(0, |live| live.spent.get()) + pilot.1.bytes;
            let larger = size
                .map(|size| size * 8)
                .filter(|larger| direction == Direction::Up && spent + larger <= budget.unwrap_or(256 << 20));
            if let Some(live) = &self.live {
                live.spent.set(spent);
                live.rate.set(Some(BitsPerSecond(pilot.1.goodput_bps() as u64)).filter(|rate| rate.get() > 0));
                live.length.set(pilot.1.observed.get("length").and_then(Value::as_u64));
                live.mss.set(pilot.1.observed.get("mss").and_then(Value::as_u64).filter(|mss| *mss >= LEAST_MSS));
            }
            // An upload that was over at once says nothing of the rate.
            match larger {
                Some(larger) if pilot.1.elapsed_us < 500_000 && !self.cancel.is_cancelled() => size = Some(larger),
                _ => {
                    let live = self.live.as_ref().filter(|_| !self.args.no_model);
                    let oracle = live.and_then(|live| live.oracle(&measured(live, facts, &pilot.1), direction));
                    self.oracle = oracle.map(|oracle| oracle.holding(self.tunnel.held()));
                    return Ok(pilot);
                }
            }
        }
    }

    fn pilot_of(&mut self, facts: &PathFacts, amount: Amount, length: Duration) -> Result<Pilot, Failure> {
        let spec = TrialSpec {
            phase: Phase::Pilot,
            workload: Workload::Bulk { direction: self.args.direction.into(), amount },
            deadline: length + PILOT_PATIENCE,
            ..drive::aside(&self.plan(facts), Phase::Pilot)
        };
        let mut said = String::new();
        let attempts = PILOTS * self.live.as_ref().map_or(1, Live::targets);
        for _ in 0..attempts {
            let started = unix_us();
            let outcome = self.tunnel.run(&spec, &self.cancel).map_err(|error| drive::tunnel_failure(&error))?;
            match outcome.status {
                Status::Invalid => {}
                Status::Failed => return Err(useless(&self.tunnel.target(), &outcome)),
                Status::Aborted => {}
                _ if outcome.bytes < NOTHING => return Err(useless(&self.tunnel.target(), &outcome)),
                _ => return Ok((spec, outcome, started)),
            }
            if self.cancel.is_cancelled() {
                return Err(Failure::new(
                    Fault::Stopped,
                    "stopped before anything was measured; nothing was journaled",
                ));
            }
            said = outcome.notes.join("; ");
            Progress::new(self.args.json_stream, self.args.forms.json, self.args.quiet).say(&said);
            if self.tunnel.gives_up_round() {
                break;
            }
        }
        let what = format!("{} refused {attempts} times in a row", self.tunnel.target());
        Err(Failure::new(Fault::FarEnd, what).because(said).hint("try again later, or another server"))
    }

    /// What a dry run says beyond the settings.
    pub(super) fn foreseen(&self, plan: &Plan, trials: usize) -> Option<String> {
        let live = self.live.as_ref()?;
        let bytes = self.expected_bytes(plan, trials)?;
        let assumed = format!(
            "Nothing was transferred yet: windows and bytes are for {}, until a pilot has measured the path",
            live.rate().human()
        );
        Some(if live.rate.get().is_none() { format!("{bytes}\n{assumed}") } else { bytes })
    }

    /// How long it may take, and how many bytes it may move.
    pub(super) fn expected_bytes(&self, plan: &Plan, trials: usize) -> Option<String> {
        Some(format!("about {:.1} MB of payload at most", self.bytes_at_most(plan, trials)? as f64 / 1e6))
    }

    /// Bytes of payload that so many trials and the one that warms up move at most, on the real path.
    pub(super) fn bytes_at_most(&self, plan: &Plan, trials: usize) -> Option<u64> {
        let live = self.live.as_ref()?;
        let each = plan.workload.size().unwrap_or_else(|| live.rate() * plan.length()).get();
        Some(each.saturating_mul(trials as u64 + 1))
    }
}

/// Nothing could be learnt from the pilot.
fn useless(target: &str, outcome: &TrialOutcome) -> Failure {
    let mut notes = outcome.notes.clone();
    if notes.is_empty() {
        notes.push(format!("{} bytes in {:.1} s", outcome.bytes, outcome.elapsed_us as f64 / 1e6));
    }
    Failure::new(Fault::FarEnd, format!("{target}: nothing could be measured: {}", notes.join("; ")))
        .because("the server is too slow or broken, or the path drops full-sized packets")
        .hint("windtunnel mtu HOST tells whether large packets get through")
}

/// The path as the pilot found it.
pub(super) fn measured(live: &Live, facts: &PathFacts, pilot: &TrialOutcome) -> PathFacts {
    let seen = |name: &str| pilot.observed.get(name).and_then(Value::as_u64).filter(|value| *value > 0);
    let rtt_us = seen("min_rtt_us").map_or(facts.rtt_us, |rtt| rtt.min(facts.rtt_us));
    let bdp = live.rate() * Duration::from_micros(rtt_us);
    PathFacts { rtt_us, bdp_bytes: bdp.get(), ..facts.clone() }
}

/// TCP payload of a full-sized packet, bytes: as it was seen, or what the headers leave of the path MTU.
pub(super) fn payload(live: Option<&Live>, path: &PathFacts, headers: u64) -> u64 {
    /// The option of timestamps, which a far end may refuse (RFC 7323 section 3).
    const OPTIONS: u64 = 12;
    let usual = path.pmtu.saturating_sub(headers).max(1);
    live.and_then(Live::mss).filter(|seen| *seen <= usual + OPTIONS).unwrap_or(usual)
}
