//! The kernel of this machine as a stack behind an adapter: in a network namespace of the adapter's own, with a TUN device of
//! which the other side is the adapter's. What it costs beyond the kernel itself is what every adapter costs.

use super::fault::{Faults, LateAcks, Spoiler};
use super::local::{self, AT_ONCE};
use crate::protocol::{AdapterDone, Arguments, Ready};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use wt_sys::netlink::{Netlink, RouteMetrics};
use wt_sys::ns::{NetNs, write_net_sysctl};
use wt_sys::poll::{Waker, wait_many, wait_readable};
use wt_sys::tcp::{self, TcpSocket};
use wt_sys::tun::Tun;
use wt_sys::vnet::VNET_LEN;
use wt_sys::{SysError, SysResult};

/// The device within the adapter's own namespace.
const INNER: &str = "stack0";
/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one that is full is left alone.
const FULL: Duration = Duration::from_millis(1);
/// A super-packet and its header.
const LARGEST: usize = VNET_LEN + 65_536;

/// The kernel's release.
pub(super) fn version() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
}

/// Serves until whoever started us has gone.
///
/// # Errors
/// What can't be set up.
pub(super) fn run(arguments: &Arguments, faults: &Faults) -> Result<AdapterDone, String> {
    let told = |error: SysError| error.to_string();
    let outer = Tun::create(&arguments.device).map_err(told)?;
    let ns = NetNs::create().map_err(told)?;
    let inner = ns.run(|| Tun::create(INNER)).and_then(|made| made).map_err(told)?;
    ns.run(|| set_up(arguments)).and_then(|done| done).map_err(told)?;
    if let Some(name) = arguments.options.get("cc") {
        // Before anybody waits for a connection with it.
        let tried = || tcp::set_congestion_control(&TcpSocket::new(&SocketAddr::from(arguments.server))?, name);
        ns.run(tried).and_then(|set| set).map_err(told)?;
    }
    let listener = local::begin(&arguments.listen, &ready(arguments))?;
    let ns = Arc::new(ns);
    let opened = OpeningConnections::new().map_err(told)?;
    let mut carrier = Carrier::new(arguments, faults);
    carrier.pump = Some(Pump { outer, inner, late: LateAcks::new(faults), buffer: vec![0; LARGEST] });
    let stdin = std::io::stdin();
    loop {
        let bits = carrier.wait(&[stdin.as_fd(), listener.as_fd(), opened.waker.as_fd()]).map_err(told)?;
        if bits & 1 != 0 && local::is_over() {
            local::leave_to_the_kernel(carrier.pump);
            return Ok(carrier.done);
        }
        while let Some(near) = local::accept(&listener) {
            let ns = Arc::clone(&ns);
            opened.open(near, arguments, move || ns.enter());
        }
        opened.take(&mut carrier);
    }
}

fn ready(arguments: &Arguments) -> Ready {
    let known = super::options("linux");
    let mut granted: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    granted.insert("mtu".to_owned(), json!(arguments.mtu));
    granted.extend(arguments.mss.map(|mss| ("mss".to_owned(), json!(mss))));
    granted.extend(arguments.window.map(|window| ("rwin".to_owned(), json!(window))));
    let (kept, other): (Vec<_>, Vec<_>) = arguments.options.iter().partition(|(key, _)| known.contains(&key.as_str()));
    granted.extend(kept.into_iter().map(|(key, value)| (key.clone(), json!(value))));
    let refused = other.into_iter().map(|(key, _)| format!("linux has no option {key}")).collect();
    Ready { ready: true, name: "linux".to_owned(), version: version(), granted, refused }
}

/// The adapter's own namespace.
fn set_up(arguments: &Arguments) -> SysResult<()> {
    write_net_sysctl("ipv4/tcp_no_metrics_save", "1")?;
    if arguments.options.contains_key("cc") {
        // A connection that begins with bbr is paced for ever, whatever it is given later; reno can always be had.
        write_net_sysctl("ipv4/tcp_congestion_control", "reno")?;
    }
    let mut netlink = Netlink::open()?;
    netlink.start("lo", None, None, true)?;
    netlink.add_address(INNER, arguments.address.into(), 32)?;
    netlink.start(INNER, Some(arguments.mtu), Some(10_000), false)?;
    netlink.set_route(INNER, Ipv4Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default())
}

