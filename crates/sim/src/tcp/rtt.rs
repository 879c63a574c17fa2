//! Smoothed RTT and the retransmission time-out, with Linux' own bounds.
//!
//! What this leaves out: routes that carry an RTO of their own (`rto_min`), and RTTs remembered from earlier connections
//! (`tcp_no_metrics_save`); it matters for the first loss of a connection to a host that was spoken to before.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_rtt_estimator` | 6298 §2 | [`Rtt::sample`]: the deviation falls more slowly than it rises |
//! | `__tcp_set_rto`, `tcp_bound_rto` | 6298 §2.4: at least 1 s | at least 200 ms of deviation on top of the RTT, at most 120 s |
//! | `tcp_update_rtt_min` | – | the minimum of the whole connection (the kernel's: of five minutes) |

use crate::cc::{JIFFY_NS, Tcb};

/// `TCP_RTO_MIN`, µs.
pub(super) const RTO_MIN_US: u32 = 200_000;
/// `TCP_RTO_MAX`, ns.
pub(super) const RTO_MAX_NS: u64 = 120_000_000_000;
/// Before the first sample, ns (RFC 6298 §2.1).
pub(super) const RTO_INIT_NS: u64 = 1_000_000_000;
/// After a handshake that showed no RTT, ns (RFC 6298 §5.7).
pub(super) const RTO_FALLBACK_NS: u64 = 3_000_000_000;

/// A duration in whole ticks, rounded up, ns.
pub(super) const fn ticks(ns: u64) -> u64 {
    ns.div_ceil(JIFFY_NS) * JIFFY_NS
}

/// The estimator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rtt {
    /// Four times the mean deviation, µs.
    mdev_us: u32,
    mdev_max_us: u32,
    rttvar_us: u32,
    /// The deviation's maximum is taken anew when this is acknowledged.
    round_end: u64,
    /// Without back-off, ns.
    pub(super) rto_ns: u64,
}

impl Default for Rtt {
    fn default() -> Self {
        Self { mdev_us: 0, mdev_max_us: 0, rttvar_us: 0, round_end: 0, rto_ns: RTO_INIT_NS }
    }
}

impl Rtt {
    /// Takes a sample in.
    pub(super) fn sample(&mut self, tcb: &mut Tcb, rtt_us: u32) {
        let mut srtt = i64::from(tcb.srtt_us);
        let mut m = i64::from(rtt_us);
        if srtt != 0 {
            m -= srtt >> 3;
            srtt += m;
            if m < 0 {
                m = -m - i64::from(self.mdev_us >> 2);
                // A falling RTT raises the deviation by less.
                if m > 0 {
                    m >>= 3;
                }
            } else {
                m -= i64::from(self.mdev_us >> 2);
            }
            self.mdev_us = (i64::from(self.mdev_us) + m).max(0) as u32;
            if self.mdev_us > self.mdev_max_us {
                self.mdev_max_us = self.mdev_us;
                self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
            }
            if tcb.snd_una > self.round_end {
                if self.mdev_max_us < self.rttvar_us {
                    self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
                }
                self.round_end = tcb.snd_nxt;
                self.mdev_max_us = RTO_MIN_US;
            }
        } else {
            srtt = m << 3;
            self.mdev_us = (m << 1) as u32;
            self.rttvar_us = self.mdev_us.max(RTO_MIN_US);
            self.mdev_max_us = self.rttvar_us;
            self.round_end = tcb.snd_nxt;
        }
        tcb.srtt_us = srtt.clamp(1, i64::from(u32::MAX >> 1)) as u32;
        self.set_rto(tcb);
    }

    pub(super) fn set_rto(&mut self, tcb: &Tcb) {
        if tcb.srtt_us > 0 {
            let rto = ticks(u64::from((tcb.srtt_us >> 3) + self.rttvar_us) * 1_000);
            self.rto_ns = rto.min(RTO_MAX_NS);
        }
    }

    /// Twice as long the next time.
    pub(super) fn back_off(&mut self) {
        self.rto_ns = (self.rto_ns * 2).min(RTO_MAX_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rtt_gives_an_rto_of_the_rtt_and_200_ms() {
        let (mut rtt, mut tcb) = (Rtt::default(), Tcb::new(1448, 10));
        for n in 0..200 {
            (tcb.snd_una, tcb.snd_nxt) = (n * 1000, n * 1000 + 10_000);
            rtt.sample(&mut tcb, 100_000);
        }
        assert_eq!(tcb.srtt_us, 800_000);
        assert_eq!(rtt.rto_ns, 300_000_000);
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto_ns, RTO_MAX_NS);
    }

    #[test]
    fn the_first_deviation_is_half_the_rtt() {
        let (mut rtt, mut tcb) = (Rtt::default(), Tcb::new(1448, 10));
        rtt.sample(&mut tcb, 600_000);
        assert_eq!(rtt.rto_ns, 1_800_000_000, "RTT + 4 × RTT/2 (RFC 6298, 2.2)");
    }
}
