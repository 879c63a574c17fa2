use crate::error::LoadError;
use crate::job::{Leg, OpenedConnection};
use crate::proto::{REQUEST_LEN, Request, SenderOptions};
use crate::transfer::{EndReport, Finish, Job, receive, send};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::{self, TcpSocket};
use wt_trial::{Amount, Cancel};
use wt_units::{Knob, Level, Settings};

/// A fresh connection with its settings in force.
#[derive(Debug)]
pub struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) window: Option<u32>,
    /// From the first SYN until the connection stood.
    pub connect_time: Duration,
    /// What the kernel says it set on this socket.
    pub granted: Settings,
}

/// The knobs that one socket takes.
pub(crate) const SOCKET_KNOBS: [Knob; 3] = [Knob::Rwin, Knob::Mss, Knob::Ttl];

impl Connection {
    /// Connects, with what one socket can take of the settings set before the handshake: RWIN, MSS, TTL.
    ///
    /// # Errors
    /// [`LoadError::Refused`] or [`LoadError::Connect`].
    pub fn open(peer: &SocketAddr, settings: &Settings, timeout: Duration) -> Result<Self, LoadError> {
        let own = SOCKET_KNOBS.into_iter().filter_map(|knob| Some((knob, settings.get(knob)?.clone())));
        Self::open_with_all(peer, &own.collect(), timeout)
    }

    /// Connects, with everything that one socket can take set before the handshake: also the congestion control and the
    /// send buffer, which only matter for what this end sends.
    ///
    /// # Errors
    /// [`LoadError::Refused`] or [`LoadError::Connect`].
    pub fn open_with_all(peer: &SocketAddr, settings: &Settings, timeout: Duration) -> Result<Self, LoadError> {
        let (socket, mut granted) = prepared(peer, settings)?;
        let start = monotonic_ns();
        let stream = socket.connect(peer, timeout).map_err(LoadError::Connect)?;
        let connect_time = Duration::from_nanos(monotonic_ns() - start);
        set_again(&stream, settings, &mut granted);
        // Whatever ends this process ends what is on the path.
        let _ = tcp::reset_on_close(&stream);
        if settings.number(Knob::Rwin).is_some() {
            let clamp = tcp::window_clamp(&stream).map_err(|source| LoadError::Refused { knob: Knob::Rwin, source })?;
            granted.set(Knob::Rwin, Level::Number(u64::from(clamp)));
        }
        let window = settings.number(Knob::Rwin).map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        Ok(Self { stream, window, connect_time, granted })
    }

    /// A connection that somebody else made and whose bytes come through this stream socket, be it a local one.
    #[must_use]
    pub fn through(socket: OwnedFd, connect_time: Duration) -> Self {
        Self { stream: TcpStream::from(socket), window: None, connect_time, granted: Settings::new() }
    }

    /// Sets what the sender of the payload sets, where that is this end; what the kernel refuses, and why.
    #[must_use]
    pub fn send_with(&self, sender: &SenderOptions) -> Vec<String> {
        sender.apply(&self.stream)
    }

    /// Asks our server for a connection of this purpose.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn ask(mut self, request: &Request, leg: &Leg) -> Result<OpenedConnection, LoadError> {
        let talk = matches!(leg, Leg::Talk { .. });
        let bytes = if talk { request.to_bytes_of_talk()? } else { request.to_bytes()? };
        self.stream.write_all(&bytes)?;
        let Self { stream, window, connect_time, granted } = self;
        Ok(OpenedConnection { stream, window, connect_time, granted, token: request.token })
    }

    /// The local address: the source port tells captures apart.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

/// What this kernel grants of such settings on a socket of this family, which goes nowhere: for those that another end on the
/// same kernel is going to be told.
///
/// # Errors
/// [`LoadError::Refused`], or [`LoadError::Connect`] where there is no socket.
pub fn would_grant(peer: &SocketAddr, settings: &Settings) -> Result<Settings, LoadError> {
    prepared(peer, settings).map(|(_, granted)| granted)
}

