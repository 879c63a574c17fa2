//! How fast large captures are analysed, and with how much memory: a file of a gigabyte of each of several kinds, written here and then read
//! as `windtunnel analyse` does. `cargo bench -p wt-flow --bench captures [-- KIND...]`; MEGABYTES=100 makes them smaller. Times are of the CPU,
//! so that they don't depend on what else the machine does.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops when it can't go on")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;
use wt_flow::{Analysis, Bounds, Tracker};
use wt_testing::most_memory_mib;
use wt_wire::CaptureReader;

/// Names the kind that a process of its own measures.
const ROLE: &str = "CAPTURES_ROLE";
/// Bytes of payload of a full segment.
const MSS: u32 = 1448;

/// What a file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One download, packets kept whole, classic format.
    Whole,
    /// One download of which 96 bytes of each packet were kept.
    Headers,
    /// The same in the next generation's format.
    HeadersNg,
    /// 10,000 downloads that take turns.
    Many,
    /// SYNs, each from another port or address.
    Flood,
    /// Packets without any sense.
    Garbage,
}

const KINDS: [(&str, Kind); 6] = [
    ("whole", Kind::Whole),
    ("headers", Kind::Headers),
    ("headers-ng", Kind::HeadersNg),
    ("many", Kind::Many),
    ("flood", Kind::Flood),
    ("garbage", Kind::Garbage),
];

/// A file with so many bytes, no repetition in what says who is who.
struct Capture {
    out: BufWriter<File>,
    kind: Kind,
    kept: usize,
    at_us: u64,
    written: u64,
    /// Bytes of the file.
    size: u64,
    packet: Vec<u8>,
}

impl Capture {
    fn record(&mut self, original: u32) {
        self.at_us += 10;
        let kept = self.packet.len().min(self.kept) as u32;
        let out = &mut self.out;
        if self.kind == Kind::HeadersNg {
            let len = 32 + kept.next_multiple_of(4);
            let numbers = [6, len, 0, (self.at_us >> 32) as u32, self.at_us as u32, kept, original];
            numbers.iter().for_each(|number| out.write_all(&number.to_le_bytes()).unwrap());
            out.write_all(&self.packet[..kept as usize]).unwrap();
            out.write_all(&[0; 3][..(kept.next_multiple_of(4) - kept) as usize]).unwrap();
            out.write_all(&len.to_le_bytes()).unwrap();
            self.written += u64::from(len);
        } else {
            let seconds = (1_700_000_000 + self.at_us / 1_000_000) as u32;
            let numbers = [seconds, (self.at_us % 1_000_000) as u32, kept, original];
            numbers.iter().for_each(|number| out.write_all(&number.to_le_bytes()).unwrap());
            out.write_all(&self.packet[..kept as usize]).unwrap();
            self.written += 16 + u64::from(kept);
        }
    }

    /// A segment of a client with this number, or of the server to it.
    fn segment(&mut self, client: u32, from_client: bool, flags: u8, (seq, ack): (u32, u32), len: u32) {
        self.packet.clear();
        let (near, far) = ([10, (client >> 24) as u8, (client >> 16 & 0xff) as u8, 1], [192, 0, 2, 80]);
        let (port, service) = ((client & 0xffff) as u16, 80u16);
        let (src, dst) = if from_client { (near, far) } else { (far, near) };
        let (from, to) = if from_client { (port, service) } else { (service, port) };
        let total = 20 + 32 + len;
        self.packet.extend([2; 12]);
        self.packet.extend([8, 0, 0x45, 0]);
        self.packet.extend((total as u16).to_be_bytes());
        self.packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        self.packet.extend([src, dst].concat());
        self.packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        self.packet.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        self.packet.extend([0x80, flags, 0xff, 0xff, 0, 0, 0, 0]);
        // No-operation twice and timestamps.
        self.packet.extend([1, 1, 8, 10]);
        let (now, echo) = ((self.at_us / 1000) as u32, (self.at_us / 1000) as u32 - 10);
        self.packet.extend([now.to_be_bytes(), echo.to_be_bytes()].concat());
        self.packet.resize(14 + total as usize, 0x5a);
        self.record(14 + total);
    }

