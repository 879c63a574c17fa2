//! Files that make a change stay after a reboot: one drop-in for kernel settings, and one for whoever configures the
//! device.

/// Settings of connections with a target, from the boot on.
mod held;

pub use held::hold_connections;

use crate::boot::ends_with_the_boot;
use crate::change::{Change, Checkpoint, CheckpointId, DROP_IN, FileChange, LastingFile, Place, Risk, ScopeName};
use crate::drop_in::merged;
use crate::export;
use crate::hex::{from_hex, to_hex};
use crate::lasting::{DeviceSettings, HEADER, lasting};
use crate::read::Survey;
use crate::read::chain::assignments;
use crate::snapshot::{CC, RouteIndex};
use crate::system::{FileStep, System, beside, write_beside};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wt_sys::{SysError, SysResult};

impl FileChange {
    /// Whether it is as the confirmation wanted it.
    pub(crate) fn is_in_place(&self, system: &mut dyn System) -> bool {
        system.read_file(&self.path).is_ok_and(|bytes| bytes.map(|bytes| to_hex(&bytes)) == self.new)
    }
}

/// What makes a change stay.
#[derive(Debug, Clone, Default)]
pub(crate) struct PersistencePlan {
    /// Files to write.
    pub(crate) files: Vec<FileChange>,
    /// What can't be made to stay, and why.
    pub(crate) notes: Vec<Risk>,
}

/// The files for a change. Nothing is written.
///
/// # Errors
/// When a file that would be replaced can't be read.
pub(crate) fn files(system: &mut dyn System, checkpoint: &Checkpoint, survey: &Survey) -> SysResult<PersistencePlan> {
    let mut persisted = PersistencePlan::default();
    if let Some(why) = does_not_stay(system, survey)? {
        persisted.notes.push(Risk::new("*", why));
        return Ok(persisted);
    }
    let mut sysctls: BTreeMap<&str, &str> =
        checkpoint.wanted.sysctls.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    if let Some(name) = sysctls.get(CC)
        && let Some(why) = ends_with_the_boot(system, name)?
    {
        sysctls.remove(CC);
        persisted.notes.push(Risk::new("cc", why));
    }
    held::files(system, checkpoint, &mut persisted)?;
    if !sysctls.is_empty() {
        let place = place_of(system, Path::new(DROP_IN))?.ok_or_else(|| no_place(Path::new(DROP_IN)))?;
        let old = system.read_file(Path::new(DROP_IN))?;
        let base = old.as_deref().unwrap_or(HEADER.as_bytes());
        let new = merged(base, &sysctls.iter().map(|(name, text)| (*name, Some(*text))).collect());
        let mode = system.ownership(&place)?.map_or(0o644, |found| found.mode);
        persisted.files.push(FileChange {
            path: DROP_IN.into(),
            old: old.map(|bytes| to_hex(&bytes)),
            new: Some(to_hex(&new)),
            mode,
        });
    }
    for change in checkpoint.changes.iter().filter(|change| change.is_idle(&checkpoint.wanted)) {
        let why = format!(
            "{} has no route of its own: the one that leads there has this already, and nothing is written for it",
            change.target
        );
        persisted.notes.push(Risk::new(&change.key, why));
    }
    for (device, changes) in by_device(checkpoint) {
        if let Some(why) = unloaded(system, &changes)? {
            persisted.notes.push(Risk::new("cc", format!("nothing is written for {device}: {why}")));
            continue;
        }
        manager_file(system, checkpoint, survey, &device, &changes, &mut persisted)?;
    }
    Ok(persisted)
}

/// Where a file is or is to be: at the end of links. `None` where there is something else, as of what is masked by a link to /dev/null
/// (sysctl.d(5)): it would be lost.
fn place_of(system: &mut dyn System, path: &Path) -> SysResult<Option<PathBuf>> {
    let place = system.followed(path);
    let is_free = system.ownership(&place)?.is_none_or(|found| found.is_file);
    Ok(is_free.then_some(place))
}

