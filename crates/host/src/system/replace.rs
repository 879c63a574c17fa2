//! Files that are replaced whole. By hand rather than with tempfile or a crate for atomic files: each step (write, sync the
//! file, rename, sync the directory) goes through [`System`], so that tests can let any of them fail or end the process
//! there; the name beside the file is fixed, so that what a crash leaves behind is found and taken away; and the order of
//! the syncs is what makes the old or the new content survive a power failure.

use super::files::FileStep;
use super::interface::System;
use std::path::{Path, PathBuf};
use wt_sys::SysResult;

/// Puts a file in place such that at any time either the old or the new content is there, whole, also after a crash.
///
/// # Errors
/// What the file system said. Then the old content is in place.
pub(crate) fn replace_file(system: &mut dyn System, path: &Path, mode: u32, bytes: &[u8]) -> SysResult<()> {
    let fresh = write_beside(system, path, mode, bytes)?;
    if let Err(error) = system.file(&FileStep::Rename { from: fresh.clone(), to: path.to_owned() }) {
        let _ = system.file(&FileStep::Remove { path: fresh });
        return Err(error);
    }
    // Should the directory not be written before the power fails, the old content comes back, and with it the old state
    // of the kernel: that is whole too.
    let _ = system.file(&FileStep::Sync { path: path.parent().unwrap_or(path).to_owned() });
    Ok(())
}

/// Writes a file beside the one whose place it is to take; returns its name.
///
/// # Errors
/// What the file system said. Then nothing is left.
pub(crate) fn write_beside(system: &mut dyn System, path: &Path, mode: u32, bytes: &[u8]) -> SysResult<PathBuf> {
    let fresh = beside(path);
    system.file(&FileStep::Remove { path: fresh.clone() })?;
    let steps =
        [FileStep::Create { path: fresh.clone(), mode, bytes: bytes.to_vec() }, FileStep::Sync { path: fresh.clone() }];
    for step in &steps {
        if let Err(error) = system.file(step) {
            let _ = system.file(&FileStep::Remove { path: fresh });
            return Err(error);
        }
    }
    Ok(fresh)
}

/// The name of a file that is to take another one's place. Neither sysctl nor any network manager reads hidden files,
/// should a crash leave one behind.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}
