//! What a congestion control sees of a connection.
//!
//! What this leaves out: clocks of the kernel that no congestion control reads. Ticks are of 4 ms; it matters on kernels built with
//! another HZ, whose CUBIC looks at its curve more or less often.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `struct tcp_sock`, `struct inet_connection_sock` | 9293 §3.3.1 | [`Tcb`] |
//! | `tcp_packets_in_flight` | 6675 §4 (`SetPipe`) | [`Tcb::in_flight`] |
//! | `tcp_is_cwnd_limited` | 7661 | [`Tcb::limited_by_cwnd`] |
//! | `tcp_slow_start`, `tcp_cong_avoid_ai` | 5681 §3.1 | [`Tcb::slow_start`], [`Tcb::cong_avoid_ai`] |
//! | `tcp_update_pacing_rate` | – | [`Tcb::update_pacing_rate`] |

/// The threshold before the first loss.
pub const INFINITE_SSTHRESH: u32 = 0x7FFF_FFFF;
/// A tick of the kernel's coarse clock: HZ = 250, the default of Debian and Ubuntu until 2024.
pub const JIFFY_NS: u64 = 4_000_000;

/// States of the recovery machine.
///
/// # Source
/// include/net/tcp.h of Linux, `enum tcp_ca_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CaState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Something arrived out of order.
    Disorder,
    /// The window is being reduced because of congestion without loss.
    Cwr,
    /// Lost packets are retransmitted.
    Recovery,
    /// The retransmission timer fired.
    Loss,
}

/// What a congestion control sees of a connection, and the part of it that it sets.
///
/// # Units
/// Windows in segments, times as named.
#[derive(Debug, Clone)]
pub struct Tcb {
    /// The clock, as of the event that is handled, ns.
    pub now_ns: u64,
    /// Payload of a full-sized segment, bytes.
    pub mss: u32,
    /// The first byte that isn't acknowledged.
    pub snd_una: u64,
    /// The next byte to be sent.
    pub snd_nxt: u64,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// Slow start threshold.
    pub snd_ssthresh: u32,
    /// Acknowledged segments that haven't made the window grow yet.
    pub snd_cwnd_cnt: u32,
    /// No window is larger.
    pub snd_cwnd_clamp: u32,
    /// The window before the reduction under way.
    pub prior_cwnd: u32,
    /// The threshold before it.
    pub prior_ssthresh: u32,
    /// Eight times the smoothed RTT, µs; 0 before the first sample.
    pub srtt_us: u32,
    /// The smallest RTT; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of these selectively acknowledged.
    pub sacked_out: u32,
    /// Of these taken for lost.
    pub lost_out: u32,
    /// Of these retransmitted.
    pub retrans_out: u32,
    /// Packets delivered so far, the SYN and those only selectively acknowledged among them.
    pub delivered: u64,
    /// Of these with a mark of congestion.
    pub delivered_ce: u64,
    /// Packets taken for lost so far.
    pub lost: u64,
    /// Until `delivered` reaches this, samples are application-limited; 0 if they aren't.
    pub app_limited: u64,
    /// When `delivered` changed last, µs.
    pub delivered_us: u64,
    /// When the packet was sent that was acknowledged last, µs.
    pub first_tx_us: u64,
    /// Whether the window held something back during the last round trip.
    pub is_cwnd_limited: bool,
    /// The most packets in flight during the last round trip.
    pub max_packets_out: u32,
    /// State of the recovery machine; while `set_state` runs, still the old one.
    pub ca_state: CaState,
    /// Bytes per second.
    pub pacing_rate: u64,
    /// Whether packets are held back to keep that rate.
    pub pacing: bool,
    /// When the next packet may leave, ns.
    pub wstamp_ns: u64,
    /// When data was sent last, ns.
    pub last_send_ns: u64,
}

impl Tcb {
    pub(crate) fn new(mss: u32, cwnd: u32) -> Self {
        Self {
            now_ns: 0,
            mss,
            snd_una: 0,
            snd_nxt: 0,
            snd_cwnd: cwnd,
            snd_ssthresh: INFINITE_SSTHRESH,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: u32::MAX,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            srtt_us: 0,
            min_rtt_us: u32::MAX,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            // What is sent before the first acknowledgement counts as limited, as in Linux.
            app_limited: u64::MAX,
            delivered_us: 0,
            first_tx_us: 0,
            is_cwnd_limited: false,
            max_packets_out: 0,
            ca_state: CaState::Open,
            pacing_rate: u64::MAX,
            pacing: false,
            wstamp_ns: 0,
            last_send_ns: 0,
        }
    }

    /// The clock in µs.
    #[must_use]
    #[inline]
    pub const fn now_us(&self) -> u64 {
        self.now_ns / 1_000
    }

    /// The clock in ticks.
    #[must_use]
    pub const fn jiffies(&self) -> u64 {
        self.now_ns / JIFFY_NS
    }

    /// Packets taken to be on the way.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// Whether the window is below the threshold.
    #[must_use]
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.snd_cwnd < self.snd_ssthresh
    }

    /// Whether the window is what limits the sender.
    #[must_use]
    #[inline]
    pub const fn limited_by_cwnd(&self) -> bool {
        self.is_cwnd_limited || (self.in_slow_start() && self.snd_cwnd < 2 * self.max_packets_out)
    }

    /// The threshold that a flow would go back to now.
    #[must_use]
    pub fn current_ssthresh(&self) -> u32 {
        let reducing = matches!(self.ca_state, CaState::Cwr | CaState::Recovery);
        if reducing { self.snd_ssthresh } else { self.snd_ssthresh.max((self.snd_cwnd >> 1) + (self.snd_cwnd >> 2)) }
    }

    /// Grows by what was acknowledged up to the threshold; returns what is left over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.snd_cwnd.saturating_add(acked).min(self.snd_ssthresh);
        let left = acked - (cwnd - self.snd_cwnd);
        self.snd_cwnd = cwnd.min(self.snd_cwnd_clamp);
        left
    }

    /// Grows by one for every `per` segments that were acknowledged.
    pub fn cong_avoid_ai(&mut self, per: u32, acked: u32) {
        let per = per.max(1);
        if self.snd_cwnd_cnt >= per {
            self.snd_cwnd_cnt = 0;
            self.snd_cwnd += 1;
        }
        self.snd_cwnd_cnt += acked;
        if self.snd_cwnd_cnt >= per {
            let grow = self.snd_cwnd_cnt / per;
            self.snd_cwnd_cnt -= grow * per;
            self.snd_cwnd += grow;
        }
        self.snd_cwnd = self.snd_cwnd.min(self.snd_cwnd_clamp);
    }

    /// The rate of bursts and, where packets are paced, of packets: twice the window per RTT in slow start, else 1.2 times.
    pub(crate) fn update_pacing_rate(&mut self) {
        let share = if self.snd_cwnd < self.snd_ssthresh / 2 { 200 } else { 120 };
        let rate = u64::from(self.mss) * ((1_000_000 / 100) << 3) * share;
        let rate = rate * u64::from(self.snd_cwnd.max(self.packets_out));
        self.pacing_rate = if self.srtt_us == 0 { rate } else { rate / u64::from(self.srtt_us) };
    }
}
