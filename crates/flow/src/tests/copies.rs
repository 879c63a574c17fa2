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

/// What was captured at the server, and behind it the same at a client that is so far away, its clock ahead by so much, and so many routers
/// between them.
fn joined(packets: &[Packet], one_way: u64, ahead: i64, routers: u8, ident: u16) -> Analysis {
    let mut all = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let mut bytes = packet.bytes(50_000);
        let ident = if ident == 0 { 0 } else { ident.wrapping_add(number as u16) };
        bytes[4..6].copy_from_slice(&ident.to_be_bytes());
        let mut routed = bytes.clone();
        routed[8] -= routers;
        let here = packet.at_ns + 1000 * MS;
        let at_client = if packet.from_client { here - one_way } else { here + one_way };
        let (client, server) = if packet.from_client { (bytes, routed) } else { (routed, bytes) };
        all.push((at_client.checked_add_signed(ahead).unwrap(), client, usize::from(packet.len)));
        all.push((here, server, usize::from(packet.len)));
    }
    all.sort_by_key(|(at, ..)| *at);
    let mut tracker = Tracker::new(Bounds::default(), None);
    all.iter().for_each(|(at, bytes, len)| tracker.packet(0, *at, bytes, bytes.len() + len));
    tracker.finish(&[])
}

/// Fifty round trips of 40 ms with 30 segments each; in every seventh one is lost, reported and retransmitted.
fn flights() -> Vec<Packet> {
    let rtt = 40 * MS;
    let mut packets = asked(rtt);
    let (mut at, mut seq) = (2 * rtt, 5001);
    for round in 0..50 {
        let lost = (round % 7 == 3).then_some(4);
        for n in 0..30 {
            let sent = at + u64::from(n) * 100_000;
            packets.push(packet(sent, false, ACK, seq + n * 1000, 1101, 1000));
            match lost {
                Some(lost) if n == lost => {}
                Some(lost) if n > lost => packets.push(
                    packet(sent + rtt, true, ACK, 1101, seq + lost * 1000, 0)
                        .sack(seq + (lost + 1) * 1000, seq + (n + 1) * 1000),
                ),
                _ => packets.push(packet(sent + rtt, true, ACK, 1101, seq + (n + 1) * 1000, 0)),
            }
        }
        at += rtt + 4 * MS;
        if let Some(lost) = lost {
            packets.push(packet(at, false, ACK, seq + lost * 1000, 1101, 1000));
            packets.push(packet(at + rtt, true, ACK, 1101, seq + 30_000, 0));
            at += rtt + 4 * MS;
        }
        seq += 30_000;
    }
    packets.sort_by_key(|packet| packet.at_ns);
    packets
}

#[test]
fn captures_of_both_ends_in_one_file_are_one_connection_whatever_their_clocks() {
    let packets = flights();
    let alone = analyse(&packets);
    let one = &alone.connections[0];
    assert_eq!((one.server.sent.retransmissions, one.blame.reason), (7, Reason::Loss));
    let near = 20 * MS - MS / 10;
    for (ahead, routers, ident) in [
        (0, 3, 1),
        (0, 3, 0),
        (2 * MS as i64, 1, 1),
        (-(5 * MS as i64), 1, 0),
        (60 * MS as i64, 3, 1),
        (-(60 * MS as i64), 3, 1),
    ] {
        let told = joined(&packets, near, ahead, routers, ident);
        let other = &told.connections[0];
        let copies = (told.packets.copies, told.packets.far_copies);
        assert_eq!(copies, (alone.packets.tcp, alone.packets.tcp), "{ahead} {routers} {ident}");
        assert_eq!((&one.client.sent, &one.server.sent), (&other.client.sent, &other.server.sent), "{ahead} {ident}");
        assert_eq!((other.blame.end, other.blame.reason), (one.blame.end, one.blame.reason), "{:#?}", other.blame);
        assert!(other.min_rtt_us.unwrap().abs_diff(one.min_rtt_us.unwrap()) < 1000, "{:?}", other.min_rtt_us);
    }
}

#[test]
fn captures_that_were_joined_without_a_router_between_them_blame_nobody_and_losses_do() {
    let near = 20 * MS - MS / 10;
    let packets = flights();
    for (from, routers, ident) in [(0, 0, 1), (0, 0, 0), (2, 0, 1), (2, 3, 1)] {
        let told = joined(&packets[from..], near, 0, routers, ident);
        let blame = &told.connections[0].blame;
        if routers > 0 {
            // Its first segments with data tell the places apart as well.
            assert_eq!(
                (blame.reason, told.connections[0].server.sent.retransmissions),
                (Reason::Loss, 7),
                "{blame:#?}"
            );
        } else {
            assert_eq!((blame.end, blame.reason), (Culprit::Nobody, Reason::None), "{blame:#?}");
            assert!(blame.findings.is_empty() && blame.text.contains("two captures in one"), "{ident}: {}", blame.text);
        }
    }
    // Each segment is lost once, and has another identification then, or nothing tells, and no SYN was lost.
    let again: Vec<Packet> = flights()
        .into_iter()
        .flat_map(|packet| {
            let again = Packet { at_ns: packet.at_ns + 20 * MS, ..packet.clone() };
            let is_again = !packet.from_client && packet.len > 0;
            std::iter::once(packet).chain(is_again.then_some(again))
        })
        .collect();
    for ident in [0, 1] {
        let told = captured(&again, 1, 0, ident);
        let blame = &told.connections[0].blame;
        assert!(blame.reason == Reason::Loss && told.packets.copies == 0, "{ident}: {blame:#?}");
    }
}
