mod excluding;
mod gone_on;
mod nothing;
mod quiet;
mod unset;

use super::*;
use crate::simulate::{self, ContinuedRun, NoiseModel, Path};
use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use std::time::Duration;
use wt_units::Bytes;

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

fn budget(arms: usize, trials: usize) -> Config {
    Config { max_trials: Some(trials), ..Config::new(arms) }
}

/// An experiment in which `trial` says what a trial of a setting gives, with a budget of trials; whether 1 is shown faster.
fn shows_one(config: Config, seed: u64, mut trial: impl FnMut(usize, &mut ChaCha12Rng) -> Observation) -> bool {
    let mut experiment = Experiment::new(config).unwrap();
    simulate::go_on(&mut experiment, &mut rng(seed), &mut trial).unwrap();
    experiment.pick() == 1
}

const DEADLINE: Duration = Duration::from_secs(10);

/// A trial of a rate around 100 kB/s, with noise of 16 %.
fn usual(arm: usize, gain: f64, rng: &mut ChaCha12Rng) -> Observation {
    let rate = 1e5 * gain * (0.16 * simulate::normal(rng)).exp();
    Observation::completed(arm, Bytes((rate * 5.0) as u64), Duration::from_secs(5))
}

#[test]
fn a_setting_that_is_slower_is_run_until_that_is_shown_where_it_is_asked() {
    let told = |both_ways: bool, gain: f64, seed: u64| {
        let mut experiment = Experiment::new(Config { both_ways, twice: false, ..budget(2, 40) }).unwrap();
        simulate::go_on(&mut experiment, &mut rng(seed), &mut |arm, rng: &mut _| {
            usual(arm, if arm == 1 { gain } else { 1.0 }, rng)
        })
        .unwrap();
        let a = experiment.assessment();
        (a.arms[1].slower, a.stop, a.rounds)
    };
    for seed in 0..20 {
        let (slower, stop, rounds) = told(true, 1.0 / 3.0, seed);
        assert!(slower && stop == Some(StopReason::OnlyCurrentLeft) && rounds < 16, "{seed}: {stop:?} {rounds}");
        assert!(!told(false, 1.0 / 3.0, seed).0, "nobody asked, and it is dropped sooner");
    }
    let of = |both_ways: bool, gain: f64| (0..60).filter(|seed| told(both_ways, gain, *seed).0).count();
    assert!(of(true, 0.8) > 40, "{}", of(true, 0.8));
    assert!(of(true, 1.0) <= 6, "{}", of(true, 1.0));
}

#[test]
fn a_setting_whose_transfers_are_cut_off_early_is_never_called_faster() {
    for share in [0.5, 1.0] {
        let shown = |seed| {
            shows_one(budget(4, 240), seed, |arm, rng| {
                let whole = usual(arm, if arm == 1 { 1.1 } else { 1.0 }, rng);
                if arm == 1 && rng.random_bool(share) {
                    // The rest of the deadline counts: it isn't known to be faster until it is done.
                    Observation::incomplete(1, Bytes(whole.bytes.get() / 5), DEADLINE, Bytes(1460))
                } else {
                    whole
                }
            })
        };
        assert!(!(0..40).any(shown), "{share}");
    }
}

#[test]
fn a_setting_most_of_whose_trials_are_bad_is_never_picked_whatever_its_evidence() {
    // It fails less badly than the current one is slow.
    let mut experiment = Experiment::new(budget(2, 400)).unwrap();
    for n in 0..40 {
        let bad = Observation::incomplete(1, Bytes(900_000 + n), DEADLINE, Bytes(1460));
        experiment.record(&[Observation::completed(0, Bytes(100_000), DEADLINE), bad]).unwrap();
    }
    let a = experiment.assessment();
    assert!(a.arms[1].evidence > 1e3 && a.arms[1].mostly_bad && a.arms[1].claimed.is_none(), "{:?}", a.arms[1]);
    assert_eq!(a.arms[1].evidence_together, 1.0, "nor does it speak for anything beside other experiments");
    assert!(a.pick == 0 && a.arms[1].fails_more > 20.0);
    let text = crate::Text::new(&a, &["current", "x"], Duration::from_secs(1)).to_string();
    assert!(text.contains("x isn't called faster: more than half of its trials stalled or failed."), "{text}");
}

