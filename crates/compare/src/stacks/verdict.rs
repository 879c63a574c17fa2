use serde::Serialize;
use wt_experiment::{EProcess, lower_bound, upper_bound};

/// What is claimed is wrong with this probability at most, all claims of a comparison together.
const ALPHA: f64 = 0.05;
/// Closer than this is "the same".
pub(super) const SAME: f64 = 0.05;

/// What the rounds say of two stacks at one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StackVerdict {
    /// The workload.
    pub workload: String,
    /// One stack.
    pub a: String,
    /// The other one.
    pub b: String,
    /// What is shown.
    pub kind: StackVerdictKind,
    /// Rounds in which one of the two at least was completed.
    pub rounds: usize,
    /// The mean of the first one's score over the second one's, in the rounds in which both were completed.
    pub ratio: Option<f64>,
    /// Its lower bound, if there is one.
    pub low: Option<f64>,
    /// Its upper bound, if there is one.
    pub high: Option<f64>,
    /// The evidence that they differ, to one.
    pub evidence: f64,
    /// In words.
    pub text: String,
    /// Whether both are one stack with the same settings, under two names.
    #[serde(skip)]
    pub(super) alike: bool,
}

/// What is shown of one stack against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackVerdictKind {
    /// The first is faster.
    Faster,
    /// The second is.
    Slower,
    /// Neither is, by any share that matters.
    Same,
    /// Nothing.
    NotShown,
}

/// The ratio of two stacks' scores with its bounds, as far as the rounds give them.
struct BoundedRatio {
    ratio: f64,
    /// Rounds in which both were completed, on which the ratio rests.
    completed: usize,
    low: f64,
    high: f64,
}

/// The evidence that a claim needs when so many could be made: both ways, for each pair and workload.
pub(super) fn threshold(pairs: usize, workloads: usize) -> f64 {
    2.0 * (pairs * workloads).max(1) as f64 / ALPHA
}

impl StackVerdict {
    /// Of both scores in each round, in order. Who has none wasn't completed, and is worse than the other by more than any
    /// two that were: left out, a stack that loses its slowest trials would look fast.
    pub(super) fn of(workload: &str, [a, b]: [&str; 2], pairs: &[[Option<f64>; 2]], threshold: f64) -> Self {
        let difference = |pair: &[Option<f64>; 2]| Some((pair[0]? / pair[1]?).ln()).filter(|d| d.is_finite());
        let completed: Vec<f64> = pairs.iter().filter_map(difference).collect();
        let worst = completed.iter().fold(std::f64::consts::LN_2, |most, d| most.max(d.abs()));
        let differences: Vec<f64> = pairs
            .iter()
            .filter_map(|pair| match pair {
                [Some(_), None] => Some(worst),
                [None, Some(_)] => Some(-worst),
                both => difference(both),
            })
            .collect();
        let rounds = differences.len();
        let mean = completed.iter().sum::<f64>() / completed.len().max(1) as f64;
        let (low, high) = (lower_bound(&differences, threshold).exp(), upper_bound(&differences, threshold).exp());
        let evidence = EProcess::new().after(&differences).evidence();
        let slower = EProcess::below(0.0).after(&differences).evidence();
        let kind = match () {
            _ if low >= 1.0 - SAME && high <= 1.0 / (1.0 - SAME) => StackVerdictKind::Same,
            _ if low > 1.0 => StackVerdictKind::Faster,
            _ if high < 1.0 => StackVerdictKind::Slower,
            _ => StackVerdictKind::NotShown,
        };
        let found = BoundedRatio { ratio: mean.exp(), completed: completed.len(), low, high };
        let bound = |value: f64| Some(value).filter(|value| value.is_finite() && *value > 0.0);
        Self {
            workload: workload.to_owned(),
            a: a.to_owned(),
            b: b.to_owned(),
            kind,
            rounds,
            ratio: (!completed.is_empty()).then_some(found.ratio),
            low: bound(low),
            high: bound(high),
            evidence: evidence.max(slower),
            alike: false,
            text: format!("{workload}: {}", words([a, b], kind, &found, rounds)),
        }
    }

    /// The same for two names of one stack with the same settings: they are equal, and no difference between them is more
    /// than chance.
    pub(super) fn of_one_stack(self) -> Self {
        let Self { workload, a, b, .. } = &self;
        let text = format!("{workload}: {a} and {b}: the same stack with the same settings; they aren't ranked");
        Self { kind: StackVerdictKind::Same, text, alike: true, ..self }
    }

    /// Whether a difference is shown that matters.
    pub(super) fn differs(&self) -> bool {
        matches!(self.kind, StackVerdictKind::Faster | StackVerdictKind::Slower)
    }

    /// Whether anything is shown.
    pub(super) fn is_shown(&self) -> bool {
        self.kind != StackVerdictKind::NotShown
    }
}

