//! What one host of a fleet does: ask, judge by its own policy, measure, push. It keeps nothing but its journal: which experiment
//! belongs to which job is written there, so that whatever ends it, the next one goes on.

use crate::answer::AgentAnswer;
use crate::change::HostChanges;
use crate::child::Measuring;
use crate::figures::SharedFigures;
use crate::job::JobSpec;
use crate::policy::{DAY, Policy, PolicyAnswer};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;
use wt_experiment::fleet::order_seed_of;
use wt_fleet::{
    AgentState, AgentStore, FleetIdentity, FleetJob, JobEnd, PushError, PushState, RolloutPhase, StoreAddress,
    push_as_agent,
};
use wt_journal::{ExperimentSummary, Filter, Journal as _, JournalError, SqliteJournal, State};
use wt_problem::Problem;
use wt_setup::{Budget, HostAccess};
use wt_sys::clock::{monotonic_ns, unix_us};
use wt_trial::Cancel;
use wt_tune::{TuneRequest, TurnsRequest};
use wt_units::{Bytes, Scheme, Url};

/// A job goes to whoever asks if nothing is heard for so long.
const LEASE: Duration = Duration::from_secs(120);
/// How often the server is asked, give or take a half.
const POLL: Duration = Duration::from_secs(20);
/// How often somebody looks at an experiment that runs.
const LOOK: Duration = Duration::from_millis(200);
/// The same while a change of this host's settings waits to be confirmed.
const WATCH: Duration = Duration::from_secs(5);
/// Who doesn't end in so long after being asked to is killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an agent is started with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentRequest {
    /// The file of its policy.
    pub policy: PathBuf,
    /// End when nothing is due, instead of asking again.
    pub once: bool,
}

/// What happens meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentEvent {
    /// Something for whoever reads its log.
    Agent {
        /// A sentence.
        text: String,
    },
}

/// Takes events as they happen.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(AgentEvent);

/// Does one host's part until somebody cancels.
///
/// # Errors
/// A [`Problem`] where the policy or the journal can't be read; a server that isn't there is asked again.
pub fn agent(request: &AgentRequest, events: Sink<'_>, cancel: &Cancel) -> Result<AgentAnswer, Problem> {
    // Before all that can fail: whoever starts this again and again takes back what the one before left behind.
    let mut told = HashSet::new();
    put_back(&mut told, events);
    let file = request.policy.display();
    let text = wt_sys::file::read_text(&request.policy).map_err(|error| {
        Problem::usage(format!("{file}: {error}")).hint("windtunnel fleet add HOST URL prints one to begin with")
    })?;
    let policy = Policy::parse(&text).map_err(|why| {
        Problem::usage(format!("{file}: {}", why.trim_end()))
            .hint("correct it; windtunnel fleet add HOST URL prints one to begin with")
    })?;
    let address = wt_setup::journal::store_address(&policy.server)?;
    address.check_files().map_err(|why| {
        Problem::usage(format!("{file}: {why}")).hint(
            "server in it names files of PEM that this agent can read: sslrootcert, its certificate (sslcert) and that one's key (sslkey)",
        )
    })?;
    for text in policy.unreadable_keys() {
        events(AgentEvent::Agent { text: format!("{file}: {text}") });
    }
    check_turns(&policy, &address)
        .map_err(|problem| Problem::usage(format!("{file}: {}", problem.what)).hint("correct turn and links in it"))?;
    let journal = wt_setup::journal::open(policy.journal.as_deref())?;
    let _lock = only_one(&journal)?;
    let poll = policy.poll.unwrap_or(POLL).clamp(Duration::from_millis(200), Duration::from_secs(3600));
    let changes = HostChanges::beside(journal.path(), address.to_string());
    let figures = SharedFigures::default();
    if let Some(metrics) = policy.metrics {
        figures.serve(metrics, journal.path().to_owned())?;
    }
    let mut agent = Agent {
        policy,
        address,
        journal,
        changes,
        is_watched: false,
        store: None,
        rtt: Duration::ZERO,
        begins: true,
        there: HashSet::new(),
        answer: AgentAnswer { schema_version: 1, ..AgentAnswer::default() },
        figures,
        told,
        events,
        cancel,
    };
    let ended = agent.work(request.once, poll);
    // However it ends: nobody confirms what waits here.
    let left = agent.changes.leave();
    ended.and(left).map(|()| agent.answer)
}

