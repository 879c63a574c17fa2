use crate::JournalError;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use wt_units::UserFolder;

/// Where the journal lies if nothing else is said: `windtunnel/journal.sqlite3` in the user's folder for data; `None`
/// without a home. `variable` looks up the environment.
#[must_use]
pub fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(UserFolder::Data.path(variable)?.join("windtunnel/journal.sqlite3"))
}

/// Refuses what no database can lie in: to SQLite a device or a pipe is an empty file, and it makes others beside it.
pub(super) fn must_not_be_special(path: &Path) -> Result<(), JournalError> {
    match std::fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => Err(JournalError::NotAJournal {
            path: path.to_owned(),
            why: "it is a device, a pipe or a socket".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Makes an empty file for its owner only where there is none, and the directories above it.
///
/// An existing file isn't opened here: to close it would drop the locks that another connection of this process holds
/// on it. For the same reason a new one gets its name only after it is closed.
///
/// # Source
/// <https://www.sqlite.org/howtocorrupt.html>, section 2.2
pub(super) fn make(path: &Path) -> Result<(), JournalError> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let fail = |e: std::io::Error| match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => JournalError::Full { path: path.to_owned() },
        _ => JournalError::Open { path: path.to_owned(), why: e.to_string() },
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(fail)?;
    let mut name = path.file_name().ok_or_else(|| fail(ErrorKind::InvalidInput.into()))?.to_owned();
    name.push(format!(".new-{}-{:?}", std::process::id(), std::thread::current().id()));
    let fresh = directory.join(name);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(fail)?;
    let linked = std::fs::hard_link(&fresh, path);
    let _ = std::fs::remove_file(&fresh);
    match linked {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(fail(e)),
        _ => Ok(()),
    }
}

/// Whether a journal that is there has nothing that isn't in its own file yet.
pub(super) fn is_whole(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    path.exists() && std::fs::metadata(log).map_or(true, |log| log.len() == 0)
}

/// The name by which SQLite reads a file that nobody changes, without a file beside it.
///
/// # Source
/// <https://www.sqlite.org/uri.html>, <https://www.sqlite.org/wal.html#read_only_databases>
pub(super) fn immutable(path: &Path) -> PathBuf {
    let begin = if path.is_absolute() { "file://" } else { "file:" };
    let mut uri = begin.to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    PathBuf::from(uri + "?immutable=1")
}
