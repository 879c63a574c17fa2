use super::http::{Check, HttpPage};
use super::{ConnectionEnd, PageLoad, PageStop};
use crate::error::FetchError;
use crate::fetch::{Exchange, USER_AGENT};
use crate::job::Fetch;
use crate::polled::{Door, PolledConnection};
use crate::transfer::Finish;
use h2::RecvStream;
use h2::client::{ResponseFuture, SendRequest};
use std::future::Future as _;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::{Cancel, ObjectTime, Page};
use wt_units::Scheme;

/// Bytes of one object, and of all together, that may be under way without our leave: as Chromium has it, more than the
/// first windows of TCP by far.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;
/// For so long the peer may take to close after us.
const CLOSING: Duration = Duration::from_secs(2);
/// Bytes of one answer's head.
const MOST_HEAD: u32 = 64 << 10;

/// Loads a page over one connection that speaks HTTP/2: the first object alone, then all others at once. It is agreed
/// upon in the handshake of TLS (RFC 9113 section 3.2); without TLS the server must know it beforehand (section 3.3).
///
/// # Errors
/// [`FetchError`] when the peer refuses; a load that broke off is a result.
pub fn load_page_http2(page: &Page, over: &HttpPage<'_>, cancel: &Cancel) -> Result<PageLoad, FetchError> {
    let start_ns = monotonic_ns();
    let fetch = over.fetch;
    let exchange = Exchange::open(fetch, cancel)?;
    if fetch.url.scheme == Scheme::Https && exchange.wire.protocol() != Some(b"h2") {
        return Err(FetchError::Never(format!("{} doesn't speak HTTP/2", fetch.url)));
    }
    let Exchange { wire, window, connect_time, granted, .. } = exchange;
    let shared = PolledConnection::new(wire, window);
    let (streams, objects) = (Vec::new(), Vec::new());
    let mut load = Load { page, over, start_ns, shared: Rc::clone(&shared), streams, next: 0, objects };
    let (finish, missing_bytes) = PageStop::told(load.run(cancel).err())?;
    let mut objects = load.objects;
    objects.sort_by_key(|object| object.object);
    let last = objects.iter().map(|object| object.done_us).max().map(Duration::from_micros);
    let elapsed = match &finish {
        Finish::Done => last.unwrap_or_default(),
        _ => Duration::from_nanos(monotonic_ns().saturating_sub(start_ns)),
    };
    let mut wire = shared.wire.borrow_mut();
    let info = TcpInfo::read(wire.socket()).unwrap_or_default();
    if over.token.is_some() && finish == Finish::Done {
        // So that our own server can take down what its kernel saw.
        wire.part(CLOSING);
    }
    let _ = tcp::reset_on_close(wire.socket());
    let bytes = objects.iter().map(|object| object.bytes).sum();
    let connections = vec![ConnectionEnd { connect_time, granted, info }];
    Ok(PageLoad { finish, missing_bytes, elapsed, bytes, objects, connections })
}

/// No request of ours has a body.
type Nothing = &'static [u8];

/// An object that was asked for.
struct Stream {
    at: usize,
    path: String,
    first: Option<u64>,
    /// How many bytes it must have, where that is known.
    expected: Option<u64>,
    asked_us: u64,
    first_byte_us: u64,
    /// What is waited for: the head, then the body.
    head: Option<ResponseFuture>,
    body: Option<RecvStream>,
    check: Check,
    version: Option<String>,
}

struct Load<'a> {
    page: &'a Page,
    over: &'a HttpPage<'a>,
    start_ns: u64,
    shared: Rc<PolledConnection<'a>>,
    streams: Vec<Stream>,
    /// The object that is asked for next.
    next: usize,
    objects: Vec<ObjectTime>,
}

