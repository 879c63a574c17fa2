//! What `mtu`, `trace` and `path` share: targets, and running machines over sockets.

/// What comes back.
mod backwards;
/// Names of addresses.
pub(super) mod names;
/// Sockets.
mod wire;

use crate::edge::{Failure, Fault};
use backwards::Backwards;
use clap::{Args, ValueEnum};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;
use wire::{Connection, Echoed, Ends, Mark, Sent, Wire};
use wt_probe::codec::{TcpHeard, Token};
use wt_probe::{Answer, Kind, Machine, Pacer, Said, Search, SynOptions, Time};

/// What every probing command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProbeOptions {
    /// The version of IP [default: what the name resolves to first]
    #[arg(long, value_enum)]
    pub(crate) ip: Option<Ip>,
    /// Send as an ordinary user would: no raw sockets
    #[arg(long)]
    pub(crate) unprivileged: bool,
    /// Packets a second at most [default: 2000 for each host, 20000 for all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) pps: Option<u32>,
    /// Seed of everything random [default: from the clock]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Versions of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ip {
    /// IPv4
    #[value(name = "4", aliases = ["v4", "ipv4"])]
    V4,
    /// IPv6
    #[value(name = "6", aliases = ["v6", "ipv6"])]
    V6,
}

impl ProbeOptions {
    /// The seed that was given, or one from the clock.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(wt_sys::clock::monotonic_ns)
    }

    /// A generator for one machine.
    pub(crate) fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed());
        rng.set_stream(stream);
        rng
    }
}

/// Where to probe.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// As it was written.
    pub(crate) name: String,
    /// Its address.
    pub(crate) ip: IpAddr,
    /// The TCP port for handshakes.
    pub(crate) port: u16,
    /// The address of ours that packets to it bear.
    pub(crate) source: IpAddr,
    /// The MTU of the device through which they leave, bytes; at most 65535.
    pub(crate) mtu: u16,
    /// That device's name.
    pub(crate) device: String,
}

impl Target {
    /// Resolves `HOST` or `HOST:PORT`, and asks the kernel for the way there.
    ///
    /// # Errors
    /// A usage failure for what is no host, an environment failure where there is no way to it.
    pub(crate) fn find(text: &str, ip: Option<Ip>, default_port: u16) -> Result<Self, Failure> {
        let (host, port) = split_port(text, default_port)?;
        let found = (host.as_str(), port).to_socket_addrs().map_err(|error| unresolvable(&host, &error))?;
        let found: Vec<SocketAddr> = found.collect();
        let wanted = |address: &&SocketAddr| ip.is_none_or(|ip| address.is_ipv6() == (ip == Ip::V6));
        let address = found.iter().find(wanted).ok_or_else(|| {
            let other = if ip == Some(Ip::V6) { "4" } else { "6" };
            Failure::usage(format!("{host} has no address of that version of IP")).hint(format!("try --ip {other}"))
        })?;
        Self::on_the_way(text, *address)
    }

    /// The same for an address that is known.
    ///
    /// # Errors
    /// An environment failure where there is no way to it.
    pub(crate) fn of_address(name: &str, address: SocketAddr) -> Result<Self, Failure> {
        Self::on_the_way(name, address)
    }

    fn on_the_way(name: &str, address: SocketAddr) -> Result<Self, Failure> {
        let ip = address.ip();
        let no_way = |error: std::io::Error| {
            Failure::environment(format!("there is no way from this host to {ip}: {error}"))
                .hint(format!("ip route get {ip} shows what the kernel knows"))
        };
        let any: SocketAddr = if ip.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" }
            .parse()
            .map_err(|_| Failure::ours("the unspecified address doesn't parse"))?;
        let socket = std::net::UdpSocket::bind(any).map_err(no_way)?;
        socket.connect((ip, 33_434)).map_err(no_way)?;
        let source = socket.local_addr().map_err(no_way)?.ip();
        let (device, mtu) = device_to(ip).unwrap_or(("?".to_owned(), 1500));
        let least = if ip.is_ipv6() { 1280 } else { 68 };
        Ok(Self { name: name.to_owned(), ip, port: address.port(), source, mtu: mtu.max(least), device })
    }

    fn ends(&self) -> Ends {
        let headers = if self.ip.is_ipv6() { 60 } else { 40 };
        Ends { source: self.source, target: self.ip, port: self.port, mss: self.mtu.saturating_sub(headers).max(536) }
    }
}

/// So many hosts at once.
const MOST_HOSTS: usize = 10_000;

