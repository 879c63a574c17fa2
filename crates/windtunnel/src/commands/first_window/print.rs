use crate::edge::{room, say};
use serde_json::Value;
use wt_probe::first_window::{Limit, Verdict};
use wt_prober::first_window::{HostFinding, verdict_word};

/// With less room than this for a row its figures stand below the URL.
const ROW: usize = 130;

/// The table's first line.
pub(super) fn header() {
    if room() < ROW {
        return;
    }
    say!("{:<40} {:<24} {:>10} {:>9} {:>5}  why", "url", "address", "segments", "bytes", "mss");
}

/// One host as a line.
pub(super) fn line(finding: &HostFinding) {
    let address = finding.address.map_or("-".to_owned(), |address| address.to_string());
    let [segments, bytes, mss] = cells(verdict_word(finding.verdict), [finding.segments, finding.bytes, finding.mss]);
    let limit = match finding.limit {
        Some(Limit::Bytes) => "; limited in bytes",
        Some(Limit::Rfc5681) => "; two to four by their size (RFC 5681)",
        Some(Limit::Segments) | None => "",
    };
    if room() < ROW {
        say!("{}", finding.url);
        // Of a host that nothing was seen of there are no figures to leave open.
        if finding.bytes.is_none() && finding.mss.is_none() {
            let who = finding.address.map_or_else(String::new, |address| format!("{address}: "));
            say!("  {who}{}{limit}", finding.why);
            return;
        }
        say!("  {address}: {segments} segments, {bytes} bytes, MSS {mss}: {}{limit}", finding.why);
        return;
    }
    say!("{:<40} {address:<24} {segments:>10} {bytes:>9} {mss:>5}  {}{limit}", finding.url, finding.why);
}

/// Segments, bytes and MSS of a finding from the journal, as people read them.
pub(super) fn stored_cells(finding: &Value) -> [String; 3] {
    let number = |name: &str| finding[name].as_u64().and_then(|number| u32::try_from(number).ok());
    cells(finding["verdict"].as_str().unwrap_or_default(), ["segments", "bytes", "mss"].map(number))
}

fn cells(verdict: &str, numbers: [Option<u32>; 3]) -> [String; 3] {
    let [segments, bytes, mss] = numbers.map(|number| number.map_or("-".to_owned(), |number| number.to_string()));
    let segments = match verdict {
        word if word == verdict_word(Verdict::Exact) => segments,
        word if word == verdict_word(Verdict::AtLeast) => format!("≥ {segments}"),
        _ => "?".to_owned(),
    };
    [segments, bytes, mss]
}
