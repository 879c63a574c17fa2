//! An older Linux as a process: Debian's User-Mode Linux, with the congestion controls that it has as modules.
//!
//! Its kernel makes two devices itself: the one towards the path, and one towards this adapter. Process 1 in there is this very
//! binary; it opens a connection over the path for each that comes from here, and both carry the bytes.

use super::linux;
use super::local;
use crate::protocol::{AdapterDone, Arguments, Ready};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wt_lab::Folder;
use wt_sys::clock::monotonic_ns;
use wt_sys::netlink::{Netlink, RouteMetrics};
use wt_sys::ns::{self, write_net_sysctl};
use wt_sys::poll::wait_readable;
use wt_sys::tcp::TcpSocket;
use wt_sys::{SysResult, process};

/// The second argument of the process 1 in there.
pub(super) const GUEST: &str = "uml-guest";
/// Ends its arguments: behind them such a kernel adds some of its own.
pub(super) const END: &str = "--end";
/// Where the kernel is, unless this says it.
const FILE: &str = "WINDTUNNEL_UML";
const KERNEL: &str = "/usr/bin/linux.uml";
/// Where Debian puts its modules.
const MODULES: &str = "/usr/lib/uml/modules";
/// Memory of such a kernel.
const MEMORY: &str = "mem=96M";
/// The devices in there: towards the path, and towards the adapter.
const PATH: &str = "vec0";
const NEAR: &str = "vec1";
/// It says that it takes super-packets, and loses them unless it is also told to have room for them.
const WHOLE: &str = "gro=1";
/// The adapter's device towards it, and both ends' addresses: link-local (RFC 3927), for nobody else to reach.
const NEAR_DEVICE: &str = "wts-near";
const NEAR_HERE: Ipv4Addr = Ipv4Addr::new(169, 254, 77, 1);
const NEAR_THERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(169, 254, 77, 2), 7);
/// The hardware address of both ends of the device towards the path: without ARP each end sends to its own.
const MAC: [u8; 6] = [2, 0, 0, 0, 0x77, 1];
/// How long it may take until it is up.
const PATIENCE: Duration = Duration::from_secs(9);
/// How often one looks whether it is.
const GLANCE: Duration = Duration::from_millis(20);
/// How long a handshake with it may take: it is on this machine.
const SOON: Duration = Duration::from_secs(2);
/// Bytes of its console that are told.
const MOST_TOLD: usize = 600;

/// The kernel, if it is there.
fn kernel() -> Option<PathBuf> {
    let named = std::env::var_os(FILE).map_or_else(|| PathBuf::from(KERNEL), PathBuf::from);
    named.is_file().then_some(named)
}

/// Its release, if it is there and is one; asked once.
pub(super) fn version() -> Option<String> {
    static RELEASE: OnceLock<Option<String>> = OnceLock::new();
    RELEASE.get_or_init(release).clone()
}

fn release() -> Option<String> {
    let mut command = Command::new(kernel()?);
    let output = command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let release = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    let plausible = release.starts_with(|first: char| first.is_ascii_digit()) && release.len() < 64;
    plausible.then_some(release)
}

/// What it is told to set.
fn ready(arguments: &Arguments, version: String) -> Ready {
    let mut granted: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    granted.insert("mtu".to_owned(), json!(arguments.mtu));
    granted.extend(arguments.mss.map(|mss| ("mss".to_owned(), json!(mss))));
    granted.extend(arguments.window.map(|window| ("rwin".to_owned(), json!(window))));
    let (kept, other): (Vec<_>, Vec<_>) = arguments.options.iter().partition(|(key, _)| *key == "cc");
    granted.extend(kept.into_iter().map(|(key, value)| (key.clone(), json!(value))));
    let refused = other.into_iter().map(|(key, _)| format!("uml has no option {key}")).collect();
    Ready { ready: true, name: "uml".to_owned(), version, granted, refused }
}

