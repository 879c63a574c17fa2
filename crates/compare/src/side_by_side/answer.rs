use super::disturbed::FleetDisturbances;
use super::experiment::{ComparedExperiment, TriedSetting};
use serde::Serialize;
use utoipa::ToSchema;
use wt_units::Settings;

/// What comes out of experiments side by side.
#[derive(Debug, Serialize, ToSchema)]
pub struct SideBySideAnswer {
    /// 1.
    pub schema_version: u32,
    /// `compare`.
    pub kind: &'static str,
    /// The experiments.
    pub experiments: Vec<ComparedExperiment>,
    /// Whether they can be compared.
    pub comparable: bool,
    /// Why not.
    pub because: Vec<String>,
    /// What differs and is part of any difference.
    pub notes: Vec<String>,
    /// The current settings of each, against those of the first.
    pub current: Vec<CurrentDifference>,
    /// Settings that several of them tried, each against the current ones of its experiment.
    pub settings: Vec<SharedSetting>,
    /// Who is slower while whom measures; of a fleet only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbances: Option<FleetDisturbances>,
    /// What is shown, in a sentence.
    pub headline: String,
    /// What to know of it, a sentence each.
    pub remarks: Vec<String>,
    /// In words: the headline, tables of what is above, and the remarks.
    pub text: String,
}

/// Two experiments' current settings.
#[derive(Debug, Serialize, ToSchema)]
pub struct CurrentDifference {
    /// The one.
    pub experiment: String,
    /// The first.
    pub against: String,
    /// The ratio of what is typical; `None` without a trial of each.
    pub difference: Option<HoursRatio>,
    /// Always none: nothing was randomised between experiments.
    pub evidence: Option<f64>,
}

/// The typical goodput in some hours over that in others, or what else is compared; larger is better. There is no interval:
/// hours aren't trials, and no number of trials says how far the next hours lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct HoursRatio {
    /// The ratio of the geometric means.
    pub ratio: f64,
}

/// One setting in several experiments.
#[derive(Debug, Serialize, ToSchema)]
pub struct SharedSetting {
    /// What it is called.
    pub label: String,
    /// What it is.
    pub settings: Settings,
    /// What came of it in each.
    pub each: Vec<TriedSetting>,
    /// The evidence of all of them that it is faster: of separate experiments with orders of their own the product, of others
    /// the mean.
    pub evidence: f64,
    /// `product` or `mean`.
    pub combined: &'static str,
    /// How many times an experiment of that many settings would need.
    pub needed: f64,
    /// By how much it is faster in all rounds of all of them: the geometric mean of their ratios, each as often as it has rounds. An
    /// estimate; `None` where one of them has none.
    pub ratio: Option<f64>,
    /// Whether it is shown to be faster, and by so little on average that it isn't worth a change: `tune` recommends no such setting.
    pub faster_by_little: bool,
    /// The gain, as a share, below which it isn't worth a change.
    #[serde(skip)]
    pub(super) relevant: f64,
    /// The least evidence of any of them: that it is faster in each.
    pub everywhere: f64,
    /// The experiments in which it is shown to be faster, by name; of them a share of 1 / `needed` is wrong on average (e-BH).
    pub shown_in: Vec<String>,
    /// What it would gain where it wasn't measured: of three separate experiments or more.
    pub elsewhere: Option<ExpectedElsewhere>,
    /// Whether its gain differs between two of them: their intervals have nothing in common.
    pub gains_differ: bool,
}

/// What a setting would gain on a path that wasn't measured, from how much it gained on several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct ExpectedElsewhere {
    /// The mean ratio.
    pub ratio: f64,
    /// The lower end of the estimated 95 % interval for the ratio of one more path. With ten paths half of whose spread is noise,
    /// it lies too high for 6 % of new paths instead of 2.5 % (`tests/fleets.rs`): it is an estimate, not a claim.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// I²: the share of the variation between them that isn't noise.
    pub heterogeneity: f64,
}
