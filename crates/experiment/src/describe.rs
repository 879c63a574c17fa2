//! What a set of outcomes looks like.

use serde::Serialize;

/// What a set of outcomes looks like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Description {
    /// How many.
    pub n: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The geometric mean; `None` if an outcome isn't positive.
    pub geometric_mean: Option<f64>,
    /// The standard deviation of a single outcome; `None` for one outcome.
    pub sd: Option<f64>,
    /// The standard deviation of the mean (the ± of the old studies); `None` for one outcome.
    pub sd_of_mean: Option<f64>,
}

/// Describes outcomes; `None` if there are none.
#[must_use]
pub fn describe(values: &[f64]) -> Option<Description> {
    if values.is_empty() {
        return None;
    }
    let n = values.len();
    let log_mean = values.iter().map(|v| v.ln()).sum::<f64>() / n as f64;
    let sd = (n > 1).then(|| (squares(values) / (n - 1) as f64).sqrt());
    Some(Description {
        n,
        mean: mean(values),
        geometric_mean: log_mean.is_finite().then(|| log_mean.exp()),
        sd,
        sd_of_mean: sd.map(|sd| sd / (n as f64).sqrt()),
    })
}

/// The arithmetic mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squares about the mean.
pub(crate) fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean) * (v - mean)).sum()
}