#[test]
fn where_most_trials_of_the_current_setting_arent_completed_nothing_is_the_same_enough_or_ruled_out() {
    // Each counts over all of its deadline with half of the file: alike, whatever the settings do.
    for (bad, strict) in [(0..2, false), (0..2, true), (1..2, false), (1..2, true), (0..1, false)] {
        let plateau = PlateauConfig { strict, ..PlateauConfig::new(vec![1, 0]) };
        let mut experiment = Experiment::new(Config { plateau: Some(plateau), ..budget(2, 40) }).unwrap();
        let seen = |arm: usize, n: u64| {
            let bytes = Bytes(1_000_000 + n * 7919 % 1000);
            let whole = Observation::completed(arm, bytes, DEADLINE);
            if bad.contains(&arm) { Observation::incomplete(arm, bytes, DEADLINE, Bytes(1460)) } else { whole }
        };
        for n in 0..20 {
            experiment.record(&[seen(0, n), seen(1, n)]).unwrap();
        }
        let a = experiment.assessment();
        let plateau = a.plateau.clone().unwrap();
        assert!(!a.all_same && !a.arms[1].equivalent && plateau.smallest == plateau.anchor, "{bad:?} {a:#?}");
        let is_enough = |level: &LevelAssessment| level.verdict == LevelVerdict::Within;
        let mut enough = plateau.levels.iter().filter(|level| is_enough(level));
        assert!(
            enough.all(|level| !bad.contains(&level.arm) && !bad.contains(&plateau.anchor)),
            "{bad:?} {plateau:#?}"
        );
        // That a setting whose trials aren't completed gains nothing is true where the current one's are.
        assert_eq!(
            (a.lacks_current(), a.gain_at_most.is_none()),
            (bad.contains(&0), bad.contains(&0)),
            "{bad:?} {a:#?}"
        );
        assert!(!bad.contains(&0) || (a.needed.is_empty() && a.regret.is_none()), "{bad:?} {a:#?}");
        let text = crate::Text::new(&a, &["current", "x"], Duration::from_secs(1)).to_string();
        let why = "Nothing could be compared: more than half of the trials of your current setting stalled or failed.";
        assert_eq!(text.contains(why), bad.contains(&0), "{text}");
    }
}

#[test]
fn trials_that_are_lost_where_one_setting_is_slow_or_the_other_fast_make_nothing_faster() {
    // One of 400 at 5 % would be 20; four standard deviations of 100 experiments at 5 % are 14.
    type Lost = fn(&Observation) -> bool;
    let slow: Lost = |o| o.arm == 1 && o.bytes.get() < 437_000;
    let fast: Lost = |o| o.arm == 0 && o.bytes.get() > 570_000;
    for (name, lost) in [("1 where it is slow", slow), ("current where it is fast", fast)] {
        for again in [false, true] {
            let shown = |seed| {
                shows_one(budget(4, 240), seed, |arm, rng| {
                    let mut spoilt = 0;
                    loop {
                        let seen = usual(arm, 1.0, rng);
                        match lost(&seen) {
                            false => return seen.after(spoilt),
                            true if spoilt == 2 || !again => return Observation::void(arm).after(spoilt + 1),
                            true => spoilt += 1,
                        }
                    }
                })
            };
            let claims = (0..100).filter(|seed| shown(*seed)).count();
            assert!(claims <= 13, "{name}, run again {again}: {claims} of 100");
        }
    }
}

#[test]
fn trials_that_are_lost_alike_cost_their_round_and_no_claim() {
    let lost = |arm: usize, rng: &mut ChaCha12Rng| rng.random_bool(0.1).then(|| Observation::void(arm).after(1));
    let trial = |arm: usize, rng: &mut ChaCha12Rng| {
        lost(arm, rng).unwrap_or_else(|| usual(arm, if arm == 1 { 1.5 } else { 1.0 }, rng))
    };
    let found = (0..40).filter(|seed| shows_one(budget(4, 240), *seed, trial)).count();
    assert!(found >= 36, "{found} of 40");
}

