//! What a path must do, whatever it is made of.

/// Pipes from stages, and what came out of them.
mod common;
/// What a configuration may say.
mod configs;
/// Active queue management.
mod disciplines;
/// Random stages, random operations.
mod fuzz;
/// Theory: lines, queues, delays, losses.
mod laws;
/// Paths of several links.
mod paths;
/// Each stage by itself.
mod stages;
