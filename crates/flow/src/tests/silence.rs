//! Connections that end in silence, and captures that end before an answer could come.

use super::*;

/// At the client, 40 ms from the server, which acknowledges the request of 100 bytes.
fn acknowledged() -> Vec<Packet> {
    vec![
        packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS),
        packet(40 * MS, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS),
        packet(41 * MS, true, ACK, 1001, 5001, 0),
        packet(42 * MS, true, ACK, 1001, 5001, 100),
        packet(82 * MS, false, ACK, 5001, 1101, 0),
    ]
}

/// The client gives up at a time; the server's ACK of that has a number.
fn given_up(at: u64, seq: u32) -> [Packet; 2] {
    [packet(at, true, FIN | ACK, 1101, 5001, 0), packet(at + 40 * MS, false, ACK, seq, 1102, 0)]
}

#[test]
fn a_server_that_takes_a_request_and_never_answers_is_told_with_how_long_and_until_when() {
    let mut packets = acknowledged();
    packets.extend(given_up(6082 * MS, 5001));
    let far = only(&packets);
    assert_eq!((far.blame.end, far.blame.reason), (Culprit::Server, Reason::Application), "{:#?}", far.blame);
    let wanted = "acknowledged the request and sent nothing for 6.0 s (98 % of the time), until the client closed: ";
    assert!(
        far.blame.text.contains(wanted) && far.blame.text.contains("gets lost before it comes here"),
        "{:?}",
        far.blame
    );
    assert_eq!((far.time.ending_us, far.blame.findings.len()), (6_000_000, 1));
    // At the server nothing can have got lost on the way here.
    let mut packets = asked(40 * MS);
    packets.push(packet(41 * MS, false, ACK, 5001, 1101, 0));
    packets.push(packet(6000 * MS, true, RST | ACK, 1101, 5001, 0));
    let near = only(&packets);
    assert_eq!((near.captured, near.blame.end), (Position::NearServer, Culprit::Server));
    assert!(near.blame.text.contains("until the client reset the connection: if it owed"), "{}", near.blame.text);
    assert!(near.blame.text.ends_with("the network is not to blame."), "{}", near.blame.text);
}

#[test]
fn a_client_that_closes_its_direction_at_once_still_waits_for_an_answer() {
    let mut packets = acknowledged();
    packets.push(packet(83 * MS, true, FIN | ACK, 1101, 5001, 0));
    packets.push(packet(123 * MS, false, ACK, 5001, 1102, 0));
    packets.push(packet(5123 * MS, false, RST | ACK, 5001, 1102, 0));
    let report = only(&packets);
    assert_eq!(report.blame.end, Culprit::Server, "{:#?}", report.blame);
    assert!(
        report.blame.text.contains("for 5.0 s (98 % of the time), until the server reset"),
        "{}",
        report.blame.text
    );
}

#[test]
fn an_answer_that_is_due_when_the_capture_ends_is_told_and_one_that_may_still_come_is_not() {
    let of = |until_ms: u64| {
        let mut tracker = Tracker::new(Bounds::default(), None);
        for packet in acknowledged() {
            let bytes = packet.bytes(50_000);
            tracker.packet(0, packet.at_ns, &bytes, bytes.len() + usize::from(packet.len));
        }
        tracker.listened_until(until_ms * MS);
        tracker.finish(&[]).connections.remove(0)
    };
    let hung = of(5082);
    assert_eq!((hung.blame.end, hung.duration_us, hung.time.ending_us), (Culprit::Server, 82_000, 0));
    assert!(
        hung.blame.text.contains("nothing for 5.0 s (98 % of the time), until the capture ends"),
        "{}",
        hung.blame.text
    );
    assert!(of(982).blame.findings.is_empty());
    assert!(of(0).blame.findings.is_empty());
}

#[test]
fn what_a_server_sent_by_the_numbers_of_its_acks_and_never_came_got_lost_on_the_way() {
    let mut packets = acknowledged();
    packets.extend(given_up(6082 * MS, 5001 + 13_480));
    let report = only(&packets);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Path, Reason::Loss), "{:#?}", report.blame);
    let text = &report.blame.text;
    assert!(text.contains("of 13480 bytes") && text.contains("windtunnel mtu 192.0.2.1"), "{text}");
    assert!(text.contains("nothing came for 6.0 s (98 % of the time), until the client closed"), "{text}");
    // What comes after all isn't missing.
    packets.push(packet(6200 * MS, false, ACK, 5001, 1102, 1348));
    assert!(!only(&packets).blame.text.contains("by the numbers of its ACKs"));
}

#[test]
fn a_silence_after_the_servers_last_word_is_nobodys_fault_and_not_the_paths() {
    let mut packets = acknowledged();
    packets.push(packet(83 * MS, false, ACK, 5001, 1101, 1000));
    packets.push(packet(84 * MS, true, ACK, 1101, 6001, 0));
    packets.push(packet(5084 * MS, false, FIN | ACK, 6001, 1101, 0));
    packets.push(packet(5085 * MS, true, FIN | ACK, 1101, 6002, 0));
    packets.push(packet(5125 * MS, false, ACK, 6002, 1102, 0));
    let report = only(&packets);
    assert_eq!((report.blame.end, report.blame.findings.len()), (Culprit::Nobody, 0), "{:#?}", report.blame);
    assert_eq!(
        report.blame.text,
        "Neither end is to blame: nothing was under way for 5.0 s (98 % of the time) after the server's last data, until the server \
         closed."
    );
    // A silence that is over when the capture ends counts as what ended it says.
    packets.truncate(packets.len() - 3);
    assert!(only(&packets).blame.text.contains("the path and the congestion control"));
}

#[test]
fn a_syn_right_before_the_end_of_the_capture_is_not_called_unanswered() {
    let syn = packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS);
    let of = |until_ms: u64| {
        let mut tracker = Tracker::new(Bounds::default(), None);
        let bytes = syn.bytes(50_000);
        tracker.packet(0, syn.at_ns, &bytes, bytes.len());
        // Another connection goes on.
        let other = packet(until_ms * MS, true, ACK, 1, 1, 10).bytes(40_000);
        tracker.packet(0, until_ms * MS, &other, other.len() + 10);
        tracker.finish(&[]).connections.remove(0)
    };
    for (report, waited) in [(only(std::slice::from_ref(&syn)), "0 µs"), (of(999), "999 ms")] {
        assert_eq!((report.state, report.blame.end), (State::Opening, Culprit::Nobody));
        assert!(report.blame.findings.is_empty() && report.only_seen().is_none(), "{:#?}", report.blame);
        let wanted = format!("The capture ends {waited} after the SYN to 192.0.2.1:80: before an answer could come.");
        assert_eq!(report.blame.text, wanted);
    }
    let late = of(2500);
    assert_eq!((late.state, late.blame.reason), (State::Unanswered, Reason::Unanswered));
    assert!(late.blame.text.contains("1 SYN to 192.0.2.1:80 in 2.5 s."), "{}", late.blame.text);
}
