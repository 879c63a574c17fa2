//! Rounds in which both settings were run twice.

use crate::eprocess::*;
use crate::wager::Wager;
use proptest::prelude::*;

/// The six ways to share four places: whose are the first setting's.
const WAYS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

/// What a round of these four outcomes says if the first setting had these two places.
fn shared(outcomes: [f64; 4], places: [usize; 2]) -> Difference {
    let rest: Vec<f64> = (0..4).filter(|place| !places.contains(place)).map(|place| outcomes[place]).collect();
    Difference::Twice { own: places.map(|place| outcomes[place]), other: [rest[0], rest[1]] }
}

/// All that could have come of these rounds, had their order been drawn otherwise, each as likely: pairs, then fours.
fn worlds(pairs: &[f64], fours: &[[f64; 4]]) -> Vec<Vec<Difference>> {
    let mut all = vec![Vec::new()];
    let append = |all: Vec<Vec<Difference>>, ends: Vec<Difference>| -> Vec<Vec<Difference>> {
        let with = |before: &Vec<Difference>| {
            ends.iter().map(|end| before.iter().copied().chain([*end]).collect()).collect::<Vec<_>>()
        };
        all.iter().flat_map(with).collect()
    };
    for d in pairs {
        all = append(all, vec![Difference::Once(*d), Difference::Once(-d)]);
    }
    for four in fours {
        all = append(all, WAYS.map(|way| shared(*four, way)).to_vec());
    }
    all
}

fn mean(worlds: &[Vec<Difference>], evidence: impl Fn(&[Difference]) -> f64) -> f64 {
    worlds.iter().map(|world| evidence(world)).sum::<f64>() / worlds.len() as f64
}

