//! What each setting says of what is said of all of them together.

use super::Candidate;
use crate::eprocess::{bold_lower_bound_of, bold_upper_bound_of};

/// What one setting says of what holds for all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ArmShare {
    /// The log of what it gains at most; infinite while nothing is excluded.
    most: f64,
    /// The log of its ratio is at least this.
    least: f64,
    /// Whether it is in the race.
    is_active: bool,
}

impl ArmShare {
    pub(super) fn of(c: &Candidate, alpha: f64) -> Self {
        let (most, least) =
            (bold_upper_bound_of(&c.compared, 1.0 / alpha), bold_lower_bound_of(&c.compared, 1.0 / alpha));
        Self { most, least, is_active: c.active() }
    }
}

/// The largest gain that isn't excluded, by what each candidate gains at most. That no setting gains more is false only if one does, and
/// that one's bound holds with probability 1 − α: an intersection–union test, that pays for no other setting.
pub(super) fn gain_at_most<'a>(shares: impl Iterator<Item = &'a ArmShare> + Clone) -> Option<f64> {
    let open = shares.clone().any(|one| one.is_active && one.most.is_infinite());
    let most = shares.map(|one| one.most).filter(|bound| bound.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    (!open && most.is_finite()).then_some(most)
}

/// Whether all settings are the same within the indifference: an intersection–union test, too.
pub(super) fn all_same<'a>(mut shares: impl Iterator<Item = &'a ArmShare>, indifference: f64) -> bool {
    let same = indifference.ln_1p();
    shares.all(|one| one.most <= same && one.least >= -same)
}
