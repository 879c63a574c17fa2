//! What the program and we share: `struct control` and `struct record` of programs/traffic.c.

use std::net::IpAddr;
use wt_sys::bpf::SharedWords;

/// So many arms at most.
pub const MAX_ARMS: usize = 8;
/// So many ports at most.
pub const MAX_PORTS: usize = 8;
/// So many addresses of administrators at most.
pub const MAX_ADMINISTRATORS: usize = 4;
/// So many addresses of this host at most.
pub const MAX_OWN_ADDRESSES: usize = 64;

/// Numbers of the words of `struct control`.
pub(super) mod word {
    use super::{MAX_ADMINISTRATORS, MAX_ARMS, MAX_OWN_ADDRESSES, MAX_PORTS};

    pub(crate) const HEARTBEAT: usize = 0;
    pub(crate) const PATIENCE: usize = 1;
    pub(crate) const NAMESPACE: usize = 2;
    pub(crate) const KEY: usize = 3;
    pub(crate) const TAG_KEY: usize = 5;
    pub(crate) const EPOCH: usize = 7;
    pub(crate) const BY_CONNECTION: usize = 8;
    pub(crate) const ARMS: usize = 9;
    pub(crate) const SKIP_PRIVATE: usize = 10;
    pub(crate) const SKIP_LOOPBACK: usize = 11;
    pub(crate) const SKIP_OWN_CC: usize = 12;
    pub(crate) const VARIES_CC: usize = 13;
    pub(crate) const ASKS_REQUESTS: usize = 14;
    pub(crate) const PORTS: usize = 15;
    pub(crate) const PORT: usize = 16;
    pub(crate) const ADMINISTRATORS: usize = PORT + MAX_PORTS;
    pub(crate) const ADMINISTRATOR: usize = ADMINISTRATORS + 1;
    pub(crate) const OWN_MASK: usize = ADMINISTRATOR + 2 * MAX_ADMINISTRATORS;
    pub(crate) const OWN_ADDRESSES: usize = OWN_MASK + 1;
    pub(crate) const OWN: usize = OWN_ADDRESSES + 1;
    pub(crate) const BELOW: usize = OWN + 2 * MAX_OWN_ADDRESSES;
    pub(crate) const USUAL_CC: usize = BELOW + MAX_ARMS;
    pub(crate) const ARM: usize = USUAL_CC + 2;
    /// Words of an arm.
    pub(crate) const ARM_SIZE: usize = 8;
    /// Where the counters of the first processor begin: at a cache line.
    pub(crate) const COUNTERS: usize = (ARM + MAX_ARMS * ARM_SIZE).next_multiple_of(8);
    /// Within a processor's counters: of the arms.
    pub(crate) const ASSIGNED: usize = 16;
    pub(crate) const LOST: usize = ASSIGNED + MAX_ARMS;
    /// Words of a processor's counters.
    pub(crate) const COUNTERS_SIZE: usize = LOST + MAX_ARMS;
    /// So many have counters of their own.
    pub(crate) const PROCESSORS: usize = 32;
    /// All of them.
    pub(crate) const ALL: usize = COUNTERS + PROCESSORS * COUNTERS_SIZE;
}

/// What the sockets of an arm's connections get; what is `None` stays the kernel's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArmOptions {
    /// The congestion control, at most 15 letters.
    pub congestion_control: Option<String>,
    /// Initial congestion window, segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments.
    pub initrwnd: Option<u32>,
    /// Greatest congestion window, segments.
    pub cwnd_clamp: Option<u32>,
    /// Smallest retransmission timeout, µs: 2 jiffies to 200 ms.
    pub rto_min_us: Option<u32>,
    /// Longest delay of an ACK, µs: 2 jiffies to 200 ms.
    pub delack_max_us: Option<u32>,
    /// Unsent bytes above which the socket isn't writable.
    pub notsent_lowat: Option<u32>,
    /// Greatest receive window, bytes.
    pub window_clamp: Option<u32>,
    /// Greatest rate, bytes a second.
    pub pacing_rate: Option<u32>,
    /// ECN is accepted although the host doesn't otherwise.
    pub accepts_ecn: bool,
}

impl ArmOptions {
    /// What the bits of [`TrafficRecord::refused`] stand for; the initial receive window and ECN are never refused.
    pub const REFUSABLE: [&'static str; 10] = [
        "cc",
        "initcwnd",
        "initrwnd",
        "ecn",
        "cwnd-clamp",
        "rto-min",
        "delack-max",
        "notsent-lowat",
        "window-clamp",
        "pacing",
    ];

