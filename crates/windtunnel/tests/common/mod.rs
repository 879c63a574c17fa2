//! Running the binary as a person would.
#![allow(dead_code, reason = "every test file uses another part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

/// Five hosts joined by routers and links that delay, narrow and tamper.
pub(crate) mod five_hosts;
/// The host's settings in a namespace.
pub(crate) mod host;
/// A client and nginx, joined by the lab.
pub(crate) mod nginx;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The binary under test; `WINDTUNNEL_BIN` names another place of it, where another user can read it.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("WINDTUNNEL_BIN").map_or_else(|| env!("CARGO_BIN_EXE_windtunnel").into(), PathBuf::from)
}

/// The command with a home and a place for changes of its own, so that nothing of the user's is touched, and no test waits for another.
pub(crate) fn windtunnel(home: &std::path::Path) -> Command {
    at_home(Command::new(binary()), home)
}

/// The same from a line of shell that ends in running `"$0" "$@"`.
pub(crate) fn windtunnel_in_shell(home: &std::path::Path, line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).arg(binary());
    at_home(command, home)
}

fn at_home(mut command: Command, home: &std::path::Path) -> Command {
    command
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("WINDTUNNEL_STATE_DIR", home.join("changes"))
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null());
    command
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs it to its end.
pub(crate) fn run(args: &[&str]) -> RunOutput {
    let home = tempfile::tempdir().unwrap();
    ran(windtunnel(home.path()).args(args).output().unwrap())
}

/// Text and exit code.
pub(crate) fn ran(output: Output) -> RunOutput {
    RunOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs it and reads its one JSON object.
pub(crate) fn json(args: &[&str]) -> serde_json::Value {
    let ran = run(args);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

/// The processes whose command line holds this word.
pub(crate) fn processes_with(word: &str) -> Vec<u32> {
    let own = std::process::id();
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != own && String::from_utf8_lossy(&line).contains(word)
    })
    .collect()
}

/// Looks again and again until it holds; panics after ten seconds.
pub(crate) fn eventually(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(10, what, holds);
}

/// The same for what takes longer on a busy machine, with so many seconds.
pub(crate) fn eventually_within(seconds: u32, what: &str, mut holds: impl FnMut() -> bool) {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    for _ in 0..seconds * 100 {
        if holds() {
            return;
        }
        // Waits for nothing but time, in small steps.
        let _ = receiver.recv_timeout(std::time::Duration::from_millis(10));
    }
    drop(sender);
    panic!("{what} didn't come true within {seconds} s");
}

/// Tests that compare times run alone; all others may run beside each other.
static MACHINE: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// Held by a test that doesn't mind company.
pub(crate) fn shared() -> impl Sized {
    MACHINE.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Held by a test that compares times: nothing else of this binary runs meanwhile. With `scripts/run-tests.py`, which has to know of it
/// from `scripts/tests.conf`, nothing else at all, or little that is quiet.
pub(crate) fn alone() -> impl Sized {
    let kind = std::env::var("WINDTUNNEL_TEST_KIND");
    let known = kind.as_ref().map_or(true, |kind| matches!(kind.as_str(), "alone" | "quiet" | "loads"));
    assert!(known, "this test compares times: name it as quiet, loads or alone in scripts/tests.conf");
    MACHINE.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
