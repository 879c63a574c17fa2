use std::net::{IpAddr, Ipv6Addr};

/// The longest address that is taken, bytes.
const LONGEST: usize = 8 * 1024;

/// How a far end is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// HTTP/1.1 over TLS.
    Https,
    /// FTP, passive mode.
    Ftp,
    /// FTP over TLS, control and data.
    Ftps,
    /// The control protocol of iperf3.
    Iperf3,
    /// Our own server's.
    Wt,
}

/// Name and usual port of each; the one table that all else reads.
const SCHEMES: [(Scheme, &str, u16); 6] = [
    (Scheme::Http, "http", 80),
    (Scheme::Https, "https", 443),
    (Scheme::Ftp, "ftp", 21),
    (Scheme::Ftps, "ftps", 21),
    (Scheme::Iperf3, "iperf3", 5201),
    (Scheme::Wt, "wt", 7411),
];

impl Scheme {
    /// The word before `://`.
    #[must_use]
    pub fn name(self) -> &'static str {
        SCHEMES.iter().find(|(scheme, ..)| *scheme == self).map_or("", |(_, name, _)| name)
    }

    /// Where such servers usually listen.
    #[must_use]
    pub fn usual_port(self) -> u16 {
        SCHEMES.iter().find(|(scheme, ..)| *scheme == self).map_or(0, |(.., port)| *port)
    }

    /// Whether the payload goes through TLS.
    #[must_use]
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Https | Self::Ftps)
    }
}

/// The address of a far end, and of what is fetched there.
///
/// # Source
/// RFC 3986 section 3; of its forms those that HTTP, FTP and we need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// How it is spoken to.
    pub scheme: Scheme,
    /// Name or address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Path and query, as they are sent; begins with a slash.
    pub path: String,
    /// User and password, decoded, of FTP; of our own server the key, and nothing.
    pub user: Option<(String, String)>,
}

/// Why something is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No `scheme://` that we know.
    #[error(
        "\"{0}\" is no address of a far end: write http://, https://, ftp://, ftps://, iperf3:// or wt:// before the host"
    )]
    Scheme(String),
    /// A part of it is wrong.
    #[error("the {part} of \"{text}\" {what}")]
    Part {
        /// The address.
        text: String,
        /// Which part.
        part: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// Beyond all measure.
    #[error("an address of {0} bytes is too long")]
    TooLong(usize),
}

impl std::str::FromStr for Url {
    type Err = UrlError;
    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(UrlError::TooLong(text.len()));
        }
        let part = |part, what| UrlError::Part { text: shown(text), part, what };
        let (word, rest) = text.split_once("://").ok_or_else(|| UrlError::Scheme(shown(text)))?;
        let scheme = SCHEMES.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(word));
        let scheme = scheme.map(|(scheme, ..)| *scheme).ok_or_else(|| UrlError::Scheme(shown(text)))?;
        if let Some(wrong) = rest.chars().find(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
            let what = if wrong.is_ascii() { "has a blank or a control character" } else { "isn't ASCII: write %XX" };
            return Err(part("path or host", what));
        }
        let rest = rest.split('#').next().unwrap_or("");
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (host, port) = place_of(place).map_err(|(which, what)| part(which, what))?;
        let user = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            decode(user).zip(decode(password)).ok_or_else(|| part("user or password", "has a % that is no %XX"))
        });
        let user = user.transpose()?;
        if user.is_some() && !matches!(scheme, Scheme::Ftp | Scheme::Ftps | Scheme::Wt) {
            return Err(part("user", "is only taken for FTP"));
        }
        if user.iter().any(|(user, word)| user.chars().chain(word.chars()).any(char::is_control)) {
            return Err(part("user or password", "has a control character"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if matches!(scheme, Scheme::Iperf3 | Scheme::Wt) && path != "/" {
            return Err(part("path", "means nothing to such a server"));
        }
        if scheme == Scheme::Wt && user.is_none() {
            return Err(part("key", "is missing: wt://KEY@HOST, as windtunnel serve shows it"));
        }
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.usual_port()), path, user })
    }
}

/// Host and port of `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`; or which part is wrong, and how.
fn place_of(place: &str) -> Result<(String, Option<u16>), (&'static str, &'static str)> {
    const PORT: (&str, &str) = ("port", "is none: 1 to 65535");
    let (host, port) = match place.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(None) => return Err(("host", "has a [ without a ]")),
        Some(Some((host, rest))) => {
            let address = host.split('%').next().unwrap_or(host);
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(("host", "is in brackets and no IPv6 address"));
            }
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(PORT)?) })
        }
        None => match place.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => return Err(("host", "is an IPv6 address without [ ]")),
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    if host.is_empty() || host.len() > 253 || !host.chars().all(legal) {
        return Err(("host", "is missing or has characters that no host has"));
    }
    let port = port.map(|port| port.parse().ok().filter(|port| *port > 0).ok_or(PORT)).transpose()?;
    Ok((host.to_owned(), port))
}

impl Url {
    /// Host and port as they stand in a `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.usual_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// The address, if the host is one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Path without the first slash, decoded: what FTP is asked for. `None` if it has a % that is no %XX, or decodes to
    /// something with a control character in it, with which commands could be smuggled in.
    #[must_use]
    pub fn ftp_path(&self) -> Option<String> {
        let path = decode(self.path.strip_prefix('/').unwrap_or(&self.path))?;
        (!path.is_empty() && !path.chars().any(char::is_control)).then_some(path)
    }

