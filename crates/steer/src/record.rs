use crate::answer::SCHEMA_VERSION;
use crate::claims::{self, ClaimedPorts};
use crate::{TrafficList, TrafficReportRequest, TrafficRequest, TrafficStatus, TrafficStop};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use wt_journal::{
    Claim, ExperimentConfig, Filter, Journal, JournalError, NewExperiment, ServerTrafficConfig, Sighting,
    SqliteJournal, State, StoredExperiment,
};
use wt_problem::Problem;
use wt_setup::connections;
use wt_setup::journal::{open, open_to_read, own_identity, problem};
use wt_setup::settings::HostAccess;
use wt_sys::process::ProcessIdentity;
use wt_sys::{clock, poll, process};
use wt_traffic::{HoldbackState, ServerEvidence, TrafficConfig, TrafficReport, TrafficTally, TrafficVerdictKind};

/// What the journal calls the accounts of an experiment under way.
const KIND: &str = "traffic";
/// How long an experiment gets to end.
const END_WITHIN: Duration = Duration::from_secs(30);
/// How long a note waits for another program that writes: the heart must beat again within two seconds.
const NOTE_PATIENCE: Duration = Duration::from_millis(100);
/// How long the last word waits for room, or for another program that writes; within [`END_WITHIN`].
const LAST_PATIENCE: Duration = Duration::from_secs(20);
/// Between two tries at the last word.
const BETWEEN_TRIES: Duration = Duration::from_millis(250);
const SIGINT: i32 = 2;

/// What is kept of a state of affairs: everything that a report says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredReport {
    pub(crate) kind: String,
    pub(crate) headline: String,
    /// What lists show of it.
    #[serde(default)]
    pub(crate) answer: KeptAnswer,
    pub(crate) tally: TrafficTally,
    pub(crate) report: TrafficReport,
    /// What other servers need to add this one up, for each arm but the first.
    #[serde(default)]
    pub(crate) servers: Vec<ServerEvidence>,
    /// Whether its report says, once the experiment has ended, that it has: those of versions before this was told stay as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tells_end: bool,
}

/// What lists of the journal show, in the words that they have for every experiment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeptAnswer {
    /// `set`, `keep` or `undecided`.
    pub(crate) action: String,
    /// What the arm sets that is claimed to be faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) setting: Option<String>,
    /// How much more goodput that is, estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) change_percent: Option<f64>,
}

impl KeptAnswer {
    pub(crate) fn of(report: &TrafficReport) -> Self {
        let verdict = &report.verdict;
        if let Some(holdback) = &report.holdback {
            let action = if holdback.state == HoldbackState::Open { "undecided" } else { "keep" };
            return Self { action: action.to_owned(), ..Self::default() };
        }
        let claimed = matches!(verdict.kind, TrafficVerdictKind::Faster | TrafficVerdictKind::Slower);
        let change_percent = verdict.ratio.filter(|_| claimed).map(|ratio| 100.0 * (ratio - 1.0));
        match verdict.kind {
            TrafficVerdictKind::Faster if report.leans_to_slower_for_everybody() => {
                Self { action: "undecided".to_owned(), ..Self::default() }
            }
            TrafficVerdictKind::Faster => {
                let arm = report.arms.iter().find(|arm| Some(&arm.name) == verdict.arm.as_ref());
                Self { action: "set".to_owned(), setting: arm.map(|arm| arm.settings.to_string()), change_percent }
            }
            TrafficVerdictKind::Slower | TrafficVerdictKind::Stopped => {
                Self { action: "keep".to_owned(), setting: None, change_percent }
            }
            TrafficVerdictKind::Undecided | TrafficVerdictKind::NoData => {
                Self { action: "undecided".to_owned(), ..Self::default() }
            }
        }
    }
}

/// An experiment of which something is written down.
pub(crate) struct FinishedExperiment {
    pub(crate) id: String,
    pub(crate) config: TrafficConfig,
    pub(crate) report: TrafficReport,
    pub(crate) servers: Vec<ServerEvidence>,
}

/// An experiment in the journal while it runs.
pub(crate) struct Record {
    journal: SqliteJournal,
    pub(crate) id: String,
    _claim: Option<Claim>,
}