#[test]
fn what_is_faster_by_less_than_is_worth_a_change_is_said_and_not_picked() {
    let mut experiment = Experiment::new(budget(2, 200)).unwrap();
    for n in 0..40 {
        let noise = |arm: usize| 3e-6 * f64::from((n * 7 + arm as i32 * 3) % 5);
        experiment.record(&[Observation::of(0, noise(0)), Observation::of(1, 3e-5 + noise(1))]).unwrap();
    }
    let a = experiment.assessment();
    assert!(a.arms[1].evidence > 20.0 && a.arms[1].faster_by_little && a.pick == 0, "{:?}", a.arms[1]);
    assert_eq!(a.kind, VerdictKind::NoDifference);
    let text = crate::Text::new(&a, &["current", "x"], Duration::from_secs(1));
    assert_eq!(text.headline, "x is faster by less than 1 %: not worth a change.");
}

#[test]
fn where_there_is_hardly_any_noise_five_rounds_exclude_every_gain_that_matters() {
    let mut experiment = Experiment::new(budget(8, 46)).unwrap();
    drive(&mut experiment, &[0.0, -0.6, -0.03, 0.001, 0.0, -0.002, 0.0, -0.2], 3e-4, &mut rng(21));
    let a = experiment.assessment();
    assert_eq!((a.kind, a.pick, a.stop), (VerdictKind::NoDifference, 0, Some(StopReason::Futile)));
    assert!(a.trials <= 46 && a.gain_at_most.is_some_and(|most| most < 0.05f64.ln_1p()), "{:?}", a.gain_at_most);
    assert!(a.arms[1..].iter().all(|arm| arm.rounds >= 5));
}

#[test]
fn the_same_generator_draws_the_same_round_again() {
    let mut experiment = Experiment::new(budget(8, 240)).unwrap();
    let mut other = Experiment::new(budget(8, 240)).unwrap();
    let mut noise = rng(30);
    for round in 0..12 {
        let order = experiment.next_round(&mut rng(round)).unwrap();
        assert_eq!(other.next_round(&mut rng(round)), Some(order.clone()));
        assert!(round < 3 || order.len() == 3, "the current setting and two candidates: {order:?}");
        let seen: Vec<Observation> = order.iter().map(|arm| usual(*arm, 1.0, &mut noise)).collect();
        experiment.record(&seen).unwrap();
        other.record(&seen).unwrap();
    }
}

#[test]
fn so_many_more_rounds_show_a_true_gain_in_about_four_of_five_continuations() {
    // 16 trials are hardly ever enough, so that most experiments are told what it takes.
    let rates: Vec<ContinuedRun> = (0..60).filter_map(|seed| simulate::continued(2, 16, 0.16, seed)).collect();
    let told = rates.len() as f64;
    let share = rates.iter().filter(|one| one.shown).count() as f64 / told;
    assert!(rates.iter().all(|one| one.more_rounds > 0), "{rates:?}");
    // The gain is the one that is asked for: 80 %, and four standard deviations.
    assert!(told >= 30.0 && (share - 0.8).abs() < 4.0 * (0.16 / told).sqrt(), "{share} of {told}");
}

/// Runs the experiment on outcomes `effect + noise`, noise uniform within ±`spread`.
fn drive(experiment: &mut Experiment, effects: &[f64], spread: f64, rng: &mut ChaCha12Rng) -> Vec<Vec<Observation>> {
    let mut rounds = Vec::new();
    while let Some(order) = experiment.next_round(rng) {
        let mut outcome = |arm: usize| Observation::of(arm, effects[arm] + rng.random_range(-spread..=spread));
        let round: Vec<Observation> = order.into_iter().map(&mut outcome).collect();
        experiment.record(&round).unwrap();
        rounds.push(round);
    }
    rounds
}

