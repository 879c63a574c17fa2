//! The lab as a place where trials run.

/// Outcome of a trial.
mod outcome;
/// Pages.
mod page;
/// Several downloads that share the path.
mod shared;
/// Workloads over our own protocol.
mod work;

pub use shared::{SharedFlow, SharedFlowOutcome};

use crate::beside::{Beside, Besides, Clock, Competitor};
use crate::host::{CLIENT_V4, Host, PORT, SERVER_V4};
use crate::lab::{Lab, LabError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use wt_load::{
    Connection, EndReport, LoadError, ReceiverState, Request, SenderOptions, Server, ServerTls, Strain, download,
    upload,
};
use wt_sys::netlink::RouteMetrics;
use wt_trial::{
    Amount, Cancel, Direction, LoadedControl, PathFacts, Status, TrialOutcome, TrialSpec, Tunnel, TunnelError,
    TunnelKind, Workload,
};
use wt_units::{Knob, Level, Settings};

/// How long the server's report may take after the client has ended.
const REPORT_WAIT: Duration = Duration::from_secs(5);
const NAME: &str = "lab";

/// The kernel's switch of a knob that is a setting of a whole host. In the lab both hosts are ours, and nobody else's traffic
/// is there.
fn host_switch(knob: Knob) -> Option<&'static str> {
    Some(match knob {
        Knob::Sack => "ipv4/tcp_sack",
        Knob::Timestamps => "ipv4/tcp_timestamps",
        Knob::WindowScaling => "ipv4/tcp_window_scaling",
        Knob::Ecn => "ipv4/tcp_ecn",
        Knob::MtuProbing => "ipv4/tcp_mtu_probing",
        Knob::Pmtud => "ipv4/ip_no_pmtu_disc",
        Knob::Rwin | Knob::Mtu | Knob::Cc | Knob::Mss => return None,
        Knob::Initcwnd | Knob::Initrwnd | Knob::Sndbuf | Knob::Ttl => return None,
    })
}

/// A lab with a server in it.
#[derive(Debug)]
pub struct LabTunnel {
    lab: Lab,
    server: Server,
    /// What it shows to those who come through TLS.
    tls: ServerTls,
    current: Settings,
    congestion_controls: Vec<String>,
    /// Those that were loaded for us, by the level that stands for them.
    loaded: BTreeMap<String, Rc<dyn LoadedControl>>,
    /// What shares the path with each trial.
    competitor: Option<Competitor>,
}

impl LabTunnel {
    /// Starts our server in the lab.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn new(lab: Lab) -> Result<Self, LabError> {
        let set_up = |source| LabError::SetUp { source, advice: "run `windtunnel doctor`" };
        let address = SocketAddr::new(SERVER_V4.into(), PORT);
        let listener = lab.server.run(|| wt_sys::tcp::listen(address)).and_then(|made| made).map_err(set_up)?;
        let (config, tls) = page::serving().map_err(set_up)?;
        let server = Server::start(listener, config).map_err(set_up)?;
        let cc = lab.server.sysctl("ipv4/tcp_congestion_control").map_err(set_up)?;
        let known = lab.server.sysctl("ipv4/tcp_available_congestion_control").map_err(set_up)?;
        let current = Settings::new()
            .with(Knob::Rwin, Level::Auto)
            .with(Knob::Mtu, Level::Number(u64::from(lab.scenario().client_mtu)))
            .with(Knob::Cc, Level::Name(cc));
        let congestion_controls = known.split_whitespace().map(str::to_owned).collect();
        Ok(Self { lab, server, tls, current, congestion_controls, loaded: BTreeMap::new(), competitor: None })
    }

    /// The lab itself.
    #[must_use]
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The lab, without our server.
    #[must_use]
    pub fn into_lab(self) -> Lab {
        self.lab
    }

    /// Lets a level of the knob `cc` stand for a loaded congestion control.
    pub fn add_control(&mut self, level: impl Into<String>, control: Rc<dyn LoadedControl>) {
        self.loaded.insert(level.into(), control);
    }

    fn loaded(&self, settings: &Settings) -> Option<&Rc<dyn LoadedControl>> {
        self.loaded.get(settings.name(Knob::Cc)?)
    }

    /// Lets another connection share the path with each trial from now on, for some of its time; what came of it is
    /// observed as `beside`.
    pub fn compete(&mut self, competitor: Option<Competitor>) {
        self.competitor = competitor;
    }

    /// The other connection, ready to go.
    fn beside(&self, direction: Direction) -> Option<Beside> {
        let competitor = self.competitor.as_ref()?;
        let level = competitor.control.as_str();
        let kernel_name = self.loaded.get(level).map_or(level, |control| control.kernel_name());
        Some(Beside::new(competitor, kernel_name, direction))
    }

    /// How often the programs that a trial runs have repaired impossible values so far.
    fn hits(&self, settings: &Settings) -> u64 {
        let own = self.loaded(settings);
        let other = self.competitor.as_ref().and_then(|competitor| self.loaded.get(&competitor.control));
        // The same control for both counts once.
        let other = other.filter(|other| own.is_none_or(|own| !Rc::ptr_eq(own, other)));
        own.into_iter().chain(other).map(|control| control.guard_hits()).sum()
    }

    /// The congestion controls that this kernel has.
    #[must_use]
    pub fn congestion_controls(&self) -> &[String] {
        &self.congestion_controls
    }
}

