//! How many rounds a true gain needs until it shows.

/// What would have to be seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The gain as a share: 0.2 is +20 %.
    pub gain: f64,
    /// σ̂, the standard deviation of the log outcome of one trial about its round.
    pub sigma: f64,
    /// The evidence that a claim needs.
    pub threshold: f64,
}

impl Target {
    /// Rounds after which the gain would be claimed in half of all experiments.
    ///
    /// # Source
    /// A fit to simulations with normal noise, within ±15 % for effects of 0.2 to 1 standard deviations of a
    /// within-round difference.
    #[must_use]
    pub fn rounds_for_half(&self) -> usize {
        self.rounds(2.2)
    }

    /// Rounds after which the gain would be claimed in four of five experiments; from the same fit.
    #[must_use]
    pub fn rounds_for_four_in_five(&self) -> usize {
        self.rounds(4.0)
    }

    fn rounds(&self, factor: f64) -> usize {
        let effect = self.gain.ln_1p() / (self.sigma * std::f64::consts::SQRT_2);
        let rounds = (factor * self.threshold.ln() / (effect * effect) + 4.0).ceil();
        // A gain of nothing, or no number at all, never shows.
        if rounds.is_finite() { rounds.min(1e15) as usize } else { usize::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planning_noise_of_the_dial_up_study_gives_the_golden_rounds() {
        let table = [
            (60.0, [(0.05, 213, 384), (0.10, 59, 104), (0.20, 19, 32), (0.50, 8, 10)]),
            (20.0, [(0.05, 157, 282), (0.10, 44, 77), (0.20, 15, 24), (0.50, 7, 9)]),
            (140.0, [(0.05, 256, 462), (0.10, 70, 124), (0.20, 23, 37), (0.50, 8, 11)]),
        ];
        for (threshold, rows) in table {
            for (gain, half, most) in rows {
                let target = Target { gain, sigma: 0.02755f64.sqrt(), threshold };
                assert_eq!((target.rounds_for_half(), target.rounds_for_four_in_five()), (half, most), "{target:?}");
            }
        }
    }

    #[test]
    fn nothing_never_shows() {
        for gain in [0.0, f64::NAN] {
            assert_eq!(Target { gain, sigma: 0.1, threshold: 20.0 }.rounds_for_half(), usize::MAX);
        }
    }
}
