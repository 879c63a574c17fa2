//! One connection: its two halves, its handshake, and where its time went.

mod holes;
mod silence;
mod supply;

use self::holes::DoubtfulPause;
pub(crate) use self::silence::LastSilence;
use self::silence::{HangUp, SilenceEnd};
use crate::clock::Clock;
use crate::half::{Half, KnownTimes};
use crate::packet::{Segment, TooBig};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use wt_wire::TcpFlags;

/// From here to an end and back where it isn't known, at the most.
///
/// # Source
/// RFC 6298 section 2.1: what a sender waits for an ACK before it has measured an RTT; its appendix A: longer ones are rare.
const LONGEST_LOOP_NS: u64 = 1_000_000_000;

/// Packets that came again as they were, after which it isn't by chance.
const FEWEST_AGAIN: u64 = 10;

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The one that opened the connection.
    Client,
    /// The other one.
    Server,
}

impl End {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }

    /// `client` or `server`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Where the time of a connection went. All of them together are its duration, and no moment counts twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Shares {
    /// Until the handshake was complete, µs.
    pub handshake_us: u64,
    /// Data under way, nothing in particular holding it back: the path and the congestion window, µs. Also times of which the capture lacks
    /// what was under way.
    pub under_way_us: u64,
    /// The sender had used up the client's receive window, µs.
    pub client_window_us: u64,
    /// The sender had used up the server's receive window, µs.
    pub server_window_us: u64,
    /// The client's window was closed, µs.
    pub client_zero_window_us: u64,
    /// The server's window was closed, µs.
    pub server_zero_window_us: u64,
    /// Losses of the client's data were repaired, µs. Where only its packets were captured: silences before what it retransmitted.
    pub client_repair_us: u64,
    /// Losses of the server's data were repaired, µs. Where only its packets were captured: silences before what it retransmitted.
    pub server_repair_us: u64,
    /// Nothing was under way as seen here until the client sent: its program had nothing to say, if nothing got lost before it
    /// came here, µs.
    pub client_idle_us: u64,
    /// The same until the server sent, µs.
    pub server_idle_us: u64,
    /// Nothing was under way, and nothing came any more, µs.
    pub ending_us: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Nanoseconds {
    handshake: u64,
    under_way: u64,
    window: [u64; 2],
    /// A part of that: the window was less than half of what it had been.
    low_window: [u64; 2],
    zero: [u64; 2],
    repair: [u64; 2],
    idle: [u64; 2],
    /// A part of what is under way: perhaps it was idle.
    unsure: [u64; 2],
    /// Another part: it isn't in the capture.
    hole: u64,
    ending: u64,
}

/// A connection that is followed.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) interface: usize,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// Whether a SYN said who opened it.
    pub(crate) sure: bool,
    /// Its first packet with a time, and the last.
    pub(crate) begun_ns: Option<u64>,
    pub(crate) last_ns: u64,
    clock: Clock,
    /// Packets whose times aren't known; what times tell isn't either then.
    pub(crate) without_time: u64,
    pub(crate) halves: [Half; 2],
    syn_ns: Option<u64>,
    syn_ack_ns: Option<u64>,
    pub(crate) first_rtt_ns: Option<u64>,
    pub(crate) syn_ack_seen: bool,
    pub(crate) too_big: Option<(IpAddr, u32)>,
    pub(crate) too_big_count: u64,
    /// Its state was given up once to bound memory.
    pub(crate) interrupted: bool,
    /// When its state was given up, if it was.
    pub(crate) given_up_ns: Option<u64>,
    /// From the end of a request to the first byte of the answer, summed and counted.
    request_at_ns: Option<u64>,
    pub(crate) answers: crate::samples::Sample,
    time: Nanoseconds,
    doubtful: Option<DoubtfulPause>,
    /// Whose payload came last.
    pub(crate) spoke_last: Option<End>,
    /// Who ended it after the last payload, while nothing was under way.
    pub(crate) hung_up: Option<HangUp>,
    /// From its last packet to the end of the capture, ns, once that is known.
    pub(crate) tail_ns: Option<u64>,
    /// Nothing was under way when its last packet had come.
    pub(crate) is_quiet_at_end: bool,
}

