/// A host with or without a port.
mod host_port;
/// How a server is spoken to.
mod scheme;

pub use host_port::HostPort;
pub use scheme::Scheme;

use host_port::is_v6;
use std::net::IpAddr;

/// The longest address that is taken, bytes.
const LONGEST: usize = 8 * 1024;
/// Characters of it that an error shows.
const LONGEST_SHOWN: usize = 120;

/// The address of a server, and of what is fetched there.
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
    /// Of FTP and of our own server: who asks.
    pub login: Option<Login>,
}

/// What stands before the host, decoded. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user of FTP; of our own server the key.
    pub user: String,
    /// Empty where none was written.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login(…)")
    }
}

/// The parts of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlPart {
    /// What stands before `://`.
    Scheme,
    /// User and password.
    Login,
    /// Name or address.
    Host,
    /// The TCP port.
    Port,
    /// Path and query.
    Path,
}

impl std::fmt::Display for UrlPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scheme => "scheme",
            Self::Login => "user or password",
            Self::Host => "host",
            Self::Port => "port",
            Self::Path => "path",
        })
    }
}

/// Why something is no URL, or no host with a port. A text is never shown with its password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No `scheme://` that is known.
    #[error("\"{text}\" is not a valid URL: write {allowed} before the host")]
    Scheme {
        /// What was written.
        text: String,
        /// What it may begin with.
        allowed: &'static str,
    },
    /// A part of it is invalid.
    #[error("the {part} of \"{text}\" {wrong}")]
    Part {
        /// What was written.
        text: String,
        /// Which part.
        part: UrlPart,
        /// What is wrong, and what is allowed.
        wrong: &'static str,
    },
    /// Beyond all measure.
    #[error("a URL of {length} bytes is too long: at most {LONGEST}")]
    TooLong {
        /// Its bytes.
        length: usize,
    },
}

/// What a URL begins with.
const ALL_SCHEMES: &str = "http://, https://, ftp://, ftps://, iperf3:// or wt://";

impl std::str::FromStr for Url {
    type Err = UrlError;

    /// # Errors
    /// [`UrlError`].
    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(UrlError::TooLong { length: text.len() });
        }
        let invalid = |(part, wrong)| UrlError::Part { text: shown(text), part, wrong };
        let unknown = || UrlError::Scheme { text: shown(text), allowed: ALL_SCHEMES };
        let (word, rest) = text.split_once("://").ok_or_else(unknown)?;
        let scheme = Scheme::of_name(word).ok_or_else(unknown)?;
        let rest = rest.split('#').next().unwrap_or("");
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let parts = [(UrlPart::Login, login.unwrap_or("")), (UrlPart::Host, place), (UrlPart::Path, path)];
        if let Some(wrong) = parts.into_iter().find_map(|(part, text)| Some((part, foreign(part, text)?))) {
            return Err(invalid(wrong));
        }
        let HostPort { host, port } = HostPort::of_authority(place).map_err(invalid)?;
        let login = login.map(|login| Login::read(login, scheme)).transpose().map_err(invalid)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if !scheme.has_paths() && path != "/" {
            return Err(invalid((UrlPart::Path, "means nothing to such a server")));
        }
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.usual_port()), path, login })
    }
}

impl Login {
    fn read(text: &str, scheme: Scheme) -> Result<Self, (UrlPart, &'static str)> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decoded = decode(user).zip(decode(password));
        let (user, password) = decoded.ok_or((UrlPart::Login, "has a % that is no %XX"))?;
        if !scheme.takes_login() {
            return Err((UrlPart::Login, "is only taken for FTP"));
        }
        if user.chars().chain(password.chars()).any(char::is_control) {
            return Err((UrlPart::Login, "has a control character"));
        }
        Ok(Self { user, password })
    }
}

/// What is wrong with characters that may stand nowhere in a URL.
fn foreign(part: UrlPart, text: &str) -> Option<&'static str> {
    let wrong = text.chars().find(|c| c.is_whitespace() || c.is_control() || !c.is_ascii())?;
    Some(match part {
        _ if wrong.is_ascii() => "has a blank or a control character",
        UrlPart::Host => host_port::NOT_ASCII,
        _ => "isn't ASCII: write %XX",
    })
}

impl Url {
    /// Reads the address of a web server, before which `http://` may be left away.
    ///
    /// # Errors
    /// [`UrlError`]; also for any other scheme than `http` and `https`.
    ///
    /// # Example
    /// ```
    /// use wt_units::Url;
    /// assert_eq!(Url::of_web("example.org/a")?.to_string(), "http://example.org/a");
    /// assert_eq!(Url::of_web("2001:db8::1")?.to_string(), "http://[2001:db8::1]/");
    /// assert!(Url::of_web("ftp://example.org").is_err());
    /// # Ok::<(), wt_units::UrlError>(())
    /// ```
    pub fn of_web(text: &str) -> Result<Self, UrlError> {
        let other = || UrlError::Scheme { text: shown(text), allowed: "http:// or https://" };
        let (word, _) = text.split_once("://").unwrap_or(("http", text));
        match Scheme::of_name(word) {
            Some(scheme) if !scheme.is_web() => Err(other()),
            _ if is_v6(text) => format!("http://[{text}]").parse(),
            Some(_) if text.contains("://") => text.parse(),
            Some(_) => format!("http://{text}").parse(),
            None => Err(other()),
        }
    }

    /// Host and port as they stand in a `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        let port = (self.port != self.scheme.usual_port()).then_some(self.port);
        HostPort { host: self.host.clone(), port }.to_string()
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
        let mut to: Self = absolute.parse()?;
        if !to.scheme.is_web() || (self.scheme == Scheme::Https && to.scheme == Scheme::Http) {
            let wrong = "leads from HTTPS to something less safe, or out of HTTP";
            return Err(UrlError::Part { text: shown(&absolute), part: UrlPart::Scheme, wrong });
        }
        to.path = without_dots(&to.path);
        Ok(to)
    }
}

/// A path without `.` and `..`; what follows a ? stays.
///
/// # Source
/// RFC 3986 section 5.2.4.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    // The last one leaves the folder that it names.
    let folder = if path.ends_with("/.") || path.ends_with("/..") { "/" } else { "" };
    format!("{}{folder}{query}", kept.iter().map(|segment| format!("/{segment}")).collect::<String>())
}

impl std::fmt::Display for Url {
    /// Without user, password and key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.scheme.has_paths() { &self.path } else { "" };
        write!(f, "{}://{}{path}", self.scheme.name(), self.authority())
    }
}

/// The beginning of what was written, without what a terminal would obey and without a password.
fn shown(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let clean = |text: &str| -> String {
        text.chars().map(|c| if c.is_control() { '?' } else { c }).take(LONGEST_SHOWN).collect()
    };
    match text[start..].rfind('@') {
        Some(end) if end > 0 => format!("{}…{}", clean(&text[..start]), clean(&text[start + end..])),
        _ => clean(text),
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
mod tests;
