//! Sending: how much, when, in which bursts.
//!
//! What this leaves out: the bound on what waits in the own device (`tcp_limit_output_bytes`), so a local link that is slower
//! than the path belongs into the path; writes that leave a buffer half full because its pages are many; kernels before 6.10, whose
//! bursts end where a buffer does. It matters above some 500 Mbit/s, where a burst more or less decides which packet is dropped.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_write_xmit` | 9293 §3.8.6 | [`Endpoint::write_xmit`] |
//! | `tcp_tso_autosize`, `tcp_tso_should_defer`, `tcp_grow_skb` | – | [`Endpoint::burst_limit`], [`Endpoint::should_defer`], [`Endpoint::first_buffer`] |
//! | `tcp_nagle_test` | 896, with Minshall's change | [`Endpoint::nagle_holds`] |
//! | `tcp_pacing_check` | – | [`Endpoint::is_paced_out`]: the first ten segments aren't paced, as with fq |
//! | `tcp_cwnd_validate`, `tcp_cwnd_restart` | 7661; 5681 §4.1 | [`Endpoint::validate_cwnd`], [`Endpoint::restart_after_idle`] |
//! | `tcp_should_expand_sndbuf`, `tcp_sndbuf_expand` | – | [`Endpoint::grow_send_buffer`], [`Endpoint::expand_buffer`] |

use super::pmtu::MtuProbe;
use super::scoreboard::{Id, SentSegment, mark};
use super::state::{Endpoint, Kind, Out, Phase, SenderLimit};
use crate::cc::{CaEvent, CaState};
use crate::segment::{Segment, TIMESTAMPS, flag};

/// Ways of sending that look at less than the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Push {
    /// One burst as a probe, whatever the window of congestion says.
    Probe,
}

/// The largest burst that a device takes, bytes.
const GSO_MAX: u64 = 65_536;
/// Segments that go out before pacing begins.
const UNPACED: u64 = 10;
/// A program that found no room tries again after so long at the latest: ours looks whether anybody wants it to stop, ns.
const GLANCE_NS: u64 = 50_000_000;
/// What the kernel's own records of a buffer take: `struct sk_buff` and `struct skb_shared_info`, bytes.
const BUFFER_RECORD: u64 = 256;
const SHARED_RECORD: u64 = 320;

impl Endpoint {
    /// Bytes of options on every segment.
    pub(super) const fn option_len(&self) -> u32 {
        if self.timestamps { TIMESTAMPS } else { 0 }
    }

    pub(super) const fn has_unsent(&self) -> bool {
        self.snd.write_seq > self.tcb.snd_nxt
    }

    const fn window_end(&self) -> u64 {
        self.tcb.snd_una + self.snd.snd_wnd
    }

    /// Whether the next segment lies inside of the peer's window.
    pub(super) fn fits_window(&self) -> bool {
        let len = (self.snd.write_seq - self.tcb.snd_nxt).min(u64::from(self.tcb.mss));
        self.tcb.snd_nxt + len <= self.window_end()
    }

    /// Sends what may go, and sees to it that somebody asks when the peer's window is closed.
    pub(super) fn push_pending(&mut self, out: &mut Out) {
        if self.has_unsent() {
            self.write_xmit(None, out);
            self.check_window_probe();
        }
    }

    /// Whether the pacing holds the next packet back; sets its timer if so.
    fn is_paced_out(&mut self) -> bool {
        if !self.tcb.pacing || self.tcb.wstamp_ns <= self.tcb.now_ns {
            return false;
        }
        self.timers.pacing = self.tcb.wstamp_ns;
        true
    }

    /// The largest burst that leaves room for the headers (`sk_gso_max_size`), bytes.
    const fn largest_burst(&self) -> u64 {
        GSO_MAX - 1 - self.config.header_room
    }

