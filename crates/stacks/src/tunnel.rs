/// Outcome of a trial.
mod outcome;
/// Two stacks in turn.
mod pairs;

use crate::catalogue::{Availability, Choice};
use crate::protocol::Arguments;
use crate::running::{AdapterEnd, AdapterProcess, connect};
use crate::seen::{StackObservation, Watcher};
use outcome::TrialRun;
use std::collections::BTreeSet;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::PathBuf;
use std::time::Duration;
use wt_lab::{CLIENT_V4, DEVICE, Folder, Lab, SERVER_V4};
use wt_load::page::load_page_from;
use wt_load::work::{Leg, OpenedConnection, RemoteEnd, WorkOutcome, join, work};
use wt_load::{Connection, EndReport, FetchError, LoadError, Request, SenderOptions, Server, ServerConfig};
use wt_sys::SysError;
use wt_sys::awake::Awake;
use wt_sys::clock::monotonic_ns;
use wt_sys::netlink::{Netlink, RouteMetrics};
use wt_sys::ns::{read_net_sysctl, write_net_sysctl};
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::{
    Amount, Cancel, Direction, PathFacts, Status, TrialOutcome, TrialSpec, Tunnel, TunnelError, TunnelKind, Workload,
};
use wt_units::{Knob, Level, Settings};

/// Where the server listens.
const PORT: u16 = 7411;
/// The address of a stack behind an adapter: of 198.18.0.0/15, kept for benchmarks (RFC 2544).
pub(crate) const STACK_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The device of an adapter.
pub(crate) const STACK_DEVICE: &str = "wts0";
/// What the server sends with, whatever this machine's default is: the same for every stack, and not paced.
const SERVER_CC: &str = "cubic";
/// Where a namespace has its default.
const DEFAULT_CC: &str = "ipv4/tcp_congestion_control";
/// How long the server's view of a connection may take after its end.
const REPORT_WAIT: Duration = Duration::from_secs(3);
const NAME: &str = "lab";

/// Why stacks can't be compared here.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The lab's client can't be prepared.
    #[error("can't prepare the lab for stacks: {0}")]
    SetUp(#[from] SysError),
    /// A stack without an adapter.
    #[error("{name} isn't built")]
    NotBuilt {
        /// The stack.
        name: &'static str,
        /// What to install and to run.
        how: &'static str,
    },
    /// Adapters can't have their devices.
    #[error("can't open /dev/net/tun: {0}")]
    NoTun(std::io::Error),
    /// A folder for local sockets.
    #[error("can't make a folder for local sockets: {0}")]
    Folder(#[from] std::io::Error),
}

/// Whether adapters can have their devices here.
///
/// # Errors
/// [`StackError::NoTun`].
pub fn tun_device() -> Result<(), StackError> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(StackError::NoTun)
}

/// A lab in which each arm of an experiment is a stack.
#[derive(Debug)]
pub struct StackTunnel {
    lab: Lab,
    server: Server,
    arms: Vec<Choice>,
    /// Stacks whose connections end at an adapter in the server, too.
    far_ends: BTreeSet<&'static str>,
    folder: Folder,
    trials: u64,
}

impl StackTunnel {
    /// Prepares the lab: a server of ours, and a client that forwards between the path and the adapters.
    ///
    /// # Errors
    /// [`StackError`].
    pub fn new(lab: Lab, arms: Vec<Choice>) -> Result<Self, StackError> {
        for choice in &arms {
            if let Availability::No(how) = choice.stack.built() {
                return Err(StackError::NotBuilt { name: choice.stack.name, how });
            }
        }
        if arms.iter().any(|choice| choice.stack.built() != Availability::Direct) {
            tun_device()?;
        }
        let address = SocketAddr::new(SERVER_V4.into(), PORT);
        let listener = lab.server.run(|| tcp::listen(address)).and_then(|made| made)?;
        let server = Server::start(listener, ServerConfig::default())?;
        // A connection that begins with bbr is paced for ever, whatever it is given later; reno can always be had.
        lab.server.run(|| write_net_sysctl(DEFAULT_CC, "reno"))??;
        lab.client.run(forward_between)??;
        let needs_far_end = |choice: &&Choice| choice.stack.described().is_some_and(|told| told.far_end);
        let far_ends = arms.iter().filter(needs_far_end).map(|choice| choice.stack.name).collect();
        Ok(Self { lab, server, arms, far_ends, folder: Folder::new()?, trials: 0 })
    }

