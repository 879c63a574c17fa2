//! Which packet sizes get through a path, where they die, and what it costs: the logic without the sockets.
//!
//! Everything that probes is a [`Machine`]: it says which [`Probe`] to send, takes [`Answer`]s, and says when it wants to
//! be asked again. The caller owns the sockets, the clock and the random generator, so the same machine runs against a
//! real path and against a simulated one.
//!
//! - [`Search`] finds the largest packet that gets through, and why larger ones don't.
//! - [`Scan`] finds the size from which packets get lost, and which way.
//! - [`Trace`] finds the hops, their links' MTUs, and what they change.
//! - [`Train`] finds the rate of the narrowest link, and [`cells`] whether it is one of cells.
//! - [`Reverse`] finds the largest packet that comes back; it is told what arrives and is no machine.
//! - [`Pacer`] keeps every probe below a rate.
#![forbid(unsafe_code)]

/// Links of cells.
mod cells;
/// Probes as bytes, and answers read from bytes.
pub mod codec;
/// What a server sends before anything is acknowledged.
pub mod first_window;
/// How many bytes of long probes wait for their answers at once.
mod in_flight;
/// Loss with its uncertainty, and whether two losses differ.
mod loss;
/// How fast probes may leave.
mod pacer;
/// Probes, answers, and what runs them.
mod probe;
/// How far apart the narrowest link draws packets.
mod rate;
/// Who says that packets go no further.
mod refusal;
/// The largest packet that comes back.
mod reverse;
/// Loss by packet size.
mod scan;
/// The search for the largest packet that gets through.
mod search;
/// How long to wait for an answer.
mod timing;
/// The hops of a path.
mod trace;
/// The rate of the narrowest link.
mod train;

pub use cells::{Cells, cell_sizes, cells, cells_may_hide};
pub use loss::{LossCount, likelihood_ratio, repeats_for, silence_tells};
pub use pacer::Pacer;
pub use probe::{Answer, Kind, Machine, Probe, ProbeAnswer, Quote, SynOptions, Time};
pub use refusal::RouterRefusal;
pub use reverse::Reverse;
pub use scan::{Directions, Goodput, Loose, RateCheck, Scan, ScanConfig, ScanSize, Threshold, goodput};
pub use search::{Clamp, Finding, FlowTally, Hint, Hop, PathKind, Search, SearchConfig, SearchReport, SizeTally};
pub use timing::Rtt;
pub use trace::{Change, Trace, TraceConfig, TraceHop};
pub use train::{Bottleneck, Train};
