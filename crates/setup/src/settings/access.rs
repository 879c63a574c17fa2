use std::ffi::OsString;
use std::path::{Path, PathBuf};
use wt_host::{GuardCommand, RealSystem, Store};
use wt_problem::Problem;

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
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
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
        return Ok(PathBuf::from(SYSTEM).join("windtunnel"));
    }
    let state = wt_units::UserFolder::State.path(|name| std::env::var_os(name));
    state.map(|state| state.join("windtunnel")).ok_or_else(|| {
        Problem::environment("there is no place for checkpoints: neither XDG_STATE_HOME nor HOME is an absolute path")
            .hint("name a directory with --state-dir")
    })
}
