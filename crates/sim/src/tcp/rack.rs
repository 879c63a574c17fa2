//! RACK: a segment is lost when one that was sent later has arrived, and time enough has passed.
//!
//! What this leaves out: the count of rounds with D-SACK that widens the window for reordering grows as in the kernel, and
//! falls back to one at once when sixteen recoveries went by without. It matters on paths that reorder seldom.
//!
//! | kernel | RFC 8985 | here |
//! |---|---|---|
//! | `tcp_rack_advance` | §6.2 step 2 | [`Endpoint::rack_advance`] |
//! | `tcp_rack_reo_wnd` | §6.2 step 4 | [`Endpoint::reordering_window_us`] |
//! | `tcp_rack_detect_loss` | §6.2 step 5 | [`Endpoint::rack_detect`] |

use super::scoreboard::{Id, mark};
use super::state::{Endpoint, Kind};
use crate::cc::{CaState, JIFFY_NS};

/// Recoveries for which a wider window for reordering is kept.
const PERSIST: u32 = 16;

impl Endpoint {
    /// A segment was delivered.
    pub(super) fn rack_advance(&mut self, id: Id) {
        let sent = *self.snd.board.get(id);
        let rtt_us = (self.tcb.now_ns.saturating_sub(sent.sent_ns) / 1_000) as u32;
        if rtt_us < self.tcb.min_rtt_us && sent.has(mark::EVER_RETRANS) {
            // The acknowledgement may be of the original: it says nothing about the copy.
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = rtt_us;
        if (sent.sent_ns, sent.end()) > (self.rack.sent_ns, self.rack.end) {
            (self.rack.sent_ns, self.rack.end) = (sent.sent_ns, sent.end());
        }
    }

    /// How long out of order isn't lost, µs.
    fn reordering_window_us(&self) -> u32 {
        if self.snd.reord_seen == 0
            && (self.tcb.ca_state >= CaState::Recovery || self.tcb.sacked_out >= self.snd.reordering)
        {
            return 0;
        }
        let steps = self.rack.steps.max(1);
        let quarter = if self.tcb.min_rtt_us == u32::MAX { u32::MAX } else { self.tcb.min_rtt_us >> 2 };
        quarter.saturating_mul(steps).min(self.tcb.srtt_us >> 3)
    }

    /// Widens the window for reordering after a D-SACK, once per round trip.
    pub(super) fn rack_update_window(&mut self, prior_delivered: Option<u64>) {
        let Some(prior) = prior_delivered else { return };
        let rack = &mut self.rack;
        if prior < rack.last_delivered {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.steps = (rack.steps.max(1) + 1).min(0xFF);
            rack.dsack_seen = false;
            rack.last_delivered = self.tcb.delivered;
            rack.persist = PERSIST;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }

    /// A recovery ended without having been in vain.
    pub(super) fn rack_recovery_ended(&mut self) {
        self.rack.persist = self.rack.persist.saturating_sub(1);
    }

    /// What a segment still has until it counts as lost, µs; negative when its time is over.
    pub(super) fn rack_remaining_us(&self, sent_ns: u64, window_us: u32) -> i64 {
        let age = (self.tcb.now_ns.saturating_sub(sent_ns) / 1_000) as i64;
        i64::from(self.rack.rtt_us) + i64::from(window_us) - age
    }

    /// Marks what is lost; returns how long to wait for what may be, µs.
    fn rack_detect(&mut self) -> u32 {
        let window = self.reordering_window_us();
        let mut wait = 0;
        let mut next = self.snd.board.oldest();
        while let Some(id) = next {
            let sent = *self.snd.board.get(id);
            next = self.snd.board.sent_after(id);
            if sent.has(mark::LOST) && !sent.has(mark::RETRANS) {
                continue;
            }
            if (self.rack.sent_ns, self.rack.end) <= (sent.sent_ns, sent.end()) {
                break;
            }
            let remaining = self.rack_remaining_us(sent.sent_ns, window);
            if remaining <= 0 {
                self.mark_lost(id);
                self.snd.board.unlink(id);
            } else {
                wait = wait.max(remaining as u32);
            }
        }
        wait
    }

    /// Looks for losses after an acknowledgement; true if a timer was set for what may be lost.
    pub(super) fn rack_mark_lost(&mut self) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let wait = self.rack_detect();
        if wait == 0 {
            return false;
        }
        // The kernel adds two ticks, so that a timer that is early by rounding doesn't fire in vain.
        let delay = super::rtt::ticks(u64::from(wait) * 1_000) + 2 * JIFFY_NS;
        self.set_timer(Kind::Reordering, delay.min(self.rtt.rto_ns));
        true
    }

    /// The timer for what may be lost fired.
    pub(super) fn rack_timeout(&mut self, out: &mut super::Out) {
        let prior = self.tcb.in_flight();
        let lost = self.tcb.lost;
        self.rack_detect();
        if prior != self.tcb.in_flight() {
            if self.mtu_probe_lost() {
                return self.retransmit_queue(out);
            }
            if self.tcb.ca_state != CaState::Recovery {
                self.enter_recovery(false);
                if !self.cc.controls_rate() {
                    self.reduce_cwnd(1, (self.tcb.lost - lost) as u32, false);
                }
            }
            self.retransmit_queue(out);
        }
        if self.timers.kind() != Some(Kind::Retransmit) {
            self.rearm_rto_from_head();
        }
    }
}
