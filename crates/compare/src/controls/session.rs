use super::answer::ControlsAnswer;
use super::assess::{Circumstances, assess};
use super::control::ControlTrials;
use super::request::{ControlsRequest, DisturbanceKind};
use super::scripted::{ScriptedDisturbance, micros};
use super::units::{goodput_figure, goodput_unit};
use crate::event::{CompareEvent, Sink, Subject};
use crate::rounds::{Orders, Place, REPEATS, Rounds, kept_verdict};
use std::time::Duration;
use wt_journal::{ComparedControls, ControlsConfig, ExperimentConfig, NewExperiment, State};
use wt_lab::scenario::Disturbance;
use wt_lab::{Competitor, LabTunnel};
use wt_problem::{Fault, Problem};
use wt_setup::Controls;
use wt_trial::bulk::PathNow;
use wt_trial::{Amount, Cancel, Direction, PathFacts, Status, TrialOutcome, Tunnel as _, Workload};
use wt_tune::notebook::{Notebook, begun};
use wt_units::Knob;

/// The other flow's congestion control.
const BESIDE: &str = "newreno";
/// And where ours can't be loaded.
const BESIDE_BY_KERNEL: &str = "reno";

/// Compares congestion controls over an emulated path.
///
/// This process moves into a user namespace, which takes a process with a single thread: whoever has more asks a process of
/// its own.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn run(request: &ControlsRequest, cancel: &Cancel, events: Sink<'_>) -> Result<ControlsAnswer, Problem> {
    request.check()?;
    let request = &ControlsRequest { lab: request.lab.ordered()?, ..request.clone() };
    let scenario = wt_setup::lab::load(&request.lab.path)?;
    let mut controls =
        request.algorithms.iter().map(|name| ControlTrials::named(name)).collect::<Result<Vec<_>, _>>()?;
    check_distinct(&controls)?;
    let (loaded, beside) = load(request)?;
    let facts = scenario.facts(Direction::Down);
    let length = length(request, &facts);
    let scripted = request.disturb.map(|kind| ScriptedDisturbance::new(kind.in_trial(length), length));
    let scenario = match scripted {
        Some(ScriptedDisturbance { what, at }) => scenario.disturbed(what, at, Direction::Down),
        None => scenario,
    };
    let mut tunnel = LabTunnel::new(request.lab.start(scenario)?).map_err(|error| wt_setup::lab::problem(&error))?;
    loaded.attach(&mut tunnel);
    if let Some(ScriptedDisturbance { what: Disturbance::Flow { lasts }, at }) = scripted {
        tunnel.compete(Some(Competitor { at, lasts, control: beside.to_owned() }));
    }
    for control in &controls {
        tunnel.check(&control.settings()).map_err(|error| {
            Problem::environment(error.to_string())
                .hint("windtunnel cc list shows what there is; modprobe may bring more")
        })?;
    }
    let path = PathNow { base_rtt_us: facts.rtt_us, capacity_bps: facts.physical_goodput_bps };
    let circumstances = Circumstances { lab: request.lab.path.clone(), path, length, scripted };
    let notebook = notebook(request, &tunnel, &controls, &circumstances)?;
    let rtt = Duration::from_micros(facts.rtt_us);
    let (subject, seed, order_seed) = (Subject::Controls, request.lab.seed, request.lab.order_seed());
    let rounds = Rounds { tunnel, notebook, cancel, events, subject, seed, order_seed, rtt, trials: 0 };
    let mut session = Session { rounds, most: request.rounds, path, length };
    session.announce(controls.len());
    session.run(&mut controls)?;
    let mut notebook = session.rounds.notebook;
    let answer = assess(notebook.id(), &circumstances, &controls);
    let state = if cancel.is_cancelled() { State::Stopped } else { State::Finished };
    notebook.end(state, &kept_verdict(&answer.verdict)?)?;
    Ok(answer)
}

