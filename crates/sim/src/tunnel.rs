//! The model as a place where trials run.
//!
//! What this leaves out: settings of the host beyond the two connections' ends (qdiscs, device queues, offloads), which are asked
//! for as stages of the path instead; it matters where the own device is the narrowest link.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | sysctls, socket options, routes | – | [`SimTunnel::stacks`]: MTU and MSS are the client's, the rest the sender's or the receiver's |

/// The workloads of trials, as jobs of flows; and what was measured.
mod work;

use self::work::WorkOutcome;
use crate::cc;
use crate::report::{FlowReport, Report};
use crate::run::Simulation;
use crate::segment::SynChange;
use crate::spec::SimError;
use crate::tcp::StackConfig;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_link::PathConfig;
use wt_trial::{
    Cancel, Direction, Limits, Observed, ObservedConnection, PathFacts, Sample, Status, TrialOutcome, TrialSpec,
    Tunnel, TunnelError, TunnelKind, say_none,
};
use wt_units::{Knob, Level, Settings, Side, Unit};

const NAME: &str = "sim";
/// Events of one trial at most: some five seconds of computing.
const MAX_EVENTS: u64 = 30_000_000;

/// A path with its two hosts, as the model needs it.
#[derive(Debug, Clone)]
pub struct SimPath {
    /// How it is called.
    pub name: String,
    /// Its links; host A is the client.
    pub config: PathConfig,
    /// Of each link, whether the router in front of it tells of packets that are too big for it.
    pub icmp: Vec<bool>,
    /// MTU of the client's device, bytes.
    pub client_mtu: u32,
    /// MTU of the server's device, bytes.
    pub server_mtu: u32,
    /// What is known of it for payload to the client, and to the server.
    pub facts: [PathFacts; 2],
}

/// The model of a path.
#[derive(Debug, Clone)]
pub struct SimTunnel {
    path: SimPath,
    /// What holds for both ends where nothing is asked.
    stack: StackConfig,
    /// What every trial asks for unless it asks for something else.
    held: Settings,
    /// What hops do to SYNs of the client, and of the server.
    syns: [Vec<SynChange>; 2],
    max_events: u64,
}

impl SimTunnel {
    /// A model of this path, with ends that are set up like `stack`; its MTU is taken from the path.
    ///
    /// # Errors
    /// [`SimError`] when the path is invalid.
    pub fn new(path: SimPath, stack: StackConfig) -> Result<Self, SimError> {
        path.config.validate()?;
        for mtu in [path.client_mtu, path.server_mtu] {
            if mtu < 68 {
                return Err(SimError::MtuTooSmall { mtu });
            }
        }
        Ok(Self { path, stack, held: Settings::new(), syns: Default::default(), max_events: MAX_EVENTS })
    }

    /// The same, with no more than so many events for each trial: what isn't done by then is left undone, and the outcome
    /// says so. It is about one for each packet.
    #[must_use]
    pub fn bounded(self, events: u64) -> Self {
        Self { max_events: events.min(MAX_EVENTS), ..self }
    }

    /// The same, where these settings hold for every trial, those of the current settings among them.
    #[must_use]
    pub fn holding(self, held: Settings) -> Self {
        Self { held, ..self }
    }

    /// The same, behind hops that do so to the SYNs of the client, and to those of the server, each in the order on its way.
    #[must_use]
    pub fn changing_syns(self, syns: [Vec<SynChange>; 2]) -> Self {
        Self { syns, ..self }
    }

    /// The stacks of client and server with these settings for payload in this direction.
    #[must_use]
    pub fn stacks(&self, settings: &Settings, direction: Direction) -> (StackConfig, StackConfig) {
        let settings = &self.held.overlaid(settings);
        let mut client = StackConfig { mtu: self.path.client_mtu, ..self.stack.clone() };
        let mut server = StackConfig { mtu: self.path.server_mtu, ..self.stack.clone() };
        for knob in Knob::all() {
            let (sender, receiver) =
                if direction == Direction::Down { (&mut server, &mut client) } else { (&mut client, &mut server) };
            match knob.side() {
                Side::Sender => set(sender, knob, settings),
                Side::Receiver => set(receiver, knob, settings),
                // As in the lab, MTU and MSS are the client's, and both ends have the same switches.
                Side::Own => {
                    set(&mut client, knob, settings);
                    if knob.unit() == Unit::Word {
                        set(&mut server, knob, settings);
                    }
                }
            }
        }
        (client, server)
    }

