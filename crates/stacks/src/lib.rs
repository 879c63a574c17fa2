//! TCP/IP stacks side by side, on the same path, as a client feels them.
//!
//! A stack is brought by an *adapter*: a small program that owns a TUN device in the lab's client, and carries byte streams
//! between local sockets and connections of its stack ([`protocol`]). The workloads themselves, their clocks and the check of
//! every byte are those of `wt-load`, the same code for every stack.
#![forbid(unsafe_code)]

/// The adapters that are built in.
pub mod adapter;
/// Which stacks there are, and where their adapters are found.
pub mod catalogue;
/// What a stack can do, by packet scripts.
pub mod conformance;
/// What is wrong with a stack, by name and date.
pub mod finding;
/// Programs of others through a stack.
mod forward;
/// What is documented of seven stacks of the nineties.
pub mod profile;
/// What adapters are told and tell.
pub mod protocol;
/// An adapter that runs.
mod running;
/// What is seen of a stack from outside.
mod seen;
/// Lines from adapters, and what they say of themselves.
mod talk;
/// Trials through adapters.
mod tunnel;

/// What is fed with random bytes.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;

pub use adapter::{ADAPTER, adapter};
pub use catalogue::{Availability, Choice, ChoiceError, Stack};
pub use forward::{Forward, ForwardOutcome};
pub use seen::{Offer, StackObservation};
pub use tunnel::{StackError, StackTunnel, tun_device};
