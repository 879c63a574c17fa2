use super::flight::{ArrivalKind, Flight};
use super::push::Push;
use super::reading::{End, Reading};
use super::segment::{Incoming, Outgoing, SynAck};
use super::session::{Session, Stream};
use crate::Time;
use std::collections::VecDeque;
use std::time::Duration;
use wt_wire::TcpFlags;

/// The shift of our windows: with the largest unscaled window 16 MB, which caps no first flight.
const SHIFT: u8 = 8;
/// No byte of a first flight lies further into the stream.
const FURTHEST: u32 = 16 << 20;
/// Bytes of the stream that sessions may read: a TLS handshake and the head of a response.
const READ: u32 = 64 << 10;
/// Whatever the server does, no connection sends more packets before its reset.
const MOST_SENT: u32 = 16;
/// Resets: one at the end, and one each for at most so many packets that still come.
const MOST_RESETS: u32 = 3;
/// After so long without an answer to it a SYN-ACK is retransmitted (RFC 6298 section 2).
const LATE: Duration = Duration::from_millis(900);
/// How long a server may think before it sends something.
const THINKING: Duration = Duration::from_secs(5);
/// How long nothing new comes until a flight counts as over without a retransmission.
const QUIET: Duration = Duration::from_secs(4);
/// The same once the handshake was repeated: a server whose SYN-ACK timer has fired retransmits after 3 s only (RFC 6298
/// section 5.7). How much it has sent, it says when it is asked, as after any silence.
const QUIET_REPEATED: Duration = Duration::from_millis(1200);
/// A SYN is repeated after so many RTTs of its network, if one is known, and after this at least.
const SYN_RTTS: u32 = 4;
const SYN_LEAST: Duration = Duration::from_millis(250);
/// How long packets of a connection that is closed may still be under way, beside the RTT.
const SETTLING: Duration = Duration::from_millis(5);
/// How long new data may take once it has been allowed, beside the RTT.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How a connection is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The MSS to offer, bytes.
    pub mss: u16,
    /// Offer SACK, timestamps, Fast Open and ECN, too, to see what the server says to them.
    ///
    /// A Linux server with SACK sends one segment more, a tail loss probe; [`Flight::probe`] tells it apart.
    pub full: bool,
    /// Our first sequence number.
    pub isn: u32,
    /// The shortest RTT to the host's network, if it is known: a SYN that gets lost is repeated sooner then.
    pub net_rtt: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opening,
    Flying,
    /// The flight is over; the caller decides.
    Held,
    Asking,
    Allowing,
    Over,
}

/// A TCP connection of ours that acknowledges nothing of what it gets.
///
/// It asks, waits until the server's retransmission timer fires, and then says what was sent until then. On request it
/// asks the server how much it has sent, by one byte of old data that must be answered with an acknowledgement, which
/// bears the number of the next byte; and whether there is more, by acknowledging all of it.
///
/// # Source
/// RFC 9293 section 3.10.7.4: an unacceptable segment is answered by an acknowledgement with SEQ=SND.NXT.
#[derive(Debug)]
pub struct Connection {
    setup: Setup,
    session: Box<dyn Session>,
    state: State,
    end: End,
    deadline: Time,
    tries: u32,
    sent_at: Time,
    /// When the last message was sent for the first time.
    asked_at: Time,
    opened: Time,
    rtt: Duration,
    /// Several SYNs were sent, and nobody knows which one was answered: then the RTT is an upper bound.
    vague: bool,
    peer: Option<SynAck>,
    peer_isn: u32,
    timestamp: Option<u32>,
    /// All that we have said, and how much of it the server has acknowledged.
    said: Vec<u8>,
    acked: u32,
    flight: Flight,
    push: Push,
    stream: Stream,
    verified: bool,
    /// The flight as it was when all of it was acknowledged.
    settled: Option<(u32, u32)>,
    more: bool,
    /// The handshake was repeated, or took as long as if it had been.
    late: bool,
    /// Our SYN was repeated: what a server begins with then shows only if it is more than one segment.
    repeated: bool,
    /// New data came by themselves after the flight: the application, not the window, had paused.
    grew: bool,
    out: VecDeque<Outgoing>,
    sent: u32,
    resets: u32,
}