/// Refuses one congestion control under two names, such as a variant that is the default one: nothing would be compared.
fn check_distinct(controls: &[ControlTrials]) -> Result<(), Problem> {
    for (at, ControlTrials { control, .. }) in controls.iter().enumerate() {
        let is_same =
            |other: &&ControlTrials| (&other.control.name, &other.control.variant) == (&control.name, &control.variant);
        if let Some(other) = controls[..at].iter().find(is_same) {
            let what = format!("{} and {} are one congestion control", other.control.asked, control.asked);
            return Err(Problem::usage(what).hint("leave one of them out"));
        }
    }
    Ok(())
}

/// Loads those of ours, with the other flow's, and says which that is: ours where we may load one, and else the kernel's.
fn load(request: &ControlsRequest) -> Result<(Controls, &'static str), Problem> {
    let names = || request.algorithms.iter().map(String::as_str);
    let flow = request.disturb == Some(DisturbanceKind::Flow);
    match Controls::load(names().chain(flow.then_some(BESIDE))) {
        Ok(controls) => Ok((controls, BESIDE)),
        Err(_) if flow => Ok((Controls::load(names())?, BESIDE_BY_KERNEL)),
        Err(problem) => Err(problem),
    }
}

/// How long each trial transfers.
fn length(request: &ControlsRequest, path: &PathFacts) -> Duration {
    let usual = Duration::from_micros(path.rtt_us) * 300;
    request.trial.unwrap_or_else(|| usual.clamp(Duration::from_secs(10), Duration::from_secs(60)))
}

/// Begins to write the comparison down.
fn notebook(
    request: &ControlsRequest,
    tunnel: &LabTunnel,
    controls: &[ControlTrials],
    circumstances: &Circumstances,
) -> Result<Notebook, Problem> {
    let arm = |one: &ControlTrials| wt_journal::Arm { label: one.label(), settings: one.settings() };
    let compared = ComparedControls {
        trial_us: Some(micros(circumstances.length)),
        disturbance: circumstances.scripted.map(ScriptedDisturbance::to_config),
        arms: Some(controls.iter().map(|one| one.control.clone()).collect()),
        order_seed: request.lab.order_seed,
        ..ComparedControls::default()
    }
    .whole();
    let new = NewExperiment {
        comment: request.lab.comment.clone(),
        current: tunnel.current(),
        arms: controls.iter().map(arm).collect(),
        config: ExperimentConfig::Controls(Box::new(ControlsConfig {
            lab: Some(request.lab.path.clone()),
            command: Some(request.lab.command.clone()),
            compare: Some(compared),
            ..ControlsConfig::default()
        })),
        seed: request.lab.seed,
        path: tunnel.path(Direction::Down),
        ..begun(tunnel)
    };
    Notebook::open(request.lab.journal.as_deref(), &new)
}

struct Session<'a> {
    rounds: Rounds<'a, LabTunnel>,
    /// The most rounds.
    most: u32,
    path: PathNow,
    length: Duration,
}

impl Session<'_> {
    fn announce(&mut self, arms: usize) {
        let trials = u32::try_from(arms).unwrap_or(u32::MAX).saturating_mul(self.most);
        let each = self.length + self.rounds.cool_down();
        self.rounds.tell(CompareEvent::Begin {
            subject: self.rounds.subject,
            arms,
            rounds: self.most,
            trials,
            trial_s: Some(self.length.as_secs_f64()),
            expected_s: (each * trials).as_secs_f64(),
        });
    }

    /// Runs the rounds; those that are complete stay when one can't be ended.
    fn run(&mut self, controls: &mut [ControlTrials]) -> Result<(), Problem> {
        let mut orders = Orders::new(self.rounds.order_seed, controls.len());
        for round in 1..=self.most {
            match orders.round(|index| self.place(round, index, &mut controls[index])) {
                Ok(Some(outcomes)) if round == 1 && outcomes.iter().all(|(_, outcome)| outcome.bytes == 0) => {
                    return Err(nothing_gets_through(&outcomes));
                }
                Ok(Some(outcomes)) => {
                    for (index, outcome) in outcomes {
                        controls[index].keep(outcome, &self.path);
                    }
                }
                Ok(None) if round > 1 => return Ok(()),
                Ok(None) => return Err(Problem::new(Fault::Stopped, "stopped in the first round")),
                Err(problem) if round > 1 => {
                    self.rounds.tell(CompareEvent::EndsEarly { problem, rounds: round - 1 });
                    return Ok(());
                }
                Err(problem) => return Err(problem),
            }
        }
        Ok(())
    }

    /// One trial of a round, again when it says nothing; `None` when the user wants to stop.
    fn place(
        &mut self,
        round: u32,
        index: usize,
        control: &mut ControlTrials,
    ) -> Result<Option<TrialOutcome>, Problem> {
        let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Time(self.length) };
        let label = control.label();
        let place = Place {
            round,
            arm: index,
            label: label.clone(),
            settings: control.settings(),
            workload: &workload,
            deadline: self.length + Duration::from_secs(30),
            repeats: REPEATS,
            figure,
        };
        let mut counts = |outcome: &TrialOutcome| match refused(&control.control.asked, outcome) {
            Some(problem) => Err(problem),
            None => Ok(control.note(outcome)),
        };
        let Some(outcome) = self.rounds.place(&place, &mut counts)? else { return Ok(None) };
        if outcome.status != Status::Invalid {
            return Ok(Some(outcome));
        }
        let why = outcome.notes.join("; ");
        Err(Problem::environment(format!("{label} can't be measured: {why}"))
            .hint("let the machine be idle; on some virtual machines' kernels BPF programs are skipped now and then"))
    }
}

