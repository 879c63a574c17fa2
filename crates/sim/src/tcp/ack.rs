//! Acknowledgements: what they cover, what they say of the path, what they let go.
//!
//! What this leaves out: acknowledgements that are older than a whole window (none can arrive here), reneging of SACK.
//! It matters on paths that hold packets back for longer than a window lasts.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_ack` | 9293 §3.10.7.4, 5681 | [`Endpoint::on_ack`], in the same order |
//! | `tcp_clean_rtx_queue` | – | [`Endpoint::clean_board`] |
//! | `tcp_ack_update_rtt` | 6298 §3 (Karn), 7323 §4 | [`Endpoint::update_rtt`] |
//! | `tcp_ack_update_window` | 9293 §3.10.7.4 | [`Endpoint::update_window`] |

use super::rate::Rating;
use super::scoreboard::mark;
use super::state::{Endpoint, Kind, Out};
use crate::cc::{AckSample, CaState};
use crate::segment::{Segment, flag};

/// What an acknowledgement was found to be.
pub(super) mod found {
    pub(crate) const DATA: u32 = 1;
    pub(crate) const WIN_UPDATE: u32 = 1 << 1;
    pub(crate) const DATA_ACKED: u32 = 1 << 2;
    pub(crate) const RETRANS_ACKED: u32 = 1 << 3;
    pub(crate) const DATA_SACKED: u32 = 1 << 4;
    pub(crate) const ECE: u32 = 1 << 5;
    pub(crate) const LOST_RETRANS: u32 = 1 << 6;
    /// Something that was never retransmitted was delivered.
    pub(crate) const ORIGINAL: u32 = 1 << 7;
    pub(crate) const UNA_ADVANCED: u32 = 1 << 8;
    pub(crate) const DSACK: u32 = 1 << 9;
    pub(crate) const DSACK_TLP: u32 = 1 << 10;
    pub(crate) const SET_TIMER: u32 = 1 << 11;
    pub(crate) const MAYBE_DELAYED: u32 = 1 << 12;
    pub(crate) const NOT_DUP: u32 = DATA | WIN_UPDATE | DATA_ACKED;
    pub(crate) const ALERT: u32 = DATA_SACKED | ECE | DSACK;
}

/// What is to be sent after an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Resend {
    #[default]
    Nothing,
    Lost,
    /// New data, to find out whether a time-out was spurious.
    New,
}

/// An acknowledgement while it is handled.
#[derive(Debug, Default)]
pub(super) struct Ack {
    pub(super) found: u32,
    pub(super) rating: Rating,
    /// When the first and the last segment were sent that it newly reports out of order, ns.
    pub(super) first_sack_ns: Option<u64>,
    pub(super) last_sack_ns: Option<u64>,
    /// The lowest segment that arrived after later ones.
    pub(super) reordered: u64,
    pub(super) prior_una: u64,
    prior_fack: u64,
    /// The timestamp that it echoes.
    pub(super) ecr: u32,
    pub(super) resend: Resend,
}

impl Ack {
    pub(super) const fn has(&self, flag: u32) -> bool {
        self.found & flag != 0
    }
}

/// Numbers before the acknowledgement, to tell what it changed.
struct Before {
    packets_out: u32,
    in_flight: u32,
    delivered: u64,
    lost: u64,
    sacked_out: u32,
}

impl Endpoint {
    /// Handles the acknowledgement in a segment.
    pub(super) fn on_ack(&mut self, segment: &Segment, out: &mut Out) {
        let prior_una = self.tcb.snd_una;
        if segment.ack > self.tcb.snd_nxt {
            return;
        }
        let mut ack = Ack { prior_una, ecr: segment.ts_ecr, reordered: self.tcb.snd_nxt, ..Ack::default() };
        let before = Before {
            packets_out: self.tcb.packets_out,
            in_flight: self.tcb.in_flight(),
            delivered: self.tcb.delivered,
            lost: self.tcb.lost,
            sacked_out: self.tcb.sacked_out,
        };
        ack.prior_fack = if self.sack { self.snd.highest_sack.max(prior_una) } else { prior_una };
        if segment.ack < prior_una {
            // Old, but what it says of later segments may be news.
            if self.sack && segment.sack_count > 0 {
                self.tag_sacks(segment, &mut ack);
                self.alert(&mut ack, 0);
                self.finish(&mut ack, &before, out);
            }
            return;
        }
        if segment.len > 0 {
            ack.found |= found::DATA;
        }
        if segment.ack > prior_una {
            ack.found |= found::UNA_ADVANCED;
            self.timers.retries = 0;
        }
        self.update_window(segment, &mut ack);
        if self.sack && segment.sack_count > 0 {
            self.tag_sacks(segment, &mut ack);
        }
        if self.snd.ecn && segment.has(flag::ECE) {
            ack.found |= found::ECE;
        }
        self.timers.probes = 0;
        if before.packets_out == 0 {
            if ack.has(found::DSACK) {
                self.alert(&mut ack, 0);
            }
            self.window_opened();
            return;
        }
        self.clean_board(&mut ack, &before);
        self.rack_update_window(ack.rating.prior_delivered());
        if self.snd.tlp_high_seq > 0 {
            self.on_probe_acked(segment.ack, &ack);
        }
        if !ack.has(found::NOT_DUP) || ack.has(found::ALERT) || self.tcb.ca_state != CaState::Open {
            let duplicate = !ack.has(found::UNA_ADVANCED | found::NOT_DUP | found::DSACK);
            self.alert(&mut ack, u32::from(duplicate));
        }
        self.finish(&mut ack, &before, out);
    }

