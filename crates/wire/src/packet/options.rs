use super::{Seq, ViewError, u32_at};

/// One option of a TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcpOption<'a> {
    /// Padding between options (RFC 9293 section 3.1).
    Nop,
    /// The largest segment that its sender receives (RFC 9293 section 3.7.1).
    Mss(u16),
    /// The shift of its sender's windows (RFC 7323 section 2.2); as written, though 14 is the largest allowed.
    WindowScale(u8),
    /// Its sender understands SACK (RFC 2018 section 2).
    SackPermitted,
    /// What arrived out of order or twice (RFC 2018 section 3).
    Sack(SackBlocks<'a>),
    /// Its sender's clock and the echo of ours (RFC 7323 section 3.2).
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The echo.
        echo: u32,
    },
    /// A cookie, or an empty request for one (RFC 7413 section 4.1.1).
    FastOpen(&'a [u8]),
    /// Any other.
    Unknown {
        /// Its number.
        kind: u8,
        /// Its bytes after kind and length.
        data: &'a [u8],
    },
}

/// The options of a TCP header, in order; ends at the end of the list or after the first broken one.
#[derive(Debug, Clone)]
pub struct TcpOptions<'a> {
    rest: &'a [u8],
}

impl<'a> TcpOptions<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The first option for which this gives something; broken ones end the search.
    pub fn find<T>(self, wanted: impl Fn(TcpOption<'a>) -> Option<T>) -> Option<T> {
        self.map_while(Result::ok).find_map(wanted)
    }
}

impl<'a> Iterator for TcpOptions<'a> {
    type Item = Result<TcpOption<'a>, ViewError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, after) = self.rest.split_first()?;
        match kind {
            0 => {
                self.rest = &[];
                return None;
            }
            1 => {
                self.rest = after;
                return Some(Ok(TcpOption::Nop));
            }
            _ => {}
        }
        let available = self.rest.len();
        let len = after.first().map_or(0, |len| usize::from(*len));
        let Some(data) = self.rest.get(2..len).filter(|_| len >= 2) else {
            self.rest = &[];
            return Some(Err(if len > available {
                ViewError::Truncated { what: "a TCP option", needed: len, available }
            } else {
                ViewError::Length { what: "a TCP option", value: len }
            }));
        };
        self.rest = &self.rest[len..];
        Some(Ok(match (kind, data) {
            (2, &[high, low]) => TcpOption::Mss(u16::from_be_bytes([high, low])),
            (3, &[shift]) => TcpOption::WindowScale(shift),
            (4, []) => TcpOption::SackPermitted,
            (5, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => TcpOption::Sack(SackBlocks { bytes: blocks }),
            (8, data) if data.len() == 8 => TcpOption::Timestamps { value: u32_at(data, 0), echo: u32_at(data, 4) },
            (34, cookie) => TcpOption::FastOpen(cookie),
            (kind, data) => TcpOption::Unknown { kind, data },
        }))
    }
}

/// The blocks of a SACK option: first byte, and the byte after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackBlocks<'a> {
    bytes: &'a [u8],
}

impl SackBlocks<'_> {
    /// The blocks in the order in which they are written: the newest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Seq, Seq)> + '_ {
        self.bytes.chunks_exact(8).map(|block| (Seq(u32_at(block, 0)), Seq(u32_at(block, 4))))
    }

    /// Whether the first block reports data that arrived twice: it lies below the cumulative acknowledgement or within
    /// the second block.
    ///
    /// # Source
    /// RFC 2883 section 4; the test is that of its section 4.1 and 4.2, as Linux's `tcp_check_dsack` has it.
    #[must_use]
    pub fn is_duplicate(&self, ack: Seq) -> bool {
        let mut blocks = self.iter();
        let Some((first, end)) = blocks.next() else {
            return false;
        };
        if first.is_before(ack) {
            return true;
        }
        blocks.next().is_some_and(|(start, stop)| !first.is_before(start) && !stop.is_before(end))
    }

    /// How many there are: up to four fit.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Never: an option without blocks is not a SACK option.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
