use wt_host::{ApplyOutcome, KnobError, PlanError, RequestError, StoreError, TxnError};
use wt_problem::{Fault, Problem};
use wt_sys::SysError;
use wt_units::{shell_word, shell_word_of_os};

/// The command line with `sudo` before it.
fn with_sudo() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| shell_word_of_os(&word).into_owned()).collect();
    format!("sudo {}", words.join(" "))
}

/// The kernel or the file system failed.
pub(super) fn system(error: &SysError) -> Problem {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    const ENOSPC: i32 = 28;
    const EDQUOT: i32 = 122;
    let failure = Problem::environment(error.to_string());
    match error.errno() {
        Some(EPERM | EACCES) => {
            failure.because("this needs CAP_NET_ADMIN, or the right to write there").hint(with_sudo())
        }
        Some(ENOSPC | EDQUOT) => failure.hint("make room on that file system, and try again"),
        _ => failure,
    }
}

/// Changes are where only somebody else looks.
pub(super) fn hidden(what: String) -> Problem {
    Problem::environment(what).hint(with_sudo())
}

pub(super) fn knob(error: &KnobError) -> Problem {
    let failure = Problem::usage(error.to_string());
    match error {
        KnobError::Unknown { .. } => failure.hint("windtunnel settings show --all lists all settings"),
        KnobError::NoValue(_) => failure.hint("write settings as initcwnd=20, or name a plan's file"),
        _ => failure,
    }
}

pub(super) fn request(file: &str, error: &RequestError) -> Problem {
    Problem::usage(format!("{file}: {error}")).hint("a plan's file has lines such as initcwnd = 20 under [settings]")
}

pub(super) fn plan(error: &PlanError) -> Problem {
    let text = error.to_string();
    match error {
        PlanError::Nothing => Problem::usage(text).hint("windtunnel settings plan initcwnd=20"),
        PlanError::WrongPlace { .. } | PlanError::OutOfRange { .. } | PlanError::NoDefault { .. } => {
            Problem::usage(text)
        }
        PlanError::NotPerTarget { nearest, .. } => Problem::environment(text).hint(format!(
            "--to host sets it for every connection of the host ({nearest}), with the cost that the plan names"
        )),
        PlanError::BadTarget { .. } => {
            Problem::usage(text).hint("name a target, --to 192.0.2.1, or a device, --to eth0")
        }
        PlanError::HostName { text: name } => Problem::usage(text)
            .hint(format!("name an address of it, --to 192.0.2.1: getent ahosts {} shows them", shell_word(name))),
        PlanError::NoDevice { .. } => Problem::usage(text).hint("windtunnel settings show lists the devices"),
        PlanError::NoDefaultRoute { .. } => {
            Problem::environment(text).hint("name a target, --to 192.0.2.1, or a device, --to eth0")
        }
        PlanError::WhichDevice { .. } => Problem::environment(text).hint("name the device, --to eth0"),
        PlanError::NoRoute { source, .. } => Problem::environment(text).because(source.to_string()),
        PlanError::Missing { .. } => {
            Problem::environment(text).hint("windtunnel settings show --all shows what is there")
        }
        PlanError::NoCongestionControl { name, .. } => {
            let hint = match our_control(name) {
                Some(ours) => {
                    let kernel_name = ours.kernel_name();
                    format!(
                        "sudo windtunnel cc load {ours} brings it as a BPF program, whose name here is cc={kernel_name}"
                    )
                }
                None if name.starts_with("wt_") => {
                    "it is one of windtunnel's own, with parameters: windtunnel cc load NAME@PARAMETERS brings it"
                        .to_owned()
                }
                None => format!("modprobe tcp_{name}, if the kernel has it as a module"),
            };
            Problem::environment(text).hint(hint)
        }
        PlanError::Irreversible { .. } => Problem::environment(text),
    }
}

/// One of our congestion controls by its name here or in the kernel.
fn our_control(name: &str) -> Option<wt_cc::Choice> {
    let variants =
        wt_cc::ALGORITHMS.iter().flat_map(|one| one.variants.iter().map(move |variant| (one.name, variant.name)));
    let mut all = variants.filter_map(|(one, variant)| format!("{one}@{variant}").parse::<wt_cc::Choice>().ok());
    name.parse().ok().or_else(|| all.find(|choice| choice.kernel_name() == name))
}

