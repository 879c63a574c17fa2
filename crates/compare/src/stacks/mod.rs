//! TCP/IP stacks side by side over one emulated path, in rounds.

/// A comparison of the journal, assessed again.
mod again;
/// What comes out.
mod answer;
/// From trials to the answer.
mod assess;
/// Pictures.
mod charts;
/// Which stacks do what.
mod choices;
/// What each can do.
mod conformance;
/// What a trial is ranked by.
mod figures;
/// Which there are.
mod list;
/// What adapters cost.
mod overhead;
/// As a page and a table.
mod page;
/// A program through a stack.
mod program;
/// What is asked for.
mod request;
/// From the first round to the last.
mod session;
/// A stack with its trials.
mod trials;
/// Who is faster than whom.
mod verdict;
/// What larger windows brought.
mod windows;
/// What is said.
mod words;

pub use again::again;
pub use answer::StacksAnswer;
pub use list::{ListedFact, ListedProfile, ListedStack, StacksList, list};
pub use program::{StackProgram, StackProgramAnswer, run_program};
pub use request::StacksRequest;
pub use session::run;
