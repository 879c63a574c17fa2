//! Is it faster now? A change that is in force is switched on and off in random order, and an ordinary client measures.

use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use serde::Serialize;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use wt_experiment::{Assessment, Config, Experiment, Observation, VerdictKind};
use wt_journal::{Arm, NewExperiment, State};
use wt_problem::Problem;
use wt_sys::clock::{monotonic_ns, unix_us};
use wt_trial::{Amount, Cancel, Direction, Phase, Status, TrialOutcome, TrialSpec, Workload};
use wt_tune::notebook::Notebook;
use wt_units::{Bytes, Settings};

/// What a run of somebody's command counts as, so that its rate is that of the work: only ratios are told.
const ONE_RUN: Bytes = Bytes(1_000_000);
/// Between two runs: the ends need a few round trips to let go.
const COOL_DOWN: Duration = Duration::from_millis(50);

/// What measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvenBy {
    /// curl, which fetches this URL.
    Url(String),
    /// A command of the user's for the shell, whose time counts.
    Command(String),
}

/// What is to be proved.
#[derive(Debug, Clone)]
pub struct ProveRequest {
    /// The number of the change.
    pub change: String,
    /// What it makes, for people: `rwin=8192 on 192.0.2.1`.
    pub what: String,
    /// The same as experiments name it, as far as they do.
    pub settings: Settings,
    /// What measures.
    pub by: ProvenBy,
    /// Rounds at most, each once with and once without the change.
    pub rounds: usize,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
}

/// What came out.
#[derive(Debug, Clone, Serialize)]
pub struct ProveAnswer {
    /// The version of this form.
    pub schema_version: u32,
    /// The experiment's name in the journal.
    pub id: String,
    /// The number of the change.
    pub change: String,
    /// What measured.
    pub by: String,
    /// Rounds that count.
    pub rounds: usize,
    /// The verdict's word: `faster`, `no-difference` or `stopped`.
    pub verdict: VerdictKind,
    /// Whether it is shown to be slower.
    pub slower: bool,
    /// The rate with the change over that without it.
    pub ratio: Option<f64>,
    /// At least: with 95 % where it is faster, whenever one looks; else the interval's lower end.
    pub ratio_low: Option<f64>,
    /// At most.
    pub ratio_high: Option<f64>,
    /// The median time of a run without the change, seconds.
    pub before_s: Option<f64>,
    /// With it.
    pub after_s: Option<f64>,
    /// The answer in words.
    pub text: String,
}

/// Runs rounds until something is shown, or there were enough. `switch` puts the change in force or takes it back, and is left
/// with the change in force whatever happens. `tell` hears of each run.
///
/// # Errors
/// A [`Problem`]: the change can't be switched, the client fails, the journal can't be written.
pub fn prove(
    request: &ProveRequest,
    switch: &mut dyn FnMut(bool) -> Result<(), Problem>,
    cancel: &Cancel,
    tell: &mut dyn FnMut(&str),
) -> Result<ProveAnswer, Problem> {
    let mut switched = Switched { switch, on: true };
    let result = rounds(request, &mut switched, cancel, tell);
    // Whatever happened: the change is in force as it was.
    let restored = switched.set(true);
    result.and_then(|answer| restored.map(|()| answer))
}

struct Switched<'a> {
    switch: &'a mut dyn FnMut(bool) -> Result<(), Problem>,
    on: bool,
}

impl Switched<'_> {
    fn set(&mut self, on: bool) -> Result<(), Problem> {
        if self.on != on {
            (self.switch)(on)?;
            self.on = on;
        }
        Ok(())
    }
}

fn rounds(
    request: &ProveRequest,
    switched: &mut Switched<'_>,
    cancel: &Cancel,
    tell: &mut dyn FnMut(&str),
) -> Result<ProveAnswer, Problem> {
    let mut notebook = Notebook::open(request.journal.as_deref(), &begun(request))?;
    let mut config = Config::new(2);
    config.max_trials = Some(request.rounds * 2);
    let mut experiment = Experiment::new(config).map_err(|error| Problem::usage(error.to_string()))?;
    let mut rng = ChaCha12Rng::seed_from_u64(monotonic_ns());
    let mut times: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut trial = 0;
    while let Some(order) = experiment.next_round(&mut rng).filter(|_| !cancel.is_cancelled()) {
        let mut observations = Vec::new();
        for arm in order {
            switched.set(arm == 1)?;
            trial += 1;
            let spec = TrialSpec {
                experiment: notebook.id().to_owned(),
                phase: Phase::Round,
                round: u32::try_from(experiment.rounds() + 1).unwrap_or(u32::MAX),
                order: trial,
                arm,
                settings: if arm == 1 { request.settings.clone() } else { Settings::new() },
                workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(ONE_RUN) },
                deadline: Duration::from_secs(3_600),
                seed: 0,
            };
            let number = notebook.begin(&spec, unix_us())?;
            let measured = measure(&request.by);
            let (status, bytes, time) = match &measured {
                Ok((bytes, time)) => (Status::Completed, *bytes, *time),
                Err(_) => (Status::Aborted, Bytes(0), Duration::ZERO),
            };
            let mut outcome = TrialOutcome::empty(status, time, format!("by {}", name(&request.by)));
            outcome.bytes = bytes.get();
            notebook.finish(number, &outcome)?;
            if cancel.is_cancelled() {
                break;
            }
            let (bytes, time) = measured?;
            let label = if arm == 1 { "with" } else { "without" };
            tell(&format!("round {}: {label} the change {:.3} s", spec.round, time.as_secs_f64()));
            times[arm].push(time.as_secs_f64());
            observations.push(Observation::completed(arm, bytes, time));
            // Waits for nothing but time; a signal ends it early.
            let _ = wt_sys::poll::wait_readable(&[], Some(COOL_DOWN));
        }
        if observations.len() == 2 {
            experiment.record(&observations).map_err(|error| Problem::internal(error.to_string()))?;
        }
    }
    let answer = answer(request, notebook.id(), &experiment.assessment(), times);
    let verdict = serde_json::json!({
        "kind": answer.verdict, "headline": answer.text, "settings": request.settings, "proof": answer,
    });
    let state = if cancel.is_cancelled() { State::Aborted } else { State::Finished };
    notebook.end(state, &verdict)?;
    Ok(answer)
}

