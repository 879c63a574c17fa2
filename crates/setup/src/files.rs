use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What everybody may read and write, as far as the process's umask lets them.
const USUAL: u32 = 0o666;
/// What only the owner may read and write.
const SECRET: u32 = 0o600;

/// A file that couldn't be written; what was there before is there still.
#[derive(Debug, thiserror::Error)]
#[error("can't write {}: {source}", .path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Writes a file as a whole or not at all: beside it first, then under its name. What isn't a regular file, such as
/// `/dev/stdout`, is written to.
///
/// # Errors
/// [`WriteError`]; nothing is left behind.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write(path, bytes, USUAL).map_err(|source| WriteError { path: path.to_owned(), source })
}

/// The same for what only its owner may read.
///
/// # Errors
/// [`WriteError`]; nothing is left behind.
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write(path, bytes, SECRET).map_err(|source| WriteError { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = WholeFile::begin(path, mode)?;
    file.write_all(bytes)?;
    file.commit()
}

/// A file that is written bit by bit, and is there as a whole or not at all: whoever drops it before [`WholeFile::finish`] leaves
/// nothing behind.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    part: Part,
}

#[derive(Debug)]
enum Part {
    /// Beside its place.
    Beside(tempfile::NamedTempFile),
    /// What isn't a regular file, such as `/dev/stdout`.
    Direct(File),
}

impl WholeFile {
    /// Begins it.
    ///
    /// # Errors
    /// [`WriteError`] where nothing can be written there.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        Self::begin(path, USUAL).map_err(|source| WriteError { path: path.to_owned(), source })
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// [`WriteError`]; nothing is left behind.
    pub fn finish(self) -> Result<(), WriteError> {
        let path = self.path.clone();
        self.commit().map_err(|source| WriteError { path, source })
    }

    fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|at| at.is_symlink());
        // What a process has open is written to as it is: the file behind it isn't replaced under whoever opened it.
        let is_open = is_link && leads_to_descriptor(path);
        if is_open || std::fs::metadata(path).is_ok_and(|at| !at.is_file()) {
            let file = File::options().write(true).append(is_open).open(path)?;
            return Ok(Self { path: path.to_owned(), part: Part::Direct(file) });
        }
        // A link stays one, and leads to the new file.
        let path = if is_link { std::fs::canonicalize(path)? } else { path.to_owned() };
        let part = Part::Beside(part_beside(&path, mode)?);
        Ok(Self { path, part })
    }

    fn commit(self) -> io::Result<()> {
        if let Part::Beside(part) = self.part {
            part.as_file().sync_all()?;
            part.persist(&self.path).map_err(|error| error.error)?;
        }
        Ok(())
    }
}

impl io::Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.part {
            Part::Beside(part) => part.write(bytes),
            Part::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.part {
            Part::Beside(part) => part.flush(),
            Part::Direct(file) => file.flush(),
        }
    }
}

/// Whether a link leads to what a process has open: `/dev/stdout` does, by way of proc(5).
fn leads_to_descriptor(path: &Path) -> bool {
    /// As many links as the kernel follows (path_resolution(7)).
    const MOST_LINKS: usize = 40;
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = std::fs::read_link(&at) else { return false };
        let folder = at.parent().unwrap_or(Path::new("/")).to_owned();
        at = folder.join(next);
        let is_proc = at.starts_with("/proc") || at.starts_with("/dev/fd");
        if is_proc && at.parent().is_some_and(|folder| folder.ends_with("fd")) {
            return true;
        }
    }
    false
}

fn part_beside(path: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The temporary file's name, which its errors have, says nothing to anybody.
    let mut refused = None;
    let open = |part: &Path| {
        let opened = File::options().write(true).create_new(true).mode(mode).open(part);
        opened.inspect_err(|error| refused = error.raw_os_error())
    };
    let name = path.file_name().unwrap_or_default();
    let made = tempfile::Builder::new().prefix(name).suffix(".part").make_in(folder, open);
    made.map_err(|error| refused.map_or(error, io::Error::from_raw_os_error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.svg");
        for text in ["one", "another"] {
            write_whole(&file, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        write_secret(&file, b"secret").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, SECRET);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_named_with_the_reason_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_whole(&folder.path().join("none/a.svg"), b"x").unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
        let shown = error.to_string();
        assert!(shown.starts_with("can't write ") && shown.contains("none/a.svg: No such file"), "{shown}");
        assert!(!shown.contains(".part"), "{shown}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_stays_one_and_what_a_process_has_open_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, open) = (folder.path().join("target"), folder.path().join("link"), folder.path().join("open"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("target", &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        // As /dev/stdout is a link to what this process has open.
        let out = File::create(folder.path().join("out")).unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&out);
        std::os::unix::fs::symlink(format!("/proc/self/fd/{descriptor}"), &open).unwrap();
        for text in ["one ", "two"] {
            write_whole(&open, text.as_bytes()).unwrap();
        }
        assert!(std::fs::symlink_metadata(&open).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "one two");
    }

    #[test]
    fn what_is_no_regular_file_is_written_to() {
        write_whole(Path::new("/dev/null"), b"x").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }
}
