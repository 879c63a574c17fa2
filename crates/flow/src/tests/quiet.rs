//! Times in which nothing is under way as seen here: a program that had nothing to say, or something else.

use super::*;

/// Options with a timestamp of the packet's time in ms, and of another one's that it echoes.
pub(super) fn stamped(packet: Packet, echoes_ms: u64) -> Packet {
    let stamp = |ms: u64| 5000_u32.wrapping_add(ms as u32).to_be_bytes();
    let options = [&[1, 1, 8, 10][..], &stamp(packet.at_ns / MS), &stamp(echoes_ms)].concat();
    packet.options(&options)
}

/// At the client, 40 ms from the server: twenty segments 200 ms apart, which it acknowledges at once.
fn apart(echoes: impl Fn(u64) -> u64, seq: impl Fn(u32) -> u32) -> Vec<Packet> {
    let mut packets = vec![
        stamped(packet(0, true, SYN, 1000, 0, 0), 0),
        stamped(packet(40 * MS, false, SYN | ACK, 5000, 1001, 0), 0),
        stamped(packet(41 * MS, true, ACK, 1001, 5001, 0), 40),
        stamped(packet(42 * MS, true, ACK, 1001, 5001, 100), 40),
    ];
    for n in 0..20u32 {
        let at_ms = 100 + u64::from(n) * 200;
        packets.push(stamped(packet(at_ms * MS, false, ACK, seq(n), 1101, 1000), echoes(at_ms)));
        let ack = packets.iter().filter(|packet| !packet.from_client).map(|packet| packet.seq + 1000).max().unwrap();
        packets.push(stamped(packet(at_ms * MS + MS, true, ACK, 1101, ack.max(6001), 0), at_ms));
    }
    packets
}

#[test]
fn a_sender_is_not_idle_while_what_it_sent_before_the_last_ack_is_on_its_way() {
    let next = |n: u32| 5001 + n * 1000;
    // Each echoes the ACK before, 1 ms behind the segment before; or one from longer ago.
    let idle = only(&apart(|at_ms| at_ms.saturating_sub(199).max(42), next));
    assert!(idle.time.server_idle_us > idle.duration_us * 7 / 10, "{:?}", idle.time);
    assert_eq!((idle.blame.end, idle.blame.reason), (Culprit::Server, Reason::Application), "{:#?}", idle.blame);
    let late = only(&apart(|at_ms| at_ms.saturating_sub(599).max(42), next));
    assert!(late.time.server_idle_us < late.duration_us / 10, "{:?}", late.time);
    assert_ne!(late.blame.reason, Reason::Application, "{:#?}", late.blame);
    // What echoes nothing that was sent tells nothing.
    let odd = only(&apart(|_| u64::from(u32::MAX - 4000), next));
    assert_eq!(odd.time.server_idle_us, idle.time.server_idle_us);
}

#[test]
fn only_at_the_sender_an_idle_program_clears_the_network() {
    let near_receiver = only(&apart(|at_ms| at_ms.saturating_sub(199).max(42), |n| 5001 + n * 1000));
    assert_eq!(near_receiver.captured, Position::NearClient);
    assert!(near_receiver.blame.text.contains("got lost on the way here"), "{}", near_receiver.blame.text);
    let mut packets = asked(20 * MS);
    for n in 0..20u32 {
        let at = 100 * MS + u64::from(n) * 200 * MS;
        packets.push(packet(at, false, ACK, 5001 + n * 1000, 1101, 1000));
        packets.push(packet(at + 20 * MS, true, ACK, 1101, 6001 + n * 1000, 0));
    }
    let near_sender = only(&packets);
    assert_eq!((near_sender.captured, near_sender.blame.reason), (Position::NearServer, Reason::Application));
    assert!(near_sender.blame.text.ends_with("the network is not to blame."), "{}", near_sender.blame.text);
}

#[test]
fn what_ends_a_pause_and_was_acknowledged_here_repairs_a_lost_ack() {
    // Each second segment is one that was acknowledged already.
    let report = only(&apart(|at_ms| at_ms.saturating_sub(199).max(42), |n| 5001 + n / 2 * 1000));
    assert_eq!(report.server.sent.spurious_retransmissions, 10);
    assert!(report.time.server_repair_us > report.duration_us * 4 / 10, "{:?}", report.time);
    assert!(report.time.server_idle_us < report.duration_us / 2, "{:?}", report.time);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Path, Reason::Spurious), "{:#?}", report.blame);
}

#[test]
fn without_a_known_loop_an_idle_sender_is_not_told_from_one_that_waits() {
    // A download of which the beginning isn't there, captured at the client: ten segments in each 40 ms.
    let mut packets = Vec::new();
    for n in 0..400u32 {
        let at = u64::from(n / 10) * 40 * MS + u64::from(n % 10) * MS / 5;
        packets.push(packet(at, false, ACK, 5001 + n * 1000, 1101, 1000));
        packets.push(packet(at + 1000, true, ACK, 1101, 6001 + n * 1000, 0));
    }
    let report = only(&packets);
    assert_eq!((report.time.server_idle_us, report.min_rtt_us), (0, None));
    assert!(report.blame.findings.is_empty(), "{:#?}", report.blame);
    assert!(report.blame.text.contains("Whether the server had nothing to say for"), "{}", report.blame.text);
    // Beyond any RTT it was idle.
    packets.push(packet(61_000 * MS, false, ACK, 405_001, 1101, 1000));
    let report = only(&packets);
    assert!(report.time.server_idle_us > 58_000_000, "{:?}", report.time);
    assert_eq!(report.blame.reason, Reason::Application, "{:#?}", report.blame);
}
