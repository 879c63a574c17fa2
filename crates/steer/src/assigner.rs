use std::time::Duration;
use wt_bpf::{TrafficCounts, TrafficRecords};
use wt_problem::Problem;

/// What gives new connections the settings of their arms, and records what became of them.
pub(crate) trait Assigner {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Between two looks at what has ended: there must be room for all that ends meanwhile. The heart beats as often.
    fn pause_between_looks(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// Says that somebody is there, a few times a second.
    ///
    /// # Errors
    /// A [`Problem`] where it doesn't work any more.
    fn beat(&mut self) -> Result<(), Problem>;

    /// From now on connections belong to this epoch, with these shares of the arms.
    ///
    /// # Errors
    /// A [`Problem`] that says what the kernel refuses.
    fn begin(&mut self, epoch: u64, shares: &[f64]) -> Result<(), Problem>;

    /// Nothing more is assigned; what runs is still recorded.
    ///
    /// # Errors
    /// A [`Problem`] that says what the kernel refuses.
    fn pause(&mut self) -> Result<(), Problem>;

    /// Whether responses are told one by one.
    fn times_responses(&self) -> bool {
        false
    }

    /// Below which time outcomes can't be told apart, µs; 0 where they are timed to the microsecond.
    fn shortest_us(&self) -> u64 {
        0
    }

    /// What has become of connections and responses since the last call.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    fn records(&mut self) -> Result<TrafficRecords, Problem>;

    /// The connections that are still open, as they are now.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    fn still_open(&mut self) -> Result<TrafficRecords, Problem>;

    /// How many connections there were.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    fn counts(&mut self) -> Result<TrafficCounts, Problem>;
}
