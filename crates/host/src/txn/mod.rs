//! Changes that are made whole or not at all, and that don't stay unless somebody says so.
//!
//! A checkpoint on disk says how everything was and how it is to be. Beside it, a small state file says how far the
//! change has come; it is replaced in one step. A *guard*, a process of its own with a stand-in, waits until the change
//! is confirmed; if that doesn't happen in time, or if the process that makes the change dies, it puts everything back.
//! Whoever comes next and finds a change that nobody guards any more does the same.

/// Making changes.
mod apply;
/// Making changes stay.
mod confirm;
/// Out of the kernel or into it, around what others have set.
mod course;
/// Why something couldn't be done.
mod error;
/// Going on without what can't be put back.
mod force;
/// The process that puts everything back.
mod guard;
/// Changes that last only while they are held.
mod held;
/// What was done, and whether it still holds.
mod history;
/// What connections show of a change.
mod observe;
/// Routes that others have changed meanwhile.
mod others;
/// What came of a change.
mod outcome;
/// Changes that nobody watches any more.
mod recovery;
/// Devices that aren't where they were.
mod relocation;
/// Putting everything back.
mod revert;
/// Where it is stored.
mod store;
/// Copies of routes that don't follow those.
mod stray;
/// Changes on and off for a while.
mod switch;
/// Taking changes back.
mod undo;

pub use apply::{ApplyOptions, apply, hold};
pub use confirm::{ConfirmOutcome, confirm};
pub use error::{StoreError, TxnError};
pub use force::{ReleasedChange, forget, undo_by_force};
pub use guard::{GuardCommand, GuardOptions, guard};
pub use held::HeldChange;
pub use history::{Drift, HistoryRow, VerifyReport, history, pending, verify};
pub use outcome::{AppliedRow, ApplyOutcome, RevertReport};
pub use recovery::{RecoveredChange, damaged, is_unwatched, recover};
pub use store::Store;
pub(crate) use store::from_bytes;
pub use switch::{in_force, switch};
pub use undo::{Undone, undo};

#[cfg(test)]
mod tests;
