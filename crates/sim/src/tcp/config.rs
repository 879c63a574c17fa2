//! Settings of a stack.
//!
//! What this leaves out: settings that nothing here heeds (memory pressure, keepalive, Fast Open, `tcp_mtu_probing` = 2, `tcp_early_retrans`
//! and their like); it matters on hosts where they were changed.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `net.ipv4.tcp_*`, metrics of routes, socket options | – | [`StackConfig`] |

use std::time::Duration;

/// How a kernel tunes the receive buffer to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferTuning {
    /// Linux until 6.15: room for sixteen segments more, and none for what lies beyond a hole.
    Cushioned,
    /// Linux since 6.16.
    #[default]
    Lean,
}

impl BufferTuning {
    /// That of a release, as uname(2) names it: `6.12.117`.
    #[must_use]
    pub fn of_release(release: &str) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < (6, 16) => Self::Cushioned,
            _ => Self::Lean,
        }
    }
}

/// Settings of one end's stack; the defaults are those of Linux 6.18.
///
/// # Source
/// Documentation/networking/ip-sysctl.rst of Linux.
#[derive(Debug, Clone, PartialEq)]
pub struct StackConfig {
    /// The device's or route's MTU, bytes.
    pub mtu: u32,
    /// The most that a segment may carry (`TCP_MAXSEG`), bytes.
    pub max_segment: Option<u32>,
    /// Congestion control of data that this end sends.
    pub congestion_control: String,
    /// Whether packets are paced for congestion controls that don't ask for it: the fq qdisc, or a host whose default is
    /// BBR, which leaves its pacing behind on sockets that are switched to another one.
    pub pacing: bool,
    /// Initial congestion window, segments.
    pub initcwnd: u32,
    /// Bound of the initial receive window, segments.
    pub initrwnd: Option<u32>,
    /// `tcp_rmem`: initial and largest receive buffer, bytes.
    pub rmem: (u64, u64),
    /// How the receive buffer is tuned.
    pub tuning: BufferTuning,
    /// Largest send buffer (`tcp_wmem`), bytes.
    pub wmem_max: u64,
    /// A window that is never exceeded, with a fixed buffer of four times its size; autotuning is off then.
    pub rwin: Option<u32>,
    /// What the kernel leaves free in front of each buffer for headers (`MAX_TCP_HEADER`), bytes: more where it was built with
    /// tunnels and wireless devices.
    pub header_room: u64,
    /// A fixed send buffer, bytes.
    pub sndbuf: Option<u64>,
    /// What a received packet of full size occupies in memory, over its payload.
    pub truesize_ratio: f64,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// Window scaling.
    pub window_scaling: bool,
    /// So many SYNs follow the first one a second apart, before each waits twice as long as the one before
    /// (`tcp_syn_linear_timeouts`; none before Linux 6.5).
    pub syn_linear_timeouts: u32,
    /// Explicit congestion notification, asked for.
    pub ecn: bool,
    /// Path MTU discovery: packets must not be fragmented.
    pub pmtud: bool,
    /// Black-hole detection: `tcp_mtu_probing` = 1.
    pub mtu_probing: bool,
    /// Small segments wait while a small one is on the way.
    pub nagle: bool,
    /// How long its programs take to wake up and answer: an idle processor and a context switch.
    pub reaction: Duration,
    /// The window is cut after a pause.
    pub slow_start_after_idle: bool,
}

impl Default for StackConfig {
    fn default() -> Self {
        Self {
            mtu: 1_500,
            max_segment: None,
            congestion_control: "cubic".to_owned(),
            pacing: false,
            initcwnd: 10,
            initrwnd: None,
            rmem: (131_072, 32 << 20),
            tuning: BufferTuning::Lean,
            wmem_max: 4 << 20,
            rwin: None,
            header_room: 320,
            sndbuf: None,
            truesize_ratio: 2304.0 / 1448.0,
            sack: true,
            timestamps: true,
            window_scaling: true,
            syn_linear_timeouts: 4,
            ecn: false,
            pmtud: true,
            mtu_probing: false,
            nagle: true,
            reaction: Duration::from_micros(50),
            slow_start_after_idle: true,
        }
    }
}

impl StackConfig {
    /// The MSS that this end announces: what its MTU leaves, or less if it was told so.
    pub(crate) fn announced_mss(&self) -> u32 {
        let room = self.mtu.saturating_sub(40).max(88);
        self.max_segment.map_or(room, |most| room.min(most.max(88)))
    }
}
