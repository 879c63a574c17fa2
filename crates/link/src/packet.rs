use crate::Time;

/// One packet of at most the MTU, as the stages see it.
///
/// The stages read and mark the fields below; `payload` is the engine's handle (a descriptor, an index of a buffer) and
/// is never looked into. A duplicate has a clone of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<P> {
    /// Length of the IP packet, bytes.
    pub ip_len: u32,
    /// Transport payload, bytes; zero for a pure acknowledgement.
    pub data_len: u32,
    /// Hash of the flow, for queues that are fair to flows.
    pub flow: u32,
    /// Routers that it may still pass: each joint of two links takes one, and the last one drops it.
    pub ttl: u8,
    /// Whether the sender is capable of ECN, so that an active queue marks instead of dropping.
    pub ect: bool,
    /// Congestion experienced: set by a queue.
    pub ce: bool,
    /// Whether a hop with a smaller MTU must not fragment it.
    pub dont_fragment: bool,
    /// An acknowledgement that a later one of its flow makes superfluous: no data, no SYN, FIN or RST, no SACK block.
    pub pure_ack: bool,
    /// It opens a connection: a SYN, also one that answers.
    pub syn: bool,
    /// Bits were flipped on the way: the engine damages the payload when it delivers.
    pub corrupted: bool,
    /// The engine's handle.
    pub payload: P,
}

impl<P> Packet<P> {
    /// A packet of so many bytes at the IP layer; not capable of ECN, not to be fragmented, of flow 0 and without data.
    #[must_use]
    pub const fn new(ip_len: u32, payload: P) -> Self {
        Self {
            ip_len,
            data_len: 0,
            flow: 0,
            ttl: u8::MAX,
            ect: false,
            ce: false,
            dont_fragment: true,
            pure_ack: false,
            syn: false,
            corrupted: false,
            payload,
        }
    }
}

/// Why a packet did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Lost at random or by plan.
    Loss,
    /// Lost while the link was out of service.
    Outage,
    /// Longer than the link's MTU. The engine answers with an ICMP message, or stays silent as a black hole does.
    TooBig {
        /// The MTU, bytes.
        mtu: u32,
    },
    /// The queue was full.
    QueueFull,
    /// An active queue management kept the queue short.
    Aqm,
    /// Over the rate that a policer allows.
    Policed,
    /// Damaged, and the link's checksum noticed.
    Corrupted,
    /// Sixteen collisions in a row on a shared medium.
    Collisions,
    /// Every attempt at the radio failed.
    Retries,
    /// Superseded by a later acknowledgement.
    Thinned,
    /// The time to live ran out at the router in front of this link.
    HopLimit,
    /// The pipe held more packets than it may: the emulator's own limit, no property of the path.
    Overflow,
}

/// What became of a packet, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<P> {
    /// It left the other end.
    Deliver {
        /// When its last bit arrived.
        at: Time,
        /// The packet, with the marks it got.
        packet: Packet<P>,
    },
    /// It ended on the way.
    Drop {
        /// When.
        at: Time,
        /// Why.
        reason: DropReason,
        /// The packet.
        packet: Packet<P>,
    },
}

impl<P> Event<P> {
    /// When it happened.
    #[must_use]
    pub const fn at(&self) -> Time {
        match self {
            Self::Deliver { at, .. } | Self::Drop { at, .. } => *at,
        }
    }

    /// The packet that it happened to.
    #[must_use]
    pub const fn packet(&self) -> &Packet<P> {
        match self {
            Self::Deliver { packet, .. } | Self::Drop { packet, .. } => packet,
        }
    }
}

/// The direction in which a packet travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// From the first host to the last: the links' `forward` stages.
    AToB,
    /// From the last host to the first: the links' `backward` stages.
    BToA,
}

impl Side {
    /// The other direction.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::AToB => Self::BToA,
            Self::BToA => Self::AToB,
        }
    }

    /// 0 for A → B, 1 for B → A.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