/// Opens a connection with its settings.
fn open(arguments: &Arguments) -> SysResult<TcpStream> {
    let peer = SocketAddr::from(arguments.server);
    let socket = TcpSocket::new(&peer)?;
    if let Some(window) = arguments.window {
        tcp::fix_window(&socket, window)?;
    }
    if let Some(mss) = arguments.mss {
        tcp::set_max_segment(&socket, mss)?;
    }
    if let Some(name) = arguments.options.get("cc") {
        tcp::set_congestion_control(&socket, name)?;
    }
    let stream = socket.connect(&peer, PATIENCE)?;
    let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
    prepared.map_err(SysError::io("prepare a connection"))?;
    Ok(stream)
}

/// Connections whose handshakes are under way, each on a thread of its own.
pub(super) struct OpeningConnections {
    sender: Sender<(UnixStream, TcpStream)>,
    receiver: Receiver<(UnixStream, TcpStream)>,
    pub(super) waker: Arc<Waker>,
}

impl OpeningConnections {
    /// # Errors
    /// When the process has no descriptors left.
    pub(super) fn new() -> SysResult<Self> {
        let (sender, receiver) = channel();
        Ok(Self { sender, receiver, waker: Arc::new(Waker::new()?) })
    }

    /// Begins with one, on a thread that prepares itself first.
    pub(super) fn open(
        &self,
        near: UnixStream,
        arguments: &Arguments,
        prepare: impl FnOnce() -> SysResult<()> + Send + 'static,
    ) {
        let (sender, waker, arguments) = (self.sender.clone(), Arc::clone(&self.waker), arguments.clone());
        std::thread::spawn(move || {
            match prepare().and_then(|()| open(&arguments)) {
                Ok(far) => {
                    let _ = sender.send((near, far));
                }
                // The program sees that its end is closed.
                Err(error) => drop(writeln!(std::io::stderr().lock(), "{error}")),
            }
            waker.wake();
        });
    }

    /// Hands over those that stand.
    pub(super) fn take(&self, carrier: &mut Carrier) {
        self.waker.clear();
        while let Ok((near, far)) = self.receiver.try_recv() {
            carrier.add(near, far);
        }
    }
}

/// The two devices between which packets are carried, by the same thread as the bytes: as a stack does that is in this process,
/// it wakes once for a packet, and its CPU time is counted whole.
struct Pump {
    outer: Tun,
    inner: Tun,
    late: LateAcks,
    buffer: Vec<u8>,
}

impl Pump {
    /// Carries what came over the path to the stack; whether anything did.
    fn carry_in(&mut self) -> bool {
        let Self { outer, inner, buffer, .. } = self;
        let mut came = false;
        while let Ok(Some(n)) = outer.receive(buffer) {
            // What the kernel doesn't take is lost, as on any wire.
            let _ = inner.send(&[IoSlice::new(&buffer[..n])]);
            came = true;
        }
        came
    }

    /// Carries what the stack sends to the path.
    fn carry_out(&mut self) {
        let Self { outer, inner, late, buffer } = self;
        while let Ok(Some(n)) = inner.receive(buffer) {
            if late.pass(VNET_LEN, &buffer[..n]) {
                let _ = outer.send(&[IoSlice::new(&buffer[..n])]);
            }
        }
        while let Some(packet) = late.due() {
            let _ = outer.send(&[IoSlice::new(&packet)]);
        }
    }
}

/// Everything that is carried, by one thread.
pub(super) struct Carrier {
    window: Option<u32>,
    faults: Faults,
    pump: Option<Pump>,
    carried: Vec<CarriedConnection>,
    buffer: Vec<u8>,
    done: AdapterDone,
}

/// One connection from its first byte to its last.
struct CarriedConnection {
    near: UnixStream,
    far: TcpStream,
    spoiler: Spoiler,
    /// What the stack didn't take yet.
    out: Vec<u8>,
    /// What the program didn't take yet.
    waiting: Vec<u8>,
    out_ended: bool,
    in_ended: bool,
}

impl Carrier {
    pub(super) fn new(arguments: &Arguments, faults: &Faults) -> Self {
        Self {
            window: arguments.window,
            faults: *faults,
            pump: None,
            carried: Vec::new(),
            buffer: vec![0; AT_ONCE],
            done: local::nothing_done(),
        }
    }

