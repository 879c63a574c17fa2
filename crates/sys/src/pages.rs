use crate::error::check;
use crate::{SysError, SysResult};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};

/// Bytes that never change, in pages that the kernel sends without copying them.
///
/// # Source
/// memfd_create(2), fcntl(2) `F_ADD_SEALS`, sendfile(2).
#[derive(Debug)]
pub struct Pages {
    file: File,
    len: usize,
}

impl Pages {
    /// Pages with these bytes.
    ///
    /// # Errors
    /// [`SysError`] when the process has no descriptors or memory left.
    pub fn of(bytes: &[u8]) -> SysResult<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string that lives through the call.
        let fd = check(unsafe { libc::memfd_create(c"payload".as_ptr(), flags) }, || "make a memfd".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        let mut file = unsafe { File::from_raw_fd(fd) };
        file.write_all(bytes).map_err(SysError::io("fill a memfd"))?;
        let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: fcntl takes numbers.
        let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
        check(sealed, || "seal a memfd".to_owned())?;
        Ok(Self { file, len: bytes.len() })
    }

    /// Sends up to `len` bytes from `offset` on to a socket; how many the kernel took.
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` when a non-blocking socket is full, `InvalidInput` beyond the end.
    pub fn send(&self, socket: BorrowedFd<'_>, offset: usize, len: usize) -> io::Result<usize> {
        if offset >= self.len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut from = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: `from` lives through the call; the descriptors are open.
        let sent = unsafe { libc::sendfile(socket.as_raw_fd(), self.file.as_raw_fd(), &raw mut from, len) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_sent_is_what_was_put_in() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
        let pages = Pages::of(&bytes).unwrap();
        let (to, mut from) = UnixStream::pair().unwrap();
        let sent = pages.send(to.as_fd(), 4_097, 10_000).unwrap();
        let mut received = vec![0; sent];
        from.read_exact(&mut received).unwrap();
        assert!(sent > 0);
        assert_eq!(received, bytes[4_097..4_097 + sent]);
        assert!(pages.send(to.as_fd(), bytes.len(), 1).is_err(), "there is nothing behind the end");
    }

    #[test]
    fn nobody_can_change_them() {
        let mut pages = Pages::of(b"for good").unwrap();
        assert!(pages.file.write_all(b"not").is_err());
    }
}
