//! One question for metrics over HTTP, answered at once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Who asks more slowly than this gets no answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Answers `GET` and `HEAD` of `/metrics` with this text, whatever is asked behind a `?`; another method with 405, another path with 404.
///
/// # Errors
/// Those of the connection: who asks and leaves, or asks slowly, gets nothing.
pub fn answer(mut stream: TcpStream, text: impl FnOnce() -> String) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = [0; 2048];
    let length = stream.read(&mut head)?;
    let line = String::from_utf8_lossy(&head[..length]).into_owned();
    let answer = answer_to(&line, text);
    stream.write_all(answer.as_bytes())
}

/// The answer to a request, of which the first line says everything.
fn answer_to(request: &str, text: impl FnOnce() -> String) -> String {
    let mut words = request.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, more, text) = match (target.split('?').next(), method) {
        (Some("/metrics"), "GET" | "HEAD") => ("200 OK", "", text()),
        (Some("/metrics"), _) => ("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "/metrics is read.\n".to_owned()),
        _ => ("404 Not Found", "", "There is /metrics.\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}Content-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    // HEAD is answered as GET is, but for the text.
    if method == "HEAD" { head } else { head + &text }
}

#[cfg(test)]
mod tests {
    use super::answer_to;

    #[test]
    fn a_scrape_may_have_a_query_or_ask_for_the_head_alone() {
        let answer = |request: &str| answer_to(request, || "figures 1\n".to_owned());
        let whole = answer("GET /metrics HTTP/1.1\r\n\r\n");
        assert!(whole.starts_with("HTTP/1.1 200 OK\r\n") && whole.ends_with("\r\n\r\nfigures 1\n"), "{whole}");
        assert_eq!(answer("GET /metrics?collect=all HTTP/1.1\r\n\r\n"), whole);
        assert_eq!(answer("HEAD /metrics HTTP/1.1\r\n\r\n") + "figures 1\n", whole);
        let other = answer("POST /metrics HTTP/1.1\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 405 ") && other.contains("\r\nAllow: GET, HEAD\r\n"), "{other}");
        for request in ["GET / HTTP/1.1\r\n\r\n", "GET /metricsx HTTP/1.1\r\n\r\n", "GET", ""] {
            assert!(answer(request).starts_with("HTTP/1.1 404 "), "{request}");
        }
    }
}