    /// Runs a trial; samples are taken this often.
    ///
    /// # Errors
    /// [`SimError`] when the model can't run it.
    pub fn try_run(&self, spec: &TrialSpec, sample_every: Duration) -> Result<TrialOutcome, SimError> {
        Ok(outcome(spec, self.simulate(spec, Some(sample_every))?))
    }

    /// Runs the flows of a trial, the one first that is judged; samples are taken this often, if at all.
    ///
    /// # Errors
    /// [`SimError`] when the model can't run it.
    pub fn simulate(&self, spec: &TrialSpec, sample_every: Option<Duration>) -> Result<Report, SimError> {
        let mut simulation = Simulation::new(&self.path.config, self.path.icmp.clone(), spec.seed)?;
        simulation.bound_events(self.max_events);
        simulation.change_syns(self.syns.clone());
        if let Some(interval) = sample_every {
            simulation.sample_every(interval);
        }
        let limit = work::set_up(self, spec, &mut simulation)?;
        Ok(simulation.run(limit))
    }

    /// The path.
    #[must_use]
    pub fn sim_path(&self) -> &SimPath {
        &self.path
    }
}

impl Tunnel for SimTunnel {
    fn kind(&self) -> TunnelKind {
        TunnelKind::Sim
    }

    fn target(&self) -> String {
        self.path.name.clone()
    }

    fn current(&self) -> Settings {
        Settings::new()
            .with(Knob::Rwin, Level::Auto)
            .with(Knob::Mtu, Level::Number(u64::from(self.path.client_mtu)))
            .with(Knob::Cc, Level::Name(self.stack.congestion_control.clone()))
    }

    fn path(&self, direction: Direction) -> PathFacts {
        self.path.facts[usize::from(direction == Direction::Up)].clone()
    }

