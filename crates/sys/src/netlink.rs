use crate::clock::monotonic_ns;
use crate::poll::wait_readable;
use crate::{SysError, SysResult};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Bytes that one reply of the kernel may have; it sends dumps in pieces of at most 32 KiB.
const REPLY: usize = 1 << 16;
/// The kernel's mark on a dump during which something changed; netlink(7).
const NLM_F_DUMP_INTR: u16 = 0x10;

/// A connection to the kernel's network configuration, in this thread's network namespace.
///
/// # Source
/// rtnetlink(7).
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl std::fmt::Debug for Netlink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Netlink").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

/// What a route to one target changes; `None` leaves it to the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteMetrics {
    /// Largest IP packet, bytes; locked, so that no ICMP lowers it.
    pub mtu: Option<u32>,
    /// Largest MSS to advertise, bytes.
    pub advmss: Option<u32>,
    /// Largest window to advertise, bytes.
    pub window: Option<u32>,
    /// Initial congestion window, segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments.
    pub initrwnd: Option<u32>,
    /// Time to live.
    pub hoplimit: Option<u32>,
    /// Congestion control; locked, so that programs can't choose another one.
    pub congctl: Option<String>,
}

impl RouteMetrics {
    fn attributes(&self) -> Vec<RouteMetric> {
        const RTAX_MTU: u32 = 2;
        const RTAX_CC_ALGO: u32 = 16;
        let mut metrics = Vec::new();
        let lock = u32::from(self.mtu.is_some()) << RTAX_MTU | u32::from(self.congctl.is_some()) << RTAX_CC_ALGO;
        if lock != 0 {
            metrics.push(RouteMetric::Lock(lock));
        }
        metrics.extend(self.mtu.map(RouteMetric::Mtu));
        metrics.extend(self.window.map(RouteMetric::Window));
        metrics.extend(self.advmss.map(RouteMetric::Advmss));
        metrics.extend(self.hoplimit.map(RouteMetric::Hoplimit));
        metrics.extend(self.initcwnd.map(RouteMetric::InitCwnd));
        metrics.extend(self.initrwnd.map(RouteMetric::InitRwnd));
        metrics.extend(self.congctl.clone().map(RouteMetric::CcAlgo));
        metrics
    }
}

impl Netlink {
    /// Connects.
    ///
    /// # Errors
    /// [`SysError`] when the process has no descriptors left.
    pub fn open() -> SysResult<Self> {
        let doing = "open a netlink socket";
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(SysError::io(doing))?;
        socket.bind_auto().map_err(SysError::io(doing))?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(SysError::io(doing))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends one message and returns what the kernel answers: a dump's pieces, or nothing for a change that it made.
    ///
    /// # Errors
    /// [`SysError`] with the kernel's error.
    pub fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        doing: &str,
    ) -> SysResult<Vec<RouteNetlinkMessage>> {
        self.exchange(message, flags, doing)
    }