    /// The stacks.
    #[must_use]
    pub fn arms(&self) -> &[Choice] {
        &self.arms
    }

    /// The lab itself.
    #[must_use]
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    fn broken(error: &dyn std::fmt::Display) -> TunnelError {
        TunnelError::Broken { tunnel: NAME, why: error.to_string() }
    }

    /// The other end of the stack's connections, if it isn't the server's kernel.
    fn far_end(&self, choice: &Choice, cancel: &Cancel) -> Result<Option<AdapterProcess>, String> {
        let Availability::Program(program) = choice.stack.built() else { return Ok(None) };
        if !self.far_ends.contains(choice.stack.name) {
            return Ok(None);
        }
        let path = format!("/proc/self/fd/{}", self.lab.server.ns.as_fd().as_raw_fd());
        let namespace = File::open(path).map_err(|error| format!("can't open the server's namespace: {error}"))?;
        AdapterProcess::far_end(&program, SocketAddrV4::new(SERVER_V4, PORT), namespace, cancel).map(Some)
    }

    fn arguments(&self, choice: &Choice) -> Arguments {
        Arguments {
            device: STACK_DEVICE.to_owned(),
            address: STACK_V4,
            server: SocketAddrV4::new(SERVER_V4, PORT),
            mtu: choice.mtu.unwrap_or(self.lab.scenario().client_mtu),
            listen: self.folder.path().join(format!("{}.sock", self.trials)),
            mss: choice.mss,
            window: choice.window,
            options: choice.options.clone(),
        }
    }
}

/// Has this thread's namespace, the lab's client, forward between the path and adapters.
pub(crate) fn forward_between() -> Result<(), SysError> {
    write_net_sysctl("ipv4/ip_forward", "1")?;
    // What the stack gets shall be what came over the path, and nothing of the client's own.
    write_net_sysctl("ipv4/conf/all/send_redirects", "0")?;
    write_net_sysctl("ipv4/conf/all/rp_filter", "0")?;
    write_net_sysctl(&format!("ipv4/conf/{DEVICE}/rp_filter"), "0")
}

/// The kernel's side of an adapter's device.
pub(crate) fn bring_up(mtu: u32) -> Result<(), SysError> {
    let mut netlink = Netlink::open()?;
    netlink.start(STACK_DEVICE, Some(mtu), Some(10_000), false)?;
    netlink.set_route(STACK_DEVICE, STACK_V4.into(), 32, &RouteMetrics::default())
}

/// A connection to the lab's server through a stack.
struct StackConnector<'a> {
    spec: &'a TrialSpec,
    choice: &'a Choice,
    /// The adapter's local socket; without one the kernel itself.
    adapter: Option<PathBuf>,
    token: u64,
}

impl RemoteEnd for StackConnector<'_> {
    fn open(&self, number: u32, leg: &Leg) -> Result<OpenedConnection, FetchError> {
        let token = self.token.wrapping_add(number.into());
        let (direction, amount) = match *leg {
            Leg::Transfer { direction, amount, .. } => (direction, amount),
            Leg::Talk { time } => (self.spec.workload.direction(), Amount::Time(time)),
        };
        // The same for every stack: a window that is no multiple of the MSS is used whole.
        let congestion_control = Some(SERVER_CC.to_owned());
        let sender = SenderOptions { no_delay: true, congestion_control, ..SenderOptions::default() };
        let request = Request { direction, amount, token, sender, window: None };
        let connection = match &self.adapter {
            Some(path) => {
                let opened = connect(path, self.spec.deadline);
                let (socket, took) = opened.map_err(|error| FetchError::Load(LoadError::Broken(error)))?;
                Connection::through(socket, took)
            }
            None => {
                let peer = SocketAddr::new(SERVER_V4.into(), PORT);
                Connection::open_with_all(&peer, &self.choice.settings(), self.spec.deadline)?
            }
        };
        Ok(connection.ask(&request, leg)?)
    }
}

