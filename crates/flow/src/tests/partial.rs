//! Captures that don't tell all: nothing is made up of what is missing.

use super::*;

/// Ten segments in each of twenty round trips, acknowledged with a window that the header gives as 501.
fn by_flights(rtt: u64, from: &[Packet]) -> Vec<Packet> {
    let mut packets: Vec<Packet> = from.iter().cloned().map(|packet| packet.window(501)).collect();
    for round in 0..20u32 {
        for n in 0..10u32 {
            let (at, seq) = (u64::from(2 + round) * rtt + u64::from(n) * 10_000, 5001 + (round * 10 + n) * 1400);
            packets.push(packet(at, false, ACK, seq, 1101, 1400));
            packets.push(packet(at + rtt - MS, true, ACK, 1101, seq + 1400, 0).window(501));
        }
    }
    packets
}

#[test]
fn a_window_whose_scale_is_unknown_is_not_blamed() {
    let rtt = 50 * MS;
    let [syn, syn_ack, rest @ ..] = &asked(rtt)[..] else { panic!() };
    let unscaled = [syn.clone().options(&OPTIONS[..4]), syn_ack.clone()];
    let whole = [syn.clone(), syn_ack.clone()];
    // The window is 501 · 2⁷ bytes, or 501 where the client doesn't scale.
    for (opening, known) in
        [(&whole[..], true), (&whole[..1], true), (&whole[1..], false), (&[], false), (&unscaled, true)]
    {
        let report = only(&by_flights(rtt, &[opening, rest].concat()));
        assert_eq!(report.client.window.scale_known, known);
        let is_small = opening.len() == 2 && report.client.window.max == 501;
        let reason = if is_small { Reason::ReceiveWindow } else { Reason::None };
        assert_eq!(report.blame.reason, reason, "{:#?}", report.blame);
        assert_eq!(report.blame.text.contains("can't be told"), !known, "{}", report.blame.text);
        assert_eq!(report.time.client_window_us > 0, is_small, "{:?}", report.time);
        assert_eq!(
            (report.server.window_limited_packets > 0, report.server.window_unsure_packets > 0),
            (is_small, !known)
        );
    }
}

#[test]
fn a_syn_whose_options_were_cut_off_offers_nothing_known() {
    let packets = by_flights(50 * MS, &asked(50 * MS));
    let mut tracker = Tracker::new(Bounds::default(), None);
    for packet in &packets {
        let bytes = packet.bytes(50_000);
        tracker.packet(0, packet.at_ns, &bytes[..44.min(bytes.len())], bytes.len() + usize::from(packet.len));
    }
    let analysis = tracker.finish(&[]);
    let report = &analysis.connections[0];
    assert_eq!((analysis.packets.cut, analysis.packets.tcp), (2, packets.len() as u64));
    assert_eq!((report.client.offer, report.client.window.scale_known), (None, false));
    assert!(report.handshake.complete && report.blame.reason == Reason::None, "{report:#?}");
}

#[test]
fn parts_of_packets_and_packets_cut_short_are_counted() {
    let mut tracker = Tracker::new(Bounds::default(), None);
    let whole = packet(0, true, ACK, 1, 1, 1000).bytes(50_000);
    let mut fragment = whole.clone();
    fragment[6] = 0x20;
    let mut later = whole.clone();
    later[6..8].copy_from_slice(&[0, 100]);
    for (bytes, len) in
        [(&fragment[..], 1040), (&later, 1040), (&whole[..30], 1040), (&whole[..10], 1040), (&whole, 1040)]
    {
        tracker.packet(0, 0, bytes, len);
    }
    let packets = tracker.finish(&[]).packets;
    assert_eq!((packets.all, packets.fragments, packets.cut, packets.broken, packets.tcp), (5, 2, 1, 1, 1));
}

#[test]
fn super_packets_beyond_64_kib_count_with_all_their_bytes() {
    let tcp = |n: u32| packet(0, false, ACK, 5001 + n * 150_000, 1101, 0).bytes(50_000)[20..].to_vec();
    let net = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let six = |next: u8| [&[0x60, 0, 0, 0, 0, 0, next, 64][..], &net, &[2], &net, &[1]].concat();
    // A hop-by-hop header with the length (RFC 2675).
    let jumbo = [&six(0)[..], &[6, 0, 0xc2, 4], &(8 + 20 + 150_000u32).to_be_bytes()].concat();
    let mut four = packet(0, false, ACK, 0, 0, 0).bytes(50_000)[..20].to_vec();
    four[2..4].copy_from_slice(&[0, 0]);
    for header in [four, six(6), jumbo] {
        let mut tracker = Tracker::new(Bounds::default(), None);
        for n in 0..50 {
            let bytes = [&header[..], &tcp(n)].concat();
            tracker.packet(0, u64::from(n) * MS, &bytes, bytes.len() + 150_000);
        }
        let report = &tracker.finish(&[]).connections[0];
        let sent = report.server.sent;
        assert_eq!((report.server.bytes, sent.gaps, sent.super_packets), (7_500_000, 0, 50), "{}", header.len());
    }
}

/// As they stand in a capture: each with its time, if it has one.
fn timed(packets: &[Packet], time: impl Fn(usize, u64) -> Option<u64>) -> Analysis {
    let mut tracker = Tracker::new(Bounds::default(), None);
    for (number, packet) in packets.iter().enumerate() {
        let bytes = packet.bytes(50_000);
        let len = bytes.len() + usize::from(packet.len);
        tracker.packet(0, time(number, packet.at_ns), &bytes, len);
    }
    tracker.finish(&[])
}

const HOUR: u64 = 3_600_000 * MS;

