use crate::adapter::{BUILT_IN, check, describe};
use crate::profile::{PROFILES, Profile};
use crate::protocol::Description;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wt_units::Bytes;

/// The kernel's own sockets in the lab's client: no adapter at all, to measure what adapters cost.
pub const DIRECT: &str = "linux-direct";
/// Programs of stacks that aren't built in begin so.
const PROGRAM: &str = "windtunnel-stack-";
/// Where such programs are looked for first.
const FOLDER: &str = "WINDTUNNEL_STACKS";

/// A stack that there is, or could be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// The word in flags.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// How its adapter comes to be, if it isn't built in.
    build: Option<&'static str>,
}

/// What can be had of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// No adapter is needed.
    Direct,
    /// It is in this program.
    In(Description),
    /// It is a program of its own.
    Program(PathBuf),
    /// There is no adapter: what to install and to run.
    No(&'static str),
}

/// What the others need.
const OWN_LWIP: &str =
    "install the package windtunnel-stacks; or in the source tree apt-get install gcc liblwip-dev; then make stacks";
const OWN_GVISOR: &str = "install Go 1.23 or later; then make stacks";
const OWN_SLIRP: &str =
    "install the package windtunnel-stacks; or in the source tree apt-get install gcc libslirp-dev; then make stacks";
const OWN_QUIC: &str = "install the package windtunnel-stacks; or in the source tree install cargo, as for the program itself; then make stacks";
const OWN_UML: &str = "apt-get install user-mode-linux";

/// Congestion controls of stacks whose programs name none.
const CONTROLS: [(&str, &[&str]); 2] = [("gvisor", &["reno", "cubic"]), ("quic", &["cubic", "reno", "bbr"])];

/// All stacks, in the order in which they are listed.
pub const STACKS: [Stack; 8] = [
    Stack {
        name: DIRECT,
        title: "the kernel's own sockets, without an adapter: the yardstick of adapters",
        build: None,
    },
    Stack { name: "linux", title: "the kernel of this machine, behind an adapter like all others", build: None },
    Stack { name: "smoltcp", title: "smoltcp (Rust), for machines without an operating system", build: None },
    Stack { name: "lwip", title: "lwIP (C), of many embedded systems", build: Some(OWN_LWIP) },
    Stack { name: "gvisor", title: "gVisor's netstack (Go), of sandboxes and VPN clients", build: Some(OWN_GVISOR) },
    Stack {
        name: "slirp",
        title: "libslirp (C), 4.4BSD's TCP as virtual machines and rootless containers have it",
        build: Some(OWN_SLIRP),
    },
    Stack { name: "quic", title: "QUIC by quinn (Rust), instead of TCP", build: Some(OWN_QUIC) },
    Stack { name: "uml", title: "an older Linux as a process (Debian's user-mode-linux)", build: Some(OWN_UML) },
];

impl Stack {
    /// The stack of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        STACKS.iter().find(|stack| stack.name == name)
    }

    /// What its adapter says of itself, where there is one and it does.
    #[must_use]
    pub fn described(&self) -> Option<Description> {
        match self.built() {
            Availability::In(description) => Some(description),
            Availability::Program(program) => crate::talk::describe(&program),
            Availability::Direct | Availability::No(_) => None,
        }
    }

    /// Where its adapter is.
    #[must_use]
    pub fn built(&self) -> Availability {
        if self.name == DIRECT {
            return Availability::Direct;
        }
        match (describe(self.name), self.build) {
            (Some(description), _) => Availability::In(description),
            (None, Some(how)) => program(self.name).map_or(Availability::No(how), Availability::Program),
            (None, None) => Availability::No("it is part of this program"),
        }
    }
}

/// The adapter's program, if it is anywhere that we look.
fn program(name: &str) -> Option<PathBuf> {
    let file = format!("{PROGRAM}{name}");
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    // Where `make stacks` puts it: beside the folder of the build; where packages do: libexec.
    let places = [
        named,
        beside.map(|folder| folder.join("../stacks")),
        beside.map(|folder| folder.join("../libexec/windtunnel")),
        beside.map(Path::to_path_buf),
    ];
    places.into_iter().flatten().map(|place| place.join(&file)).find(|file| file.is_file())
}