impl Connection {
    /// Opens one.
    #[must_use]
    pub fn open(setup: Setup, session: Box<dyn Session>, now: Time) -> Self {
        let mut connection = Self {
            setup,
            session,
            state: State::Opening,
            end: End::Silent,
            deadline: now,
            tries: 0,
            sent_at: now,
            asked_at: now,
            opened: now,
            rtt: Duration::ZERO,
            vague: false,
            peer: None,
            peer_isn: 0,
            timestamp: None,
            said: Vec::new(),
            acked: 0,
            flight: Flight::new(setup.mss, Duration::ZERO, false),
            push: Push::default(),
            stream: Stream::new(READ),
            verified: false,
            settled: None,
            more: false,
            late: false,
            repeated: false,
            grew: false,
            out: VecDeque::new(),
            sent: 0,
            resets: 0,
        };
        connection.send_syn(now);
        connection
    }

    /// Takes a segment.
    pub fn handle(&mut self, now: Time, segment: &Incoming<'_>) {
        if self.state == State::Over {
            // Whoever still sends to a closed connection is told so, but not for ever.
            // What was under way when it closed isn't from such a server.
            let late = now >= self.deadline + self.rtt + SETTLING;
            if late && self.peer.is_some() && !segment.flags.has(TcpFlags::RST) {
                self.reset();
            }
            return;
        }
        let ours = segment.ack.wrapping_sub(self.setup.isn.wrapping_add(1));
        if self.state == State::Opening {
            return self.handle_opening(now, segment, ours);
        }
        let Some(start) = self.offset(segment.seq) else { return };
        if segment.flags.has(TcpFlags::RST) {
            return self.stop(now, if self.flight.segments() > 0 { End::Flight } else { End::Reset });
        }
        if segment.flags.has(TcpFlags::SYN) {
            self.late = true;
            if self.state == State::Flying && self.flight.last_new().is_none() {
                self.say_again(now);
            }
            return;
        }
        if ours <= self.said.len() as u32 {
            self.acked = self.acked.max(ours);
        }
        if self.vague && self.state == State::Flying && self.tries == 1 && self.acked as usize == self.said.len() {
            self.vague = false;
            self.rtt = self.rtt.min(now.saturating_sub(self.sent_at));
            self.flight.set_rtt(self.rtt);
        }
        self.timestamp = segment.timestamp.or(self.timestamp);
        self.handle_data(now, start, segment);
    }

    /// What to do when the deadline has passed.
    pub fn wake(&mut self, now: Time) {
        if self.state == State::Flying && self.push.take_due(now, self.rtt, self.setup.full) {
            // The server has it already, so it must answer (RFC 9293 section 3.10.7.4); as keep-alives do.
            let last = self.said.last().copied().unwrap_or_default();
            let at = (self.said.len() as u32).wrapping_sub(1);
            self.send(now, at, 0, TcpFlags::ACK, u16::MAX, vec![last]);
        }
        if now < self.deadline {
            return;
        }
        match self.state {
            State::Opening if self.tries < 3 => self.send_syn(now),
            State::Opening => self.stop(now, End::Silent),
            State::Flying => self.wake_flying(now),
            State::Held | State::Over => {}
            State::Asking if self.tries < 3 => self.ask(now),
            State::Asking => self.allow(now),
            State::Allowing if self.tries < 2 => self.send_allowance(now),
            State::Allowing => self.stop(now, End::Flight),
        }
    }

    /// The next segment to send.
    pub fn poll(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    /// When it wants to be woken; `None` if never.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let push = self.push.due().filter(|_| self.state == State::Flying);
        let own = (!matches!(self.state, State::Held | State::Over)).then_some(self.deadline);
        own.into_iter().chain(push).min()
    }

    /// Makes sure of what was seen: how much was sent, and whether there is more.
    pub fn verify(&mut self, now: Time) {
        if self.state == State::Held {
            self.tries = 0;
            self.ask(now);
        }
    }

    /// Ends the connection with a reset.
    pub fn close(&mut self, now: Time) {
        if self.state != State::Over {
            self.stop(now, self.end);
        }
    }

