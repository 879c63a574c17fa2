//! Receiving: putting the stream together, and when to acknowledge.
//!
//! What this leaves out: merging of segments before TCP sees them (GRO), so a receiver on a fast line acknowledges more often
//! here than in a kernel; a fourth block of SACK where there are no timestamps; pruning when the buffer overflows. It matters above
//! some 100 Mbit/s with an RTT below a millisecond, and where buffers are fixed and small.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_data_queue`, `tcp_data_queue_ofo` | 9293 §3.10.7.4 | [`Endpoint::on_data`] |
//! | `__tcp_ack_snd_check`, `tcp_send_delayed_ack` | 1122 §4.2.3.2, 5681 §4.2 | [`Endpoint::check_ack`]: 40 ms, quick at the beginning |
//! | `tcp_measure_rcv_mss` | 1122 §4.2.3.2 | [`Endpoint::measure_mss`]: of two full segments one is acknowledged |
//! | `tcp_incr_quickack` | – | up to 16 segments are acknowledged one by one when data begins to flow |
//! | `tcp_sack_new_ofo_skb` | 2018 §4 | [`Receiver::report`]: the latest block first |
//! | `compressed_ack_timer` | – | up to 44 reports of a hole in one, after 5 % of the RTT, at most 1 ms |
//! | `tcp_cleanup_rbuf` | 9293 §3.8.6.2.2 | [`Endpoint::read`] |

use super::state::{ATO_MIN_NS, DEFAULT_MSS, Endpoint, Kind, MIN_MSS, NEVER, Out, Pending};
use crate::cc::JIFFY_NS;
use crate::segment::{MAX_SACKS, Range, Segment, TCP_HEADER, flag};

/// The longest delay of an acknowledgement.
const DELAY_MAX_NS: u64 = 200_000_000;
/// Duplicates that are sent at once before reports are compressed.
const UNCOMPRESSED: u32 = 3;
/// Reports in one at most (`tcp_comp_sack_nr`).
const MAX_COMPRESSED: u32 = 44;

impl Endpoint {
    /// How far the application may read.
    pub(crate) fn set_read_limit(&mut self, now_ns: u64, limit: u64, out: &mut Out) {
        self.rcv.read_limit = limit;
        if self.rcv.copied < self.rcv.nxt.min(limit) {
            self.tcb.now_ns = now_ns;
            self.read(out);
        }
    }

    /// Payload has arrived.
    pub(super) fn on_data(&mut self, segment: &Segment, ce: bool) {
        let (start, end) = (segment.seq, segment.seq + u64::from(segment.len));
        self.rcv.segments += 1;
        if self.snd.ecn {
            self.rcv.ece = (self.rcv.ece && !segment.has(flag::CWR)) || ce;
        }
        if end <= self.rcv.nxt {
            // All of it was there: the sender should know that it sent in vain.
            self.rcv.dsack = self.sack.then_some(Range { start, end });
            self.rcv.enter_quick();
            self.rcv.pending.scheduled = true;
            return;
        }
        if end > self.rcv.wup + self.rcv.wnd.max(u64::from(self.rcv.mss)) || start > self.rcv.nxt + self.window_left() {
            self.rcv.enter_quick();
            self.rcv.pending.scheduled = true;
            return;
        }
        if start > self.rcv.nxt {
            self.rcv.pending.scheduled = true;
            let (whole, twice) = self.rcv.insert(Range { start, end });
            if self.sack {
                self.rcv.dsack = twice.or(self.rcv.dsack);
                self.rcv.report(whole);
            }
            self.note_data(segment);
            self.grow_for_holes();
            return;
        }
        if start < self.rcv.nxt && self.sack {
            self.rcv.dsack = Some(Range { start, end: self.rcv.nxt });
        }
        self.rcv.nxt = end;
        self.note_data(segment);
        if !self.rcv.pieces.is_empty() {
            self.rcv.join();
            if self.rcv.pieces.is_empty() {
                // The hole is filled: the sender waits for that.
                self.rcv.pending.now = true;
            }
        }
    }

