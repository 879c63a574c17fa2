//! The connections of a capture, for terminals.

use wt_flow::{AckDelay, CaptureAnswer, ConnectionReport, End, EndReport, Position, Spread, State};
use wt_units::counted;

/// The answer as a person reads it: connection by connection, the one with the most payload first.
#[must_use]
pub fn capture_text(answer: &CaptureAnswer) -> String {
    let analysis = &answer.analysis;
    let packets = &analysis.packets;
    let taken = packets.all.saturating_sub(packets.filtered_out);
    let known = packets.without_time == 0 || analysis.duration_us > 0;
    let mut lines = vec![match (packets.filtered_out, taken) {
        (1.., 0) => format!("The filter takes none of {} packets.", packets.all),
        (left_out, _) => format!(
            "{} packets{} in {}, {} of them TCP, {}.",
            taken,
            if left_out > 0 { format!(" of {}, those that the filter takes,", packets.all) } else { String::new() },
            if known { time(analysis.duration_us as f64) } else { "an unknown time".to_owned() },
            packets.tcp,
            counted(packets.connections as usize, "connection"),
        ),
    }];
    lines.extend(analysis.warnings.iter().map(|warning| format!("Note: {warning}.")));
    let mut connections: Vec<&ConnectionReport> = analysis.connections.iter().collect();
    connections.sort_by_key(|connection| (std::cmp::Reverse(connection.bytes()), connection.number));
    for connection in connections {
        lines.push(String::new());
        about_connection(connection, &mut lines);
    }
    lines.join("\n")
}

fn about_connection(c: &ConnectionReport, lines: &mut Vec<String>) {
    let place = c.interface.as_ref().map_or_else(String::new, |name| format!(", {name}"));
    lines.push(format!(
        "{}  {} → {}  ({}, {}{place})",
        c.number,
        c.client.address,
        c.server.address,
        state(c.state),
        if c.without_time > 0 { "duration unknown".to_owned() } else { time(c.duration_us as f64) }
    ));
    lines.push(format!("   {}", c.blame.text));
    for finding in c.blame.findings.iter().skip(1) {
        lines.push(format!("   Also: {}", finding.text));
    }
    let captured = match c.captured {
        Position::NearClient => "captured near the client",
        Position::NearServer => "captured near the server",
        Position::Between => "captured between the ends",
        Position::Unknown => "captured nobody knows where",
    };
    let rtt = c.min_rtt_us.map_or_else(|| "unknown".to_owned(), |us| format!("at least {}", time(us as f64)));
    let handshake = c.handshake.rtt_us.map_or_else(String::new, |us| format!(", handshake {}", time(us as f64)));
    lines.push(format!("   RTT {rtt}{handshake}; {captured}"));
    for end in [End::Client, End::Server] {
        about_end(c, end, lines);
    }
}

fn about_end(c: &ConnectionReport, end: End, lines: &mut Vec<String>) {
    let own = c.end(end);
    let sent = &own.sent;
    lines.push(format!(
        "   {:<7} sent {} bytes ({}) in {} packets; {} retransmitted ({} fast, {} spurious{}), {} out of order{}",
        end.name(),
        own.bytes,
        if c.without_time > 0 { "rate unknown".to_owned() } else { format!("{:.2} Mbit/s", own.goodput_bps / 1e6) },
        sent.packets,
        sent.retransmissions,
        sent.fast_retransmissions,
        sent.spurious_retransmissions,
        match sent.syn_retransmissions {
            0 => String::new(),
            times => format!(", {}", counted(times as usize, "SYN")),
        },
        sent.out_of_order,
        match c.end(end.other()).sent.duplicate_reports {
            0 => String::new(),
            reports => format!("; {} of data that arrived twice (D-SACK)", counted(reports as usize, "report")),
        }
    ));
    let mut parts = Vec::new();
    if own.bytes_unseen > 0 && c.duration_us > 0 && c.without_time == 0 {
        let mbps = (own.bytes + own.bytes_unseen) as f64 * 8.0 / c.duration_us as f64;
        parts.push(format!(
            "{} bytes more were acknowledged that aren't in the capture: with them {mbps:.2} Mbit/s",
            own.bytes_unseen
        ));
    }
    let packets = |number: u64| counted(number as usize, "packet");
    if sent.ce_marks > 0 {
        parts.push(format!("{} of it came with a mark of congestion (CE)", packets(sent.ce_marks)));
    }
    if sent.ece > 0 {
        parts.push(format!("marks of congestion are echoed by {} of it (ECE)", packets(sent.ece)));
    }
    parts.extend(own.rtt.as_ref().map(|rtt| format!("RTT to it {}", spread(rtt))));
    parts.extend(own.ack_delay.as_ref().map(delay));
    parts.push(window(own, c.without_time == 0));
    parts.extend(own.offer.map(|offer| {
        let mss = offer.mss.map_or_else(|| "no MSS".to_owned(), |mss| format!("MSS {mss}"));
        let scale =
            offer.window_scale.map_or_else(|| "no window scale".to_owned(), |shift| format!("window scale {shift}"));
        let yes = |on: bool, name: &str| if on { name.to_owned() } else { format!("no {name}") };
        format!(
            "{mss}, {scale}, {}, {}, {}",
            yes(offer.sack, "SACK"),
            yes(offer.timestamps, "timestamps"),
            yes(offer.ecn, "ECN")
        )
    }));
    for part in parts {
        lines.push(format!("           {part}"));
    }
}