/// The hosts of a command line and those of a file, one a line, with comments after `#`.
///
/// # Errors
/// A usage failure when there are none or too many.
pub(crate) fn hosts(named: &[String], file: Option<&Path>) -> Result<Vec<String>, Failure> {
    let mut hosts = named.to_vec();
    if let Some(file) = file {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("can't read {}", file.display())).because(error.to_string()))?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        hosts.extend(lines.filter(|line| !line.is_empty()).map(str::to_owned));
    }
    match hosts.len() {
        0 => Err(Failure::usage("there is no host in the file")),
        n if n > MOST_HOSTS => Err(Failure::usage(format!("{n} hosts are too many: at most {MOST_HOSTS} at once"))),
        _ => Ok(hosts),
    }
}

/// `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare IPv6 address.
fn split_port(text: &str, default_port: u16) -> Result<(String, u16), Failure> {
    let usage = || Failure::usage(format!("\"{text}\" is no host")).hint("write HOST, HOST:PORT or [IPV6]:PORT");
    if text.parse::<IpAddr>().is_ok() {
        return Ok((text.to_owned(), default_port));
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or_else(usage)?)),
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(default_port), |port| port.parse().map_err(|_| usage()))?;
    if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) || port == 0 {
        return Err(usage());
    }
    Ok((host.to_owned(), port))
}

fn unresolvable(host: &str, error: &std::io::Error) -> Failure {
    let text = error.to_string();
    let fault = if text.contains("Temporary") { Fault::Environment } else { Fault::Usage };
    let cause = text.rsplit(": ").next().unwrap_or(&text).to_owned();
    Failure::new(fault, format!("can't find the address of {host}"))
        .because(cause)
        .hint("check the spelling and this machine's resolver, or give an address")
}

/// The device through which packets to an address leave, and its MTU.
fn device_to(ip: IpAddr) -> Option<(String, u16)> {
    let mut netlink = wt_sys::netlink::Netlink::open().ok()?;
    let device = netlink.route_to(ip).ok()?.hops().first()?.device;
    let link = netlink.links().ok()?.into_iter().find(|link| link.index == device)?;
    Some((link.name, u16::try_from(link.mtu).unwrap_or(u16::MAX)))
}

/// Packets a second for each host, if nothing else is said.
pub(crate) const DEFAULT_PPS: u32 = 2000;

/// A machine and its target.
pub(crate) struct Job<'a> {
    target: &'a Target,
    machine: &'a mut dyn Machine,
    connection: Connection,
    /// Which probe opened the connection.
    opener: Option<u32>,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Packets that left this host for the targets.
    pub(crate) packets: u32,
    /// How long it took.
    pub(crate) time: Duration,
}

impl Cost {
    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, time: self.time + other.time }
    }
}

/// Runs machines over this host's sockets, all targets of one version of IP.
pub(crate) struct Driver {
    wire: Wire,
    pacer: Pacer,
    seed: u64,
}

impl Driver {
    /// Opens the sockets that this user may have.
    ///
    /// # Errors
    /// An environment failure.
    pub(crate) fn open(v6: bool, hosts: usize, options: &ProbeOptions) -> Result<Self, Failure> {
        let seed = options.seed();
        let pps = options.pps.unwrap_or(DEFAULT_PPS * u32::try_from(hosts.clamp(1, 10)).unwrap_or(1));
        // A burst is as large as a first burst of ours; what follows keeps to the rate.
        Ok(Self { wire: Wire::open(v6, options.unprivileged, hosts, seed)?, pacer: Pacer::new(pps, 64), seed })
    }

    /// The same, for probes of which no more than `burst` leave at once.
    ///
    /// # Errors
    /// An environment failure.
    pub(crate) fn open_with_burst(v6: bool, options: &ProbeOptions, burst: u32) -> Result<Self, Failure> {
        let mut driver = Self::open(v6, 1, options)?;
        driver.pacer = Pacer::new(options.pps.unwrap_or(DEFAULT_PPS), burst);
        Ok(driver)
    }

