use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use wt_sys::link::Link;
use wt_sys::route::{KIND_UNICAST, Metric, Metrics, NextHop, Route, TABLE_MAIN};
use wt_units::shell_word;

/// Names of devices by their indices.
#[derive(Debug, Clone, Default)]
pub struct Names(BTreeMap<u32, String>);

impl Names {
    /// The names of these devices.
    #[must_use]
    pub fn of(links: &[Link]) -> Self {
        Self(links.iter().map(|link| (link.index, link.name.clone())).collect())
    }

    /// A device's name, or `if7` for one that is gone.
    #[must_use]
    pub fn get(&self, index: u32) -> String {
        self.0.get(&index).cloned().unwrap_or_else(|| format!("if{index}"))
    }
}

impl FromIterator<(u32, String)> for Names {
    fn from_iter<I: IntoIterator<Item = (u32, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Where a route leads: `default`, `192.0.2.0/24`, `2001:db8::1`.
#[must_use]
pub(crate) fn destination(route: &Route) -> String {
    match route.destination() {
        (_, 0) => "default".to_owned(),
        (address, bits) => network(address, bits),
    }
}

/// A network, or an address: `192.0.2.0/24`, `2001:db8::1`.
#[must_use]
pub(crate) fn network(address: IpAddr, bits: u8) -> String {
    if bits == if address.is_ipv4() { 32 } else { 128 } { address.to_string() } else { format!("{address}/{bits}") }
}

/// Whether a network holds an address.
pub(crate) fn holds((network, bits): (IpAddr, u8), address: IpAddr) -> bool {
    let bits = u32::from(bits);
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            (network.to_bits() ^ address.to_bits()) & mask == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            (network.to_bits() ^ address.to_bits()) & mask == 0
        }
        _ => false,
    }
}

/// Why there is no command.
pub(crate) const NOT_PLAIN: &str = "it has an encapsulation, or something else for which there are no words here";

/// A route in short: `default via 192.0.2.1 dev eth0`. One of IPv6 says so where no address tells it, since there is one of IPv4, too:
/// `default (IPv6) dev eth0`.
#[must_use]
pub(crate) fn short(route: &Route, names: &Names) -> String {
    let hops = route.hops();
    let hop = match &hops[..] {
        [] => String::new(),
        [hop] => way(hop, route, &names.get(hop.device)),
        several => format!(" over {} hops", several.len()),
    };
    let kind = if route.kind() == KIND_UNICAST { String::new() } else { format!("{} ", kind_name(route.kind())) };
    let is_told = route.destination().1 > 0 || hops.len() == 1 && hops[0].gateway.is_some();
    let family = if route.is_v6() && !is_told { " (IPv6)" } else { "" };
    format!("{kind}{}{family}{hop}", destination(route))
}

/// A route with all that tells it from others: `192.0.2.0/24 via 10.9.0.2 dev eth0 table 7 proto static mtu 1300`.
#[must_use]
pub(crate) fn long(route: &Route, names: &Names) -> String {
    let table = if route.table() == TABLE_MAIN { String::new() } else { format!(" table {}", route.table()) };
    format!("{}{table}{}{}", short(route, names), attributes(route), metrics(&route.metrics()))
}

/// The command of ip-route(8) that does something with a route; of one that would lose what has no words here, a comment.
///
/// # Source
/// ip-route(8).
#[must_use]
pub(crate) fn command(verb: &str, route: &Route, names: &Names) -> String {
    if !route.is_plain() {
        return format!("# {verb} the route {}{}: {NOT_PLAIN}", short(route, names), metrics(&route.metrics()));
    }
    let mut text = format!("ip {}route {verb} ", if route.is_v6() { "-6 " } else { "" });
    if route.kind() != KIND_UNICAST {
        let _ = write!(text, "{} ", kind_name(route.kind()));
    }
    text.push_str(&destination(route));
    let word = |hop: &NextHop| shell_word(&names.get(hop.device)).into_owned();
    // What an object says can't be said again.
    let hops = if route.nexthop_object().is_some() { Vec::new() } else { route.hops() };
    if let Some(object) = route.nexthop_object() {
        let _ = write!(text, " nhid {object}");
    }
    if let [hop] = &hops[..] {
        text.push_str(&way(hop, route, &word(hop)));
    }
    if route.tos() != 0 {
        let _ = write!(text, " tos {:#04x}", route.tos());
    }
    if route.table() != TABLE_MAIN {
        let _ = write!(text, " table {}", route.table());
    }
    text.push_str(&attributes(route));
    text.push_str(&metrics(&route.metrics()));
    // IPv4 takes a route over an object that comes without metrics for any that there is, whatever metrics that has.
    if verb == "change" && route.nexthop_object().is_some() && route.metrics().is_empty() {
        text.push_str(" initcwnd 0");
    }
    if hops.len() > 1 {
        for hop in &hops {
            let _ = write!(text, " nexthop{} weight {}", way(hop, route, &word(hop)), hop.weight);
        }
    }
    text
}

fn way(hop: &NextHop, route: &Route, device: &str) -> String {
    let mut text = String::new();
    if let Some(gateway) = hop.gateway {
        let family = if gateway.is_ipv6() && !route.is_v6() { "inet6 " } else { "" };
        let _ = write!(text, " via {family}{gateway}");
    }
    if hop.device != 0 {
        let _ = write!(text, " dev {device}");
    }
    text
}

fn attributes(route: &Route) -> String {
    /// `RTPROT_BOOT`: what `ip route` itself writes.
    const BOOT: u8 = 3;
    const UNIVERSE: u8 = 0;
    let mut text = String::new();
    if route.protocol() != BOOT {
        let _ = write!(text, " proto {}", protocol_name(route.protocol()));
    }
    if !route.is_v6() && route.scope() != UNIVERSE {
        let _ = write!(text, " scope {}", scope_name(route.scope()));
    }
    if let Some(source) = route.source() {
        let _ = write!(text, " src {source}");
    }
    if route.priority() != 0 {
        let _ = write!(text, " metric {}", route.priority());
    }
    if route.is_onlink() {
        text.push_str(" onlink");
    }
    text
}