fn spread(spread: &Spread) -> String {
    format!(
        "{} (least {}, one in twenty above {}, most {})",
        time(spread.median_us),
        time(spread.min_us),
        time(spread.p95_us),
        time(spread.max_us)
    )
}

fn delay(delay: &AckDelay) -> String {
    let mut text = format!("acknowledges {} late (one in twenty {})", time(delay.median_us), time(delay.p95_us));
    if let Some(thirds) = delay.thirds_us {
        text.push_str(&format!("; by thirds of the time {}", thirds.map(time).join(", ")));
    }
    if delay.growing {
        text.push_str(": it grows");
    }
    text
}

fn window(own: &EndReport, timed: bool) -> String {
    let known = if own.window.scale_known {
        "bytes"
    } else {
        "unscaled (the options of its SYN, which say the scale, aren't here)"
    };
    let closed = match own.window.closed_times {
        0 => String::new(),
        times if !timed => format!(", closed {times} times"),
        times => format!(", closed {times} times for {}", time(own.window.closed_us as f64)),
    };
    match own.window.min {
        Some(least) => format!("window {least} to {} {known}{closed}", own.window.max),
        None => "window unknown: no packet after its handshake is here".to_owned(),
    }
}

const fn state(state: State) -> &'static str {
    match state {
        State::Opening => "opening",
        State::Unanswered => "unanswered",
        State::Refused => "refused",
        State::HalfOpen => "half open",
        State::Open => "open",
        State::Closed => "closed",
        State::Reset => "reset",
    }
}

fn time(us: f64) -> String {
    if us < 1e3 {
        format!("{us:.0} µs")
    } else if us < 1e6 {
        format!("{:.1} ms", us / 1e3)
    } else {
        format!("{:.1} s", us / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_flow::{CaptureRequest, analyse_capture};

    fn block(kind: u32, body: &[&[u8]]) -> Vec<u8> {
        let body = body.concat();
        let len = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, &body, &len].concat()
    }

    /// A segment between two hosts, 20 bytes of payload or none.
    fn segment(from_server: bool, ack: u8, len: u8) -> Vec<u8> {
        let hosts = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let ports = [[0x80, 0], [0, 80]];
        let (src, dst) = (usize::from(from_server), usize::from(!from_server));
        let ip = [&[0x45, 0, 0, 40 + len, 0, 0, 0, 0, 64, 6, 0, 0][..], &hosts[src], &hosts[dst]].concat();
        let tcp = [&ports[src][..], &ports[dst], &[0, 0, 0, 1, 0, 0, 0, ack, 0x50, 16, 0, 9, 0, 0, 0, 0]].concat();
        [&ip[..], &tcp, &vec![0; usize::from(len)]].concat()
    }

    #[test]
    fn what_is_unknown_has_no_figures() {
        let mut file = block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], &[0xff; 8]]);
        file.extend(block(1, &[&[101, 0, 0, 0, 0, 0, 0, 0]]));
        for bytes in [segment(true, 1, 20), segment(false, 21, 0), segment(true, 1, 0)] {
            // Simple packets: without a time.
            file.extend(block(3, &[&(bytes.len() as u32).to_le_bytes(), &bytes]));
        }
        let request = CaptureRequest { filter: None, connections: 10 };
        let text = capture_text(&analyse_capture(&file[..], "file", &request).unwrap());
        for wanted in [
            "3 packets in an unknown time",
            "of 3 packets the capture doesn't tell the time",
            "duration unknown",
            "RTT unknown; captured nobody knows where",
            "sent 20 bytes (rate unknown)",
            "window 9 to 9 unscaled",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
        assert!(!text.contains("µs") && !text.contains("Mbit/s"), "{text}");
    }

    #[test]
    fn syns_that_were_sent_again_and_reports_of_data_that_came_twice_are_told() {
        let words = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let mut file = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101]);
        // A SYN twice; then two segments, of which the client says that it had the first one twice.
        let d_sack = [&[1, 1, 5, 10][..], &10u32.to_be_bytes(), &30u32.to_be_bytes()].concat();
        for (at_s, from_server, flags, seq, ack, len, options) in [
            (0u32, false, 2, 0u32, 0u32, 0u8, &[][..]),
            (1, false, 2, 0, 0, 0, &[]),
            (2, true, 18, 9, 1, 0, &[]),
            (3, false, 16, 1, 10, 0, &[]),
            (4, true, 16, 10, 1, 20, &[]),
            (5, false, 16, 1, 30, 0, &d_sack),
        ] {
            let mut bytes = segment(from_server, 0, len);
            bytes[24..28].copy_from_slice(&seq.to_be_bytes());
            bytes[28..32].copy_from_slice(&ack.to_be_bytes());
            bytes[32] = (20 + options.len() as u8) / 4 * 16;
            bytes[33] = flags;
            bytes[3] += options.len() as u8;
            bytes.splice(40..40, options.iter().copied());
            file.extend(words(&[at_s, 0, bytes.len() as u32, bytes.len() as u32]));
            file.extend(bytes);
        }
        let request = CaptureRequest { filter: None, connections: 10 };
        let text = capture_text(&analyse_capture(&file[..], "file", &request).unwrap());
        let wanted = [
            "1 retransmitted (0 fast, 0 spurious, 1 SYN), 0 out of order",
            "0 retransmitted (0 fast, 0 spurious), 0 out of order; 1 report of data that arrived twice (D-SACK)",
            "The client's SYN got lost once",
        ];
        assert!(wanted.iter().all(|wanted| text.contains(wanted)), "{text}");
    }
}
