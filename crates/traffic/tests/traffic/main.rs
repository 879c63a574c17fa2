//! Experiments on simulated traffic of known truth.

mod hostile;
mod report;
mod world;
mod worlds;
