//! smoltcp behind an adapter: one thread, one loop, as its documentation shows it.

use super::fault::{Faults, LateAcks, Spoiler};
use super::local::{self, AT_ONCE};
use crate::protocol::{AdapterDone, Arguments, Ready};
use serde_json::json;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::BTreeMap;
use std::io::{IoSlice, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_sys::tun::Tun;
use wt_units::parse_duration;

/// The version that is built in.
pub(super) const VERSION: &str = "0.12.0";
/// Of a socket whose window nobody fixes, bytes: what its own examples take.
const USUAL_WINDOW: usize = 65_535;
/// Of every socket, bytes.
const SEND_BUFFER: usize = 65_535;
/// Where local ports begin (RFC 6335 section 6).
const FIRST_PORT: u16 = 49_152;
/// IPv4 and TCP without options.
const HEADERS: u32 = 40;
/// Connections at once, so that all fit into one wait.
const MOST: usize = 60;

/// What is set on each socket.
struct Options {
    window: usize,
    cc: CongestionControl,
    cc_name: &'static str,
    ack_delay: Option<Duration>,
    nagle: bool,
}

impl Options {
    fn of(options: &BTreeMap<String, String>, window: Option<u32>) -> Result<Self, String> {
        let (cc, cc_name) = match options.get("cc").map_or("none", String::as_str) {
            "none" => (CongestionControl::None, "none"),
            "reno" => (CongestionControl::Reno, "reno"),
            "cubic" => (CongestionControl::Cubic, "cubic"),
            other => return Err(format!("smoltcp has no congestion control {other}; it has none, reno and cubic")),
        };
        let ack_delay = match options.get("ack-delay").map_or("10ms", String::as_str) {
            "none" => None,
            text => Some(parse_duration(text).map_err(|error| format!("ack-delay: {error}"))?),
        };
        let nagle = match options.get("nagle").map_or("off", String::as_str) {
            "on" => true,
            "off" => false,
            _ => return Err("nagle is on or off".to_owned()),
        };
        let window = window.map_or(USUAL_WINDOW, |window| window as usize);
        if !(64..=1 << 30).contains(&window) {
            return Err("smoltcp takes windows of 64 bytes to 1 GiB".to_owned());
        }
        Ok(Self { window, cc, cc_name, ack_delay, nagle })
    }
}

/// Whether it can do what these options say.
///
/// # Errors
/// What it has instead.
pub(super) fn check(options: &BTreeMap<String, String>) -> Result<(), String> {
    Options::of(options, None).map(drop)
}

/// The device as smoltcp wants it.
struct Device {
    tun: Tun,
    late: LateAcks,
    buffer: Vec<u8>,
    mtu: usize,
}

struct ReceivedFrame<'a>(&'a [u8]);
struct ToSend<'a>(&'a mut Tun, &'a mut LateAcks);

impl phy::RxToken for ReceivedFrame<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl phy::TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut packet = vec![0; length];
        let result = f(&mut packet);
        if self.1.pass(0, &packet) {
            // What the kernel doesn't take is lost, as on any wire.
            let _ = self.0.send(&[IoSlice::new(&packet)]);
        }
        result
    }
}

impl phy::Device for Device {
    type RxToken<'a> = ReceivedFrame<'a>;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, _: Instant) -> Option<(ReceivedFrame<'_>, ToSend<'_>)> {
        let Self { tun, late, buffer, .. } = self;
        let length = tun.receive(buffer).ok().flatten()?;
        Some((ReceivedFrame(&buffer[..length]), ToSend(tun, late)))
    }

    fn transmit(&mut self, _: Instant) -> Option<ToSend<'_>> {
        Some(ToSend(&mut self.tun, &mut self.late))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// One connection.
struct CarriedConnection {
    near: UnixStream,
    handle: SocketHandle,
    spoiler: Spoiler,
    /// Whether the program knows that it stands.
    told: bool,
    /// The program sends no more.
    ended: bool,
    /// What the program didn't take yet.
    waiting: Vec<u8>,
}

fn now() -> Instant {
    Instant::from_micros(i64::try_from(monotonic_ns() / 1000).unwrap_or(i64::MAX))
}