/// Sees to it that turns can be asked for as a policy says, before the first job fails for it.
fn check_turns(policy: &Policy, address: &StoreAddress) -> Result<(), Problem> {
    let mut resources = policy.links.clone();
    resources.push(format!("host:{}", address.user()));
    TurnsRequest { server: policy.server.clone(), resources, hold: policy.turn }.check().map(drop)
}

/// Puts back what nobody watches any more of this host's changes, and says what is new of them.
fn put_back(told: &mut HashSet<String>, events: Sink<'_>) {
    let Ok(mut host) = HostAccess::open(None, None) else { return };
    for finding in host.recover() {
        if told.insert(finding.text.clone()) {
            events(AgentEvent::Agent { text: finding.text });
        }
    }
}

/// Sees to it that one agent at a time works with a journal, for as long as the file is open.
fn only_one(journal: &SqliteJournal) -> Result<std::fs::File, Problem> {
    let mut path = journal.path().as_os_str().to_owned();
    path.push(".agent");
    let named = |error: &dyn std::fmt::Display| Problem::environment(format!("{}: {error}", path.display()));
    let file = std::fs::File::options().create(true).append(true).open(&path).map_err(|error| named(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(Problem::environment("another agent works with this journal")
            .hint("systemctl status windtunnel-agent shows whether it is the service")),
        Err(std::fs::TryLockError::Error(error)) => Err(named(&error)),
    }
}

/// Outcome of a turn.
enum AgentTurn {
    /// A job was done, or refused.
    Worked,
    /// Nothing was due.
    Nothing,
    /// A change of settings is under way, beside which nothing is measured.
    Watched,
}

/// Why a turn had no result.
enum Trouble {
    /// The server isn't there, or doesn't want us.
    Away(String),
    /// This host can't.
    Ours(Problem),
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Self {
        Self::Ours(problem)
    }
}

struct Agent<'a> {
    policy: Policy,
    address: StoreAddress,
    journal: SqliteJournal,
    /// What the fleet's owner changed here.
    changes: HostChanges,
    /// Whether such a change is under way.
    is_watched: bool,
    store: Option<AgentStore>,
    /// How long the server took to say hello.
    rtt: Duration,
    /// Whether the server hasn't heard yet that this process has none of the jobs of the one before.
    begins: bool,
    /// Experiments that are there as they are here.
    there: HashSet<String>,
    answer: AgentAnswer,
    figures: SharedFigures,
    /// What was said of changes that nobody watched.
    told: HashSet<String>,
    events: Sink<'a>,
    cancel: &'a Cancel,
}

