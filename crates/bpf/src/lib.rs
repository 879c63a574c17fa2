//! Loads the congestion controls of `wt-cc` into the running kernel, and programs that set what routes can't.
//!
//! An object made by clang is read ([`elf`], [`btf`]), its accesses to kernel structs are moved to where the running kernel
//! has the fields ([`relocate`], CO-RE), and its programs are registered as one `tcp_congestion_ops` ([`RegisteredControl`]).
//!
//! # What this leaves out
//! Whatever our own sources don't need: maps other than constants and counters, calls of kernel functions, programs that
//! call each other, relocations of types and enumerations. A missing piece is an error that names it, never a wrong program.
#![forbid(unsafe_code)]

/// The kernel's type information.
pub mod btf;
/// Settings of connections with one network.
mod connections;
/// Object files.
pub mod elf;
/// Files that keep a congestion control registered.
mod pins;
/// Programs and their registration.
mod registration;
/// Accesses to kernel structs.
pub mod relocate;
/// Experiments on a server's own connections.
mod traffic;

pub use connections::ConnectionRule;
pub use pins::{Pins, mount_bpffs};
pub use registration::{LoadError, RegisteredControl, missing_capabilities};
pub use traffic::{
    ArmOptions, LastResponse, MAX_ADMINISTRATORS, MAX_ARMS, MAX_OWN_ADDRESSES, MAX_PORTS, OtherProgram, ResponseRecord,
    TrafficCounts, TrafficKnowledge, TrafficProgram, TrafficRecord, TrafficRecords, TrafficRules, idle_unknown,
    missing_traffic_capabilities, other_programs,
};

/// Why bytes aren't what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct FormatError {
    /// What is wrong where.
    pub what: String,
}

impl FormatError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

/// 16 bits at an offset, in this machine's order.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, FormatError> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|word| u16::from_ne_bytes(*word)).ok_or_else(|| FormatError::new(format!("it ends before byte {at}")))
}

/// 32 bits at an offset.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Result<u32, FormatError> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|word| u32::from_ne_bytes(*word)).ok_or_else(|| FormatError::new(format!("it ends before byte {at}")))
}

/// 64 bits at an offset.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Result<u64, FormatError> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|word| u64::from_ne_bytes(*word)).ok_or_else(|| FormatError::new(format!("it ends before byte {at}")))
}

/// The text at an offset up to the next zero.
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Result<&str, FormatError> {
    let rest = bytes.get(at..).ok_or_else(|| FormatError::new(format!("no text at byte {at}")))?;
    let end = rest.iter().position(|byte| *byte == 0).ok_or_else(|| FormatError::new("a text without an end"))?;
    std::str::from_utf8(&rest[..end]).map_err(|_| FormatError::new("a text that isn't UTF-8"))
}