    /// [`request`](Self::request) with messages of any form.
    pub(crate) fn exchange<M>(&mut self, message: M, flags: u16, doing: &str) -> SysResult<Vec<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(SysError::io(doing))?;
        self.replies(flags & NLM_F_DUMP == NLM_F_DUMP, doing)
    }

    fn replies<M: NetlinkDeserializable>(&mut self, dump: bool, doing: &str) -> SysResult<Vec<M>> {
        let mut answers = Vec::new();
        let mut torn = false;
        loop {
            let mut buffer = Vec::with_capacity(REPLY);
            self.socket.recv(&mut buffer, 0).map_err(SysError::io(doing))?;
            let mut rest = &buffer[..];
            while !rest.is_empty() {
                let reply = NetlinkMessage::<M>::deserialize(rest)
                    .map_err(|e| SysError { doing: doing.to_owned(), source: io::Error::other(e.to_string()) })?;
                let length = (reply.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or(&[]);
                if reply.header.sequence_number != self.sequence {
                    continue;
                }
                torn |= reply.header.flags & NLM_F_DUMP_INTR != 0;
                match reply.payload {
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(SysError { doing: doing.to_owned(), source: error.to_io() });
                    }
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) if torn => {
                        return Err(SysError {
                            doing: doing.to_owned(),
                            source: io::Error::from_raw_os_error(libc::EAGAIN),
                        });
                    }
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    _ => {}
                }
            }
            if !dump && !answers.is_empty() {
                return Ok(answers);
            }
        }
    }

    /// Changes something and waits until the kernel has done it.
    fn change(&mut self, message: RouteNetlinkMessage, flags: u16, doing: &str) -> SysResult<()> {
        self.request(message, flags | NLM_F_ACK, doing).map(drop)
    }

    /// The index of a device.
    ///
    /// # Errors
    /// [`SysError`]; `ENODEV` when there is none of this name.
    pub fn index(&mut self, device: &str) -> SysResult<u32> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(device.to_owned()));
        let doing = format!("find the device {device}");
        let answers = self.request(RouteNetlinkMessage::GetLink(message), 0, &doing)?;
        answers
            .into_iter()
            .find_map(
                |answer| if let RouteNetlinkMessage::NewLink(link) = answer { Some(link.header.index) } else { None },
            )
            .ok_or_else(|| SysError { doing, source: io::Error::from_raw_os_error(libc::ENODEV) })
    }

    /// Makes a pair of virtual Ethernet devices: `near` here, `far` in the other namespace.
    ///
    /// # Errors
    /// [`SysError`]; `EEXIST` when a name is taken.
    pub fn create_veth(&mut self, near: &VethEnd<'_>, far: &VethEnd<'_>, far_ns: BorrowedFd<'_>) -> SysResult<()> {
        let mut peer = far.message();
        peer.attributes.push(LinkAttribute::NetNsFd(far_ns.as_raw_fd()));
        let mut message = near.message();
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let doing = format!("create the veth pair {} and {}", near.name, far.name);
        self.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, &doing)
    }

    /// Sets a device's MTU and queue length, and starts it. `arp` off makes every packet go straight out.
    ///
    /// # Errors
    /// [`SysError`]; `EINVAL` when the device can't have this MTU.
    pub fn start(&mut self, device: &str, mtu: Option<u32>, queue_len: Option<u32>, arp: bool) -> SysResult<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(device)?;
        message.header.flags = if arp { LinkFlags::Up } else { LinkFlags::Up | LinkFlags::Noarp };
        message.header.change_mask = LinkFlags::Up | LinkFlags::Noarp;
        message.attributes.extend(mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(queue_len.map(LinkAttribute::TxQueueLen));
        self.change(RouteNetlinkMessage::SetLink(message), 0, &format!("start the device {device}"))
    }

    /// Waits until a device that was started carries packets: before, its queue drops them without a word, also those that answer. Whether
    /// it does within this time.
    ///
    /// # Errors
    /// [`SysError`]; `ENODEV` when there is none of this name.
    ///
    /// # Source
    /// `linkwatch_do_dev()` of net/core/link_watch.c of Linux: a carrier is noticed by a thread of the kernel's, which then gives the device its
    /// queue.
    pub fn wait_until_up(&mut self, device: &str, patience: Duration) -> SysResult<bool> {
        /// Between two looks.
        const LOOK: Duration = Duration::from_micros(200);
        let began = monotonic_ns();
        loop {
            let mut message = LinkMessage::default();
            message.attributes.push(LinkAttribute::IfName(device.to_owned()));
            let answers =
                self.request(RouteNetlinkMessage::GetLink(message), 0, &format!("look at the device {device}"))?;
            let is_up = |answer: &RouteNetlinkMessage| match answer {
                RouteNetlinkMessage::NewLink(link) => link.attributes.contains(&LinkAttribute::OperState(State::Up)),
                _ => false,
            };
            if answers.iter().any(is_up) {
                return Ok(true);
            }
            if u128::from(monotonic_ns() - began) > patience.as_nanos() {
                return Ok(false);
            }
            wait_readable(&[], Some(LOOK))?;
        }
    }

    /// Gives a device a hardware address.
    ///
    /// # Errors
    /// [`SysError`]; `EBUSY` where the driver changes it only while the device is down.
    pub fn set_mac(&mut self, device: &str, mac: [u8; 6]) -> SysResult<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(device)?;
        message.attributes.push(LinkAttribute::Address(mac.to_vec()));
        self.change(RouteNetlinkMessage::SetLink(message), 0, &format!("set the hardware address of {device}"))
    }

    /// Gives a device an address, without duplicate address detection.
    ///
    /// # Errors
    /// [`SysError`]; `EEXIST` when it has it already.
    pub fn add_address(&mut self, device: &str, address: IpAddr, prefix: u8) -> SysResult<()> {
        const IFA_F_NODAD: u8 = 2;
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = self.index(device)?;
        message.header.flags = netlink_packet_route::address::AddressHeaderFlags::from_bits_retain(IFA_F_NODAD);
        message.attributes.extend([AddressAttribute::Local(address), AddressAttribute::Address(address)]);
        let doing = format!("give {device} the address {address}/{prefix}");
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL, &doing)
    }

    /// Adds or replaces the route through a device to one target (or, with prefix 0, the default route).
    ///
    /// # Errors
    /// [`SysError`]; `EINVAL` for a metric that the kernel doesn't take, `ENOENT` for an unknown congestion control.
    pub fn set_route(&mut self, device: &str, target: IpAddr, prefix: u8, metrics: &RouteMetrics) -> SysResult<()> {
        let mut message = route(target, prefix);
        message.attributes.push(RouteAttribute::Oif(self.index(device)?));
        let attributes = metrics.attributes();
        if !attributes.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(attributes));
        }
        let doing = format!("set the route to {target}/{prefix} through {device}");
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE, &doing)
    }

    /// Removes the route to one target.
    ///
    /// # Errors
    /// [`SysError`]; `ESRCH` when there is none.
    pub fn remove_route(&mut self, target: IpAddr, prefix: u8) -> SysResult<()> {
        let message = route(target, prefix);
        self.change(RouteNetlinkMessage::DelRoute(message), 0, &format!("remove the route to {target}/{prefix}"))
    }
}

/// One end of a veth pair.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The device's name.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: [u8; 6],
}

impl VethEnd<'_> {
    fn message(&self) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(self.name.to_owned()));
        message.attributes.push(LinkAttribute::Address(self.mac.to_vec()));
        message
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn route(target: IpAddr, prefix: u8) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(target);
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Link;
    message.header.kind = RouteType::Unicast;
    message.header.destination_prefix_length = prefix;
    if prefix > 0 {
        message.attributes.push(RouteAttribute::Destination(match target {
            IpAddr::V4(address) => RouteAddress::Inet(address),
            IpAddr::V6(address) => RouteAddress::Inet6(address),
        }));
    }
    message
}
