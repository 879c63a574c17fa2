use crate::error::check;
use crate::{SysError, SysResult};
use std::io;
use std::ops::{Deref, Range};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// What a huge page is aligned to where they are 2 MiB; a mapping that is aligned to more than its pages costs nothing.
const ALIGNED: usize = 2 << 20;
/// What a pipe may hold, bytes, if the system gives it so much: an ordinary user's pipes hold 1 MiB each, and 64 MiB in all.
const PIPE: libc::c_int = 512 * 1024;

/// Bytes that never change, in memory that lies together as far as the system has huge pages: what packets borrow of it is then a few
/// long pieces rather than many pages, which both ends' kernels feel.
///
/// # Source
/// mmap(2), madvise(2) `MADV_HUGEPAGE`, mprotect(2).
#[derive(Debug)]
pub struct Payload {
    start: NonNull<u8>,
    mapped: usize,
    len: usize,
}

// SAFETY: the memory is this value's alone, and read-only from `of` on.
unsafe impl Send for Payload {}
// SAFETY: as above: nobody can write to it.
unsafe impl Sync for Payload {}

impl Payload {
    /// Memory with these bytes.
    ///
    /// # Errors
    /// [`SysError`] when there is no memory.
    pub fn of(bytes: &[u8]) -> SysResult<Self> {
        let mapped = bytes.len().max(1).next_multiple_of(ALIGNED) + ALIGNED;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: asks for a new mapping; no existing memory is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        let found = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        let start: NonNull<u8> = found.ok_or_else(|| SysError::last("map memory for payload"))?;
        let payload = Self { start, mapped, len: bytes.len() };
        let aligned = payload.aligned();
        // Without huge pages it is right, only slower.
        // SAFETY: a hint for a part of our own mapping.
        let _ = unsafe { libc::madvise(aligned.as_ptr().cast(), mapped - ALIGNED, libc::MADV_HUGEPAGE) };
        // SAFETY: the mapping has room for all bytes behind its aligned place, and nobody else knows it yet.
        unsafe { aligned.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        // SAFETY: our own mapping, of this length.
        let sealed = unsafe { libc::mprotect(start.as_ptr().cast(), mapped, libc::PROT_READ) };
        check(sealed, || "protect the payload".to_owned())?;
        Ok(payload)
    }

    fn aligned(&self) -> NonNull<u8> {
        // SAFETY: the mapping is longer than what it is moved by.
        unsafe { self.start.add(self.start.align_offset(ALIGNED)) }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes were written there, and nobody writes there again.
        unsafe { std::slice::from_raw_parts(self.aligned().as_ptr(), self.len) }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: our own mapping; what packets still borrow of it, the kernel keeps.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

/// Lends a payload's bytes to the packets of one socket, by a pipe in between.
///
/// # Source
/// vmsplice(2), splice(2), pipe(7).
#[derive(Debug)]
pub struct Lender {
    from: OwnedFd,
    into: OwnedFd,
    /// What went into the pipe and not yet to the socket, bytes.
    held: usize,
}

impl Lender {
    /// A pipe of its own.
    ///
    /// # Errors
    /// [`SysError`] when the process has no descriptors left.
    pub fn new() -> SysResult<Self> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors.
        check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, || "make a pipe".to_owned())?;
        // SAFETY: the kernel has just given us these descriptors.
        let [from, into] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        // A user who has many pipes gets small ones, which work too.
        // SAFETY: fcntl takes numbers.
        let _ = unsafe { libc::fcntl(into.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE) };
        Ok(Self { from, into, held: 0 })
    }

    /// Whether bytes of earlier calls wait; the next call sends them first, so it must go on where the last one ended.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.held > 0
    }

    /// Sends bytes of a payload, or what waits of them, to a socket: at most as many as the range has; how many the kernel took.
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` when the socket is full (it doesn't block, or as long as its timeout says), `InvalidInput` for a range
    /// that isn't in the payload.
    pub fn send(&mut self, payload: &'static Payload, socket: BorrowedFd<'_>, part: Range<usize>) -> io::Result<usize> {
        let bytes = payload.get(part).ok_or(io::ErrorKind::InvalidInput)?;
        if self.held == 0 {
            let piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            // The pipe is empty, so this never waits.
            // SAFETY: the kernel only reads the payload, which outlives every packet and never changes.
            let lent = unsafe { libc::vmsplice(self.into.as_raw_fd(), &raw const piece, 1, libc::SPLICE_F_NONBLOCK) };
            self.held = usize::try_from(lent).map_err(|_| io::Error::last_os_error())?;
        }
        let (from, to, most) = (self.from.as_raw_fd(), socket.as_raw_fd(), self.held.min(bytes.len()));
        let (no_offset, other) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: both descriptors are open, and neither has an offset.
        let sent = unsafe { libc::splice(from, no_offset, to, other, most, 0) };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        self.held -= sent.min(self.held);
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;
    use std::sync::LazyLock;

    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| (0..300_000_u32).map(|number| (number % 251) as u8).collect());
    static PAYLOAD: LazyLock<Payload> = LazyLock::new(|| Payload::of(&BYTES).unwrap());

    #[test]
    fn a_payload_is_what_was_put_in() {
        assert_eq!(&**PAYLOAD, &BYTES[..]);
        assert_eq!(PAYLOAD.as_ptr().align_offset(ALIGNED), 0);
        assert!(Payload::of(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_full_socket_loses_nothing() {
        let (to, mut from) = UnixStream::pair().unwrap();
        to.set_nonblocking(true).unwrap();
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            from.read_to_end(&mut received).unwrap();
            received
        });
        let (mut lender, mut sent, mut full) = (Lender::new().unwrap(), 0, 0);
        while sent < BYTES.len() {
            match lender.send(&PAYLOAD, to.as_fd(), sent..BYTES.len().min(sent + 100_000)) {
                Ok(n) => sent += n,
                Err(e) => {
                    assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
                    full += 1;
                    crate::poll::wait_writable(&[to.as_fd()], None).unwrap();
                }
            }
        }
        drop(to);
        assert!(!lender.holds());
        assert_eq!(reader.join().unwrap(), BYTES[..], "{full} times full");
    }

    #[test]
    fn nothing_outside_is_lent() {
        let (to, _from) = UnixStream::pair().unwrap();
        let mut lender = Lender::new().unwrap();
        let outside = lender.send(&PAYLOAD, to.as_fd(), BYTES.len()..BYTES.len() + 1);
        assert_eq!(outside.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
