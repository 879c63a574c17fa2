//! The path between two real kernels against the same stages in virtual time. One process, one thread at the start: a
//! user namespace can't be entered otherwise, so this isn't run by the usual harness.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::time::Duration;
use wt_lab::{Backend, Lab, LabOptions, LinkEnd, Recording, SERVER_V4, Scenario};
use wt_link::{Event, Packet, Path, Side, Time};

const PORT: u16 = 9000;
const PACKETS: u16 = 300;

/// A path on which chance and queue have a word; packets of all sizes pass.
fn scenario() -> Scenario {
    let way =
        "{ rate = \"4mbit\", delay = \"10ms\", queue = \"20kB\", loss = \"8%\", jitter = \"2ms\", duplicate = \"2%\" }";
    let text = format!(
        "title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\nmtu = 1500\nframing = \"ethernet\"\ndown = {way}\nup = {way}\n"
    );
    Scenario::parse("test.toml", &text).unwrap()
}

/// Length of the UDP payload of a packet: not all alike.
fn length(number: u16) -> usize {
    40 + usize::from(number) * 37 % 1300
}

/// Sends numbered packets from client to server and gives those that arrive, in order.
fn send(lab: &Lab) -> Vec<u16> {
    let receiver = lab.server.run(|| UdpSocket::bind((SERVER_V4, PORT)).unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(600))).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut buffer, mut seen) = ([0; 2000], Vec::new());
            while let Ok(len) = receiver.recv(&mut buffer) {
                let number = u16::from_be_bytes([buffer[0], buffer[1]]);
                assert_eq!(len, length(number));
                seen.push(number);
            }
            seen
        });
        lab.client
            .run(|| {
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                for number in 0..PACKETS {
                    let mut payload = vec![7; length(number)];
                    payload[..2].copy_from_slice(&number.to_be_bytes());
                    socket.send_to(&payload, (SERVER_V4, PORT)).unwrap();
                    // The schedule is whatever it comes to; the recording tells.
                    let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_micros(1300)));
                }
            })
            .unwrap();
        reader.join().unwrap()
    })
}

/// What the recording has of the test's own packets: end, time, number.
fn recorded(file: &std::path::Path) -> Vec<(u32, u64, u16)> {
    let bytes = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        let body = at + 8;
        // An IPv4 packet (from byte 20 of the block's body) of UDP to the test's port.
        if word(at) == 6 && bytes[body + 20] == 0x45 && bytes[body + 29] == 17 {
            let packet = &bytes[body + 20..];
            if u16::from_be_bytes([packet[22], packet[23]]) == PORT {
                let time = u64::from(word(body + 4)) << 32 | u64::from(word(body + 8));
                packets.push((word(body), time, u16::from_be_bytes([packet[28], packet[29]])));
            }
        }
        at += word(at + 4) as usize;
    }
    packets
}

fn lab(seed: u64, record: Option<Recording>) -> Lab {
    Lab::with(scenario(), LabOptions { record, ..LabOptions::seeded(Backend::Best, seed) }).unwrap()
}

fn the_same_seed_loses_the_same_packets() {
    let lost = |seed| {
        let there: BTreeSet<u16> = send(&lab(seed, None)).into_iter().collect();
        (0..PACKETS).filter(|number| !there.contains(number)).collect::<Vec<_>>()
    };
    let (first, again, other) = (lost(7), lost(7), lost(8));
    assert!(first.len() > 5, "8 % of {PACKETS} were to be lost: {first:?}");
    assert_eq!(first, again);
    assert_ne!(first, other);
}

fn the_lab_departs_when_the_stages_in_virtual_time_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.pcapng");
    let recording = Recording { file: file.clone(), ends: LinkEnd::outer(&scenario()) };
    let lab = lab(11, Some(recording));
    let arrived = send(&lab);
    let stats = lab.stats();
    lab.stop().unwrap();
    let packets = recorded(&file);
    let (entered, left): (Vec<_>, Vec<_>) = packets.iter().copied().partition(|(end, ..)| *end == 0);
    assert_eq!(entered.len(), usize::from(PACKETS));
    let start = entered[0].1;
    let mut path = Path::new(&scenario().path(), 11).unwrap();
    for (_, at, number) in &entered {
        let mut packet = Packet::new(28 + length(*number) as u32, *number);
        packet.data_len = length(*number) as u32;
        path.push(Side::AToB, Time(at - start), packet);
    }
    let mut departures: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    while let Some(event) = path.poll(Time::MAX) {
        if let Event::Deliver { at, packet } = event.event {
            departures.entry(packet.payload).or_default().push(at.0);
        }
    }
    let mut seen: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for (_, at, number) in left {
        seen.entry(number).or_default().push(at - start);
    }
    assert!(departures.values().any(|times| times.len() == 2), "some came twice");
    assert_eq!(seen, departures, "to the nanosecond, because departures are computed");
    let counted: usize = departures.values().map(Vec::len).sum();
    assert_eq!(arrived.len(), counted, "and every one reached the other kernel");
    let bins: u64 = stats.histogram().map(|(_, count)| count).sum();
    assert_eq!(bins, counted as u64, "each one's lateness was counted");
}

fn main() {
    wt_testing::without_threads(
        wt_lab::enter,
        &[
            ("the_same_seed_loses_the_same_packets", the_same_seed_loses_the_same_packets),
            ("the_lab_departs_when_the_stages_in_virtual_time_do", the_lab_departs_when_the_stages_in_virtual_time_do),
        ],
    );
}
