//! How fast a survey is, and how polite.

use std::net::IpAddr;
use std::time::Duration;

/// How fast, and how polite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyConfig {
    /// The sizes of segments to offer, bytes.
    pub sizes: [u16; 2],
    /// Hosts begun a second, all together.
    pub rate: u32,
    /// The same for those that aren't public; as many as this host, the way and the servers carry if it isn't said.
    pub rate_private: Option<u32>,
    /// The time between two hosts of one network: a /24 of IPv4, a /48 of IPv6.
    pub apart: Duration,
    /// The same for networks that aren't public.
    pub apart_private: Duration,
    /// Hosts at once; bounds memory.
    pub at_once: usize,
}

impl Default for SurveyConfig {
    fn default() -> Self {
        Self {
            sizes: [1240, 64],
            rate: 100,
            rate_private: None,
            apart: Duration::from_secs(1),
            apart_private: Duration::ZERO,
            at_once: 2000,
        }
    }
}

/// Whether an address isn't on the public Internet, so that its owner is most likely who asks.
///
/// # Source
/// RFC 6890: private use, loopback, link-local, shared address space (RFC 6598), benchmarking (RFC 2544), documentation;
/// RFC 4193 for IPv6.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && b & 0xc0 == 64;
            let benchmark = a == 198 && b & 0xfe == 18;
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_documentation() || shared || benchmark
        }
        IpAddr::V6(v6) => {
            let documentation = v6.segments()[..2] == [0x2001, 0x0db8];
            v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local() || documentation
        }
    }
}