impl Record {
    /// Writes down that it has begun.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub(crate) fn begin(request: &TrafficRequest, backend: &str) -> Result<Self, Problem> {
        let mut journal = open(request.journal.as_deref())?;
        let started = clock::unix_us();
        let ports: Vec<String> = request.config.ports.iter().map(u16::to_string).collect();
        let target = format!("port-{}", ports.join("-"));
        let salt = ((clock::monotonic_ns() / 1_000) & 0xFFFF) as u16 ^ std::process::id() as u16;
        let id = wt_journal::experiment_id(started, &target, salt);
        let traffic = serde_json::to_value(&request.config).map_err(|error| Problem::internal(error.to_string()))?;
        let arm = |arm: &wt_traffic::TrafficArm| wt_journal::Arm {
            label: arm.name.clone(),
            settings: arm.settings.knobs().clone(),
        };
        let claim = Claim::take(journal.path(), &id);
        let new = NewExperiment {
            started_unix_us: started,
            comment: request.comment.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            arms: request.config.arms.iter().map(arm).collect(),
            config: ExperimentConfig::Traffic(Box::new(ServerTrafficConfig {
                traffic: Some(traffic),
                backend: Some(backend.to_owned()),
                command: Some(request.command.clone()),
                ..ServerTrafficConfig::default()
            })),
            owner: own_identity(),
            ..NewExperiment::new(&id, target, KIND)
        };
        journal.create_experiment(&new).map_err(|error| problem(&error))?;
        journal.wait_at_most(NOTE_PATIENCE).map_err(|error| problem(&error))?;
        Ok(Self { journal, id, _claim: claim })
    }

    /// Writes down how it stands.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub(crate) fn note(&mut self, kept: &StoredReport) -> Result<(), Problem> {
        let found = serde_json::to_value(kept).map_err(|error| Problem::internal(error.to_string()))?;
        let seen = Sighting { host: self.id.to_lowercase(), at_unix_us: clock::unix_us(), found };
        self.journal.note(KIND, &[seen]).map_err(|error| problem(&error))
    }

    /// Writes down how it ended; while the disk is full or another program holds the journal, for up to [`LAST_PATIENCE`].
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub(crate) fn end(mut self, state: State, kept: &StoredReport) -> Result<(), Problem> {
        let verdict = serde_json::to_value(kept).map_err(|error| Problem::internal(error.to_string()))?;
        let (ended_us, deadline) = (clock::unix_us(), clock::monotonic_ns() + LAST_PATIENCE.as_nanos() as u64);
        loop {
            let error = match self.journal.finish_experiment(&self.id, state, ended_us, Some(&verdict)) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let may_pass = matches!(error, JournalError::Full { .. } | JournalError::Busy { .. });
            if !may_pass || clock::monotonic_ns() >= deadline {
                return Err(problem(&error));
            }
            poll::wait_readable(&[], Some(BETWEEN_TRIES)).map_err(|error| Problem::internal(error.to_string()))?;
        }
    }
}

fn config_of(stored: &StoredExperiment) -> Option<TrafficConfig> {
    let ExperimentConfig::Traffic(config) = &stored.config else { return None };
    config.traffic.clone().and_then(|config| serde_json::from_value(config).ok())
}

fn kept(journal: &dyn Journal, stored: &StoredExperiment) -> Result<Option<StoredReport>, Problem> {
    let last = || {
        let seen = journal.sightings(KIND, Some(&stored.id.to_lowercase()), 1).map_err(|error| problem(&error))?;
        Ok::<_, Problem>(seen.into_iter().next_back().map(|sighting| sighting.found))
    };
    let found = match &stored.verdict {
        Some(verdict) => Some(verdict.clone()),
        None => last()?,
    };
    Ok(found.and_then(|value| serde_json::from_value(value).ok()))
}

/// The experiment that is meant.
fn find(journal: &dyn Journal, named: Option<&str>) -> Result<StoredExperiment, Problem> {
    let nothing = || {
        Problem::usage("there is no experiment on connections in the journal")
            .hint("windtunnel traffic start --port 443 --levels initcwnd=10,32 --dry-run")
    };
    let id = match named {
        Some(id) if id != "last" => id.to_owned(),
        _ => {
            let newest = Filter { tunnel: Some(KIND.to_owned()), limit: Some(1), ..Filter::default() };
            let list = journal.list(&newest).map_err(|error| problem(&error))?;
            list.into_iter().next().ok_or_else(nothing)?.id
        }
    };
    journal.load(&id).map_err(|error| problem(&error))
}

/// What was found by an experiment of the journal, also by one that is under way or died.
///
/// # Errors
/// A [`Problem`] that says which experiments there are.
pub fn report(request: &TrafficReportRequest) -> Result<TrafficReport, Problem> {
    let journal = open_to_read(request.journal.as_deref())?;
    let stored = find(&*journal, request.experiment.as_deref())?;
    report_of(&*journal, &stored)
}

