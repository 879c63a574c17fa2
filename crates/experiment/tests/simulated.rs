//! Whole experiments on simulated paths: the error rate and the power, in the quick version (`make bench` has the long).

use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use wt_experiment::simulate::{self, NoiseModel, Path};
use wt_experiment::{Config, VerdictKind};

/// The setting that an experiment of at most `trials` picks, and the trials it took.
fn pick(model: NoiseModel, effects: &[f64], trials: usize, seed: u64) -> (usize, usize) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut path = Path::new(model, &mut rng);
    let config = Config { max_trials: Some(trials), ..Config::new(effects.len()) };
    let experiment = simulate::drive(config, &mut path, effects, &mut rng).expect("a valid configuration");
    (experiment.pick(), experiment.trials())
}

#[test]
fn with_all_settings_identical_the_verdict_is_no_difference_but_for_the_chance_that_alpha_allows() {
    // About 3 % of such runs claim something by chance (at most 5 % may), so 20 of 20 hold for every second set of seeds. The
    // seeds were fixed before they were tried: none of these 20 claims.
    let mut claims = Vec::new();
    for seed in 1..=20 {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut path = Path::new(NoiseModel::Typical, &mut rng);
        let config = Config { max_trials: Some(120), ..Config::new(4) };
        let assessment = simulate::run(config, &mut path, &[0.0; 4], &mut rng).unwrap();
        match assessment.kind {
            VerdictKind::NoDifference => assert_eq!(assessment.pick, 0),
            VerdictKind::Faster => claims.push(seed),
            VerdictKind::Stopped => panic!("seed {seed}: nobody stopped it"),
        }
    }
    assert!(claims.is_empty(), "seeds {claims:?}");
}

#[test]
fn with_all_settings_identical_and_the_budget_of_tune_one_of_twenty_seeded_runs_claims() {
    // Independent noise as the lab has it, and 46 trials, what `tune --lab adsl` runs at most. The seeds were fixed before they
    // were tried: number 4 claims, as one in twenty may.
    let claims: Vec<u64> = (1..=20).filter(|seed| pick(NoiseModel::Calm, &[0.0; 4], 46, *seed).0 != 0).collect();
    assert_eq!(claims, [4]);
}

#[test]
fn with_all_settings_identical_at_most_one_experiment_in_20_claims_anything_on_any_noise() {
    for model in NoiseModel::ALL {
        let claims = (0..400).filter(|seed| pick(model, &[0.0; 4], 120, *seed).0 != 0).count();
        assert!(claims <= 20, "{}: {claims} of 400", model.name());
        // A method that never claims anything would pass as well: over all noises some chance claims must occur.
        assert!(model != NoiseModel::Typical || claims > 0);
    }
}

#[test]
fn a_gain_of_a_fifth_is_found_at_least_as_often_as_with_every_setting_in_every_round() {
    // Shares of 4000 experiments of at most 120 trials by that method; four standard deviations of 200 experiments beside them.
    for (model, long_run) in [(NoiseModel::Calm, 0.95), (NoiseModel::Typical, 0.88), (NoiseModel::Heavy, 0.67)] {
        let effects = [0.0, 0.0, 0.0, 1.2f64.ln()];
        let found = (0..200).filter(|seed| pick(model, &effects, 120, *seed).0 == 3).count() as f64 / 200.0;
        let spread = 4.0 * (long_run * (1.0 - long_run) / 200.0f64).sqrt();
        assert!(found > long_run - spread, "{}: {found}", model.name());
    }
}

#[test]
fn a_setting_that_is_worse_by_a_fifth_is_never_picked_and_soon_given_up() {
    for seed in 0..200 {
        let (picked, trials) = pick(NoiseModel::Rough, &[1.2f64.ln(), 0.0, 0.0, 0.0], 120, seed);
        assert!(picked == 0 && trials <= 120, "seed {seed}");
    }
    let mean = (0..200).map(|s| pick(NoiseModel::Rough, &[0.2, 0.0, 0.0, 0.0], 120, s).1).sum::<usize>() / 200;
    assert!((15..=30).contains(&mean), "{mean} trials");
}
