//! Something is always under way, and the sender's side holds it back, or the path does.

use super::*;

const PSH: u8 = 8;
const US: u64 = 1000;
/// A full segment with the options of these handshakes, bytes.
const FULL: u16 = 1460;

/// The handshake and a request, as captured at the server or at the client of a path with this RTT.
fn opened(rtt: u64, at_client: bool) -> Vec<Packet> {
    let (to_client, to_server) = if at_client { (MS / 10, rtt) } else { (rtt, MS / 10) };
    vec![
        packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS),
        packet(to_server, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS),
        packet(to_server + to_client, true, ACK, 1001, 5001, 0),
        packet(to_server + to_client + 1000, true, ACK | PSH, 1001, 5001, 100),
    ]
}

/// Sends these segments of the server: when each passes, and its length and flags. Each is acknowledged when it was there.
fn sent(rtt: u64, at_client: bool, segments: impl IntoIterator<Item = (u64, u16, u8)>) -> ConnectionReport {
    let mut packets = opened(rtt, at_client);
    let mut seq = 5001;
    for (at, len, flags) in segments {
        packets.push(packet(at, false, ACK | flags, seq, 1101, len));
        seq += u32::from(len);
        packets.push(packet(at + if at_client { MS / 10 } else { rtt }, true, ACK, 1101, seq, 0));
    }
    only(&packets)
}

const PATH: &str = "Neither end is to blame: what held it back is the path and the congestion control.";

#[test]
fn a_program_that_sends_less_than_the_path_takes_is_to_blame_wherever_that_is_captured() {
    for at_client in [false, true] {
        let stream = (0..300).map(|n| (300 * MS + n * 20 * MS, 1400, PSH));
        let report = sent(128 * MS, at_client, stream);
        assert_eq!(
            (report.blame.end, report.blame.reason),
            (Culprit::Server, Reason::Application),
            "{:#?}",
            report.blame
        );
        let supply = report.server.supply;
        assert!(supply.application_limited_us > 5_500_000 && supply.nagle_us == 0, "{supply:?}");
        assert!(report.blame.text.contains("had nothing more to send for 9"), "{}", report.blame.text);
        assert!(report.blame.text.contains("each 20 ms"), "{}", report.blame.text);
        assert_eq!(report.blame.text.contains("a capture near it tells"), at_client);
    }
}

/// A server writes head and body apart, and the client delays its ACKs by this.
fn in_two_writes(delay: u64, waits: bool) -> ConnectionReport {
    let mut packets = opened(MS / 5, false);
    let (mut at, mut client, mut server) = (MS, 1001, 5001);
    packets.truncate(3);
    for _ in 0..50 {
        packets.push(packet(at, true, ACK | PSH, client, server, 80));
        client += 80;
        packets.push(packet(at + 50 * US, false, ACK | PSH, server, client, 150));
        if waits {
            at += 250 * US + delay;
            packets.push(packet(at, true, ACK, client, server + 150, 0));
        }
        packets.push(packet(at + 60 * US, false, ACK | PSH, server + 150, client, 300));
        server += 450;
        at += 400 * US;
        packets.push(packet(at, true, ACK, client, server, 0));
        at += 10 * US;
    }
    only(&packets)
}

#[test]
fn a_small_segment_that_waits_for_a_late_ack_is_told_as_nagles_rule_and_a_delayed_ack() {
    let report = in_two_writes(40 * MS, true);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Server, Reason::Nagle), "{:#?}", report.blame);
    assert_eq!((report.server.supply.nagle_times, report.server.supply.delayed_ack_times), (50, 50));
    for wanted in ["Nagle's rule", "the client delayed that ACK by 40 ms", "50 times", "TCP_NODELAY at the server"] {
        assert!(report.blame.text.contains(wanted), "{wanted}: {}", report.blame.text);
    }
    let at_once = in_two_writes(40 * MS, false);
    assert_eq!((at_once.blame.reason, at_once.server.supply.nagle_times), (Reason::None, 0), "{:#?}", at_once.blame);
}

