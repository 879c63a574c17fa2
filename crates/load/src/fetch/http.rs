//! Files of HTTP servers that aren't ours: one connection, one request, the options of the socket set before it stands.

use super::body::Body;
use super::head::{self, Framing, Head, HeadError};
use super::intake::{intake, outflow};
use crate::client::Connection;
use crate::error::{FetchError, LoadError, lost, refused_or_not};
use crate::intact::Reference;
use crate::job::{CONNECT, Fetch, FetchOutcome};
use crate::pattern;
use crate::transfer::Finish;
use crate::wire::Wire;
use std::fmt::Write as _;
use std::time::Duration;
use wt_sys::clock::{monotonic_ns, unix_us};
use wt_trial::{Amount, Cancel};
use wt_units::{Bytes, Scheme, Settings, Url};

/// For so long an answer to `Expect: 100-continue` is waited for (RFC 9110 section 10.1.1: not for ever).
const CONTINUE: Duration = Duration::from_secs(1);
/// Interim answers before the real one.
const MOST_INTERIM: usize = 16;

/// Who we are, to servers that aren't ours.
pub const USER_AGENT: &str =
    concat!("windtunnel/", env!("CARGO_PKG_VERSION"), " (measures TCP settings; one connection at a time)");

impl From<HeadError> for FetchError {
    fn from(error: HeadError) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// Fetches a file, or its beginning: the clock runs from the request to the last byte that was wanted.
///
/// # Errors
/// [`FetchError`]; a transfer that was cut short is a report, not an error.
pub(crate) fn fetch(job: &Fetch<'_>, reference: &mut Reference, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let mut exchange = Exchange::open(job, cancel)?;
    let first = if let Amount::Size(size) = job.amount { Some(size.get()) } else { None };
    let start_ns = monotonic_ns();
    exchange.send(&request("GET", job.url, first, None))?;
    let (head, begun) = exchange.head(exchange.wire.give_up_ns())?;
    let length = match (head.status, head.range) {
        (200, _) => {
            if let Framing::Length(length) = head.framing {
                Some(length)
            } else {
                None
            }
        }
        (206, Some((0, whole))) => whole,
        (206, _) => return Err(FetchError::Protocol("the server sends another part than was asked for".to_owned())),
        _ => return Err(exchange.refusal(&head)),
    };
    if head.framing == Framing::Length(0) {
        return Err(FetchError::Never(format!("{} is empty", job.url)));
    }
    let mut notes = Vec::new();
    let (mut check, changed) = reference.compare(head.version.clone(), length);
    if changed {
        notes.push("the file on the server has changed: from here on it is compared with its new content".to_owned());
    }
    let intake_job = job.transfer(start_ns, exchange.window);
    let report = intake(&mut exchange.wire, Body::new(head.framing), &begun, &intake_job, &mut check);
    let mut report = report.map_err(LoadError::Broken)?;
    // A server may send less of a file than was asked for; that is no whole transfer.
    let due = first.filter(|_| head.status == 206).and_then(|first| Some(first.min(length?)));
    if let Some(due) = due.filter(|due| report.finish == Finish::Done && report.bytes < *due) {
        let why = format!("the server sent {} of {due} bytes that were asked for", report.bytes);
        report.finish = Finish::Garbage(why);
    }
    if report.bytes == 0 && matches!(report.finish, Finish::PeerLeft(_)) {
        return Err(FetchError::Refused {
            why: "it closed the connection before the first byte".to_owned(),
            pause: None,
        });
    }
    let Exchange { wire, connect_time, granted, .. } = exchange;
    let surplus = head.status == 200 && first.is_some_and(|first| head.framing.may_exceed(first));
    Ok(FetchOutcome { surplus, ..FetchOutcome::over(wire, connect_time, granted, report, length, notes) })
}

/// Brings so many bytes of the pattern to a server that takes `PUT`: the clock runs from the first byte until the
/// server's kernel has acknowledged the last.
///
/// # Errors
/// [`FetchError`]; a transfer that was cut short is a report, not an error.
pub(crate) fn bring(job: &Fetch<'_>, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let Amount::Size(Bytes(size)) = job.amount else {
        return Err(FetchError::Protocol("an upload by HTTP needs a size".to_owned()));
    };
    let mut exchange = Exchange::open(job, cancel)?;
    exchange.send(&request("PUT", job.url, None, Some(size)))?;
    let patience = monotonic_ns() + CONTINUE.as_nanos() as u64;
    match exchange.head_or_nothing(patience, true)? {
        Some((head, _)) if head.status == 100 => {}
        Some((head, _)) => return Err(exchange.refusal(&head)),
        None => {}
    }
    let start_ns = monotonic_ns();
    let outflow_job = job.transfer(start_ns, None);
    let report = outflow(&mut exchange.wire, &outflow_job, &pattern::at).map_err(LoadError::Broken)?;
    let mut notes = Vec::new();
    if report.finish == Finish::Done {
        let (head, _) = exchange.head(exchange.wire.give_up_ns())?;
        if !matches!(head.status, 200..=299) {
            return Err(exchange.refusal(&head));
        }
    } else if let Finish::PeerLeft(why) = &report.finish {
        // A server that doesn't want it says so and closes, often before all was sent.
        match exchange.head_or_nothing(monotonic_ns() + CONTINUE.as_nanos() as u64, false) {
            Ok(Some((head, _))) => return Err(exchange.refusal(&head)),
            _ => notes.push(format!("the server left: {why}")),
        }
    }
    let Exchange { wire, connect_time, granted, .. } = exchange;
    Ok(FetchOutcome::over(wire, connect_time, granted, report, None, notes))
}

