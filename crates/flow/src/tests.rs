//! Connections made by hand, of which is known what they suffer from.

use crate::{Analysis, Bounds, ConnectionReport, Culprit, End, Position, Reason, State, Tracker};
use proptest::prelude::*;

mod copies;
mod crowd;
mod echoes;
mod holes;
mod marks;
mod order;
mod partial;
mod quiet;
mod sent_again;
mod silence;
mod supply;
mod windows;

const SYN: u8 = 2;
const RST: u8 = 4;
const FIN: u8 = 1;
const ACK: u8 = 16;
const MS: u64 = 1_000_000;

/// A segment between 10.0.0.1:50000 (the client) and 192.0.2.1:80.
#[derive(Clone)]
struct Packet {
    at_ns: u64,
    from_client: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    window: u16,
    len: u16,
    options: Vec<u8>,
}

fn packet(at_ns: u64, from_client: bool, flags: u8, seq: u32, ack: u32, len: u16) -> Packet {
    Packet { at_ns, from_client, flags, seq, ack, window: 65_000, len, options: Vec::new() }
}

/// MSS 1460, window scale 7, SACK.
const OPTIONS: [u8; 12] = [2, 4, 0x05, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2];

impl Packet {
    fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self
    }

    fn sack(self, left: u32, right: u32) -> Self {
        let mut options = vec![1, 1, 5, 10];
        options.extend(left.to_be_bytes());
        options.extend(right.to_be_bytes());
        self.options(&options)
    }

    /// The headers; the payload is only announced.
    fn bytes(&self, port: u16) -> Vec<u8> {
        let (client, server) = ([10, 0, 0, 1], [192, 0, 2, 1]);
        let header = 20 + self.options.len();
        let mut bytes = vec![0x45, 0];
        bytes.extend((20 + header as u16 + self.len).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (src, dst, from, to) =
            if self.from_client { (client, server, port, 80) } else { (server, client, 80, port) };
        bytes.extend(src);
        bytes.extend(dst);
        bytes.extend(from.to_be_bytes());
        bytes.extend(to.to_be_bytes());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([(header / 4) as u8 * 16, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.options);
        bytes
    }
}

fn analyse(packets: &[Packet]) -> Analysis {
    let mut sorted = packets.to_vec();
    sorted.sort_by_key(|packet| packet.at_ns);
    let mut tracker = Tracker::new(Bounds::default(), None);
    for packet in sorted {
        let bytes = packet.bytes(50_000);
        let len = bytes.len() + usize::from(packet.len);
        tracker.packet(0, packet.at_ns, &bytes, len);
    }
    tracker.finish(&["eth0".to_owned()])
}

fn only(packets: &[Packet]) -> ConnectionReport {
    let analysis = analyse(packets);
    assert_eq!(analysis.connections.len(), 1);
    analysis.connections.into_iter().next().unwrap()
}

/// Captured at the server: the client is `rtt` away. Ends with the client at 1001 and the server at 5001.
fn handshake(rtt: u64) -> Vec<Packet> {
    vec![
        packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS),
        packet(MS / 10, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS),
        packet(MS / 10 + rtt, true, ACK, 1001, 5001, 0),
    ]
}

/// The handshake and a request of 100 bytes.
fn asked(rtt: u64) -> Vec<Packet> {
    let mut packets = handshake(rtt);
    packets.push(packet(MS / 5 + rtt, true, ACK, 1001, 5001, 100));
    packets
}

#[test]
fn a_handshake_gives_rtt_options_and_the_place_of_capture() {
    let report = only(&asked(40 * MS));
    assert_eq!((report.handshake.complete, report.handshake.rtt_us), (true, Some(40_100)));
    let offer = report.client.offer.unwrap();
    assert_eq!(
        (offer.mss, offer.window_scale, offer.sack, offer.timestamps, offer.ecn),
        (Some(1460), Some(7), true, false, false)
    );
    assert_eq!((report.captured, report.interface.as_deref()), (Position::NearServer, Some("eth0")));
    assert_eq!(report.client.window.max, 65_000 << 7);
    assert_eq!((report.client.bytes, report.server.bytes), (100, 0));
}