impl Load<'_> {
    fn since(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns) / 1000
    }

    fn run(&mut self, cancel: &Cancel) -> Result<(), PageStop> {
        // Everything is asked again after each wait, so nobody needs to wake anybody.
        let mut context = Context::from_waker(Waker::noop());
        let mut builder = h2::client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MOST_HEAD);
        let mut handshake = pin!(builder.handshake::<_, Nothing>(Door(Rc::clone(&self.shared))));
        let (mut asker, connection) = loop {
            match handshake.as_mut().poll(&mut context) {
                Poll::Ready(shaken) => break shaken.map_err(|error| stop(&error))?,
                Poll::Pending => self.wait(cancel)?,
            }
        };
        let mut connection = pin!(connection);
        while self.objects.len() < self.page.objects.len() {
            self.may_go_on(cancel)?;
            let mut moved = self.ask(&mut asker, &mut context)?;
            if let Poll::Ready(ended) = connection.as_mut().poll(&mut context) {
                let why = ended.err().map_or_else(|| "the server closed the connection".to_owned(), |e| e.to_string());
                return Err(PageStop::Finish(Finish::PeerLeft(why)));
            }
            moved |= self.take(&mut context)?;
            if !moved {
                self.wait(cancel)?;
            }
        }
        Ok(())
    }

    /// Whether there is time, and nobody wants to stop.
    fn may_go_on(&self, cancel: &Cancel) -> Result<(), PageStop> {
        if cancel.is_cancelled() {
            return Err(PageStop::Finish(Finish::Cancelled));
        }
        if monotonic_ns() >= self.shared.wire.borrow().give_up_ns() {
            return Err(PageStop::Finish(Finish::Deadline));
        }
        Ok(())
    }

    /// Waits until something may have happened.
    fn wait(&self, cancel: &Cancel) -> Result<(), PageStop> {
        self.may_go_on(cancel)?;
        let give_up_ns = self.shared.wire.borrow().give_up_ns();
        let waited = self.shared.wait_until(give_up_ns);
        waited.map_err(|error| PageStop::Finish(Finish::PeerLeft(error.to_string())))
    }

    /// Asks for what may be asked for: the first object alone, then all others, as far as the server wants so many at once.
    fn ask(&mut self, asker: &mut SendRequest<Nothing>, context: &mut Context<'_>) -> Result<bool, PageStop> {
        let before = self.next;
        while let Some(object) = self.page.objects.get(self.next).filter(|_| self.next == 0 || !self.objects.is_empty())
        {
            match asker.poll_ready(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Err(stop(&error)),
                Poll::Pending => break,
            }
            let (path, first) = self.over.ask(object);
            let request = self.request(&path, first)?;
            let (head, _) = asker.send_request(request, true).map_err(|error| stop(&error))?;
            self.streams.push(Stream {
                at: self.next,
                path,
                first,
                expected: object.path.is_none().then_some(object.size.get()),
                asked_us: self.since(),
                first_byte_us: 0,
                head: Some(head),
                body: None,
                check: Check::new(self.over.memory.is_none()),
                version: None,
            });
            self.next += 1;
        }
        Ok(self.next > before)
    }

    fn request(&self, path: &str, first: Option<u64>) -> Result<http::Request<()>, PageStop> {
        let url = self.over.fetch.url;
        let scheme = if url.scheme == Scheme::Https { "https" } else { "http" };
        let mut request = http::Request::get(format!("{scheme}://{}{path}", url.authority()))
            .version(http::Version::HTTP_2)
            .header("user-agent", USER_AGENT)
            .header("accept", "*/*")
            .header("accept-encoding", "identity");
        if let Some(first) = first {
            request = request.header("range", format!("bytes=0-{}", first.saturating_sub(1)));
        }
        for (name, value) in self.over.wishes() {
            request = request.header(name.to_ascii_lowercase(), value);
        }
        request.body(()).map_err(|error| PageStop::Fetch(FetchError::Never(format!("{url}: {error}"))))
    }

    /// Takes what has come of all objects; whether that was anything.
    fn take(&mut self, context: &mut Context<'_>) -> Result<bool, PageStop> {
        let mut moved = false;
        let mut at = 0;
        while at < self.streams.len() {
            let now_us = self.since();
            let stream = &mut self.streams[at];
            if let Some(head) = &mut stream.head {
                let Poll::Ready(answer) = Pin::new(head).poll(context) else {
                    at += 1;
                    continue;
                };
                let answer = answer.map_err(|error| stop(&error))?;
                (stream.first_byte_us, stream.head, moved) = (now_us, None, true);
                stream.judge(&answer, self.over.fetch)?;
                stream.body = Some(answer.into_body());
            }
            let ended = loop {
                let Some(body) = &mut stream.body else { break true };
                match body.poll_data(context) {
                    Poll::Ready(Some(piece)) => {
                        let piece = piece.map_err(|error| stop(&error))?;
                        moved = true;
                        if let Some(at) = stream.check.take(&piece) {
                            return Err(PageStop::Finish(Finish::Corrupt(at)));
                        }
                        if let Some(expected) = stream.expected.filter(|most| stream.check.bytes() > *most) {
                            let why = format!("the answer to {} has more than {expected} bytes", stream.path);
                            return Err(PageStop::Finish(Finish::Garbage(why)));
                        }
                        let leave = body.flow_control().release_capacity(piece.len());
                        leave.map_err(|error| stop(&error))?;
                    }
                    Poll::Ready(None) => break true,
                    Poll::Pending => break false,
                }
            };
            if ended {
                moved = true;
                let stream = self.streams.swap_remove(at);
                self.finish(stream)?;
            } else {
                at += 1;
            }
        }
        Ok(moved)
    }

    /// All of an object has come.
    fn finish(&mut self, stream: Stream) -> Result<(), PageStop> {
        let done_us = self.since();
        let Stream { at, path, expected, check, version, .. } = stream;
        let bytes = check.bytes();
        if let Some(expected) = expected.filter(|expected| *expected != bytes) {
            let why = format!("the answer to {path} has {bytes} bytes, not {expected}");
            return Err(PageStop::Finish(Finish::Garbage(why)));
        }
        if let Some(memory) = self.over.memory
            && !memory.agrees(&path, bytes, version, check.hash())
        {
            return Err(PageStop::Finish(Finish::Corrupt(0)));
        }
        self.objects.push(ObjectTime {
            object: u32::try_from(at).unwrap_or(u32::MAX),
            connection: 0,
            asked_us: stream.asked_us,
            sent_us: None,
            first_byte_us: stream.first_byte_us,
            done_us,
            bytes,
        });
        Ok(())
    }
}