    /// What can be sent, the best first.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.wire.kinds()
    }

    /// Runs a search until it is done or the time is up, and finds the largest packet that comes back, too; what the
    /// latter cost on top is told apart.
    ///
    /// # Errors
    /// A failure when this host can't send.
    pub(crate) fn search_both_ways(
        &mut self,
        target: &Target,
        search: &mut Search,
        limit: Duration,
    ) -> Result<(Cost, Option<u16>, Cost), Failure> {
        let ends = target.ends();
        let raw = self.kinds().contains(&Kind::OldSegment);
        let mut run = Run { backwards: Backwards::new(target, ends).filter(|_| raw), ..Run::default() };
        let begin = now();
        run.add(target, search, self.seed);
        let outcome = run.drive(&mut self.wire, &mut self.pacer, begin + limit);
        let Run { backwards, packets, jobs, .. } = run;
        let connections: Vec<Connection> = jobs.iter().map(|job| job.connection).collect();
        drop(jobs);
        let (forward, searched) = (search.report().pmtu, now());
        // Where somebody lowers the MSS, nothing longer ever comes.
        let unclamped = search.report().clamp.is_none();
        let mut backwards = backwards.filter(|_| outcome.is_ok() && unclamped);
        let reverse = backwards.as_mut().and_then(|backwards| backwards.finish(&self.wire, forward));
        connections.iter().for_each(|connection| self.wire.reset(&ends, connection));
        let time = |from: Time, to: Time| to.saturating_sub(from);
        let on_top = Cost { packets: backwards.map_or(0, |b| b.packets), time: time(searched, now()) };
        outcome.map(|()| (Cost { packets, time: time(begin, searched) }, reverse, on_top))
    }

    /// Runs the machines until all are done or the time is up.
    ///
    /// # Errors
    /// A failure when this host can't send.
    pub(crate) fn run(&mut self, pairs: Vec<(&Target, &mut dyn Machine)>, limit: Duration) -> Result<Cost, Failure> {
        let mut run = Run::default();
        for (target, machine) in pairs {
            run.add(target, machine, self.seed);
        }
        let begin = now();
        let outcome = run.drive(&mut self.wire, &mut self.pacer, begin + limit);
        for job in &run.jobs {
            self.wire.reset(&job.target.ends(), &job.connection);
        }
        outcome.map(|()| Cost { packets: run.packets, time: now().saturating_sub(begin) })
    }
}

/// How often connections of the kernel's are looked at.
const STREAM_STEP: Duration = Duration::from_millis(1);
/// The number of no probe.
const AMBIGUOUS: u32 = u32::MAX;

fn now() -> Time {
    Duration::from_nanos(wt_sys::clock::monotonic_ns())
}

#[derive(Default)]
struct Run<'a> {
    jobs: Vec<Job<'a>>,
    by_ip: HashMap<IpAddr, usize>,
    marks: HashMap<(IpAddr, Mark), u32>,
    packets: u32,
    /// What comes back is asked for, too; of a single target only.
    backwards: Option<Backwards>,
    /// When the single target's connection was asked for.
    opened: Time,
}

impl<'a> Run<'a> {
    fn add(&mut self, target: &'a Target, machine: &'a mut dyn Machine, seed: u64) {
        let number = self.jobs.len();
        self.by_ip.insert(target.ip, number);
        let isn = (seed >> 16) as u32 ^ (number as u32).wrapping_mul(0x9E37_79B9);
        self.jobs.push(Job { target, machine, connection: Connection::new(isn), opener: None });
    }

    fn drive(&mut self, wire: &mut Wire, pacer: &mut Pacer, end: Time) -> Result<(), Failure> {
        wt_sys::poll::sharpen_timers();
        loop {
            let blocked = self.send(wire, pacer)?;
            let at = now();
            let waiting = || self.jobs.iter().filter(|job| !job.machine.is_done());
            if at >= end || waiting().next().is_none() {
                return Ok(());
            }
            let next =
                if blocked { Some(pacer.next()) } else { waiting().filter_map(|job| job.machine.wakeup()).min() };
            // A machine that wants to be asked in the past has been asked: no spinning.
            let next = if wire.has_streams() { Some(at + STREAM_STEP).into_iter().chain(next).min() } else { next };
            let next = self.backwards.as_ref().and_then(Backwards::wakeup).into_iter().chain(next).min();
            let wait = next.unwrap_or(end).min(end).saturating_sub(at).max(Duration::from_micros(20));
            let mut descriptors = wire.descriptors();
            descriptors.extend(self.backwards.as_ref().map(Backwards::descriptor));
            wt_sys::poll::wait_readable(&descriptors, Some(wait)).map_err(|error| Failure::ours(error.to_string()))?;
            self.hear_streams(wire);
            self.hear(wire);
            if let Some(backwards) = &mut self.backwards {
                backwards.tick(wire);
            }
        }
    }

    /// Sends what may leave now; tells whether the rate holds more back.
    fn send(&mut self, wire: &mut Wire, pacer: &mut Pacer) -> Result<bool, Failure> {
        loop {
            let mut any = false;
            for number in 0..self.jobs.len() {
                let at = now();
                if pacer.next() > at {
                    return Ok(true);
                }
                let job = &mut self.jobs[number];
                let Some(probe) = job.machine.poll_probe(at) else { continue };
                any = true;
                pacer.take(at);
                match wire.send(&job.target.ends(), &probe, &mut job.connection)? {
                    Sent::Gone(mark) => {
                        self.packets += 1;
                        if let Mark::Handshake(_) = mark {
                            job.opener = Some(probe.id);
                            self.opened = at;
                        }
                        if let Mark::Token(Token::Number(_)) = mark {
                            let token =
                                Token::Udp { port: wire.udp_port(), len: udp_payload(&job.target.ip, probe.ip_len) };
                            // Where routers quote no payload, the length must tell; several of one length it can't.
                            let same = self.marks.entry((job.target.ip, Mark::Token(token)));
                            same.and_modify(|id| *id = AMBIGUOUS).or_insert(probe.id);
                        }
                        self.marks.insert((job.target.ip, mark), probe.id);
                    }
                    Sent::TooBig => {
                        job.machine.handle(&Answer { id: probe.id, at, from: None, said: Said::LocalTooBig });
                    }
                    Sent::Never => {}
                }
            }
            if !any {
                return Ok(false);
            }
        }
    }

