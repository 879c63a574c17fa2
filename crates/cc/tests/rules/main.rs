//! Drives the native build of each C source ACK by ACK through the rules of its paper and of FreeBSD's manual pages.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail like tests, and say what can't run"
)]

mod cdg;
mod delay;
mod loss;
mod others;

use wt_cc::{Ack, CaState, CwndEvent, Native};

/// A connection under test: what TCP would do around the congestion control, as far as the rules need it.
struct Tcp {
    cc: Native,
    state: CaState,
}

const INFINITE: u32 = 0x7fff_ffff;

impl Tcp {
    /// Begins with this window and threshold.
    fn new(choice: &str, cwnd: u32, ssthresh: u32) -> Self {
        Self::seeded(choice, cwnd, ssthresh, 1)
    }

    fn seeded(choice: &str, cwnd: u32, ssthresh: u32, seed: u64) -> Self {
        let mut cc = Native::new(&choice.parse().unwrap(), seed);
        let fields = cc.fields();
        fields.snd_cwnd = cwnd;
        fields.snd_ssthresh = ssthresh;
        fields.mstamp_us = 1_000_000;
        cc.init();
        let fields = cc.fields();
        fields.snd_nxt = cwnd;
        fields.max_packets_out = cwnd;
        fields.packets_out = cwnd;
        Self { cc, state: CaState::Open }
    }

    fn enter(&mut self, state: CaState) {
        self.cc.set_state(state);
        self.state = state;
    }

    /// A round trip in which nothing is drawn and nothing grows, because TCP reduces its window anyway.
    fn quiet_round(&mut self, rtt_us: i32) {
        self.enter(CaState::Cwr);
        self.round(rtt_us);
        self.ack(2, rtt_us);
        self.enter(CaState::Open);
    }

    fn cwnd(&self) -> u32 {
        self.cc.read().snd_cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.cc.read().snd_ssthresh
    }

    /// An ACK of so many packets (sequence numbers count packets here), the window kept full; then growth, if TCP is open.
    fn ack(&mut self, packets: u32, rtt_us: i32) {
        let fields = self.cc.fields();
        fields.snd_una = fields.snd_una.wrapping_add(packets);
        fields.delivered += packets;
        let una = fields.snd_una;
        let in_flight = fields.packets_out;
        self.cc.pkts_acked(Ack { packets, rtt_us, in_flight });
        if self.state < CaState::Cwr {
            self.cc.cong_avoid(una, packets);
        }
        let fields = self.cc.fields();
        // What was sent stays sent, whatever becomes of the window.
        fields.packets_out = fields.snd_cwnd.max(fields.snd_nxt.wrapping_sub(una));
        fields.snd_nxt = una.wrapping_add(fields.packets_out);
        fields.max_packets_out = fields.max_packets_out.max(fields.packets_out);
    }

    /// A round trip: the whole window and the first packet behind it, in ACKs of two packets, all with this RTT.
    fn round(&mut self, rtt_us: i32) {
        let begun = self.cc.read().snd_nxt;
        while (self.cc.read().snd_una.wrapping_sub(begun) as i32) <= 0 {
            self.ack(2, rtt_us);
        }
        self.cc.fields().mstamp_us += rtt_us as u64;
    }

    /// A loss seen by selective acknowledgements: fast recovery, and its end, as with rate reduction by PRR.
    fn loss(&mut self) -> u32 {
        let before = self.cwnd();
        let threshold = self.cc.ssthresh();
        self.cc.fields().prior_cwnd = before;
        self.cc.fields().snd_ssthresh = threshold;
        self.enter(CaState::Recovery);
        self.cc.fields().snd_cwnd = threshold;
        self.cc.cwnd_event(CwndEvent::CompleteCwr);
        self.enter(CaState::Open);
        threshold
    }

    /// A timeout: what `tcp_enter_loss()` does.
    fn timeout(&mut self) {
        let before = self.cwnd();
        let threshold = self.cc.ssthresh();
        self.cc.fields().prior_cwnd = before;
        self.cc.fields().snd_ssthresh = threshold;
        self.cc.cwnd_event(CwndEvent::Loss);
        self.cc.fields().snd_cwnd = 1;
        self.enter(CaState::Loss);
    }
}