/// The request, as it goes over the wire.
fn request(method: &str, url: &Url, first: Option<u64>, size: Option<u64>) -> String {
    let mut text = format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\
         Cache-Control: no-transform\r\nConnection: close\r\n",
        url.path,
        url.authority()
    );
    if let Some(first) = first {
        let _ = write!(text, "Range: bytes=0-{}\r\n", first.saturating_sub(1));
    }
    if let Some(size) = size {
        let _ = write!(
            text,
            "Content-Type: application/octet-stream\r\nContent-Length: {size}\r\nExpect: 100-continue\r\n"
        );
    }
    text + "\r\n"
}

/// One connection for one request after the other.
pub(crate) struct Exchange<'a> {
    pub(crate) wire: Wire<'a>,
    pub(crate) window: Option<u32>,
    pub(crate) connect_time: Duration,
    pub(crate) granted: Settings,
    patience: Duration,
    /// What came and isn't understood yet.
    heard: Vec<u8>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn open(job: &Fetch<'_>, cancel: &'a Cancel) -> Result<Self, FetchError> {
        let connection = Connection::open_with_all(&job.peer, job.settings, CONNECT.min(job.deadline));
        let connection = connection.map_err(refused_or_not)?;
        let give_up_ns = monotonic_ns().saturating_add(job.deadline.as_nanos() as u64);
        let mut wire = Wire::new(connection.stream, give_up_ns, cancel).map_err(LoadError::Broken)?;
        if job.url.scheme == Scheme::Https {
            wire.encrypt(job.tls, &job.url.host).map_err(|error| lost(error, job.deadline, true))?;
        }
        Ok(Self {
            wire,
            window: connection.window,
            connect_time: connection.connect_time,
            granted: connection.granted,
            patience: job.deadline,
            heard: Vec::new(),
        })
    }

    pub(crate) fn send(&mut self, text: &str) -> Result<(), FetchError> {
        self.wire.write_all(text.as_bytes()).map_err(|error| lost(error, self.patience, false))
    }

    /// The final answer's head, and what came with it.
    pub(crate) fn head(&mut self, limit_ns: u64) -> Result<(Head, Vec<u8>), FetchError> {
        self.head_or_nothing(limit_ns, false)?.ok_or(FetchError::Silence(self.patience))
    }

    /// The head of an answer (with `interim` also of one that isn't final), unless none comes in time.
    fn head_or_nothing(&mut self, limit_ns: u64, interim: bool) -> Result<Option<(Head, Vec<u8>)>, FetchError> {
        let limit_ns = limit_ns.min(self.wire.give_up_ns());
        let mut seen = 0;
        let mut buffer = [0; 4096];
        loop {
            while let Some((length, head)) = head::parse(&self.heard)? {
                let rest = self.heard.split_off(length);
                if !(100..=199).contains(&head.status) || (interim && head.status == 100) {
                    self.heard.clear();
                    return Ok(Some((head, rest)));
                }
                seen += 1;
                if seen > MOST_INTERIM {
                    return Err(FetchError::Protocol("the server never comes to its answer".to_owned()));
                }
                self.heard = rest;
            }
            if self.wire.cancel().is_cancelled() {
                return Err(FetchError::Cancelled);
            }
            if monotonic_ns() >= limit_ns {
                return Ok(None);
            }
            match self.wire.read_now(&mut buffer) {
                Ok(0) if self.heard.is_empty() => {
                    let why = "it closed the connection without an answer".to_owned();
                    return Err(FetchError::Refused { why, pause: None });
                }
                Ok(0) => return Err(FetchError::Protocol("the answer ends within its head".to_owned())),
                Ok(n) => self.heard.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.wire.wait_until(false, limit_ns).map_err(LoadError::Broken)?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(error.into(), self.patience, false)),
            }
        }
    }

    /// What an answer without payload means.
    pub(crate) fn refusal(&self, head: &Head) -> FetchError {
        let line = head.line();
        match (head.status, &head.location) {
            (301 | 302 | 303 | 307 | 308, Some(location)) => FetchError::Elsewhere(location.clone()),
            (408 | 421 | 425 | 429 | 500 | 502..=504 | 506..=599, _) => {
                let now = Duration::from_micros(u64::try_from(unix_us()).unwrap_or(0));
                FetchError::Refused { why: format!("it answers {line}"), pause: head.pause(now) }
            }
            (200..=299, _) => FetchError::Protocol(format!("the server answers {line}, which wasn't asked for")),
            _ => FetchError::Never(format!("the server answers {line}")),
        }
    }
}

/// Reads bytes as the head of an answer.
#[cfg(any(fuzzing, test))]
pub(crate) fn read_all(bytes: &[u8]) {
    if let Ok(Some((used, head))) = head::parse(bytes) {
        assert!(used <= bytes.len());
        let _ = (head.line(), head.pause(Duration::from_secs(1_700_000_000)));
    }
    // Chunks, in pieces of a size that the first byte says.
    let piece = 1 + usize::from(bytes.first().copied().unwrap_or(0) % 64);
    let (mut body, mut kept) = (Body::new(Framing::Chunked), 0);
    for part in bytes.chunks(piece) {
        let Ok(more) = body.take(&mut part.to_vec()) else { break };
        kept += more;
    }
    assert!(kept <= bytes.len());
}
