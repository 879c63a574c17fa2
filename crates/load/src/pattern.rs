use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::LazyLock;
use wt_sys::lent::{Lender, Payload};
use wt_sys::pages::Pages;

/// Bytes after which the pattern repeats: a prime, so that data displaced by any usual block size differs.
const PERIOD: usize = 65_521;
/// The longest piece that is sent or checked at once.
pub(crate) const CHUNK: usize = 256 * 1024;
/// The longest piece of payload that is written at once, as by usual programs (curl, cp and what copies through a buffer of 64 KiB or less).
/// Where a send buffer is short, the kernel puts all of a longer piece beside what is under way, and the connection is faster than
/// theirs: by 2.6 with 256 KiB and a buffer of 64 KiB.
pub(crate) const PIECE: usize = 64 * 1024;

/// The longest piece for a send buffer of so many bytes: a sixteenth of it, from [`PIECE`] up to [`CHUNK`]. Longer pieces make fuller
/// packets, since what is left of each is a short one: over a veth pair a transfer is half as fast again with 256 KiB as with 64.
pub(crate) fn piece(send_buffer: usize) -> usize {
    (send_buffer / 16).clamp(PIECE, CHUNK)
}

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // xorshift64* (Vigna 2016): incompressible, so that no link compresses it.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let period: Vec<u8> = (0..PERIOD)
        .map(|_| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 56) as u8
        })
        .collect();
    period.iter().copied().cycle().take(PERIOD + CHUNK).collect()
});

/// The same in memory that packets borrow; `None` where there is none.
static PAYLOAD: LazyLock<Option<Payload>> = LazyLock::new(|| Payload::of(&TABLE).ok());

/// The same in a file, so that what many senders send is copied once less; `None` where the kernel has no such thing.
static PAGES: LazyLock<Option<Pages>> = LazyLock::new(|| Pages::of(&TABLE).ok());

/// Sends the pattern over one connection.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Once it had the connection's thread to itself; `Some(None)` where that can't be.
    lender: Option<Option<Lender>>,
}

impl Sender {
    /// Sends what stands at `offset`, where the last call ended, at most `len` bytes and [`CHUNK`] of it; how many the kernel took.
    /// Whoever is `alone` lends it to the packets, by a pipe that a crowd would have too many of.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn send(&mut self, mut to: &TcpStream, offset: u64, len: usize, alone: bool) -> io::Result<usize> {
        let start = (offset % PERIOD as u64) as usize;
        let len = len.min(CHUNK);
        if alone && self.lender.is_none() {
            self.lender = Some(Lender::new().ok());
        }
        if let (Some(Some(lender)), Some(payload)) = (&mut self.lender, PAYLOAD.as_ref())
            && (alone || lender.holds())
        {
            return lender.send(payload, to.as_fd(), start..start + len);
        }
        match PAGES.as_ref() {
            Some(pages) => pages.send(to.as_fd(), start, len),
            None => to.write(at(offset, len)),
        }
    }
}

/// Sends what stands at `offset` in pieces of `size` bytes each, gathered in one call, at most [`CHUNK`] and `len` in all; how many bytes
/// the kernel took.
///
/// # Errors
/// The socket's, if nothing went before.
pub(crate) fn write(to: &TcpStream, offset: u64, len: usize, size: u16) -> io::Result<usize> {
    wt_sys::tcp::send_pieces(to, at(offset, len), usize::from(size))
}

/// What stands at `offset` of every transfer, `len` bytes of it (at most [`CHUNK`]).
pub(crate) fn at(offset: u64, len: usize) -> &'static [u8] {
    let start = (offset % PERIOD as u64) as usize;
    &TABLE[start..start + len.min(CHUNK)]
}

/// Where the first byte lies that isn't what was sent, if there is one.
pub(crate) fn first_difference(offset: u64, bytes: &[u8]) -> Option<u64> {
    let mut done = 0;
    for piece in bytes.chunks(CHUNK) {
        let expected = at(offset + done, piece.len());
        if piece != expected {
            let within = piece.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
            return Some(offset + done + within as u64);
        }
        done += piece.len() as u64;
    }
    None
}

/// How many bytes of the pattern are missing at `offset`, if these bytes are what stands behind them: data that was lost,
/// rather than changed.
pub(crate) fn missing(offset: u64, bytes: &[u8]) -> Option<u64> {
    /// So many bytes can't agree by chance with one of a period's places.
    const ENOUGH: usize = 8;
    let found = bytes.len() >= ENOUGH;
    let bytes = &bytes[..bytes.len().min(ENOUGH)];
    let shift = (1..PERIOD).find(|shift| found && at(offset + *shift as u64, bytes.len()) == bytes)?;
    Some(shift as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_recognised_at_every_offset() {
        for offset in [0, 1, 65_520, 65_521, 1 << 40] {
            assert_eq!(first_difference(offset, at(offset, CHUNK)), None);
        }
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_changed() {
        for (offset, gap) in [(0, 1460), (65_500, 100), (1 << 33, 65_520)] {
            assert_eq!(missing(offset, at(offset + gap, 1000)), Some(gap));
        }
        let mut changed = at(0, 1000).to_vec();
        changed[0] ^= 1;
        assert_eq!((missing(0, &changed), missing(0, at(5, 7))), (None, None));
    }

    #[test]
    fn a_piece_is_a_small_part_of_a_long_buffer_and_never_longer_than_what_is_sent_at_once() {
        let pieces = [0, 64 << 10, 1 << 20, 2 << 20, 4 << 20, usize::MAX].map(piece);
        assert_eq!(pieces, [PIECE, PIECE, PIECE, 2 * PIECE, CHUNK, CHUNK]);
    }

    #[test]
    fn one_wrong_byte_is_found_where_it_is() {
        let mut bytes = at(1000, 5000).to_vec();
        bytes[4321] ^= 1;
        assert_eq!(first_difference(1000, &bytes), Some(5321));
    }

    #[test]
    fn a_displaced_segment_is_found_for_every_usual_size() {
        for shift in [1, 536, 1448, 1460, 4096, 16_384, 65_536] {
            assert!(first_difference(0, at(shift, 1448)).is_some(), "shift {shift}");
        }
    }
}
