//! What a scan found, as `--json` has it.

use serde::Serialize;

/// What a scan found, beside its sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanAnswer {
    /// Where loss begins, if it depends on the size.
    pub threshold: Option<ThresholdAnswer>,
    /// The odds for longer packets being lost more often, by their size or by the scan's rate, where they are enough to say so. Without a
    /// [`threshold`](Self::threshold) it is open which of both it is, or it is the rate.
    pub evidence: Option<f64>,
    /// Packets that routers may fragment.
    pub without_df: Option<LooseAnswer>,
    /// Whether the scan's own rate caused loss.
    pub rate_check: Option<RateCheckAnswer>,
    /// The loss of the longest packets on the way there.
    pub loss_forward: Option<f64>,
    /// The same on the way back.
    pub loss_reverse: Option<f64>,
    /// What the best size brings.
    pub gain: GainAnswer,
    /// Sizes that were to be tried and weren't, for want of packets.
    pub sizes_left_out: usize,
    /// Why the kind isn't what the search said, if it is open now.
    #[serde(skip)]
    pub open: Option<OpenScan>,
    /// Whether all packets were sent that were allowed.
    #[serde(skip)]
    pub spent: bool,
    /// Packets of the scan alone.
    #[serde(skip)]
    pub packets: u32,
    /// Seconds of the scan alone.
    #[serde(skip)]
    pub seconds: f64,
}

/// Why a scan says of a path less than the search before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenScan {
    /// Nothing was answered any more.
    Unanswered,
    /// Longer packets get lost more often, and nobody knows whether it is by their size.
    LongLoseMore,
}

/// Where loss begins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThresholdAnswer {
    /// The largest size below, bytes.
    pub below: u16,
    /// The smallest size above, bytes.
    pub above: u16,
    /// The share lost below.
    pub loss_below: f64,
    /// The share lost above.
    pub loss_above: f64,
    /// The odds for its being there.
    pub evidence: f64,
    /// The largest size that is surely below, bytes.
    pub safe: u16,
}

/// Packets that routers may fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LooseAnswer {
    /// Their length, bytes.
    pub size: u16,
    /// How many were sent.
    pub sent: u32,
    /// How many of them were answered.
    pub answered: u32,
}

/// Short packets at the scan's rate and at half of it; or long ones, where those get lost more often.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RateCheckAnswer {
    /// The share lost at the scan's rate.
    pub loss_full: f64,
    /// The share lost at half of it.
    pub loss_half: f64,
    /// How often the scan began anew at half its rate.
    pub halvings: u32,
    /// Whether the scan's own rate is shown to have caused loss.
    pub caused_by_rate: bool,
    /// Whether the last rate is ruled out as a cause. Where neither is true, it is open.
    #[serde(rename = "rate_ruled_out")]
    pub ruled_out: bool,
    /// Whether it is of long packets, at half as many bytes a second.
    pub of_long_packets: bool,
    /// Whether even its last rate does.
    #[serde(skip)]
    pub persists: bool,
}

/// What the best size brings, as a multiple of what the largest that gets through brings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GainAnswer {
    /// With a loss-based congestion control such as CUBIC.
    pub loss_based: f64,
    /// With a rate-based one such as BBR.
    pub rate_based: f64,
    /// The path's rate that was assumed.
    pub assumed_rate_bps: u64,
}
