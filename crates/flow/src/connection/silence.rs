//! The silence that a connection ends in: nothing is under way, nothing new comes any more, and somebody ends it.

use super::{Connection, End};

/// An answer to a SYN that was sent once may still come for as long as this.
///
/// # Source
/// RFC 6298 section 2.1: what a sender waits for an answer before it sends the SYN again.
pub(crate) const FIRST_TIMEOUT_NS: u64 = 1_000_000_000;

/// What ended a silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SilenceEnd {
    /// An end closed the connection.
    Closed(End),
    /// An end reset it.
    Reset(End),
    /// Nobody: the capture ends.
    Capture,
}

impl SilenceEnd {
    /// `until the client closed`.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Closed(end) => format!("until the {} closed", end.name()),
            Self::Reset(end) => format!("until the {} reset the connection", end.name()),
            Self::Capture => "until the capture ends".to_owned(),
        }
    }
}

/// The last time in which nothing was under way, as far as new data didn't end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastSilence {
    /// How long it was, µs.
    pub(crate) us: u64,
    /// From the beginning of the connection to its last packet, or to the end of the capture if that ends the silence, µs.
    pub(crate) of_us: u64,
    /// Whose payload came last before it.
    pub(crate) after: Option<End>,
    /// What ended it.
    pub(crate) until: SilenceEnd,
    /// Bytes that the client and the server had sent by then, as the numbers of their later ACKs say, and that neither came here nor
    /// were acknowledged.
    pub(crate) unseen: [u32; 2],
}

impl LastSilence {
    /// Its share of the time, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        if self.of_us == 0 { 0.0 } else { self.us as f64 / self.of_us as f64 }
    }
}

/// An end that closed or reset the connection while nothing was under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HangUp {
    /// How long nothing had been under way, ns.
    pub(crate) silent_ns: u64,
    /// Whose payload had come last.
    pub(crate) after: Option<End>,
    /// Who did what.
    pub(crate) until: SilenceEnd,
}

impl Connection {
    /// The silence at its end; `None` if something was under way to the last.
    pub(crate) fn last_silence(&self) -> Option<LastSilence> {
        let lasted = self.last_ns.saturating_sub(self.begun_ns.unwrap_or(self.last_ns));
        let tail = self.tail_ns.filter(|_| self.is_quiet_at_end && !self.is_over()).unwrap_or(0);
        let silent = self.ending_ns() + tail;
        // An end that had closed its direction right after its last data ended no silence.
        let hung_up = self.hung_up.filter(|hung_up| hung_up.silent_ns.saturating_mul(2) >= silent);
        let (silent_ns, of_ns, after, until) = match hung_up {
            Some(HangUp { silent_ns, after, until }) => (silent_ns, lasted, after, until),
            None => (silent, lasted + tail, self.spoke_last, SilenceEnd::Capture),
        };
        let unseen = [End::Client, End::Server].map(|end| self.half(end).unseen(self.half(end.other())));
        (silent_ns > 0).then_some(LastSilence { us: silent_ns / 1000, of_us: of_ns / 1000, after, until, unseen })
    }

    /// Whether there was nothing but one SYN, too short a time before the capture ends, or before it was given up, for an answer to be
    /// missed.
    pub(crate) fn may_still_be_answered(&self) -> bool {
        let begun_ns = self.begun_ns.unwrap_or(self.last_ns);
        let given_up = self.given_up_ns.map(|at| at.saturating_sub(self.last_ns));
        let waited = self.tail_ns.or(given_up).map(|tail| self.last_ns.saturating_sub(begun_ns).saturating_add(tail));
        self.without_time == 0
            && self.half(End::Client).counts.syn_retransmissions == 0
            && waited.is_some_and(|waited| waited < FIRST_TIMEOUT_NS)
    }
}
