//! One connection on which client and server take turns. Every byte is checked: each way the payload is the pattern, as
//! one run over the whole connection, so that what is lost, doubled or mixed up between two answers is found at its byte.

use super::record::{RECORD_LEN, Record};
use crate::allowance::{Allowance, out_of_bytes, out_of_time};
use crate::pattern;
use crate::transfer::Finish;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{wait_readable, wait_writable};
use wt_sys::tcp;
use wt_trial::Cancel;

/// The latest that a wait returns to look whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// Bytes that are read at once.
const AT_ONCE: usize = 64 * 1024;

/// One end of the connection.
pub(crate) struct Talk<'a> {
    stream: TcpStream,
    cancel: &'a Cancel,
    /// When everything is over, ns of the monotonic clock.
    limit_ns: u64,
    /// The window that this end holds.
    window: Option<u32>,
    /// What may be moved, both ways together, and until when.
    most: Allowance,
    buffer: Vec<u8>,
    /// Payload so far.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// How many bytes are missing where one wasn't what was sent, if what came is what stands behind them.
    pub(crate) missing: Option<u64>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(
        stream: TcpStream,
        limit_ns: u64,
        window: Option<u32>,
        most: Allowance,
        cancel: &'a Cancel,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // Each request and answer goes at once, however small it is. A local socket has no such option, and needs none.
        match stream.set_nodelay(true) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            set => set?,
        }
        Ok(Self {
            stream,
            cancel,
            limit_ns,
            window,
            most,
            buffer: vec![0; AT_ONCE],
            sent: 0,
            received: 0,
            missing: None,
        })
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn cancel(&self) -> &'a Cancel {
        self.cancel
    }

    /// When everything is over as things are now, ns of the monotonic clock.
    pub(crate) fn limit_ns(&self) -> u64 {
        self.limit_ns.min(self.most.until_ns())
    }

    /// Sends a record with the payload of its request in as few segments as it fits.
    pub(crate) fn ask(&mut self, record: Record) -> Result<(), Finish> {
        let mut bytes = record.to_bytes().to_vec();
        let payload = if let Record::Exchange { request, .. } = record { u64::from(request) } else { 0 };
        let first = usize::try_from(payload).unwrap_or(usize::MAX).min(AT_ONCE);
        bytes.extend_from_slice(pattern::at(self.sent, first));
        self.write_all(&bytes)?;
        self.sent += first as u64;
        self.send(payload - first as u64)
    }

    /// Sends so many bytes of the pattern.
    pub(crate) fn send(&mut self, count: u64) -> Result<(), Finish> {
        let end = self.sent + count;
        while self.sent < end {
            let left = usize::try_from(end - self.sent).unwrap_or(usize::MAX);
            let piece = pattern::at(self.sent, left.min(pattern::CHUNK));
            self.write_all(piece)?;
            self.sent += piece.len() as u64;
            self.moved(piece.len() as u64)?;
        }
        Ok(())
    }

    /// Sends what of the pattern up to this byte goes at once; whether all of it has gone.
    pub(crate) fn send_up_to(&mut self, end: u64) -> Result<bool, Finish> {
        while self.sent < end {
            let left = usize::try_from(end - self.sent).unwrap_or(usize::MAX);
            match self.stream.write(pattern::at(self.sent, left.min(pattern::CHUNK))) {
                Ok(n) => {
                    self.sent += n as u64;
                    self.moved(n as u64)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Finish::PeerLeft(error.to_string())),
            }
        }
        Ok(true)
    }

    /// Takes so many bytes of the pattern; when the first and the last of them came. What never comes is named.
    pub(crate) fn take(&mut self, count: u64, what: &dyn std::fmt::Display) -> Result<(u64, u64), Finish> {
        let end = self.received + count;
        let (mut first_ns, mut last_ns) = (0, monotonic_ns());
        while self.received < end {
            let left = usize::try_from(end - self.received).unwrap_or(usize::MAX);
            let got = count - (end - self.received);
            let n = match self.read_some(left.min(AT_ONCE)) {
                Ok(0) => {
                    return Err(Finish::Lost(format!("{what}: the peer closed after {got} of {count} bytes")));
                }
                Ok(n) => n,
                Err(Finish::Deadline) => {
                    return Err(Finish::Lost(format!("{what} never came whole: {got} of {count} bytes")));
                }
                Err(other) => return Err(other),
            };
            last_ns = monotonic_ns();
            if first_ns == 0 {
                first_ns = last_ns;
            }
            self.count(n)?;
        }
        Ok((first_ns, last_ns))
    }

    /// Takes what is there of the pattern, but nothing beyond `end`; how much that is in all. `None` if the peer has closed.
    pub(crate) fn take_what_is_there(&mut self, end: u64, until_ns: u64) -> Result<Option<u64>, Finish> {
        let left = usize::try_from(end.saturating_sub(self.received)).unwrap_or(usize::MAX);
        match self.stream.read(&mut self.buffer[..left.min(AT_ONCE)]) {
            Ok(0) => return Ok(None),
            Ok(n) => self.count(n)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.wait(false, until_ns.min(self.limit_ns()))?
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Finish::PeerLeft(error.to_string())),
        }
        Ok(Some(self.received))
    }

    /// Checks what has just been read.
    fn count(&mut self, n: usize) -> Result<(), Finish> {
        if let Some(at) = pattern::first_difference(self.received, &self.buffer[..n]) {
            self.missing = pattern::missing(at, &self.buffer[usize::try_from(at - self.received).unwrap_or(0)..n]);
            return Err(Finish::Corrupt(at));
        }
        self.received += n as u64;
        if let Some(window) = self.window {
            tcp::hold_window(&self.stream, window).map_err(|error| Finish::PeerLeft(error.to_string()))?;
        }
        self.moved(n as u64)
    }

    fn moved(&self, bytes: u64) -> Result<(), Finish> {
        if self.most.take(bytes) { Ok(()) } else { Err(Finish::PeerLeft(out_of_bytes())) }
    }

    /// What the client wants next; `None` when it has closed.
    pub(crate) fn record(&mut self) -> Result<Option<Record>, Finish> {
        let mut bytes = [0; RECORD_LEN];
        let mut filled = 0;
        while filled < RECORD_LEN {
            match self.read_some(RECORD_LEN - filled)? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(Finish::PeerLeft("the client left within a request".to_owned())),
                n => {
                    bytes[filled..filled + n].copy_from_slice(&self.buffer[..n]);
                    filled += n;
                }
            }
        }
        Record::from_bytes(&bytes).map(Some).map_err(|error| Finish::Garbage(error.to_string()))
    }

    /// Reads something into the buffer; 0 at the end.
    fn read_some(&mut self, most: usize) -> Result<usize, Finish> {
        loop {
            match self.stream.read(&mut self.buffer[..most]) {
                Ok(n) => return Ok(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(false, self.limit_ns())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Finish::PeerLeft(error.to_string())),
            }
            self.still()?;
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Finish> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(true, self.limit_ns())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Finish::PeerLeft(error.to_string())),
            }
            self.still()?;
        }
        Ok(())
    }

    /// Whether there is still time, and the user still wants to.
    pub(crate) fn still(&self) -> Result<(), Finish> {
        if self.cancel.is_cancelled() {
            return Err(Finish::Cancelled);
        }
        let now = monotonic_ns();
        if now >= self.limit_ns {
            return Err(Finish::Deadline);
        }
        if now >= self.most.until_ns() { Err(Finish::PeerLeft(out_of_time())) } else { Ok(()) }
    }

    /// Waits until the connection is ready, `until_ns`, or a glance.
    pub(crate) fn wait(&self, to_write: bool, until_ns: u64) -> Result<(), Finish> {
        let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        let fds = [self.stream.as_fd()];
        let timeout = Some(left.min(GLANCE));
        let ready = if to_write { wait_writable(&fds, timeout) } else { wait_readable(&fds, timeout) };
        ready.map(drop).map_err(|error| Finish::PeerLeft(error.to_string()))
    }
}
