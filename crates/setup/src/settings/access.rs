use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use wt_host::{GuardCommand, RealSystem, Store};
use wt_problem::Problem;

/// Where root keeps changes.
const ROOTS: &str = "/var/lib/windtunnel";

/// What changes settings of this host: the machine, where checkpoints are kept, and what starts a guard.
#[derive(Debug)]
pub struct HostAccess {
    /// The machine.
    pub system: RealSystem,
    /// Where checkpoints are kept.
    pub store: Store,
    /// What starts a guard: this program.
    pub guard: GuardCommand,
}

impl HostAccess {
    /// Opens the machine; what isn't named is taken from `WINDTUNNEL_ROOT` and `WINDTUNNEL_STATE_DIR`, or is the usual place.
    ///
    /// # Errors
    /// A [`Problem`] when there is no place for checkpoints.
    pub fn open(state_dir: Option<&Path>, root: Option<&Path>) -> Result<Self, Problem> {
        let root = root.map(Path::to_owned).or_else(|| variable("WINDTUNNEL_ROOT"));
        let root = root.map(|root| absolute(&root)).transpose()?;
        let state = state_dir.map(Path::to_owned).or_else(|| variable("WINDTUNNEL_STATE_DIR"));
        let state = match state {
            Some(state) => absolute(&state)?,
            None => default_state(root.as_deref())?,
        };
        let mut guard: Vec<OsString> =
            vec!["settings".into(), "guard".into(), "--state-dir".into(), state.clone().into()];
        if let Some(root) = &root {
            guard.extend(["--root".into(), root.clone().into()]);
        }
        let guard = GuardCommand { program: "/proc/self/exe".into(), args: guard };
        let system = RealSystem::open(root).map_err(|error| Problem::environment(error.to_string()))?;
        Ok(Self { system, store: Store::at(state), guard })
    }

    /// That root's changes aren't known, where somebody else looks for changes where they keep their own.
    pub(crate) fn hidden(&self) -> Option<String> {
        // Whoever named a place asked for the changes that are kept there.
        let is_named = ["WINDTUNNEL_ROOT", "WINDTUNNEL_STATE_DIR"].iter().any(|name| variable(name).is_some());
        // And root of a user namespace, as in a lab, for those of a network of its own.
        let is_asked_for = is_named || wt_sys::process::effective_uid() == 0;
        let usual = default_state(None).ok().filter(|_| !is_asked_for)?;
        hidden(self.store.directory(), &usual, Path::new(ROOTS))
    }
}

fn hidden(looked_at: &Path, usual: &Path, roots: &Path) -> Option<String> {
    if looked_at != usual || looked_at == roots {
        return None;
    }
    // A folder that only root may enter doesn't say whether anything is in it.
    let checkpoints = roots.join("checkpoints");
    let is_there = !matches!(checkpoints.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    is_there.then(|| format!("only root reads {}: what root changed isn't known here", roots.display()))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    std::path::absolute(path).map_err(|error| Problem::usage(format!("{}: {error}", path.display())))
}

/// Root's place, unless root is only root of a user namespace, to whom /var/lib belongs as little as to anybody.
fn default_state(root: Option<&Path>) -> Result<PathBuf, Problem> {
    use std::os::unix::fs::MetadataExt as _;
    const SYSTEM: &str = "/var/lib";
    if let Some(root) = root {
        return Ok(root.join("var/lib/windtunnel"));
    }
    let owns_system = std::fs::metadata(SYSTEM).is_ok_and(|data| data.uid() == 0);
    if wt_sys::process::effective_uid() == 0 && owns_system {
        return Ok(PathBuf::from(ROOTS));
    }
    let state = wt_units::UserFolder::State.path(|name| std::env::var_os(name));
    state.map(|state| state.join("windtunnel")).ok_or_else(|| {
        Problem::environment("there is no place for checkpoints: neither XDG_STATE_HOME nor HOME is an absolute path")
            .hint("name a directory with --state-dir")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_changes_are_unknown_to_others_only_where_there_may_be_some() {
        let folder = tempfile::tempdir().unwrap();
        let (roots, own) = (folder.path().join("roots"), folder.path().join("own"));
        let hidden = |looked_at: &Path, usual: &Path| hidden(looked_at, usual, &roots);
        assert_eq!(hidden(&own, &own), None, "root changed nothing");
        std::fs::create_dir_all(roots.join("checkpoints")).unwrap();
        assert!(hidden(&own, &own).unwrap().contains(roots.to_str().unwrap()));
        assert_eq!(
            (hidden(&roots, &roots), hidden(folder.path(), &own)),
            (None, None),
            "root, and a place that was named"
        );
    }
}
