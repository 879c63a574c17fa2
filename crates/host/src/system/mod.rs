/// What is changed in the kernel.
mod action;
/// Connections that show what is in force.
mod connection;
/// What is known of the machine.
mod facts;
/// What is changed in the file system.
mod files;
/// All that this crate asks of a machine.
mod interface;
/// A connection between two hosts that are made for it.
mod pair;
/// This machine.
mod real;
/// Files that are replaced whole.
mod replace;

pub use action::{Action, Device};
pub use facts::{Details, Devices, EstablishedConnection, Identity, Now, ObservedConnection, ObservedPlace, Ownership};
pub use files::FileStep;
pub use interface::System;
pub use real::RealSystem;
pub(crate) use replace::{beside, replace_file, write_beside};
