use crate::tls::Tls;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{wait_readable, wait_writable};
use wt_trial::Cancel;

/// The latest that a wait returns to look whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Why a far end isn't heard any more.
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
    socket: TcpStream,
    tls: Option<Box<rustls::ClientConnection>>,
    give_up_ns: u64,
    cancel: &'a Cancel,
}

impl<'a> Wire<'a> {
    /// Everything on it is over when the monotonic clock reads `give_up_ns`.
    pub(crate) fn new(socket: TcpStream, give_up_ns: u64, cancel: &'a Cancel) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, tls: None, give_up_ns, cancel })
    }

    /// Shakes hands; from now on everything is encrypted.
    pub(crate) fn encrypt(&mut self, tls: &Tls, host: &str) -> Result<(), WireError> {
        let mut session = Box::new(tls.session(host)?);
        while session.is_handshaking() {
            match session.complete_io(&mut self.socket) {
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
        &self.socket
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
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).read(buffer),
            None => self.socket.read(buffer),
        }
    }

    /// Writes what goes in; `WouldBlock` if that is nothing.
    pub(crate) fn write_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => match rustls::Stream::new(tls.as_mut(), &mut self.socket).write(bytes) {
                // TLS holds so much back that it takes no more.
                Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
                other => other,
            },
            None => self.socket.write(bytes),
        }
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
            if let Err(error) = tls.write_tls(&mut self.socket) {
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
            tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish_writing(&mut self) -> Result<(), WireError> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush()?;
        self.socket.shutdown(std::net::Shutdown::Write).map_err(WireError::from)
    }

    /// Waits until `limit_ns` at the latest, or a glance.
    pub(crate) fn wait_until(&self, to_write: bool, limit_ns: u64) -> io::Result<()> {
        let left = Duration::from_nanos(limit_ns.saturating_sub(monotonic_ns()));
        let fds = [self.socket.as_fd()];
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