impl Connection {
    pub(crate) fn new(interface: usize, s: &Segment) -> Self {
        let syn = s.has(TcpFlags::SYN);
        let from_client = match (syn, s.has(TcpFlags::ACK)) {
            (true, answer) => !answer,
            // Servers have the smaller port.
            (false, _) => s.src.port() >= s.dst.port(),
        };
        let (client, server) = if from_client { (s.src, s.dst) } else { (s.dst, s.src) };
        Self {
            interface,
            client,
            server,
            sure: syn,
            begun_ns: None,
            last_ns: 0,
            clock: Clock::default(),
            without_time: 0,
            halves: [Half::default(), Half::default()],
            syn_ns: None,
            syn_ack_ns: None,
            first_rtt_ns: None,
            syn_ack_seen: false,
            too_big: None,
            too_big_count: 0,
            interrupted: false,
            given_up_ns: None,
            request_at_ns: None,
            answers: crate::samples::Sample::default(),
            time: Nanoseconds::default(),
            doubtful: None,
            spoke_last: None,
            hung_up: None,
            tail_ns: None,
            is_quiet_at_end: false,
        }
    }

    /// Whether a segment opens another connection between the same ports.
    pub(crate) fn is_reopened_by(&self, s: &Segment) -> bool {
        if !s.has(TcpFlags::SYN) || s.has(TcpFlags::ACK) {
            return false;
        }
        let end = if s.src == self.client { End::Client } else { End::Server };
        let half = self.half(end);
        // Both open it at once (RFC 9293 section 3.5).
        if end == End::Server
            && self.sure
            && !self.syn_ack_seen
            && !self.is_over()
            && half.isn.is_none_or(|isn| isn == s.seq)
        {
            return false;
        }
        let over = self.is_over() || half.counts.packets > 0 && half.isn.is_none();
        half.isn != Some(s.seq) && (over || half.isn.is_some()) || end == End::Server && self.sure
    }

    pub(crate) fn half(&self, end: End) -> &Half {
        let [client, server] = &self.halves;
        if end == End::Client { client } else { server }
    }

    fn half_mut(&mut self, end: End) -> &mut Half {
        let [client, server] = &mut self.halves;
        if end == End::Client { client } else { server }
    }

    /// Payload of both ends, each byte once.
    pub(crate) fn bytes(&self) -> u64 {
        self.halves.iter().map(Half::unique_bytes).sum()
    }

    /// Whether copies of its packets come from a place so far away that files were joined.
    pub(crate) fn has_far_copies(&self) -> bool {
        self.halves.iter().any(|half| half.lately.is_afar())
    }

    /// Whether nearly all that takes numbers came twice as the very same packet, SYNs included, and nothing else tells the places apart.
    pub(crate) fn looks_joined(&self) -> bool {
        let sum = |of: fn(&Half) -> u64| self.halves.iter().map(of).sum::<u64>();
        let (again, all) = (sum(|half| half.same_again), sum(|half| half.counts.data_packets));
        let are_syns_twice = self.halves.iter().all(|half| half.isn.is_none() || half.counts.syn_retransmissions > 0);
        again >= FEWEST_AGAIN && again * 5 >= all * 2 && are_syns_twice
    }

    /// Whether nothing but stragglers can come.
    pub(crate) fn is_over(&self) -> bool {
        let [client, server] = &self.halves;
        client.rst || server.rst || client.fin && server.fin && !client.has_outstanding() && !server.has_outstanding()
    }

    /// From here to an end and back, at the least, nanoseconds.
    pub(crate) fn loop_ns(&self, end: End) -> Option<u64> {
        let half = self.half(end.other());
        [half.rtt.min_ns(), half.echo.min_ns()].into_iter().flatten().min()
    }

    /// When a segment came. Without a time it counts as if none had passed.
    fn time_of(&mut self, at_ns: Option<u64>) -> u64 {
        let Some(at_ns) = at_ns else {
            self.without_time += 1;
            return self.last_ns;
        };
        if self.begun_ns.is_none() {
            (self.begun_ns, self.last_ns) = (Some(at_ns), at_ns);
        }
        let (now, is_set_back) = self.clock.read(at_ns, self.last_ns);
        if is_set_back {
            // From before it until after it nothing can be measured.
            (self.syn_ns, self.syn_ack_ns, self.request_at_ns) = (None, None, None);
            self.halves.iter_mut().for_each(|half| half.measure_from(now));
        }
        now
    }

