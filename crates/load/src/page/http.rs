use super::{ConnectionEnd, FetchedObject, PageConnection, PageStop};
use crate::error::FetchError;
use crate::fetch::{Body, BodyError, Exchange, Framing, Head, USER_AGENT};
use crate::job::Fetch;
use crate::pattern;
use crate::proto::SenderOptions;
use crate::transfer::Finish;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::{Cancel, PageObject};
use wt_units::Url;

/// Objects of which we remember what they were.
const MOST_REMEMBERED: usize = 10_000;
/// Bytes that are read at once.
const AT_ONCE: usize = 64 * 1024;
/// For so long the peer may take to close after us.
const CLOSING: Duration = Duration::from_secs(2);

/// What each object was when it came first: later loads must bring the same.
#[derive(Debug, Default)]
pub struct PageMemory(Mutex<HashMap<(String, u64), ObjectVersion>>);

/// What an object was: its version, if the server names it, and a hash of its bytes.
type ObjectVersion = (Option<String>, u64);

impl PageMemory {
    /// Whether this is what came before: of another version it is something else, and learnt anew.
    pub(super) fn agrees(&self, path: &str, bytes: u64, version: Option<String>, hash: u64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (path.to_owned(), bytes);
        match known.get(&key) {
            Some((before, was)) if *before == version => *was == hash,
            _ => {
                if known.len() < MOST_REMEMBERED {
                    known.insert(key, (version, hash));
                }
                true
            }
        }
    }
}

/// A page over HTTP/1.1, or the connections for it.
#[derive(Debug)]
pub struct HttpPage<'a> {
    /// Where, and what is set on the sockets. Its amount is of no meaning.
    pub fetch: &'a Fetch<'a>,
    /// What a server that isn't ours sent before; `None` for our own, whose bytes are known.
    pub memory: Option<&'a PageMemory>,
    /// Under which our own server keeps its view of each connection: this number and those that follow.
    pub token: Option<u64>,
    /// What our own server sets as the sender.
    pub sender: SenderOptions,
    /// Whether each connection is for one object.
    pub close_each: bool,
}

impl<'a> HttpPage<'a> {
    /// Path and range of an object: of our own server what has that size, of others what was named, or the beginning of the
    /// one file that is known.
    pub(super) fn ask(&self, object: &PageObject) -> (String, Option<u64>) {
        match (&object.path, self.memory) {
            (Some(path), _) => (path.clone(), None),
            (None, None) => (format!("/bytes/{}", object.size.get()), None),
            (None, Some(_)) => (self.fetch.url.path.clone(), Some(object.size.get())),
        }
    }

    /// What our own server is asked for in each request's head, on the connection with the token that was named.
    pub(super) fn wishes(&self) -> Vec<(&'static str, String)> {
        let Some(token) = self.token else { return Vec::new() };
        let SenderOptions { congestion_control, send_buffer, .. } = &self.sender;
        let mut wishes = vec![("Windtunnel-Token", token.to_string())];
        wishes.extend(congestion_control.iter().map(|name| ("Windtunnel-Congestion-Control", name.clone())));
        wishes.extend(send_buffer.iter().map(|size| ("Windtunnel-Send-Buffer", size.to_string())));
        wishes
    }

    /// Opens the connection with this number.
    ///
    /// # Errors
    /// [`PageStop`].
    pub fn open(&'a self, number: u32, cancel: &'a Cancel) -> Result<Box<dyn PageConnection + 'a>, PageStop> {
        let exchange = Exchange::open(self.fetch, cancel)?;
        let token = self.token.map(|token| token.wrapping_add(u64::from(number)));
        Ok(Box::new(HttpConnection { page: self, exchange, token, buffer: vec![0; AT_ONCE] }))
    }
}

struct HttpConnection<'a> {
    page: &'a HttpPage<'a>,
    exchange: Exchange<'a>,
    token: Option<u64>,
    buffer: Vec<u8>,
}

