//! What happens when nothing arrives: tail loss probe, retransmission, window probe, delayed acknowledgement.
//!
//! What this leaves out: the wheel's coarser slots for timers beyond 250 ms other than a SYN's (they fire up to 12 % late in
//! the kernel), the phase of the tick (here it begins with the simulation), keepalive. It matters by some milliseconds for
//! each time-out, and decides whether the server, when its answer to a SYN was lost, repeats it before the client asks again.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_retransmit_timer` | 6298 §5 | [`Endpoint::retransmit_timeout`] |
//! | `tcp_schedule_loss_probe`, `tcp_send_loss_probe` | 8985 §7 | [`Endpoint::schedule_probe`], [`Endpoint::probe_timeout`] |
//! | `tcp_probe_timer` | 9293 §3.8.6.1 | [`Endpoint::window_probe_timeout`] |
//! | `tcp_write_timeout` | 1122 §4.2.3.5 | given up after 15 time-outs, six for a SYN besides the linear ones |
//! | `calc_wheel_index` | – | [`Endpoint::set_syn_timer`] |

use super::rtt::{RTO_INIT_NS, RTO_MAX_NS, RTO_MIN_US, ticks};
use super::scoreboard::mark;
use super::state::{Endpoint, Kind, NEVER, Out, Phase};
use crate::cc::{CaState, JIFFY_NS};

/// Time-outs in a row after which a connection is given up (`tcp_retries2`).
const RETRIES: u32 = 15;
/// The same for a SYN (`tcp_syn_retries`).
const SYN_RETRIES: u32 = 6;
impl Endpoint {
    /// Sets the sender's timer; it fires with a tick.
    pub(super) fn set_timer(&mut self, kind: Kind, delay_ns: u64) {
        let delay = ticks(delay_ns.min(RTO_MAX_NS)).max(JIFFY_NS);
        self.timers.sender = Some((kind, self.tcb.jiffies() * JIFFY_NS + delay));
    }

    /// Sets the timer of a SYN: so far ahead the kernel's wheel has slots of several ticks, and rounds up to the next one.
    pub(super) fn set_syn_timer(&mut self) {
        let delay = self.rtt.rto_ns / JIFFY_NS;
        let mut shift = 0;
        while delay >= 63 << shift {
            shift += 3;
        }
        let slot = ((self.tcb.jiffies() + delay) >> shift) + 1;
        self.timers.sender = Some((Kind::Retransmit, (slot << shift) * JIFFY_NS));
    }

    /// Does everything that is due at `now_ns`.
    pub(crate) fn on_timer(&mut self, now_ns: u64, out: &mut Out) {
        self.tcb.now_ns = now_ns;
        if self.timers.compressed_ack <= now_ns {
            self.timers.compressed_ack = NEVER;
            self.send_ack(out);
        }
        if self.timers.delayed_ack <= now_ns {
            self.timers.delayed_ack = NEVER;
            self.delayed_ack_timeout(out);
        }
        if self.timers.glance <= now_ns {
            self.timers.glance = NEVER;
            self.fill(out);
            if self.phase == Phase::Established {
                self.push_pending(out);
            }
        }
        if self.timers.pacing <= now_ns {
            self.timers.pacing = NEVER;
            if self.phase == Phase::Established {
                if self.tcb.lost_out > self.tcb.retrans_out && self.tcb.snd_cwnd > self.tcb.in_flight() {
                    self.retransmit_queue(out);
                }
                self.write_xmit(None, out);
            }
        }
        if let Some((kind, at)) = self.timers.sender
            && at <= now_ns
        {
            self.timers.sender = None;
            match (self.phase, kind) {
                (Phase::SynSent | Phase::SynReceived, _) => self.syn_timeout(out),
                (Phase::Established, Kind::Retransmit) => self.retransmit_timeout(out),
                (Phase::Established, Kind::LossProbe) => self.probe_timeout(out),
                (Phase::Established, Kind::Reordering) => self.rack_timeout(out),
                (Phase::Established, Kind::WindowProbe) => self.window_probe_timeout(out),
                (Phase::Closed | Phase::Failed, _) => {}
            }
        }
    }

    /// How far ahead the retransmission of the oldest segment lies, µs; negative if it is overdue.
    fn rto_delta_us(&self) -> i64 {
        let sent = self.snd.board.front().map_or(self.tcb.now_ns, |sent| sent.sent_ns);
        (sent as i64 + self.rtt.rto_ns as i64 - self.tcb.now_ns as i64) / 1_000
    }

    /// Starts the retransmission timer anew, or stops it when everything is acknowledged.
    pub(super) fn rearm_rto(&mut self) {
        if self.tcb.packets_out == 0 {
            return self.timers.clear();
        }
        let mut rto = self.rtt.rto_ns;
        if matches!(self.timers.kind(), Some(Kind::Reordering | Kind::LossProbe)) {
            rto = self.rto_delta_us().max(1) as u64 * 1_000;
        }
        self.set_timer(Kind::Retransmit, rto);
    }