    pub(super) fn write(&self, control: &SharedWords, arm: usize) {
        let pair = |low: Option<u32>, high: Option<u32>| {
            let ([a, b, c, d], [e, f, g, h]) = (low.unwrap_or(0).to_ne_bytes(), high.unwrap_or(0).to_ne_bytes());
            u64::from_ne_bytes([a, b, c, d, e, f, g, h])
        };
        let [first, second] = name_words(self.congestion_control.as_deref().unwrap_or(""));
        let words = [
            pair(self.initcwnd, self.cwnd_clamp),
            pair(self.rto_min_us, self.delack_max_us),
            pair(self.notsent_lowat, self.window_clamp),
            pair(self.initrwnd, self.accepts_ecn.then_some(1)),
            self.pacing_rate.map_or(0, u64::from),
            first,
            second,
        ];
        for (at, value) in words.into_iter().enumerate() {
            control.write(word::ARM + arm * word::ARM_SIZE + at, value);
        }
    }
}

/// An address as two words, IPv4 as the mapped one.
pub(super) fn address_words(address: IpAddr) -> [u64; 2] {
    let bits = match address {
        IpAddr::V4(v4) => u128::from(v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => u128::from(v6),
    };
    [(bits >> 64) as u64, bits as u64]
}

/// The bit of an address in the mask that most clients have none of: `is_own()` of programs/traffic.c.
pub(super) fn mask_bit([high, low]: [u64; 2]) -> u64 {
    1 << ((high ^ low ^ low >> 8) & 63)
}

/// A name of at most 15 bytes and a zero, as two words.
pub(super) fn name_words(name: &str) -> [u64; 2] {
    let mut bytes = [0_u8; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    let (first, second) = bytes.split_at(8);
    [first, second].map(|half| u64::from_ne_bytes(half.try_into().unwrap_or_default()))
}

/// How many connections of the namespace there were, and what they were. All but [`recorded`](Self::recorded) and
/// [`lost`](Self::lost) are counted as they begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// All that were accepted in the namespace.
    pub passive: u64,
    /// Left alone: on ports that aren't named.
    pub other_port: u64,
    /// Left alone: from this host, and from link-local and private addresses.
    pub private: u64,
    /// Left alone: from where an administrator is logged in.
    pub administrator: u64,
    /// Left alone: with a congestion control of their own.
    pub own_cc: u64,
    /// Left alone: nobody had beaten the heart.
    pub paused: u64,
    /// Drawn into no arm.
    pub outside: u64,
    /// Not assigned for want of memory.
    pub without_note: u64,
    /// Ended and recorded.
    pub recorded: u64,
    /// Responses that weren't told since the ring was full.
    pub responses_lost: u64,
    /// Assigned, of each arm.
    pub assigned: [u64; MAX_ARMS],
    /// Ended without a record since the ring was full, of each arm.
    pub lost: [u64; MAX_ARMS],
}

impl TrafficCounts {
    pub(super) fn read(control: &SharedWords) -> Self {
        let first = (0..word::PROCESSORS).map(|processor| word::COUNTERS + processor * word::COUNTERS_SIZE);
        let count = |which: usize| first.clone().map(|first| control.read(first + which)).sum();
        Self {
            passive: count(0),
            other_port: count(1),
            private: count(2),
            own_cc: count(3),
            paused: count(4),
            outside: count(5),
            without_note: count(6),
            recorded: count(7),
            administrator: count(8),
            responses_lost: count(9),
            assigned: std::array::from_fn(|arm| count(word::ASSIGNED + arm)),
            lost: std::array::from_fn(|arm| count(word::LOST + arm)),
        }
    }

    /// Assigned, of all arms.
    #[must_use]
    pub fn all_assigned(&self) -> u64 {
        self.assigned.iter().sum()
    }

    /// Whether every connection is in one account: a moment lies between the first count of one and the second.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.passive == self.left_alone() + self.not_assigned() + self.all_assigned()
    }

    /// Left alone, for whatever reason.
    #[must_use]
    pub fn left_alone(&self) -> u64 {
        self.other_port + self.private + self.administrator + self.own_cc
    }

    /// Not assigned although they take part: nobody watched, there was no memory, or they were drawn into no arm.
    #[must_use]
    pub fn not_assigned(&self) -> u64 {
        self.paused + self.outside + self.without_note
    }

    /// Assigned and not ended yet.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.all_assigned().saturating_sub(self.recorded + self.lost.iter().sum::<u64>())
    }
}

