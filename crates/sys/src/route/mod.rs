use crate::netlink::Netlink;
use crate::rtattr::{RawMessage, attributes, invalid, push, text_of, u32_of};
use crate::{SysError, SysResult};
use netlink_packet_core::{NLA_F_NESTED, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod lifetime;
#[cfg(test)]
mod tests;
/// What of a route has words.
mod words;

use lifetime::Lifetime;

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;

const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_CACHEINFO: u16 = 12;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP: u16 = 22;
const RTA_EXPIRES: u16 = 23;
const RTA_UID: u16 = 25;
const RTA_NH_ID: u16 = 30;

const RTAX_LOCK: u16 = 1;
const RTAX_CC_ALGO: u16 = 16;

/// Length of `struct rtmsg`.
const HEAD: usize = 12;
/// Flags that describe a route rather than the state of its device: `RTNH_F_PERVASIVE`, `RTNH_F_ONLINK`.
const FLAGS: u32 = 0x2 | 0x4;

/// The main routing table.
pub const TABLE_MAIN: u32 = 254;
/// The table of the host's own addresses.
pub const TABLE_LOCAL: u32 = 255;
/// `RTPROT_KERNEL`: the kernel made the route, for an address.
pub const PROTO_KERNEL: u8 = 2;
/// A route that somebody set by hand, as ip-route(8) does unless it is told otherwise: `RTPROT_BOOT`.
pub const PROTO_BOOT: u8 = 3;
/// `RTPROT_RA`: the kernel made the route from a router advertisement.
pub const PROTO_RA: u8 = 9;
/// `RTN_UNICAST`.
pub const KIND_UNICAST: u8 = 1;

/// What the kernel takes a route of IPv6 to have that comes without a priority: `IP6_RT_PRIO_USER` of its ipv6_route.h.
pub const PRIORITY_V6: u32 = 1_024;

/// A metric of a route that is a number.
///
/// # Source
/// `RTAX_…` of linux/rtnetlink.h; units from ip-route(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Metric {
    /// Largest packet, bytes.
    Mtu = 2,
    /// Largest window to advertise, bytes.
    Window = 3,
    /// First guess of the RTT, eighths of a millisecond.
    Rtt = 4,
    /// First guess of its variation, quarters of a millisecond.
    RttVar = 5,
    /// Slow start threshold, segments.
    Ssthresh = 6,
    /// Largest congestion window, segments; only if locked.
    Cwnd = 7,
    /// MSS to advertise, bytes.
    Advmss = 8,
    /// Reordering, segments.
    Reordering = 9,
    /// Time to live.
    Hoplimit = 10,
    /// Initial congestion window, segments.
    Initcwnd = 11,
    /// Bits; 1 is ECN.
    Features = 12,
    /// Least retransmission timeout, milliseconds; only if locked.
    RtoMin = 13,
    /// Initial receive window, segments.
    Initrwnd = 14,
    /// 1: acknowledge at once.
    Quickack = 15,
    /// 1: Fast Open without cookies.
    FastopenNoCookie = 17,
}

impl Metric {
    /// All, in the kernel's order.
    pub const ALL: [Self; 15] = [
        Self::Mtu,
        Self::Window,
        Self::Rtt,
        Self::RttVar,
        Self::Ssthresh,
        Self::Cwnd,
        Self::Advmss,
        Self::Reordering,
        Self::Hoplimit,
        Self::Initcwnd,
        Self::Features,
        Self::RtoMin,
        Self::Initrwnd,
        Self::Quickack,
        Self::FastopenNoCookie,
    ];

    /// The word of ip-route(8).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::Window => "window",
            Self::Rtt => "rtt",
            Self::RttVar => "rttvar",
            Self::Ssthresh => "ssthresh",
            Self::Cwnd => "cwnd",
            Self::Advmss => "advmss",
            Self::Reordering => "reordering",
            Self::Hoplimit => "hoplimit",
            Self::Initcwnd => "initcwnd",
            Self::Features => "features",
            Self::RtoMin => "rto_min",
            Self::Initrwnd => "initrwnd",
            Self::Quickack => "quickack",
            Self::FastopenNoCookie => "fastopen_no_cookie",
        }
    }

    fn bit(self) -> u32 {
        1 << (self as u16)
    }
}

