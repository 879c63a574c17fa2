//! What differs is found as often, and as soon, as the tables say.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use wt_experiment::Method;
use wt_experiment::simulate::{self, PowerCell};

/// Settings, trials, CV and gain, and the share of experiments that find it at least.
const LEAST: [(usize, usize, f64, f64, f64); 4] =
    [(3, 120, 0.16, 0.10, 0.64), (3, 120, 0.30, 0.20, 0.66), (3, 240, 0.16, 0.10, 0.92), (8, 240, 0.16, 0.10, 0.63)];
/// The same, and the median of trials that it takes at most.
const SOONEST: (usize, usize, f64, f64, usize) = (8, 240, 0.16, 0.20, 78);

#[test]
#[ignore = "`make truth`: minutes"]
fn in_full_what_differs_is_found_as_often_as_is_said() {
    println!("| settings, trials | CV | gain | found uniformly (median trials) | found (median trials) |");
    for cell in PowerCell::table() {
        let power = |method| {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            cell.power(method, 1_500, &mut rng).expect("a budget with room")
        };
        let [before, now] = [Method::Uniform, Method::Directed].map(power);
        let trials = |n: Option<usize>| n.map_or("–".to_owned(), |n| n.to_string());
        println!(
            "| {}, {} | {:.0} % | {:+.0} % | {:.1} % ({}) | {:.1} % ({}) |",
            cell.settings,
            cell.trials,
            cell.cv * 100.0,
            cell.gain * 100.0,
            before.found * 100.0,
            trials(before.median_trials),
            now.found * 100.0,
            trials(now.median_trials)
        );
        let is = |settings, trials, cv, gain| cell == PowerCell { settings, trials, cv, gain };
        let least = LEAST.iter().find(|(settings, trials, cv, gain, _)| is(*settings, *trials, *cv, *gain));
        assert!(least.is_none_or(|(.., least)| now.found >= *least), "{cell:?}: {now:?}");
        let (settings, trials, cv, gain, most) = SOONEST;
        assert!(!is(settings, trials, cv, gain) || now.median_trials.is_some_and(|n| n <= most), "{cell:?}: {now:?}");
        assert!(now.others <= 0.05 && now.found >= before.found - 0.03, "{cell:?}: {before:?} {now:?}");
        // What was easy before takes at most a tenth more.
        let slower = before.median_trials.zip(now.median_trials).is_some_and(|(b, n)| n as f64 > 1.1 * b as f64);
        assert!(before.found < 0.9 || !slower, "{cell:?}: {before:?} {now:?}");
    }
}

#[test]
#[ignore = "`make truth`: minutes"]
fn in_full_what_is_said_to_take_so_many_more_rounds_takes_them_in_four_of_five() {
    println!("| settings, trials before | CV | told | showed it |");
    for (settings, trials, cv) in
        [(2, 16, 0.16), (2, 30, 0.16), (2, 30, 0.30), (3, 40, 0.30), (4, 40, 0.16), (8, 64, 0.30)]
    {
        let said: Vec<_> = (0..1_000).filter_map(|seed| simulate::continued(settings, trials, cv, seed)).collect();
        let share = said.iter().filter(|one| one.shown).count() as f64 / said.len() as f64;
        println!("| {settings}, {trials} | {:.0} % | {} | {:.1} % |", cv * 100.0, said.len(), share * 100.0);
        assert!(
            (0.75..=0.85).contains(&share),
            "{settings} settings, {trials} trials, CV {cv}: {share} of {}",
            said.len()
        );
    }
}

#[test]
fn a_gain_that_was_found_in_less_than_half_of_all_experiments_is_found_in_most() {
    let cell = PowerCell { settings: 3, trials: 120, cv: 0.16, gain: 0.10 };
    let found = |method| cell.power(method, 100, &mut ChaCha8Rng::seed_from_u64(7)).expect("a budget with room").found;
    let (before, now) = (found(Method::Uniform), found(Method::Directed));
    assert!(now > before && now > 0.5, "{before} {now}");
}