#[test]
fn packets_without_a_time_are_counted_and_time_nothing() {
    let mut packets = bulk(50, 20 * MS, |_| 0);
    let again = packets.iter().position(|packet| packet.seq == 5001 && packet.len > 0).unwrap();
    packets.insert(again + 1, packets[again].clone());
    // None has one, and but one has none.
    for without in [0..packets.len(), 7..8] {
        let number = without.len() as u64;
        let analysis = timed(&packets, |n, at| (!without.contains(&n)).then_some(HOUR + at));
        let report = &analysis.connections[0];
        assert_eq!((analysis.packets.without_time, report.without_time), (number, number));
        assert_eq!(analysis.first_unix_us, if number == 1 { HOUR / 1000 } else { 0 });
        assert!(analysis.duration_us < 10_000_000, "{}", analysis.duration_us);
        assert_eq!((report.server.bytes, report.client.bytes), (140_000, 100));
        assert_eq!((report.captured, report.min_rtt_us, report.handshake.rtt_us), (Position::Unknown, None, None));
        assert_eq!((&report.client.rtt, &report.client.ack_delay, report.duration_us), (&None, &None, 0));
        assert!(report.blame.findings.is_empty() && report.blame.text.contains("can't be said"), "{:#?}", report.blame);
    }
    let none = timed(&packets, |_, _| None);
    assert_eq!(none.connections[0].server.sent.retransmissions, 1, "it came at no time, so it isn't a copy");
}

#[test]
fn a_clock_that_is_set_back_costs_no_time_and_no_rtt() {
    let packets = bulk(100, 20 * MS, |_| 0);
    let half = packets.len() / 2;
    let usual = timed(&packets, |_, at| Some(2 * HOUR + at));
    let set_back = timed(&packets, |n, at| Some(if n < half { 2 * HOUR + at } else { HOUR + at }));
    assert_eq!((usual.packets.set_back, set_back.packets.set_back), (0, 1));
    let (one, other) = (&usual.connections[0], &set_back.connections[0]);
    // All but the time between two packets.
    assert!(one.duration_us - other.duration_us < 21_000, "{} {}", one.duration_us, other.duration_us);
    assert_eq!((set_back.duration_us, set_back.first_unix_us), (other.duration_us, usual.first_unix_us));
    assert_eq!((one.min_rtt_us, one.captured, &one.blame.text), (other.min_rtt_us, other.captured, &other.blame.text));
    assert_eq!(one.client.ack_delay.as_ref().map(|d| d.max_us), other.client.ack_delay.as_ref().map(|d| d.max_us));
    // Packets of other queues come a little late, and that is no clock.
    let late = timed(&packets, |n, at| Some(HOUR + at - if n % 7 == 3 { 15 * MS } else { 0 }));
    assert_eq!(late.packets.set_back, 0);
}

/// Forty round trips at the server with ten segments each, one of which is lost in every fourth and retransmitted when the round trip is over.
/// ACKs stand `late_ns` behind their place in the file.
fn lossy(late_ns: u64) -> Vec<Packet> {
    let rtt = 40 * MS;
    let mut packets: Vec<(u64, Packet)> = asked(rtt).into_iter().map(|packet| (packet.at_ns, packet)).collect();
    let (mut at, mut seq) = (2 * rtt, 5001);
    for round in 0..40 {
        for n in 0..10 {
            let sent = at + u64::from(n) * 100_000;
            packets.push((sent, packet(sent, false, ACK, seq + n * 1000, 1101, 1000)));
            let is_lost = round % 4 == 2;
            if !is_lost || n < 3 {
                packets.push((sent + rtt + late_ns, packet(sent + rtt, true, ACK, 1101, seq + (n + 1) * 1000, 0)));
            } else if n > 3 {
                let again = packet(sent + rtt, true, ACK, 1101, seq + 3000, 0).sack(seq + 4000, seq + (n + 1) * 1000);
                packets.push((sent + rtt + late_ns, again));
            }
        }
        if round % 4 == 2 {
            at += rtt + MS;
            packets.push((at, packet(at, false, ACK, seq + 3000, 1101, 1000)));
            packets.push((at + rtt + late_ns, packet(at + rtt, true, ACK, 1101, seq + 10_000, 0)));
        }
        at += rtt + MS;
        seq += 10_000;
    }
    packets.sort_by_key(|(place, _)| *place);
    packets.into_iter().map(|(_, packet)| packet).collect()
}

#[test]
fn a_repair_whose_end_is_not_in_the_capture_does_not_go_on() {
    let both = lossy(0);
    let whole = only(&both);
    let part = |report: &ConnectionReport| report.time.server_repair_us as f64 / report.duration_us as f64;
    assert!((0.1..0.3).contains(&part(&whole)), "{:?}", whole.time);
    assert!(whole.blame.text.contains("% of the time went by while losses were repaired"), "{}", whole.blame.text);
    // Of one direction alone the retransmissions are told, and no share of the time.
    let sent: Vec<Packet> = both.into_iter().filter(|packet| !packet.from_client).collect();
    let half = only(&sent);
    assert_eq!((half.server.sent.retransmissions, half.blame.reason), (10, Reason::Loss));
    assert!(part(&half) < 0.3, "{:?}", half.time);
    let wanted = "10 of 410 were retransmitted (2.4 %), and how long repairs took would stand in the client's ACKs";
    assert!(half.blame.text.contains(wanted) && !half.blame.text.contains("of the time"), "{}", half.blame.text);
    // ACKs that stand behind later packets of the other end.
    let unsorted = timed(&lossy(200 * MS), |_, at| Some(HOUR + at));
    let report = &unsorted.connections[0];
    assert!(unsorted.packets.set_back > 10 && part(report) < 0.3, "{:?}", report.time);
    assert_eq!(report.server.sent.retransmissions, 10);
}
