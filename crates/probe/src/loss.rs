use statrs::function::beta::inv_beta_reg;

/// Probes sent and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossCount {
    /// How many were sent.
    pub sent: u32,
    /// How many of them were answered.
    pub answered: u32,
}

impl LossCount {
    /// How many were lost.
    #[must_use]
    pub const fn lost(&self) -> u32 {
        self.sent.saturating_sub(self.answered)
    }

    /// The share that was lost; 0 of nothing.
    #[must_use]
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { f64::from(self.lost()) / f64::from(self.sent) }
    }

    /// Between which losses the true one lies, with 95 % confidence.
    ///
    /// # Source
    /// Clopper and Pearson, Biometrika 26 (1934), 404–413: exact, so never too narrow.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        self.interval_at(0.95)
    }

    /// The same with this confidence, between 0 and 1.
    #[must_use]
    pub fn interval_at(&self, confidence: f64) -> (f64, f64) {
        let tail = (1.0 - confidence) / 2.0;
        if self.sent == 0 {
            return (0.0, 1.0);
        }
        let (lost, answered) = (f64::from(self.lost()), f64::from(self.sent - self.lost()));
        let low = if self.lost() == 0 { 0.0 } else { inv_beta_reg(lost, answered + 1.0, tail) };
        let high = if self.lost() == self.sent { 1.0 } else { inv_beta_reg(lost + 1.0, answered, 1.0 - tail) };
        (low, high)
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { sent: self.sent.saturating_add(other.sent), answered: self.answered.saturating_add(other.answered) }
    }
}

/// How much better two losses explain the counts than one: twice the logarithm of the ratio of the likelihoods.
///
/// With equal losses it exceeds 10.83 once in 1000 comparisons (χ² with one degree of freedom).
///
/// # Source
/// Wilks, Annals of Mathematical Statistics 9 (1938), 60–62.
#[must_use]
pub fn likelihood_ratio(one: LossCount, other: LossCount) -> f64 {
    let log = |count: LossCount, loss: f64| {
        let term = |n: u32, p: f64| if n == 0 { 0.0 } else { f64::from(n) * p.ln() };
        term(count.lost(), loss) + term(count.sent - count.lost(), 1.0 - loss)
    };
    let both = one.plus(other).loss();
    (2.0 * (log(one, one.loss()) + log(other, other.loss()) - log(one, both) - log(other, both))).max(0.0)
}

/// More probes are never sent to see whether it is by chance that all of them are lost.
const MOST_REPEATS: u32 = 40;

/// How many probes must all be lost before it is not by chance (once in 1000 times) at this loss; 3 to 40.
#[must_use]
pub fn repeats_for(loss: f64) -> u32 {
    needed_for(loss).min(MOST_REPEATS)
}

/// Whether so many are enough: where nearly all probes are lost, silence says nothing.
#[must_use]
pub fn silence_tells(loss: f64) -> bool {
    needed_for(loss) <= MOST_REPEATS
}

fn needed_for(loss: f64) -> u32 {
    if loss <= 0.0 {
        return 3;
    }
    ((1e-3f64.ln() / loss.min(0.99).ln()).ceil() as u32).max(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn count(sent: u32, answered: u32) -> LossCount {
        LossCount { sent, answered }
    }

    #[test]
    fn intervals_are_the_published_ones() {
        // The rule of three: nothing lost of n says at most 3.69/n (two-sided 95 %).
        let (low, high) = count(100, 100).interval();
        assert_eq!(low, 0.0);
        assert!((high - 0.036_2).abs() < 1e-4, "{high}");
        let (low, high) = count(10, 5).interval();
        assert!((low - 0.187_1).abs() < 1e-4 && (high - 0.812_9).abs() < 1e-4, "{low} {high}");
        assert_eq!(count(0, 0).interval(), (0.0, 1.0));
        assert_eq!(count(4, 0).interval().1, 1.0);
    }

    #[test]
    fn equal_losses_have_no_ratio_and_a_third_against_none_has_a_large_one() {
        assert!(likelihood_ratio(count(100, 90), count(200, 180)) < 1e-9);
        let ratio = likelihood_ratio(count(40, 40), count(40, 28));
        assert!((ratio - 18.77).abs() < 0.05, "{ratio}");
        assert_eq!(likelihood_ratio(count(0, 0), count(0, 0)), 0.0);
    }

    #[test]
    fn half_lost_takes_ten_probes_to_be_sure() {
        assert_eq!((repeats_for(0.0), repeats_for(0.5), repeats_for(0.05), repeats_for(1.0)), (3, 10, 3, 40));
    }

    #[test]
    fn silence_says_nothing_where_forty_may_get_lost_by_chance() {
        assert_eq!([0.0, 0.5, 0.84, 0.85, 0.95, 1.0].map(silence_tells), [true, true, true, false, false, false]);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_estimate(sent in 0u32..5000, part in 0.0f64..=1.0) {
            let counts = count(sent, (f64::from(sent) * part) as u32);
            let (low, high) = counts.interval();
            prop_assert!(low <= counts.loss() + 1e-9 && counts.loss() <= high + 1e-9);
            prop_assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high));
        }
    }
}
