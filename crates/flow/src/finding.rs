use crate::connection::End;
use serde::Serialize;

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Culprit {
    /// The one that opened the connection: its program, its host, its settings.
    Client,
    /// The other one.
    Server,
    /// What lies between them.
    Path,
    /// Nothing is wrong, or too little was seen.
    #[default]
    Nobody,
}

impl From<End> for Culprit {
    fn from(end: End) -> Self {
        if end == End::Client { Self::Client } else { Self::Server }
    }
}

/// For what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A SYN got no answer, or a SYN-ACK.
    Unanswered,
    /// A SYN was answered by a reset.
    Refused,
    /// Large packets vanish.
    BlackHole,
    /// The program didn't read what had arrived, so that the window was closed, or less than half of what it had been.
    ZeroWindow,
    /// The receive window was smaller than the path could carry.
    ReceiveWindow,
    /// Packets got lost.
    Loss,
    /// A queue marked packets with congestion (ECN) instead of dropping them.
    Marks,
    /// Packets overtook each other.
    Reordering,
    /// What had arrived was retransmitted.
    Spurious,
    /// ACKs came late, or later and later.
    AckDelay,
    /// A queue on the path made the RTT long.
    Queue,
    /// The program had nothing to send.
    Application,
    /// No more than a fixed amount was under way, by the sender's own limits: its send buffer, its program, its rate.
    SendBuffer,
    /// Small segments waited for the ACK of the one before: Nagle's rule.
    Nagle,
    /// The connection was reset with data under way.
    Reset,
    /// The path and the congestion window, as it should be.
    #[default]
    None,
}

/// Something that cost time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Who is to blame.
    pub end: Culprit,
    /// For what.
    pub reason: Reason,
    /// The share of the connection's time that it cost; above 1 where nothing worked at all.
    pub weight: f64,
    /// In words.
    pub text: String,
}

/// The verdict on a connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Blame {
    /// Who is to blame.
    pub end: Culprit,
    /// For what.
    pub reason: Reason,
    /// In words.
    pub text: String,
    /// Everything that was found, the heaviest first.
    pub findings: Vec<Finding>,
}