#[test]
fn windows_count_for_as_long_as_they_hold_and_waits_for_each_byte() {
    let mut packets = asked(40 * MS);
    let data = |at: u64, seq: u32, len: u16| packet(at * MS, false, ACK, seq, 1101, len);
    let ack = |at: u64, ack: u32, window: u16| packet(at * MS, true, ACK, 1101, ack, 0).window(window);
    packets.extend([data(100, 5001, 1000), ack(110, 6001, 200), data(120, 6001, 3000), data(121, 9001, 1000)]);
    // 200 · 2⁷ for 20 ms, then 100 · 2⁷ for 60 ms.
    packets.extend([ack(130, 10_001, 100), ack(190, 10_001, 900)]);
    let client = only(&packets).client;
    assert_eq!(client.window.mean_over_time, Some((200.0 * 20.0 + 100.0 * 60.0) / 80.0 * 128.0));
    // Up to the edge, since a segment always fits.
    assert_eq!(client.window.usable, client.window.mean_over_time);
    // Bytes wait for 10, 10 and 9 ms.
    let wait = (1000.0 * 10.0 + 3000.0 * 10.0 + 1000.0 * 9.0) / 5000.0;
    assert!((client.ack_wait_us.unwrap() - wait * 1000.0).abs() < 1e-6, "{:?}", client.ack_wait_us);
}

/// The server sends pairs of segments; the client acknowledges each pair after `delay` of its number.
fn bulk(pairs: u32, rtt: u64, delay: impl Fn(u32) -> u64) -> Vec<Packet> {
    let mut packets = asked(rtt);
    let mut at = 2 * rtt;
    for pair in 0..pairs {
        let seq = 5001 + pair * 2800;
        packets.push(packet(at, false, ACK, 1101, 0, 1400).acked(1101, seq));
        packets.push(packet(at + 1000, false, ACK, 1101, 0, 1400).acked(1101, seq + 1400));
        at += rtt + delay(pair);
        packets.push(packet(at, true, ACK, 1101, seq + 2800, 0));
        at += MS / 10;
    }
    packets
}

impl Packet {
    /// From the server: acknowledges, with this number of its own.
    fn acked(mut self, ack: u32, seq: u32) -> Self {
        (self.seq, self.ack) = (seq, ack);
        self
    }
}

#[test]
fn acks_that_come_later_and_later_are_the_receivers_fault() {
    // From 0 to 0.4 s in 200 steps.
    let report = only(&bulk(200, 20 * MS, |pair| u64::from(pair) * 2 * MS));
    let delay = report.client.ack_delay.as_ref().unwrap();
    assert!(delay.growing, "{delay:?}");
    let [first, _, last] = delay.thirds_us.unwrap();
    assert!(first < 250_000.0 && last > 300_000.0, "{first} {last}");
    assert!((390_000.0..402_000.0).contains(&delay.max_us), "{delay:?}");
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Client, Reason::AckDelay), "{:#?}", report.blame);
    assert!(report.blame.text.contains("later and later"), "{}", report.blame.text);
}

#[test]
fn acks_that_are_late_from_a_fifth_of_the_time_on_grow_and_by_chance_they_never_do() {
    // A level of 1 ms, then a rise to 33 ms: neighbours are as dependent as can be.
    let rising = only(&bulk(2000, 20 * MS, |pair| MS + u64::from(pair.saturating_sub(400)) * MS / 50));
    let delay = rising.client.ack_delay.unwrap();
    assert!(delay.growing && delay.trend_p.is_some_and(|p| p < 1e-6), "{delay:?}");
    // Waves of the same height, as often falling as rising.
    let wave = |pair: u32| MS + u64::from((pair % 400).abs_diff(200)) * MS / 6;
    let waving = only(&bulk(2000, 20 * MS, wave)).client.ack_delay.unwrap();
    assert!(!waving.growing, "{waving:?}");
    let falling = only(&bulk(2000, 20 * MS, |pair| MS + u64::from(2000 - pair) * MS / 50)).client.ack_delay.unwrap();
    assert!(!falling.growing && falling.trend_p.is_some_and(|p| p > 0.99), "{falling:?}");
}

