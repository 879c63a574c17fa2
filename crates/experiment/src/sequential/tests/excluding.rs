//! Where nothing is to be found: what is ruled out when an experiment is given up.

use super::*;

/// An experiment to its end in which all settings are the same, with this noise.
fn ended(config: Config, sigma: f64, seed: u64) -> Experiment {
    let mut experiment = Experiment::new(config).unwrap();
    let trial = |arm: usize, rng: &mut ChaCha12Rng| Observation::of(arm, sigma * simulate::normal(rng));
    simulate::go_on(&mut experiment, &mut rng(seed), trial).unwrap();
    experiment
}

#[test]
fn no_experiment_is_given_up_before_gains_can_be_ruled_out_while_its_budget_has_rounds_for_that() {
    for (settings, alpha) in [(2, 0.04), (2, 0.01), (3, 0.04)] {
        let futile = |excludes: bool| {
            let config = |seed| (Config { excludes, alpha, ..budget(settings, 20 * settings) }, seed);
            let all = (0..50).map(config).map(|(config, seed)| ended(config, 0.05, seed).assessment());
            all.filter(|a| a.stop == Some(StopReason::Futile)).collect::<Vec<_>>()
        };
        let (now, before) = (futile(true), futile(false));
        assert!(now.len() >= 10 && now.iter().all(|a| a.gain_at_most.is_some()), "{settings} {alpha}: {}", now.len());
        assert!(before.iter().any(|a| a.gain_at_most.is_none()), "{settings} {alpha}");
        // A few rounds more, and no more: what is hopeless isn't run until the budget is used.
        let mean = |all: &[Assessment]| all.iter().map(|a| a.trials).sum::<usize>() as f64 / all.len() as f64;
        assert!(mean(&now) < 2.5 * mean(&before), "{settings} {alpha}: {} {}", mean(&now), mean(&before));
    }
}

#[test]
fn a_budget_without_those_rounds_is_spared_as_before() {
    let told = |excludes: bool, seed: u64| {
        let experiment = ended(Config { excludes, ..budget(2, 11) }, 0.3, seed);
        (experiment.stop_reason(), experiment.trials())
    };
    let all: Vec<_> = (0..20).map(|seed| (told(true, seed), told(false, seed))).collect();
    assert!(all.iter().all(|(now, before)| now == before), "{all:?}");
    assert!(all.iter().any(|(now, _)| now.0 == Some(StopReason::Futile)), "{all:?}");
}

#[test]
fn settings_that_are_refused_again_and_again_dont_use_the_budget_up() {
    let mut experiment = Experiment::new(budget(3, 120)).unwrap();
    simulate::go_on(&mut experiment, &mut rng(1), |arm, rng: &mut ChaCha12Rng| match arm {
        2 => Observation::void(2),
        arm => Observation::of(arm, 0.1 * simulate::normal(rng)),
    })
    .unwrap();
    assert!(experiment.trials() < 60, "{}", experiment.trials());
}

#[test]
fn rounds_that_rule_gains_out_claim_no_more_where_there_is_nothing() {
    let claims = |excludes: bool| {
        let config = || Config { excludes, ..budget(2, 60) };
        (0..400).filter(|seed| ended(config(), 0.1, *seed).pick() != 0).count()
    };
    // Of 400, 5 % are 20, with a standard deviation of 4.4.
    let (now, before) = (claims(true), claims(false));
    assert!(now <= 24 && now.abs_diff(before) <= 8, "{now} {before}");
}
