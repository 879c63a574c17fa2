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

/// The median of times until something happened, half-way between two in the middle: where it never did (`None`), that took longer
/// than all that did. `None` where half of them or more are such, or there are none.
///
/// # Example
/// ```
/// use wt_units::median_time;
/// assert_eq!(median_time([None, Some(1.0), Some(2.0)]), Some(2.0));
/// assert_eq!(median_time([Some(1.0), None]), None);
/// ```
#[must_use]
pub fn median_time(times: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let mut times: Vec<f64> = times.into_iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    times.sort_by(f64::total_cmp);
    let middle = [times.len().checked_sub(1)? / 2, times.len() / 2].map(|at| times[at]);
    Some(f64::midpoint(middle[0], middle[1])).filter(|time| time.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_never_got_there_took_longer_than_all_others() {
        let middle = |times: &[Option<f64>]| median_time(times.iter().copied());
        assert_eq!(middle(&[None, Some(1.0), Some(2.0)]), Some(2.0));
        assert_eq!(middle(&[Some(1.0), Some(2.0)]), Some(1.5));
        // Of two at most one got there, and of three most didn't.
        assert_eq!(middle(&[Some(1.0), None]), None);
        assert_eq!(middle(&[None, None, Some(1.0)]), None);
        assert_eq!(middle(&[]), None);
    }

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
