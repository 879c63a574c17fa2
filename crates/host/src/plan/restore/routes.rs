use super::Restoration;
use crate::route_text::{self, holds};
use crate::snapshot::route_key;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use wt_sys::route::{NextHop, Route};

/// `RTPROT_KERNEL`: routes that the kernel makes for each address.
const BY_KERNEL: u8 = 2;
/// `RTPROT_BOOT` and `RTPROT_STATIC`: routes that people make. Others come and go with leases and daemons.
const BY_HAND: [u8; 2] = [3, 4];
/// Routes that are named for each reason; the rest is counted.
const NAMED: usize = 3;

impl Restoration<'_> {
    /// Routes as they were, as far as people made them, or the kernel for addresses that are as they were; routes of others get their
    /// metrics back. What is equal isn't touched: several routes may have one key, as fe80::/64 has on every device, and are
    /// told apart by their devices.
    pub(super) fn routes(&mut self) -> BTreeSet<Route> {
        let (now, same_network) = (&self.survey.snapshot.routes, self.same_network);
        let place = |route: &Route| {
            let devices: Vec<u32> = route.hops().iter().map(|hop| hop.device).collect();
            (route_key(route), if same_network { devices } else { Vec::new() })
        };
        let mut wanted: BTreeSet<Route> = now.intersection(&self.stored.routes).cloned().collect();
        let mut old: BTreeMap<_, Vec<&Route>> = BTreeMap::new();
        for route in self.stored.routes.difference(now) {
            old.entry(place(route)).or_default().push(route);
        }
        let mut left: BTreeMap<String, Vec<&Route>> = BTreeMap::new();
        for route in now.difference(&self.stored.routes) {
            match old.get_mut(&place(route)).and_then(Vec::pop) {
                Some(old) if same_network => drop(wanted.insert(old.clone())),
                Some(old) => drop(wanted.insert(route.with_metrics(&old.metrics()))),
                None if same_network && self.is_ours_to_make(route) => {}
                None => {
                    if let Some(why) = self.why_it_stays(route) {
                        left.entry(why).or_default().push(route);
                    }
                    wanted.insert(route.clone());
                }
            }
        }
        let (direct, through): (Vec<&Route>, Vec<&Route>) =
            old.into_values().flatten().partition(|route| route.hops().iter().all(|hop| hop.gateway.is_none()));
        // What leads somewhere directly comes first: gateways are reached through it.
        for route in direct.into_iter().chain(through) {
            match self.why_not_back(route, &wanted) {
                None => drop(wanted.insert(route.clone())),
                Some(why) if !why.is_empty() => left.entry(why).or_default().push(route),
                Some(_) => {}
            }
        }
        for (why, routes) in left {
            self.tell_routes(&why, &routes);
        }
        wanted
    }

    fn tell_routes(&mut self, why: &str, routes: &[&Route]) {
        let names = self.survey.names();
        let named: Vec<String> = routes.iter().take(NAMED).map(|route| self.named(route, &names)).collect();
        let more = routes.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        self.leave_out("route", format!("{}{more}: {why}", named.join("; ")));
    }

    /// The route in short; devices that are gone by the names that they had.
    fn named(&self, route: &Route, names: &route_text::Names) -> String {
        let mut text = route_text::short(route, names);
        if self.same_network {
            for hop in route.hops().iter().filter(|hop| !self.is_there(hop.device)) {
                let old = self.stored.devices.iter().find(|(_, state)| state.index == hop.device);
                if let Some((name, _)) = old {
                    text = text.replace(&format!("dev {}", names.get(hop.device)), &format!("dev {name}"));
                }
            }
        }
        text
    }

    fn is_there(&self, device: u32) -> bool {
        self.survey.devices.links.iter().any(|link| link.index == device)
    }

    /// Whether this route may be made and removed: people made it, or the kernel did for addresses that are as they were.
    fn is_ours_to_make(&self, route: &Route) -> bool {
        BY_HAND.contains(&route.protocol())
            || (route.protocol() == BY_KERNEL && route.hops().iter().all(|hop| self.is_settled(hop.device)))
    }

    /// Whether a device is switched on and has the addresses that it had.
    fn is_settled(&self, device: u32) -> bool {
        let (Some(before), Some(link)) =
            (self.before, self.survey.devices.links.iter().find(|link| link.index == device))
        else {
            return false;
        };
        let same_addresses = before.addresses.get(&link.name) == self.around.addresses.get(&link.name);
        link.up && before.up.contains(&link.name) && same_addresses
    }

    /// Why a route that wasn't there stays, unless an address or a device that came says it already.
    fn why_it_stays(&self, route: &Route) -> Option<String> {
        let by = route_text::protocol_name(route.protocol());
        match route.protocol() {
            _ if !self.same_network => Some(
                "wasn't there; after a boot, or elsewhere, only settings of routes that were there are put back"
                    .to_owned(),
            ),
            BY_KERNEL if self.before.is_some() => None,
            _ => Some(format!("wasn't there, and stays: it isn't made by hand (proto {by})")),
        }
    }

    /// Why a route that is gone can't be put back; empty if an address or a device that went says it already.
    fn why_not_back(&self, route: &Route, wanted: &BTreeSet<Route>) -> Option<String> {
        if !self.same_network {
            return Some(
                "isn't there; after a boot, or elsewhere, only settings of routes that are there are put back"
                    .to_owned(),
            );
        }
        let hops = route.hops();
        for hop in hops.iter().filter(|hop| hop.device != 0) {
            match self.survey.devices.links.iter().find(|link| link.index == hop.device) {
                None if route.protocol() == BY_KERNEL => return Some(String::new()),
                None => return Some("isn't there any more, as its device is gone".to_owned()),
                Some(link) if !link.up && route.protocol() == BY_KERNEL => return Some(String::new()),
                Some(link) if !link.up => {
                    return Some(format!(
                        "isn't there any more, as {0} is down: ip link set dev {0} up, then restore again",
                        link.name
                    ));
                }
                Some(_) => {}
            }
        }
        if !self.is_ours_to_make(route) {
            let by = route_text::protocol_name(route.protocol());
            let told = route.protocol() == BY_KERNEL && self.before.is_some();
            return Some(if told {
                String::new()
            } else {
                format!("isn't there any more: whoever made it (proto {by}) must bring it back")
            });
        }
        let unreachable = hops.iter().find(|hop| !route.is_onlink() && !is_reachable(hop, wanted))?;
        let gateway = unreachable.gateway.map(|gateway| gateway.to_string()).unwrap_or_default();
        Some(format!(
            "isn't there any more, as its gateway {gateway} isn't reached directly: bring its address back, then restore again"
        ))
    }
}

/// Whether a gateway lies in a network that a device leads to directly.
fn is_reachable(hop: &NextHop, wanted: &BTreeSet<Route>) -> bool {
    let Some(gateway) = hop.gateway else { return true };
    if matches!(gateway, IpAddr::V6(address) if address.is_unicast_link_local()) {
        return true;
    }
    wanted.iter().any(|route| {
        let direct =
            route.hops().iter().any(|own| own.gateway.is_none() && (own.device == hop.device || hop.device == 0));
        direct && holds(route.destination(), gateway)
    })
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        for (network, bits, address, wanted) in [
            ("10.0.0.0", 24, "10.0.0.9", true),
            ("10.0.0.0", 24, "10.0.1.9", false),
            ("0.0.0.0", 0, "192.0.2.1", true),
            ("192.0.2.1", 32, "192.0.2.1", true),
            ("2001:db8::", 64, "2001:db8::1", true),
            ("2001:db8::", 64, "2001:db8:0:1::1", false),
            ("::", 0, "10.0.0.1", false),
        ] {
            assert_eq!(
                holds((network.parse().unwrap(), bits), address.parse().unwrap()),
                wanted,
                "{network}/{bits} {address}"
            );
        }
    }
}
