use crate::change::{ChangeError, ChangeInForce, Changer, InTheWay, Place, may_set};
use crate::in_force::{self, out_of_reach};
use crate::lost::{self, LostNetwork};
use crate::manners::{Manners, clock, leave_alone};
use crate::outcome::{by_thirds, mark_skipped, outcome, tell_granted};
use crate::scope::{Scope, own_settings, scope_of, usual_knobs};
use crate::target::Target;
use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wt_host::TxnError;
use wt_load::{Fetch, FetchError, FetchOutcome, Finish, LoadError, ReceiverState, Scheme, Strain, Tls};
use wt_sys::ns::read_net_sysctl;
use wt_trial::{
    Advice, Amount, Cancel, Direction, LoadedControl, PathFacts, STOPPED, Status, TrialOutcome, TrialSpec, Tunnel,
    TunnelError, TunnelKind, Workload,
};
use wt_units::{Bytes, Knob, Level, Settings, Url};

const NAME: &str = "live";
/// Where what only a route can have was set.
const ON_ROUTE: &str = "route (to the target only)";
/// Redirections that are followed, one after another.
const MOST_REDIRECTS: usize = 5;
/// A remote host that wants to be left alone for longer ends the experiment.
const LONGEST_WAIT: Duration = Duration::from_secs(900);

/// So many bytes come beyond a file's part in any case: the head of the answer, and TLS.
const ALWAYS_IN_VAIN: u64 = 64 * 1024;

/// What a live tunnel is made of.
#[derive(Debug)]
pub struct LiveConfig {
    /// Far ends, tried in turn, one a round.
    pub targets: Vec<Target>,
    /// Which way the payload goes.
    pub direction: Direction,
    /// Which version of IP names are looked up for, if only one.
    pub v6: Option<bool>,
    /// Whom to believe.
    pub tls: Tls,
    /// Changes routes and the host; without it only sockets' settings can be varied.
    pub changer: Option<Changer>,
    /// What is known of the path.
    pub facts: PathFacts,
    /// The MTU of the device towards the target, bytes.
    pub device_mtu: u64,
    /// This host's congestion control.
    pub congestion_control: String,
    /// The congestion controls that this kernel lets us use.
    pub congestion_controls: Vec<String>,
    /// Those among the levels of `cc` whose name in the kernel is another one.
    pub controls: BTreeMap<String, Control>,
    /// Payload that may be moved in all, bytes; `None` has no bound.
    pub allowance: Option<u64>,
}

/// A congestion control whose level isn't its name in the kernel: `chd@freebsd-hz100`.
#[derive(Debug, Clone)]
pub struct Control {
    /// What the sender's kernel calls it.
    pub kernel_name: String,
    /// This kernel's, where this end sends.
    pub loaded: Option<Rc<dyn LoadedControl>>,
}

/// The real path to one remote host, or to several in turn.
#[derive(Debug)]
pub struct LiveTunnel {
    config: LiveConfig,
    manners: Vec<Manners>,
    /// The round that was given up.
    given_up: Option<u32>,
    /// Why a remote host refused last.
    refusal: String,
    /// Targets that are of no use.
    useless: Vec<bool>,
    /// The kind of workload that each target has served before: what it says against the same later is for now.
    served: Vec<Option<Discriminant<Workload>>>,
    /// The most that came beyond what was asked for, bytes: a server that sends the whole file is cut off, but late.
    in_vain: u64,
    round: u32,
    turn: usize,
    /// The device over which the target was reached last.
    device: Option<String>,
    /// What the way to the targets lays down.
    laid_down: Settings,
}

impl LiveTunnel {
    /// A tunnel that has done nothing yet. There must be a target.
    #[must_use]
    pub fn new(mut config: LiveConfig) -> Self {
        let laid_down = in_force::laid_down(config.changer.as_mut(), &config.targets);
        let manners = vec![Manners::new(); config.targets.len()];
        let (useless, served) = (vec![false; config.targets.len()], vec![None; config.targets.len()]);
        Self {
            config,
            manners,
            given_up: None,
            refusal: String::new(),
            useless,
            served,
            in_vain: 0,
            round: 0,
            turn: 0,
            device: None,
            laid_down,
        }
    }

