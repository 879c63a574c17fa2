//! How long a real browser takes for a page.

/// What comes out.
mod answer;
/// With one first window and with another.
mod compare;
/// Chromium over a pipe.
mod devtools;
/// What it looked like meanwhile.
mod film;
/// Comparisons in the journal.
mod journaled;
/// One load.
mod load;
/// What is asked for.
mod request;
/// What waits in the browser, and the connections.
mod sent;
/// From the first load to the last.
mod session;
/// The picture.
mod waterfall;

pub use answer::PageAnswer;
pub use compare::{ComparedLoads, FirstWindow, LoadsOfArm, WindowPair};
pub use load::PageLoad;
pub use request::PageRequest;
pub use session::run;

#[cfg(any(fuzzing, test))]
pub(crate) use load::read_all;
