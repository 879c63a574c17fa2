//! The real machine, with one fault at one step.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use wt_bpf::ConnectionRule;
use wt_host::{
    Action, Details, Devices, FileStep, Identity, Now, ObservedConnection, ObservedPlace, Ownership, RealSystem, System,
};
use wt_sys::route::Route;
use wt_sys::{SysError, SysResult};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing; the steps are counted.
    None,
    /// The process is killed before the step.
    KillBefore,
    /// The process is killed after the step.
    KillAfter,
    /// The disk is full from this step on.
    DiskFull,
    /// The step isn't permitted.
    Denied,
    /// The kernel doesn't take the value.
    Invalid,
    /// The kernel says that it took the value, and keeps the old one, the first few times that it is asked.
    Clamped,
    /// The process hangs.
    Stop,
}

impl Kind {
    pub(crate) const FAULTS: [Self; 6] =
        [Self::KillBefore, Self::KillAfter, Self::DiskFull, Self::Denied, Self::Invalid, Self::Clamped];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::KillBefore => "kill-before",
            Self::KillAfter => "kill-after",
            Self::DiskFull => "disk-full",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::Clamped => "clamped",
            Self::Stop => "stop",
        }
    }

    pub(crate) fn is_kill(self) -> bool {
        matches!(self, Self::KillBefore | Self::KillAfter)
    }
}

/// One fault: at which step, and what. In text, `17:denied`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

impl Fault {
    pub(crate) const NONE: Self = Self { at: 0, kind: Kind::None };

    pub(crate) fn parse(text: &str) -> Self {
        let (at, kind) = text.split_once(':').unwrap();
        let kinds = Kind::FAULTS.into_iter().chain([Kind::None, Kind::Stop]);
        Self { at: at.parse().unwrap(), kind: kinds.into_iter().find(|known| known.name() == kind).unwrap() }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.at, self.kind.name())
    }
}

/// What kind of thing a step does, so that only faults that it can have are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Read,
    File,
    Kernel,
}

impl Step {
    /// The faults that can happen at such a step.
    pub(crate) fn faults(self) -> Vec<Kind> {
        match self {
            Self::Read => vec![Kind::KillBefore, Kind::Denied],
            Self::File => vec![Kind::KillBefore, Kind::KillAfter, Kind::DiskFull, Kind::Denied],
            Self::Kernel => {
                vec![Kind::KillBefore, Kind::KillAfter, Kind::Denied, Kind::Invalid, Kind::Clamped]
            }
        }
    }

    pub(crate) fn letter(self) -> char {
        match self {
            Self::Read => 'r',
            Self::File => 'f',
            Self::Kernel => 'k',
        }
    }

    pub(crate) fn of_letter(letter: char) -> Self {
        [Self::Read, Self::File, Self::Kernel].into_iter().find(|step| step.letter() == letter).unwrap()
    }
}

/// The machine with a fault.
pub(crate) struct FaultySystem {
    real: RealSystem,
    fault: Fault,
    /// The steps so far.
    pub(crate) steps: Vec<Step>,
    clamped: Option<Action>,
    clamps_left: usize,
    /// Kernel settings that can't be written at all as long as this file exists: a name each line.
    stuck: Option<PathBuf>,
    /// Wall-clock seconds by which the clock jumps at each look.
    jump: i64,
    looks: i64,
    in_sysctls: bool,
}

impl FaultySystem {
    pub(crate) fn new(real: RealSystem, fault: Fault, stuck: Option<PathBuf>, jump: i64) -> Self {
        Self { real, fault, steps: Vec::new(), clamped: None, clamps_left: 2, stuck, jump, looks: 0, in_sysctls: false }
    }

    fn error(kind: Kind) -> SysError {
        const ENOSPC: i32 = 28;
        const EACCES: i32 = 13;
        const EINVAL: i32 = 22;
        let errno = match kind {
            Kind::DiskFull => ENOSPC,
            Kind::Denied => EACCES,
            _ => EINVAL,
        };
        SysError { doing: "injected fault".to_owned(), source: std::io::Error::from_raw_os_error(errno) }
    }

    fn die() -> ! {
        let _ = wt_sys::process::signal(std::process::id(), 9);
        unreachable!("SIGKILL doesn't return")
    }

    /// Counts a step and says whether something goes wrong with it.
    fn step(&mut self, step: Step) -> Option<Kind> {
        self.in_sysctls = false;
        self.steps.push(step);
        let at = self.steps.len();
        if self.fault.kind == Kind::DiskFull && at > self.fault.at && self.fault.at > 0 && step == Step::File {
            return Some(Kind::DiskFull);
        }
        if at != self.fault.at {
            return None;
        }
        if self.fault.kind == Kind::KillBefore {
            Self::die();
        }
        if self.fault.kind == Kind::Stop {
            const SIGSTOP: i32 = 19;
            let _ = wt_sys::process::signal(std::process::id(), SIGSTOP);
            return None;
        }
        Some(self.fault.kind)
    }

