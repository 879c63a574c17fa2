//! Rounds that have each of their settings twice.

use crate::distributions::normal;
use crate::sequential::{Config, Experiment, Method, Observation, PlateauConfig};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// A whole experiment on these effects, with noise that may depend on the place within a round; how many of its rounds had settings twice.
fn run(
    config: Config,
    effects: &[f64],
    rng: &mut ChaCha8Rng,
    noise: impl Fn(&mut ChaCha8Rng, usize) -> f64,
) -> (Experiment, usize) {
    let mut experiment = Experiment::new(Config { max_trials: Some(240), ..config }).unwrap();
    let mut twice = 0;
    while let Some(order) = experiment.next_round(rng) {
        let runs = |arm: usize| order.iter().filter(|other| **other == arm).count();
        let all_twice = order.iter().all(|arm| runs(*arm) == 2);
        assert!(all_twice || order.iter().all(|arm| runs(*arm) == 1), "{order:?}");
        twice += usize::from(all_twice);
        let seen = |(place, arm): (usize, &usize)| Observation::of(*arm, effects[*arm] + noise(rng, place));
        let round: Vec<Observation> = order.iter().enumerate().map(seen).collect();
        experiment.record(&round).unwrap();
    }
    (experiment, twice)
}

/// The median of the trials that so many experiments take until a gain of setting 1 is shown.
fn trials(arms: usize, gain: f64, sigma: f64, twice: bool, runs: u64) -> usize {
    let mut effects = vec![0.0; arms];
    effects[1] = gain.ln_1p();
    let mut all: Vec<usize> = (0..runs)
        .map(|seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (experiment, _) =
                run(Config { twice, ..Config::new(arms) }, &effects, &mut rng, |rng, _| sigma * normal(rng));
            assert!(experiment.is_shown(1) || sigma > 0.05, "{arms} {gain} {sigma}");
            experiment.trials()
        })
        .collect();
    all.sort_unstable();
    all[runs as usize / 2]
}

#[test]
fn on_a_quiet_path_a_clear_gain_takes_fewer_trials() {
    for (arms, gain, sigma, most) in
        [(2, 0.05, 0.001, 10), (2, 0.10, 0.01, 10), (3, 0.10, 0.01, 17), (8, 0.10, 0.01, 36)]
    {
        let (twice, once) = (trials(arms, gain, sigma, true, 61), trials(arms, gain, sigma, false, 61));
        assert!(twice <= most && twice < once, "{arms} settings, {gain} beside {sigma}: {twice} for {once}");
    }
}

#[test]
#[ignore = "`make truth`: a minute"]
fn in_full_what_a_clear_gain_takes_on_quiet_and_other_paths() {
    println!("| settings | gain | noise | trials, each once | trials |");
    for arms in [2, 3, 8] {
        for (gain, sigma) in [(0.05, 0.001), (0.20, 0.001), (0.05, 0.01), (0.10, 0.01), (0.20, 0.01), (0.20, 0.05)] {
            let [once, twice] = [false, true].map(|twice| trials(arms, gain, sigma, twice, 1_501));
            println!("| {arms} | +{:.0} % | {:.1} % | {once} | {twice} |", 100.0 * gain, 100.0 * sigma);
            assert!(twice <= once, "{arms} {gain} {sigma}");
        }
    }
}

#[test]
fn where_noise_is_as_large_as_the_gain_settings_are_run_once_and_nothing_takes_longer() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (_, twice) = run(Config::new(3), &[0.0, 0.1, 0.0], &mut rng, |rng, _| 0.16 * normal(rng));
        assert!(twice <= 1, "{twice} rounds of seed {seed}");
    }
    let (twice, once) = (trials(3, 0.20, 0.16, true, 61), trials(3, 0.20, 0.16, false, 61));
    assert!(twice * 10 <= once * 11, "{twice} for {once}");
}

#[test]
fn the_smallest_sufficient_level_of_a_quiet_path_takes_no_more_trials() {
    let level = |twice: bool, strict: bool, effects: [f64; 4], seed: u64| {
        let plateau = Some(PlateauConfig { strict, ..PlateauConfig::new(vec![1, 2, 0, 3]) });
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let noise = |rng: &mut ChaCha8Rng, _: usize| 0.005 * normal(rng);
        let (experiment, doubled) = run(Config { twice, plateau, ..Config::new(4) }, &effects, &mut rng, noise);
        assert_eq!(doubled > 0, twice && effects[3] > 0.0, "{doubled}");
        let found = experiment.assessment().plateau.unwrap();
        assert!(found.settled, "{found:?}");
        (found.smallest, experiment.trials())
    };
    for strict in [false, true] {
        for seed in 0..8 {
            // The largest level gains: of it the second smallest lacks more than a tenth.
            let ([once, twice], effects) = ([false, true], [0.0, -0.5, -0.01, 0.2]);
            let (once, twice) = (level(once, strict, effects, seed), level(twice, strict, effects, seed));
            assert_eq!((once.0, twice.0), (3, 3), "{strict}");
            assert!(twice.1 <= once.1, "{strict}: {} for {} trials", twice.1, once.1);
            // None gains: nothing is run twice.
            assert_eq!(level(true, strict, [0.0, -0.5, -0.01, -0.005], seed).0, 2, "{strict}");
        }
    }
}

