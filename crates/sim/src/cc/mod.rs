//! Congestion controls, and what they see of a connection.
//!
//! What this leaves out: `sk` as such. A congestion control sees [`Tcb`] and the samples below, which hold everything that
//! those of Linux read; what it may write are the fields that a BPF program may write. It matters to controls that aren't in Linux.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `struct tcp_congestion_ops` | – | [`CongestionControl`] |
//! | `struct rate_sample` | draft-cheng-iccrg-delivery-rate-estimation | [`RateSample`] |
//! | `struct ack_sample` | – | [`AckSample`] |
//! | `tcp_slow_start`, `tcp_cong_avoid_ai` | 5681, 3465 | [`Tcb::slow_start`], [`Tcb::cong_avoid_ai`] |

/// BBR, version 1.
mod bbr;
/// CUBIC with HyStart.
mod cubic;
/// The windowed maximum.
mod minmax;
/// NewReno as Linux has it.
mod reno;
/// The sources that the kernel runs too.
mod source;
/// What a congestion control sees and sets.
mod tcb;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use reno::Reno;
pub use source::FromSource;
pub use tcb::{CaState, INFINITE_SSTHRESH, JIFFY_NS, Tcb};

/// What happens to a connection besides acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaEvent {
    /// The first packet goes out when none was in flight.
    TxStart,
    /// The window is cut after a pause.
    CwndRestart,
    /// A reduction of the window is complete.
    CompleteCwr,
    /// The retransmission timer fired.
    Loss,
}

/// What one acknowledgement says of the packets that it newly covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSample {
    /// Packets covered.
    pub pkts_acked: u32,
    /// RTT of the last one that was never retransmitted, µs.
    pub rtt_us: Option<u32>,
    /// Packets in flight when it was sent.
    pub in_flight: u32,
}

/// How fast the path has delivered since the packet was sent that this acknowledgement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateSample {
    /// `delivered` when that packet was sent.
    pub prior_delivered: u64,
    /// Packets delivered since; `None` when there is no valid sample.
    pub delivered: Option<u32>,
    /// Over so long, µs; `None` when there is no valid sample.
    pub interval_us: Option<u64>,
    /// RTT of the last packet covered, µs.
    pub rtt_us: Option<u32>,
    /// Packets newly marked lost.
    pub losses: u32,
    /// Packets newly covered, by cumulative and selective acknowledgement.
    pub acked_sacked: u32,
    /// In flight before this acknowledgement.
    pub prior_in_flight: u32,
    /// Whether the sender had too little to send during the interval.
    pub is_app_limited: bool,
    /// Whether the acknowledgement was probably delayed.
    pub is_ack_delayed: bool,
}

/// A congestion control, with the hooks that Linux has, called in the same order.
///
/// For every acknowledgement: [`pkts_acked`](Self::pkts_acked); then loss detection, which may call
/// [`ssthresh`](Self::ssthresh) and [`set_state`](Self::set_state); then [`cong_control`](Self::cong_control), or, where
/// that isn't there, [`cong_avoid`](Self::cong_avoid) outside of recovery.
///
/// # Source
/// include/net/tcp.h of Linux, `struct tcp_congestion_ops`.
pub trait CongestionControl: Send {
    /// Its name, as in `net.ipv4.tcp_congestion_control`.
    fn name(&self) -> &str;
    /// The connection stands.
    fn init(&mut self, _tcb: &mut Tcb) {}
    /// The threshold after a loss, in segments.
    fn ssthresh(&mut self, tcb: &mut Tcb) -> u32;
    /// So many segments were acknowledged while the window may grow.
    fn cong_avoid(&mut self, tcb: &mut Tcb, acked: u32);
    /// The window to go back to when a loss wasn't one.
    fn undo_cwnd(&mut self, tcb: &mut Tcb) -> u32;
    /// An acknowledgement of data.
    fn pkts_acked(&mut self, _tcb: &mut Tcb, _sample: &AckSample) {}
    /// The state of the recovery machine is about to change.
    fn set_state(&mut self, _tcb: &mut Tcb, _new: CaState) {}
    /// Something else happened.
    fn cwnd_event(&mut self, _tcb: &mut Tcb, _event: CaEvent) {}
    /// Whether `cong_control` takes the place of `cong_avoid` and of rate reduction in recovery.
    fn controls_rate(&self) -> bool {
        false
    }
    /// Sets window and pacing rate by itself.
    fn cong_control(&mut self, _tcb: &mut Tcb, _sample: &RateSample) {}
    /// The fewest segments of a burst.
    fn min_tso_segs(&self, _tcb: &Tcb) -> u32 {
        2
    }
    /// How many windows the send buffer has room for.
    fn sndbuf_expand(&self) -> u32 {
        2
    }
}

/// A congestion control by its name; the seed is for those that draw. Those of `bpf/` go by their names and variants too:
/// `chd@freebsd-hz100`.
#[must_use]
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn CongestionControl>> {
    Some(match name {
        "reno" => Box::new(Reno),
        "cubic" => Box::new(Cubic::default()),
        "bbr" => Box::new(Bbr::new(seed)),
        ours => Box::new(FromSource::new(&ours.parse().ok()?, seed)),
    })
}

/// The names of those that Linux brings, which [`by_name`] knows besides ours.
pub const NAMES: [&str; 3] = ["reno", "cubic", "bbr"];
