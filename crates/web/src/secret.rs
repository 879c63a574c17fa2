use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fmt::Write as _;

/// Something that others must know to be let in: a password, the token. It can be compared, and never read again.
///
/// Only its HMAC-SHA-256 under a key of this process is kept; ring compares two of those in a time that tells neither
/// where they differ nor how long the secret is (`ring::hmac::verify`).
pub struct Secret {
    key: hmac::Key,
    tag: hmac::Tag,
}

/// The system has no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandom;

impl Secret {
    /// Keeps what is to be known.
    ///
    /// # Errors
    /// [`NoRandom`].
    pub fn new(text: &str) -> Result<Self, NoRandom> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| NoRandom)?;
        let tag = hmac::sign(&key, text.as_bytes());
        Ok(Self { key, tag })
    }

    /// Whether this is it.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        hmac::verify(&self.key, given, self.tag.as_ref()).is_ok()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Random bytes in hexadecimal digits.
///
/// # Errors
/// [`NoRandom`].
pub(crate) fn random_hex(bytes: usize) -> Result<String, NoRandom> {
    let mut random = vec![0; bytes];
    SystemRandom::new().fill(&mut random).map_err(|_| NoRandom)?;
    Ok(random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_in_full_or_not_at_all() {
        let secret = Secret::new("abc").unwrap();
        assert!(secret.is(b"abc"));
        for other in ["", "ab", "abd", "abcd", "ABC"] {
            assert!(!secret.is(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn random_numbers_differ() {
        let (a, b) = (random_hex(16).unwrap(), random_hex(16).unwrap());
        assert!(a.len() == 32 && a != b && a.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
