/// How a server is spoken to.
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
    /// The one of this name, in small or capital letters.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        SCHEMES.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(scheme, ..)| *scheme)
    }

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

    /// Whether it is HTTP, with or without TLS.
    #[must_use]
    pub fn is_web(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// Whether a user and a password, or a key, may stand before the host.
    pub(super) fn takes_login(self) -> bool {
        matches!(self, Self::Ftp | Self::Ftps | Self::Wt)
    }

    /// Whether servers of this kind have files, so that a path says something.
    pub(super) fn has_paths(self) -> bool {
        !matches!(self, Self::Iperf3 | Self::Wt)
    }
}
