//! Least squares with a constant for every round: `y = β_round + τ_setting + ε`, settings missing in any round.
//!
//! The estimates steer the experiment and size the effect; they claim nothing. What this leaves out: drift within a
//! round and dependence between trials, which is why claims come from the randomisation ([`EProcess`](crate::EProcess))
//! alone.

use crate::linalg::Square;

/// Collects rounds; one round costs the square of the number of settings, whatever came before.
#[derive(Debug, Clone)]
pub struct BlockedOls {
    arms: usize,
    /// Σ over rounds of I − 11ᵀ/n on the settings of the round.
    information: Square,
    /// Σ over rounds of y − ȳ.
    score: Vec<f64>,
    sum_of_squares: f64,
    /// Σ over rounds of n − 1.
    comparisons: usize,
    /// For every setting a setting with which it is compared, directly or by others, or itself.
    linked: Vec<usize>,
    seen: Vec<bool>,
}

/// The estimates from the rounds so far.
#[derive(Debug, Clone)]
pub struct BlockedFit {
    /// Of each setting that was seen the first setting to which a chain of rounds joins it, and how far it lies above that one.
    estimates: Vec<Option<(usize, f64)>>,
    covariance: Square,
    /// σ̂², the variance of one trial about its round; `None` without a degree of freedom.
    pub variance: Option<f64>,
    /// Degrees of freedom.
    pub df: usize,
}

impl BlockedOls {
    /// No round yet; settings are numbered from 0, the current one.
    #[must_use]
    pub fn new(arms: usize) -> Self {
        Self {
            arms,
            information: Square::zero(arms),
            score: vec![0.0; arms],
            sum_of_squares: 0.0,
            comparisons: 0,
            linked: (0..arms).collect(),
            seen: vec![false; arms],
        }
    }

    /// Takes a round: settings with their outcomes, of one setting more than one if it was run more than once. A round of one
    /// outcome says nothing and is ignored.
    pub fn push(&mut self, round: &[(usize, f64)]) {
        if round.len() < 2 || round.iter().any(|(arm, y)| *arm >= self.arms || !y.is_finite()) {
            return;
        }
        let n = round.len() as f64;
        let mean = round.iter().map(|(_, y)| y).sum::<f64>() / n;
        for (arm, y) in round {
            self.information.add(*arm, *arm, 1.0);
            for (other, _) in round {
                self.information.add(*arm, *other, -1.0 / n);
            }
            self.score[*arm] += y - mean;
            self.sum_of_squares += (y - mean) * (y - mean);
            self.seen[*arm] = true;
            let (a, b) = (self.root(*arm), self.root(round[0].0));
            // The smaller number becomes the root, so that all that is linked with 0 has the root 0.
            self.linked[a.max(b)] = a.min(b);
        }
        self.comparisons += round.len() - 1;
    }

    /// The estimates; settings that no chain of rounds joins to setting 0 have none.
    #[must_use]
    pub fn fit(&self) -> BlockedFit {
        let free: Vec<usize> = (0..self.arms).filter(|a| self.seen[*a] && self.root(*a) != *a).collect();
        let df = self.comparisons.saturating_sub(free.len());
        let mut fit =
            BlockedFit { estimates: vec![None; self.arms], covariance: Square::zero(self.arms), variance: None, df };
        let Some(inverse) = self.information.minor(&free).inverse() else { return fit };
        let score: Vec<f64> = free.iter().map(|a| self.score[*a]).collect();
        let tau = inverse.times(&score);
        let explained: f64 = tau.iter().zip(&score).map(|(t, s)| t * s).sum();
        if df > 0 {
            fit.variance = Some((self.sum_of_squares - explained).max(0.0) / df as f64);
        }
        for root in (0..self.arms).filter(|a| self.seen[*a] && self.root(*a) == *a) {
            fit.estimates[root] = Some((root, 0.0));
        }
        for (i, a) in free.iter().enumerate() {
            fit.estimates[*a] = Some((self.root(*a), tau[i]));
            for (j, b) in free.iter().enumerate() {
                fit.covariance.add(*a, *b, inverse.get(i, j));
            }
        }
        fit
    }

    fn root(&self, mut arm: usize) -> usize {
        while self.linked[arm] != arm {
            arm = self.linked[arm];
        }
        arm
    }
}

impl BlockedFit {
    /// τ̂: how far the log outcome of this setting lies above that of setting 0.
    #[must_use]
    pub fn estimate(&self, arm: usize) -> Option<f64> {
        self.estimates.get(arm).copied().flatten().filter(|(root, _)| *root == 0).map(|(_, tau)| tau)
    }