    /// The remote hosts, as they are by now: redirections followed.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.config.targets
    }

    /// The congestion controls that can be compared here.
    #[must_use]
    pub fn congestion_controls(&self) -> &[String] {
        &self.config.congestion_controls
    }

    /// Bytes that may still be moved.
    #[must_use]
    pub fn allowance(&self) -> Option<u64> {
        self.config.allowance
    }

    /// The narrowest place that a knob has at all targets; or why there is none.
    fn scope(&self, knob: Knob) -> Result<Scope, &'static str> {
        let mut scopes =
            self.config.targets.iter().map(|target| scope_of(knob, self.config.direction, target.url.scheme));
        let first = scopes.next().unwrap_or(Err("there is no target"))?;
        for other in scopes {
            if other? != first {
                return Err("the remote hosts differ in where it is set");
            }
        }
        Ok(first)
    }

    /// Whether the target has served the like before.
    fn has_served(&self, workload: &Workload) -> bool {
        self.served[self.turn] == Some(discriminant(workload))
    }

    /// Whether it hands out files: what it refuses is no matter of settings, which it isn't told.
    fn is_of_files(&self) -> bool {
        matches!(self.config.targets[self.turn].url.scheme, Scheme::Http | Scheme::Https | Scheme::Ftp | Scheme::Ftps)
    }

    fn scheme(&self) -> Scheme {
        self.config.targets.first().map_or(Scheme::Http, |target| target.url.scheme)
    }

    /// Which target a round is run on: each gets its turn, and one that refuses is passed over.
    fn begin_round(&mut self, round: u32) {
        // Outside of rounds the one that was found to work stays.
        let stays = !self.useless[self.turn] && !self.manners[self.turn].gave_up();
        if (round == self.round && round != 0) || (round == 0 && stays) {
            return;
        }
        self.round = round;
        self.given_up = None;
        let now = clock();
        let count = self.config.targets.len();
        let first = round as usize % count;
        let turns = (0..count).map(|step| (first + step) % count).filter(|turn| !self.useless[*turn]);
        self.turn = turns.min_by_key(|turn| self.manners[*turn].wait(now)).unwrap_or(0);
        self.manners[self.turn].begin_round();
    }

    /// Makes what isn't a socket's own.
    fn change(
        &mut self,
        settings: &Settings,
        deadline: Duration,
    ) -> Result<Option<(ChangeInForce, &'static str)>, TunnelError> {
        let of = |wanted: Scope| -> Settings {
            let here = |knob| self.scope(knob) == Ok(wanted);
            let wanted = settings.iter().filter(|(knob, level)| here(*knob) && **level != Level::Auto);
            wanted.map(|(knob, level)| (knob, level.clone())).collect()
        };
        let (route, host) = (of(Scope::Route), of(Scope::Host));
        let peer = self.config.targets[self.turn].peer.ip();
        let (settings, place, word) = match (route.is_empty(), host.is_empty()) {
            (true, true) => return Ok(None),
            (false, true) => (route, Place::Route(peer), ON_ROUTE),
            (true, false) => (host, Place::Host, "host (put back after the trial)"),
            (false, false) => {
                let why = "a route and the whole host can't be changed for the same trial".to_owned();
                return Err(TunnelError::CannotRun { tunnel: NAME, why });
            }
        };
        let first = settings.iter().next().map(|(knob, level)| (knob, level.clone()));
        let Some(changer) = &mut self.config.changer else { return Ok(None) };
        match changer.make(&settings, place, deadline) {
            Ok(made) => Ok(Some((made, word))),
            Err(error @ ChangeError::Transaction(TxnError::NotPutBack { .. })) => Err(broken(&error)),
            // Made meanwhile, by somebody else.
            Err(ChangeError::Transaction(TxnError::Pending { .. })) => {
                let waits = changer.in_the_way().ok().flatten();
                let (why, remedy) = waits.map_or_else(
                    || ("another change to this host was being made".to_owned(), None),
                    |InTheWay { why, remedy }| (why, Some(remedy)),
                );
                Err(TunnelError::Environment { why, remedy })
            }
            Err(error @ ChangeError::Transaction(TxnError::Busy { .. })) => {
                let remedy = Some("wait until it has ended; --resume goes on".to_owned());
                Err(TunnelError::Environment { why: error.to_string(), remedy })
            }
            Err(error @ (ChangeError::Transaction(_) | ChangeError::System(_))) => {
                Err(TunnelError::Environment { why: error.to_string(), remedy: None })
            }
            Err(error) => {
                let (knob, level) = first.unwrap_or((Knob::Mtu, Level::Auto));
                Err(TunnelError::CannotSet { tunnel: NAME, knob, level, why: error.to_string() })
            }
        }
    }

    /// Moves the payload; redirections are followed, and remembered.
    fn transfer(&mut self, spec: &TrialSpec, own: &Settings, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
        // What is no transfer has an amount of its own.
        let (direction, amount) = match &spec.workload {
            Workload::Bulk { direction, amount } => (*direction, *amount),
            Workload::Soak { direction, time } => (*direction, Amount::Time(*time)),
            other => (other.direction(), Amount::Size(Bytes(1))),
        };
        let is_transfer = match spec.workload {
            Workload::Bulk { .. } => true,
            Workload::Soak { .. } => self.scheme() != Scheme::Wt,
            _ => false,
        };
        for _ in 0..=MOST_REDIRECTS {
            let target = &mut self.config.targets[self.turn];
            let url = target.url.clone();
            let job = Fetch {
                url: &url,
                peer: target.peer,
                settings: own,
                amount,
                deadline: spec.deadline,
                tls: &self.config.tls,
            };
            let fetched = match direction {
                _ if !is_transfer => {
                    let memory = Arc::clone(&target.memory);
                    wt_load::work_at(&job, &spec.workload, &memory, cancel)
                }
                Direction::Down => wt_load::fetch(&job, &mut target.reference, cancel),
                Direction::Up => wt_load::bring(&job, cancel),
            };
            let Err(FetchError::Elsewhere(location)) = fetched else { return fetched };
            let never = |why: String| FetchError::Never(format!("{url} redirects to what can't be followed: {why}"));
            let next = url.join(&location).map_err(|error| never(error.to_string()))?;
            // The version of IP by which it was reached so far is known to work.
            let same = Target::find(next.clone(), Some(target.peer.is_ipv6()), cancel);
            let found = same.or_else(|_| Target::find(next, self.config.v6, cancel));
            let stopped = || cancel.is_cancelled().then_some(FetchError::Cancelled);
            let found = found.map_err(|error| stopped().unwrap_or_else(|| never(error.to_string())))?;
            target.url = found.url;
            target.peer = found.peer;
        }
        Err(FetchError::Never(format!("more than {MOST_REDIRECTS} redirections, one after another")))
    }

    /// Whether what a trial moves is allowed still, with what comes in vain from servers that know no parts of a file.
    fn may_pay(&self, spec: &TrialSpec) -> Result<(), TunnelError> {
        let (Some(allowance), Some(Bytes(size))) = (self.config.allowance, spec.workload.size()) else { return Ok(()) };
        if size.saturating_add(self.in_vain) <= allowance {
            return Ok(());
        }
        let human = |bytes: u64| Bytes(bytes).human();
        let vain = match self.in_vain {
            0..ALWAYS_IN_VAIN => String::new(),
            more => {
                format!(", and up to {} more come in vain: the server sends more than it is asked for", human(more))
            }
        };
        let why = format!("{} of the budget are left, {} are needed{vain}", human(allowance), human(size));
        Err(TunnelError::Spent { why })
    }

    /// Payload that a transfer cost, bytes: what came, and what was still under way where the server had more to send.
    fn moved(fetched: &FetchOutcome, spec: &TrialSpec) -> u64 {
        let FetchOutcome { report, surplus, .. } = fetched;
        if spec.workload.direction() == Direction::Up {
            return report.bytes;
        }
        let came = report.info.bytes_received.max(report.bytes);
        // No more than the window allows, and than a start that doubles each round trip: what waits in queues isn't known.
        let under_way = u64::from(report.info.rcv_wnd).min(came.saturating_add(ALWAYS_IN_VAIN));
        let most = came.saturating_add(under_way);
        match spec.workload.size() {
            Some(_) if *surplus => most,
            Some(Bytes(asked)) => most.min(asked.max(came)),
            None => came,
        }
    }

    /// Takes what was moved off the allowance.
    fn pay(&mut self, bytes: u64) {
        if let Some(allowance) = &mut self.config.allowance {
            *allowance = allowance.saturating_sub(bytes);
        }
    }

    /// Whether what came of a transfer, or didn't, was the network's loss, not the settings' or the remote host's doing.
    fn lost_in(&self, fetched: &Result<FetchOutcome, FetchError>, direction: Direction) -> Option<LostNetwork> {
        let peer = self.config.targets[self.turn].peer;
        match fetched {
            Ok(fetched) => lost::lost_meanwhile(&fetched.report, direction, peer),
            Err(FetchError::Load(error)) => {
                let lost = lost::got_nowhere(error, peer)?;
                // Where another remote host answers, it is this one that doesn't.
                let others = self.config.targets.iter().enumerate();
                let mut others = others.filter(|(turn, other)| other.peer != peer && !self.useless[*turn]);
                (lost.here || others.all(|(_, other)| lost::lost_at(other.peer).is_some())).then_some(lost)
            }
            Err(FetchError::Silence(_)) => lost::lost_at(peer),
            Err(_) => lost::missing_here(peer.ip()),
        }
    }

    /// Waits for the network: the trial is spoilt if it comes back, and if it doesn't, so is the rest.
    fn lost(&self, lost: LostNetwork, cancel: &Cancel) -> Result<TrialOutcome, TunnelError> {
        let peer = self.config.targets[self.turn].peer;
        let why = lost::with_device(&lost, self.device.as_deref());
        match lost::wait_for_return(peer, lost, cancel) {
            None => Ok(TrialOutcome::empty(Status::Aborted, Duration::ZERO, STOPPED)),
            Some(Ok(after)) => {
                let note = format!("the network was lost for {:.1} s: {why}", after.as_secs_f64());
                Ok(TrialOutcome::empty(Status::Invalid, Duration::ZERO, note))
            }
            Some(Err(lost)) => {
                let why = lost::with_device(&lost, self.device.as_deref());
                Err(TunnelError::Lost { why: format!("the network is lost: {why}"), here: lost.here })
            }
        }
    }

    /// What an attempt that brought nothing is.
    fn failed(&mut self, error: FetchError, spec: &TrialSpec, took: Duration) -> Result<TrialOutcome, TunnelError> {
        match error {
            // Servers that ration refuse whatever is set, and a setting may be what they refuse: it is tried again later, and
            // how often each setting meets it is counted.
            FetchError::Load(LoadError::Connect(cause)) => {
                self.failed(FetchError::Refused { why: cause.to_string(), pause: None }, spec, took)
            }
            FetchError::Refused { why, pause } => {
                let pause = self.manners[self.turn].refused(clock(), pause);
                if self.manners[self.turn].gave_up() {
                    self.given_up = Some(spec.round);
                }
                self.refusal.clone_from(&why);
                let (url, for_s) = (&self.config.targets[self.turn].url, pause.as_secs_f64());
                let note = format!("{url} refuses: {why}; it is left alone for {for_s:.0} s");
                Ok(TrialOutcome::empty(Status::Invalid, Duration::ZERO, note))
            }
            FetchError::Cancelled => Ok(TrialOutcome::empty(Status::Aborted, Duration::ZERO, STOPPED)),
            FetchError::Load(LoadError::Refused { knob, source }) => {
                let level = spec.settings.get(knob).cloned().unwrap_or(Level::Auto);
                Err(TunnelError::CannotSet { tunnel: NAME, knob, level, why: source.to_string() })
            }
            // It was there, and no setting keeps it from being there: such servers ration so, too.
            FetchError::Never(why) if self.has_served(&spec.workload) && self.is_of_files() => self.failed(
                FetchError::Refused { why: format!("it served us before, and now {why}"), pause: None },
                spec,
                took,
            ),
            FetchError::Never(why) if self.useless.iter().filter(|useless| !**useless).count() > 1 => {
                self.useless[self.turn] = true;
                self.given_up = Some(spec.round);
                let note = format!("{}: {why}; it is passed over from now on", self.config.targets[self.turn].url);
                Ok(TrialOutcome::empty(Status::Invalid, Duration::ZERO, note))
            }
            FetchError::Never(why) => {
                let why = format!("{}: {why}", self.config.targets[self.turn].url);
                Err(TunnelError::RemoteHost { why, advice: None })
            }
            FetchError::Distrusted { cause, remedy, .. } | FetchError::Kept { cause, remedy, .. } => {
                let why = format!("{}: {error}", self.config.targets[self.turn].url);
                Err(TunnelError::RemoteHost { why, advice: Some(Advice { cause, remedy }) })
            }
            other => Ok(TrialOutcome::empty(Status::Failed, took, other.to_string())),
        }
    }
}

