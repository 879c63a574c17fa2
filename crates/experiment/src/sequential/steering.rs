//! What the model decides: which settings to drop, and when to give up. None of it touches the error of a claim.

use super::config::Method;
use crate::distributions;
use crate::distributions::normal;
use crate::ols::BlockedFit;
use rand::Rng;
use std::cell::RefCell;
use std::collections::HashMap;

/// The quantile at which a setting counts as clearly behind.
pub(super) const T_STEER: f64 = 0.975;
/// The quantile at which a rival of the leader counts as not worth pursuing.
pub(super) const T_RESOLVED: f64 = 0.95;
/// With less than the second many standard errors of an estimate at the end of the budget a gain is given up, the estimate and
/// the first many of its standard errors now being all that is hoped for. Set once, by simulation.
const GIVE_UP: [(Method, f64, f64); 2] = [(Method::Directed, 2.0, 1.8), (Method::Uniform, 1.0, 2.6)];
/// The spread of a draw, in standard errors of the estimate that is drawn for.
const DRAWN: f64 = 0.8;
/// So often a second candidate is drawn before it is taken from the last draw.
const DRAWS: usize = 20;

/// A path is quiet where a difference of logs varies by no more than this, and the leader's gain is more than so many of its standard
/// deviations. Where noise is larger than that, what is shown so soon is at least too much less than what is there: four standard
/// deviations instead of the one and a half that settings run once each leave.
const QUIET: f64 = 0.015;
const CLEAR: f64 = 3.0;

/// Two estimates that differ by less than this differ by rounding. In an emulated path without noise that happens.
pub(super) const ALIKE: f64 = 1e-9;

thread_local! {
    /// The quantiles of Student's t that were asked for: each costs as much as a hundred rounds.
    static QUANTILES: RefCell<HashMap<(u64, usize), f64>> = RefCell::default();
}

/// The quantile of Student's t; for many degrees of freedom, in steps of about a thousandth of them.
pub(super) fn quantile(p: f64, df: usize) -> f64 {
    let grain = df.checked_ilog2().map_or(0, |bits| bits.saturating_sub(10));
    let df = df >> grain << grain;
    let known = QUANTILES.with_borrow(|known| known.get(&(p.to_bits(), df)).copied());
    known.unwrap_or_else(|| {
        let found = distributions::t_quantile(p, df as f64);
        QUANTILES.with_borrow_mut(|known| known.insert((p.to_bits(), df), found));
        found
    })
}

/// Whether a gain with this standard error is too small to show by the last affordable round.
pub(super) fn futile(method: Method, gain: f64, se: f64, fit: &BlockedFit, last_round: usize) -> bool {
    let Some((_, hoped, most)) = GIVE_UP.into_iter().find(|row| row.0 == method) else { return false };
    let small = |variance: f64| gain + hoped * se < (most * (2.0 * variance / last_round as f64).sqrt()).max(ALIKE);
    fit.variance.is_some_and(small)
}

/// Whether the rounds so far say that this gain is clear and the path quiet.
pub(super) fn is_quiet(gain: f64, fit: &BlockedFit) -> bool {
    let deviation = fit.variance.map_or(f64::INFINITY, |variance| (2.0 * variance).sqrt());
    deviation <= QUIET && gain > (CLEAR * deviation).max(ALIKE)
}

/// The two of these candidates that two draws from what the rounds say of each put first.
///
/// # Source
/// Russo, *Simple Bayesian algorithms for best arm identification* (COLT 2016): top-two sampling.
pub(super) fn top_two(candidates: &[usize], fit: &BlockedFit, rng: &mut impl Rng) -> Vec<usize> {
    let base = fit.base(candidates);
    let mut draw = || {
        let mut drawn: Vec<(usize, f64)> = candidates
            .iter()
            .map(|arm| {
                let spread = DRAWN * fit.standard_error(*arm, base).unwrap_or(0.0);
                (*arm, fit.difference(*arm, base).unwrap_or(f64::NEG_INFINITY) + spread * normal(rng))
            })
            .collect();
        drawn.sort_by(|a, b| b.1.total_cmp(&a.1));
        drawn
    };
    let first = draw()[0].0;
    let mut second = first;
    for _ in 0..DRAWS {
        let drawn = draw();
        second = drawn[0].0;
        if second != first {
            break;
        }
        second = drawn[1].0;
    }
    vec![first, second]
}