/// The same of an experiment that is at hand.
///
/// # Errors
/// A [`Problem`] that says what else it is.
pub fn report_of(journal: &dyn Journal, stored: &StoredExperiment) -> Result<TrafficReport, Problem> {
    written_down(journal, stored).map(|one| one.report)
}

/// An experiment of the journal of which something is written down.
///
/// # Errors
/// A [`Problem`] that says which experiments there are, or that it is another one.
pub(crate) fn finished(journal: Option<&Path>, named: &str) -> Result<FinishedExperiment, Problem> {
    let journal = open(journal)?;
    let stored = find(&journal, Some(named))?;
    written_down(&journal, &stored)
}

fn written_down(journal: &dyn Journal, stored: &StoredExperiment) -> Result<FinishedExperiment, Problem> {
    let config = config_of(stored).ok_or_else(|| {
        Problem::usage(format!("{} is no experiment on a server's connections", stored.id))
            .hint(format!("windtunnel report {}", stored.id))
    })?;
    let StoredReport { mut report, servers, tells_end, .. } =
        kept(journal, stored)?.ok_or_else(|| nothing_written(stored))?;
    // One that was killed has written down what was so while it ran.
    if stored.state != State::Running && (tells_end || report.no_data.is_some()) {
        report.end(&config);
    }
    Ok(FinishedExperiment { id: stored.id.clone(), config, report, servers })
}

fn nothing_written(stored: &StoredExperiment) -> Problem {
    let id = &stored.id;
    if stored.state == State::Running {
        return Problem::usage(format!("{id} has written nothing down yet")).hint("wait a few seconds");
    }
    Problem::usage(format!("{id} ended before it had written anything down")).hint("begin it again")
}

fn running(journal: &SqliteJournal) -> Result<Vec<StoredExperiment>, Problem> {
    let filter = Filter { tunnel: Some(KIND.to_owned()), state: Some(State::Running), ..Filter::default() };
    let list = journal.list(&filter).map_err(|error| problem(&error))?;
    list.iter().map(|summary| journal.load(&summary.id).map_err(|error| problem(&error))).collect()
}

/// The experiments under way.
///
/// # Errors
/// A [`Problem`] that names the journal.
pub fn status(journal: Option<&Path>) -> Result<TrafficList, Problem> {
    let journal = open(journal)?;
    let now = clock::unix_us();
    let of = |stored: &StoredExperiment| {
        let kept = kept(&journal, stored)?;
        let elapsed = now.saturating_sub(stored.started_unix_us).max(0);
        Ok::<_, Problem>(TrafficStatus {
            id: stored.id.clone(),
            ports: config_of(stored).map(|config| config.ports).unwrap_or_default(),
            arms: stored.arms.iter().map(|arm| arm.label.clone()).collect(),
            elapsed_s: elapsed as f64 / 1e6,
            tally: kept.as_ref().map(|kept| kept.tally.clone()),
            holdback: kept.as_ref().and_then(|kept| kept.report.holdback.clone()),
            headline: kept.map(|kept| kept.headline),
        })
    };
    let running: Vec<TrafficStatus> = running(&journal)?.iter().map(of).collect::<Result<_, _>>()?;
    let elsewhere = elsewhere(|id| running.iter().any(|one| one.id == id));
    let settings_left = HostAccess::open(None, None).is_ok_and(|mut host| host.has_unwatched());
    let rules_left = connections::routes_left();
    Ok(TrafficList { schema_version: SCHEMA_VERSION, running, elsewhere, rules_left, settings_left })
}

/// The experiments under way in this network namespace that aren't known here.
fn elsewhere(is_known: impl Fn(&str) -> bool) -> Vec<ClaimedPorts> {
    claims::under_way().into_iter().filter(|one| !is_known(&one.id)).collect()
}

/// Takes back the host's settings of an experiment by slots that was killed with its guards; whether there were any.
///
/// # Errors
/// A [`Problem`] that says what can't be put back.
pub(crate) fn put_back_settings() -> Result<bool, Problem> {
    // Who may not read the changes of this host hasn't made any.
    let Ok(mut host) = HostAccess::open(None, None) else { return Ok(false) };
    if host.has_unwatched() { host.put_back_unwatched() } else { Ok(false) }
}