/// Metrics in the words of ip-route(8), each with a space before it.
#[must_use]
pub(crate) fn metrics(metrics: &Metrics) -> String {
    let mut text = String::new();
    for metric in Metric::ALL {
        let Some(number) = metrics.get(metric) else { continue };
        // ip-route(8) locks rto_min whether one asks for it or not.
        let lock = if metrics.is_locked(metric) && metric != Metric::RtoMin { "lock " } else { "" };
        let _ = match metric {
            Metric::Features => write!(text, " features {lock}{}", features(number)),
            Metric::RtoMin => write!(text, " rto_min {number}ms"),
            Metric::Rtt => write!(text, " rtt {lock}{}ms", number / 8),
            Metric::RttVar => write!(text, " rttvar {lock}{}ms", number / 4),
            _ => write!(text, " {} {lock}{number}", metric.name()),
        };
    }
    if let Some(name) = metrics.congctl() {
        let _ = write!(text, " congctl {}", shell_word(name));
    }
    text
}

/// The bit of [`Metric::Features`] for ECN.
pub(crate) const FEATURE_ECN: u32 = 1;

fn features(bits: u32) -> String {
    if bits == FEATURE_ECN { "ecn".to_owned() } else { format!("{bits:#x}") }
}

fn kind_name(kind: u8) -> String {
    const NAMES: [&str; 12] = [
        "unspec",
        "unicast",
        "local",
        "broadcast",
        "anycast",
        "multicast",
        "blackhole",
        "unreachable",
        "prohibit",
        "throw",
        "nat",
        "xresolve",
    ];
    NAMES.get(usize::from(kind)).map_or_else(|| kind.to_string(), |name| (*name).to_owned())
}

/// Who made a route.
#[must_use]
pub(crate) fn protocol_name(protocol: u8) -> String {
    match protocol {
        1 => "redirect".to_owned(),
        2 => "kernel".to_owned(),
        3 => "boot".to_owned(),
        4 => "static".to_owned(),
        9 => "ra".to_owned(),
        16 => "dhcp".to_owned(),
        other => other.to_string(),
    }
}

fn scope_name(scope: u8) -> String {
    match scope {
        200 => "site".to_owned(),
        253 => "link".to_owned(),
        254 => "host".to_owned(),
        255 => "nowhere".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, command, short};
    use crate::system::{Action, Device};
    use wt_sys::route::Route;

    #[test]
    fn a_nexthop_object_is_named_and_what_has_no_words_is_no_command() {
        let names: Names = [(3, "v0".to_owned())].into_iter().collect();
        let head = "02000000fe030001000000000800040003000000080005000a000002";
        let [object, encapsulated]: [Route; 2] =
            ["08001e0007000000", "0600150001000000"].map(|more| format!("{head}{more}").parse().unwrap());
        assert_eq!(command("del", &object, &names), "ip route del default nhid 7");
        assert_eq!(command("change", &object, &names), "ip route change default nhid 7 initcwnd 0");
        let comment = command("change", &encapsulated, &names);
        assert!(
            comment.starts_with("# change the route default via 10.0.0.2 dev v0: it has an encapsulation"),
            "{comment}"
        );
    }

    #[test]
    fn a_default_route_of_ipv6_says_so_where_no_address_tells_it() {
        let names: Names = [(3, "v0".to_owned())].into_iter().collect();
        let of = |family: &str, more: &str| {
            let text = format!("{family}000000fe03000100000000080004000300000008000f00fe000000{more}");
            short(&text.parse().unwrap(), &names)
        };
        assert_eq!(of("02", ""), "default dev v0");
        assert_eq!(of("0a", ""), "default (IPv6) dev v0");
        assert_eq!(of("02", "080005000a000002"), "default via 10.0.0.2 dev v0");
        let gateway = "1400050020010db8000000000000000000000002";
        assert_eq!(of("0a", gateway), "default via 2001:db8::2 dev v0");
    }

    #[test]
    fn no_name_of_a_device_becomes_a_command() {
        let evil = "$(id>pwn)";
        let device = Device { name: evil.to_owned(), index: 3 };
        let names: Names = [(3, evil.to_owned())].into_iter().collect();
        // default dev 3 of IPv4: head, table, output device.
        let route: Route = "02000000fe03000100000000080004000300000008000f00fe000000".parse().unwrap();
        let commands = [
            command("change", &route, &names),
            Action::Mtu { device: device.clone(), mtu: 1_300 }.command(&names),
            Action::Qdisc { device: device.clone(), kind: ";x".to_owned(), handle: 0, options: String::new() }
                .command(&names),
            Action::Feature { device, feature: "rx-gro".to_owned(), on: true }.command(&names),
        ];
        for text in &commands {
            assert!(text.contains("'$(id>pwn)'"), "{text}");
        }
        assert!(
            commands[1].ends_with("dev '$(id>pwn)' mtu 1300") && commands[2].ends_with("root ';x'"),
            "{commands:?}"
        );
        let sysctl = |value: &str| Action::Sysctl { name: "a.b".to_owned(), value: value.to_owned() }.command(&names);
        assert_eq!(sysctl("1\t2"), "sysctl -w a.b=\"1 2\"");
        assert_eq!(
            (sysctl("cubic"), sysctl("$(id)")),
            ("sysctl -w a.b=cubic".to_owned(), "sysctl -w 'a.b=$(id)'".to_owned())
        );
    }
}
