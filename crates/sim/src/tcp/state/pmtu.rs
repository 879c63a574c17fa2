//! What is known of the path's MTU.

use crate::segment::Range;
use crate::tcp::config::StackConfig;

/// `tcp_base_mss`.
pub(in crate::tcp) const BASE_MSS: u32 = 1_024;
/// What is known of the path's MTU.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Pmtu {
    /// That its segments keep to.
    pub(in crate::tcp) mtu: u32,
    /// What the peer announced.
    pub(in crate::tcp) peer_mss: u32,
    pub(in crate::tcp) probing: bool,
    /// The MSS below which the search for a black hole goes on.
    pub(in crate::tcp) search_low: u32,
    /// No larger packet is known to get through, and none larger than that is tried, bytes.
    pub(in crate::tcp) low: u32,
    pub(in crate::tcp) high: u32,
    /// A packet that is larger than what is known to get through, and on its way: where it begins and ends.
    pub(in crate::tcp) probe: Option<Range>,
    /// When the search began, ns.
    pub(in crate::tcp) since_ns: u64,
}

impl Pmtu {
    pub(in crate::tcp) fn new(config: &StackConfig) -> Self {
        let peer_mss = config.announced_mss();
        Self {
            mtu: config.mtu,
            peer_mss,
            probing: false,
            search_low: BASE_MSS,
            low: 0,
            high: 0,
            probe: None,
            since_ns: 0,
        }
    }
}

impl Pmtu {
    /// Nothing will be learnt from a probe that is under way; true if there was one.
    pub(in crate::tcp) fn forget_probe(&mut self) -> bool {
        self.probe.take().is_some()
    }
}
