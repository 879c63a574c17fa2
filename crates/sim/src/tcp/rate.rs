//! How fast the path delivers, by what was delivered between a packet's departure and its acknowledgement.
//!
//! What this leaves out: marks of ECN in the sample; it matters to congestion controls that count marks, of which there is none here.
//!
//! | kernel | draft-cheng-iccrg-delivery-rate-estimation | here |
//! |---|---|---|
//! | `tcp_rate_skb_sent` | §3.2 | [`Endpoint::rate_sent`] |
//! | `tcp_rate_skb_delivered` | §3.3 | [`Endpoint::rate_delivered`] |
//! | `tcp_rate_gen` | §3.3 | [`Endpoint::rate_sample`] |
//! | `tcp_rate_check_app_limited` | §3.4 | [`Endpoint::check_app_limited`] |

use super::scoreboard::{Id, SentSegment, mark};
use super::state::Endpoint;
use crate::cc::{CaState, RateSample};

/// The sample in the making while an acknowledgement is handled.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rating {
    prior_delivered: Option<u64>,
    prior_us: u64,
    interval_us: u64,
    is_app_limited: bool,
    last_end: u64,
    pub(super) rtt_us: Option<u32>,
}

impl Rating {
    pub(super) const fn prior_delivered(&self) -> Option<u64> {
        self.prior_delivered
    }
}

impl Endpoint {
    /// Notes in a segment what was delivered when it leaves.
    pub(super) fn rate_sent(&mut self, sent: &mut SentSegment) {
        let now_us = sent.sent_ns / 1_000;
        if self.tcb.packets_out == 0 {
            (self.tcb.first_tx_us, self.tcb.delivered_us) = (now_us, now_us);
        }
        sent.first_tx_us = self.tcb.first_tx_us;
        sent.delivered_us = self.tcb.delivered_us;
        sent.delivered = self.tcb.delivered;
        sent.flags &= !(mark::APP_LIMITED | mark::RATED);
        if self.tcb.app_limited > 0 {
            sent.flags |= mark::APP_LIMITED;
        }
    }

    /// A segment was acknowledged: the youngest one of those that this acknowledgement covers counts.
    pub(super) fn rate_delivered(&mut self, id: Id, rating: &mut Rating) {
        let sent = *self.snd.board.get(id);
        if sent.has(mark::RATED) {
            return;
        }
        let tx_us = sent.sent_ns / 1_000;
        let younger = (tx_us, sent.end()) > (self.tcb.first_tx_us, rating.last_end);
        if rating.prior_delivered.is_none() || younger {
            rating.prior_delivered = Some(sent.delivered);
            rating.prior_us = sent.delivered_us;
            rating.is_app_limited = sent.has(mark::APP_LIMITED);
            rating.last_end = sent.end();
            rating.interval_us = tx_us.saturating_sub(sent.first_tx_us);
            self.tcb.first_tx_us = tx_us;
        }
        self.snd.board.get_mut(id).flags |= mark::RATED;
    }

    /// The sample of this acknowledgement, which newly covered `acked` packets and had `losses` taken for lost.
    pub(super) fn rate_sample(&mut self, rating: &Rating, acked: u32, losses: u32) -> RateSample {
        let limited = self.tcb.app_limited;
        if limited > 0 && (self.tcb.delivered > limited || limited == u64::MAX) {
            self.tcb.app_limited = 0;
        }
        if acked > 0 {
            self.tcb.delivered_us = self.tcb.now_us();
        }
        let mut sample = RateSample {
            acked_sacked: acked,
            losses,
            rtt_us: rating.rtt_us,
            is_app_limited: rating.is_app_limited,
            ..RateSample::default()
        };
        let Some(prior) = rating.prior_delivered else { return sample };
        sample.prior_delivered = prior;
        sample.delivered = Some((self.tcb.delivered - prior) as u32);
        let receiving = self.tcb.now_us().saturating_sub(rating.prior_us);
        let interval = rating.interval_us.max(receiving);
        // An interval shorter than the smallest RTT comes from a spurious retransmission.
        if interval >= u64::from(self.tcb.min_rtt_us) {
            sample.interval_us = Some(interval);
        }
        sample
    }

    /// Notes that the sender has less to send than it may.
    pub(super) fn check_app_limited(&mut self) {
        let tcb = &self.tcb;
        let unsent = self.snd.write_seq - tcb.snd_nxt;
        if unsent < u64::from(tcb.mss)
            && tcb.in_flight() < tcb.snd_cwnd
            && tcb.lost_out <= tcb.retrans_out
            && tcb.ca_state <= CaState::Loss
        {
            self.tcb.app_limited = (tcb.delivered + u64::from(tcb.in_flight())).max(1);
        }
    }
}
