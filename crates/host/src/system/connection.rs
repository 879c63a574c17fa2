//! Connections that show what is in force for those that applications make.

use super::facts::{EstablishedConnection, ObservedConnection};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use wt_sys::tcp::{self, TcpInfo, TcpSocket};
use wt_sys::{SysError, SysResult, poll};

/// Where most hosts answer, one way or the other; what is observed doesn't depend on an answer but for the congestion window.
pub(super) const PORT: u16 = 443;
/// How long an answer may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// What goes over a connection to this host: enough for its window to grow.
const PAYLOAD: usize = 4 << 20;
/// In pieces of so much.
const PIECE: usize = 16 << 10;

/// The state of a socket that has sent its SYN and heard nothing: `TCP_SYN_SENT` of the kernel's `tcp_states.h`.
const SYN_SENT: u8 = 2;
/// Bytes of timestamps in every segment, which the kernel takes off the MSS that it has announced once they are agreed to.
const TIMESTAMPS: u64 = 12;

/// A connection to a peer that is begun and withdrawn: what its SYN says.
pub(super) fn begun_to(peer: SocketAddr) -> SysResult<ObservedConnection> {
    of(&begin(peer)?)
}

fn begin(peer: SocketAddr) -> SysResult<TcpStream> {
    let socket = TcpSocket::new(&peer)?;
    tcp::reset_on_close(&socket)?;
    socket.begin_connect(&peer)
}

/// A connection to a peer: one SYN, which is withdrawn.
pub(super) fn to(peer: SocketAddr, patience: Duration) -> SysResult<ObservedConnection> {
    let stream = begin(peer)?;
    let mut observed = of(&stream)?;
    let answered = poll::wait_writable(&[std::os::fd::AsFd::as_fd(&stream)], Some(patience))? != 0;
    if answered && matches!(stream.take_error(), Ok(None)) {
        observed = ObservedConnection { established: Some(established(&TcpInfo::read(&stream)?)), ..observed };
    }
    Ok(observed)
}

/// A connection to this host, and a download over it.
pub(super) fn to_this_host() -> SysResult<ObservedConnection> {
    let failed = |error| SysError::io("connect to this host itself")(error);
    let listener = tcp::listen((Ipv4Addr::LOCALHOST, 0).into())?;
    let peer = listener.local_addr().map_err(failed)?;
    let server = std::thread::spawn(move || serve(&listener));
    let mut stream = TcpSocket::new(&peer)?.connect(&peer, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut observed = of(&stream)?;
    let mut has = established(&TcpInfo::read(&stream)?);
    let mut piece = vec![0; PIECE];
    while stream.read(&mut piece).map_err(failed)? > 0 {}
    has.greatest_window = server.join().ok().and_then(Result::ok).unwrap_or(0);
    observed.established = Some(has);
    Ok(observed)
}

/// Sends the payload; the greatest window that was offered.
fn serve(listener: &TcpListener) -> std::io::Result<u64> {
    let (mut stream, _) = listener.accept()?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let piece = vec![0; PIECE];
    let mut greatest = 0;
    for _ in 0..PAYLOAD / PIECE {
        stream.write_all(&piece)?;
        let info = TcpInfo::read(&stream).map_err(std::io::Error::other)?;
        greatest = greatest.max(u64::from(info.snd_wnd));
    }
    Ok(greatest)
}

fn of(stream: &TcpStream) -> SysResult<ObservedConnection> {
    let info = TcpInfo::read(stream)?;
    // A peer that is near may have answered already.
    let begun = info.state == SYN_SENT;
    let clamp = tcp::window_clamp(stream)?;
    // A buffer that nobody fixed grows, and the clamp with it: fix_window() leaves room for twice the window.
    let fixed = tcp::receive_buffer(stream)? >= clamp.saturating_mul(2) && clamp > 0;
    Ok(ObservedConnection {
        congestion_control: tcp::congestion_control(stream)?,
        advertised_mss: u64::from(info.advmss) + if begun || !info.timestamps() { 0 } else { TIMESTAMPS },
        path_mtu: info.pmtu.into(),
        first_window: begun.then_some(info.rcv_wnd.into()),
        window_clamp: Some(u64::from(clamp)).filter(|_| fixed),
        send_buffer: tcp::send_buffer(stream)?.into(),
        established: None,
    })
}

fn established(info: &TcpInfo) -> EstablishedConnection {
    EstablishedConnection {
        first_cwnd: info.snd_cwnd.into(),
        greatest_window: info.snd_wnd.into(),
        sack: info.sack(),
        timestamps: info.timestamps(),
        window_scaling: info.window_scale().is_some(),
        ecn: info.ecn(),
    }
}
