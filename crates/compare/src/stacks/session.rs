use super::answer::StacksAnswer;
use super::assess::{Circumstances, assess};
use super::choices::{check, choices, controls, not_built, ranked, workloads};
use super::figures::{figure, is_soak};
use super::overhead::{self, PairedOverhead};
use super::request::StacksRequest;
use super::trials::StackTrials;
use super::verdict::threshold;
use crate::event::{CompareEvent, Sink, Subject};
use crate::rounds::{Orders, Place, REPEATS, Rounds, fewest_rounds, kept_verdict, key};
use serde_json::json;
use std::time::Duration;
use wt_journal::{ComparedStack, ComparedStacks, ExperimentConfig, NewExperiment, StacksConfig, State};
use wt_problem::{Fault, Problem};
use wt_setup::workload::expected;
use wt_stacks::{Choice, StackError, StackTunnel};
use wt_trial::bulk::PathNow;
use wt_trial::{Cancel, Direction, Status, TrialOutcome, Tunnel as _, Workload};
use wt_tune::notebook::{Notebook, begun};
use wt_units::BitsPerSecond;

/// Compares TCP/IP stacks over an emulated path.
///
/// This process moves into a user namespace, which takes a process with a single thread: whoever has more asks a process of
/// its own.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn run(request: &StacksRequest, cancel: &Cancel, events: Sink<'_>) -> Result<StacksAnswer, Problem> {
    request.check()?;
    let request = &StacksRequest { lab: request.lab.ordered()?, ..request.clone() };
    let mut choices = choices(request)?;
    let scenario = wt_setup::lab::load(&request.lab.path)?;
    let facts = scenario.facts(Direction::Down);
    let path = PathNow { base_rtt_us: facts.rtt_us, capacity_bps: facts.physical_goodput_bps };
    let circumstances = Circumstances { lab: request.lab.path.clone(), path, workloads: workloads(request, path)? };
    check(&choices)?;
    // Ours are loaded before the lab is made, which lacks the right to, and until the comparison ends.
    let _loaded = controls(&mut choices)?;
    let lab = request.lab.start(scenario)?;
    let tunnel = StackTunnel::new(lab, choices).map_err(problem)?;
    let most = rounds(request.rounds, tunnel.arms().len(), ranked(&circumstances.workloads));
    let mut stacks: Vec<StackTrials> =
        tunnel.arms().iter().map(|choice| StackTrials::new(choice.clone(), None)).collect();
    if !request.no_conformance {
        // Before the rounds: nothing else shall run beside them.
        std::thread::scope(|scope| {
            for stack in &mut stacks {
                scope.spawn(|| stack.play_scripts());
            }
        });
    }
    let notebook = notebook(request, &tunnel, &circumstances, &stacks)?;
    let (subject, seed, rtt) = (Subject::Stacks, request.lab.seed, Duration::from_micros(path.base_rtt_us));
    let order_seed = request.lab.order_seed();
    let rounds = Rounds { tunnel, notebook, cancel, events, subject, seed, order_seed, rtt, trials: 0 };
    let mut session = Session { rounds, circumstances: &circumstances, give_up: request.give_up };
    session.announce(most);
    let stopped = session.run(most, &mut stacks)?;
    let paired = if stopped { None } else { session.paired(&stacks) };
    let mut notebook = session.rounds.notebook;
    let answer = assess(notebook.id(), &circumstances, &stacks, paired);
    let state = if stopped { State::Stopped } else { State::Finished };
    notebook.end(state, &kept_verdict(&answer.verdict())?)?;
    Ok(answer)
}

/// How many rounds are run.
fn rounds(asked: Option<u32>, arms: usize, ranked: usize) -> u32 {
    match asked {
        _ if ranked == 0 => 1,
        Some(rounds) => rounds,
        None if arms == 1 => 3,
        None => fewest_rounds(threshold(arms * (arms - 1) / 2, ranked)) + 2,
    }
}

/// What to say where the stacks can't be run.
pub(super) fn problem(error: StackError) -> Problem {
    match error {
        StackError::NotBuilt { name, how } => not_built(name, how),
        StackError::NoTun(_) => Problem::environment(error.to_string())
            .because("the adapters of stacks need a TUN device")
            .hint("run as root, or let everybody open it: sudo chmod 666 /dev/net/tun"),
        other => Problem::environment(other.to_string()).hint("run `windtunnel doctor`"),
    }
}

