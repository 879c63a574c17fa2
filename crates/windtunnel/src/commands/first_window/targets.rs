//! What is to be asked: URLs, files of them, and who doesn't want to be asked.

use crate::commands::probing::Ip;
use crate::edge::Failure;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use wt_probe::first_window::Goal;

/// No run asks more.
const MOST: usize = 1_000_000;

/// One thing to ask.
#[derive(Debug, Clone)]
pub(super) struct Url {
    /// As it was written.
    pub(super) text: String,
    tls: bool,
    pub(super) host: String,
    port: u16,
    path: String,
    /// Whose it is, if that was said.
    label: Option<String>,
}

impl Url {
    /// Whose it is: what was written behind it, or else the registered part of its name as far as that can be guessed.
    pub(super) fn provider(&self) -> String {
        self.label.clone().unwrap_or_else(|| registered(&self.host.to_ascii_lowercase()).to_owned())
    }

    /// `http://HOST[:PORT][/PATH]`, the same with `https`, or a host alone.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (tls, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return None,
            None => (false, text),
        };
        let rest = rest.split('#').next()?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let usual = if tls { 443 } else { 80 };
        let (host, port) = if authority.parse::<std::net::Ipv6Addr>().is_ok() {
            (authority, usual)
        } else if let Some((host, rest)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { usual } else { rest.strip_prefix(':')?.parse().ok()? })
        } else {
            match authority.split_once(':') {
                Some((host, port)) => (host, port.parse().ok()?),
                None => (authority, usual),
            }
        };
        let well = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let plain = !host.is_empty() && well(host) && !host.contains(['@', '\\', ',']);
        (plain && port != 0 && well(&path)).then(|| Self {
            text: text.to_owned(),
            tls,
            host: host.to_owned(),
            port,
            path,
            label: None,
        })
    }

    /// Finds the address, which may take as long as the resolver likes.
    pub(super) fn resolve(&self, ip: Option<Ip>) -> Option<Goal> {
        let wanted = |address: &SocketAddr| ip.is_none_or(|ip| address.is_ipv6() == (ip == Ip::V6));
        let address = (self.host.as_str(), self.port).to_socket_addrs().ok()?.find(wanted)?.ip();
        Some(Goal { address, port: self.port, tls: self.tls, host: self.host.clone(), path: self.path.clone() })
    }
}

/// A name's last two labels, or three below such as `co.uk`; an address as it is.
fn registered(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    if host.parse::<IpAddr>().is_ok() {
        return host;
    }
    let labels: Vec<&str> = host.rsplit('.').collect();
    let second = matches!(labels[..], [country, kind, _, ..] if country.len() == 2 && kind.len() <= 3);
    let length: usize = labels.iter().take(if second { 3 } else { 2 }).map(|label| label.len() + 1).sum();
    &host[(host.len() + 1).saturating_sub(length)..]
}

/// The URLs of a command line and those of a file, one a line, each with the name of its provider behind it if one likes;
/// lines that begin with `#`, and what follows a `#` behind a blank, are comments.
pub(super) fn urls(named: &[String], file: Option<&Path>) -> Result<Vec<Url>, Failure> {
    let mut texts: Vec<(String, Option<String>)> = named.iter().map(|text| (text.clone(), None)).collect();
    if let Some(file) = file {
        texts.extend(lines(file)?);
    }
    match texts.len() {
        0 => return Err(Failure::usage("there is no URL in the file")),
        n if n > MOST => return Err(Failure::usage(format!("{n} URLs are too many: at most {MOST} at once"))),
        _ => {}
    }
    let parse = |(text, label): (String, Option<String>)| {
        let url = Url::parse(&text).ok_or_else(|| {
            Failure::usage(format!("\"{text}\" is no URL")).hint("write http://HOST[:PORT]/PATH, https://… or HOST")
        })?;
        Ok(Url { label, ..url })
    };
    texts.into_iter().map(parse).collect()
}

/// The first word of each line, and what stands behind it.
fn lines(file: &Path) -> Result<Vec<(String, Option<String>)>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("can't read {}", file.display())).because(error.to_string()))?;
    let split = |line: &str| {
        let comment = line.find(" #").or_else(|| line.find("\t#")).unwrap_or(line.len());
        let line = line[..comment].trim();
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        (first.to_owned(), Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty()))
    };
    Ok(text.lines().map(split).filter(|(first, _)| !first.is_empty() && !first.starts_with('#')).collect())
}

