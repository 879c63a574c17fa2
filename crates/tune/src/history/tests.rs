use super::*;
use wt_journal::{Arm, TuneConfig};
use wt_trial::PathFacts;
use wt_units::Settings;

/// A session of three settings of which nothing is known but its rules.
fn stored(id: &str, continues: Option<&str>, order_seed: Option<u64>, state: State) -> StoredExperiment {
    let config = TuneConfig {
        max_trials: Some(60),
        order_seed,
        method: order_seed.map(|_| DIRECTED.to_owned()),
        continues: continues.map(str::to_owned),
        ..TuneConfig::default()
    };
    StoredExperiment {
        id: id.to_owned(),
        target: "adsl".to_owned(),
        tunnel: "lab".to_owned(),
        state,
        started_unix_us: 0,
        ended_unix_us: None,
        comment: String::new(),
        version: String::new(),
        current: Settings::new(),
        arms: (0..3).map(|n| Arm { label: format!("{n}"), settings: Settings::new() }).collect(),
        config: ExperimentConfig::Tune(Box::new(config)),
        seed: 1,
        path: PathFacts::default(),
        verdict: None,
        owner: wt_journal::Owner::default(),
    }
}

fn row(round: u32, order: usize, arm: usize, status: Status, elapsed_us: u64, bytes: u64) -> TrialRow {
    TrialRow {
        id: i64::from(round) * 100 + order as i64,
        phase: Phase::Round,
        round,
        order: order as u32 + 1,
        arm,
        status,
        started_unix_us: 0,
        elapsed_us,
        bytes,
        score: None,
        deadline_us: Some(10_000_000),
    }
}

/// The rounds of `orders`, the first of which has this number.
fn rows(first: u32, orders: &[Vec<usize>]) -> Vec<TrialRow> {
    let of = |(number, order): (u32, &Vec<usize>)| -> Vec<TrialRow> {
        let done = |(place, arm): (usize, &usize)| {
            row(number, place, *arm, Status::Completed, 5_000_000, 1_000_000 + 1_000 * *arm as u64)
        };
        order.iter().enumerate().map(done).collect()
    };
    (first..).zip(orders).flat_map(of).collect()
}

fn drawn(seed: u64, round: u32) -> Vec<usize> {
    let experiment = Experiment::new(Config::new(3)).unwrap();
    experiment.next_round(&mut order_of(seed, round)).unwrap()
}

#[test]
fn a_round_that_was_cut_short_is_finished_in_its_drawn_order_and_then_counts() {
    let (first, second) = (drawn(5, 1), drawn(5, 2));
    for ran in 1..3 {
        let mut cut = rows(1, &[first.clone(), second.clone()]);
        cut.truncate(3 + ran);
        let begun = Session { stored: stored("a", None, Some(5), State::Stopped), rows: cut };
        let history = History { sessions: vec![begun] };
        let (experiment, open) = history.replay_open().unwrap();
        let open = open.unwrap();
        assert_eq!((experiment.rounds(), open.round, open.done.len()), (1, 2, ran));
        assert_eq!(open.order, second);
        // Nobody went on with it: it is paid for, and doesn't count.
        let a = history.replay().unwrap().assessment();
        assert_eq!((a.rounds, a.discarded_rounds, a.trials), (1, 1, 3 + ran));
        // Cut short once more, and then finished by a third session.
        let mut rest: Vec<TrialRow> = rows(2, std::slice::from_ref(&second));
        let last = rest.split_off(2).into_iter();
        let middle = rest.into_iter().skip(ran).collect();
        let mut sessions = history.sessions;
        sessions.push(Session { stored: stored("b", Some("a"), Some(6), State::Stopped), rows: middle });
        sessions.push(Session { stored: stored("c", Some("b"), Some(7), State::Finished), rows: last.collect() });
        let a = History { sessions }.replay().unwrap().assessment();
        assert_eq!((a.rounds, a.discarded_rounds, a.trials), (2, 0, 6));
    }
}

