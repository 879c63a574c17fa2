/// The other end's application: what to say to it, and what it says.
///
/// Bytes come in order and without holes.
pub trait Session: std::fmt::Debug {
    /// What is sent with the handshake's last segment.
    fn opening(&mut self) -> Vec<u8>;
    /// Takes bytes of the server, and gives what is to be said next; mostly nothing.
    fn hear(&mut self, bytes: &[u8]) -> Vec<u8>;
    /// The response as far as it can be read.
    fn response(&self) -> &[u8];
    /// How many bytes of the stream the response takes at least, as far as its head says so; `None` while unknown.
    fn length(&self) -> Option<u64>;
    /// Whether what was heard is of another protocol, so that its flight is no answer.
    fn is_foreign(&self) -> bool {
        false
    }
}

/// So much of a response is read: its head.
pub const HEAD: usize = 4096;

/// What a response's head says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Where it redirects to.
    pub location: Option<String>,
    /// Bytes of head and body together, if it says.
    pub length: Option<u64>,
}

impl Head {
    /// Reads it; `None` while it isn't whole, or when it is no HTTP.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = text.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
        let mut head = Self { status, location: None, length: None };
        let mut chunked = false;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "location" => head.location = Some(value.trim().to_owned()),
                "content-length" => {
                    head.length = value.trim().parse::<u64>().ok().and_then(|body| body.checked_add(end as u64));
                }
                "transfer-encoding" => chunked = true,
                _ => {}
            }
        }
        if chunked {
            head.length = None;
        }
        Some(head)
    }
}

/// The request for a path, with a User-Agent that says what this is.
#[must_use]
pub fn request(host: &str, path: &str, agent: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\
         Connection: close\r\n\r\n"
    )
    .into_bytes()
}

/// HTTP without TLS.
#[derive(Debug, Clone)]
pub struct Plain {
    request: Vec<u8>,
    response: Vec<u8>,
    /// Whether the head is whole.
    read: bool,
    length: Option<u64>,
}

impl Plain {
    /// Sends this request.
    #[must_use]
    pub fn new(request: Vec<u8>) -> Self {
        Self { request, response: Vec::new(), read: false, length: None }
    }
}

impl Session for Plain {
    fn opening(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.request)
    }

    fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        let room = HEAD.saturating_sub(self.response.len());
        if room > 0 && !self.read {
            self.response.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if let Some(head) = Head::read(&self.response) {
                (self.read, self.length) = (true, head.length);
            }
        }
        Vec::new()
    }

    fn response(&self) -> &[u8] {
        &self.response
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

/// Puts bytes in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    /// The next byte in order.
    next: u32,
    waiting: std::collections::BTreeMap<u32, Vec<u8>>,
    held: usize,
    /// Bytes in order are taken up to here; what follows nobody reads.
    most: u32,
}

/// So many bytes are held back at most while one before them is missing.
const MOST_HELD: usize = 64 << 10;

impl Stream {
    pub(super) fn new(most: u32) -> Self {
        Self { most, ..Self::default() }
    }

    /// Takes bytes from `start`; gives those that are now in order.
    pub(super) fn take(&mut self, start: u32, bytes: &[u8]) -> Vec<u8> {
        if start > self.next {
            let known = self.waiting.get(&start).map_or(0, Vec::len);
            if start < self.most && known < bytes.len() && self.held + bytes.len() <= MOST_HELD {
                self.held += bytes.len() - known;
                self.waiting.insert(start, bytes.to_vec());
            }
            return Vec::new();
        }
        let mut ready = Vec::new();
        self.append(start, bytes, &mut ready);
        while let Some((&start, _)) = self.waiting.first_key_value().filter(|(start, _)| **start <= self.next) {
            let held = self.waiting.remove(&start).unwrap_or_default();
            self.held -= held.len();
            self.append(start, &held, &mut ready);
        }
        ready
    }

    fn append(&mut self, start: u32, bytes: &[u8], ready: &mut Vec<u8>) {
        let known = (self.next - start) as usize;
        let room = self.most.saturating_sub(self.next) as usize;
        let new = bytes.get(known..).unwrap_or_default();
        let new = &new[..new.len().min(room)];
        ready.extend_from_slice(new);
        self.next += new.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_status_place_and_length() {
        let text = b"HTTP/1.1 301 Moved\r\nLocation: https://x/\r\ncontent-length: 10\r\n\r\nbody";
        let head = Head::read(text).unwrap();
        assert_eq!((head.status, head.location.as_deref()), (301, Some("https://x/")));
        assert_eq!(head.length, Some(text.len() as u64 - 4 + 10));
        assert_eq!(Head::read(b"HTTP/1.1 200 OK\r\nContent-Length: 1"), None);
        assert_eq!(Head::read(b"220 smtp\r\n\r\n"), None);
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(Head::read(chunked).unwrap().length, None);
        let huge = b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n";
        assert_eq!(Head::read(huge).unwrap().length, None);
    }

    #[test]
    fn bytes_come_out_in_order_and_only_once() {
        let mut stream = Stream::new(100);
        assert!(stream.take(3, b"def").is_empty());
        assert!(stream.take(8, b"i").is_empty());
        assert_eq!(stream.take(0, b"abcd"), b"abcdef");
        assert_eq!(stream.take(5, b"fgh"), b"ghi");
        assert!(stream.take(0, b"abc").is_empty());
        assert_eq!(stream.take(9, &[7; 500]).len(), 91, "no more than is wanted");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut stream = Stream::new(u32::MAX);
        for i in 1..100_000 {
            stream.take(i * 7, &[0; 1000]);
        }
        assert!(stream.held <= MOST_HELD && stream.waiting.len() < 100);
    }
}