    /// What every segment with payload tells: MSS, pauses, room for the window.
    fn note_data(&mut self, segment: &Segment) {
        self.rcv.pending.scheduled = true;
        self.measure_mss(segment);
        if !self.timestamps {
            self.measure_rtt_by_window();
        }
        let now = self.tcb.now_ns;
        let rcv = &mut self.rcv;
        if rcv.ato_ns == 0 {
            rcv.add_quick();
            rcv.ato_ns = ATO_MIN_NS;
        } else {
            let pause = now - rcv.last_data_ns;
            if pause <= ATO_MIN_NS / 2 {
                rcv.ato_ns = rcv.ato_ns / 2 + ATO_MIN_NS / 2;
            } else if pause < rcv.ato_ns {
                rcv.ato_ns = (rcv.ato_ns / 2 + pause).min(self.rtt.rto_ns);
            } else if pause > self.rtt.rto_ns {
                rcv.add_quick();
            }
        }
        rcv.last_data_ns = now;
        if segment.len >= 128 {
            self.grow_window();
        }
    }

    /// Learns the peer's MSS: a longer segment than any before is one of a full size, and so are two shorter ones in a row that are
    /// equally long, if nothing says that the second is the rest of what the peer had to say.
    ///
    /// # Source
    /// `tcp_measure_rcv_mss()` of net/ipv4/tcp_input.c: a shorter segment may be a full one from 556 bytes on, its TCP header with
    /// options counted, and without PSH from 108 on.
    fn measure_mss(&mut self, segment: &Segment) {
        let len = u32::from(segment.len);
        let with_header = len + TCP_HEADER + self.option_len();
        let rcv = &mut self.rcv;
        let before = std::mem::take(&mut rcv.last_len);
        if len >= rcv.mss {
            if len != rcv.mss {
                self.learn_truesize(len);
            }
            let rcv = &mut self.rcv;
            rcv.mss = len.min(rcv.advmss);
            // A lone full segment with PSH ends what the sender had for us.
            rcv.pending.pushed |= segment.has(flag::PSH);
            return;
        }
        let may_be_full =
            with_header >= DEFAULT_MSS + TCP_HEADER || (with_header >= MIN_MSS + TCP_HEADER && !segment.has(flag::PSH));
        if may_be_full {
            rcv.last_len = len;
            if len == before {
                rcv.mss = len;
                return;
            }
        }
        rcv.pending.pushed_twice |= rcv.pending.pushed;
        rcv.pending.pushed = true;
    }

    /// Sends an acknowledgement now, later, or together with others.
    pub(super) fn check_ack(&mut self, out: &mut Out) {
        let rcv = &self.rcv;
        if !rcv.pending.scheduled {
            return;
        }
        let two = rcv.nxt - rcv.wup > u64::from(rcv.mss) && self.select_window() >= self.rcv.wnd;
        if two || rcv.is_quick() || rcv.pending.now {
            return self.send_ack(out);
        }
        if rcv.pieces.is_empty() {
            return self.delay_ack(out);
        }
        if !self.sack || rcv.compressed >= MAX_COMPRESSED {
            return self.send_ack(out);
        }
        let rcv = &mut self.rcv;
        if rcv.compressed_nxt != rcv.nxt {
            (rcv.compressed_nxt, rcv.duplicates) = (rcv.nxt, 0);
        }
        if rcv.duplicates < UNCOMPRESSED {
            rcv.duplicates += 1;
            return self.send_ack(out);
        }
        rcv.compressed += 1;
        if self.timers.compressed_ack == NEVER {
            let mut rtt = rcv.rtt_us;
            if self.tcb.srtt_us > 0 {
                rtt = rtt.min(self.tcb.srtt_us);
            }
            let delay = (u64::from(rtt) * 125 / 20).min(1_000_000);
            self.timers.compressed_ack = self.tcb.now_ns + delay;
        }
    }

    fn delay_ack(&mut self, out: &mut Out) {
        let mut ato = self.rcv.ato_ns.max(ATO_MIN_NS);
        if ato > ATO_MIN_NS {
            let slow = self.rcv.interactive || self.rcv.pending.pushed;
            let mut most = if slow { DELAY_MAX_NS } else { 500_000_000 };
            if self.tcb.srtt_us > 0 {
                most = most.min((u64::from(self.tcb.srtt_us >> 3) * 1_000).max(ATO_MIN_NS));
            }
            ato = ato.min(most);
        }
        ato = ato.min(DELAY_MAX_NS);
        let jiffy = self.tcb.jiffies() * JIFFY_NS;
        let mut due = jiffy + super::rtt::ticks(ato);
        if self.timers.delayed_ack != NEVER {
            if self.timers.delayed_ack <= jiffy + ato / 4 {
                return self.send_ack(out);
            }
            due = due.min(self.timers.delayed_ack);
        }
        self.timers.delayed_ack = due;
    }

