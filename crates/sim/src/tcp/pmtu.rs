//! The path's MTU: what routers say of it, and how a black hole is found when they don't.
//!
//! What this leaves out: the validation of ICMP messages, and `tcp_mtu_probing` = 2, which searches without a black hole: no
//! knob sets it. It matters where somebody forges such messages, or on hosts that were set so by hand.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_v4_mtu_reduced`, `tcp_simple_retransmit` | 1191 | [`Endpoint::on_too_big`] |
//! | `tcp_bound_to_half_wnd` | – | [`Endpoint::mss_for`] |
//! | `tcp_mtu_probe`, `tcp_mtup_probe_success`, `tcp_mtup_probe_failed` | 4821 §7.3–7.5 | [`Endpoint::probe_mtu`]: halves what is open, down to 8 bytes |
//! | `tcp_mtu_probing` after `tcp_retries1` | 4821 §7.7 | [`Endpoint::detect_black_hole`]: after about three seconds without an answer |

use super::scoreboard::{SentSegment, mark};
use super::state::{BASE_MSS, Endpoint, Out, Phase, Pmtu};
use crate::cc::CaState;
use crate::segment::Range;

/// `tcp_mtu_probe_floor`.
const FLOOR_MSS: u32 = 48;
/// No smaller MTU is believed (`ip_rt_min_pmtu`).
const MIN_PMTU: u32 = 552;
/// Silence since the first retransmission after which something is wrong: `tcp_retries1` = 3 time-outs of 200 ms, doubling.
const BLACK_HOLE_MS: u32 = 3_000;

/// What became of the wish to send a larger packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MtuProbe {
    /// It was sent.
    Sent,
    /// It will be, when there is room: nothing else goes before.
    Wait,
    /// There is nothing to find out, or it isn't the time.
    No,
}

/// The search is over when so much is open (`tcp_probe_threshold`), bytes.
const OPEN_BYTES: u32 = 8;
/// After so long it begins anew (`tcp_probe_interval`), ns.
const PROBE_AGAIN_NS: u64 = 600_000_000_000;
/// With a smaller window a lost probe would cost too much, segments.
const PROBE_CWND: u32 = 11;

impl Endpoint {
    /// Payload of a segment that makes a packet of so many bytes.
    pub(super) fn mss_for(&self, mtu: u32) -> u32 {
        let limit = self.config.announced_mss().min(self.pmtu.peer_mss);
        let mss = limit.min(mtu.saturating_sub(40)).saturating_sub(self.option_len()).clamp(36, 65_000);
        // No segment fills more than half of a window, so that there are always two.
        match self.snd.max_window {
            0 => mss,
            window if window > 536 => mss.min((window / 2).max(36) as u32),
            window => mss.min(window.max(36) as u32),
        }
    }

    /// A router says that packets are too big.
    pub(super) fn on_too_big(&mut self, mtu: u32, out: &mut Out) {
        let mtu = mtu.max(MIN_PMTU);
        if !self.config.pmtud || mtu >= self.pmtu.mtu {
            return;
        }
        self.pmtu.mtu = mtu;
        if self.phase != Phase::Established {
            return;
        }
        self.shrink(self.mss_for(mtu), out);
    }

    /// Nobody answers, and it has been like that for a while: perhaps large packets vanish.
    pub(super) fn detect_black_hole(&mut self) {
        let stamp = self.snd.retrans_stamp;
        if !self.config.mtu_probing || stamp == 0 || self.clock_ms() - stamp < BLACK_HOLE_MS {
            return;
        }
        if self.pmtu.probing {
            self.pmtu.search_low = (self.pmtu.search_low / 2).clamp(FLOOR_MSS, BASE_MSS);
        }
        if !self.pmtu.probing {
            self.pmtu.since_ns = self.tcb.now_ns;
        }
        self.pmtu.probing = true;
        self.pmtu.high = self.pmtu.peer_mss.min(self.config.announced_mss()) + 40;
        let mss = self.tcb.mss.min(self.pmtu.search_low - self.option_len());
        if mss < self.tcb.mss {
            self.pmtu.mtu = mss + 40 + self.option_len();
            self.recut(mss);
        }
        self.pmtu.low = self.tcb.mss + 40 + self.option_len();
    }

