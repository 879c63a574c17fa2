//! Windows that hold the sender back: too small, or filled by what isn't read.

use super::*;

/// Captured at the server, 100 ms away: rounds in each of which the window is used up. `windows` are those of the client's ACKs after
/// the one of the handshake, in units of 128 bytes.
fn rounds_of_windows(windows: &[u16]) -> ConnectionReport {
    let rtt = 100 * MS;
    let mut packets = asked(rtt);
    packets.iter_mut().filter(|packet| packet.from_client).for_each(|packet| packet.window = windows[0]);
    let mut seq = 5001;
    for (round, pair) in windows.windows(2).enumerate() {
        let at = (2 + round as u64) * rtt;
        let segments = u32::from(pair[0]) * 128 / 1400;
        for n in 0..segments {
            packets.push(packet(at + u64::from(n) * 10_000, false, ACK, seq, 1101, 1400));
            seq += 1400;
        }
        packets.push(packet(at + rtt - MS, true, ACK, 1101, seq, 0).window(pair[1]));
    }
    only(&packets)
}

#[test]
fn a_window_that_stays_far_below_what_it_was_is_a_program_that_reads_too_slowly() {
    // 64 kB once, and then 12.8 kB: nine segments each 100 ms.
    let report = rounds_of_windows(&[vec![500], vec![100; 30]].concat());
    let blame = &report.blame;
    assert_eq!((blame.end, blame.reason), (Culprit::Client, Reason::ZeroWindow), "{blame:#?}");
    for wanted in ["had been up to 64000 bytes", "Its program reads too slowly (about 1.", "doesn't help"] {
        assert!(blame.text.contains(wanted), "{wanted}: {}", blame.text);
    }
    assert_eq!(blame.findings.len(), 1, "{blame:#?}");
    assert_eq!(report.client.window.closed_times, 0);
    assert!(report.time.client_window_us > report.duration_us * 8 / 10, "{:?}", report.time);
}

#[test]
fn a_reader_whose_window_also_closes_is_told_once() {
    let mut windows = vec![500];
    windows.extend([60; 20]);
    windows.push(0);
    let report = rounds_of_windows(&windows);
    let blame = &report.blame;
    assert_eq!((blame.reason, blame.findings.len()), (Reason::ZeroWindow, 1), "{blame:#?}");
    assert!(blame.text.contains("and it was closed 1 time for"), "{}", blame.text);
}

#[test]
fn a_window_that_grew_is_too_small_by_what_it_was_in_the_mean() {
    let windows: Vec<u16> = (1..=30).map(|n| n * 20).collect();
    let report = rounds_of_windows(&windows);
    let blame = &report.blame;
    assert_eq!((blame.end, blame.reason), (Culprit::Client, Reason::ReceiveWindow), "{blame:#?}");
    let (max, mean) = (report.client.window.max, report.client.window.mean_over_time.unwrap());
    assert!(
        blame.text.contains(&format!("at most {max} bytes may be under way ({mean:.0} in the mean")),
        "{}",
        blame.text
    );
    let most = mean * 8.0 / report.min_rtt_us.unwrap() as f64;
    assert!(blame.text.contains(&format!("is {most:.2} Mbit/s. A larger receive buffer")), "{}", blame.text);
}
