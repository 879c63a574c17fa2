//! The first-window engine against servers in virtual time: a model of Linux' sender, with seeded loss each way, and
//! servers that mean no good.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use wt_probe::first_window::{
    Found, Goal, Incoming, Limit, Opener, Outgoing, Plain, Send, Session, Survey, SurveyConfig, Verdict, request,
};
use wt_probe::{SynOptions, Time};
use wt_wire::TcpFlags;

const RTT: Duration = Duration::from_millis(40);
const RTO: Duration = Duration::from_millis(240);

struct Http;

impl Opener for Http {
    fn open(&self, goal: &Goal) -> Box<dyn Session> {
        Box::new(Plain::new(request(&goal.authority(), &goal.path, "test")))
    }
}

/// What a server sends.
#[derive(Debug, Clone)]
struct Reply {
    seq: u32,
    ack: u32,
    flags: TcpFlags,
    options: Option<SynOptions>,
    payload: Vec<u8>,
}

/// A server's end of one connection: answers segments, and says when its timer fires.
trait Server {
    fn hear(&mut self, now: Time, segment: &Outgoing) -> Vec<Reply>;
    fn timer(&self) -> Option<Time>;
    fn fire(&mut self, now: Time) -> Vec<Reply>;
}

/// How a Linux server is set up.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// The initial window at an MSS.
    window: fn(u32) -> u32,
    /// Bytes of the response.
    size: u32,
    /// Whether it sends tail loss probes to who offers SACK.
    probes: bool,
}

/// Linux' sender, as far as a receiver that acknowledges nothing can see it: an initial window, a tail loss probe after
/// two RTTs, the first segment again when the retransmission timer fires, and an answer to old data.
struct Linux {
    kind: Kind,
    isn: u32,
    client: u32,
    mss: u32,
    sack: bool,
    stream: Vec<u8>,
    sent: u32,
    acked: u32,
    asked: bool,
    rto: Option<Time>,
    backoff: u32,
    tlp: Option<Time>,
    /// How often the SYN came: after two repetitions it begins with one segment, as Linux does (`tcp_init_transfer()`).
    syns: u32,
}

impl Linux {
    fn new(kind: Kind, isn: u32) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nServer: {:s<180}\r\nContent-Length: {}\r\n\r\n", "", kind.size);
        let mut stream = head.into_bytes();
        stream.resize(stream.len() + kind.size as usize, b'x');
        Self {
            kind,
            isn,
            client: 0,
            mss: 0,
            sack: false,
            stream,
            sent: 0,
            acked: 0,
            asked: false,
            rto: None,
            backoff: 0,
            tlp: None,
            syns: 0,
        }
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

    /// New segments up to a limit.
    fn push(&mut self, segments: u32, limit: u32) -> Vec<Reply> {
        let mut out = Vec::new();
        // The head is a segment of its own, as nginx writes it.
        let head = self.head();
        while (out.len() as u32) < segments && (self.sent as usize) < self.stream.len() {
            let len = if self.sent < head { (head - self.sent).min(self.mss) } else { self.mss };
            if self.sent + len > limit {
                break;
            }
            let reply = self.reply(self.sent, len);
            self.sent += reply.payload.len() as u32;
            out.push(reply);
        }
        out
    }
}

