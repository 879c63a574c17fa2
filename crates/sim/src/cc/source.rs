//! The congestion controls of `bpf/`, whose very source runs here.
//!
//! What this leaves out: the peer's window, which bounds nothing here; which of several time-outs in a row it is. It matters to
//! a control that looks at either, in long outages.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `struct_ops` of a BPF program | – | [`FromSource`]: the same C file, compiled natively |

use super::{AckSample, CaEvent, CaState, CongestionControl, Tcb};
use wt_cc::{Ack, Choice, CwndEvent, Native};

/// A congestion control of `bpf/`: the very source that the kernel runs, compiled natively.
///
/// # Differs from Linux
/// The peer's window isn't seen, so nothing is bounded by it; every timeout counts as the first of its row.
#[derive(Debug, Clone)]
pub struct FromSource {
    name: String,
    native: Native,
}

impl FromSource {
    /// With these parameters; the seed is for those that draw.
    #[must_use]
    pub fn new(choice: &Choice, seed: u64) -> Self {
        Self { name: choice.to_string(), native: Native::new(choice, seed) }
    }

    /// Shows it the connection, lets it work, and takes over what it may set.
    fn with<T>(&mut self, tcb: &mut Tcb, work: impl FnOnce(&mut Native) -> T) -> T {
        let fields = self.native.fields();
        fields.mstamp_us = tcb.now_us();
        fields.snd_cwnd = tcb.snd_cwnd;
        fields.snd_cwnd_cnt = tcb.snd_cwnd_cnt;
        fields.snd_cwnd_clamp = tcb.snd_cwnd_clamp;
        fields.snd_ssthresh = tcb.snd_ssthresh;
        fields.prior_cwnd = tcb.prior_cwnd;
        // Sequence numbers are of 32 bits there, and only their differences count.
        fields.snd_una = tcb.snd_una as u32;
        fields.snd_nxt = tcb.snd_nxt as u32;
        fields.delivered = tcb.delivered as u32;
        fields.mss = tcb.mss;
        fields.srtt_us_8 = tcb.srtt_us;
        fields.max_packets_out = tcb.max_packets_out;
        fields.packets_out = tcb.packets_out;
        fields.sacked_out = tcb.sacked_out;
        self.native.set_cwnd_limited(tcb.is_cwnd_limited);
        let result = work(&mut self.native);
        let fields = self.native.read();
        tcb.snd_cwnd = fields.snd_cwnd;
        tcb.snd_cwnd_cnt = fields.snd_cwnd_cnt;
        tcb.snd_ssthresh = fields.snd_ssthresh;
        result
    }
}

impl CongestionControl for FromSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn init(&mut self, tcb: &mut Tcb) {
        self.with(tcb, Native::init);
    }

    fn ssthresh(&mut self, tcb: &mut Tcb) -> u32 {
        self.with(tcb, Native::ssthresh)
    }

    fn cong_avoid(&mut self, tcb: &mut Tcb, acked: u32) {
        let una = tcb.snd_una as u32;
        self.with(tcb, |native| native.cong_avoid(una, acked));
    }

    fn undo_cwnd(&mut self, tcb: &mut Tcb) -> u32 {
        self.with(tcb, Native::undo_cwnd)
    }

    fn pkts_acked(&mut self, tcb: &mut Tcb, sample: &AckSample) {
        let rtt_us = sample.rtt_us.map_or(-1, |us| i32::try_from(us).unwrap_or(i32::MAX));
        let ack = Ack { packets: sample.pkts_acked, rtt_us, in_flight: sample.in_flight };
        self.with(tcb, |native| native.pkts_acked(ack));
    }

    fn set_state(&mut self, tcb: &mut Tcb, new: CaState) {
        let state = match new {
            CaState::Open => wt_cc::CaState::Open,
            CaState::Disorder => wt_cc::CaState::Disorder,
            CaState::Cwr => wt_cc::CaState::Cwr,
            CaState::Recovery => wt_cc::CaState::Recovery,
            CaState::Loss => wt_cc::CaState::Loss,
        };
        self.with(tcb, |native| native.set_state(state));
    }

    fn cwnd_event(&mut self, tcb: &mut Tcb, event: CaEvent) {
        let event = match event {
            CaEvent::TxStart => CwndEvent::TxStart,
            CaEvent::CwndRestart => CwndEvent::CwndRestart,
            CaEvent::CompleteCwr => CwndEvent::CompleteCwr,
            CaEvent::Loss => CwndEvent::Loss,
        };
        self.with(tcb, |native| native.cwnd_event(event));
    }
}