#[test]
fn acks_that_come_evenly_late_do_not_grow() {
    // Late by 0 to 40 ms, in no order.
    let report = only(&bulk(400, 20 * MS, |pair| u64::from(pair * 7919 % 41) * MS));
    let delay = report.client.ack_delay.unwrap();
    assert!(!delay.growing, "{delay:?}");
    assert_ne!(report.blame.reason, Reason::AckDelay);
}

#[test]
fn a_queue_that_fills_is_the_paths_fault() {
    let rtt = 20 * MS;
    let mut packets = asked(rtt);
    // A segment every millisecond; the answer to each comes 0.3 ms later than the one before.
    for n in 0..1000u32 {
        let at = 2 * rtt + u64::from(n) * MS;
        packets.push(packet(at, false, ACK, 5001 + n * 1000, 1101, 1000));
        packets.push(packet(at + rtt + u64::from(n) * MS * 3 / 10, true, ACK, 1101, 6001 + n * 1000, 0));
    }
    let report = only(&packets);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Path, Reason::Queue), "{:#?}", report.blame);
    assert!(report.client.ack_delay.unwrap().at_once.unwrap() > 100.0);
}

#[test]
fn a_receiver_that_closes_its_window_is_to_blame() {
    let rtt = 10 * MS;
    let mut packets = asked(rtt);
    let at = 2 * rtt;
    packets.push(packet(at, false, ACK, 5001, 1101, 1400));
    packets.push(packet(at + rtt, true, ACK, 1101, 6401, 0).window(0));
    for probe in 1..4 {
        packets.push(packet(at + rtt + probe * 200 * MS, false, ACK, 6400, 1101, 0));
        packets.push(packet(at + 2 * rtt + probe * 200 * MS, true, ACK, 1101, 6401, 0).window(0));
    }
    packets.push(packet(at + 1000 * MS, true, ACK, 1101, 6401, 0).window(500));
    packets.push(packet(at + 1001 * MS, false, ACK, 6401, 1101, 1400));
    packets.push(packet(at + 1001 * MS + rtt, true, ACK, 1101, 7801, 0).window(500));
    let report = only(&packets);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Client, Reason::ZeroWindow), "{:#?}", report.blame);
    let window = report.client.window;
    assert_eq!((window.closed_times, window.closed_us), (1, 990_000), "{window:?}");
    assert_eq!(report.client.sent.zero_windows, 4);
    assert_eq!(report.server.sent.keep_alives, 3);
    assert_eq!(report.server.sent.retransmissions, 0);
}

#[test]
fn a_window_below_the_paths_product_is_the_receivers_fault_and_its_cap_is_told() {
    let rtt = 100 * MS;
    let mut packets = asked(rtt);
    // Without a scale: 14 000 bytes, ten segments in each RTT.
    for packet in &mut packets {
        if packet.flags & SYN != 0 {
            packet.options = vec![2, 4, 0x05, 0xb4];
        }
    }
    for round in 0..20u32 {
        let at = 2 * rtt + u64::from(round) * rtt;
        for n in 0..10 {
            let seq = 5001 + (round * 10 + n) * 1400;
            packets.push(packet(at + u64::from(n) * 10_000, false, ACK, seq, 1101, 1400));
            packets.push(packet(at + rtt - MS + u64::from(n) * 10_000, true, ACK, 1101, seq + 1400, 0).window(14_000));
        }
    }
    for packet in packets.iter_mut().filter(|packet| packet.from_client) {
        packet.window = 14_000;
    }
    let report = only(&packets);
    assert_eq!(
        (report.blame.end, report.blame.reason),
        (Culprit::Client, Reason::ReceiveWindow),
        "{:#?}",
        report.blame
    );
    // 14 000 bytes in 99 to 100 ms.
    assert!(report.blame.text.contains("14000 bytes") && report.blame.text.contains("1.1"), "{}", report.blame.text);
    assert!(report.blame.text.contains("no window scale"), "{}", report.blame.text);
    assert!(
        report.blame.text.ends_with("A larger receive buffer there would help up to that."),
        "{}",
        report.blame.text
    );
    assert!(report.time.client_window_us > report.duration_us * 8 / 10, "{:?}", report.time);
}

