//! Paths of the lab: loaded, shown, started; programs in them, and one transfer from within.

/// A program in a lab of its own.
mod program;
/// A lab that is up.
mod running;
/// What a path is made of.
mod shown;
/// One transfer from within.
mod transfer;

pub use program::{LabProgram, LabRecording, LabRunAnswer, LabRunRequest, run, words};
pub use running::{HostUp, LabRequest, LabUpAnswer, RunningLab};
pub use shown::{
    BothWays, DirectionShown, HopShown, HostShown, LinkShown, PathShown, Preset, PresetsAnswer, QueueShown,
    ScenarioAnswer, list, show,
};
pub use transfer::{TransferAnswer, TransferRequest, transfer};

use std::path::Path;
use wt_lab::{ImportError, Lab, LabError, LabOptions, Scenario, presets};
use wt_problem::Problem;

/// What to do where user namespaces are forbidden.
pub const USER_NAMESPACE_HELP: &str = "allow them for this program: on Ubuntu 23.10 and later with an AppArmor profile \
(`aa-status` tells; sysctl kernel.apparmor_restrict_unprivileged_userns=0 allows all), on older Debian with sysctl \
kernel.unprivileged_userns_clone=1, in a container with a seccomp profile that permits unshare; or run as root";

/// Whether AppArmor takes the rights from user namespaces here.
///
/// # Source
/// Ubuntu's specification SE045, "Unprivileged user namespace restrictions via AppArmor".
pub fn apparmor_restricts() -> bool {
    let name = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    std::fs::read_to_string(name).is_ok_and(|text| text.trim() == "1")
}

/// What to do about that.
pub const APPARMOR_HELP: &str = "install a profile for this program: windtunnel doctor --apparmor-profile prints it \
and tells how; or run as root";

/// Loads a preset or a file.
///
/// # Errors
/// A usage problem with the nearest names, or with file, line and field.
pub fn load(path: &str) -> Result<Scenario, Problem> {
    presets::load(path).map_err(|error| match error {
        presets::PresetError::Unknown { .. } => {
            Problem::usage(error.to_string()).hint("windtunnel lab list shows them; a path of your own is a TOML file")
        }
        _ => Problem::usage(error.to_string()).hint("windtunnel lab show adsl prints an example"),
    })
}

/// The text of a preset or a file, as far as it can be read.
#[must_use]
pub fn text(path: &str) -> Option<String> {
    presets::text(path).map(str::to_owned).or_else(|| std::fs::read_to_string(path).ok())
}

/// Whether a scenario that was loaded from `path` is what this text says, whatever they call themselves and however it is written.
#[must_use]
pub fn is_as_written(scenario: &Scenario, path: &str, text: &str) -> bool {
    let nameless = |of: Scenario| Scenario { name: String::new(), title: String::new(), source: String::new(), ..of };
    match Scenario::parse(path, text) {
        Ok(written) => nameless(written) == nameless(scenario.clone()),
        // Another version wrote it.
        Err(_) => self::text(path).is_some_and(|now| now == text),
    }
}

/// Enters the user namespace and starts the lab. Must be called before any other thread runs.
///
/// # Errors
/// An environment problem that says what is missing.
pub fn start(scenario: Scenario, options: LabOptions) -> Result<Lab, Problem> {
    wt_lab::enter().and_then(|()| Lab::with(scenario, options)).map_err(|error| problem(&error))
}

/// As [`start`], for whoever measures: a journal in PostgreSQL and a server of turns that are named can be reached from within the lab, which has
/// no way out itself.
///
/// # Errors
/// As [`start`].
pub fn start_in_reach(scenario: Scenario, options: LabOptions, named: [Option<&Path>; 2]) -> Result<Lab, Problem> {
    if named.into_iter().any(|named| crate::journal::is_common(named)) {
        wt_sys::outside::stay_in_reach().map_err(|error| Problem::environment(error.to_string()))?;
    }
    start(scenario, options)
}

/// What to say when the lab can't be made.
pub fn problem(error: &LabError) -> Problem {
    match error {
        LabError::UserNamespace(_) if apparmor_restricts() => Problem::environment(error.to_string())
            .because("AppArmor takes the rights from user namespaces here (kernel.apparmor_restrict_unprivileged_userns is 1)")
            .hint(APPARMOR_HELP),
        // ENOSPC; both kinds are made at once.
        LabError::UserNamespace(source) if source.errno() == Some(28) => Problem::environment(error.to_string())
            .because("a limit of namespaces is reached: user.max_user_namespaces or user.max_net_namespaces")
            .hint("let root raise it, here or where this container runs: sysctl -w user.max_user_namespaces=10000 user.max_net_namespaces=10000"),
        LabError::UserNamespace(source) if wt_sys::ns::is_root_that_may_map_nobody(source) => {
            Problem::environment(error.to_string())
                .because("this is root without CAP_SETFCAP, as in some containers: the kernel lets it map no user")
                .hint("run it as an ordinary user, or give the container CAP_SETFCAP")
        }
        LabError::UserNamespace(source) => Problem::environment(error.to_string())
            .because(match source.errno() {
                Some(1 | 13) => "this system forbids unprivileged user namespaces",
                _ => "the kernel refused",
            })
            .hint(USER_NAMESPACE_HELP),
        LabError::SetUp { source, advice } => {
            Problem::environment(format!("can't set up the lab: {source}")).hint((*advice).to_owned())
        }
        LabError::Record { .. } => Problem::environment(error.to_string()).hint("choose a file that you may write"),
        LabError::Engine(why) => Problem::internal(format!("the lab's emulator stopped: {why}")),
    }
}

/// What to say when traces can't be imported.
pub fn import_problem(error: &ImportError) -> Problem {
    let problem = Problem::usage(error.to_string());
    match error {
        ImportError::Unreadable { .. }
        | ImportError::NotAFile { .. }
        | ImportError::TooLarge { .. }
        | ImportError::Trace { .. } => {
            problem.hint("a trace of mahimahi has one time in milliseconds per line, none before the one above it")
        }
        ImportError::Folder { .. } => problem.hint("name another folder, or make this one"),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_delay_is_another_path_and_another_title_isnt() {
        let (scenario, text) = (load("adsl").unwrap(), text("adsl").unwrap());
        assert!(is_as_written(&scenario, "adsl", &text));
        assert!(is_as_written(&scenario, "adsl", &format!("# Better known.\n{text}")));
        let mut other = scenario.clone();
        other.title = "renamed".to_owned();
        assert!(is_as_written(&other, "adsl", &text));
        other.links[0].down.delay *= 2;
        assert!(!is_as_written(&other, "adsl", &text) && !is_as_written(&scenario, "adsl", "of another version"));
    }
}
