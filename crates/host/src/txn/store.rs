use super::error::{StoreError, TxnError};
use crate::change::{CHECKPOINT_FORMAT, Checkpoint, CheckpointId, SCHEMA_VERSION, STATE_FORMAT, State};
use crate::system::{FileStep, Ownership, System, replace_file};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use wt_sys::SysError;
use wt_sys::process::ProcessIdentity;

/// The directory in which checkpoints are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    directory: PathBuf,
}

/// The file system's word that nobody else is at the store, or holds the change. Ends with the process, whatever ends that.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

/// A file, and whether it could be locked.
type LockedFile = (File, std::io::Result<()>);

const STATE: &str = "state.json";
const LAST_STATE: &str = "last-state.json";
const CHECKPOINT: &str = "checkpoint.json";

impl Store {
    /// The store in a directory, which needs not exist.
    #[must_use]
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn checkpoints(&self) -> PathBuf {
        self.directory.join("checkpoints")
    }

    /// The directory of a checkpoint.
    #[must_use]
    pub fn of(&self, id: CheckpointId) -> PathBuf {
        self.checkpoints().join(id.to_string())
    }

    /// The file with the old state.
    #[must_use]
    pub fn backup(&self, id: CheckpointId) -> PathBuf {
        self.of(id).join(CHECKPOINT)
    }

    /// The file that the guard of a checkpoint keeps locked.
    #[must_use]
    pub(crate) fn guard_lock(&self, id: CheckpointId) -> PathBuf {
        self.of(id).join("guard.lock")
    }

    /// The file that whoever holds a change keeps locked.
    fn hold_lock(&self, id: CheckpointId) -> PathBuf {
        self.of(id).join("hold.lock")
    }

    /// Makes the directories.
    pub(crate) fn prepare(&self, system: &mut dyn System) -> Result<(), StoreError> {
        for path in [self.directory.clone(), self.checkpoints()] {
            system.file(&FileStep::MakeDirectory { path: path.clone(), mode: 0o700, exclusive: false })?;
            self.check(system, &path, |found| found.is_directory)?;
        }
        Ok(())
    }

    /// Whether there is anything stored that can be seen.
    pub(crate) fn exists(&self, system: &mut dyn System) -> bool {
        self.is_there(system).unwrap_or(false)
    }

    /// Whether there is anything stored; an error where nobody may look.
    pub(crate) fn is_there(&self, system: &mut dyn System) -> Result<bool, StoreError> {
        Ok(system.ownership(&self.checkpoints())?.is_some())
    }

    /// Refuses what isn't ours alone.
    fn check(
        &self,
        system: &mut dyn System,
        path: &Path,
        kind: impl Fn(&Ownership) -> bool,
    ) -> Result<bool, StoreError> {
        /// Writable by group or others.
        const OTHERS: u32 = 0o022;
        let Some(found) = system.ownership(path)? else { return Ok(false) };
        let path = || path.to_owned();
        let uid = system.uid();
        if !kind(&found) {
            Err(StoreError::NotAFile { path: path() })
        } else if found.uid != uid && found.uid != 0 {
            Err(StoreError::Foreign { path: path(), owner: found.uid, wanted: uid })
        } else if found.mode & OTHERS != 0 {
            Err(StoreError::Writable { path: path(), mode: found.mode })
        } else {
            Ok(true)
        }
    }

    /// Takes the lock, or says who has it: guards look after their changes for moments, and those are waited for.
    pub(crate) fn lock(&self, system: &mut dyn System) -> Result<StoreLock, TxnError> {
        self.lock_for(system, Duration::from_secs(3))
    }

    /// The same with another patience.
    pub(crate) fn lock_for(&self, system: &mut dyn System, patience: Duration) -> Result<StoreLock, TxnError> {
        self.prepare(system)?;
        let file = self.open_lock()?;
        let mut holder = file.try_clone().map_err(|error| self.lock_error(error))?;
        match self.lock_within(file, patience) {
            Ok(locked) => Ok(locked?),
            Err(_) => Err(TxnError::Busy { holder: named(&mut holder) }),
        }
    }

    /// Says that a change is held, as long as the answer is kept and its process lives.
    pub(crate) fn hold(&self, id: CheckpointId) -> Result<StoreLock, StoreError> {
        let path = self.hold_lock(id);
        let failed = |error| StoreError::from(SysError::io(format!("lock {}", path.display()))(error));
        let mut file = open_lock_file(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        leave_card(&mut file);
        Ok(StoreLock { _file: file })
    }

    /// Who holds a change, for a message; `None` where nobody does, or where whoever does counts as hung.
    pub(crate) fn holder(&self, id: CheckpointId, state: &State, boottime_ns: u64) -> Option<String> {
        let mut file = File::open(self.hold_lock(id)).ok().filter(|_| boottime_ns < state.apply_until_ns)?;
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| named(&mut file))
    }