impl LabTunnel {
    /// Names a loaded congestion control as it was asked for, and marks a trial in which the kernel skipped its program: then
    /// it took garbage for its window.
    fn judge_control(&self, outcome: &mut TrialOutcome, spec: &TrialSpec, hits: u64) {
        let direction = spec.workload.direction();
        let level = spec.settings.name(Knob::Cc).unwrap_or_default();
        if let Some(control) = self.loaded(&spec.settings) {
            outcome.name_control_as_asked(spec, control.kernel_name());
        }
        outcome.observed.guard_hits = Some(hits);
        let room = self.lab.scenario().in_flight(direction);
        let garbage = outcome.sender.iter().filter(|sample| sample.snd_cwnd > 10 * room.max(sample.snd_wnd)).count();
        if hits == 0 && garbage == 0 {
            return;
        }
        outcome.observed.garbage_cwnd_samples = Some(garbage as u64);
        outcome.mark_invalid(format!(
            "the kernel skipped a program of {level} and took garbage for its window ({hits} repaired, {garbage} samples \
             above ten times what the path holds): a trap of some virtual machines' kernels"
        ));
    }
}

impl Tunnel for LabTunnel {
    fn kind(&self) -> TunnelKind {
        TunnelKind::Lab
    }

    fn target(&self) -> String {
        self.lab.scenario().name.clone()
    }

    fn current(&self) -> Settings {
        self.current.clone()
    }

    fn path(&self, direction: Direction) -> PathFacts {
        self.lab.scenario().facts(direction)
    }

