//! After the verdict: a few clients keep the old settings, so that the gain goes on being measured.

use crate::report::{evidence, finite};
use crate::{TrafficAllocation, TrafficAnalysis, TrafficArm, TrafficConfig, TrafficRamp, TrafficUnit};
use serde::{Deserialize, Serialize};

/// Whether a gain that was claimed is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HoldbackState {
    /// It is shown to be at least as large as was claimed.
    Holds,
    /// It is shown to be smaller than was claimed, and not that any is left.
    Gone,
    /// It is shown to be smaller than was claimed, and a gain still.
    Smaller,
    /// Neither is shown yet.
    Open,
}

/// What a holdback shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficHoldback {
    /// Whether the gain is still there.
    pub state: HoldbackState,
    /// The goodput with the new settings over that with the old ones.
    pub ratio: Option<f64>,
    /// The interval of that ratio.
    pub low: Option<f64>,
    /// Its other end.
    pub high: Option<f64>,
    /// The evidence that the old settings are faster by now.
    pub evidence_reversed: f64,
    /// In one sentence.
    pub text: String,
}

impl TrafficHoldback {
    /// Whether the old settings are shown to be the faster ones by now.
    pub(crate) fn is_reversed(&self) -> bool {
        self.state == HoldbackState::Gone && self.high < Some(1.0)
    }
}

impl TrafficConfig {
    /// The holdback of a verdict: everybody has `new` but for `share` of the units, which keep `old`. `claimed` is the ratio of
    /// goodputs that the verdict gives at least. Slots and mixed allocations become coins by prefix.
    #[must_use]
    pub fn holdback(&self, new: TrafficArm, old: TrafficArm, share: f64, claimed: f64) -> Self {
        let unit = if self.unit == TrafficUnit::Slot { TrafficUnit::Prefix } else { self.unit };
        Self {
            arms: vec![new, old],
            unit,
            allocation: TrafficAllocation::Fixed,
            ramp: TrafficRamp { steps: vec![(0, share)] },
            holdback: Some(claimed),
            ..self.clone()
        }
    }
}

impl TrafficAnalysis {
    /// Whether the gain that was claimed, at least `claimed` times the old goodput, is still there. The first arm has the new
    /// settings, the second the old ones.
    ///
    /// The evidence is of all that this analysis has seen. A gain that ends after a year shows soon only in an analysis that began
    /// lately: begin one anew each week.
    #[must_use]
    pub fn holdback(&self, claimed: f64) -> TrafficHoldback {
        let Some(comparison) = self.comparisons.first() else {
            let text = "There is no holdback.".to_owned();
            let (ratio, low, high) = (None, None, None);
            return TrafficHoldback { state: HoldbackState::Open, ratio, low, high, evidence_reversed: 1.0, text };
        };
        // The second arm over the first is the old over the new: the ratio is its reciprocal.
        let (old_low, old_high) = comparison.goodput.interval(self.needed());
        let (low, high) = (finite(-old_high).map(f64::exp), finite(-old_low).map(f64::exp));
        let ratio = comparison.goodput.effect().map(|effect| (-effect).exp());
        let state = match (low, high) {
            (Some(low), Some(high)) if high < claimed && low >= 1.0 => HoldbackState::Smaller,
            (_, Some(high)) if high < claimed => HoldbackState::Gone,
            (Some(low), _) if low >= claimed => HoldbackState::Holds,
            _ => HoldbackState::Open,
        };
        let end = |end: Option<f64>| end.map_or("?".to_owned(), |end| format!("{end:.2}"));
        let of = format!("{} to {} times the goodput with the old settings", end(low), end(high));
        let text = match state {
            HoldbackState::Gone => format!("The gain of {claimed:.2} times is gone: {of}."),
            HoldbackState::Smaller => {
                format!("The gain is smaller than the {claimed:.2} times claimed, still faster: {of}.")
            }
            HoldbackState::Holds => format!("The gain of {claimed:.2} times holds: {of}."),
            HoldbackState::Open => format!("The gain of {claimed:.2} times is neither confirmed nor gone: {of}."),
        };
        let evidence_reversed = evidence(self.best_evidence(1)[0]);
        TrafficHoldback { state, ratio, low, high, evidence_reversed, text }
    }
}
