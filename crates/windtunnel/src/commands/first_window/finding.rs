//! What is known of one URL.

use std::net::IpAddr;
use wt_probe::first_window::{Found, Limit, Verdict};

/// What is known of one URL.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) url: String,
    /// The host's name or address, in small letters.
    pub(super) host: String,
    pub(super) provider: String,
    pub(super) address: Option<IpAddr>,
    pub(super) verdict: Verdict,
    pub(super) segments: u32,
    pub(super) bytes: u32,
    pub(super) mss: u32,
    pub(super) limit: Option<Limit>,
    pub(super) why: String,
    pub(super) method: &'static str,
    pub(super) facts: Option<Facts>,
    pub(super) probes: usize,
    pub(super) packets: u32,
    pub(super) seconds: f64,
}

/// What a SYN-ACK said; `None` for what it wasn't asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) mss: Option<u16>,
    pub(super) sack: Option<bool>,
    pub(super) timestamps: Option<bool>,
    pub(super) window_scale: Option<u8>,
    pub(super) window: Option<u16>,
    pub(super) ecn: Option<bool>,
    pub(super) fast_open: Option<bool>,
}

impl Default for Finding {
    fn default() -> Self {
        Self {
            url: String::new(),
            host: String::new(),
            provider: String::new(),
            address: None,
            verdict: Verdict::Unknown,
            segments: 0,
            bytes: 0,
            mss: 0,
            limit: None,
            why: String::new(),
            method: "none",
            facts: None,
            probes: 0,
            packets: 0,
            seconds: 0.0,
        }
    }
}

impl Finding {
    /// Of a URL that wasn't asked.
    pub(super) fn nothing(address: Option<IpAddr>, why: &str) -> Self {
        Self { address, why: why.to_owned(), ..Self::default() }
    }

    /// What connections of our own have shown.
    pub(super) fn of(found: &Found) -> Self {
        let decision = found.decision;
        let facts = found.syn_ack.map(|said| Facts {
            mss: said.options.mss,
            sack: found.offered_all.then_some(said.options.sack),
            timestamps: found.offered_all.then_some(said.options.timestamps),
            window_scale: said.options.window_scale,
            window: Some(said.window),
            ecn: found.offered_all.then_some(said.options.ecn),
            fast_open: found.offered_all.then_some(said.options.fast_open),
        });
        Self {
            address: Some(found.goal.address),
            verdict: decision.verdict,
            segments: decision.segments,
            bytes: decision.bytes,
            mss: decision.mss,
            limit: decision.limit,
            why: decision.why.text().to_owned(),
            method: if found.packets > 0 { "withheld-ack" } else { "none" },
            facts,
            probes: found.readings.len(),
            packets: found.packets,
            seconds: found.time.as_secs_f64(),
            ..Self::default()
        }
    }
}
