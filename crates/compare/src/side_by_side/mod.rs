//! Experiments of the journal side by side: do they differ, and can they be compared at all?

/// What comes out.
mod answer;
/// From experiments to the answer.
mod assess;
/// Which pairs of a fleet disturb one another.
mod disturbed;
/// One of the experiments.
mod experiment;
/// What of a fleet can't be read.
mod left_out;
/// What is asked for.
mod request;
/// What is said.
mod words;

pub use answer::{ExpectedElsewhere, SideBySideAnswer};
pub use assess::{of_fleet, run};
pub use disturbed::{FleetDisturbance, FleetDisturbances, FleetRun};
pub use request::SideBySideRequest;

#[cfg(test)]
mod tests;
