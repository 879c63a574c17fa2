//! A change of settings on one host of a fleet: applied so that its guard takes it back, confirmed only where new connections still
//! come about, taken back when that is ordered. What was done is written down beside the journal before and after, so that whatever
//! ends the agent, the next one knows.

use crate::policy::Policy;
use crate::waves::RolloutSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_fleet::{FleetIdentity, RolloutOrder as Order, RolloutPhase as Phase, RolloutTask};
use wt_problem::Problem;
use wt_setup::HostAccess;
use wt_setup::settings::{ApplyRequest, ChangeRequest, Confirmation, reaches_beyond};

/// Why nothing is taken back.
const UNKNOWN: &str = "this agent doesn't know which change of this host that was, so it can't take it back: \
                       windtunnel settings history there, as the agent's user and with its XDG_STATE_HOME, lists them, and \
                       windtunnel settings undo takes one back (the guide on fleets has the commands)";
/// How long a server that is to be reached has to answer.
const REACH: Duration = Duration::from_secs(10);

/// What this host did of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "snake_case")]
enum ChangeStep {
    /// It began to apply it; whether it finished isn't known.
    Began {
        /// The latest change of the host before, 0 if there was none; nothing where an older program noted it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u32>,
    },
    /// It is in force as this change of the host, to be confirmed.
    Applied { change: String },
    /// It stays, as this change of the host; as none where the host was so anyway.
    Confirmed { change: Option<String> },
    /// It isn't in force any more, and why.
    Over { why: String },
}

/// The changes that a fleet made on this host.
#[derive(Debug)]
pub(crate) struct HostChanges {
    file: PathBuf,
    /// The address of the fleet's server.
    server: String,
    /// The fleet whose numbers they have; nothing where its server is too old to say.
    pub(crate) fleet: Option<FleetIdentity>,
}

/// What is said of a change, and why.
type PhaseReport = Option<(Phase, String)>;

fn said(phase: Phase, why: impl Into<String>) -> Result<PhaseReport, Problem> {
    Ok(Some((phase, why.into())))
}

impl HostChanges {
    /// Those that belong to a journal.
    pub(crate) fn beside(journal: &Path, server: String) -> Self {
        let mut file = journal.as_os_str().to_owned();
        file.push(".changes");
        Self { file: file.into(), server, fleet: None }
    }

    /// Does what is ordered, or looks after what is under way; what is to be said of it, if there is something.
    ///
    /// # Errors
    /// A [`Problem`] where this host can't write down what it does.
    pub(crate) fn carry_out(&self, task: &RolloutTask, policy: &Policy) -> Result<PhaseReport, Problem> {
        let done = self.done(task.number)?;
        match (task.ordered, task.phase, done) {
            (Order::Undo, ..) => self.undo(task),
            (Order::Apply, Phase::Applying, None) => self.apply(task, policy),
            (_, Phase::Applying, Some(ChangeStep::Began { after })) => match begun_since(&mut host()?, after)? {
                BegunSince::Waits => Ok(None),
                BegunSince::Stands => said(Phase::Applied, UNKNOWN),
                BegunSince::Nothing => said(Phase::Failed, "the agent ended while it applied it; it isn't in force"),
            },
            (Order::Confirm, Phase::Applied, Some(ChangeStep::Applied { change })) => self.confirm(task, &change),
            (_, Phase::Applying, Some(ChangeStep::Applied { change })) => Ok(self.gone(task, &change)?.or(applied())),
            (_, _, Some(ChangeStep::Applied { change })) => self.gone(task, &change),
            // Somebody here was faster: the server hears it once it has watched this host for long enough.
            (Order::Apply, Phase::Applied, Some(ChangeStep::Confirmed { .. })) => Ok(None),
            (_, Phase::Applying | Phase::Applied, Some(ChangeStep::Confirmed { .. })) => said(Phase::Confirmed, ""),
            (_, Phase::Applying | Phase::Applied, Some(ChangeStep::Over { why })) => said(Phase::Undone, why),
            _ => Ok(None),
        }
    }

    /// Takes back what nobody will confirm any more, since the agent ends. Of what isn't over then, the next one hears.
    ///
    /// # Errors
    /// A [`Problem`] where that can't be.
    pub(crate) fn leave(&self) -> Result<(), Problem> {
        let applied = self.read()?.into_iter().filter_map(|(key, done)| match done {
            ChangeStep::Applied { change } => Some((key, change)),
            _ => None,
        });
        // One that can't be taken back keeps no other in force.
        applied.map(|(key, change)| self.leave_one(key, change)).fold(Ok(()), Result::and)
    }

