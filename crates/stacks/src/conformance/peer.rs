use super::{PATIENCE, SOON};
use crate::catalogue::Choice;
use crate::protocol::{Arguments, CONNECTED};
use crate::running::AdapterProcess;
use std::cell::RefCell;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use wt_lab::Folder;
use wt_probe::codec::Segment;
use wt_sys::SysResult;
use wt_sys::clock::monotonic_ns;
use wt_sys::netlink::{Netlink, RouteMetrics};
use wt_sys::ns::write_net_sysctl;
use wt_sys::poll::wait_readable;
use wt_sys::tun::Tun;
use wt_trial::Cancel;
use wt_wire::{Checksum, Ipv4View, TcpFlags, TcpOption, TcpView, frag_needed};

/// The stack's address and device, the peer's, and a router's between them.
const STACK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const STACK_DEVICE: &str = "wts0";
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 19, 0, 1), 7411);
const PEER_DEVICE: &str = "wtp0";
const ROUTER: Ipv4Addr = Ipv4Addr::new(198, 18, 255, 1);
const MTU: u32 = 1500;
/// Where the peer's sequence numbers begin.
const FIRST: u32 = 1_000_000;

/// A stack behind its adapter, and a device on which its packets come out.
pub(super) struct Scene<'a> {
    tun: RefCell<Tun>,
    listen: PathBuf,
    _running: &'a AdapterProcess,
}

/// What a SYN offered.
pub(super) struct Syn {
    heard: StackSegment,
    near: UnixStream,
    pub(super) scale: bool,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
}

/// A segment of the stack's.
pub(super) struct StackSegment {
    pub(super) packet: Vec<u8>,
    pub(super) port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: TcpFlags,
    pub(super) payload: Vec<u8>,
    pub(super) dont_fragment: bool,
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Scene<'_> {
    /// Sets everything up in this thread's namespace, and plays.
    pub(super) fn with(
        choice: &Choice,
        script: impl FnOnce(&Scene<'_>) -> Result<bool, String>,
    ) -> Result<bool, String> {
        let folder = Folder::new().map_err(told)?;
        let tun = prepare().map_err(told)?;
        let arguments = Arguments {
            device: STACK_DEVICE.to_owned(),
            address: STACK,
            server: PEER,
            mtu: MTU,
            listen: folder.path().join("s"),
            mss: None,
            window: choice.window,
            options: choice.options.clone(),
        };
        let running = AdapterProcess::start(choice, &arguments, &Cancel::new())?;
        bring_up(STACK_DEVICE, STACK).map_err(told)?;
        script(&Scene { tun: RefCell::new(tun), listen: arguments.listen, _running: &running })
    }

    /// Lets the stack connect, and hears its SYN.
    pub(super) fn syn(&self) -> Result<Syn, String> {
        let near = UnixStream::connect(&self.listen).map_err(told)?;
        near.set_nonblocking(true).map_err(told)?;
        let heard = self.hear(SOON, |heard| heard.flags.has(TcpFlags::SYN)).ok_or("it sends no SYN")?;
        let view = Ipv4View::new(&heard.packet).map_err(told)?;
        let tcp = TcpView::new(view.payload()).map_err(told)?;
        let has = |wanted: fn(&TcpOption<'_>) -> bool| tcp.options().any(|option| option.is_ok_and(|one| wanted(&one)));
        let scale = has(|option| matches!(option, TcpOption::WindowScale(_)));
        let sack = has(|option| matches!(option, TcpOption::SackPermitted));
        let timestamps = has(|option| matches!(option, TcpOption::Timestamps { .. }));
        Ok(Syn { heard, near, scale, sack, timestamps })
    }

    /// The next segment of the stack's that is wanted.
    fn hear(&self, patience: Duration, wanted: impl Fn(&StackSegment) -> bool) -> Option<StackSegment> {
        let limit = monotonic_ns() + patience.as_nanos() as u64;
        let mut buffer = vec![0; 65_536];
        let mut tun = self.tun.borrow_mut();
        loop {
            while let Ok(Some(length)) = tun.receive(&mut buffer) {
                if let Some(heard) = read(&buffer[..length])
                    && wanted(&heard)
                {
                    return Some(heard);
                }
            }
            let left = limit.saturating_sub(monotonic_ns());
            if left == 0 {
                return None;
            }
            wait_readable(&[tun.as_fd()], Some(Duration::from_nanos(left))).ok()?;
        }
    }
}

/// The peer's device, and a kernel that forwards between it and the stack's.
fn prepare() -> SysResult<Tun> {
    for (setting, value) in [("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")] {
        write_net_sysctl(&format!("ipv4/{setting}"), value)?;
    }
    let tun = Tun::plain(PEER_DEVICE)?;
    bring_up(PEER_DEVICE, *PEER.ip())?;
    Ok(tun)
}

fn bring_up(device: &str, behind: Ipv4Addr) -> SysResult<()> {
    let mut netlink = Netlink::open()?;
    netlink.start(device, Some(MTU), Some(1000), false)?;
    // Whoever wants to answer a packet of no known origin needs a way back.
    if device == PEER_DEVICE {
        netlink.set_route(device, Ipv4Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default())?;
    }
    netlink.set_route(device, behind.into(), 32, &RouteMetrics::default())
}

fn read(packet: &[u8]) -> Option<StackSegment> {
    let view = Ipv4View::new(packet).ok()?;
    let tcp = TcpView::new(view.payload()).ok().filter(|_| view.src() == STACK)?;
    Some(StackSegment {
        packet: packet.to_vec(),
        port: tcp.src_port(),
        seq: tcp.seq().0,
        ack: tcp.ack().0,
        flags: tcp.flags(),
        payload: tcp.payload().to_vec(),
        dont_fragment: view.dont_fragment(),
    })
}

/// An IPv4 packet around a segment.
fn around(segment: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + segment.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut packet = vec![0x45, 0, length[0], length[1], 0, 1, 0x40, 0, 64, 6, 0, 0];
    packet.extend(PEER.ip().octets());
    packet.extend(STACK.octets());
    let sum = Checksum::new().with(&packet).finish().to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend_from_slice(segment);
    packet
}

/// The peer of a connection of the stack's.
pub(super) struct Peer<'a> {
    scene: &'a Scene<'a>,
    /// The program's end.
    pub(super) near: UnixStream,
    port: u16,
    /// What is sent next.
    pub(super) seq: u32,
    /// What is expected next.
    pub(super) ack: u32,
    /// What is advertised.
    pub(super) window: u16,
}

impl<'a> Peer<'a> {
    /// Takes the stack's connection, with this window.
    pub(super) fn open(scene: &'a Scene<'a>, window: u16) -> Result<Self, String> {
        let Syn { heard, near, .. } = scene.syn()?;
        let ack = heard.seq.wrapping_add(1);
        let mut peer = Self { scene, near, port: heard.port, seq: FIRST, ack, window };
        peer.send(TcpFlags::SYN | TcpFlags::ACK, &[], 0, &[2, 4, 0x05, 0xb4]);
        peer.seq = FIRST.wrapping_add(1);
        peer.hear_that(SOON, |heard| heard.flags.has(TcpFlags::ACK) && !heard.flags.has(TcpFlags::SYN))
            .ok_or("it doesn't complete the handshake")?;
        match peer.read(1, SOON) {
            Some(byte) if byte == [CONNECTED] => Ok(peer),
            _ => Err("its connection doesn't stand".to_owned()),
        }
    }

