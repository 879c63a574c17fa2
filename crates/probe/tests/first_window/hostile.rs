//! Servers that follow no rule.

use crate::linux::{Kind, LONG, Linux};
use crate::world::{Reply, Server, Weather, World};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::cell::Cell;
use std::time::Duration;
use wt_probe::first_window::{DecisionReason, Outgoing, Verdict};
use wt_probe::{SynOptions, Time};
use wt_wire::TcpFlags;

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
            let mut world = World::new(seed, Weather::default(), make);
            let found = world.run(seed);
            assert!(found.packets <= 6 * 19 && world.sent <= 6 * 19, "{kind}: {} packets", found.packets);
            assert!(found.time <= Duration::from_secs(61), "{kind}: {:?}", found.time);
        }
    }
}

/// Where nobody accepts connections.
struct Closed;

impl Server for Closed {
    fn hear(&mut self, _: Time, segment: &Outgoing) -> Vec<Reply> {
        let (ack, flags) = (segment.seq.wrapping_add(1), TcpFlags::RST | TcpFlags::ACK);
        vec![Reply { seq: 0, ack, flags, options: None, payload: vec![] }]
    }

    fn timer(&self) -> Option<Time> {
        None
    }

    fn fire(&mut self, _: Time) -> Vec<Reply> {
        vec![]
    }
}

#[test]
fn a_redirect_to_where_nobody_answers_takes_nothing_from_what_was_seen_before() {
    let connections = Cell::new(0);
    let kind = Kind { size: 6000, redirects: true, ..LONG };
    let make = move |isn| {
        connections.set(connections.get() + 1);
        if connections.get() > 2 { Box::new(Closed) as Box<dyn Server> } else { Box::new(Linux::new(kind, isn)) }
    };
    let found = World::new(1, Weather::default(), make).run(1);
    let decision = found.decision;
    assert_eq!((decision.verdict, decision.why), (Verdict::AtLeast, DecisionReason::ShortResponse), "{found:#?}");
    assert_eq!((found.goal.path.as_str(), found.refused), ("/", Some(80)), "{found:#?}");
    assert!(found.readings.len() > 2, "{found:#?}");
}
