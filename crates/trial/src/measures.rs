use crate::bulk::quantile;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a workload measures beyond payload and time. What it doesn't measure is empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Measures {
    /// What is compared between settings, larger is better, where that isn't payload over time: see
    /// [`Scale`](crate::Scale).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Exchanges, or whatever else was done one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<Exchanges>,
    /// Each object of a page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectTime>,
    /// How late the messages of a stream were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
    /// Each third of a long transfer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thirds: Vec<Third>,
    /// Round trips on the idle path and beside a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_load: Option<UnderLoad>,
    /// Goodput of each of several flows at once, the one that is compared first, bit/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows_bps: Vec<f64>,
    /// How many bytes are missing where one wasn't what was sent, if what came is what stands behind them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_bytes: Option<u64>,
}

/// Times of many things of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The shortest, µs.
    pub min_us: u64,
    /// Half are no longer, µs.
    pub p50_us: u64,
    /// 95 % are no longer, µs.
    pub p95_us: u64,
    /// 99 % are no longer, µs.
    pub p99_us: u64,
    /// The longest, µs.
    pub max_us: u64,
    /// The mean, µs.
    pub mean_us: u64,
}

impl Spread {
    /// Of these times in µs, in any order; `None` without any. Percentiles are interpolated between neighbours.
    #[must_use]
    pub fn of(mut times_us: Vec<u64>) -> Option<Self> {
        times_us.sort_unstable();
        let sorted: Vec<f64> = times_us.iter().map(|us| *us as f64).collect();
        let at = |share| quantile(&sorted, share).map(|us| us.round() as u64);
        Some(Self {
            count: times_us.len() as u64,
            min_us: *times_us.first()?,
            p50_us: at(0.5)?,
            p95_us: at(0.95)?,
            p99_us: at(0.99)?,
            max_us: *times_us.last()?,
            mean_us: (sorted.iter().sum::<f64>() / sorted.len() as f64).round() as u64,
        })
    }
}

/// Exchanges of request and answer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Exchanges {
    /// From each request until the last byte of its answer; its count is that of the exchanges that were done.
    pub latency: Spread,
    /// Exchanges a second over the whole time, pauses included.
    pub per_second: f64,
}

/// When an object of a page was asked for and came, µs since the load began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ObjectTime {
    /// Its number in the page.
    pub object: u32,
    /// Over which connection.
    pub connection: u32,
    /// When it was asked for.
    pub asked_us: u64,
    /// When the request left, where what asked for it is a browser: until then it waited there, for a free connection or for a new one.
    /// Elsewhere that is when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_us: Option<u64>,
    /// When its first byte came.
    pub first_byte_us: u64,
    /// When its last byte came.
    pub done_us: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// How late messages of a steady stream came.
///
/// The earliest message, relative to the pace, is on time by definition, so that the clocks of the two ends needn't agree; a
/// difference between their speeds (some 10 µs a second) isn't taken out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Lateness {
    /// Messages that should have come.
    pub expected: u64,
    /// How late each was. Those that never came count as late as the trial's deadline allowed.
    pub spread: Spread,
    /// Times that nothing came for longer than a stall takes: five intervals, and at least 50 ms.
    pub stalls: u64,
    /// The longest of them, µs.
    pub longest_stall_us: u64,
    /// The most messages that came at once after a stall, within one interval.
    pub burst: u64,
}

/// One third of a long transfer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Third {
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// Median of the sender's smoothed RTT, µs.
    pub srtt_us: u64,
    /// For how long no ACK came while data was under way, µs: the 95th percentile over the sender's samples. It grows where a
    /// receiver acknowledges later and later.
    pub ack_gap_us: u64,
}

/// Round trips of small requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct UnderLoad {
    /// On the idle path.
    pub idle: Spread,
    /// Beside the transfer.
    pub loaded: Spread,
    /// Round trips a minute beside the transfer: 60 s over the mean.
    pub rpm: f64,
}

impl Measures {
    /// Whether nothing beyond payload and time was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_hundred_and_one_times_are_those_times() {
        let spread = Spread::of((0..=100).rev().map(|n| n * 10).collect()).unwrap();
        assert_eq!((spread.count, spread.min_us, spread.max_us, spread.mean_us), (101, 0, 1000, 500));
        assert_eq!((spread.p50_us, spread.p95_us, spread.p99_us), (500, 950, 990));
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(Spread::of(vec![7]).unwrap().p99_us, 7);
    }

    #[test]
    fn what_is_empty_is_written_as_nothing_and_reads_back() {
        assert_eq!(serde_json::to_string(&Measures::default()).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<Measures>("{}").unwrap(), Measures::default());
    }
}