    fn leave_one(&self, key: String, change: String) -> Result<(), Problem> {
        let mut host = host()?;
        let mut phase = phase_of(&mut host, &change)?;
        if phase == "applied" {
            host.undo(Some(&change))?;
            phase = phase_of(&mut host, &change)?;
        }
        left_in(&phase, change).map_or(Ok(()), |done| self.note(key, done))
    }

    fn apply(&self, task: &RolloutTask, policy: &Policy) -> Result<PhaseReport, Problem> {
        let spec: RolloutSpec = match serde_json::from_str(&task.spec) {
            Ok(spec) => spec,
            Err(error) => return said(Phase::Refused, format!("the change isn't understood: {error}")),
        };
        if let Some(why) = policy.change_refusal(&spec) {
            return said(Phase::Refused, why);
        }
        let change = ChangeRequest { settings: spec.settings, to: Some(spec.to), ..ChangeRequest::default() };
        let planned = host().and_then(|mut host| Ok((host.plan(&change)?, host)));
        let (plan, mut host) = match planned {
            Ok(planned) => planned,
            Err(problem) => return said(Phase::Failed, problem.what),
        };
        if reaches_beyond(&plan) && !policy.host_wide {
            return said(Phase::Refused, "it would change settings of this whole host, which may not be");
        }
        if let Some(left_out) = plan.skipped.first() {
            return said(Phase::Failed, format!("{}: {}", left_out.key, left_out.text));
        }
        let key = self.key(task.number);
        if plan.is_empty() {
            self.note(key, ChangeStep::Confirmed { change: None })?;
            return said(Phase::Confirmed, "it was so already");
        }
        let after = Some(numbers(&mut host)?.first().map_or(0, |(number, _)| *number));
        self.note(key.clone(), ChangeStep::Began { after })?;
        let confirmation = Confirmation { within: spec.pace.within, at_once: false };
        let failed = match host.apply(&ApplyRequest { change, confirmation }) {
            Ok(answer) => {
                let change = answer.applied.id.to_string();
                let left = answer.applied.revert.filter(|revert| !revert.done).map(|revert| revert.errors.join("; "));
                match (answer.problem, left) {
                    (None, _) => {
                        self.note(key, ChangeStep::Applied { change: change.clone() })?;
                        return match unreachable(&spec.reach) {
                            None => Ok(applied()),
                            Some(why) => self.take_back(task, &change, why),
                        };
                    }
                    (Some(problem), Some(left)) => {
                        self.note(key, ChangeStep::Applied { change })?;
                        return said(Phase::Applied, stuck(&problem.what, &left));
                    }
                    (Some(problem), None) => problem,
                }
            }
            Err(problem) => problem,
        };
        self.note(key, ChangeStep::Over { why: failed.what.clone() })?;
        said(Phase::Failed, failed.what)
    }

    /// Makes it stay, if what is to be reached still is.
    fn confirm(&self, task: &RolloutTask, change: &str) -> Result<PhaseReport, Problem> {
        if let Some(gone) = self.gone(task, change)? {
            return Ok(Some(gone));
        }
        let reach = serde_json::from_str(&task.spec).map(|spec: RolloutSpec| spec.reach).unwrap_or_default();
        if let Some(why) = unreachable(&reach) {
            return self.take_back(task, change, why);
        }
        match host()?.confirm(Some(change)) {
            Ok(_) => {
                self.note(self.key(task.number), ChangeStep::Confirmed { change: Some(change.to_owned()) })?;
                said(Phase::Confirmed, "")
            }
            Err(problem) => match self.gone(task, change)? {
                Some(gone) => Ok(Some(gone)),
                None => self.take_back(task, change, problem.what),
            },
        }
    }

    /// Takes back what isn't well here.
    fn take_back(&self, task: &RolloutTask, change: &str, why: String) -> Result<PhaseReport, Problem> {
        if let Err(problem) = host()?.undo(Some(change)) {
            // Its guard goes on trying; until then it may be in force.
            return said(Phase::Applied, stuck(&why, &problem.what));
        }
        self.note(self.key(task.number), ChangeStep::Over { why: why.clone() })?;
        said(Phase::Failed, why)
    }

