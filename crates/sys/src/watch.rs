use crate::SysResult;
use crate::ring::{PacketSocket, Ring, Shape, index_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `TPACKET_ALIGN(sizeof(struct tpacket2_hdr))`: where the `sockaddr_ll` stands in a frame.
const ADDRESS: usize = 32;

/// Bytes of a packet that are kept: all headers that are looked at.
const KEPT: u32 = 320;
/// A frame holds what is kept, and what the kernel puts before it.
const SHAPE: Shape = Shape { frame: 512, per_block: 256, blocks: 64 };

/// Listens to the packets of a device, both ways, without taking part: the beginning of each, from the network header on,
/// through a ring that the kernel fills.
///
/// # Source
/// Documentation/networking/packet_mmap.rst of Linux; packet(7) for `SOCK_DGRAM`.
#[derive(Debug)]
pub struct Watch(Ring);

/// A packet that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchedPacket<'a> {
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
    /// [`SysError`](crate::SysError); `EPERM` without `CAP_NET_RAW`, `ENODEV` when there is no such device.
    pub fn open(device: &str) -> SysResult<Self> {
        let socket = PacketSocket::open(libc::SOCK_DGRAM)?;
        let index = if device == "any" { 0 } else { index_of(device)? };
        let keep = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: KEPT };
        socket.attach_filter(&mut [keep])?;
        Ok(Self(socket.start(SHAPE, index)?))
    }

    /// Hands the next packet to `see`; false if there is none now. On a loopback device each packet passes once, not once
    /// each way.
    pub fn receive(&mut self, see: impl FnOnce(&WatchedPacket<'_>)) -> bool {
        let seen = self.0.next(|frame| {
            // `struct sockaddr_ll` of packet(7): family, protocol, device, ARP type, packet type.
            let word = |at: usize| [frame.bytes[ADDRESS + at], frame.bytes[ADDRESS + at + 1]];
            let [[a, b], [c, d]] = [word(4), word(6)];
            let outgoing = frame.bytes[ADDRESS + 10] == libc::PACKET_OUTGOING;
            if u16::from_ne_bytes(word(8)) == libc::ARPHRD_LOOPBACK && outgoing {
                return;
            }
            let start = usize::from(frame.net).min(frame.bytes.len());
            let length = (frame.snaplen as usize).min(frame.bytes.len() - start);
            see(&WatchedPacket {
                device: i32::from_ne_bytes([a, b, c, d]),
                at_ns: u64::from(frame.at.0) * 1_000_000_000 + u64::from(frame.at.1),
                ethertype: u16::from_be_bytes(word(2)),
                original_len: (frame.len as usize).max(length),
                bytes: &frame.bytes[start..start + length],
            });
        });
        seen.is_some()
    }

    /// Packets that found the ring full since this was last asked.
    pub fn take_drops(&mut self) -> u64 {
        self.0.take_drops()
    }

    /// Why the socket is broken, if it is: the device went down or away.
    #[must_use]
    pub fn broken(&self) -> Option<std::io::Error> {
        let mut error: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: SO_ERROR writes one int.
        let result = unsafe {
            libc::getsockopt(
                self.0.socket.as_raw_fd(),
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
        self.0.as_fd()
    }
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
                wt_testing::not_run("net-raw", &error);
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
