use std::net::IpAddr;

/// A router's word, or another host's, that a packet goes no further: that there is no way or that it is forbidden, or that its hops ran
/// out although it had as many as any packet has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterRefusal {
    /// Whose address it bears.
    pub from: Option<IpAddr>,
    /// Whether the hops ran out ("time exceeded"), or else the target is called unreachable.
    pub expired: bool,
    /// The code of the ICMP message.
    pub code: u8,
}

impl RouterRefusal {
    /// The one that counts: who says why knows more than whose hops ran out, and the first says it nearest.
    #[must_use]
    pub fn or(before: Option<Self>, next: Self) -> Option<Self> {
        match before {
            Some(before) if !before.expired || next.expired => Some(before),
            _ => Some(next),
        }
    }
}
