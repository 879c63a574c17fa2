use crate::tls::{ServerTls, Tls};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{wait_readable, wait_writable};
use wt_trial::Cancel;

/// The latest that a wait returns to look whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Why a peer isn't heard any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The time is up.
    #[error("it took longer than it may")]
    Deadline,
    /// The user wants to stop.
    #[error("stopped by the user")]
    Cancelled,
    /// The connection broke, or TLS refuses what came.
    #[error("{0}")]
    Broken(#[from] io::Error),
}

/// A connection, plain or through TLS, on which nothing waits for longer than it may.
#[derive(Debug)]
pub(crate) struct Wire<'a> {
    ends: Ends,
    tls: Option<Box<rustls::Connection>>,
    give_up_ns: u64,
    cancel: &'a Cancel,
}

/// The socket, and what was read of it before the wire was made.
#[derive(Debug)]
struct Ends {
    socket: TcpStream,
    begun: Vec<u8>,
}

impl Read for Ends {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.begun.is_empty() {
            return self.socket.read(buffer);
        }
        let n = buffer.len().min(self.begun.len());
        buffer[..n].copy_from_slice(&self.begun[..n]);
        self.begun.drain(..n);
        Ok(n)
    }
}

impl Write for Ends {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    // The records of a flight go together, or small ones would wait for an ACK each.
    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.socket.write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Brings in what TLS wants to read, and out what it wants to write; `WouldBlock` where the socket has or takes nothing.
fn settle(tls: &mut rustls::Connection, ends: &mut Ends) -> io::Result<()> {
    if tls.is_handshaking() {
        tls.complete_io(ends)?;
    }
    while tls.wants_write() {
        tls.write_tls(ends)?;
    }
    Ok(())
}

impl<'a> Wire<'a> {
    /// Everything on it is over when the monotonic clock reads `give_up_ns`.
    pub(crate) fn new(socket: TcpStream, give_up_ns: u64, cancel: &'a Cancel) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Self::of_server(socket, Vec::new(), give_up_ns, cancel)
    }

    /// The same at the end of a server, which has read the beginning already; small writes wait as its programs have them.
    pub(crate) fn of_server(
        socket: TcpStream,
        begun: Vec<u8>,
        give_up_ns: u64,
        cancel: &'a Cancel,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { ends: Ends { socket, begun }, tls: None, give_up_ns, cancel })
    }

    /// Shakes hands; from now on everything is encrypted.
    pub(crate) fn encrypt(&mut self, tls: &Tls, host: &str) -> Result<(), WireError> {
        let session = tls.session(host)?;
        self.shake_hands(session.into())
    }

    /// The same as the server.
    pub(crate) fn accept(&mut self, tls: &ServerTls) -> Result<(), WireError> {
        let session = tls.session().map_err(io::Error::other)?;
        self.shake_hands(session.into())
    }

    fn shake_hands(&mut self, session: rustls::Connection) -> Result<(), WireError> {
        let mut session = Box::new(session);
        while session.is_handshaking() {
            match session.complete_io(&mut self.ends) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(session.wants_write())?,
                Err(error) => return Err(error.into()),
            }
        }
        self.tls = Some(session);
        Ok(())
    }