    /// A segment of it; false if it is a copy of one that was captured already, and says nothing.
    pub(crate) fn segment(&mut self, s: &Segment, at_ns: Option<u64>, room: &mut usize) -> bool {
        let end = if s.src == self.client { End::Client } else { End::Server };
        let now = self.time_of(at_ns);
        let [client, server] = &mut self.halves;
        let (own, other) = if end == End::Client { (client, server) } else { (server, client) };
        if at_ns.is_some() && own.is_copy(other, s, now, self.first_rtt_ns) {
            return false;
        }
        // Packets of several queues may come in the wrong order by a little.
        let now = now.max(self.last_ns);
        let is_keep_alive = self.half(end).is_keep_alive(s);
        self.spend(now, end, s, is_keep_alive);
        self.handshake(end, s, now);
        let (back, forth) = (self.loop_ns(end), self.loop_ns(end.other()));
        let known =
            KnownTimes { first_rtt_ns: self.first_rtt_ns, back_ns: back.unwrap_or(0), forth_ns: forth.unwrap_or(0) };
        if s.len > 0 && !is_keep_alive {
            self.supply(end, s, now, (back, forth, known.rtt_ns()));
        }
        let unseen_before = self.half(end).counts.acked_unseen;
        let [client, server] = &mut self.halves;
        let (forward, reverse) = if end == End::Client { (client, server) } else { (server, client) };
        forward.sent(reverse, s, now, &known, room);
        self.resolve_pause(end, s, unseen_before);
        self.answer(end, s, now, is_keep_alive);
        self.last_ns = now;
        true
    }

    fn handshake(&mut self, end: End, s: &Segment, now: u64) {
        let (syn, ack) = (s.has(TcpFlags::SYN), s.has(TcpFlags::ACK));
        if syn && !ack && end == End::Server {
            // Of two that cross there is no round trip.
            self.syn_ns = None;
        } else if syn && !ack && end == End::Client {
            // Of a SYN that was retransmitted nobody knows which one was answered.
            let is_first = self.syn_ns.is_none() && !self.syn_ack_seen && self.half(End::Server).isn.is_none();
            self.syn_ns = is_first.then_some(now);
        } else if syn && ack && end == End::Server {
            self.syn_ack_ns = if self.syn_ack_seen { None } else { Some(now) };
            self.syn_ack_seen = true;
        } else if ack && end == End::Client && self.first_rtt_ns.is_none() && self.syn_ack_seen {
            if let (Some(begun), Some(_)) = (self.syn_ns, self.syn_ack_ns) {
                self.first_rtt_ns = Some(now.saturating_sub(begun));
            }
            self.syn_ack_ns = None;
        }
    }

    /// How long the server takes from the end of a request to the first byte of its answer.
    fn answer(&mut self, end: End, s: &Segment, now: u64, is_keep_alive: bool) {
        if s.len == 0 || is_keep_alive {
            return;
        }
        self.spoke_last = Some(end);
        match (end, self.request_at_ns) {
            (End::Client, _) => self.request_at_ns = Some(now),
            (End::Server, Some(asked)) => {
                self.answers.push(now.saturating_sub(asked));
                self.request_at_ns = None;
            }
            (End::Server, None) => {}
        }
    }

    /// Puts the time since the last packet where it belongs.
    fn spend(&mut self, now: u64, by: End, s: &Segment, is_keep_alive: bool) {
        let gap = now.saturating_sub(self.last_ns);
        let established = self.halves.iter().any(|half| half.counts.data_packets > 0) || self.first_rtt_ns.is_some();
        if !established && self.sure && s.len == 0 {
            self.time.handshake += gap;
            return;
        }
        let [client, server] = &self.halves;
        let blocked = |end: End, half: &Half| half.zero_since_ns.is_some().then_some(end);
        if let Some(end) = blocked(End::Client, client).or(blocked(End::Server, server)) {
            self.time.zero[end.index()] += gap;
            return;
        }
        let sender = match (client.has_outstanding(), server.has_outstanding()) {
            (true, false) => Some(End::Client),
            (false, true) => Some(End::Server),
            (true, true) if client.last_data_ns > server.last_data_ns => Some(End::Client),
            (true, true) => Some(End::Server),
            (false, false) => None,
        };
        let Some(sender) = sender else { return self.spend_quiet(gap, by, s, is_keep_alive) };
        let half = self.half(sender);
        let again = by == sender && half.next.is_some_and(|next| s.len > 0 && s.seq.is_before(next));
        if half.recovery.is_some() || again || self.half(sender.other()).reports_a_gap() {
            self.time.repair[sender.index()] += gap;
            self.half_mut(sender).supply.lose();
        } else if half.limited {
            self.spend_window(sender.other(), gap);
        } else {
            self.time.under_way += gap;
            self.half_mut(sender).supply.wait(gap);
        }
    }

    /// The other end had used up this one's window.
    fn spend_window(&mut self, of: End, ns: u64) {
        self.time.window[of.index()] += ns;
        if self.half(of).is_window_low() {
            self.time.low_window[of.index()] += ns;
        }
    }

