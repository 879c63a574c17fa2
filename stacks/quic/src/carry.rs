use crate::crypto::SERVER;
use crate::protocol::{AdapterDone, CONNECTED};
use crate::wire::{ReceivedPacket, Wire};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ReadError,
    ServerConfig, StreamEvent, StreamId, VarInt, WriteError,
};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wt_sys::poll::{wait_many, wait_readable};

/// Bytes that are carried at once.
const AT_ONCE: usize = 64 * 1024;
/// How long one waits at most, so that nothing that was forgotten waits for ever.
const LONGEST: Duration = Duration::from_millis(500);
/// How long a program that is slow keeps the others waiting.
const ROOM: Duration = Duration::from_millis(1);

/// Which end this is.
pub(crate) enum Role {
    /// The adapter: each connection to the local socket becomes one of QUIC's.
    Near { listener: UnixListener, config: ClientConfig, server: SocketAddr },
    /// The remote end: each of QUIC's becomes one to the server.
    Far { config: ServerConfig, server: SocketAddr },
}

/// The end of a connection that isn't QUIC's.
enum Plain {
    Local(UnixStream),
    Tcp(TcpStream),
}

impl Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn end(&self) {
        let _ = match self {
            Self::Local(stream) => stream.shutdown(Shutdown::Write),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
        };
    }
}

impl AsFd for Plain {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Local(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// One connection: QUIC's, the other, and what lies between them.
struct CarriedConnection {
    connection: Connection,
    plain: Option<Plain>,
    stream: Option<StreamId>,
    /// What QUIC didn't take yet.
    out: Bytes,
    /// What the other end didn't take yet.
    waiting: Bytes,
    /// The other end sends no more, and QUIC knows.
    out_ended: bool,
    /// QUIC's end sends no more, and the other knows.
    in_ended: bool,
    /// All that was sent has been acknowledged.
    all_taken: bool,
}

impl CarriedConnection {
    fn new(connection: Connection, plain: Option<Plain>) -> Self {
        let (out, waiting) = (Bytes::new(), Bytes::new());
        Self { connection, plain, stream: None, out, waiting, out_ended: false, in_ended: false, all_taken: false }
    }

    /// Whether what the other end sends could be taken now.
    fn listens(&self) -> bool {
        self.stream.is_some() && !self.out_ended && self.out.is_empty() && self.plain.is_some()
    }
}

/// Everything that is carried.
pub(crate) struct Carrier {
    role: Role,
    wire: Wire,
    endpoint: Endpoint,
    carried: BTreeMap<usize, CarriedConnection>,
    pub(crate) done: AdapterDone,
    /// For datagrams on their way out, and bytes on their way in.
    datagram: Vec<u8>,
    buffer: Vec<u8>,
}

/// The only clock.
#[expect(clippy::disallowed_methods, reason = "quinn's protocol machine wants the time as this type")]
fn now() -> Instant {
    Instant::now()
}

impl Carrier {
    /// With datagrams of at most `largest` bytes of payload.
    ///
    /// # Errors
    /// When QUIC can't work with these.
    pub(crate) fn new(role: Role, wire: Wire, largest: u32) -> Result<Self, String> {
        let mut config = EndpointConfig::default();
        let largest = u16::try_from(largest).unwrap_or(u16::MAX);
        config.max_udp_payload_size(largest).map_err(|error| error.to_string())?;
        let server = if let Role::Far { config, .. } = &role { Some(Arc::new(config.clone())) } else { None };
        Ok(Self {
            role,
            wire,
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            carried: BTreeMap::new(),
            done: AdapterDone { done: true, connections: 0, bytes_in: 0, bytes_out: 0 },
            datagram: Vec::with_capacity(AT_ONCE),
            buffer: vec![0; AT_ONCE],
        })
    }

    /// Serves until whoever started us has gone.
    ///
    /// # Errors
    /// When the device or the socket is gone.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let stdin = io::stdin();
        loop {
            self.hear()?;
            self.accept();
            let now = now();
            let mut moved = false;
            for (key, one) in &mut self.carried {
                if one.connection.poll_timeout().is_some_and(|due| due <= now) {
                    one.connection.handle_timeout(now);
                }
                moved |= one.carry(&self.role, &mut self.buffer, &mut self.done);
                while let Some(event) = one.connection.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(ConnectionHandle(*key), event) {
                        one.connection.handle_event(event);
                    }
                }
                while let Some(transmit) = {
                    self.datagram.clear();
                    one.connection.poll_transmit(now, 1, &mut self.datagram)
                } {
                    self.wire.send(transmit.destination, &self.datagram[..transmit.size]);
                    moved = true;
                }
            }
            self.carried.retain(|_, one| !one.connection.is_drained());
            if moved {
                continue;
            }
            let due = self.carried.values_mut().filter_map(|one| one.connection.poll_timeout()).min();
            let wait = due.map_or(LONGEST, |due| due.saturating_duration_since(now)).min(LONGEST);
            let mut fds = vec![stdin.as_fd(), self.wire.as_fd()];
            if let Role::Near { listener, .. } = &self.role {
                fds.push(listener.as_fd());
            }
            let listening = self.carried.values().filter(|one| one.listens());
            fds.extend(listening.filter_map(|one| one.plain.as_ref()).map(|plain| plain.as_fd()));
            // One is precise, the other takes more than 64.
            let over = if fds.len() <= 64 {
                wait_readable(&fds, Some(wait)).map_err(|error| error.to_string())? & 1 != 0
            } else {
                wait_many(&fds, Some(wait)).map_err(|error| error.to_string())?.contains(&0)
            };
            if over && is_over() {
                return Ok(());
            }
        }
    }

