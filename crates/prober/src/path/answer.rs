use crate::mtu::SearchAnswer;
use crate::trace::RouteAnswer;
use serde::Serialize;
use std::net::IpAddr;
use wt_probe::LossCount;

/// What is known of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathAnswer {
    /// What gets through; packets and seconds are those of all of it.
    #[serde(flatten)]
    pub search: SearchAnswer,
    /// The hops.
    #[serde(flatten)]
    pub route: RouteAnswer,
    /// Round-trip times.
    pub rtt_us: RttAnswer,
    /// The mean difference of one round-trip time from the one before it, µs.
    pub jitter_us: Option<f64>,
    /// The share of packets that were lost.
    pub loss: Option<f64>,
    /// How many answers overtook others.
    pub reordered: Option<u32>,
    /// The rate of the narrowest link, bits of IP packets a second; `None` where hosts are too busy to tell it within a half.
    pub bottleneck_bps: Option<f64>,
    /// It is no less, if one packet in the middle of the trains was held up by nobody.
    pub bottleneck_low_bps: Option<f64>,
    /// It is no more, likewise; `None` where this host's sending was what limited it, or the answers may have been.
    pub bottleneck_high_bps: Option<f64>,
    /// Packets that it took to find.
    pub bottleneck_packets: u32,
    /// Seconds that it took to find.
    pub bottleneck_seconds: f64,
    /// Whether this host's sending was what limited it: the path may be faster.
    pub bottleneck_sender_limited: Option<bool>,
    /// Whether it may be the answers that came no faster, over a far slower way back: the way there may be faster.
    pub bottleneck_answers_limited: Option<bool>,
    /// The bandwidth-delay product of the way there, bytes; `None` where only a lower bound of its rate is known for want of faster answers.
    pub bdp_bytes: Option<u64>,
    /// The receive window that lets downloads fill the path. Always `None`: trains of packets measure the way there, downloads
    /// come the other way, and on an asymmetric line they are several times faster.
    pub rwin_bytes: Option<u64>,
    /// The first window that fills the path at once, segments, and no more than is usual on slower ones.
    pub initcwnd: Option<u64>,
    /// What one cell more takes, µs, where the narrowest link is one of cells.
    pub cell_us: Option<f64>,
    /// What the narrowest link may be, in words.
    pub link_guess: &'static str,
    /// The address of this host's that packets bear.
    #[serde(skip)]
    pub source: IpAddr,
    /// Packets whose round trips were counted.
    #[serde(skip)]
    pub count: Option<LossCount>,
    /// So many seconds are the most that round trips are counted for, where fewer packets fit into them than were asked for.
    #[serde(skip)]
    pub cut_after: Option<u32>,
}

/// Round-trip times, µs; `None` where the host rations its answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RttAnswer {
    /// The shortest.
    pub min: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The one that 99 % don't exceed.
    pub p99: Option<f64>,
}
