use crate::error::check;
use crate::vnet::VNET_LEN;
use crate::{SysError, SysResult};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;
const IFF_TUN: libc::c_short = 0x0001;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;

/// A TUN device of this thread's network namespace: what the kernel sends into it we read, and the other way round.
///
/// Packets come with a [`VnetHeader`](crate::vnet::VnetHeader) before them and may be TCP super-packets of up to 64 KiB.
/// The device lives as long as this value, whatever kills the process.
///
/// # Source
/// Documentation/networking/tuntap.rst of Linux.
#[derive(Debug)]
pub struct Tun(File);

impl Tun {
    /// Makes the device.
    ///
    /// # Errors
    /// [`SysError`]; `EACCES` where /dev/net/tun is closed to us, `ENOENT` where it doesn't exist.
    pub fn create(name: &str) -> SysResult<Self> {
        let file = Self::open(name, IFF_VNET_HDR)?;
        let size = VNET_LEN as libc::c_int;
        // SAFETY: TUNSETVNETHDRSZ reads one int.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETVNETHDRSZ, &raw const size) };
        check(result, || format!("set the header size of {name}"))?;
        // SAFETY: TUNSETOFFLOAD takes a number.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) };
        check(result, || format!("set the offloads of {name}"))?;
        Ok(Self(file))
    }

    /// Makes the device for a stack that knows no super-packets: each packet is an IP packet as it would be on a wire,
    /// without a header before it.
    ///
    /// # Errors
    /// As [`Tun::create`].
    pub fn plain(name: &str) -> SysResult<Self> {
        Self::open(name, 0).map(Self)
    }

    fn open(name: &str, flags: libc::c_short) -> SysResult<File> {
        let path = "/dev/net/tun";
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path)
            .map_err(SysError::io(format!("open {path}")))?;
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_flags = IFF_TUN | IFF_NO_PI | flags;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which lives through the call.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) };
        check(result, || format!("create the TUN device {name}"))?;
        Ok(file)
    }

    /// Reads one packet with its header into `buffer`; `None` if there is none now.
    ///
    /// # Errors
    /// The kernel's, when the device is gone.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.read(buffer) {
            Ok(n) => Ok(Some(n)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes one packet, its header first.
    ///
    /// # Errors
    /// The kernel's, when it doesn't take the packet.
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.0.write_vectored(parts).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// An `ifreq` with the name in it.
pub(crate) fn interface_request(name: &str) -> SysResult<libc::ifreq> {
    let invalid = name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|b| b == 0 || b == b'/');
    if invalid {
        let source = io::Error::from(io::ErrorKind::InvalidInput);
        return Err(SysError { doing: format!("use {name:?} as the name of a network device"), source });
    }
    // SAFETY: an ifreq is plain data, for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
