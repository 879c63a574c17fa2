//! Profiles: files that name several remote hosts.

use serde::Deserialize;
use std::path::Path;
use wt_load::Url;

/// So many remote hosts in one profile.
const MOST: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "target")]
    targets: Vec<Entry>,
}

/// One of them: an address, or its parts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    scheme: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    path: Option<String>,
    file: Option<String>,
    #[serde(default)]
    comment: String,
}

/// A remote host of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProfileRemote {
    pub(crate) url: Url,
    pub(crate) comment: String,
}

/// Whether a target is meant to be a profile: a file, and no address.
pub(crate) fn is_profile(target: &str) -> bool {
    !target.contains("://") && (target.ends_with(".toml") || Path::new(target).is_file())
}

/// Reads a profile's text.
///
/// # Errors
/// What is wrong, with line or field.
pub(crate) fn parse(text: &str) -> Result<Vec<ProfileRemote>, String> {
    let file: File = toml::from_str(text).map_err(|error| wt_units::shortened(error.to_string().trim_end()))?;
    if file.targets.is_empty() || file.targets.len() > MOST {
        let count = file.targets.len();
        return Err(if count == 0 {
            "there is no target in it: write [[target]] and url = \"…\"".to_owned()
        } else {
            format!("{count} targets are too many: at most {MOST}")
        });
    }
    let named = file.targets.into_iter().enumerate().map(|(number, entry)| {
        let comment = entry.comment.clone();
        let url = entry.url().and_then(|url| url.parse().map_err(|error: wt_load::UrlError| error.to_string()));
        url.map(|url| ProfileRemote { url, comment }).map_err(|error| format!("target {}: {error}", number + 1))
    });
    named.collect()
}

impl Entry {
    fn url(self) -> Result<String, String> {
        let parts = self.scheme.is_some() || self.port.is_some() || self.path.is_some() || self.file.is_some();
        match (self.url, self.host) {
            (Some(url), None) if !parts => Ok(url),
            (None, Some(host)) => {
                let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
                let port = self.port.map_or(String::new(), |port| format!(":{port}"));
                let path = self.path.unwrap_or_default();
                let path = path.trim_matches('/');
                let between = if path.is_empty() { "" } else { "/" };
                let scheme = self.scheme.as_deref().unwrap_or("http");
                Ok(format!("{scheme}://{host}{port}{between}{path}/{}", self.file.unwrap_or_default()))
            }
            _ => Err("name either url, or host with scheme, port, path and file".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_parts_say_the_same() {
        let text = "[[target]]\nurl = \"ftp://h:2121/pub/a/x.iso\"\ncomment = \"c\"\n[[target]]\nscheme = \"ftp\"\nhost = \"h\"\n\
                    port = 2121\npath = \"/pub/a/\"\nfile = \"x.iso\"\n[[target]]\nhost = \"2001:db8::1\"\n";
        let named = parse(text).unwrap();
        assert_eq!(named[0].url, named[1].url);
        assert_eq!(named[0].comment, "c");
        assert_eq!(named[2].url.to_string(), "http://[2001:db8::1]/");
    }

    #[test]
    fn no_text_makes_it_panic() {
        for text in ["[[target]]", "target = 5", "[[target]]\nport = 99999", "\u{0}", "[[target]]\nurl=\"\"\nhost=\"\""]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
