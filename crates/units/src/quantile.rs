/// The interpolated quantile: the value below which this share of the sorted ones lies, on the straight line between its
/// neighbours. `None` of nothing.
///
/// # Example
/// ```
/// use wt_units::quantile;
/// assert_eq!(quantile(&[1.0, 2.0, 4.0, 8.0], 0.5), Some(3.0));
/// ```
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let next = sorted[(low + 1).min(last)];
    Some(sorted[low] + (next - sorted[low]) * part)
}

/// The upper median: the value in the middle, of two the larger one, so always one that was measured. `None` of nothing.
///
/// # Example
/// ```
/// use wt_units::upper_median;
/// assert_eq!(upper_median([8.0, 1.0, 4.0, 2.0]), Some(4.0));
/// ```
#[must_use]
pub fn upper_median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_definitions_agree_on_odd_numbers_and_differ_by_interpolation_on_even_ones() {
        let sorted = [1.0, 2.0, 3.0, 10.0];
        assert_eq!((quantile(&sorted[..3], 0.5), upper_median(sorted[..3].to_vec())), (Some(2.0), Some(2.0)));
        assert_eq!((quantile(&sorted, 0.5), upper_median(sorted)), (Some(2.5), Some(3.0)));
        assert_eq!(
            (quantile(&sorted, 0.0), quantile(&sorted, 1.0), quantile(&sorted, 9.0)),
            (Some(1.0), Some(10.0), Some(10.0))
        );
        assert_eq!((quantile(&[], 0.5), upper_median([])), (None, None));
    }
}
