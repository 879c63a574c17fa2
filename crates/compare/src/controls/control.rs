use wt_journal::ComparedControl;
use wt_problem::Problem;
use wt_setup::controls::ours;
use wt_trial::bulk::{BulkMetrics, PathNow, quantile};
use wt_trial::{Status, TrialOutcome};
use wt_units::{Knob, Level, Settings, median_time};

/// One trial that counts.
#[derive(Debug)]
pub(super) struct CountedTrial {
    pub(super) outcome: TrialOutcome,
    pub(super) metrics: BulkMetrics,
}

/// A congestion control with its trials.
#[derive(Debug)]
pub(super) struct ControlTrials {
    /// Which: as it was asked for, the algorithm's own name, and its variant: `kernel`, or one of ours.
    pub(super) control: ComparedControl,
    /// Those of complete rounds, in their order.
    pub(super) counted: Vec<CountedTrial>,
    /// Trials that were thrown away.
    pub(super) invalid: u32,
    /// Impossible values that a skipped program left, in all of its trials.
    pub(super) guard_hits: u64,
}

impl ControlTrials {
    /// One without any trial yet.
    pub(super) fn new(control: ComparedControl) -> Self {
        Self { control, counted: Vec::new(), invalid: 0, guard_hits: 0 }
    }

    /// The one that is meant by a name.
    ///
    /// # Errors
    /// A usage [`Problem`] where it is one of ours with a variant that there isn't.
    pub(super) fn named(asked: &str) -> Result<Self, Problem> {
        let (name, variant) = match ours(asked).transpose()? {
            Some(choice) => (choice.algorithm.name.to_owned(), choice.variant_text()),
            None => (asked.to_owned(), "kernel".to_owned()),
        };
        Ok(Self::new(ComparedControl { asked: asked.to_owned(), name, variant }))
    }

    /// As a trial is told it.
    pub(super) fn settings(&self) -> Settings {
        Settings::new().with(Knob::Cc, Level::Name(self.control.asked.clone()))
    }

    /// Notes a trial; whether it counts: one that moved nothing, or not to its end, does, since with another control it may.
    pub(super) fn note(&mut self, outcome: &TrialOutcome) -> bool {
        self.guard_hits += outcome.observed.guard_hits.unwrap_or(0);
        let counts = outcome.status != Status::Invalid;
        self.invalid += u32::from(!counts);
        counts
    }

    /// Keeps a trial that counts.
    pub(super) fn keep(&mut self, outcome: TrialOutcome, path: &PathNow) {
        let metrics = BulkMetrics::of(&outcome, path);
        self.counted.push(CountedTrial { outcome, metrics });
    }

    /// Trials that count and failed, or didn't come to their end.
    pub(super) fn failed(&self) -> usize {
        self.counted.iter().filter(|trial| trial.outcome.status != Status::Completed).count()
    }

    /// One measure of all trials: its median.
    pub(super) fn median(&self, of: impl Fn(&BulkMetrics) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.counted.iter().filter_map(|trial| of(&trial.metrics)).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, 0.5)
    }

    /// As [`median`](Self::median), where a trial that lacks the measure never came to it: `None` where most lack it.
    pub(super) fn median_of_most(&self, of: impl Fn(&BulkMetrics) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> =
            self.counted.iter().map(|trial| of(&trial.metrics).unwrap_or(f64::INFINITY)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().filter(|value| value.is_finite())
    }

    /// As [`median`](Self::median), over those trials in which there was something to come to (`Some`); one that never came to it took
    /// longer than all others: `None` where half of them or more did.
    pub(super) fn median_of_those(&self, of: impl Fn(&BulkMetrics) -> Option<Option<f64>>) -> Option<f64> {
        median_time(self.counted.iter().filter_map(|trial| of(&trial.metrics)))
    }

    /// In tables and legends.
    pub(super) fn label(&self) -> String {
        let ComparedControl { name, variant, .. } = &self.control;
        match variant.as_str() {
            "kernel" => format!("{name} (kernel)"),
            "default" => name.clone(),
            variant => format!("{name}@{variant}"),
        }
    }
}
