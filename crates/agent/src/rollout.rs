//! `windtunnel fleet apply`: what the owner asks, and who drives a change through its waves.

use crate::agent::{AgentEvent, Sink, idle};
use crate::owner::{connected, problem};
use crate::waves::{RolloutSpec, WavePace, WaveStep, back, forward};
use crate::words::on_one_line;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wt_fleet::{FleetAdmin, FleetError, Rollout, RolloutHost, RolloutPhase};
use wt_problem::Problem;
use wt_setup::settings::ChangeRequest;
use wt_trial::Cancel;
use wt_units::HostPort;

/// How often the driver looks at its hosts.
const LOOK: Duration = Duration::from_millis(500);
/// How long a change may wait for its confirmation on a host.
const WITHIN: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(7 * 86_400);

/// A change of settings for a whole fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetApplyRequest {
    /// The fleet's server.
    pub server: String,
    /// What the change is called; one of that name goes on.
    pub name: String,
    /// What is changed, and where; an experiment is one of the fleet's journal.
    pub change: ChangeRequest,
    /// The hosts, in the order of their waves; none means all, by name.
    pub on: Vec<String>,
    /// How many of them try it first.
    pub canaries: usize,
    /// How many follow at once.
    pub wave: usize,
    /// How long each host is watched before it confirms.
    #[serde(with = "wt_units::serde_duration")]
    pub watch: Duration,
    /// A host's guard takes it back unless it is confirmed in so long; nothing means `watch` and 5 minutes.
    #[serde(with = "wt_setup::duration_or_none")]
    pub within: Option<Duration>,
    /// How long a host may take to ask for what it is to do.
    #[serde(with = "wt_units::serde_duration")]
    pub patience: Duration,
    /// Servers, `HOST:PORT`, which must take a new connection from each host that has it; that of the verdict besides.
    pub reach: Vec<String>,
}

impl Default for FleetApplyRequest {
    fn default() -> Self {
        Self {
            server: String::new(),
            name: String::new(),
            change: ChangeRequest::default(),
            on: Vec::new(),
            canaries: 1,
            wave: 10,
            watch: Duration::from_secs(600),
            within: None,
            patience: Duration::from_secs(900),
            reach: Vec::new(),
        }
    }
}

impl FleetApplyRequest {
    /// Whether it says nothing of a change but what it is called.
    fn names_only(&self) -> bool {
        let bare = Self { server: self.server.clone(), name: self.name.clone(), ..Self::default() };
        *self == bare
    }
}

/// Which change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetUndoRequest {
    /// The fleet's server.
    pub server: String,
    /// What it is called.
    pub name: String,
}

/// How a change ended, or how it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetApplyAnswer {
    /// 1.
    pub schema_version: u32,
    /// It, with its hosts.
    #[serde(flatten)]
    pub rollout: Rollout,
    /// Hosts that may still have it, since they don't ask or can't; they are told to take it back when they do.
    pub silent: Vec<String>,
}

impl FleetApplyAnswer {
    /// Whether it is where it was asked for: in force everywhere it may be, or taken back everywhere.
    #[must_use]
    pub fn is_as_wanted(&self, undo: bool) -> bool {
        self.rollout.state == if undo { "undone" } else { "done" } && self.silent.is_empty()
    }

    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        let Rollout { name, state, reason, hosts, .. } = &self.rollout;
        let count = |phase: RolloutPhase| hosts.iter().filter(|host| host.phase == phase).count();
        let (have, all) = (count(RolloutPhase::Confirmed), hosts.len());
        let because = if reason.is_empty() { String::new() } else { format!(" ({})", on_one_line(reason)) };
        let is_untried = hosts.iter().all(|host| is_untried(host.phase));
        let mut text = match state.as_str() {
            "done" => format!("{name}: {have} of {all} hosts have it for good."),
            "undone" if is_untried => format!("{name}: not begun, nothing was changed anywhere{because}."),
            "undone" if self.silent.is_empty() => format!("{name}: taken back everywhere{because}."),
            "undone" => format!("{name}: not taken back everywhere{because}."),
            _ => {
                format!("{name}: not at its end yet{because}. What isn't confirmed is taken back by each host's guard.")
            }
        };
        for host in hosts.iter().filter(|host| !host.reason.is_empty()) {
            text.push_str(&format!("\n  {}: {}: {}", host.agent, host.phase.name(), on_one_line(&host.reason)));
        }
        if !self.silent.is_empty() {
            let silent = self.silent.join(", ");
            text.push_str(&format!("\n  {silent}: may still have it; told to take it back whenever they ask"));
        }
        text
    }
}