    /// Whether the flight is over and nobody has asked for more yet.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.state == State::Held
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Until when something may still be under way, after it has ended: our ports must stay ours until then,
    /// or this host's kernel answers them.
    #[must_use]
    pub fn quiet_at(&self) -> Time {
        // What the server's timer sent before our reset arrived comes after it.
        if self.peer.is_some() { self.deadline + self.rtt + self.rtt / 4 + SETTLING } else { self.deadline }
    }

    /// What the SYN-ACK said.
    #[must_use]
    pub fn syn_ack(&self) -> Option<SynAck> {
        self.peer
    }

    /// How long the SYN's answer took; `None` before it came, and where nobody knows which SYN it answers.
    #[must_use]
    pub fn handshake(&self) -> Option<Duration> {
        (self.peer.is_some() && !self.repeated).then_some(self.rtt)
    }

    /// How it was opened.
    #[must_use]
    pub fn setup(&self) -> Setup {
        self.setup
    }

    /// How many packets it has sent.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.sent + self.resets
    }

    /// The response, as far as it can be read.
    #[must_use]
    pub fn response(&self) -> &[u8] {
        self.session.response()
    }

    /// What it shows so far.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let probed = self.flight.probe().is_some();
        let (segments, bytes) = self.settled.unwrap_or((self.flight.segments(), self.flight.bytes()));
        let length = self.session.length();
        let exhausted = self.flight.finished() || length.is_some_and(|length| length <= u64::from(bytes));
        let scaled = self.peer.is_some_and(|peer| peer.options.window_scale.is_some());
        let window = if scaled { FURTHEST } else { 65_535 };
        let spare = self.flight.spare();
        // A second SYN and the server's own timer make two repetitions of the SYN-ACK, after which Linux begins with one.
        let late = self.late || self.repeated && segments - spare.min(segments) <= 1;
        let counts = !self.grew && !late && self.push.is_proven() && !self.flight.is_trickled();
        Reading {
            mss: self.setup.mss,
            end: self.end,
            segments,
            spare,
            firm: spare == 0 || self.verified && self.flight.has_tail() && self.is_prompt(),
            limited: self.flight.is_cut() && counts,
            bytes,
            max_segment: self.flight.max_segment(),
            left_over: None,
            sure: (self.verified || probed) && counts,
            late,
            more: !exhausted && counts && (self.more || probed || length.is_some()),
            exhausted,
            capped: bytes.saturating_add(self.flight.max_segment()) > window,
        }
    }

    /// Whether the last segment came too early for a tail loss probe: that is three round trips after the request at least,
    /// or two where the request was the second message.
    fn is_prompt(&self) -> bool {
        self.flight.last_new().is_some_and(|last| last <= self.asked_at + self.rtt * 7 / 4)
    }

    fn handle_opening(&mut self, now: Time, segment: &Incoming<'_>, ours: u32) {
        if ours != 0 || !segment.flags.has(TcpFlags::ACK) {
            return;
        }
        if segment.flags.has(TcpFlags::RST) {
            return self.stop(now, End::Refused);
        }
        let Some(options) = segment.options.filter(|_| segment.flags.has(TcpFlags::SYN)) else { return };
        self.peer = Some(SynAck { options, window: segment.window });
        self.peer_isn = segment.seq;
        self.timestamp = segment.timestamp;
        // Of several SYNs the first one may have been answered (RFC 6298 section 3); a round trip that is taken for too
        // short would make a tail loss probe of any segment that comes a little later than the others.
        self.vague = self.tries > 1;
        self.repeated = self.tries > 1;
        self.rtt = now.saturating_sub(self.opened);
        self.late = self.tries > 2 || now.saturating_sub(self.sent_at) >= LATE;
        self.flight = Flight::new(self.setup.mss, self.rtt, self.setup.full && options.sack);
        self.state = State::Flying;
        self.end = End::NoData;
        self.tries = 0;
        self.said = self.session.opening();
        self.say_again(now);
    }

    fn handle_data(&mut self, now: Time, start: u32, segment: &Incoming<'_>) {
        let len = segment.len;
        let fin = segment.flags.has(TcpFlags::FIN);
        if self.state == State::Allowing {
            let (_, settled) = self.settled.unwrap_or_default();
            if len > 0 && start.saturating_add(len) > settled {
                self.more = true;
            }
            if fin {
                self.flight.finish(start.saturating_add(len));
            }
            if self.more || fin {
                self.stop(now, End::Flight);
            }
            return;
        }
        if fin {
            self.flight.finish(start.saturating_add(len));
        }
        if len == 0 {
            self.flight.say(start);
            if self.state == State::Flying {
                self.push.heard(now, self.rtt);
            }
            if self.state == State::Asking && !fin {
                self.verified = true;
                self.allow(now);
            }
            return;
        }
        if self.flight.last_new().is_none() {
            self.flight.answered(now.saturating_sub(self.asked_at));
        }
        let known = self.flight.bytes();
        let pushed = self.push.may_bring(now, self.rtt);
        let arrived = self.flight.arrive(now, start, len, segment.unit, pushed);
        self.end = End::Flight;
        self.listen(now, start, segment.payload);
        match self.state {
            State::Flying if arrived == ArrivalKind::Again => self.state = State::Held,
            // A tail loss probe tells the flight's end before the retransmission timer does.
            State::Flying if arrived == ArrivalKind::New && self.flight.probe().is_some() => {
                self.push.end();
                self.deadline = now + self.flight.settling();
            }
            State::Flying if arrived == ArrivalKind::New => {
                self.push.came(now, self.asked_at, self.rtt);
                self.deadline = now + self.quiet();
            }
            State::Flying if arrived == ArrivalKind::Copy && start == 0 => self.push.repeated(),
            State::Held | State::Asking if arrived == ArrivalKind::New && start >= known => self.grew = true,
            _ => {}
        }
    }

    /// Lets the session read, and says what it answers.
    fn listen(&mut self, now: Time, start: u32, payload: &[u8]) {
        let ready = self.stream.take(start, payload);
        if ready.is_empty() {
            return;
        }
        let answer = self.session.hear(&ready);
        if self.session.is_foreign() {
            return self.stop(now, End::Foreign);
        }
        if answer.is_empty() || self.said.len() + answer.len() > READ as usize {
            return;
        }
        self.acked = self.acked.max(self.said.len() as u32);
        self.said.extend(answer);
        self.push.answers();
        self.tries = 0;
        self.say_again(now);
    }

    fn wake_flying(&mut self, now: Time) {
        if (self.acked as usize) < self.said.len() && self.tries < 3 {
            return self.say_again(now);
        }
        match self.flight.last_new() {
            Some(last) if now >= last + self.quiet() || self.flight.probe().is_some() => self.state = State::Held,
            Some(last) => self.deadline = last + self.quiet(),
            None if now >= self.sent_at + THINKING => self.stop(now, End::NoData),
            None => self.deadline = self.sent_at + THINKING,
        }
    }

    /// How long nothing new comes until the flight counts as over.
    fn quiet(&self) -> Duration {
        if self.repeated { QUIET_REPEATED.max(3 * self.rtt) } else { QUIET }
    }

    /// Sends what the server hasn't acknowledged; but nothing of the server's is ever acknowledged by it.
    fn say_again(&mut self, now: Time) {
        self.tries += 1;
        if self.tries > 3 {
            return;
        }
        self.sent_at = now;
        if self.tries == 1 {
            self.asked_at = now;
        }
        self.flight.spoke();
        self.deadline = now + Duration::from_secs(1).max(3 * self.rtt);
        let most = usize::from(self.peer.and_then(|peer| peer.options.mss).unwrap_or(536).clamp(88, 1360)) - 12;
        let from = (self.acked as usize).min(self.said.len());
        let pieces: Vec<Vec<u8>> = self.said[from..].chunks(most).map(<[u8]>::to_vec).collect();
        let mut at = self.acked;
        for payload in pieces {
            let len = payload.len() as u32;
            self.send(now, at, 0, TcpFlags::ACK | TcpFlags::PSH, u16::MAX, payload);
            at += len;
        }
    }

    /// One byte of old data: the answer tells how much was sent.
    fn ask(&mut self, now: Time) {
        self.state = State::Asking;
        self.tries += 1;
        self.deadline = now + Duration::from_millis(300).max(2 * self.rtt);
        self.send(now, 0u32.wrapping_sub(3), 0, TcpFlags::ACK, u16::MAX, vec![0]);
    }

    /// Acknowledges all of it, for the server to go on.
    fn allow(&mut self, now: Time) {
        if self.flight.finished() {
            return self.stop(now, End::Flight);
        }
        self.state = State::Allowing;
        self.settled = Some((self.flight.segments(), self.flight.bytes()));
        self.tries = 0;
        self.send_allowance(now);
    }

    fn send_allowance(&mut self, now: Time) {
        self.tries += 1;
        self.deadline = now + PATIENCE / 2 + 2 * self.rtt;
        let scaled = self.peer.is_some_and(|peer| peer.options.window_scale.is_some());
        let two = 2 * self.flight.max_segment();
        let window = if scaled { two.div_ceil(1 << SHIFT) } else { two };
        let bytes = self.settled.map_or(0, |settled| settled.1);
        self.send(now, self.said.len() as u32, bytes, TcpFlags::ACK, u16::try_from(window).unwrap_or(u16::MAX), vec![]);
    }

    fn send_syn(&mut self, now: Time) {
        self.sent_at = now;
        let first = self.setup.net_rtt.filter(|_| self.tries == 0).map(|rtt| (rtt * SYN_RTTS).max(SYN_LEAST));
        self.deadline = now + first.unwrap_or(Duration::from_secs(1 << self.tries.min(4)));
        self.tries += 1;
        let [high, low] = self.setup.mss.to_be_bytes();
        let mut options = vec![2, 4, high, low];
        let mut flags = TcpFlags::SYN;
        if self.setup.full {
            options.extend([4, 2, 8, 10]);
            options.extend(clock(now).to_be_bytes());
            options.extend([0, 0, 0, 0, 1, 3, 3, SHIFT, 34, 2, 1, 1]);
            flags = flags | TcpFlags::ECE | TcpFlags::CWR;
        } else {
            options.extend([1, 3, 3, SHIFT]);
        }
        let syn = Outgoing { seq: self.setup.isn, ack: 0, flags, window: u16::MAX, options, payload: vec![] };
        self.sent += 1;
        self.out.push_back(syn);
    }

    /// Queues a segment from byte `at` of ours that acknowledges `ack` bytes of theirs.
    fn send(&mut self, now: Time, at: u32, ack: u32, flags: TcpFlags, window: u16, payload: Vec<u8>) {
        if self.sent >= MOST_SENT {
            return;
        }
        self.sent += 1;
        let seq = self.setup.isn.wrapping_add(1).wrapping_add(at);
        let ack = self.peer_isn.wrapping_add(1).wrapping_add(ack);
        let agreed = self.setup.full && self.peer.is_some_and(|peer| peer.options.timestamps);
        let options = match self.timestamp.filter(|_| agreed) {
            Some(theirs) => {
                let mut options = vec![1, 1, 8, 10];
                options.extend(clock(now).to_be_bytes());
                options.extend(theirs.to_be_bytes());
                options
            }
            None => vec![],
        };
        self.out.push_back(Outgoing { seq, ack, flags, window, options, payload });
    }

    fn stop(&mut self, now: Time, end: End) {
        self.end = end;
        self.deadline = now;
        self.state = State::Over;
        if self.peer.is_some() && end != End::Reset {
            self.reset();
        }
    }

    /// A reset, with the number that the server expects: any other it would ignore (RFC 5961 section 3.2).
    fn reset(&mut self) {
        if self.resets >= MOST_RESETS {
            return;
        }
        self.resets += 1;
        let base = self.setup.isn.wrapping_add(1);
        self.out.push_back(Outgoing {
            seq: base.wrapping_add(self.acked),
            ack: self.peer_isn.wrapping_add(1),
            flags: TcpFlags::RST | TcpFlags::ACK,
            window: 0,
            options: vec![],
            payload: vec![],
        });
    }

    /// How far into the server's stream a number lies; `None` if it can't be of this connection.
    fn offset(&self, seq: u32) -> Option<u32> {
        let offset = seq.wrapping_sub(self.peer_isn.wrapping_add(1));
        // The SYN itself lies one before.
        if offset == u32::MAX { Some(0) } else { (offset <= FURTHEST).then_some(offset) }
    }
}

/// Our clock in timestamps: milliseconds (RFC 7323 section 5.4).
fn clock(now: Time) -> u32 {
    (now.as_millis() as u32).max(1)
}