/// Begins to write the comparison down.
fn notebook(
    request: &StacksRequest,
    tunnel: &StackTunnel,
    circumstances: &Circumstances,
    stacks: &[StackTrials],
) -> Result<Notebook, Problem> {
    let arm = |choice: &Choice| wt_journal::Arm { label: choice.title(), settings: choice.settings() };
    let stack = |choice: &Choice| ComparedStack { choice: choice.label.clone(), window: choice.window };
    let compared = ComparedStacks {
        arms: Some(tunnel.arms().iter().map(stack).collect()),
        workloads: Some(circumstances.workloads.clone()),
        conformance: Some(stacks.iter().map(|one| json!(one.conformance())).collect()),
        order_seed: request.lab.order_seed,
        ..ComparedStacks::default()
    };
    let new = NewExperiment {
        comment: request.lab.comment.clone(),
        current: tunnel.current(),
        arms: tunnel.arms().iter().map(arm).collect(),
        config: ExperimentConfig::Stacks(Box::new(StacksConfig {
            lab: Some(circumstances.lab.clone()),
            command: Some(request.lab.command.clone()),
            stacks: Some(compared),
            ..StacksConfig::default()
        })),
        seed: request.lab.seed,
        path: tunnel.path(Direction::Down),
        ..begun(tunnel)
    };
    Notebook::open(request.lab.journal.as_deref(), &new)
}

struct Session<'a> {
    rounds: Rounds<'a, StackTunnel>,
    circumstances: &'a Circumstances,
    /// When a trial is given up.
    give_up: Option<Duration>,
}

impl Session<'_> {
    /// How long a workload takes, roughly.
    fn expected(&self, workload: &Workload) -> Duration {
        let path = &self.circumstances.path;
        let rtt = Duration::from_micros(path.base_rtt_us);
        let fixed = || expected(workload, rtt, BitsPerSecond(path.capacity_bps.unwrap_or(1).max(1)));
        workload.time().unwrap_or_else(fixed)
    }

    fn announce(&mut self, rounds: u32) {
        let arms = self.rounds.tunnel.arms().len();
        let each = u32::try_from(arms).unwrap_or(u32::MAX);
        let times = |workload: &Workload| if is_soak(workload) { 1 } else { rounds };
        let workloads = &self.circumstances.workloads;
        let time = |workload| (self.expected(workload) + self.rounds.cool_down()) * times(workload);
        let all = workloads.iter().map(time).sum::<Duration>() * each;
        let trials = workloads.iter().map(times).sum::<u32>().saturating_mul(each);
        self.rounds.tell(CompareEvent::Begin {
            subject: self.rounds.subject,
            arms,
            rounds,
            trials,
            trial_s: None,
            expected_s: all.as_secs_f64(),
        });
    }

    /// Runs the rounds; whether it was stopped before its end.
    fn run(&mut self, rounds: u32, stacks: &mut [StackTrials]) -> Result<bool, Problem> {
        let circumstances = self.circumstances;
        let mut orders = Orders::new(self.rounds.order_seed, stacks.len());
        for round in 1..=rounds {
            for (at, workload) in circumstances.workloads.iter().enumerate() {
                if is_soak(workload) && round > 1 {
                    continue;
                }
                match orders.round(|index| self.place(round, index, workload, &stacks[index]))? {
                    Some(outcomes) => {
                        for (index, outcome) in outcomes {
                            stacks[index].keep(key(workload), outcome);
                        }
                    }
                    None if round > 1 || at > 0 => return Ok(true),
                    None => return Err(Problem::new(Fault::Stopped, "stopped before anything was compared")),
                }
            }
        }
        Ok(false)
    }

    /// One trial, again when the lab misbehaved; `None` when the user wants to stop.
    fn place(
        &mut self,
        round: u32,
        index: usize,
        workload: &Workload,
        stack: &StackTrials,
    ) -> Result<Option<TrialOutcome>, Problem> {
        let place = Place {
            round,
            arm: index,
            label: stack.title(),
            settings: self.rounds.tunnel.arms()[index].settings(),
            workload,
            // A stack with a small window takes its time; one that hangs shall not take the night.
            deadline: self.give_up.unwrap_or_else(|| self.expected(workload) * 20 + Duration::from_secs(30)),
            // A soak is judged by how it goes on, and takes its time: it isn't run again and again on a busy machine.
            repeats: if is_soak(workload) { 1 } else { REPEATS },
            figure,
        };
        self.rounds.place(&place, &mut |outcome| Ok(outcome.status != Status::Invalid))
    }

    /// What the adapter's path costs, where the kernel was run with and without it.
    fn paired(&mut self, stacks: &[StackTrials]) -> Option<PairedOverhead> {
        let arms = overhead::both(stacks)?;
        let mut workloads = self.circumstances.workloads.iter();
        let workload = workloads.find(|one| matches!(one, Workload::Transactions { .. }))?;
        let done = stacks[arms[0]].transaction_us().map(|us| Duration::from_nanos((us * 1e3) as u64));
        let idle = Duration::from_micros(self.circumstances.path.base_rtt_us);
        let each = done.unwrap_or(idle).max(Duration::from_micros(100));
        Some(overhead::measure(&mut self.rounds, arms, workload, each))
    }
}
