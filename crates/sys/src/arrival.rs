use crate::SysResult;
use crate::clock::{monotonic_ns, monotonic_of};
use crate::error::check;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};

/// Whether the kernel notes when the bytes of a TCP connection arrive. A listener hands it on to the connections that it accepts. Where
/// no other socket of the machine asks for it, the kernel begins some milliseconds later (`net_enable_timestamp` leaves it to a
/// worker).
///
/// # Errors
/// [`SysError`](crate::SysError).
///
/// # Source
/// socket(7) `SO_TIMESTAMPNS`; for TCP the kernel's Documentation/networking/timestamping.rst.
pub fn note_arrivals(socket: &impl AsFd, noted: bool) -> SysResult<()> {
    let on = libc::c_int::from(noted);
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: reads one int from a live variable.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            length,
        )
    };
    check(result, || "have arrivals noted".to_owned()).map(drop)
}

/// Room for one timestamp beside the bytes, with the alignment that control messages need.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Reads as `Read::read` does, and says when the last of these bytes came to this host, nanoseconds of `CLOCK_MONOTONIC`: the time of
/// the reading where [`note_arrivals`] isn't on.
///
/// # Errors
/// Those of `Read::read`.
pub fn read_with_arrival(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control([0; 64]);
    // SAFETY: an all-zero msghdr is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: every pointer of the message is to something live of the length that is said.
    let got = unsafe { libc::recvmsg(stream.as_fd().as_raw_fd(), &raw mut message, 0) };
    let length = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: recvmsg has filled the control buffer up to msg_controllen.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give null or a header within the buffer.
        let (level, kind, data) = unsafe { ((*header).cmsg_level, (*header).cmsg_type, libc::CMSG_DATA(header)) };
        // SAFETY: as above; CMSG_LEN computes with numbers.
        let whole =
            unsafe { (*header).cmsg_len as usize >= libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as usize };
        if (level, kind) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) && whole {
            // SAFETY: there are as many bytes as a timespec has.
            let stamp = unsafe { data.cast::<libc::timespec>().read_unaligned() };
            return Ok((length, monotonic_of(stamp.tv_sec, stamp.tv_nsec)));
        }
        // SAFETY: `header` is one of this message.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok((length, monotonic_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::wait_readable;
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    #[test]
    fn bytes_are_as_old_as_they_are_however_late_they_are_read() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        note_arrivals(&listener, true).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let late = Duration::from_millis(20);
        let limit = monotonic_ns() + 10_000_000_000;
        // The kernel begins to note arrivals some time after it is asked to.
        let (before, at, written) = loop {
            let before = monotonic_ns();
            client.write_all(b"early").unwrap();
            let written = monotonic_ns();
            // Nobody reads for a while: what is waited for never comes.
            wait_readable(&[], Some(late)).unwrap();
            let read = monotonic_ns();
            let (length, at) = read_with_arrival(&server, &mut [0; 16]).unwrap();
            assert_eq!(length, 5);
            if at < read {
                break (before, at, written);
            }
            assert!(read < limit, "no arrival is noted");
        };
        // Both clocks are read for the conversion, which may be some microseconds off.
        assert!(at + 5_000_000 >= before && at <= written + 5_000_000, "{before} {at} {written}");
        // Without it, when it is read counts.
        note_arrivals(&server, false).unwrap();
        client.write_all(b"late").unwrap();
        let written = monotonic_ns();
        let (_, at) = read_with_arrival(&server, &mut [0; 16]).unwrap();
        assert!(at + 5_000_000 >= written, "{written} {at}");
    }
}
