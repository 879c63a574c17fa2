//! Experiments put together: separate ones, of the same hour or not, and one with what continues it.

use crate::noise::{NOISES, Noise, World};
use crate::tally::Tally;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use wt_experiment::fleet::Combination;
use wt_experiment::simulate::NoiseModel;
use wt_experiment::{Config, Experiment, Observation};

const SETTINGS: usize = 4;
const TRIALS: usize = 60;

/// Runs it to its end; the order is drawn from `coins`.
fn run(experiment: &mut Experiment, world: &mut World, coins: &mut ChaCha8Rng, path: &mut ChaCha8Rng) {
    while let Some(order) = experiment.next_round(coins) {
        let trial = |(n, arm): (usize, usize)| Observation::of(arm, world.outcome(n, path));
        let round: Vec<Observation> = order.into_iter().enumerate().map(trial).collect();
        experiment.record(&round).expect("a valid round");
    }
}

fn fresh() -> Experiment {
    Experiment::new(Config { max_trials: Some(TRIALS), ..Config::new(SETTINGS) }).expect("a valid configuration")
}

/// The evidence for each candidate at its end.
fn evidence(experiment: &Experiment) -> Vec<f64> {
    // What it would take to go on isn't asked of one that goes on, and takes long.
    let mut on = experiment.clone();
    on.resume(None);
    let arms = on.assessment().arms;
    arms.iter().skip(1).map(|arm| arm.series.last().map_or(1.0, |(_, evidence)| *evidence)).collect()
}

/// Whether experiments together are said to show any candidate to be faster.
fn claim(experiments: &[Vec<f64>], how: Combination) -> bool {
    let needed = 20.0 * (SETTINGS - 1) as f64;
    (0..SETTINGS - 1).any(|arm| how.evidence(&experiments.iter().map(|one| one[arm]).collect::<Vec<_>>()) >= needed)
}

/// Which experiments are put together.
#[derive(Debug, Clone, Copy)]
enum Arrangement {
    /// Two, each with an order of its own, one after another on one path.
    Separate,
    /// Two that meet the very same hours: trial by trial the path is the same.
    SameHours,
    /// One with two that each continue it.
    Continued,
    /// Two continuations of one that isn't there itself.
    Forked,
}

fn claims(noise: Noise, which: Arrangement, seed: u64) -> bool {
    let mut path = ChaCha8Rng::seed_from_u64(seed);
    let coins = |n: u64| ChaCha8Rng::seed_from_u64(seed.wrapping_mul(4).wrapping_add(n) ^ 0x5EED);
    let mut world = World::new(noise, &mut path);
    let mut first = fresh();
    if let Arrangement::SameHours = which {
        let both = [0, 1].map(|n| {
            let (mut experiment, mut path) = (fresh(), ChaCha8Rng::seed_from_u64(seed));
            let mut world = World::new(noise, &mut path);
            run(&mut experiment, &mut world, &mut coins(n), &mut path);
            evidence(&experiment)
        });
        return claim(&both, Combination::Product);
    }
    run(&mut first, &mut world, &mut coins(0), &mut path);
    if let Arrangement::Separate = which {
        let mut second = fresh();
        run(&mut second, &mut world, &mut coins(1), &mut path);
        return claim(&[evidence(&first), evidence(&second)], Combination::Product);
    }
    let on = [1, 2].map(|n| {
        let mut on = first.clone();
        on.resume(Some(on.trials() + TRIALS));
        run(&mut on, &mut world, &mut coins(n), &mut path);
        evidence(&on)
    });
    let [one, other] = on;
    match which {
        Arrangement::Continued => claim(&[evidence(&first), one], Combination::Mean),
        _ => claim(&[one, other], Combination::Mean),
    }
}

const ALL: [Arrangement; 4] =
    [Arrangement::Separate, Arrangement::SameHours, Arrangement::Continued, Arrangement::Forked];

#[test]
fn experiments_together_hardly_ever_show_what_isnt_there() {
    let runs = 40;
    for which in ALL {
        for noise in [Noise::Independent, Noise::Correlated(0.95)] {
            let count = Tally::of(runs, |seed| claims(noise, which, seed)).count;
            // Four standard deviations above 5 %.
            assert!(count <= 7, "{which:?}, {noise:?}: {count} of {runs}");
        }
    }
}

#[test]
#[ignore = "`make truth`: minutes"]
fn in_full_experiments_together_show_what_isnt_there_in_at_most_one_of_twenty() {
    println!("| experiments, noise | pairs | something called faster | at most (95 %) |");
    let some = |noise: &&Noise| {
        matches!(noise, Noise::Independent | Noise::Cauchy | Noise::Correlated(_) | Noise::Walk | Noise::Sine(_))
            || matches!(noise, Noise::Model(NoiseModel::Typical | NoiseModel::Heavy))
    };
    for which in ALL {
        for noise in NOISES.iter().filter(some) {
            let cell = format!("{which:?}, {}", noise.name());
            Tally::of(2_000, |seed| claims(*noise, which, seed)).told_and_rare(&cell);
        }
    }
}
