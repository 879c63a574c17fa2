//! What was compared, in the words and units of its workload.

use serde::Serialize;
use utoipa::ToSchema;
use wt_trial::{Scale, TrialRecord, Workload};
use wt_units::{BitsPerSecond, RateUnit};

/// The figure by which people know a trial of this experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TrialFigure {
    /// What kind of figure it is.
    pub scale: Scale,
    /// What it is called: `goodput`, `load time`.
    pub name: &'static str,
    /// Its unit in `figure` fields: `bit/s`, `s`, `1/s`, `1/min`.
    pub unit: &'static str,
    /// Whether `larger` or `smaller` is better. Ratios are always so that larger is better.
    pub better: &'static str,
}

impl TrialFigure {
    /// What is compared in trials of one workload.
    #[must_use]
    pub fn of(records: &[&TrialRecord]) -> Self {
        records.first().map_or_else(Self::goodput, |record| Self::of_workload(&record.spec.workload))
    }

    fn goodput() -> Self {
        Self { scale: Scale::Goodput, name: "goodput", unit: "bit/s", better: "larger" }
    }

    /// The time that a transfer of fixed size takes.
    #[must_use]
    pub fn completion() -> Self {
        Self { scale: Scale::Time, name: "completion time", unit: "s", better: "smaller" }
    }

    /// What is compared for this workload.
    #[must_use]
    pub fn of_workload(workload: &Workload) -> Self {
        let scale = workload.scale();
        let (name, unit, better) = match (scale, workload) {
            (Scale::Goodput, Workload::Duplex { .. }) => ("goodput both ways (geometric mean)", "bit/s", "larger"),
            (Scale::Goodput, _) => return Self::goodput(),
            (Scale::Time, Workload::Page { .. }) => ("load time", "s", "smaller"),
            (Scale::Time, _) => return Self::completion(),
            (Scale::Rate, Workload::Bursts { .. }) => ("answers a second", "1/s", "larger"),
            (Scale::Rate, _) => ("transactions a second", "1/s", "larger"),
            (Scale::Lateness, _) => ("lateness (99 %)", "s", "smaller"),
            (Scale::Responsiveness, _) => ("round trips a minute under load", "1/min", "larger"),
        };
        Self { scale, name, unit, better }
    }

    /// Whether it is payload over time, which a link's limit and a window over the RTT can be compared with.
    #[must_use]
    pub fn is_goodput(&self) -> bool {
        *self == Self::goodput()
    }

    /// What the figure is multiplied by where a setting is `ratio` times as good.
    pub(super) fn changed(&self, ratio: f64) -> f64 {
        if self.better == "smaller" { 1.0 / ratio } else { ratio }
    }

    /// The same as a change, %: negative where smaller is better.
    pub(super) fn change_percent(&self, ratio: f64) -> f64 {
        (self.changed(ratio) - 1.0) * 100.0
    }

    /// A figure for people.
    #[must_use]
    pub fn show(&self, figure: Option<f64>) -> String {
        let Some(figure) = figure else { return "–".to_owned() };
        match self.scale {
            Scale::Goodput => BitsPerSecond(figure.max(0.0) as u64).human(),
            Scale::Time if figure >= 1.0 => format!("{figure:.2} s"),
            Scale::Time | Scale::Lateness if figure < 0.01 => format!("{:.2} ms", figure * 1e3),
            // Three digits: a gain of a few percent must be seen.
            Scale::Time if figure >= 0.1 => format!("{:.0} ms", figure * 1e3),
            Scale::Time => format!("{:.1} ms", figure * 1e3),
            Scale::Lateness => format!("{:.1} ms", figure * 1e3),
            Scale::Rate if figure >= 100.0 => format!("{figure:.0}/s"),
            Scale::Rate => format!("{figure:.2}/s"),
            Scale::Responsiveness => format!("{figure:.0}/min"),
        }
    }

    /// The head of a column of figures, short.
    #[must_use]
    pub fn head(&self) -> &'static str {
        match self.scale {
            Scale::Goodput if !self.is_goodput() => "both ways",
            Scale::Rate => "per second",
            Scale::Lateness => "late (99 %)",
            Scale::Responsiveness => "trips/min",
            _ => self.name,
        }
    }

    /// What an axis of figures up to `most` is called, its unit, and by what a figure is multiplied for it.
    #[must_use]
    pub fn axis(&self, most: f64) -> (&'static str, &'static str, f64) {
        match self.scale {
            Scale::Goodput => {
                let (unit, times) = RateUnit::of_axis(most);
                ("goodput", unit, times)
            }
            Scale::Time => (self.name, "s", 1.0),
            Scale::Lateness => (self.name, "ms", 1e3),
            Scale::Rate => (self.name, "", 1.0),
            Scale::Responsiveness => (self.name, "", 1.0),
        }
    }

    /// What an axis of ratios is called.
    pub(super) fn ratio_axis(&self, reference: &str) -> String {
        let times = match self.scale {
            Scale::Goodput => "times the goodput of",
            Scale::Time => "times as fast as",
            Scale::Rate => "times the rate of",
            Scale::Lateness => "times less late than",
            Scale::Responsiveness => "times the round trips of",
        };
        format!("{times} the {reference}")
    }

    /// Its name as the beginning of a title.
    #[must_use]
    pub fn title(&self) -> String {
        let mut letters = self.name.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_of_a_few_percent_is_seen_in_the_times() {
        let shown = [0.99, 0.1234, 0.0124, 0.0118, 0.00118].map(|figure| TrialFigure::completion().show(Some(figure)));
        assert_eq!(shown, ["990 ms", "123 ms", "12.4 ms", "11.8 ms", "1.18 ms"]);
    }

    #[test]
    fn a_slow_line_has_an_axis_in_its_own_unit() {
        assert_eq!(TrialFigure::goodput().axis(24_100.0), ("goodput", "kbit/s", 1e-3));
        assert_eq!(TrialFigure::goodput().axis(6.8e6), ("goodput", "Mbit/s", 1e-6));
        assert_eq!([0.0, 999_999.0, 1e6].map(|most| RateUnit::of_axis(most).0), ["Mbit/s", "kbit/s", "Mbit/s"]);
        assert_eq!(TrialFigure::completion().axis(0.3), ("completion time", "s", 1.0));
    }
}
