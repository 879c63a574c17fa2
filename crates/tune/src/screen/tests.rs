use super::*;
use crate::delay_room::DelayRoom;
use crate::drive::tests::made_up::{MadeUp, plan};
use crate::turns::RoundTurns;
use wt_journal::NewExperiment;
use wt_trial::Cancel;
use wt_units::Knob;

/// How many trials a screen of up to four rounds runs that has to be over by then.
fn trials_until(until_ns: Option<u64>) -> u32 {
    let dir = tempfile::tempdir().unwrap();
    let config = ExperimentConfig::Tune(Box::default());
    let new = NewExperiment { config, ..NewExperiment::new("a".to_owned(), "made-up", "sim") };
    let mut notebook = Notebook::open(Some(&dir.path().join("journal.db")), &new).unwrap();
    let factor = |knob: Knob, [low, high]: [&str; 2]| {
        let [low, high] = [low, high].map(|level| knob.parse_level(level).unwrap());
        Factor { knob, low, high }
    };
    let factors = [factor(Knob::Rwin, ["64KiB", "1MiB"]), factor(Knob::Mtu, ["1400", "1500"])];
    let mut screen = Screen::new(factors.len(), 0.05).unwrap();
    let mut driver = Driver {
        tunnel: &mut MadeUp(|_: &TrialSpec, _: &Cancel| Some(0.0)),
        notebook: &mut notebook,
        events: &mut |_| {},
        cancel: &Cancel::new(),
        turns: &mut RoundTurns::default(),
        plan: plan("a", 1),
        records: Vec::new(),
        spent: Duration::ZERO,
        ran: 0,
        ended: None,
        until_ns,
        room: DelayRoom::default(),
    };
    assert!(rounds_of(&mut driver, &factors, &mut screen, 4).unwrap(), "nobody stopped it");
    driver.ran
}

#[test]
fn no_round_of_a_screen_begins_that_would_end_after_its_time() {
    assert_eq!(trials_until(None), 16);
    let second = 1_000_000_000;
    assert_eq!(trials_until(Some(monotonic_ns() + 19 * second)), 0, "a round takes twenty seconds");
    assert_eq!(trials_until(Some(monotonic_ns() + 600 * second)), 16);
}