impl Server for Linux {
    fn hear(&mut self, now: Time, segment: &Outgoing) -> Vec<Reply> {
        if segment.flags.has(TcpFlags::RST) {
            (self.rto, self.tlp, self.stream) = (None, None, Vec::new());
            return vec![];
        }
        if segment.flags.has(TcpFlags::SYN) {
            self.client = segment.seq.wrapping_add(1);
            self.syns += 1;
            self.mss = u32::from(u16::from_be_bytes([segment.options[2], segment.options[3]]));
            self.sack = segment.options.len() > 12;
            if self.sack {
                self.mss -= 12;
            }
            let options = SynOptions {
                mss: Some(1460),
                window_scale: Some(7),
                sack: self.sack,
                timestamps: self.sack,
                ..SynOptions::default()
            };
            let flags = TcpFlags::SYN | TcpFlags::ACK;
            return vec![Reply { seq: self.isn, ack: self.client, flags, options: Some(options), payload: vec![] }];
        }
        let ahead = segment.seq.wrapping_sub(self.client) as i32;
        if ahead < 0 && !segment.payload.is_empty() {
            return vec![self.reply(self.sent, 0)];
        }
        if !segment.payload.is_empty() && !self.asked {
            self.asked = true;
            self.client = self.client.wrapping_add(segment.payload.len() as u32);
            self.rto = Some(now + RTO);
            self.tlp = (self.sack && self.kind.probes).then_some(now + 2 * RTT);
            let window = if self.syns > 2 { 1 } else { (self.kind.window)(self.mss) };
            return self.push(window, u32::MAX);
        }
        let acked = segment.ack.wrapping_sub(self.isn.wrapping_add(1));
        if acked > self.acked && acked <= self.sent {
            self.acked = acked;
            let limit = acked + (u32::from(segment.window) << 8);
            return self.push(2, limit);
        }
        vec![]
    }

    fn timer(&self) -> Option<Time> {
        self.tlp.into_iter().chain(self.rto).min()
    }

    fn fire(&mut self, now: Time) -> Vec<Reply> {
        if self.tlp.take_if(|at| *at <= now).is_some() {
            self.rto = Some(now + RTO);
            return self.push(1, u32::MAX);
        }
        self.backoff += 1;
        self.rto = (self.backoff < 8).then(|| now + RTO * (1 << self.backoff));
        if self.acked == 0 {
            vec![self.reply(0, self.mss.min(self.head()))]
        } else {
            vec![self.reply(self.acked, self.mss)]
        }
    }
}

/// Packets under way; the earliest first.
enum Event {
    There(Send),
    Back(u16, usize, Reply),
}

struct World {
    servers: Vec<(usize, Box<dyn Server>)>,
    make: Box<dyn Fn(u32) -> Box<dyn Server>>,
    loss: f64,
    rng: ChaCha8Rng,
    events: std::collections::BTreeMap<(Time, u64), Event>,
    number: u64,
    sent: u64,
}

impl World {
    fn new(seed: u64, loss: f64, make: impl Fn(u32) -> Box<dyn Server> + 'static) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self {
            servers: Vec::new(),
            make: Box::new(make),
            loss,
            rng,
            events: std::collections::BTreeMap::new(),
            number: 0,
            sent: 0,
        }
    }

    fn post(&mut self, at: Time, event: Event) {
        self.number += 1;
        if self.rng.random::<f64>() >= self.loss {
            self.events.insert((at, self.number), event);
        }
    }

    fn post_all(&mut self, now: Time, from: usize, replies: Vec<Reply>) {
        for reply in replies {
            self.post(now + RTT / 2, Event::Back(80, from, reply));
        }
    }

    /// Runs one host to its verdict.
    fn run(&mut self, seed: u64) -> Found {
        let config = SurveyConfig::default();
        let mut survey = Survey::new(config, Http, ChaCha8Rng::seed_from_u64(seed));
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        survey.add(0, Goal { address, port: 80, tls: false, host: "x".into(), path: "/".into() });
        let mut now = Duration::from_secs(1);
        for _ in 0..2_000_000 {
            survey.wake(now);
            while let Some(send) = survey.poll() {
                self.sent += 1;
                self.post(now + RTT / 2, Event::There(send));
            }
            if let Some((_, found)) = survey.take_found().pop() {
                return found;
            }
            let mut times: BinaryHeap<std::cmp::Reverse<Time>> =
                self.servers.iter().filter_map(|(_, server)| server.timer()).map(std::cmp::Reverse).collect();
            times.extend(survey.wakeup().map(std::cmp::Reverse));
            times.extend(self.events.keys().next().map(|(at, _)| std::cmp::Reverse(*at)));
            let Some(std::cmp::Reverse(next)) = times.pop() else { panic!("nothing is under way and no verdict") };
            now = now.max(next);
            self.deliver(now, address, &mut survey);
        }
        panic!("no verdict in two million steps");
    }

    fn deliver(&mut self, now: Time, address: IpAddr, survey: &mut Survey<Http>) {
        for index in 0..self.servers.len() {
            let (port, server) = &mut self.servers[index];
            if server.timer().is_some_and(|at| at <= now) {
                let (port, replies) = (*port, server.fire(now));
                self.post_all(now, port, replies);
            }
        }
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Event::There(send) => {
                    if !self.servers.iter().any(|(port, _)| *port == send.from) {
                        let server = (self.make)(0x1234_5678u32.wrapping_mul(send.from as u32 + 3));
                        self.servers.push((send.from, server));
                    }
                    let server = self.servers.iter_mut().find(|(port, _)| *port == send.from);
                    let replies = server.map(|(_, server)| server.hear(now, &send.segment)).unwrap_or_default();
                    self.post_all(now, send.from, replies);
                }
                Event::Back(port, to, reply) => {
                    let segment = Incoming {
                        seq: reply.seq,
                        ack: reply.ack,
                        flags: reply.flags,
                        window: 65_160,
                        options: reply.options,
                        timestamp: None,
                        payload: &reply.payload,
                        unit: None,
                    };
                    survey.handle(now, address, port, to, &segment);
                }
            }
        }
    }
}

