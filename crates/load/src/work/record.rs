use crate::proto::RequestError;
use std::time::Duration;

/// Bytes of a record.
pub(crate) const RECORD_LEN: usize = 24;
/// The most that one request or answer holds.
const LARGEST: u32 = 1 << 30;
/// The most messages of one stream.
pub(crate) const MOST_MESSAGES: u32 = 100_000;
/// Nothing takes longer from one message to the next.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// What a client wants next on a connection on which it talks with the server.
///
/// On the wire, big-endian: kind (1), zeros (7), first size or message size (4), second size or number of messages (4),
/// interval in µs (8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// So many bytes of the pattern follow; then so many are the answer.
    Exchange { request: u32, answer: u32 },
    /// So many messages from the server at this pace.
    Messages { size: u32, count: u32, interval: Duration },
    /// So many messages from the client at this pace.
    Taking { size: u32, count: u32, interval: Duration },
}

impl Record {
    pub(crate) fn to_bytes(self) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        let (kind, a, b, interval) = match self {
            Self::Exchange { request, answer } => (1, request, answer, Duration::ZERO),
            Self::Messages { size, count, interval } => (2, size, count, interval),
            Self::Taking { size, count, interval } => (3, size, count, interval),
        };
        bytes[0] = kind;
        bytes[8..12].copy_from_slice(&a.to_be_bytes());
        bytes[12..16].copy_from_slice(&b.to_be_bytes());
        let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        bytes[16..24].copy_from_slice(&micros.to_be_bytes());
        bytes
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`RequestError`] for everything that is invalid or takes too much.
    pub(crate) fn from_bytes(bytes: &[u8; RECORD_LEN]) -> Result<Self, RequestError> {
        if bytes[1..8].iter().any(|byte| *byte != 0) {
            return Err(RequestError::Foreign);
        }
        let small = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (a, b) = (small(8), small(12));
        let interval = Duration::from_micros(u64::from_be_bytes(std::array::from_fn(|i| bytes[16 + i])));
        let paced = (1..=LARGEST).contains(&a) && (1..=MOST_MESSAGES).contains(&b);
        let sensible = interval >= Duration::from_micros(10) && interval <= LONGEST_INTERVAL;
        match bytes[0] {
            1 if a <= LARGEST && b <= LARGEST && interval.is_zero() => Ok(Self::Exchange { request: a, answer: b }),
            1 => Err(RequestError::OutOfRange("exchange")),
            2 | 3 if !paced => Err(RequestError::OutOfRange("stream")),
            2 | 3 if !sensible => Err(RequestError::OutOfRange("interval")),
            2 => Ok(Self::Messages { size: a, count: b, interval }),
            3 => Ok(Self::Taking { size: a, count: b, interval }),
            _ => Err(RequestError::OutOfRange("kind of record")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_read_back() {
        let interval = Duration::from_millis(10);
        for record in [
            Record::Exchange { request: 0, answer: 1_000_000 },
            Record::Messages { size: 200, count: 500, interval },
            Record::Taking { size: 1, count: MOST_MESSAGES, interval },
        ] {
            assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(record));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_ask_for_too_much(bytes in any::<[u8; RECORD_LEN]>(), kind in 0..5_u8) {
            let mut bytes = bytes;
            bytes[0] = kind;
            bytes[1..8].fill(0);
            if let Ok(Record::Messages { size, count, interval } | Record::Taking { size, count, interval }) =
                Record::from_bytes(&bytes)
            {
                prop_assert!(size <= LARGEST && count <= MOST_MESSAGES && interval <= LONGEST_INTERVAL);
            }
        }
    }
}
