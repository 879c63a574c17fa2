use super::{UrlError, UrlPart, shown};
use std::net::{IpAddr, Ipv6Addr};

/// The longest name of a host, bytes.
///
/// # Source
/// RFC 1035 section 2.3.4, as text without the final dot.
const LONGEST_NAME: usize = 253;

/// What is wrong with a name of other characters.
pub(super) const NOT_ASCII: &str = "isn't ASCII: write such a name as xn--…";

/// What is wrong with a part, and what is allowed instead.
type Wrong = (UrlPart, &'static str);

/// A host, and perhaps a port: `HOST`, `HOST:PORT`, `[IPV6]`, `[IPV6]:PORT`, or an IPv6 address alone.
///
/// A host is a name or an address, and never begins with a hyphen, so that it can't be taken for a flag. A link-local
/// IPv6 address may have a zone (`fe80::1%eth0`).
///
/// # Example
/// ```
/// use wt_units::HostPort;
/// let place: HostPort = "[2001:db8::1]:443".parse()?;
/// assert_eq!((place.host.as_str(), place.port), ("2001:db8::1", Some(443)));
/// assert_eq!("2001:db8::1".parse::<HostPort>()?.to_string(), "[2001:db8::1]");
/// # Ok::<(), wt_units::UrlError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Name or address, without brackets.
    pub host: String,
    /// The port, if one was written; never 0.
    pub port: Option<u16>,
}

impl HostPort {
    /// The address, if the host is one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Reads what stands between `//` and the path of a URL, where an IPv6 address has brackets.
    pub(super) fn of_authority(text: &str) -> Result<Self, Wrong> {
        const PORT: Wrong = (UrlPart::Port, "is none: 1 to 65535");
        let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(None) => return Err((UrlPart::Host, "has a [ without a ]")),
            Some(Some((host, rest))) => {
                if !is_v6(host) {
                    return Err((UrlPart::Host, "is in brackets and no IPv6 address"));
                }
                (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(PORT)?) })
            }
            None => match text.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => {
                    return Err((UrlPart::Host, "is an IPv6 address without [ ]"));
                }
                Some((host, port)) => (name(host)?, Some(port)),
                None => (name(text)?, None),
            },
        };
        // A number alone: no sign, as `u16` would take one.
        let number = |port: &str| port.parse().ok().filter(|number| *number > 0 && !port.starts_with('+'));
        let port = port.map(|port| number(port).ok_or(PORT)).transpose()?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl std::str::FromStr for HostPort {
    type Err = UrlError;

    /// # Errors
    /// [`UrlError::Part`], of the host or the port.
    fn from_str(text: &str) -> Result<Self, UrlError> {
        if is_v6(text) {
            return Ok(Self { host: text.to_owned(), port: None });
        }
        Self::of_authority(text).map_err(|(part, wrong)| UrlError::Part { text: shown(text), part, wrong })
    }
}

impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Whether this is an IPv6 address, perhaps with a zone.
pub(super) fn is_v6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let zone_is_well =
        zone.is_none_or(|zone| !zone.is_empty() && zone.len() <= LONGEST_NAME && zone.chars().all(plain));
    zone_is_well && address.parse::<Ipv6Addr>().is_ok()
}

/// A name, or an IPv4 address, as it is.
fn name(text: &str) -> Result<&str, Wrong> {
    let wrong = if text.is_empty() {
        "is missing"
    } else if text.len() > LONGEST_NAME {
        "is longer than 253 characters"
    } else if !text.is_ascii() {
        NOT_ASCII
    } else if text.starts_with('-') {
        "begins with a hyphen"
    } else if !text.chars().all(plain) {
        "has characters that no host has: letters, digits, dots, hyphens and underscores"
    } else {
        return Ok(text);
    };
    Err((UrlPart::Host, wrong))
}

/// What names, IPv4 addresses and zones consist of.
fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (text, host, port) in [
            ("server", "server", None),
            ("server:443", "server", Some(443)),
            ("10.0.0.1:8080", "10.0.0.1", Some(8080)),
            ("under_score.example.", "under_score.example.", None),
            ("fd00::1", "fd00::1", None),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("[fd00::1]", "fd00::1", None),
            ("[fe80::1%eth0]:443", "fe80::1%eth0", Some(443)),
        ] {
            let place: HostPort = text.parse().unwrap();
            assert_eq!((place.host.as_str(), place.port), (host, port), "{text}");
            assert_eq!(place.to_string().parse(), Ok(place), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_says_which_part_and_what_is_allowed() {
        for (text, part, wanted) in [
            ("", UrlPart::Host, "is missing"),
            (":80", UrlPart::Host, "is missing"),
            ("server:", UrlPart::Port, "1 to 65535"),
            ("server:http", UrlPart::Port, "1 to 65535"),
            ("server:0", UrlPart::Port, "1 to 65535"),
            ("server:+80", UrlPart::Port, "1 to 65535"),
            ("server:70000", UrlPart::Port, "1 to 65535"),
            ("[fd00::1]80", UrlPart::Port, "1 to 65535"),
            ("[fd00::1", UrlPart::Host, "without a ]"),
            ("[server]", UrlPart::Host, "no IPv6"),
            ("fe80::1%", UrlPart::Host, "without [ ]"),
            ("a:b:80", UrlPart::Host, "without [ ]"),
            ("a b", UrlPart::Host, "letters, digits"),
            ("me@server", UrlPart::Host, "letters, digits"),
            ("-x", UrlPart::Host, "hyphen"),
            ("bücher.example", UrlPart::Host, "xn--"),
        ] {
            let error = text.parse::<HostPort>().unwrap_err();
            assert!(matches!(error, UrlError::Part { part: found, .. } if found == part), "{text}: {error}");
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
        assert!("a".repeat(254).parse::<HostPort>().is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_what_is_taken_reads_back(text in "\\PC{0,40}|[\\[\\]:%a-f0-9.-]{0,20}") {
            if let Ok(place) = text.parse::<HostPort>() {
                prop_assert_eq!(place.to_string().parse(), Ok(place));
            }
        }
    }
}