    fn hear_streams(&mut self, wire: &mut Wire) {
        let Self { jobs, by_ip, marks, .. } = self;
        wire.advance_streams(|heard| {
            let (number, id) = (by_ip.get(&heard.target), marks.get(&(heard.target, heard.mark)));
            if let (Some(number), Some(id)) = (number, id) {
                let answer = Answer { id: *id, at: heard.at, from: heard.from, said: heard.said };
                jobs[*number].machine.handle(&answer);
            }
        });
    }

    fn hear(&mut self, wire: &Wire) {
        let Self { jobs, by_ip, marks, packets, backwards, opened } = self;
        let jobs = std::cell::RefCell::new(jobs);
        let each = |heard: Echoed| {
            let Some(number) = by_ip.get(&heard.target) else { return };
            let Some(id) = marks.get(&(heard.target, heard.mark)) else { return };
            let answer = Answer { id: *id, at: heard.at, from: heard.from, said: heard.said };
            jobs.borrow_mut()[*number].machine.handle(&answer);
        };
        let handshake = |from: IpAddr, port: u16, heard: TcpHeard, at: Time| {
            let Some(number) = by_ip.get(&from) else { return };
            let job = &mut jobs.borrow_mut()[*number];
            if let (TcpHeard::SynAck { ack, .. } | TcpHeard::Reset { ack }, Some(id)) =
                (heard, side(marks, from, port, heard))
            {
                if let TcpHeard::SynAck { .. } = heard {
                    wire.refuse(&job.target.ends(), port, ack);
                }
                return job.machine.handle(&Answer { id, at, from: Some(from), said: Said::Refused });
            }
            let Some(id) = job.opener.filter(|_| marks.contains_key(&(from, Mark::Handshake(port)))) else { return };
            let expected = job.connection.isn.wrapping_add(1);
            let said = match heard {
                TcpHeard::SynAck { isn, ack, options } if ack == expected => {
                    job.connection.ack = Some(isn.wrapping_add(1));
                    if let Some(backwards) = backwards.as_mut().filter(|_| job.connection.sent == 0) {
                        job.connection.sent = backwards.ask_first(wire, &job.connection, port, (*opened, at));
                    } else {
                        wire.complete(&job.target.ends(), &job.connection);
                        *packets += 1;
                    }
                    Said::Open { mss: options.mss, sack: options.sack }
                }
                TcpHeard::Reset { ack } if ack == expected => Said::Refused,
                _ => return,
            };
            job.machine.handle(&Answer { id, at, from: Some(from), said });
        };
        wire.hear(each, handshake);
    }
}

/// Which SYN that shouldn't have arrived this answers.
fn side(marks: &HashMap<(IpAddr, Mark), u32>, from: IpAddr, port: u16, heard: TcpHeard) -> Option<u32> {
    let (TcpHeard::SynAck { ack, .. } | TcpHeard::Reset { ack }) = heard else { return None };
    marks.get(&(from, Mark::Token(Token::Tcp { port, seq: ack.wrapping_sub(1) }))).copied()
}

/// What SYNs that shall not arrive offer, and their type of service.
pub(crate) fn offered(target: &Target) -> (SynOptions, u8) {
    let mss = Some(target.ends().mss);
    let options = SynOptions { mss, window_scale: Some(7), sack: true, timestamps: true, fast_open: true, ecn: true };
    (options, wire::SIDE_TOS)
}

fn udp_payload(ip: &IpAddr, ip_len: u16) -> u16 {
    ip_len.saturating_sub(if ip.is_ipv6() { 48 } else { 28 }).max(2)
}

#[cfg(test)]
mod tests {
    use super::split_port;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (text, host, port) in [
            ("server", "server", 80),
            ("server:443", "server", 443),
            ("10.0.0.1:8080", "10.0.0.1", 8080),
            ("fd00::1", "fd00::1", 80),
            ("[fd00::1]", "fd00::1", 80),
            ("[fd00::1]:443", "fd00::1", 443),
        ] {
            assert_eq!(split_port(text, 80).unwrap(), (host.to_owned(), port), "{text}");
        }
        for text in ["", ":80", "server:http", "server:0", "server:70000", "[fd00::1]80", "a b"] {
            assert_eq!(split_port(text, 80).unwrap_err().code(), 2, "{text}");
        }
    }
}
