//! What is sent again, what is only overtaken, and what is new behind what is sent again.

use super::*;

/// The handshake and a request, captured at the client: the server is `rtt` away.
fn asked_from_here(rtt: u64) -> Vec<Packet> {
    vec![
        packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS),
        packet(rtt, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS),
        packet(rtt + MS / 10, true, ACK, 1001, 5001, 0),
        packet(rtt + MS / 5, true, ACK, 1001, 5001, 100),
    ]
}

#[test]
fn lost_syns_are_told_apart_from_data_with_what_they_cost() {
    let rtt = 40 * MS;
    let opened = |syns: &[u64], answers: &[u64]| {
        let mut packets: Vec<Packet> =
            syns.iter().map(|at| packet(at * MS, true, SYN, 1000, 0, 0).options(&OPTIONS)).collect();
        packets.extend(answers.iter().map(|at| packet(at * MS, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS)));
        packets
    };
    for (syns, answers, wanted, again) in [
        (
            &[0, 1000, 3000][..],
            &[3001][..],
            "The client's SYN got lost twice, between where this was captured and the server",
            (2, 0),
        ),
        (
            &[0, 1000],
            &[1, 1001],
            "The server's SYN-ACK got lost once, between where this was captured and the client",
            (1, 1),
        ),
    ] {
        let mut packets = opened(syns, answers);
        let at = packets.last().unwrap().at_ns + rtt;
        packets.extend([packet(at, true, ACK, 1001, 5001, 0), packet(at + 1, true, ACK, 1001, 5001, 100)]);
        packets
            .extend([packet(at + MS, false, ACK, 5001, 1101, 1000), packet(at + MS + rtt, true, ACK, 1101, 6001, 0)]);
        let report = only(&packets);
        assert_eq!((report.client.retransmission_rate, report.server.retransmission_rate), (0.0, 0.0));
        let [client, server] = [&report.client, &report.server].map(|end| end.sent);
        assert_eq!((client.syn_retransmissions, server.syn_retransmissions), again);
        assert_eq!((client.retransmissions, server.retransmissions), again);
        let [finding] = &report.blame.findings[..] else { panic!("{:#?}", report.blame) };
        assert!(finding.text.starts_with(wanted) && finding.reason == Reason::Loss, "{}", finding.text);
        let share = report.time.handshake_us as f64 / report.duration_us as f64;
        assert!(share > 0.9 && (finding.weight - share).abs() < 1e-9, "{share} {}", finding.weight);
    }
    let half_open = only(&opened(&[0], &[1, 1001, 3001]));
    assert_eq!((half_open.state, half_open.blame.reason), (State::HalfOpen, Reason::Unanswered));
    assert!(half_open.blame.text.contains("3 SYN-ACKs in 3.0 s, no answer"), "{}", half_open.blame.text);
    assert_eq!(half_open.server.retransmission_rate, 0.0);
}

#[test]
fn keep_alives_and_probes_of_a_closed_window_carry_no_payload_until_they_are_taken() {
    // The client asks each minute whether the server is there, with a byte, as Windows does.
    let mut packets = asked(20 * MS);
    packets.extend([packet(50 * MS, false, ACK, 5001, 1101, 500), packet(70 * MS, true, ACK, 1101, 5501, 0)]);
    for n in 1..50 {
        packets.push(packet(n * 60_000 * MS, true, ACK, 1100, 5501, 1));
        packets.push(packet(n * 60_000 * MS + 1000, false, ACK, 5501, 1101, 0));
    }
    let report = only(&packets);
    let sent = report.client.sent;
    assert_eq!((report.client.bytes, sent.data_packets, sent.bytes_sent, sent.keep_alives), (100, 1, 100, 49));
    assert!(report.blame.findings.is_empty() && report.time.client_idle_us < 100_000, "{:#?}", report.blame);
    // The server tries a closed window with the next byte, which is taken in the end or isn't.
    for taken in [0, 1] {
        let mut packets = asked(20 * MS);
        packets.push(packet(50 * MS, false, ACK, 5001, 1101, 1000));
        packets.push(packet(70 * MS, true, ACK, 1101, 6001, 0).window(0));
        for n in 1..5 {
            packets.push(packet(n * 1000 * MS, false, ACK, 6001, 1101, 1));
            packets.push(packet((n * 1000 + 20) * MS, true, ACK, 1101, 6001, 0).window(0));
        }
        packets.push(packet(5000 * MS, true, ACK, 1101, 6001 + taken, 0));
        packets.push(packet(5001 * MS, false, ACK, 6001 + taken, 1101, 1000));
        packets.push(packet(5021 * MS, true, ACK, 1101, 7001 + taken, 0));
        let analysis = analyse(&packets);
        let server = &analysis.connections[0].server;
        let sent = server.sent;
        assert_eq!((server.bytes, sent.bytes_sent), (2000 + u64::from(taken), 2000 + u64::from(taken)), "{sent:?}");
        assert_eq!((sent.zero_window_probes, sent.data_packets, sent.gaps), (4, 2 + u64::from(taken), 0), "{sent:?}");
        assert_eq!((sent.retransmissions, analysis.connections[0].client.sent.acked_unseen), (0, 0), "{sent:?}");
    }
}

