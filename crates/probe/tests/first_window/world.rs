//! Servers and the network between them and a survey, in virtual time.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use wt_probe::first_window::{
    Goal, HostResult, Incoming, Opener, Outgoing, Plain, Send, Session, Survey, SurveyConfig, request,
};
use wt_probe::{SynOptions, Time};
use wt_wire::TcpFlags;

pub(crate) const RTT: Duration = Duration::from_millis(40);
pub(crate) const RTO: Duration = Duration::from_millis(240);

/// What a server sends.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: TcpFlags,
    pub(crate) options: Option<SynOptions>,
    pub(crate) payload: Vec<u8>,
}

/// A server's end of one connection: answers segments, and says when its timer fires.
pub(crate) trait Server {
    fn hear(&mut self, now: Time, segment: &Outgoing) -> Vec<Reply>;
    fn timer(&self) -> Option<Time>;
    fn fire(&mut self, now: Time) -> Vec<Reply>;
}

/// The client's end: HTTP, or a hello and then a request, as TLS has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// The request is sent once so many bytes were heard.
    pub(crate) after: u32,
}

impl Opener for Client {
    fn open(&self, goal: &Goal) -> Box<dyn Session> {
        let request = request(&goal.authority(), &goal.path, "test");
        if self.after == 0 {
            return Box::new(Plain::new(request));
        }
        Box::new(Greeting { request, missing: self.after })
    }
}

#[derive(Debug)]
struct Greeting {
    request: Vec<u8>,
    missing: u32,
}

impl Session for Greeting {
    fn opening(&mut self) -> Vec<u8> {
        vec![b'h'; 300]
    }

    fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.missing = self.missing.saturating_sub(bytes.len() as u32);
        if self.missing == 0 { std::mem::take(&mut self.request) } else { Vec::new() }
    }

    fn response(&self) -> &[u8] {
        &[]
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

/// What happens to packets, each way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    /// The share of packets that is lost, each by itself.
    pub(crate) loss: f64,
    /// Packets are held up, so often, so long at most, and beyond so many they are lost: what an overloaded machine does.
    pub(crate) stalls: Option<(Duration, Duration, u32)>,
}

/// One direction.
#[derive(Debug, Default)]
struct Way {
    begin: Time,
    length: Duration,
    held: u32,
}

impl Way {
    /// When a packet that would arrive at `at` does arrive.
    fn pass(&mut self, at: Time, weather: &Weather, rng: &mut ChaCha8Rng) -> Option<Time> {
        if rng.random::<f64>() < weather.loss {
            return None;
        }
        let Some((every, longest, room)) = weather.stalls else { return Some(at) };
        while at >= self.begin + self.length {
            let gap = every.mul_f64(-(1.0 - rng.random::<f64>()).ln());
            *self =
                Self { begin: self.begin + self.length + gap, length: longest.mul_f64(rng.random::<f64>()), held: 0 };
        }
        if at < self.begin {
            return Some(at);
        }
        self.held += 1;
        (self.held <= room).then_some(self.begin + self.length)
    }
}

/// Packets under way; the earliest first.
enum Event {
    There(Send),
    Back(u16, usize, Reply),
}

pub(crate) struct World {
    servers: Vec<(usize, Box<dyn Server>)>,
    make: Box<dyn Fn(u32) -> Box<dyn Server>>,
    client: Client,
    weather: Weather,
    ways: [Way; 2],
    rng: ChaCha8Rng,
    events: BTreeMap<(Time, u64), Event>,
    number: u64,
    pub(crate) sent: u64,
}

impl World {
    pub(crate) fn new(seed: u64, weather: Weather, make: impl Fn(u32) -> Box<dyn Server> + 'static) -> Self {
        Self {
            servers: Vec::new(),
            make: Box::new(make),
            client: Client { after: 0 },
            weather,
            ways: [Way::default(), Way::default()],
            rng: ChaCha8Rng::seed_from_u64(seed),
            events: BTreeMap::new(),
            number: 0,
            sent: 0,
        }
    }

    pub(crate) fn with_client(self, client: Client) -> Self {
        Self { client, ..self }
    }

    fn post(&mut self, now: Time, event: Event) {
        self.number += 1;
        let way = &mut self.ways[usize::from(matches!(event, Event::Back(..)))];
        if let Some(at) = way.pass(now + RTT / 2, &self.weather, &mut self.rng) {
            self.events.insert((at, self.number), event);
        }
    }

    fn post_all(&mut self, now: Time, from: usize, replies: Vec<Reply>) {
        for reply in replies {
            self.post(now, Event::Back(80, from, reply));
        }
    }

    /// Runs one host to its verdict.
    pub(crate) fn run(&mut self, seed: u64) -> HostResult {
        let config = SurveyConfig::default();
        let mut survey = Survey::new(config, self.client, ChaCha8Rng::seed_from_u64(seed));
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        survey.add(0, Goal { address, port: 80, tls: false, host: "x".into(), path: "/".into() });
        let mut now = Duration::from_secs(1);
        for _ in 0..2_000_000 {
            survey.wake(now);
            while let Some(send) = survey.poll() {
                self.sent += 1;
                self.post(now, Event::There(send));
            }
            if let Some((_, found)) = survey.take_found().pop() {
                return found;
            }
            let timers = self.servers.iter().filter_map(|(_, server)| server.timer());
            let next = timers.chain(survey.wakeup()).chain(self.events.keys().next().map(|(at, _)| *at)).min();
            let Some(next) = next else { panic!("nothing is under way and no verdict") };
            now = now.max(next);
            self.deliver(now, address, &mut survey);
        }
        panic!("no verdict in two million steps");
    }

    fn deliver(&mut self, now: Time, address: IpAddr, survey: &mut Survey<Client>) {
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
                        len: reply.payload.len() as u32,
                        unit: None,
                    };
                    survey.handle(now, address, port, to, &segment);
                }
            }
        }
    }
}
