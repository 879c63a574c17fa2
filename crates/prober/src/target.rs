use crate::IpVersion;
use crate::hosts::{check_count, split_port};
use crate::wire::{Endpoints, SIDE_TOS};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use wt_probe::SynOptions;
use wt_problem::{Fault, Problem};
use wt_sys::resolve::{ResolveError, resolve_unless};
use wt_trial::Cancel;

/// Where TCP probes go if nothing else is said.
const USUAL_PORT: u16 = 80;

/// Where to probe.
#[derive(Debug, Clone)]
pub struct Target {
    /// As it was written.
    pub name: String,
    /// Its address.
    pub ip: IpAddr,
    /// The TCP port for handshakes.
    pub port: u16,
    /// The address of ours that packets to it bear.
    pub source: IpAddr,
    /// The MTU of the device through which they leave, bytes; at most 65535.
    pub mtu: u16,
    /// That device's name.
    pub device: String,
}

impl Target {
    /// Resolves `HOST` or `HOST:PORT`, and asks the kernel for the way there.
    ///
    /// # Errors
    /// A usage failure for what is no host, an environment failure where there is no way to it.
    pub fn find(text: &str, ip: Option<IpVersion>, default_port: u16) -> Result<Self, Problem> {
        Self::on_the_way(text, address_of(text, ip, default_port, &Cancel::new())?)
    }

    /// The same for an address that is known.
    ///
    /// # Errors
    /// An environment failure where there is no way to it.
    pub fn of_address(name: &str, address: SocketAddr) -> Result<Self, Problem> {
        Self::on_the_way(name, address)
    }

    fn on_the_way(name: &str, address: SocketAddr) -> Result<Self, Problem> {
        let ip = address.ip();
        let source = source_to(ip)?;
        let (device, mtu) = device_to(ip).unwrap_or(("?".to_owned(), 1500));
        let least = if ip.is_ipv6() { 1280 } else { 68 };
        Ok(Self { name: name.to_owned(), ip, port: address.port(), source, mtu: mtu.max(least), device })
    }

    pub(crate) fn endpoints(&self) -> Endpoints {
        let headers = if self.ip.is_ipv6() { 60 } else { 40 };
        Endpoints {
            source: self.source,
            target: self.ip,
            port: self.port,
            mss: self.mtu.saturating_sub(headers).max(536),
        }
    }
}

/// The address of `HOST` or `HOST:PORT`.
fn address_of(text: &str, ip: Option<IpVersion>, default_port: u16, cancel: &Cancel) -> Result<SocketAddr, Problem> {
    let (host, port) = split_port(text, default_port)?;
    resolved(&host, port, ip, cancel)
}

/// The address of a name, of this version of IP; blocks as long as the resolver takes, unless it is cancelled.
pub(crate) fn resolved(host: &str, port: u16, ip: Option<IpVersion>, cancel: &Cancel) -> Result<SocketAddr, Problem> {
    let found = resolve_unless(host, port, || cancel.is_cancelled()).map_err(|error| unresolvable(host, &error))?;
    let wanted = |address: &SocketAddr| ip.is_none_or(|ip| ip.has(address.ip()));
    let first = found.iter().map(|address| SocketAddr::new(address.ip(), address.port())).find(wanted);
    first.ok_or_else(|| {
        let other = if ip == Some(IpVersion::V6) { "4" } else { "6" };
        Problem::usage(format!("{host} has no address of that version of IP")).hint(format!("try --ip {other}"))
    })
}

/// The address of ours that packets to an address bear; nothing is sent.
pub(crate) fn source_to(ip: IpAddr) -> Result<IpAddr, Problem> {
    if matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
        // Which link it is on would have to go along with every packet.
        return Err(Problem::usage(format!("{ip} is an address of one link alone, and those can't be probed"))
            .hint("name another address of that host: its IPv4 address, or one that begins with fd or 2"));
    }
    let no_way = |error: std::io::Error| {
        Problem::environment(format!("there is no way from this host to {ip}: {error}"))
            .hint(format!("ip route get {ip} shows what the kernel knows"))
    };
    let any: IpAddr = if ip.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).map_err(no_way)?;
    socket.connect((ip, 33_434)).map_err(no_way)?;
    Ok(socket.local_addr().map_err(no_way)?.ip())
}

/// A host of a request with what became of it so far: how to probe it, and then what was found.
#[derive(Debug, Clone)]
pub(crate) struct HostOutcome<T> {
    /// As it was written.
    pub(crate) name: String,
    /// Its address; `None` of a name that has none.
    pub(crate) address: Option<IpAddr>,
    /// What there is, or why this host can't reach it.
    pub(crate) outcome: Result<T, Problem>,
}

impl<T> HostOutcome<T> {
    /// What is wrong with the only host is wrong with the whole request.
    fn of_so_many(self, hosts: usize) -> Result<Self, Problem> {
        match self.outcome {
            Err(problem) if hosts == 1 => Err(problem),
            _ => Ok(self),
        }
    }
}

/// What it means that a name has no address: the name is wrong, unless the resolver is at fault.
///
/// Every operation that takes hosts says it in these words.
#[must_use]
pub fn unresolvable(host: &str, error: &ResolveError) -> Problem {
    let fault = if error.is_temporary() { Fault::Environment } else { Fault::Usage };
    Problem::new(fault, format!("can't find the address of {host}"))
        .because(error.to_string())
        .hint("check the spelling and this machine's resolver, or give an address")
}