    /// Nothing is under way as seen from here. The sender knows that only when the last ACK has reached it, and what it
    /// sends then comes here later still: of that time it isn't idle. If what comes echoes an older timestamp than that ACK's, it
    /// was sent before the ACK was there, however long it took; and if it was acknowledged here already, the ACK got lost.
    fn spend_quiet(&mut self, gap: u64, by: End, s: &Segment, is_keep_alive: bool) {
        if self.acknowledges_unseen(by, s) {
            let whole = gap + std::mem::take(&mut self.time.ending);
            self.hung_up = None;
            return self.spend_hole(whole);
        }
        if s.len == 0 || is_keep_alive {
            self.time.ending += gap;
            self.hang_up(by, s);
            return;
        }
        let whole = gap + std::mem::take(&mut self.time.ending);
        self.hung_up = None;
        if self.half(by).next.is_some_and(|next| s.seq.is_before(next)) {
            self.time.repair[by.index()] += whole;
            self.half_mut(by).supply.lose();
            return;
        }
        let is_on_its_way =
            s.timestamps.is_some_and(|(_, echo)| self.half(by.other()).was_stamped_before_last_ack(echo));
        let loop_ns = self.loop_ns(by);
        let travel = if is_on_its_way { whole } else { loop_ns.unwrap_or(LONGEST_LOOP_NS).min(whole) };
        if loop_ns.is_none() && !is_on_its_way {
            self.time.unsure[by.index()] += travel;
        }
        if self.half(by).limited {
            self.spend_window(by.other(), travel);
        } else {
            self.time.under_way += travel;
            if self.spoke_last == Some(by) {
                self.half_mut(by).supply.wait(travel);
            }
        }
        self.time.idle[by.index()] += whole - travel;
        self.doubt_pause(by, s, whole - travel);
    }

    /// Notes who ends a silence. Of several the one after most of it counts: who sends nothing more may close its direction at once.
    fn hang_up(&mut self, by: End, s: &Segment) {
        let until = match (s.has(TcpFlags::RST), s.has(TcpFlags::FIN)) {
            (true, _) => SilenceEnd::Reset(by),
            (_, true) => SilenceEnd::Closed(by),
            _ => return,
        };
        let silent_ns = self.time.ending;
        if self.hung_up.is_none_or(|before| before.silent_ns.saturating_mul(2) < silent_ns) {
            self.hung_up = Some(HangUp { silent_ns, after: self.spoke_last, until });
        }
    }

    /// How long nothing has been under way, ns.
    pub(crate) const fn ending_ns(&self) -> u64 {
        self.time.ending
    }

    /// How long an end may have been idle, or have waited for ACKs: the time from here to it and back isn't known, µs.
    pub(crate) fn unsure_us(&self, end: End) -> u64 {
        self.time.unsure[end.index()] / 1000
    }

    /// How long an end's window held the other back while it was less than half of what it had been, µs.
    pub(crate) fn low_window_us(&self, end: End) -> u64 {
        self.time.low_window[end.index()] / 1000
    }

    /// Where its time went.
    pub(crate) fn shares(&self) -> Shares {
        let us = |ns: u64| ns / 1000;
        let time = &self.time;
        Shares {
            handshake_us: us(time.handshake),
            under_way_us: us(time.under_way),
            client_window_us: us(time.window[0]),
            server_window_us: us(time.window[1]),
            client_zero_window_us: us(time.zero[0]),
            server_zero_window_us: us(time.zero[1]),
            client_repair_us: us(time.repair[0]),
            server_repair_us: us(time.repair[1]),
            client_idle_us: us(time.idle[0]),
            server_idle_us: us(time.idle[1]),
            ending_us: us(time.ending),
        }
    }

    /// A router says that a packet of it was too large.
    pub(crate) fn too_big(&mut self, told: &TooBig) {
        self.too_big_count += 1;
        let smaller = self.too_big.is_none_or(|(_, mtu)| told.mtu < mtu);
        if smaller {
            self.too_big = Some((told.from, told.mtu));
        }
    }

    /// Nothing more will come; `until_ns` is when the capture ends, if it does.
    pub(crate) fn finish(&mut self, room: &mut usize, until_ns: Option<u64>) {
        let now = self.last_ns;
        self.tail_ns = until_ns.map(|until| until.saturating_sub(now));
        self.is_quiet_at_end = self.halves.iter().all(|half| !half.has_outstanding());
        for half in &mut self.halves {
            half.finish(now, room);
        }
    }
}
