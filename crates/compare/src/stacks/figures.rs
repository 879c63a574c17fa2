use serde::Deserialize as _;
use wt_stacks::StackObservation;
use wt_trial::bulk::{BulkMetrics, PathNow, quantile};
use wt_trial::{Scale, Status, TrialOutcome, Workload};
use wt_units::RateUnit;

/// Whether it is judged by how it goes on, and not by how fast it is.
pub(super) fn is_soak(workload: &Workload) -> bool {
    matches!(workload, Workload::Soak { .. })
}

/// What a workload of this key is, whichever way it goes.
pub(super) fn kind(key: &str) -> &str {
    key.strip_suffix("-up").unwrap_or(key)
}

/// What a workload is ranked by; more is better.
pub(super) fn score(workload: &str, outcome: &TrialOutcome) -> Option<f64> {
    if outcome.status != Status::Completed {
        return None;
    }
    let measures = &outcome.measures;
    let seconds = outcome.elapsed_us as f64 / 1e6;
    let score = match kind(workload) {
        "transactions" => measures.exchanges.map(|exchanges| exchanges.per_second)?,
        "stream" => 1e6 / measures.lateness?.spread.p99_us.max(1) as f64,
        "bursts" | "page" => 1.0 / seconds,
        // The geometric mean of both ways.
        "duplex" => outcome.figure(Scale::Goodput)?,
        _ => outcome.goodput_bps(),
    };
    (score.is_finite() && score > 0.0).then_some(score)
}

/// The name and the unit of what a workload is ranked by, and by what scores up to `most` are multiplied for it.
pub(super) fn axis(workload: &str, most: f64) -> (&'static str, &'static str, f64) {
    match kind(workload) {
        "transactions" => ("transactions", "1/s", 1.0),
        "stream" => ("1 / lateness", "1/s", 1.0),
        "bursts" | "page" => ("1 / time", "1/s", 1.0),
        _ => {
            let (unit, times) = RateUnit::of_axis(most);
            ("goodput", unit, times)
        }
    }
}

/// A trial in a few words.
pub(super) fn figure(workload: &str, outcome: &TrialOutcome) -> String {
    let figure = score(workload, outcome).and_then(|score| median_figure(workload, vec![score]));
    figure.unwrap_or_else(|| "no figure".to_owned())
}

/// The median of what trials with these scores are known by; `None` of none.
pub(super) fn median_figure(workload: &str, scores: Vec<f64>) -> Option<String> {
    // Half-way between two times isn't half-way between what one over them is.
    let is_time = matches!(kind(workload), "stream" | "bursts" | "page");
    let figures = scores.into_iter().map(|score| if is_time { 1.0 / score } else { score });
    let middle = median(figures.collect())?;
    Some(match kind(workload) {
        "transactions" => format!("{middle:.1}/s"),
        "stream" => format!("{:.2} ms late", middle * 1e3),
        "bursts" | "page" => format!("{middle:.3} s"),
        _ => RateUnit::chosen().map_or_else(|| format!("{:.3} Mbit/s", middle / 1e6), |unit| unit.write(middle)),
    })
}

/// The value in the middle, half-way between two of them.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// What was seen at the stack's device.
pub(super) fn seen(outcome: &TrialOutcome) -> Option<StackObservation> {
    StackObservation::deserialize(outcome.observed.seen.as_ref()?).ok()
}

/// When 90 % of the rate was reached, s, from what the server's kernel saw acknowledged, or received.
pub(super) fn ramp_up(outcome: &TrialOutcome, path: &PathNow, up: bool) -> Option<f64> {
    let of_server = if up { &outcome.receiver } else { &outcome.sender };
    let seen = TrialOutcome { receiver: of_server.clone(), ..outcome.clone() };
    BulkMetrics::of(&seen, path).t90_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_trials_the_median_lies_between_them() {
        assert_eq!(median_figure("transactions", vec![20.0, 10.0]).as_deref(), Some("15.0/s"));
        assert_eq!(median_figure("bulk-up", vec![2e6, 1e6]).as_deref(), Some("1.500 Mbit/s"));
        // 1 s and 3 s, 2 ms and 4 ms.
        assert_eq!(median_figure("page", vec![1.0, 1.0 / 3.0]).as_deref(), Some("2.000 s"));
        assert_eq!(median_figure("stream", vec![500.0, 250.0]).as_deref(), Some("3.00 ms late"));
        assert_eq!(median_figure("page", vec![]), None);
    }
}
