use std::net::TcpStream;
use std::time::Duration;
use wt_sys::{SysError, tcp};
use wt_trial::{Amount, Direction};
use wt_units::Bytes;

/// Bytes of a request.
pub(crate) const REQUEST_LEN: usize = 48;
/// The first bytes of every request; the last is the version.
pub(crate) const MAGIC: [u8; 4] = *b"WTL1";

/// What the sender of the payload sets on its socket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SenderOptions {
    /// The congestion control, if not the system's.
    pub congestion_control: Option<String>,
    /// The send buffer, bytes, if not the system's.
    pub send_buffer: Option<u32>,
    /// The bytes of each write, many of which go by one sendmmsg(2); else as much as goes in at once.
    pub write_size: Option<u16>,
    /// Whether it sends at once what doesn't fill a segment (`TCP_NODELAY`): so a window is used whole that is no multiple of
    /// the MSS.
    pub no_delay: bool,
}

impl SenderOptions {
    /// Sets it; what the kernel refuses, and why.
    pub(crate) fn apply(&self, stream: &TcpStream) -> Vec<String> {
        let control = self.congestion_control.as_ref().map(|name| tcp::set_congestion_control(stream, name));
        let buffer = self.send_buffer.map(|size| tcp::set_send_buffer(stream, size));
        let no_delay = self.no_delay.then(|| {
            stream.set_nodelay(true).map_err(|source| SysError { doing: "set TCP_NODELAY".to_owned(), source })
        });
        [control, buffer, no_delay].into_iter().flatten().filter_map(|set| Some(set.err()?.to_string())).collect()
    }
}

/// What a client asks of the server at the head of a connection.
///
/// On the wire, big-endian: magic (4), direction (1), amount's kind (1: time, 2: size, 3: time of taking turns; 128 more: the sender
/// doesn't delay), bytes of each write (2), amount in µs or bytes (8), token (8), send buffer (4), receive window (4), congestion control padded with zeros (16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which way the payload goes.
    pub direction: Direction,
    /// How much of it.
    pub amount: Amount,
    /// Under which the server's report is asked for later.
    pub token: u64,
    /// What the server sets when it is the sender.
    pub sender: SenderOptions,
    /// The window that the server advertises when it is the receiver, bytes, if not the system's.
    pub window: Option<u32>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It isn't a request of ours.
    #[error("this is no request of this protocol: a client of another version, or another program")]
    Foreign,
    /// A field has a value that isn't allowed.
    #[error("the request's {0} is out of range")]
    OutOfRange(&'static str),
}

/// Smaller writes would only cost the server's processor.
const LEAST_WRITE: u16 = 64;

/// The kind of amount of a connection on which both take turns.
const TALK: u8 = 3;

/// Added to the kind of amount where the sender sets `TCP_NODELAY`.
const NO_DELAY: u8 = 128;

/// Whether these bytes ask for a connection on which both take turns.
pub(crate) fn is_talk(bytes: &[u8; REQUEST_LEN]) -> bool {
    bytes[5] & !NO_DELAY == TALK
}

