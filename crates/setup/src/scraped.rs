//! One question for metrics over HTTP, answered at once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Who asks more slowly than this gets no answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Answers `GET /metrics` with this text, and everything else with 404.
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
    let (status, text) = match line.split_whitespace().take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics"] => ("200 OK", text()),
        _ => ("404 Not Found", "There is /metrics.\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}