/// A stack with its settings, as it is written: `smoltcp`, `linux:cc=reno`, `smoltcp:rwin=8KiB:late-acks=60s`, `windows-95`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As it was written.
    pub label: String,
    /// The stack.
    pub stack: &'static Stack,
    /// The old stack that it stands in for, if it does.
    pub profile: Option<&'static Profile>,
    /// The receive window, bytes, if not the stack's own.
    pub window: Option<u32>,
    /// Whether what was written names the window.
    pub names_window: bool,
    /// The MSS to announce, bytes.
    pub mss: Option<u32>,
    /// The MTU of the stack's device, bytes, if not that of the path's first link.
    pub mtu: Option<u32>,
    /// What else the adapter is told.
    pub options: BTreeMap<String, String>,
}

impl Choice {
    /// Whether the other is the same stack with the same settings, whatever both are called.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        let own = |choice: &Self| (choice.stack.name, choice.window, choice.mss, choice.mtu, choice.options.clone());
        own(self) == own(other)
    }
}

/// Why a choice is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// No such stack.
    #[error("there is no stack \"{0}\"; there are {1}")]
    Unknown(String, String),
    /// A setting that can't be read.
    #[error("\"{0}\": {1}")]
    Setting(String, String),
}

/// Names of everything that can be chosen.
#[must_use]
pub fn names() -> Vec<&'static str> {
    STACKS.iter().map(|stack| stack.name).chain(PROFILES.iter().map(|profile| profile.name)).collect()
}

impl std::str::FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let profile = PROFILES.iter().find(|profile| profile.name == name);
        let stack = Stack::of(profile.map_or(name, |profile| profile.stands_on));
        let stack = stack.ok_or_else(|| ChoiceError::Unknown(name.to_owned(), names().join(", ")))?;
        let mut choice = Self {
            label: text.trim().to_owned(),
            stack,
            profile,
            window: profile.and_then(|profile| profile.window.number()),
            names_window: false,
            mss: profile.and_then(|profile| profile.mss.number()),
            mtu: None,
            options: BTreeMap::new(),
        };
        for part in parts {
            let wrong = |why: &str| ChoiceError::Setting(part.to_owned(), why.to_owned());
            let (key, value) = part.split_once('=').ok_or_else(|| wrong("write NAME=VALUE"))?;
            choice.set(key.trim(), value.trim()).map_err(|why| wrong(&why))?;
        }
        Ok(choice)
    }
}