#[test]
fn large_packets_that_vanish_while_small_ones_pass_are_a_black_hole() {
    let rtt = 20 * MS;
    let mut packets = asked(rtt);
    packets.push(packet(2 * rtt, false, ACK, 5001, 1101, 200));
    packets.push(packet(3 * rtt, true, ACK, 1101, 5201, 0));
    for (times, at) in [100, 300, 700, 1500].into_iter().enumerate() {
        packets.push(packet(at * MS + times as u64, false, ACK, 5201, 1101, 1460));
    }
    let likely = only(&packets);
    let hole = likely.server.black_hole.unwrap();
    assert_eq!((hole.shown, hole.smallest_lost, hole.largest_passed, hole.times), (false, 1500, 240, 4));
    assert_eq!((likely.blame.end, likely.blame.reason), (Culprit::Path, Reason::BlackHole));
    assert!(likely.blame.text.contains("1500 bytes") && likely.blame.text.contains("windtunnel mtu 10.0.0.1"));
    // Once it is cut up it goes through.
    packets.push(packet(2000 * MS, false, ACK, 5201, 1101, 1000));
    packets.push(packet(2020 * MS, true, ACK, 1101, 6201, 0));
    packets.push(packet(2021 * MS, false, ACK, 6201, 1101, 460));
    packets.push(packet(2041 * MS, true, ACK, 1101, 6661, 0));
    let hole = only(&packets).server.black_hole.unwrap();
    assert!(hole.shown && hole.smallest_lost == 1500, "{hole:?}");
}

#[test]
fn a_lost_packet_that_came_through_at_last_is_no_black_hole() {
    let mut packets = asked(20 * MS);
    for at in [40, 300, 700] {
        packets.push(packet(at * MS, false, ACK, 5001, 1101, 1460));
    }
    packets.push(packet(720 * MS, true, ACK, 1101, 6461, 0));
    let report = only(&packets);
    assert_eq!((report.server.black_hole, report.server.sent.retransmissions), (None, 2));
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Path, Reason::Loss));
}

#[test]
fn losses_are_told_apart_by_the_side_of_the_capture_on_which_they_happen() {
    let rtt = 20 * MS;
    // The second of ten segments is lost, the rest reported, and the second retransmitted.
    let flight = |lost_before: bool| {
        let mut packets = asked(rtt);
        for n in 0..10u32 {
            if !(lost_before && n == 1) {
                packets.push(packet(50 * MS + u64::from(n) * 10_000, false, ACK, 5001 + n * 1000, 1101, 1000));
            }
        }
        packets.push(packet(70 * MS, true, ACK, 1101, 6001, 0));
        for n in 2..10 {
            packets.push(
                packet(70 * MS + u64::from(n) * 10_000, true, ACK, 1101, 6001, 0).sack(7001, 8001 + (n - 2) * 1000),
            );
        }
        packets.push(packet(71 * MS, false, ACK, 6001, 1101, 1000));
        packets.push(packet(91 * MS, true, ACK, 1101, 15_001, 0));
        only(&packets)
    };
    let (before, after) = (flight(true), flight(false));
    for (report, lost, place) in [(&before, (1, 0), "between the server and where"), (&after, (0, 1), "and the client")]
    {
        let sent = report.server.sent;
        assert_eq!((sent.retransmissions, sent.fast_retransmissions), (1, 1));
        assert_eq!((sent.lost_before, sent.lost_after), lost);
        assert_eq!((sent.out_of_order, sent.acked_unseen), (0, 0));
        assert_eq!(report.blame.reason, Reason::Loss);
        assert!(report.blame.text.contains(place), "{}", report.blame.text);
        assert_eq!(report.client.sent.duplicate_acks, 8);
    }
    assert_eq!((before.server.sent.gaps, after.server.sent.gaps), (1, 0));
}

