/// Many requests at once on one connection.
mod http2;

use crate::pattern;
use crate::proto::SenderOptions;
use crate::tls::ServerTls;
use crate::transfer::{EndReport, Finish};
use crate::wire::Wire;
use std::fmt::Write as _;
use std::io;
use std::net::TcpStream;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::Cancel;
use wt_units::Bytes;

/// The longest request head.
const HEAD: usize = 8 * 1024;
/// Bytes of a body that are copied behind its head, so that both are written at once.
const TOGETHER: usize = 64 * 1024;
/// For so long a client of ours may take to close after us.
const CLOSING: Duration = Duration::from_secs(2);
/// The largest object that is served: 1 TiB.
const LARGEST: u64 = 1 << 40;

/// The first byte of a handshake's record (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;
/// How clients begin who know that a server speaks HTTP/2 (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI ";
/// A connection on which nothing moves for so long is closed.
const IDLE_NS: u64 = 60_000_000_000;

/// Answers requests of a program that isn't ours: `GET /bytes/SIZE` gives so many bytes (`12MB`, `64KiB`, `1000`),
/// `PUT` or `POST` takes what is sent, `GET /` says so. One request, unless the client asks for the connection to be kept.
/// Through TLS, where there is a certificate, and over HTTP/2 it is the same.
///
/// A client of ours names a token; then the server's view of the connection is handed back with it.
pub(crate) fn serve(
    stream: TcpStream,
    begun: &[u8],
    tls: Option<&ServerTls>,
    patience: Duration,
    cancel: &Cancel,
) -> Option<(u64, EndReport)> {
    let start_ns = monotonic_ns();
    let give_up = start_ns + patience.as_nanos() as u64;
    let start = TcpInfo::read(&stream).unwrap_or_default();
    let encrypted = begun.first() == Some(&HANDSHAKE);
    if encrypted || begun == PREFACE {
        // As servers do that speak these.
        let _ = stream.set_nodelay(true);
    }
    let mut wire = Wire::of_server(stream, begun.to_vec(), give_up, cancel).ok()?;
    if encrypted {
        wire.accept(tls?).ok()?;
    }
    if begun == PREFACE || wire.protocol() == Some(b"h2") {
        return http2::serve(wire, start, start_ns);
    }
    let mut exchange = Exchange { wire, give_up, head: Vec::new(), front: Vec::new(), sent: 0, start, ours: None };
    // The client sees the error in the answer, or has left.
    let served = exchange.serve();
    if served.is_ok() && exchange.ours.is_some() {
        // What the kernel says is asked for once all has arrived: until then more may be lost and retransmitted.
        exchange.hear_out();
    }
    let Exchange { wire, sent, ours, .. } = exchange;
    let finish = served.map_or_else(|error| Finish::PeerLeft(error.to_string()), |()| Finish::Done);
    let elapsed = Duration::from_nanos(monotonic_ns().saturating_sub(start_ns));
    Some(ours?.report(wire.socket(), finish, sent, elapsed))
}

struct Exchange<'a> {
    wire: Wire<'a>,
    give_up: u64,
    /// What has come and isn't understood yet.
    head: Vec<u8>,
    /// The head of an answer that hasn't been sent yet.
    front: Vec<u8>,
    /// Payload of answers so far.
    sent: u64,
    /// The kernel's view before the first byte.
    start: TcpInfo,
    /// What a client of ours asked for.
    ours: Option<OwnClient>,
}

/// What a client of ours asked for, and what the kernel said.
struct OwnClient {
    token: u64,
    start: TcpInfo,
    last: TcpInfo,
    refused: Vec<String>,
}

impl OwnClient {
    /// Asks the kernel; a connection that was reset answers no more questions.
    fn look(&mut self, socket: &TcpStream) {
        if let Ok(now) = TcpInfo::read(socket)
            && now.bytes_acked >= self.last.bytes_acked
        {
            self.last = now;
        }
    }

