//! Findings as tables, JSON and CSV.

use super::finding::Finding;
use crate::edge::say;
use serde_json::{Value, json};
use wt_probe::first_window::{Limit, Verdict};

/// The verdict's word in JSON.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Exact => "exact",
        Verdict::AtLeast => "at-least",
        Verdict::Unknown => "unknown",
    }
}

/// The JSON contract for one host.
pub(super) fn to_json(finding: &Finding) -> Value {
    let known = finding.verdict != Verdict::Unknown;
    json!({
        "url": finding.url,
        "provider": finding.provider,
        "address": finding.address.map(|address| address.to_string()),
        "segments": known.then_some(finding.segments),
        "bytes": known.then_some(finding.bytes),
        "mss": known.then_some(finding.mss),
        "verdict": word(finding.verdict),
        "why": finding.why,
        "limit": finding.limit.map(limit),
        "method": finding.method,
        "syn_ack": finding.facts.map(|facts| json!({
            "mss": facts.mss,
            "sack": facts.sack,
            "timestamps": facts.timestamps,
            "window_scale": facts.window_scale,
            "window": facts.window,
            "ecn": facts.ecn,
            "fast_open": facts.fast_open,
        })),
        "probes": finding.probes,
        "packets": finding.packets,
        "seconds": finding.seconds,
    })
}

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Segments => "segments",
        Limit::Rfc5681 => "rfc5681",
        Limit::Bytes => "bytes",
    }
}

/// The table's first line.
pub(super) fn header() {
    say!("{:<40} {:<24} {:>10} {:>9} {:>5}  why", "url", "address", "segments", "bytes", "mss");
}

/// One host as a line.
pub(super) fn line(finding: &Finding) {
    let address = finding.address.map_or("-".to_owned(), |address| address.to_string());
    let [segments, bytes, mss] = cells(&to_json(finding));
    let limit = match finding.limit {
        Some(Limit::Bytes) => "; limited in bytes",
        Some(Limit::Rfc5681) => "; two to four by their size (RFC 5681)",
        Some(Limit::Segments) | None => "",
    };
    say!("{:<40} {address:<24} {segments:>10} {bytes:>9} {mss:>5}  {}{limit}", finding.url, finding.why);
}

/// Segments, bytes and MSS of a finding in JSON, as people read them.
pub(super) fn cells(finding: &Value) -> [String; 3] {
    let number = |name: &str| finding[name].as_u64().map_or("-".to_owned(), |number| number.to_string());
    let segments = match finding["verdict"].as_str() {
        Some("exact") => number("segments"),
        Some("at-least") => format!("≥ {}", number("segments")),
        _ => "?".to_owned(),
    };
    [segments, number("bytes"), number("mss")]
}

/// The columns of the CSV table.
const COLUMNS: [&str; 20] = [
    "url",
    "provider",
    "address",
    "verdict",
    "segments",
    "bytes",
    "mss",
    "limit",
    "why",
    "method",
    "syn_ack_mss",
    "sack",
    "timestamps",
    "window_scale",
    "window",
    "ecn",
    "fast_open",
    "probes",
    "packets",
    "seconds",
];

/// Findings as CSV with a header line; what isn't known is empty.
pub(super) struct Table(csv::Writer<Vec<u8>>);

impl Table {
    /// The header alone.
    pub(super) fn new() -> Self {
        let mut table = Self(csv::Writer::from_writer(Vec::new()));
        table.write(COLUMNS.iter().map(|name| (*name).to_owned()));
        table
    }

    /// Adds a line.
    pub(super) fn add(&mut self, finding: &Finding) {
        let all = to_json(finding);
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.write(COLUMNS.iter().map(|name| match *name {
            "syn_ack_mss" => text(&all["syn_ack"]["mss"]),
            "sack" | "timestamps" | "window_scale" | "window" | "ecn" | "fast_open" => text(&all["syn_ack"][*name]),
            name => text(&all[name]),
        }));
    }

    /// The whole table.
    pub(super) fn text(self) -> String {
        String::from_utf8(self.0.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    fn write(&mut self, cells: impl Iterator<Item = String>) {
        // Into memory nothing fails, and all lines have as many cells.
        let _ = self.0.write_record(cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_csv_has_a_cell_for_every_column() {
        let mut table = Table::new();
        let finding = Finding {
            url: "http://x/\"a,b\"".into(),
            provider: "X, Inc.".into(),
            verdict: Verdict::Exact,
            segments: 10,
            ..Finding::default()
        };
        table.add(&finding);
        table.add(&Finding::default());
        let text = table.text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), COLUMNS.len());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!((&rows[0][0], &rows[0][1], &rows[0][4]), ("http://x/\"a,b\"", "X, Inc.", "10"));
        assert_eq!((&rows[1][3], &rows[1][4]), ("unknown", ""));
    }
}