#[test]
fn what_overtakes_is_no_loss() {
    let mut packets = asked(20 * MS);
    for n in 0..100u32 {
        // Every tenth comes two milliseconds late, its neighbours every 0.5 ms.
        let late = if n % 10 == 5 { 2 * MS } else { 0 };
        packets.push(packet(50 * MS + u64::from(n) * MS / 2 + late, false, ACK, 5001 + n * 1000, 1101, 1000));
    }
    packets.push(packet(200 * MS, true, ACK, 1101, 105_001, 0));
    let sent = only(&packets).server.sent;
    assert_eq!((sent.out_of_order, sent.retransmissions), (10, 0), "{sent:?}");
}

#[test]
fn what_fills_a_gap_a_round_trip_later_or_with_a_later_timestamp_was_sent_again() {
    // A segment each ms near the client; two of each fifty are missing at first and come late, the later one first.
    let sent = |late_ms: u64, stamp_ms: Option<u64>| {
        let mut packets = asked(80 * MS);
        for n in 0..500u32 {
            let late = [0, 0, 0, late_ms + 3, late_ms + 1].get(n as usize % 50).map_or(0, |late| *late);
            let at = 100 + u64::from(n);
            let mut data = packet((at + late) * MS, false, ACK, 5001 + n * 1000, 1101, 1000);
            if let Some(later) = stamp_ms {
                let stamp = if late > 0 { at + later } else { at };
                data = data.options(&[&[1, 1, 8, 10][..], &(stamp as u32).to_be_bytes(), &[0; 4]].concat());
            }
            packets.push(data);
        }
        let sent = only(&packets).server.sent;
        (sent.out_of_order, sent.retransmissions)
    };
    assert_eq!([sent(80, None), sent(20, None)], [(0, 20), (20, 0)]);
    assert_eq!([sent(20, Some(20)), sent(100, Some(0))], [(0, 20), (20, 0)], "the sender's clock knows");
}

#[test]
fn what_was_acknowledged_already_and_is_sent_again_is_spurious() {
    let mut packets = asked(20 * MS);
    for n in 0..20u32 {
        let (at, seq) = (50 * MS + u64::from(n) * 100 * MS, 5001 + n * 1000);
        packets.push(packet(at, false, ACK, seq, 1101, 1000));
        packets.push(packet(at + 60 * MS, true, ACK, 1101, seq + 1000, 0));
        packets.push(packet(at + 70 * MS, false, ACK, seq, 1101, 1000));
        packets.push(packet(at + 90 * MS, true, ACK, 1101, seq + 1000, 0).sack(seq, seq + 1000));
    }
    let report = only(&packets);
    let sent = report.server.sent;
    assert_eq!((sent.retransmissions, sent.spurious_retransmissions), (20, 20));
    assert_eq!(report.client.sent.duplicate_reports, 20);
    assert_eq!(report.server.bytes, 20_000);
    assert!(report.blame.findings.iter().any(|f| f.reason == Reason::Spurious), "{:#?}", report.blame);
}