    /// The server's view of the connection, under the client's token.
    fn report(mut self, socket: &TcpStream, finish: Finish, sent: u64, elapsed: Duration) -> (u64, EndReport) {
        self.look(socket);
        let Self { token, start, last, refused } = self;
        let congestion_control = tcp::congestion_control(socket).unwrap_or_default();
        let plain = EndReport::of_several(finish, sent, elapsed);
        (token, EndReport { info: last, congestion_control, refused, start: Some(start), ..plain })
    }
}

/// What a request says of the connection.
#[derive(Debug, PartialEq, Eq, Default)]
struct ConnectionHeaders {
    /// It is to be kept.
    keep: bool,
    /// A client of ours wants the server's view under this token.
    token: Option<u64>,
    /// What it wants the server to set as the sender.
    sender: SenderOptions,
}

/// Requests that one connection may make.
const MOST_REQUESTS: usize = 10_000;

/// What the head of a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum RequestedResource {
    /// The first `size` of `whole` bytes; `part` if a range was asked for.
    Bytes {
        size: u64,
        whole: u64,
        part: bool,
        head_only: bool,
    },
    Upload {
        size: u64,
        waits: bool,
    },
    Help {
        head_only: bool,
    },
    Wrong(&'static str, &'static str),
}

/// Bytes of the help: several packets, so that whoever asks for it sees how long those are that come back.
const HELP_LEN: usize = 8192;
const HELP: &str = "Windtunnel's test server.\n\nGET /bytes/SIZE   so many bytes: 12MB, 64KiB, 1000000\nPUT /anything     takes what you send\n";