/// What a route lays down for the connections that use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metrics {
    /// The numbers.
    numbers: BTreeMap<Metric, u32>,
    /// Bit n: the metric with number n stays as it is whatever the kernel learns.
    lock: u32,
    /// Congestion control.
    congctl: Option<String>,
    /// Metrics of a kernel that is newer than this program.
    others: BTreeMap<u16, Vec<u8>>,
}

impl Metrics {
    fn parse(nest: &[u8]) -> Self {
        let mut metrics = Self::default();
        for (kind, value) in attributes(nest) {
            let known = Metric::ALL.into_iter().find(|metric| *metric as u16 == kind);
            match (kind, known, u32_of(value)) {
                (RTAX_LOCK, _, Some(bits)) => metrics.lock = bits,
                (RTAX_CC_ALGO, ..) => metrics.congctl = Some(text_of(value)),
                (_, Some(metric), Some(number)) => drop(metrics.numbers.insert(metric, number)),
                _ => drop(metrics.others.insert(kind, value.to_vec())),
            }
        }
        metrics
    }

    fn emit(&self) -> Vec<u8> {
        let mut all: BTreeMap<u16, Vec<u8>> = self.others.clone();
        all.extend(self.numbers.iter().map(|(metric, number)| (*metric as u16, number.to_ne_bytes().to_vec())));
        if self.lock != 0 {
            all.insert(RTAX_LOCK, self.lock.to_ne_bytes().to_vec());
        }
        if let Some(name) = &self.congctl {
            all.insert(RTAX_CC_ALGO, [name.as_bytes(), &[0]].concat());
        }
        let mut nest = Vec::new();
        for (kind, value) in all {
            push(&mut nest, kind, &value);
        }
        nest
    }

    /// A number; `None` is left to the system.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<u32> {
        self.numbers.get(&metric).copied()
    }

    /// Whether the kernel may not lower it by what it learns.
    #[must_use]
    pub fn is_locked(&self, metric: Metric) -> bool {
        self.lock & metric.bit() != 0
    }

    /// The congestion control.
    #[must_use]
    pub fn congctl(&self) -> Option<&str> {
        self.congctl.as_deref()
    }

    /// Sets a number, or leaves it to the system again.
    pub fn set(&mut self, metric: Metric, number: Option<u32>, locked: bool) {
        self.lock &= !metric.bit();
        if let Some(number) = number {
            self.numbers.insert(metric, number);
            self.lock |= if locked { metric.bit() } else { 0 };
        } else {
            self.numbers.remove(&metric);
        }
    }

    /// Sets the congestion control, or leaves it to the system again.
    pub fn set_congctl(&mut self, name: Option<String>) {
        self.congctl = name;
    }

    /// Whether nothing is laid down.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.congctl.is_none() && self.others.is_empty()
    }
}

/// One way on: of a route with several, or of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHop {
    /// The index of the device, 0 if none is named.
    pub device: u32,
    /// The next router, if it isn't on the link.
    pub gateway: Option<IpAddr>,
    /// Its share of the traffic, from 1.
    pub weight: u16,
}

/// A route as the kernel describes it, without what only says how it fares (use, age, state of the device).
///
/// Every attribute is kept, whether this program understands it or not, so that a route can be put back exactly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    head: [u8; HEAD],
    attributes: BTreeMap<u16, Vec<u8>>,
    lifetime: Lifetime,
}

