use super::Builder;
use super::sizes::too_small_for_ipv6;
use crate::change::Risk;
use crate::knob::{Knob, Value};
use crate::plan::{PlanError, masked};
use crate::route_text;
use crate::snapshot::{is_unicast, route_key};
use std::net::IpAddr;
use wt_sys::SysError;
use wt_sys::route::{PROTO_RA, Route, TABLE_MAIN};

impl Builder<'_> {
    /// On the route to one target, which is made if there is none for it alone.
    pub(super) fn on_target(
        &mut self,
        knob: &'static Knob,
        address: IpAddr,
        bits: Option<u8>,
        asked: &Value,
    ) -> Result<(), PlanError> {
        let host_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(host_bits);
        let wanted = (masked(address, bits), bits);
        let target = if bits == host_bits { address.to_string() } else { format!("{}/{bits}", wanted.0) };
        if let Some(instead) = too_small_for_ipv6(knob, address.is_ipv6(), asked) {
            return Err(PlanError::WrongPlace { key: knob.name, place: format!("a route to {target}"), instead });
        }
        self.check_table(knob, wanted, &target)?;
        let exact = self.plan.wanted.routes.iter().filter(|route| {
            route.destination() == wanted && route.table() == TABLE_MAIN && route.tos() == 0 && is_unicast(route)
        });
        let exact = exact.min_by_key(|route| route.priority());
        let why = format!("on the route to {target}: the narrowest place; other traffic isn't touched");
        if let Some(exact) = exact.cloned() {
            if exact.protocol() == PROTO_RA {
                return Err(PlanError::Irreversible {
                    what: format!("the route to {target}"),
                    why: "it comes from router advertisements, and the kernel rewrites it with each".to_owned(),
                });
            }
            return self.on_route(knob, &exact, &exact, asked, &why);
        }
        let covering = self.covering(address, bits, &target)?;
        if !is_unicast(&covering) || covering.hops().is_empty() {
            return Err(PlanError::WrongPlace {
                key: knob.name,
                place: format!("a route to {target}"),
                instead: "the address is this host's own, or nothing leads there".to_owned(),
            });
        }
        self.tell_narrower(knob, wanted);
        let narrow = covering.narrowed(wanted.0, bits);
        self.plan.scope.copied.insert(route_key(&narrow), route_key(&covering));
        self.on_route(knob, &covering, &narrow, asked, &why)
    }

    /// Refuses a target whose packets the rules send by another table: they would pass by a route of the main one.
    fn check_table(&mut self, knob: &'static Knob, wanted: (IpAddr, u8), target: &str) -> Result<(), PlanError> {
        // Where nothing leads, or a route for a part only, this says nothing of the whole.
        let Ok(followed) = self.system.route_to(wanted.0) else { return Ok(()) };
        let table = followed.table();
        if table == TABLE_MAIN || !is_unicast(&followed) || followed.destination().1 > wanted.1 {
            return Ok(());
        }
        let place = if knob.host.is_some() { "for the whole host (--to host), or " } else { "" };
        Err(PlanError::WrongPlace {
            key: knob.name,
            place: format!("a route to {target}"),
            instead: format!(
                "the rules of this host (ip rule) have packets to it follow \"{}\" of table {table}, and only routes of the main \
                 table are set; it can be set {place}by hand on that route (ip route change … table {table})",
                route_text::short(&followed, &self.names)
            ),
        })
    }

    /// The route by which all of a network is reached. The kernel is asked for one address of it, and may answer with a route that is
    /// for a part only: then it is the narrowest that holds for the whole.
    fn covering(&mut self, address: IpAddr, bits: u8, target: &str) -> Result<Route, PlanError> {
        let network = masked(address, bits);
        let no_route = |source| PlanError::NoRoute { target: target.to_owned(), source };
        let found = self.system.route_to(network).map_err(no_route)?;
        if found.destination().1 <= bits {
            return Ok(found);
        }
        let covers = |route: &&Route| {
            let (whole, most) = route.destination();
            let is_ordinary = is_unicast(route) && route.table() == TABLE_MAIN && route.tos() == 0;
            is_ordinary && route.is_v6() == network.is_ipv6() && most <= bits && masked(network, most) == whole
        };
        let all = self.survey.snapshot.routes.iter().filter(covers);
        let best = all.max_by_key(|route| (route.destination().1, std::cmp::Reverse(route.priority())));
        best.cloned().ok_or_else(|| {
            let nothing = "no route leads to all of it, only to parts: name one of those";
            no_route(SysError {
                doing: format!("look for a route to {target}"),
                source: std::io::Error::other(nothing),
            })
        })
    }

    /// Routes to parts of a network keep their own settings.
    fn tell_narrower(&mut self, knob: &Knob, (network, bits): (IpAddr, u8)) {
        let is_within = |route: &&Route| {
            let (part, longer) = route.destination();
            let is_ordinary = is_unicast(route) && route.table() == TABLE_MAIN;
            is_ordinary && route.is_v6() == network.is_ipv6() && longer > bits && masked(part, bits) == network
        };
        let within: Vec<String> = self
            .survey
            .snapshot
            .routes
            .iter()
            .filter(is_within)
            .map(|route| route_text::short(route, &self.names))
            .collect();
        if !within.is_empty() {
            let text = format!("narrower routes in {network}/{bits} don't get it: {}", within.join(", "));
            self.plan.risks.push(Risk { key: knob.name.to_owned(), text });
        }
    }
}
