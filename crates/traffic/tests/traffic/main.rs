//! Experiments on simulated traffic of known truth.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail like tests, and tables are printed"
)]

mod hostile;
mod report;
mod world;
mod worlds;