    fn check(&self, settings: &Settings) -> Result<(), TunnelError> {
        for (knob, level) in settings.iter() {
            let cannot = |why: String| Err(TunnelError::CannotSet { tunnel: NAME, knob, level: level.clone(), why });
            match (knob, level) {
                (Knob::Cc, Level::Name(name)) if cc::by_name(name, 0).is_none() => {
                    let ours = wt_cc::ALGORITHMS.map(|algorithm| algorithm.name).join(", ");
                    return cannot(format!("the model has {} and, with variants, {ours}", cc::NAMES.join(", ")));
                }
                (Knob::Mtu, Level::Number(mtu)) if *mtu > u64::from(self.path.client_mtu) => {
                    return cannot(format!("the client's device takes at most {} bytes", self.path.client_mtu));
                }
                (Knob::Ttl, Level::Number(ttl)) if *ttl < self.path.config.links.len() as u64 => {
                    return cannot(format!(
                        "the path has {} links: nothing would arrive",
                        self.path.config.links.len()
                    ));
                }
                (_, Level::TimesMss(_) | Level::TimesMtu(_)) => {
                    return cannot("multiples must be resolved to bytes first".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn run(&mut self, spec: &TrialSpec, cancel: &Cancel) -> Result<TrialOutcome, TunnelError> {
        self.check(&spec.settings)?;
        if cancel.is_cancelled() {
            return Ok(TrialOutcome::empty(Status::Aborted, Duration::ZERO, "stopped before it began"));
        }
        let expected = spec.workload.time().unwrap_or(Duration::from_secs(10));
        let every = (expected / 250).clamp(Duration::from_millis(10), Duration::from_millis(200));
        self.try_run(spec, every).map_err(|error| match error {
            SimError::Workload { .. } => TunnelError::CannotRun { tunnel: NAME, why: error.to_string() },
            error => TunnelError::Broken { tunnel: NAME, why: error.to_string() },
        })
    }
}

/// Sets one knob of an end; what isn't set stays as it is, but for what the model leaves open by itself.
fn set(end: &mut StackConfig, knob: Knob, settings: &Settings) {
    let number = settings.number(knob).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let switch = |stays: bool| settings.name(knob).map_or(stays, |word| word == "on");
    match knob {
        Knob::Rwin => end.rwin = number,
        Knob::Mtu => end.mtu = number.map_or(end.mtu, |mtu| mtu.min(end.mtu)),
        Knob::Cc => {
            if let Some(name) = settings.name(knob) {
                name.clone_into(&mut end.congestion_control);
            }
        }
        Knob::Mss => end.max_segment = number,
        Knob::Initcwnd => end.initcwnd = number.unwrap_or(end.initcwnd),
        Knob::Initrwnd => end.initrwnd = number,
        // The kernel doubles what it is asked for.
        Knob::Sndbuf => end.sndbuf = settings.number(knob).map(|bytes| bytes.saturating_mul(2)),
        // It ends no packet on a path that is checked, and changes no time.
        Knob::Ttl => {}
        Knob::Sack => end.sack = switch(end.sack),
        Knob::Timestamps => end.timestamps = switch(end.timestamps),
        Knob::WindowScaling => end.window_scaling = switch(end.window_scaling),
        Knob::Ecn => end.ecn = switch(end.ecn),
        Knob::MtuProbing => end.mtu_probing = switch(end.mtu_probing),
        Knob::Pmtud => end.pmtud = switch(end.pmtud),
    }
}

/// What a simulation says, in the words of a trial.
fn outcome(spec: &TrialSpec, mut report: Report) -> TrialOutcome {
    let WorkOutcome { bytes, elapsed, measures, is_part, flow } = work::judge(spec, &report);
    let Report { queue_drops, losses, too_big, ended, .. } = report;
    let cut_short = report.cut_short || is_part;
    // What was under way when the time was up isn't what doesn't work: no connection was given up, and something has come.
    let was_late = elapsed.is_none() && bytes > 0 && !report.flows.iter().any(|flow| flow.failed);
    // All connections of a page are one work; elsewhere the others aren't judged.
    let sum = |of: fn(&FlowReport) -> u64| -> u64 {
        if measures.objects.is_empty() { of(&report.flows[flow]) } else { report.flows.iter().map(of).sum() }
    };
    let (again, segments) = match report.flows.is_empty() {
        true => (0, 0),
        false => (sum(|flow| flow.retransmits), sum(|flow| flow.data_segments)),
    };
    let mut flow = if report.flows.is_empty() { FlowReport::default() } else { report.flows.swap_remove(flow) };
    let mut notes = Vec::new();
    if cut_short {
        notes.push(format!(
            "the model stopped after {} events, {:.3} s of its time",
            report.events,
            report.ended.as_secs_f64()
        ));
    }
    if flow.failed {
        notes.push("the connection was given up after too many time-outs".to_owned());
    }
    let status = match (elapsed, bytes) {
        (_, 0) => Status::Failed,
        (Some(_), _) => Status::Completed,
        (None, _) => Status::Incomplete,
    };
    let mut granted = Settings::new();
    let mut scopes = BTreeMap::new();
    for (knob, level) in spec.settings.iter().filter(|(_, level)| **level != Level::Auto) {
        granted.set(knob, level.clone());
        scopes.insert(knob.name().to_owned(), "model".to_owned());
    }
    let (timestamps, sack, ecn) = flow.agreed;
    // The largest IP packet, as the lab tells it: IPv4, TCP, and timestamps if they were agreed to.
    let largest = flow.mss + 40 + if timestamps { 12 } else { 0 };
    let connection = ObservedConnection {
        mss: Some(u64::from(flow.mss)),
        pmtu: Some(u64::from(flow.pmtu.min(largest))),
        rwin_max: Some(flow.widest_window),
        window_scale: Some(flow.window_scale),
        sack,
        timestamps,
        ecn,
        min_rtt_us: Some(flow.min_rtt_us),
        rtt_us: Some(Sample::mean_rtt_us(&flow.sender, flow.srtt_us)),
    };
    let mut observed = Observed {
        retransmits: Some(again),
        segments: Some(segments),
        queue_drops: Some(queue_drops),
        losses: Some(losses),
        too_big: Some(too_big),
        cut_short: Some(cut_short || was_late),
        connect_us: flow.connect.map(|time| time.as_micros() as u64),
        ..connection.into()
    };
    say_none!(observed; connect_us);
    let begun = flow.begun + flow.connect.unwrap_or_default();
    let until_now = if cut_short { ended.saturating_sub(begun) } else { spec.deadline };
    let elapsed = elapsed.unwrap_or(until_now);
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    TrialOutcome {
        status,
        bytes,
        // A packet of an upload may take less than a microsecond, but never no time.
        elapsed_us: micros(elapsed).max(1),
        granted,
        scopes,
        observed,
        limits: Limits {
            busy_us: micros(flow.busy[0]),
            rwnd_limited_us: micros(flow.busy[1]),
            sndbuf_limited_us: micros(flow.busy[2]),
        },
        sender: std::mem::take(&mut flow.sender),
        receiver: std::mem::take(&mut flow.receiver),
        notes,
        measures,
    }
}
