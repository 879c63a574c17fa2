//! Sockets of `AF_PACKET`, plain or with a `TPACKET_V2` ring that the kernel fills.
//!
//! Version 3 of the ring holds packets back until a block is full or a timer fires, which ruins delays.

use crate::error::check;
use crate::{SysError, SysResult};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
pub(crate) const PACKET_VNET_HDR: libc::c_int = 15;
pub(crate) const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TPACKET_V2: libc::c_int = 1;
const STATUS_KERNEL: u32 = 0;
const STATUS_USER: u32 = 1;

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

/// How a ring is laid out: frames of so many bytes, so many of them in a block, so many blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// A multiple of 16.
    pub(crate) frame: usize,
    /// Makes a block of whole pages.
    pub(crate) per_block: usize,
    pub(crate) blocks: usize,
}

impl Shape {
    const fn frames(self) -> usize {
        self.per_block * self.blocks
    }

    const fn bytes(self) -> usize {
        self.frame * self.frames()
    }
}

/// One frame of the ring, as long as it is ours.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// How long the packet was, bytes.
    pub(crate) len: u32,
    /// How much of it is here, bytes.
    pub(crate) snaplen: u32,
    /// Where in `bytes` it begins with the device's own header.
    pub(crate) mac: u16,
    /// Where it begins without that.
    pub(crate) net: u16,
    /// When it came: seconds since the beginning of 1970, and nanoseconds.
    pub(crate) at: (u32, u32),
    /// The whole frame.
    pub(crate) bytes: &'a [u8],
}

/// A packet socket that receives nothing until it has its ring and is bound.
///
/// # Source
/// Documentation/networking/packet_mmap.rst of Linux; packet(7).
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// A socket of `SOCK_RAW` or `SOCK_DGRAM`.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_NET_RAW`.
    pub(crate) fn open(kind: libc::c_int) -> SysResult<Self> {
        let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes numbers; protocol 0 receives nothing.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }, || "open a packet socket".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Switches an option of packet sockets on, or gives it another number.
    pub(crate) fn set(&self, option: libc::c_int, value: libc::c_int) -> SysResult<()> {
        // SAFETY: a number has no pointers.
        unsafe { self.set_struct(libc::SOL_PACKET, option, &value) }
    }

    /// Lets only those packets through that the program accepts.
    pub(crate) fn attach_filter(&self, program: &mut [libc::sock_filter]) -> SysResult<()> {
        let length = libc::c_ushort::try_from(program.len()).unwrap_or(libc::c_ushort::MAX);
        let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
        // SAFETY: the program is live and at least as long as told; the kernel copies it.
        unsafe { self.set_struct(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter) }
    }

    /// Sets an option that is a structure.
    ///
    /// # Safety
    /// If the option takes pointers within it, these must be what it says they are.
    unsafe fn set_struct<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> SysResult<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: reads `length` bytes from a live value; the caller vouches for pointers within.
        let result =
            unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
        check(result, || format!("set option {option} of a packet socket")).map(drop)
    }

    /// Begins to receive one protocol (`ETH_P_…`) from a device, without a ring.
    ///
    /// # Errors
    /// [`SysError`].
    pub(crate) fn listen(self, protocol: libc::c_int, index: libc::c_int) -> SysResult<OwnedFd> {
        bind(&self.0, protocol, index)?;
        Ok(self.0)
    }

    /// Gives it its ring, and begins to receive from a device; 0 stands for all of them.
    ///
    /// # Errors
    /// [`SysError`]; `ENOMEM` when there is no memory for the ring.
    pub(crate) fn start(self, shape: Shape, index: libc::c_int) -> SysResult<Ring> {
        self.set(PACKET_VERSION, TPACKET_V2)?;
        let request = RingRequest {
            block_size: (shape.frame * shape.per_block) as libc::c_uint,
            block_count: shape.blocks as libc::c_uint,
            frame_size: shape.frame as libc::c_uint,
            frame_count: shape.frames() as libc::c_uint,
        };
        // SAFETY: `struct tpacket_req` has no pointers.
        unsafe { self.set_struct(libc::SOL_PACKET, PACKET_RX_RING, &request) }?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (fd, length) = (self.0.as_raw_fd(), shape.bytes());
        // SAFETY: asks for a new mapping of the ring; no existing memory is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, 0) };
        let mapped = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        let start = mapped.ok_or_else(|| SysError::last("map the ring of a packet socket"))?;
        let ring = Ring { socket: self.0, start, shape, next: 0 };
        bind(&ring.socket, libc::ETH_P_ALL, index)?;
        Ok(ring)
    }
}

/// Begins to receive packets of a protocol from a device.
fn bind(socket: &OwnedFd, protocol: libc::c_int, index: libc::c_int) -> SysResult<()> {
    // SAFETY: an all-zero sockaddr_ll is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = index;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address lives through the call and has the length that we say.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    check(result, || format!("bind a packet socket to device {index}")).map(drop)
}

/// The frames that have come.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) socket: OwnedFd,
    start: NonNull<u8>,
    shape: Shape,
    next: usize,
}

// SAFETY: the ring belongs to this value alone, and the kernel doesn't care which thread reads it.
unsafe impl Send for Ring {}

impl Ring {
    /// Shows the next frame, and gives it back to the kernel; `None` if there is none now.
    pub(crate) fn next<T>(&mut self, see: impl FnOnce(&Frame<'_>) -> T) -> Option<T> {
        // SAFETY: `next` is below the number of frames, so the pointer stays in the ring and is aligned to 16.
        let frame = unsafe { self.start.add(self.next * self.shape.frame) };
        // SAFETY: each frame begins with a header; the kernel writes `status` last, which we read with Acquire.
        let header = unsafe { frame.cast::<FrameHeader>().as_ref() };
        if header.status.load(Ordering::Acquire) & STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the frame has so many bytes, and nobody writes to them until we give it back.
        let bytes = unsafe { std::slice::from_raw_parts(frame.as_ptr(), self.shape.frame) };
        let FrameHeader { len, snaplen, mac, net, sec, nsec, .. } = *header;
        let seen = see(&Frame { len, snaplen, mac, net, at: (sec, nsec), bytes });
        header.status.store(STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.shape.frames();
        Some(seen)
    }

    /// Frames that found the ring full since this was last asked.
    pub(crate) fn take_drops(&mut self) -> u64 {
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

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the ring was mapped with this length and nobody holds a reference into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.shape.bytes()) };
    }
}

/// The number of a device of this thread's network namespace.
///
/// # Errors
/// [`SysError`]; `ENODEV` when there is no such device.
pub(crate) fn index_of(device: &str) -> SysResult<libc::c_int> {
    let name = std::ffi::CString::new(device).map_err(|_| SysError {
        doing: format!("find the device {device:?}"),
        source: std::io::Error::from(std::io::ErrorKind::InvalidInput),
    })?;
    // SAFETY: the name is a live C string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let index = libc::c_int::try_from(index).unwrap_or(0);
    check(if index == 0 { -1 } else { index }, || format!("find the device {device}"))
}
