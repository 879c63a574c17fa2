use crate::SysResult;
use crate::error::check;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::PathBuf;

/// `FSCONFIG_CMD_CREATE` of linux/mount.h.
const CREATE: libc::c_uint = 6;
const DOING: &str = "make a folder in memory";

/// A folder in memory that has no place among the others: it is known by a descriptor of this process only. It goes with this
/// process and those that have files of it open, whatever ends them, so nothing can be left behind.
///
/// # Source
/// fsopen(2), fsmount(2) (Linux 5.2); proc(5) for `/proc/PID/fd`.
#[derive(Debug)]
pub struct MemoryFolder(OwnedFd);

impl MemoryFolder {
    /// A new, empty one.
    ///
    /// # Errors
    /// [`SysError`](crate::SysError); `EPERM` without `CAP_SYS_ADMIN` in the user namespace that owns our mount namespace.
    pub fn new() -> SysResult<Self> {
        // SAFETY: the name is a live C string; fsopen gives a descriptor or −1.
        let made = unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 1) };
        // SAFETY: what fsopen gives is a new descriptor.
        let context = unsafe { owned(made) }?;
        // SAFETY: this command takes neither key nor value.
        let made = unsafe {
            let none = std::ptr::null::<libc::c_char>();
            libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0)
        };
        check(made as libc::c_int, || DOING.to_owned())?;
        // SAFETY: fsmount takes numbers; 1 is FSMOUNT_CLOEXEC.
        let made = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) };
        // SAFETY: what fsmount gives is a new descriptor.
        unsafe { owned(made) }.map(Self)
    }

    /// Its path, for every process of ours as long as this one lives: servers close what they inherit.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }
}

/// The descriptor that a system call has made, or its error.
///
/// # Safety
/// `made` must be the result of a system call that gives a new descriptor, taken once.
unsafe fn owned(made: libc::c_long) -> SysResult<OwnedFd> {
    let fd = check(made as libc::c_int, || DOING.to_owned())?;
    // SAFETY: the caller vouches that it is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_memory_folder_holds_children_see_and_nobody_else() {
        let folder = match MemoryFolder::new() {
            Ok(folder) => folder,
            Err(error) if error.errno() == Some(libc::EPERM) => {
                wt_testing::not_run("sys-admin", &error);
                return;
            }
            Err(error) => panic!("{error}"),
        };
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), "c").unwrap();
        let read = std::process::Command::new("cat").arg(folder.path().join("a/b")).output().unwrap();
        assert_eq!(read.stdout, b"c");
        let path = folder.path();
        drop(folder);
        assert!(!path.join("a").exists());
    }
}
