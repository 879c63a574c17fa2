//! Findings as tables and JSON.

use super::survey::Finding;
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
    let [segments, bytes, mss] = match finding.verdict {
        Verdict::Unknown => ["?".to_owned(), "-".to_owned(), "-".to_owned()],
        verdict => {
            let sign = if verdict == Verdict::Exact { "" } else { "≥ " };
            [format!("{sign}{}", finding.segments), finding.bytes.to_string(), finding.mss.to_string()]
        }
    };
    say!("{:<40} {address:<24} {segments:>10} {bytes:>9} {mss:>5}  {}", finding.url, finding.why);
}