fn no_place(path: &Path) -> SysError {
    let source = std::io::Error::other("something that isn't an ordinary file is there");
    SysError { doing: format!("write {}", path.display()), source }
}

/// Whether the drop-in for these kernel settings could be written: what can't be confirmed isn't begun.
///
/// # Errors
/// What the file system said.
pub(crate) fn has_place(system: &mut dyn System, survey: &Survey, sysctls: &BTreeSet<String>) -> SysResult<bool> {
    Ok(sysctls.is_empty()
        || does_not_stay(system, survey)?.is_some()
        || place_of(system, Path::new(DROP_IN))?.is_some())
}

/// Why nothing can stay: settings of a network namespace end with it, and /etc is the host's.
fn does_not_stay(system: &mut dyn System, survey: &Survey) -> SysResult<Option<String>> {
    if survey.identity.network_of_init == Some(true) {
        return Ok(None);
    }
    if !survey.identity.owns_etc {
        return Ok(Some(
            "this is a network namespace of its own, and /etc/sysctl.d is the host's: nothing was written that stays"
                .to_owned(),
        ));
    }
    let owner = match system.ownership(Path::new("/etc/sysctl.d"))? {
        Some(found) => Some(found.uid),
        None => system.ownership(Path::new("/etc"))?.map(|found| found.uid),
    };
    let foreign = owner.is_some_and(|owner| owner != survey.identity.uid);
    Ok(foreign.then(|| "this is a network namespace of its own, and /etc/sysctl.d belongs to somebody else: nothing was written that stays".to_owned()))
}