proptest! {
    #[test]
    fn over_all_orders_the_evidence_averages_one(
        pairs in prop::collection::vec(-1.0f64..1.0, 0..5),
        fours in prop::collection::vec(prop::array::uniform4(-1.0f64..1.0), 1..4),
        shift in 0.0f64..0.5, ties in any::<bool>(),
    ) {
        // Outcomes that are alike make ways alike.
        let fours: Vec<[f64; 4]> = fours.iter().map(|four| if ties { four.map(|y| (y * 2.0).round()) } else { *four }).collect();
        let worlds = worlds(&pairs, &fours);
        let plain = mean(&worlds, |world| EProcess::new().after_all(world).evidence());
        let below = mean(&worlds, |world| EProcess::below(0.0).after_all(world).evidence());
        let bold = mean(&worlds, |world| EProcess::new().boldly().after_all(world).evidence());
        prop_assert!((plain - 1.0).abs() < 1e-9 && (below - 1.0).abs() < 1e-9, "{plain} {below}");
        // The bold half loses all in a tie of a pair, which is no more than fair.
        prop_assert!(bold < 1.0 + 1e-9 && (ties || (bold - 1.0).abs() < 1e-9), "{bold}");
        // A setting that is worse wins no more.
        let worse = mean(&worlds, |world| EProcess::above(shift).after_all(world).evidence());
        prop_assert!(worse < 1.0 + 1e-9, "{worse}");
    }

    #[test]
    fn bets_on_the_end_of_a_budget_average_one_too(
        pairs in prop::collection::vec(-1.0f64..1.0, 1..4),
        fours in prop::collection::vec(prop::array::uniform4(-1.0f64..1.0), 1..3),
        begins in 0usize..5, extra in 0usize..5,
    ) {
        let worlds = worlds(&pairs, &fours);
        let rounds = pairs.len() + fours.len();
        let evidence = |world: &[Difference]| {
            let mut wager = Wager::above(0.0, 20.0);
            for (i, d) in world.iter().enumerate() {
                wager.take(*d, (i >= begins).then(|| rounds + extra - i));
            }
            wager.log_evidence().exp()
        };
        let mean = mean(&worlds, evidence);
        prop_assert!((mean - 1.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn whoever_is_faster_by_more_has_no_less_evidence(
        pairs in prop::collection::vec(-0.2f64..1.0, 1..6), four in prop::array::uniform4(-1.0f64..1.0),
        more in 0.0f64..1.0,
    ) {
        let before: Vec<Difference> = pairs.iter().copied().map(Difference::Once).collect();
        let after = |own: [f64; 2]| {
            let last = Difference::Twice { own, other: [four[2], four[3]] };
            EProcess::new().after_all(&before).after_all(&[last]).log_evidence()
        };
        prop_assert!(after([four[0] + more, four[1] + more]) >= after([four[0], four[1]]) - 1e-9);
    }
}

proptest! {
    #[test]
    fn nothing_loses_more_than_what_counts_as_lost(
        pairs in prop::collection::vec(-0.5f64..1.0, 1..6), four in prop::array::uniform4(-1.0f64..1.0),
    ) {
        let before: Vec<Difference> = pairs.iter().copied().map(Difference::Once).collect();
        let begun = EProcess::new().after_all(&before);
        let after = |last: Difference| begun.clone().after_all(&[last]).log_evidence();
        let [a, b, c, d] = four;
        let lost = after(Difference::lost(-2.0 * begun.scale()));
        let any = after(Difference::Twice { own: [a, b], other: [c, d] });
        prop_assert!(lost <= any + 1e-9);
        prop_assert!(lost <= begun.log_evidence() && lost >= begun.log_evidence() + 0.05f64.ln() - 1e-9);
    }
}

/// A gain of a tenth where hardly anything varies: pairs, then fours.
fn quiet(pairs: usize, fours: usize) -> Vec<Difference> {
    let noise = |i: usize| 1e-3 * ((i * 37 % 19) as f64 / 19.0 - 0.5);
    let four =
        |i: usize| Difference::Twice { own: [0.1 + noise(i), 0.1 + noise(i + 1)], other: [noise(i + 2), noise(i + 3)] };
    (0..pairs).map(|i| Difference::Once(0.1 + noise(i))).chain((0..fours).map(four)).collect()
}

#[test]
fn ten_trials_show_what_takes_fourteen_if_each_round_has_two() {
    let trials = |pairs: usize, fours: usize, need: f64| {
        let evidence =
            |n: usize| EProcess::new().after_all(&quiet(pairs.min(n), n.saturating_sub(pairs).min(fours))).evidence();
        let rounds = (1..).find(|n| evidence(*n) >= need).unwrap();
        2 * rounds.min(pairs) + 4 * rounds.saturating_sub(pairs)
    };
    let by = |need: f64| (trials(100, 0, need), trials(3, 100, need));
    assert_eq!([by(20.0), by(40.0), by(140.0)], [(14, 10), (16, 14), (20, 18)]);
}

#[test]
fn bounds_of_both_kinds_of_rounds_lie_where_the_evidence_is_what_is_needed() {
    for differences in [quiet(3, 3), quiet(0, 4), quiet(6, 1)] {
        let (low, high) = (lower_bound_of(&differences, 20.0), upper_bound_of(&differences, 20.0));
        assert!(0.05 < low && low < 0.1 && 0.1 < high && high < 0.15, "{low} {high}");
        let at = |shift: f64| EProcess::above(shift).after_all(&differences).evidence();
        assert!(at(low - 1e-6) >= 20.0 && at(low + 1e-6) < 20.0, "{} {}", at(low - 1e-6), at(low + 1e-6));
        let (bold_low, bold_high) = (bold_lower_bound_of(&differences, 20.0), bold_upper_bound_of(&differences, 20.0));
        assert!(0.09 < bold_low && bold_low < 0.1 && 0.1 < bold_high && bold_high < 0.11, "{bold_low} {bold_high}");
    }
    // Six ways each: in two rounds the bold half of the first unit becomes 18, and the other one some more.
    assert_eq!([1, 2, 3].map(|n| bold_upper_bound_of(&quiet(0, n), 20.0).is_finite()), [false, true, true]);
}
