/// Bytes as hexadecimal digits.
#[must_use]
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Hexadecimal digits as bytes; `None` if they are none.
#[must_use]
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{from_hex, to_hex};

    #[test]
    fn digits_become_the_bytes_that_they_were_made_of_and_nothing_else_does() {
        assert_eq!(from_hex(&to_hex(b"\x00\xffab")), Some(b"\x00\xffab".to_vec()));
        assert_eq!((from_hex("0"), from_hex("zz"), from_hex("\u{e9}")), (None, None, None));
    }
}
