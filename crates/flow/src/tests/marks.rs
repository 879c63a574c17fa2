//! Marks of congestion.

use super::*;

const ECE: u8 = 64;
const CWR: u8 = 128;

/// A transfer of 60 segments, too short to look like one that a send buffer holds level, of which every n-th is marked on the way, in front of the place of capture or behind it.
fn marked(every: usize, before: bool, agreed: bool) -> ConnectionReport {
    let mut packets = bulk(30, 20 * MS, |_| 0);
    if agreed {
        packets[0].flags |= ECE | CWR;
        packets[1].flags |= ECE;
    }
    let mut tracker = Tracker::new(Bounds::default(), None);
    let mut data = 0;
    for packet in packets {
        let is_data = !packet.from_client && packet.len > 0;
        data += usize::from(is_data);
        let is_marked = data > 0 && data.is_multiple_of(every);
        let mut bytes = packet.bytes(50_000);
        if is_marked && is_data && before {
            bytes[1] |= 3;
        } else if is_marked && !is_data {
            bytes[33] |= ECE;
        }
        let len = bytes.len() + usize::from(packet.len);
        tracker.packet(0, packet.at_ns, &bytes, len);
    }
    tracker.finish(&[]).connections.swap_remove(0)
}

#[test]
fn marks_of_congestion_are_the_paths_and_told_on_either_side_of_the_queue() {
    let behind = marked(10, true, true);
    assert_eq!(behind.server.sent.ce_marks, 6);
    let wanted = "between the server and where this was captured, marked 6 of 60 packets with congestion (CE, 10.0 %)";
    let before = marked(10, false, true);
    assert_eq!((before.server.sent.ce_marks, before.client.sent.ece), (0, 6));
    let echoed = "between where this was captured and the client, marks packets of the server with congestion: 6 of ";
    for (report, wanted) in [(&behind, wanted), (&before, echoed)] {
        assert_eq!((report.blame.end, report.blame.reason), (Culprit::Path, Reason::Marks), "{:#?}", report.blame);
        assert!(report.blame.text.contains(wanted), "{}", report.blame.text);
    }
    // What isn't agreed on is no echo, and none is told of hardly any.
    for report in [marked(10, false, false), marked(1000, true, true)] {
        assert_eq!(report.blame.reason, Reason::None, "{:#?}", report.blame);
    }
}
