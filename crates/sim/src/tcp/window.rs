//! The receive window: how it begins, how it grows with what arrives, and how the buffer is tuned to the path.
//!
//! What this leaves out: pressure of memory; windows that shrink (`tcp_shrink_window`). What a packet occupies in memory follows
//! from one figure for full-sized ones ([`StackConfig::truesize_ratio`](super::StackConfig)), where a kernel's drivers differ. It matters
//! where the receive buffer is small for the path.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_select_initial_window` | 9293 §3.8.6, 7323 §2 | [`Endpoint::init_window`] |
//! | `__tcp_select_window` | 9293 §3.8.6.2.2 | [`Endpoint::select_window`] |
//! | `tcp_grow_window` | – | [`Endpoint::grow_window`]: two segments for each one that arrives |
//! | `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow` (since 6.16; before that [`BufferTuning::Cushioned`]) | – | [`Endpoint::adjust_space`]: twice what was read in an RTT, and more while that grows |
//! | `tcp_set_window_clamp` | – | [`Endpoint::hold_window`]: by the application, after each read |
//! | `tcp_rcv_rtt_measure_ts` | 7323 §4 | [`Endpoint::measure_rtt_by_echo`] |

use super::config::BufferTuning;
use super::state::{DEFAULT_MSS, Endpoint, MIN_MSS};
use crate::segment::Segment;

/// The most that a window without scaling says.
const UNSCALED_MAX: u64 = 65_535;
/// No smaller clamp is taken from an application (half of `SOCK_MIN_RCVBUF`), bytes.
const MIN_CLAMP: u64 = 2_304;
/// Payload of a full-sized packet on Ethernet, with timestamps, bytes.
const FULL_PAYLOAD: u32 = 1_448;
/// What lies in a packet's buffer beside its payload (headers, `NET_SKB_PAD`, `struct skb_shared_info`), and `struct sk_buff`, bytes.
const PACKET_RECORD: u32 = 52 + 64 + 320;
const BUFFER_RECORD: u32 = 256;
/// The largest shift (RFC 7323 §2.3).
pub(super) const MAX_SCALE: u8 = 14;

impl Endpoint {
    /// The window that fits into so much buffer.
    const fn window_of(&self, space: u64) -> u64 {
        (space * self.rcv.ratio) >> 8
    }

    /// The first window and the shift, before the handshake.
    pub(super) fn init_window(&mut self) {
        let mss = u64::from(self.config.announced_mss());
        let clamp = self.asked_window().unwrap_or(UNSCALED_MAX << MAX_SCALE);
        let mut space = self.window_of(self.rcv.buffer).min(clamp);
        if space > mss {
            space -= space % mss;
        }
        self.rcv.wnd = space.min(UNSCALED_MAX);
        if let Some(segments) = self.config.initrwnd {
            self.rcv.wnd = self.rcv.wnd.min(u64::from(segments) * mss);
        }
        self.rcv.scale = 0;
        if self.config.window_scaling {
            let most = self.config.rmem.1.max(space).min(clamp);
            self.rcv.scale = (most.max(1).ilog2().saturating_sub(15) as u8).min(MAX_SCALE);
        }
        self.rcv.clamp = clamp.min(UNSCALED_MAX << self.rcv.scale);
        self.rcv.ssthresh = self.rcv.wnd;
    }

    /// The connection stands.
    pub(super) fn init_space(&mut self) {
        self.expand_buffer();
        let advmss = self.config.announced_mss() - self.option_len();
        let full = self.window_of(self.rcv.buffer);
        let rcv = &mut self.rcv;
        rcv.advmss = advmss;
        rcv.clamp = rcv.clamp.min(full);
        if rcv.clamp > 2 * u64::from(advmss) && rcv.clamp + u64::from(advmss) > full {
            rcv.clamp = (2 * u64::from(advmss)).max(full - u64::from(advmss));
        }
        rcv.ssthresh = rcv.ssthresh.min(rcv.clamp);
        rcv.space = rcv.ssthresh.min(rcv.wnd).min(10 * u64::from(advmss));
        (rcv.space_seq, rcv.space_us) = (rcv.copied, self.tcb.now_ns / 1_000);
        rcv.mss = advmss.min(self.tcb.mss).min((rcv.wnd / 2) as u32).clamp(MIN_MSS, DEFAULT_MSS);
    }