#[test]
fn what_is_staked_on_a_round_that_was_cut_short_follows_the_budget_under_which_it_was_drawn() {
    let orders: Vec<Vec<usize>> = (1..9).map(|round| drawn(5, round)).collect();
    // Seven rounds are past, and of the eighth the first trial.
    let mut before = rows(1, &orders);
    before.truncate(7 * 3 + 1);
    let evidence = |max_trials: usize, cut_as_drawn: Option<bool>| {
        let begun = Session { stored: stored("a", None, Some(5), State::Stopped), rows: before.clone() };
        let mut later = stored("b", Some("a"), Some(6), State::Finished);
        let ExperimentConfig::Tune(config) = &mut later.config else { unreachable!() };
        (config.max_trials, config.cut_as_drawn) = (Some(max_trials), cut_as_drawn);
        let rest = rows(8, &orders[7..]).split_off(1);
        let history = History { sessions: vec![begun, Session { stored: later, rows: rest }] };
        let experiment = history.replay().unwrap();
        assert_eq!(experiment.rounds(), 8);
        experiment.assessment().arms[1].series.last().unwrap().1
    };
    assert_eq!(evidence(24, Some(true)), evidence(6_000, Some(true)));
    // Journals from before that was so say what they said.
    assert!((evidence(24, None) - evidence(6_000, None)).abs() > 0.01);
    assert_eq!(evidence(60, None), evidence(60, Some(true)));
}

#[test]
fn a_round_cut_short_in_a_journal_from_before_orders_could_be_drawn_again_does_not_count() {
    let mut cut = rows(1, &[vec![0, 1, 2], vec![2, 1, 0]]);
    cut.truncate(4);
    let begun = Session { stored: stored("a", None, None, State::Stopped), rows: cut };
    let on = rows(3, &[vec![1, 0, 2]]);
    let next = Session { stored: stored("b", Some("a"), None, State::Finished), rows: on };
    let a = History { sessions: vec![begun, next] }.replay().unwrap().assessment();
    assert_eq!((a.rounds, a.discarded_rounds, a.trials), (2, 1, 7));
}

#[test]
fn a_transfer_that_was_reset_early_counts_over_the_time_that_it_had() {
    let judged = |status, planned| {
        let row = row(1, 0, 1, status, 200_000, 50_000);
        observation(1, &TrialFigures::in_journal(&row, planned))
    };
    let slow = (50_000.0f64 / 10.0).ln();
    assert!((judged(Status::Incomplete, None).y - slow).abs() < 1e-9);
    // A trial of a fixed time had that time.
    let second = Some(Duration::from_secs(1));
    assert!((judged(Status::Incomplete, second).y - 50_000.0f64.ln()).abs() < 1e-9);
    assert!((judged(Status::Completed, second).y - 250_000.0f64.ln()).abs() < 1e-9);
    assert_eq!(judged(Status::Failed, None).elapsed, Duration::from_secs(10));
}

#[test]
fn attempts_that_said_nothing_are_counted_for_the_setting_that_met_them() {
    let mut round = rows(1, &[drawn(5, 1)]);
    let arm = round[0].arm;
    let mut refused = row(1, 0, arm, Status::Invalid, 0, 0);
    refused.id = 1;
    round.insert(0, refused);
    let a = History { sessions: vec![Session { stored: stored("a", None, Some(5), State::Finished), rows: round }] }
        .replay()
        .unwrap()
        .assessment();
    let spoilt: Vec<usize> = a.arms.iter().map(|arm| arm.spoilt).collect();
    assert!(spoilt.iter().enumerate().all(|(n, spoilt)| *spoilt == usize::from(n == arm)), "{spoilt:?}");
}

#[test]
fn an_import_that_makes_no_sense_is_no_fault_of_ours() {
    for alpha in [0.0, 1.0, -1.0, 4_294_967_296.0, f64::NAN] {
        let mut nonsense = stored("a", None, None, State::Finished);
        let config = TuneConfig { alpha: Some(alpha), ..TuneConfig::default() };
        nonsense.config = ExperimentConfig::Tune(Box::new(config));
        let problem = History { sessions: vec![Session { stored: nonsense, rows: Vec::new() }] }.replay().unwrap_err();
        assert!(problem.fault == wt_problem::Fault::Environment && problem.hint.is_some(), "{problem}");
    }
}