    /// Segments of a burst: about a millisecond's, more on short paths.
    fn burst_limit(&self) -> u32 {
        let largest = self.largest_burst();
        let mut bytes = self.tcb.pacing_rate >> 10;
        let halvings = if self.tcb.min_rtt_us == u32::MAX { u32::MAX } else { self.tcb.min_rtt_us >> 9 };
        if halvings < 32 {
            bytes = bytes.saturating_add(largest >> halvings);
        }
        let segments = (bytes.min(largest) / u64::from(self.tcb.mss)) as u32;
        segments.max(self.cc.min_tso_segs(&self.tcb))
    }

    /// Sends new data as far as windows, pacing and Nagle allow.
    pub(super) fn write_xmit(&mut self, push: Option<Push>, out: &mut Out) {
        let max_segs = self.burst_limit();
        let (mut sent, mut cwnd_limited, mut window_limited) = (0, false, false);
        if push.is_none() && !self.is_paced_out() {
            match self.probe_mtu(out) {
                MtuProbe::Wait => return,
                MtuProbe::Sent => sent = 1,
                MtuProbe::No => {}
            }
        }
        while self.has_unsent() {
            if self.is_paced_out() {
                break;
            }
            let in_flight = self.tcb.in_flight();
            let mut quota = 0;
            if in_flight < self.tcb.snd_cwnd {
                let half = (self.tcb.snd_cwnd >> 1).max(1);
                quota = half.min(self.tcb.snd_cwnd - in_flight);
            } else if push == Some(Push::Probe) {
                quota = 1;
            }
            if quota == 0 {
                break;
            }
            if !self.fits_window() {
                window_limited = true;
                break;
            }
            let (unsent, mss) = (self.snd.write_seq - self.tcb.snd_nxt, u64::from(self.tcb.mss));
            if unsent <= mss {
                if unsent < mss && self.nagle_holds() {
                    break;
                }
            } else if push.is_none() && self.should_defer(max_segs, quota, &mut cwnd_limited, &mut window_limited) {
                break;
            }
            let len = self.burst_len(unsent, quota.min(max_segs));
            sent += self.send_burst(len, out);
            if push.is_some() {
                break;
            }
        }
        self.note_waiting(window_limited);
        cwnd_limited |= self.tcb.in_flight() >= self.tcb.snd_cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_cwnd(cwnd_limited);
        }
        if sent > 0 {
            if matches!(self.tcb.ca_state, CaState::Cwr | CaState::Recovery) {
                self.snd.prr_out += sent;
            }
            if push.is_none() {
                self.schedule_probe(false);
            }
        }
    }

    fn note_waiting(&mut self, window_limited: bool) {
        let waiting = if window_limited {
            SenderLimit::Window
        } else if !self.has_unsent() && self.snd.no_space {
            SenderLimit::Buffer
        } else if self.tcb.packets_out > 0 || self.has_unsent() {
            SenderLimit::Network
        } else {
            SenderLimit::Idle
        };
        self.wait_for(waiting);
    }

    /// Whether a small segment waits because another small one is on the way.
    fn nagle_holds(&self) -> bool {
        let small_out = self.snd.small_end > self.tcb.snd_una && self.snd.small_end <= self.tcb.snd_nxt;
        self.config.nagle && self.tcb.packets_out > 0 && small_out && !self.is_last_write()
    }

    /// Whether everything that the application will ever write is in the buffer: the FIN goes with it.
    const fn is_last_write(&self) -> bool {
        self.snd.ends && self.snd.write_seq == self.snd.app_limit
    }

    /// Bytes of the next burst.
    fn burst_len(&self, unsent: u64, segs: u32) -> u64 {
        let mss = u64::from(self.tcb.mss);
        let most = mss * u64::from(segs);
        let needed = unsent.min(self.window_end() - self.tcb.snd_nxt);
        if most <= needed {
            return most;
        }
        let partial = needed % mss;
        if partial != 0 && needed > mss && self.nagle_holds() { needed - partial } else { needed }
    }

    /// Whether to wait for the next acknowledgement, for the sake of a larger burst.
    fn should_defer(&self, max_segs: u32, quota: u32, cwnd_limited: &mut bool, window_limited: &mut bool) -> bool {
        let tcb = &self.tcb;
        if tcb.ca_state >= CaState::Recovery || tcb.now_ns > tcb.wstamp_ns + 1_000_000 {
            return false;
        }
        let mss = u64::from(tcb.mss);
        let send_win = self.window_end() - tcb.snd_nxt;
        let cong_win = u64::from(tcb.snd_cwnd - tcb.in_flight().min(tcb.snd_cwnd)) * mss;
        let limit = send_win.min(cong_win);
        let chunk = self.snd.snd_wnd.min(u64::from(tcb.snd_cwnd) * mss) / 3;
        if limit >= u64::from(max_segs) * mss || limit >= chunk {
            return false;
        }
        let (first, is_last) = self.first_buffer(u64::from(quota.min(max_segs)) * mss);
        if !is_last && limit >= first {
            // More wouldn't make it any larger.
            return false;
        }
        let Some(head) = self.snd.board.front() else { return false };
        let srtt_ns = u64::from(tcb.srtt_us >> 3) * 1_000;
        // Only if that acknowledgement is due within a millisecond.
        if (head.sent_ns + srtt_ns).saturating_sub(tcb.now_ns) > (srtt_ns / 2).min(1_000_000) {
            return false;
        }
        if cong_win < send_win {
            if cong_win <= first {
                *cwnd_limited = true;
                return true;
            }
        } else if send_win <= first {
            *window_limited = true;
            return true;
        }
        !(is_last && self.is_last_write())
    }

    /// Bytes of the buffer that is sent next, filled up to `wanted` from the one behind it (`tcp_grow_skb`), and whether
    /// there is none behind it then.
    fn first_buffer(&self, wanted: u64) -> (u64, bool) {
        let begin = self.tcb.snd_nxt;
        let Some(first) = self.snd.buffers.front() else { return (0, true) };
        let len = first - begin;
        match self.snd.buffers.get(1) {
            None => (len, true),
            Some(next) if len < wanted => {
                let grown = wanted.min(next - begin);
                (grown, grown == next - begin && self.snd.buffers.len() == 2)
            }
            Some(_) => (len, false),
        }
    }

    /// Sends so many bytes as one burst; returns how many segments that were.
    fn send_burst(&mut self, len: u64, out: &mut Out) -> u32 {
        self.send_cut(len, u64::from(self.tcb.mss), out)
    }

    /// The same in segments of another size.
    pub(super) fn send_cut(&mut self, len: u64, mss: u64, out: &mut Out) -> u32 {
        let (begin, prior_out) = (self.tcb.snd_nxt, self.tcb.packets_out);
        if self.tcb.in_flight() == 0 {
            self.cc_event(CaEvent::TxStart);
        }
        self.note_reply();
        let departure = self.depart(len, len.div_ceil(mss));
        let mut at = 0;
        while at < len {
            let size = mss.min(len - at);
            let mut sent = SentSegment::new(begin + at, size as u16);
            sent.sent_ns = departure;
            if at == 0 {
                sent.flags |= mark::HEAD;
            }
            let more = at + size < len;
            let push = !more && (len > mss || begin + len == self.snd.app_limit);
            self.emit_data((begin + at, size as u16), true, push, out);
            self.rate_sent(&mut sent);
            self.snd.board.push(sent);
            self.tcb.packets_out += 1;
            at += size;
        }
        self.tcb.snd_nxt = begin + len;
        while self.snd.buffers.front().is_some_and(|end| *end <= begin + len) {
            self.snd.buffers.pop_front();
        }
        if !len.is_multiple_of(mss) {
            self.snd.small_end = self.tcb.snd_nxt;
        }
        if prior_out == 0 || self.timers.kind() == Some(Kind::LossProbe) {
            self.rearm_rto();
        }
        self.grow_send_buffer();
        len.div_ceil(mss) as u32
    }

    /// Books a burst with the pacing; returns when it counts as sent.
    fn depart(&mut self, len: u64, segs: u64) -> u64 {
        let tcb = &mut self.tcb;
        let before = tcb.wstamp_ns;
        tcb.wstamp_ns = before.max(tcb.now_ns);
        let departure = tcb.wstamp_ns;
        tcb.last_send_ns = tcb.now_ns;
        self.counters.data_segs_out += segs;
        let rate = tcb.pacing_rate;
        if tcb.pacing && rate != u64::MAX && rate > 0 && self.counters.data_segs_out >= UNPACED {
            let time = len * 1_000_000_000 / rate;
            let credit = departure - before;
            tcb.wstamp_ns += time - (time / 2).min(credit);
        }
        departure
    }

    /// Puts a segment of payload on the wire. Only what is sent for the first time is marked as capable of ECN, and tells that the
    /// window was reduced.
    ///
    /// # Source
    /// RFC 3168 section 6.1.5; `tcp_ecn_send()` of net/ipv4/tcp_output.c.
    fn emit_data(&mut self, (seq, len): (u64, u16), is_fresh: bool, push: bool, out: &mut Out) {
        let marked = self.snd.ecn && is_fresh;
        let mut segment = Segment::new(self.peer, flag::ACK | if push { flag::PSH } else { 0 }, seq, 0);
        segment.len = len;
        if marked && self.snd.send_cwr {
            segment.flags |= flag::CWR;
            self.snd.send_cwr = false;
        }
        self.finish_segment(&mut segment);
        let mut packet = segment.packet(self.option_len(), self.flow);
        packet.dont_fragment = self.config.pmtud;
        packet.ect = marked;
        out.push(packet);
        self.ack_went_out();
    }

    /// Sends a segment again; false if it can't.
    pub(super) fn retransmit(&mut self, id: Id, out: &mut Out) -> bool {
        if !self.send_again(id, out) {
            return false;
        }
        let sent = self.snd.board.get_mut(id);
        if !sent.has(mark::RETRANS) {
            self.tcb.retrans_out += 1;
        }
        sent.flags |= mark::RETRANS;
        if self.snd.retrans_stamp == 0 {
            self.snd.retrans_stamp = self.clock_ms().max(1);
        }
        self.snd.undo_retrans = self.snd.undo_retrans.max(0) + 1;
        true
    }

    /// Sends a segment again without taking the first copy for lost: a probe.
    pub(super) fn send_again(&mut self, id: Id, out: &mut Out) -> bool {
        let mut sent = *self.snd.board.get(id);
        if self.window_end() <= sent.seq && sent.seq != self.tcb.snd_una {
            return false;
        }
        sent.sent_ns = self.depart(u64::from(sent.len), 1);
        self.emit_data((sent.seq, sent.len), false, false, out);
        self.rate_sent(&mut sent);
        sent.flags |= mark::EVER_RETRANS;
        *self.snd.board.get_mut(id) = sent;
        self.snd.board.relink_last(id);
        self.counters.retransmits += 1;
        true
    }

    /// Sends again what is taken for lost, as the window allows.
    pub(super) fn retransmit_queue(&mut self, out: &mut Out) {
        let Some(mut id) = self.snd.board.resume() else { return };
        let mut rearm = false;
        let mut hole = false;
        loop {
            if self.is_paced_out() {
                break;
            }
            if !hole {
                self.snd.board.set_resume(Some(id));
            }
            if self.tcb.snd_cwnd <= self.tcb.in_flight() || self.tcb.retrans_out >= self.tcb.lost_out {
                break;
            }
            let sent = *self.snd.board.get(id);
            if !sent.has(mark::LOST) {
                // What is neither lost nor delivered may become lost: the next search begins here.
                hole |= !sent.has(mark::SACKED | mark::RETRANS);
            } else if !sent.has(mark::SACKED | mark::RETRANS) {
                if !self.retransmit(id, out) {
                    break;
                }
                if matches!(self.tcb.ca_state, CaState::Cwr | CaState::Recovery) {
                    self.snd.prr_out += 1;
                }
                rearm |= id == self.snd.board.first_id() && self.timers.kind() != Some(Kind::Reordering);
            }
            match self.snd.board.following(id) {
                Some(next) => id = next,
                None => {
                    if !hole {
                        self.snd.board.set_resume(None);
                    }
                    break;
                }
            }
        }
        if rearm {
            self.set_timer(Kind::Retransmit, self.rtt.rto_ns);
        }
    }

    /// A segment without payload, one byte before the window: the peer answers with its window.
    pub(super) fn send_window_probe(&mut self, out: &mut Out) {
        let mut segment = Segment::new(self.peer, flag::ACK, self.tcb.snd_una.saturating_sub(1), 0);
        segment.flags |= flag::PROBE;
        self.finish_segment(&mut segment);
        out.push(segment.packet(self.option_len(), self.flow));
    }

    /// Keeps account of whether the window was used.
    fn validate_cwnd(&mut self, limited: bool) {
        let tcb = &mut self.tcb;
        if tcb.snd_una >= self.snd.cwnd_usage_seq
            || limited
            || (!tcb.is_cwnd_limited && tcb.packets_out > tcb.max_packets_out)
        {
            tcb.is_cwnd_limited = limited;
            tcb.max_packets_out = tcb.packets_out;
            self.snd.cwnd_usage_seq = tcb.snd_nxt;
        }
        if tcb.limited_by_cwnd() {
            (self.snd.snd_cwnd_used, self.snd.cwnd_stamp) = (0, tcb.now_ns);
            return;
        }
        self.snd.snd_cwnd_used = self.snd.snd_cwnd_used.max(tcb.packets_out);
        let unused = tcb.now_ns - self.snd.cwnd_stamp >= self.rtt.rto_ns;
        if self.config.slow_start_after_idle && unused && !self.cc.controls_rate() {
            if tcb.ca_state == CaState::Open && !self.snd.no_space {
                let used = self.snd.snd_cwnd_used.max(self.config.initcwnd);
                if used < tcb.snd_cwnd {
                    tcb.snd_ssthresh = tcb.current_ssthresh();
                    tcb.snd_cwnd = (tcb.snd_cwnd + used) >> 1;
                }
                self.snd.snd_cwnd_used = 0;
            }
            self.snd.cwnd_stamp = tcb.now_ns;
        }
    }

    /// Cuts the window by half for every RTO of silence.
    pub(super) fn restart_after_idle(&mut self) {
        let tcb = &mut self.tcb;
        let mut idle = tcb.now_ns.saturating_sub(tcb.last_send_ns);
        if !self.config.slow_start_after_idle
            || tcb.packets_out > 0
            || self.cc.controls_rate()
            || self.phase != Phase::Established
            || idle <= self.rtt.rto_ns
            || tcb.last_send_ns == 0
        {
            return;
        }
        self.cc_event(CaEvent::CwndRestart);
        let tcb = &mut self.tcb;
        tcb.snd_ssthresh = tcb.current_ssthresh();
        let restart = self.config.initcwnd.min(tcb.snd_cwnd);
        while idle > self.rtt.rto_ns && tcb.snd_cwnd > restart {
            idle -= self.rtt.rto_ns;
            tcb.snd_cwnd >>= 1;
        }
        tcb.snd_cwnd = tcb.snd_cwnd.max(restart);
        (self.snd.cwnd_stamp, self.snd.snd_cwnd_used) = (tcb.now_ns, 0);
    }

    /// What a buffer costs beside its payload, bytes.
    const fn buffer_overhead(&self) -> u64 {
        (self.config.header_room + SHARED_RECORD).next_power_of_two() + BUFFER_RECORD
    }

    /// Payload of a whole buffer: as many segments as one burst may have.
    fn whole_buffer(&self) -> u64 {
        let mss = u64::from(self.tcb.mss);
        // No more than half of the peer's window, as each segment.
        let most = self.largest_burst().min((self.snd.max_window / 2).max(mss));
        (most / mss).max(1) * mss
    }

    /// What is in the send buffer, with what the kernel reckons for it: what is out in the bursts in which it left.
    pub(super) fn queued(&self) -> u64 {
        let buffers = u64::from(self.snd.board.bursts) + self.snd.buffers.len() as u64;
        self.snd.write_seq - self.tcb.snd_una + buffers * self.buffer_overhead()
    }

    /// Lets the application write as much as fits, buffer by buffer; what may go leaves meanwhile. Each write begins with the question
    /// whether there was less to send than might have gone: the last one, too, which finds no room. Who has written all asks no more.
    ///
    /// # Source
    /// `tcp_sendmsg_locked()` of net/ipv4/tcp.c, which calls `tcp_rate_check_app_limited()` before it takes anything.
    pub(super) fn fill(&mut self, out: &mut Out) {
        self.check_app_limited();
        while self.add_buffer() {
            if self.phase == Phase::Established {
                self.push_pending(out);
            }
        }
        self.snd.no_space = self.snd.write_seq < self.snd.app_limit;
        self.timers.glance = u64::MAX;
        if self.snd.no_space {
            self.timers.glance = self.tcb.now_ns + GLANCE_NS;
            self.check_app_limited();
        }
    }

    /// Completes the last buffer, or adds one if there is any room: it may exceed it. False if there is none.
    fn add_buffer(&mut self) -> bool {
        if self.snd.write_seq >= self.snd.app_limit {
            return false;
        }
        let whole = self.whole_buffer();
        let begun = self.snd.buffers.len().checked_sub(1).map(|last| match last.checked_sub(1) {
            Some(before) => self.snd.buffers[before],
            None => self.tcb.snd_nxt,
        });
        if let Some(start) = begun
            && self.snd.write_seq < start + whole
        {
            self.snd.write_seq = self.snd.app_limit.min(start + whole);
            if let Some(end) = self.snd.buffers.back_mut() {
                *end = self.snd.write_seq;
            }
            return true;
        }
        let tight = self.snd.write_seq - self.tcb.snd_una < 2 * u64::from(self.tcb.mss);
        if self.queued() >= self.snd.sndbuf && !tight {
            return false;
        }
        self.snd.write_seq = self.snd.app_limit.min(self.snd.write_seq + whole);
        self.snd.buffers.push_back(self.snd.write_seq);
        true
    }

    /// After an acknowledgement: grows the send buffer, and wakes the application when a third of it is free.
    pub(super) fn check_space(&mut self, out: &mut Out) {
        if !self.snd.no_space {
            return;
        }
        self.grow_send_buffer();
        if self.queued() * 3 <= self.snd.sndbuf * 2 {
            self.fill(out);
        }
    }

    /// The buffer grows while the application waits for room and the window isn't full: then it is the buffer that limits.
    fn grow_send_buffer(&mut self) {
        if self.snd.no_space && !self.snd.sndbuf_locked && self.tcb.in_flight() < self.tcb.snd_cwnd {
            self.expand_buffer();
            self.snd.cwnd_stamp = self.tcb.now_ns;
        }
    }

    /// Room for twice the window (BBR: three times), up to the largest allowed.
    pub(super) fn expand_buffer(&mut self) {
        if self.snd.sndbuf_locked {
            return;
        }
        let segs = self.config.initcwnd.max(10).max(self.tcb.snd_cwnd).max(self.snd.reordering + 1);
        let room =
            (u64::from(self.tcb.mss) + self.config.header_room + SHARED_RECORD).next_power_of_two() + BUFFER_RECORD;
        let wanted = u64::from(segs) * u64::from(self.cc.sndbuf_expand()) * room;
        if wanted > self.snd.sndbuf {
            self.snd.sndbuf = wanted.min(self.config.wmem_max);
        }
    }

    /// The clock of timestamps, ms.
    pub(super) const fn clock_ms(&self) -> u32 {
        (self.tcb.now_ns / 1_000_000) as u32 + 1
    }
}