    /// Sends a packet larger than those that are known to get through, if there is something to find out.
    pub(super) fn probe_mtu(&mut self, out: &mut Out) -> MtuProbe {
        let tcb = &self.tcb;
        if !self.pmtu.probing || self.pmtu.probe.is_some() || tcb.ca_state != CaState::Open || tcb.snd_cwnd < PROBE_CWND
        {
            return MtuProbe::No;
        }
        let Pmtu { low, high, since_ns, .. } = self.pmtu;
        if high.saturating_sub(low) < OPEN_BYTES {
            if tcb.now_ns.saturating_sub(since_ns) >= PROBE_AGAIN_NS {
                self.pmtu.high = self.pmtu.peer_mss.min(self.config.announced_mss()) + 40;
                (self.pmtu.low, self.pmtu.since_ns) = (self.pmtu.mtu, tcb.now_ns);
            }
            return MtuProbe::No;
        }
        let size = u64::from(low.midpoint(high).saturating_sub(40 + self.option_len()));
        let needed = size + u64::from(self.snd.reordering + 1) * u64::from(tcb.mss);
        if self.snd.write_seq - tcb.snd_nxt < needed || self.snd.snd_wnd < needed {
            return MtuProbe::No;
        }
        if tcb.snd_nxt + needed > tcb.snd_una + self.snd.snd_wnd {
            return MtuProbe::Wait;
        }
        if tcb.in_flight() + 2 > tcb.snd_cwnd {
            return if tcb.in_flight() == 0 { MtuProbe::No } else { MtuProbe::Wait };
        }
        let start = tcb.snd_nxt;
        // It counts as two packets.
        self.tcb.snd_cwnd -= 1;
        self.send_cut(size, size, out);
        self.pmtu.probe = Some(Range { start, end: start + size });
        MtuProbe::Sent
    }

    /// Everything up to here has arrived: the larger packet, too?
    pub(super) fn mtu_probe_acked(&mut self) {
        let Some(probe) = self.pmtu.probe.filter(|probe| probe.end <= self.tcb.snd_una) else { return };
        self.pmtu.probe = None;
        let mtu = (probe.end - probe.start) as u32 + 40 + self.option_len();
        let cwnd = u64::from(self.tcb.snd_cwnd) * u64::from(self.pmtu.mtu) / u64::from(mtu);
        self.tcb.snd_cwnd = cwnd.max(1) as u32;
        self.tcb.snd_cwnd_cnt = 0;
        self.tcb.snd_ssthresh = self.tcb.current_ssthresh();
        (self.pmtu.low, self.pmtu.mtu) = (mtu, mtu);
        self.tcb.mss = self.mss_for(mtu);
    }

    /// A loss was found: true if it is only that of the larger packet, which then goes out again in smaller ones, and nothing
    /// is congested. A probe among other losses tells nothing.
    pub(super) fn mtu_probe_lost(&mut self) -> bool {
        let Some(probe) = self.pmtu.probe.take() else { return false };
        if self.tcb.ca_state >= CaState::Cwr || self.tcb.snd_una != probe.start {
            self.recut(self.tcb.mss);
            return false;
        }
        self.pmtu.high = (probe.end - probe.start) as u32 + 40 + self.option_len() - 1;
        self.tcb.snd_cwnd += 1;
        self.recut(self.tcb.mss);
        self.lose(|sent| sent.seq < probe.end);
        true
    }

    pub(super) fn recut(&mut self, mss: u32) {
        self.tcb.mss = mss;
        let counts = self.snd.board.resegment(mss as u16);
        [self.tcb.packets_out, self.tcb.sacked_out, self.tcb.lost_out, self.tcb.retrans_out] = counts;
    }

    /// Cuts what is out to a smaller size and sends it again at once: it can't have arrived, and nothing is congested.
    fn shrink(&mut self, mss: u32, out: &mut Out) {
        let old = self.tcb.mss;
        self.recut(mss);
        if self.lose(|_| old > mss) {
            self.retransmit_queue(out);
        }
    }

    /// Takes for lost what can't have arrived, which isn't congestion's fault; true if anything is lost.
    fn lose(&mut self, which: impl Fn(&SentSegment) -> bool) -> bool {
        let mut next = (!self.snd.board.is_empty()).then(|| self.snd.board.first_id());
        while let Some(id) = next {
            next = self.snd.board.following(id);
            let sent = self.snd.board.get(id);
            if which(sent) && !sent.has(mark::SACKED) {
                self.mark_lost(id);
                self.snd.board.unlink(id);
            }
        }
        if self.tcb.lost_out == 0 {
            return false;
        }
        if self.tcb.ca_state != CaState::Loss {
            self.snd.high_seq = self.tcb.snd_nxt;
            self.tcb.snd_ssthresh = self.tcb.current_ssthresh();
            self.tcb.prior_ssthresh = 0;
            self.snd.undo_marker = None;
            self.set_state(CaState::Loss);
        }
        true
    }
}
