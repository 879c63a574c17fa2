//! Congestion controls: what they are called, what their parameters mean, and their sources, compiled twice.
//!
//! The C files under `bpf/` are compiled natively into this crate ([`Native`], for models and tests) and, where clang was
//! there at build time, into objects for the kernel ([`Algorithm::object`]). So the model and the kernel run one source.
//!
//! [`Choice`] is how a person names one: `chd`, `chd@freebsd-hz100`, `chd@queue-min=5ms+pmax=30%`.

/// One algorithm with all its parameters.
mod choice;
/// The sources, compiled natively, behind their few kernel fields.
mod native;
/// The objects for the kernel.
mod objects;
/// What people may set, with units, bounds and sources.
mod parameter;
/// The table of all of them.
mod table;

pub use choice::{Choice, ChoiceError};
pub use native::{Ack, CaState, CwndEvent, Native, SharedState, TcpFields};
pub use parameter::{Parameter, Unit};
pub use table::{ALGORITHMS, Algorithm, Variant, algorithm};
