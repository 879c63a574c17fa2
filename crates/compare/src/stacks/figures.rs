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
    let Some(score) = score(workload, outcome) else { return "no figure".to_owned() };
    match kind(workload) {
        "transactions" => format!("{score:.1}/s"),
        "stream" => format!("{:.2} ms late", 1e3 / score),
        "bursts" | "page" => format!("{:.3} s", 1.0 / score),
        _ => RateUnit::chosen().map_or_else(|| format!("{:.3} Mbit/s", score / 1e6), |unit| unit.write(score)),
    }
}

/// The value in the middle.
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
