use std::path::PathBuf;

/// One change in the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStep {
    /// Makes a directory, and those above it; the last one must be new if `exclusive`.
    MakeDirectory {
        /// The directory.
        path: PathBuf,
        /// Permission bits of what is made.
        mode: u32,
        /// Whether it must not be there.
        exclusive: bool,
    },
    /// Makes a file, which must not be there, and writes it.
    Create {
        /// The file.
        path: PathBuf,
        /// Permission bits.
        mode: u32,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// Waits until a file or a directory is on the disk.
    Sync {
        /// The file.
        path: PathBuf,
    },
    /// Puts a file in the place of another one.
    Rename {
        /// The file.
        from: PathBuf,
        /// Its new name.
        to: PathBuf,
    },
    /// Removes a file; none is as well.
    Remove {
        /// The file.
        path: PathBuf,
    },
    /// Removes a directory, which must be empty.
    RemoveDirectory {
        /// The directory.
        path: PathBuf,
    },
}
