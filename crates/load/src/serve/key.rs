//! Who may: a shared key, and the handshake that proves it without showing it.
//!
//! The pattern is `NNpsk0` of the Noise protocol framework: the client's first message is encrypted under the key, so
//! that a server answers nobody who hasn't got it; ephemeral keys make what follows secret even if the key gets known
//! later.

use snow::{Builder, HandshakeState, TransportState};
use std::fmt::Write as _;
use std::io::{self, Read as _};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Bytes of a key.
const KEY: usize = 32;
/// Bytes that authentication adds to a message.
pub(super) const TAG: usize = 16;
/// Bytes of each of the handshake's messages: an ephemeral key and a tag.
pub(super) const HELLO: usize = 32 + TAG;

/// A key that client and server share.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey([u8; KEY]);

impl std::fmt::Debug for SharedKey {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedKey(…)")
    }
}

/// Something is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key has {} hexadecimal digits", KEY * 2)]
pub struct KeyError;

impl SharedKey {
    /// A new one from the kernel's generator.
    ///
    /// # Errors
    /// When there is no /dev/urandom.
    pub fn generate() -> io::Result<Self> {
        let mut key = [0; KEY];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self(key))
    }

    /// The key in hexadecimal digits: what an address holds.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl std::str::FromStr for SharedKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim().as_bytes();
        if text.len() != KEY * 2 {
            return Err(KeyError);
        }
        let mut key = [0; KEY];
        for (byte, pair) in key.iter_mut().zip(text.chunks(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(KeyError);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).map_err(|_| KeyError)?;
        }
        Ok(Self(key))
    }
}

/// The client's part of a handshake.
pub(super) struct Hello(Box<HandshakeState>);

impl Hello {
    /// Begins: what is to be sent first.
    pub(super) fn begin(key: &SharedKey) -> Result<(Self, [u8; HELLO]), snow::Error> {
        let mut state = Builder::new(PATTERN.parse()?).psk(0, &key.0)?.build_initiator()?;
        let mut message = [0; HELLO];
        state.write_message(&[], &mut message)?;
        Ok((Self(Box::new(state)), message))
    }

    /// Takes the server's answer.
    pub(super) fn finish(mut self, answer: &[u8; HELLO]) -> Result<Secure, snow::Error> {
        self.0.read_message(answer, &mut [0; HELLO])?;
        Ok(Secure(Box::new(self.0.into_transport_mode()?)))
    }
}

/// The server's part: what it answers to somebody with the key, and nothing to anybody else.
pub(super) fn welcome(key: &SharedKey, hello: &[u8; HELLO]) -> Result<(Secure, [u8; HELLO]), snow::Error> {
    let mut state = Builder::new(PATTERN.parse()?).psk(0, &key.0)?.build_responder()?;
    state.read_message(hello, &mut [0; HELLO])?;
    let mut answer = [0; HELLO];
    state.write_message(&[], &mut answer)?;
    Ok((Secure(Box::new(state.into_transport_mode()?)), answer))
}

/// What follows a handshake, both ways.
pub(super) struct Secure(Box<TransportState>);

impl std::fmt::Debug for Secure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secure(…)")
    }
}

impl Secure {
    /// Encrypts.
    pub(super) fn seal(&mut self, text: &[u8]) -> Result<Vec<u8>, snow::Error> {
        let mut sealed = vec![0; text.len() + TAG];
        let length = self.0.write_message(text, &mut sealed)?;
        sealed.truncate(length);
        Ok(sealed)
    }

    /// Decrypts what nobody has changed on the way.
    pub(super) fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, snow::Error> {
        let mut text = vec![0; sealed.len()];
        let length = self.0.read_message(sealed, &mut text)?;
        text.truncate(length);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_handshake_understand_each_other_and_nobody_else() {
        let key = SharedKey::generate().unwrap();
        let (hello, first) = Hello::begin(&key).unwrap();
        let (mut server, answer) = welcome(&key, &first).unwrap();
        let mut client = hello.finish(&answer).unwrap();
        let sealed = client.seal(b"what I want").unwrap();
        assert_eq!(server.open(&sealed).unwrap(), b"what I want");
        assert!(server.open(&sealed).is_err(), "a message counts once");
        let other = SharedKey::generate().unwrap();
        assert!(welcome(&other, &first).is_err());
    }

    #[test]
    fn every_changed_bit_of_a_hello_is_noticed() {
        let key = SharedKey::generate().unwrap();
        let (_, first) = Hello::begin(&key).unwrap();
        for at in 0..HELLO {
            let mut changed = first;
            changed[at] ^= 1;
            assert!(welcome(&key, &changed).is_err(), "{at}");
        }
    }

    #[test]
    fn keys_read_back_and_are_never_shown() {
        let key = SharedKey::generate().unwrap();
        assert_eq!(key.to_hex().parse(), Ok(key.clone()));
        assert!(!format!("{key:?}").contains(&key.to_hex()[..8]));
        for text in ["", "00", &"g".repeat(64), &"0".repeat(63)] {
            assert_eq!(text.parse::<SharedKey>(), Err(KeyError), "{text}");
        }
    }
}
