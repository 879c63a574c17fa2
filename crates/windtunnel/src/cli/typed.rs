//! What was typed, as the journal keeps it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use wt_report::RetypedOptions;

/// What was typed, so that it can be typed again.
pub(crate) fn command() -> String {
    let quoted = |word: OsString| match word.to_str() {
        Some(text) => wt_units::shell_word(&without_password(text)).into_owned(),
        None => wt_units::shell_word_of_os(&word).into_owned(),
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(quoted).collect();
    format!("windtunnel {}", words.join(" "))
}

/// What must be typed again with each command about an experiment of this journal: a file that isn't the usual one, and the file
/// with the server's key. The name of a common journal holds a password, and who uses one has it in the configuration.
pub(crate) fn retyped(journal: Option<&Path>, key_file: Option<&Path>) -> RetypedOptions {
    let word = |path: &Path| wt_units::shell_word_of_os(path.as_os_str()).into_owned();
    let usual = wt_journal::default_path(|name| std::env::var_os(name));
    let is_other_file = |path: &&Path| !path.to_string_lossy().contains("://") && Some(*path) != usual.as_deref();
    RetypedOptions { journal: journal.filter(is_other_file).map(word), key_file: key_file.map(word) }
}

/// A text in which each command that reads the experiment names its journal, if that isn't the usual one.
pub(crate) fn naming_journal(text: &str, id: &str, journal: Option<&Path>) -> String {
    retyped(journal, None).in_text(text, id)
}

/// A hint in which each command about experiments has the journal and the key's file that were typed, as [`retyped`] has them.
pub(crate) fn naming_what_was_typed(hint: &str) -> String {
    let typed = |option| value_of(std::env::args_os().skip(1), option).map(PathBuf::from);
    retyped(typed("--journal").as_deref(), typed("--key-file").as_deref()).in_hint(hint)
}

/// The value of an option among words: `--journal FILE` or `--journal=FILE`. What stands behind `--` is another's.
fn value_of(words: impl Iterator<Item = OsString>, option: &str) -> Option<OsString> {
    let mut words = words.take_while(|word| word != "--");
    while let Some(word) = words.next() {
        if word == option {
            return words.next();
        }
        if let Some(value) = word.as_bytes().strip_prefix(option.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(OsStr::from_bytes(value).to_owned());
        }
    }
    None
}

/// What was typed behind a subcommand, with another one in its place: `apply initcwnd=20 --to eth0` of `plan initcwnd=20 --to eth0`.
pub(crate) fn behind(subcommand: &str, instead: &str) -> String {
    with_another(std::env::args_os().skip(1), subcommand, instead)
}

fn with_another(words: impl Iterator<Item = OsString>, subcommand: &str, instead: &str) -> String {
    let rest = words.skip_while(|word| *word != subcommand).skip(1);
    rest.fold(instead.to_owned(), |text, word| format!("{text} {}", wt_units::shell_word_of_os(&word)))
}

/// The words behind the program's name, to be looked at: what isn't UTF-8 in them, as names of files may be, is replaced.
pub(crate) fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// Whether a program reads what we say: then failures are objects, too. What stands behind `--` is another's.
pub(crate) fn wants_json() -> bool {
    let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
    words.any(|word| word == "--json" || word == "--json-stream" || word == "worker")
}

/// An address without the password in it.
fn without_password(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    if let Some((before, query)) =
        rest.split_once('?').filter(|_| scheme.ends_with("postgresql") || scheme.ends_with("postgres"))
    {
        let kept = |pair: &&str| !pair.starts_with("password=");
        let kept: Vec<&str> = query.split('&').filter(kept).collect();
        if kept.len() < query.split('&').count() {
            let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
            return without_password(&format!("{scheme}://{before}{query}"));
        }
    }
    let end = rest.find('/').unwrap_or(rest.len());
    if let Some((_, host)) = rest[..end].rsplit_once('@').filter(|_| scheme.ends_with("wt")) {
        return format!("{scheme}://…@{host}{}", &rest[end..]);
    }
    match rest[..end].rsplit_once('@').map(|(login, _)| (login.split(':').next().unwrap_or(""), login.len())) {
        Some((user, length)) if user.len() < length => format!("{scheme}://{user}:…{}", &rest[length..]),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{naming_journal, value_of, with_another, without_password};
    use std::path::Path;

    #[test]
    fn commands_about_an_experiment_name_its_journal_if_that_is_a_file_of_its_own() {
        let text = "Do: sudo windtunnel settings apply --verdict a-1\nKept: windtunnel report a-1 --full, windtunnel report b-2";
        let named = naming_journal(text, "a-1", Some(Path::new("/tmp/a b.db")));
        let option = "--journal '/tmp/a b.db'";
        assert!(named.contains(&format!("apply --verdict a-1 {option}\n")), "{named}");
        assert!(named.contains(&format!("report a-1 {option} --full, windtunnel report b-2")), "{named}");
        assert_eq!(naming_journal(text, "a-1", None), text);
        assert_eq!(naming_journal(text, "a-1", Some(Path::new("postgresql://host/db"))), text);
    }

    #[test]
    fn an_option_of_ours_is_found_however_it_was_typed() {
        let value = |typed: &[&str]| value_of(typed.iter().map(std::ffi::OsString::from), "--journal");
        for (typed, found) in [
            (&["report", "last", "--journal", "my file"][..], Some("my file")),
            (&["report", "--journal=a=b", "last"], Some("a=b")),
            (&["report", "--journals", "x"], None),
            (&["lab", "run", "--", "program", "--journal", "x"], None),
            (&["report", "--journal"], None),
        ] {
            assert_eq!(value(typed).as_deref(), found.map(std::ffi::OsStr::new), "{typed:?}");
        }
    }

    #[test]
    fn the_same_is_typed_with_another_subcommand() {
        let typed = ["settings", "--state-dir", "/tmp/plan x", "plan", "cc=reno", "my file", "--to", "eth0"];
        let typed = || typed.iter().map(std::ffi::OsString::from);
        assert_eq!(with_another(typed(), "plan", "apply"), "apply cc=reno 'my file' --to eth0");
        assert_eq!(with_another(typed().take(4), "plan", "apply"), "apply");
    }

    #[test]
    fn no_password_is_kept() {
        for (typed, kept) in [
            ("ftp://me:secret@host/a@b", "ftp://me:…@host/a@b"),
            ("ftp://me:se@cret@host", "ftp://me:…@host"),
            ("ftp://me@host/x:y", "ftp://me@host/x:y"),
            ("http://host/@x", "http://host/@x"),
            ("wt://0123abcd@host:7411", "wt://…@host:7411"),
            ("--levels", "--levels"),
        ] {
            assert_eq!(without_password(typed), kept);
        }
    }
}