fn name(by: &ProvenBy) -> &str {
    match by {
        ProvenBy::Url(url) => url,
        ProvenBy::Command(command) => command,
    }
}

fn begun(request: &ProveRequest) -> NewExperiment {
    let started = unix_us();
    let target = name(&request.by);
    let salt = (monotonic_ns() & 0xFFFF) as u16;
    let arm = |label: &str, settings: &Settings| Arm { label: label.to_owned(), settings: settings.clone() };
    NewExperiment {
        started_unix_us: started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        comment: format!("proof of change {}: {}", request.change, request.what),
        arms: vec![arm("without the change", &Settings::new()), arm("with the change", &request.settings)],
        owner: wt_setup::journal::own_identity(),
        ..NewExperiment::new(
            wt_journal::experiment_id(started, &format!("proof-{}", request.change), salt),
            target,
            "live",
        )
    }
}

/// One run of the client: what it moved, and how long it took.
fn measure(by: &ProvenBy) -> Result<(Bytes, Duration), Problem> {
    let mut command = match by {
        ProvenBy::Url(url) => {
            let mut command = Command::new("curl");
            command.args(["--silent", "--show-error", "--fail", "--output", "/dev/null"]);
            command.args(["--write-out", "%{size_download} %{time_total}", "--", url]);
            command
        }
        ProvenBy::Command(text) => {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        }
    };
    let began = monotonic_ns();
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        Problem::environment(format!("{}: {error}", command.get_program().display()))
            .hint("apt install curl, or use --by")
    })?;
    let elapsed = Duration::from_nanos(monotonic_ns().saturating_sub(began));
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Problem::remote(format!("{}: {} {}", name(by), output.status, said.trim())));
    }
    let ProvenBy::Url(url) = by else { return Ok((ONE_RUN, elapsed)) };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    let (bytes, seconds) = (words.next().and_then(|w| w.parse().ok()), words.next().and_then(|w| w.parse().ok()));
    match (bytes, seconds) {
        (Some(bytes @ 1..), Some(seconds)) if seconds > 0.0 => Ok((Bytes(bytes), Duration::from_secs_f64(seconds))),
        _ => Err(Problem::remote(format!("{url} has no content to be timed"))),
    }
}

fn answer(request: &ProveRequest, id: &str, found: &Assessment, times: [Vec<f64>; 2]) -> ProveAnswer {
    let arm = found.arms.get(1);
    let exp = |log: fn(&wt_experiment::ArmAssessment) -> Option<f64>| arm.and_then(log).map(f64::exp);
    // What is claimed has one side; the interval's two take more evidence.
    let low = if found.kind == VerdictKind::Faster { exp(|arm| arm.at_least) } else { exp(|arm| arm.lower) };
    let high = exp(|arm| arm.upper);
    let ratio = arm.and_then(|arm| arm.ratio);
    let slower = arm.is_some_and(|arm| arm.slower);
    let [before_s, after_s] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        wt_units::quantile(&times, 0.5)
    });
    let share = |ratio: f64| format!("×{ratio:.3}");
    let figure = ratio.map_or_else(String::new, |ratio| format!(", {} by estimate", share(ratio)));
    let odds = arm.map_or_else(String::new, |arm| {
        format!(
            "evidence {:.1} : 1 of {:.0} : 1, {} rounds",
            arm.evidence,
            arm.needed.unwrap_or(f64::INFINITY),
            found.rounds
        )
    });
    let text = match (found.kind, slower) {
        (VerdictKind::Faster, _) => format!(
            "It is faster with the change{figure}, at least {} ({odds}).",
            low.map_or_else(|| "not known".to_owned(), share)
        ),
        (_, true) => format!(
            "It is SLOWER with the change{figure} ({odds}). windtunnel settings undo {} takes it back.",
            request.change
        ),
        _ => format!("No difference is shown{figure} ({odds})."),
    };
    ProveAnswer {
        schema_version: 1,
        id: id.to_owned(),
        change: request.change.clone(),
        by: name(&request.by).to_owned(),
        rounds: found.rounds,
        verdict: found.kind,
        slower,
        ratio,
        ratio_low: low,
        ratio_high: high,
        before_s,
        after_s,
        text,
    }
}