/// Who doesn't want to be asked: names (with all below them), addresses and networks.
#[derive(Debug, Default)]
pub(super) struct OptOut {
    names: Vec<String>,
    networks: Vec<(IpAddr, u8)>,
}

impl OptOut {
    /// Reads a list.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let mut list = Self::default();
        for (line, _) in lines(file)? {
            let (address, bits) = line.split_once('/').map_or((line.as_str(), None), |(a, b)| (a, Some(b)));
            let Ok(address) = address.parse::<IpAddr>() else {
                list.names.push(line.trim_start_matches("*.").trim_end_matches('.').to_ascii_lowercase());
                continue;
            };
            let most = if address.is_ipv6() { 128 } else { 32 };
            let bits = bits.map_or(Ok(most), str::parse).ok().filter(|bits| *bits <= most);
            let bits = bits.ok_or_else(|| {
                Failure::usage(format!("{}: \"{line}\" is no network", file.display())).hint("write 192.0.2.0/24")
            })?;
            list.networks.push((address, bits));
        }
        Ok(list)
    }

    /// Whether it names this host.
    pub(super) fn has_name(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.names
            .iter()
            .any(|name| host == *name || host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.')))
    }

    /// Whether it names this address.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
            IpAddr::V6(v6) => u128::from(v6),
        };
        self.networks.iter().any(|(network, len)| {
            let mask = if *len == 0 { 0 } else { u128::MAX << (128 - u32::from(*len)) };
            network.is_ipv6() == address.is_ipv6() && (bits(*network) ^ bits(address)) & mask == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_understood_and_nonsense_is_not() {
        for (text, tls, host, port, path) in [
            ("example.org", false, "example.org", 80, "/"),
            ("https://example.org/a?b=c#d", true, "example.org", 443, "/a?b=c"),
            ("http://[2001:db8::1]:8080", false, "2001:db8::1", 8080, "/"),
            ("2001:db8::1", false, "2001:db8::1", 80, "/"),
            ("HTTP://10.0.0.1:81?q", false, "10.0.0.1", 81, "/?q"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.tls, &*url.host, url.port, &*url.path), (tls, host, port, path), "{text}");
        }
        for text in [
            "",
            "ftp://x",
            "http://",
            "http://x:0/",
            "http://x:y/",
            "http://x/a b",
            "a:b:c",
            "http://[x]/",
            "http://u@x/",
            "http://x/\r\nHost: y",
        ] {
            assert!(Url::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn providers_are_named_or_guessed() {
        for (host, provider) in [
            ("www.cdn.example.com", "example.com"),
            ("example.com.", "example.com"),
            ("a.b.co.uk", "b.co.uk"),
            ("localhost", "localhost"),
            ("de", "de"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(registered(host), provider, "{host}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hosts");
        std::fs::write(&file, "# CDNs\nhttp://x.example/a  First CDN # the old one\n\ny.example\t#none\n").unwrap();
        let all = urls(&[], Some(&file)).unwrap();
        let seen: Vec<_> = all.iter().map(|url| (url.text.as_str(), url.provider())).collect();
        assert_eq!(seen, [("http://x.example/a", "First CDN".to_owned()), ("y.example", "y.example".to_owned())]);
    }

    #[test]
    fn whoever_opted_out_is_known_by_name_address_and_network() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list");
        std::fs::write(&file, "# not these\nExample.org\n*.example.com\n192.0.2.0/24 # why\n2001:db8::/32\n").unwrap();
        let list = OptOut::read(&file).unwrap();
        for (host, out) in
            [("example.org", true), ("www.EXAMPLE.org.", true), ("badexample.org", false), ("a.example.com", true)]
        {
            assert_eq!(list.has_name(host), out, "{host}");
        }
        for (address, out) in
            [("192.0.2.7", true), ("192.0.3.7", false), ("2001:db8:1::", true), ("::192.0.2.7", false)]
        {
            assert_eq!(list.has_address(address.parse().unwrap()), out, "{address}");
        }
        std::fs::write(&file, "192.0.2.0/33\n").unwrap();
        assert!(OptOut::read(&file).is_err());
    }
}
