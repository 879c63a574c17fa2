//! Comparison with published figures, for tests.

/// Asserts that `got` rounds to the figure as it is written: to within half a unit of its fourth significant digit.
#[track_caller]
pub(crate) fn assert_golden(got: f64, golden: f64) {
    let unit = if golden == 0.0 { 1e-4 } else { 10f64.powf(golden.abs().log10().floor() - 3.0) };
    assert!((got - golden).abs() <= 0.5001 * unit, "got {got}, golden {golden}");
}
