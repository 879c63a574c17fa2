//! Results of a simulation.
//!
//! What this leaves out: of `tcp_info` the fields that no report shows; it matters to nobody who doesn't ask for them.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_get_info` | – | [`FlowReport`], [`sample`] |
//! | `tcp_chrono_start`, `tcp_chrono_stop` | – | [`FlowReport::busy`] |

use crate::cc;
use crate::tcp::Endpoint;
use std::time::Duration;
use wt_link::PathStats;
use wt_trial::Sample;

/// An exchange that was brought to its end; times are since the simulation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FinishedExchange {
    /// Its number in the page, or on the connection.
    pub number: u32,
    /// When the client asked.
    pub asked: Duration,
    /// When the first byte of the answer came.
    pub first_byte: Duration,
    /// When the last one came.
    pub done: Duration,
    /// Payload of the answer.
    pub bytes: u64,
}

/// Results of one flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowReport {
    /// When the first SYN left, since the simulation began.
    pub begun: Duration,
    /// From the first SYN until the connection stood; `None` if it never did.
    pub connect: Option<Duration>,
    /// From the request until all was there, by the clock of the payload's receiver; `None` if it wasn't.
    pub elapsed: Option<Duration>,
    /// Of an upload of a size: from the connection's standing until its sender had the acknowledgement of the last byte.
    pub acknowledged: Option<Duration>,
    /// Each exchange that was brought to its end, in order.
    pub exchanges: Vec<FinishedExchange>,
    /// When each message of a stream had come, since the simulation began.
    pub messages: Vec<Duration>,
    /// Payload that the receiving application has read.
    pub bytes: u64,
    /// Segments retransmitted by the sender of the payload.
    pub retransmits: u64,
    /// Time-outs at that end.
    pub timeouts: u64,
    /// Segments with payload that it sent.
    pub data_segments: u64,
    /// Acknowledgements without payload of the receiver.
    pub acks: u64,
    /// Reductions of the window that it took back.
    pub undos: u64,
    /// Smoothed and smallest RTT, µs.
    pub srtt_us: u64,
    /// The smallest RTT, µs; 0 without a sample.
    pub min_rtt_us: u64,
    /// Payload of a full-sized segment at the end, bytes.
    pub mss: u32,
    /// The path's MTU as the sender knew it at the end, bytes.
    pub pmtu: u32,
    /// The widest window that the receiver advertised, bytes.
    pub widest_window: u64,
    /// Time with something to send; of it waiting for the receiver's window, and for the own buffer.
    pub busy: [Duration; 3],
    /// What was agreed to: timestamps, SACK, ECN.
    pub agreed: (bool, bool, bool),
    /// The shift of the receiver's window.
    pub window_scale: u8,
    /// Whether the connection was given up.
    pub failed: bool,
    /// The sender over time, if samples were asked for.
    pub sender: Vec<Sample>,
    /// The receiver over time, if samples were asked for.
    pub receiver: Vec<Sample>,
}

impl FlowReport {
    /// Keeps every second sample, the last one of an even number among them.
    pub(crate) fn thin_out(&mut self) {
        for samples in [&mut self.sender, &mut self.receiver] {
            let mut odd = true;
            samples.retain(|_| {
                odd = !odd;
                odd
            });
        }
    }
}

/// Results of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Each flow, in the order in which they were added.
    pub flows: Vec<FlowReport>,
    /// When it ended.
    pub ended: Duration,
    /// Whether it ended because of its bound of events, or of a flow's exchanges.
    pub cut_short: bool,
    /// Events: packets that arrived or were dropped, timers.
    pub events: u64,
    /// Packets that queues dropped.
    pub queue_drops: u64,
    /// Packets that were lost otherwise.
    pub losses: u64,
    /// Packets that were too big for a link.
    pub too_big: u64,
    /// What the stages counted, by path.
    pub paths: Vec<PathStats>,
}

/// What `tcp_info` would say of a sender.
pub(crate) fn sample(end: &Endpoint, t_us: u64) -> Sample {
    let tcb = end.tcb();
    let mss = u64::from(tcb.mss);
    let ssthresh = if tcb.snd_ssthresh >= cc::INFINITE_SSTHRESH { 0 } else { u64::from(tcb.snd_ssthresh) * mss };
    Sample {
        t_us,
        bytes: end.counters().bytes_acked,
        snd_cwnd: u64::from(tcb.snd_cwnd) * mss,
        ssthresh,
        rtt: u64::from(tcb.srtt_us >> 3),
        min_rtt: if tcb.min_rtt_us == u32::MAX { 0 } else { u64::from(tcb.min_rtt_us) },
        retransmits: end.counters().retransmits,
        snd_wnd: end.peer_window(),
        delivery_rate_bps: tcb.pacing_rate.saturating_mul(8),
    }
}
