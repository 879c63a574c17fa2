//! One question for metrics over HTTP, answered at once.

use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_units::HostPort;

/// Who asks more slowly than this gets no answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// The longest head of a question, bytes; what asks for metrics sends some hundred.
const LONGEST: usize = 16 * 1024;

/// Under which names it may be asked. What listens for this host alone isn't asked under others: a web page that had its own name
/// rebound to a loopback address could read the answer in a browser of this host. An address that was typed as numbers can't have been
/// rebound; and what listens for others is asked under whichever names their monitoring has for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskedNames {
    /// This host's name where others are refused; nothing where any name will do.
    own: Option<String>,
}

impl AskedNames {
    /// Those of what listens there.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        let own = || crate::machine::host_name().unwrap_or_default();
        Self { own: address.ip().is_loopback().then(own) }
    }

    fn has(&self, host: &str) -> bool {
        let Some(own) = &self.own else { return true };
        let Ok(place) = host.parse::<HostPort>() else { return false };
        let is = |name: &str| place.host.eq_ignore_ascii_case(name);
        place.ip().is_some() || is("localhost") || is(own)
    }
}

/// Those who ask at once. Who says nothing keeps nobody waiting but where there are very many.
#[derive(Debug, Default)]
pub struct Askers(Arc<()>);

impl Askers {
    /// So many are heard at once.
    const MOST: usize = 64;

    /// Answers as [`answer`] does, on a thread of its own.
    pub fn answer<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        stream: TcpStream,
        names: &'scope AskedNames,
        text: impl FnOnce() -> String + Send + 'scope,
    ) {
        while Arc::strong_count(&self.0) > Self::MOST {
            let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(10)));
        }
        let one = Arc::clone(&self.0);
        let heard = move || {
            // Who asks and leaves, or asks slowly, gets nothing.
            drop(answer(stream, names, text));
            drop(one);
        };
        // Where there are no more threads nobody is answered.
        let _ = std::thread::Builder::new().spawn_scoped(scope, heard);
    }
}

/// Answers `GET` and `HEAD` of `/metrics` with this text, whatever is asked behind a `?`, other methods with 405, names that aren't ours
/// with 403, and everything else with 404.
///
/// # Errors
/// Those of the connection: who asks and leaves, or asks slowly, gets nothing.
pub fn answer(mut stream: TcpStream, names: &AskedNames, text: impl FnOnce() -> String) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = head_of(&mut stream)?;
    let mut lines = head.lines();
    let line: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().take(2).collect();
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    // A scrape may have a query.
    let asked = line.get(1).and_then(|target| target.split('?').next());
    let (status, more, text) = match (line.first().copied().unwrap_or_default(), asked) {
        _ if !hosts.all(|host| names.has(host)) => (
            "403 Forbidden",
            "",
            "Ask under the address or as localhost: another name may be a web page's.\n".to_owned(),
        ),
        ("GET" | "HEAD", Some("/metrics")) => ("200 OK", "", text()),
        (_, Some("/metrics")) => ("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET it, or HEAD.\n".to_owned()),
        _ => ("404 Not Found", "", "There is /metrics.\n".to_owned()),
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}Content-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if line.first() == Some(&"HEAD") { Ok(()) } else { stream.write_all(text.as_bytes()) }
}

/// What is asked, to the empty line that ends it, or as far as it goes.
fn head_of(stream: &mut TcpStream) -> std::io::Result<String> {
    let begun = monotonic_ns();
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    while !head.ends_with(b"\n\n") && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let passed = Duration::from_nanos(monotonic_ns().saturating_sub(begun));
        let left = PATIENCE.checked_sub(passed).filter(|left| !left.is_zero()).ok_or(ErrorKind::TimedOut)?;
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => break,
            length => head.extend_from_slice(&part[..length]),
        }
        if head.len() > LONGEST {
            return Err(Error::new(ErrorKind::InvalidData, "the head of the question doesn't end"));
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What is answered to these bytes, each part written by itself.
    fn answered(names: &AskedNames, parts: &[&str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nodelay(true).unwrap();
        let (stream, _) = listener.accept().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| answer(stream, names, || "windtunnel_x 1\n".to_owned()));
            parts.iter().for_each(|part| client.write_all(part.as_bytes()).unwrap());
            let mut said = String::new();
            client.read_to_string(&mut said).unwrap();
            said
        })
    }

    #[test]
    fn who_says_nothing_keeps_nobody_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (askers, names) = (Askers::default(), AskedNames::default());
        std::thread::scope(|scope| {
            let begun = monotonic_ns();
            let silent: Vec<TcpStream> = (0..40).map(|_| connect()).collect();
            let mut asks = connect();
            asks.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            for _ in 0..=silent.len() {
                let stream = listener.accept().unwrap().0;
                askers.answer(scope, stream, &names, || "windtunnel_x 1\n".to_owned());
            }
            let mut said = String::new();
            asks.read_to_string(&mut said).unwrap();
            // One after the other they would take 20 s.
            assert!(said.ends_with("windtunnel_x 1\n") && monotonic_ns() - begun < 10_000_000_000, "{said}");
        });
    }

    #[test]
    fn head_is_answered_as_get_without_the_text_and_other_methods_are_told_which_will_do() {
        let names = AskedNames::default();
        let asked = |method: &str, path: &str| answered(&names, &[&format!("{method} {path} HTTP/1.1\r\n\r\n")]);
        let got = asked("GET", "/metrics");
        let (head, text) = got.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 ") && text == "windtunnel_x 1\n", "{got}");
        assert_eq!(asked("HEAD", "/metrics"), format!("{head}\r\n\r\n"));
        assert_eq!(asked("GET", "/metrics?collect=all"), got);
        let posted = asked("POST", "/metrics");
        assert!(posted.starts_with("HTTP/1.1 405 ") && posted.contains("\r\nAllow: GET, HEAD\r\n"), "{posted}");
        for (method, path) in [("GET", "/"), ("POST", "/x"), ("GET", ""), ("GET", "/metricsx")] {
            assert!(asked(method, path).starts_with("HTTP/1.1 404 "), "{method} {path}");
        }
    }

    #[test]
    fn what_listens_for_this_host_alone_is_asked_under_no_name_that_may_have_been_rebound() {
        let own = AskedNames::of(([127, 0, 0, 1], 9177).into());
        for host in ["127.0.0.1:9177", "localhost:9177", "LOCALHOST", "[::1]:9177", "10.0.0.1:80"] {
            assert!(own.has(host), "{host}");
        }
        for host in ["evil.example:9177", "evil.example", "localhost.evil.example:9177", "127.0.0.1.evil.example", ""] {
            assert!(!own.has(host), "{host}");
            assert!(AskedNames::of(([0, 0, 0, 0], 9177).into()).has(host), "{host}");
        }
        // However its bytes arrive.
        let foreign = ["GET /metrics HTTP/1.1\r\n", "hOST:  evil.example\r\n", "\r\n"];
        let refused = answered(&own, &foreign);
        assert!(refused.starts_with("HTTP/1.1 403 ") && !refused.contains("windtunnel_x"), "{refused}");
        let answered = answered(&own, &["GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9177\r\n\r\n"]);
        assert!(answered.starts_with("HTTP/1.1 200 "), "{answered}");
    }
}