impl Tunnel for LiveTunnel {
    fn kind(&self) -> TunnelKind {
        TunnelKind::Live
    }

    fn target(&self) -> String {
        let words: Vec<String> = self.config.targets.iter().map(|target| target.url.to_string()).collect();
        words.join(" ")
    }

    fn current(&self) -> Settings {
        let LiveConfig { device_mtu, congestion_control, direction, targets, .. } = &self.config;
        in_force::current(*device_mtu, congestion_control, &self.laid_down, *direction, targets.first())
    }

    fn usual_knobs(&self, direction: Direction) -> Vec<Knob> {
        let knobs = usual_knobs(direction, self.scheme());
        knobs.into_iter().filter(|knob| self.scope(*knob).is_ok()).collect()
    }

    fn path(&self, _: Direction) -> PathFacts {
        self.config.facts.clone()
    }

    fn header_len(&self) -> u64 {
        let longest = self.config.targets.iter().map(Target::headers).max().unwrap_or(40);
        let without = read_net_sysctl("ipv4/tcp_timestamps").is_ok_and(|on| on == "0");
        longest + if without { 0 } else { 12 }
    }

    fn check(&self, settings: &Settings) -> Result<(), TunnelError> {
        let (target, current) = (self.config.targets.first(), self.current());
        let headers = target.map_or(40, Target::headers);
        for (knob, level) in settings.iter().filter(|(_, level)| **level != Level::Auto) {
            let cannot = |why: &str| {
                Err(TunnelError::CannotSet { tunnel: NAME, knob, level: level.clone(), why: why.to_owned() })
            };
            match self.scope(knob) {
                Err(why) => return cannot(why),
                Ok(Scope::Host) if self.config.changer.as_ref().is_none_or(|changer| !changer.allow_host_wide) => {
                    return cannot("that is a setting of the whole host: --allow-host-wide allows it for each trial");
                }
                Ok(Scope::Route) if self.config.changer.is_none() => {
                    return cannot("a route to the target can't be changed here");
                }
                Ok(scope) => may_set(scope)?,
            }
            match (knob, level) {
                (_, Level::TimesMss(_) | Level::TimesMtu(_)) => return cannot("multiples must be in bytes first"),
                _ if let Some(why) = out_of_reach((knob, level), &current, self.config.device_mtu, target) => {
                    return cannot(&why);
                }
                (Knob::Mtu, Level::Number(mtu)) if *mtu < if headers > 40 { 1_280 } else { headers + 88 } => {
                    return cannot("it leaves no room for an MSS; IPv6 has none below 1280 (RFC 8200)");
                }
                (Knob::Cc, Level::Name(name))
                    if self.config.direction == Direction::Up
                        && !self.config.congestion_controls.contains(name)
                        && !self.config.controls.contains_key(name) =>
                {
                    let known = self.config.congestion_controls.join(", ");
                    return cannot(&format!("this kernel lets us use {known}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn stands_ready(&mut self, arms: &[&Settings]) -> Result<(), TunnelError> {
        let wide = |knob| matches!(self.scope(knob), Ok(Scope::Route | Scope::Host));
        let wide = arms.iter().any(|arm| arm.iter().any(|(knob, level)| *level != Level::Auto && wide(knob)));
        let Some(changer) = self.config.changer.as_mut().filter(|_| wide) else { return Ok(()) };
        match changer.in_the_way() {
            Ok(None) => Ok(()),
            Ok(Some(InTheWay { why, remedy })) => Err(TunnelError::Environment { why, remedy: Some(remedy) }),
            Err(error) => Err(TunnelError::Environment { why: error.to_string(), remedy: None }),
        }
    }

    fn gives_up_round(&self) -> bool {
        self.given_up == Some(self.round) && self.round != 0
    }

    fn pause(&self) -> Duration {
        self.manners[self.turn].wait(clock())
    }

    fn refusal(&self) -> Option<&str> {
        (!self.pause().is_zero()).then_some(self.refusal.as_str())
    }

    fn asked_last(&self) -> Option<(Url, SocketAddr)> {
        let target = &self.config.targets[self.turn];
        Some((target.url.clone(), target.peer))
    }

    fn run(&mut self, spec: &TrialSpec, cancel: &Cancel) -> Result<TrialOutcome, TunnelError> {
        self.check(&spec.settings)?;
        self.begin_round(spec.round);
        let direction = spec.workload.direction();
        self.may_pay(spec)?;
        let wait = self.manners[self.turn].wait(clock());
        if wait > LONGEST_WAIT {
            let url = &self.config.targets[self.turn].url;
            let (for_s, because) = (wait.as_secs_f64(), &self.refusal);
            let why = format!("{url} wants to be left alone for {for_s:.0} s ({because}); --resume goes on later");
            return Err(TunnelError::RemoteHost { why, advice: None });
        }
        if !leave_alone(wait, cancel) {
            return Ok(TrialOutcome::empty(Status::Aborted, Duration::ZERO, STOPPED));
        }
        let peer = self.config.targets[self.turn].peer;
        let mut link = crate::link::link_to(peer.ip());
        if let Some(name) = link.as_ref().and_then(|link| link["device"].as_str()) {
            self.device = Some(name.to_owned());
        }
        let change = match lost::unless_lost(peer.ip(), || self.change(&spec.settings, spec.deadline))? {
            Ok(change) => change,
            Err(lost) => return self.lost(lost, cancel),
        };
        let mut own = own_settings(&spec.settings, self.config.targets[self.turn].headers());
        let control = spec.settings.name(Knob::Cc).and_then(|name| self.config.controls.get(name)).cloned();
        let hits = |control: &Control| control.loaded.as_ref().map_or(0, |loaded| loaded.guard_hits());
        let hits_before = control.as_ref().map_or(0, hits);
        if let Some(control) = &control {
            own.set(Knob::Cc, Level::Name(control.kernel_name.clone()));
            control.loaded.iter().for_each(|loaded| loaded.seed(spec.seed));
        }
        let strain = Strain::begin();
        let began = clock();
        let fetched = self.transfer(spec, &own, cancel);
        let took = clock().saturating_sub(began);
        if let (Some((made, _)), Some(changer)) = (&change, &mut self.config.changer) {
            changer.put_back(made).map_err(|error| broken(&error))?;
        }
        if let Some(lost) = self.lost_in(&fetched, direction) {
            self.pay(fetched.map_or(0, |fetched| fetched.report.bytes));
            return self.lost(lost, cancel);
        }
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) => return self.failed(error, spec, took),
        };
        let moved = Self::moved(&fetched, spec);
        self.pay(moved);
        if let (Finish::Lost(why), true) = (&fetched.report.finish, self.scheme() != Scheme::Wt) {
            return self.failed(FetchError::Refused { why: why.clone(), pause: None }, spec, took);
        }
        self.manners[self.turn].served();
        self.served[self.turn] = Some(discriminant(&spec.workload));
        let asked = spec.workload.size().map_or(u64::MAX, Bytes::get);
        self.in_vain = self.in_vain.max(moved.saturating_sub(asked));
        let served = self.config.targets[self.turn].peer.ip();
        if served != peer.ip() {
            let there = crate::link::link_to(served);
            let device = |link: &Option<serde_json::Value>| Some(link.as_ref()?["device"].clone());
            if self.config.targets.len() == 1
                && device(&there) != device(&link)
                && let Some(mtu) = there.as_ref().and_then(|link| link["mtu"].as_u64())
            {
                self.config.device_mtu = mtu;
            }
            link = there;
            self.laid_down = in_force::laid_down(self.config.changer.as_mut(), &self.config.targets);
            if matches!(change, Some((_, ON_ROUTE))) {
                let note = format!("redirected to {served}: run again with a route to there");
                return Ok(TrialOutcome::empty(Status::Invalid, Duration::ZERO, note));
            }
        }
        let headers = self.config.targets[self.turn].headers();
        let end = if direction == Direction::Down { Some(&fetched.report) } else { fetched.other.as_ref() };
        let receiver = end.map(ReceiverState::from).unwrap_or_default();
        let mut outcome = outcome(fetched, direction, headers);
        outcome.observed.link = link;
        outcome.observed.address = Some(served);
        if self.config.targets.len() > 1 {
            outcome.observed.target = Some(self.config.targets[self.turn].url.to_string());
        }
        by_thirds(&mut outcome, spec);
        tell_granted(&mut outcome, spec, headers, &|knob| self.scope(knob) == Ok(Scope::RemoteHost));
        if let Some(control) = &control {
            outcome.name_control_as_asked(spec, &control.kernel_name);
            mark_skipped(&mut outcome, hits(control).saturating_sub(hits_before));
        }
        if let Some((made, word)) = &change {
            for (knob, level) in made.granted.iter() {
                outcome.granted.set(knob, level.clone());
                outcome.scopes.insert(knob.name().to_owned(), (*word).to_owned());
            }
        }
        // On the loopback the processor is the path.
        if outcome.status == Status::Completed
            && !served.is_loopback()
            && let Some(why) = strain.complaint(&outcome, receiver)
        {
            outcome.mark_invalid(why);
        }
        Ok(outcome)
    }
}

fn broken(error: &dyn std::fmt::Display) -> TunnelError {
    TunnelError::Broken { tunnel: NAME, why: error.to_string() }
}
