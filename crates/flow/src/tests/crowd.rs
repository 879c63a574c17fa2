//! More connections than are followed at once.

use super::*;

/// One client after another, each a millisecond behind the one before and done within 9 ms: a SYN, its answer, a request and
/// its answer, and then nothing more. Everything but the SYN of the last ones is there.
fn one_after_another(clients: u32, bounds: Bounds) -> Analysis {
    let mut packets = Vec::new();
    for client in 0..clients {
        let begun = u64::from(client) * MS;
        for packet in [
            packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS),
            packet(4 * MS, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS),
            packet(4 * MS + 1000, true, ACK, 1001, 5001, 100),
            packet(8 * MS, false, ACK, 5001, 1101, 1000),
            packet(8 * MS + 1000, true, ACK, 1101, 6001, 0),
        ] {
            packets.push((begun + packet.at_ns, client, packet));
        }
    }
    packets.sort_by_key(|(at, ..)| *at);
    let mut tracker = Tracker::new(bounds, None);
    for (at, client, packet) in packets {
        let bytes = packet.bytes(10_000 + client as u16);
        tracker.packet(0, at, &bytes, bytes.len() + usize::from(packet.len));
    }
    tracker.finish(&[])
}

#[test]
fn of_more_connections_than_are_followed_those_that_were_silent_for_longest_are_given_up() {
    // Nine are under way at once.
    let bounds = Bounds { followed: 20, ..Bounds::default() };
    let analysis = one_after_another(2000, bounds);
    assert_eq!((analysis.packets.connections, analysis.packets.taken_up_again), (2000, 0));
    assert_eq!(analysis.connections.len(), 2000);
    for report in &analysis.connections {
        assert!(report.handshake.complete && report.bytes() == 1100, "{report:#?}");
    }
}

#[test]
fn a_connection_that_was_given_up_before_its_syn_was_answered_is_one_and_not_called_unanswered() {
    // Fewer are followed than are under way.
    let bounds = Bounds { followed: 3, ..Bounds::default() };
    let analysis = one_after_another(500, bounds);
    assert_eq!(analysis.packets.connections, 500);
    assert!(analysis.packets.taken_up_again > 400, "{:?}", analysis.packets);
    let unanswered = analysis.connections.iter().filter(|report| report.blame.reason == Reason::Unanswered);
    assert_eq!(unanswered.count(), 0);
    let given_up = analysis.connections.iter().find(|report| report.state == State::Opening).unwrap();
    assert!(given_up.blame.text.contains("given up to bound memory: before an answer"), "{}", given_up.blame.text);
}

#[test]
fn ports_that_are_used_over_and_over_take_no_memory() {
    let mut tracker = Tracker::new(Bounds::default(), None);
    for round in 0..10_000u32 {
        let bytes = packet(0, true, SYN, round * 100_000, 0, 0).bytes(50_000);
        tracker.packet(0, u64::from(round) * MS, &bytes, bytes.len());
    }
    assert!(tracker.remembered_order() < 3000, "{}", tracker.remembered_order());
}