impl Choice {
    /// As knobs: what the kernel itself is told, and what stands in the journal.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::new();
        for (knob, number) in [(Knob::Rwin, self.window), (Knob::Mss, self.mss), (Knob::Mtu, self.mtu)] {
            if let Some(number) = number {
                settings.set(knob, Level::Number(number.into()));
            }
        }
        if let Some(name) = self.options.get("cc") {
            settings.set(Knob::Cc, Level::Name(name.clone()));
        }
        settings
    }
}

impl StackConnector<'_> {
    /// Runs the workload.
    fn work(&self, cancel: &Cancel) -> Result<WorkOutcome, FetchError> {
        let deadline = self.spec.deadline;
        let Workload::Page { page } = &self.spec.workload else {
            return work(&self.spec.workload, self, deadline, cancel);
        };
        let (loaded, used) = load_page_from(self, page, deadline, cancel)?;
        let first = loaded.connections.first();
        Ok(WorkOutcome {
            connect_time: first.map_or(Duration::ZERO, |end| end.connect_time),
            granted: first.map_or_else(Settings::new, |end| end.granted.clone()),
            report: EndReport::of_page(loaded, deadline),
            tokens: used.into_iter().map(|number| self.token.wrapping_add(number.into())).collect(),
            others: Vec::new(),
            lead: Duration::ZERO,
        })
    }

    /// The same, watched.
    fn watched(
        &self,
        device: &str,
        cancel: &Cancel,
    ) -> Result<(Result<WorkOutcome, FetchError>, Duration, StackObservation), SysError> {
        // What waits for each answer is woken once more behind an adapter, and nobody shall be judged by how slowly a processor
        // wakes up. A transfer keeps it awake by itself.
        let page = matches!(self.spec.workload, Workload::Page { .. });
        let _awake = (page || self.spec.workload.is_talk()).then(Awake::keep);
        let watcher = Watcher::start(device)?;
        let begun = monotonic_ns();
        let worked = self.work(cancel);
        let took = Duration::from_nanos(monotonic_ns() - begun);
        Ok((worked, took, watcher.finish()))
    }
}

impl StackTunnel {
    /// What the server saw, once it has.
    fn reports(&self, worked: &Result<WorkOutcome, FetchError>) -> Vec<Option<EndReport>> {
        let Ok(worked) = worked else { return Vec::new() };
        let wait =
            |number: usize| worked.report.patience(if number == 0 { REPORT_WAIT } else { Duration::from_millis(500) });
        let tokens = worked.tokens.iter().enumerate();
        tokens.map(|(number, token)| self.server.take_report(*token, wait(number))).collect()
    }

    /// One trial, on a thread in the client's namespace. The outer error means that the lab is broken.
    fn trial(&self, spec: &TrialSpec, choice: &Choice, token: u64, cancel: &Cancel) -> Result<TrialRun, SysError> {
        if choice.stack.built() == Availability::Direct {
            let default = choice.options.get("cc").map(|_| read_net_sysctl(DEFAULT_CC)).transpose()?;
            if default.is_some() {
                write_net_sysctl(DEFAULT_CC, "reno")?;
            }
            let far = StackConnector { spec, choice, adapter: None, token };
            let (worked, took, seen) = far.watched(DEVICE, cancel)?;
            if let Some(default) = default {
                // A user may not be allowed to choose it anew; then reno stays the default of the lab's client.
                let _ = write_net_sysctl(DEFAULT_CC, &default);
            }
            let servers = self.reports(&worked);
            return Ok(TrialRun { worked, servers, took, seen, ready: None, used: None, trouble: None });
        }
        let arguments = self.arguments(choice);
        let unworked = |error: FetchError, trouble: Option<String>| {
            Ok(TrialRun {
                worked: Err(error),
                servers: Vec::new(),
                took: Duration::ZERO,
                seen: StackObservation::default(),
                ready: None,
                used: None,
                trouble,
            })
        };
        let failed = |why: String| unworked(FetchError::Never(why.clone()), Some(why));
        let started = self
            .far_end(choice, cancel)
            .and_then(|far_end| Ok((far_end, AdapterProcess::start(choice, &arguments, cancel)?)));
        let (far_end, running) = match started {
            Ok(both) => both,
            Err(_) if cancel.is_cancelled() => return unworked(FetchError::Cancelled, None),
            Err(why) => return failed(why),
        };
        if let Err(error) = bring_up(arguments.mtu) {
            let why =
                running.end().trouble.map_or_else(|| format!("its device: {error}"), |why| format!("{why}; {error}"));
            return failed(why);
        }
        let (ready, at_start) = (running.ready.clone(), running.at_start);
        let far = StackConnector { spec, choice, adapter: Some(arguments.listen.clone()), token };
        let (worked, took, seen) = far.watched(STACK_DEVICE, cancel)?;
        // While the stack lives, so that the server sees its connections end.
        let servers = self.reports(&worked);
        let AdapterEnd { usage, mut trouble, .. } = running.end();
        if let Some(far) = far_end.and_then(|far_end| far_end.end().trouble) {
            trouble.get_or_insert(format!("its peer: {far}"));
        }
        let used = usage.map(|usage| (at_start, usage));
        Ok(TrialRun { worked, servers, took, seen, ready: Some(ready), used, trouble })
    }
}