    /// Sets the timer for a probe of the tail, if one is due; false if the retransmission timer is to be set instead.
    pub(super) fn schedule_probe(&mut self, advancing: bool) -> bool {
        let open = matches!(self.tcb.ca_state, CaState::Open | CaState::Cwr);
        if self.tcb.packets_out == 0 || !self.sack || !open {
            return false;
        }
        let mut timeout = RTO_INIT_NS;
        if self.tcb.srtt_us > 0 {
            // Two round trips, and for a lone packet the time that its acknowledgement may be delayed.
            let extra = if self.tcb.packets_out == 1 { u64::from(RTO_MIN_US) * 1_000 } else { 2 * JIFFY_NS };
            timeout = u64::from(self.tcb.srtt_us >> 2) * 1_000 + extra;
        }
        let rto = if advancing { (self.rtt.rto_ns / 1_000) as i64 } else { self.rto_delta_us() };
        if rto > 0 {
            timeout = timeout.min(rto as u64 * 1_000);
        }
        self.set_timer(Kind::LossProbe, timeout);
        true
    }

    /// Sends a probe: something new if there is, or else the last segment again.
    pub(super) fn probe_timeout(&mut self, out: &mut Out) {
        if self.snd.tlp_high_seq > 0 {
            return self.rearm_rto_from_head();
        }
        self.snd.tlp_retrans = false;
        let before = self.tcb.packets_out;
        if self.has_unsent() && self.fits_window() {
            self.write_xmit(Some(super::output::Push::Probe), out);
            if self.tcb.packets_out == before {
                return self.rearm_rto_from_head();
            }
            self.snd.tlp_high_seq = self.tcb.snd_nxt;
            return self.rearm_rto_after_probe();
        }
        if let Some(last) = self.snd.board.back_id()
            && self.send_again(last, out)
        {
            self.snd.tlp_retrans = true;
            self.snd.tlp_high_seq = self.tcb.snd_nxt;
            return self.rearm_rto_after_probe();
        }
        self.rearm_rto_from_head();
    }

    /// Lets the retransmission timer fire an RTO after the oldest segment left: the timer that fired had stood in for it.
    pub(super) fn rearm_rto_from_head(&mut self) {
        if self.tcb.packets_out == 0 {
            return self.timers.clear();
        }
        self.set_timer(Kind::Retransmit, self.rto_delta_us().max(1) as u64 * 1_000);
    }

    fn rearm_rto_after_probe(&mut self) {
        self.timers.clear();
        self.rearm_rto();
    }

    /// Nothing came back for a whole RTO.
    fn retransmit_timeout(&mut self, out: &mut Out) {
        if self.tcb.packets_out == 0 {
            return;
        }
        self.counters.timeouts += 1;
        if self.timers.retries >= RETRIES {
            self.phase = Phase::Failed;
            return;
        }
        if self.pmtu.forget_probe() {
            self.recut(self.tcb.mss);
        }
        self.detect_black_hole();
        self.enter_loss();
        self.timers.retries += 1;
        let first = self.snd.board.first_id();
        self.retransmit(first, out);
        self.rtt.back_off();
        self.set_timer(Kind::Retransmit, self.rtt.rto_ns);
    }

    fn syn_timeout(&mut self, out: &mut Out) {
        self.counters.timeouts += 1;
        self.timers.retries += 1;
        let linear = if self.phase == Phase::SynSent { self.config.syn_linear_timeouts } else { 0 };
        if self.timers.retries > SYN_RETRIES.saturating_add(linear) {
            self.phase = Phase::Failed;
            return;
        }
        if self.timers.retries > linear {
            self.rtt.back_off();
        }
        self.send_syn(out);
    }

    /// The peer's window is closed and nothing is on the way that could open it: ask.
    pub(super) fn check_window_probe(&mut self) {
        if self.tcb.packets_out == 0 && self.has_unsent() && self.timers.kind().is_none() {
            let delay = self.rtt.rto_ns << self.timers.probes.min(10);
            self.set_timer(Kind::WindowProbe, delay);
        }
    }

    fn window_probe_timeout(&mut self, out: &mut Out) {
        if self.tcb.packets_out > 0 || !self.has_unsent() {
            self.timers.probes = 0;
            return;
        }
        self.timers.probes += 1;
        self.send_window_probe(out);
        self.check_window_probe();
    }

    /// Whether anything of what is out was ever retransmitted.
    pub(super) fn any_retransmitted(&self) -> bool {
        self.tcb.retrans_out > 0 || self.snd.board.front().is_some_and(|sent| sent.has(mark::EVER_RETRANS))
    }
}
