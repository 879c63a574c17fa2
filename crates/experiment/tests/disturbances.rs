//! Which pairs disturb one another, on simulated fleets whose hours are slow for all of them at once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use wt_experiment::disturbance::{Disturbances, PairRun, RunTrial};

const PAIRS: usize = 4;
const ALPHA: f64 = 0.05;
/// A run is due each period, at a random time of its first part.
const PERIOD: f64 = 21_600.0;
const SPREAD: f64 = 1_800.0;
/// What a trial moves takes so long at the usual rate, and a run has so many trials.
const TRIAL: f64 = 30.0;
const TRIALS: usize = 20;

fn normal(rng: &mut ChaCha12Rng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Runs of a fleet in which pairs 0 and 1 share a link, so that each has `shared` of its rate while the other transfers. Slow
/// hours are slow for all, and what a trial moves is fixed: slow runs last longer, and overlap more.
fn fleet(number: u64, periods: usize, shared: f64) -> Vec<PairRun> {
    let mut rng = ChaCha12Rng::seed_from_u64(number);
    let mut runs = Vec::new();
    for period in 0..periods {
        let hour = 0.3 * normal(&mut rng);
        let starts: Vec<f64> = (0..PAIRS).map(|_| period as f64 * PERIOD + rng.random::<f64>() * SPREAD).collect();
        let own: Vec<f64> = (0..PAIRS).map(|_| 0.1 * normal(&mut rng)).collect();
        let mut clocks = starts.clone();
        let mut trials: Vec<Vec<RunTrial>> = vec![Vec::new(); PAIRS];
        // Whoever's clock is behind makes the next trial.
        while let Some(pair) =
            (0..PAIRS).filter(|pair| trials[*pair].len() < TRIALS).min_by(|a, b| clocks[*a].total_cmp(&clocks[*b]))
        {
            let at = clocks[pair];
            let other = 1 - pair.min(1);
            let beside = pair < 2 && starts[other] <= at && trials[other].len() < TRIALS;
            let log_rate = hour + own[pair] + 0.1 * normal(&mut rng) + if beside { shared.ln() } else { 0.0 };
            let arm = trials[pair].len() % 2;
            trials[pair].push(RunTrial { arm, log_rate });
            clocks[pair] = at + TRIAL / log_rate.exp();
        }
        for (pair, trials) in trials.into_iter().enumerate() {
            let us = |seconds: f64| (seconds * 1e6) as i64;
            runs.push(PairRun { pair, began_us: us(starts[pair]), ended_us: us(clocks[pair]), trials });
        }
    }
    runs
}

fn found(runs: &[PairRun], number: u64) -> Disturbances {
    Disturbances::find(runs, ALPHA, &mut ChaCha12Rng::seed_from_u64(number ^ 0x5EED))
}

#[test]
fn no_pair_is_named_falsely_in_more_than_one_of_twenty_fleets() {
    const FLEETS: u64 = 1_000;
    let (mut wrong, mut tested) = (0, 0);
    for number in 0..FLEETS {
        let found = found(&fleet(number, 16, 1.0), number);
        tested += found.tested;
        wrong += usize::from(!found.shown.is_empty());
    }
    // Where two overlap in none of a few runs, or wholly in all, there is nothing to test.
    assert!(tested as f64 > 0.9 * (FLEETS as usize * PAIRS * (PAIRS - 1)) as f64, "{tested}");
    assert!(wrong as f64 <= ALPHA * FLEETS as f64, "{wrong} of {FLEETS}");
}

/// What the rule that runs are permuted as wholes is for: trials as if each stood for itself.
#[test]
fn trials_permuted_one_by_one_name_pairs_falsely_in_most_fleets() {
    const FLEETS: u64 = 100;
    let naive = |runs: &[PairRun], number: u64| {
        let singles: Vec<PairRun> = runs
            .iter()
            .flat_map(|run| {
                // Each has the time of its run, in a year of its own.
                run.trials.iter().enumerate().map(move |(n, trial)| {
                    let later = n as i64 * 31_536_000_000_000;
                    let (began_us, ended_us) = (run.began_us + later, run.ended_us + later);
                    PairRun { pair: run.pair, began_us, ended_us, trials: vec![*trial] }
                })
            })
            .collect();
        !found(&singles, number).shown.is_empty()
    };
    let wrong = (0..FLEETS).filter(|number| naive(&fleet(*number, 16, 1.0), *number)).count();
    assert!(wrong > 50, "{wrong} of {FLEETS}");
}

/// Two pairs that share nothing, and whose paths drift over days. The second one is there only in some of 60 periods.
fn drifting(number: u64, is_there: impl Fn(usize) -> bool) -> Vec<PairRun> {
    let mut rng = ChaCha12Rng::seed_from_u64(number);
    let keep = (-1.0 / 20.0f64).exp();
    let mut drift = [0, 1].map(|_| 0.3 * normal(&mut rng));
    let mut runs = Vec::new();
    for period in 0..60 {
        for (pair, drift) in drift.iter_mut().enumerate() {
            *drift = keep * *drift + 0.3 * (1.0 - keep * keep).sqrt() * normal(&mut rng);
            let began_us = ((period as f64 * PERIOD + rng.random::<f64>() * 600.0) * 1e6) as i64;
            let trial = |n| RunTrial { arm: n % 2, log_rate: *drift + 0.1 * normal(&mut rng) };
            let trials: Vec<RunTrial> = (0..TRIALS).map(trial).collect();
            if pair == 0 || is_there(period) {
                runs.push(PairRun { pair, began_us, ended_us: began_us + 600_000_000, trials });
            }
        }
    }
    runs
}

#[test]
fn no_pair_is_named_falsely_where_another_joins_later_or_stays_away_for_days() {
    const FLEETS: u64 = 400;
    let wrong = |is_there: &dyn Fn(usize) -> bool| {
        (0..FLEETS).filter(|number| !found(&drifting(*number, is_there), *number).shown.is_empty()).count()
    };
    // Two standard deviations above 5 %; of one that joins half-way it was a third.
    let wrong = [wrong(&|period| period >= 30), wrong(&|period| period / 15 % 2 == 0), wrong(&|period| period % 3 > 0)];
    assert!(wrong.iter().all(|wrong| *wrong <= 29), "{wrong:?} of {FLEETS}");
}

#[test]
fn two_pairs_that_share_a_link_are_found_though_one_joins_later() {
    let joins = |number: u64| {
        let mut runs = fleet(number, 90, 0.6);
        runs.retain(|run| run.pair != 1 || run.began_us as f64 >= 30.0 * PERIOD * 1e6);
        runs
    };
    let hits = (0..20).filter(|number| found(&joins(*number), *number).groups().contains(&vec![0, 1])).count();
    assert!(hits >= 14, "{hits}");
}

#[test]
fn two_pairs_that_share_a_link_are_found_and_hardly_anybody_else() {
    const FLEETS: u64 = 100;
    let (mut hits, mut others) = (0, 0);
    for number in 0..FLEETS {
        let groups = found(&fleet(number, 60, 0.6), number).groups();
        hits += usize::from(groups.contains(&vec![0, 1]));
        others += usize::from(groups.iter().any(|group| group.iter().any(|pair| *pair > 1)));
    }
    assert!(hits >= 70, "found in {hits} of {FLEETS}");
    assert!(others <= 5, "others in {others} of {FLEETS}");
}