fn linux(kind: Kind, loss: f64, seed: u64) -> Found {
    World::new(seed, loss, move |isn| Box::new(Linux::new(kind, isn))).run(seed)
}

const LONG: Kind = Kind { window: |_| 10, size: 150_000, probes: true };

#[test]
fn a_clean_path_takes_six_packets_and_little_more_than_a_timeout() {
    for (window, n) in
        [(|_| 1) as fn(u32) -> u32, |_| 2, |_| 3, |_| 10, |_| 32, |_| 100].into_iter().zip([1, 2, 3, 10, 32, 100])
    {
        let found = linux(Kind { window, ..LONG }, 0.0, 7);
        let decision = found.decision;
        assert_eq!((decision.verdict, decision.segments, decision.limit), (Verdict::Exact, n, Some(Limit::Segments)));
        assert_eq!((found.packets, found.readings.len()), (6, 2), "{n}");
        assert!(found.time <= 3 * RTT + RTO, "{n}: {:?}", found.time);
    }
}

#[test]
fn a_server_without_tail_loss_probes_is_asked_how_much_it_sent() {
    let found = linux(Kind { probes: false, ..LONG }, 0.0, 7);
    assert_eq!((found.decision.verdict, found.decision.segments, found.readings.len()), (Verdict::Exact, 10, 2));
    assert_eq!(found.packets, 10);
}

#[test]
fn short_responses_give_at_least_what_they_show() {
    for (size, n) in [(200, 5), (3000, 10)] {
        let found = linux(Kind { size, ..LONG }, 0.0, 7);
        let decision = found.decision;
        assert!(decision.segments <= 10 && (decision.verdict == Verdict::AtLeast || n == 10), "{size}: {decision:?}");
        assert!(decision.segments >= n.min(4), "{size}: {decision:?}");
    }
}

#[test]
fn windows_by_the_size_of_segments_are_told_from_windows_in_segments() {
    let found = linux(Kind { window: |mss| if mss > 1095 { 3 } else { 4 }, ..LONG }, 0.0, 7);
    assert_eq!((found.decision.verdict, found.decision.limit), (Verdict::Exact, Some(Limit::Rfc5681)));
    let bytes = linux(Kind { window: |mss| 4096 / mss, ..LONG }, 0.0, 7);
    assert_eq!((bytes.decision.verdict, bytes.decision.limit), (Verdict::AtLeast, Some(Limit::Bytes)));
}

