//! A quiet path, on which rounds have each of their settings twice, and somebody who stops in the middle of them.

use crate::drive::*;
use crate::history::History;
use crate::observed::DIRECTED;
use wt_experiment::{Assessment, Config};
use wt_journal::{Arm, ExperimentConfig, NewExperiment, SqliteJournal, State, StoredExperiment, TuneConfig};
use wt_setup::design;
use wt_trial::{Amount, Direction, PathFacts, TunnelKind, Workload};
use wt_units::Bytes;

const TRIALS: usize = 60;
const SETTINGS: usize = 2;

/// A path on which setting 1 is a tenth faster, and what a place of a round meets is always the same.
struct Quiet {
    /// Trials until somebody presses Ctrl-C.
    until: usize,
    /// Round and place of all trials so far.
    ran: Vec<(u32, u32, usize)>,
}

impl Tunnel for Quiet {
    fn kind(&self) -> TunnelKind {
        TunnelKind::Sim
    }

    fn target(&self) -> String {
        "quiet".to_owned()
    }

    fn current(&self) -> Settings {
        Settings::new()
    }

    fn path(&self, _: Direction) -> PathFacts {
        PathFacts::default()
    }

    fn check(&self, _: &Settings) -> Result<(), TunnelError> {
        Ok(())
    }

    fn run(&mut self, spec: &TrialSpec, cancel: &Cancel) -> Result<TrialOutcome, TunnelError> {
        self.ran.push((spec.round, spec.order, spec.arm));
        if self.ran.len().is_multiple_of(self.until) {
            cancel.cancel();
        }
        let noise = f64::from((spec.round * 37 + spec.order * 101) % 19) / 19.0 - 0.5;
        let bytes = (1e6 * (0.1 * spec.arm as f64 + 0.004 * noise).exp()) as u64;
        Ok(TrialOutcome { bytes, ..TrialOutcome::empty(Status::Completed, Duration::from_secs(5), "") })
    }
}

fn new_session(id: &str, continues: Option<&StoredExperiment>) -> NewExperiment {
    let config = TuneConfig {
        max_trials: Some(TRIALS),
        order_seed: Some(1),
        method: Some(DIRECTED.to_owned()),
        twice: Some(true),
        continues: continues.map(|stored| stored.id.clone()),
        ..TuneConfig::default()
    };
    NewExperiment {
        arms: (0..SETTINGS).map(|n| Arm { label: n.to_string(), settings: Settings::new() }).collect(),
        config: ExperimentConfig::Tune(Box::new(config)),
        ..NewExperiment::new(id.to_owned(), "quiet", "sim")
    }
}

/// The whole experiment, stopped after every so many trials and gone on with; what it says in the end, and what was run.
fn stopped_after_every(until: usize) -> (Assessment, Vec<(u32, u32, usize)>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let arm = |n: usize| design::Arm { settings: Settings::new(), label: n.to_string(), why: String::new() };
    let design = Design { arms: (0..SETTINGS).map(arm).collect(), plateau: None };
    let mut tunnel = Quiet { until, ran: Vec::new() };
    let mut last: Option<StoredExperiment> = None;
    for number in 0.. {
        let (mut experiment, cut, done) = match &last {
            None => {
                let config = Config { max_trials: Some(TRIALS), relevant: 0.0, ..Config::new(SETTINGS) };
                (Experiment::new(config).unwrap(), None, 0)
            }
            Some(stored) => {
                let history = History::read(&SqliteJournal::open_to_read(&path).unwrap(), stored).unwrap();
                let (mut experiment, cut) = history.replay_open().unwrap();
                experiment.resume(Some(TRIALS));
                (experiment, cut, history.last_round())
            }
        };
        let id = format!("session-{number}");
        let mut notebook = Notebook::open(Some(&path), &new_session(&id, last.as_ref())).unwrap();
        let mut driver = Driver {
            tunnel: &mut tunnel,
            notebook: &mut notebook,
            events: &mut |_| {},
            cancel: &Cancel::new(),
            turns: &mut RoundTurns::default(),
            plan: Plan {
                id,
                seed: 1,
                order_seed: 1,
                workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(1)) },
                expected: Duration::from_secs(5),
                cool_down: Duration::ZERO,
                deadline: Duration::from_secs(10),
            },
            records: Vec::new(),
            spent: Duration::ZERO,
            ran: 0,
            ended: None,
            until_ns: None,
        };
        driver.rounds(&design, done, cut, &mut experiment).unwrap();
        let by_user = experiment.stop_reason() == Some(StopReason::User);
        notebook.end(if by_user { State::Stopped } else { State::Finished }, &serde_json::Value::Null).unwrap();
        let stored = notebook.stored().unwrap();
        if !by_user {
            let history = History::read(&SqliteJournal::open_to_read(&path).unwrap(), &stored).unwrap();
            let replayed = history.replay().unwrap().assessment();
            assert_eq!(replayed.arms, experiment.assessment().arms, "the journal tells the same");
            return (replayed, tunnel.ran);
        }
        last = Some(stored);
    }
    unreachable!()
}

#[test]
fn rounds_with_settings_twice_are_finished_in_their_order_whenever_somebody_stops_and_goes_on() {
    let (whole, ran) = stopped_after_every(usize::MAX);
    let twice = |round: u32| ran.iter().filter(|(of, _, arm)| *of == round && *arm == 1).count() == 2;
    assert!((1..4).all(|round| !twice(round)) && twice(4), "{ran:?}");
    assert!(whole.pick == 1 && whole.trials <= 14, "{whole:?}");
    for until in 1..=9 {
        let (stopped, again) = stopped_after_every(until);
        assert_eq!(again, ran, "stopped after every {until}");
        assert_eq!(
            (&stopped.arms, stopped.rounds, stopped.trials),
            (&whole.arms, whole.rounds, whole.trials),
            "{until}"
        );
    }
}
