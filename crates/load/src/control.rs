use crate::client::Connection;
use crate::error::{FetchError, LoadError, lost, refused_or_not};
use crate::job::{CONNECT, Fetch};
use crate::tls::Tls;
use crate::wire::Wire;
use std::io::ErrorKind;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp;
use wt_trial::Cancel;
use wt_units::Settings;

/// A connection of commands and answers beside that of the payload: none of the settings that are tried is set on it.
#[derive(Debug)]
pub(crate) struct ControlConnection<'a> {
    pub(crate) wire: Wire<'a>,
    /// After this long without an answer the peer counts as silent.
    pub(crate) patience: Duration,
}

impl<'a> ControlConnection<'a> {
    /// Connects to the peer of a job.
    ///
    /// # Errors
    /// [`FetchError`].
    pub(crate) fn open(job: &Fetch<'_>, cancel: &'a Cancel) -> Result<Self, FetchError> {
        let connection = Connection::open(&job.peer, &Settings::new(), CONNECT.min(job.deadline));
        let connection = connection.map_err(refused_or_not)?;
        // The last command is to arrive.
        let _ = tcp::finish_after_close(&connection.stream);
        let give_up_ns = monotonic_ns().saturating_add(job.deadline.as_nanos() as u64);
        let wire = Wire::new(connection.stream, give_up_ns, cancel).map_err(LoadError::Broken)?;
        Ok(Self { wire, patience: job.deadline })
    }

    /// When the whole job is given up, ns of the monotonic clock.
    pub(crate) fn give_up_ns(&self) -> u64 {
        self.wire.give_up_ns()
    }

    /// Goes on through TLS.
    ///
    /// # Errors
    /// [`FetchError`].
    pub(crate) fn encrypt(&mut self, tls: &Tls, host: &str) -> Result<(), FetchError> {
        self.wire.encrypt(tls, host).map_err(|error| lost(error, self.patience, true))
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// [`FetchError`].
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.wire.write_all(bytes).map_err(|error| lost(error, self.patience, false))
    }

    /// Reads what there is, at least one byte.
    ///
    /// # Errors
    /// [`FetchError`]; also when the peer closes, which it never may before the test is over.
    pub(crate) fn read(&mut self, buffer: &mut [u8], limit_ns: u64) -> Result<usize, FetchError> {
        match read_some(&mut self.wire, buffer, limit_ns, self.patience)? {
            0 => Err(FetchError::Refused { why: "it closed the control connection".to_owned(), pause: None }),
            read => Ok(read),
        }
    }
}

/// Reads what there is, and waits for it until the limit; 0 when the peer has closed.
///
/// # Errors
/// [`FetchError`]; [`FetchError::Silence`] of `patience` when nothing came in time.
pub(crate) fn read_some(
    wire: &mut Wire<'_>,
    buffer: &mut [u8],
    limit_ns: u64,
    patience: Duration,
) -> Result<usize, FetchError> {
    loop {
        if wire.cancel().is_cancelled() {
            return Err(FetchError::Cancelled);
        }
        if monotonic_ns() >= limit_ns {
            return Err(FetchError::Silence(patience));
        }
        match wire.read_now(buffer) {
            Ok(read) => return Ok(read),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wire.wait_until(false, limit_ns).map_err(LoadError::Broken)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(lost(error.into(), patience, false)),
        }
    }
}
