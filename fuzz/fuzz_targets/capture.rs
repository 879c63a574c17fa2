//! A capture, read to its end, with every connection in it told.
#![no_main]

use wt_flow::{Bounds, Filter, Tracker};
use wt_wire::CaptureReader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first bytes choose a filter, the rest is the file.
    let (text, file) = bytes.split_at(bytes.len().min(usize::from(bytes.first().copied().unwrap_or(0) & 31)));
    let filter: Option<Filter> = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    let mut tracker = Tracker::new(Bounds { followed: 8, told: 8, outstanding: 64, remembered: 8 }, filter);
    let Ok(mut reader) = CaptureReader::new(file) else { return };
    while let Ok(Some(record)) = reader.next_record() {
        match record.link.ip(record.bytes) {
            Some(ip) => tracker.packet(record.interface, record.at_ns, ip, record.original_len),
            None => tracker.no_ip(),
        }
    }
    assert!(tracker.followed() <= 8);
    let analysis = tracker.finish(&[]);
    assert!(analysis.connections.len() <= 8);
});