/// Serves until whoever started us has gone.
///
/// # Errors
/// What can't be set up.
pub(super) fn run(arguments: &Arguments, faults: &Faults) -> Result<AdapterDone, String> {
    let options = Options::of(&arguments.options, arguments.window)?;
    let mtu = arguments.mss.map_or(arguments.mtu, |mss| arguments.mtu.min(mss.saturating_add(HEADERS)));
    let mut device = Device {
        tun: Tun::plain(&arguments.device).map_err(|error| error.to_string())?,
        late: LateAcks::new(faults),
        buffer: vec![0; 65_536],
        mtu: mtu as usize,
    };
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = monotonic_ns();
    let mut interface = Interface::new(config, &mut device, now());
    let mut fits = true;
    interface.update_ip_addrs(|all| fits = all.push(IpCidr::new(IpAddress::Ipv4(arguments.address), 32)).is_ok());
    fits &= interface.routes_mut().add_default_ipv4_route(*arguments.server.ip()).is_ok();
    if !fits {
        return Err("smoltcp has no room for an address and a route".to_owned());
    }
    let listener = local::begin(&arguments.listen, &ready(arguments, &options, mtu))?;
    let mut server = Loop {
        arguments,
        options,
        faults,
        interface,
        sockets: SocketSet::new(Vec::new()),
        carried: Vec::new(),
        done: local::nothing_done(),
        first: monotonic_ns() / 1000,
    };
    let stdin = std::io::stdin();
    loop {
        server.interface.poll(now(), &mut device, &mut server.sockets);
        let moved = server.carry();
        while let Some(packet) = device.late.due() {
            let _ = device.tun.send(&[IoSlice::new(&packet)]);
        }
        if moved {
            continue;
        }
        let wait = server.interface.poll_delay(now(), &server.sockets).map(Into::into);
        let wait = [wait, device.late.wait()].into_iter().flatten().min();
        let mut fds = vec![stdin.as_fd(), listener.as_fd(), device.tun.as_fd()];
        fds.extend(server.carried.iter().filter(|one| server.listens_to(one)).map(|one| one.near.as_fd()));
        let bits = wait_readable(&fds, wait).map_err(|error| error.to_string())?;
        if bits & 1 != 0 && local::is_over() {
            local::leave_to_the_kernel(device.tun);
            return Ok(server.done);
        }
        while server.carried.len() < MOST
            && let Some(near) = local::accept(&listener)
        {
            server.connect(near)?;
        }
    }
}

fn ready(arguments: &Arguments, options: &Options, mtu: u32) -> Ready {
    let mut granted: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    let mut refused = Vec::new();
    for (name, value) in [
        ("mtu", json!(arguments.mtu)),
        ("mss", json!(mtu - HEADERS.min(mtu))),
        ("rwin", json!(options.window)),
        ("cc", json!(options.cc_name)),
        ("nagle", json!(if options.nagle { "on" } else { "off" })),
        ("ack-delay", options.ack_delay.map_or(json!("none"), |time| json!(wt_units::format_duration(time)))),
    ] {
        granted.insert(name.to_owned(), value);
    }
    for (key, value) in &arguments.options {
        match key.as_str() {
            "cc" | "nagle" | "ack-delay" => {}
            known if super::options("smoltcp").contains(&known) => drop(granted.insert(key.clone(), json!(value))),
            _ => refused.push(format!("smoltcp has no option {key}")),
        }
    }
    Ready { ready: true, name: "smoltcp".to_owned(), version: VERSION.to_owned(), granted, refused }
}

struct Loop<'a> {
    arguments: &'a Arguments,
    options: Options,
    faults: &'a Faults,
    interface: Interface,
    sockets: SocketSet<'static>,
    carried: Vec<CarriedConnection>,
    done: AdapterDone,
    /// Where local ports begin.
    first: u64,
}

