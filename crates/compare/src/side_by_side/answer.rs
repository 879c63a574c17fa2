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
    /// In words.
    pub text: String,
}

/// Two experiments' current settings.
#[derive(Debug, Serialize, ToSchema)]
pub struct CurrentDifference {
    /// The one.
    pub experiment: String,
    /// The first.
    pub against: String,
    /// The ratio of the typical goodput; `None` without a trial of each.
    pub difference: Option<HoursRatio>,
    /// Always none: nothing was randomised between experiments.
    pub evidence: Option<f64>,
}

/// The typical goodput in some hours over that in others. There is no interval: hours aren't trials, and no number of trials
/// says how far the next hours lie apart.
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
    /// Whether its gain differs between the first and the last of them: their intervals have nothing in common.
    pub gains_differ: bool,
}