/// What became of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficRecord {
    /// Stands for the client's prefix within its epoch.
    pub tag: u64,
    /// When it began.
    pub epoch: u64,
    /// Its arm.
    pub arm: usize,
    /// When it was established, ns of the monotonic clock.
    pub since_ns: u64,
    /// From establishment to the end, ns.
    pub lasted_ns: u64,
    /// From establishment until an end of the connection was near and all was acknowledged, ns; `None` if that never was.
    pub finished_ns: Option<u64>,
    /// For how much of that nothing was outstanding, ns, in steps of the kernel's clock (1 ms to 10 ms); 0 where it can't be known.
    pub idle_ns: u64,
    /// Payload that the client acknowledged, bytes.
    pub bytes_acked: u64,
    /// Payload from the client, bytes.
    pub bytes_received: u64,
    /// Options that the kernel refused: bits of [`ArmOptions::REFUSABLE`].
    pub refused: u32,
    /// Retransmission timeouts.
    pub rtos: u32,
    /// The congestion window as it began, read back, segments.
    pub initcwnd: u32,
    /// The state that it was in before it was closed: `TCP_…` of net/tcp_states.h.
    pub last_state: u32,
    /// Bytes of the sequence that were never acknowledged.
    pub unacked: u32,
    /// Smoothed RTT at the end, µs.
    pub srtt_us: u32,
    /// Smallest RTT of the last minutes, µs.
    pub min_rtt_us: u32,
    /// Segments retransmitted.
    pub retransmitted: u32,
    /// Segments sent.
    pub segments_out: u32,
    /// Segments with payload sent.
    pub data_segments_out: u32,
    /// Segments received.
    pub segments_in: u32,
    /// Congestion window at the end, segments.
    pub cwnd: u32,
    /// MSS at the end, bytes.
    pub mss: u32,
    /// Options that were something else at the end than they were set to: bits of [`ArmOptions::REFUSABLE`].
    pub changed: u32,
    /// Whether ECN was agreed on; not known of one that is still open.
    pub ecn: bool,
    /// How many responses it had, if they are told by themselves: those that have ended, and one that its end broke off.
    pub responses: u32,
    /// The last of them, unless it was told before.
    pub last_response: Option<LastResponse>,
}

/// The last response of a connection, which its record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastResponse {
    /// From its first byte written to its last byte acknowledged, or to where it was broken off, ns.
    pub took_ns: u64,
    /// When it ended, ns from the connection's establishment.
    pub ended_ns: u64,
    /// Payload that was acknowledged, bytes.
    pub bytes: u32,
    /// Whether not all of it was acknowledged.
    pub cut: bool,
}

/// A response after which its connection had another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseRecord {
    /// As [`TrafficRecord::tag`].
    pub tag: u64,
    /// When its connection began.
    pub epoch: u64,
    /// Its connection's arm.
    pub arm: usize,
    /// When its connection was established, ns of the monotonic clock.
    pub since_ns: u64,
    /// When it ended, ns from then.
    pub ended_ns: u64,
    /// From its first byte written to its last byte acknowledged, ns.
    pub took_ns: u64,
    /// Payload, bytes.
    pub bytes: u32,
}

/// What has become of connections and responses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrafficRecords {
    /// Responses that have ended before the end of their connection; those of a connection come before it.
    pub responses: Vec<ResponseRecord>,
    /// Connections that have ended, or those that are still open.
    pub connections: Vec<TrafficRecord>,
}

impl ResponseRecord {
    /// Bytes of `struct response`.
    pub(super) const SIZE: usize = 5 * 8 + 2 * 4;

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let wide = |at: usize| crate::u64_at(bytes, at * 8).ok();
        let narrow = |at: usize| crate::u32_at(bytes, 40 + at * 4).ok();
        Some(Self {
            tag: wide(0)?,
            epoch: wide(1)?,
            since_ns: wide(2)?,
            ended_ns: wide(3)?,
            took_ns: wide(4)?,
            arm: narrow(0)? as usize,
            bytes: narrow(1)?,
        })
    }
}

impl TrafficRecord {
    /// Bytes of `struct record`.
    pub(super) const SIZE: usize = 8 * 8 + 16 * 4 + 2 * 8 + 4 * 4;

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let wide = |at: usize| crate::u64_at(bytes, at * 8).ok();
        let narrow = |at: usize| crate::u32_at(bytes, 64 + at * 4).ok();
        let response =
            LastResponse { took_ns: wide(16)?, ended_ns: wide(17)?, bytes: narrow(20)?, cut: narrow(22)? != 0 };
        Some(Self {
            tag: wide(0)?,
            epoch: wide(1)?,
            since_ns: wide(2)?,
            lasted_ns: wide(3)?,
            finished_ns: Some(wide(4)?).filter(|ns| *ns > 0),
            idle_ns: wide(5)?,
            bytes_acked: wide(6)?,
            bytes_received: wide(7)?,
            arm: narrow(0)? as usize,
            refused: narrow(1)?,
            rtos: narrow(2)?,
            initcwnd: narrow(3)?,
            last_state: narrow(4)?,
            unacked: narrow(5)?,
            srtt_us: narrow(6)?,
            min_rtt_us: narrow(7)?,
            retransmitted: narrow(8)?,
            segments_out: narrow(9)?,
            data_segments_out: narrow(10)?,
            segments_in: narrow(11)?,
            cwnd: narrow(12)?,
            mss: narrow(13)?,
            changed: narrow(14)?,
            ecn: narrow(15)? != 0,
            responses: narrow(21)?,
            last_response: Some(response).filter(|response| response.took_ns > 0),
        })
    }

    /// Whether both ends said goodbye; else it was reset, or timed out.
    #[must_use]
    pub fn ended_in_order(&self) -> bool {
        /// `TCP_FIN_WAIT2`, `TCP_TIME_WAIT`, `TCP_LAST_ACK`, `TCP_CLOSING`.
        const ORDERLY: [u32; 4] = [5, 6, 9, 11];
        ORDERLY.contains(&self.last_state)
    }
}
