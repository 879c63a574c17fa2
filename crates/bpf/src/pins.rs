use std::path::{Path, PathBuf};
use wt_sys::{SysError, SysResult};

/// Where the kernel's bpf file system is expected.
const BPFFS: &str = "/sys/fs/bpf";
/// Our folder within it.
const FOLDER: &str = "windtunnel";

/// The files that keep congestion controls registered when nobody runs any more.
#[derive(Debug, Clone)]
pub struct Pins {
    folder: PathBuf,
}

/// Whether a bpf file system is mounted at `/sys/fs/bpf`.
fn is_mounted() -> bool {
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut fields = line.split(' ').skip(1);
        fields.next() == Some(BPFFS) && fields.next() == Some("bpf")
    })
}

/// Mounts the bpf file system where it belongs, if it isn't; `true` if that was needed.
///
/// # Errors
/// [`SysError`].
pub fn mount_bpffs() -> SysResult<bool> {
    if is_mounted() {
        return Ok(false);
    }
    wt_sys::ns::mount("bpf", BPFFS, Some("bpf"), 0).map(|()| true)
}

impl Default for Pins {
    fn default() -> Self {
        Self { folder: Path::new(BPFFS).join(FOLDER) }
    }
}

impl Pins {
    /// The file for a congestion control.
    #[must_use]
    pub fn path(&self, kernel_name: &str) -> PathBuf {
        self.folder.join(kernel_name)
    }

    /// The names that are pinned.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let mut names: Vec<_> = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Makes our folder.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` where no bpf file system is mounted.
    pub fn prepare(&self) -> SysResult<()> {
        let doing = format!("create {}", self.folder.display());
        std::fs::create_dir_all(&self.folder).map_err(SysError::io(doing))
    }

    /// Takes a congestion control out of the kernel; `false` if none of this name is pinned. Connections that use it go on.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn remove(&self, kernel_name: &str) -> SysResult<bool> {
        let path = self.path(kernel_name);
        if !path.exists() {
            return Ok(false);
        }
        // Below Linux 6.4 the map itself is pinned, and must be cleared; a link just goes with its last file.
        if let Ok(Some(map)) = wt_sys::bpf::open_pinned_map(&path) {
            let _ = wt_sys::bpf::clear_map(&map);
        }
        std::fs::remove_file(&path).map_err(SysError::io(format!("remove {}", path.display())))?;
        // The folder goes with the last one.
        let _ = std::fs::remove_dir(&self.folder);
        Ok(true)
    }
}
