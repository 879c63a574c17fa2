//! What a server answers before the payload. Pure.

use std::time::Duration;

/// The longest head that is read, bytes.
pub(super) const LONGEST: usize = 64 * 1024;
/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// Why an answer can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadError {
    /// It isn't HTTP/1.
    #[error("what came is no HTTP answer ({0})")]
    NotHttp(String),
    /// It goes on and on.
    #[error("the head of the answer is longer than {LONGEST} bytes")]
    TooLong,
    /// Two lengths that contradict each other, or one that is no number.
    #[error("the answer's Content-Length is invalid")]
    Length,
    /// An encoding that we didn't ask for.
    #[error("the answer is encoded as \"{0}\", which wasn't asked for")]
    Encoding(String),
}

/// How the payload's end is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// The connection is closed.
    Close,
}

impl Framing {
    /// Whether there may be more than so many bytes.
    pub(crate) fn may_exceed(self, bytes: u64) -> bool {
        match self {
            Self::Length(length) => length > bytes,
            Self::Chunked | Self::Close => true,
        }
    }
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) framing: Framing,
    pub(crate) location: Option<String>,
    /// As it stands there: seconds or a date.
    pub(crate) retry_after: Option<String>,
    /// What tells this version of the payload from another: `ETag`, else `Last-Modified`.
    pub(crate) version: Option<String>,
    /// Of a part: first byte, and how many the whole has if that is known.
    pub(crate) range: Option<(u64, Option<u64>)>,
    /// Whether the connection is of no use afterwards (RFC 9112 section 9.3).
    pub(crate) close: bool,
}

/// Reads a head, and says how long it is; `None` while it isn't whole.
///
/// # Errors
/// [`HeadError`].
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(usize, Head)>, HeadError> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= LONGEST => return Err(HeadError::TooLong),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(HeadError::NotHttp(error.to_string())),
    };
    let all = |name: &'static str| {
        let same = response.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        same.filter_map(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    };
    let first = |name| all(name).next().map(str::to_owned);
    if let Some(encoding) = all("content-encoding").find(|e| !e.eq_ignore_ascii_case("identity")) {
        return Err(HeadError::Encoding(clean(encoding)));
    }
    let status = response.code.unwrap_or(0);
    let framing = match all("transfer-encoding").next() {
        Some(coding) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunked,
        Some(coding) => return Err(HeadError::Encoding(clean(coding))),
        None if matches!(status, 100..=199 | 204 | 304) => Framing::Length(0),
        None => content_length(all("content-length"))?,
    };
    let head = Head {
        status,
        reason: clean(response.reason.unwrap_or("")),
        framing,
        location: first("location"),
        retry_after: first("retry-after"),
        version: first("etag").or_else(|| first("last-modified")),
        range: first("content-range").as_deref().and_then(content_range),
        close: {
            let said = |word: &str| {
                all("connection")
                    .flat_map(|value| value.split(','))
                    .any(|value| value.trim().eq_ignore_ascii_case(word))
            };
            said("close") || response.version == Some(0) && !said("keep-alive") || framing == Framing::Close
        },
    };
    Ok(Some((length, head)))
}

/// RFC 9110 section 8.6: repeated equal values are one, different ones are an attack.
fn content_length<'a>(values: impl Iterator<Item = &'a str>) -> Result<Framing, HeadError> {
    let mut framing = Framing::Close;
    for value in values.flat_map(|value| value.split(',')) {
        let value = value.trim();
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(HeadError::Length);
        }
        let length = Framing::Length(value.parse().map_err(|_| HeadError::Length)?);
        if framing != Framing::Close && framing != length {
            return Err(HeadError::Length);
        }
        framing = length;
    }
    Ok(framing)
}

/// `bytes 0-99/1000` or `bytes 0-99/*`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, whole) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, whole.trim().parse().ok()))
}

impl Head {
    /// How long the server wants to be left alone; never longer than a day.
    ///
    /// # Source
    /// RFC 9110 section 10.2.3: seconds, or a date.
    pub(crate) fn pause(&self, now_unix: Duration) -> Option<Duration> {
        let text = self.retry_after.as_deref()?;
        let pause = match text.parse::<u64>() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => {
                let date = httpdate::parse_http_date(text).ok()?;
                let date = date.duration_since(std::time::UNIX_EPOCH).ok()?;
                date.saturating_sub(now_unix)
            }
        };
        Some(pause.min(LONGEST_PAUSE))
    }

    /// `404 Not Found`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.status, self.reason).trim_end().to_owned()
    }
}

/// A foreign text, short and without what a terminal would obey.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str) -> Result<Head, HeadError> {
        parse(text.as_bytes()).map(|found| found.unwrap().1)
    }

    #[test]
    fn heads_are_read() {
        let found = head(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nETag: \"x\"\r\nContent-Range: bytes 0-99/1000\r\n\r\n",
        )
        .unwrap();
        assert_eq!(found.framing, Framing::Length(100));
        assert_eq!((found.range, found.version.as_deref()), (Some((0, Some(1000))), Some("\"x\"")));
        assert_eq!(found.line(), "206 Partial Content");
        let chunked = head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n").unwrap();
        assert_eq!(chunked.framing, Framing::Chunked);
        assert_eq!(head("HTTP/1.0 200 OK\r\n\r\n").unwrap().framing, Framing::Close);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nServer: x"), Ok(None));
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for length in ["5, 6", "-1", "99999999999999999999999", "0x10", "", "5\r\nContent-Length: 6"] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            assert_eq!(head(&text), Err(HeadError::Length), "{length}");
        }
        let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(head(twice).unwrap().framing, Framing::Length(5));
    }

    #[test]
    fn an_endless_head_is_refused() {
        let text = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(LONGEST));
        assert_eq!(parse(text.as_bytes()), Err(HeadError::TooLong));
    }

    #[test]
    fn an_encoding_that_nobody_asked_for_is_refused() {
        for line in ["Content-Encoding: gzip", "Transfer-Encoding: gzip, chunked"] {
            let text = format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n");
            assert!(matches!(head(&text), Err(HeadError::Encoding(_))), "{line}");
        }
    }

    #[test]
    fn pauses_are_seconds_or_dates_and_never_longer_than_a_day() {
        let now = Duration::from_secs(784_111_777);
        for (text, seconds) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:50:00 GMT", Some(23)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("99999999999", Some(86_400)),
            ("soon", None),
        ] {
            let text = format!("HTTP/1.1 503 No\r\nRetry-After: {text}\r\n\r\n");
            assert_eq!(head(&text).unwrap().pause(now), seconds.map(Duration::from_secs), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let mut with_start = b"HTTP/1.1 200 OK\r\n".to_vec();
            with_start.extend(&bytes);
            if let Ok(Some((length, head))) = parse(&with_start) {
                prop_assert!(length <= with_start.len());
                let _ = head.pause(Duration::ZERO);
            }
        }
    }
}
