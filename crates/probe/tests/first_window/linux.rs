//! Linux' sender, as far as a receiver that acknowledges nothing can see it.

use crate::world::{RTO, RTT, Reply, Server};
use std::time::Duration;
use wt_probe::first_window::Outgoing;
use wt_probe::{SynOptions, Time};
use wt_wire::TcpFlags;

/// How large an initial window is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Window {
    /// So many segments.
    Segments(u32),
    /// So many at an MSS.
    By(fn(u32) -> u32),
}

/// How a Linux server is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The initial window.
    pub(crate) window: Window,
    /// Bytes of the response.
    pub(crate) size: u32,
    /// Whether it sends tail loss probes to who offers SACK.
    pub(crate) probes: bool,
    /// No segment of its is shorter than this if it has the bytes, whatever it is offered.
    pub(crate) least_mss: u32,
    /// The application first writes so many bytes of the response, the head included, and then pauses so long.
    pub(crate) pause: Option<(u32, Duration)>,
    /// Before it answers a request it says so many bytes in answer to a hello, as TLS does, and says the rest once it has
    /// heard more.
    pub(crate) greeting: u32,
    /// So many segments make a large packet: to send one the last few of a window are held back while an acknowledgement is
    /// expected soon.
    pub(crate) large: u32,
    /// It says that what was asked for is elsewhere on it.
    pub(crate) redirects: bool,
}

/// A long response from a server with window 10.
pub(crate) const LONG: Kind = Kind {
    window: Window::Segments(10),
    size: 150_000,
    probes: true,
    least_mss: 0,
    pause: None,
    greeting: 0,
    large: 1,
    redirects: false,
};

/// Linux' sender: an initial window, a tail loss probe after two RTTs, the first segment again when the retransmission
/// timer fires and nothing new from then on, and an answer to old data.
pub(crate) struct Linux {
    kind: Kind,
    isn: u32,
    client: u32,
    mss: u32,
    sack: bool,
    stream: Vec<u8>,
    /// So many bytes the application has written.
    written: u32,
    /// When it writes on, and up to where.
    writes: Option<(Time, u32)>,
    sent: u32,
    /// Segments that are under way.
    flying: u32,
    window: u32,
    /// When the first and the last segment were sent.
    times: Option<(Time, Time)>,
    acked: u32,
    /// Messages of the client's that were heard.
    asked: u32,
    /// The timer has fired, and nothing was acknowledged since.
    lost: bool,
    rto: Option<Time>,
    backoff: u32,
    tlp: Option<Time>,
    /// The last segment: its first byte and its length.
    last: (u32, u32),
    /// When the SYN-ACK is retransmitted, and how often it was, by its timer or because another SYN came: after two repetitions
    /// it begins with one segment, as Linux does (`tcp_init_transfer()`).
    syn_ack: Option<Time>,
    repeated: u32,
}

impl Linux {
    pub(crate) fn new(kind: Kind, isn: u32) -> Self {
        let status = if kind.redirects { "301 Moved\r\nLocation: /b" } else { "200 OK" };
        let head = format!("HTTP/1.1 {status}\r\nServer: {:s<180}\r\nContent-Length: {}\r\n\r\n", "", kind.size);
        let mut stream = vec![b'g'; kind.greeting as usize];
        stream.extend(head.into_bytes());
        stream.resize(stream.len() + kind.size as usize, b'x');
        Self {
            kind,
            isn,
            client: 0,
            mss: 0,
            sack: false,
            stream,
            written: 0,
            writes: None,
            sent: 0,
            flying: 0,
            window: 0,
            times: None,
            acked: 0,
            asked: 0,
            lost: false,
            rto: None,
            backoff: 0,
            tlp: None,
            last: (0, 0),
            syn_ack: None,
            repeated: 0,
        }
    }

