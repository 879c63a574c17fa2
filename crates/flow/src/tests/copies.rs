//! Packets that stand in a capture twice.

use super::*;

/// The same bytes with an identification of IPv4, `times` each, some time apart.
fn captured(packets: &[Packet], times: u64, apart_ns: u64, ident: u16) -> Analysis {
    captured_by(packets, times, apart_ns, ident, 1)
}

/// The same where a copy has gone so many hops more than the packet before.
fn captured_by(packets: &[Packet], times: u64, apart_ns: u64, ident: u16, hops: u8) -> Analysis {
    let mut all = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let mut bytes = packet.bytes(50_000);
        let ident = if ident == 0 { 0 } else { ident.wrapping_add(number as u16) };
        bytes[4..6].copy_from_slice(&ident.to_be_bytes());
        all.extend((0..times).map(|copy| {
            let mut bytes = bytes.clone();
            // A router takes one off the time to live.
            bytes[8] -= copy as u8 * hops;
            (packet.at_ns + copy * apart_ns, bytes, usize::from(packet.len))
        }));
    }
    all.sort_by_key(|(at, ..)| *at);
    let mut tracker = Tracker::new(Bounds::default(), None);
    all.iter().for_each(|(at, bytes, len)| tracker.packet(0, *at, bytes, bytes.len() + len));
    tracker.finish(&[])
}

#[test]
fn packets_that_were_captured_twice_count_once_and_those_sent_again_twice() {
    let packets = bulk(200, 20 * MS, |_| 0);
    let once = captured(&packets, 1, 0, 1);
    for (apart_ns, ident) in [(30_000, 1), (400_000, 1), (3_000, 40_000)] {
        let twice = captured(&packets, 2, apart_ns, ident);
        assert_eq!((twice.packets.tcp, twice.packets.copies), (2 * once.packets.tcp, once.packets.tcp), "{apart_ns}");
        let (one, two) = (&once.connections[0], &twice.connections[0]);
        assert_eq!((&one.client.sent, &one.server.sent), (&two.client.sent, &two.server.sent), "{apart_ns}");
        assert_eq!((one.min_rtt_us, &one.blame), (two.min_rtt_us, &two.blame), "{apart_ns}");
    }
    // Without identifications by the hops to go, or because all else came twice as well.
    for (apart_ns, routed) in [(30_000, true), (300_000, true), (30_000, false), (300_000, false)] {
        let twice = captured_by(&packets, 2, apart_ns, 0, u8::from(routed));
        assert_eq!((twice.packets.tcp, twice.packets.copies), (2 * once.packets.tcp, once.packets.tcp), "{apart_ns}");
        let (one, two) = (&once.connections[0], &twice.connections[0]);
        assert_eq!((&one.client.sent, &one.server.sent), (&two.client.sent, &two.server.sent), "{apart_ns}");
        assert_eq!((one.min_rtt_us, &one.blame), (two.min_rtt_us, &two.blame), "{apart_ns}");
    }
    // ACKs that repeat one are no copies where nothing else came twice.
    let mut repeated = packets.clone();
    let acks: Vec<Packet> = packets.iter().filter(|packet| packet.from_client && packet.len == 0).cloned().collect();
    repeated.extend(acks.into_iter().skip(2).map(|packet| Packet { at_ns: packet.at_ns + 30_000, ..packet }));
    let told = captured(&repeated, 1, 0, 0);
    assert_eq!((told.packets.copies, told.connections[0].client.sent.duplicate_acks), (0, 200));
    // A segment that is retransmitted has another identification.
    let mut again = asked(2 * MS);
    again.push(packet(10 * MS, false, ACK, 5001, 1101, 1000));
    again.push(packet(11 * MS, false, ACK, 5001, 1101, 1000));
    let told = captured(&again, 1, 0, 7);
    assert_eq!((told.packets.copies, told.connections[0].server.sent.retransmissions), (0, 1));
}
