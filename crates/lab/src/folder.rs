use std::path::PathBuf;
use wt_sys::memory_folder::MemoryFolder;

/// A folder for what programs in the lab need to find: in memory, so that nothing is left behind whatever ends us.
#[derive(Debug)]
pub struct Folder(Place);

#[derive(Debug)]
enum Place {
    Memory(MemoryFolder),
    /// Where the kernel has no such folders (before Linux 5.2).
    Disk(tempfile::TempDir),
}

impl Folder {
    /// A new, empty one.
    ///
    /// # Errors
    /// The kernel's, where there can be none on disk either.
    pub fn new() -> std::io::Result<Self> {
        let made = MemoryFolder::new().map(Place::Memory);
        made.or_else(|_| tempfile::tempdir().map(Place::Disk)).map(Self)
    }

    /// Its path, for every process of ours as long as this one lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.0 {
            Place::Memory(folder) => folder.path(),
            Place::Disk(folder) => folder.path().to_owned(),
        }
    }
}
