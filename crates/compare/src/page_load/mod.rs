//! How long a real browser takes for a page.

/// What comes out.
mod answer;
/// Chromium over a pipe.
mod devtools;
/// One load.
mod load;
/// What is asked for.
mod request;
/// From the first load to the last.
mod session;
/// The picture.
mod waterfall;

pub use answer::PageAnswer;
pub use load::PageLoad;
pub use request::PageRequest;
pub use session::run;

#[cfg(any(fuzzing, test))]
pub(crate) use load::read_all;