/// What is shown, in words.
fn words([a, b]: [&str; 2], kind: StackVerdictKind, found: &BoundedRatio, rounds: usize) -> String {
    let BoundedRatio { ratio, completed, low, high } = *found;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let faster = |a: &str, b: &str, ratio: f64, least: f64| match completed {
        0 => format!("{a} is better than {b}, which completed none of the {rounds} rounds that count"),
        // Rounds that it didn't complete weigh more than the mean of the others says.
        both if ratio < least => format!(
            "{a} is better than {b}, which completed {both} of {rounds} rounds: there it is {:+.0} % faster",
            percent(ratio)
        ),
        _ => format!("{a} is faster than {b}: {:+.0} %, at least {:+.0} %", percent(ratio), percent(least)),
    };
    match kind {
        StackVerdictKind::Same => {
            format!("{a} and {b}: same within {:.0} % ({} %)", SAME * 100.0, wt_units::change(percent(ratio), 1))
        }
        StackVerdictKind::Faster => faster(a, b, ratio, low),
        StackVerdictKind::Slower => faster(b, a, 1.0 / ratio, 1.0 / high),
        StackVerdictKind::NotShown => format!("{a} against {b}: nothing is shown by {rounds} rounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_never_finishes_is_told_so_and_not_by_a_ratio_of_nothing() {
        let pairs: Vec<[Option<f64>; 2]> = (0..40).map(|_| [Some(1.0), None]).collect();
        let never = StackVerdict::of("bulk", ["one", "other"], &pairs, threshold(1, 1));
        assert_eq!((never.kind, never.ratio), (StackVerdictKind::Faster, None));
        assert!(never.text.ends_with("other, which completed none of the 40 rounds that count"), "{}", never.text);
        let half: Vec<[Option<f64>; 2]> = (0..400).map(|n| [Some(1.0), Some(1.0).filter(|_| n % 3 > 0)]).collect();
        let half = StackVerdict::of("bulk", ["one", "other"], &half, threshold(1, 1));
        assert_eq!(half.kind, StackVerdictKind::Faster, "{}", half.text);
        assert!(half.text.contains("which completed 266 of 400 rounds: there it is +0 % faster"), "{}", half.text);
    }

    fn verdict(ratio: f64, rounds: usize) -> StackVerdict {
        let noise = |i: usize| 1.0 + 0.002 * (i % 3) as f64;
        let pairs: Vec<[Option<f64>; 2]> = (0..rounds).map(|i| [Some(ratio * noise(i)), Some(noise(i + 1))]).collect();
        StackVerdict::of("bulk", ["one", "other"], &pairs, threshold(1, 1))
    }

    #[test]
    fn a_ranking_needs_enough_rounds_and_a_difference() {
        assert_eq!(verdict(1.5, 3).kind, StackVerdictKind::NotShown);
        assert_eq!(verdict(1.5, 12).kind, StackVerdictKind::Faster);
        assert_eq!(verdict(0.5, 12).kind, StackVerdictKind::Slower);
        assert_eq!(verdict(1.01, 12).kind, StackVerdictKind::Same);
        assert_eq!(verdict(1.0, 0).kind, StackVerdictKind::NotShown);
        assert_eq!(verdict(1.0, 0).ratio, None);
        assert_eq!(serde_json::to_value(verdict(1.0, 0)).unwrap()["kind"], "not-shown");
        assert!(verdict(0.5, 12).text.starts_with("bulk: other is faster than one: +100 %"));
    }

    #[test]
    fn two_names_of_one_stack_are_equal_however_their_figures_fell() {
        let verdict = verdict(1.5, 12).of_one_stack();
        assert_eq!((verdict.kind, verdict.differs()), (StackVerdictKind::Same, false));
        assert_eq!(verdict.text, "bulk: one and other: the same stack with the same settings; they aren't ranked");
    }

    #[test]
    fn a_stack_that_loses_its_slowest_trials_is_not_ranked_faster_for_it() {
        // Alike, but that the first doesn't finish what would have been its slow half.
        let slow = |i: usize| if i.is_multiple_of(2) { 0.5 } else { 1.0 };
        let pairs: Vec<[Option<f64>; 2]> =
            (0..60).map(|i| [Some(slow(i)).filter(|s| *s > 0.6), Some(slow(i / 2))]).collect();
        let found = StackVerdict::of("bulk", ["loses", "other"], &pairs, threshold(1, 1));
        assert!(found.kind != StackVerdictKind::Faster && found.rounds == 60, "{found:?}");
        assert!(found.ratio.is_some_and(|ratio| ratio > 1.2), "by those that are done it looks faster");
    }

    #[test]
    fn the_fewest_rounds_are_enough_and_one_less_is_not() {
        for claims in [1, 6, 50] {
            let threshold = threshold(claims, 1);
            let rounds = crate::rounds::fewest_rounds(threshold) as usize;
            let evidence = |rounds| EProcess::new().after(&vec![1.0; rounds]).evidence();
            assert!(evidence(rounds) >= threshold && evidence(rounds - 1) < threshold);
        }
    }
}
