//! What is known of one URL.

use serde::{Serialize, Serializer};
use std::net::IpAddr;
use wt_probe::first_window::{DecisionReason, HostResult, Limit, Verdict};

/// What is known of one URL; its JSON is what `--json` and the journal hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostFinding {
    /// As it was written.
    pub url: String,
    /// The host's name or address, in small letters.
    #[serde(skip)]
    pub host: String,
    /// Whose it is, as that was said, or else as its name suggests.
    pub provider: String,
    /// The address that was asked.
    pub address: Option<IpAddr>,
    /// The window, segments; `None` where nothing is known.
    pub segments: Option<u32>,
    /// The same in bytes.
    pub bytes: Option<u32>,
    /// The size of those segments, bytes.
    pub mss: Option<u32>,
    /// How much may be claimed.
    #[serde(serialize_with = "verdict")]
    pub verdict: Verdict,
    /// Why no more than that.
    pub why: String,
    /// Where a response leads that was too short, a URL; left out where none does, or where what it leads to was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// What the window follows.
    #[serde(serialize_with = "limit")]
    pub limit: Option<Limit>,
    /// How it was asked: `withheld-ack`, `delayed-ack` or `none`.
    pub method: &'static str,
    /// What its SYN-ACK said.
    pub syn_ack: Option<SynAck>,
    /// Connections.
    pub probes: usize,
    /// Packets that we sent.
    pub packets: u32,
    /// How long it took, seconds.
    pub seconds: f64,
}

/// What a SYN-ACK said; `None` for what it wasn't asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SynAck {
    /// The maximum segment size, bytes.
    pub mss: Option<u16>,
    /// SACK permitted.
    pub sack: Option<bool>,
    /// Timestamps.
    pub timestamps: Option<bool>,
    /// The window scale.
    pub window_scale: Option<u8>,
    /// The server's own first receive window, bytes.
    pub window: Option<u16>,
    /// Whether it agreed to ECN.
    pub ecn: Option<bool>,
    /// Whether it gave a cookie for TCP Fast Open.
    pub fast_open: Option<bool>,
}

/// The verdict's word.
#[must_use]
pub const fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Exact => "exact",
        Verdict::AtLeast => "at-least",
        Verdict::Unknown => "unknown",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn verdict<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict_word(*verdict))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn limit<S: Serializer>(limit: &Option<Limit>, serializer: S) -> Result<S::Ok, S::Error> {
    let word = limit.map(|limit| match limit {
        Limit::Segments => "segments",
        Limit::Rfc5681 => "rfc5681",
        Limit::Bytes => "bytes",
    });
    word.serialize(serializer)
}

impl Default for HostFinding {
    fn default() -> Self {
        Self {
            url: String::new(),
            host: String::new(),
            provider: String::new(),
            address: None,
            segments: None,
            bytes: None,
            mss: None,
            verdict: Verdict::Unknown,
            why: String::new(),
            redirect: None,
            limit: None,
            method: "none",
            syn_ack: None,
            probes: 0,
            packets: 0,
            seconds: 0.0,
        }
    }
}

/// Why no more is claimed, in words: a short response that leads elsewhere is short because it does.
pub(super) fn why(reason: DecisionReason, redirect: Option<&str>) -> String {
    redirect.map_or_else(|| reason.text().to_owned(), |url| format!("it redirects to {url}: ask for that"))
}

impl HostFinding {
    /// Of a URL that wasn't asked.
    pub(super) fn nothing(address: Option<IpAddr>, why: &str) -> Self {
        Self { address, why: why.to_owned(), ..Self::default() }
    }

    /// What connections of our own have shown.
    pub(super) fn of(found: &HostResult) -> Self {
        let decision = found.decision;
        let syn_ack = found.syn_ack.map(|said| SynAck {
            mss: said.options.mss,
            sack: found.offered_all.then_some(said.options.sack),
            timestamps: found.offered_all.then_some(said.options.timestamps),
            window_scale: said.options.window_scale,
            window: Some(said.window),
            ecn: found.offered_all.then_some(said.options.ecn),
            fast_open: found.offered_all.then_some(said.options.fast_open),
        });
        let known = decision.verdict != Verdict::Unknown;
        Self {
            address: Some(found.goal.address),
            verdict: decision.verdict,
            segments: known.then_some(decision.segments),
            bytes: known.then_some(decision.bytes),
            mss: known.then_some(decision.mss),
            limit: decision.limit,
            why: why(decision.why, found.redirect.as_deref()),
            redirect: found.redirect.clone(),
            method: if found.packets > 0 { "withheld-ack" } else { "none" },
            syn_ack,
            probes: found.readings.len(),
            packets: found.packets,
            seconds: found.time.as_secs_f64(),
            ..Self::default()
        }
    }

    /// Whether anybody was asked.
    pub(super) const fn is_of_a_host(&self) -> bool {
        self.packets > 0 || self.probes > 0
    }
}
