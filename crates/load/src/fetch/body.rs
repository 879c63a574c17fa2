//! Taking the payload out of what comes. Pure.

use super::head::Framing;

/// The longest line between chunks, bytes, and the longest trailer.
const LONGEST_LINE: usize = 4096;
const LONGEST_TRAILER: usize = 16 * 1024;

/// Why the payload's framing is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// The length of a chunk is no number, or is followed by something else than an end of line.
    #[error("the chunks of the answer are broken")]
    Chunk,
    /// A line between chunks, or the trailer, goes on and on.
    #[error("the answer has endless lines between its chunks")]
    TooLong,
}

/// What is expected next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// So many bytes more.
    Left(u64),
    /// Everything until the connection is closed.
    Open,
    /// A chunk's length.
    Size(Vec<u8>),
    /// So many bytes of a chunk more.
    Chunk(u64),
    /// The end of the line after a chunk: so many bytes of it have come.
    ChunkEnd(usize),
    /// Lines after the last chunk: how long this one is so far, and all of them.
    Trailer { line: usize, all: usize },
    /// All was there.
    Done,
}

/// Takes payload out of a stream, byte by byte as it may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body(State);

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Left(length),
            Framing::Chunked => State::Size(Vec::new()),
            Framing::Close => State::Open,
        })
    }

    /// Whether all was there.
    pub(crate) fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// Whether it is all there if the connection is closed now.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.0, State::Done | State::Open)
    }

    /// Moves the payload among these bytes to their front; how many it is. What comes after the end is left away.
    ///
    /// # Errors
    /// [`BodyError`].
    pub(crate) fn take(&mut self, bytes: &mut [u8]) -> Result<usize, BodyError> {
        let (mut read, mut kept) = (0, 0);
        while read < bytes.len() {
            match &mut self.0 {
                State::Done => break,
                State::Open => {
                    bytes.copy_within(read.., kept);
                    kept += bytes.len() - read;
                    read = bytes.len();
                }
                State::Left(left) | State::Chunk(left) => {
                    let piece = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - read);
                    bytes.copy_within(read..read + piece, kept);
                    (read, kept) = (read + piece, kept + piece);
                    *left -= piece as u64;
                    if *left == 0 {
                        self.0 = if let State::Left(_) = self.0 { State::Done } else { State::ChunkEnd(0) };
                    }
                }
                State::Size(line) => {
                    line.push(bytes[read]);
                    read += 1;
                    if line.last() == Some(&b'\n') {
                        self.0 = match chunk_size(line)? {
                            0 => State::Trailer { line: 0, all: 0 },
                            size => State::Chunk(size),
                        };
                    } else if line.len() > LONGEST_LINE {
                        return Err(BodyError::TooLong);
                    }
                }
                State::ChunkEnd(seen) => {
                    if bytes[read] != b"\r\n"[*seen] {
                        return Err(BodyError::Chunk);
                    }
                    read += 1;
                    self.0 = if *seen == 0 { State::ChunkEnd(1) } else { State::Size(Vec::new()) };
                }
                State::Trailer { line, all } => {
                    let byte = bytes[read];
                    read += 1;
                    *all += 1;
                    if *all > LONGEST_TRAILER {
                        return Err(BodyError::TooLong);
                    }
                    match byte {
                        b'\n' if *line == 0 => self.0 = State::Done,
                        b'\n' => *line = 0,
                        b'\r' => {}
                        _ => *line += 1,
                    }
                }
            }
        }
        Ok(kept)
    }
}

/// RFC 9112 section 7.1: hexadecimal digits, then perhaps extensions.
fn chunk_size(line: &[u8]) -> Result<u64, BodyError> {
    match httparse::parse_chunk_size(line) {
        Ok(httparse::Status::Complete((length, size))) if length == line.len() => Ok(size),
        _ => Err(BodyError::Chunk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds in pieces of this size; payload and whether it ended.
    fn feed(framing: Framing, bytes: &[u8], piece: usize) -> Result<(Vec<u8>, bool), BodyError> {
        let mut body = Body::new(framing);
        let mut payload = Vec::new();
        for piece in bytes.chunks(piece.max(1)) {
            let mut buffer = piece.to_vec();
            let kept = body.take(&mut buffer)?;
            payload.extend_from_slice(&buffer[..kept]);
        }
        Ok((payload, body.is_done()))
    }

    #[test]
    fn payload_is_the_same_however_it_comes_in() {
        let chunked = b"5\r\nhello\r\n1;x=y\r\n \r\nb\r\nbig world!\n\r\n0\r\nTrailer: x\r\n\r\nmore";
        for piece in [1, 2, 3, 7, 1000] {
            let (payload, done) = feed(Framing::Chunked, chunked, piece).unwrap();
            assert_eq!((payload.as_slice(), done), (&b"hello big world!\n"[..], true), "{piece}");
            let (payload, done) = feed(Framing::Length(5), b"hello, and more", piece).unwrap();
            assert_eq!((payload.as_slice(), done), (&b"hello"[..], true));
            let (payload, done) = feed(Framing::Close, b"hello", piece).unwrap();
            assert_eq!((payload.as_slice(), done), (&b"hello"[..], false));
        }
    }

    #[test]
    fn broken_chunks_are_errors() {
        for text in ["x\r\n", "5\r\nhelloXX", "-5\r\n", "ffffffffffffffffff\r\n", "5 5\r\nhello"] {
            assert!(feed(Framing::Chunked, text.as_bytes(), 1).is_err(), "{text}");
        }
        let endless = [b"5;".as_slice(), &[b'x'; 10_000]].concat();
        assert_eq!(feed(Framing::Chunked, &endless, 100), Err(BodyError::TooLong));
        let trailer = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(10_000)].concat();
        assert_eq!(feed(Framing::Chunked, &trailer, 100), Err(BodyError::TooLong));
    }

    #[test]
    fn an_end_in_the_middle_is_told_from_one_at_the_end() {
        let mut body = Body::new(Framing::Length(10));
        body.take(&mut [0; 5]).unwrap();
        assert!(!body.may_end());
        assert!(Body::new(Framing::Close).may_end() && Body::new(Framing::Length(0)).may_end());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_grow(bytes in proptest::collection::vec(any::<u8>(), 0..400), piece in 1..50_usize) {
            for framing in [Framing::Chunked, Framing::Length(100), Framing::Close] {
                if let Ok((payload, _)) = feed(framing, &bytes, piece) {
                    prop_assert!(payload.len() <= bytes.len());
                }
            }
        }

        #[test]
        fn chunks_of_any_size_give_the_payload_back(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..10), piece in 1..50_usize
        ) {
            let mut wire = Vec::new();
            for chunk in &pieces {
                wire.extend(format!("{:x}\r\n", chunk.len()).bytes());
                wire.extend(chunk);
                wire.extend(b"\r\n");
            }
            wire.extend(b"0\r\n\r\n");
            let (payload, done) = feed(Framing::Chunked, &wire, piece).unwrap();
            prop_assert!(done);
            prop_assert_eq!(payload, pieces.concat());
        }
    }
}