/// Serves until whoever started us has gone.
///
/// # Errors
/// What can't be set up.
pub(super) fn run(arguments: &Arguments) -> Result<AdapterDone, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let kernel = kernel().ok_or_else(|| format!("there is no {KERNEL}"))?;
    let version = version().ok_or_else(|| format!("{} names no release", kernel.display()))?;
    if let Some(name) = arguments.options.get("cc") {
        module(&version, name)?;
    }
    let folder = Folder::new().map_err(|error| told(&error))?;
    let console = folder.path().join("console");
    let (started, has_started) = mpsc::channel();
    let command = command(&kernel, &folder.path(), arguments).map_err(|error| told(&error))?;
    // It ends with the thread that starts it: one of its own, which waits for it.
    std::thread::spawn(move || {
        let child = start(command);
        let _ = started.send(child);
        process::wait_for_ever();
    });
    let child = has_started.recv().map_err(|error| told(&error))?.map_err(|error| told(&error))?;
    let mut machine = Machine { child, console };
    machine.wait_for(|| configure(arguments)).map_err(|why| format!("its devices: {why}"))?;
    // Whoever answers is up.
    machine.wait_for(reach).map_err(|why| format!("it doesn't answer: {why}"))?;
    let listener = local::begin(&arguments.listen, &ready(arguments, version))?;
    let counted = Arc::new([const { AtomicU64::new(0) }; 3]);
    let stdin = io::stdin();
    loop {
        let bits = wait_readable(&[stdin.as_fd(), listener.as_fd()], None).map_err(|error| told(&error))?;
        if bits & 1 != 0 && local::is_over() {
            break;
        }
        while let Some(stream) = local::accept(&listener) {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                if carry(&stream, &counted).is_err() {
                    let _ = stream.shutdown(Shutdown::Both);
                }
            });
        }
    }
    let [connections, bytes_in, bytes_out] = [0, 1, 2].map(|at| counted[at].load(Ordering::Relaxed));
    Ok(AdapterDone { connections, bytes_in, bytes_out, ..local::nothing_done() })
}

/// The running kernel; ends with this value.
struct Machine {
    child: Child,
    console: PathBuf,
}

