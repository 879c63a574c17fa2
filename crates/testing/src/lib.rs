//! For tests and benches only: what a test requires of the machine that it runs on, and a harness for tests that need a process without threads.
//!
//! A test that can't be run must not count as passed unseen. It says what it lacks with [`require!`]; where that isn't listed in
//! `WINDTUNNEL_LACKS`, it fails in CI. `scripts/run-tests.py` counts what wasn't run.

/// Whether the machine is quiet enough for a bench.
mod bench;
/// A server of PostgreSQL.
mod postgres;

pub use bench::{Goal, OtherLoad, bench, most_memory_mib};
pub use postgres::PostgresServer;

use std::fmt::Display;
use std::io::Write as _;

/// Gives the value of a `Result`, or leaves the test out, because the machine lacks what is named.
///
/// The first argument is the word for `WINDTUNNEL_LACKS`, the second a `Result` whose error says why. See [`not_run`].
#[macro_export]
macro_rules! require {
    ($lack:expr, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(why) => {
                $crate::not_run($lack, &why);
                return;
            }
        }
    };
}

/// Says on standard error, past libtest's capture, that a test or a part of it isn't run, and why.
///
/// # Panics
/// Where `CI` or `WINDTUNNEL_TESTS=all` is set and `lack` isn't among the words, separated by commas, of `WINDTUNNEL_LACKS`.
#[track_caller]
pub fn not_run(lack: &str, why: &dyn Display) {
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    let strict = !["", "0", "false"].contains(&set("CI").as_str()) || set("WINDTUNNEL_TESTS") == "all";
    let text = verdict(lack, why, strict, &set("WINDTUNNEL_LACKS"));
    let text = text.unwrap_or_else(|error| panic!("{error}"));
    // Nothing can be done about a closed standard error.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What is said of a test that isn't run; an error where it had to be.
fn verdict(lack: &str, why: &dyn Display, strict: bool, lacks: &str) -> Result<String, String> {
    if strict && !lacks.split(',').any(|word| word.trim() == lack) {
        return Err(format!(
            "this test can't be run: it needs {lack}: {why}\n\
             If this machine can't have that, add {lack} to WINDTUNNEL_LACKS (scripts/test.sh)."
        ));
    }
    Ok(format!("not run: {lack}: {why}"))
}

/// A `main` for tests that must be run while the process has one thread, as entering a user namespace demands.
///
/// Understands of libtest's arguments `--list`, `--exact` and words to choose by; runs those chosen one after the other, after
/// `prepare`, whose error is a failure. A test fails by panicking.
pub fn without_threads<E: Display>(prepare: impl FnOnce() -> Result<(), E>, tests: &[(&str, fn())]) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let words: Vec<&str> = args.iter().map(String::as_str).filter(|arg| !arg.starts_with('-')).collect();
    let named = |name: &str, word: &str| if has("--exact") { name == word } else { name.contains(word) };
    let chosen = tests.iter().filter(|(name, _)| words.is_empty() || words.iter().any(|word| named(name, word)));
    if has("--list") {
        chosen.for_each(|(name, _)| say(&format!("{name}: test")));
        return;
    }
    if let Err(error) = prepare() {
        panic!("these tests can't be prepared: {error}");
    }
    say(&format!("running {} tests", chosen.clone().count()));
    for (name, test) in chosen {
        test();
        say(&format!("test {name} ... ok"));
    }
}

/// A line on standard output; nothing can be done about a closed one.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn a_test_that_cant_be_run_fails_in_ci_unless_its_lack_is_listed() {
        assert!(verdict("tun", &"closed", true, "").is_err());
        assert!(verdict("tun", &"closed", true, "bpf,tunnel").is_err());
        assert_eq!(verdict("tun", &"closed", true, "bpf, tun"), Ok("not run: tun: closed".to_owned()));
        assert_eq!(verdict("tun", &"closed", false, ""), Ok("not run: tun: closed".to_owned()));
    }
}
