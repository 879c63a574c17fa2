use crate::error::check;
use crate::{SysError, SysResult};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
const TPACKET_V2: libc::c_int = 1;
const STATUS_KERNEL: u32 = 0;
const STATUS_USER: u32 = 1;
/// `TPACKET_ALIGN(sizeof(struct tpacket2_hdr))`: where the address stands in a frame.
const ADDRESS: usize = 32;

/// Bytes of a packet that are kept: all headers that are looked at.
const KEPT: u32 = 320;
/// Bytes of one ring frame: what is kept, and what the kernel puts before it.
const FRAME: usize = 512;
const BLOCK: usize = 1 << 17;
const BLOCKS: usize = 64;
const FRAMES: usize = BLOCK * BLOCKS / FRAME;
const RING: usize = BLOCK * BLOCKS;

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

/// Listens to the packets of a device, both ways, without taking part: the beginning of each, from the network header on,
/// through a ring that the kernel fills.
///
/// # Source
/// Documentation/networking/packet_mmap.rst of Linux; packet(7) for `SOCK_DGRAM`.
#[derive(Debug)]
pub struct Watch {
    socket: OwnedFd,
    ring: NonNull<u8>,
    next: usize,
}

// SAFETY: the ring belongs to this value alone, and the kernel doesn't care which thread reads it.
unsafe impl Send for Watch {}

/// A packet that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched<'a> {
    /// The number of its device.
    pub device: i32,
    /// When, nanoseconds since the beginning of 1970.
    pub at_ns: u64,
    /// What its bytes are, as an Ethernet header says it.
    pub ethertype: u16,
    /// How long it was from there on.
    pub original_len: usize,
    /// Its bytes behind the device's own header, as far as they are kept.
    pub bytes: &'a [u8],
}

impl Watch {
    /// Listens at a device, or with `any` at all of them.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_NET_RAW`, `ENODEV` when there is no such device.
    pub fn open(device: &str) -> SysResult<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0 receives nothing until the filter is there and the socket is bound.
        // SAFETY: socket takes numbers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }, || "open a packet socket".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let index = if device == "any" { 0 } else { index_of(device)? };
        let mut keep = [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: KEPT }];
        let program = libc::sock_fprog { len: 1, filter: keep.as_mut_ptr() };
        // The kernel copies the program.
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        set(&socket, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V2)?;
        let request = RingRequest {
            block_size: BLOCK as libc::c_uint,
            block_count: BLOCKS as libc::c_uint,
            frame_size: FRAME as libc::c_uint,
            frame_count: FRAMES as libc::c_uint,
        };
        set(&socket, libc::SOL_PACKET, PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for a new mapping of the ring; no existing memory is touched.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), RING, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        let mapped = NonNull::new(address.cast()).filter(|_| address != libc::MAP_FAILED);
        let ring = mapped.ok_or_else(|| SysError::last("map the ring of a packet socket"))?;
        let watch = Self { socket, ring, next: 0 };
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call and has the length that we say.
        let result = unsafe { libc::bind(watch.socket.as_raw_fd(), (&raw const address).cast(), length) };
        check(result, || format!("listen at the device {device}"))?;
        Ok(watch)
    }

    /// Hands the next packet to `see`; false if there is none now. On a loopback device each packet passes once, not once
    /// each way.
    pub fn receive(&mut self, see: impl FnOnce(&Watched<'_>)) -> bool {
        // SAFETY: `next` is below the number of frames, so the pointer stays in the ring and is aligned to 512.
        let frame = unsafe { self.ring.add(self.next * FRAME) };
        // SAFETY: each frame begins with a header; the kernel writes `status` last, which we read with Acquire.
        let header = unsafe { frame.cast::<FrameHeader>().as_ref() };
        if header.status.load(Ordering::Acquire) & STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the address stands within the frame, behind the header; it is plain numbers, read as they may lie.
        let address = unsafe { frame.add(ADDRESS).cast::<libc::sockaddr_ll>().read_unaligned() };
        let start = usize::from(header.net).min(FRAME);
        let length = (header.snaplen as usize).min(FRAME - start);
        // SAFETY: start + length is at most FRAME, and the frame is ours until we give it back.
        let bytes = unsafe { std::slice::from_raw_parts(frame.add(start).as_ptr(), length) };
        let twice = address.sll_hatype == libc::ARPHRD_LOOPBACK && address.sll_pkttype == libc::PACKET_OUTGOING;
        if !twice {
            see(&Watched {
                device: address.sll_ifindex,
                at_ns: u64::from(header.sec) * 1_000_000_000 + u64::from(header.nsec),
                ethertype: u16::from_be(address.sll_protocol),
                original_len: (header.len as usize).max(length),
                bytes,
            });
        }
        header.status.store(STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % FRAMES;
        true
    }

    /// Packets that found the ring full since this was last asked.
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

    /// Why the socket is broken, if it is: the device went down or away.
    #[must_use]
    pub fn broken(&self) -> Option<std::io::Error> {
        let mut error: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: SO_ERROR writes one int.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut error).cast(),
                &raw mut length,
            )
        };
        (result == 0 && error != 0).then(|| std::io::Error::from_raw_os_error(error))
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: the ring was mapped with this length and nobody holds a reference into it.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), RING) };
    }
}

/// The number of a device.
fn index_of(device: &str) -> SysResult<libc::c_int> {
    let name = std::ffi::CString::new(device).map_err(|_| SysError {
        doing: format!("find the device {device:?}"),
        source: std::io::Error::from(std::io::ErrorKind::InvalidInput),
    })?;
    // SAFETY: the name is a live C string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let index = libc::c_int::try_from(index).unwrap_or(0);
    check(if index == 0 { -1 } else { index }, || format!("find the device {device}"))
}

/// The name of a device; its number if it has gone.
#[must_use]
pub fn device_name(index: i32) -> String {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size that the call writes at most.
    let found = unsafe { libc::if_indextoname(index.unsigned_abs(), name.as_mut_ptr().cast()) };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    if found.is_null() { format!("#{index}") } else { String::from_utf8_lossy(&name[..end]).into_owned() }
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> SysResult<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: reads `length` bytes from a live value; every caller passes the type that the option takes.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
    check(result, || format!("set option {option} of a packet socket")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_the_loopback_device_pass_once_with_time_and_length() {
        use std::io::{Read as _, Write as _};
        use std::net::{TcpListener, TcpStream};
        let mut watch = match Watch::open("lo") {
            Ok(watch) => watch,
            Err(error) if error.errno() == Some(libc::EPERM) => {
                println!("not run: this test needs CAP_NET_RAW");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = crate::clock::unix_us();
        client.write_all(&[7; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        let mut payload = 0;
        let mut more = true;
        while more {
            more = watch.receive(|seen| {
                assert_eq!(device_name(seen.device), "lo");
                let ours = seen.ethertype == 0x0800 && seen.bytes.get(22..24) == Some(&port.to_be_bytes()[..]);
                if ours && seen.original_len > 1000 {
                    let headers = 20 + usize::from(seen.bytes[32] >> 4) * 4;
                    payload += seen.original_len - headers;
                    assert!(seen.bytes.len() <= KEPT as usize);
                    assert!((seen.at_ns / 1000).abs_diff(before as u64) < 60_000_000);
                }
            });
        }
        assert_eq!((payload, watch.take_drops()), (5000, 0));
        assert!(watch.broken().is_none());
        assert_eq!(Watch::open("no-such-device").unwrap_err().errno(), Some(libc::ENODEV));
    }
}