    /// How far the log outcome of one setting lies above that of another; `None` where no chain of rounds joins them.
    #[must_use]
    pub fn difference(&self, own: usize, other: usize) -> Option<f64> {
        let of = |arm: usize| self.estimates.get(arm).copied().flatten();
        let ((root, own), (joined, other)) = of(own).zip(of(other))?;
        (root == joined).then_some(own - other)
    }

    /// What these settings are compared with among themselves: setting 0, or the first of them where none has an estimate, since
    /// setting 0 has no outcome that enters one.
    pub(crate) fn base(&self, arms: &[usize]) -> usize {
        let known = |arm: &usize| self.estimate(*arm).is_some();
        if arms.iter().any(known) { 0 } else { arms.first().copied().unwrap_or(0) }
    }

    /// The variance of τ̂_a − τ̂_b in units of σ².
    #[must_use]
    pub fn unit_variance(&self, a: usize, b: usize) -> f64 {
        (self.covariance.get(a, a) + self.covariance.get(b, b) - 2.0 * self.covariance.get(a, b)).max(0.0)
    }

    /// The standard error of τ̂_a − τ̂_b; `None` without a degree of freedom.
    #[must_use]
    pub fn standard_error(&self, a: usize, b: usize) -> Option<f64> {
        self.variance.map(|v| (v * self.unit_variance(a, b)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::assert_golden;
    use proptest::prelude::*;

    const TTL: [[f64; 4]; 4] = [
        [1309.0, 1597.0, 1888.0, 1206.0],
        [1327.0, 1597.0, 1597.0, 1109.0],
        [1242.0, 1404.0, 1700.0, 1191.0],
        [923.0, 1864.0, 1633.0, 975.0],
    ];

    fn ttl(missing: impl Fn(usize, usize) -> bool, block_constant: f64) -> BlockedFit {
        let mut ols = BlockedOls::new(4);
        for series in 0..4 {
            let outcomes = TTL.iter().map(|row| row[series].ln() + block_constant * series as f64);
            let round: Vec<(usize, f64)> = outcomes.enumerate().filter(|(arm, _)| !missing(*arm, series)).collect();
            ols.push(&round);
        }
        ols.fit()
    }

    #[test]
    fn the_dial_up_ttl_table_without_setting_128_in_two_series_gives_the_golden_estimates() {
        let fit = ttl(|arm, series| arm == 3 && series >= 2, 0.0);
        for (arm, tau, se) in [(1, -0.05940, 0.09501), (2, -0.07469, 0.09501), (3, -0.1141, 0.1227)] {
            assert_golden(fit.estimate(arm).unwrap(), tau);
            assert_golden(fit.standard_error(arm, 0).unwrap(), se);
        }
        assert_golden(fit.variance.unwrap(), 0.01805);
        assert_eq!(fit.df, 7);
    }

    #[test]
    fn a_complete_table_gives_the_ratios_of_the_geometric_means_and_the_blocked_mean_square() {
        let fit = ttl(|_, _| false, 0.0);
        assert_golden(fit.variance.unwrap(), 0.01490);
        assert_golden(fit.standard_error(1, 2).unwrap(), 0.08630);
        assert_golden(fit.estimate(3).unwrap().exp(), 0.8710);
    }

    #[test]
    fn a_setting_that_was_never_compared_with_the_current_one_has_no_estimate() {
        let mut ols = BlockedOls::new(4);
        ols.push(&[(0, 1.0), (1, 1.5)]);
        ols.push(&[(2, 1.0), (3, 7.0)]);
        assert_eq!([0, 1, 2, 3].map(|a| ols.fit().estimate(a)), [Some(0.0), Some(0.5), None, None]);
        assert_eq!((ols.fit().df, ols.fit().variance), (0, None));
        ols.push(&[(1, 1.5), (3, 8.0)]);
        assert!((ols.fit().estimate(2).unwrap() - 1.0).abs() < 1e-9);
        ols.push(&[(0, f64::NAN), (1, 0.0)]);
        ols.push(&[(9, 0.0), (1, 0.0)]);
        assert_eq!(ols.fit().df, 0);
    }

    proptest! {
        #[test]
        fn the_constant_of_a_round_changes_nothing(constant in -20.0f64..20.0) {
            let (a, b) = (ttl(|a, s| a == 3 && s == 1, 0.0), ttl(|a, s| a == 3 && s == 1, constant));
            for arm in 0..4 {
                prop_assert!((a.estimate(arm).unwrap() - b.estimate(arm).unwrap()).abs() < 1e-9);
            }
            prop_assert!((a.variance.unwrap() - b.variance.unwrap()).abs() < 1e-9);
        }
    }
}