    /// What is left of the window that was last advertised.
    pub(super) fn window_left(&self) -> u64 {
        (self.rcv.wup + self.rcv.wnd).saturating_sub(self.rcv.nxt)
    }

    /// Buffer that isn't occupied, as a window.
    fn free_space(&self) -> u64 {
        let held = self.rcv.nxt - self.rcv.copied + self.rcv.out_of_order;
        let occupied = (held as f64 * self.rcv.occupied) as u64;
        self.window_of(self.rcv.buffer.saturating_sub(occupied))
    }

    /// The window that could be advertised now.
    pub(super) fn select_window(&self) -> u64 {
        let allowed = self.window_of(self.rcv.buffer);
        let full = self.rcv.clamp.min(allowed);
        let mss = u64::from(self.rcv.mss).min(full);
        let mut free = self.free_space();
        if free < full / 2 {
            free &= !((1 << self.rcv.scale) - 1);
            if free < allowed / 16 || free < mss {
                return 0;
            }
        }
        free = free.min(self.rcv.ssthresh);
        if self.rcv.scale > 0 {
            return free.next_multiple_of(1 << self.rcv.scale);
        }
        // The last offer is kept while it is within a segment of what is free.
        let window = self.rcv.wnd;
        if window + mss <= free || window > free {
            free - free % mss.max(1)
        } else if mss == full && free > window + full / 2 {
            free
        } else {
            window
        }
    }

    /// The window for a segment that leaves now; it never takes back what was offered.
    pub(super) fn advertise(&mut self) -> u32 {
        let left = self.window_left();
        let mut window = self.select_window();
        if window < left {
            window = left.next_multiple_of(1 << self.rcv.scale);
        }
        if self.rcv.scale == 0 {
            window = window.min(UNSCALED_MAX);
        }
        if window < self.window_of(self.rcv.buffer) / 2 && self.free_space() < self.window_of(self.rcv.buffer) / 2 {
            self.rcv.no_longer_quick();
        }
        (self.rcv.wnd, self.rcv.wup) = (window, self.rcv.nxt);
        window as u32
    }

    /// The first full-sized segment tells what packets occupy, and so how much of the buffer is window. What the application
    /// has asked for is forgotten by that until it asks again.
    pub(super) fn learn_truesize(&mut self, payload: u32) {
        let mut occupied = self.config.truesize_ratio;
        if payload < FULL_PAYLOAD {
            // A smaller packet lies in a buffer that is half empty.
            let buffer = (payload + PACKET_RECORD).next_power_of_two() + BUFFER_RECORD;
            let usual = (FULL_PAYLOAD + PACKET_RECORD).next_power_of_two() + BUFFER_RECORD;
            occupied *= f64::from(buffer) / f64::from(payload.max(1)) * f64::from(FULL_PAYLOAD) / f64::from(usual);
        }
        self.rcv.occupied = occupied;
        self.rcv.ratio = ((256.0 / occupied) as u64).clamp(1, 255);
        self.rcv.clamp = self.window_of(self.rcv.buffer);
        self.rcv.space = self.rcv.space.min(self.rcv.clamp);
    }

    /// What the application asks for, in the kernel's bounds.
    fn asked_window(&self) -> Option<u64> {
        self.config.rwin.map(|window| u64::from(window).max(MIN_CLAMP))
    }

    /// Our programs see to it after each read that their window is kept to.
    pub(super) fn hold_window(&mut self) {
        let Some(rwin) = self.asked_window() else { return };
        if rwin < self.rcv.clamp {
            self.rcv.ssthresh = self.rcv.ssthresh.min(rwin);
        } else if rwin > self.rcv.clamp {
            self.rcv.ssthresh = self.rcv.ssthresh.max(self.rcv.wnd.min(rwin));
        }
        self.rcv.clamp = rwin;
    }

