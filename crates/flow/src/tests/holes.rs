//! What the capture lacks, though the numbers of what is in it tell that it passed.

use super::*;

/// 4 s of flights of ten segments of 1000 bytes, one each 20 ms, at the client, which acknowledges every second segment at once.
fn steady() -> Vec<Packet> {
    let mut packets = vec![
        packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS),
        packet(20 * MS, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS),
        packet(20 * MS + MS / 10, true, ACK, 1001, 5001, 0),
        packet(20 * MS + MS / 5, true, ACK, 1001, 5001, 100),
    ];
    for n in 0..2000 {
        let (at, seq) = (40 * MS + u64::from(n / 10) * 20 * MS + u64::from(n % 10) * 100_000, 5001 + n * 1000);
        packets.push(packet(at, false, ACK, seq, 1101, 1000));
        if n % 2 == 1 {
            packets.push(packet(at + 50_000, true, ACK, 1101, seq + 1000, 0));
        }
    }
    packets
}

#[test]
fn a_hole_in_the_capture_is_nobodys_pause_and_what_passed_in_it_is_told() {
    let whole = only(&steady());
    assert_eq!((whole.server.bytes, whole.server.bytes_unseen), (2_000_000, 0));
    // Behind the hole stands a segment of the server, or an ACK of the client.
    for until in [3039 * MS, 3040 * MS + 120_000] {
        let packets: Vec<Packet> =
            steady().into_iter().filter(|packet| !(1035 * MS..until).contains(&packet.at_ns)).collect();
        let report = only(&packets);
        assert_eq!(report.server.bytes + report.server.bytes_unseen, 2_000_000, "{until}");
        assert!(report.time.server_idle_us < 200_000, "{:?}", report.time);
        assert!(report.blame.findings.is_empty(), "{:#?}", report.blame);
        let text = &report.blame.text;
        assert!(text.starts_with("What held it back for 50 % of the time can't be told"), "{text}");
    }
}

#[test]
fn packets_that_a_capture_lacks_here_and_there_are_counted_to_the_byte() {
    let lacks = |n: usize| n > 4 && (n * 7919 + n / 5) % 10 < 3;
    let mut packets: Vec<Packet> =
        steady().into_iter().enumerate().filter(|(n, _)| !lacks(*n)).map(|(_, p)| p).collect();
    packets.push(packet(5000 * MS, true, ACK, 1101, 2_005_001, 0));
    // A FIN that isn't there is no payload.
    packets.push(packet(5001 * MS, true, ACK, 1101, 2_005_002, 0));
    let report = only(&packets);
    assert!(report.server.bytes < 1_500_000 && report.server.bytes == report.server.sent.bytes_sent);
    assert_eq!(report.server.bytes + report.server.bytes_unseen, 2_000_000);
    // What was sent before the capture began isn't its.
    let late = only(&packets[200..]);
    let first = packets[200..].iter().find(|packet| !packet.from_client).unwrap().seq;
    assert_eq!(late.server.bytes + late.server.bytes_unseen, u64::from(2_005_001 - first));
}

#[test]
fn a_pause_behind_which_a_segment_got_lost_on_the_way_here_stays_one() {
    let mut packets: Vec<Packet> = steady().into_iter().filter(|packet| packet.at_ns < 1035 * MS).collect();
    let seq = packets.iter().map(|packet| if packet.from_client { 0 } else { packet.seq }).max().unwrap() + 1000;
    let at = 4000 * MS;
    // The first of three is missing, is asked for, and comes.
    packets.push(packet(at, false, ACK, seq + 1000, 1101, 1000));
    packets.push(packet(at + 50_000, true, ACK, 1101, seq, 0).sack(seq + 1000, seq + 2000));
    packets.push(packet(at + 100_000, false, ACK, seq + 2000, 1101, 1000));
    packets.push(packet(at + 150_000, true, ACK, 1101, seq, 0).sack(seq + 1000, seq + 3000));
    packets.push(packet(at + 20 * MS, false, ACK, seq, 1101, 1000));
    packets.push(packet(at + 21 * MS, true, ACK, 1101, seq + 3000, 0));
    let report = only(&packets);
    assert!(report.time.server_idle_us > 2_900_000 && report.server.bytes_unseen == 0, "{:?}", report.time);
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Server, Reason::Application), "{:#?}", report.blame);
}
