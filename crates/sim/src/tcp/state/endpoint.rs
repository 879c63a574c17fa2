//! One end of one connection: what it knows, and what its program asks of it.
//!
//! What this leaves out: closing, and several threads on one socket; it matters where connections are short and many.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `struct tcp_sock`, `struct tcp_options_received` | 9293 §3.3.1 | [`Endpoint`], [`Sender`] |
//! | `tcp_sendmsg`, `tcp_recvmsg` | 9293 §3.9.1 | [`Endpoint::write_to`], [`Endpoint::received`] |
//! | `tcp_chrono_set` | – | [`Endpoint::wait_for`] |

use super::pmtu::Pmtu;
use super::rack::Rack;
use super::receiver::Receiver;
use super::timers::Timers;
use crate::cc::{CaEvent, CaState, CongestionControl, Tcb};
use crate::segment::{Range, Segment};
use crate::tcp::config::StackConfig;
use crate::tcp::rtt::Rtt;
use crate::tcp::scoreboard::Scoreboard;
use std::collections::VecDeque;
use wt_link::Packet;

/// Where segments that leave are put.
pub(crate) type Out = Vec<Packet<Segment>>;

/// Where the connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Closed,
    SynSent,
    SynReceived,
    Established,
    /// Given up after too many time-outs.
    Failed,
}

/// What an endpoint has counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) data_segs_out: u64,
    pub(crate) acks_out: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) undos: u64,
    /// Time with something to send, and of it waiting for the peer's window or the own buffer, ns.
    pub(crate) busy_ns: u64,
    pub(crate) rwnd_limited_ns: u64,
    pub(crate) sndbuf_limited_ns: u64,
}

/// What the sender waits for while it has something to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::tcp) enum SenderLimit {
    #[default]
    Idle,
    Network,
    Window,
    Buffer,
}

/// The sending side beside [`Tcb`].
#[derive(Debug)]
pub(in crate::tcp) struct Sender {
    pub(in crate::tcp) board: Scoreboard,
    /// How many bytes the application has wanted to write so far.
    pub(in crate::tcp) app_limit: u64,
    /// How far the send buffer is filled.
    pub(in crate::tcp) write_seq: u64,
    /// Where each of its buffers ends of which something wasn't sent yet, in order.
    pub(in crate::tcp) buffers: VecDeque<u64>,
    pub(in crate::tcp) sndbuf: u64,
    pub(in crate::tcp) sndbuf_locked: bool,
    /// Nothing will be written beyond `app_limit`.
    pub(in crate::tcp) ends: bool,
    /// The application found no room.
    pub(in crate::tcp) no_space: bool,
    /// The peer's window, from `snd_una` on.
    pub(in crate::tcp) snd_wnd: u64,
    pub(in crate::tcp) max_window: u64,
    /// The shift of the peer's windows, as its SYN said on arrival.
    pub(in crate::tcp) scale: u8,
    /// The segment that set the window: its sequence number.
    pub(in crate::tcp) window_seq: u64,
    pub(in crate::tcp) reordering: u32,
    pub(in crate::tcp) reord_seen: u32,
    /// Start of the highest segment that was selectively acknowledged.
    pub(in crate::tcp) highest_sack: u64,
    pub(in crate::tcp) sack_cache: [Range; 4],
    pub(in crate::tcp) high_seq: u64,
    pub(in crate::tcp) undo_marker: Option<u64>,
    pub(in crate::tcp) undo_retrans: i64,
    /// When the first packet of this recovery was retransmitted, ms; 0 for none.
    pub(in crate::tcp) retrans_stamp: u32,
    pub(in crate::tcp) prr_delivered: u32,
    pub(in crate::tcp) prr_out: u32,
    pub(in crate::tcp) tlp_high_seq: u64,
    pub(in crate::tcp) tlp_retrans: bool,
    pub(in crate::tcp) frto: bool,
    pub(in crate::tcp) cwnd_usage_seq: u64,
    pub(in crate::tcp) snd_cwnd_used: u32,
    pub(in crate::tcp) cwnd_stamp: u64,
    pub(in crate::tcp) small_end: u64,
    pub(in crate::tcp) send_cwr: bool,
    pub(in crate::tcp) ecn: bool,
    pub(in crate::tcp) waiting: SenderLimit,
    pub(in crate::tcp) waiting_since: u64,
}

/// One end of one connection.
pub(crate) struct Endpoint {
    pub(in crate::tcp) config: StackConfig,
    pub(in crate::tcp) phase: Phase,
    /// Its own number and the peer's.
    pub(in crate::tcp) peer: u32,
    pub(in crate::tcp) flow: u32,
    pub(in crate::tcp) tcb: Tcb,
    pub(in crate::tcp) cc: Box<dyn CongestionControl>,
    pub(in crate::tcp) snd: Sender,
    pub(in crate::tcp) rcv: Receiver,
    pub(in crate::tcp) rtt: Rtt,
    pub(in crate::tcp) rack: Rack,
    pub(in crate::tcp) timers: Timers,
    pub(in crate::tcp) pmtu: Pmtu,
    pub(in crate::tcp) counters: Counters,
    /// When the last SYN left, ns, and how many did so far.
    pub(in crate::tcp) syn_sent_ns: u64,
    pub(in crate::tcp) syns_sent: u32,
    /// What was agreed to.
    pub(in crate::tcp) timestamps: bool,
    pub(in crate::tcp) sack: bool,
}

