//! Designs, the e-process, blocked models and verdicts: is the difference real?
//!
//! The method in one line: *rounds testify, the model steers*. Every round runs each setting once, or on a quiet path
//! twice, the current one among them, in random order. What is claimed comes from that randomisation alone ([`EProcess`]), whatever the path does in
//! the meantime. A blocked model ([`BlockedOls`]) decides which settings to drop and when to give up, and sizes effects.
//!
//! Pure: no clock, no file, no socket; the caller gives the random generator.
//!
//! # Example
//! A whole experiment; settings are numbered, 0 is the current one.
//! ```
//! use rand::SeedableRng as _;
//! use std::time::Duration;
//! use wt_experiment::{Config, Experiment, Observation, PlateauConfig, Text, VerdictKind};
//! use wt_units::Bytes;
//!
//! # let mut goodput = { let mut n = 0u64; move |arm: usize| { n += 1; [1e6, 4e5, 9.9e5, 1.6e6][arm] * (1.0 + 0.01 * (n % 7) as f64) } };
//! let mut rng = rand_chacha::ChaCha12Rng::seed_from_u64(1);
//! let mut config = Config::new(4);
//! config.max_trials = Some(120);
//! config.plateau = Some(PlateauConfig::new(vec![1, 2, 0])); // 1 < 2 < the current setting
//! let mut experiment = Experiment::new(config)?;
//! while let Some(order) = experiment.next_round(&mut rng) {
//!     let mut round = Vec::new();
//!     for arm in order {
//!         let bytes = Bytes(goodput(arm) as u64 * 10); // run the trial here
//!         round.push(Observation::completed(arm, bytes, Duration::from_secs(10)));
//!     }
//!     experiment.record(&round)?; // and journal it: the same rounds lead to the same state
//! }
//! let verdict = experiment.assessment();
//! assert_eq!((verdict.kind, verdict.pick), (VerdictKind::Faster, 3));
//! let labels = ["your current one", "4x", "16x", "bbr"];
//! println!("{}", Text::new(&verdict, &labels, Duration::from_secs(12)));
//! # Ok::<(), wt_experiment::ExperimentError>(())
//! ```
#![forbid(unsafe_code)]

/// The textbook analysis of a finished table.
pub mod classic;
/// What a set of outcomes looks like.
mod describe;
/// Probabilities and quantiles.
mod distributions;
/// Which pairs of a fleet disturb one another.
pub mod disturbance;
/// Whether the path changed meanwhile.
pub mod drift;
/// Evidence from the randomisation.
mod eprocess;
/// Many knobs with two levels each, several at a time.
pub mod factorial;
/// Many sites with one question: where does it hold?
pub mod fleet;
/// Small matrices.
mod linalg;
/// Two published means against each other.
pub mod means;
/// Many paths or hosts together.
pub mod meta;
/// The blocked model.
mod ols;
/// How far the pick can lie behind.
mod regret;
/// The driver of a sequential experiment.
mod sequential;
/// Noise of known truth, to test the method on.
pub mod simulate;
/// Degradation within long transfers.
pub mod soak;
/// Tables that somebody measured.
pub mod tables;
/// The bets on one claim, with the end of the budget in sight.
mod wager;
/// Verdicts in plain sentences.
mod wording;

pub use distributions::proportion_interval;
pub use eprocess::{EProcess, bold_lower_bound, bold_upper_bound, evidence_series, lower_bound, upper_bound};
pub use ols::{BlockedFit, BlockedOls};
pub use regret::anytime_half_width;
pub use sequential::{
    ArmAssessment, Assessment, Config, DropReason, DroppedSetting, Experiment, ExperimentError, LevelAssessment,
    LevelVerdict, Method, NeededRounds, Noise, Observation, PlateauAssessment, PlateauConfig, RoundOutcome, StopReason,
    TrialEnd, VerdictKind, fewest_for_interval, fewest_rounds, fewest_to_exclude,
};
pub use wording::Text;

#[cfg(test)]
mod golden;