/// Why routes can't have their congestion control at boot: a route that names one which isn't loaded is refused as a whole.
fn unloaded(system: &mut dyn System, changes: &[&Change]) -> SysResult<Option<String>> {
    for change in changes.iter().filter(|change| change.key == "cc") {
        if let Some(why) = ends_with_the_boot(system, &change.new.to_string())? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Settings of devices and routes, by device.
fn by_device(checkpoint: &Checkpoint) -> BTreeMap<String, Vec<&Change>> {
    let names: BTreeMap<u32, &String> =
        checkpoint.before.devices.iter().map(|(name, state)| (state.index, name)).collect();
    let routes = RouteIndex::of(&checkpoint.wanted.routes);
    let mut devices: BTreeMap<String, Vec<&Change>> = BTreeMap::new();
    for change in checkpoint.changes.iter().filter(|change| change.scope != ScopeName::Host) {
        let device = match &change.place {
            Place::Link(name) => Some(name.clone()),
            Place::Route(key) => {
                let route = routes.get_hex(key);
                route
                    .and_then(|route| route.hops().first().map(|hop| hop.device))
                    .and_then(|index| names.get(&index))
                    .map(|name| (*name).clone())
            }
            Place::Host | Place::Connections(_) => None,
        };
        if let Some(device) = device {
            devices.entry(device).or_default().push(change);
        }
    }
    devices
}

/// What a change's files are called. They are read in the order of their names, and the last one wins: that of a later change sorts
/// behind all before it, also behind those that were called `windtunnel-9`.
fn file_name(id: CheckpointId) -> String {
    format!("windtunnel-change-{:06}", id.0)
}

fn manager_file(
    system: &mut dyn System,
    checkpoint: &Checkpoint,
    survey: &Survey,
    device: &str,
    changes: &[&Change],
    persisted: &mut PersistencePlan,
) -> SysResult<()> {
    let items = export::items(changes.iter().copied(), &checkpoint.wanted, survey);
    let (actions, before) = (&checkpoint.actions, &checkpoint.before);
    let Some(manager) = survey.managers.devices.get(device) else {
        let commands = export::commands_for(actions, before, survey, device);
        let (without_words, commands): (Vec<String>, Vec<String>) =
            commands.into_iter().partition(|command| command.starts_with('#'));
        let mut text = format!("nobody configures {device} that could be told: this ends with the next reboot");
        if !commands.is_empty() {
            text.push_str(&format!(". To make it stay, let your network's start run: {}", commands.join("; ")));
        }
        without_words.iter().for_each(|comment| text.push_str(&format!(" ({})", comment.trim_start_matches("# "))));
        persisted.notes.push(Risk::new(device, text));
        return Ok(());
    };
    let others: Vec<PathBuf> = persisted.files.iter().map(|file| file.path.clone()).collect();
    let taken = |path: &str| others.iter().any(|other| other == Path::new(path));
    let settings = DeviceSettings { device, manager, items: &items, actions, before, survey };
    for LastingFile { path, content, mode, skipped, .. } in lasting(&settings, &file_name(checkpoint.id), &taken) {
        let ends = |risk: Risk| Risk::new(&risk.key, format!("this ends with the next reboot: {}", risk.text));
        persisted.notes.extend(skipped.into_iter().map(ends));
        if !content.is_empty() {
            let path = PathBuf::from(path);
            let old = system.read_file(&path)?.map(|bytes| to_hex(&bytes));
            persisted.files.push(FileChange { path, old, new: Some(to_hex(content.as_bytes())), mode });
        }
    }
    Ok(())
}

/// A file that is written but not in its place yet: what follows needs no room on the disk.
struct StagedFile {
    path: PathBuf,
    /// The file that is to take its place; none takes it away.
    fresh: Option<PathBuf>,
}

/// Writes all files, or, if one can't be written, none.
///
/// # Errors
/// What the file system said about that one.
pub(crate) fn put_in_place(system: &mut dyn System, files: &[FileChange]) -> SysResult<()> {
    let missing: Vec<&FileChange> = files.iter().filter(|file| !file.is_in_place(system)).collect();
    let content = |file: &&FileChange| (file.path.clone(), file.mode, file.new.as_deref().and_then(from_hex));
    let done = exchange(system, missing.iter().map(content).collect()).and_then(|()| check(system, &missing));
    if done.is_err() {
        let _ = put_back(system, files);
    }
    done
}

/// Whether the files are on the disk and hold what they should.
fn check(system: &mut dyn System, files: &[&FileChange]) -> SysResult<()> {
    for file in files {
        system.file(&FileStep::Sync { path: file.path.parent().unwrap_or(&file.path).to_owned() })?;
        if !file.is_in_place(system) {
            let source = std::io::Error::other("it doesn't hold what was written");
            return Err(SysError { doing: format!("check {}", file.path.display()), source });
        }
    }
    Ok(())
}

/// Gives several files another content, or (`None`) takes them away. Whatever needs room on the disk is done first, so
/// that a full disk changes nothing.
fn exchange(system: &mut dyn System, files: Vec<(PathBuf, u32, Option<Vec<u8>>)>) -> SysResult<()> {
    let mut staged = Vec::new();
    for (path, mode, bytes) in files {
        let placed = place_of(system, &path).and_then(|place| {
            let path = place.ok_or_else(|| no_place(&path))?;
            Ok((stage(system, &path, mode, bytes.as_deref())?, path))
        });
        match placed {
            Ok((fresh, path)) => staged.push(StagedFile { path, fresh }),
            Err(error) => {
                for fresh in staged.into_iter().filter_map(|staged| staged.fresh) {
                    let _ = system.file(&FileStep::Remove { path: fresh });
                }
                return Err(error);
            }
        }
    }
    let mut result = Ok(());
    for StagedFile { path, fresh } in staged {
        let done = match fresh {
            Some(from) => system.file(&FileStep::Rename { from, to: path }),
            None => system.file(&FileStep::Remove { path }),
        };
        result = result.and(done);
    }
    result
}

fn stage(system: &mut dyn System, path: &Path, mode: u32, bytes: Option<&[u8]>) -> SysResult<Option<PathBuf>> {
    let Some(bytes) = bytes else { return Ok(None) };
    if let Some(directory) = path.parent() {
        system.file(&FileStep::MakeDirectory { path: directory.to_owned(), mode: 0o755, exclusive: false })?;
    }
    write_beside(system, path, mode, bytes).map(Some)
}

/// Takes files away again, or puts their old content back: all of them, or, if the disk is full, none. What others have
/// written into our drop-in since stays, and so does any other file that they have changed, which is in what is returned.
///
/// # Errors
/// What the file system said.
pub(crate) fn put_back(system: &mut dyn System, files: &[FileChange]) -> SysResult<Vec<String>> {
    let (mut wanted, mut notes) = (Vec::new(), Vec::new());
    for file in files {
        // Somebody may have been killed before it took its place.
        let Some(place) = place_of(system, &file.path)? else {
            let path = file.path.display();
            notes.push(format!("{path} isn't a file any more: what is there since stays"));
            continue;
        };
        let _ = system.file(&FileStep::Remove { path: beside(&place) });
        let now = system.read_file(&file.path)?.map(|bytes| to_hex(&bytes));
        if now == file.old {
            continue;
        }
        let is_ours = now == file.new || now.is_none();
        let content = match (is_ours, file.path == Path::new(DROP_IN)) {
            (true, _) => file.old.clone(),
            (false, true) => {
                let (content, theirs) = without_ours(now.as_deref(), file);
                let path = file.path.display();
                let note =
                    |name| format!("somebody changed {name} in {path} since: it stays there, and each boot sets it");
                notes.extend(theirs.into_iter().map(note));
                content
            }
            (false, false) => {
                let path = file.path.display();
                notes.push(format!(
                    "somebody changed {path} since: it stays, and what it says is done at the next boot"
                ));
                continue;
            }
        };
        wanted.push((file.path.clone(), file.mode, content.and_then(|hex| from_hex(&hex))));
    }
    let directories: Vec<PathBuf> = wanted.iter().filter_map(|(path, ..)| path.parent().map(Path::to_owned)).collect();
    exchange(system, wanted)?;
    // They are as they were. Should the disk lose that, the state file, which says so later, is lost too.
    for path in directories {
        let _ = system.file(&FileStep::Sync { path });
    }
    Ok(notes)
}

/// The drop-in with the lines of one change as they were before it, and all others as they are (`None` if none is left); and the names of
/// those of the change that have another value since, which stay.
fn without_ours(now: Option<&str>, file: &FileChange) -> (Option<String>, Vec<String>) {
    let Some(now) = now else { return (None, Vec::new()) };
    let now = from_hex(now).unwrap_or_default();
    let text = |hex: &str| String::from_utf8_lossy(&from_hex(hex).unwrap_or_default()).into_owned();
    let (old, new) =
        (file.old.as_deref().map(text).unwrap_or_default(), file.new.as_deref().map(text).unwrap_or_default());
    let lines = |text: &str| -> BTreeMap<String, String> {
        let value = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assignments(text, &file.path).into_iter().map(|line| (line.name, value(&line.value))).collect()
    };
    let (old, new, present) = (lines(&old), lines(&new), lines(&String::from_utf8_lossy(&now)));
    let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let (ours, others): (Vec<_>, Vec<_>) = changed.partition(|(name, value)| present.get(*name) == Some(value));
    let theirs = others.into_iter().map(|(name, _)| name).filter(|name| present.contains_key(*name)).cloned().collect();
    let set: BTreeMap<&str, Option<&str>> =
        ours.iter().map(|(name, _)| (name.as_str(), old.get(*name).map(String::as_str))).collect();
    let left = merged(&now, &set);
    let content = (!assignments(&String::from_utf8_lossy(&left), &file.path).is_empty()).then(|| to_hex(&left));
    (content, theirs)
}

/// Settings of a confirmed change that something else will win over at boot.
pub(crate) fn losers(checkpoint: &Checkpoint, survey: &Survey) -> Vec<String> {
    let text = |name: &String| {
        let line = survey.chain.after_ours(name)?;
        Some(format!("{}:{} is read after {DROP_IN} and sets {name} to {}", line.file.display(), line.line, line.value))
    };
    checkpoint.wanted.sysctls.keys().filter_map(text).collect()
}

#[cfg(test)]
mod tests;