#[test]
fn two_ends_that_open_a_connection_at_once_have_one_and_lose_nothing() {
    let mut packets = vec![
        packet(0, true, SYN, 1000, 0, 0).options(&OPTIONS),
        packet(MS, false, SYN, 5000, 0, 0).options(&OPTIONS),
        packet(20 * MS, true, SYN | ACK, 1000, 5001, 0).options(&OPTIONS),
        packet(21 * MS, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS),
    ];
    for n in 0..20u32 {
        packets.push(packet(u64::from(40 + n) * MS, false, ACK, 5001 + n * 1000, 1001, 1000));
        packets.push(packet(u64::from(60 + n) * MS, true, ACK, 1001, 6001 + n * 1000, 0));
    }
    let report = only(&packets);
    assert_eq!((report.state, report.handshake.rtt_us, report.server.bytes), (State::Open, None, 20_000));
    assert!(report.min_rtt_us.is_some_and(|us| (20_000..50_000).contains(&us)), "{:?}", report.min_rtt_us);
    for end in [&report.client, &report.server] {
        assert_eq!((end.sent.retransmissions, end.sent.syn_retransmissions), (0, 0), "{:?}", end.sent);
    }
    assert!(report.blame.findings.is_empty(), "{:#?}", report.blame);
    // A SYN-ACK that is sent again counts.
    packets.push(packet(1022 * MS, false, SYN | ACK, 5000, 1001, 0).options(&OPTIONS));
    assert_eq!(only(&packets).server.sent.syn_retransmissions, 1);
}

#[test]
fn data_of_a_syn_that_is_declined_is_not_lost() {
    for taken in [0, 200] {
        let mut packets = vec![
            packet(0, true, SYN, 1000, 0, 200).options(&OPTIONS),
            packet(20 * MS, false, SYN | ACK, 5000, 1001 + taken, 0).options(&OPTIONS),
        ];
        let first = if taken == 0 { 200 } else { 0 };
        packets.push(packet(21 * MS, true, ACK, 1201 - u32::from(first), 5001, first));
        packets.push(packet(41 * MS, false, ACK, 5001, 1201, 1000));
        packets.push(packet(42 * MS, true, ACK, 1201, 6001, 0));
        let report = only(&packets);
        let sent = report.client.sent;
        assert_eq!((report.client.bytes, sent.bytes_sent), (200, 200 + u64::from(first)), "{taken}");
        assert_eq!((sent.retransmissions, report.server.sent.acked_unseen), (0, 0), "{sent:?}");
        assert!(report.blame.findings.is_empty(), "{:#?}", report.blame);
    }
}

/// What the client says of data up to `ack` and, behind a gap, from `left` to `right`.
fn reports(at_ns: u64, ack: u32, left: u32, right: u32) -> Packet {
    packet(at_ns, true, ACK, 1101, ack, 0).sack(left, right)
}

