//! Is it faster now? A change that is in force is switched on and off in random order, and an ordinary client measures.

/// What came out, also of the journal.
mod answer;
/// Why fewer rounds were run than were asked for, or too few were.
mod ending;

pub use answer::{ProveAnswer, ShownDifference, again};

use ending::{Ending, ended_early, too_few};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use wt_experiment::{Assessment, Config, Experiment, Observation, VerdictKind, fewest_rounds};
use wt_journal::{Arm, NewExperiment, PROOF_BEGINS, State};
use wt_problem::Problem;
use wt_setup::HostAccess;
use wt_setup::settings::InForce;
use wt_sys::clock::{monotonic_ns, unix_us};
use wt_sys::process;
use wt_trial::{Amount, Cancel, Direction, Phase, Status, TrialOutcome, TrialSpec, Workload};
use wt_tune::notebook::Notebook;
use wt_units::{Bytes, Settings};

/// What a run of somebody's command counts as, so that its rate is that of the work: only ratios are told.
const ONE_RUN: Bytes = Bytes(1_000_000);
/// Between two runs: the ends need a few round trips to let go.
const COOL_DOWN: Duration = Duration::from_millis(50);
/// No run takes longer.
const LONGEST: Duration = Duration::from_secs(3_600);
/// A server that sends nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(60);
/// How often a running client is looked at for somebody who wants to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What measures.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProvenBy {
    /// curl, which fetches this URL.
    Url(String),
    /// A command of the user's for the shell, whose time counts.
    Command(String),
}

/// What is to be proved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProveRequest {
    /// The number of the change; nothing means the latest in force.
    #[serde(default)]
    pub id: Option<String>,
    /// What measures.
    pub by: ProvenBy,
    /// Rounds at most, each once with and once without the change: 2 to 1000.
    #[serde(default = "usual_rounds")]
    pub rounds: u16,
    /// The journal's file; nothing means the usual one.
    #[serde(default)]
    pub journal: Option<PathBuf>,
}

/// How many rounds a proof takes where nobody says.
#[must_use]
pub const fn usual_rounds() -> u16 {
    20
}

/// What happens meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ProveEvent {
    /// A run of the client.
    Run {
        /// The round.
        round: u32,
        /// Whether the change was in force.
        with_change: bool,
        /// How long it took.
        seconds: f64,
    },
    /// So few rounds were asked for that they can show no difference.
    TooFew {
        /// How many can.
        fewest: usize,
    },
}

impl fmt::Display for ProveEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { round, with_change, seconds } => {
                let label = if *with_change { "with" } else { "without" };
                write!(f, "round {round}: {label} the change {seconds:.3} s")
            }
            Self::TooFew { fewest } => {
                write!(f, "so few rounds can show no difference, however large it is: --rounds {fewest} or more can")
            }
        }
    }
}

/// What is proved, and where it is written down.
struct Proof<'a> {
    change: String,
    /// What it makes, for people.
    what: &'a str,
    settings: &'a Settings,
    by: &'a ProvenBy,
    rounds: usize,
    journal: Option<&'a Path>,
    /// Of a change that waits for its confirmation, by the monotonic clock, ns: until when rounds may take, and when it is put back.
    until_ns: Option<[u64; 2]>,
}

impl Proof<'_> {
    /// Whether a round that takes so long still ends in time, ns.
    fn has_time(&self, takes_ns: u64) -> bool {
        self.until_ns.is_none_or(|[until, _]| monotonic_ns().saturating_add(takes_ns) < until)
    }

    /// What went wrong if a change isn't there any more to be switched.
    fn too_late(&self, problem: Problem) -> Problem {
        if self.until_ns.is_none_or(|[_, back]| monotonic_ns() < back) {
            return problem;
        }
        Problem::environment(format!(
            "change {} was put back while it was proved: one round takes longer than it waits for its confirmation",
            self.change
        ))
        .because(problem.what)
        .hint("apply it with a longer --confirm-within, or confirm it first and then: windtunnel settings prove")
    }
}

