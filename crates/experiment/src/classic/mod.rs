//! The textbook analysis of a finished table: one factor's levels in rows, blocks (series, days, rounds) in columns.
//!
//! What this leaves out: it takes the number of blocks as fixed beforehand and the noise as normal (but for the rank and
//! permutation tests). Whoever looked at the table while it grew has no such p values; the [`EProcess`](crate::EProcess)
//! is for that.

/// All of it at once, with a verdict.
mod analysis;
/// One-way and blocked analysis of variance.
mod anova;
/// Groups against the first, with a covariate.
mod covariance;
/// Medians with intervals.
mod median;
/// Settings against each other with one error for all comparisons together.
mod multiple;
/// Tests by relabelling.
mod permutation;
/// What such a table could have shown.
mod plan;
/// Tests on ranks.
mod ranks;
/// Outcomes against another figure.
mod relation;
/// The table itself.
mod table;
/// Two factors of two levels in blocks.
mod two_by_two;
/// The old rule of thumb.
mod two_deviations;
/// One sentence on it.
mod verdict;
/// Levels that share no blocks, each with a noise of its own.
mod welch;

pub use crate::describe::{Description, describe};
pub use analysis::{
    Anovas, Better, BlockedView, FriedmanView, LevelDescription, MdeView, PairEvidence, PairFlip, Permutations,
    TableAnalysis,
};
pub use anova::{BlockedAnova, FTest, NonAdditivity, blocked_anova, one_way_anova};
pub use covariance::{CovariateEffect, CovariedOutcome, GroupComparison, GroupMean, groups_against_first};
pub use median::{MedianInterval, median_interval};
pub use multiple::{McbInterval, PairComparison, against_the_best, against_the_first, all_pairs};
pub use permutation::{PermutationTest, pair_sign_flip, within_block_permutation};
pub use plan::{Detectable, blocks_needed, detectable, rough_blocks_needed};
pub use ranks::{Friedman, FriedmanExact, Kruskal, friedman, friedman_exact, kruskal};
pub use relation::{Relation, relation};
pub use table::{Table, TableError};
pub use two_by_two::{Effect, Square, TwoByTwoAnalysis, two_by_two_in_blocks};
pub use two_deviations::TwoDeviations;
pub use verdict::{analyse, p_value};
pub use welch::{FEWEST_OF_A_LEVEL, WelchComparison, unlike_pairs};

#[cfg(test)]
mod tests;