    fn check(&self, settings: &Settings) -> Result<(), TunnelError> {
        for (knob, level) in settings.iter() {
            let cannot = |why: String| Err(TunnelError::CannotSet { tunnel: NAME, knob, level: level.clone(), why });
            match (knob, level) {
                (_, Level::Auto) => {}
                (Knob::Cc, Level::Name(name))
                    if !self.congestion_controls.contains(name) && !self.loaded.contains_key(name) =>
                {
                    let known = self.congestion_controls.join(", ");
                    return cannot(format!("this kernel has {known}"));
                }
                (Knob::Mtu, Level::Number(mtu)) if *mtu > u64::from(self.lab.scenario().client_mtu) => {
                    return cannot(format!(
                        "the client's device takes at most {} bytes",
                        self.lab.scenario().client_mtu
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
        let direction = spec.workload.direction();
        let applied = AppliedSettings::apply(&self.lab, &spec.settings, direction)?;
        self.lab.reset(spec.seed).map_err(|error| broken(&error))?;
        let before = self.lab.stats();
        let receiver = if direction == Direction::Down { &self.lab.client } else { &self.lab.server };
        let strain = receiver.run(Strain::begin).map_err(|error| broken(&error))?;
        let control = self.loaded(&spec.settings).cloned();
        let hits_before = self.hits(&spec.settings);
        let beside = self.beside(direction);
        let mut sender = sender_options(&spec.settings);
        if let Some(control) = &control {
            control.seed(spec.seed);
            sender.congestion_control = Some(control.kernel_name().to_owned());
        }
        let (ran, other) = both(&self.lab.client, beside.as_ref(), cancel, |clock| {
            if let Workload::Bulk { direction, amount } = &spec.workload {
                return Ok(self.bulk(spec, *direction, *amount, sender, clock, cancel));
            }
            clock.begin();
            Ok(match &spec.workload {
                Workload::Page { page } => self.page(spec, page, sender, cancel),
                _ => self.work(spec, sender, cancel),
            })
        })?;
        let TrialViews { client, server, connect_time, socket } = match ran.map_err(|error| broken(&error))? {
            Ok(done) => done,
            Err(LoadError::Refused { knob, source }) => {
                let level = spec.settings.get(knob).cloned().unwrap_or(Level::Auto);
                return Err(TunnelError::CannotSet { tunnel: NAME, knob, level, why: source.to_string() });
            }
            Err(error) => return Ok(TrialOutcome::empty(Status::Failed, spec.deadline, error.to_string())),
        };
        let reported = beside.as_ref().zip(other.as_ref());
        let patience = client.patience(REPORT_WAIT);
        let reported = reported.and_then(|(beside, _)| self.server.take_report(beside.request.token, patience));
        let stats = self.lab.stats().since(&before);
        let end = if direction == Direction::Down { Some(&client) } else { server.as_ref() };
        let state = end.map(ReceiverState::from).unwrap_or_default();
        let mut outcome = outcome::of(spec, direction, client, server, &stats);
        outcome.observed.connect_us = Some(connect_time.as_micros() as u64);
        applied.tell(&mut outcome, &socket);
        outcome::judge(&mut outcome, &stats, self.path(direction).rtt_us);
        if outcome.status == Status::Completed
            && let Some(why) = receiver.run(|| strain.complaint(&outcome, state)).map_err(|error| broken(&error))?
        {
            outcome.mark_invalid(why);
        }
        if let (Some(other), Some(competitor)) = (other, &self.competitor) {
            outcome.observed.beside = Some(other.to_json(competitor, direction, reported.as_ref()));
        }
        let hits = self.hits(&spec.settings).saturating_sub(hits_before);
        if control.is_some() || hits > 0 {
            self.judge_control(&mut outcome, spec, hits);
        }
        Ok(outcome)
    }
}

/// Runs the trial's own work, and the other connection beside it if there is one.
fn both<T>(
    client: &Host,
    beside: Option<&Beside>,
    cancel: &Cancel,
    own: impl FnOnce(&Clock) -> Result<T, TunnelError>,
) -> Result<(T, Option<Besides>), TunnelError> {
    let clock = Clock::default();
    std::thread::scope(|scope| {
        let other = beside.map(|beside| scope.spawn(|| client.run(|| beside.run(&clock, cancel))));
        let own = own(&clock);
        clock.end();
        let other = other.map(|other| other.join().map_err(|_| broken(&"the other connection's thread panicked")));
        let other = match other.transpose()? {
            None => None,
            Some(run) => run
                .map_err(|error| broken(&error))?
                .map_err(|error| broken(&format!("the other connection: {error}")))?,
        };
        Ok((own?, other))
    })
}

fn broken(error: &dyn std::fmt::Display) -> TunnelError {
    TunnelError::Broken { tunnel: NAME, why: error.to_string() }
}

/// What both ends saw of a trial.
struct TrialViews {
    client: EndReport,
    server: Option<EndReport>,
    connect_time: Duration,
    /// What was granted on the client's sockets.
    socket: Settings,
}

/// What the trials of a tunnel do, each on a thread in the client's namespace. The outer error means that the lab is gone.
type TrialRun = Result<Result<TrialViews, LoadError>, wt_sys::SysError>;

impl LabTunnel {
    /// One transfer.
    fn bulk(
        &self,
        spec: &TrialSpec,
        direction: Direction,
        amount: Amount,
        sender: SenderOptions,
        clock: &Clock,
        cancel: &Cancel,
    ) -> TrialRun {
        let window = small(&spec.settings, Knob::Rwin).filter(|_| direction == Direction::Up);
        let request = Request { direction, amount, token: token(spec), sender, window };
        let transfer = self.lab.client.run(|| transfer(spec, &request, clock, cancel))?;
        Ok(transfer.map(|(client, connect_time, socket)| {
            let server = self.server.take_report(request.token, client.patience(REPORT_WAIT));
            TrialViews { client, server, connect_time, socket }
        }))
    }
}

fn small(settings: &Settings, knob: Knob) -> Option<u32> {
    settings.number(knob).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// What the sender sets on its socket.
fn sender_options(settings: &Settings) -> SenderOptions {
    SenderOptions {
        congestion_control: settings.name(Knob::Cc).map(str::to_owned),
        send_buffer: small(settings, Knob::Sndbuf),
        ..SenderOptions::default()
    }
}

/// Under which the server's side of a trial is asked for.
fn token(spec: &TrialSpec) -> u64 {
    spec.seed ^ u64::from(spec.round) << 40 ^ u64::from(spec.order) << 20 ^ wt_sys::clock::monotonic_ns()
}

/// What the client sets on its socket: a window belongs to the receiver.
fn own_settings(settings: &Settings, direction: Direction) -> Settings {
    let own = settings.iter().filter(|(knob, _)| matches!(knob, Knob::Rwin | Knob::Mss | Knob::Ttl));
    own.filter(|(knob, _)| direction == Direction::Down || *knob != Knob::Rwin).map(|(k, l)| (k, l.clone())).collect()
}

/// The client's report, how long the connection took, and what was set on the socket.
type TransferResult = Result<(EndReport, Duration, Settings), LoadError>;

/// The client's part, on a thread in the client's namespace.
fn transfer(spec: &TrialSpec, request: &Request, clock: &Clock, cancel: &Cancel) -> TransferResult {
    let peer = SocketAddr::new(SERVER_V4.into(), PORT);
    let connection = Connection::open(&peer, &own_settings(&spec.settings, request.direction), spec.deadline)?;
    let (connect_time, granted) = (connection.connect_time, connection.granted.clone());
    clock.begin();
    let report = match request.direction {
        Direction::Down => download(connection, request, spec.deadline, cancel)?,
        Direction::Up => upload(connection, request, spec.deadline, cancel)?,
    };
    Ok((report, connect_time, granted))
}

/// What was set outside of the sockets, to be put back.
struct AppliedSettings<'a> {
    lab: &'a Lab,
    granted: Settings,
    scopes: BTreeMap<String, String>,
    /// Host, setting, its value before.
    sysctls: Vec<(&'a Host, &'static str, String)>,
}

impl<'a> AppliedSettings<'a> {
    /// Sets routes and host settings; on an error everything is put back at once.
    fn apply(lab: &'a Lab, settings: &Settings, direction: Direction) -> Result<Self, TunnelError> {
        let mut applied = Self { lab, granted: Settings::new(), scopes: BTreeMap::new(), sysctls: Vec::new() };
        for knob in Knob::all() {
            let (Some(file), Some(name)) = (host_switch(knob), settings.name(knob)) else { continue };
            let on = (name == "on") != (knob == Knob::Pmtud); // the kernel's switch turns discovery off
            applied.host_wide(knob, file, if on { "1" } else { "0" })?;
            applied.note(knob, Level::Name(name.to_owned()), "host (both ends of the lab)");
        }
        if settings.name(Knob::Cc).is_some() {
            applied.unpaced();
        }
        applied.routes(settings, direction)?;
        for host in [&lab.client, &lab.server] {
            // A path MTU that one trial learned must not help the next.
            let flush = host.run(|| wt_sys::ns::write_net_sysctl("ipv4/route/flush", "1"));
            flush.and_then(|done| done).map_err(|error| broken(&error))?;
        }
        Ok(applied)
    }

    /// Lets connections begin with reno, until each gets what was asked for.
    ///
    /// bbr switches pacing on for a socket, and nothing switches it off again: where it is the host's default, a socket that
    /// is given cubic afterwards is cubic with bbr's pacing. Only reno may always be made the default of a namespace; others
    /// are asked for on the socket, with the rights that one has in the lab.
    ///
    /// # Source
    /// `bbr_init()` of net/ipv4/tcp_bbr.c sets `sk_pacing_status`; `tcp_ca_openreq_child()` of net/ipv4/tcp_minisocks.c takes
    /// the namespace's default for each accepted connection.
    fn unpaced(&mut self) {
        const FILE: &str = "ipv4/tcp_congestion_control";
        for host in [&self.lab.client, &self.lab.server] {
            let Ok(old) = host.sysctl(FILE) else { continue };
            let written = host.run(|| wt_sys::ns::write_net_sysctl(FILE, "reno")).and_then(|done| done);
            if old != "reno" && written.is_ok() {
                self.sysctls.push((host, FILE, old));
            }
        }
    }

    fn note(&mut self, knob: Knob, level: Level, scope: &str) {
        self.granted.set(knob, level);
        self.scopes.insert(knob.name().to_owned(), scope.to_owned());
    }

    fn host_wide(&mut self, knob: Knob, file: &'static str, value: &str) -> Result<(), TunnelError> {
        for host in [&self.lab.client, &self.lab.server] {
            let old = host.sysctl(file).map_err(|error| broken(&error))?;
            self.sysctls.push((host, file, old));
            let written = host.run(|| wt_sys::ns::write_net_sysctl(file, value)).and_then(|done| done);
            written.map_err(|error| TunnelError::CannotSet {
                tunnel: NAME,
                knob,
                level: Level::Name(value.to_owned()),
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    fn routes(&mut self, settings: &Settings, direction: Direction) -> Result<(), TunnelError> {
        let number = |knob| settings.number(knob).and_then(|n| u32::try_from(n).ok());
        let (initcwnd, initrwnd) = (number(Knob::Initcwnd), number(Knob::Initrwnd));
        let (client_cwnd, server_cwnd) = if direction == Direction::Down { (None, initcwnd) } else { (initcwnd, None) };
        let (client_rwnd, server_rwnd) = if direction == Direction::Down { (initrwnd, None) } else { (None, initrwnd) };
        let mtu = number(Knob::Mtu).filter(|mtu| *mtu < self.lab.scenario().client_mtu);
        let client = RouteMetrics { mtu, initcwnd: client_cwnd, initrwnd: client_rwnd, ..RouteMetrics::default() };
        // The server's window must be small before the client's first byte, so it comes from the route; the server's
        // socket then holds it.
        let window = number(Knob::Rwin).filter(|_| direction == Direction::Up);
        let server = RouteMetrics { window, initcwnd: server_cwnd, initrwnd: server_rwnd, ..RouteMetrics::default() };
        if let Some(window) = window {
            self.note(Knob::Rwin, Level::Number(window.into()), "route, then socket, of the server");
        }
        for (host, target, metrics) in [(&self.lab.client, SERVER_V4, &client), (&self.lab.server, CLIENT_V4, &server)]
        {
            host.set_route(target.into(), metrics).map_err(|error| broken(&error))?;
        }
        for knob in [Knob::Mtu, Knob::Initcwnd, Knob::Initrwnd] {
            if let Some(n) = settings.number(knob) {
                let scope = if knob == Knob::Mtu && mtu.is_none() { "host (the device's own)" } else { "route" };
                self.note(knob, Level::Number(n), scope);
            }
        }
        Ok(())
    }

    /// Says in the outcome what was granted, and where it was set.
    fn tell(&self, outcome: &mut TrialOutcome, socket: &Settings) {
        for (knob, level) in self.granted.iter().chain(socket.iter()) {
            outcome.granted.set(knob, level.clone());
        }
        outcome.scopes.extend(self.scopes.clone());
        for (knob, _) in socket.iter() {
            let scope = if knob == Knob::Rwin { "socket (receive buffer fixed, autotuning off)" } else { "socket" };
            outcome.scopes.insert(knob.name().to_owned(), scope.to_owned());
        }
    }
}

impl Drop for AppliedSettings<'_> {
    fn drop(&mut self) {
        for (host, file, old) in self.sysctls.drain(..).rev() {
            let _ = host.run(|| wt_sys::ns::write_net_sysctl(file, &old));
        }
        let _ = self.lab.client.set_route(SERVER_V4.into(), &RouteMetrics::default());
        let _ = self.lab.server.set_route(CLIENT_V4.into(), &RouteMetrics::default());
    }
}
