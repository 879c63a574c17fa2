//! Three packets before the first byte.
//!
//! What this leaves out: simultaneous opening, Fast Open, SYN cookies, and the closing of connections; it matters where
//! servers are flooded, and where connections are short and many.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_connect`, `tcp_syn_options` | 9293 §3.5, §3.7.1 | [`Endpoint::connect`], [`Endpoint::send_syn`] |
//! | `tcp_rcv_synsent_state_process` | 9293 §3.10.7.3 | [`Endpoint::on_segment`] |
//! | `tcp_init_transfer`, `tcp_try_undo_spurious_syn` | 6928 | [`Endpoint::establish`]: ten segments, or one |
//! | `tcp_synack_rtt_meas`, `tcp_init_metrics` | 7323 §4.3, 6298 §5.7 | [`Endpoint::first_rtt_us`] |

use super::rtt::{RTO_FALLBACK_NS, Rtt};
use super::state::{DEFAULT_MSS, Endpoint, Out, Phase};
use super::window::MAX_SCALE;
use crate::segment::{Segment, SynOptions, flag};

impl Endpoint {
    /// Begins to connect.
    pub(crate) fn connect(&mut self, now_ns: u64, out: &mut Out) {
        self.tcb.now_ns = now_ns;
        self.phase = Phase::SynSent;
        self.init_window();
        self.send_syn(out);
    }

    /// The SYN, or the answer to one, and its timer.
    pub(super) fn send_syn(&mut self, out: &mut Out) {
        let answer = self.phase == Phase::SynReceived;
        let syn = SynOptions {
            mss: self.config.announced_mss().min(65_495) as u16,
            window_scale: (self.config.window_scaling).then_some(self.rcv.scale),
            sack: self.sack,
            timestamps: self.timestamps,
        };
        let mut segment = Segment::new(self.peer, flag::SYN | if answer { flag::ACK } else { 0 }, 0, 0);
        segment.syn = syn;
        if (answer && self.snd.ecn) || (!answer && self.config.ecn) {
            segment.flags |= flag::ECE;
        }
        // The window of a SYN is never scaled.
        segment.window = self.rcv.wnd.min(65_535) as u32;
        if self.timestamps {
            (segment.ts_val, segment.ts_ecr) = (self.clock_ms(), self.rcv.ts_recent);
        }
        if self.syns_sent == 0 {
            self.snd.retrans_stamp = self.clock_ms();
        }
        self.rcv.rtt_mark = (0, 0);
        self.syns_sent += 1;
        self.syn_sent_ns = self.tcb.now_ns;
        self.set_syn_timer();
        out.push(segment.packet(syn.len(), self.flow));
    }

    /// A segment has arrived; `ce` if it was marked on the way.
    pub(crate) fn on_segment(&mut self, now_ns: u64, segment: &Segment, ce: bool, out: &mut Out) {
        self.tcb.now_ns = now_ns;
        if segment.has(flag::TOO_BIG) {
            return self.on_too_big(segment.window, out);
        }
        match self.phase {
            Phase::Closed if segment.has(flag::SYN) => {
                self.agree(segment);
                self.phase = Phase::SynReceived;
                self.init_window();
                self.snd.snd_wnd = u64::from(segment.window);
                self.snd.ecn = segment.has(flag::ECE);
                self.send_syn(out);
            }
            Phase::SynSent if segment.has(flag::SYN) && segment.has(flag::ACK) => {
                self.agree(segment);
                self.snd.ecn = self.config.ecn && segment.has(flag::ECE);
                self.snd.snd_wnd = u64::from(segment.window);
                self.establish(segment.ts_ecr);
                self.send_ack(out);
                self.push_pending(out);
            }
            Phase::SynReceived if segment.has(flag::SYN) => self.send_syn(out),
            Phase::SynReceived if segment.has(flag::ACK) => {
                self.snd.snd_wnd = u64::from(segment.window);
                self.establish(segment.ts_ecr);
                self.on_established(segment, ce, out);
            }
            Phase::Established if segment.has(flag::SYN) => self.send_ack(out),
            Phase::Established => self.on_established(segment, ce, out),
            _ => {}
        }
    }

    /// Takes what both ends want.
    fn agree(&mut self, segment: &Segment) {
        let syn = segment.syn;
        self.timestamps = self.config.timestamps && syn.timestamps;
        self.sack = self.config.sack && syn.sack;
        if syn.window_scale.is_none() {
            self.config.window_scaling = false;
            self.rcv.scale = 0;
            self.rcv.clamp = self.rcv.clamp.min(65_535);
        }
        self.snd.scale = syn.window_scale.filter(|_| self.config.window_scaling).unwrap_or(0).min(MAX_SCALE);
        self.rcv.ts_recent = segment.ts_val;
        self.pmtu.peer_mss = if syn.mss == 0 { DEFAULT_MSS } else { syn.mss.into() };
        self.tcb.mss = self.mss_for(self.pmtu.mtu);
    }

    /// The RTT that the handshake shows: a SYN that was sent again has none but that of the timestamp that came back.
    fn first_rtt_us(&self, ecr: u32) -> Option<u32> {
        match self.syns_sent {
            1 => Some(((self.tcb.now_ns - self.syn_sent_ns) / 1_000).max(1) as u32),
            _ => (self.timestamps && ecr > 0).then(|| self.clock_ms().saturating_sub(ecr).max(1) * 1_000),
        }
    }

    /// The connection stands; `ecr` is the timestamp that came back.
    fn establish(&mut self, ecr: u32) {
        self.phase = Phase::Established;
        self.timers.clear();
        // A time-out was too early if what arrived answers the first SYN.
        let too_early = self.timestamps && ecr == self.snd.retrans_stamp;
        let timed_out = self.timers.retries > 0 && !too_early;
        self.timers.retries = 0;
        self.snd.retrans_stamp = 0;
        self.snd.max_window = self.snd.snd_wnd;
        self.tcb.mss = self.mss_for(self.pmtu.mtu);
        // One SYN may be lost; after the second one the window is one segment.
        if timed_out && self.syns_sent > 2 {
            self.tcb.snd_cwnd = 1;
        }
        self.rtt = Rtt::default();
        self.rtt.rto_ns = RTO_FALLBACK_NS;
        if let Some(rtt_us) = self.first_rtt_us(ecr) {
            self.tcb.min_rtt_us = rtt_us;
            self.rtt.sample(&mut self.tcb, rtt_us);
        }
        self.init_space();
        // The SYN counts, too.
        self.tcb.delivered = 1;
        self.tcb.pacing = self.config.pacing;
        self.tcb.update_pacing_rate();
        self.cc.init(&mut self.tcb);
        self.tcb.delivered_us = self.tcb.now_us();
        self.snd.cwnd_stamp = self.tcb.now_ns;
    }
}
