//! Reno, with the recovery that all share.
//!
//! What this leaves out: nothing of the kernel's. As there, the window is halved and not what is in flight; it matters to a
//! sender that has long had less to send than it may.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_reno_cong_avoid` | 5681 §3.1 | [`CongestionControl::cong_avoid`] |
//! | `tcp_reno_ssthresh` | 5681 §3.1, (4) | half the window, not half the flight |

use super::{CongestionControl, Tcb};

/// NewReno: half the window at a loss, one segment more per round trip.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reno;

impl CongestionControl for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn ssthresh(&mut self, tcb: &mut Tcb) -> u32 {
        (tcb.snd_cwnd >> 1).max(2)
    }

    fn cong_avoid(&mut self, tcb: &mut Tcb, acked: u32) {
        if !tcb.limited_by_cwnd() {
            return;
        }
        let left = if tcb.in_slow_start() { tcb.slow_start(acked) } else { acked };
        if left > 0 {
            tcb.cong_avoid_ai(tcb.snd_cwnd, left);
        }
    }

    fn undo_cwnd(&mut self, tcb: &mut Tcb) -> u32 {
        tcb.snd_cwnd.max(tcb.prior_cwnd)
    }
}
