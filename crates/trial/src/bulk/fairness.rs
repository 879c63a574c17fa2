use super::Arrivals;

/// Jain's index of rates: 1 when all are alike, 1/n when one has everything; `None` without any.
///
/// # Source
/// Jain, Chiu, Hawe: DEC-TR-301, 1984; RFC 5166, section 2.3.
#[must_use]
pub fn jain(rates: &[f64]) -> Option<f64> {
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

/// The smallest rate over the largest.
#[must_use]
pub fn smallest_share(rates: &[f64]) -> Option<f64> {
    let largest = rates.iter().copied().fold(0.0, f64::max);
    (largest > 0.0).then(|| rates.iter().copied().fold(f64::INFINITY, f64::min) / largest)
}

/// How long two flows need until each has its half, within `delta` of it (0.1 is usual): from when the second one began,
/// `start_us` on the first one's clock, until the shares of a window of `window_us` keep to it for as long. In µs.
#[must_use]
pub fn convergence(first: &Arrivals, second: &Arrivals, start_us: u64, window_us: u64, delta: f64) -> Option<u64> {
    let step = (window_us / 4).max(1);
    let end = first.end_us().min(start_us + second.end_us());
    let fair = |t: u64| {
        let (a, b) = (first.rate(t, window_us), second.rate(t - start_us, window_us));
        let share = if a + b > 0.0 { b / (a + b) } else { 0.0 };
        (share - 0.5).abs() <= delta / 2.0
    };
    let mut since = None;
    let mut t = start_us + window_us;
    while t <= end {
        match (since, fair(t)) {
            (None, true) => since = Some(t),
            (Some(_), false) => since = None,
            (Some(begun), true) if t - begun >= window_us => return Some(begun - start_us),
            _ => {}
        }
        t += step;
    }
    None
}
