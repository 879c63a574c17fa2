//! The kernel of this machine as a stack behind an adapter: in a network namespace of the adapter's own, with a TUN device of
//! which the other side is the adapter's. What it costs beyond the kernel itself is what every adapter costs.

use super::fault::{Faults, LateAcks, Spoiler};
use super::local::{self, AT_ONCE};
use crate::protocol::{Arguments, Done, Ready};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{IoSlice, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wt_sys::netlink::{Netlink, RouteMetrics};
use wt_sys::ns::{NetNs, write_net_sysctl};
use wt_sys::poll::wait_readable;
use wt_sys::tcp::{self, TcpSocket};
use wt_sys::tun::Tun;
use wt_sys::vnet::VNET_LEN;
use wt_sys::{SysError, SysResult};

/// The device within the adapter's own namespace.
const INNER: &str = "stack0";
/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A super-packet and its header.
const LARGEST: usize = VNET_LEN + 65_536;

/// The kernel's release.
pub(super) fn version() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
}

#[derive(Debug, Default)]
pub(super) struct Counted {
    connections: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// Serves until whoever started us has gone.
///
/// # Errors
/// What can't be set up.
pub(super) fn run(arguments: &Arguments, faults: &Faults) -> Result<Done, String> {
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
    let late = LateAcks::new(faults);
    std::thread::spawn(move || pump(outer, inner, late));
    let listener = local::begin(&arguments.listen, &ready(arguments))?;
    let counted = Arc::new(Counted::default());
    let ns = Arc::new(ns);
    let stdin = std::io::stdin();
    loop {
        let bits = wait_readable(&[stdin.as_fd(), listener.as_fd()], None).map_err(told)?;
        if bits & 1 != 0 && local::is_over() {
            break;
        }
        while let Some(stream) = local::accept(&listener) {
            let (ns, counted) = (Arc::clone(&ns), Arc::clone(&counted));
            let (arguments, faults) = (arguments.clone(), *faults);
            std::thread::spawn(move || {
                if ns.enter().is_ok() {
                    counted.connections.fetch_add(1, Ordering::Relaxed);
                    let _ = connection(stream, &arguments, &faults, &counted);
                }
            });
        }
    }
    let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
    Ok(Done {
        connections: read(&counted.connections),
        bytes_in: read(&counted.bytes_in),
        bytes_out: read(&counted.bytes_out),
        ..local::nothing_done()
    })
}

fn ready(arguments: &Arguments) -> Ready {
    let known = ["cc", "late-acks", "fast-loss", "corrupt-at", "crash-at"];
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

/// Carries packets between the two devices until the process ends.
fn pump(mut outer: Tun, mut inner: Tun, mut late: LateAcks) {
    let mut buffer = vec![0; LARGEST];
    loop {
        let Ok(_) = wait_readable(&[outer.as_fd(), inner.as_fd()], late.wait()) else { return };
        while let Ok(Some(n)) = outer.receive(&mut buffer) {
            // What the kernel doesn't take is lost, as on any wire.
            let _ = inner.send(&[IoSlice::new(&buffer[..n])]);
        }
        while let Ok(Some(n)) = inner.receive(&mut buffer) {
            if late.pass(VNET_LEN, &buffer[..n]) {
                let _ = outer.send(&[IoSlice::new(&buffer[..n])]);
            }
        }
        while let Some(packet) = late.due() {
            let _ = outer.send(&[IoSlice::new(&packet)]);
        }
    }
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
    let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
    prepared.map_err(SysError::io("prepare a connection"))?;
    Ok(stream)
}

/// One connection from its first byte to its last.
pub(super) fn connection(
    near: UnixStream,
    arguments: &Arguments,
    faults: &Faults,
    counted: &Arc<Counted>,
) -> std::io::Result<()> {
    let far = open(arguments).map_err(|error| {
        let _ = writeln!(std::io::stderr().lock(), "{error}");
        error.source
    })?;
    local::tell_connected(&near)?;
    let loss = Arc::new(std::sync::Mutex::new(Spoiler::new(faults)));
    let (near_in, far_out) = (near.try_clone()?, far.try_clone()?);
    let (asked, sent) = (Arc::clone(&loss), Arc::clone(counted));
    let out = std::thread::spawn(move || carry_out(near_in, far_out, &asked, &sent));
    carry_in(far, &near, arguments.window, &loss, counted);
    // Whoever still waits for the program shall not.
    let _ = near.shutdown(Shutdown::Both);
    let _ = out.join();
    Ok(())
}

type Loss = std::sync::Mutex<Spoiler>;

fn carry_out(mut near: UnixStream, mut far: TcpStream, loss: &Loss, counted: &Counted) {
    let mut buffer = vec![0; AT_ONCE];
    while let Ok(n @ 1..) = near.read(&mut buffer) {
        loss.lock().unwrap_or_else(std::sync::PoisonError::into_inner).asked();
        if far.write_all(&buffer[..n]).is_err() {
            return;
        }
        counted.bytes_out.fetch_add(n as u64, Ordering::Relaxed);
    }
    let _ = far.shutdown(Shutdown::Write);
}

fn carry_in(mut far: TcpStream, mut near: &UnixStream, window: Option<u32>, loss: &Loss, counted: &Counted) {
    let mut buffer = vec![0; AT_ONCE];
    while let Ok(n @ 1..) = far.read(&mut buffer) {
        if let Some(window) = window {
            let _ = tcp::hold_window(&far, window);
        }
        let lost = loss.lock().unwrap_or_else(std::sync::PoisonError::into_inner).spoil(&mut buffer[..n]);
        if near.write_all(&buffer[lost..n]).is_err() {
            // The program has gone, and wants no more.
            let _ = tcp::reset_on_close(&far);
            let _ = far.shutdown(Shutdown::Both);
            return;
        }
        counted.bytes_in.fetch_add((n - lost) as u64, Ordering::Relaxed);
    }
}
