//! How far the chosen setting can lie behind the best one that was tested.

/// The half-width of an interval for a difference of two estimates that holds at all times together.
///
/// `unit_variance` is the variance of the difference in units of σ², `variance` is σ̂² with `df` degrees of freedom,
/// `alpha` the two-sided error. Infinite while there is too little to go by.
///
/// # Source
/// Lindon, Ham, Tingley, Bojinov, *Anytime-valid linear models and regression adjusted causal inference in randomized
/// experiments* (arXiv 2210.08589), with prior precision φ = ½.
#[must_use]
pub fn anytime_half_width(variance: f64, unit_variance: f64, df: f64, alpha: f64) -> f64 {
    const PHI: f64 = 0.5;
    let shrink = PHI / (PHI + 1.0 / unit_variance);
    let growth = (1.0 / (alpha * alpha * shrink)).powf(1.0 / (df + 1.0));
    if growth * shrink >= 1.0 || df < 1.0 {
        return f64::INFINITY;
    }
    let width = (df * (growth - 1.0) / (1.0 - growth * shrink) * variance * unit_variance).sqrt();
    if width.is_nan() { f64::INFINITY } else { width }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::assert_golden;

    #[test]
    fn the_half_widths_are_the_golden_ones() {
        assert_golden(anytime_half_width(0.014896, 0.5, 9.0, 0.05), 0.3652);
        assert_golden(anytime_half_width(0.014896, 0.1, 57.0, 0.05), 0.1231);
    }

    #[test]
    fn with_too_little_to_go_by_the_width_is_infinite() {
        assert_eq!(anytime_half_width(0.01, 2.0, 1.0, 0.001), f64::INFINITY);
        assert_eq!(anytime_half_width(0.01, 0.5, 0.0, 0.05), f64::INFINITY);
        assert_eq!(anytime_half_width(f64::NAN, 0.5, 9.0, 0.05), f64::INFINITY);
    }
}