#[test]
fn an_interaction_that_is_sought_and_a_small_budget_leave_rounds_as_they_are() {
    let noise = |rng: &mut ChaCha8Rng, _: usize| 0.001 * normal(rng);
    let count = |config: Config| run(config, &[0.0, 0.1, 0.0, 0.0], &mut ChaCha8Rng::seed_from_u64(1), noise).1;
    let plain = Config::new(4);
    assert!(count(plain.clone()) > 0);
    assert_eq!(count(Config { cells: vec![0, 1, 2, 3], ..plain.clone() }), 0);
    assert_eq!(count(Config { method: Method::Uniform, ..plain.clone() }), 0);
    assert_eq!(count(Config { twice: false, ..plain }), 0);
    // With 20 trials the last part of the budget begins after eight.
    let mut experiment = Experiment::new(Config { max_trials: Some(20), ..Config::new(3) }).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    while let Some(order) = experiment.next_round(&mut rng) {
        assert!(order.len() <= 3, "{order:?}");
        let round: Vec<Observation> =
            order.into_iter().map(|arm| Observation::of(arm, if arm == 1 { 0.1 } else { 0.0 })).collect();
        experiment.record(&round).unwrap();
    }
}

/// How many of so many experiments on equal settings claim something, and how many had rounds with settings twice, where chance makes
/// paths look quiet: the first of a round is always the fastest, and orders that agree by luck look like a gain without noise.
fn claims_of_equals(arms: usize, runs: usize) -> (usize, usize) {
    let slower_and_slower = |rng: &mut ChaCha8Rng, place: usize| 0.001 * normal(rng) - 0.1 * place as f64;
    let mut rng = ChaCha8Rng::seed_from_u64(arms as u64);
    let (mut claims, mut twice) = (0, 0);
    for _ in 0..runs {
        let (experiment, doubled) = run(Config::new(arms), &vec![0.0; arms], &mut rng, slower_and_slower);
        twice += usize::from(doubled > 0);
        claims += usize::from((1..arms).any(|arm| experiment.arms[arm].claimed.is_some()));
    }
    (claims, twice)
}

#[test]
fn equal_settings_are_seldom_called_faster_where_chance_makes_paths_look_quiet() {
    for arms in [2, 4] {
        let runs = 1_500;
        let (claims, twice) = claims_of_equals(arms, runs);
        assert!(arms > 2 || twice > 100, "{twice} of {runs} had any");
        // Five percent, and three standard deviations of so many runs.
        assert!(claims * 1_000 <= runs * 67, "{claims} of {runs} with {arms} settings, {twice} with such rounds");
    }
}

#[test]
#[ignore = "`make truth`: a minute"]
fn in_full_equal_settings_are_called_faster_in_fewer_than_one_of_twenty_where_paths_look_quiet() {
    println!("| settings | experiments | with settings twice | called faster |");
    for arms in [2, 3, 4, 8] {
        let runs = 20_000;
        let (claims, twice) = claims_of_equals(arms, runs);
        println!("| {arms} | {runs} | {twice} | {:.2} % |", 100.0 * claims as f64 / runs as f64);
        assert!(claims * 20 <= runs, "{arms} settings: {claims}");
    }
}

#[test]
fn rounds_that_lack_a_trial_or_were_interrupted_say_what_they_say_and_no_more() {
    let seen = |arm: usize, y: f64| Observation::of(arm, y);
    let begun = || {
        let mut experiment = Experiment::new(Config::new(2)).unwrap();
        for _ in 0..3 {
            experiment.record(&[seen(0, 0.0), seen(1, 0.1)]).unwrap();
        }
        experiment
    };
    let four = [seen(0, 0.0), seen(1, 0.1), seen(1, 0.1), seen(0, 0.001)];
    let mut whole = begun();
    whole.record(&four).unwrap();
    assert!(whole.is_shown(1) && whole.trials() == 10);
    // Who is cut off, and who has a trial without a value, shows nothing of this round.
    for round in [&four[..3], &[four[0], four[1], four[2], Observation::void(0).after(1)]] {
        let mut cut = begun();
        cut.record(round).unwrap();
        assert_eq!((cut.arms[1].differences.len(), cut.is_shown(1)), (3, false));
    }
    let mut interrupted = begun();
    interrupted.record(&[four[0], four[1].interrupted(1), four[2], four[3]]).unwrap();
    assert!(!interrupted.is_shown(1) && interrupted.arms[1].is_doubtful());
    let own = &interrupted.assessment().arms[1];
    assert!(own.evidence_together < own.needed.unwrap() && own.evidence >= own.needed.unwrap(), "{own:?}");
    let own = &whole.assessment().arms[1];
    assert_eq!(own.evidence_together, own.series.last().unwrap().1);
    // Later rounds go the other way: what is told as the estimate isn't below what is shown at least.
    for _ in 0..8 {
        whole.record(&[seen(0, 0.0), seen(1, -0.02)]).unwrap();
    }
    let own = &whole.assessment().arms[1];
    assert!(own.estimate < own.at_least && own.cautious == own.at_least, "{own:?}");
    let mut failing = begun();
    let failed = Observation { ended: crate::sequential::TrialEnd::Failed, ..seen(1, -9.0) };
    failing.record(&[four[0], failed, failed, four[3]]).unwrap();
    assert_eq!(failing.arms[1].counts.failed, 2);
    assert!(failing.arms[1].fails_more.count() == 1 && !failing.is_shown(1));
}
