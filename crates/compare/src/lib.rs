//! Side by side: congestion controls and TCP/IP stacks in rounds over one emulated path, initial windows of a
//! CDN, experiments of the journal.
//!
//! Each takes a request, says what happens as [`CompareEvent`]s where it runs trials, and answers with a typed answer whose
//! JSON is what `--json` prints.

#![forbid(unsafe_code)]

/// Initial windows of a CDN.
pub mod cdn;
/// Congestion controls.
pub mod controls;
/// What happens meanwhile.
mod event;
/// Pages in a real browser, load after load.
pub mod page_load;
/// The path, in answers.
mod path;
/// A change that is in force, with and without it.
pub mod prove;
/// What all are asked.
mod request;
/// Trials in rounds.
mod rounds;
/// Experiments of the journal.
pub mod side_by_side;
/// TCP/IP stacks.
pub mod stacks;

/// What is fed with random bytes.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;

pub use event::{CompareEvent, ComparedTrial, Subject};
pub use request::LabRequest;
