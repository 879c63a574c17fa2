use crate::change::DROP_IN_NAME;
use crate::system::System;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wt_sys::SysResult;

/// Directories of settings that are made at boot; a file in an earlier one hides those of its name in later ones.
///
/// # Source
/// sysctl.d(5), sysctl(8).
const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
/// Read after all of them by `sysctl --system`, and by nothing else unless a link in /etc/sysctl.d leads to it.
const LAST: &str = "/etc/sysctl.conf";

/// One line that sets something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// What it sets, with dots; may be a pattern.
    pub name: String,
    /// To what.
    pub value: String,
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
}

/// All lines of all files that set something at boot, in the order in which they are done: the last one wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chain(Vec<Assignment>);

impl Chain {
    /// Reads the files.
    ///
    /// # Errors
    /// When a directory can't be read; files that can't be read are passed over, as by who makes the settings.
    pub fn read(system: &mut dyn System) -> SysResult<Self> {
        let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
        for directory in DIRECTORIES {
            for name in system.list(Path::new(directory))? {
                if name.ends_with(".conf") {
                    files.entry(name.clone()).or_insert_with(|| Path::new(directory).join(name));
                }
            }
        }
        let mut lines = Vec::new();
        for file in files.into_values().chain([PathBuf::from(LAST)]) {
            if let Ok(Some(bytes)) = system.read_file(&file) {
                lines.extend(assignments(&String::from_utf8_lossy(&bytes), &file));
            }
        }
        Ok(Self(lines))
    }

    /// All lines that set `name`, the winner last. A line that names it wins over patterns.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&Assignment> {
        let excluded = self.0.iter().any(|line| line.name.strip_prefix('-') == Some(name));
        let exact = || self.0.iter().filter(|line| line.name == name);
        let by_pattern = self.0.iter().filter(|line| !excluded && line.name != name && matches(&line.name, name));
        by_pattern.chain(exact()).collect()
    }

    /// The line that wins for `name`.
    #[must_use]
    pub fn winner(&self, name: &str) -> Option<&Assignment> {
        self.all(name).last().copied()
    }

    /// What our drop-in sets.
    pub(crate) fn ours(&self, name: &str) -> Option<&Assignment> {
        let lines = self.all(name);
        lines.into_iter().rev().find(|line| line.file.file_name().is_some_and(|file| file == DROP_IN_NAME))
    }

    /// The line that wins over our drop-in at boot.
    pub(crate) fn after_ours(&self, name: &str) -> Option<&Assignment> {
        self.winner(name).filter(|line| {
            let file = line.file.file_name().unwrap_or_default().to_string_lossy();
            file == "sysctl.conf" || *file > *DROP_IN_NAME
        })
    }
}

/// The lines of one file that set something.
pub(crate) fn assignments(text: &str, file: &Path) -> Vec<Assignment> {
    let parse = |(at, line): (usize, &str)| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (name, value) = match line.split_once('=') {
            // A minus before the name says that a failure doesn't matter.
            Some((name, value)) => (name.trim().trim_start_matches('-').trim(), value.trim()),
            // Without a value it excludes a name from patterns.
            None if line.starts_with('-') => (line, ""),
            None => return None,
        };
        Some(Assignment { name: dotted(name), value: value.to_owned(), file: file.to_owned(), line: at + 1 })
    };
    text.lines().enumerate().filter_map(parse).collect()
}

/// `net/ipv4/tcp_sack` as `net.ipv4.tcp_sack`; dots within a part of a path become slashes.
fn dotted(name: &str) -> String {
    let is_path = name.find(['.', '/']).is_some_and(|at| name.as_bytes().get(at) == Some(&b'/'));
    if !is_path {
        return name.to_owned();
    }
    name.chars()
        .map(|c| {
            if c == '/' {
                '.'
            } else if c == '.' {
                '/'
            } else {
                c
            }
        })
        .collect()
}

/// Whether a name with `*` and `?` covers another, part by part.
fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return false;
    }
    let (patterns, parts): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), name.split('.').collect());
    patterns.len() == parts.len() && patterns.iter().zip(&parts).all(|(p, n)| glob(p.as_bytes(), n.as_bytes()))
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    // Where the last star stood, and what it has swallowed so far.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((at, swallowed)) = star else { return false };
                star = Some((at, swallowed + 1));
                (p, t) = (at + 1, swallowed + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::{Chain, assignments, glob, matches};
    use proptest::prelude::*;
    use std::path::Path;

    #[test]
    fn lines_are_read_as_sysctl_reads_them() {
        let text = "# no\n; no\n\n net.ipv4.tcp_sack = 0 \n-net/ipv4/tcp_ecn=1\nnonsense\n-net.ipv4.tcp_ecn\n";
        let lines = assignments(text, Path::new("/x"));
        let found: Vec<_> = lines.iter().map(|l| (l.name.as_str(), l.value.as_str(), l.line)).collect();
        assert_eq!(found, [("net.ipv4.tcp_sack", "0", 4), ("net.ipv4.tcp_ecn", "1", 5), ("-net.ipv4.tcp_ecn", "", 7)]);
    }

    #[test]
    fn the_last_line_wins_and_a_name_wins_over_a_pattern() {
        let text = "net.ipv4.tcp_sack=0\nnet.ipv4.tcp_sack=1\nnet.ipv4.tcp_*=5\n";
        let chain = Chain(assignments(text, Path::new("/x")));
        assert_eq!(chain.winner("net.ipv4.tcp_sack").unwrap().line, 2);
        assert_eq!(chain.winner("net.ipv4.tcp_ecn").unwrap().line, 3);
        assert_eq!(chain.winner("net.core.rmem_max"), None);
    }

    #[test]
    fn patterns_cover_parts_of_names() {
        assert!(matches("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.eth0.rp_filter"));
        assert!(!matches("net.ipv4.*", "net.ipv4.conf.eth0.rp_filter"));
        assert!(glob(b"a*b*c", b"a-b-b-c") && !glob(b"a*b", b"a-c") && glob(b"?", b"x") && !glob(b"?", b""));
    }

    proptest! {
        #[test]
        fn a_pattern_ends_on_any_text(pattern in "[ab*?]{0,12}", text in "[ab]{0,20}") {
            let _ = glob(pattern.as_bytes(), text.as_bytes());
            prop_assert!(glob(b"*", text.as_bytes()));
        }
    }
}
