//! No false word: in experiments where nothing differs nothing is called faster in more than one of twenty, whatever the noise
//! and whatever trials come to nothing, and what differs is found as often as the tables say.
//!
//! The short form runs with all tests. `make truth` runs it in full and prints the tables of docs/results/statistics.md.

/// Trials that are lost, refused, cut off or fail.
mod edges;
/// Intervals.
mod intervals;
/// Kinds of paths.
mod noise;
/// Identical settings.
mod null;
/// Gains that are there.
mod power;
/// Counts of what should be rare.
mod tally;
/// Several experiments.
mod together;