impl Loop<'_> {
    fn connect(&mut self, near: UnixStream) -> Result<(), String> {
        near.set_nonblocking(true).map_err(|error| error.to_string())?;
        let buffer = |bytes: usize| SocketBuffer::new(vec![0; bytes]);
        let mut socket = Socket::new(buffer(self.options.window), buffer(SEND_BUFFER));
        socket.set_congestion_control(self.options.cc);
        socket.set_nagle_enabled(self.options.nagle);
        socket.set_ack_delay(self.options.ack_delay.map(Into::into));
        // Another one than any before: the server may still remember those of another process.
        let port = FIRST_PORT + u16::try_from((self.first + self.done.connections) % 16_000).unwrap_or(0);
        let server = (IpAddress::Ipv4(*self.arguments.server.ip()), self.arguments.server.port());
        socket.connect(self.interface.context(), server, port).map_err(|error| error.to_string())?;
        let handle = self.sockets.add(socket);
        let spoiler = Spoiler::new(self.faults);
        self.carried.push(CarriedConnection { near, handle, spoiler, told: false, ended: false, waiting: Vec::new() });
        self.done.connections += 1;
        Ok(())
    }

    /// Whether what the program sends could be taken now.
    fn listens_to(&self, one: &CarriedConnection) -> bool {
        !one.ended && self.sockets.get::<Socket<'_>>(one.handle).can_send()
    }

    /// Carries what can be carried now; whether the stack has something to do because of it.
    fn carry(&mut self) -> bool {
        let mut moved = false;
        let Self { sockets, carried, done, .. } = self;
        carried.retain_mut(|one| {
            let socket = sockets.get_mut::<Socket<'_>>(one.handle);
            let kept = one.carry(socket, done, &mut moved);
            if !kept {
                socket.abort();
                moved = true;
            }
            kept
        });
        moved
    }
}

impl CarriedConnection {
    /// False when the connection is over.
    fn carry(&mut self, socket: &mut Socket<'_>, done: &mut AdapterDone, moved: &mut bool) -> bool {
        if !self.told {
            match socket.state() {
                State::Closed => return false,
                State::SynSent | State::SynReceived | State::Listen => return true,
                _ if local::tell_connected(&self.near).is_err() => return false,
                _ => self.told = true,
            }
        }
        self.carry_out(socket, done, moved) && self.carry_in(socket, done, moved)
    }

    fn carry_out(&mut self, socket: &mut Socket<'_>, done: &mut AdapterDone, moved: &mut bool) -> bool {
        while !self.ended && socket.can_send() {
            let near = &mut self.near;
            let read = socket.send(|room| match near.read(room) {
                Ok(n) => (n, Ok(n)),
                Err(error) => (0, Err(error)),
            });
            match read {
                Ok(Ok(0)) => {
                    self.ended = true;
                    socket.close();
                    *moved = true;
                }
                Ok(Ok(n)) => {
                    self.spoiler.asked();
                    done.bytes_out += n as u64;
                    *moved = true;
                }
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                _ => return false,
            }
        }
        true
    }

    fn carry_in(&mut self, socket: &mut Socket<'_>, done: &mut AdapterDone, moved: &mut bool) -> bool {
        loop {
            if !self.waiting.is_empty() {
                match local::write_some(&self.near, &self.waiting) {
                    Ok(0) => {
                        // The program is slow, and the stack shall feel it.
                        local::wait_for_room(&self.near);
                        *moved = true;
                        return true;
                    }
                    Ok(n) => drop(self.waiting.drain(..n)),
                    Err(_) => return false,
                }
                continue;
            }
            if !socket.can_recv() {
                break;
            }
            let mut buffer = [0; AT_ONCE];
            let Ok(n) = socket.recv_slice(&mut buffer) else { return false };
            let lost = self.spoiler.spoil(&mut buffer[..n]);
            self.waiting.extend_from_slice(&buffer[lost..n]);
            done.bytes_in += (n - lost) as u64;
            *moved = true;
        }
        if !socket.may_recv() && !matches!(socket.state(), State::SynSent | State::SynReceived) {
            let _ = self.near.shutdown(std::net::Shutdown::Write);
            // Reset, or closed by both.
            return socket.is_active()
                && !(self.ended && socket.send_queue() == 0 && socket.state() == State::TimeWait);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_is_the_one_that_is_locked() {
        let lock = include_str!("../../../../Cargo.lock");
        let at = lock.find("name = \"smoltcp\"").unwrap();
        assert!(lock[at..].lines().nth(1).unwrap().contains(super::VERSION));
    }
}
