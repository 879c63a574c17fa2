use crate::SysResult;
use crate::ring::{PACKET_IGNORE_OUTGOING, PACKET_VNET_HDR, PacketSocket, Ring, Shape, index_of};
use crate::vnet::VNET_LEN;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const PACKET_QDISC_BYPASS: libc::c_int = 20;

/// A frame holds a 64 KiB super-packet with all its headers, in whole pages.
const SHAPE: Shape = Shape { frame: 17 * 4096, per_block: 16, blocks: 16 };

/// The frames of one network device of this thread's network namespace, with a
/// [`VnetHeader`](crate::vnet::VnetHeader) before each: a ring to receive, `sendmsg` to send.
///
/// # Source
/// Documentation/networking/packet_mmap.rst of Linux; packet(7).
#[derive(Debug)]
pub struct PacketPort(Ring);

impl PacketPort {
    /// Opens the device.
    ///
    /// # Errors
    /// [`SysError`](crate::SysError); `EPERM` without `CAP_NET_RAW`, `ENODEV` when there is no such device.
    pub fn open(device: &str) -> SysResult<Self> {
        let socket = PacketSocket::open(libc::SOCK_RAW)?;
        for option in [PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, PACKET_QDISC_BYPASS] {
            socket.set(option, 1)?;
        }
        Ok(Self(socket.start(SHAPE, index_of(device)?)?))
    }

    /// Copies one frame with its header into `buffer`; `None` if there is none now. A frame longer than the buffer is
    /// cut.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.0.next(|frame| {
            let start = usize::from(frame.mac).saturating_sub(VNET_LEN).min(frame.bytes.len());
            let length = (frame.snaplen as usize + VNET_LEN).min(buffer.len()).min(frame.bytes.len() - start);
            buffer[..length].copy_from_slice(&frame.bytes[start..start + length]);
            length
        })
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
        let sent = unsafe { libc::sendmsg(self.0.socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// What the kernel reports of the socket, whose reads don't tell: that its device went down, as it does when it is deleted.
    ///
    /// # Errors
    /// What was reported since this was last asked.
    pub fn take_error(&self) -> io::Result<()> {
        let (mut error, mut length) = (0 as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
        let to = (&raw mut error).cast();
        // SAFETY: SO_ERROR writes one int.
        unsafe { libc::getsockopt(self.0.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, to, &raw mut length) };
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Frames that found the ring full since this was last asked.
    pub fn take_drops(&mut self) -> u64 {
        self.0.take_drops()
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