#[test]
fn a_large_gain_is_claimed_in_about_as_few_rounds_as_signs_allow() {
    let mut experiment = Experiment::new(budget(4, 120)).unwrap();
    drive(&mut experiment, &[0.0, 0.0, 0.4, 0.0], 0.05, &mut rng(1));
    let a = experiment.assessment();
    assert_eq!((a.kind, a.pick, a.stop), (VerdictKind::Faster, 2, Some(StopReason::Claimed)));
    assert!((4..=12).contains(&a.rounds), "{} rounds {} trials", a.rounds, a.trials);
    let arm = &a.arms[2];
    assert!(arm.evidence >= 60.0 && arm.needed == Some(60.0) && arm.claimed == Some(a.rounds));
    assert!((0.0..0.4).contains(&arm.at_least.unwrap()) && arm.upper.is_none_or(|upper| upper > 0.4));
    let cautious = arm.cautious.unwrap();
    assert!(arm.at_least.unwrap() < cautious && cautious < arm.estimate.unwrap());
    assert!((arm.estimate.unwrap() - 0.4).abs() < 0.05 && a.regret.unwrap() < 0.05);
    assert!(a.arms[1].dropped.is_some() && a.arms[3].dropped.is_some());
}

#[test]
fn when_the_current_setting_is_best_by_far_the_others_are_dropped_and_it_stays() {
    let mut experiment = Experiment::new(budget(3, 120)).unwrap();
    drive(&mut experiment, &[0.5, 0.0, 0.1], 0.05, &mut rng(2));
    let a = experiment.assessment();
    assert_eq!((a.kind, a.pick, a.stop), (VerdictKind::NoDifference, 0, Some(StopReason::OnlyCurrentLeft)));
    assert!(a.rounds < 8);
}

#[test]
fn settings_that_differ_by_rounding_alone_are_told_apart_by_nothing() {
    let mut experiment = Experiment::new(budget(3, 120)).unwrap();
    drive(&mut experiment, &[16.7, 16.7 + 4e-15, 16.7 - 4e-15], 0.0, &mut rng(5));
    let a = experiment.assessment();
    assert!(a.arms.iter().all(|arm| arm.dropped.is_none()), "{a:?}");
    assert_eq!((a.kind, a.stop, a.rounds), (VerdictKind::NoDifference, Some(StopReason::Futile), 5));
}

#[test]
fn identical_settings_are_given_up_before_the_budget_is_used_up() {
    let mut rng = rng(3);
    let mut path = Path::new(NoiseModel::Calm, &mut rng);
    let a = simulate::run(budget(4, 240), &mut path, &[0.0; 4], &mut rng).unwrap();
    assert_eq!((a.kind, a.pick), (VerdictKind::NoDifference, 0));
    assert!(a.trials <= 240 && a.stop.is_some());
}

#[test]
fn no_round_begins_that_does_not_fit_into_the_budget() {
    let mut experiment = Experiment::new(budget(4, 10)).unwrap();
    let rounds = drive(&mut experiment, &[0.0; 4], 0.1, &mut rng(4));
    assert_eq!((rounds.len(), experiment.trials(), experiment.stop_reason()), (2, 8, Some(StopReason::Budget)));
    experiment.resume(Some(12));
    assert_eq!((experiment.stop_reason(), experiment.next_round(&mut rng(5)).map(|r| r.len())), (None, Some(4)));
}

#[test]
fn the_order_is_uniform_and_holds_every_planned_setting_once() {
    let experiment = Experiment::new(Config::new(3)).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    let mut rng = rng(6);
    for _ in 0..6_000 {
        *seen.entry(experiment.next_round(&mut rng).unwrap()).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 6);
    // Five standard deviations of a binomial count about 1000.
    assert!(seen.values().all(|n: &i32| (n - 1000).abs() < 145), "{seen:?}");
}

#[test]
fn the_same_rounds_lead_to_the_same_assessment_in_any_order_within_the_round() {
    let mut rng = rng(7);
    let mut first = Experiment::new(budget(4, 120)).unwrap();
    let rounds = drive(&mut first, &[0.0, 0.05, 0.1, 0.2], 0.2, &mut rng);
    let mut second = Experiment::new(budget(4, 120)).unwrap();
    for round in &rounds {
        assert_eq!(second.stop_reason(), None);
        let mut sorted = round.clone();
        sorted.sort_by_key(|o| o.arm);
        second.record(&sorted).unwrap();
    }
    let (mut a, mut b) = (first.assessment(), second.assessment());
    assert_eq!((a.stop, a.pick, a.rounds), (b.stop, b.pick, b.rounds));
    // Sums in another order differ in the last digits of the model alone.
    for (a, b) in a.arms.iter_mut().zip(&mut b.arms) {
        assert_eq!((a.evidence, a.lower, a.upper, &a.series), (b.evidence, b.lower, b.upper, &b.series));
    }
}

