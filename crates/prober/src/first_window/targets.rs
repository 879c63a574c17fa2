//! URLs, and whose they are.

use super::lists::UrlRequest;
use crate::IpVersion;
use crate::target::{resolved, source_to};
use std::net::IpAddr;
use wt_probe::first_window::Goal;
use wt_problem::Problem;
use wt_trial::Cancel;
use wt_units::UrlError;

/// No run asks more.
const MOST: usize = 1_000_000;

/// A line of a list that is no URL, from 1, and why.
pub type SkippedLine = (u32, Problem);

/// One thing to ask.
#[derive(Debug, Clone)]
pub(super) struct Url {
    /// As it was written.
    pub(super) text: String,
    place: wt_units::Url,
    /// Whose it is, if that was said.
    label: Option<String>,
}

impl Url {
    /// Whose it is: what was written behind it, or else the registered part of its name as far as that can be guessed.
    pub(super) fn provider(&self) -> String {
        self.label.clone().unwrap_or_else(|| registered(&self.host().to_ascii_lowercase()).to_owned())
    }

    /// `http://HOST[:PORT][/PATH]`, the same with `https`, or without either.
    pub(super) fn parse(text: &str) -> Result<Self, UrlError> {
        Ok(Self { text: text.to_owned(), place: wt_units::Url::of_web(text)?, label: None })
    }

    /// Name or address, as it was written.
    pub(super) fn host(&self) -> &str {
        &self.place.host
    }

    /// Finds the address, which may take as long as the resolver likes unless it is cancelled, and whether there is a way to it.
    pub(super) fn resolve(&self, ip: Option<IpVersion>, cancel: &Cancel) -> Result<Goal, UnaskedHost> {
        let wt_units::Url { scheme, host, port, path, .. } = &self.place;
        let address = resolved(host, *port, ip, cancel).map_err(|problem| UnaskedHost::of(None, &problem))?.ip();
        source_to(address).map_err(|problem| UnaskedHost::of(Some(address), &problem))?;
        Ok(Goal { address, port: *port, tls: scheme.is_encrypted(), host: host.clone(), path: path.clone() })
    }
}

/// Why a host can't be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnaskedHost {
    /// Its address, if it has one.
    pub(super) address: Option<IpAddr>,
    /// In words.
    pub(super) why: String,
}

impl UnaskedHost {
    fn of(address: Option<IpAddr>, problem: &Problem) -> Self {
        let cause = problem.cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
        Self { address, why: format!("{}{cause}", problem.what) }
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

/// The URLs of a request, and the lines of a list that are none.
///
/// # Errors
/// A usage problem where there is none, where there are too many, and for what is no URL and not of a list.
pub(super) fn urls(targets: &[UrlRequest]) -> Result<(Vec<Url>, Vec<SkippedLine>), Problem> {
    match targets.len() {
        0 => return Err(Problem::usage("there is no URL in the file")),
        n if n > MOST => return Err(Problem::usage(format!("{n} URLs are too many: at most {MOST} at once"))),
        _ => {}
    }
    let (mut valid, mut skipped) = (Vec::new(), Vec::new());
    for target in targets {
        let place = target.line.map_or(String::new(), |line| format!("line {line}: "));
        let problem = |error: UrlError| {
            Problem::usage(format!("{place}\"{}\" is not a valid URL", target.url))
                .because(error.to_string())
                .hint("write http://HOST[:PORT]/PATH, https://… or HOST")
        };
        match (Url::parse(&target.url).map_err(problem), target.line) {
            (Ok(url), _) => valid.push(Url { label: target.provider.clone(), ..url }),
            (Err(problem), Some(line)) => skipped.push((line, problem)),
            (Err(problem), None) => return Err(problem),
        }
    }
    match (valid.is_empty(), skipped.is_empty()) {
        (true, false) => Err(skipped.swap_remove(0).1),
        _ => Ok((valid, skipped)),
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
            let url = Url::parse(text).unwrap().place;
            let seen = (url.scheme.is_encrypted(), &*url.host, url.port, &*url.path);
            assert_eq!(seen, (tls, host, port, path), "{text}");
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
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_line_that_is_no_url_is_told_with_its_number_and_the_others_go_on() {
        let list = super::super::lists::urls_of("# all\nhttp://a.example/\n\nftp://b.example/x  B\nc.example\n");
        let (all, skipped) = urls(&list).unwrap();
        assert_eq!(all.iter().map(Url::host).collect::<Vec<_>>(), ["a.example", "c.example"]);
        let [(4, problem)] = &skipped[..] else { panic!("{skipped:?}") };
        assert!(problem.what.starts_with("line 4: \"ftp://b.example/x\""), "{problem}");
        assert!(urls(&list[1..2]).is_err(), "nothing else is left");
        assert!(urls(&[UrlRequest { line: None, ..list[1].clone() }, list[0].clone()]).is_err(), "named by hand");
    }

    #[test]
    fn who_cant_be_asked_is_told_with_the_reason() {
        let why = |text: &str, ip| {
            Url::parse(text).unwrap().resolve(ip, &Cancel::new()).map(|goal| goal.address).map_err(|un| un.why)
        };
        assert_eq!(why("http://127.0.0.1/", None), Ok([127, 0, 0, 1].into()));
        // Without a socket that may broadcast, no kernel has a way there.
        for (text, ip, words) in [
            ("http://255.255.255.255/", None, "no way from this host to 255.255.255.255"),
            ("http://127.0.0.1/", Some(IpVersion::V6), "no address of that version"),
            ("http://no-such-host.invalid/", None, "can't find the address of no-such-host.invalid: "),
            ("http://[fe80::1%lo]/", None, "one link alone"),
        ] {
            assert!(why(text, ip).unwrap_err().contains(words), "{text}: {:?}", why(text, ip));
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
        let text = "# CDNs\nhttp://x.example/a  First CDN # the old one\n\ny.example\t#none\n";
        let (all, skipped) = urls(&super::super::lists::urls_of(text)).unwrap();
        assert!(skipped.is_empty());
        let seen: Vec<_> = all.iter().map(|url| (url.text.as_str(), url.provider())).collect();
        assert_eq!(seen, [("http://x.example/a", "First CDN".to_owned()), ("y.example", "y.example".to_owned())]);
    }
}