impl Exchange<'_> {
    fn serve(&mut self) -> io::Result<()> {
        for _ in 0..MOST_REQUESTS {
            if !self.run()? {
                break;
            }
        }
        while let Err(error) = self.wire.flush_now() {
            self.bear(error, true)?;
        }
        self.wire.finish_writing().map_err(io::Error::other)
    }

    /// Waits until the client closes, too, or leaves, but not for long.
    fn hear_out(&mut self) {
        self.give_up = self.give_up.min(monotonic_ns() + CLOSING.as_nanos() as u64);
        let give_up = self.give_up;
        let mut rest = [0; 1024];
        while matches!(self.read(&mut rest), Ok(n) if n > 0) {
            // Whoever goes on sending gets no more time for it.
            self.give_up = give_up;
        }
    }

    /// Answers one request; whether another one may follow.
    fn run(&mut self) -> io::Result<bool> {
        let (length, asked, manner) = loop {
            match parse(&self.head) {
                Some(parsed) => break parsed,
                None if self.head.len() >= HEAD => {
                    let wrong = RequestedResource::Wrong("431 Request Header Fields Too Large", "");
                    break (self.head.len(), wrong, ConnectionHeaders::default());
                }
                None => {
                    let mut more = [0; 1024];
                    match self.read(&mut more)? {
                        0 => return Ok(false),
                        n => self.head.extend_from_slice(&more[..n]),
                    }
                }
            }
        };
        let head = std::mem::take(&mut self.head);
        if self.ours.is_none() {
            self.ours = manner.begin(self.wire.socket(), self.start);
        }
        // Only where it is known where the next request begins.
        let keep = manner.keep && matches!(asked, RequestedResource::Bytes { .. } | RequestedResource::Help { .. });
        let connection = if keep { "keep-alive" } else { "close" };
        match asked {
            RequestedResource::Bytes { size, whole, part, head_only } => {
                let status = if part { "206 Partial Content" } else { "200 OK" };
                let range = format!("Content-Range: bytes 0-{}/{whole}\r\n", size.saturating_sub(1));
                let more = format!(
                    "Accept-Ranges: bytes\r\nETag: \"{whole}\"\r\n{}Connection: {connection}\r\n",
                    if part { &range } else { "" }
                );
                self.head(status, "application/octet-stream", size, &more);
                if !head_only {
                    self.body(size)?;
                }
            }
            RequestedResource::Upload { size, waits } => {
                if waits {
                    self.write(b"HTTP/1.1 100 Continue\r\n\r\n")?;
                }
                self.take(size.saturating_sub((head.len() - length) as u64))?;
                self.text("200 OK", &format!("{size} bytes received\n"), false, connection)?;
            }
            RequestedResource::Help { head_only } => {
                self.text("200 OK", &format!("{HELP:<HELP_LEN$}"), head_only, connection)?
            }
            RequestedResource::Wrong(status, why) => self.text(status, why, false, connection)?,
        }
        // A head that nothing follows.
        self.write(&[])?;
        self.head = head[length..].to_vec();
        Ok(keep)
    }

    /// Prepares the head; it goes with the first bytes that follow, or it would be a segment of its own in the first window.
    fn head(&mut self, status: &str, kind: &str, length: u64, more: &str) {
        let mut head = String::new();
        let _ = write!(head, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
        head.push_str(more);
        head.push_str("Cache-Control: no-store\r\n\r\n");
        self.front = head.into_bytes();
    }

    fn text(&mut self, status: &str, text: &str, head_only: bool, connection: &str) -> io::Result<()> {
        let more = format!("Connection: {connection}\r\n");
        self.head(status, "text/plain; charset=utf-8", text.len() as u64, &more);
        if head_only { Ok(()) } else { self.write(text.as_bytes()) }
    }

    fn body(&mut self, size: u64) -> io::Result<()> {
        let mut sent = 0;
        while sent < size {
            let piece = pattern::at(sent, usize::try_from(size - sent).unwrap_or(usize::MAX).min(pattern::CHUNK));
            self.write(piece)?;
            sent += piece.len() as u64;
            self.sent += piece.len() as u64;
        }
        Ok(())
    }

    fn take(&mut self, mut left: u64) -> io::Result<()> {
        let mut buffer = vec![0; pattern::CHUNK];
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.read(&mut buffer[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => left -= n as u64,
            }
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.wire.read_now(buffer) {
                Ok(n) => {
                    self.progress();
                    return Ok(n);
                }
                Err(error) => self.bear(error, false)?,
            }
        }
    }

    /// Writes what was prepared and these bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (first, rest) = bytes.split_at(if self.front.is_empty() { 0 } else { bytes.len().min(TOGETHER) });
        let mut together = std::mem::take(&mut self.front);
        together.extend_from_slice(first);
        self.send(&together)?;
        self.send(rest)
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.wire.write_now(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    bytes = &bytes[n..];
                    self.progress();
                }
                Err(error) => self.bear(error, true)?,
            }
        }
        Ok(())
    }

    /// A client that moves its bytes may take as long as it likes; one that stands still for a minute may not.
    fn progress(&mut self) {
        self.give_up = monotonic_ns() + IDLE_NS;
    }

    /// What may pass is waited for; everything else is an error.
    fn bear(&mut self, error: io::Error, to_write: bool) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::WouldBlock => {}
            io::ErrorKind::Interrupted => return Ok(()),
            _ => return Err(error),
        }
        if let Some(ours) = &mut self.ours {
            ours.look(self.wire.socket());
        }
        if self.wire.cancel().is_cancelled() || monotonic_ns() >= self.give_up {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.wire.wait_until(to_write, self.give_up)
    }
}

/// How long the head is, what is asked for and how; `None` while it isn't whole.
fn parse(head: &[u8]) -> Option<(usize, RequestedResource, ConnectionHeaders)> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => {
            let wrong = RequestedResource::Wrong("400 Bad Request", "This is no HTTP request.\n");
            return Some((head.len(), wrong, ConnectionHeaders::default()));
        }
    };
    let header = |name: &str| {
        let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let asked = asked(request.method.unwrap_or(""), request.path.unwrap_or(""), &header);
    Some((length, asked, ConnectionHeaders::of(&header)))
}