#[test]
fn a_round_that_was_cut_short_is_paid_for_and_does_not_count() {
    let mut experiment = Experiment::new(budget(3, 30)).unwrap();
    let whole: Vec<Observation> = (0..3).map(|arm| Observation::of(arm, arm as f64 * 0.1)).collect();
    experiment.record(&whole).unwrap();
    let before = experiment.assessment();
    assert_eq!(experiment.cut(&whole[..2]), Ok(RoundOutcome::Discarded));
    let after = experiment.assessment();
    assert_eq!((after.rounds, after.discarded_rounds, after.trials), (1, 1, 5));
    assert_eq!(after.arms[1].series, before.arms[1].series);
    assert_eq!(after.arms[1].estimate, before.arms[1].estimate);
    // Also when the user stopped it first.
    experiment.stop(StopReason::User);
    experiment.cut(&whole[..1]).unwrap();
    assert_eq!(experiment.assessment().kind, VerdictKind::Stopped);
    assert_eq!(experiment.next_round(&mut rng(1)), None);
}

#[test]
fn a_void_trial_takes_only_its_own_comparisons_with_it() {
    let mut experiment = Experiment::new(Config::new(3)).unwrap();
    let round = [Observation::of(0, 1.0), Observation::void(1), Observation::of(2, 1.1)];
    assert_eq!(experiment.record(&round), Ok(RoundOutcome::Counted));
    let a = experiment.assessment();
    assert_eq!([a.arms[1].rounds, a.arms[1].void, a.arms[2].rounds], [0, 1, 1]);
    experiment.record(&[Observation::void(0), Observation::of(1, 1.0), Observation::of(2, 1.0)]).unwrap();
    let a = experiment.assessment();
    assert_eq!([a.arms[1].rounds, a.arms[2].rounds, a.rounds], [0, 1, 2]);
}

#[test]
fn a_setting_that_always_fails_counts_as_evidence_but_not_in_the_estimates_and_is_dropped() {
    let deadline = Duration::from_secs(10);
    let mss = Bytes(1460);
    let mut experiment = Experiment::new(budget(3, 300)).unwrap();
    for _ in 0..12 {
        let Some(order) = experiment.next_round(&mut rng(8)) else { break };
        let observe = |arm| match arm {
            1 => Observation::failed(1, deadline, mss),
            arm => Observation::completed(arm, Bytes(1_000_000 + arm as u64 * 1_000), deadline),
        };
        let round: Vec<Observation> = order.into_iter().map(observe).collect();
        experiment.record(&round).unwrap();
    }
    let a = experiment.assessment();
    assert_eq!(a.arms[1].dropped, Some(DroppedSetting { round: 3, reason: DropReason::Failing }));
    assert_eq!((a.arms[1].failed, a.arms[1].estimate), (3, None));
    assert!(a.arms[1].fails_more > 1.0 && a.arms[1].evidence < 2.0);
    assert!(a.arms[2].estimate.unwrap() > 0.0);
}

#[test]
fn where_everything_fails_nobody_is_said_to_lead() {
    let mut experiment = Experiment::new(budget(2, 6)).unwrap();
    for _ in 0..3 {
        let round = [0, 1].map(|arm| Observation::failed(arm, Duration::from_secs(10), Bytes(1460)));
        experiment.record(&round).unwrap();
    }
    let text =
        |experiment: &Experiment| crate::Text::new(&experiment.assessment(), &["current", "x"], Duration::from_secs(1));
    assert_eq!(text(&experiment).headline, "Nothing could be compared: every trial failed.");
    let mut nothing = Experiment::new(budget(2, 6)).unwrap();
    nothing.record(&[Observation::void(0), Observation::void(1)]).unwrap();
    assert_eq!(text(&nothing).headline, "No difference shown so far.");
}

