use std::net::{IpAddr, SocketAddr};

/// The names under which this server may be asked for.
#[derive(Debug)]
pub(crate) struct Names {
    scheme: &'static str,
    /// The first one is where the page is.
    names: Vec<String>,
    /// The port, if any address with it will do: one that was typed as numbers can't have been rebound.
    any_address: Option<u16>,
}

impl Names {
    /// Those of an address, and further ones that somebody gave it.
    pub(crate) fn of(address: SocketAddr, more: &[String], tls: bool) -> Self {
        let (scheme, usual) = if tls { ("https", 443) } else { ("http", 80) };
        let port = address.port();
        let mut names = Vec::new();
        let mut add = |host: &str| {
            names.push(format!("{host}:{port}"));
            if port == usual {
                names.push(host.to_owned());
            }
        };
        more.iter().for_each(|name| add(name));
        match address.ip() {
            ip if ip.is_unspecified() => {}
            IpAddr::V4(ip) => add(&ip.to_string()),
            IpAddr::V6(ip) => add(&format!("[{ip}]")),
        }
        add("localhost");
        Self { scheme, names, any_address: (!address.ip().is_loopback()).then_some(port) }
    }

    /// Where the page is.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}/", self.scheme, self.names.first().map_or("", String::as_str))
    }

    pub(crate) fn has(&self, host: &str) -> bool {
        let is_address = |port: u16| match host.parse::<SocketAddr>() {
            Ok(address) => address.port() == port,
            Err(_) => {
                port == if self.scheme == "https" { 443 } else { 80 }
                    && host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
            }
        };
        self.names.iter().any(|name| name.eq_ignore_ascii_case(host)) || self.any_address.is_some_and(is_address)
    }

    /// Whether a page of ours sends this as its origin.
    pub(crate) fn is_origin(&self, origin: &str) -> bool {
        origin.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://")).is_some_and(|host| self.has(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_and_localhost_are_our_names() {
        let names = Names::of(([127, 0, 0, 1], 7878).into(), &[], false);
        assert_eq!(names.url(), "http://127.0.0.1:7878/");
        assert!(names.is_origin("http://localhost:7878") && !names.is_origin("https://localhost:7878"));
        for (host, ours) in [
            ("127.0.0.1:7878", true),
            ("LocalHost:7878", true),
            ("localhost", false),
            ("127.0.0.1:7879", false),
            ("evil.example:7878", false),
            ("localhost.evil.example:7878", false),
            ("", false),
        ] {
            assert_eq!(names.has(host), ours, "{host}");
        }
    }

    #[test]
    fn from_elsewhere_addresses_are_names_and_so_is_what_was_given() {
        let names = Names::of(([0, 0, 0, 0], 7878).into(), &["lab.example".to_owned()], true);
        assert_eq!(names.url(), "https://lab.example:7878/");
        for (host, ours) in [
            ("lab.example:7878", true),
            ("192.0.2.1:7878", true),
            ("[2001:db8::1]:7878", true),
            ("192.0.2.1:80", false),
            ("192.0.2.1", false),
            ("evil.example:7878", false),
            ("192.0.2.1.evil.example:7878", false),
        ] {
            assert_eq!(names.has(host), ours, "{host}");
        }
        assert!(names.is_origin("https://192.0.2.1:7878") && !names.is_origin("http://192.0.2.1:7878"));
        let usual = Names::of(([192, 0, 2, 1], 443).into(), &[], true);
        assert!(usual.has("192.0.2.1") && usual.has("192.0.2.1:443") && !usual.has("192.0.2.1:80"));
    }
}