/// Flights of full segments, one each RTT: how many in each.
fn flights(at_client: bool, rounds: u64, segments: impl Fn(u64) -> u64) -> ConnectionReport {
    let rtt = 50 * MS;
    let sizes = (0..rounds).map(|round| (round, segments(round)));
    // What an ACK sets off is seen right behind it.
    sent(rtt, at_client, sizes.flat_map(|(round, n)| (0..n).map(move |k| (rtt * (3 + round) + k * 20 * US, FULL, 0))))
}

#[test]
fn what_never_grows_over_many_round_trips_is_not_called_the_paths_and_at_the_sender_it_is_the_senders() {
    let near = flights(false, 100, |_| 20);
    assert_eq!((near.blame.end, near.blame.reason), (Culprit::Server, Reason::SendBuffer), "{:#?}", near.blame);
    assert!(near.blame.text.contains("send buffer") && near.blame.text.contains("of 50 ms"), "{}", near.blame.text);
    let far = flights(true, 100, |_| 20);
    assert_eq!((far.blame.end, far.blame.reason), (Culprit::Nobody, Reason::None), "{:#?}", far.blame);
    assert!(far.blame.text.starts_with("What held it back isn't shown"), "{}", far.blame.text);
    assert!(far.blame.text.ends_with("A capture near the server may tell."), "{}", far.blame.text);
}

#[test]
fn what_a_congestion_window_lets_grow_is_the_paths() {
    for at_client in [false, true] {
        // By one segment in each round trip, by half a one, and doubled.
        for (rounds, grows) in [(100, |n| 10 + n), (200, |n| 20 + n / 2), (7, |n| 10 << n)] as [(_, fn(u64) -> u64); 3]
        {
            let report = flights(at_client, rounds, grows);
            assert_eq!((report.blame.reason, &*report.blame.text), (Reason::None, PATH), "{:?}", report.server.supply);
        }
    }
}

#[test]
fn a_sender_that_lets_acks_go_by_does_not_use_its_congestion_window() {
    // Forty segments at once; their ACKs come over 40 ms, and the next forty only when all have.
    let rtt = 60 * MS;
    let mut packets = opened(rtt, false);
    let mut seq = 5001;
    for round in 0..40u64 {
        let at = rtt * 3 + round * (rtt + 45 * MS);
        for k in 0..40 {
            packets.push(packet(at + k * 10 * US, false, ACK, seq, 1101, FULL));
            seq += u32::from(FULL);
            packets.push(packet(at + rtt + k * MS, true, ACK, 1101, seq, 0));
        }
    }
    let report = only(&packets);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Server, Reason::SendBuffer), "{:#?}", report.blame);
    assert!(report.server.supply.late_us > report.duration_us / 2, "{:?}", report.server.supply);
    assert!(report.blame.text.contains("ACKs left less than half"), "{}", report.blame.text);
}

#[test]
fn a_server_that_takes_time_to_answer_is_to_blame_though_the_request_waits_for_its_ack() {
    // Captured at the server: it answers, and acknowledges, 30 ms behind each request; the client is 2 ms away.
    let mut packets = opened(2 * MS, false);
    packets.truncate(3);
    let (mut at, mut client, mut server) = (10 * MS, 1001, 5001);
    for _ in 0..50 {
        packets.push(packet(at, true, ACK | PSH, client, server, 80));
        client += 80;
        packets.push(packet(at + 30 * MS, false, ACK | PSH, server, client, 300));
        server += 300;
        at += 32 * MS;
        packets.push(packet(at, true, ACK, client, server, 0));
        at += 1000;
    }
    let report = only(&packets);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Server, Reason::Application), "{:#?}", report.blame);
    assert!(report.blame.text.contains("took that long to answer"), "{}", report.blame.text);
}
