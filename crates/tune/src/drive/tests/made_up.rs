//! Experiments of several sessions on paths that tests make up.

use crate::delay_room::DelayRoom;
use crate::drive::*;
use crate::history::History;
use crate::observed::DIRECTED;
use std::path::Path;
use wt_experiment::Config;
use wt_journal::{Arm, ExperimentConfig, NewExperiment, SqliteJournal, State, StoredExperiment, TuneConfig};
use wt_setup::design;
use wt_trial::{Amount, Direction, PathFacts, TunnelKind, Workload};
use wt_units::Bytes;

/// A path on which a trial ends as this says: the log of its goodput, or none if it was interrupted. It may press Ctrl-C.
pub(crate) struct MadeUp<F>(pub(crate) F);

impl<F: FnMut(&TrialSpec, &Cancel) -> Option<f64>> Tunnel for MadeUp<F> {
    fn kind(&self) -> TunnelKind {
        TunnelKind::Sim
    }

    fn target(&self) -> String {
        "made-up".to_owned()
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
        Ok(match (self.0)(spec, cancel) {
            Some(y) => TrialOutcome {
                bytes: (1e6 * y.exp()) as u64,
                ..TrialOutcome::empty(Status::Completed, Duration::from_secs(5), "")
            },
            None => TrialOutcome::empty(Status::Aborted, Duration::from_secs(1), wt_trial::STOPPED),
        })
    }
}

/// Trials of a path that is made up, without a pause between two.
pub(crate) fn plan(id: &str, order_seed: u64) -> Plan {
    Plan {
        id: id.to_owned(),
        seed: 1,
        order_seed,
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(1)) },
        expected: Duration::from_secs(5),
        cool_down: Duration::ZERO,
        deadline: Duration::from_secs(10),
    }
}

/// What sessions have in common.
pub(super) struct Sessions<'a> {
    pub(super) journal: &'a Path,
    pub(super) settings: usize,
    /// Trials that the experiment may take, all sessions together.
    pub(super) trials: usize,
}

impl Sessions<'_> {
    /// Begins an experiment, or goes on with one, until its rules or somebody stops it; none where nothing is left to be run.
    pub(super) fn go_on(
        &self,
        tunnel: &mut impl Tunnel,
        last: Option<&StoredExperiment>,
        id: &str,
        order_seed: u64,
    ) -> Option<(Experiment, StoredExperiment)> {
        let (mut experiment, cut, done) = match last {
            None => {
                let config = Config { max_trials: Some(self.trials), ..Config::new(self.settings) };
                (Experiment::new(config).unwrap(), None, 0)
            }
            Some(stored) => {
                let history = self.history(stored);
                let (mut experiment, cut) = history.replay_open().unwrap();
                experiment.resume(Some(self.trials));
                (experiment, cut, history.last_round())
            }
        };
        if experiment.stop_reason().is_some() {
            return None;
        }
        let mut notebook = Notebook::open(Some(self.journal), &self.new_session(id, last, order_seed)).unwrap();
        let arm = |n: usize| design::Arm { settings: Settings::new(), label: n.to_string(), why: String::new() };
        let design = Design { arms: (0..self.settings).map(arm).collect(), plateau: None };
        let mut driver = Driver {
            tunnel,
            notebook: &mut notebook,
            events: &mut |_| {},
            cancel: &Cancel::new(),
            turns: &mut RoundTurns::default(),
            plan: plan(id, order_seed),
            records: Vec::new(),
            spent: Duration::ZERO,
            ran: 0,
            ended: None,
            until_ns: None,
            room: DelayRoom::default(),
        };
        driver.rounds(&design, done, cut, &mut experiment).unwrap();
        let by_user = experiment.stop_reason() == Some(StopReason::User);
        notebook.end(if by_user { State::Stopped } else { State::Finished }, &serde_json::Value::Null).unwrap();
        Some((experiment, notebook.stored().unwrap()))
    }

    /// What the journal has of it.
    pub(super) fn history(&self, stored: &StoredExperiment) -> History {
        History::read(&SqliteJournal::open_to_read(self.journal).unwrap(), stored).unwrap()
    }

    /// An experiment that is written down as a session begins.
    fn new_session(&self, id: &str, continues: Option<&StoredExperiment>, order_seed: u64) -> NewExperiment {
        let config = TuneConfig {
            max_trials: Some(self.trials),
            relevant: Some(0.01),
            order_seed: Some(order_seed),
            method: Some(DIRECTED.to_owned()),
            twice: Some(true),
            continues: continues.map(|stored| stored.id.clone()),
            cut_as_drawn: continues.map(|_| true),
            ..TuneConfig::default()
        };
        NewExperiment {
            arms: (0..self.settings).map(|n| Arm { label: n.to_string(), settings: Settings::new() }).collect(),
            config: ExperimentConfig::Tune(Box::new(config)),
            ..NewExperiment::new(id.to_owned(), "made-up", "sim")
        }
    }
}
