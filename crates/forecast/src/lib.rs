//! What the model is asked.
//!
//! [`predict()`] says what settings would do on a path, [`replay()`] puts old studies beside the model, [`calibrate()`] compares
//! the model with this machine's kernel, and [`Oracle`] tells an experiment what to expect before its first trial. Each takes a
//! request that can be written and read, and gives a typed answer; nothing is printed, and no file is touched but those that a
//! request names.
//!
//! # Example
//! ```
//! use wt_forecast::{PathRequest, PredictRequest, predict};
//! use wt_trial::Cancel;
//! use wt_units::{Bytes, Knob};
//!
//! let path = PathRequest::Scenario("adsl".to_owned());
//! let request = PredictRequest {
//!     knobs: Some(vec![Knob::Initcwnd]),
//!     size: Some(Bytes(50_000)),
//!     ..PredictRequest::of(path)
//! };
//! let answer = predict(&request, &Cancel::new())?;
//! assert_eq!(answer.arms.len(), 4, "the current settings, and three levels");
//! # Ok::<(), wt_problem::Problem>(())
//! ```
#![forbid(unsafe_code)]

/// How far the model is from this machine's kernel.
pub mod calibrate;
/// What a setting gains.
mod gain;
/// What is known of the model's error: the shipped calibration.
mod known_error;
/// From scenarios to the model's paths.
pub mod model;
/// What an experiment is told before its first trial.
mod oracle;
/// What other settings would do.
pub mod predict;
/// Old studies in the model.
pub mod replay;
/// The model's ends set up as a kernel's.
mod stack;
/// What the model says of each setting.
mod surface;
/// The model asked about a whole table of paths.
pub mod sweep;

pub use calibrate::{CalibrateAnswer, CalibrateEvent, CalibrateRequest, calibrate};
pub use known_error::KnownError;
pub use oracle::{Expectation, ExpectedArm, MeasuredPath, Oracle};
pub use predict::{LinkRequest, PathRequest, PredictAnswer, PredictRequest, predict};
pub use replay::{ReplayAnswer, ReplayRequest, replay};
pub use stack::{StackSettings, host_stack, kernel_stack};
pub use sweep::{Shard, SweepAnswer, SweepRequest, TableText, check_table, sweep, sweep_parquet};
