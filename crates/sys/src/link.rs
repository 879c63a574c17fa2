use crate::netlink::Netlink;
use crate::rtattr::{RawMessage, attributes, push, text_of, u32_of};
use crate::{SysError, SysResult};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use std::net::IpAddr;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_QDISC: u16 = 6;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_EXT_MASK: u16 = 29;
const IFLA_CARRIER: u16 = 33;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_MIN_MTU: u16 = 50;
const IFLA_MAX_MTU: u16 = 51;
const IFLA_INFO_KIND: u16 = 1;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// `TC_H_ROOT`: the parent of the qdisc that a device sends through.
const ROOT: u32 = 0xffff_ffff;

/// Kinds of devices whose MTU the kernel lowers along with that of the device below, and doesn't raise again.
///
/// # Source
/// `NETDEV_CHANGEMTU` in `vlan_device_event()`, `macvlan_device_event()`, `ipvlan_device_event()` and `macsec_notify()` of Linux.
const BOUND_KINDS: [&str; 6] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"];

/// Lengths of `struct ifinfomsg`, `struct ifaddrmsg` and `struct tcmsg`.
const LINK_HEAD: usize = 16;
const ADDRESS_HEAD: usize = 8;
const QDISC_HEAD: usize = 20;

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its index, which no other device of this namespace gets as long as this one lives.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// What it is, of virtual devices: `veth`, `bridge`, `wireguard`, …
    pub kind: Option<String>,
    /// The device of this namespace that it lies on, of those whose MTU can't exceed that of the other: `vlan`, `macvlan`, …
    pub lower: Option<u32>,
    /// The device of which it is a part: a bridge of which it is a port.
    pub master: Option<u32>,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Least MTU that the driver takes, if it says so.
    pub min_mtu: Option<u32>,
    /// Largest MTU that the driver takes, if it says so.
    pub max_mtu: Option<u32>,
    /// Name of the root qdisc.
    pub qdisc: String,
    /// Packets that the default qdisc holds.
    pub tx_queue_len: u32,
    /// Its hardware address.
    pub address: Vec<u8>,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether there is a signal.
    pub carrier: bool,
    /// Whether it is the host's own loopback.
    pub loopback: bool,
}

/// An address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkAddress {
    /// The device's index.
    pub device: u32,
    /// The address.
    pub address: IpAddr,
    /// Bits of the network.
    pub prefix: u8,
}

/// A queueing discipline of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// The device's index.
    pub device: u32,
    /// Its handle; 0 for one that the kernel chose itself.
    pub handle: u32,
    /// The qdisc or class that it is attached to.
    pub parent: u32,
    /// `fq`, `fq_codel`, `pfifo_fast`, …
    pub kind: String,
    /// Its parameters as the kernel describes them.
    pub options: Vec<u8>,
}

impl Qdisc {
    /// Whether the device sends through it.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }
}

impl Netlink {
    /// The devices of this network namespace.
    ///
    /// # Errors
    /// [`SysError`]; `EAGAIN` when they change all the time.
    pub fn links(&mut self) -> SysResult<Vec<Link>> {
        /// `RTEXT_FILTER_SKIP_STATS`: counters aren't wanted.
        const NO_STATISTICS: u32 = 8;
        let mut body = vec![0; LINK_HEAD];
        push(&mut body, IFLA_EXT_MASK, &NO_STATISTICS.to_ne_bytes());
        let answers = self.raw_dump(&RawMessage { kind: RTM_GETLINK, body }, "list the devices")?;
        Ok(answers.iter().filter_map(|message| link(&message.body)).collect())
    }

    /// The addresses of all devices.
    ///
    /// # Errors
    /// [`SysError`]; `EAGAIN` when they change all the time.
    pub fn addresses(&mut self) -> SysResult<Vec<LinkAddress>> {
        let request = RawMessage { kind: RTM_GETADDR, body: vec![0; ADDRESS_HEAD] };
        let answers = self.raw_dump(&request, "list the addresses")?;
        Ok(answers.iter().filter_map(|message| link_address(&message.body)).collect())
    }

    /// The queueing disciplines of all devices.
    ///
    /// # Errors
    /// [`SysError`]; `EAGAIN` when they change all the time.
    pub fn qdiscs(&mut self) -> SysResult<Vec<Qdisc>> {
        let request = RawMessage { kind: RTM_GETQDISC, body: vec![0; QDISC_HEAD] };
        let answers = self.raw_dump(&request, "list the queueing disciplines")?;
        Ok(answers.iter().filter_map(|message| qdisc(&message.body)).collect())
    }

    /// Sets the largest packet of a device.
    ///
    /// # Errors
    /// [`SysError`]; `EINVAL` outside of what the driver takes.
    pub fn set_mtu(&mut self, device: u32, mtu: u32) -> SysResult<()> {
        self.set_link(device, IFLA_MTU, mtu, &format!("set the MTU of device {device} to {mtu}"))
    }

