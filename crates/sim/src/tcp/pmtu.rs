//! The path's MTU: what routers say of it, and how a black hole is found when they don't.
//!
//! What this leaves out: the search upwards for a larger MTU (`tcp_mtu_probe`), so a connection that found a black hole keeps
//! the small segments; the validation of ICMP messages.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_v4_mtu_reduced`, `tcp_simple_retransmit` | 1191 | [`Endpoint::on_too_big`] |
//! | `tcp_bound_to_half_wnd` | – | [`Endpoint::mss_for`] |
//! | `tcp_mtu_probing` after `tcp_retries1` | 4821 §7.7 | [`Endpoint::detect_black_hole`]: after about three seconds without an answer |

use super::config::StackConfig;
use super::endpoint::{Endpoint, Out, Phase};
use super::scoreboard::mark;
use crate::cc::CaState;

/// `tcp_base_mss`.
const BASE_MSS: u32 = 1_024;
/// `tcp_mtu_probe_floor`.
const FLOOR_MSS: u32 = 48;
/// No smaller MTU is believed (`ip_rt_min_pmtu`).
const MIN_PMTU: u32 = 552;
/// Silence since the first retransmission after which something is wrong: `tcp_retries1` = 3 time-outs of 200 ms, doubling.
const BLACK_HOLE_MS: u32 = 3_000;

/// What is known of the path's MTU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pmtu {
    /// That its segments keep to.
    pub(super) mtu: u32,
    /// What the peer announced.
    pub(super) peer_mss: u32,
    probing: bool,
    /// The MSS below which the search for a black hole goes on.
    search_low: u32,
}

impl Pmtu {
    pub(super) fn new(config: &StackConfig) -> Self {
        let peer_mss = config.announced_mss();
        Self { mtu: config.mtu, peer_mss, probing: false, search_low: BASE_MSS }
    }
}

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
    pub(super) fn detect_black_hole(&mut self, out: &mut Out) {
        let stamp = self.snd.retrans_stamp;
        if !self.config.mtu_probing || stamp == 0 || self.clock_ms() - stamp < BLACK_HOLE_MS {
            return;
        }
        if self.pmtu.probing {
            self.pmtu.search_low = (self.pmtu.search_low / 2).clamp(FLOOR_MSS, BASE_MSS);
        }
        self.pmtu.probing = true;
        let mss = self.tcb.mss.min(self.pmtu.search_low - self.option_len());
        if mss < self.tcb.mss {
            self.pmtu.mtu = mss + 40 + self.option_len();
            self.recut(mss);
        }
        let _ = out;
    }

    fn recut(&mut self, mss: u32) {
        self.tcb.mss = mss;
        let counts = self.snd.board.resegment(mss as u16);
        [self.tcb.packets_out, self.tcb.sacked_out, self.tcb.lost_out, self.tcb.retrans_out] = counts;
    }

    /// Cuts what is out to a smaller size and sends it again at once: it can't have arrived, and nothing is congested.
    fn shrink(&mut self, mss: u32, out: &mut Out) {
        let old = self.tcb.mss;
        self.recut(mss);
        let mut next = (!self.snd.board.is_empty()).then(|| self.snd.board.first_id());
        while let Some(id) = next {
            next = self.snd.board.following(id);
            if old > mss && !self.snd.board.get(id).has(mark::SACKED) {
                self.mark_lost(id);
                self.snd.board.unlink(id);
            }
        }
        if self.tcb.lost_out == 0 {
            return;
        }
        if self.tcb.ca_state != CaState::Loss {
            self.snd.high_seq = self.tcb.snd_nxt;
            self.tcb.snd_ssthresh = self.tcb.current_ssthresh();
            self.tcb.prior_ssthresh = 0;
            self.snd.undo_marker = None;
            self.set_state(CaState::Loss);
        }
        self.retransmit_queue(out);
    }
}