    /// Where a redirection leads: an address, or a path as seen from here.
    ///
    /// # Errors
    /// [`UrlError`]; also when it leads out of HTTP, or from TLS to none.
    pub fn join(&self, location: &str) -> Result<Self, UrlError> {
        let location = location.trim();
        let absolute = if location.contains("://") && !location.starts_with(['/', '?']) {
            location.to_owned()
        } else if let Some(rest) = location.strip_prefix("//") {
            format!("{}://{rest}", self.scheme.name())
        } else {
            let here = self.path.split('?').next().unwrap_or("/");
            let path = match location.chars().next() {
                Some('/') => location.to_owned(),
                Some('?') => format!("{here}{location}"),
                _ => format!("{}{location}", &here[..=here.rfind('/').unwrap_or(0)]),
            };
            format!("{}://{}{path}", self.scheme.name(), self.authority())
        };
        let to: Self = absolute.parse()?;
        let stays = matches!(to.scheme, Scheme::Http | Scheme::Https);
        if !stays || (self.scheme == Scheme::Https && to.scheme == Scheme::Http) {
            let what = "leads from HTTPS to something less safe, or out of HTTP";
            return Err(UrlError::Part { text: shown(&absolute), part: "scheme", what });
        }
        Ok(to)
    }
}

impl std::fmt::Display for Url {
    /// Without user and password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if matches!(self.scheme, Scheme::Iperf3 | Scheme::Wt) { "" } else { &self.path };
        write!(f, "{}://{}{path}", self.scheme.name(), self.authority())
    }
}

/// The beginning of what was written, without what a terminal would obey and without a password.
fn shown(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).take(120).collect();
    match (clean.find("://"), clean.rfind('@')) {
        (Some(start), Some(end)) if start + 3 < end => format!("{}…{}", &clean[..start + 3], &clean[end..]),
        _ => clean,
    }
}

/// Replaces `%XX`; `None` where a % stands for nothing, or the result isn't UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_taken_apart() {
        for (text, scheme, host, port, path) in [
            ("http://example.org", Scheme::Http, "example.org", 80, "/"),
            ("HTTPS://example.org:8443/a/b?c=d#e", Scheme::Https, "example.org", 8443, "/a/b?c=d"),
            ("http://[2001:db8::1]:81?x", Scheme::Http, "2001:db8::1", 81, "/?x"),
            ("http://[fe80::1%eth0]/x", Scheme::Http, "fe80::1%eth0", 80, "/x"),
            ("iperf3://192.0.2.1", Scheme::Iperf3, "192.0.2.1", 5201, "/"),
            ("ftp://host/pub/file.iso", Scheme::Ftp, "host", 21, "/pub/file.iso"),
        ] {
            let expected = Url { scheme, host: host.to_owned(), port, path: path.to_owned(), user: None };
            assert_eq!(url(text), expected, "{text}");
        }
        let with_user = url("ftp://me:p%40ss@host/a%20b");
        assert_eq!(with_user.user, Some(("me".to_owned(), "p@ss".to_owned())));
        assert_eq!(with_user.ftp_path().as_deref(), Some("a b"));
        assert_eq!(with_user.to_string(), "ftp://host/a%20b");
    }

    #[test]
    fn what_is_no_address_says_which_part() {
        for (text, wanted) in [
            ("example.org", "write http://"),
            ("gopher://x", "write http://"),
            ("http://", "host"),
            ("http://a b/", "blank"),
            ("http://x:0/", "port"),
            ("http://x:99999/", "port"),
            ("http://2001:db8::1/", "without [ ]"),
            ("http://[::1/", "without a ]"),
            ("http://[host]/", "no IPv6"),
            ("http://bücher.example/", "%XX"),
            ("http://u:p@x/", "only taken for FTP"),
            ("ftp://u%zz@x/", "no %XX"),
            ("iperf3://x/file", "means nothing"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn errors_show_no_password_and_nothing_that_a_terminal_obeys() {
        let error = "ftp://me:secret%0a@host\u{1b}[2J/".parse::<Url>().unwrap_err().to_string();
        assert!(!error.contains("secret") && !error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn ftp_commands_cannot_be_smuggled_in() {
        assert_eq!(url("ftp://host/a%0d%0aDELE%20b").ftp_path(), None);
        assert!("ftp://a%0d%0aDELE:x@host/".parse::<Url>().is_err());
    }

    #[test]
    fn redirections_lead_where_browsers_go_too() {
        let here = url("https://example.org:8443/a/b?q=1");
        for (location, wanted) in [
            ("https://other.example/x", "https://other.example/x"),
            ("//other.example/x", "https://other.example/x"),
            ("/x", "https://example.org:8443/x"),
            ("x", "https://example.org:8443/a/x"),
            ("?y", "https://example.org:8443/a/b?y"),
        ] {
            assert_eq!(here.join(location).unwrap().to_string(), wanted);
        }
        for location in ["http://example.org/", "ftp://example.org/", "file:///etc/passwd", "/a b"] {
            assert!(here.join(location).is_err(), "{location}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_what_is_taken_reads_back(text in "(http|https|ftp|iperf3)://\\PC{0,40}") {
            if let Ok(url) = text.parse::<Url>() {
                let again: Url = url.to_string().parse().unwrap();
                prop_assert_eq!((again.host, again.port, again.path), (url.host.clone(), url.port, url.path.clone()));
                let _ = url.join(&text);
                let _ = url.ftp_path();
            }
        }

        #[test]
        fn no_location_makes_it_panic(location in "\\PC{0,60}") {
            let _ = url("http://x/a/b").join(&location);
        }
    }
}
