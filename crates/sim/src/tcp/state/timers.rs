//! When what nothing arrives for happens.

/// What the one timer of the sender is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) enum Kind {
    Retransmit,
    LossProbe,
    Reordering,
    WindowProbe,
}

/// Never.
pub(in crate::tcp) const NEVER: u64 = u64::MAX;

/// When each timer fires, ns.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Timers {
    pub(in crate::tcp) sender: Option<(Kind, u64)>,
    pub(in crate::tcp) delayed_ack: u64,
    pub(in crate::tcp) pacing: u64,
    pub(in crate::tcp) compressed_ack: u64,
    /// The application, which found no room, looks again.
    pub(in crate::tcp) glance: u64,
    /// Time-outs in a row.
    pub(in crate::tcp) retries: u32,
    pub(in crate::tcp) probes: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            sender: None,
            delayed_ack: NEVER,
            pacing: NEVER,
            compressed_ack: NEVER,
            glance: NEVER,
            retries: 0,
            probes: 0,
        }
    }
}

impl Timers {
    pub(in crate::tcp) fn due(&self) -> u64 {
        let sender = self.sender.map_or(NEVER, |(_, at)| at);
        sender.min(self.delayed_ack).min(self.pacing).min(self.compressed_ack).min(self.glance)
    }

    pub(in crate::tcp) fn kind(&self) -> Option<Kind> {
        self.sender.map(|(kind, _)| kind)
    }

    pub(in crate::tcp) fn clear(&mut self) {
        self.sender = None;
    }
}