    /// The rest: timer, rate, window, and what is retransmitted.
    fn finish(&mut self, ack: &mut Ack, before: &Before, out: &mut Out) {
        if ack.has(found::SET_TIMER) && !self.schedule_probe(true) {
            self.rearm_rto();
        }
        let delivered = (self.tcb.delivered - before.delivered) as u32;
        let losses = (self.tcb.lost - before.lost) as u32;
        let mut sample = self.rate_sample(&ack.rating, delivered, losses);
        sample.prior_in_flight = before.in_flight;
        sample.is_ack_delayed = ack.has(found::MAYBE_DELAYED);
        if self.cc.controls_rate() {
            self.cc.cong_control(&mut self.tcb, &sample);
        } else {
            if matches!(self.tcb.ca_state, CaState::Cwr | CaState::Recovery) {
                self.reduce_cwnd(delivered, losses, ack.has(found::UNA_ADVANCED));
            } else {
                let progress = found::DATA_ACKED | found::DATA_SACKED;
                let may = if self.snd.reordering > 3 { progress } else { found::DATA_ACKED };
                if ack.has(may) {
                    self.cc.cong_avoid(&mut self.tcb, delivered);
                    self.snd.cwnd_stamp = self.tcb.now_ns;
                }
            }
            self.tcb.update_pacing_rate();
        }
        match ack.resend {
            Resend::Nothing => {}
            Resend::Lost => self.retransmit_queue(out),
            Resend::New => {
                self.write_xmit(None, out);
                if self.tcb.snd_nxt <= self.snd.high_seq {
                    // Nothing new could be sent: it must be taken for a loss.
                    self.snd.frto = false;
                    self.retransmit_queue(out);
                }
            }
        }
    }

    fn update_window(&mut self, segment: &Segment, ack: &mut Ack) {
        let window = u64::from(segment.window);
        let newer = segment.ack > self.tcb.snd_una
            || segment.seq > self.snd.window_seq
            || (segment.seq == self.snd.window_seq && (window > self.snd.snd_wnd || window == 0));
        if newer {
            ack.found |= found::WIN_UPDATE;
            self.snd.window_seq = segment.seq;
            self.snd.snd_wnd = window;
            if window > self.snd.max_window {
                self.snd.max_window = window;
                self.tcb.mss = self.mss_for(self.pmtu.mtu);
            }
        }
        self.counters.bytes_acked += segment.ack - self.tcb.snd_una;
        self.tcb.snd_una = segment.ack;
    }

    /// The window may have opened while nothing was on the way.
    fn window_opened(&mut self) {
        if self.timers.kind() == Some(Kind::WindowProbe) {
            self.timers.clear();
            self.rtt.set_rto(&self.tcb);
            if !self.fits_window() {
                self.check_window_probe();
            }
        }
    }

    /// Takes what is cumulatively acknowledged off the board.
    fn clean_board(&mut self, ack: &mut Ack, before: &Before) {
        let una = self.tcb.snd_una;
        let (mut first_ns, mut last_ns) = (None, 0);
        let (mut acked, mut reordered) = (0, self.tcb.snd_nxt);
        while let Some(sent) = self.snd.board.front().copied() {
            if sent.end() > una {
                break;
            }
            let id = self.snd.board.first_id();
            if sent.has(mark::RETRANS | mark::EVER_RETRANS) {
                if sent.has(mark::RETRANS) {
                    self.tcb.retrans_out -= 1;
                }
                ack.found |= found::RETRANS_ACKED;
            } else if !sent.has(mark::SACKED) {
                last_ns = sent.sent_ns;
                first_ns = first_ns.or(Some(last_ns));
                reordered = reordered.min(sent.seq);
                if sent.end() <= self.snd.high_seq {
                    ack.found |= found::ORIGINAL;
                }
            }
            if sent.has(mark::SACKED) {
                self.tcb.sacked_out -= 1;
            } else if self.sack {
                self.tcb.delivered += 1;
                if !self.is_echo_of_original(&sent, ack.ecr) {
                    self.rack_advance(id);
                }
            }
            if sent.has(mark::LOST) {
                self.tcb.lost_out -= 1;
            }
            self.rate_delivered(id, &mut ack.rating);
            self.tcb.packets_out -= 1;
            acked += 1;
            self.snd.board.pop();
        }
        if acked > 0 {
            ack.found |= found::DATA_ACKED;
            self.mtu_probe_acked();
        }
        self.measure(ack, before, (first_ns, last_ns), acked);
        if acked > 0 {
            ack.found |= found::SET_TIMER;
            if self.sack {
                if reordered < ack.prior_fack {
                    self.check_reordering(reordered, ack.prior_fack);
                }
            } else {
                self.remove_reno_sacks(acked);
                if ack.has(found::RETRANS_ACKED) {
                    ack.found &= !found::ORIGINAL;
                }
            }
        }
    }