impl Route {
    /// Reads the body of an `RTM_NEWROUTE` message; `None` if it is none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut head = *bytes.first_chunk::<HEAD>()?;
        let flags = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]) & FLAGS;
        head[8..].copy_from_slice(&flags.to_ne_bytes());
        if !matches!(i32::from(head[0]), libc::AF_INET | libc::AF_INET6) {
            return None;
        }
        let attributes = attributes(&bytes[HEAD..])
            .filter(|(kind, _)| !matches!(*kind, RTA_CACHEINFO | RTA_EXPIRES | RTA_UID))
            .map(|(kind, value)| (kind, if kind == RTA_MULTIPATH { without_state(value) } else { value.to_vec() }))
            .collect();
        Some(Self { head, attributes, lifetime: Lifetime::of(bytes) })
    }

    /// The body of a message that makes this route.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.emit(Some)
    }

    fn emit(&self, send_as: impl Fn(u16) -> Option<u16>) -> Vec<u8> {
        let mut bytes = self.head.to_vec();
        for (kind, value) in &self.attributes {
            if let Some(kind) = send_as(*kind) {
                push(&mut bytes, kind, value);
            }
        }
        bytes
    }

    /// A route that is this one but for its target: `prefix` bits of `target`, in the main table, made by an administrator.
    #[must_use]
    pub fn narrowed(&self, target: IpAddr, prefix: u8) -> Self {
        const RTPROT_STATIC: u8 = 4;
        let mut narrow = Self { lifetime: Lifetime::default(), ..self.clone() };
        narrow.head[1] = prefix;
        narrow.head[4] = u8::try_from(TABLE_MAIN).unwrap_or(u8::MAX);
        narrow.head[5] = RTPROT_STATIC;
        narrow.attributes.insert(RTA_TABLE, TABLE_MAIN.to_ne_bytes().to_vec());
        narrow.attributes.insert(RTA_DST, octets(target));
        if self.is_v6() {
            // Named, so that it has the key under which the kernel will list it.
            narrow.attributes.insert(RTA_PRIORITY, PRIORITY_V6.to_ne_bytes().to_vec());
        }
        narrow
    }

    /// The same route in another table.
    #[must_use]
    pub fn in_table(&self, table: u32) -> Self {
        let mut moved = self.clone();
        // A number that the head has no room for is in the attribute alone.
        moved.head[4] = u8::try_from(table).unwrap_or(0);
        moved.attributes.insert(RTA_TABLE, table.to_ne_bytes().to_vec());
        moved
    }

    /// What the kernel tells routes apart by: family, table, target, source, type of service, priority.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let mut key = vec![self.head[0], self.head[1], self.head[2], self.head[3]];
        key.extend(self.table().to_ne_bytes());
        key.extend(self.priority().to_ne_bytes());
        key.extend(self.attributes.get(&RTA_DST).into_iter().flatten());
        key.push(0xff);
        key.extend(self.attributes.get(&RTA_SRC).into_iter().flatten());
        key
    }

    /// Whether it is a route of IPv6.
    #[must_use]
    pub fn is_v6(&self) -> bool {
        i32::from(self.head[0]) == libc::AF_INET6
    }

    /// Where it leads: address and bits.
    #[must_use]
    pub fn destination(&self) -> (IpAddr, u8) {
        let any = if self.is_v6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        (self.attributes.get(&RTA_DST).and_then(|bytes| address(bytes)).unwrap_or(any), self.head[1])
    }

    /// The table that it is in.
    #[must_use]
    pub fn table(&self) -> u32 {
        self.number(RTA_TABLE).unwrap_or(u32::from(self.head[4]))
    }

    /// Its priority ("metric" in ip-route(8)): the lowest wins.
    #[must_use]
    pub fn priority(&self) -> u32 {
        self.number(RTA_PRIORITY).unwrap_or(0)
    }

    /// Type of service.
    #[must_use]
    pub fn tos(&self) -> u8 {
        self.head[3]
    }

    /// Who made it: `RTPROT_…`.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.head[5]
    }

    /// `RT_SCOPE_…`.
    #[must_use]
    pub fn scope(&self) -> u8 {
        self.head[6]
    }

    /// `RTN_…`: unicast, blackhole, …
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.head[7]
    }

    /// Whether it says that what it is for can't be reached: blackhole, unreachable, prohibit, throw.
    #[must_use]
    pub fn leads_nowhere(&self) -> bool {
        (6..=9).contains(&self.kind())
    }

    /// Whether the gateway is taken to be on the link whatever the addresses say.
    #[must_use]
    pub fn is_onlink(&self) -> bool {
        self.head[8..] == 0x4_u32.to_ne_bytes()
    }

    /// The address that packets are sent from.
    #[must_use]
    pub fn source(&self) -> Option<IpAddr> {
        self.attributes.get(&RTA_PREFSRC).and_then(|bytes| address(bytes))
    }

    /// The ways on: one, several, or none (a black hole).
    #[must_use]
    pub fn hops(&self) -> Vec<NextHop> {
        if let Some(list) = self.attributes.get(&RTA_MULTIPATH) {
            return multipath(list);
        }
        let gateway = hop_gateway(|kind| self.attributes.get(&kind).map(Vec::as_slice));
        let device = self.number(RTA_OIF).unwrap_or(0);
        if device == 0 && gateway.is_none() { Vec::new() } else { vec![NextHop { device, gateway, weight: 1 }] }
    }

    /// Whether it leads through the device.
    #[must_use]
    pub fn uses(&self, device: u32) -> bool {
        self.hops().iter().any(|hop| hop.device == device)
    }

    /// What it lays down.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.attributes.get(&RTA_METRICS).map_or_else(Metrics::default, |nest| Metrics::parse(nest))
    }

    /// The same route with other metrics.
    #[must_use]
    pub fn with_metrics(&self, metrics: &Metrics) -> Self {
        let mut changed = self.clone();
        if metrics.is_empty() {
            changed.attributes.remove(&RTA_METRICS);
        } else {
            changed.attributes.insert(RTA_METRICS, metrics.emit());
        }
        changed
    }

    fn number(&self, kind: u16) -> Option<u32> {
        self.attributes.get(&kind).and_then(|bytes| u32_of(bytes))
    }

    /// The message that changes it. What a dump repeats of a nexthop object can't be sent back, and some encapsulations
    /// want to be marked as nests, which dumps don't do.
    fn message(&self, kind: u16) -> RawMessage {
        let object = self.attributes.contains_key(&RTA_NH_ID);
        let send_as = |kind| match kind {
            RTA_OIF | RTA_GATEWAY | RTA_MULTIPATH | RTA_VIA if object => None,
            RTA_ENCAP => Some(RTA_ENCAP | NLA_F_NESTED),
            kind => Some(kind),
        };
        let mut body = self.emit(send_as);
        self.lifetime.push_to(kind, &mut body);
        // IPv4 takes a route over an object that comes without metrics for any that there is, whatever metrics that has.
        if object && kind == RTM_NEWROUTE && !self.attributes.contains_key(&RTA_METRICS) {
            let mut none = Vec::new();
            push(&mut none, Metric::Initcwnd as u16, &0_u32.to_ne_bytes());
            push(&mut body, RTA_METRICS, &none);
        }
        RawMessage { kind, body }
    }
}