    /// Takes what has come.
    fn hear(&mut self) -> Result<(), String> {
        let mut packet = vec![0; 65_536];
        loop {
            let (bytes, from) = match self.wire.receive(&mut packet)? {
                ReceivedPacket::Datagram(bytes, from) => (BytesMut::from(bytes), from),
                ReceivedPacket::Other => continue,
                ReceivedPacket::Nothing => return Ok(()),
            };
            self.datagram.clear();
            match self.endpoint.handle(now(), from, None, None, bytes, &mut self.datagram) {
                Some(DatagramEvent::ConnectionEvent(ConnectionHandle(key), event)) => {
                    if let Some(one) = self.carried.get_mut(&key) {
                        one.connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.datagram.clear();
                    match self.endpoint.accept(incoming, now(), &mut self.datagram, None) {
                        Ok((ConnectionHandle(key), connection)) => {
                            self.done.connections += 1;
                            self.carried.insert(key, CarriedConnection::new(connection, None));
                        }
                        Err(error) => {
                            if let Some(transmit) = error.response {
                                self.wire.send(transmit.destination, &self.datagram[..transmit.size]);
                            }
                        }
                    }
                }
                Some(DatagramEvent::Response(transmit)) => {
                    self.wire.send(transmit.destination, &self.datagram[..transmit.size]);
                }
                None => {}
            }
        }
    }

    /// Takes whoever wants a connection.
    fn accept(&mut self) {
        let Role::Near { listener, config, server } = &self.role else { return };
        while let Ok((stream, _)) = listener.accept() {
            let connected = self.endpoint.connect(now(), config.clone(), *server, SERVER);
            if let (Ok(()), Ok((ConnectionHandle(key), connection))) = (stream.set_nonblocking(true), connected) {
                self.done.connections += 1;
                self.carried.insert(key, CarriedConnection::new(connection, Some(Plain::Local(stream))));
            }
        }
    }
}

impl CarriedConnection {
    /// Carries what can be carried now; whether there may be more.
    fn carry(&mut self, role: &Role, buffer: &mut [u8], done: &mut AdapterDone) -> bool {
        let mut moved = false;
        while let Some(event) = self.connection.poll() {
            moved = true;
            let kept = match event {
                Event::Connected => self.connected(),
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => self.opened(role),
                Event::Stream(StreamEvent::Finished { .. }) => {
                    self.all_taken = true;
                    true
                }
                Event::ConnectionLost { .. } => {
                    // What has come before is still to be read; then the other end sees us leave.
                    self.carry_in(done);
                    self.plain = None;
                    true
                }
                _ => true,
            };
            if !kept {
                self.close(1);
            }
        }
        if self.stream.is_some() && self.plain.is_some() {
            let kept = self.carry_out(buffer, done, &mut moved) && {
                moved |= self.carry_in(done);
                self.plain.is_some()
            };
            if !kept {
                self.close(1);
            } else if self.out_ended && self.in_ended && self.all_taken {
                self.close(0);
            }
        }
        moved
    }