#[test]
fn what_is_overtaken_near_the_receiver_is_no_retransmission_though_its_duplicate_acks_pass_here() {
    let mut packets = asked_from_here(30 * MS);
    let mut at = 70 * MS;
    for n in 0..50u32 {
        let first = 5001 + n * 10_000;
        // The second of ten comes 5 ms after the others, each of which the client answers at once.
        let mut order: Vec<u32> = (0..10).filter(|place| *place != 1).collect();
        order.push(1);
        for place in order {
            at += if place == 1 { 5 * MS } else { MS / 4 };
            packets.push(packet(at, false, ACK, first + place * 1000, 1101, 1000));
            packets.push(match place {
                0 => packet(at + 1000, true, ACK, 1101, first + 1000, 0),
                1 => packet(at + 1000, true, ACK, 1101, first + 10_000, 0),
                _ => reports(at + 1000, first + 1000, first + 2000, first + (place + 1) * 1000),
            });
        }
    }
    let report = only(&packets);
    let sent = report.server.sent;
    assert_eq!((sent.out_of_order, sent.retransmissions, sent.fast_retransmissions), (50, 0, 0), "{sent:?}");
    assert_eq!((report.blame.end, report.blame.reason), (Culprit::Path, Reason::Reordering), "{:#?}", report.blame);
}

#[test]
fn every_gap_of_a_repair_that_blocks_report_is_fast_whatever_the_window_and_what_a_timer_sends_is_not() {
    let mut packets = asked_from_here(30 * MS);
    let at = 70 * MS;
    let data = |at: u64, n: u32| packet(at, false, ACK, 5001 + n * 1000, 1101, 1000);
    let ack = |n: u32| 5001 + n * 1000;
    // Of ten segments the third and the sixth are lost; with each ACK the window changes.
    for n in [0, 1, 3, 4, 6, 7, 8, 9] {
        packets.push(data(at + u64::from(n) * MS / 4, n));
        let told = at + u64::from(n) * MS / 4 + 1000;
        packets.push(match n {
            0 | 1 => packet(told, true, ACK, 1101, ack(n + 1), 0),
            3 | 4 => reports(told, ack(2), ack(3), ack(n + 1)),
            _ => reports(told, ack(2), ack(6), ack(n + 1)),
        });
        packets.last_mut().unwrap().window -= n as u16;
    }
    packets.push(data(at + 32 * MS, 2));
    packets.push(reports(at + 32 * MS + 1000, ack(5), ack(6), ack(10)));
    packets.push(data(at + 63 * MS, 5));
    packets.push(packet(at + 63 * MS + 1000, true, ACK, 1101, ack(10), 0));
    // The last of two is lost, and nothing says so.
    packets.extend([data(at + 70 * MS, 10), data(at + 70 * MS + 1000, 12)]);
    packets.push(reports(at + 71 * MS, ack(11), ack(12), ack(13)));
    packets.push(data(at + 400 * MS, 11));
    packets.push(packet(at + 401 * MS, true, ACK, 1101, ack(13), 0));
    let sent = only(&packets).server.sent;
    assert_eq!((sent.retransmissions, sent.fast_retransmissions, sent.out_of_order), (3, 2, 0), "{sent:?}");
}

#[test]
fn what_is_new_behind_what_is_sent_again_counts_as_new() {
    // At the sender: 100 bytes get lost, and are retransmitted with the 900 that were written meanwhile.
    let mut packets = asked(20 * MS);
    for n in 0..20u32 {
        let (at, seq) = (50 * MS + u64::from(n) * 500 * MS, 5001 + n * 1000);
        packets.push(packet(at, false, ACK, seq, 1101, 100));
        packets.push(packet(at + 250 * MS, false, ACK, seq, 1101, 1000));
        packets.push(packet(at + 270 * MS, true, ACK, 1101, seq + 1000, 0));
    }
    let analysis = analyse(&packets);
    let report = &analysis.connections[0];
    let sent = report.server.sent;
    assert_eq!((report.server.bytes, sent.bytes_sent, sent.bytes_retransmitted), (20_000, 22_000, 2000));
    assert_eq!((sent.retransmissions, sent.lost_after, report.client.sent.acked_unseen), (20, 20, 0), "{sent:?}");
}

