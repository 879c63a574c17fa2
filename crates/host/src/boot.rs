//! Units of systemd that make at boot what ends with it: congestion controls of ours, and settings of connections.

use crate::system::System;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use wt_sys::SysResult;

/// Where the host's own units are.
pub(crate) const UNITS: &str = "/etc/systemd/system";
/// Congestion controls of this program are registered under names that begin so.
const OURS: &str = "wt_";

/// The unit that loads a congestion control of ours at boot, by the kernel's name for it.
#[must_use]
pub fn boot_unit(kernel_name: &str) -> PathBuf {
    Path::new(UNITS).join(format!("windtunnel-cc-{kernel_name}.service"))
}

/// The link that makes systemd start that unit at boot.
///
/// # Source
/// systemd.unit(5): what `systemctl enable` makes of `WantedBy=sysinit.target`.
#[must_use]
pub fn boot_link(kernel_name: &str) -> PathBuf {
    let unit = boot_unit(kernel_name);
    unit.with_file_name("sysinit.target.wants").join(unit.file_name().unwrap_or_default())
}

/// A word of a command line in a unit.
///
/// # Source
/// systemd.service(5), "Command lines": words in double quotes with C-style escapes, `%%` for `%`, `$$` for `$`.
#[must_use]
pub fn unit_word(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' | '$' => quoted.extend([c, c]),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A path as the value of a unit's setting that takes paths.
#[must_use]
pub fn unit_path(path: &str) -> String {
    path.replace('\\', "\\\\").replace('%', "%%").replace(' ', "\\x20").replace('"', "\\\"")
}

/// What to say of a program that root runs at every boot and others can change; nothing if only root can.
#[must_use]
pub fn others_can_change(program: &Path) -> Option<String> {
    let meta = std::fs::metadata(program).ok()?;
    let others = meta.uid() != 0 || meta.mode() & 0o022 != 0;
    others.then(|| {
        format!(
            "Root runs {} at every boot, and others than root can change it: chown root and chmod 755, or install the package.",
            program.display()
        )
    })
}

/// Why a congestion control won't be there after the next boot; `None` if the kernel has it by itself.
#[must_use]
pub(crate) fn goes_with_its_loader(name: &str) -> Option<String> {
    name.strip_prefix(OURS)?;
    Some(format!(
        "{name} is a BPF program of windtunnel: it goes when it is unloaded, and with the next boot. What is read at boot doesn't \
         name it unless a unit loads it: windtunnel cc load NAME --boot, with the name that you loaded"
    ))
}

/// The same where no unit loads it at boot.
///
/// # Errors
/// When the unit's file can't be read.
pub(crate) fn ends_with_the_boot(system: &mut dyn System, name: &str) -> SysResult<Option<String>> {
    let Some(why) = goes_with_its_loader(name) else { return Ok(None) };
    let enabled = system.read_file(&boot_unit(name))?.is_some() && system.read_file(&boot_link(name))?.is_some();
    Ok((!enabled).then_some(why))
}

/// Whether systemd starts this system, so that a unit can hold what the next boot would end.
///
/// # Source
/// `sd_booted(3)`: the directory `/run/systemd/system` is there.
///
/// # Errors
/// When the directory can't be looked at.
pub(crate) fn has_systemd(system: &mut dyn System) -> SysResult<bool> {
    Ok(system.ownership(Path::new("/run/systemd/system"))?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::RealSystem;

    #[test]
    fn a_control_of_ours_needs_its_loader_at_boot_and_the_kernels_own_need_none() {
        assert!(goes_with_its_loader("wt_chd_hz100").unwrap().contains("cc load"));
        assert_eq!(goes_with_its_loader("cubic"), None);
    }

    #[test]
    fn a_unit_that_is_enabled_keeps_a_control_of_ours_and_one_that_is_not_does_not() {
        let root = tempfile::tempdir().unwrap();
        let mut system = RealSystem::open(Some(root.path().to_owned())).unwrap();
        let mut ends = |name: &str| ends_with_the_boot(&mut system, name).unwrap().is_some();
        let below = |path: PathBuf| root.path().join(path.strip_prefix("/").unwrap());
        assert!(ends("wt_chd") && !ends("bbr"));
        let (unit, link) = (below(boot_unit("wt_chd")), below(boot_link("wt_chd")));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::fs::write(&unit, "[Unit]\n").unwrap();
        assert!(ends("wt_chd"), "nothing starts it");
        std::os::unix::fs::symlink("../windtunnel-cc-wt_chd.service", &link).unwrap();
        assert!(!ends("wt_chd") && ends("wt_hd"));
    }
}