    /// Sends a segment, so many bytes beyond what is due.
    pub(super) fn say(&mut self, flags: TcpFlags, payload: &[u8], beyond: u32) {
        self.send(flags, payload, beyond, &[]);
    }

    fn send(&mut self, flags: TcpFlags, payload: &[u8], beyond: u32, options: &[u8]) {
        let segment = Segment {
            addresses: (IpAddr::V4(*PEER.ip()), IpAddr::V4(STACK)),
            ports: (PEER.port(), self.port),
            seq: self.seq.wrapping_add(beyond),
            ack: self.ack,
            flags,
            window: self.window,
            options,
            payload_len: payload.len(),
            data: payload,
        };
        // What the kernel doesn't take is lost, and the script sees that.
        let _ = self.scene.tun.borrow_mut().send(&[IoSlice::new(&around(&segment.to_bytes()))]);
    }

    /// A router says that a packet was too big.
    pub(super) fn too_big(&mut self, packet: &[u8], mtu: u16) -> Result<(), String> {
        let message = frag_needed(packet, ROUTER, mtu).ok_or("no router would answer such a packet")?;
        self.scene.tun.borrow_mut().send(&[IoSlice::new(&message)]).map_err(told)
    }

    /// The next segment of the stack's that is wanted.
    pub(super) fn hear_that(
        &mut self,
        patience: Duration,
        wanted: impl Fn(&StackSegment) -> bool,
    ) -> Option<StackSegment> {
        let port = self.port;
        self.scene.hear(patience, |heard| heard.port == port && wanted(heard))
    }

    /// Whether so many bytes come in order; acknowledges them.
    pub(super) fn takes(&mut self, mut count: u32, patience: Duration) -> bool {
        while count > 0 {
            let due = self.ack;
            let next = |heard: &StackSegment| heard.seq == due && !heard.payload.is_empty();
            let Some(heard) = self.hear_that(patience.min(PATIENCE), next) else { return false };
            let length = u32::try_from(heard.payload.len()).unwrap_or(u32::MAX);
            self.ack = self.ack.wrapping_add(length);
            count = count.saturating_sub(length);
            self.say(TcpFlags::ACK, &[], 0);
        }
        true
    }

    /// The program sends.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.near.write_all(bytes).map_err(told)
    }

    /// What the program gets, if it gets as much.
    pub(super) fn read(&mut self, count: usize, patience: Duration) -> Option<Vec<u8>> {
        let limit = monotonic_ns() + patience.as_nanos() as u64;
        let mut bytes = vec![0; count];
        let mut filled = 0;
        while filled < count {
            match self.near.read(&mut bytes[filled..]) {
                Ok(0) => return None,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(limit)?,
                Err(_) => return None,
            }
        }
        Some(bytes)
    }

    /// Whether the program sees the end of the connection.
    pub(super) fn read_end(&mut self, patience: Duration) -> bool {
        let limit = monotonic_ns() + patience.as_nanos() as u64;
        loop {
            match self.near.read(&mut [0; 64]) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.wait(limit).is_none() {
                        return false;
                    }
                }
                Ok(0) | Err(_) => return true,
            }
        }
    }

    /// Waits for the program's end of the connection; `None` when the time is up.
    fn wait(&self, limit: u64) -> Option<()> {
        let left = limit.saturating_sub(monotonic_ns());
        if left == 0 {
            return None;
        }
        wait_readable(&[self.near.as_fd()], Some(Duration::from_nanos(left))).ok().map(drop)
    }
}