impl Tunnel for StackTunnel {
    fn kind(&self) -> TunnelKind {
        TunnelKind::Lab
    }

    fn target(&self) -> String {
        self.lab.scenario().name.clone()
    }

    fn current(&self) -> Settings {
        self.arms.first().map(Choice::settings).unwrap_or_default()
    }

    fn path(&self, direction: Direction) -> PathFacts {
        self.lab.scenario().facts(direction)
    }

    fn check(&self, _: &Settings) -> Result<(), TunnelError> {
        Ok(())
    }

    /// Runs one trial with the stack of `spec.arm`. Whatever the stack does is an outcome.
    fn run(&mut self, spec: &TrialSpec, cancel: &Cancel) -> Result<TrialOutcome, TunnelError> {
        let choice = self.arms.get(spec.arm).ok_or_else(|| Self::broken(&"there is no such stack"))?.clone();
        self.trials += 1;
        self.lab.reset(spec.seed).map_err(|error| Self::broken(&error))?;
        let before = self.lab.stats();
        let token = spec.seed ^ u64::from(spec.order) << 24 ^ monotonic_ns();
        let ran = self.lab.client.run(|| self.trial(spec, &choice, token, cancel)).and_then(|ran| ran);
        let mut ran = ran.map_err(|error| Self::broken(&error))?;
        let mut servers = std::mem::take(&mut ran.servers);
        if self.far_ends.contains(choice.stack.name) {
            // What the server's kernel knows is the way from the peer, and nothing of the path.
            for report in servers.iter_mut().flatten() {
                (report.info, report.samples) = (TcpInfo::default(), Vec::new());
            }
        }
        if let Ok(worked) = &mut ran.worked {
            join(&spec.workload, worked, &servers);
        }
        let stats = self.lab.stats().since(&before);
        let page = matches!(spec.workload, Workload::Page { .. });
        // Of a download and an upload at once the upload, as both ends saw it.
        let upload = match (&spec.workload, &ran.worked) {
            (Workload::Duplex { .. }, Ok(worked)) => {
                worked.others.first().cloned().map(|client| (client, servers.get(1).cloned().flatten()))
            }
            _ => None,
        };
        let server = EndReport::joined(servers, page);
        let mut outcome = outcome::of(spec, &choice, ran, server);
        if let Some((client, server)) = upload {
            outcome::add_upload(&mut outcome, &client, server.as_ref());
        }
        outcome.observed.lab = Some(stats.to_json());
        outcome.observed.queue_drops = Some(stats.queue_drops());
        outcome.observed.aqm_drops = Some(stats.aqm);
        outcome.observed.ce_marks = Some(stats.marked);
        let rtt = Duration::from_micros(self.path(Direction::Down).rtt_us);
        if outcome.status == Status::Completed
            && let Some(complaint) = stats.complaint(rtt)
        {
            outcome.mark_invalid(complaint);
        }
        Ok(outcome)
    }
}

/// The client's own address, so that nobody takes it for the stack's.
const _: () = assert!(CLIENT_V4.to_bits() != STACK_V4.to_bits());
