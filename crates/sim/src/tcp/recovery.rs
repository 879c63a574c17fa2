//! What happens after a loss: the states of the recovery machine, proportional rate reduction, and taking a reduction back
//! when the loss wasn't one.
//!
//! What this leaves out: reneging of SACK, and what a route remembers of the threshold; it matters where receivers run out of
//! memory, and for the second connection to a host.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_fastretrans_alert` | 6675, 8985 | [`Endpoint::alert`] |
//! | `tcp_cwnd_reduction` | 6937, 9937 | [`Endpoint::reduce_cwnd`]: as much as is delivered, reduced in proportion |
//! | `tcp_enter_loss`, `tcp_process_loss` | 5681 §3.1, 5682 (F-RTO) | [`Endpoint::enter_loss`], [`Endpoint::process_loss`] |
//! | `tcp_try_undo_*` | 3522 (Eifel), 3708 (D-SACK) | [`Endpoint::may_undo`] |

use super::ack::{Ack, Resend, found};
use super::scoreboard::{Id, mark};
use super::state::Endpoint;
use crate::cc::{CaEvent, CaState, INFINITE_SSTHRESH};

impl Endpoint {
    /// Something is or was wrong: loss detection, and the change of states. `duplicates` counts duplicate
    /// acknowledgements.
    pub(super) fn alert(&mut self, ack: &mut Ack, duplicates: u32) {
        if self.tcb.packets_out == 0 {
            self.tcb.sacked_out = 0;
        }
        if ack.has(found::ECE) {
            self.tcb.prior_ssthresh = 0;
        }
        if self.leave_state(ack.ecr) {
            return;
        }
        match self.tcb.ca_state {
            CaState::Recovery => {
                if !ack.has(found::UNA_ADVANCED) {
                    if !self.sack {
                        self.add_reno_sack(duplicates);
                    }
                } else if self.try_undo_partial(ack) {
                    return;
                }
                if self.try_undo_dsack() {
                    self.try_to_open(ack);
                }
                self.identify_losses(ack);
                if self.tcb.ca_state != CaState::Recovery {
                    if self.tcb.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(ack.has(found::ECE));
                }
            }
            CaState::Loss => {
                self.process_loss(ack, duplicates);
                self.identify_losses(ack);
                if self.tcb.ca_state != CaState::Open && !ack.has(found::LOST_RETRANS) {
                    return;
                }
                if !self.leave_open(ack, duplicates) {
                    return;
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if !self.leave_open(ack, duplicates) {
                    return;
                }
            }
        }
        ack.resend = Resend::Lost;
    }

    /// A state ends when what was sent before it is acknowledged; true if nothing else is to be done.
    fn leave_state(&mut self, ecr: u32) -> bool {
        if self.tcb.ca_state == CaState::Open {
            self.snd.retrans_stamp = 0;
            return false;
        }
        if self.tcb.snd_una < self.snd.high_seq {
            return false;
        }
        match self.tcb.ca_state {
            CaState::Cwr if self.tcb.snd_una != self.snd.high_seq => {
                self.end_reduction();
                self.set_state(CaState::Open);
            }
            CaState::Recovery => {
                if !self.sack {
                    self.tcb.sacked_out = 0;
                }
                if self.try_undo_recovery(ecr) {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    /// Outside of a recovery: looks for losses; true if one begins.
    fn leave_open(&mut self, ack: &mut Ack, duplicates: u32) -> bool {
        if !self.sack {
            if ack.has(found::UNA_ADVANCED) {
                self.tcb.sacked_out = 0;
            }
            self.add_reno_sack(duplicates);
        }
        if self.tcb.ca_state <= CaState::Disorder {
            self.try_undo_dsack();
        }
        self.identify_losses(ack);
        if self.tcb.lost_out == 0 {
            self.try_to_open(ack);
            return false;
        }
        if !self.mtu_probe_lost() {
            self.enter_recovery(ack.has(found::ECE));
        }
        true
    }

    fn identify_losses(&mut self, ack: &mut Ack) {
        if self.snd.board.is_empty() {
            return;
        }
        if !self.sack {
            let enough = match self.tcb.ca_state {
                CaState::Recovery => ack.has(found::UNA_ADVANCED),
                CaState::Loss => false,
                _ => self.tcb.sacked_out >= self.snd.reordering,
            };
            if enough {
                self.mark_lost(self.snd.board.first_id());
            }
            return;
        }
        let retransmitted = self.tcb.retrans_out;
        if self.rack_mark_lost() {
            ack.found &= !found::SET_TIMER;
        }
        if retransmitted > self.tcb.retrans_out {
            ack.found |= found::LOST_RETRANS;
        }
    }

    /// Takes a segment for lost.
    pub(super) fn mark_lost(&mut self, id: Id) {
        let sent = self.snd.board.get_mut(id);
        if sent.has(mark::SACKED) {
            return;
        }
        if sent.has(mark::LOST) {
            if sent.has(mark::RETRANS) {
                sent.flags &= !mark::RETRANS;
                self.tcb.retrans_out -= 1;
                self.tcb.lost += 1;
            }
        } else {
            sent.flags |= mark::LOST;
            self.tcb.lost_out += 1;
            self.tcb.lost += 1;
        }
        self.snd.board.look_from(id);
    }

    /// Notes where a reduction began, in case it must be taken back.
    fn init_undo(&mut self) {
        self.snd.undo_marker = Some(self.tcb.snd_una);
        self.snd.undo_retrans = if self.tcb.retrans_out > 0 { i64::from(self.tcb.retrans_out) } else { -1 };
    }

    pub(super) fn enter_recovery(&mut self, ece: bool) {
        self.tcb.prior_ssthresh = 0;
        self.init_undo();
        if !matches!(self.tcb.ca_state, CaState::Cwr | CaState::Recovery) {
            if !ece {
                self.tcb.prior_ssthresh = self.tcb.current_ssthresh();
            }
            self.init_reduction();
        }
        self.set_state(CaState::Recovery);
    }

    /// A mark of congestion: the window is reduced as after a loss, but nothing is retransmitted.
    fn enter_cwr(&mut self) {
        self.tcb.prior_ssthresh = 0;
        if self.tcb.ca_state < CaState::Cwr {
            self.snd.undo_marker = None;
            self.init_reduction();
            self.set_state(CaState::Cwr);
        }
    }

    pub(super) fn init_reduction(&mut self) {
        self.snd.high_seq = self.tcb.snd_nxt;
        self.snd.tlp_high_seq = 0;
        self.tcb.snd_cwnd_cnt = 0;
        self.tcb.prior_cwnd = self.tcb.snd_cwnd;
        (self.snd.prr_delivered, self.snd.prr_out) = (0, 0);
        self.tcb.snd_ssthresh = self.cc.ssthresh(&mut self.tcb);
        self.snd.send_cwr = self.snd.ecn;
    }

    /// Reduces the window in proportion to what is delivered.
    pub(super) fn reduce_cwnd(&mut self, delivered: u32, losses: u32, advanced: bool) {
        if delivered == 0 || self.tcb.prior_cwnd == 0 {
            return;
        }
        let (in_flight, target) = (self.tcb.in_flight(), self.tcb.snd_ssthresh);
        self.snd.prr_delivered += delivered;
        let mut send = if in_flight > target {
            let share = u64::from(target) * u64::from(self.snd.prr_delivered);
            share.div_ceil(u64::from(self.tcb.prior_cwnd)) as i64 - i64::from(self.snd.prr_out)
        } else {
            let mut send = (i64::from(self.snd.prr_delivered) - i64::from(self.snd.prr_out)).max(i64::from(delivered));
            if advanced && losses == 0 {
                send += 1;
            }
            send.min(i64::from(target - in_flight))
        };
        // The first retransmission always goes out.
        send = send.max(i64::from(self.snd.prr_out == 0));
        self.tcb.snd_cwnd = (i64::from(in_flight) + send).max(1) as u32;
    }

    pub(super) fn end_reduction(&mut self) {
        if self.cc.controls_rate() {
            return;
        }
        let reducing = self.tcb.ca_state == CaState::Cwr || self.snd.undo_marker.is_some();
        if self.tcb.snd_ssthresh < INFINITE_SSTHRESH && reducing {
            self.tcb.snd_cwnd = self.tcb.snd_ssthresh;
            self.snd.cwnd_stamp = self.tcb.now_ns;
        }
        self.cc_event(CaEvent::CompleteCwr);
    }

    fn try_to_open(&mut self, ack: &Ack) {
        if !self.any_retransmitted() {
            self.snd.retrans_stamp = 0;
        }
        if ack.has(found::ECE) {
            self.enter_cwr();
        }
        if self.tcb.ca_state != CaState::Cwr {
            self.try_keep_open();
        }
    }

    pub(super) fn try_keep_open(&mut self) {
        let wrong = self.tcb.sacked_out + self.tcb.lost_out > 0 || self.any_retransmitted();
        let state = if wrong { CaState::Disorder } else { CaState::Open };
        if self.tcb.ca_state != state {
            self.set_state(state);
            self.snd.high_seq = self.tcb.snd_nxt;
        }
    }

    /// The retransmission timer fired.
    pub(super) fn enter_loss(&mut self) {
        let new_recovery = self.tcb.ca_state < CaState::Recovery;
        if !self.sack {
            self.tcb.sacked_out = 0;
        }
        self.mark_all_lost();
        if self.tcb.ca_state <= CaState::Disorder
            || self.snd.high_seq <= self.tcb.snd_una
            || (self.tcb.ca_state == CaState::Loss && self.timers.retries == 0)
        {
            self.tcb.prior_ssthresh = self.tcb.current_ssthresh();
            self.tcb.prior_cwnd = self.tcb.snd_cwnd;
            self.tcb.snd_ssthresh = self.cc.ssthresh(&mut self.tcb);
            self.cc_event(CaEvent::Loss);
            self.init_undo();
        }
        self.tcb.snd_cwnd = self.tcb.in_flight() + 1;
        self.tcb.snd_cwnd_cnt = 0;
        self.snd.cwnd_stamp = self.tcb.now_ns;
        if self.tcb.ca_state <= CaState::Disorder && self.tcb.sacked_out >= 3 {
            self.snd.reordering = self.snd.reordering.min(3);
        }
        self.set_state(CaState::Loss);
        self.snd.high_seq = self.tcb.snd_nxt;
        self.snd.tlp_high_seq = 0;
        self.snd.send_cwr = self.snd.ecn;
        self.snd.frto = new_recovery || self.timers.retries > 0;
    }

    /// After a time-out everything is lost but what was sent only just now.
    fn mark_all_lost(&mut self) {
        let head = self.snd.board.first_id();
        let mut next = (!self.snd.board.is_empty()).then_some(head);
        while let Some(id) = next {
            next = self.snd.board.following(id);
            let sent = *self.snd.board.get(id);
            if id != head && self.rack_remaining_us(sent.sent_ns, 0) > 0 {
                continue;
            }
            self.mark_lost(id);
            if self.snd.board.get(id).has(mark::LOST) {
                self.snd.board.unlink(id);
            }
        }
    }

    /// An acknowledgement after a time-out: was it spurious?
    fn process_loss(&mut self, ack: &mut Ack, duplicates: u32) {
        let recovered = self.tcb.snd_una >= self.snd.high_seq;
        if ack.has(found::UNA_ADVANCED) && self.may_undo(ack.ecr) && self.undo_loss() {
            return;
        }
        if self.snd.frto {
            if ack.has(found::ORIGINAL) && self.undo_loss() {
                return;
            }
            if self.tcb.snd_nxt > self.snd.high_seq {
                if ack.has(found::DATA_SACKED) || duplicates > 0 {
                    self.snd.frto = false;
                }
            } else if ack.has(found::UNA_ADVANCED) && !recovered {
                self.snd.high_seq = self.tcb.snd_nxt;
                if self.has_unsent() && self.fits_window() {
                    ack.resend = Resend::New;
                    return;
                }
                self.snd.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(ack.ecr);
            return;
        }
        if !self.sack {
            if self.tcb.snd_nxt > self.snd.high_seq {
                self.add_reno_sack(duplicates);
            } else if ack.has(found::UNA_ADVANCED) {
                self.tcb.sacked_out = 0;
            }
        }
        ack.resend = Resend::Lost;
    }

    /// Whether what was retransmitted had arrived before.
    fn may_undo(&self, ecr: u32) -> bool {
        self.snd.undo_marker.is_some() && (self.snd.undo_retrans == 0 || self.was_delayed(ecr))
    }

    /// The echo is older than the first retransmission: the original arrived.
    fn was_delayed(&self, ecr: u32) -> bool {
        match self.snd.retrans_stamp {
            0 => true,
            stamp => self.timestamps && ecr > 0 && ecr < stamp,
        }
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            let mut next = (!self.snd.board.is_empty()).then(|| self.snd.board.first_id());
            while let Some(id) = next {
                let sent = self.snd.board.get_mut(id);
                let was_lost = sent.has(mark::LOST);
                sent.flags &= !mark::LOST;
                if was_lost && !sent.has(mark::SACKED) {
                    self.snd.board.relink_last(id);
                }
                next = self.snd.board.following(id);
            }
            self.tcb.lost_out = 0;
            self.snd.board.set_resume(None);
        }
        if self.tcb.prior_ssthresh > 0 {
            self.tcb.snd_cwnd = self.cc.undo_cwnd(&mut self.tcb);
            self.tcb.snd_ssthresh = self.tcb.snd_ssthresh.max(self.tcb.prior_ssthresh);
        }
        self.snd.cwnd_stamp = self.tcb.now_ns;
        self.snd.undo_marker = None;
        self.rack.advanced = true;
        self.counters.undos += 1;
    }

    fn undo_loss(&mut self) -> bool {
        self.undo_reduction(true);
        self.timers.retries = 0;
        self.snd.frto = false;
        if self.sack {
            self.set_state(CaState::Open);
        }
        true
    }

    fn try_undo_recovery(&mut self, ecr: u32) -> bool {
        if self.may_undo(ecr) {
            self.undo_reduction(false);
        } else {
            self.rack_recovery_ended();
        }
        if !self.sack && self.tcb.snd_una == self.snd.high_seq {
            // Without SACK, duplicates of what was sent twice must not begin another recovery.
            if !self.any_retransmitted() {
                self.snd.retrans_stamp = 0;
            }
            return true;
        }
        self.set_state(CaState::Open);
        false
    }

    fn try_undo_partial(&mut self, ack: &Ack) -> bool {
        if self.snd.undo_marker.is_none() || !self.was_delayed(ack.ecr) {
            return false;
        }
        self.check_reordering(ack.prior_una, self.snd.highest_sack.max(self.tcb.snd_una));
        if self.tcb.retrans_out > 0 {
            return true;
        }
        if !self.any_retransmitted() {
            self.snd.retrans_stamp = 0;
        }
        self.undo_reduction(true);
        self.try_keep_open();
        false
    }

    fn try_undo_dsack(&mut self) -> bool {
        if self.snd.undo_marker.is_none() || self.snd.undo_retrans != 0 {
            return false;
        }
        self.undo_reduction(false);
        true
    }
}
