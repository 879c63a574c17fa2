//! What FTP servers answer. Pure.

use std::net::{IpAddr, Ipv4Addr};

/// The longest line and the longest reply, bytes.
const LONGEST_LINE: usize = 4096;
const LONGEST: usize = 64 * 1024;

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// 100 to 599.
    pub(super) code: u16,
    /// The last line without its code.
    pub(super) text: String,
}

/// Why what came is no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReplyError {
    /// It doesn't begin with a code.
    #[error("what came is no FTP reply")]
    NotFtp,
    /// It goes on and on.
    #[error("the server's reply is endless")]
    TooLong,
}

/// Reads a reply, and says how long it is; `None` while it isn't whole.
///
/// # Errors
/// [`ReplyError`].
///
/// # Source
/// RFC 959 section 4.2: a reply of several lines begins with the code and a hyphen, and ends with a line that begins with
/// the same code and a blank.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(usize, Reply)>, ReplyError> {
    let mut at = 0;
    let mut opened: Option<u16> = None;
    loop {
        let rest = &bytes[at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return if rest.len() > LONGEST_LINE || bytes.len() > LONGEST {
                Err(ReplyError::TooLong)
            } else {
                Ok(None)
            };
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        at += end + 1;
        if at > LONGEST || line.len() > LONGEST_LINE {
            return Err(ReplyError::TooLong);
        }
        match (opened, code(line)) {
            (None, None) => return Err(ReplyError::NotFtp),
            (None, Some((code, b'-'))) => opened = Some(code),
            (None, Some((code, _))) => return Ok(Some((at, Reply { code, text: text(line) }))),
            (Some(first), Some((code, b' '))) if first == code => {
                return Ok(Some((at, Reply { code, text: text(line) })));
            }
            (Some(_), _) => {}
        }
    }
}

/// The code at the beginning of a line, and what follows it.
fn code(line: &[u8]) -> Option<(u16, u8)> {
    let digits = line.get(..3)?;
    if !(b'1'..=b'5').contains(&digits[0]) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    match line.get(3) {
        None => Some((code, b' ')),
        Some(after @ (b' ' | b'-')) => Some((code, *after)),
        Some(_) => None,
    }
}

/// Short, and without what a terminal would obey.
fn text(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(4..).unwrap_or_default()).into_owned();
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

/// The port of a reply to `EPSV`: `(|||6446|)`.
///
/// # Source
/// RFC 2428 section 3.
pub(super) fn extended_port(text: &str) -> Option<u16> {
    let inner = text.split_once('(')?.1.split_once(')')?.0;
    let delimiter = inner.chars().next().filter(|c| c.is_ascii() && !c.is_ascii_digit())?;
    let mut fields = inner.split(delimiter);
    let empty = fields.by_ref().take(3).all(str::is_empty);
    let port = fields.next()?.parse().ok().filter(|port| *port > 0)?;
    (empty && fields.next() == Some("") && fields.next().is_none()).then_some(port)
}

/// The address of a reply to `PASV`: `(h1,h2,h3,h4,p1,p2)`, with or without brackets.
///
/// # Source
/// RFC 959 section 4.1.2; RFC 1123 section 4.1.2.6: look for the digits.
pub(super) fn passive_address(text: &str) -> Option<(IpAddr, u16)> {
    let is_part = |c: char| c.is_ascii_digit() || c == ',';
    let list = text.split(|c| !is_part(c)).find(|word| word.matches(',').count() == 5)?;
    let numbers: Vec<u8> = list.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [a, b, c, d, high, low] = numbers.try_into().ok()?;
    let port = u16::from_be_bytes([high, low]);
    (port > 0).then_some((IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(text: &str) -> Result<Option<(usize, Reply)>, ReplyError> {
        parse(text.as_bytes())
    }

    #[test]
    fn replies_of_one_and_of_many_lines_are_read() {
        let one = reply("220 hello\r\nmore").unwrap().unwrap();
        assert_eq!(one, (11, Reply { code: 220, text: "hello".to_owned() }));
        let many = "230-Welcome\r\n 230 not yet\r\n220 nor this\r\n230-nor this\r\n230 Logged in\r\n";
        assert_eq!(reply(many).unwrap().unwrap(), (many.len(), Reply { code: 230, text: "Logged in".to_owned() }));
        assert_eq!(reply("230-Welcome\r\n"), Ok(None));
        assert_eq!(reply("221\r\n").unwrap().unwrap().1.code, 221);
    }

    #[test]
    fn what_is_no_reply_and_what_never_ends_are_errors() {
        for text in ["SSH-2.0-x\r\n", "\r\n", "99 x\r\n", "600 x\r\n", "2200x\r\n", "HTTP/1.1 400 Bad\r\n"] {
            assert_eq!(reply(text), Err(ReplyError::NotFtp), "{text}");
        }
        assert_eq!(reply(&"x".repeat(5000)), Err(ReplyError::TooLong));
        assert_eq!(reply(&format!("230-x\r\n{}", "more\r\n".repeat(20_000))), Err(ReplyError::TooLong));
    }

    #[test]
    fn ports_of_extended_passive_mode_are_read() {
        for (text, port) in [
            ("Entering Extended Passive Mode (|||6446|)", Some(6446)),
            ("(!!!1!)", Some(1)),
            ("(|||0|)", None),
            ("(|||70000|)", None),
            ("(|1|10.0.0.1|6446|)", None),
            ("|||6446|", None),
            ("()", None),
            ("(123)", None),
        ] {
            assert_eq!(extended_port(text), port, "{text}");
        }
    }

    #[test]
    fn addresses_of_passive_mode_are_read() {
        let of = |text: &str| passive_address(text).map(|(ip, port)| format!("{ip}:{port}"));
        assert_eq!(of("Entering Passive Mode (192,0,2,1,10,20).").as_deref(), Some("192.0.2.1:2580"));
        assert_eq!(of("=127,0,0,1,0,21").as_deref(), Some("127.0.0.1:21"));
        for text in ["(192,0,2,1,10)", "(192,0,2,256,1,2)", "(1,2,3,4,5,6,7)", "(1,2,3,4,0,0)", ""] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,60}") {
            if let Ok(Some((length, _))) = parse(&bytes) {
                prop_assert!(length <= bytes.len());
            }
            let _ = (extended_port(&text), passive_address(&text));
        }

        #[test]
        fn a_reply_is_the_same_however_it_comes_in(code in 100..600_u16, lines in proptest::collection::vec("[ -~]{0,30}", 0..5)) {
            let mut wire = format!("{code}-first\r\n");
            for line in &lines {
                wire.push_str(&format!(" {line}\r\n"));
            }
            wire.push_str(&format!("{code} last\r\n"));
            for cut in 0..wire.len() {
                prop_assert_eq!(parse(&wire.as_bytes()[..cut]), Ok(None));
            }
            prop_assert_eq!(parse(wire.as_bytes()).unwrap().unwrap().1, Reply { code, text: "last".to_owned() });
        }
    }
}
