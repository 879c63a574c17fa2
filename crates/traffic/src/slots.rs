use wt_experiment::{EProcess, lower_bound, upper_bound};

/// Differences between whole epochs of one block, one for each block; few, so with the stakes of few rounds.
///
/// Which epoch of a block had which allocation was drawn, every order with the same probability: without an effect the sign of a
/// difference is ±1 with probability ½, given its size.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotMeans {
    differences: Vec<f64>,
    best: [f64; 2],
    now: [f64; 2],
}

impl SlotMeans {
    pub(crate) fn push(&mut self, difference: f64) {
        self.differences.push(difference);
        let now =
            [EProcess::new(), EProcess::below(0.0)].map(|process| process.after(&self.differences).log_evidence());
        self.now = now;
        self.best = [self.best[0].max(now[0]), self.best[1].max(now[1])];
    }

    /// The evidence now for "slower", as a logarithm.
    pub(crate) fn log_lower(&self) -> f64 {
        self.now[1]
    }

    pub(crate) fn blocks(&self) -> usize {
        self.differences.len()
    }

    /// The largest evidence for "faster" and for "slower", as logarithms.
    pub(crate) fn best(&self) -> [f64; 2] {
        self.best
    }

    pub(crate) fn effect(&self) -> Option<f64> {
        let n = self.differences.len();
        (n > 0).then(|| self.differences.iter().sum::<f64>() / n as f64)
    }

    pub(crate) fn interval(&self, threshold: f64) -> (f64, f64) {
        (lower_bound(&self.differences, threshold), upper_bound(&self.differences, threshold))
    }
}