#[test]
fn of_one_direction_alone_nobody_is_blamed_and_nothing_is_called_unanswered() {
    // A transfer in which the client only acknowledges, as over the data connection of FTP.
    let mut packets: Vec<Packet> = bulk(50, 20 * MS, |_| 0).into_iter().filter(|packet| packet.len != 100).collect();
    packets.iter_mut().filter(|packet| packet.seq == 1101).for_each(|packet| packet.seq = 1001);
    for (from_client, end) in [(true, End::Client), (false, End::Server)] {
        let half: Vec<Packet> = packets.iter().filter(|packet| packet.from_client == from_client).cloned().collect();
        let report = only(&half);
        assert_eq!((report.state, report.only_seen()), (State::Open, Some(end)), "{report:#?}");
        assert_eq!((report.blame.end, report.blame.reason), (Culprit::Nobody, Reason::None), "{:#?}", report.blame);
        assert!(report.blame.text.starts_with("Only packets of the"), "{}", report.blame.text);
    }
    assert_eq!(only(&packets).only_seen(), None);
}

#[test]
fn connections_that_never_come_about_are_told_apart() {
    let syns: Vec<Packet> = [0, 1000, 3000].map(|at| packet(at * MS, true, SYN, 1000, 0, 0).options(&OPTIONS)).into();
    let unanswered = only(&syns);
    assert_eq!(
        (unanswered.state, unanswered.blame.end, unanswered.blame.reason),
        (State::Unanswered, Culprit::Path, Reason::Unanswered)
    );
    assert_eq!(unanswered.client.sent.syn_retransmissions, 2);
    let refused = only(&[syns[0].clone(), packet(MS, false, RST | ACK, 0, 1001, 0)]);
    assert_eq!(
        (refused.state, refused.blame.end, refused.blame.reason),
        (State::Refused, Culprit::Server, Reason::Refused)
    );
    let mut closed = asked(MS);
    closed.push(packet(10 * MS, true, FIN | ACK, 1101, 5001, 0));
    closed.push(packet(11 * MS, false, FIN | ACK, 5001, 1102, 0));
    closed.push(packet(12 * MS, true, ACK, 1102, 5002, 0));
    assert_eq!(only(&closed).state, State::Closed);
}

#[test]
fn the_same_ports_used_again_are_another_connection() {
    let mut packets = asked(MS);
    packets.push(packet(10 * MS, true, FIN | ACK, 1101, 5001, 0));
    packets.push(packet(11 * MS, false, FIN | ACK, 5001, 1102, 0));
    packets.push(packet(12 * MS, true, ACK, 1102, 5002, 0));
    for mut packet in asked(MS) {
        packet.at_ns += 100 * MS;
        packet.seq = packet.seq.wrapping_add(1_000_000);
        packet.ack = if packet.flags & ACK != 0 { packet.ack.wrapping_add(1_000_000) } else { 0 };
        packets.push(packet);
    }
    let analysis = analyse(&packets);
    assert_eq!((analysis.connections.len(), analysis.packets.connections), (2, 2));
    assert!(analysis.connections.iter().all(|c| c.handshake.complete && c.client.bytes == 100));
}

#[test]
fn a_million_connections_take_bounded_memory_and_none_counts_twice() {
    // A tenth of the usual bounds, a tenth of a million.
    let bounds = Bounds { followed: 1000, told: 500, outstanding: 10_000, remembered: 100_000 };
    let mut tracker = Tracker::new(bounds, None);
    let mut feed = |packet: &Packet, host: u32, at: u64| {
        let mut bytes = packet.bytes(40_000);
        // Many clients.
        let place = if packet.from_client { 12 } else { 16 };
        bytes[place..place + 4].copy_from_slice(&(0x0a00_0000 + host).to_be_bytes());
        tracker.packet(0, at, &bytes, bytes.len() + usize::from(packet.len));
        assert!(tracker.followed() <= 1000);
    };
    for round in 0..2u64 {
        for host in 0..100_000 {
            for packet in [packet(0, true, ACK, 1, 1, 10), packet(1, false, ACK, 1, 11, 1400)] {
                let at = round * 1_000_000_000 + u64::from(host) * 1000 + packet.at_ns;
                feed(&packet, host, at);
            }
        }
    }
    let analysis = tracker.finish(&[]);
    assert_eq!(analysis.packets.connections, 100_000);
    assert_eq!(analysis.packets.taken_up_again, 100_000);
    assert_eq!((analysis.connections.len(), analysis.connections_left_out), (500, 199_500));
}

