/// Why a setting isn't understood.
mod error;
/// Settings by their names.
mod find;
/// What a setting is.
mod kind;
/// The settings that there are.
mod table;
/// Values in words, and in the kernel's text.
mod text;
/// Values as people write them.
mod value;

pub use error::KnobError;
pub(crate) use kind::KernelDefault;
pub use kind::{ConnectionKnob, HostKnob, Kind, Knob, LinkKnob, RouteKnob};
pub use table::ALL;
pub use value::Value;
pub(crate) use value::three;

#[cfg(test)]
mod tests;
