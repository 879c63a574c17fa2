//! Bytes of strangers, the same that libFuzzer feeds (`fuzz/`), from a fixed seed: random ones, and right packets with
//! wrong places.

#[path = "../../../../fuzz/bodies.rs"]
mod bodies;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::net::{Ipv4Addr, Ipv6Addr};
use wt_probe::codec::{Segment, echo_request, full_options};
use wt_wire::{Ecn, TcpFlags};

/// Right packets of every kind that probing hears.
fn right() -> Vec<Vec<u8>> {
    let options = full_options(1460);
    let mut all = Vec::new();
    for v6 in [false, true] {
        let (from, to) = if v6 {
            (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).into())
        } else {
            (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(192, 0, 2, 2).into())
        };
        let flags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
        let segment = Segment {
            addresses: (from, to),
            ports: (40_000, 80),
            seq: 1,
            ack: 2,
            flags,
            window: 100,
            options: &options,
            payload_len: 20,
            data: b"data",
        };
        for (protocol, payload) in
            [(6, segment.to_bytes()), (if v6 { 58 } else { 1 }, echo_request(v6, 0x1234, 7, 1, 64))]
        {
            let packet = with_header(v6, protocol, &payload);
            let errors = [
                wt_wire::frag_needed(&packet, Ipv4Addr::new(10, 0, 0, 1), 1400),
                wt_wire::packet_too_big(&packet, Ipv6Addr::LOCALHOST, 1400),
                wt_wire::time_exceeded(
                    &packet,
                    if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() },
                ),
                wt_wire::echo_reply(&packet),
            ];
            let errors: Vec<Vec<u8>> = errors.into_iter().flatten().collect();
            // Raw sockets of IPv6 give what comes after the header.
            all.extend(errors.iter().filter(|_| v6).map(|error| error[40..].to_vec()));
            all.extend(errors);
            all.extend([packet, payload]);
        }
    }
    all
}

fn with_header(v6: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).unwrap_or(0);
    let mut packet = if v6 {
        let mut header = vec![0u8; 40];
        (header[0], header[6], header[7]) = (0x60, protocol, 64);
        header[4..6].copy_from_slice(&len.to_be_bytes());
        header[23] = 1;
        header[24..28].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
        header
    } else {
        let mut header = vec![0u8; 20];
        (header[0], header[8], header[9], header[1]) = (0x45, 64, protocol, Ecn::Ect0 as u8);
        header[2..4].copy_from_slice(&(len + 20).to_be_bytes());
        header[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        let sum = wt_wire::Checksum::new().with(&header).finish();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    };
    packet.extend_from_slice(payload);
    packet
}

fn every_body(bytes: &[u8]) {
    bodies::packets(bytes);
    bodies::edits(bytes);
    bodies::answers(bytes);
    bodies::framing(bytes);
}

#[test]
fn random_bytes_break_no_parser() {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    for _ in 0..100_000 {
        let mut bytes = vec![0u8; rng.random_range(0..160)];
        rng.fill(&mut bytes[..]);
        // Something that looks like the beginning of a packet gets further.
        if let Some(first) = bytes.first_mut() {
            *first = [*first, 0x45, 0x60, 0x4f][usize::from(*first % 4)];
        }
        every_body(&bytes);
    }
}

#[test]
fn right_packets_with_wrong_places_break_no_parser() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    for packet in right() {
        for len in 0..=packet.len() {
            every_body(&packet[..len]);
        }
        for _ in 0..2000 {
            let mut bytes = packet.clone();
            for _ in 0..rng.random_range(1..6) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            bytes.truncate(rng.random_range(0..=bytes.len()));
            every_body(&bytes);
        }
    }
}

#[test]
fn the_right_packets_are_read() {
    let packets = right();
    let heard = packets.iter().filter(|bytes| {
        let from = |v6: bool| if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        [false, true].into_iter().any(|v6| wt_probe::codec::read_icmp(bytes, from(v6), None, 0x1234).is_some())
    });
    // Too big, expired and the echo's reply, for both versions; and errors about segments.
    assert!(heard.count() >= 8);
}

#[test]
fn answers_of_any_sense_end_every_machine() {
    let mut rng = ChaCha8Rng::seed_from_u64(22);
    for _ in 0..1500 {
        let mut bytes = vec![0u8; rng.random_range(1..1200)];
        rng.fill(&mut bytes[..]);
        bodies::machines(&bytes);
    }
}