impl Netlink {
    /// Every route of IPv4 and IPv6 but those to the host itself.
    ///
    /// # Errors
    /// [`SysError`]; `EAGAIN` when routes change all the time.
    pub fn routes(&mut self) -> SysResult<Vec<Route>> {
        let mut routes = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut body = vec![0; HEAD];
            body[0] = u8::try_from(family).unwrap_or(0);
            let answers = self.raw_dump(&RawMessage { kind: RTM_GETROUTE, body }, "list the routes")?;
            routes.extend(answers.iter().filter(|m| !is_cloned(&m.body)).filter_map(|m| Route::from_bytes(&m.body)));
        }
        routes.retain(|route| route.table() != TABLE_LOCAL);
        Ok(routes)
    }

    /// The entry of the routing tables that packets to the target follow.
    ///
    /// # Errors
    /// [`SysError`]; `ENETUNREACH` when there is none.
    pub fn route_to(&mut self, target: IpAddr) -> SysResult<Route> {
        /// `RTM_F_LOOKUP_TABLE`, `RTM_F_FIB_MATCH`.
        const WHOLE_ENTRY: u32 = 0x1000 | 0x2000;
        let doing = format!("find the route to {target}");
        let (family, bits) = if target.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
        let mut body = vec![u8::try_from(family).unwrap_or(0), bits, 0, 0, 0, 0, 0, 0];
        body.extend(WHOLE_ENTRY.to_ne_bytes());
        push(&mut body, RTA_DST, &octets(target));
        let answers = self.exchange(RawMessage { kind: RTM_GETROUTE, body }, 0, &doing)?;
        answers
            .iter()
            .find_map(|message| Route::from_bytes(&message.body))
            .ok_or_else(|| SysError { doing, source: std::io::Error::from_raw_os_error(libc::ENETUNREACH) })
    }

    /// Puts a route in the place of the one with the same [`key`](Route::key).
    ///
    /// # Errors
    /// [`SysError`]; `ENOENT` when there is none to replace, `EINVAL` for what the kernel doesn't take.
    pub fn replace_route(&mut self, route: &Route) -> SysResult<()> {
        self.raw_change(route.message(RTM_NEWROUTE), NLM_F_REPLACE, "change a route")
    }

    /// Adds a route.
    ///
    /// # Errors
    /// [`SysError`]; `EEXIST` when there is one with this key.
    pub fn add_route(&mut self, route: &Route) -> SysResult<()> {
        self.raw_change(route.message(RTM_NEWROUTE), NLM_F_CREATE | NLM_F_EXCL, "add a route")
    }

    /// Adds a route beside others with the same [`key`](Route::key), behind them.
    ///
    /// # Errors
    /// [`SysError`]; `EEXIST` when this very route is there.
    pub fn append_route(&mut self, route: &Route) -> SysResult<()> {
        self.raw_change(route.message(RTM_NEWROUTE), NLM_F_CREATE | NLM_F_APPEND, "add a route beside others")
    }

    /// Removes exactly this route.
    ///
    /// # Errors
    /// [`SysError`]; `ESRCH` when it isn't there.
    pub fn delete_route(&mut self, route: &Route) -> SysResult<()> {
        self.raw_change(route.message(RTM_DELROUTE), 0, "remove a route")
    }
}

