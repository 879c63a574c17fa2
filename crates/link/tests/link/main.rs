//! What a path must do, whatever it is made of.

/// Pipes from stages, and what came out of them.
mod common;
/// Theory: lines, queues, delays, losses.
mod laws;