#[test]
fn ipv6_behind_extension_headers_and_lengths_left_to_the_device_are_read() {
    let tcp = &packet(0, true, ACK, 7, 1, 500).bytes(50_000)[20..];
    let mut six = vec![0x60, 0, 0, 0];
    six.extend((8 + 8 + tcp.len() as u16 + 500).to_be_bytes());
    six.extend([0, 64]);
    six.extend([
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        2,
    ]);
    six.extend([60, 0, 1, 4, 0, 0, 0, 0]); // hop-by-hop options, then destination options, then TCP
    six.extend([6, 0, 1, 4, 0, 0, 0, 0]);
    six.extend(tcp);
    let mut tracker = Tracker::new(Bounds::default(), None);
    tracker.packet(0, 0, &six, six.len() + 500);
    let mut none = packet(1, false, ACK, 1, 507, 0).bytes(50_000);
    none[2..4].copy_from_slice(&[0, 0]);
    tracker.packet(1, 0, &none, 40 + 20_000);
    let analysis = tracker.finish(&[]);
    let bytes: Vec<u64> = analysis.connections.iter().map(ConnectionReport::bytes).collect();
    assert_eq!(bytes, [500, 20_000]);
}

#[test]
fn a_filter_leaves_other_packets_out() {
    let mut tracker = Tracker::new(Bounds::default(), Some("port 443".parse().unwrap()));
    let bytes = packet(0, true, ACK, 1, 1, 0).bytes(50_000);
    tracker.packet(0, 0, &bytes, bytes.len());
    let packets = tracker.finish(&[]).packets;
    assert_eq!((packets.filtered_out, packets.connections), (1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_packets_make_it_panic_and_no_time_counts_twice(
        packets in proptest::collection::vec((any::<bool>(), any::<u8>(), 0u32..9000, 0u32..9000, 0u16..3, 0u16..1500, 0u64..50, any::<bool>()), 0..80),
        base: u32,
    ) {
        let mut tracker = Tracker::new(Bounds { followed: 4, told: 4, outstanding: 8, remembered: 4 }, None);
        let mut at = 0;
        for (from_client, flags, seq, ack, window, len, gap, sack) in packets {
            at += gap * MS;
            let mut packet = packet(at, from_client, flags & 0x3f, base.wrapping_add(seq), base.wrapping_add(ack), len).window(window * 1000);
            if sack {
                packet = packet.sack(base.wrapping_add(seq), base.wrapping_add(ack));
            }
            let bytes = packet.bytes(50_000 + len % 7);
            tracker.packet(0, at, &bytes, bytes.len() + usize::from(len));
        }
        for c in tracker.finish(&[]).connections {
            let t = c.time;
            let sum = t.handshake_us + t.under_way_us + t.client_window_us + t.server_window_us + t.client_zero_window_us
                + t.server_zero_window_us + t.client_repair_us + t.server_repair_us + t.client_idle_us + t.server_idle_us + t.ending_us;
            prop_assert!(sum <= c.duration_us && sum + 11 >= c.duration_us, "{} {}", sum, c.duration_us);
            for end in [&c.client, &c.server] {
                let sent = end.sent;
                prop_assert!((0.0..=1.0).contains(&end.retransmission_rate) && end.bytes <= sent.bytes_sent, "{:?}", sent);
                let told = sent.lost_before + sent.lost_after + sent.spurious_retransmissions;
                prop_assert_eq!(told, sent.retransmissions, "{:?}", sent);
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), version in 0u8..3, len in 0usize..70_000) {
        if let (Some(first), 1..) = (bytes.first_mut(), version) {
            *first = if version == 1 { 0x45 } else { 0x60 };
        }
        let mut tracker = Tracker::new(Bounds::default(), None);
        tracker.packet(0, 0, &bytes, len);
        prop_assert_eq!(tracker.finish(&[]).packets.all, 1);
    }
}
