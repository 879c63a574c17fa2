//! Goodput against delay: which settings no other beats in both.
//!
//! By the medians of their trials, so an estimate: what is claimed of delay is [`DelayReport`](super::DelayReport)'s.

use super::{Arm, ArmState, TrialFigure};
use crate::{Axis, Chart, Series};

/// So many settings of the frontier have a name of their own in the picture.
const MOST_NAMED: usize = 4;

/// The settings, by their places, that no other equals or beats in both goodput and delay, ascending in both. None where delay
/// isn't known, or something else than goodput is compared; those that couldn't be set, or fail, don't count.
pub(super) fn frontier(arms: &[Arm], measured: &TrialFigure) -> Vec<usize> {
    let mut known: Vec<(usize, f64, f64)> = placed(arms, measured).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.2.total_cmp(&a.2)));
    let mut most = 0.0;
    known.retain(|(.., goodput_bps)| {
        let better = *goodput_bps > most;
        most = goodput_bps.max(most);
        better
    });
    known.into_iter().map(|(arm, ..)| arm).collect()
}

/// Each setting whose goodput and delay are known, with them.
fn placed<'a>(arms: &'a [Arm], measured: &TrialFigure) -> impl Iterator<Item = (usize, f64, f64)> + 'a {
    let goodput = measured.is_goodput();
    let counts = |state| !matches!(state, ArmState::NotSet | ArmState::Failing);
    let known = arms.iter().enumerate().filter(move |(_, arm)| goodput && counts(arm.state));
    known.filter_map(|(place, arm)| Some((place, arm.delay_us?, arm.goodput_bps.filter(|bps| *bps > 0.0)?)))
}

impl super::TuneReport {
    /// Every setting's goodput against its delay under load, and the frontier of those that no other beats in both; `None`
    /// with fewer than two.
    #[must_use]
    pub fn frontier_chart(&self) -> Option<Chart> {
        let all: Vec<(usize, f64, f64)> = placed(&self.arms, &self.measured).collect();
        let (unit, times) = wt_units::RateUnit::of_axis(all.iter().map(|(.., bps)| *bps).fold(0.0, f64::max));
        let point = |(_, delay_us, goodput_bps): (usize, f64, f64)| (delay_us / 1e3, goodput_bps * times);
        if all.len() < 2 {
            return None;
        }
        let of = |arm: usize| all.iter().find(|(other, ..)| *other == arm).copied().map(point);
        let steps: Vec<(f64, f64)> = self.frontier.iter().filter_map(|arm| of(*arm)).collect();
        let named: Vec<usize> = self.frontier.iter().take(MOST_NAMED).copied().collect();
        let others = all.iter().filter(|(arm, ..)| *arm != 0 && !named.contains(arm)).copied().map(point).collect();
        let mut series = vec![
            Series { kind: crate::Kind::Steps, ..Series::line("frontier", steps) },
            Series::points("others", others),
        ];
        series.retain(|series| !series.points.is_empty());
        series.extend(of(0).map(|current| Series::points(self.arms[0].label.clone(), vec![current])));
        let rest = named.iter().filter(|arm| **arm != 0);
        series.extend(rest.filter_map(|arm| Some(Series::points(self.arms[*arm].label.clone(), vec![of(*arm)?]))));
        Some(Chart {
            title: "Goodput against delay".into(),
            subtitle: "Medians of each setting's trials; up and to the left is better".into(),
            x: Axis::linear("delay under load", "ms"),
            y: Axis::linear("goodput", unit),
            series,
            ..Chart::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(label: &str, delay_ms: Option<f64>, mbit: f64, state: ArmState) -> Arm {
        Arm {
            label: label.into(),
            settings: wt_units::Settings::new(),
            state,
            goodput_bps: Some(mbit * 1e6),
            figure: Some(mbit * 1e6),
            delay_us: delay_ms.map(|ms| ms * 1e3),
            retransmits: None,
            queue_drops: None,
            aqm_drops: None,
            ce_marks: None,
            ratio: None,
            low: None,
            high: None,
            model_low: None,
            model_high: None,
            evidence: 1.0,
            needed: None,
            is_calmer: false,
            rounds: 0,
            trials: 0,
            bad: 0,
            series: Vec::new(),
        }
    }

    #[test]
    fn no_other_setting_beats_one_of_the_frontier_in_both() {
        let arms = [
            arm("current", Some(57.0), 6.68, ArmState::Current),
            arm("small", Some(36.0), 6.65, ArmState::Open),
            arm("slow", Some(40.0), 6.0, ArmState::Open),
            arm("tiny", Some(30.0), 3.0, ArmState::Slower),
            arm("unknown", None, 9.0, ArmState::Open),
            arm("not set", Some(1.0), 9.0, ArmState::NotSet),
            arm("the same", Some(36.0), 6.65, ArmState::Open),
        ];
        let goodput = TrialFigure::of(&[]);
        assert_eq!(frontier(&arms, &goodput), [3, 1, 0]);
        assert_eq!(frontier(&arms[4..6], &goodput), [] as [usize; 0]);
        assert_eq!(frontier(&arms, &TrialFigure::completion()), [] as [usize; 0]);
    }
}