/// Of the time that a change waits for its confirmation so much is left for confirming it: a quarter, and at most this.
const TO_CONFIRM: Duration = Duration::from_secs(30);

/// Until when a change may be proved that waits for its confirmation, and when it is put back, by the monotonic clock, ns.
fn proved_until(host: &mut HostAccess, change: &str) -> Option<[u64; 2]> {
    let waiting = host.pending().pending.filter(|pending| pending.id.to_string() == change)?;
    let left = Duration::from_secs(waiting.seconds_left);
    let for_rounds = left - TO_CONFIRM.min(left / 4);
    let at = |time: Duration| monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    Some([for_rounds, left].map(at))
}

/// Runs rounds until something is shown, or there were enough: the change is switched off and on, and is left in force whatever
/// happens. `events` hears of each run.
///
/// # Errors
/// A [`Problem`]: there is no such change, it can't be switched, the client fails, the journal can't be written.
pub fn prove(
    request: &ProveRequest,
    host: &mut HostAccess,
    events: &mut dyn FnMut(ProveEvent),
    cancel: &Cancel,
) -> Result<ProveAnswer, Problem> {
    if !(2..=1000).contains(&request.rounds) {
        return Err(Problem::usage(format!("{} rounds: 2 to 1000 can be run", request.rounds)));
    }
    let InForce { id, what, settings } = host.in_force(request.id.as_deref())?;
    let proof = Proof {
        change: id.to_string(),
        what: &what,
        settings: &settings,
        by: &request.by,
        rounds: request.rounds.into(),
        journal: request.journal.as_deref(),
        until_ns: proved_until(host, &id.to_string()),
    };
    proved_by(&proof, &mut |on| host.switch(id, on), events, cancel).map_err(|problem| proof.too_late(problem))
}

/// Proves what `switch` puts in force and takes back.
fn proved_by(
    proof: &Proof<'_>,
    switch: &mut dyn FnMut(bool) -> Result<(), Problem>,
    events: &mut dyn FnMut(ProveEvent),
    cancel: &Cancel,
) -> Result<ProveAnswer, Problem> {
    let mut switched = ChangeSwitch { switch, on: true };
    let result = rounds(proof, &mut switched, cancel, events);
    // Whatever happened: the change is in force as it was.
    let restored = switched.set(true);
    result.and_then(|answer| restored.map(|()| answer))
}

struct ChangeSwitch<'a> {
    switch: &'a mut dyn FnMut(bool) -> Result<(), Problem>,
    on: bool,
}

impl ChangeSwitch<'_> {
    fn set(&mut self, on: bool) -> Result<(), Problem> {
        if self.on != on {
            (self.switch)(on)?;
            self.on = on;
        }
        Ok(())
    }
}