/// What it means that none of the controls moved a byte.
fn nothing_gets_through(outcomes: &[(usize, TrialOutcome)]) -> Problem {
    let notes = outcomes.iter().flat_map(|(_, outcome)| outcome.notes.first()).next();
    Problem::environment("nothing gets through this path, whatever the congestion control")
        .because(notes.cloned().unwrap_or_else(|| "no byte arrived".to_owned()))
        .hint("windtunnel lab show PATH tells what it loses; windtunnel tune --lab PATH looks for settings that get through")
}

/// A trial in a few words.
fn figure(_: &str, outcome: &TrialOutcome) -> String {
    format!("{:>7} {}", goodput_figure(outcome.goodput_bps() / 8e3), goodput_unit().0)
}

/// What is wrong if the kernel let the sender have another congestion control than was asked for.
fn refused(asked: &str, outcome: &TrialOutcome) -> Option<Problem> {
    let granted = outcome.granted.name(Knob::Cc).filter(|granted| !granted.is_empty())?;
    if outcome.status != Status::Completed || granted == asked {
        return None;
    }
    let why = outcome.notes.first().cloned().unwrap_or_else(|| format!("the sender had {granted}"));
    Some(Problem::environment(format!("{asked} can't be used: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_units::{Level, Settings};

    #[test]
    fn one_control_under_two_names_is_refused_and_its_variants_are_not() {
        let check = |names: [&str; 2]| {
            let controls = names.map(|name| ControlTrials::named(name).unwrap());
            check_distinct(&controls).map_err(|problem| problem.what)
        };
        for names in [["chd", "chd@freebsd-hz1000"], ["chd@freebsd-hz1000", "chd"]] {
            assert_eq!(check(names), Err(format!("{} and {} are one congestion control", names[0], names[1])));
        }
        for names in [["chd", "chd@freebsd-hz100"], ["reno", "newreno"], ["hd", "chd"]] {
            assert_eq!(check(names), Ok(()), "{names:?}");
        }
    }

    #[test]
    fn a_control_that_the_kernel_did_not_set_is_told() {
        let outcome = |granted: &str, status| TrialOutcome {
            granted: Settings::new().with(Knob::Cc, Level::Name(granted.to_owned())),
            ..TrialOutcome::empty(status, Duration::from_secs(1), "set the congestion control to bbr: not permitted")
        };
        let problem = refused("bbr", &outcome("cubic", Status::Completed)).unwrap();
        assert!(problem.what.starts_with("bbr can't be used: ") && problem.what.contains("not permitted"), "{problem}");
        assert_eq!(refused("bbr", &outcome("bbr", Status::Completed)), None);
        assert_eq!(refused("bbr", &outcome("cubic", Status::Invalid)), None);
        assert_eq!(refused("bbr", &outcome("", Status::Completed)), None);
    }
}