impl Machine {
    /// Tries until it works, the kernel has ended, or the time is up.
    fn wait_for<T>(&mut self, mut attempt: impl FnMut() -> SysResult<T>) -> Result<T, String> {
        let limit = monotonic_ns() + PATIENCE.as_nanos() as u64;
        loop {
            let why = match attempt() {
                Ok(made) => return Ok(made),
                Err(error) => error.to_string(),
            };
            let ended = self.child.try_wait().map_err(|error| error.to_string())?.is_some();
            if ended || monotonic_ns() >= limit {
                return Err(format!("{why}; the kernel's last words: {}", last_words(&self.console)));
            }
            let _ = wait_readable(&[], Some(GLANCE));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn last_words(console: &Path) -> String {
    let text = std::fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(MOST_TOLD)..]).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn command(kernel: &Path, folder: &Path, arguments: &Arguments) -> io::Result<Command> {
    let binary = std::env::current_exe()?;
    let (binary, place) = (binary.to_string_lossy(), folder.to_string_lossy());
    if binary.contains(' ') || place.contains(' ') {
        return Err(io::Error::other("a path with a space can't be named on a kernel's command line"));
    }
    let console = File::create(folder.join("console"))?;
    let mac = MAC.map(|byte| format!("{byte:02x}")).join(":");
    let mut command = Command::new(kernel);
    command
        .args([MEMORY, "root=none", "rootfstype=hostfs", "rootflags=/", "rw", "panic=-1"])
        .args(["con=null", "con0=fd:0,fd:1", "ssl=null"])
        .arg(format!("uml_dir={place}"))
        .arg(format!("{PATH}:transport=tap,ifname={},mac={mac},{WHOLE}", arguments.device))
        .arg(format!("{NEAR}:transport=tap,ifname={NEAR_DEVICE},{WHOLE}"))
        .arg(format!("init={binary}"))
        .args(["--", super::ADAPTER, GUEST])
        .args(arguments.to_args())
        .arg(END)
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(console.try_clone()?)
        .stderr(console);
    process::die_with_parent(&mut command);
    Ok(command)
}

/// As process 1 of a pid namespace, so that nothing of it outlives it.
fn start(mut command: Command) -> io::Result<Child> {
    process::children_in_new_pid_namespace().map_err(|error| error.source)?;
    command.spawn()
}

/// This side of both devices, as soon as the kernel has made them.
fn configure(arguments: &Arguments) -> SysResult<()> {
    let mut netlink = Netlink::open()?;
    netlink.set_mac(&arguments.device, MAC)?;
    netlink.index(NEAR_DEVICE)?;
    match netlink.add_address(NEAR_DEVICE, NEAR_HERE.into(), 30) {
        Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    netlink.start(NEAR_DEVICE, None, None, true)
}

/// A connection to the process in there.
fn reach() -> SysResult<TcpStream> {
    let peer = SocketAddr::from(NEAR_THERE);
    let stream = TcpSocket::new(&peer)?.connect(&peer, SOON)?;
    let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
    prepared.map_err(wt_sys::SysError::io("prepare a connection"))?;
    Ok(stream)
}

/// One connection from its first byte to its last: the one in there says when the handshake is done.
fn carry(mut near: &UnixStream, counted: &[AtomicU64; 3]) -> io::Result<()> {
    let mut far = reach().map_err(|error| error.source)?;
    // To tell it from one that only looks whether anybody is there.
    far.write_all(&[crate::protocol::CONNECTED])?;
    counted[0].fetch_add(1, Ordering::Relaxed);
    let (mut out_from, mut out_to) = (near.try_clone()?, far.try_clone()?);
    std::thread::scope(|scope| {
        let out = scope.spawn(move || {
            let copied = io::copy(&mut out_from, &mut out_to);
            let _ = out_to.shutdown(Shutdown::Write);
            copied.unwrap_or(0)
        });
        let came = io::copy(&mut far, &mut near);
        // Whoever still waits for the program shall not, and the program shall see the end.
        let _ = near.shutdown(if came.is_ok() { Shutdown::Write } else { Shutdown::Both });
        if came.is_err() {
            let _ = far.shutdown(Shutdown::Both);
        }
        // The byte that says that it stands is nobody's payload.
        counted[1].fetch_add(came.unwrap_or(0).saturating_sub(1), Ordering::Relaxed);
        counted[2].fetch_add(out.join().unwrap_or(0), Ordering::Relaxed);
    });
    Ok(())
}

/// Where a congestion control's module is; `None` for those that need none.
fn module(version: &str, name: &str) -> Result<Option<PathBuf>, String> {
    const OWN: [&str; 2] = ["reno", "cubic"];
    let folder = PathBuf::from(MODULES).join(version).join("kernel/net/ipv4");
    let file = folder.join(format!("tcp_{name}.ko"));
    if OWN.contains(&name) {
        return Ok(None);
    }
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()) && file.is_file() {
        return Ok(Some(file));
    }
    let mut known: Vec<String> = OWN.map(str::to_owned).to_vec();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        known.extend(file.strip_prefix("tcp_").and_then(|rest| rest.strip_suffix(".ko")).map(str::to_owned));
    }
    known.retain(|name| name != "diag");
    known.sort();
    Err(format!("uml has no congestion control {name}; it has {}", known.join(", ")))
}

/// Whether it can do what these options say.
///
/// # Errors
/// What it has instead.
pub(super) fn check(options: &BTreeMap<String, String>) -> Result<(), String> {
    match (options.get("cc"), version()) {
        (Some(name), Some(version)) => module(&version, name).map(drop),
        _ => Ok(()),
    }
}

/// What process 1 in there does; comes back only where it isn't that, or can't be.
pub(super) fn guest(arguments: &Arguments) -> Result<AdapterDone, String> {
    if std::process::id() != 1 {
        return Err("only process 1 is a guest".to_owned());
    }
    let told = |error: wt_sys::SysError| error.to_string();
    let listener = set_up_guest(arguments)?;
    let opened = linux::OpeningConnections::new().map_err(told)?;
    let mut carrier = linux::Carrier::new(arguments, &super::Faults::default());
    loop {
        carrier.wait(&[listener.as_fd(), opened.waker.as_fd()]).map_err(told)?;
        while let Ok((stream, _)) = listener.accept() {
            let Ok(copy) = stream.try_clone() else { continue };
            let asked = move || {
                let mut said = [0];
                let read = copy.set_nodelay(true).and_then(|()| io::Read::read_exact(&mut &copy, &mut said));
                read.map_err(wt_sys::SysError::io("hear whether a connection is wanted"))
            };
            // Whatever its kind, it is read, written and shut down in the same way.
            opened.open(UnixStream::from(OwnedFd::from(stream)), arguments, asked);
        }
        opened.take(&mut carrier);
    }
}

/// Devices, routes and the module, in there.
fn set_up_guest(arguments: &Arguments) -> Result<TcpListener, String> {
    let told = |error: wt_sys::SysError| error.to_string();
    ns::mount("proc", "/proc", Some("proc"), 0).map_err(told)?;
    write_net_sysctl("ipv4/tcp_no_metrics_save", "1").map_err(told)?;
    let mut netlink = Netlink::open().map_err(told)?;
    let mut network = || -> SysResult<()> {
        netlink.start("lo", None, None, true)?;
        netlink.add_address(NEAR, (*NEAR_THERE.ip()).into(), 30)?;
        netlink.start(NEAR, None, None, true)?;
        netlink.add_address(PATH, arguments.address.into(), 32)?;
        netlink.start(PATH, Some(arguments.mtu), Some(10_000), false)?;
        netlink.set_route(PATH, Ipv4Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default())
    };
    network().map_err(told)?;
    if let Some(name) = arguments.options.get("cc") {
        let release = linux::version();
        if let Some(path) = module(&release, name)? {
            let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            process::load_module(&file).map_err(told)?;
        }
    }
    let listener = TcpListener::bind(NEAR_THERE).map_err(|error| error.to_string())?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    Ok(listener)
}
