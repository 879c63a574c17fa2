//! A quiet path, on which rounds have each of their settings twice, and somebody who stops in the middle of them.

use super::made_up::{MadeUp, Sessions};
use crate::drive::*;
use std::collections::BTreeSet;
use wt_experiment::Assessment;

/// The whole experiment, stopped after every so many trials and gone on with; what it says in the end, and round, place, setting and
/// seed of each trial.
fn stopped_after_every(trials: usize) -> (Assessment, Vec<(u32, u32, usize, u64)>) {
    let dir = tempfile::tempdir().unwrap();
    let sessions = Sessions { journal: &dir.path().join("journal.db"), settings: 2, trials: 60 };
    let mut ran = Vec::new();
    // Setting 1 is a tenth faster, and what a place of a round meets is always the same.
    let mut tunnel = MadeUp(|spec: &TrialSpec, cancel: &Cancel| {
        ran.push((spec.round, spec.order, spec.arm, spec.seed));
        if ran.len().is_multiple_of(trials) {
            cancel.cancel();
        }
        let noise = f64::from((spec.round * 37 + spec.order * 101) % 19) / 19.0 - 0.5;
        Some(0.1 * spec.arm as f64 + 0.004 * noise)
    });
    let mut last = None;
    for number in 0.. {
        let next = sessions.go_on(&mut tunnel, last.as_ref(), &format!("session-{number}"), 1);
        // Whoever stops after the last trial leaves nothing to go on with.
        let Some((experiment, stored)) = next else { break };
        let stopped = experiment.stop_reason() == Some(StopReason::User);
        if !stopped {
            let replayed = sessions.history(&stored).replay().unwrap().assessment();
            assert_eq!(replayed.arms, experiment.assessment().arms, "the journal tells the same");
        }
        last = Some(stored);
        if !stopped {
            break;
        }
    }
    (sessions.history(&last.unwrap()).replay().unwrap().assessment(), ran)
}

#[test]
fn rounds_with_settings_twice_are_finished_in_their_order_whenever_somebody_stops_and_goes_on() {
    let (whole, ran) = stopped_after_every(usize::MAX);
    let twice = |round: u32| ran.iter().filter(|(of, _, arm, _)| *of == round && *arm == 1).count() == 2;
    assert!((1..4).all(|round| !twice(round)) && twice(4), "{ran:?}");
    // All of a round meet the same losses, unless two trials of a setting would be one.
    let seeds =
        |round: u32| ran.iter().filter(|(of, ..)| *of == round).map(|(.., seed)| *seed).collect::<BTreeSet<_>>();
    assert_eq!((seeds(3).len(), seeds(4).len()), (1, 4), "{ran:?}");
    assert!(whole.pick == 1 && whole.trials <= 14, "{whole:?}");
    for trials in 1..=9 {
        let (stopped, again) = stopped_after_every(trials);
        assert_eq!(again, ran, "stopped after every {trials}");
        assert_eq!(
            (&stopped.arms, stopped.rounds, stopped.trials),
            (&whole.arms, whole.rounds, whole.trials),
            "{trials}"
        );
    }
}
