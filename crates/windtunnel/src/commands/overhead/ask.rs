use wt_units::{BitsPerSecond, Bytes, suggestion};

/// The largest IP packet there is.
const LARGEST: u64 = 65_535;
/// The largest payload that is split: 1 PiB, far from where counting could overflow.
const LARGEST_PAYLOAD: u64 = 1 << 50;
/// What a packet's TCP options take, padded as Linux pads them: each to a multiple of four.
const OPTIONS: [(&str, u8); 6] =
    [("none", 0), ("timestamps", 12), ("sack1", 12), ("sack2", 20), ("sack3", 28), ("sack4", 36)];

/// A range of MTUs, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sweep {
    pub(super) first: Bytes,
    pub(super) last: Bytes,
}

impl std::str::FromStr for Sweep {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) =
            text.split_once("..").ok_or_else(|| "write two MTUs with two dots between them: 1400..1500".to_owned())?;
        let (first, last) = (mtu(first)?, mtu(last.strip_prefix('=').unwrap_or(last))?);
        if first > last {
            return Err(format!("it ends before it begins: did you mean {}..{}?", last.get(), first.get()));
        }
        Ok(Self { first, last })
    }
}

/// Whole bytes; `1.5` of them is a mistake, `1.5KiB` is not.
fn whole(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
    let number = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let bare =
        number.len() == text.trim().len() || text.trim().ends_with(['B', 'b']) && number.len() + 1 >= text.trim().len();
    if bare && number.contains('.') {
        return Err(format!("\"{text}\" is no whole number of bytes"));
    }
    Ok(bytes)
}

pub(super) fn mtu(text: &str) -> Result<Bytes, String> {
    let bytes = whole(text)?;
    if (1..=LARGEST).contains(&bytes.get()) {
        Ok(bytes)
    } else {
        Err(format!("{} is out of range: an IP packet has at most {LARGEST} bytes", bytes.get()))
    }
}

pub(super) fn payload(text: &str) -> Result<Bytes, String> {
    let bytes = whole(text)?;
    if bytes.get() <= LARGEST_PAYLOAD {
        Ok(bytes)
    } else {
        Err("it is out of range: allowed is 0 to 1024 TiB".to_owned())
    }
}

/// Bytes of options on each data segment.
pub(super) fn tcp_options(text: &str) -> Result<u8, String> {
    if text.trim().starts_with(|c: char| c.is_ascii_digit()) {
        let bytes = whole(text)?.get();
        return match u8::try_from(bytes) {
            Ok(bytes) if bytes <= 40 && bytes % 4 == 0 => Ok(bytes),
            Ok(bytes) if bytes <= 40 => {
                Err(format!("TCP pads its options to a multiple of 4: write {}", bytes.next_multiple_of(4)))
            }
            _ => Err("a TCP header has at most 40 bytes of options".to_owned()),
        };
    }
    let mut total = 0;
    for word in text.split([',', '+']).map(str::trim) {
        let names = OPTIONS.map(|(name, _)| name);
        let (_, bytes) = OPTIONS.iter().find(|(name, _)| *name == word).ok_or_else(|| {
            format!("\"{word}\" is no option{}: write {}, or bytes", suggestion(word, names), names.join(", "))
        })?;
        total += u32::from(*bytes);
    }
    u8::try_from(total)
        .ok()
        .filter(|total| *total <= 40)
        .ok_or_else(|| format!("{total} bytes are too many: a TCP header has at most 40 bytes of options"))
}

pub(super) fn rate(text: &str) -> Result<BitsPerSecond, String> {
    let rate: BitsPerSecond = text.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
    if rate.get() == 0 { Err("a rate must be more than zero".to_owned()) } else { Ok(rate) }
}

/// A rate in bits per second, or in bytes per second with a capital B: `8MiB/s`.
pub(super) fn goodput(text: &str) -> Result<BitsPerSecond, String> {
    let bytes = text.trim().strip_suffix("/s").filter(|size| size.trim_end().ends_with('B'));
    let Some(bytes) = bytes else {
        return rate(text);
    };
    let bytes: Bytes = bytes.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
    let bits = u64::try_from(bytes.bits()).map_err(|_| "the rate is too large".to_owned())?;
    if bits == 0 { Err("a rate must be more than zero".to_owned()) } else { Ok(BitsPerSecond(bits)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_units::Bytes;

    #[test]
    fn sweeps_have_both_ends_in_order() {
        let of = |first, last| Ok(Sweep { first: Bytes(first), last: Bytes(last) });
        for (text, expected) in
            [("1400..1500", of(1400, 1500)), ("1400..=1500", of(1400, 1500)), ("9k..9k", of(9216, 9216))]
        {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for text in ["1400", "1400-1500", "..", "1400..", "1500..1400", "0..1", "1..65536", "1.5..3", "a..b"] {
            assert!(text.parse::<Sweep>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_whole_bytes() {
        assert_eq!((mtu("1500"), mtu("1500B"), mtu("1.5KiB")), (Ok(Bytes(1500)), Ok(Bytes(1500)), Ok(Bytes(1536))));
        for text in ["1499.5", "1499.5B", "-1", "", "1500q", "0", "65536", "1e3"] {
            assert!(mtu(text).is_err(), "{text}");
        }
        assert_eq!((payload("0"), payload("8MiB")), (Ok(Bytes(0)), Ok(Bytes(8 << 20))));
        assert!(payload("8000TiB").is_err());
    }

    #[test]
    fn options_are_names_or_multiples_of_four() {
        for (text, expected) in
            [("none", 0), ("0", 0), ("12", 12), ("40", 40), ("timestamps", 12), ("timestamps,sack3", 40), ("sack4", 36)]
        {
            assert_eq!(tcp_options(text), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("10", "write 12"),
            ("44", "at most 40"),
            ("300", "at most 40"),
            ("timestamp", "timestamps"),
            ("timestamps,sack4", "48 bytes are too many"),
            ("", "no option"),
        ] {
            let error = tcp_options(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_goodput_may_be_in_bytes() {
        assert_eq!(goodput("8MiB/s"), Ok(BitsPerSecond(8 * 8 * 1024 * 1024)));
        assert_eq!(goodput("64mbit"), Ok(BitsPerSecond(64_000_000)));
        assert_eq!(goodput("64 Mbit/s"), Ok(BitsPerSecond(64_000_000)));
        assert!(goodput("8Mb/s").is_err() && goodput("0").is_err() && goodput("0B/s").is_err());
    }
}
