use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Says that this process is at work on an experiment, for as long as it lives.
///
/// A process id says it only to those who see the same processes: within `windtunnel lab run`, or in a container, the same
/// number is another process, or none. So beside the journal lies a file that is locked, flock(2): whatever ends the process, the
/// kernel takes the lock away, and everybody who can open the journal sees whether it is there. The file goes with the claim, or
/// once somebody finds it without its lock.
#[derive(Debug)]
pub struct Claim {
    file: PathBuf,
    _locked: File,
}

impl Claim {
    /// Claims an experiment of this name, before it is in the journal; `None` where files can't be made, locked or linked: then the
    /// process id alone says who is at work.
    #[must_use]
    pub fn take(journal: &Path, id: &str) -> Option<Self> {
        let file = place(journal, id)?;
        // Nobody may find it without its lock, so it gets its name once it is locked. Whoever is killed in between leaves a file that
        // says nothing, and that the next claim takes away.
        let mut unlocked = file.clone().into_os_string();
        unlocked.push(".new");
        let unlocked = PathBuf::from(unlocked);
        let _ = std::fs::remove_file(&unlocked);
        let locked = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked).ok()?;
        let named = locked.try_lock().is_ok() && std::fs::hard_link(&unlocked, &file).is_ok();
        let _ = std::fs::remove_file(&unlocked);
        named.then(|| Self { file, _locked: locked })
    }

    /// Whether somebody is at work on it; `None` if nobody ever claimed it, or there is no telling.
    #[must_use]
    pub fn is_held(journal: &Path, id: &str) -> Option<bool> {
        let file = place(journal, id)?;
        match File::open(&file).ok()?.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
            Ok(()) => {
                let _ = std::fs::remove_file(&file);
                Some(false)
            }
        }
    }
}

impl Claim {
    /// The experiments of this journal that somebody is at work on, by name.
    #[must_use]
    pub fn running(journal: &Path) -> Vec<String> {
        let (Some(folder), Some(name)) = (journal.parent(), journal.file_name().and_then(|name| name.to_str())) else {
            return Vec::new();
        };
        let begin = format!("{name}-");
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let ids = names.filter_map(|name| Some(name.strip_prefix(&begin)?.strip_suffix(".running")?.to_owned()));
        let mut held: Vec<String> = ids.filter(|id| Self::is_held(journal, id) == Some(true)).collect();
        held.sort();
        held
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Where the file lies: beside the journal, under its name and the experiment's.
fn place(journal: &Path, id: &str) -> Option<PathBuf> {
    let mut name = journal.file_name()?.to_owned();
    name.push(format!("-{id}.running"));
    crate::id::fault(id).is_none().then(|| journal.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_at_work_are_listed_and_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("journal.sqlite3");
        assert_eq!(Claim::running(&journal), Vec::<String>::new());
        let both = ["20260101-000000-b-0002", "20260101-000000-a-0001"].map(|id| Claim::take(&journal, id).unwrap());
        assert_eq!(Claim::running(&journal), ["20260101-000000-a-0001", "20260101-000000-b-0002"]);
        drop(both);
        assert_eq!(Claim::running(&journal), Vec::<String>::new());
    }

    #[test]
    fn a_claim_is_seen_while_it_lives_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("journal.sqlite3");
        let left = || std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(Claim::is_held(&journal, "a"), None);
        let claim = Claim::take(&journal, "a").unwrap();
        assert!(Claim::take(&journal, "a").is_none(), "it is taken");
        assert_eq!((Claim::is_held(&journal, "a"), Claim::is_held(&journal, "b")), (Some(true), None));
        drop(claim);
        assert_eq!((Claim::is_held(&journal, "a"), left()), (None, 0));
        // What a killed process leaves: the file without its lock.
        std::fs::write(directory.path().join("journal.sqlite3-a.running"), "").unwrap();
        assert_eq!((Claim::is_held(&journal, "a"), left()), (Some(false), 0));
        assert!(Claim::take(&journal, "../a").is_none() && Claim::is_held(&journal, "../a").is_none());
    }
}