impl Endpoint {
    /// An end that isn't connected; `peer` is the number of the other end.
    pub(crate) fn new(config: StackConfig, peer: u32, flow: u32, cc: Box<dyn CongestionControl>) -> Self {
        let mss = config.announced_mss();
        let snd = Sender {
            board: Scoreboard::default(),
            app_limit: 0,
            write_seq: 0,
            buffers: VecDeque::new(),
            sndbuf: config.sndbuf.unwrap_or(16_384),
            sndbuf_locked: config.sndbuf.is_some(),
            ends: false,
            no_space: false,
            snd_wnd: 0,
            max_window: 0,
            scale: 0,
            window_seq: 0,
            reordering: 3,
            reord_seen: 0,
            highest_sack: 0,
            sack_cache: [Range::default(); 4],
            high_seq: 0,
            undo_marker: None,
            undo_retrans: -1,
            retrans_stamp: 0,
            prr_delivered: 0,
            prr_out: 0,
            tlp_high_seq: 0,
            tlp_retrans: false,
            frto: false,
            cwnd_usage_seq: 0,
            snd_cwnd_used: 0,
            cwnd_stamp: 0,
            small_end: 0,
            send_cwr: false,
            ecn: false,
            waiting: SenderLimit::Idle,
            waiting_since: 0,
        };
        Self {
            phase: Phase::Closed,
            peer,
            flow,
            tcb: Tcb::new(mss, config.initcwnd),
            cc,
            rcv: Receiver::new(&config, mss),
            rtt: Rtt::default(),
            rack: Rack::default(),
            timers: Timers::default(),
            pmtu: Pmtu::new(&config),
            counters: Counters::default(),
            syn_sent_ns: 0,
            syns_sent: 0,
            timestamps: config.timestamps,
            sack: config.sack,
            snd,
            config,
        }
    }

    /// The number of the other end.
    pub(crate) const fn peer(&self) -> u32 {
        self.peer
    }

    /// Nothing will be written beyond what was announced so far.
    pub(crate) fn end_writing(&mut self) {
        self.snd.ends = true;
    }

    /// Whether the peer has acknowledged all that was written.
    pub(crate) const fn is_acknowledged(&self) -> bool {
        self.tcb.snd_una >= self.snd.app_limit
    }

    pub(crate) fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.phase == Phase::Failed
    }

    pub(crate) const fn tcb(&self) -> &Tcb {
        &self.tcb
    }

    pub(crate) const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Payload that the application has read, bytes.
    pub(crate) const fn received(&self) -> u64 {
        self.rcv.copied
    }

    /// Payload that has arrived in order, bytes.
    pub(crate) const fn arrived(&self) -> u64 {
        self.rcv.nxt
    }

    /// The peer's window as this sender sees it, bytes.
    pub(crate) const fn peer_window(&self) -> u64 {
        self.snd.snd_wnd
    }

    /// The shift by which it reads the peer's windows.
    pub(crate) const fn peer_window_scale(&self) -> u8 {
        self.snd.scale
    }

    /// The shift of the own window.
    pub(crate) const fn window_scale(&self) -> u8 {
        self.rcv.scale
    }

    /// What was agreed to: timestamps, SACK, ECN.
    pub(crate) const fn agreed(&self) -> (bool, bool, bool) {
        (self.timestamps, self.sack, self.snd.ecn)
    }

    /// The MTU that its segments keep to now, bytes.
    pub(crate) const fn path_mtu(&self) -> u32 {
        self.pmtu.mtu
    }

    /// The application wants to write up to this offset of the stream.
    pub(crate) fn write_to(&mut self, now_ns: u64, offset: u64, out: &mut Out) {
        self.tcb.now_ns = now_ns;
        if offset <= self.snd.app_limit {
            return;
        }
        self.snd.app_limit = offset;
        self.restart_after_idle();
        self.fill(out);
        if self.phase == Phase::Established {
            self.push_pending(out);
        }
    }

    /// How many bytes the send buffer has room for: zero until enough was acknowledged.
    pub(crate) fn write_room(&self) -> u64 {
        self.snd.sndbuf.saturating_sub(self.queued())
    }

    /// When something happens by itself next, ns.
    pub(crate) fn due(&self) -> u64 {
        self.timers.due()
    }

    pub(in crate::tcp) fn set_state(&mut self, new: CaState) {
        self.cc.set_state(&mut self.tcb, new);
        self.tcb.ca_state = new;
    }

    pub(in crate::tcp) fn cc_event(&mut self, event: CaEvent) {
        self.cc.cwnd_event(&mut self.tcb, event);
    }

    /// Takes note of what the sender waits for.
    pub(in crate::tcp) fn wait_for(&mut self, waiting: SenderLimit) {
        if self.snd.waiting == waiting {
            return;
        }
        self.settle_waiting();
        self.snd.waiting = waiting;
    }

    /// Books the time until now.
    pub(crate) fn settle_at(&mut self, now_ns: u64) {
        self.tcb.now_ns = self.tcb.now_ns.max(now_ns);
        self.settle_waiting();
    }

    /// The widest window that the peer has advertised, bytes.
    pub(crate) const fn widest_window(&self) -> u64 {
        self.snd.max_window
    }

    /// Books the time since the last change.
    fn settle_waiting(&mut self) {
        let time = self.tcb.now_ns.saturating_sub(self.snd.waiting_since);
        let counters = &mut self.counters;
        match self.snd.waiting {
            SenderLimit::Idle => {}
            SenderLimit::Network => counters.busy_ns += time,
            SenderLimit::Window => {
                (counters.busy_ns, counters.rwnd_limited_ns) =
                    (counters.busy_ns + time, counters.rwnd_limited_ns + time)
            }
            SenderLimit::Buffer => {
                (counters.busy_ns, counters.sndbuf_limited_ns) =
                    (counters.busy_ns + time, counters.sndbuf_limited_ns + time)
            }
        }
        self.snd.waiting_since = self.tcb.now_ns;
    }
}