#[test]
fn where_a_retransmission_was_lost_is_told_by_its_first_byte() {
    // At the receiver: the second of three is lost before, and comes with the third and a fourth in one piece.
    let mut packets = asked_from_here(40 * MS);
    for n in 0..20u32 {
        let (at, seq) = (100 * MS + u64::from(n) * 100 * MS, 5001 + n * 4000);
        packets.push(packet(at, false, ACK, seq, 1101, 1000));
        packets.push(packet(at + 1000, true, ACK, 1101, seq + 1000, 0));
        packets.push(packet(at + 2 * MS, false, ACK, seq + 2000, 1101, 1000));
        packets.push(reports(at + 2 * MS + 1000, seq + 1000, seq + 2000, seq + 3000));
        packets.push(packet(at + 45 * MS, false, ACK, seq + 1000, 1101, 3000));
        packets.push(packet(at + 45 * MS + 1000, true, ACK, 1101, seq + 4000, 0));
    }
    let report = only(&packets);
    let sent = report.server.sent;
    assert_eq!((report.server.bytes, sent.retransmissions, report.client.sent.acked_unseen), (80_000, 20, 0));
    assert_eq!((sent.lost_before, sent.lost_after), (20, 0), "{sent:?}");
    assert!(report.blame.text.contains("between the server and where"), "{}", report.blame.text);
}

#[test]
fn retransmissions_that_a_d_sack_proves_needless_are_no_losses() {
    // At the sender: of a hundred segments each tenth is sent again before its ACK comes, which says at once that it came twice.
    let late = |needless: bool| {
        let mut packets = asked(20 * MS);
        for n in 0..100u32 {
            let (at, seq) = (100 * MS + u64::from(n * 25 + (n + 4) / 10 * 300) * MS, 5001 + n * 1000);
            packets.push(packet(at, false, ACK, seq, 1101, 1000));
            let ack = |at: u64| packet(at, true, ACK, 1101, seq + 1000, 0);
            if n % 10 != 5 {
                packets.push(ack(at + 20 * MS));
                continue;
            }
            packets.extend([packet(at + 250 * MS, false, ACK, seq, 1101, 1000), ack(at + 300 * MS)]);
            if needless {
                packets.push(ack(at + 301 * MS).sack(seq, seq + 1000));
            }
        }
        only(&packets)
    };
    let (report, lost) = (late(true), late(false));
    let sent = report.server.sent;
    assert_eq!((sent.retransmissions, sent.spurious_retransmissions, sent.lost_after), (10, 10, 0), "{sent:?}");
    assert_eq!(report.blame.reason, Reason::Spurious, "{:#?}", report.blame);
    assert!(report.blame.findings.iter().all(|finding| finding.reason != Reason::Loss), "{:#?}", report.blame);
    assert!(report.blame.text.contains("10 segments again that had arrived"), "{}", report.blame.text);
    let sent = lost.server.sent;
    assert_eq!((sent.retransmissions, sent.spurious_retransmissions, sent.lost_after), (10, 0, 10), "{sent:?}");
    assert_eq!(lost.blame.reason, Reason::Loss, "{:#?}", lost.blame);
}

#[test]
fn a_report_of_what_the_path_duplicated_takes_no_loss_away() {
    let mut packets = asked(20 * MS);
    packets.extend([
        packet(100 * MS, false, ACK, 5001, 1101, 1000),
        packet(120 * MS, true, ACK, 1101, 6001, 0),
        packet(121 * MS, true, ACK, 1101, 6001, 0).sack(5001, 6001),
        packet(130 * MS, false, ACK, 6001, 1101, 1000),
        packet(430 * MS, false, ACK, 6001, 1101, 1000),
        packet(450 * MS, true, ACK, 1101, 7001, 0),
    ]);
    let sent = only(&packets).server.sent;
    assert_eq!((sent.retransmissions, sent.spurious_retransmissions, sent.lost_after), (1, 0, 1), "{sent:?}");
}