impl Stream {
    /// Whether the answer is what was asked for.
    fn judge<B>(&mut self, answer: &http::Response<B>, fetch: &Fetch<'_>) -> Result<(), PageStop> {
        let url = fetch.url;
        let never = |why: String| Err(PageStop::Fetch(FetchError::Never(why)));
        let word = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        self.version = word("etag").or_else(|| word("last-modified")).map(str::to_owned);
        match (answer.status().as_u16(), self.first) {
            (200, None) => Ok(()),
            (206, Some(first)) => {
                let range = word("content-range").and_then(|range| range.strip_prefix("bytes 0-"));
                let whole = range.and_then(|range| range.split_once('/')?.1.parse::<u64>().ok());
                match whole {
                    _ if range.is_none() => {
                        let why = "the server sends another part than was asked for".to_owned();
                        Err(PageStop::Finish(Finish::Garbage(why)))
                    }
                    Some(whole) if whole < first => {
                        never(format!("{url} has {whole} bytes; this page needs a file of at least {first}"))
                    }
                    _ => Ok(()),
                }
            }
            (200, Some(_)) => never(format!("{url} serves no parts of files (ranges), of which the page is made")),
            (301 | 302 | 303 | 307 | 308, _) if word("location").is_some() => {
                Err(PageStop::Fetch(FetchError::Elsewhere(word("location").unwrap_or_default().to_owned())))
            }
            (status @ (408 | 421 | 425 | 429 | 500..=599), _) => {
                let pause = word("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
                Err(PageStop::Fetch(FetchError::Refused { why: format!("it answers {status}"), pause }))
            }
            (status, _) => never(format!("the server answers {status} to {}", self.path)),
        }
    }
}

/// What an error of the protocol means.
fn stop(error: &h2::Error) -> PageStop {
    if error.is_io() || error.is_go_away() || error.is_reset() {
        PageStop::Finish(Finish::PeerLeft(error.to_string()))
    } else {
        PageStop::Finish(Finish::Garbage(error.to_string()))
    }
}
