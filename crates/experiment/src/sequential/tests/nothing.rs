//! Where the current setting delivers nothing: there is evidence, and no ratio.

use super::*;

/// An experiment to its end, in which these trials of the current setting, counted from 0, move nothing; the others gain so much.
fn ended(config: Config, gains: &[f64], fails: impl Fn(u64) -> bool) -> Assessment {
    let mut experiment = Experiment::new(config).unwrap();
    let mut own = 0;
    simulate::go_on(&mut experiment, &mut rng(3), &mut |arm, rng: &mut _| {
        own += u64::from(arm == 0);
        let failed = arm == 0 && fails(own - 1);
        if failed { Observation::failed(0, DEADLINE, Bytes(1000)) } else { usual(arm, gains[arm], rng) }
    })
    .unwrap();
    experiment.assessment()
}

fn told(a: &Assessment) -> String {
    crate::Text::new(a, &["current", "B", "C", "D"], Duration::from_secs(1)).to_string()
}

#[test]
fn what_works_where_the_current_setting_delivers_nothing_is_proven_soon_and_has_no_ratio() {
    let a = ended(budget(2, 60), &[1.0, 1.0], |_| true);
    let arm = &a.arms[1];
    assert!((a.pick, a.stop) == (1, Some(StopReason::Claimed)) && arm.claimed == Some(a.rounds), "{a:?}");
    assert_eq!((arm.ratio, arm.lower, arm.upper, arm.at_least, arm.cautious), (None, None, None, None, None));
    let (text, n) = (told(&a), a.rounds);
    assert!(
        text.starts_with(&format!("B works, where your current setting delivers nothing ({n} of {n} trials failed)."))
    );
    assert!(
        text.contains("There is no saying by how much") && !text.contains('×') && !text.contains("unknown"),
        "{text}"
    );
}

#[test]
fn of_several_that_work_the_fastest_is_picked_and_the_budget_is_spared() {
    let a = ended(budget(4, 400), &[1.0, 1.0, 2.0, 1.0], |_| true);
    assert!((a.pick, a.stop) == (2, Some(StopReason::Claimed)) && a.trials < 100, "{a:?}");
    let square = Config { cells: vec![0, 1, 2, 3], ..budget(4, 400) };
    assert_eq!(ended(square, &[1.0, 1.0, 2.0, 1.0], |_| true).stop, Some(StopReason::Claimed));
}

#[test]
fn where_the_current_setting_mostly_delivers_nothing_no_bound_is_made_of_that() {
    let a = ended(budget(2, 100), &[1.0, 1.0], |n| n % 3 > 0);
    let arm = &a.arms[1];
    assert!((a.pick, a.stop) == (1, Some(StopReason::Claimed)) && arm.ratio.is_some_and(|ratio| ratio < 1.5), "{a:?}");
    assert_eq!((arm.lower, arm.upper, arm.at_least, arm.cautious), (None, None, None, None));
    let text = told(&a);
    assert!(
        text.contains(" mostly delivers nothing (") && text.contains("Where both delivered something, it was ×"),
        "{text}"
    );
}

#[test]
fn a_claim_from_when_nothing_was_delivered_leaves_no_bound_to_what_comes_after() {
    let mut experiment = Experiment::new(budget(2, 400)).unwrap();
    let mut random = rng(5);
    for n in 0..50 {
        let own = if n < 10 { Observation::failed(0, DEADLINE, Bytes(1000)) } else { usual(0, 1.0, &mut random) };
        experiment.record(&[own, usual(1, 1.3, &mut random)]).unwrap();
    }
    let arm = &experiment.assessment().arms[1];
    assert!(arm.claimed.is_some_and(|round| round <= 10), "{arm:?}");
    assert!(arm.at_least.is_some_and(|least| least < 1.0), "{arm:?}");
}

#[test]
fn where_some_trials_move_nothing_no_bound_leaves_the_estimate_out() {
    let mut experiment = Experiment::new(budget(2, 400)).unwrap();
    let mut random = rng(5);
    for n in 0..60 {
        let current =
            if n % 5 == 0 { Observation::failed(0, DEADLINE, Bytes(1000)) } else { usual(0, 1.0, &mut random) };
        experiment.record(&[current, usual(1, 1.02, &mut random)]).unwrap();
        let arm = &experiment.assessment().arms[1];
        let Some(own) = arm.estimate else { continue };
        let least = arm.at_least.unwrap_or(f64::NEG_INFINITY);
        let (lower, upper) = (arm.lower.unwrap_or(f64::NEG_INFINITY), arm.upper.unwrap_or(f64::INFINITY));
        assert!(least <= own && lower <= own && own <= upper, "round {n}: {arm:?}");
    }
}
