use crate::error::check;
use crate::tun::interface_request;
use crate::vnet::VNET_LEN;
use crate::{SysError, SysResult};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TPACKET_V2: libc::c_int = 1;
const STATUS_KERNEL: u32 = 0;
const STATUS_USER: u32 = 1;

/// Bytes of one ring frame: a 64 KiB super-packet with all its headers, in whole pages.
const FRAME: usize = 17 * 4096;
const FRAMES_PER_BLOCK: usize = 16;
const BLOCKS: usize = 16;
const RING: usize = FRAME * FRAMES_PER_BLOCK * BLOCKS;

/// `struct tpacket_req` of linux/if_packet.h.
#[repr(C)]
struct RingRequest {
    block_size: libc::c_uint,
    block_count: libc::c_uint,
    frame_size: libc::c_uint,
    frame_count: libc::c_uint,
}

/// `struct tpacket2_hdr` of linux/if_packet.h.
#[repr(C)]
struct FrameHeader {
    status: AtomicU32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    sec: u32,
    nsec: u32,
    vlan_tci: u16,
    vlan_tpid: u16,
    padding: [u8; 4],
}

/// The frames of one network device of this thread's network namespace, with a
/// [`VnetHeader`](crate::vnet::VnetHeader) before each: a `TPACKET_V2` ring to receive, `sendmsg` to send.
///
/// Version 3 of the ring holds packets back until a block is full or a timer fires, which ruins delays.
///
/// # Source
/// Documentation/networking/packet_mmap.rst of Linux; packet(7).
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    ring: NonNull<u8>,
    next: usize,
}

// SAFETY: the ring belongs to this value alone, and the kernel doesn't care which thread reads it.
unsafe impl Send for PacketPort {}

impl PacketPort {
    /// Opens the device.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_NET_RAW`, `ENODEV` when there is no such device.
    pub fn open(device: &str) -> SysResult<Self> {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0 receives nothing until the socket is bound to its one device.
        // SAFETY: socket takes numbers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }, || "open a packet socket".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        for (option, value) in
            [(PACKET_VERSION, TPACKET_V2), (PACKET_VNET_HDR, 1), (PACKET_IGNORE_OUTGOING, 1), (PACKET_QDISC_BYPASS, 1)]
        {
            set(&socket, option, &value)?;
        }
        let request = RingRequest {
            block_size: (FRAME * FRAMES_PER_BLOCK) as libc::c_uint,
            block_count: BLOCKS as libc::c_uint,
            frame_size: FRAME as libc::c_uint,
            frame_count: (FRAMES_PER_BLOCK * BLOCKS) as libc::c_uint,
        };
        set(&socket, PACKET_RX_RING, &request)?;
        let ring = map(&socket)?;
        let port = Self { socket, ring, next: 0 };
        port.bind(device, protocol)?;
        Ok(port)
    }

    fn bind(&self, device: &str, protocol: u16) -> SysResult<()> {
        let mut request = interface_request(device)?;
        // SAFETY: SIOCGIFINDEX reads the name from and writes the index to one ifreq.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCGIFINDEX, &raw mut request) };
        check(result, || format!("find the device {device}"))?;
        // SAFETY: an all-zero sockaddr_ll is valid; the union holds the index that the kernel has just written.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        // SAFETY: as above.
        address.sll_ifindex = unsafe { request.ifr_ifru.ifru_ifindex };
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call and has the length that we say.
        let result = unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length) };
        check(result, || format!("bind a packet socket to {device}")).map(drop)
    }

    /// Copies one frame with its header into `buffer`; `None` if there is none now. A frame longer than the buffer is
    /// cut.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: `next` is below the number of frames, so the pointer stays in the ring and is aligned to 16.
        let frame = unsafe { self.ring.add(self.next * FRAME) };
        // SAFETY: each frame begins with a header; the kernel writes `status` last, which we read with Acquire.
        let header = unsafe { frame.cast::<FrameHeader>().as_ref() };
        if header.status.load(Ordering::Acquire) & STATUS_USER == 0 {
            return None;
        }
        let start = usize::from(header.mac).saturating_sub(VNET_LEN);
        let length = (header.snaplen as usize + VNET_LEN).min(buffer.len()).min(FRAME - start.min(FRAME));
        // SAFETY: start + length is at most FRAME, and the frame is ours until we give it back.
        let bytes = unsafe { std::slice::from_raw_parts(frame.add(start).as_ptr(), length) };
        buffer[..length].copy_from_slice(bytes);
        header.status.store(STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % (FRAMES_PER_BLOCK * BLOCKS);
        Some(length)
    }

    /// Sends one frame, its [`VnetHeader`](crate::vnet::VnetHeader) first.
    ///
    /// # Errors
    /// The kernel's, when it doesn't take the frame.
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        // SAFETY: an all-zero msghdr is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        // IoSlice is guaranteed to have the layout of iovec; sendmsg only reads through it.
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len();
        // SAFETY: the message points to `parts`, which live through the call.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Frames that found the ring full since this was last asked.
    pub fn take_drops(&mut self) -> u64 {
        let mut counts = [0u32; 2];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: PACKET_STATISTICS writes two u32.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result == 0 { u64::from(counts[1]) } else { 0 }
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PacketPort {
    fn drop(&mut self) {
        // SAFETY: the ring was mapped with this length and nobody holds a reference into it.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), RING) };
    }
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> SysResult<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: reads `length` bytes from a live value; every caller passes the type that the option takes.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, std::ptr::from_ref(value).cast(), length)
    };
    check(result, || format!("set option {option} of a packet socket")).map(drop)
}

fn map(socket: &OwnedFd) -> SysResult<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: asks for a new mapping of the ring; no existing memory is touched.
    let address =
        unsafe { libc::mmap(std::ptr::null_mut(), RING, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED {
        return Err(SysError::last("map the ring of a packet socket"));
    }
    NonNull::new(address.cast()).ok_or_else(|| SysError::last("map the ring of a packet socket"))
}
