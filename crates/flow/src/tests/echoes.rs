//! Round trips by the echoes of timestamps.

use super::quiet::stamped;
use super::*;

/// Over a path of 0.3 ms, captured at the client: in one tick of 1 ms it asks, hears an ACK, and asks again while an answer to the
/// first question is on its way.
fn two_questions_in_a_tick() -> Vec<Packet> {
    let at = |us: u64, packet: Packet| stamped(Packet { at_ns: us * 1000, ..packet }, 0);
    vec![
        at(0, packet(0, true, SYN, 1000, 0, 0)),
        at(300, packet(0, false, SYN | ACK, 5000, 1001, 0)),
        at(310, packet(0, true, ACK, 1001, 5001, 0)),
        at(320, packet(0, true, ACK, 1001, 5001, 100)),
        at(620, packet(0, false, ACK, 5001, 1101, 0)),
        at(630, packet(0, true, ACK, 1101, 5001, 100)),
        at(640, packet(0, false, ACK, 5001, 1101, 500)),
        at(650, packet(0, true, ACK, 1201, 5501, 0)),
        at(930, packet(0, false, ACK, 5501, 1201, 500)),
        at(940, packet(0, true, ACK, 1201, 6001, 0)),
    ]
}

#[test]
fn a_timestamp_that_was_echoed_and_comes_again_in_the_same_tick_makes_no_round_trip() {
    let report = only(&two_questions_in_a_tick());
    let server = report.server.rtt_timestamps.unwrap();
    assert_eq!((server.samples, server.min_us), (1, 300.0), "{server:?}");
    // There and back: 0.3 ms to the server, and to the client, which is here, at most 0.01 ms.
    assert!((300..=310).contains(&report.min_rtt_us.unwrap()), "{:?}", report.min_rtt_us);
}

#[test]
fn of_the_first_tick_of_a_capture_that_begins_later_no_round_trip_is_known() {
    // From the second question on: the answer to the first one comes 10 µs behind it.
    let report = only(&two_questions_in_a_tick()[5..]);
    assert_eq!(report.server.rtt_timestamps, None);
    assert_eq!(report.server.rtt.unwrap().min_us, 300.0);
}
