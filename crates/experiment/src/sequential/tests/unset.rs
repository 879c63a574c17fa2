//! Settings that couldn't be set: their trials say nothing of them.

use super::*;
use std::collections::BTreeSet;

/// 24 rounds in which the settings gain so much.
fn ended(gains: &[f64]) -> Assessment {
    let mut experiment = Experiment::new(budget(gains.len(), 24 * gains.len())).unwrap();
    simulate::go_on(&mut experiment, &mut rng(5), &mut |arm, rng: &mut _| usual(arm, gains[arm], rng)).unwrap();
    experiment.assessment()
}

#[test]
fn without_all_candidates_nothing_is_excluded_claimed_or_needed() {
    for gain in [1.0, 3.0] {
        let a = ended(&[1.0, gain]).without(&BTreeSet::from([1]));
        assert!(a.lacks_candidates() && a.needed.is_empty(), "{a:?}");
        assert_eq!((a.pick, a.leader, a.gain_at_most, a.all_same), (0, 0, None, false), "{a:?}");
        assert_ne!(a.kind, VerdictKind::Faster);
    }
    // What all were compared with wasn't there.
    let a = ended(&[1.0, 3.0, 1.0]).without(&BTreeSet::from([0]));
    assert!(a.lacks_candidates() && a.pick == 0 && a.gain_at_most.is_none() && !a.all_same, "{a:?}");
}

#[test]
fn without_the_fastest_the_next_that_is_shown_is_picked_and_bounds_are_of_the_others() {
    let all = ended(&[1.0, 4.0, 2.5]);
    assert_eq!((all.pick, all.kind), (1, VerdictKind::Faster));
    let a = all.without(&BTreeSet::from([1]));
    let expected = if all.arms[2].claimed.is_some() { 2 } else { 0 };
    assert_eq!((a.pick, a.regret), (expected, None));
    let mut others: Vec<usize> = a.compared().map(|arm| arm.arm).collect();
    others.sort_unstable();
    assert_eq!(others, [2]);
    assert_eq!(all.without(&BTreeSet::new()), all);
}

#[test]
fn a_bound_is_no_wider_without_a_setting_than_with_it() {
    let all = ended(&[1.0, 1.15, 1.0]);
    let one = all.without(&BTreeSet::from([1]));
    let (with, without) = (all.gain_at_most, one.gain_at_most);
    assert!(without.is_some() && with.is_none_or(|with| without < Some(with)), "{with:?} {without:?}");
}
