//! What a route is to other routes, and what of it has words.

use super::{
    RTA_DST, RTA_GATEWAY, RTA_METRICS, RTA_MULTIPATH, RTA_NH_ID, RTA_OIF, RTA_PREFSRC, RTA_PRIORITY, RTA_TABLE,
    RTA_VIA, Route, hops_of, octets,
};
use crate::rtattr::attributes;

/// `RTA_PREF`: 0 unless a router advertised another preference.
const RTA_PREF: u16 = 20;

impl Route {
    /// Whether it leads to all that the other one leads to, and to more.
    #[must_use]
    pub fn is_wider_than(&self, other: &Self) -> bool {
        let ((whole, bits), (part, longer)) = (self.destination(), other.destination());
        let differ = octets(whole).into_iter().zip(octets(part)).enumerate().any(|(at, (a, b))| {
            let rest = u32::from(bits).saturating_sub(u32::try_from(at * 8).unwrap_or(u32::MAX));
            (a ^ b) & !(0xff_u8.checked_shr(rest).unwrap_or(0)) != 0
        });
        self.is_v6() == other.is_v6() && bits < longer && !differ
    }

    /// The number of the nexthop object that says where it leads.
    #[must_use]
    pub fn nexthop_object(&self) -> Option<u32> {
        self.number(RTA_NH_ID)
    }

    /// Whether all that it is can be asked of it in this program's words; encapsulations can't.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        const WAY: [u16; 3] = [RTA_OIF, RTA_GATEWAY, RTA_VIA];
        let known = |kind: &u16| {
            WAY.contains(kind)
                || matches!(
                    *kind,
                    RTA_DST | RTA_PRIORITY | RTA_PREFSRC | RTA_METRICS | RTA_MULTIPATH | RTA_TABLE | RTA_NH_ID
                )
        };
        let usual =
            |(kind, value): (&u16, &Vec<u8>)| known(kind) || (*kind == RTA_PREF && value.iter().all(|byte| *byte == 0));
        let hops = self.attributes.get(&RTA_MULTIPATH);
        let mut of_hops = hops.into_iter().flat_map(|list| hops_of(list)).flat_map(|hop| attributes(&hop[8..]));
        self.attributes.iter().all(usual) && of_hops.all(|(kind, _)| WAY.contains(&kind))
    }
}
