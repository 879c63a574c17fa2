//! Which network namespaces there are, by what processes have of them.

use crate::ns::{NetNs, network_cookie};
use crate::{SysError, SysResult};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::ErrorKind::NotFound;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The first pid namespace, whose processes are all that there are.
///
/// # Source
/// `PROC_PID_INIT_INO` of the kernel's include/linux/proc_ns.h: 0xEFFFFFFC, at every boot.
const FIRST_PIDS: &str = "pid:[4026531836]";

/// The cookies of all network namespaces in which a thread is, or which a descriptor or a mount holds. One that nothing but its sockets
/// holds isn't found.
///
/// # Errors
/// [`SysError`] where this process can't see or enter all of them: then nobody knows which there are.
pub fn live_network_cookies() -> SysResult<HashSet<u64>> {
    if !std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == FIRST_PIDS) {
        return Err(SysError::io("look for network namespaces in a container")(std::io::ErrorKind::Unsupported.into()));
    }
    let mut found = FoundNamespaces::default();
    for process in entries(Path::new("/proc"))?.filter(|path| is_number(path)) {
        let taken = found.take_process(&process);
        // A hypervisor's process 1 may be protected even from root; where it is, there the kernel's threads are.
        if process != Path::new("/proc/1") || !taken.as_ref().is_err_and(is_refused) {
            taken?;
        }
    }
    Ok(found.cookies.into_values().collect())
}

#[derive(Debug, Default)]
struct FoundNamespaces {
    /// By what links call them: `net:[4026531840]`.
    cookies: HashMap<OsString, u64>,
    /// The mount namespaces that have been looked through.
    mounts: HashSet<PathBuf>,
}

impl FoundNamespaces {
    fn take_process(&mut self, process: &Path) -> SysResult<()> {
        for task in entries(&process.join("task"))? {
            self.take(&task.join("ns/net"))?;
        }
        for descriptor in entries(&process.join("fd"))? {
            self.take(&descriptor)?;
        }
        self.take_mounts(process)
    }

    /// Takes the namespace to which a link leads, if it leads to one.
    fn take(&mut self, link: &Path) -> SysResult<()> {
        let Some(name) = unless_gone(link, std::fs::read_link(link))? else { return Ok(()) };
        self.take_named(name.into_os_string(), link)
    }

    fn take_named(&mut self, name: OsString, at: &Path) -> SysResult<()> {
        if !name.as_bytes().starts_with(b"net:[") || self.cookies.contains_key(&name) {
            return Ok(());
        }
        let Some(file) = unless_gone(at, std::fs::File::open(at))? else { return Ok(()) };
        self.cookies.insert(name, NetNs::from(file).run(network_cookie)??);
        Ok(())
    }

    /// Takes the namespaces that are mounted where a process sees them, as those of `ip netns` are.
    fn take_mounts(&mut self, process: &Path) -> SysResult<()> {
        let link = process.join("ns/mnt");
        let Some(space) = unless_gone(&link, std::fs::read_link(&link))? else { return Ok(()) };
        let file = process.join("mountinfo");
        let Some(text) = unless_gone(&file, std::fs::read(&file))? else { return Ok(()) };
        if !self.mounts.insert(space) {
            return Ok(());
        }
        let root = process.join("root");
        for line in text.split(|byte| *byte == b'\n') {
            // proc_pid_mountinfo(5): the fourth field is the root within the file system, the fifth the place.
            let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let [_, _, _, name, place, ..] = fields[..] else { continue };
            if name.starts_with(b"net:[") {
                let place = unescaped(place);
                let below = place.strip_prefix("/").unwrap_or(&place);
                self.take_named(OsString::from_vec(name.to_vec()), &root.join(below))?;
            }
        }
        Ok(())
    }
}

/// A path of mountinfo: spaces, tabs, line ends and backslashes are octal there.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, more)) = rest.split_first() {
        let octal = more.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

fn is_refused(error: &SysError) -> bool {
    error.source.kind() == std::io::ErrorKind::PermissionDenied
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().iter().all(u8::is_ascii_digit))
}

/// The entries of a folder; none if it is gone.
fn entries(folder: &Path) -> SysResult<impl Iterator<Item = PathBuf> + use<>> {
    let listed = unless_gone(folder, std::fs::read_dir(folder))?;
    Ok(listed.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())))
}

/// What was read of a process, unless it has ended meanwhile.
fn unless_gone<T>(path: &Path, result: std::io::Result<T>) -> SysResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == NotFound || error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(SysError::io(format!("read {}", path.display()))(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_mounts_are_read_as_they_are_written() {
        for (text, place) in [("/run/netns/a", "/run/netns/a"), ("/a\\040b\\134", "/a b\\"), ("/a\\9", "/a\\9")] {
            assert_eq!(unescaped(text.as_bytes()), Path::new(place));
        }
    }
}
