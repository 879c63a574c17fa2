//! The same over HTTP/2 (RFC 9113): many requests at once on one connection.
//!
//! What this leaves out: uploads, priorities and server push. Answers that are under way at once get their frames in turn.

use super::{ConnectionHeaders, HELP, IDLE_NS, OwnClient, RequestedResource, asked};
use crate::pattern;
use crate::polled::{Door, PolledConnection};
use crate::transfer::{EndReport, Finish};
use crate::wire::Wire;
use h2::SendStream;
use h2::server::SendResponse;
use std::future::Future as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::TcpInfo;

/// Requests that may be under way at once: what servers usually allow is 100 to 250.
const MOST_STREAMS: u32 = 128;
/// Requests that one connection may make.
const MOST_REQUESTS: usize = 10_000;
/// Bytes of one request's head.
const MOST_HEAD: u32 = 8 << 10;
/// Bytes of an answer that are handed over at once.
const PIECE: usize = 64 << 10;

/// Every byte that is sent lies in a table that stays.
type Bytes = &'static [u8];

/// An answer that is under way.
struct Answer {
    stream: SendStream<Bytes>,
    sent: u64,
    size: u64,
    /// What it says, if that isn't the pattern.
    text: Option<Bytes>,
}

struct Serving<'a> {
    shared: Rc<PolledConnection<'a>>,
    give_up_ns: u64,
    answers: Vec<Answer>,
    requests: usize,
    /// Payload of answers so far.
    sent: u64,
    /// The kernel's view before the first byte.
    start: TcpInfo,
    ours: Option<OwnClient>,
}

/// Answers the requests on a connection that speaks HTTP/2; what a client of ours asked to be taken down.
pub(super) fn serve(wire: Wire<'_>, start: TcpInfo, start_ns: u64) -> Option<(u64, EndReport)> {
    let shared = PolledConnection::new(wire, None);
    let give_up_ns = monotonic_ns().saturating_add(IDLE_NS);
    let mut serving = Serving { shared, give_up_ns, answers: Vec::new(), requests: 0, sent: 0, start, ours: None };
    let finish = serving.run().map_or_else(Finish::PeerLeft, |()| Finish::Done);
    let Serving { shared, sent, ours, .. } = serving;
    let elapsed = Duration::from_nanos(monotonic_ns().saturating_sub(start_ns));
    Some(ours?.report(shared.wire.borrow().socket(), finish, sent, elapsed))
}

impl Serving<'_> {
    fn run(&mut self) -> Result<(), String> {
        let told = |error: h2::Error| error.to_string();
        // Everything is asked again after each wait, so nobody needs to wake anybody.
        let mut context = Context::from_waker(Waker::noop());
        let mut builder = h2::server::Builder::new();
        builder.max_concurrent_streams(MOST_STREAMS).max_header_list_size(MOST_HEAD);
        let mut handshake = pin!(builder.handshake::<_, Bytes>(Door(Rc::clone(&self.shared))));
        let mut connection = loop {
            match handshake.as_mut().poll(&mut context) {
                Poll::Ready(shaken) => break shaken.map_err(told)?,
                Poll::Pending => self.wait()?,
            }
        };
        loop {
            // This also moves what was handed over before.
            let mut moved = match connection.poll_accept(&mut context) {
                Poll::Ready(Some(asked)) => {
                    let (request, respond) = asked.map_err(told)?;
                    self.answer(&request, respond)?;
                    true
                }
                Poll::Ready(None) => return Ok(()),
                Poll::Pending => false,
            };
            moved |= self.send(&mut context);
            if moved {
                self.give_up_ns = monotonic_ns().saturating_add(IDLE_NS);
            } else {
                self.wait()?;
            }
        }
    }

    /// Waits until something may have happened.
    fn wait(&mut self) -> Result<(), String> {
        if let Some(ours) = &mut self.ours {
            ours.look(self.shared.wire.borrow().socket());
        }
        if self.shared.wire.borrow().cancel().is_cancelled() || monotonic_ns() >= self.give_up_ns {
            return Err("it took longer than it may".to_owned());
        }
        self.shared.wait_until(self.give_up_ns).map_err(|error| error.to_string())
    }

    /// Begins the answer to a request.
    fn answer<B>(&mut self, request: &http::Request<B>, mut respond: SendResponse<Bytes>) -> Result<(), String> {
        self.requests += 1;
        if self.requests > MOST_REQUESTS {
            return Err("more requests than one connection may make".to_owned());
        }
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        if self.ours.is_none() {
            self.ours = ConnectionHeaders::of(&header).begin(self.shared.wire.borrow().socket(), self.start);
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let mut head = http::Response::builder().header("cache-control", "no-store");
        let (status, size, text, head_only): (&str, u64, Option<Bytes>, bool) =
            match asked(request.method().as_str(), path, &header) {
                RequestedResource::Bytes { size, whole, part, head_only } => {
                    head = head.header("etag", format!("\"{whole}\"")).header("accept-ranges", "bytes");
                    if part {
                        let range = format!("bytes 0-{}/{whole}", size.saturating_sub(1));
                        head = head.header("content-range", range);
                    }
                    (if part { "206" } else { "200" }, size, None, head_only)
                }
                RequestedResource::Help { head_only } => ("200", HELP.len() as u64, Some(HELP.as_bytes()), head_only),
                RequestedResource::Wrong(status, why) => (status, why.len() as u64, Some(why.as_bytes()), false),
                RequestedResource::Upload { .. } => ("405", 0, Some(b""), false),
            };
        // A line of status has its number first.
        let head = head.status(status.get(..3).unwrap_or("500")).header("content-length", size).body(());
        let head = head.map_err(|error| error.to_string())?;
        let ends = head_only || size == 0;
        match respond.send_response(head, ends) {
            Ok(stream) if !ends => self.answers.push(Answer { stream, sent: 0, size, text }),
            // Who doesn't want it any more gets none.
            Ok(_) => {}
            Err(error) if error.is_reset() => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// Hands over what goes of all answers; whether that was anything.
    fn send(&mut self, context: &mut Context<'_>) -> bool {
        let mut moved = 0;
        self.answers.retain_mut(|answer| {
            let before = answer.sent;
            let goes_on = answer.send(context);
            moved += answer.sent - before;
            goes_on
        });
        self.sent += moved;
        moved > 0
    }
}

impl Answer {
    /// Hands over what goes; whether there is more.
    fn send(&mut self, context: &mut Context<'_>) -> bool {
        let left = usize::try_from(self.size - self.sent).unwrap_or(usize::MAX);
        self.stream.reserve_capacity(left.min(PIECE));
        let room = match self.stream.capacity() {
            0 => match self.stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(room))) => room,
                Poll::Ready(_) => return false,
                Poll::Pending => return true,
            },
            room => room,
        };
        let most = room.min(left).min(PIECE);
        if most == 0 {
            return true;
        }
        let piece = match self.text {
            Some(text) => &text[self.sent as usize..][..most],
            None => pattern::at(self.sent, most),
        };
        self.sent += piece.len() as u64;
        let last = self.sent == self.size;
        self.stream.send_data(piece, last).is_ok() && !last
    }
}