/// Ends one experiment, or all that are under way, and waits until they have. Where all are meant, what one left that was killed
/// with its guard is removed, too.
///
/// # Errors
/// A [`Problem`] that says what isn't under way or doesn't end.
pub fn stop(request: &TrafficReportRequest) -> Result<TrafficStop, Problem> {
    let journal = open(request.journal.as_deref())?;
    let mut running = running(&journal)?;
    if let Some(named) = &request.experiment {
        running = named_by(running, named, request.whole_name)?;
        if running.is_empty() {
            let problem = Problem::usage(format!("{named} isn't under way"));
            return Err(match elsewhere(|id| !id.starts_with(named.as_str())).as_slice() {
                [] => problem.hint("windtunnel traffic status"),
                _ => problem.because("it is of another journal").hint("name that with --journal"),
            });
        }
    }
    let mut stopped = Vec::new();
    for stored in running {
        let owner = &stored.owner;
        let identity =
            ProcessIdentity { pid: owner.pid, start_ticks: owner.start_ticks, boot_id: owner.boot_id.clone() };
        if !identity.is_alive() {
            return Err(Problem::environment(format!("{} runs where this process can't see it", stored.id))
                .because("it was started in another container or process namespace")
                .hint("stop it there, with Ctrl-C"));
        }
        process::signal(owner.pid, SIGINT).map_err(|error| {
            Problem::environment(format!("{} can't be stopped: {error}", stored.id)).hint("run this as who started it")
        })?;
        let deadline = clock::monotonic_ns() + END_WITHIN.as_nanos() as u64;
        while identity.is_alive() && Claim::is_held(journal.path(), &stored.id).is_some() {
            if clock::monotonic_ns() > deadline {
                return Err(Problem::environment(format!("{} hasn't ended within 30 s", stored.id))
                    .hint(format!("kill -9 {}: nothing of it stays attached", owner.pid)));
            }
            poll::wait_readable(&[], Some(Duration::from_millis(20)))
                .map_err(|error| Problem::internal(error.to_string()))?;
        }
        stopped.push(stored.id);
    }
    let elsewhere = elsewhere(|id| stopped.iter().any(|one| one == id));
    let rules_removed = request.experiment.is_none() && connections::routes_left();
    if rules_removed {
        connections::clear_routes().map_err(|error| Problem::environment(format!("routing rules: {error}")))?;
    }
    let settings_put_back = request.experiment.is_none() && put_back_settings()?;
    Ok(TrafficStop { schema_version: SCHEMA_VERSION, stopped, elsewhere, rules_removed, settings_put_back })
}

/// The one of these whose name this is or, unless only whole names are meant, begins so; none where there is none.
///
/// # Errors
/// A usage [`Problem`] where several begin so.
fn named_by(all: Vec<StoredExperiment>, named: &str, whole: bool) -> Result<Vec<StoredExperiment>, Problem> {
    let is_whole = whole || all.iter().any(|stored| stored.id == named);
    let is_meant = |stored: &StoredExperiment| stored.id == named || !is_whole && stored.id.starts_with(named);
    let meant: Vec<StoredExperiment> = all.into_iter().filter(is_meant).collect();
    if meant.len() > 1 {
        let candidates = meant.into_iter().map(|stored| stored.id).collect();
        let ambiguous = JournalError::Ambiguous { key: named.to_owned(), candidates };
        return Err(problem(&ambiguous).hint("windtunnel traffic status"));
    }
    Ok(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_end_is_named_by_no_beginning_that_several_have() {
        let running = || {
            let begun = |id: &&str| NewExperiment::new(*id, "port-443", KIND).begun();
            ["2026-a", "2026-b", "2026-b-2"].iter().map(begun).collect::<Vec<_>>()
        };
        let named = |name: &str, whole| named_by(running(), name, whole);
        let ids = |name: &str, whole| -> Vec<String> {
            named(name, whole).unwrap().into_iter().map(|stored| stored.id).collect()
        };
        assert_eq!(ids("2026-a", false), ["2026-a"]);
        assert_eq!(ids("2026-b", false), ["2026-b"], "a whole name is one, though others begin so");
        assert_eq!(ids("2026-b-", false), ["2026-b-2"]);
        for nothing in [ids("2025", false), ids("2026-b-", true), ids("2026", true)] {
            assert!(nothing.is_empty(), "{nothing:?}");
        }
        let problem = named("2026", false).unwrap_err().to_string();
        assert!(problem.contains("\"2026\" may be any of 2026-a, 2026-b, 2026-b-2"), "{problem}");
    }

    #[test]
    fn one_waits_only_for_what_is_under_way() {
        let running = NewExperiment::new("traffic-1", "port-443", KIND).begun();
        assert_eq!(nothing_written(&running).hint.as_deref(), Some("wait a few seconds"));
        let killed = nothing_written(&StoredExperiment { state: State::Aborted, ..running });
        assert!(killed.what.contains("ended before") && killed.hint.as_deref() == Some("begin it again"), "{killed}");
    }
}
