//! Captures, the model, the lab.

use super::{tell, tell_with_all};
use std::io::{Cursor, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use wt_flow::{Bounds, Tracker};
use wt_lab::scenario::{Direction as Way, Link, QueueBound};
use wt_lab::{Backend, Lab, Scenario};
use wt_link::{LinkConfig, Packet, Path, PathConfig, QueueConfig, Side, StageConfig, Time};
use wt_sim::{FlowSpec, Job, Simulation, StackConfig};
use wt_trial::{Amount, Direction};
use wt_units::{BitsPerSecond, Bytes};
use wt_wire::CaptureReader;

/// Each flow has 1 Mbit/s of the link, and moves 100 kB.
pub(crate) fn flows(count: u64) {
    let queue = u32::try_from(count * 5 + 20).unwrap();
    let stages = || {
        let queue = StageConfig::Queue(QueueConfig::drop_tail(BitsPerSecond(count * 1_000_000), queue));
        vec![queue, StageConfig::Delay { delay: Duration::from_millis(20) }]
    };
    let path = PathConfig { links: vec![LinkConfig { forward: stages(), backward: stages(), medium: None }] };
    let stack = StackConfig::default();
    tell(|| {
        let mut simulation = Simulation::new(&path, Vec::new(), 1).unwrap();
        for number in 0..count {
            let job = Job::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(100_000)) };
            // They begin within a tenth of a second.
            let start = Duration::from_micros(number * 7_919 % 100_000);
            simulation.add_flow(FlowSpec { client: stack.clone(), server: stack.clone(), job, start }).unwrap();
        }
        let report = simulation.run(Duration::from_secs(120));
        assert!(report.flows.iter().all(|flow| flow.elapsed.is_some()));
    });
}

/// 10,000 packets through a path of so many links, as the lab's emulator and the model lead them.
pub(crate) fn hops(count: u64) {
    let stage = StageConfig::Delay { delay: Duration::from_micros(10_000 / count) };
    let link = LinkConfig { forward: vec![stage], backward: Vec::new(), medium: None };
    let config = PathConfig { links: vec![link; usize::try_from(count).unwrap()] };
    tell(|| {
        let mut path: Path<u32> = Path::new(&config, 1).unwrap();
        for number in 0..10_000_u32 {
            let now = Time(u64::from(number) * 12_000);
            path.push(Side::AToB, now, Packet::new(1_500, number));
            while path.poll(now).is_some() {}
        }
        while let Some(due) = path.next_due() {
            path.poll(due);
        }
    });
}

/// Labs that are there at once, each with its two hosts.
pub(crate) fn paths(count: u64) {
    wt_sys::process::raise_descriptor_limit().unwrap();
    wt_lab::enter().unwrap();
    let way = || {
        let way = Way::builder(BitsPerSecond(1_000_000)).delay(Duration::from_millis(5));
        way.queue(QueueBound::Packets(20))
    };
    let scenario: Scenario = Scenario::builder("scale")
        .title("scale")
        .source("a benchmark")
        .link(Link::builder("line", way(), way()))
        .build()
        .unwrap();
    tell_with_all(|| {
        let labs: Vec<Lab> =
            (0..count).map(|seed| Lab::start(scenario.clone(), Backend::Best, seed).unwrap()).collect();
        assert_eq!(labs.len() as u64, count);
    });
}

/// A classic capture, the pieces of which another thread writes as they are read, so that a file of any length needs no memory.
struct Pieces {
    next: Receiver<Vec<u8>>,
    piece: Cursor<Vec<u8>>,
}

impl Pieces {
    fn new(connections: u64) -> Self {
        let (piece, next) = sync_channel(64);
        std::thread::spawn(move || {
            let mut header = Vec::new();
            for number in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 262_144, 1] {
                header.extend(number.to_le_bytes());
            }
            let groups = (0..connections).step_by(100).map(|first| group(first..connections.min(first + 100)));
            // The reader that goes ends it.
            std::iter::once(header).chain(groups).try_for_each(|bytes| piece.send(bytes))
        });
        Self { next, piece: Cursor::default() }
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.piece.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            match self.next.recv() {
                Ok(piece) => self.piece = Cursor::new(piece),
                Err(_) => return Ok(0),
            }
        }
    }
}

/// Connections that are opened, ask, are answered and closed, all at once: eight segments each, of which one begins every 100 µs.
fn group(clients: Range<u64>) -> Vec<u8> {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const FIN: u8 = 1;
    let mut out = Vec::with_capacity(100_000);
    let mut at_us = clients.start * 800;
    let mut segment = |client: u64, from_client: bool, flags: u8, (seq, ack): (u32, u32), len: u32| {
        at_us += 100;
        let near = [10, (client >> 30) as u8, (client >> 22) as u8, (client >> 14) as u8];
        let port = 1_024 + (client & 0x3fff) as u16;
        let far = [192, 0, 2, 80];
        let ((src, from), (dst, to)) =
            if from_client { ((near, port), (far, 80)) } else { ((far, 80_u16), (near, port)) };
        let total = 40 + len;
        let mut packet = vec![2_u8; 12];
        packet.extend([8, 0, 0x45, 0]);
        packet.extend((total as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([src, dst].concat());
        packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        packet.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        let numbers = [1_700_000_000 + (at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32];
        let lengths = [packet.len() as u32, 14 + total];
        numbers.iter().chain(&lengths).for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(&packet);
    };
    for step in 0..8 {
        for client in clients.clone() {
            match step {
                0 => segment(client, true, SYN, (0, 0), 0),
                1 => segment(client, false, SYN | ACK, (0, 1), 0),
                2 => segment(client, true, ACK, (1, 1), 0),
                3 => segment(client, true, ACK, (1, 1), 100),
                4 => segment(client, false, ACK, (1, 101), 1_000),
                5 => segment(client, true, FIN | ACK, (101, 1_001), 0),
                6 => segment(client, false, FIN | ACK, (1_001, 102), 0),
                _ => segment(client, true, ACK, (102, 1_002), 0),
            }
        }
    }
    out
}

/// As `windtunnel analyse` reads it.
pub(crate) fn capture(connections: u64) {
    tell(|| {
        let mut reader = CaptureReader::new(Pieces::new(connections)).unwrap();
        let mut tracker = Tracker::new(Bounds { told: 10, ..Bounds::default() }, None);
        while let Some(record) = reader.next_record().unwrap() {
            match record.link.ip(record.bytes) {
                Some(ip) => tracker.packet(record.interface, record.at_ns, ip, record.original_len - 14),
                None => tracker.no_ip(),
            }
        }
        // Beyond its bound the tracker forgets some, and counts them once more when it meets them again.
        assert!(tracker.finish(&[]).packets.connections >= connections);
    });
}