pub(super) fn store(error: &StoreError) -> Problem {
    match error {
        StoreError::BadId(_) | StoreError::NoSuch(_) => Problem::usage(error.to_string()),
        StoreError::System(error) => system(error),
        _ => Problem::environment(error.to_string())
            .hint("look at the file; windtunnel settings history shows the others"),
    }
}

pub(super) fn txn(error: &TxnError) -> Problem {
    let text = error.to_string();
    match error {
        TxnError::Store(error) => store(error),
        TxnError::System(error) => system(error),
        TxnError::Busy { .. } => Problem::environment(text).hint("wait until it has ended, and try again"),
        TxnError::Pending { id } => Problem::environment(text)
            .hint(format!("windtunnel settings confirm {id}, or windtunnel settings undo {id}")),
        TxnError::Stuck { id, .. } | TxnError::Expired { id, .. } => {
            Problem::environment(text).hint(format!("windtunnel settings undo {id} tries again to put it back"))
        }
        TxnError::Stale { .. } => {
            Problem::environment(text).because("another program sets them").hint("find out which one, and try again")
        }
        TxnError::NotPrivileged { .. } => Problem::environment(text)
            .because("this process has no CAP_NET_ADMIN over this network namespace")
            .hint(with_sudo()),
        TxnError::OtherNamespace { .. } => Problem::environment(text).hint("run it outside of this network namespace"),
        TxnError::Irreversible { .. } => Problem::environment(text),
        TxnError::NoPlace => Problem::environment(text)
            .hint("look at what is there (ls -l), remove it or let it lead to a file, and try again"),
        TxnError::Guard(_) => Problem::new(Fault::Internal, text),
        TxnError::Failed { report, .. } => failed(&text, report),
        TxnError::NothingPending | TxnError::NothingToUndo => {
            Problem::usage(text).hint("windtunnel settings history lists the changes")
        }
        TxnError::Drifted { id, .. } => {
            Problem::environment(text).hint(format!("windtunnel settings undo {id}, and apply it again"))
        }
        TxnError::TooLate { .. } => Problem::environment(text).hint("apply it again, with a longer --confirm-within"),
        TxnError::NotInForce { .. } | TxnError::Later { .. } => Problem::usage(text),
        TxnError::OtherNetwork { id, .. } => Problem::usage(text).hint(format!(
            "run it there: ip netns exec NAME, or nsenter --net=…; if that namespace is gone, windtunnel settings forget {id} leaves everything as it is"
        )),
        TxnError::NotPersistent { source } => {
            let failure = system(source);
            let hint = failure.hint.unwrap_or_else(|| "make the file writable and confirm again".to_owned());
            Problem::environment(text).hint(hint)
        }
        TxnError::NotPutBack { backup, as_before: false, .. } => Problem::environment(text)
            .because(format!("see windtunnel settings show; the old state is in {backup}"))
            .hint("undo --force puts back what can be; forget N leaves everything as it is"),
        TxnError::NotPutBack { backup, .. } => Problem::environment(text)
            .because(format!("the change is in force again, as it was; the old state is in {backup}"))
            .hint("undo --force puts back what can be; forget N leaves everything as it is"),
    }
}

/// A failed change reports both halves: the cause, and whether it was put back.
fn failed(cause: &str, report: &ApplyOutcome) -> Problem {
    let failure = Problem::environment(format!("the change failed: {cause}"));
    match &report.revert {
        Some(revert) if revert.done => failure.because("everything was put back; nothing is changed"),
        Some(revert) => failure
            .because(format!("NOT everything could be put back: {}", revert.errors.join("; ")))
            .hint(format!(
                "windtunnel settings undo {0}; if that fails, too, undo {0} --force, or forget {0}; the old state is in {1}",
                report.id, revert.backup
            )),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_lack_of_rights_say_what_to_try() {
        let of =
            |number| system(&SysError::io("write state.json")(std::io::Error::from_raw_os_error(number))).to_string();
        for (number, hint) in [(28, "make room"), (122, "make room"), (13, "sudo")] {
            assert!(of(number).contains(hint), "{}", of(number));
        }
        assert!(!of(5).contains("make room"), "{}", of(5));
    }
}
