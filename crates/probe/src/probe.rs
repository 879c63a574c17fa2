use std::net::IpAddr;
use std::time::Duration;

/// Time since the caller's clock began.
pub type Time = Duration;

/// What a probe is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An ICMP echo request; the reply is as long.
    Echo,
    /// The same for IPv4, but that routers may cut it into fragments.
    LooseEcho,
    /// A UDP datagram to a port where nobody listens; the target says so in a small packet.
    Udp,
    /// A TCP segment of old data on an open connection, which the target acknowledges again, naming it (RFC 2883).
    OldSegment,
    /// One packet of new data on a TCP connection of its own, which the kernel makes and the target acknowledges: what
    /// an ordinary user has in place of old segments. Its answer takes two round trips.
    Stream,
    /// The same, but that the kernel retransmits the data; the other is given up before.
    LastingStream,
    /// A TCP SYN, 44 bytes or a little more.
    Syn,
    /// A TCP SYN with data, to a port that refuses connections: it is refused again, in a small packet.
    RefusedSyn,
}

impl Kind {
    /// How many round trips its answer takes.
    #[must_use]
    pub const fn round_trips(self) -> u32 {
        if matches!(self, Self::Stream | Self::LastingStream) { 2 } else { 1 }
    }
}

/// A packet to send, never to be fragmented but for [`Kind::LooseEcho`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Which one: unique within its machine.
    pub id: u32,
    /// What it is.
    pub kind: Kind,
    /// The length of its IP packet, bytes.
    pub ip_len: u16,
    /// Hops that it may make; `None` for as many as it takes.
    pub ttl: Option<u8>,
    /// Which flow: probes of one flow take one way past load balancers.
    pub flow: u8,
}

/// What a router saw of a probe, from the quotation in its ICMP error. `None` for what it didn't quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quote {
    /// The type-of-service byte or traffic class.
    pub tos: Option<u8>,
    /// Whether it must not be fragmented; IPv4 only.
    pub dont_fragment: Option<bool>,
    /// The options of TCP, if the quotation has them all.
    pub options: Option<SynOptions>,
}

/// What a SYN carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SynOptions {
    /// The maximum segment size.
    pub mss: Option<u16>,
    /// The window scale.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// TCP Fast Open.
    pub fast_open: bool,
    /// ECE and CWR, the offer of ECN.
    pub ecn: bool,
}

/// What came back for a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// The target answered.
    Reached {
        /// The time to live with which the answer arrived.
        ttl: Option<u8>,
    },
    /// The target accepted a connection.
    Open {
        /// The largest segment that it says it receives.
        mss: Option<u16>,
        /// Whether it names duplicates, so that old segments work.
        sack: bool,
    },
    /// The target refused a connection.
    Refused,
    /// Somebody says that the packet is too long for the next link.
    TooBig {
        /// The MTU that he names.
        mtu: u32,
    },
    /// The hops ran out.
    Expired {
        /// What the router saw.
        quote: Quote,
    },
    /// Somebody says that there is no way, or that it is forbidden.
    Unreachable {
        /// The code of the ICMP message.
        code: u8,
    },
    /// This host's own interface doesn't take packets of that length, or its TCP makes none for this target.
    LocalTooBig,
    /// Beside that, for a [`Kind::Stream`] or [`Kind::LastingStream`]: what this host's TCP sends to the target at most.
    StreamLimit {
        /// The length of the IP packet, bytes.
        longest: u16,
    },
    /// Before an answer on a connection of this host's kernel: how long a round trip took, as that measured it. Whoever looks at the connection from
    /// time to time sees the answer later.
    Timed {
        /// The mean of all that the answer took.
        trip: Time,
    },
    /// The connection of a [`Kind::Stream`] or [`Kind::LastingStream`] is there, and its data has left.
    Connected,
    /// Nothing has acknowledged the data of a [`Kind::LastingStream`] yet.
    Retransmitted {
        /// How often it has left, the first time included.
        copies: u32,
    },
    /// The data of a [`Kind::LastingStream`] was acknowledged after it had been retransmitted, perhaps in smaller pieces.
    Late,
}

/// What came back, for which probe, when and from whom. Nothing here is proved: anybody on the way can write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The probe.
    pub id: u32,
    /// When it arrived.
    pub at: Time,
    /// Whose address it bears; `None` for this host's own.
    pub from: Option<IpAddr>,
    /// What it says.
    pub said: ProbeAnswer,
}

/// Something that probes. Ask [`poll_probe`](Self::poll_probe) until it gives nothing, then wait for an answer or for
/// [`wakeup`](Self::wakeup), until [`is_done`](Self::is_done).
pub trait Machine {
    /// The next probe, which leaves now.
    fn poll_probe(&mut self, now: Time) -> Option<Probe>;
    /// Takes what came back.
    fn handle(&mut self, answer: &Answer);
    /// When to ask again although nothing came back.
    fn wakeup(&self) -> Option<Time>;
    /// Whether there is an outcome.
    fn is_done(&self) -> bool;
}