    /// A segment has arrived: the window may grow by two.
    pub(super) fn grow_window(&mut self) {
        let room = self.rcv.clamp.min(self.free_space()).saturating_sub(self.rcv.ssthresh);
        if room > 0 {
            self.rcv.ssthresh += room.min(2 * u64::from(self.rcv.advmss));
            self.rcv.keep_quick();
        }
    }

    /// The RTT as the receiver sees it, from the echo of its own timestamp.
    pub(super) fn measure_rtt_by_echo(&mut self, segment: &Segment) {
        if !self.timestamps || segment.ts_ecr == 0 || segment.ts_ecr == self.rcv.last_ecr {
            return;
        }
        self.rcv.last_ecr = segment.ts_ecr;
        if u32::from(segment.len) >= self.rcv.mss {
            let ms = self.clock_ms().saturating_sub(segment.ts_ecr).max(1);
            self.update_receiver_rtt(ms.saturating_mul(1_000), false);
        }
    }

    /// Without timestamps: a window's worth takes at least one round trip.
    pub(super) fn measure_rtt_by_window(&mut self) {
        let (since_us, until) = self.rcv.rtt_mark;
        let now_us = self.tcb.now_us();
        if since_us > 0 {
            if self.rcv.nxt < until {
                return;
            }
            self.update_receiver_rtt(((now_us - since_us) as u32).max(1), true);
        }
        self.rcv.rtt_mark = (now_us, self.rcv.nxt + self.rcv.wnd);
    }

    fn update_receiver_rtt(&mut self, sample_us: u32, by_window: bool) {
        let (old, m) = (self.rcv.rtt_us, sample_us.saturating_mul(8));
        if old == 0 || m < old {
            self.rcv.rtt_us = m;
        } else if !by_window && self.rcv.nxt == self.rcv.copied {
            self.rcv.rtt_us = old - (old >> 3) + sample_us;
        }
    }

    /// The application has read: once per RTT the buffer is made fit for what it read.
    pub(super) fn adjust_space(&mut self) {
        let now_us = self.tcb.now_us();
        let rcv = &self.rcv;
        if rcv.rtt_us == 0 || now_us - rcv.space_us < u64::from(rcv.rtt_us >> 3) {
            return;
        }
        let waiting = rcv.nxt - rcv.copied;
        let copied = (rcv.copied - rcv.space_seq).saturating_sub(waiting);
        if copied > rcv.space {
            let old = rcv.space;
            self.rcv.space = copied;
            self.grow_buffer(copied, old);
        }
        (self.rcv.space_seq, self.rcv.space_us) = (self.rcv.copied, now_us);
    }

    /// Data beyond a hole must have room, too.
    pub(super) fn grow_for_holes(&mut self) {
        let space = self.rcv.space;
        self.grow_buffer(space, space);
    }

    /// Room for twice what was read in an RTT, and for as much again as that has grown.
    fn grow_buffer(&mut self, new: u64, old: u64) {
        let lean = self.config.tuning == BufferTuning::Lean;
        if self.rcv.locked || old == 0 || !(lean || new > old) {
            return;
        }
        let mut window = new * 2 + if lean { 0 } else { 16 * u64::from(self.rcv.advmss) };
        let growth = u128::from(window) * u128::from(new - old) / u128::from(old);
        window = window.saturating_add((growth as u64).saturating_mul(2));
        if let Some(last) = self.rcv.pieces.back().filter(|_| lean) {
            window += last.end - self.rcv.nxt;
        }
        let buffer = ((window << 8) / self.rcv.ratio).min(self.config.rmem.1);
        if buffer > self.rcv.buffer {
            self.rcv.buffer = buffer;
            self.rcv.clamp = self.window_of(buffer).min(UNSCALED_MAX << self.rcv.scale);
        }
    }
}
