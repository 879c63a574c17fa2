use super::ranks::ranks;
use crate::describe::{mean, squares};
use rand::Rng;
use rand::seq::SliceRandom as _;
use serde::Serialize;

/// Relabellings for the p value.
const SAMPLES: usize = 9_999;
/// How many values the relabellings may touch in all.
const WORK: usize = 50_000_000;

/// Whether outcomes go with another figure: the rate of hosts with their distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Relation {
    /// Spearman's rank correlation.
    pub spearman: f64,
    /// Its two-sided p value by relabelling.
    pub p: f64,
    /// The slope of the log of the outcome by least squares: by which share it grows with each unit.
    pub slope: Option<f64>,
}

/// Relates outcomes `y` to `x`; `None` for fewer than four, or if one of them is constant.
pub fn relation(x: &[f64], y: &[f64], rng: &mut impl Rng) -> Option<Relation> {
    let n = x.len();
    if n != y.len() || n < 4 || x.iter().chain(y).any(|v| !v.is_finite()) {
        return None;
    }
    let (rx, mut ry) = (ranks(x), ranks(y));
    let scale = (squares(&rx) * squares(&ry)).sqrt();
    let spearman = products(&rx, &ry) / scale;
    if !spearman.is_finite() {
        return None;
    }
    let samples = (WORK / n).clamp(199, SAMPLES);
    let as_large = (0..samples).filter(|_| {
        ry.shuffle(rng);
        (products(&rx, &ry) / scale).abs() >= spearman.abs() - 1e-12
    });
    let p = (as_large.count() + 1) as f64 / (samples + 1) as f64;
    let logs: Vec<f64> = y.iter().map(|y| y.ln()).collect();
    let slope = products(x, &logs) / squares(x);
    Some(Relation { spearman, p, slope: slope.is_finite().then(|| slope.exp_m1()) })
}

/// The sum of products of deviations.
fn products(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (mean(x), mean(y));
    x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
}