/// Takes a change of settings through a fleet in waves, and back everywhere if one host isn't well with it.
///
/// # Errors
/// A [`Problem`]; of what was begun, hosts that didn't confirm take it back by themselves.
pub fn apply(request: &FleetApplyRequest, events: Sink<'_>, cancel: &Cancel) -> Result<FleetApplyAnswer, Problem> {
    let mut admin = connected(&request.server)?;
    let begun = admin.rollouts(Some(&request.name)).map_err(|error| problem(&error))?;
    if begun.is_empty() {
        begin(request, &mut admin)?;
    } else if !request.names_only() {
        return Err(Problem::usage(format!("there is a change called {} already", request.name))
            .hint("choose another name; with nothing but its name and the server it goes on as it was begun"));
    }
    drive(&request.server, &request.name, admin, events, cancel)
}

/// Takes a change back wherever it is.
///
/// # Errors
/// A [`Problem`].
pub fn undo(request: &FleetUndoRequest, events: Sink<'_>, cancel: &Cancel) -> Result<FleetApplyAnswer, Problem> {
    let mut admin = connected(&request.server)?;
    let found =
        named(&mut admin, &request.name).map_err(|error| problem(&error))?.ok_or_else(|| unknown(&request.name))?;
    if found.state != "undoing" {
        let any = ["running", "done", "undone"];
        admin.set_rollout(found.number, &any, "undoing", "asked for").map_err(|error| problem(&error))?;
    }
    drive(&request.server, &request.name, admin, events, cancel)
}

/// Whether a host in this phase never tried it.
fn is_untried(phase: RolloutPhase) -> bool {
    matches!(phase, RolloutPhase::Untouched | RolloutPhase::Refused)
}

fn unknown(name: &str) -> Problem {
    Problem::usage(format!("no change of this fleet is called {name}"))
        .hint("windtunnel fleet status URL lists them; a new one needs settings or --verdict")
}

fn begin(request: &FleetApplyRequest, admin: &mut FleetAdmin) -> Result<(), Problem> {
    let FleetApplyRequest { name, watch, patience, .. } = request;
    if request.change.settings.is_empty() && request.change.verdict.is_none() {
        return Err(unknown(name));
    }
    if name.is_empty() || name.len() > 60 || name.contains(|c: char| c.is_whitespace() || c == '/') {
        return Err(Problem::usage("a change needs a name of at most 60 letters, without spaces and slashes"));
    }
    check_hosts(request)?;
    let within = request.within.unwrap_or(*watch + Duration::from_secs(300));
    if within <= *watch || !WITHIN.contains(&within) {
        return Err(Problem::usage(
            "a host's guard has to wait for longer than the host is watched, and 7 days at most",
        )
        .hint("--confirm-within 15min --watch 10min"));
    }
    let journal = request.change.journal.clone().or_else(|| Some(request.server.clone().into()));
    let written = ChangeRequest { journal, ..request.change.clone() }.written_out()?;
    let mut reach = request.reach.clone();
    reach.extend(written.server);
    let pace = WavePace { watch: *watch, within, patience: *patience };
    let spec = RolloutSpec { settings: written.settings, to: written.to, reach, pace };
    let spec = serde_json::to_string(&spec).map_err(|error| Problem::internal(error.to_string()))?;
    let on = match request.on.as_slice() {
        [] => admin.state().map_err(|error| problem(&error))?.agents.into_iter().map(|agent| agent.agent).collect(),
        named => named.to_vec(),
    };
    if on.is_empty() {
        return Err(Problem::usage("nobody is in the fleet yet").hint("windtunnel fleet add HOST URL"));
    }
    let hosts: Vec<(String, u32)> = on.into_iter().enumerate().map(|(n, host)| (host, wave_of(n, request))).collect();
    admin.begin_rollout(name, &spec, &hosts).map_err(|error| problem(&error))
}