    /// The echo proves that it wasn't the copy that arrived.
    fn is_echo_of_original(&self, sent: &super::scoreboard::SentSegment, ecr: u32) -> bool {
        sent.has(mark::RETRANS) && self.timestamps && u64::from(ecr) < sent.sent_ns / 1_000_000 + 1
    }

    /// RTT, minimum, RTO; and the congestion control's sample.
    fn measure(&mut self, ack: &mut Ack, before: &Before, original: (Option<u64>, u64), acked: u32) {
        let now = self.tcb.now_ns;
        let since = |ns: u64| (now.saturating_sub(ns) / 1_000) as u32;
        let (mut seq_rtt, mut ca_rtt) = (None, None);
        if let Some(first) = original.0
            && !ack.has(found::RETRANS_ACKED)
        {
            (seq_rtt, ca_rtt) = (Some(since(first)), Some(since(original.1)));
            let single = acked == 1
                && before.sacked_out == 0
                && self.tcb.snd_una - ack.prior_una < u64::from(self.tcb.mss)
                && ack.rating.prior_delivered().is_some_and(|prior| prior + 1 == self.tcb.delivered)
                && !ack.has(found::ALERT);
            if single {
                ack.found |= found::MAYBE_DELAYED;
            }
        }
        let mut sack_rtt = None;
        if let (Some(first), Some(last)) = (ack.first_sack_ns, ack.last_sack_ns) {
            sack_rtt = Some(since(first));
            ca_rtt = Some(since(last));
        }
        let updated = self.update_rtt(ack, seq_rtt.or(sack_rtt), &mut ca_rtt);
        ack.rating.rtt_us = ca_rtt;
        if acked == 0
            && updated
            && let (Some(rtt), Some(head)) = (sack_rtt, self.snd.board.front())
            && rtt > since(head.sent_ns)
        {
            ack.found |= found::SET_TIMER;
        }
        let in_flight = ack.rating.prior_delivered().map_or(0, |prior| (self.tcb.delivered - prior) as u32);
        let sample = AckSample { pkts_acked: acked, rtt_us: ca_rtt, in_flight };
        self.cc.pkts_acked(&mut self.tcb, &sample);
    }

    fn update_rtt(&mut self, ack: &Ack, rtt_us: Option<u32>, ca_rtt: &mut Option<u32>) -> bool {
        let mut rtt_us = rtt_us;
        if rtt_us.is_none() && self.timestamps && ack.ecr > 0 && ack.has(found::DATA_ACKED) {
            // Of what was sent twice only the echo tells.
            let ms = self.clock_ms().saturating_sub(ack.ecr).max(1);
            rtt_us = Some(ms.saturating_mul(1_000));
            *ca_rtt = rtt_us;
        }
        let Some(rtt) = rtt_us else { return false };
        if let Some(ca) = *ca_rtt {
            self.tcb.min_rtt_us = self.tcb.min_rtt_us.min(ca.max(1));
        }
        self.rtt.sample(&mut self.tcb, rtt);
        true
    }

    /// A probe of the tail was sent, and this acknowledgement reaches beyond it.
    fn on_probe_acked(&mut self, acked: u64, ack: &Ack) {
        if acked < self.snd.tlp_high_seq {
            return;
        }
        if !self.snd.tlp_retrans || ack.has(found::DSACK_TLP) {
            self.snd.tlp_high_seq = 0;
        } else if acked > self.snd.tlp_high_seq {
            // The probe repaired a loss that nothing else tells of.
            self.init_reduction();
            self.set_state(CaState::Cwr);
            self.end_reduction();
            self.try_keep_open();
        } else if !ack.has(found::UNA_ADVANCED | found::NOT_DUP | found::DATA_SACKED) {
            self.snd.tlp_high_seq = 0;
        }
    }
}