    /// Takes the lock. Whoever has had it for longer than `patience` is hung and is ended.
    pub(crate) fn lock_by_force(&self, patience: Duration) -> Result<StoreLock, StoreError> {
        const SIGKILL: i32 = 9;
        let file = self.open_lock()?;
        let mut holder = file.try_clone().map_err(|error| self.lock_error(error))?;
        match self.lock_within(file, patience) {
            Ok(locked) => locked,
            Err(wait) => {
                // Only whoever has the lock wrote the card last, and its identity names no other process.
                if let Some(holder) = card(&mut holder).filter(ProcessIdentity::is_alive) {
                    let _ = wt_sys::process::signal(holder.pid, SIGKILL);
                }
                let gone = |_| self.lock_error(std::io::Error::from(std::io::ErrorKind::Interrupted));
                self.locked(wait.recv().map_err(gone)?)
            }
        }
    }

    /// Takes the lock, or gives back what tells of it later.
    fn lock_within(
        &self,
        file: File,
        patience: Duration,
    ) -> Result<Result<StoreLock, StoreError>, Receiver<LockedFile>> {
        if file.try_lock().is_ok() {
            return Ok(self.locked((file, Ok(()))));
        }
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let locked = file.lock();
            let _ = sender.send((file, locked));
        });
        match receiver.recv_timeout(patience) {
            Ok(locked) => Ok(self.locked(locked)),
            Err(_) => Err(receiver),
        }
    }

    fn locked(&self, (mut file, locked): LockedFile) -> Result<StoreLock, StoreError> {
        locked.map_err(|error| self.lock_error(error))?;
        leave_card(&mut file);
        Ok(StoreLock { _file: file })
    }

    fn open_lock(&self) -> Result<File, StoreError> {
        open_lock_file(&self.directory.join("lock")).map_err(|error| self.lock_error(error))
    }

    fn lock_error(&self, error: std::io::Error) -> StoreError {
        SysError::io(format!("lock {}", self.directory.join("lock").display()))(error).into()
    }

    /// The numbers of all checkpoints, rising.
    pub(crate) fn ids(&self, system: &mut dyn System) -> Result<Vec<CheckpointId>, StoreError> {
        let names = system.list(&self.checkpoints())?;
        let mut ids: Vec<CheckpointId> = names.iter().filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Makes the directory of a new checkpoint.
    pub(crate) fn create(&self, system: &mut dyn System) -> Result<CheckpointId, StoreError> {
        let last = self.ids(system)?.last().map_or(0, |id| id.0);
        let id = CheckpointId(last.saturating_add(1));
        system.file(&FileStep::MakeDirectory { path: self.of(id), mode: 0o700, exclusive: true })?;
        system.file(&FileStep::Sync { path: self.checkpoints() })?;
        Ok(id)
    }

    /// Stores the state before a change.
    pub(crate) fn write(&self, system: &mut dyn System, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let path = self.of(checkpoint.id).join(CHECKPOINT);
        let bytes = to_bytes(checkpoint, &path)?;
        Ok(replace_file(system, &path, 0o600, &bytes)?)
    }

    /// Stores how far a change has come.
    pub(crate) fn write_state(
        &self,
        system: &mut dyn System,
        id: CheckpointId,
        state: &State,
    ) -> Result<(), StoreError> {
        let path = self.of(id).join(STATE);
        let bytes = to_bytes(state, &path)?;
        Ok(replace_file(system, &path, 0o600, &bytes)?)
    }

    /// Lays ready the state that a change has once it was put back, for then the disk may be full.
    pub(crate) fn stage_last_state(
        &self,
        system: &mut dyn System,
        id: CheckpointId,
        state: &State,
    ) -> Result<(), StoreError> {
        let path = self.of(id).join(LAST_STATE);
        let bytes = to_bytes(state, &path)?;
        Ok(replace_file(system, &path, 0o600, &bytes)?)
    }

    /// Stores the state that was laid ready, which needs no room on the disk.
    pub(crate) fn use_last_state(&self, system: &mut dyn System, id: CheckpointId) -> Result<(), StoreError> {
        let (from, to) = (self.of(id).join(LAST_STATE), self.of(id).join(STATE));
        Ok(system.file(&FileStep::Rename { from, to })?)
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// [`StoreError`] when there is none, or it isn't believed.
    pub fn read(&self, system: &mut dyn System, id: CheckpointId) -> Result<Checkpoint, StoreError> {
        let path = self.of(id).join(CHECKPOINT);
        let checkpoint: Checkpoint = self.load(system, id, &path, CHECKPOINT_FORMAT)?;
        if checkpoint.id != id {
            return Err(StoreError::Damaged { path, why: format!("it says that it is change {}", checkpoint.id) });
        }
        Ok(checkpoint)
    }

    /// Reads how far a change has come.
    ///
    /// # Errors
    /// [`StoreError`] when there is none, or it isn't believed.
    pub fn read_state(&self, system: &mut dyn System, id: CheckpointId) -> Result<State, StoreError> {
        self.load(system, id, &self.of(id).join(STATE), STATE_FORMAT)
    }

    /// The same of any change of the list; `None` for one that was never begun: whoever was to make it ended before a state was stored.
    pub(crate) fn begun(&self, system: &mut dyn System, id: CheckpointId) -> Result<Option<State>, StoreError> {
        match self.read_state(system, id) {
            Err(StoreError::NoSuch(_)) => Ok(None),
            read => read.map(Some),
        }
    }

    /// Whether a change was never begun: it has no state, or no checkpoint, which is stored first, and its state says that it is over.
    pub(crate) fn was_never_begun(&self, system: &mut dyn System, id: CheckpointId) -> bool {
        match self.begun(system, id) {
            Ok(None) => true,
            Ok(Some(state)) => state.phase.is_out_of_force() && !self.has_checkpoint(system, id),
            Err(_) => false,
        }
    }

    /// Whether the state before a change is stored, readable or not.
    pub(crate) fn has_checkpoint(&self, system: &mut dyn System, id: CheckpointId) -> bool {
        !matches!(self.read(system, id), Err(StoreError::NoSuch(_)))
    }

    /// Takes away what is stored of a change that was never begun.
    pub(crate) fn discard(&self, system: &mut dyn System, id: CheckpointId) -> Result<(), StoreError> {
        let path = self.of(id);
        for name in system.list(&path)? {
            system.file(&FileStep::Remove { path: path.join(name) })?;
        }
        Ok(system.file(&FileStep::RemoveDirectory { path })?)
    }

    fn load<T: for<'de> Deserialize<'de>>(
        &self,
        system: &mut dyn System,
        id: CheckpointId,
        path: &Path,
        format: &str,
    ) -> Result<T, StoreError> {
        for directory in [self.directory.clone(), self.checkpoints(), self.of(id)] {
            if !self.check(system, &directory, |found| found.is_directory)? {
                return Err(StoreError::NoSuch(id));
            }
        }
        if !self.check(system, path, |found| found.is_file)? {
            return Err(StoreError::NoSuch(id));
        }
        let bytes = system.read_file(path)?.ok_or(StoreError::NoSuch(id))?;
        from_bytes(&bytes, path, format)
    }

    /// Findings that nobody wants to see.
    pub fn muted(&self, system: &mut dyn System) -> std::collections::BTreeSet<String> {
        let bytes = system.read_file(&self.directory.join("muted.json")).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Stores them.
    ///
    /// # Errors
    /// What the file system said.
    pub fn set_muted(
        &self,
        system: &mut dyn System,
        muted: &std::collections::BTreeSet<String>,
    ) -> Result<(), StoreError> {
        self.prepare(system)?;
        let path = self.directory.join("muted.json");
        let bytes = to_bytes(muted, &path)?;
        Ok(replace_file(system, &path, 0o600, &bytes)?)
    }
}

fn to_bytes<T: Serialize>(value: &T, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut bytes = serde_json::to_vec(value)
        .map_err(|error| StoreError::Damaged { path: path.to_owned(), why: error.to_string() })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads a file of ours. What it is and which version it has is looked at before the rest, which a newer one may not have.
pub(crate) fn from_bytes<T: for<'de> Deserialize<'de>>(
    bytes: &[u8],
    path: &Path,
    format: &str,
) -> Result<T, StoreError> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
        schema_version: u32,
    }
    let damaged = |why: String| StoreError::Damaged { path: path.to_owned(), why };
    let head: Head = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if head.format != format {
        return Err(damaged(format!("it is a {:?}, not a {format:?}", head.format)));
    }
    if head.schema_version > SCHEMA_VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found: head.schema_version, known: SCHEMA_VERSION });
    }
    serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))
}

fn open_lock_file(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Writes into the lock file who has the lock: for messages, and so that a hung holder can be ended.
fn leave_card(file: &mut File) {
    let text = format!("{}\n", ProcessIdentity::own());
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
}

/// Who has the lock, for a message.
fn named(file: &mut File) -> String {
    card(file).map_or_else(String::new, |holder| format!(" (process {})", holder.pid))
}

fn card(file: &mut File) -> Option<ProcessIdentity> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    text.parse().ok()
}
