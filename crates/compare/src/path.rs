//! The path under a comparison, as answers tell it.

use serde::Serialize;
use wt_trial::bulk::PathNow;

/// What is known of the path under a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ComparedPath {
    /// RTT without a queue, µs.
    pub base_rtt_us: u64,
    /// The most payload that the path carries, bit/s, where known.
    pub capacity_bps: Option<u64>,
}

impl From<PathNow> for ComparedPath {
    fn from(PathNow { base_rtt_us, capacity_bps }: PathNow) -> Self {
        Self { base_rtt_us, capacity_bps }
    }
}