    fn add(&mut self, near: UnixStream, far: TcpStream) {
        if near.set_nonblocking(true).is_ok() && local::tell_connected(&near).is_ok() {
            self.done.connections += 1;
            let (spoiler, out, waiting) = (Spoiler::new(&self.faults), Vec::new(), Vec::new());
            self.carried.push(CarriedConnection {
                near,
                far,
                spoiler,
                out,
                waiting,
                out_ended: false,
                in_ended: false,
            });
        }
    }

    /// Carries what there is, in one round: packets to the stack, ACKs that they bring about, bytes, and packets that come of those.
    fn carry(&mut self) {
        let Self { pump, carried, window, buffer, done, .. } = self;
        if let Some(pump) = pump
            && pump.carry_in()
        {
            // The kernel itself sends an ACK before it wakes the program, and so before the program's next request.
            pump.carry_out();
        }
        carried.retain_mut(|one| one.carry(*window, buffer, done));
        if let Some(pump) = pump {
            pump.carry_out();
        }
    }

    /// Carries until one of these descriptors has something; bit `i` of the result is that of the one with number `i`.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn wait(&mut self, others: &[BorrowedFd<'_>]) -> SysResult<u128> {
        loop {
            self.carry();
            let stuck = self.carried.iter().any(|one| !one.out.is_empty() || !one.waiting.is_empty());
            let mut fds = others.to_vec();
            if let Some(Pump { outer, inner, .. }) = &self.pump {
                fds.extend([outer.as_fd(), inner.as_fd()]);
            }
            for one in &self.carried {
                fds.extend((!one.out_ended && one.out.is_empty()).then(|| one.near.as_fd()));
                fds.extend((!one.in_ended && one.waiting.is_empty()).then(|| one.far.as_fd()));
            }
            // Whoever is full has room again soon. What came meanwhile ends the wait at once.
            let due = self.pump.as_ref().and_then(|pump| pump.late.wait());
            let wait = [due, stuck.then_some(FULL)].into_iter().flatten().min();
            let bits = if fds.len() <= 128 {
                wait_readable(&fds, wait)?
            } else {
                wait_many(&fds, wait)?.into_iter().filter(|at| *at < 128).fold(0, |bits, at| bits | 1 << at)
            };
            let asked = bits & ((1 << others.len()) - 1);
            if asked != 0 {
                return Ok(asked);
            }
        }
    }
}

impl CarriedConnection {
    /// Carries what can be carried now; false when the connection is over.
    fn carry(&mut self, window: Option<u32>, buffer: &mut [u8], done: &mut AdapterDone) -> bool {
        self.carry_in(window, buffer, done) && self.carry_out(buffer, done) && !(self.out_ended && self.in_ended)
    }

    fn carry_out(&mut self, buffer: &mut [u8], done: &mut AdapterDone) -> bool {
        while !self.out_ended {
            if self.out.is_empty() {
                match self.near.read(buffer) {
                    Ok(0) => {
                        self.out_ended = true;
                        let _ = self.far.shutdown(Shutdown::Write);
                        break;
                    }
                    Ok(n) => {
                        self.spoiler.asked();
                        self.out.extend_from_slice(&buffer[..n]);
                    }
                    Err(error) => return is_later(&error),
                }
            }
            match self.far.write(&self.out) {
                Ok(n) => {
                    drop(self.out.drain(..n));
                    done.bytes_out += n as u64;
                }
                Err(error) => return is_later(&error),
            }
        }
        true
    }

    fn carry_in(&mut self, window: Option<u32>, buffer: &mut [u8], done: &mut AdapterDone) -> bool {
        while !self.in_ended {
            if self.waiting.is_empty() {
                let n = match self.far.read(buffer) {
                    Ok(0) => {
                        self.in_ended = true;
                        let _ = self.near.shutdown(Shutdown::Write);
                        break;
                    }
                    Ok(n) => n,
                    Err(error) => return is_later(&error),
                };
                if let Some(window) = window {
                    let _ = tcp::hold_window(&self.far, window);
                }
                let lost = self.spoiler.spoil(&mut buffer[..n]);
                self.waiting.extend_from_slice(&buffer[lost..n]);
            }
            match self.near.write(&self.waiting) {
                Ok(n) => {
                    drop(self.waiting.drain(..n));
                    done.bytes_in += n as u64;
                }
                Err(error) if is_later(&error) => return true,
                Err(_) => {
                    // The program has gone, and wants no more.
                    let _ = tcp::reset_on_close(&self.far);
                    return false;
                }
            }
        }
        true
    }
}

/// Whether it goes on later.
fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