    /// Fills the file.
    fn fill(&mut self) {
        const SYN: u8 = 2;
        const ACK: u8 = 16;
        match self.kind {
            Kind::Garbage => {
                let mut state = 1u64;
                while self.written < self.size {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    self.packet.clear();
                    self.packet.extend(state.to_le_bytes().repeat(12));
                    self.record(96);
                }
            }
            Kind::Flood => (0..)
                .take_while(|client| {
                    self.segment(*client, true, SYN, (7, 0), 0);
                    self.written < self.size
                })
                .for_each(drop),
            _ => {
                let clients = if self.kind == Kind::Many { 10_000 } else { 1 };
                for client in 0..clients {
                    self.segment(client, true, SYN, (0, 0), 0);
                    self.segment(client, false, SYN | ACK, (0, 1), 0);
                    self.segment(client, true, ACK, (1, 1), 0);
                    self.segment(client, true, ACK, (1, 1), 100);
                }
                let mut seq = 1u32;
                while self.written < self.size {
                    // Forty segments are under way; every second one is acknowledged.
                    for client in 0..clients {
                        self.segment(client, false, ACK, (seq, 101), MSS);
                        self.segment(client, false, ACK, (seq.wrapping_add(MSS), 101), MSS);
                        let heard = seq.wrapping_sub(38 * MSS);
                        self.segment(client, true, ACK, (101, if seq < 40 * MSS { 1 } else { heard }), 0);
                    }
                    seq = seq.wrapping_add(2 * MSS);
                }
            }
        }
    }
}

/// Writes a capture.
fn write(path: &std::path::Path, kind: Kind, size: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    if kind == Kind::HeadersNg {
        for numbers in [&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28][..], &[1, 20, 1, 0, 20]] {
            numbers.iter().for_each(|number| out.write_all(&number.to_le_bytes()).unwrap());
        }
    } else {
        for number in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 262_144, 1u32] {
            out.write_all(&number.to_le_bytes()).unwrap();
        }
    }
    let kept = if kind == Kind::Whole { usize::MAX } else { 96 };
    let mut capture = Capture { out, kind, kept, at_us: 1_000_000, written: 0, size, packet: Vec::new() };
    capture.fill();
    capture.out.flush().unwrap();
}

/// As `windtunnel analyse` reads it.
fn analyse(path: &std::path::Path) -> Analysis {
    let mut reader = CaptureReader::new(File::open(path).unwrap()).unwrap();
    let mut tracker = Tracker::new(Bounds { told: 10, ..Bounds::default() }, None);
    while let Some(record) = reader.next_record().unwrap() {
        match record.link.ip(record.bytes) {
            Some(ip) => tracker.packet(record.interface, record.at_ns, ip, record.original_len - 14),
            None => tracker.no_ip(),
        }
    }
    tracker.finish(&[])
}

/// What this process has had of the CPU, s.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Ok(kind) = std::env::var(ROLE) {
        let kind = KINDS.iter().find(|(name, _)| *name == kind).unwrap();
        return measure(kind.0, kind.1);
    }
    // Each in a process of its own, whose memory says nothing of the others'.
    for (name, _) in KINDS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|word| word == name)) {
        assert!(Command::new(std::env::current_exe().unwrap()).env(ROLE, name).status().unwrap().success());
    }
}

/// Writes a file of a kind, and reads it.
fn measure(name: &str, kind: Kind) {
    let size = std::env::var("MEGABYTES").map_or(1000, |text| text.parse::<u64>().unwrap()) * 1_000_000;
    let path = std::env::temp_dir().join(format!("windtunnel-bench-{}.pcap", std::process::id()));
    write(&path, kind, size);
    let bytes = std::fs::metadata(&path).unwrap().len();
    let _ = most_memory_mib();
    let before = cpu_time();
    let packets = analyse(&path).packets;
    let seconds = cpu_time() - before;
    std::fs::remove_file(&path).unwrap();
    println!(
        "{name:<10} {:.2} GB/s, {:>5.2} million packets/s ({:.2} s, {} packets, {} connections), at most {:.0} MiB",
        bytes as f64 / seconds / 1e9,
        packets.all as f64 / seconds / 1e6,
        seconds,
        packets.all,
        packets.connections,
        most_memory_mib()
    );
}