impl HttpConnection<'_> {
    fn request(&self, path: &str, first: Option<u64>) -> String {
        let url: &Url = self.page.fetch.url;
        let keep = if self.page.close_each { "close" } else { "keep-alive" };
        let mut text = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\
             Connection: {keep}\r\n",
            url.authority()
        );
        if let Some(first) = first {
            let _ = write!(text, "Range: bytes=0-{}\r\n", first.saturating_sub(1));
        }
        for (name, value) in self.page.wishes() {
            // Each connection has a token of its own.
            let own = self.token.filter(|_| name == "Windtunnel-Token").map(|token| token.to_string());
            let _ = write!(text, "{name}: {}\r\n", own.unwrap_or(value));
        }
        text + "\r\n"
    }

    /// Whether the answer is the object that was asked for.
    fn judge(&self, head: &Head, path: &str, first: Option<u64>, object: &PageObject) -> Result<(), PageStop> {
        let garbage = |why: String| Err(PageStop::Finish(Finish::Garbage(why)));
        match (head.status, first) {
            (200, None) => {}
            (206, Some(_)) if matches!(head.range, Some((0, _))) => {}
            (200, Some(_)) => {
                let why =
                    format!("{} serves no parts of files (ranges), of which the page is made", self.page.fetch.url);
                return Err(PageStop::Fetch(FetchError::Never(why)));
            }
            (206, Some(_)) => return garbage("the server sends another part than was asked for".to_owned()),
            _ => return Err(self.exchange.refusal(head).into()),
        }
        if let (Some(first), Some((_, Some(whole)))) = (first, head.range)
            && whole < first
        {
            let url = &self.page.fetch.url;
            let why = format!("{url} has {whole} bytes; this page needs a file of at least {first}");
            return Err(PageStop::Fetch(FetchError::Never(why)));
        }
        match head.framing {
            Framing::Length(length) if object.path.is_none() && length != object.size.get() => garbage(format!(
                "the answer to {path} has {length} bytes, not {}: the file is too small for this page, or the server lies",
                object.size.get()
            )),
            _ => Ok(()),
        }
    }

    /// Takes the body; first byte, last byte and how many there were.
    fn take(&mut self, head: &Head, begun: Vec<u8>, path: &str) -> Result<(u64, u64), PageStop> {
        let mut body = Body::new(head.framing);
        let mut check = Check::new(self.page.memory.is_none());
        let limit = self.exchange.wire.give_up_ns();
        let mut filled = begun.len();
        if filled > self.buffer.len() {
            self.buffer.resize(filled, 0);
        }
        self.buffer[..filled].copy_from_slice(&begun);
        loop {
            let kept = match body.take(&mut self.buffer[..filled]) {
                Ok(kept) => kept,
                Err(error @ (BodyError::Chunk | BodyError::TooLong)) => {
                    return Err(PageStop::Finish(Finish::Garbage(error.to_string())));
                }
            };
            if let Some(at) = check.take(&self.buffer[..kept]) {
                return Err(PageStop::Finish(Finish::Corrupt(at)));
            }
            if body.is_done() {
                if kept < filled && matches!(head.framing, Framing::Length(_)) {
                    let why = format!("the answer to {path} has more bytes than it announced");
                    return Err(PageStop::Finish(Finish::Garbage(why)));
                }
                break;
            }
            filled = self.read(limit)?;
            if filled == 0 {
                if body.may_end() {
                    break;
                }
                let why = format!("the server closed the connection within the answer to {path}");
                return Err(PageStop::Finish(Finish::PeerLeft(why)));
            }
        }
        let done_ns = monotonic_ns();
        if let Some(memory) = self.page.memory
            && !memory.agrees(path, check.bytes, head.version.clone(), check.hasher.finish())
        {
            return Err(PageStop::Finish(Finish::Corrupt(0)));
        }
        Ok((done_ns, check.bytes))
    }

    /// Reads once, or until the time is up.
    fn read(&mut self, limit_ns: u64) -> Result<usize, PageStop> {
        loop {
            if self.exchange.wire.cancel().is_cancelled() {
                return Err(PageStop::Finish(Finish::Cancelled));
            }
            if monotonic_ns() >= limit_ns {
                return Err(PageStop::Finish(Finish::Deadline));
            }
            match self.exchange.wire.read_now(&mut self.buffer) {
                Ok(n) => {
                    if let Some(window) = self.exchange.window {
                        let held = tcp::hold_window(self.exchange.wire.socket(), window);
                        held.map_err(|error| PageStop::Finish(Finish::PeerLeft(error.to_string())))?;
                    }
                    return Ok(n);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let waited = self.exchange.wire.wait_until(false, limit_ns);
                    waited.map_err(|error| PageStop::Finish(Finish::PeerLeft(error.to_string())))?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PageStop::Finish(Finish::PeerLeft(error.to_string()))),
            }
        }
    }
}

impl PageConnection for HttpConnection<'_> {
    fn bring(&mut self, object: &PageObject) -> Result<FetchedObject, PageStop> {
        let (path, first) = self.page.ask(object);
        self.exchange.send(&self.request(&path, first))?;
        let (head, begun) = self.exchange.head(self.exchange.wire.give_up_ns())?;
        let first_byte_ns = monotonic_ns();
        self.judge(&head, &path, first, object)?;
        let (done_ns, bytes) = self.take(&head, begun, &path)?;
        Ok(FetchedObject { first_byte_ns, done_ns, bytes, open: !head.close })
    }

    fn leave(&mut self) {
        let _ = self.exchange.wire.finish_writing();
    }

    /// Says that nothing more will be asked, so that our own server can take down what its kernel saw; then resets.
    fn close(mut self: Box<Self>) -> ConnectionEnd {
        let info = TcpInfo::read(self.exchange.wire.socket()).unwrap_or_default();
        if self.token.is_some() {
            self.exchange.wire.part(CLOSING);
        }
        let _ = tcp::reset_on_close(self.exchange.wire.socket());
        let Exchange { connect_time, granted, .. } = self.exchange;
        ConnectionEnd { connect_time, granted, info }
    }
}

/// Looks at the bytes of an object as they come.
pub(super) struct Check {
    pattern: bool,
    hasher: DefaultHasher,
    bytes: u64,
}

impl Check {
    pub(super) fn new(pattern: bool) -> Self {
        Self { pattern, hasher: DefaultHasher::new(), bytes: 0 }
    }

    /// How many there were.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What they were.
    pub(super) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// Where the first byte lies that can't be right.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<u64> {
        let wrong = if self.pattern {
            pattern::first_difference(self.bytes, bytes)
        } else {
            self.hasher.write(bytes);
            None
        };
        self.bytes += bytes.len() as u64;
        wrong
    }
}