/// No transfer takes longer.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Request {
    /// Writes the request.
    ///
    /// # Errors
    /// [`RequestError::OutOfRange`] when a name is too long.
    pub fn to_bytes(&self) -> Result<[u8; REQUEST_LEN], RequestError> {
        let mut bytes = [0; REQUEST_LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = match self.direction {
            Direction::Down => 1,
            Direction::Up => 2,
        };
        let (kind, amount) = match self.amount {
            Amount::Time(time) => (1, u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            Amount::Size(size) => (2, size.get()),
        };
        bytes[5] = kind;
        bytes[6..8].copy_from_slice(&self.sender.write_size.unwrap_or(0).to_be_bytes());
        if self.sender.no_delay {
            bytes[5] |= NO_DELAY;
        }
        bytes[8..16].copy_from_slice(&amount.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.token.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.sender.send_buffer.unwrap_or(0).to_be_bytes());
        bytes[28..32].copy_from_slice(&self.window.unwrap_or(0).to_be_bytes());
        let name = self.sender.congestion_control.as_deref().unwrap_or("").as_bytes();
        if name.len() > 15 {
            return Err(RequestError::OutOfRange("congestion control"));
        }
        bytes[32..32 + name.len()].copy_from_slice(name);
        Ok(bytes)
    }

    /// Writes the request for a connection on which both take turns: its amount is for how long at most.
    ///
    /// # Errors
    /// [`RequestError::OutOfRange`] when a name is too long, or the amount isn't a time.
    pub(crate) fn to_bytes_of_talk(&self) -> Result<[u8; REQUEST_LEN], RequestError> {
        let mut bytes = self.to_bytes()?;
        if let Amount::Size(_) = self.amount {
            return Err(RequestError::OutOfRange("amount"));
        }
        bytes[5] = TALK | bytes[5] & NO_DELAY;
        Ok(bytes)
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`RequestError`] for everything that [`Request::to_bytes`] doesn't write.
    pub fn from_bytes(bytes: &[u8; REQUEST_LEN]) -> Result<Self, RequestError> {
        if bytes[..4] != MAGIC {
            return Err(RequestError::Foreign);
        }
        let direction = match bytes[4] {
            1 => Direction::Down,
            2 => Direction::Up,
            _ => return Err(RequestError::OutOfRange("direction")),
        };
        let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let amount = match bytes[5] & !NO_DELAY {
            1 | TALK => Amount::Time(Duration::from_micros(number(8))),
            2 => Amount::Size(Bytes(number(8))),
            _ => return Err(RequestError::OutOfRange("kind of amount")),
        };
        let sensible = match amount {
            Amount::Time(time) => !time.is_zero() && time <= LONGEST,
            Amount::Size(size) => (1..=1 << 50).contains(&size.get()),
        };
        if !sensible {
            return Err(RequestError::OutOfRange("amount"));
        }
        let small = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let given = |number: u32| (number > 0).then_some(number);
        let name = &bytes[32..48];
        let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
        let legal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        if name.len() > 15 || !name.iter().all(legal) || bytes[32 + name.len()..48].iter().any(|byte| *byte != 0) {
            return Err(RequestError::OutOfRange("congestion control"));
        }
        let congestion_control = (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
        let write_size = Some(u16::from_be_bytes([bytes[6], bytes[7]])).filter(|size| *size > 0);
        if write_size.is_some_and(|size| size < LEAST_WRITE) {
            return Err(RequestError::OutOfRange("size of writes"));
        }
        let no_delay = bytes[5] & NO_DELAY != 0;
        let sender = SenderOptions { congestion_control, send_buffer: given(small(24)), write_size, no_delay };
        Ok(Self { direction, amount, token: number(16), sender, window: given(small(28)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            direction: Direction::Down,
            amount: Amount::Time(Duration::from_millis(2500)),
            token: 0xDEAD_BEEF_0123,
            sender: SenderOptions {
                congestion_control: Some("cubic".to_owned()),
                send_buffer: Some(65_536),
                write_size: Some(1500),
                no_delay: true,
            },
            window: Some(23_168),
        }
    }

    #[test]
    fn a_request_reads_back() {
        let plain = Request {
            direction: Direction::Up,
            amount: Amount::Size(Bytes(360_000)),
            sender: SenderOptions::default(),
            window: None,
            ..request()
        };
        for request in [request(), plain] {
            assert_eq!(Request::from_bytes(&request.to_bytes().unwrap()), Ok(request));
        }
    }

    #[test]
    fn every_flipped_byte_is_refused_or_still_a_sensible_request() {
        let good = request().to_bytes().unwrap();
        for at in 0..REQUEST_LEN {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bytes = good;
                bytes[at] = value;
                if let Ok(read) = Request::from_bytes(&bytes) {
                    assert!(matches!(read.amount, Amount::Time(time) if time <= LONGEST));
                }
            }
        }
    }

    #[test]
    fn taking_turns_is_another_kind_and_has_a_time() {
        let bytes = request().to_bytes_of_talk().unwrap();
        assert!(is_talk(&bytes) && !is_talk(&request().to_bytes().unwrap()));
        assert_eq!(Request::from_bytes(&bytes), Ok(request()));
        let sized = Request { amount: Amount::Size(Bytes(5)), ..request() };
        assert!(sized.to_bytes_of_talk().is_err());
    }

    #[test]
    fn another_programs_greeting_is_foreign() {
        let mut bytes = [b' '; REQUEST_LEN];
        bytes[..14].copy_from_slice(b"SSH-2.0-Foo\r\n ");
        assert_eq!(Request::from_bytes(&bytes), Err(RequestError::Foreign));
    }
}