    /// What was agreed to be spoken through TLS.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.tls.as_ref().and_then(|tls| tls.alpn_protocol())
    }

    /// The socket, for its options and what the kernel knows of it.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.ends.socket
    }

    /// Until when the user is patient.
    pub(crate) fn cancel(&self) -> &'a Cancel {
        self.cancel
    }

    /// When everything on it is over.
    pub(crate) fn give_up_ns(&self) -> u64 {
        self.give_up_ns
    }

    /// Reads what is there; `WouldBlock` if that is nothing. Zero bytes are the end.
    pub(crate) fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.ends.read(buffer) };
        settle(tls, &mut self.ends)?;
        while tls.wants_read() {
            if tls.complete_io(&mut self.ends)?.0 == 0 {
                break;
            }
        }
        tls.reader().read(buffer)
    }

    /// Writes what goes in; `WouldBlock` if that is nothing.
    pub(crate) fn write_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.ends.write(bytes) };
        settle(tls, &mut self.ends)?;
        let taken = tls.writer().write(bytes)?;
        // What doesn't go now goes before the next.
        let _ = settle(tls, &mut self.ends);
        // TLS may hold so much back that it takes no more.
        if taken == 0 && !bytes.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Writes all of it.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), WireError> {
        while !bytes.is_empty() {
            match self.write_now(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(n) => bytes = &bytes[n..],
                Err(error) => self.bear(error, true)?,
            }
        }
        self.flush()
    }

    /// Hands all that TLS holds back to the kernel.
    pub(crate) fn flush(&mut self) -> Result<(), WireError> {
        while let Some(tls) = &mut self.tls
            && tls.wants_write()
        {
            if let Err(error) = tls.write_tls(&mut self.ends) {
                self.bear(error, true)?;
            }
        }
        Ok(())
    }

    /// Hands over what TLS holds back; `WouldBlock` if the kernel doesn't take all of it.
    pub(crate) fn flush_now(&mut self) -> io::Result<()> {
        while let Some(tls) = &mut self.tls
            && tls.wants_write()
        {
            tls.write_tls(&mut self.ends)?;
        }
        Ok(())
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish_writing(&mut self) -> Result<(), WireError> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush()?;
        self.ends.socket.shutdown(std::net::Shutdown::Write).map_err(WireError::from)
    }

    /// Says that nothing more will be sent, and waits until the peer does, for so long at most.
    pub(crate) fn part(&mut self, patience: Duration) {
        let limit_ns = self.give_up_ns.min(monotonic_ns() + patience.as_nanos() as u64);
        let mut rest = [0; 4096];
        let mut heard = self.finish_writing().is_ok();
        while heard && monotonic_ns() < limit_ns && !self.cancel.is_cancelled() {
            // Whatever TLS says at its end, the connection ends after it.
            heard = match self.ends.read(&mut rest) {
                Ok(n) => n > 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_until(false, limit_ns).is_ok(),
                Err(error) => error.kind() == io::ErrorKind::Interrupted,
            };
        }
    }

    /// Waits until `limit_ns` at the latest, or a glance.
    pub(crate) fn wait_until(&self, to_write: bool, limit_ns: u64) -> io::Result<()> {
        let left = Duration::from_nanos(limit_ns.saturating_sub(monotonic_ns()));
        let fds = [self.ends.socket.as_fd()];
        let timeout = Some(left.min(GLANCE));
        let ready = if to_write { wait_writable(&fds, timeout) } else { wait_readable(&fds, timeout) };
        ready.map(drop).map_err(|error| error.source)
    }

    /// What may pass is waited for; everything else is an error.
    fn bear(&self, error: io::Error, to_write: bool) -> Result<(), WireError> {
        match error.kind() {
            io::ErrorKind::WouldBlock => self.wait(to_write),
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error.into()),
        }
    }

    fn wait(&self, to_write: bool) -> Result<(), WireError> {
        if self.cancel.is_cancelled() {
            return Err(WireError::Cancelled);
        }
        if monotonic_ns() >= self.give_up_ns {
            return Err(WireError::Deadline);
        }
        Ok(self.wait_until(to_write, self.give_up_ns)?)
    }
}

/// Waits for nothing but time, unless the user wants to stop.
pub(crate) fn pause(time: Duration, cancel: &Cancel) {
    let end = monotonic_ns().saturating_add(time.as_nanos() as u64);
    loop {
        let left = end.saturating_sub(monotonic_ns());
        if left == 0 || cancel.is_cancelled() {
            return;
        }
        let _ = wait_readable(&[], Some(Duration::from_nanos(left.min(50_000_000))));
    }
}
