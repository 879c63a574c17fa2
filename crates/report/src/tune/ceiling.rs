//! How near the fastest setting came to what framing leaves of the link: is throughput ÷ link the framing's efficiency?

use super::TuneInputs;
use super::figures::goodputs;
use serde::Serialize;
use utoipa::ToSchema;
use wt_experiment::anytime_half_width;
use wt_trial::TrialRecord;

/// The goodput of the fastest setting over the link's limit. The limit is the link's rate times the efficiency of its framing, so 1
/// means that throughput ÷ rate is that efficiency: of ATM's cells, say.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Ceiling {
    /// The setting.
    pub arm: usize,
    /// The geometric mean of its trials over the limit, a share.
    pub share: f64,
    /// The interval's lower end, with the experiment's confidence at any time; `null` while there are too few trials.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Trials that count.
    pub trials: usize,
}

impl TuneInputs<'_> {
    /// Of the setting with the largest goodput; nothing where the link isn't known or nothing counts.
    pub(super) fn ceiling(&self, records: &[&TrialRecord]) -> Option<Ceiling> {
        let limit = self.path.physical_goodput_bps.filter(|limit| *limit > 0)? as f64;
        let own = |arm: usize| {
            let logs: Vec<f64> = goodputs(records, arm).iter().map(|bps| (bps / limit).ln()).collect();
            (!logs.is_empty()).then(|| (arm, logs.iter().sum::<f64>() / logs.len() as f64, logs))
        };
        let is_itself = |arm: &usize| !self.assessment.unset.contains(arm);
        let fastest =
            (0..self.assessment.arms.len()).filter(is_itself).filter_map(own).max_by(|a, b| a.1.total_cmp(&b.1));
        let (arm, middle, logs) = fastest?;
        let n = logs.len() as f64;
        let variance = logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / (n - 1.0);
        let half = anytime_half_width(variance, 1.0 / n, n - 1.0, self.assessment.alpha);
        let end = |log: f64| Some(log.exp()).filter(|end| half.is_finite() && end.is_finite());
        Some(Ceiling {
            arm,
            share: middle.exp(),
            low: end(middle - half),
            high: end(middle + half),
            trials: logs.len(),
        })
    }
}

impl Ceiling {
    /// The answer in a sentence, once there is an interval.
    pub(super) fn sentence(&self, label: &str) -> Option<String> {
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let (low, high) = (percent(self.low?), percent(self.high?));
        let trials = wt_units::counted(self.trials, "trial");
        let share = percent(self.share);
        Some(format!(
            "With {label} throughput ÷ link is {share} % of the framing's efficiency ({low} to {high} %; {trials})."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_said_with_its_interval_and_not_without() {
        let ceiling = Ceiling { arm: 1, share: 0.98, low: Some(0.976), high: Some(0.984), trials: 12 };
        assert_eq!(
            ceiling.sentence("rwin=48048").unwrap(),
            "With rwin=48048 throughput ÷ link is 98.0 % of the framing's efficiency (97.6 to 98.4 %; 12 trials)."
        );
        assert_eq!(Ceiling { low: None, ..ceiling }.sentence("rwin=48048"), None);
    }
}
