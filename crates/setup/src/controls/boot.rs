//! Congestion controls of ours that systemd loads at boot.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use wt_cc::Choice;
use wt_host::{DROP_IN, boot_link, boot_unit, others_can_change, unit_path, unit_word};
use wt_problem::Problem;

/// A path of the configuration, below `WINDTUNNEL_ROOT` where that is set.
pub(super) fn below_root(path: &Path) -> PathBuf {
    match root() {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_owned(),
    }
}

fn root() -> Option<PathBuf> {
    std::env::var_os("WINDTUNNEL_ROOT").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The unit's text. It runs before anything that may name the congestion control: sysctl.d's files and the networks.
///
/// # Source
/// systemd.unit(5), systemd.special(7).
#[must_use]
pub fn unit(program: &str, choice: &Choice) -> String {
    let kernel_name = choice.kernel_name();
    let (command, name) = (unit_word(program), unit_word(&choice.to_string()));
    format!(
        "# Written by windtunnel cc load --boot; windtunnel cc unload {kernel_name} --boot takes it away.\n\
         [Unit]\n\
         Description=Congestion control {kernel_name} of windtunnel\n\
         DefaultDependencies=no\n\
         RequiresMountsFor={mounts}\n\
         Before=systemd-sysctl.service network-pre.target sysinit.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={command} cc load {name} --pin\n\
         ExecStop={command} cc unload {kernel_name}\n\
         \n\
         [Install]\n\
         WantedBy=sysinit.target\n",
        mounts = unit_path(program),
    )
}

/// What to say of a program that root runs at every boot and others can change; nothing if only root can.
#[must_use]
pub fn warning() -> Option<String> {
    others_can_change(&std::env::current_exe().ok()?)
}

/// Writes the unit and enables it; the unit's file. If either fails, neither is there.
///
/// # Errors
/// An environment [`Problem`] where systemd didn't start this system, or a file can't be written.
pub fn enable(choice: &Choice) -> Result<PathBuf, Problem> {
    if root().is_none() && !Path::new("/run/systemd/system").is_dir() {
        return Err(Problem::environment("systemd didn't start this system, so no unit can load anything at its boot")
            .hint(format!("let your system's start run: windtunnel cc load {choice} --pin")));
    }
    let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    let program = program.ok_or_else(|| Problem::environment("this program's own path isn't known, or isn't UTF-8"))?;
    let kernel_name = choice.kernel_name();
    let (file, link) = (below_root(&boot_unit(&kernel_name)), below_root(&boot_link(&kernel_name)));
    for folder in [&file, &link].into_iter().filter_map(|path| path.parent()) {
        std::fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
    }
    crate::files::write_whole(&file, unit(&program, choice).as_bytes())
        .map_err(|error| refused(&error.path, &error.source))?;
    let target = Path::new("..").join(file.file_name().unwrap_or_default());
    match std::os::unix::fs::symlink(target, &link) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            let _ = std::fs::remove_file(&file);
            return Err(refused(&link, &error));
        }
        _ => {}
    }
    reload();
    Ok(file)
}

/// Takes the unit away; its file, if there was one.
///
/// # Errors
/// An environment [`Problem`] when a file can't be removed.
pub fn disable(kernel_name: &str) -> Result<Option<PathBuf>, Problem> {
    let file = below_root(&boot_unit(kernel_name));
    let was_there = file.exists();
    for path in [below_root(&boot_link(kernel_name)), file.clone()] {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(refused(&path, &error)),
            _ => {}
        }
    }
    if let Some(folder) = below_root(&boot_link(kernel_name)).parent() {
        // It goes with the last link.
        let _ = std::fs::remove_dir(folder);
    }
    reload();
    Ok(was_there.then_some(file))
}

/// Whether a confirmed change makes a congestion control the default at boot.
#[must_use]
pub fn is_default_at_boot(kernel_name: &str) -> bool {
    let text = std::fs::read_to_string(below_root(Path::new(DROP_IN))).unwrap_or_default();
    text.lines().any(|line| {
        line.split_once('=').is_some_and(|(name, value)| {
            name.trim() == "net.ipv4.tcp_congestion_control" && value.trim() == kernel_name
        })
    })
}

/// systemd reads units anew, where it runs; the next boot does so by itself.
fn reload() {
    if root().is_none() {
        let mut command = std::process::Command::new("systemctl");
        command.arg("daemon-reload").stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let _ = command.status();
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Problem {
    let problem = Problem::environment(format!("can't change {}: {error}", path.display()));
    match error.kind() {
        ErrorKind::PermissionDenied => problem.hint("run it as root"),
        ErrorKind::ReadOnlyFilesystem => problem.hint("where /etc is read-only, add the unit to the system's image"),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_loads_this_very_variant_before_anything_that_names_it() {
        let choice: Choice = "chd@queue-min=20ms+queue-threshold=100ms".parse().unwrap();
        let text = unit("/opt/a b/wind$tunnel%", &choice);
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let start = line("ExecStart=");
        assert!(start.starts_with("\"/opt/a b/wind$$tunnel%%\" cc load \"chd@"), "{start}");
        let named = start.split('"').nth(3).unwrap().replace("%%", "%");
        assert_eq!(named.parse::<Choice>().unwrap().kernel_name(), choice.kernel_name());
        assert!(start.ends_with(" --pin") && line("Before=").contains("systemd-sysctl.service"), "{text}");
        assert!(line("ExecStop=").ends_with(&format!("cc unload {}", choice.kernel_name())), "{text}");
    }
}