/// What a request is for; `header` finds a field of it.
fn asked<'a>(method: &str, path: &str, header: &dyn Fn(&str) -> Option<&'a str>) -> RequestedResource {
    match method {
        "GET" | "HEAD" => {
            let head_only = method == "HEAD";
            match path.strip_prefix("/bytes/").map(str::parse::<Bytes>) {
                Some(Ok(whole)) if whole.get() <= LARGEST => {
                    let whole = whole.get();
                    let first = header("range").and_then(first_bytes).map(|n| n.min(whole)).filter(|n| *n > 0);
                    RequestedResource::Bytes { size: first.unwrap_or(whole), whole, part: first.is_some(), head_only }
                }
                Some(_) => RequestedResource::Wrong("400 Bad Request", "Write a size up to 1TiB: /bytes/12MB\n"),
                None if path == "/" => RequestedResource::Help { head_only },
                None => RequestedResource::Wrong("404 Not Found", "There is / and /bytes/SIZE.\n"),
            }
        }
        "PUT" | "POST" => match header("content-length").map(str::parse::<u64>) {
            Some(Ok(size)) => {
                let waits = header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
                RequestedResource::Upload { size, waits }
            }
            _ => RequestedResource::Wrong("411 Length Required", "Say with Content-Length how much you send.\n"),
        },
        _ => RequestedResource::Wrong("405 Method Not Allowed", "GET, HEAD, PUT and POST are served.\n"),
    }
}

impl ConnectionHeaders {
    fn of<'a>(header: &dyn Fn(&str) -> Option<&'a str>) -> Self {
        Self {
            keep: header("connection").is_some_and(|value| value.eq_ignore_ascii_case("keep-alive")),
            token: header("windtunnel-token").and_then(|value| value.parse().ok()),
            sender: SenderOptions {
                congestion_control: header("windtunnel-congestion-control")
                    .filter(|name| name.len() <= 15)
                    .map(str::to_owned),
                send_buffer: header("windtunnel-send-buffer").and_then(|value| value.parse().ok()),
                ..SenderOptions::default()
            },
        }
    }

    /// Does as a client of ours asks; `start` is what the kernel said at the beginning.
    fn begin(&self, socket: &TcpStream, start: TcpInfo) -> Option<OwnClient> {
        let token = self.token?;
        let refused = self.sender.apply(socket);
        // Where one answer follows the other, none waits for the last one's ACK.
        let _ = socket.set_nodelay(true);
        Some(OwnClient { token, start, last: start, refused })
    }
}

/// How many bytes `bytes=0-LAST` asks for. Other ranges aren't served, and RFC 9110 section 14.2 allows to ignore them.
fn first_bytes(range: &str) -> Option<u64> {
    range.trim().strip_prefix("bytes=0-")?.parse::<u64>().ok()?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(size: u64, whole: u64, part: bool, head_only: bool) -> RequestedResource {
        RequestedResource::Bytes { size, whole, part, head_only }
    }

    #[test]
    fn requests_are_understood() {
        for (head, asked) in [
            ("GET /bytes/12MB HTTP/1.1\r\nHost: x\r\n\r\n", bytes(12_000_000, 12_000_000, false, false)),
            ("HEAD /bytes/64KiB HTTP/1.0\r\n\r\n", bytes(65_536, 65_536, false, true)),
            ("GET /bytes/1000 HTTP/1.1\r\nRange: bytes=0-99\r\n\r\n", bytes(100, 1000, true, false)),
            ("GET /bytes/1000 HTTP/1.1\r\nRange: bytes=0-9999\r\n\r\n", bytes(1000, 1000, true, false)),
            ("GET /bytes/1000 HTTP/1.1\r\nRange: bytes=5-9\r\n\r\n", bytes(1000, 1000, false, false)),
            (
                "PUT /x HTTP/1.1\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n",
                RequestedResource::Upload { size: 7, waits: true },
            ),
            ("GET / HTTP/1.1\r\n\r\n", RequestedResource::Help { head_only: false }),
        ] {
            assert_eq!(parse(head.as_bytes()).map(|(_, asked, _)| asked), Some(asked), "{head}");
        }
        assert_eq!(parse(b"GET /bytes/1 HTTP/1.1\r\nHo"), None);
    }

    #[test]
    fn nonsense_gets_an_error_and_never_a_body() {
        for head in [
            "\0\0\0\0\r\n\r\n",
            "GET /bytes/9999TiB HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\n\r\n",
            "BREW / HTTP/1.1\r\n\r\n",
            "GET /../etc HTTP/1.1\r\n\r\n",
        ] {
            assert!(matches!(parse(head.as_bytes()), Some((_, RequestedResource::Wrong(..), _))), "{head}");
        }
    }
}