    /// Sets the queue length of a device.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn set_queue_len(&mut self, device: u32, packets: u32) -> SysResult<()> {
        self.set_link(device, IFLA_TXQLEN, packets, &format!("set the queue length of device {device} to {packets}"))
    }

    fn set_link(&mut self, device: u32, attribute: u16, value: u32, doing: &str) -> SysResult<()> {
        let mut body = vec![0; LINK_HEAD];
        body[4..8].copy_from_slice(&device.to_ne_bytes());
        push(&mut body, attribute, &value.to_ne_bytes());
        self.raw_change(RawMessage { kind: RTM_NEWLINK, body }, 0, doing)
    }

    /// Makes a queueing discipline the root of its device, in the place of whatever is there.
    ///
    /// # Errors
    /// [`SysError`]; `ENOENT` where the kernel doesn't have the kind, `EINVAL` for parameters that it doesn't take.
    pub fn set_root_qdisc(&mut self, qdisc: &Qdisc) -> SysResult<()> {
        let mut body = qdisc_head(qdisc.device, qdisc.handle);
        push(&mut body, TCA_KIND, &[qdisc.kind.as_bytes(), &[0]].concat());
        if !qdisc.options.is_empty() {
            push(&mut body, TCA_OPTIONS, &qdisc.options);
        }
        let doing = format!("make {} the qdisc of device {}", qdisc.kind, qdisc.device);
        self.raw_change(RawMessage { kind: RTM_NEWQDISC, body }, NLM_F_CREATE | NLM_F_REPLACE, &doing)
    }

    /// Removes the root qdisc, upon which the kernel puts its default in its place.
    ///
    /// # Errors
    /// [`SysError`]; `ENOENT` when it is the default already.
    pub fn remove_root_qdisc(&mut self, device: u32) -> SysResult<()> {
        let doing = format!("remove the qdisc of device {device}");
        self.raw_change(RawMessage { kind: RTM_DELQDISC, body: qdisc_head(device, 0) }, 0, &doing)
    }
}

fn qdisc_head(device: u32, handle: u32) -> Vec<u8> {
    let mut head = vec![0; 4];
    head.extend(device.to_ne_bytes());
    head.extend(handle.to_ne_bytes());
    head.extend(ROOT.to_ne_bytes());
    head.extend([0; 4]);
    head
}

fn link(body: &[u8]) -> Option<Link> {
    const IFF_UP: u32 = 1;
    const IFF_LOOPBACK: u32 = 8;
    let flags = body.get(8..12).and_then(u32_of)?;
    let mut link = Link {
        index: body.get(4..8).and_then(u32_of)?,
        name: String::new(),
        kind: None,
        lower: None,
        master: None,
        mtu: 0,
        min_mtu: None,
        max_mtu: None,
        qdisc: String::new(),
        tx_queue_len: 0,
        address: Vec::new(),
        up: flags & IFF_UP != 0,
        carrier: false,
        loopback: flags & IFF_LOOPBACK != 0,
    };
    let mut is_elsewhere = false;
    for (kind, value) in attributes(body.get(LINK_HEAD..)?) {
        match kind {
            IFLA_LINK => link.lower = u32_of(value),
            IFLA_MASTER => link.master = u32_of(value),
            IFLA_LINK_NETNSID => is_elsewhere = true,
            IFLA_ADDRESS => link.address = value.to_vec(),
            IFLA_IFNAME => link.name = text_of(value),
            IFLA_MTU => link.mtu = u32_of(value)?,
            IFLA_QDISC => link.qdisc = text_of(value),
            IFLA_TXQLEN => link.tx_queue_len = u32_of(value)?,
            IFLA_CARRIER => link.carrier = value.first() == Some(&1),
            // 0 says that the driver knows no limit.
            IFLA_MIN_MTU => link.min_mtu = u32_of(value).filter(|mtu| *mtu > 0),
            IFLA_MAX_MTU => link.max_mtu = u32_of(value).filter(|mtu| *mtu > 0),
            IFLA_LINKINFO => {
                link.kind = attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND).map(|(_, text)| text_of(text));
            }
            _ => {}
        }
    }
    let is_bound = link.kind.as_ref().is_some_and(|kind| BOUND_KINDS.contains(&kind.as_str()));
    link.lower = link.lower.filter(|_| is_bound && !is_elsewhere);
    Some(link)
}

fn link_address(body: &[u8]) -> Option<LinkAddress> {
    let find = |wanted| attributes(body.get(ADDRESS_HEAD..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    // The own address of a point-to-point link is in IFA_LOCAL, IPv6 has IFA_ADDRESS only.
    let bytes = find(IFA_LOCAL).or_else(|| find(IFA_ADDRESS))?;
    let address = match bytes.len() {
        4 => IpAddr::from(*bytes.first_chunk::<4>()?),
        16 => IpAddr::from(*bytes.first_chunk::<16>()?),
        _ => return None,
    };
    Some(LinkAddress { device: body.get(4..8).and_then(u32_of)?, address, prefix: *body.get(1)? })
}

fn qdisc(body: &[u8]) -> Option<Qdisc> {
    let field = |at: usize| body.get(at..at + 4).and_then(u32_of);
    let mut qdisc =
        Qdisc { device: field(4)?, handle: field(8)?, parent: field(12)?, kind: String::new(), options: Vec::new() };
    for (kind, value) in attributes(body.get(QDISC_HEAD..)?) {
        match kind {
            TCA_KIND => qdisc.kind = text_of(value),
            TCA_OPTIONS => qdisc.options = value.to_vec(),
            _ => {}
        }
    }
    Some(qdisc)
}

/// The message for a device that isn't there.
#[must_use]
pub fn no_such_device(name: &str) -> SysError {
    SysError { doing: format!("find the device {name}"), source: std::io::Error::from_raw_os_error(libc::ENODEV) }
}
