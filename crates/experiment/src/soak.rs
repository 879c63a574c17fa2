//! Degradation within long transfers: does the rate decay after a minute, does the delay of ACKs grow?
//!
//! The trial is the unit. The seconds of one transfer depend on each other, so that any test that takes them as
//! observations cries wolf (a split search at p < 0.001 in half to all of the transfers without decay). Each trial of at
//! least three minutes gives one number, and those are tested as any other difference.

use crate::drift::median;
use crate::eprocess::EProcess;
use serde::Serialize;

/// The decay of one trial: the mean log of the last third of the series less that of the middle third. Negative is
/// decay, where larger is better. The first third is left out for slow start and the shaper's credit.
///
/// `None` for fewer than six values. Values that aren't positive count as the smallest positive one, so that a stall
/// counts as a stall; without any positive value there is `None`.
#[must_use]
pub fn decay(series: &[f64]) -> Option<f64> {
    let third = series.len() / 3;
    let floor = series.iter().copied().filter(|v| *v > 0.0 && v.is_finite()).fold(f64::INFINITY, f64::min);
    if third < 2 || floor.is_infinite() {
        return None;
    }
    let log_mean = |part: &[f64]| part.iter().map(|v| v.max(floor).ln()).sum::<f64>() / part.len() as f64;
    let last = &series[series.len() - third..];
    let middle = &series[series.len() - 2 * third..series.len() - third];
    let decay = log_mean(last) - log_mean(middle);
    decay.is_finite().then_some(decay)
}

/// What soak trials say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Soak {
    /// Trials.
    pub trials: usize,
    /// The median decay of a trial, as a log.
    pub median: f64,
    /// Evidence that transfers decay, against "as often up as down".
    pub evidence: f64,
    /// The evidence after each trial, for a plot.
    pub series: Vec<f64>,
}

/// Tests the decays of trials of one setting, in the order in which they were run; `None` without any.
#[must_use]
pub fn degradation(decays: &[f64]) -> Option<Soak> {
    let decays: Vec<f64> = decays.iter().copied().filter(|d| d.is_finite()).collect();
    if decays.is_empty() {
        return None;
    }
    let series = crate::eprocess::evidence_series(EProcess::below(0.0), &decays);
    let evidence = series.iter().copied().fold(1.0, f64::max);
    Some(Soak { trials: decays.len(), median: median(&mut decays.clone()), evidence, series })
}

/// Tests whether a setting causes decay: its decays against those of the current setting in the same rounds.
#[must_use]
pub fn degradation_caused(setting: &[f64], current: &[f64]) -> Option<Soak> {
    let differences: Vec<f64> = setting.iter().zip(current).map(|(own, current)| own - current).collect();
    degradation(&differences)
}

/// Where the median curve of the trials changes most: the index after which the cumulated deviation from its mean is
/// largest. Describes; tests nothing.
#[must_use]
pub fn change_point(trials: &[Vec<f64>]) -> Option<usize> {
    let length = trials.iter().map(Vec::len).min().filter(|n| *n >= 4)?;
    let curve: Vec<f64> =
        (0..length).map(|t| median(&mut trials.iter().map(|trial| trial[t]).collect::<Vec<_>>())).collect();
    let mean = curve.iter().sum::<f64>() / length as f64;
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (i, v) in curve.iter().take(length - 1).enumerate() {
        sum += v - mean;
        if best.is_none_or(|(_, most)| sum.abs() > most) {
            best = Some((i + 1, sum.abs()));
        }
    }
    best.filter(|(_, size)| *size > 0.0).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha12Rng;

    /// A transfer of three minutes at one value a second, strongly dependent from second to second, whose rate falls by
    /// `factor` after two minutes.
    fn transfer(factor: f64, rng: &mut ChaCha12Rng) -> Vec<f64> {
        let mut noise = 0.0;
        (0..180)
            .map(|second| {
                noise = 0.95 * noise + 0.05 * rng.random_range(-1.0..1.0f64);
                let rate: f64 = if second < 120 { 1.0 } else { factor };
                1e6 * rate * noise.exp()
            })
            .collect()
    }

    fn evidence(factor: f64, trials: usize, seed: u64) -> f64 {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let decays: Vec<f64> = (0..trials).filter_map(|_| decay(&transfer(factor, &mut rng))).collect();
        degradation(&decays).unwrap().evidence
    }

    #[test]
    fn eight_transfers_that_halve_are_found_and_transfers_that_do_not_are_left_alone() {
        let found = (0..200).filter(|seed| evidence(0.5, 8, *seed) >= 20.0).count();
        assert!(found >= 194, "{found} of 200");
        let false_alarms = (0..400).filter(|seed| evidence(1.0, 20, *seed) >= 20.0).count();
        assert!(false_alarms <= 20, "{false_alarms} of 400");
    }

    #[test]
    fn the_decay_of_a_step_is_its_log_and_the_change_is_found_where_it_is() {
        let step: Vec<f64> = (0..30).map(|i| if i < 20 { 8.0 } else { 2.0 }).collect();
        assert!((decay(&step).unwrap() - 0.25f64.ln()).abs() < 1e-12);
        assert_eq!(change_point(&[step.clone(), step]), Some(20));
    }

    #[test]
    fn a_decay_that_both_settings_share_is_not_the_settings() {
        let decays = [-0.7, -0.6, -0.72, -0.65, -0.8, -0.7, -0.66, -0.71, -0.69, -0.7];
        assert!(degradation(&decays).unwrap().evidence > 60.0);
        let other: Vec<f64> = decays.iter().rev().copied().collect();
        assert!(degradation_caused(&decays, &other).unwrap().evidence < 20.0);
    }

    #[test]
    fn what_says_nothing_gives_nothing() {
        assert_eq!((decay(&[1.0; 5]), decay(&[0.0; 30]), decay(&[])), (None, None, None));
        assert!(decay(&[f64::NAN; 30]).is_none());
        assert_eq!((degradation(&[]), change_point(&[]), change_point(&[vec![1.0; 9]])), (None, None, None));
        // A stall in the last third is a decay, not a hole.
        let mut stalled = vec![5.0; 30];
        stalled[25..].fill(0.0);
        stalled[3] = 0.5;
        assert!(decay(&stalled).unwrap() < -1.0);
    }
}
