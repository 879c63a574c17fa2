//! How long a route of IPv6 still lasts: it counts down, so that it belongs to no comparison and to nothing that is stored.

use super::{HEAD, RTA_CACHEINFO, RTA_EXPIRES, RTM_NEWROUTE, Route};
use crate::rtattr::{attributes, push};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

impl Route {
    /// The same route with as much of its life left as another has: one that is replaced without it would stay for good.
    #[must_use]
    pub fn lasting_as(&self, other: &Self) -> Self {
        Self { lifetime: other.lifetime, ..self.clone() }
    }
}

/// The rest of a route's life, seconds; `None` for one that stays. All are alike.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lifetime(Option<u32>);

impl Lifetime {
    /// Reads that of an `RTM_NEWROUTE` message from its `struct rta_cacheinfo`, whose third field has hundredths of a second (`USER_HZ`),
    /// 0 for a route that stays.
    ///
    /// # Source
    /// `rtnl_put_cacheinfo()` of net/core/rtnetlink.c.
    pub(super) fn of(message: &[u8]) -> Self {
        let is_v6 = message.first().is_some_and(|family| i32::from(*family) == libc::AF_INET6);
        let mut all = attributes(message.get(HEAD..).unwrap_or_default());
        let info = all.find(|(kind, _)| is_v6 && *kind == RTA_CACHEINFO).map(|(_, info)| info);
        let ticks = info.and_then(|info| info.get(8..12)?.first_chunk()).map(|bytes| i32::from_ne_bytes(*bytes));
        let rest = ticks.and_then(|ticks| u32::try_from(ticks).ok()).filter(|ticks| *ticks > 0);
        Self(rest.map(|ticks| ticks.div_ceil(100)))
    }

    /// Adds it to a message that makes a route, in seconds.
    ///
    /// # Source
    /// `rtm_to_fib6_config()` of net/ipv6/route.c.
    pub(super) fn push_to(self, kind: u16, message: &mut Vec<u8>) {
        if let (RTM_NEWROUTE, Some(seconds)) = (kind, self.0) {
            push(message, RTA_EXPIRES, &seconds.to_ne_bytes());
        }
    }
}

impl PartialEq for Lifetime {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Lifetime {}

impl PartialOrd for Lifetime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Lifetime {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for Lifetime {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
