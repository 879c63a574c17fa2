//! The only crate that talks to the kernel without a net: namespaces, devices, netlink, sockets, clocks.
//!
//! All `unsafe` of the project is here, each block with the reason why it is sound; every other crate forbids it. The
//! functions are thin: they say what a system call said, and decide nothing.

/// When bytes of TCP connections arrived.
pub mod arrival;
/// Processors that don't fall asleep.
pub mod awake;
/// BPF maps, programs and links.
pub mod bpf;
/// Clocks and the identity of a boot.
pub mod clock;
/// The TCP sockets of this network namespace.
pub mod diag;
/// Errors of system calls, with what was being done.
mod error;
/// Drivers: speed, rings, offloads.
pub mod ethtool;
/// Files that people name.
pub mod file;
/// What a process needs that must outlive its parent: its own session, alarms, watched directories.
pub mod guard;
/// Signals that end the program when they come again.
pub mod interrupt;
/// The kernel ends this process at a time.
pub mod kill_timer;
/// Memory that packets borrow.
pub mod lent;
/// Devices, their addresses and their queueing disciplines.
pub mod link;
/// Folders without a place.
pub mod memory_folder;
/// Which network namespaces there are.
pub mod namespaces;
/// Network devices, addresses and routes by netlink.
pub mod netlink;
/// User, network, mount and process namespaces.
pub mod ns;
/// The network that this process began in.
pub mod outside;
/// Whose process is at the other end of a connection within this host.
pub mod owner;
/// Frames of a network device by `AF_PACKET`.
pub mod packet;
/// Bytes that are sent without being copied.
pub mod pages;
/// Waiting for file descriptors with a deadline in nanoseconds.
pub mod poll;
/// Who measures on this machine.
pub mod presence;
/// Sockets for probes: raw, ping and UDP, with error queues and the kernel's timestamps.
pub mod probe;
/// Processes: identity, parents' deaths, children in namespaces.
pub mod process;
/// Addresses of names.
pub mod resolve;
/// Packet sockets, plain or with a ring.
mod ring;
/// Routes as the kernel dumps them, with all metrics, to be put back exactly.
pub mod route;
/// Messages of rtnetlink, byte by byte.
mod rtattr;
/// Rules that choose a routing table.
mod rule;
/// Packets as they arrive at a device.
pub mod sniff;
/// Socket addresses as the kernel has them.
mod sockaddr;
/// Connections that carry one packet of data, for probing without privilege.
pub mod stream;
/// Kernel settings under /proc/sys.
pub mod sysctl;
/// The TCP segments that arrive for a few ports, unmerged.
pub mod tap;
/// TCP sockets: options, and what the kernel knows of a connection.
pub mod tcp;
/// TUN devices.
pub mod tun;
/// The header that says how a packet is to be segmented and checksummed.
pub mod vnet;
/// Listening to a device's packets, both ways.
pub mod watch;
/// Wi-Fi: the rate and the strength of the signal.
pub mod wireless;

pub use error::{SysError, SysResult};