fn rounds(
    request: &Proof<'_>,
    switched: &mut ChangeSwitch<'_>,
    cancel: &Cancel,
    events: &mut dyn FnMut(ProveEvent),
) -> Result<ProveAnswer, Problem> {
    let mut notebook = Notebook::open(request.journal, &begun(request))?;
    let mut config = Config::new(2);
    config.max_trials = Some(request.rounds * 2);
    config.twice = false;
    config.both_ways = true;
    // What is small counts here as what is large does, and faster as slower: the change is made already.
    config.relevant = 0.0;
    let fewest = fewest_rounds(&Config { max_trials: None, ..config.clone() }).ok().flatten().unwrap_or(0);
    if request.rounds < fewest {
        events(ProveEvent::TooFew { fewest });
    }
    let mut experiment = Experiment::new(config).map_err(|error| Problem::usage(error.to_string()))?;
    let mut rng = ChaCha12Rng::seed_from_u64(monotonic_ns());
    let mut times: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut trial = 0;
    let mut longest_ns = 0;
    while let Some(order) = experiment.next_round(&mut rng).filter(|_| !cancel.is_cancelled()) {
        let began_ns = monotonic_ns();
        if !request.has_time(longest_ns) {
            break;
        }
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
                deadline: LONGEST,
                seed: 0,
            };
            let number = notebook.begin(&spec, unix_us())?;
            let measured = measure(request.by, cancel);
            let (status, bytes, time) = match &measured {
                Ok((bytes, time)) => (Status::Completed, *bytes, *time),
                Err(_) => (Status::Aborted, Bytes(0), Duration::ZERO),
            };
            let mut outcome = TrialOutcome::empty(status, time, format!("by {}", name(request.by)));
            outcome.bytes = bytes.get();
            notebook.finish(number, &outcome)?;
            if cancel.is_cancelled() {
                break;
            }
            let (bytes, time) = measured?;
            events(ProveEvent::Run { round: spec.round, with_change: arm == 1, seconds: time.as_secs_f64() });
            times[arm].push(time.as_secs_f64());
            observations.push(Observation::completed(arm, bytes, time));
            // Waits for nothing but time; a signal ends it early.
            let _ = wt_sys::poll::wait_readable(&[], Some(COOL_DOWN));
        }
        if observations.len() == 2 {
            experiment.record(&observations).map_err(|error| Problem::internal(error.to_string()))?;
        }
        longest_ns = longest_ns.max(monotonic_ns().saturating_sub(began_ns));
    }
    let why = if cancel.is_cancelled() {
        Ending::Cancelled
    } else if request.has_time(longest_ns) {
        Ending::ByItself
    } else {
        Ending::OutOfTime
    };
    let why = ended_early(experiment.rounds(), request.rounds, why) + &too_few(request.rounds, fewest);
    let answer = answer(request, notebook.id(), &experiment.assessment(), times, &why);
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

fn begun(request: &Proof<'_>) -> NewExperiment {
    let started = unix_us();
    let target = name(request.by);
    let salt = (monotonic_ns() & 0xFFFF) as u16;
    let arm = |label: &str, settings: &Settings| Arm { label: label.to_owned(), settings: settings.clone() };
    NewExperiment {
        started_unix_us: started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        comment: format!("{PROOF_BEGINS}{}: {}", request.change, request.what),
        arms: vec![arm("without the change", &Settings::new()), arm("with the change", request.settings)],
        owner: wt_setup::journal::own_identity(),
        ..NewExperiment::new(
            wt_journal::experiment_id(started, &format!("proof-{}", request.change), salt),
            target,
            "live",
        )
    }
}