    fn accept(&self) -> Reply {
        let options = SynOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack: self.sack,
            timestamps: self.sack,
            ..SynOptions::default()
        };
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        Reply { seq: self.isn, ack: self.client, flags, options: Some(options), payload: vec![] }
    }

    fn reply(&self, at: u32, len: u32) -> Reply {
        let end = (at + len).min(self.stream.len() as u32);
        let payload = self.stream.get(at as usize..end as usize).unwrap_or_default().to_vec();
        let last = end as usize == self.stream.len() && !payload.is_empty();
        let flags = if last { TcpFlags::ACK | TcpFlags::FIN } else { TcpFlags::ACK };
        Reply { seq: self.isn.wrapping_add(1).wrapping_add(at), ack: self.client, flags, options: None, payload }
    }

    fn head(&self) -> u32 {
        self.stream.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at as u32 + 4)
    }

    /// One segment more, if the application has written one; it doesn't look at the window.
    fn push_one(&mut self, limit: u32) -> Option<Reply> {
        // The greeting, the head and what was written at once are segments of their own, as nginx writes them.
        let border = [self.kind.greeting, self.head(), self.written].into_iter().filter(|at| *at > self.sent).min()?;
        let len = (border - self.sent).min(self.mss);
        if self.sent + len > limit || self.sent >= self.written {
            return None;
        }
        self.last = (self.sent, len);
        let reply = self.reply(self.sent, len);
        self.sent += len;
        self.flying += 1;
        Some(reply)
    }

    /// Whether the rest of the window waits for an acknowledgement (`tcp_tso_should_defer()`).
    fn holds_back(&self, now: Time) -> bool {
        let room = self.window - self.flying;
        let soon = |(first, last): (Time, Time)| now >= first + RTT / 2 && now <= last + Duration::from_millis(1);
        let small = room < self.kind.large && room * 3 < self.window && self.written - self.sent > room * self.mss;
        small && self.times.is_some_and(soon)
    }

    /// What the window allows.
    fn push(&mut self, now: Time, limit: u32) -> Vec<Reply> {
        let mut out = Vec::new();
        while self.flying < self.window && !self.lost && !self.holds_back(now) {
            let before = out.len();
            for _ in 0..self.kind.large.min(self.window - self.flying) {
                out.extend(self.push_one(limit));
            }
            if out.len() == before {
                break;
            }
            self.times = Some((self.times.map_or(now, |(first, _)| first), now));
        }
        if !out.is_empty() {
            self.rto = self.rto.or(Some(now + RTO));
            // With one segment under way it waits as long as for a delayed acknowledgement, but no longer than the timer.
            let wait = if self.flying == 1 { RTO } else { 2 * RTT };
            self.tlp = (self.sack && self.kind.probes && self.acked == 0).then_some(now + wait);
        }
        out
    }

    /// The application answers.
    fn answer(&mut self, now: Time) -> Vec<Reply> {
        let all = self.stream.len() as u32;
        let end = match self.kind.pause {
            _ if self.asked == 1 && self.kind.greeting > 0 => self.kind.greeting,
            Some((bytes, pause)) => {
                self.writes = Some((now + pause, all));
                (self.kind.greeting + bytes).min(all)
            }
            None => all,
        };
        self.written = self.written.max(end);
        self.push(now, u32::MAX)
    }
}

impl Server for Linux {
    fn hear(&mut self, now: Time, segment: &Outgoing) -> Vec<Reply> {
        if segment.flags.has(TcpFlags::RST) {
            (self.rto, self.tlp, self.syn_ack, self.writes, self.stream) = (None, None, None, None, Vec::new());
            return vec![];
        }
        if segment.flags.has(TcpFlags::SYN) {
            self.client = segment.seq.wrapping_add(1);
            self.mss = u32::from(u16::from_be_bytes([segment.options[2], segment.options[3]])).max(self.kind.least_mss);
            self.sack = segment.options.len() > 12;
            if self.sack {
                self.mss -= 12;
            }
            match self.syn_ack {
                Some(_) => self.repeated += 1,
                None => self.syn_ack = (self.asked == 0).then(|| now + Duration::from_secs(1)),
            }
            return vec![self.accept()];
        }
        let ahead = segment.seq.wrapping_sub(self.client) as i32;
        if ahead < 0 && !segment.payload.is_empty() {
            // What ends where the next byte is awaited is looked at; what is older is only answered.
            let next = ahead + segment.payload.len() as i32 == 0;
            let out = if next { self.push(now, u32::MAX) } else { Vec::new() };
            return if out.is_empty() { vec![self.reply(self.sent, 0)] } else { out };
        }
        if ahead == 0 && !segment.payload.is_empty() {
            if self.asked == 0 {
                self.syn_ack = None;
                self.window = match self.kind.window {
                    _ if self.repeated > 1 => 1,
                    Window::Segments(segments) => segments,
                    Window::By(rule) => rule(self.mss),
                };
            }
            self.asked += 1;
            self.client = self.client.wrapping_add(segment.payload.len() as u32);
            return self.answer(now);
        }
        let acked = segment.ack.wrapping_sub(self.isn.wrapping_add(1));
        if acked > self.acked && acked <= self.sent {
            self.acked = acked;
            (self.flying, self.window, self.lost, self.rto, self.times) = (0, 2, false, None, None);
            return self.push(now, acked + (u32::from(segment.window) << 8));
        }
        vec![]
    }

    fn timer(&self) -> Option<Time> {
        self.tlp.into_iter().chain(self.rto).chain(self.syn_ack).chain(self.writes.map(|(at, _)| at)).min()
    }

    fn fire(&mut self, now: Time) -> Vec<Reply> {
        if self.syn_ack.take_if(|at| *at <= now).is_some() {
            self.repeated += 1;
            self.syn_ack = (self.repeated < 5).then(|| now + Duration::from_secs(1 << self.repeated));
            return vec![self.accept()];
        }
        if let Some((_, end)) = self.writes.take_if(|(at, _)| *at <= now) {
            self.written = end;
            return self.push(now, u32::MAX);
        }
        if self.tlp.take_if(|at| *at <= now).is_some() {
            self.rto = Some(now + RTO);
            // Without anything new to send, the last segment is its own probe.
            return vec![self.push_one(u32::MAX).unwrap_or_else(|| self.reply(self.last.0, self.last.1))];
        }
        self.backoff += 1;
        self.lost = true;
        self.rto = (self.backoff < 8).then(|| now + RTO * (1 << self.backoff));
        let first = [self.kind.greeting, self.head()].into_iter().filter(|at| *at > self.acked).min();
        let len = first.map_or(self.mss, |border| border - self.acked).min(self.mss).min(self.sent - self.acked);
        vec![self.reply(self.acked, len)]
    }
}