#[test]
fn no_loss_makes_exactly_false() {
    for loss in [0.01, 0.03, 0.05] {
        for probes in [true, false] {
            let (mut exact, mut connections) = (0, 0);
            for seed in 0..1000 {
                let (window, n) = [(|_| 3) as fn(u32) -> u32, |_| 10, |_| 32]
                    .into_iter()
                    .zip([3, 10, 32])
                    .nth(seed as usize % 3)
                    .unwrap();
                let found = linux(Kind { window, probes, ..LONG }, loss, seed);
                let decision = found.decision;
                assert!(decision.segments <= n, "{loss} {seed}: {decision:?} {:#?}", found.readings);
                if decision.verdict == Verdict::Exact {
                    assert_eq!(decision.segments, n, "{loss} {seed}: {:#?}", found.readings);
                    exact += 1;
                }
                connections += found.readings.len();
            }
            println!("loss {loss}, probes {probes}: {exact} of 1000 exact, {} probes a host", connections as f64 / 1e3);
            assert!(exact >= 950 && connections <= 2500, "{loss}: {exact} exact, {connections} connections");
        }
    }
}

/// A server that follows no rule.
struct Hostile {
    rng: ChaCha8Rng,
    isn: u32,
    client: u32,
    next: Option<Time>,
    kind: u32,
}

impl Hostile {
    fn burst(&mut self) -> Vec<Reply> {
        (0..32).map(|i| self.packet(i)).collect()
    }

    fn packet(&mut self, i: u32) -> Reply {
        let base = self.isn.wrapping_add(1);
        let (seq, len, flags) = match self.kind {
            // Never ends.
            0 => (base.wrapping_add(self.rng.random_range(0..20_000_000)), 1400, TcpFlags::ACK),
            // Overlaps.
            1 => (base.wrapping_add(self.rng.random_range(0..3000)), self.rng.random_range(0..1400), TcpFlags::ACK),
            // One byte each, with holes.
            2 => (base.wrapping_add(2 * self.rng.random_range(0..4_000_000u32)), 1, TcpFlags::ACK),
            // Acknowledges what was never sent, and says it has sent what it hasn't.
            3 => (base.wrapping_add(self.rng.random()), 0, TcpFlags::ACK),
            // SYN-ACKs without end.
            4 => (self.isn, 0, TcpFlags::SYN | TcpFlags::ACK),
            // Anything.
            _ => (self.rng.random(), self.rng.random_range(0..1400), TcpFlags(self.rng.random_range(0..512))),
        };
        let options = flags.has(TcpFlags::SYN).then(SynOptions::default);
        let ack = if self.kind == 3 { self.client.wrapping_add(i * 1000) } else { self.client };
        Reply { seq, ack, flags, options, payload: vec![b'z'; len] }
    }
}

impl Server for Hostile {
    fn hear(&mut self, now: Time, segment: &Outgoing) -> Vec<Reply> {
        if !segment.flags.has(TcpFlags::SYN) {
            self.next = self.next.or(Some(now));
            return self.burst();
        }
        self.client = segment.seq.wrapping_add(1);
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        let options = Some(SynOptions { mss: Some(0), sack: true, window_scale: Some(255), ..SynOptions::default() });
        vec![Reply { seq: self.isn, ack: self.client, flags, options, payload: vec![] }]
    }

    fn timer(&self) -> Option<Time> {
        self.next
    }

    fn fire(&mut self, now: Time) -> Vec<Reply> {
        self.next = Some(now + Duration::from_millis(100));
        self.burst()
    }
}

#[test]
fn hostile_servers_are_bounded() {
    for kind in 0..6 {
        for seed in 0..2 {
            let make = move |isn| {
                let rng = ChaCha8Rng::seed_from_u64(seed);
                Box::new(Hostile { rng, isn, client: 0, next: None, kind }) as Box<dyn Server>
            };
            let mut world = World::new(seed, 0.0, make);
            let found = world.run(seed);
            assert!(found.packets <= 6 * 19 && world.sent <= 6 * 19, "{kind}: {} packets", found.packets);
            assert!(found.time <= Duration::from_secs(61), "{kind}: {:?}", found.time);
        }
    }
}