    /// What is to be said where a change that was applied doesn't wait any more: it isn't in force, not as it should be, or for good.
    fn gone(&self, task: &RolloutTask, change: &str) -> Result<PhaseReport, Problem> {
        let report = report_of(&phase_of(&mut host()?, change)?);
        match &report {
            Some((Phase::Reverted, why)) => {
                self.note(self.key(task.number), ChangeStep::Over { why: why.clone() })?;
            }
            Some((Phase::Confirmed, _)) => {
                self.note(self.key(task.number), ChangeStep::Confirmed { change: Some(change.to_owned()) })?;
                if (task.ordered, task.phase) == (Order::Apply, Phase::Applied) {
                    return Ok(None);
                }
            }
            _ => {}
        }
        Ok(report)
    }

    fn undo(&self, task: &RolloutTask) -> Result<PhaseReport, Problem> {
        let key = self.key(task.number);
        let change = match self.done(task.number)? {
            Some(ChangeStep::Applied { change } | ChangeStep::Confirmed { change: Some(change) }) => change,
            // Its guard is at it; whose change it is that stands isn't known.
            Some(ChangeStep::Began { after }) => match begun_since(&mut host()?, after)? {
                BegunSince::Waits => return Ok(None),
                BegunSince::Stands => return said(task.phase, UNKNOWN),
                BegunSince::Nothing => return self.called_off(key),
            },
            // It is in force somewhere here: this agent was given another journal, or another address of its server.
            None if matches!(task.phase, Phase::Applied | Phase::Confirmed) => return said(task.phase, UNKNOWN),
            _ => return self.called_off(key),
        };
        let mut host = host()?;
        let phase = phase_of(&mut host, &change)?;
        if !is_over(&phase)
            && let Err(problem) = host.undo(Some(&change))
        {
            return said(task.phase, format!("it can't be taken back: {}", problem.what));
        }
        self.note(key, ChangeStep::Over { why: "it was taken back".to_owned() })?;
        said(Phase::Undone, "")
    }

    /// Sees to it that an order to apply it that comes late finds that it is over.
    fn called_off(&self, key: String) -> Result<PhaseReport, Problem> {
        self.note(key, ChangeStep::Over { why: "it was called off".to_owned() })?;
        said(Phase::Undone, "")
    }

    /// What was done of a change; also where it was written down before fleets had an id.
    fn done(&self, number: i64) -> Result<Option<ChangeStep>, Problem> {
        let mut all = self.read()?;
        let own = all.remove(&self.key(number));
        let may_be_older = self.fleet.as_ref().is_some_and(|fleet| number <= fleet.changes);
        Ok(own.or_else(|| all.remove(&self.older_key(number)).filter(|_| may_be_older)))
    }

    fn key(&self, number: i64) -> String {
        self.fleet.as_ref().map_or_else(|| self.older_key(number), |fleet| format!("{}#{number}", fleet.id))
    }

    fn older_key(&self, number: i64) -> String {
        format!("{}#{number}", self.server)
    }

