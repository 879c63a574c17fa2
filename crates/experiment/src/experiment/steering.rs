//! What the model decides: which settings to drop, and when to give up. None of it touches the error of a claim.

use crate::dist;
use crate::ols::BlockedFit;
use std::collections::HashMap;

/// The quantile at which a setting counts as clearly behind.
pub(super) const T_STEER: f64 = 0.975;
/// The quantile at which a rival of the leader counts as not worth pursuing.
pub(super) const T_RESOLVED: f64 = 0.95;
/// A gain of less than this many standard errors, expected at the end of the budget, is given up. Set once, by
/// simulation with four settings, never optimised.
const GIVE_UP: f64 = 2.6;

/// Two estimates that differ by less than this differ by rounding. In an emulated path without noise that happens.
pub(super) const ALIKE: f64 = 1e-9;

/// Keeps the quantiles of Student's t that were asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Steering {
    quantiles: HashMap<(u64, usize), f64>,
}

impl Steering {
    /// The quantile of Student's t; for many degrees of freedom, in steps of about a thousandth of them.
    pub(super) fn quantile(&mut self, p: f64, df: usize) -> f64 {
        let grain = df.checked_ilog2().map_or(0, |bits| bits.saturating_sub(10));
        let df = df >> grain << grain;
        *self.quantiles.entry((p.to_bits(), df)).or_insert_with(|| dist::t_quantile(p, df as f64))
    }

    /// Whether a gain with this standard error is too small to show by the last affordable round.
    pub(super) fn futile(&self, gain: f64, se: f64, fit: &BlockedFit, last_round: usize) -> bool {
        let small = |variance: f64| gain + se < (GIVE_UP * (2.0 * variance / last_round as f64).sqrt()).max(ALIKE);
        fit.variance.is_some_and(small)
    }
}