    pub(super) fn delayed_ack_timeout(&mut self, out: &mut Out) {
        if !self.rcv.pending.scheduled {
            return;
        }
        if self.rcv.interactive {
            self.rcv.interactive = false;
            self.rcv.ato_ns = ATO_MIN_NS;
        } else {
            self.rcv.ato_ns = (self.rcv.ato_ns * 2).min(self.rtt.rto_ns);
        }
        self.send_ack(out);
    }

    /// What has come is acknowledged now, unless it was: the FIN behind the last byte waits for nothing.
    pub(crate) fn acknowledge_all(&mut self, now_ns: u64, out: &mut Out) {
        self.tcb.now_ns = now_ns;
        if self.rcv.nxt > self.rcv.wup {
            self.send_ack(out);
        }
    }

    /// Sends an acknowledgement without payload.
    pub(super) fn send_ack(&mut self, out: &mut Out) {
        let mut segment = Segment::new(self.peer, flag::ACK, self.tcb.snd_nxt, 0);
        self.finish_segment(&mut segment);
        if self.sack {
            if let Some(twice) = self.rcv.dsack.take() {
                segment.add_sack(twice, true);
            }
            for block in self.rcv.reports[..self.rcv.report_count].iter().take(MAX_SACKS) {
                segment.add_sack(*block, false);
            }
        }
        let blocks = u32::from(segment.sack_count);
        let sacks = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        self.counters.acks_out += 1;
        out.push(segment.packet(self.option_len() + sacks, self.flow));
        self.ack_went_out();
    }

    /// Fills in what every segment says: acknowledgement, window, timestamps.
    pub(super) fn finish_segment(&mut self, segment: &mut Segment) {
        segment.ack = self.rcv.nxt;
        segment.window = self.advertise();
        if self.timestamps {
            (segment.ts_val, segment.ts_ecr) = (self.clock_ms(), self.rcv.ts_recent);
        }
        if self.rcv.ece {
            segment.flags |= flag::ECE;
        }
    }

    /// An acknowledgement has left: nothing is pending any more.
    pub(super) fn ack_went_out(&mut self) {
        let rcv = &mut self.rcv;
        if rcv.compressed > 0 {
            rcv.compressed = 0;
            self.timers.compressed_ack = NEVER;
        }
        if rcv.quick > 0 {
            rcv.quick -= u32::from(rcv.pending.scheduled);
            if rcv.quick == 0 {
                rcv.ato_ns = ATO_MIN_NS;
            }
        }
        rcv.pending = Pending::default();
        self.timers.delayed_ack = NEVER;
    }

    /// Data went out soon after some had come in: this is a conversation, acknowledgements can ride along.
    pub(super) fn note_reply(&mut self) {
        let rcv = &mut self.rcv;
        if rcv.ato_ns > 0 && self.tcb.now_ns - rcv.last_data_ns < rcv.ato_ns {
            rcv.interactive = true;
        }
    }

    /// The application reads what is there.
    pub(super) fn read(&mut self, out: &mut Out) {
        let to = self.rcv.nxt.min(self.rcv.read_limit);
        let copied = to.saturating_sub(self.rcv.copied);
        self.rcv.copied = self.rcv.copied.max(to);
        if copied == 0 {
            return;
        }
        self.adjust_space();
        let rcv = &self.rcv;
        let drained = rcv.copied == rcv.nxt;
        let pushed = rcv.pending.pushed_twice || (rcv.pending.pushed && !rcv.interactive);
        let mut now = rcv.pending.scheduled && (rcv.nxt - rcv.wup > u64::from(rcv.mss) || (pushed && drained));
        if !now {
            let left = self.window_left();
            if 2 * left <= rcv.clamp {
                let window = self.select_window();
                now = window > 0 && window >= 2 * left;
            }
        }
        if now {
            self.send_ack(out);
        }
        self.hold_window();
    }

    /// Everything about an arriving segment of a connection that stands.
    pub(super) fn on_established(&mut self, segment: &Segment, ce: bool, out: &mut Out) {
        if segment.has(flag::PROBE) {
            return self.send_ack(out);
        }
        if self.timestamps && segment.seq <= self.rcv.wup {
            self.rcv.ts_recent = segment.ts_val;
        }
        self.on_ack(segment, out);
        if segment.len > 0 {
            self.measure_rtt_by_echo(segment);
            self.on_data(segment, ce);
        }
        self.push_pending(out);
        self.check_space(out);
        self.check_ack(out);
        if segment.len > 0 {
            self.read(out);
        }
        if self.tcb.packets_out == 0 && self.timers.kind() != Some(Kind::WindowProbe) {
            self.timers.clear();
            self.check_window_probe();
        }
    }
}
