/// At every boot.
pub mod boot;
/// What there is, and what each does.
mod list;
/// Into the kernel and out of it.
mod load;

pub use list::{
    ControlParameter, ControlShown, ControlVariant, ControlsList, KernelControl, OwnControl, list, show, variants,
};
pub use load::{HeldControl, LoadAnswer, LoadRequest, UnloadAnswer, UnloadRequest, hold, load, unload};

use std::rc::Rc;
use wt_bpf::{LoadError, RegisteredControl};
use wt_cc::{Choice, algorithm};
use wt_lab::LabTunnel;
use wt_problem::Problem;
use wt_trial::LoadedControl;

/// A loaded congestion control, as the lab sees it.
#[derive(Debug)]
struct InKernel(RegisteredControl);

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
pub struct Controls {
    loaded: Vec<(String, Rc<InKernel>)>,
}

/// Ours, if the name means one of ours: with a variant, or where the kernel has none of this name.
pub fn ours(name: &str) -> Option<Result<Choice, Problem>> {
    let base = name.split('@').next().unwrap_or(name);
    if algorithm(base).is_none() && !name.contains('@') {
        return None;
    }
    if !name.contains('@') && available().iter().any(|known| known == name) {
        return None;
    }
    let parsed = name.parse::<Choice>();
    Some(parsed.map_err(|error| Problem::usage(error.to_string()).hint("windtunnel cc list shows them")))
}

/// One of ours by its name, with its variant or parameters.
///
/// # Errors
/// A usage [`Problem`] that says what there is.
pub fn choice(name: &str) -> Result<Choice, Problem> {
    name.parse()
        .map_err(|error: wt_cc::ChoiceError| Problem::usage(error.to_string()).hint("windtunnel cc list shows them"))
}

impl Controls {
    /// Loads those among the names that are ours and aren't loaded yet.
    ///
    /// # Errors
    /// A [`Problem`] that says what is missing.
    pub fn load<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, Problem> {
        let mut controls = Self::default();
        for name in names {
            let Some(choice) = ours(name).transpose()? else { continue };
            if controls.loaded.iter().any(|(known, _)| known == name) {
                continue;
            }
            let loaded = RegisteredControl::load_privately(&choice).map_err(|error| problem(&error, &choice))?;
            controls.loaded.push((name.to_owned(), Rc::new(InKernel(loaded))));
        }
        Ok(controls)
    }

    /// Those that were loaded, by the names that were asked for.
    pub fn loaded(&self) -> impl Iterator<Item = (String, Rc<dyn LoadedControl>)> {
        self.loaded.iter().map(|(name, control)| {
            let control: Rc<dyn LoadedControl> = Rc::<InKernel>::clone(control);
            (name.clone(), control)
        })
    }

    /// What the kernel calls it: a loaded one's own name, and a name of the kernel's as it is.
    ///
    /// # Errors
    /// A usage problem when there is none of this name.
    pub fn kernel_name(&self, name: &str) -> Result<String, Problem> {
        if let Some((_, control)) = self.loaded.iter().find(|(known, _)| known == name) {
            return Ok(control.kernel_name().to_owned());
        }
        let known = available();
        if known.iter().any(|one| one == name) {
            return Ok(name.to_owned());
        }
        Err(Problem::usage(format!("there is no congestion control {name}: this kernel has {}", known.join(", ")))
            .hint("windtunnel cc list shows ours, too; modprobe may bring more"))
    }

    /// How often the kernel skipped one of their programs.
    pub fn guard_hits(&self) -> u64 {
        self.loaded.iter().map(|(_, control)| control.guard_hits()).sum()
    }

    /// Tells the lab which names stand for them.
    pub fn attach(&self, tunnel: &mut LabTunnel) {
        self.loaded().for_each(|(name, control)| tunnel.add_control(name, control));
    }
}

/// What to say when one can't be loaded.
pub fn problem(error: &LoadError, choice: &Choice) -> Problem {
    let problem = Problem::environment(format!("{choice} can't be loaded: {error}"));
    match error {
        LoadError::NotBuilt => problem.hint("install clang (Debian: apt-get install clang) and build windtunnel again"),
        LoadError::NoBtf => problem.hint("a kernel built with CONFIG_DEBUG_INFO_BTF; the usual distributions' are"),
        LoadError::Capabilities { .. } => problem
            .because("BPF programs can't be loaded from a user namespace, nor by ordinary users")
            .hint("run it as root, or: setcap cap_bpf,cap_perfmon+ep $(command -v windtunnel)"),
        LoadError::NameTaken { name } => problem
            .because("another program holds it loaded, or it was loaded with --pin")
            .hint(format!("windtunnel cc unload {name}, or let the other program end")),
        LoadError::Rejected { log, .. } => {
            let tail: Vec<&str> = log.lines().rev().take(12).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            problem.because(format!("the verifier wrote, at its end:\n    {}", tail.join("\n    "))).hint(
                "this is our fault or a kernel that we don't know yet: please report it with the kernel's version",
            )
        }
        LoadError::Misfit { .. } => {
            problem.hint("this kernel is older or younger than those we know: please report it")
        }
        LoadError::System(_) | LoadError::Room { .. } => {
            problem.hint("windtunnel doctor tells what this machine allows")
        }
    }
}

/// The congestion controls that the kernel has now.
pub fn available() -> Vec<String> {
    let text = wt_sys::ns::read_net_sysctl("ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