/// Whether it is an entry of a cache rather than of a table.
fn is_cloned(body: &[u8]) -> bool {
    const RTM_F_CLONED: u32 = 0x200;
    body.get(8..HEAD).and_then(u32_of).is_some_and(|flags| flags & RTM_F_CLONED != 0)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into()),
        16 => bytes.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into()),
        _ => None,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The gateway of a hop; one of the other family stands behind two bytes that name the family.
fn hop_gateway<'a>(get: impl Fn(u16) -> Option<&'a [u8]>) -> Option<IpAddr> {
    get(RTA_GATEWAY).and_then(address).or_else(|| get(RTA_VIA).and_then(|via| via.get(2..)).and_then(address))
}

/// `struct rtnexthop` and its attributes, one after the other: length, flags, weight − 1, device.
fn hops_of(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk::<2>()?));
        let hop = rest.get(..length).filter(|hop| hop.len() >= 8)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(hop)
    })
}

fn multipath(list: &[u8]) -> Vec<NextHop> {
    let hop = |bytes: &[u8]| NextHop {
        device: bytes.get(4..8).and_then(u32_of).unwrap_or(0),
        gateway: hop_gateway(|wanted| {
            attributes(&bytes[8..]).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
        }),
        weight: u16::from(bytes[3]) + 1,
    };
    hops_of(list).map(hop).collect()
}

/// Hops without the flags that tell how their devices fare.
fn without_state(list: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(list.len());
    for hop in hops_of(list) {
        let at = clean.len();
        clean.extend(hop);
        clean[at + 2] &= u8::try_from(FLAGS).unwrap_or(0);
        clean.resize(clean.len().next_multiple_of(4), 0);
    }
    clean
}

impl std::str::FromStr for Route {
    type Err = SysError;
    /// Reads what [`Display`](std::fmt::Display) writes.
    fn from_str(text: &str) -> SysResult<Self> {
        let doing = "read a stored route";
        let digit = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        if !text.len().is_multiple_of(2) || !text.is_ascii() {
            return Err(invalid(doing));
        }
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digit).collect();
        bytes.and_then(|bytes| Self::from_bytes(&bytes)).ok_or_else(|| invalid(doing))
    }
}

impl std::fmt::Display for Route {
    /// The message in hexadecimal digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
