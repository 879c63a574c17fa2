//! One of ours, into the kernel and out of it.

use super::{available, boot, choice, problem};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use utoipa::ToSchema;
use wt_bpf::{Pins, RegisteredControl, mount_bpffs};
use wt_problem::Problem;
use wt_trial::Cancel;

/// What is loaded, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadRequest {
    /// Which of ours, with its variant or parameters: `chd@freebsd-hz100`, `chd@queue-min=20ms`.
    pub name: String,
    /// Keep it loaded when this ends.
    pub pin: bool,
    /// Keep it loaded, and load it at every boot.
    pub boot: bool,
}

/// What was loaded. Its JSON is the contract of `windtunnel cc load --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LoadAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// The algorithm.
    pub name: &'static str,
    /// The variant or the parameters.
    pub variant: String,
    /// The kernel's name for it.
    pub kernel_name: String,
    /// Whether it stays loaded when no program holds it.
    pub pinned: bool,
    /// Whether it goes even if the program that loaded it is killed.
    pub goes_with_process: bool,
    /// The unit that loads it at boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub unit: Option<PathBuf>,
    /// What else was done for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl LoadAnswer {
    /// What it is called where one of ours is named.
    #[must_use]
    pub fn called(&self) -> String {
        let name = format!("{}@{}", self.name, self.variant);
        choice(&name).map_or(name, |choice| choice.to_string())
    }
}

/// A congestion control in the kernel, for as long as this is held or, if pinned, until it is unloaded.
#[derive(Debug)]
pub struct HeldControl {
    /// What was loaded.
    pub answer: LoadAnswer,
    _loaded: Option<RegisteredControl>,
}

/// Loads one of ours. One that is pinned already is left as it is, if it is to be pinned.
///
/// # Errors
/// A [`Problem`] that says what is missing; then nothing is changed.
pub fn load(request: &LoadRequest) -> Result<HeldControl, Problem> {
    let choice = choice(&request.name)?;
    let (pins, pin, kernel_name) = (Pins::default(), request.pin || request.boot, choice.kernel_name());
    let mut notes = Vec::new();
    let is_there = pin && pins.names().contains(&kernel_name) && available().contains(&kernel_name);
    let loaded = if is_there {
        notes.push(format!("{kernel_name} was loaded already."));
        None
    } else {
        let mut loaded = RegisteredControl::load(&choice).map_err(|error| problem(&error, &choice))?;
        if pin {
            keep(&mut loaded, &pins, &mut notes)?;
        }
        Some(loaded)
    };
    let unit = request.boot.then(|| boot::enable(&choice)).transpose().inspect_err(|_| {
        if !is_there {
            let _ = pins.remove(&kernel_name);
        }
    })?;
    if unit.is_some() {
        notes.extend(boot::warning());
    }
    let answer = LoadAnswer {
        schema_version: 1,
        name: choice.algorithm.name,
        variant: choice.variant_text(),
        pinned: pin,
        goes_with_process: loaded.as_ref().is_none_or(RegisteredControl::goes_with_process),
        kernel_name,
        unit,
        notes,
    };
    Ok(HeldControl { answer, _loaded: loaded })
}

fn keep(loaded: &mut RegisteredControl, pins: &Pins, notes: &mut Vec<String>) -> Result<(), Problem> {
    let kept = mount_bpffs().and_then(|mounted| {
        if mounted {
            notes.push("The bpf file system is mounted at /sys/fs/bpf now.".to_owned());
        }
        loaded.pin(pins)
    });
    kept.map_err(|error| {
        Problem::environment(format!("{} is loaded but can't be kept: {error}", loaded.name()))
            .hint("as root: mount -t bpf bpf /sys/fs/bpf; or leave --pin away and let this program run")
    })
}

/// Loads one of ours and, unless it is pinned, holds it until somebody cancels.
///
/// # Errors
/// As [`load`].
pub fn hold(
    request: &LoadRequest,
    loaded: &mut dyn FnMut(&LoadAnswer),
    cancel: &Cancel,
) -> Result<LoadAnswer, Problem> {
    let held = load(request)?;
    loaded(&held.answer);
    while !held.answer.pinned && !cancel.is_cancelled() {
        // Waits for a signal, which ends it early, and looks at the flag now and then.
        let _ = wt_sys::poll::wait_readable(&[], Some(std::time::Duration::from_millis(200)));
    }
    Ok(held.answer)
}

/// What is unloaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnloadRequest {
    /// Which: as it was loaded, or the kernel's name for it; nothing means all that are pinned.
    pub name: Option<String>,
    /// Don't load it at boot any more, either.
    pub boot: bool,
}

/// What was unloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnloadAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// The kernel's names of what is no longer loaded.
    pub unloaded: Vec<String>,
    /// Units that were removed.
    #[schema(value_type = Vec<String>)]
    pub units: Vec<PathBuf>,
    /// What stays nevertheless, and why.
    pub notes: Vec<String>,
}

/// Takes ours out of the kernel.
///
/// # Errors
/// A [`Problem`] when one isn't loaded, or something else holds it.
pub fn unload(request: &UnloadRequest) -> Result<UnloadAnswer, Problem> {
    let pins = Pins::default();
    let names = match request.name.as_deref() {
        None => pins.names(),
        Some(name) if name.starts_with("wt_") && !name.contains('/') => vec![name.to_owned()],
        Some(name) => vec![choice(name)?.kernel_name()],
    };
    let mut answer = UnloadAnswer { schema_version: 1, unloaded: Vec::new(), units: Vec::new(), notes: Vec::new() };
    for name in names {
        let unit = if request.boot { boot::disable(&name)? } else { None };
        let had_unit = unit.is_some();
        if had_unit && boot::is_default_at_boot(&name) {
            answer.notes.push(format!(
                "{name} is still this host's default in {}: undo that change (windtunnel settings history), or the next boot \
                 has the kernel's own default.",
                wt_host::DROP_IN
            ));
        }
        answer.units.extend(unit);
        let removed = pins.remove(&name).map_err(|error| {
            Problem::environment(format!("{name} can't be unloaded: {error}")).hint("only root can")
        })?;
        if removed {
            let default = wt_sys::ns::read_net_sysctl("ipv4/tcp_congestion_control").unwrap_or_default();
            if default == name {
                answer.notes.push(format!(
                    "{name} is this network namespace's default, which keeps it until another one is: \
                     sysctl net.ipv4.tcp_congestion_control=cubic"
                ));
            }
            answer.unloaded.push(name);
        } else if available().contains(&name) {
            return Err(Problem::environment(format!("{name} isn't pinned, so it can't be unloaded from here"))
                .because("a program that runs holds it loaded")
                .hint("let that program end (Ctrl-C); bpftool struct_ops list shows it"));
        } else if !had_unit {
            return Err(Problem::usage(format!("{name} isn't loaded")).hint("windtunnel cc list shows what is"));
        }
    }
    Ok(answer)
}