#[test]
fn nonsense_is_refused_and_changes_nothing() {
    for (config, want) in [
        (Config::new(1), "2 to 64 settings"),
        (Config { alpha: 0.0, ..Config::new(3) }, "alpha"),
        (Config { alpha: f64::NAN, ..Config::new(3) }, "alpha"),
        (Config { weights: Some(vec![1.0]), ..Config::new(3) }, "2 weights"),
        (Config { weights: Some(vec![1.0, 0.0]), ..Config::new(3) }, "all positive"),
        (budget(4, 3), "no room"),
        (Config { plateau: Some(PlateauConfig::new(vec![1, 1])), ..Config::new(3) }, "different settings"),
        (Config { plateau: Some(PlateauConfig::new(vec![3])), ..Config::new(3) }, "different settings"),
        (Config { plateau: Some(PlateauConfig::new(vec![])), ..Config::new(3) }, "different settings"),
    ] {
        let error = Experiment::new(config).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let mut experiment = Experiment::new(Config::new(2)).unwrap();
    let zero_time = Observation::completed(1, Bytes(5), Duration::ZERO);
    let no_bytes = Observation::completed(1, Bytes(0), Duration::from_secs(1));
    let good = Observation::of(0, 1.0);
    let thrice = [good; 3];
    let rounds: [&[Observation]; 4] =
        [&[good, zero_time], &[good, no_bytes], &[good, Observation::of(2, 1.0)], &thrice];
    for round in rounds {
        assert!(experiment.record(round).is_err());
    }
    assert_eq!((experiment.rounds(), experiment.trials()), (0, 0));
    assert_eq!(experiment.record(&[]), Ok(RoundOutcome::Discarded));
}

#[test]
fn weights_move_the_threshold_of_each_candidate_and_share_the_same_error() {
    let config = Config { weights: Some(vec![3.0, 1.0]), ..Config::new(3) };
    let a = Experiment::new(config).unwrap().assessment();
    let needed: Vec<f64> = a.arms.iter().filter_map(|arm| arm.needed).collect();
    assert!((needed[0] - 20.0 / 0.75).abs() < 1e-9 && (needed[1] - 80.0).abs() < 1e-9);
    assert!((needed.iter().map(|n| 1.0 / n).sum::<f64>() - 0.05).abs() < 1e-12);
}

/// Levels 1 < 2 < 3 < current < 5 of which 2 and up are on the plateau.
fn plateau_config() -> Config {
    Config { plateau: Some(PlateauConfig::new(vec![1, 2, 3, 0, 4])), ..budget(5, 400) }
}

#[test]
fn the_smallest_level_on_the_plateau_of_the_current_setting_is_found() {
    let mut experiment = Experiment::new(plateau_config()).unwrap();
    drive(&mut experiment, &[0.0, -0.4, -0.01, 0.0, 0.0], 0.06, &mut rng(9));
    let a = experiment.assessment();
    let p = a.plateau.unwrap();
    assert_eq!((a.pick, p.anchor, p.since_round, p.smallest, p.settled), (0, 0, 0, 2, true));
    let verdicts: Vec<LevelVerdict> = p.levels.iter().map(|l| l.verdict).collect();
    assert_eq!(verdicts, [LevelVerdict::Below, LevelVerdict::Within, LevelVerdict::Within]);
    assert_eq!(p.levels.iter().map(|l| l.arm).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_larger_level_shown_to_be_faster_becomes_the_anchor_on_fresh_rounds() {
    let mut experiment = Experiment::new(plateau_config()).unwrap();
    drive(&mut experiment, &[0.0, -1.2, -0.8, -0.4, 0.5], 0.05, &mut rng(10));
    let a = experiment.assessment();
    let p = a.plateau.unwrap();
    assert_eq!((a.pick, p.anchor, p.smallest, p.settled), (4, 4, 4, true));
    assert!(p.since_round >= 8);
    assert!(p.levels.iter().all(|l| l.verdict == LevelVerdict::Below));
}

#[test]
fn a_smaller_level_shown_to_be_faster_leaves_only_the_levels_below_it() {
    let mut experiment = Experiment::new(plateau_config()).unwrap();
    drive(&mut experiment, &[0.0, 0.28, 0.30, 0.0, 0.0], 0.03, &mut rng(11));
    let a = experiment.assessment();
    let p = a.plateau.unwrap();
    assert_eq!((a.kind, p.settled), (VerdictKind::Faster, true));
    assert!(p.anchor == 2 && p.smallest == 1 || p.anchor == 1 && p.levels.is_empty(), "{p:?}");
}

#[test]
fn no_level_counts_below_one_that_is_not_shown() {
    let mut experiment = Experiment::new(plateau_config()).unwrap();
    drive(&mut experiment, &[0.0, 0.0, 0.0, -0.5, 0.0], 0.05, &mut rng(12));
    let p = experiment.assessment().plateau.unwrap();
    assert_eq!(p.smallest, 0);
    assert!(p.levels.iter().all(|l| l.verdict != LevelVerdict::Within));
}

#[test]
fn the_strict_search_finds_the_smallest_level_within_the_best_of_all_and_never_one_below() {
    let mut config = plateau_config();
    config.plateau = Some(PlateauConfig { strict: true, ..PlateauConfig::new(vec![1, 2, 3, 0, 4]) });
    // The current setting lies on the falling side of an umbrella: relative to it level 1 would do.
    let effects = [-0.2, -0.25, -0.02, 0.0, -0.3];
    let mut experiment = Experiment::new(config).unwrap();
    drive(&mut experiment, &effects, 0.05, &mut rng(14));
    let p = experiment.assessment().plateau.unwrap();
    assert!(p.strict && p.settled);
    assert_eq!(p.smallest, 2, "{p:?}");
    let verdict = |arm: usize| p.levels.iter().find(|l| l.arm == arm).unwrap().verdict;
    assert_eq!([verdict(1), verdict(2)], [LevelVerdict::Below, LevelVerdict::Within]);
}

#[test]
fn the_weights_of_the_strict_search_share_alpha_among_the_levels() {
    let mut config = plateau_config();
    let weights = Some(vec![1.0, 1.0, 2.0, 4.0, 2.0]);
    config.plateau = Some(PlateauConfig { strict: true, weights, ..PlateauConfig::new(vec![1, 2, 3, 0, 4]) });
    let p = Experiment::new(config.clone()).unwrap().assessment().plateau.unwrap();
    assert!((p.levels.iter().map(|l| 1.0 / l.needed).sum::<f64>() - 0.05).abs() < 1e-12);
    config.plateau = Some(PlateauConfig { weights: Some(vec![1.0]), ..PlateauConfig::new(vec![1, 2, 3, 0, 4]) });
    assert_eq!(Experiment::new(config).unwrap_err(), ExperimentError::LevelWeights { levels: 5 });
}

#[test]
fn levels_stay_in_the_rounds_while_their_question_is_open() {
    // Level 1 lies clearly behind for "faster", but well within ε.
    let config = Config { plateau: Some(PlateauConfig::new(vec![1, 0])), ..budget(2, 400) };
    let mut experiment = Experiment::new(config).unwrap();
    drive(&mut experiment, &[0.0, -0.04], 0.01, &mut rng(13));
    let a = experiment.assessment();
    let p = a.plateau.unwrap();
    assert!(a.arms[1].dropped.is_some_and(|d| d.round < a.rounds));
    assert_eq!((p.smallest, a.rounds >= 7, a.arms[1].rounds), (1, true, a.rounds));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_constant_for_every_round_changes_nothing(seed in 0u64..1000, constant in -5.0f64..5.0) {
        let play = |constant: f64| {
            let mut rng = rng(seed);
            let mut experiment = Experiment::new(budget(3, 60)).unwrap();
            let mut n = 0.0;
            while let Some(order) = experiment.next_round(&mut rng) {
                n += 1.0;
                // Outcomes in steps of 2⁻¹⁰ so that adding the constant loses nothing.
                let grid = |y: f64| (y * 1024.0).round() / 1024.0;
                let round: Vec<Observation> = order
                    .into_iter()
                    .map(|arm| Observation::of(arm, grid(rng.random_range(0.0..1.0)) + grid(constant) * n))
                    .collect();
                experiment.record(&round).unwrap();
            }
            experiment.assessment()
        };
        let (a, b) = (play(0.0), play(constant));
        prop_assert_eq!((a.rounds, a.pick, a.stop), (b.rounds, b.pick, b.stop));
        for (a, b) in a.arms.iter().zip(&b.arms) {
            prop_assert_eq!(&a.series, &b.series);
        }
    }

    #[test]
    fn any_rounds_at_all_are_taken_or_refused_without_a_panic(
        rounds in prop::collection::vec(
            prop::collection::vec((0usize..5, prop::num::f64::ANY, 0u8..4), 0..6), 0..30),
    ) {
        let mut experiment = Experiment::new(Config {
            plateau: Some(PlateauConfig::new(vec![1, 0, 3])), ..budget(4, 100)
        }).unwrap();
        for round in rounds {
            let ended = [TrialEnd::Completed, TrialEnd::Incomplete, TrialEnd::Failed, TrialEnd::Void];
            let round: Vec<Observation> = round
                .into_iter()
                .map(|(arm, y, e)| Observation { ended: ended[usize::from(e)], ..Observation::of(arm, y) })
                .collect();
            let _ = experiment.record(&round);
            let _ = experiment.assessment();
        }
    }
}

#[test]
fn a_two_by_two_keeps_its_four_settings_until_its_interaction_has_an_interval() {
    // Two of the four lie so far behind that they would be dropped after three rounds, and so does one that is no cell.
    let ratios = [1.0, 0.6, 0.65, 1.3, 0.5];
    let with = |cells: Vec<usize>| {
        let config = Config { method: Method::Uniform, cells, ..budget(5, 300) };
        let mut experiment = Experiment::new(config).unwrap();
        let mut random = rng(7);
        let mut whole = 0;
        while let Some(order) = experiment.next_round(&mut random) {
            whole += usize::from((0..4).all(|arm| order.contains(&arm)));
            let trial = |arm| Observation::of(arm, f64::ln(ratios[arm]) + 0.01 * simulate::normal(&mut random));
            experiment.record(&order.into_iter().map(trial).collect::<Vec<_>>()).unwrap();
        }
        (whole, experiment)
    };
    let (alone, experiment) = with(vec![]);
    assert!(alone == 3 && experiment.assessment().arms[1].dropped.is_some(), "{alone}");
    let (together, experiment) = with(vec![0, 1, 2, 3]);
    assert!(together >= fewest_for_interval(0.05) && together == experiment.rounds(), "{together}");
    assert_eq!(experiment.stop_reason(), Some(StopReason::Claimed));
    assert_eq!(experiment.assessment().arms.iter().filter(|arm| arm.dropped.is_some()).count(), 1);
}

#[test]
fn a_two_by_two_with_a_setting_that_fails_ends_all_the_same() {
    let config = Config { method: Method::Uniform, cells: vec![0, 1, 2, 3], ..budget(4, 300) };
    let mut experiment = Experiment::new(config).unwrap();
    let mut random = rng(8);
    while let Some(order) = experiment.next_round(&mut random) {
        let trial = |arm| match arm {
            1 => Observation::failed(1, DEADLINE, Bytes(1460)),
            arm => usual(arm, if arm == 3 { 1.6 } else { 1.0 }, &mut random),
        };
        experiment.record(&order.into_iter().map(trial).collect::<Vec<_>>()).unwrap();
    }
    assert_eq!(experiment.stop_reason(), Some(StopReason::Claimed));
    assert_eq!(experiment.assessment().arms[1].dropped.map(|dropped| dropped.reason), Some(DropReason::Failing));
}

#[test]
fn an_interaction_gets_its_interval_after_so_many_rounds() {
    assert_eq!(fewest_for_interval(0.05), 4);
    assert!(fewest_for_interval(0.001) > 4);
    let config = Config { cells: vec![0, 1, 2, 9], ..budget(4, 300) };
    assert!(Experiment::new(config).is_err());
}