/// A socket before its handshake with all that it can take of these settings.
fn prepared(peer: &SocketAddr, settings: &Settings) -> Result<(TcpSocket, Settings), LoadError> {
    let socket = TcpSocket::new(peer).map_err(LoadError::Connect)?;
    let mut granted = Settings::new();
    for (knob, level) in settings.iter() {
        let number = u32::try_from(level.number().unwrap_or(0)).unwrap_or(u32::MAX);
        let set = match (knob, level) {
            (_, Level::Auto) => continue,
            (Knob::Rwin, _) => tcp::fix_window(&socket, number),
            (Knob::Mss, _) => tcp::set_max_segment(&socket, number),
            (Knob::Ttl, _) if peer.is_ipv6() => tcp::set_hop_limit(&socket, number),
            (Knob::Ttl, _) => tcp::set_ttl(&socket, number),
            (Knob::Sndbuf, _) => tcp::set_send_buffer(&socket, number),
            (Knob::Cc, Level::Name(name)) => tcp::set_congestion_control(&socket, name),
            _ => continue,
        };
        set.map_err(|source| LoadError::Refused { knob, source })?;
        granted.set(knob, level.clone());
    }
    Ok((socket, granted))
}

/// Sets again what the way there has set as the connection was made, whatever the socket had: a route has a congestion control, or a rule
/// for connections buffers of its own. What it doesn't give up is what was granted.
fn set_again(stream: &TcpStream, settings: &Settings, granted: &mut Settings) {
    if let Some(asked) = settings.name(Knob::Cc)
        && tcp::congestion_control(stream).is_ok_and(|now| now != asked)
        && tcp::set_congestion_control(stream, asked).is_err()
        && let Ok(now) = tcp::congestion_control(stream)
    {
        granted.set(Knob::Cc, Level::Name(now));
    }
    let number = |knob| settings.number(knob).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    if let Some(window) = number(Knob::Rwin).filter(|asked| tcp::window_clamp(stream).is_ok_and(|now| now != *asked)) {
        let _ = tcp::fix_window(stream, window);
    }
    // The kernel has twice what was asked for, within bounds: asked for once more, it grants the same.
    if let Some(buffer) = number(Knob::Sndbuf) {
        let _ = tcp::set_send_buffer(stream, buffer);
    }
}

/// Downloads as the request says. The clock begins with the request.
///
/// The connection is reset at the end, so that nothing of this trial lingers on the path.
///
/// # Errors
/// [`LoadError`]; a transfer that was cut short is a report, not an error.
pub fn download(
    connection: Connection,
    request: &Request,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<EndReport, LoadError> {
    let mut stream = connection.stream;
    let job = begin(&mut stream, request, deadline, connection.window)?;
    Ok(receive(&mut stream, &job, cancel)?)
}

/// Uploads as the request says. The server, which receives, counts, and has the clock of an upload by time. Of a size this end has it,
/// from the request to the last byte's acknowledgement. Its own bytes are those of which it knows that they have arrived.
///
/// # Errors
/// [`LoadError`]; a transfer that was cut short is a report, not an error.
pub fn upload(
    connection: Connection,
    request: &Request,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<EndReport, LoadError> {
    let mut stream = connection.stream;
    let mut refused = Vec::new();
    if let Some(name) = &request.sender.congestion_control
        && let Err(error) = tcp::set_congestion_control(&stream, name)
    {
        refused.push(error.to_string());
    }
    if let Some(size) = request.sender.send_buffer
        && let Err(error) = tcp::set_send_buffer(&stream, size)
    {
        refused.push(error.to_string());
    }
    let job = begin(&mut stream, request, deadline, None)?;
    let mut report = send(&mut stream, &job, request.sender.write_size, cancel)?;
    report.refused = refused;
    let is_whole = report.finish == Finish::Done;
    match request.amount {
        Amount::Size(_) if is_whole => {}
        Amount::Time(time) if is_whole => {
            report.bytes = acknowledged(&report);
            // It ends when the receiver's leaving is heard, a round trip after that one's time.
            report.elapsed = report.elapsed.min(time);
        }
        // Payload in a buffer has reached nobody.
        Amount::Size(_) | Amount::Time(_) => report.bytes = acknowledged(&report),
    }
    Ok(report)
}

/// Payload of an upload that was acknowledged, bytes: the kernel counts the SYN and the request, too.
fn acknowledged(report: &EndReport) -> u64 {
    report.bytes.min(report.info.bytes_acked.saturating_sub(1 + REQUEST_LEN as u64))
}

/// Sends the request, with which the clock begins.
fn begin(stream: &mut TcpStream, request: &Request, deadline: Duration, window: Option<u32>) -> Result<Job, LoadError> {
    let bytes = request.to_bytes()?;
    // Also if this process is killed meanwhile.
    tcp::reset_on_close(stream).map_err(|error| error.source)?;
    let start_ns = monotonic_ns();
    stream.write_all(&bytes)?;
    Ok(Job::alone(request.amount, start_ns, deadline, window))
}