/// Sees to it that waves have hosts, each once, and that what is to be reached can be connected to.
fn check_hosts(request: &FleetApplyRequest) -> Result<(), Problem> {
    if request.canaries == 0 || request.wave == 0 {
        return Err(Problem::usage("a wave has one host at least").hint("--canaries 1 --wave 10"));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = request.on.iter().find(|host| !seen.insert(host.as_str())) {
        return Err(Problem::usage(format!("{twice} is named twice")).hint("name each host once: --on berlin,bonn"));
    }
    for server in &request.reach {
        let wrong = match server.parse::<HostPort>() {
            Ok(place) if place.port.is_some() => continue,
            Ok(_) => format!("\"{server}\" has no port, so nothing can connect to it"),
            Err(error) => error.to_string(),
        };
        return Err(Problem::usage(wrong).hint("--reach HOST:PORT, or --reach [IPV6]:PORT"));
    }
    Ok(())
}

/// The wave of the host in this place.
fn wave_of(place: usize, request: &FleetApplyRequest) -> u32 {
    let after = place.checked_sub(request.canaries.max(1)).map_or(0, |after| 1 + after / request.wave.max(1));
    u32::try_from(after + 1).unwrap_or(u32::MAX)
}

fn named(admin: &mut FleetAdmin, name: &str) -> Result<Option<Rollout>, FleetError> {
    Ok(admin.rollouts(Some(name))?.pop())
}

/// Does one step after the other until the change is at its end, or somebody cancels. Its server may be away meanwhile.
fn drive(
    server: &str,
    name: &str,
    admin: FleetAdmin,
    events: Sink<'_>,
    cancel: &Cancel,
) -> Result<FleetApplyAnswer, Problem> {
    let (mut admin, mut told) = (Some(admin), BTreeMap::new());
    let mut is_away = false;
    let mut last = None;
    loop {
        let stepped = match admin.as_mut() {
            Some(admin) => step(admin, name, &mut told, events),
            None => FleetAdmin::connect(&wt_setup::journal::store_address(server)?).map(|again| {
                admin = Some(again);
                StepOutcome::Again
            }),
        };
        match stepped {
            Ok(StepOutcome::Ended(answer)) => return Ok(*answer),
            Ok(StepOutcome::Unknown) => return Err(unknown(name)),
            Ok(StepOutcome::Again) => is_away = false,
            Ok(StepOutcome::Waits(rollout)) => {
                is_away = false;
                last = Some(rollout);
                idle(LOOK, cancel);
            }
            Err(error @ FleetError::Unreachable { .. }) => {
                if !is_away {
                    events(AgentEvent::Agent {
                        text: format!("the fleet's server isn't there, it is asked again: {error}"),
                    });
                }
                (is_away, admin) = (true, None);
                idle(LOOK * 4, cancel);
            }
            Err(error) => return Err(problem(&error)),
        }
        if cancel.is_cancelled() {
            let rollout = last.ok_or_else(|| Problem::environment("stopped before anything was known"))?;
            return Ok(FleetApplyAnswer { schema_version: 1, rollout: *rollout, silent: Vec::new() });
        }
    }
}

/// What became of a step.
enum StepOutcome {
    /// It is at its end.
    Ended(Box<FleetApplyAnswer>),
    /// There is no such change.
    Unknown,
    /// Something was ordered: look again.
    Again,
    /// Hosts are at it.
    Waits(Box<Rollout>),
}

fn step(
    admin: &mut FleetAdmin,
    name: &str,
    told: &mut BTreeMap<String, RolloutPhase>,
    events: Sink<'_>,
) -> Result<StepOutcome, FleetError> {
    let Some(rollout) = named(admin, name)? else { return Ok(StepOutcome::Unknown) };
    for RolloutHost { agent, phase, reason, .. } in &rollout.hosts {
        if told.insert(agent.clone(), *phase) != Some(*phase) && *phase != RolloutPhase::Untouched {
            let why = if reason.is_empty() { String::new() } else { format!(": {}", on_one_line(reason)) };
            events(AgentEvent::Agent { text: format!("{agent}: {}{why}", phase.name()) });
        }
    }
    let spec: RolloutSpec = serde_json::from_str(&rollout.spec).unwrap_or_default();
    let number = rollout.number;
    let next = match rollout.state.as_str() {
        "running" => forward(&rollout.hosts, spec.pace),
        "done" => WaveStep::Done,
        _ => back(&rollout.hosts, spec.pace),
    };
    let ended = |state: &str, reason: &str, silent: Vec<String>| {
        let rollout = Rollout { state: state.to_owned(), reason: reason.to_owned(), ..rollout.clone() };
        StepOutcome::Ended(Box::new(FleetApplyAnswer { schema_version: 1, rollout, silent }))
    };
    match next {
        WaveStep::Wait => Ok(StepOutcome::Waits(Box::new(rollout))),
        WaveStep::Order(order, agents) => admin.order(number, order, &agents).map(|()| StepOutcome::Again),
        WaveStep::Stop(why) => {
            let is_untried = rollout.hosts.iter().all(|host| is_untried(host.phase));
            let what = if is_untried { "stopped" } else { "stopped, to be taken back everywhere" };
            events(AgentEvent::Agent { text: format!("{what}: {}", on_one_line(&why)) });
            admin.set_rollout(number, &["running"], "undoing", &why).map(|_| StepOutcome::Again)
        }
        // Somebody may have ordered to undo it in this moment.
        WaveStep::Done => Ok(match admin.set_rollout(number, &["running", "done"], "done", &rollout.reason)? {
            true => ended("done", &rollout.reason, vec![]),
            false => StepOutcome::Again,
        }),
        WaveStep::Undone { silent } => {
            // Where somebody may still have it, it isn't over.
            let state = if silent.is_empty() { "undone" } else { "undoing" };
            let was_it = admin.set_rollout(number, &["undoing", "undone"], state, &rollout.reason)?;
            Ok(if was_it { ended("undone", &rollout.reason, silent) } else { StepOutcome::Again })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_fleet::RolloutOrder;

    #[test]
    fn canaries_come_first_and_the_rest_in_waves() {
        let waves = |canaries, wave| -> Vec<u32> {
            let request = FleetApplyRequest { canaries, wave, ..FleetApplyRequest::default() };
            (0..7).map(|place| wave_of(place, &request)).collect()
        };
        assert_eq!(waves(1, 2), [1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(waves(2, 10), [1, 1, 2, 2, 2, 2, 2]);
        assert_eq!(waves(0, 0), [1, 2, 3, 4, 5, 6, 7], "one at least");
    }

    #[test]
    fn a_wave_has_hosts_each_once_and_what_is_to_be_reached_has_a_port() {
        let of = |on: &[&str], canaries, wave, reach: &[&str]| {
            let text = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
            check_hosts(&FleetApplyRequest { on: text(on), canaries, wave, reach: text(reach), ..Default::default() })
        };
        let good = ["192.0.2.1:80", "[2001:db8::1]:443", "speed.example.org:7411"];
        assert!(of(&["a", "b"], 1, 1, &good).is_ok());
        for (on, canaries, wave, reach, told) in [
            (&["a"][..], 0, 10, &[][..], "a wave has one host"),
            (&["a"], 1, 0, &[], "a wave has one host"),
            (&["a", "b", "a"], 1, 10, &[], "a is named twice"),
            (&[], 1, 10, &["x"], "has no port"),
            (&[], 1, 10, &["2001:db8::1"], "has no port"),
            (&[], 1, 10, &["x:y"], "port"),
            (&[], 1, 10, &["x:0"], "port"),
            (&[], 1, 10, &[":80"], "host"),
        ] {
            let problem = of(on, canaries, wave, reach).unwrap_err();
            assert!(problem.what.contains(told), "{on:?} {canaries} {wave} {reach:?}: {}", problem.what);
        }
    }

    #[test]
    fn what_no_host_tried_isnt_called_taken_back() {
        let text = |phases: &[RolloutPhase]| {
            let host = |phase: &RolloutPhase| RolloutHost {
                agent: "a".to_owned(),
                wave: 1,
                ordered: RolloutOrder::Nothing,
                asked: Duration::ZERO,
                phase: *phase,
                since: Duration::ZERO,
                reason: String::new(),
            };
            let (name, state, reason) = ("wider".to_owned(), "undone".to_owned(), "why".to_owned());
            let hosts = phases.iter().map(host).collect();
            let rollout = Rollout { name, state, reason, number: 1, spec: String::new(), hosts };
            FleetApplyAnswer { schema_version: 1, rollout, silent: Vec::new() }.text()
        };
        let untried = [RolloutPhase::Refused, RolloutPhase::Untouched];
        assert_eq!(text(&untried), "wider: not begun, nothing was changed anywhere (why).");
        for phase in [RolloutPhase::Failed, RolloutPhase::Undone, RolloutPhase::Reverted] {
            assert_eq!(text(&[phase, RolloutPhase::Untouched]), "wider: taken back everywhere (why).");
        }
    }

    #[test]
    fn a_change_that_was_begun_goes_on_as_it_was_or_not_at_all() {
        let named =
            || FleetApplyRequest { server: "s".to_owned(), name: "n".to_owned(), ..FleetApplyRequest::default() };
        assert!(named().names_only());
        let minute = Duration::from_secs(60);
        for more in [
            FleetApplyRequest { on: vec!["a".to_owned()], ..named() },
            FleetApplyRequest { canaries: 2, ..named() },
            FleetApplyRequest { watch: minute, ..named() },
            FleetApplyRequest { within: Some(minute), ..named() },
            FleetApplyRequest { reach: vec!["h:1".to_owned()], ..named() },
            FleetApplyRequest {
                change: ChangeRequest { to: Some("host".to_owned()), ..ChangeRequest::default() },
                ..named()
            },
        ] {
            assert!(!more.names_only(), "{more:?}");
        }
    }

    #[test]
    fn what_is_told_to_hosts_is_read_back_and_its_guard_waits_for_longer_than_it_is_watched() {
        let spec =
            RolloutSpec { settings: vec!["rwin=4x".to_owned()], to: "192.0.2.1".to_owned(), ..RolloutSpec::default() };
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<RolloutSpec>(&text).unwrap(), spec);
    }
}
