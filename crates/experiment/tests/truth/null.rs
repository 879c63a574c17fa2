//! Experiments of identical settings: whatever the noise, hardly ever is one called faster.

use crate::noise::{NOISES, Noise, World};
use crate::tally::Tally;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use wt_experiment::{Config, Experiment, Observation};

/// How long somebody looks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Watch {
    /// Until the rules end it.
    ByTheRules,
    /// For so many rounds, whatever the rules say.
    Rounds(usize),
    /// So often with a budget of so many rounds more.
    Resumed(usize, usize),
}

impl Watch {
    /// Trials of the budgets, one after another.
    fn budgets(self, settings: usize) -> Vec<usize> {
        match self {
            Self::ByTheRules => vec![if settings < 5 { 120 } else { 240 }],
            Self::Rounds(rounds) => vec![rounds * settings],
            Self::Resumed(times, rounds) => (1..=times).map(|n| n * rounds * settings).collect(),
        }
    }
}

/// Whether anything is ever called faster in an experiment of identical settings that is looked at after every round.
pub(crate) fn claims(noise: Noise, settings: usize, watch: Watch, seed: u64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let budgets = watch.budgets(settings);
    let config = Config { max_trials: Some(budgets[0]), ..Config::new(settings) };
    let mut experiment = Experiment::new(config).expect("a valid configuration");
    let mut world = World::new(noise, &mut rng);
    for most in budgets {
        loop {
            let Some(order) = experiment.next_round(&mut rng) else {
                if matches!(watch, Watch::ByTheRules) || experiment.trials() + settings > most {
                    break;
                }
                // Somebody who goes on whatever is said.
                experiment.resume(Some(most));
                if experiment.stop_reason().is_some() {
                    break;
                }
                continue;
            };
            let trial = |(place, arm): (usize, usize)| Observation::of(arm, world.outcome(place, &mut rng));
            let round: Vec<Observation> = order.into_iter().enumerate().map(trial).collect();
            experiment.record(&round).expect("a valid round");
            if (1..settings).any(|arm| experiment.is_shown(arm)) {
                return true;
            }
        }
    }
    false
}

#[test]
fn where_nothing_differs_nothing_is_called_faster_in_more_than_one_of_twenty_on_any_noise() {
    let (runs, mut all) = (10, 0);
    for noise in NOISES {
        for settings in [2, 8] {
            let count = Tally::of(runs, |seed| claims(noise, settings, Watch::ByTheRules, seed)).count;
            // Four standard deviations above 5 %, here and of all together.
            assert!(count <= 4, "{}, {settings} settings: {count} of {runs}", noise.name());
            all += count;
        }
    }
    assert!(all <= 38, "{all} of {}", runs * 40);
}

/// Cells with few settings are cheap and come nearest to the bound: they get more experiments.
fn runs(settings: usize) -> u64 {
    if settings == 2 { 8_000 } else { 2_000 }
}

#[test]
#[ignore = "`make truth`: minutes"]
fn in_full_where_nothing_differs_at_most_one_of_twenty_claims_however_long_one_looks() {
    println!("| noise, settings, looked at | experiments | something called faster | at most (95 %) |");
    for watch in [Watch::ByTheRules, Watch::Rounds(200), Watch::Resumed(10, 20)] {
        for settings in [2, 5, 8, 20] {
            for noise in NOISES {
                let tally = Tally::of(runs(settings), |seed| claims(noise, settings, watch, seed));
                tally.told_and_rare(&format!("{}, {settings}, {watch:?}", noise.name()));
            }
        }
    }
}
