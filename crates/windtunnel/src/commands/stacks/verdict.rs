use serde_json::{Value, json};
use wt_experiment::{EProcess, lower_bound, upper_bound};

/// What is claimed is wrong with this probability at most, all claims of a comparison together.
const ALPHA: f64 = 0.05;
/// Closer than this is "the same".
pub(super) const SAME: f64 = 0.05;

/// What the rounds say of two stacks at one workload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub(super) workload: String,
    pub(super) a: String,
    pub(super) b: String,
    /// Rounds in which both were done.
    rounds: usize,
    /// The mean of the first's score over the second's, and its bounds.
    ratio: f64,
    low: f64,
    high: f64,
    evidence: f64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Faster,
    Slower,
    Same,
    NotShown,
}

/// The evidence that a claim needs when so many could be made: both ways, for each pair and workload.
pub(super) fn threshold(pairs: usize, workloads: usize) -> f64 {
    2.0 * (pairs * workloads).max(1) as f64 / ALPHA
}

/// The fewest rounds that can reach it.
pub(super) fn fewest_rounds(threshold: f64) -> u32 {
    let mut process = EProcess::new();
    (1..1000)
        .find(|_| {
            process.push(1.0);
            process.evidence() >= threshold
        })
        .unwrap_or(1000)
}

impl Verdict {
    /// Of the logs of both scores in the rounds in which both were done, in order.
    pub(super) fn of(workload: &str, a: &str, b: &str, pairs: &[(f64, f64)], threshold: f64) -> Self {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).filter(|d| d.is_finite()).collect();
        let mean = differences.iter().sum::<f64>() / differences.len().max(1) as f64;
        let (low, high) = (lower_bound(&differences, threshold).exp(), upper_bound(&differences, threshold).exp());
        let evidence = EProcess::new().after(&differences).evidence();
        let slower = EProcess::below(0.0).after(&differences).evidence();
        let kind = match () {
            _ if low >= 1.0 - SAME && high <= 1.0 / (1.0 - SAME) => Kind::Same,
            _ if low > 1.0 => Kind::Faster,
            _ if high < 1.0 => Kind::Slower,
            _ => Kind::NotShown,
        };
        Self {
            workload: workload.to_owned(),
            a: a.to_owned(),
            b: b.to_owned(),
            rounds: differences.len(),
            ratio: mean.exp(),
            low,
            high,
            evidence: evidence.max(slower),
            kind,
        }
    }

    /// Whether a difference is shown that matters.
    pub(super) fn differs(&self) -> bool {
        matches!(self.kind, Kind::Faster | Kind::Slower)
    }

    pub(super) fn is_shown(&self) -> bool {
        self.kind != Kind::NotShown
    }

    pub(super) fn text(&self) -> String {
        let Self { workload, a, b, ratio, low, high, rounds, .. } = self;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        match self.kind {
            Kind::Same => {
                format!("{workload}: {a} and {b}: same within {:.0} % ({:+.1} %)", SAME * 100.0, percent(*ratio))
            }
            Kind::Faster => {
                format!(
                    "{workload}: {a} is faster than {b}: {:+.0} %, at least {:+.0} %",
                    percent(*ratio),
                    percent(*low)
                )
            }
            Kind::Slower => format!(
                "{workload}: {b} is faster than {a}: {:+.0} %, at least {:+.0} %",
                percent(1.0 / ratio),
                percent(1.0 / high)
            ),
            Kind::NotShown => format!("{workload}: {a} against {b}: nothing is shown by {rounds} rounds"),
        }
    }

    pub(super) fn json(&self) -> Value {
        let bound = |value: f64| if value.is_finite() && value > 0.0 { json!(value) } else { Value::Null };
        let kind = match self.kind {
            Kind::Faster => "faster",
            Kind::Slower => "slower",
            Kind::Same => "same",
            Kind::NotShown => "not-shown",
        };
        json!({
            "workload": self.workload, "a": self.a, "b": self.b, "kind": kind, "rounds": self.rounds,
            "ratio": if self.rounds > 0 { json!(self.ratio) } else { Value::Null },
            "low": bound(self.low), "high": bound(self.high), "evidence": self.evidence, "text": self.text(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ratio: f64, rounds: usize) -> Verdict {
        let noise = |i: usize| 1.0 + 0.002 * (i % 3) as f64;
        let pairs: Vec<(f64, f64)> = (0..rounds).map(|i| (ratio * noise(i), noise(i + 1))).collect();
        Verdict::of("bulk", "one", "other", &pairs, threshold(1, 1))
    }

    #[test]
    fn a_ranking_needs_enough_rounds_and_a_difference() {
        assert_eq!(verdict(1.5, 3).kind, Kind::NotShown);
        assert_eq!(verdict(1.5, 12).kind, Kind::Faster);
        assert_eq!(verdict(0.5, 12).kind, Kind::Slower);
        assert_eq!(verdict(1.01, 12).kind, Kind::Same);
        assert_eq!(verdict(1.0, 0).kind, Kind::NotShown);
        assert!(verdict(1.0, 0).json()["ratio"].is_null());
    }

    #[test]
    fn the_fewest_rounds_are_enough_and_one_less_is_not() {
        for claims in [1, 6, 50] {
            let threshold = threshold(claims, 1);
            let rounds = fewest_rounds(threshold) as usize;
            let evidence = |rounds| EProcess::new().after(&vec![1.0; rounds]).evidence();
            assert!(evidence(rounds) >= threshold && evidence(rounds - 1) < threshold);
        }
    }
}