impl Choice {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let bytes = |least: u64, most: u64| -> Result<Option<u32>, String> {
            let bytes: Bytes = value.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
            let sensible = (least..=most).contains(&bytes.get());
            let number = u32::try_from(bytes.get()).ok().filter(|_| sensible);
            number.map(Some).ok_or_else(|| format!("allowed is {least} to {most} bytes"))
        };
        match key {
            "rwin" => (self.window, self.names_window) = (bytes(256, 1 << 30)?, true),
            "mss" => self.mss = bytes(64, 65_495)?,
            "mtu" => self.mtu = bytes(576, 65_535)?,
            _ => {
                if let Some((_, known)) = BUILT_IN.iter().find(|(name, _)| *name == self.stack.name)
                    && !known.contains(&key)
                {
                    return Err(format!("{} has rwin, mss, mtu, {}", self.stack.name, known.join(", ")));
                }
                if self.stack.name == DIRECT && key != "cc" {
                    return Err(format!("{DIRECT} has rwin, mss, cc"));
                }
                self.options.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    /// Whether its adapter takes the options that were named, as far as that can be known before it is started.
    ///
    /// # Errors
    /// [`ChoiceError::Setting`] with what there is instead.
    pub fn check(&self) -> Result<(), ChoiceError> {
        let wrong = |why: String| ChoiceError::Setting(self.label.clone(), why);
        check(self.stack.name, &self.options).map_err(wrong)?;
        let controls = CONTROLS.iter().find(|(name, _)| *name == self.stack.name).map(|(_, controls)| *controls);
        if let (Some(controls), Some(name)) = (controls, self.options.get("cc"))
            && !controls.contains(&name.as_str())
        {
            return Err(wrong(format!("it has no congestion control {name}; it has {}", controls.join(", "))));
        }
        let Availability::Program(program) = self.stack.built() else { return Ok(()) };
        let known = crate::talk::describe(&program).map(|told| told.options);
        let other = known.as_ref().and_then(|known| self.options.keys().find(|key| !known.contains(key)));
        match (other, known.as_deref()) {
            (Some(other), Some([])) => Err(wrong(format!("it has rwin, mss, mtu, and no {other}"))),
            (Some(other), Some(known)) => {
                Err(wrong(format!("it has rwin, mss, mtu, {}, and no {other}", known.join(", "))))
            }
            _ => Ok(()),
        }
    }

    /// The same with another window.
    #[must_use]
    pub fn with_window(&self, window: u32) -> Self {
        Self { window: Some(window), ..self.clone() }
    }

    /// Its name, and its window if that was set.
    #[must_use]
    pub fn title(&self) -> String {
        match self.window {
            Some(window) if !self.names_window => format!("{} (rwin {window})", self.label),
            _ => self.label.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_names_with_settings() {
        let choice: Choice = "smoltcp:rwin=8KiB:mss=536:cc=reno".parse().unwrap();
        assert_eq!((choice.stack.name, choice.window, choice.mss), ("smoltcp", Some(8192), Some(536)));
        assert_eq!(choice.options["cc"], "reno");
        let old: Choice = "windows-95".parse().unwrap();
        assert_eq!((old.window, old.profile.unwrap().name), (Some(8192), "windows-95"));
        let raised: Choice = "windows-95:rwin=20KiB".parse().unwrap();
        assert_eq!((raised.window, raised.title().as_str()), (Some(20_480), "windows-95:rwin=20KiB"));
        let of = |text: &str| text.parse::<Choice>().unwrap();
        assert!(old.is_alike(&of("supertcp")) && old.is_alike(&of("smoltcp:rwin=8KiB")));
        assert!(!old.is_alike(&raised) && !old.is_alike(&of("smoltcp")) && !old.is_alike(&of("linux:rwin=8KiB")));
        assert_eq!(old.with_window(4096).title(), "windows-95 (rwin 4096)");
    }

    #[test]
    fn mistakes_name_what_there_is() {
        for (text, part) in [
            ("smolctp", "smoltcp"),
            ("smoltcp:colour=red", "ack-delay"),
            ("smoltcp:rwin", "NAME=VALUE"),
            ("smoltcp:rwin=1", "256"),
            ("linux-direct:late-acks=60s", "rwin"),
            ("", "linux"),
        ] {
            let error = text.parse::<Choice>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_an_adapter_has_not_is_refused_before_it_is_started() {
        for (text, part) in [
            ("smoltcp:cc=vegas", "cubic"),
            ("smoltcp:nagle=maybe", "on or off"),
            ("linux:late-acks=soon", "late-acks"),
            ("gvisor:cc=vegas", "reno, cubic"),
            ("quic:cc=vegas", "bbr"),
        ] {
            let error = text.parse::<Choice>().unwrap().check().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in ["smoltcp:cc=reno:hang-at=1kB", "linux", "linux-direct:cc=reno", "quic:cc=bbr", "gvisor:cc=reno"] {
            assert_eq!(text.parse::<Choice>().unwrap().check(), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_not_built_says_what_to_install() {
        for stack in &STACKS {
            if let Availability::No(how) = stack.built() {
                assert!(how.contains("install"), "{}", stack.name);
            }
        }
        assert!(matches!(Stack::of("smoltcp").unwrap().built(), Availability::In(_)));
    }
}
