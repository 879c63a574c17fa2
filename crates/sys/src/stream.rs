use crate::error::check;
use crate::tcp::{TcpInfo, TcpSocket, reset_on_close};
use crate::{SysError, SysResult};
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// `SO_TXREHASH` of the kernel's asm-generic/socket.h, which libc doesn't name everywhere.
const SO_TXREHASH: libc::c_int = 74;
/// `TCP_ESTABLISHED` of the kernel's `tcp_states.h`.
const ESTABLISHED: u8 = 1;

/// A TCP connection that sends one packet of data of a given length and sees whether it is acknowledged: what an ordinary
/// user has in place of raw sockets. It is reset when dropped.
///
/// What is retransmitted takes the same branch as before, past routers that choose it by IPv6's flow label, where the kernel lets a
/// connection keep that (Linux 5.18 or newer; others change it with every timeout).
///
/// # Source
/// tcp(7) `TCP_INFO`, `TCP_NODELAY`; ip(7) `IP_PMTUDISC_DO`; `SO_TXREHASH` and `sk_rethink_txhash()` of include/net/sock.h, RFC 6438.
#[derive(Debug)]
pub struct DataProbe {
    stream: TcpStream,
    peer: SocketAddr,
    v6: bool,
    sent: bool,
    /// The round-trip time of the handshake, as the kernel measured it, µs; 0 before.
    handshake_us: u32,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataState {
    /// The connection isn't there yet, or the data isn't acknowledged.
    Waiting,
    /// The target refused the connection, or ended it.
    Refused,
    /// The connection is there, and nothing has been sent.
    Open {
        /// The longest packet that this kernel sends at once, bytes.
        longest: u16,
        /// The MSS that the target named, if that is what limits packets, and not this host.
        mss: Option<u16>,
    },
    /// What was sent is acknowledged, but this host's kernel had cut it into several packets.
    Split,
    /// What was sent is acknowledged.
    Acknowledged {
        /// Whether the kernel sent it more than once, so that it may have gone in smaller pieces.
        again: bool,
    },
}

impl DataProbe {
    /// Begins to connect.
    ///
    /// # Errors
    /// [`SysError`]; `EMFILE` when there are too many.
    pub fn open(peer: SocketAddr) -> SysResult<Self> {
        let socket = TcpSocket::new(&peer)?;
        let v6 = peer.is_ipv6();
        let (level, option, whole) = if v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
        } else {
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
        };
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: reads one int from a live variable.
        let result =
            unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw const whole).cast(), length) };
        check(result, || "forbid fragments of a TCP probe".to_owned())?;
        // A kernel that doesn't know it goes on with labels that change.
        let _ = crate::tcp::set(&socket, libc::SOL_SOCKET, SO_TXREHASH, 0, "keep a TCP probe's flow label");
        let stream = socket.begin_connect(&peer)?;
        let io = |what: &str| SysError::io(what.to_owned());
        stream.set_nodelay(true).map_err(io("set TCP_NODELAY of a TCP probe"))?;
        reset_on_close(&stream)?;
        Ok(Self { stream, peer, v6, sent: false, handshake_us: 0 })
    }

    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> DataState {
        if !matches!(self.stream.take_error(), Ok(None)) {
            return DataState::Refused;
        }
        let Ok(info) = TcpInfo::read(&self.stream) else { return DataState::Refused };
        if info.state != ESTABLISHED {
            return if self.sent { DataState::Refused } else { DataState::Waiting };
        }
        if !self.sent {
            let headers = self.headers(&info);
            let longest = info.snd_mss.saturating_add(headers);
            let number = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
            // The named MSS doesn't count the options that each segment has.
            let plain = if self.v6 { 60 } else { 40 };
            let mss = (longest < info.pmtu).then(|| number(longest.saturating_sub(plain)));
            return DataState::Open { longest: number(longest), mss };
        }
        if info.unacked > 0 || info.notsent_bytes > 0 {
            return DataState::Waiting;
        }
        if info.total_retrans > 0 {
            return DataState::Acknowledged { again: true };
        }
        // What routers say of other packets may have shortened segments since the length was asked for.
        if info.data_segs_out > 1 { DataState::Split } else { DataState::Acknowledged { again: false } }
    }

    /// The mean time of a round trip, of the handshake's and of that of data that is acknowledged, as the kernel measured it when packets came:
    /// whoever looks from time to time sees both later. `None` where the kernel hasn't measured it.
    ///
    /// # Source
    /// `tcp_rtt_estimator()` of net/ipv4/tcp_input.c: the first sample is the smoothed time, and an eighth of the second's difference is added.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        let info = TcpInfo::read(&self.stream).ok()?;
        if info.total_retrans > 0 || info.rtt == 0 {
            return None;
        }
        let trip = if self.sent {
            let of_data = (8 * u64::from(info.rtt)).saturating_sub(7 * u64::from(self.handshake_us));
            (u64::from(self.handshake_us) + of_data) / 2
        } else {
            info.rtt.into()
        };
        Some(Duration::from_micros(trip))
    }

    /// How often what was sent has left, the first time included; 0 before.
    #[must_use]
    pub fn copies(&self) -> u32 {
        let again = || TcpInfo::read(&self.stream).map_or(0, |info| info.total_retrans);
        if self.sent { 1u32.saturating_add(again()) } else { 0 }
    }

    /// Sends the beginning of a request that is never finished, as one packet of this length.
    ///
    /// # Errors
    /// [`SysError`]; `EMSGSIZE` when it doesn't fit into one packet.
    pub fn send(&mut self, ip_len: u16) -> SysResult<()> {
        let doing = || format!("send a TCP probe to {}", self.peer);
        let info = TcpInfo::read(&self.stream)?;
        let payload = u32::from(ip_len).saturating_sub(self.headers(&info)).max(1);
        if payload > info.snd_mss {
            return Err(SysError { doing: doing(), source: std::io::Error::from_raw_os_error(libc::EMSGSIZE) });
        }
        let mut bytes = b"GET / HTTP/1.1\r\nX-Probe: ".to_vec();
        bytes.resize(payload as usize, b'a');
        (self.sent, self.handshake_us) = (true, info.rtt);
        match self.stream.write(&bytes) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(SysError { doing: doing(), source: error }),
        }
    }

    /// Bytes of a packet before its payload.
    fn headers(&self, info: &TcpInfo) -> u32 {
        let plain = if self.v6 { 60 } else { 40 };
        plain + if info.timestamps() { 12 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn until(probe: &DataProbe, wanted: impl Fn(DataState) -> bool) -> DataState {
        let end = crate::clock::monotonic_ns() + 5_000_000_000;
        loop {
            let state = probe.state();
            if wanted(state) || crate::clock::monotonic_ns() > end {
                return state;
            }
            let _ = crate::poll::wait_readable(&[], Some(Duration::from_millis(1)));
        }
    }

    #[test]
    fn data_is_acknowledged_though_nobody_reads_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut probe = DataProbe::open(listener.local_addr().unwrap()).unwrap();
        let open = until(&probe, |state| state != DataState::Waiting);
        // Linux keeps segments to half of the window.
        assert!(matches!(open, DataState::Open { longest: 30_000.., .. }), "{open:?}");
        assert_eq!(probe.send(u16::MAX).unwrap_err().errno(), Some(libc::EMSGSIZE));
        assert_eq!(probe.copies(), 0);
        probe.send(1400).unwrap();
        assert_eq!(probe.copies(), 1);
        let before = crate::clock::monotonic_ns();
        let done = until(&probe, |state| state != DataState::Waiting);
        assert_eq!(done, DataState::Acknowledged { again: false });
        let trip = probe.round_trip().unwrap();
        assert!(trip > Duration::ZERO && trip < Duration::from_secs(1), "{trip:?}");
        // Whoever looks late learns nothing else.
        let _ = crate::poll::wait_readable(&[], Some(Duration::from_millis(20)));
        assert!(crate::clock::monotonic_ns() - before >= 20_000_000);
        assert_eq!(probe.round_trip(), Some(trip));
    }

    #[test]
    fn what_is_retransmitted_keeps_its_flow_label_where_the_kernel_can() {
        let listener = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
        let probe = DataProbe::open(listener.local_addr().unwrap()).unwrap();
        // Kernels before 5.18 don't know it.
        let changes = crate::tcp::get_int(&probe.stream, libc::SOL_SOCKET, SO_TXREHASH, "read SO_TXREHASH");
        assert!(!matches!(changes, Ok(1)), "{changes:?}");
    }

    #[test]
    fn a_closed_port_refuses() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let state = DataProbe::open(port).map(|probe| until(&probe, |state| state != DataState::Waiting));
        assert!(matches!(state, Ok(DataState::Refused) | Err(_)), "{state:?}");
    }
}
