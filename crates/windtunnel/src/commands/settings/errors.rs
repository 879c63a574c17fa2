//! What errors of the host's settings say to people, and which exit code they make.

use crate::edge::{Failure, Fault};
use wt_host::{KnobError, PlanError, RequestError, StoreError, TxnError};
use wt_sys::SysError;

/// The command line with `sudo` before it.
fn with_sudo() -> String {
    let quoted = |word: String| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c)) && !word.is_empty();
        if plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let words: Vec<String> = std::env::args().map(quoted).collect();
    format!("sudo {}", words.join(" "))
}

/// The kernel or the file system failed.
pub(super) fn system(error: &SysError) -> Failure {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    let failure = Failure::environment(error.to_string());
    match error.errno() {
        Some(EPERM | EACCES) => {
            failure.because("this needs CAP_NET_ADMIN, or the right to write there").hint(with_sudo())
        }
        _ => failure,
    }
}

pub(super) fn knob(error: &KnobError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        KnobError::Unknown { .. } => failure.hint("windtunnel settings show --all lists all settings"),
        KnobError::NoValue(_) => failure.hint("write settings as initcwnd=20, or name a plan's file"),
        _ => failure,
    }
}

pub(super) fn request(file: &str, error: &RequestError) -> Failure {
    Failure::usage(format!("{file}: {error}")).hint("a plan's file has lines such as initcwnd = 20 under [settings]")
}

pub(super) fn plan(error: &PlanError) -> Failure {
    let text = error.to_string();
    match error {
        PlanError::Nothing => Failure::usage(text).hint("windtunnel settings plan initcwnd=20"),
        PlanError::WrongPlace { .. } | PlanError::OutOfRange { .. } | PlanError::NoDefault { .. } => {
            Failure::usage(text)
        }
        PlanError::BadTarget { .. } => {
            Failure::usage(text).hint("name a target, --to 192.0.2.1, or a device, --to eth0")
        }
        PlanError::NoDevice { .. } => Failure::usage(text).hint("windtunnel settings show lists the devices"),
        PlanError::NoDefaultRoute { .. } => {
            Failure::environment(text).hint("name a target, --to 192.0.2.1, or a device, --to eth0")
        }
        PlanError::WhichDevice { .. } => Failure::environment(text).hint("name the device, --to eth0"),
        PlanError::NoRoute { source, .. } => Failure::environment(text).because(source.to_string()),
        PlanError::Missing { .. } => {
            Failure::environment(text).hint("windtunnel settings show --all shows what is there")
        }
        PlanError::NoCongestionControl { .. } => {
            Failure::environment(text).hint("modprobe tcp_NAME, if the kernel has it as a module")
        }
        PlanError::Irreversible { .. } => Failure::environment(text),
    }
}

pub(super) fn store(error: &StoreError) -> Failure {
    match error {
        StoreError::BadId(_) | StoreError::NoSuch(_) => Failure::usage(error.to_string()),
        StoreError::System(error) => system(error),
        _ => Failure::environment(error.to_string())
            .hint("look at the file; windtunnel settings history shows the others"),
    }
}

pub(super) fn txn(error: &TxnError) -> Failure {
    let text = error.to_string();
    match error {
        TxnError::Store(error) => store(error),
        TxnError::System(error) => system(error),
        TxnError::Busy { .. } => Failure::environment(text).hint("wait until it has ended, and try again"),
        TxnError::Pending { id } => Failure::environment(text)
            .hint(format!("windtunnel settings confirm {id}, or windtunnel settings undo {id}")),
        TxnError::NotPrivileged { .. } => Failure::environment(text)
            .because("this process has no CAP_NET_ADMIN over this network namespace")
            .hint(with_sudo()),
        TxnError::OtherNamespace { .. } => Failure::environment(text).hint("run it outside of this network namespace"),
        TxnError::Irreversible { .. } => Failure::environment(text),
        TxnError::Guard(_) => Failure::new(Fault::Ours, text),
        TxnError::Failed { report, .. } => failed(&text, report),
        TxnError::NothingPending | TxnError::NothingToUndo => {
            Failure::usage(text).hint("windtunnel settings history lists the changes")
        }
        TxnError::Drifted { id, .. } => {
            Failure::environment(text).hint(format!("windtunnel settings undo {id}, and apply it again"))
        }
        TxnError::TooLate { .. } => Failure::environment(text).hint("apply it again, with a longer --confirm-within"),
        TxnError::NotInForce { .. } | TxnError::OtherNetwork { .. } | TxnError::Later { .. } => Failure::usage(text),
        TxnError::NotPersistent { source } => {
            let failure = system(source);
            let hint = failure.hint.unwrap_or_else(|| "make the file writable and confirm again".to_owned());
            Failure::environment(text).hint(hint)
        }
        TxnError::NotPutBack { backup, as_before, .. } => {
            let state = if *as_before { "everything is as it was before" } else { "see windtunnel settings show" };
            Failure::environment(text).because(format!("{state}; the old state is in {backup}"))
        }
    }
}

/// A failed change reports both halves: the cause, and whether it was put back.
fn failed(cause: &str, report: &wt_host::Applied) -> Failure {
    let failure = Failure::environment(format!("the change failed: {cause}"));
    match &report.revert {
        Some(revert) if revert.done => failure.because("everything was put back; nothing is changed"),
        Some(revert) => failure
            .because(format!("NOT everything could be put back: {}", revert.errors.join("; ")))
            .hint(format!("windtunnel settings undo {}; the old state is in {}", report.id, revert.backup)),
        None => failure,
    }
}