    /// Leaves, with this reason.
    fn close(&mut self, reason: u32) {
        self.plain = None;
        if !self.connection.is_closed() {
            self.connection.close(now(), VarInt::from_u32(reason), Bytes::new());
        }
    }

    /// The handshake is done: the adapter opens the stream.
    fn connected(&mut self) -> bool {
        let Some(plain) = &mut self.plain else { return true };
        self.stream = self.connection.streams().open(Dir::Bi);
        self.stream.is_some() && matches!(plain.write(&[CONNECTED]), Ok(1))
    }

    /// The adapter has opened the stream: the remote end connects to the server.
    fn opened(&mut self, role: &Role) -> bool {
        let (Role::Far { server, .. }, None) = (role, self.stream) else { return true };
        self.stream = self.connection.streams().accept(Dir::Bi);
        let opened = TcpStream::connect(server).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        self.plain = opened.ok().map(Plain::Tcp);
        self.plain.is_some()
    }

    /// False when the connection can't go on.
    fn carry_out(&mut self, buffer: &mut [u8], done: &mut AdapterDone, moved: &mut bool) -> bool {
        let (Some(id), Some(plain)) = (self.stream, &mut self.plain) else { return true };
        while !self.out_ended {
            if self.out.is_empty() {
                match plain.read(buffer) {
                    Ok(0) => {
                        self.out_ended = true;
                        *moved = true;
                        return self.connection.send_stream(id).finish().is_ok();
                    }
                    Ok(length) => self.out = Bytes::copy_from_slice(&buffer[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(_) => return false,
                }
            }
            let mut chunks = [std::mem::take(&mut self.out)];
            let written = self.connection.send_stream(id).write_chunks(&mut chunks);
            let [rest] = chunks;
            self.out = rest;
            match written {
                Ok(written) => {
                    done.bytes_out += written.bytes as u64;
                    *moved |= written.bytes > 0;
                }
                Err(WriteError::Blocked) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// From QUIC to the other end; whether something was. Without the other end when it has gone.
    fn carry_in(&mut self, done: &mut AdapterDone) -> bool {
        let (Some(id), Some(plain)) = (self.stream, &mut self.plain) else { return false };
        let mut moved = false;
        while !self.in_ended {
            if self.waiting.is_empty() {
                let mut stream = self.connection.recv_stream(id);
                let Ok(mut chunks) = stream.read(true) else { return moved };
                let next = chunks.next(AT_ONCE);
                let _ = chunks.finalize();
                match next {
                    Ok(Some(chunk)) => self.waiting = chunk.bytes,
                    Ok(None) => {
                        plain.end();
                        self.in_ended = true;
                        return true;
                    }
                    Err(ReadError::Blocked) => return moved,
                    Err(ReadError::Reset(_)) => {
                        self.plain = None;
                        return true;
                    }
                }
            }
            match plain.write(&self.waiting) {
                Ok(length) => {
                    let _ = self.waiting.split_to(length);
                    done.bytes_in += length as u64;
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // It is slow, and QUIC shall feel it.
                    let _ = wt_sys::poll::wait_writable(&[plain.as_fd()], Some(ROOM));
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.plain = None;
                    return true;
                }
            }
        }
        moved
    }
}

/// Whether whoever started us has gone, or wants us to.
fn is_over() -> bool {
    matches!(io::stdin().lock().read(&mut [0; 64]), Ok(0) | Err(_))
}