    fn read(&mut self) -> SysResult<()> {
        match self.step(Step::Read) {
            None | Some(Kind::KillAfter | Kind::None) => Ok(()),
            Some(kind) => Err(Self::error(kind)),
        }
    }
}

impl System for FaultySystem {
    fn sysctl(&mut self, name: &str) -> SysResult<Option<String>> {
        // Dozens of settings are read in one go; they count as one step.
        if !self.in_sysctls {
            self.read()?;
            self.in_sysctls = true;
        }
        self.real.sysctl(name)
    }

    fn devices(&mut self) -> SysResult<Devices> {
        self.read()?;
        self.real.devices()
    }

    fn details(&mut self, device: &str) -> Details {
        self.real.details(device)
    }

    fn routes(&mut self) -> SysResult<Vec<Route>> {
        self.read()?;
        self.real.routes()
    }

    fn rules(&mut self) -> Vec<String> {
        self.real.rules()
    }

    fn route_to(&mut self, target: IpAddr) -> SysResult<Route> {
        self.read()?;
        self.real.route_to(target)
    }

    fn connections(&mut self) -> Vec<ConnectionRule> {
        self.real.connections()
    }

    fn connections_here(&mut self) -> Result<u64, String> {
        self.real.connections_here()
    }

    fn observe(&mut self, place: &ObservedPlace) -> SysResult<ObservedConnection> {
        self.real.observe(place)
    }

    fn act(&mut self, action: &Action) -> SysResult<()> {
        let fault = self.step(Step::Kernel);
        if let (Action::Sysctl { name, .. }, Some(file)) = (action, &self.stuck) {
            let stuck = std::fs::read_to_string(file).unwrap_or_default();
            if stuck.lines().any(|line| line == name) {
                return Err(Self::error(Kind::Invalid));
            }
        }
        if self.clamped.as_ref() == Some(action) && self.clamps_left > 0 {
            self.clamps_left -= 1;
            return Ok(());
        }
        match fault {
            Some(Kind::Clamped) => {
                self.clamped = Some(action.clone());
                Ok(())
            }
            Some(Kind::KillAfter) => {
                self.real.act(action)?;
                Self::die()
            }
            None | Some(Kind::None) => self.real.act(action),
            Some(kind) => Err(Self::error(kind)),
        }
    }

    fn read_file(&mut self, path: &Path) -> SysResult<Option<Vec<u8>>> {
        self.read()?;
        self.real.read_file(path)
    }

    fn list(&mut self, directory: &Path) -> SysResult<Vec<String>> {
        self.read()?;
        self.real.list(directory)
    }

    fn ownership(&mut self, path: &Path) -> SysResult<Option<Ownership>> {
        self.read()?;
        self.real.ownership(path)
    }

    fn file(&mut self, step: &FileStep) -> SysResult<()> {
        match self.step(Step::File) {
            // Half of it is on the disk when the power, or the process, goes.
            Some(Kind::DiskFull) => {
                // Removing and renaming need no room.
                if matches!(step, FileStep::Remove { .. } | FileStep::Rename { .. }) {
                    return self.real.file(step);
                }
                if let FileStep::Create { path, mode, bytes } = step {
                    let half =
                        FileStep::Create { path: path.clone(), mode: *mode, bytes: bytes[..bytes.len() / 2].to_vec() };
                    let _ = self.real.file(&half);
                }
                Err(Self::error(Kind::DiskFull))
            }
            Some(Kind::KillAfter) => {
                self.real.file(step)?;
                Self::die()
            }
            None | Some(Kind::None) => self.real.file(step),
            Some(kind) => Err(Self::error(kind)),
        }
    }

    fn now(&mut self) -> Now {
        self.looks += 1;
        let now = self.real.now();
        // To and fro: ten years ahead, ten years back.
        let jump = if self.looks % 2 == 0 { self.jump } else { -self.jump };
        Now { unix_s: now.unix_s.saturating_add_signed(jump), ..now }
    }

    fn identity(&mut self) -> Identity {
        self.real.identity()
    }
}

/// How many of each fault were tried.
#[derive(Debug, Default)]
pub(crate) struct Tally(pub(crate) BTreeMap<&'static str, usize>);

impl Tally {
    pub(crate) fn add(&mut self, kind: Kind) {
        *self.0.entry(kind.name()).or_default() += 1;
    }

    pub(crate) fn total(&self) -> usize {
        self.0.values().sum()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        write!(f, "{} points ({})", self.total(), parts.join(", "))
    }
}