impl Agent<'_> {
    /// Does one turn after the other until somebody cancels, or with `once` until nothing is due.
    fn work(&mut self, once: bool, poll: Duration) -> Result<(), Problem> {
        let mut is_away = false;
        while !self.cancel.is_cancelled() {
            match self.turn() {
                Ok(AgentTurn::Worked) => {
                    is_away = false;
                    continue;
                }
                Ok(AgentTurn::Nothing) if once => break,
                Ok(AgentTurn::Nothing | AgentTurn::Watched) => is_away = false,
                Err(Trouble::Away(why)) if once => {
                    return Err(Problem::environment(why).hint(self.way_out()?));
                }
                Err(Trouble::Away(why)) => {
                    // Said once, not every twenty seconds for days.
                    if !is_away {
                        let text = match self.begins {
                            true => format!(
                                "isn't there or doesn't let this host in, it is asked again: {why}; {}",
                                self.way_out()?
                            ),
                            false => format!("isn't there, it is asked again: {why}"),
                        };
                        self.say(format!("the fleet's server {text}"));
                    }
                    (is_away, self.store) = (true, None);
                    self.figures.write().is_reached = false;
                }
                Err(Trouble::Ours(problem)) => return Err(problem),
            }
            let pause = if self.is_watched { poll.min(WATCH) } else { poll };
            self.rest(pause.mul_f64(0.5 + chance()));
        }
        Ok(())
    }

    /// What helps where the server can't be asked, or doesn't want us.
    fn way_out(&self) -> Result<String, Problem> {
        let mut ways = Vec::new();
        if self.begins {
            ways.push(format!(
                "check the address, that its server runs and lets this agent in: its certificate's name (CN) has to be {}, signed by an authority of the server's ssl_ca_file",
                self.address.user()
            ));
        }
        let pending = self.journal.list(&Filter::default()).map_err(|error| wt_setup::journal::problem(&error))?;
        if pending.iter().any(|one| !self.there.contains(&one.id)) {
            ways.push("what was measured is in this host's journal, and is pushed next time".to_owned());
        }
        if ways.is_empty() {
            ways.push("start it again when the server is back: nothing is lost".to_owned());
        }
        Ok(ways.join("; "))
    }

    /// Waits, and sees to it meanwhile, with the server or without, that no change outlasts its time here.
    fn rest(&mut self, mut time: Duration) {
        while !time.is_zero() && !self.cancel.is_cancelled() {
            put_back(&mut self.told, self.events);
            let part = time.min(WATCH);
            idle(part, self.cancel);
            time -= part;
        }
    }

    /// Pushes what isn't there, says hello, and does a job if one is due; whether one was.
    fn turn(&mut self) -> Result<AgentTurn, Trouble> {
        if self.is_watched {
            // Whether this host can still be reached, only a new connection shows.
            self.store = None;
        }
        self.push()?;
        let outbox = self.pending()?.len() as u64;
        let state = AgentState { unix_us: unix_us(), rtt: self.rtt, outbox, begins: self.begins };
        let begun = monotonic_ns();
        let there = self.store()?.hello(env!("CARGO_PKG_VERSION"), state).map_err(away)?;
        (self.rtt, self.begins) = (Duration::from_nanos(monotonic_ns() - begun), false);
        self.figures.write().reached(there, state.unix_us, self.rtt, outbox);
        self.changes.fleet = self.store()?.identity().map_err(away)?;
        self.is_watched = self.change()?;
        if self.is_watched {
            return Ok(AgentTurn::Watched);
        }
        let Some(job) = self.store()?.next(LEASE).map_err(away)? else { return Ok(AgentTurn::Nothing) };
        let end = self.job(&job)?;
        self.push()?;
        self.answer.count(&end);
        self.figures.write().jobs = self.answer;
        match &end {
            JobEnd::Done { .. } => {}
            JobEnd::Refused { why } => self.say(format!("refused {} of {}: {why}", job.target, job.mesh)),
            JobEnd::Failed { why, .. } => self.say(format!("{} of {} failed: {why}", job.target, job.mesh)),
            JobEnd::Later { why, .. } => self.say(format!("{} of {} later: {why}", job.target, job.mesh)),
        }
        self.store()?.end_job(&job, &end).map_err(away)?;
        Ok(AgentTurn::Worked)
    }

    /// Does what the fleet's owner wants changed on this host, as far as its policy allows; whether one of those is under way.
    fn change(&mut self) -> Result<bool, Trouble> {
        let mut is_under_way = false;
        for task in self.store()?.rollout_tasks().map_err(away)? {
            let came = self.changes.carry_out(&task, &self.policy)?;
            let phase = came.as_ref().map_or(task.phase, |(phase, _)| *phase);
            is_under_way |= matches!(phase, RolloutPhase::Applying | RolloutPhase::Applied);
            let Some((phase, why)) = came else { continue };
            if phase != task.phase {
                self.say(format!(
                    "change {}: {}{}{why}",
                    task.name,
                    phase.name(),
                    if why.is_empty() { "" } else { ": " }
                ));
            }
            // The connection from before may outlive what no new one comes through.
            self.store = None;
            self.store()?.rollout_said(&task, phase, &why).map_err(away)?;
        }
        Ok(is_under_way)
    }

    fn store(&mut self) -> Result<&mut AgentStore, Trouble> {
        let store = match self.store.take() {
            Some(store) => store,
            None => AgentStore::connect(&self.address).map_err(away)?,
        };
        Ok(self.store.insert(store))
    }

    /// Experiments that aren't there as they are here, the newest first.
    fn pending(&self) -> Result<Vec<ExperimentSummary>, Trouble> {
        let mut all = self.journal.list(&Filter::default()).map_err(|error| ours(&error))?;
        all.retain(|one| !self.there.contains(&one.id));
        Ok(all)
    }

    fn push(&mut self) -> Result<(), Trouble> {
        let pending = self.pending()?;
        if pending.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = pending.iter().map(|one| one.id.clone()).collect();
        self.store()?;
        let Some(store) = self.store.as_mut() else { return Ok(()) };
        let report = push_as_agent(&self.journal, store, Some(&ids)).map_err(|error| match error {
            PushError::Local(error) => ours(&error),
            PushError::Common(error) => away(error),
        })?;
        for line in report.experiments {
            if let PushState::Refused(why) = &line.state {
                self.say(format!("{} can't be pushed: {why}", line.id));
            }
            if pending.iter().any(|one| one.id == line.id && one.state != State::Running) {
                self.there.insert(line.id);
            }
        }
        Ok(())
    }

    /// Does a job, or says why not.
    fn job(&mut self, job: &FleetJob) -> Result<JobEnd, Trouble> {
        let spec: JobSpec = match serde_json::from_str(&job.spec) {
            Ok(spec) => spec,
            Err(error) => return Ok(JobEnd::Refused { why: format!("the job isn't understood: {error}") }),
        };
        match self.policy.judge(&job.target, &spec, unix_us() / 1_000_000, self.moved()?) {
            PolicyAnswer::Refused(why) => return Ok(JobEnd::Refused { why }),
            PolicyAnswer::Later(why, after) => return Ok(JobEnd::Later { why, after }),
            PolicyAnswer::Allowed => {}
        }
        let comment = comment_of(job, self.changes.fleet.as_ref());
        let mut begun = self.of_job(job)?;
        // Another spec or another policy may have begun it: then it would measure on what isn't asked for, or may not be.
        begun.retain(|one| self.journal.load(&one.id).is_ok_and(|old| spec.has(&old, self.policy.knobs.as_deref())));
        let before = begun.first();
        if let Some(done) = before.filter(|one| one.state == State::Finished) {
            // It was measured, and the server didn't hear of it.
            return Ok(JobEnd::Done { experiment: done.id.clone() });
        }
        let mut spec = spec;
        if let Some(before) = before {
            // What was begun has used up a part of what it may cost.
            match self.left(&spec, &begun)? {
                Some(budget) => spec.budget = budget,
                None => return Ok(JobEnd::Done { experiment: before.id.clone() }),
            }
        }
        let request = match self.request(job, &spec, comment, before) {
            Ok(request) => request,
            Err(problem) => return Ok(JobEnd::Failed { why: problem.what, experiment: None }),
        };
        self.say(format!("measuring {} of {}", job.target, job.mesh));
        self.measure(job, &request)
    }

    /// The experiment that a job asks for, with what is this host's own.
    fn request(
        &self,
        job: &FleetJob,
        spec: &JobSpec,
        comment: String,
        before: Option<&ExperimentSummary>,
    ) -> Result<TuneRequest, Problem> {
        let url: Url = job.target.parse().map_err(|_| Problem::usage("no address of a server"))?;
        let mut target = url.to_string();
        if url.scheme == Scheme::Wt {
            let file = self.policy.keys.get(&url.host).ok_or_else(|| {
                Problem::usage(format!("this host has no key for {}: [keys] in its policy names the file", url.host))
            })?;
            target = format!("wt://{}@{}", wt_setup::serve::read_key(file)?.to_hex(), url.authority());
        }
        let site = self.address.user().to_owned();
        let mut resources: Vec<String> = job.links.iter().chain(&self.policy.links).cloned().collect();
        resources.extend([format!("host:{site}"), format!("target:{}", url.host)]);
        resources.sort();
        resources.dedup();
        let turns = Some(TurnsRequest { server: self.policy.server.clone(), resources, hold: self.policy.turn });
        let journal = Some(self.journal.path().to_owned());
        let command = format!("windtunnel fleet agent ({comment})");
        let common = TuneRequest { target: Some(target), turns, journal, command, comment, ..TuneRequest::default() };
        if let Some(before) = before.filter(|one| one.trials > 0) {
            let mut request = TuneRequest { resume: Some(before.id.clone()), budget: spec.budget, ..common };
            request.live.allow_host_wide = spec.host_wide;
            return Ok(request);
        }
        // In 53 bits, as those that the system draws: every reader of JSON keeps them.
        let order_seed = order_seed_of(&format!("{}/{}/{}", job.mesh, job.target, job.run), &site) >> 11;
        let TuneRequest { target, turns, journal, command, comment, .. } = common;
        let order_seed = Some(order_seed);
        Ok(TuneRequest { target, turns, journal, command, comment, order_seed, ..spec.experiment() })
    }

    /// Runs an experiment to its end, or until the job is taken from us.
    fn measure(&mut self, job: &FleetJob, request: &TuneRequest) -> Result<JobEnd, Trouble> {
        let before = self.trials(job)?;
        let mut measuring = Measuring::start(request)?;
        self.figures.write().is_measuring = true;
        let begun = monotonic_ns();
        let since = |then: u64| Duration::from_nanos(monotonic_ns().saturating_sub(then));
        let (mut kept, mut asked_to_end) = (begun, None);
        let (mut after_hours, mut is_changed) = (false, false);
        let code = loop {
            if let Some(code) = measuring.ended(LOOK) {
                break code;
            }
            let mut end = self.cancel.is_cancelled() || since(begun) > self.policy.longest();
            if !self.policy.is_open(unix_us() / 1_000_000) {
                (end, after_hours) = (true, true);
            }
            if since(kept) > LEASE / 3 {
                kept = monotonic_ns();
                put_back(&mut self.told, self.events);
                // Where the server isn't there, rounds end by themselves, for want of a turn.
                let is_kept = self.store.as_mut().map(|store| store.keep(job, LEASE));
                self.figures.write().kept(matches!(is_kept, Some(Ok(_))), unix_us());
                match is_kept {
                    Some(Ok(is_ours)) => {
                        // What is measured while settings change says nothing, and a change waits for nobody.
                        is_changed = self.store.as_mut().is_some_and(|store| store.is_rollout_due().unwrap_or(false));
                        end |= !is_ours || is_changed;
                    }
                    Some(Err(_)) | None => self.store = AgentStore::connect(&self.address).ok(),
                }
            }
            match asked_to_end {
                None if end => {
                    measuring.interrupt();
                    asked_to_end = Some(monotonic_ns());
                }
                Some(then) if since(then) > PATIENCE => break 255,
                _ => {}
            }
        };
        let why = if matches!(code, 0 | 1) { String::new() } else { measuring.why() };
        drop(measuring);
        self.figures.write().is_measuring = false;
        // Whatever ended it, nothing is left as running.
        self.journal = wt_setup::journal::open(Some(self.journal.path()))?;
        let experiment = self.of_job(job)?.into_iter().next().map(|one| one.id);
        Ok(match (code, experiment) {
            _ if after_hours => {
                JobEnd::Later { why: "outside of this host's hours".to_owned(), after: Duration::from_secs(60) }
            }
            _ if is_changed => {
                JobEnd::Later { why: "settings of this host are being changed".to_owned(), after: Duration::ZERO }
            }
            _ if self.cancel.is_cancelled() => {
                JobEnd::Later { why: "the agent was stopped".to_owned(), after: Duration::ZERO }
            }
            (0 | 1, Some(experiment)) => JobEnd::Done { experiment },
            // As whoever is stopped beyond the end of a turn.
            (..0, _) => {
                let why = format!("its process was killed (signal {}); it goes on", -code);
                let has_begun = self.trials(job)? > before;
                JobEnd::Later { why, after: if has_begun { Duration::ZERO } else { LEASE / 2 } }
            }
            (_, experiment) => JobEnd::Failed { why, experiment },
        })
    }

    /// The experiments of a job, the newest first.
    fn of_job(&self, job: &FleetJob) -> Result<Vec<ExperimentSummary>, Trouble> {
        let comment = comment_of(job, self.changes.fleet.as_ref());
        // Without a key, as the journal has it.
        let target = job.target.parse().map_or_else(|_| job.target.clone(), |url: Url| url.to_string());
        let filter = Filter { target: Some(target), ..Filter::default() };
        let mut all = self.journal.list(&filter).map_err(|error| ours(&error))?;
        all.retain(|one| one.comment == comment);
        Ok(all)
    }

    /// How many trials of a job were begun.
    fn trials(&self, job: &FleetJob) -> Result<u64, Trouble> {
        Ok(self.of_job(job)?.iter().map(|one| one.trials).sum())
    }

    /// What a job that was begun may still cost; `None` where that is too little to go on.
    fn left(&self, spec: &JobSpec, begun: &[ExperimentSummary]) -> Result<Option<Option<Budget>>, Trouble> {
        let (mut trials, mut bytes) = (0_usize, 0_u64);
        for one in begun {
            let rows = self.journal.rows(&one.id).map_err(|error| ours(&error))?;
            trials += rows.iter().filter(|row| row.round > 0).count();
            bytes += rows.iter().map(|row| row.bytes).sum::<u64>();
        }
        Ok(match spec.budget {
            Some(Budget::Trials(all)) => {
                Some(Budget::Trials(all.saturating_sub(trials))).filter(|_| trials + 2 <= all).map(Some)
            }
            Some(Budget::Size(all)) => {
                let left = all.get().saturating_sub(bytes);
                (left >= all.get() / 10).then_some(Some(Budget::Size(Bytes(left))))
            }
            other => Some(other),
        })
    }

    /// Payload of the last 24 hours.
    fn moved(&self) -> Result<Bytes, Trouble> {
        let since = unix_us().saturating_sub(i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX));
        // An experiment that began the day before may have trials of today.
        let recent = Filter { since_unix_us: Some(since.saturating_sub(since / 1000)), ..Filter::default() };
        let mut moved = 0_u64;
        for one in self.journal.list(&recent).map_err(|error| ours(&error))? {
            let rows = self.journal.rows(&one.id).map_err(|error| ours(&error))?;
            moved += rows.iter().filter(|row| row.started_unix_us >= since).map(|row| row.bytes).sum::<u64>();
        }
        Ok(Bytes(moved))
    }

    fn say(&mut self, text: String) {
        (self.events)(AgentEvent::Agent { text });
    }
}

/// What an experiment of a job is called in the journal, for good. A database that is made anew has the same numbers again.
fn comment_of(job: &FleetJob, fleet: Option<&FleetIdentity>) -> String {
    let of = fleet.map(|fleet| format!(" ({})", fleet.id)).unwrap_or_default();
    format!("fleet {}, job {}, run {}{of}", job.mesh, job.job, job.run)
}

fn ours(error: &JournalError) -> Trouble {
    Trouble::Ours(wt_setup::journal::problem(error))
}

fn away(error: JournalError) -> Trouble {
    Trouble::Away(error.to_string())
}

/// Waits, unless somebody cancels.
pub(crate) fn idle(time: Duration, cancel: &Cancel) {
    let end = monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    while !cancel.is_cancelled() {
        let left = end.saturating_sub(monotonic_ns());
        if left == 0 {
            return;
        }
        // A signal ends it early.
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left.min(1_000_000_000))));
    }
}

/// From 0 to 1, so that nobody keeps step with others.
fn chance() -> f64 {
    let drawn = wt_setup::draw_order_seed().unwrap_or_else(|_| monotonic_ns());
    (drawn & 0xFFFF_FFFF) as f64 / f64::from(u32::MAX)
}
