use super::*;
use crate::sequential::{Config, Experiment, Observation, PlateauConfig, TrialEnd};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use wt_units::Bytes;

const PACE: Duration = Duration::from_secs(12);

/// An experiment on outcomes with noise within ±`spread`.
fn run(config: Config, effects: &[f64], spread: f64, seed: u64) -> Experiment {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut experiment = Experiment::new(config).unwrap();
    while let Some(order) = experiment.next_round(&mut rng) {
        let mut observe = |arm: usize| Observation::of(arm, effects[arm] + rng.random_range(-spread..=spread));
        let round: Vec<Observation> = order.into_iter().map(&mut observe).collect();
        experiment.record(&round).unwrap();
    }
    experiment
}

fn budget(arms: usize, trials: usize) -> Config {
    Config { max_trials: Some(trials), ..Config::new(arms) }
}

fn text(experiment: &Experiment, labels: &[&str]) -> String {
    Text::new(&experiment.assessment(), labels, PACE).to_string()
}

#[test]
fn a_claim_says_by_how_much_how_surely_and_what_it_cost() {
    let e = run(budget(3, 120), &[0.0, 0.2, 0.0], 0.1, 1);
    let a = e.assessment();
    let text = text(&e, &["current", "B", "C"]);
    let arm = &a.arms[1];
    assert!(text.starts_with("B is faster than your current setting.\n"), "{text}");
    for part in [
        format!("Best estimate ×{:.2}; seen so far ×{:.2}, ", arm.cautious.unwrap().exp(), arm.ratio.unwrap()),
        format!("At least ×{:.2} with 95 % confidence", (arm.at_least.unwrap().exp() * 100.0).floor() / 100.0),
        format!("evidence {} : 1 of 40 : 1.", arm.evidence.floor()),
        format!("{} rounds, {} trials, {:.0} min.", a.rounds, a.trials, a.trials as f64 * 12.0 / 60.0),
        "B is the best of the settings tested".to_owned(),
        format!(
            "No trial stalled or failed: {} of current and {} of B, too few to rule out ",
            a.arms[0].trials, arm.trials
        ),
        "Valid for this path, at the time of the test.".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn a_bound_is_never_overstated_by_rounding() {
    assert_eq!([times_down(1.0379), times_down(1.0), times_down(0.999)], ["×1.03", "×1.00", "×0.99"]);
    assert_eq!([percent_up(0.1301), percent_up(0.13), percent_up(0.0001)], ["14 %", "13 %", "0.1 %"]);
    assert_eq!([odds(59.99), odds(1.763), odds(2e6)], ["59 : 1", "1.8 : 1", "over 10000 : 1"]);
}

#[test]
fn where_nothing_is_shown_the_text_says_what_is_excluded_and_what_more_would_take() {
    let e = run(budget(4, 80), &[0.0, 0.02, 0.0, -0.9], 0.3, 9);
    let text = text(&e, &["current", "B", "C", "D"]);
    // What was left out by estimate is no difference that is shown.
    assert!(text.starts_with("No difference shown.\nA gain of more than "), "{text}");
    for part in [
        "is ruled out (95 %), but for D: left out early by estimate",
        "Trials of one setting differ by about ",
        "four of five experiments find a setting that is 20 % faster after about ",
        ", one that is 5 % faster after about ",
        " h)",
        "Keep what you have.",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn before_anything_can_be_excluded_the_text_says_how_many_rounds_that_needs() {
    let alike = text(&run(budget(2, 20), &[0.0, 0.001], 0.0, 3), &["current", "B"]);
    assert!(alike.contains("differ by less than 0.1 %"), "{alike}");
    let mut e = run(budget(2, 4), &[0.0, 0.5], 0.1, 3);
    assert!(text(&e, &["current", "B"]).contains("No gain can be ruled out yet, however large: that takes 5 rounds"));
    e.resume(Some(100));
    assert!(text(&e, &["current", "B"]).starts_with("No difference shown so far."));
}

#[test]
fn settings_that_are_the_same_are_called_the_same_within_a_share_and_never_equal() {
    let config = Config { indifference: 0.10, ..budget(2, 400) };
    let text = text(&run(config, &[0.001, 0.0], 0.05, 4), &["current", "B"]);
    assert!(text.starts_with("All settings are the same within 10 % (95 %)."), "{text}");
}

#[test]
fn where_all_settings_are_called_the_same_each_is() {
    let config = Config { indifference: 0.10, ..budget(4, 400) };
    let mut by_itself = 0;
    for seed in 0..10 {
        let experiment = run(config.clone(), &[0.0, 0.001, 0.0, -0.01], 0.08, seed);
        // Together they are shown to be the same before each is by itself.
        let a = experiment.assessment();
        let text = Text::new(&a, &["current", "B", "C", "D"], PACE).to_string();
        assert_eq!(text.starts_with("All settings are the same"), a.all_same && a.pick == 0, "{text}");
        if a.all_same {
            assert!(a.arms[1..].iter().all(|arm| arm.equivalent) && !a.arms[0].equivalent, "{a:#?}");
            by_itself += usize::from(a.arms[1..].iter().any(|arm| arm.lower.is_none()));
        }
    }
    assert!(by_itself > 0, "no experiment in which they are shown together only");
}

#[test]
fn the_plateau_is_spoken_of_relative_to_the_anchor() {
    let config = Config { plateau: Some(PlateauConfig::new(vec![1, 2, 0])), ..budget(3, 200) };
    let e = run(config.clone(), &[0.0, -0.5, 0.0], 0.05, 5);
    let text_ = text(&e, &["64 KiB", "4x", "8x"]);
    let want =
        "The smallest level shown to be enough, within 10 % of your current setting (95 %), is 8x; 4x looks too small.";
    assert!(text_.contains(want), "{text_}");
    let e = run(config, &[0.0, -0.9, -0.5], 0.05, 6);
    let text_ = text(&e, &["64 KiB", "4x", "8x"]);
    let want =
        "No smaller level is shown to be enough, within 10 % of your current setting (95 %): 8x looks too small.";
    assert!(text_.contains(want), "{text_}");
}

#[test]
fn a_setting_that_is_typically_faster_but_stalls_is_not_called_faster_in_total() {
    let mut e = Experiment::new(Config { twice: false, ..Config::new(2) }).unwrap();
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    for n in 1..100 {
        let Some(order) = e.next_round(&mut rng) else { break };
        let round: Vec<Observation> = order
            .into_iter()
            .map(|arm| match arm {
                1 if n == 6 => Observation::incomplete(1, Bytes(100_000), Duration::from_secs(120), Bytes(1460)),
                1 => Observation::completed(1, Bytes(1_300_000), Duration::from_secs(10)),
                _ => Observation::completed(0, Bytes(1_000_000 + n * 100), Duration::from_secs(10)),
            })
            .collect();
        e.record(&round).unwrap();
    }
    let text = text(&e, &["current", "B"]);
    assert!(text.starts_with("B is typically faster than your current setting, but not in total (×0."), "{text}");
    assert!(text.contains("B: 1 of "), "{text}");
}

#[test]
fn in_total_what_is_judged_by_a_score_is_slower_only_by_its_scores() {
    let faster = |scores_of: &dyn Fn(usize, usize) -> f64| {
        let mut e = Experiment::new(Config { twice: false, ..Config::new(2) }).unwrap();
        let mut rng = ChaCha12Rng::seed_from_u64(7);
        for n in 1..100 {
            let Some(order) = e.next_round(&mut rng) else { break };
            let trial = |arm| {
                // The transfer that only fills the line moves 4 % less where delays are short.
                let filler = Bytes([1_000_000, 960_000][arm]);
                Observation::scored(arm, scores_of(arm, n), TrialEnd::Completed, filler, Duration::from_secs(2))
            };
            e.record(&order.into_iter().map(trial).collect::<Vec<_>>()).unwrap();
        }
        let total = e.assessment().arms[1].total_ratio.unwrap();
        (total, text(&e, &["current", "B"]))
    };
    let (total, all_better) = faster(&|arm, n| [1_000.0, 1_600.0][arm] + n as f64);
    assert!(
        (1.5..1.6).contains(&total) && all_better.starts_with("B is faster than your current setting."),
        "{all_better}"
    );
    let (total, rarely_awful) = faster(&|arm, n| if arm == 1 && n > 3 { 1_250.0 } else { 1_000.0 + n as f64 });
    assert!((1.0..1.25).contains(&total) && rarely_awful.starts_with("B is faster"), "{rarely_awful}");
    let (total, once_better) =
        faster(&|arm, n| if n == 2 && arm == 0 { 90_000.0 } else { [1_000.0, 1_300.0][arm] + n as f64 });
    assert!(
        total < 1.0
            && once_better.starts_with("B is typically faster than your current setting, but not in total (×0."),
        "{once_better}"
    );
}

#[test]
fn a_round_cut_short_and_a_missing_label_are_no_trouble() {
    let mut e = Experiment::new(budget(3, 30)).unwrap();
    e.cut(&[Observation::of(0, 1.0), Observation::of(2, 1.1)]).unwrap();
    let text = text(&e, &[]);
    assert!(text.contains("1 round was cut short and not counted."), "{text}");
    let nothing = Experiment::new(Config::new(2)).unwrap();
    assert!(Text::new(&nothing.assessment(), &["a", "b"], PACE).headline.starts_with("No difference shown so far"));
}

#[test]
fn durations_are_given_as_one_plans_them() {
    let words = [(40, "40 s"), (540, "9 min"), (1500, "25 min"), (28_800, "8 h"), (300_000, "3 days")];
    for (seconds, want) in words {
        assert_eq!(rough(Duration::from_secs(seconds)), want);
    }
}