    fn read(&self) -> Result<BTreeMap<String, ChangeStep>, Problem> {
        match std::fs::read(&self.file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| self.problem(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(self.problem(&error)),
        }
    }

    fn note(&self, key: String, done: ChangeStep) -> Result<(), Problem> {
        let mut all = self.read()?;
        all.insert(key, done);
        let text = serde_json::to_string(&all).map_err(|error| self.problem(&error))?;
        wt_setup::files::write_whole(&self.file, text.as_bytes()).map_err(|error| self.problem(&error.source))
    }

    fn problem(&self, error: &dyn std::fmt::Display) -> Problem {
        Problem::environment(format!("{}: {error}", self.file.display()))
            .because("an agent writes down which changes of settings it made")
            .hint("see to it that this agent can write there")
    }
}

fn applied() -> PhaseReport {
    Some((Phase::Applied, String::new()))
}

/// Why a change isn't well here, and why it is in force all the same.
fn stuck(why: &str, left: &str) -> String {
    format!("{why}; and it can't be taken back: {left}")
}

fn host() -> Result<HostAccess, Problem> {
    HostAccess::open(None, None)
}

/// How far a change of this host is; `gone` where it isn't known any more.
fn phase_of(host: &mut HostAccess, change: &str) -> Result<String, Problem> {
    let all = numbers(host)?;
    let found = all.into_iter().find(|(number, _)| number.to_string() == change);
    Ok(found.map_or_else(|| "gone".to_owned(), |(_, phase)| phase))
}

/// The changes of this host, the latest first, and how far each is; one whose files are damaged may be in force.
fn numbers(host: &mut HostAccess) -> Result<Vec<(u32, String)>, Problem> {
    let phase = |phase: Option<&str>| phase.unwrap_or("unreadable").to_owned();
    let rows = host.history()?.changes.into_iter();
    Ok(rows.filter_map(|row| Some((row.id.to_string().parse().ok()?, phase(row.phase)))).collect())
}

/// What stands here of the changes that were begun after one.
enum BegunSince {
    /// One waits to be confirmed.
    Waits,
    /// One is in force for good, or can't be taken back.
    Stands,
    /// Nothing is in force.
    Nothing,
}

fn begun_since(host: &mut HostAccess, after: Option<u32>) -> Result<BegunSince, Problem> {
    if host.pending().pending.is_some() {
        return Ok(BegunSince::Waits);
    }
    let stands = |(number, phase): &(u32, String)| after.is_some_and(|after| *number > after) && !is_over(phase);
    Ok(if numbers(host)?.iter().any(stands) { BegunSince::Stands } else { BegunSince::Nothing })
}

/// What is noted of a change that was applied, where the agent leaves it in this phase of the host's; nothing where the next one has to look
/// after it.
fn left_in(phase: &str, change: String) -> Option<ChangeStep> {
    match phase {
        "confirmed" => Some(ChangeStep::Confirmed { change: Some(change) }),
        over if is_over(over) => {
            Some(ChangeStep::Over { why: "the agent was stopped before it was confirmed".to_owned() })
        }
        _ => None,
    }
}

/// Whether nothing of a change in this phase of the host's is in force.
fn is_over(phase: &str) -> bool {
    ["reverted", "undone", "lapsed", "gone", "never-begun"].contains(&phase)
}

/// What is to be said of a change that was applied and is in this phase of the host's; nothing while it waits to be confirmed.
fn report_of(phase: &str) -> PhaseReport {
    match phase {
        "applied" | "confirming" => None,
        "confirmed" => Some((Phase::Confirmed, String::new())),
        over if is_over(over) => Some((Phase::Reverted, format!("the change is {over} here"))),
        // Its guard is at it, or couldn't.
        other => Some((Phase::Applied, format!("the change is {other} here, so it may still be in force"))),
    }
}

/// Why one of these servers takes no new connection, if one doesn't.
fn unreachable(servers: &[String]) -> Option<String> {
    servers.iter().find_map(|server| {
        let addresses = match server.to_socket_addrs() {
            Ok(addresses) => addresses,
            Err(error) => return Some(format!("{server} has no address with it: {error}")),
        };
        let mut why = "it has no address".to_owned();
        for address in addresses {
            match TcpStream::connect_timeout(&address, REACH) {
                Ok(_) => return None,
                Err(error) => why = error.to_string(),
            }
        }
        Some(format!("{server} takes no new connection with it: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(ordered: Order, phase: Phase) -> RolloutTask {
        RolloutTask { number: 7, name: "n".to_owned(), spec: "{}".to_owned(), ordered, phase }
    }

    #[test]
    fn what_was_done_is_known_to_the_next_agent_and_an_order_that_was_called_off_is_never_applied() {
        let folder = tempfile::tempdir().unwrap();
        let changes = || HostChanges::beside(&folder.path().join("j"), "postgresql://s/d".to_owned());
        let policy = Policy::parse("server = \"postgresql://s/d\"\nchanges = [\"rwin\"]").unwrap();
        // It may not: refused, and nothing was begun.
        let refused = changes().carry_out(&task(Order::Apply, Phase::Applying), &policy).unwrap().unwrap();
        assert_eq!(refused.0, Phase::Refused, "{}", refused.1);
        assert_eq!(changes().read().unwrap(), BTreeMap::new());
        // It is called off before it begins.
        assert_eq!(
            changes().carry_out(&task(Order::Undo, Phase::Applying), &policy).unwrap(),
            Some((Phase::Undone, String::new()))
        );
        let late = changes().carry_out(&task(Order::Apply, Phase::Applying), &policy).unwrap().unwrap();
        assert_eq!(late, (Phase::Undone, "it was called off".to_owned()));
        // Numbers are a server's own, and where it says so a fleet's: one that was made anew has none of the changes from before.
        let of = |server: &str, fleet: Option<(&str, i64)>| {
            let fleet = fleet.map(|(id, changes)| FleetIdentity { id: id.to_owned(), changes });
            HostChanges { fleet, ..HostChanges::beside(&folder.path().join("j"), server.to_owned()) }
        };
        assert_eq!(of("postgresql://t/d", None).done(7).unwrap(), None);
        assert_eq!(of("postgresql://s/d", Some(("anew", 0))).done(7).unwrap(), None);
        // One that got an id afterwards still has them; what it does from then on is its own, whatever the address is.
        let now = of("postgresql://s/d", Some(("f", 7)));
        assert!(matches!(now.done(7).unwrap(), Some(ChangeStep::Over { .. })));
        let began = ChangeStep::Began { after: Some(4) };
        now.note(now.key(8), began.clone()).unwrap();
        assert_eq!(of("postgresql://s/d?port=1", Some(("f", 7))).done(8).unwrap(), Some(began));
        assert_eq!(of("postgresql://s/d", Some(("g", 9))).done(8).unwrap(), None);
        // Nobody says that it is taken back who doesn't know what it is.
        for phase in [Phase::Applied, Phase::Confirmed] {
            let lost = HostChanges::beside(&folder.path().join("k"), "postgresql://s/d".to_owned());
            let told = lost.carry_out(&task(Order::Undo, phase), &policy).unwrap();
            assert_eq!(told, Some((phase, UNKNOWN.to_owned())));
            assert_eq!(lost.read().unwrap(), BTreeMap::new());
        }
        // What was confirmed and not heard of is said again.
        changes().note(changes().key(7), ChangeStep::Confirmed { change: None }).unwrap();
        let again = changes().carry_out(&task(Order::Confirm, Phase::Applied), &policy).unwrap();
        assert_eq!(again, Some((Phase::Confirmed, String::new())));
        let watched = changes().carry_out(&task(Order::Apply, Phase::Applied), &policy).unwrap();
        assert_eq!(watched, None, "the server believes it only once it has ordered it");
        // As an older program noted it.
        assert_eq!(
            serde_json::from_str::<ChangeStep>(r#"{"did":"began"}"#).unwrap(),
            ChangeStep::Began { after: None }
        );
        std::fs::write(folder.path().join("j.changes"), "{").unwrap();
        assert!(
            changes().carry_out(&task(Order::Apply, Phase::Applying), &policy).is_err(),
            "it isn't known what was done"
        );
    }

    #[test]
    fn only_what_isnt_in_force_any_more_counts_as_taken_back_by_its_guard() {
        let left = |phase: &str| left_in(phase, "3".to_owned());
        for waits in ["applied", "confirming"] {
            assert_eq!((report_of(waits), left(waits)), (None, None));
        }
        for over in ["reverted", "undone", "lapsed", "gone", "never-begun"] {
            assert_eq!(report_of(over).unwrap().0, Phase::Reverted, "{over}");
            assert!(matches!(left(over), Some(ChangeStep::Over { .. })), "{over}");
        }
        for open in ["revert-failed", "reverting", "undoing", "forgotten", "unreadable"] {
            let (phase, why) = report_of(open).unwrap();
            assert!(phase == Phase::Applied && why.contains(open) && why.contains("in force"), "{open}: {why}");
            assert_eq!(left(open), None, "{open}: the next agent looks after it");
        }
        // Whoever confirmed it: it stays.
        assert_eq!(report_of("confirmed"), Some((Phase::Confirmed, String::new())));
        assert_eq!(left("confirmed"), Some(ChangeStep::Confirmed { change: Some("3".to_owned()) }));
    }

    #[test]
    fn a_server_is_reached_by_a_new_connection_or_it_is_said_why_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap().to_string();
        assert_eq!(unreachable(std::slice::from_ref(&open)), None);
        drop(listener);
        assert!(unreachable(std::slice::from_ref(&open)).unwrap().contains(&open));
        assert!(unreachable(&["no port".to_owned()]).unwrap().contains("no address"));
    }
}
