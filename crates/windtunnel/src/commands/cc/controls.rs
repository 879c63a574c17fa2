use super::available;
use crate::edge::Failure;
use std::rc::Rc;
use wt_bpf::{LoadError, Loaded};
use wt_cc::{Choice, algorithm};
use wt_lab::LabTunnel;
use wt_trial::LoadedControl;

/// A loaded congestion control, as the lab sees it.
#[derive(Debug)]
struct InKernel(Loaded);

impl LoadedControl for InKernel {
    fn kernel_name(&self) -> &str {
        self.0.name()
    }

    fn seed(&self, seed: u64) {
        self.0.seed(seed);
    }

    fn guard_hits(&self) -> u64 {
        self.0.counted().guard_hits
    }
}

/// Those of ours that a command compares, loaded until it ends.
///
/// Loading needs rights that the lab's own user namespace doesn't have, so it comes first.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    loaded: Vec<(String, Rc<InKernel>)>,
}

/// Ours, if the name means one of ours: with a variant, or where the kernel has none of this name.
pub(crate) fn ours(name: &str) -> Option<Result<Choice, Failure>> {
    let base = name.split('@').next().unwrap_or(name);
    if algorithm(base).is_none() && !name.contains('@') {
        return None;
    }
    if !name.contains('@') && available().iter().any(|known| known == name) {
        return None;
    }
    let parsed = name.parse::<Choice>();
    Some(parsed.map_err(|error| Failure::usage(error.to_string()).hint("windtunnel cc list shows them")))
}

impl Controls {
    /// Loads those among the names that are ours and aren't loaded yet.
    ///
    /// # Errors
    /// A failure that says what is missing.
    pub(crate) fn load<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let mut controls = Self::default();
        for name in names {
            let Some(choice) = ours(name).transpose()? else { continue };
            if controls.loaded.iter().any(|(known, _)| known == name) {
                continue;
            }
            let loaded = Loaded::load_privately(&choice).map_err(|error| failure(&error, &choice))?;
            controls.loaded.push((name.to_owned(), Rc::new(InKernel(loaded))));
        }
        Ok(controls)
    }

    /// Those that were loaded, by the names that were asked for.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = (String, Rc<dyn LoadedControl>)> {
        self.loaded.iter().map(|(name, control)| {
            let control: Rc<dyn LoadedControl> = Rc::<InKernel>::clone(control);
            (name.clone(), control)
        })
    }

    /// What the kernel calls it: a loaded one's own name, and a name of the kernel's as it is.
    ///
    /// # Errors
    /// A usage failure when there is none of this name.
    pub(crate) fn kernel_name(&self, name: &str) -> Result<String, Failure> {
        if let Some((_, control)) = self.loaded.iter().find(|(known, _)| known == name) {
            return Ok(control.kernel_name().to_owned());
        }
        let known = available();
        if known.iter().any(|one| one == name) {
            return Ok(name.to_owned());
        }
        Err(Failure::usage(format!("there is no congestion control {name}: this kernel has {}", known.join(", ")))
            .hint("windtunnel cc list shows ours, too; modprobe may bring more"))
    }

    /// How often the kernel skipped one of their programs.
    pub(crate) fn guard_hits(&self) -> u64 {
        self.loaded.iter().map(|(_, control)| control.guard_hits()).sum()
    }

    /// Tells the lab which names stand for them.
    pub(crate) fn attach(&self, tunnel: &mut LabTunnel) {
        self.loaded().for_each(|(name, control)| tunnel.add_control(name, control));
    }
}

/// What to say when one can't be loaded.
pub(crate) fn failure(error: &LoadError, choice: &Choice) -> Failure {
    let failure = Failure::environment(format!("{choice} can't be loaded: {error}"));
    match error {
        LoadError::NotBuilt => failure.hint("install clang (Debian: apt-get install clang) and build windtunnel again"),
        LoadError::NoBtf => failure.hint("a kernel built with CONFIG_DEBUG_INFO_BTF; the usual distributions' are"),
        LoadError::Capabilities { .. } => failure
            .because("BPF programs can't be loaded from a user namespace, nor by ordinary users")
            .hint("run it as root, or: setcap cap_bpf,cap_perfmon+ep $(command -v windtunnel)"),
        LoadError::NameTaken { name } => failure
            .because("another program holds it loaded, or it was loaded with --pin")
            .hint(format!("windtunnel cc unload {name}, or let the other program end")),
        LoadError::Rejected { log, .. } => {
            let tail: Vec<&str> = log.lines().rev().take(12).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            failure.because(format!("the verifier wrote, at its end:\n    {}", tail.join("\n    "))).hint(
                "this is our fault or a kernel that we don't know yet: please report it with the kernel's version",
            )
        }
        LoadError::Misfit { .. } => {
            failure.hint("this kernel is older or younger than those we know: please report it")
        }
        LoadError::System(_) => failure.hint("windtunnel doctor tells what this machine allows"),
    }
}