/// One run of the client: what it moved, and how long it took. It ends at once when somebody wants to stop.
fn measure(by: &ProvenBy, cancel: &Cancel) -> Result<(Bytes, Duration), Problem> {
    let mut command = match by {
        ProvenBy::Url(url) => {
            let mut command = Command::new("curl");
            command.args(["--silent", "--show-error", "--fail", "--output", "/dev/null"]);
            command.args(["--max-time", &LONGEST.as_secs().to_string()]);
            command.args(["--speed-limit", "1", "--speed-time", &SILENCE.as_secs().to_string()]);
            command.args(["--write-out", FIGURES, "--", url]);
            command
        }
        ProvenBy::Command(text) => {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        }
    };
    process::die_with_parent(&mut command);
    let (began, program) = (monotonic_ns(), command.get_program().display().to_string());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child
        .map_err(|error| Problem::environment(format!("{program}: {error}")).hint("apt install curl, or use --by"))?;
    let pid = child.id();
    let (tell, told) = std::sync::mpsc::channel();
    // Its end is noticed at once, and what it writes is read meanwhile; nobody waits for that after it was killed.
    std::thread::spawn(move || tell.send((child.wait_with_output(), monotonic_ns())));
    let (output, ended) = loop {
        match told.recv_timeout(LOOK) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Disconnected) => return Err(Problem::internal("nobody waited for the client")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let elapsed = Duration::from_nanos(monotonic_ns().saturating_sub(began));
        if cancel.is_cancelled() || elapsed > LONGEST {
            process::kill_with_children(pid);
            let why = format!("{} takes longer than {} s", name(by), LONGEST.as_secs());
            return Err(if cancel.is_cancelled() { Problem::stopped("stopped") } else { Problem::remote(why) });
        }
    };
    let output = output.map_err(|error| Problem::internal(format!("can't wait for {program}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Problem::remote(format!("{}: {} {}", name(by), output.status, said.trim())));
    }
    match by {
        ProvenBy::Url(url) => fetched(url, &String::from_utf8_lossy(&output.stdout)),
        ProvenBy::Command(_) => Ok((ONE_RUN, Duration::from_nanos(ended.saturating_sub(began)))),
    }
}

/// What curl writes at the end.
const FIGURES: &str = "%{http_code} %{size_download} %{time_total} %{redirect_url}";

/// What curl fetched, by its figures. A redirect is no content, however long its text is.
fn fetched(url: &str, figures: &str) -> Result<(Bytes, Duration), Problem> {
    let mut words = figures.split_whitespace();
    let status: u16 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let (bytes, seconds) = (words.next().and_then(|w| w.parse().ok()), words.next().and_then(|w| w.parse().ok()));
    match (status, words.next()) {
        // What isn't fetched by HTTP has none.
        (0 | 200..=299, _) => {}
        (300..=399, Some(place)) => {
            return Err(Problem::remote(format!("{url} answers {status}: it leads to {place}, which isn't followed"))
                .hint(format!("--url {place}")));
        }
        _ => return Err(Problem::remote(format!("{url} answers {status}"))),
    }
    match (bytes, seconds) {
        (Some(bytes @ 1..), Some(seconds)) if seconds > 0.0 => Ok((Bytes(bytes), Duration::from_secs_f64(seconds))),
        _ => Err(Problem::remote(format!("{url} has no content to be timed"))),
    }
}

fn share(ratio: f64) -> String {
    format!("×{ratio:.3}")
}

/// A gain's lower end, rounded down; nothing where that leaves no gain to be told.
fn at_least(ratio: f64) -> Option<String> {
    let told = (ratio * 1000.0).floor() / 1000.0;
    (told > 1.0).then(|| share(told))
}

fn answer(request: &Proof<'_>, id: &str, found: &Assessment, times: [Vec<f64>; 2], why: &str) -> ProveAnswer {
    let arm = found.arms.get(1);
    let exp = |log: fn(&wt_experiment::ArmAssessment) -> Option<f64>| arm.and_then(log).map(f64::exp);
    // What is claimed has one side; the interval's two take more evidence.
    let low = if found.kind == VerdictKind::Faster { exp(|arm| arm.at_least) } else { exp(|arm| arm.lower) };
    let ratio = arm.and_then(|arm| arm.ratio);
    let slower = arm.is_some_and(|arm| arm.slower);
    let high = if slower { exp(|arm| arm.at_most) } else { exp(|arm| arm.upper) };
    let [before_s, after_s] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        wt_units::quantile(&times, 0.5)
    });
    let figure = ratio.map_or_else(String::new, |ratio| format!(", {} by estimate", share(ratio)));
    let odds = arm.map_or_else(String::new, |arm| {
        // Of what is shown, else of what is more likely to be.
        let faster = found.kind == VerdictKind::Faster || (!slower && arm.evidence >= arm.evidence_slower);
        format!(
            "evidence {:.1} : 1 of {:.0} : 1, {} rounds",
            if faster { arm.evidence } else { arm.evidence_slower },
            arm.needed.unwrap_or(f64::INFINITY),
            found.rounds
        )
    });
    let text = match (found.kind, slower) {
        (VerdictKind::Faster, _) => {
            let least = low.and_then(at_least).map_or_else(String::new, |least| format!(", at least {least}"));
            format!("It is faster with the change{figure}{least} ({odds}).")
        }
        (_, true) => format!(
            "It is SLOWER with the change{figure} ({odds}). windtunnel settings undo {} takes it back.",
            request.change
        ),
        _ => format!("No difference is shown{figure} ({odds}).{why}"),
    };
    ProveAnswer {
        schema_version: 1,
        id: id.to_owned(),
        change: request.change.clone(),
        what: Some(request.what.to_owned()),
        by: name(request.by).to_owned(),
        rounds: found.rounds,
        verdict: found.kind,
        slower,
        shown: Some(match (found.kind, slower) {
            (VerdictKind::Faster, _) => ShownDifference::Faster,
            (_, true) => ShownDifference::Slower,
            _ => ShownDifference::Nothing,
        }),
        ratio,
        ratio_low: low,
        ratio_high: high,
        before_s,
        after_s,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_that_ends_before_its_rounds_says_why() {
        assert_eq!(ended_early(20, 20, Ending::OutOfTime), "");
        assert!(ended_early(7, 20, Ending::ByItself).contains("after 7 of 20 rounds: by estimate"));
        assert!(ended_early(7, 20, Ending::OutOfTime).contains("longer --confirm-within"));
        assert!(ended_early(7, 20, Ending::Cancelled).contains("stopped after 7 of 20"));
    }

    #[test]
    fn rounds_too_few_to_show_anything_are_told_to_be_that() {
        assert_eq!(too_few(7, 7), "");
        assert!(too_few(4, 7).contains("Fewer than 7 rounds can't show any"), "{}", too_few(4, 7));
    }

    /// A proof in which the change is a file.
    fn proof<'a>(by: &'a ProvenBy, settings: &'a Settings, rounds: usize, journal: Option<&'a Path>) -> Proof<'a> {
        Proof { change: "1".to_owned(), what: "a file", settings, by, rounds, journal, until_ns: None }
    }

    /// What is said of rounds of this ratio, each a little off.
    fn told(ratio: f64, rounds: usize) -> ProveAnswer {
        let config =
            Config { max_trials: Some(rounds * 2), twice: false, both_ways: true, relevant: 0.0, ..Config::new(2) };
        let mut experiment = Experiment::new(config).unwrap();
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        while let Some(order) = experiment.next_round(&mut rng) {
            let off = 1.0 + 1e-4 * (experiment.rounds() % 3) as f64;
            let seconds = |arm: usize| if arm == 1 { 0.4 / ratio * off } else { 0.4 };
            let run = |arm| Observation::completed(arm, ONE_RUN, Duration::from_secs_f64(seconds(arm)));
            experiment.record(&order.into_iter().map(run).collect::<Vec<_>>()).unwrap();
        }
        let (by, settings) = (ProvenBy::Command("x".to_owned()), Settings::new());
        let proof = proof(&by, &settings, rounds, None);
        answer(&proof, "x", &experiment.assessment(), [vec![0.4], vec![0.4 / ratio]], "")
    }

    #[test]
    fn one_per_cent_is_shown_both_ways_and_one_word_says_which() {
        let (faster, slower, same) = (told(1.01, 20), told(1.0 / 1.01, 20), told(1.0 - 1e-4, 4));
        assert_eq!((faster.shown, slower.shown), (Some(ShownDifference::Faster), Some(ShownDifference::Slower)));
        assert!(faster.text.starts_with("It is faster") && faster.verdict == VerdictKind::Faster, "{}", faster.text);
        assert!(slower.text.starts_with("It is SLOWER") && slower.slower && slower.is_no(), "{}", slower.text);
        assert!(slower.ratio_high.is_some_and(|most| most <= 1.0), "{slower:?}");
        assert!(faster.ratio_low.is_some_and(|least| least >= 1.0), "{faster:?}");
        assert_eq!(same.shown, Some(ShownDifference::Nothing));
    }

    /// A proof by this command, in which the change is a file: `$ON`.
    fn proved(command: &str, rounds: usize, cancel: &Cancel) -> (Result<ProveAnswer, Problem>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("on");
        std::fs::write(&file, "").unwrap();
        let by = ProvenBy::Command(format!("ON={}; {command}", file.display()));
        let (settings, journal) = (Settings::new(), folder.path().join("journal"));
        let proof = proof(&by, &settings, rounds, Some(&journal));
        let mut switch = |on: bool| {
            let done = if on { std::fs::write(&file, "") } else { std::fs::remove_file(&file) };
            done.map_err(|error| Problem::internal(error.to_string()))
        };
        let answer = proved_by(&proof, &mut switch, &mut |_| {}, cancel);
        if let Ok(answer) = &answer {
            // What was said is what is told of it ever after.
            let stored = wt_setup::journal::open_to_read(Some(&journal)).unwrap().load("last").unwrap();
            let told = again(&stored).unwrap();
            assert_eq!((told.lines(), told.slower, told.is_no()), (answer.lines(), answer.slower, answer.is_no()));
        }
        (answer, file.exists())
    }

    #[test]
    fn a_change_that_makes_things_slower_is_told_as_that_with_its_evidence() {
        let (answer, on) = proved("if test -e $ON; then sleep 0.2; fi", 20, &Cancel::new());
        let answer = answer.unwrap();
        assert!(on && answer.slower && answer.verdict == VerdictKind::NoDifference, "{answer:?}");
        let shown = answer.text.split_once("(evidence ").unwrap().1.split(' ').next().unwrap();
        assert!(answer.text.starts_with("It is SLOWER") && shown.parse::<f64>().unwrap() >= 20.0, "{}", answer.text);
    }

    #[test]
    fn rounds_too_few_to_show_anything_are_said_to_be_before_the_first_one() {
        let folder = tempfile::tempdir().unwrap();
        let (by, settings, journal) =
            (ProvenBy::Command("true".to_owned()), Settings::new(), folder.path().join("journal"));
        let told = |rounds: usize, cancel: &Cancel| {
            let mut events = Vec::new();
            let proof = proof(&by, &settings, rounds, Some(&journal));
            drop(proved_by(&proof, &mut |_| Ok(()), &mut |event| events.push(event), cancel));
            events
        };
        let first = told(2, &Cancel::new())[0];
        assert!(
            matches!(first, ProveEvent::TooFew { fewest: 7 }) && first.to_string().contains("--rounds 7"),
            "{first}"
        );
        let stopped = Cancel::new();
        stopped.cancel();
        assert_eq!(told(7, &stopped), []);
    }

    #[test]
    fn who_stops_waits_for_no_client_and_the_change_is_in_force() {
        let cancel = Cancel::new();
        let began = monotonic_ns();
        let (answer, on) = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Whenever it comes, the run that is under way would take a minute.
                let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(200)));
                cancel.cancel();
            });
            proved("sleep 60; true", 20, &cancel)
        });
        let took = Duration::from_nanos(monotonic_ns() - began);
        let answer = answer.unwrap();
        assert!(on && answer.rounds == 0 && took < Duration::from_secs(20), "{took:?} {answer:?}");
    }

    #[test]
    fn a_redirect_is_no_content() {
        let url = "http://192.0.2.1/x";
        assert_eq!(fetched(url, "200 1000 0.5 ").unwrap(), (Bytes(1000), Duration::from_millis(500)));
        assert!(fetched("ftp://192.0.2.1/x", "226 1000 0.5 ").is_ok() && fetched("file:///x", "000 10 0.1 ").is_ok());
        let told = |figures: &str| format!("{:?}", fetched(url, figures).unwrap_err());
        assert!(told("302 200 0.5 http://192.0.2.1/y").contains("answers 302: it leads to http://192.0.2.1/y"));
        assert!(told("304 0 0.5 ").contains("answers 304") && told("200 0 0.5 ").contains("no content"));
    }

    #[test]
    fn a_gain_that_rounds_to_nothing_is_not_told_as_one() {
        assert_eq!(at_least(1.0003), None);
        assert_eq!(at_least(0.98), None);
        assert_eq!(at_least(1.0019).as_deref(), Some("×1.001"));
        assert_eq!(at_least(1.25).as_deref(), Some("×1.250"));
    }
}
