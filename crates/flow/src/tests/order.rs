//! Files in which packets don't stand in the order of their times, or aren't such as can be read.

use super::*;
use crate::Packets;
use crate::{CaptureAnswer, CaptureRequest, analyse_capture};

/// A file of raw IP packets with times in µs.
fn file(packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101u32] {
        bytes.extend(word.to_le_bytes());
    }
    for packet in packets {
        let (headers, us) = (packet.bytes(50_000), packet.at_ns / 1000);
        let lens = [headers.len() as u32, headers.len() as u32 + u32::from(packet.len)];
        for word in [1000 + (us / 1_000_000) as u32, (us % 1_000_000) as u32, lens[0], lens[1]] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(headers);
    }
    bytes
}

fn read(packets: &[Packet]) -> CaptureAnswer {
    analyse_capture(&file(packets)[..], "file", &CaptureRequest { filter: None, connections: 10 }).unwrap()
}

#[test]
fn packets_that_stand_a_little_behind_later_ones_are_read_in_the_order_of_their_times_and_told() {
    let packets = bulk(200, 20 * MS, |_| 0);
    let sorted = read(&packets);
    // Each five in the opposite order, and what one queue wrote 50 ms late.
    let mut shuffled = packets.clone();
    shuffled.chunks_mut(5).for_each(<[Packet]>::reverse);
    let mut queues = packets.clone();
    queues.sort_by_key(|packet| packet.at_ns + if packet.from_client { 50 * MS } else { 0 });
    for mixed in [shuffled, queues] {
        let told = read(&mixed);
        assert_eq!(told.analysis.connections, sorted.analysis.connections);
        let unsorted = told.analysis.packets.unsorted;
        assert!(unsorted > 100, "{unsorted}");
        let warning = format!("{unsorted} packets stood behind later ones");
        assert!(told.analysis.warnings.iter().any(|told| told.starts_with(&warning)), "{:?}", told.analysis.warnings);
    }
    assert_eq!((sorted.analysis.packets.unsorted, sorted.analysis.warnings.len()), (0, 0));
}

#[test]
fn what_gets_out_of_order_in_the_middle_of_a_long_capture_is_put_in_order_from_then_on() {
    let packets = bulk(5000, 20 * MS, |_| 0);
    let mut mixed = packets.clone();
    mixed[10_000..].chunks_mut(4).for_each(<[Packet]>::reverse);
    let (sorted, told) = (read(&packets), read(&mixed));
    assert!(told.analysis.packets.unsorted > 2000, "{:?}", told.analysis.packets);
    let [sorted, told] = [&sorted, &told].map(|answer| &answer.analysis.connections[0]);
    assert_eq!((told.server.bytes, told.server.sent.retransmissions), (sorted.server.bytes, 0));
    assert!(told.server.sent.out_of_order <= 3 && told.blame == sorted.blame, "{:?}", told.server.sent);
}

#[test]
fn of_packets_that_are_not_looked_at_the_reason_is_told() {
    let whole = packet(0, true, ACK, 1, 1, 1000).bytes(50_000);
    let with_protocol = |protocol: u8| {
        let mut bytes = whole.clone();
        bytes[9] = protocol;
        bytes
    };
    let mut vxlan = with_protocol(17);
    vxlan[22..26].copy_from_slice(&[0x12, 0xb5, 1, 0]);
    let told = |bytes: &[u8]| {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101u32, 1000, 0, bytes.len() as u32, 1040] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
        let request = CaptureRequest { filter: None, connections: 10 };
        let analysis = analyse_capture(&file[..], "file", &request).unwrap().analysis;
        (analysis.packets, analysis.warnings.join("; "))
    };
    let tunnel = Packets { all: 1, not_tcp: 1, tunnelled: 1, ..Packets::default() };
    let cut = Packets { all: 1, broken: 1, cut_in_ip: 1, ..Packets::default() };
    for (bytes, packets, wanted) in [
        (&with_protocol(47)[..], tunnel, "1 packet was of tunnels (GRE,"),
        (&with_protocol(4), tunnel, "1 packet was of tunnels (GRE,"),
        (&vxlan, tunnel, "1 packet was of tunnels (GRE,"),
        (&whole[..16], cut, "1 packet was cut short within the IP header"),
        (&[&[0x44], &whole[1..]].concat(), Packets { all: 1, broken: 1, ..Packets::default() }, "1 packet was damaged"),
        (&with_protocol(17), Packets { all: 1, not_tcp: 1, ..Packets::default() }, ""),
    ] {
        let (counts, warnings) = told(bytes);
        assert_eq!(counts, packets, "{wanted}");
        assert!(warnings.contains(wanted) && warnings.is_empty() == wanted.is_empty(), "{warnings}");
    }
}