/// What it means that the time was up before a target was probed: it says nothing of the target.
pub(crate) fn no_time(target: &Target) -> Problem {
    Problem::environment(format!("there was no time to probe {} ({}) to the end", target.name, target.ip))
        .because("probes to all hosts of a request share its rate and its time")
        .hint("raise --pps, or name fewer hosts at once")
}

/// The targets of a request, TCP at port 80 if nothing else is said. One of several that there is no way to doesn't keep the
/// others from being probed.
///
/// # Errors
/// A usage problem for an invalid host or list, and what is wrong with the only host.
pub(crate) fn find_all(
    hosts: &[String],
    ip: Option<IpVersion>,
    cancel: &Cancel,
) -> Result<Vec<HostOutcome<Target>>, Problem> {
    find_each(hosts, cancel, |name| address_of(name, ip, USUAL_PORT, cancel))
}

/// The same with this look-up.
fn find_each(
    hosts: &[String],
    cancel: &Cancel,
    look_up: impl Fn(&str) -> Result<SocketAddr, Problem>,
) -> Result<Vec<HostOutcome<Target>>, Problem> {
    check_count(hosts.len())?;
    // What is no host is wrong with the request, and said before anybody is asked for an address.
    hosts.iter().try_for_each(|host| split_port(host, USUAL_PORT).map(drop))?;
    let find = |name: &String| {
        let stopped = || cancel.is_cancelled().then(|| Problem::stopped("stopped before anything was probed"));
        stopped().map_or(Ok(()), Err)?;
        let address = look_up(name);
        // The resolver may have taken long.
        stopped().map_or(Ok(()), Err)?;
        let found = HostOutcome {
            name: name.clone(),
            address: address.as_ref().ok().map(SocketAddr::ip),
            outcome: address.and_then(|address| Target::on_the_way(name, address)),
        };
        found.of_so_many(hosts.len())
    };
    hosts.iter().map(find).collect()
}

/// Those of the hosts that there is a way to.
pub(crate) fn reachable(found: &[HostOutcome<Target>]) -> Vec<Target> {
    found.iter().filter_map(|host| host.outcome.as_ref().ok()).cloned().collect()
}

/// What was found of each host in its place, from the outcomes of those that were probed.
///
/// # Errors
/// What is wrong with the only host.
pub(crate) fn each_outcome<T>(
    found: Vec<HostOutcome<Target>>,
    outcomes: Vec<Result<T, Problem>>,
) -> Result<Vec<HostOutcome<(Target, T)>>, Problem> {
    let (hosts, mut outcomes) = (found.len(), outcomes.into_iter());
    let mut of_host = |HostOutcome { name, address, outcome }: HostOutcome<Target>| {
        let outcome = outcome.and_then(|target| match outcomes.next() {
            Some(outcome) => outcome.map(|found| (target, found)),
            None => Err(Problem::internal(format!("the probes of {name} have no outcome"))),
        });
        HostOutcome { name, address, outcome }.of_so_many(hosts)
    };
    found.into_iter().map(&mut of_host).collect()
}

/// The device through which packets to an address leave, and its MTU.
fn device_to(ip: IpAddr) -> Option<(String, u16)> {
    let mut netlink = wt_sys::netlink::Netlink::open().ok()?;
    let device = netlink.route_to(ip).ok()?.hops().first()?.device;
    let link = netlink.links().ok()?.into_iter().find(|link| link.index == device)?;
    Some((link.name, u16::try_from(link.mtu).unwrap_or(u16::MAX)))
}

/// What SYNs that shall not arrive offer, and their type of service.
pub(crate) fn offered(target: &Target) -> (SynOptions, u8) {
    let mss = Some(target.endpoints().mss);
    let options = SynOptions { mss, window_scale: Some(7), sack: true, timestamps: true, fast_open: true, ecn: true };
    (options, SIDE_TOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_one_link_alone_is_wrong_in_the_request_and_not_without_a_way() {
        for text in ["fe80::1", "fe80::1%lo", "[fe80::1%lo]:443"] {
            let problem = Target::find(text, None, 80).unwrap_err();
            assert_eq!(problem.fault, Fault::Usage, "{text}: {problem}");
            assert!(problem.what.contains("one link alone") && problem.hint.is_some(), "{text}: {problem}");
        }
    }

    #[test]
    fn an_ipv4_address_written_as_one_of_ipv6_is_probed_by_ipv4() {
        let address = |text, ip| resolved(text, 80, ip, &Cancel::new()).map(|address| address.ip().to_string());
        assert_eq!(address("::ffff:192.0.2.1", None), Ok("192.0.2.1".to_owned()));
        assert_eq!(address("::ffff:192.0.2.1", Some(IpVersion::V4)), Ok("192.0.2.1".to_owned()));
        assert_eq!(address("2001:db8::1", None), Ok("2001:db8::1".to_owned()));
        let problem = address("::ffff:192.0.2.1", Some(IpVersion::V6)).unwrap_err();
        assert_eq!(problem.hint.as_deref(), Some("try --ip 4"), "{problem}");
    }

    #[test]
    fn who_stops_while_a_name_is_looked_up_is_told_that_it_was_stopped() {
        let cancel = Cancel::new();
        let look_up = |_: &str| {
            cancel.cancel();
            Err(Problem::environment("the resolver keeps silent"))
        };
        let found = find_each(&["example.org".to_owned()], &cancel, look_up);
        assert_eq!(found.unwrap_err().fault, Fault::Stopped);
    }
}
