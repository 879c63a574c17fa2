/// This machine.
mod real;

pub use real::RealSystem;

use crate::route_text::{self, Names};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use wt_sys::SysResult;
use wt_sys::ethtool::{Driver, Feature, LinkMode, Rings};
use wt_sys::link::{Link, LinkAddress, Qdisc};
use wt_sys::route::Route;

/// The machine as this crate sees it: a kernel whose settings are read and written, files below a root, and clocks.
///
/// Everything that changes something goes through [`act`](Self::act) or [`file`](Self::file), one small step at a time,
/// so that a test can let any step fail, or end the process there.
pub trait System {
    /// A kernel setting as the kernel writes it; `None` where the kernel doesn't have it.
    ///
    /// # Errors
    /// What the kernel said.
    fn sysctl(&mut self, name: &str) -> SysResult<Option<String>>;

    /// Devices, addresses, qdiscs.
    ///
    /// # Errors
    /// What the kernel said.
    fn devices(&mut self) -> SysResult<Devices>;

    /// What the driver of a device says; what it doesn't know is left out.
    fn details(&mut self, device: &str) -> Details;

    /// All routes but those to the host itself.
    ///
    /// # Errors
    /// What the kernel said.
    fn routes(&mut self) -> SysResult<Vec<Route>>;

    /// The route that packets to the target follow.
    ///
    /// # Errors
    /// What the kernel said: no route.
    fn route_to(&mut self, target: IpAddr) -> SysResult<Route>;

    /// Changes one thing in the kernel.
    ///
    /// # Errors
    /// What the kernel said.
    fn act(&mut self, action: &Action) -> SysResult<()>;

    /// The content of a file; `None` if there is none. Paths are as on the machine; a root prefix is the system's matter.
    ///
    /// # Errors
    /// What the file system said.
    fn read_file(&mut self, path: &Path) -> SysResult<Option<Vec<u8>>>;

    /// The names in a directory, sorted; none if there is no directory.
    ///
    /// # Errors
    /// What the file system said.
    fn list(&mut self, directory: &Path) -> SysResult<Vec<String>>;

    /// Who may change a file; `None` if there is none. Doesn't follow links.
    ///
    /// # Errors
    /// What the file system said.
    fn ownership(&mut self, path: &Path) -> SysResult<Option<Ownership>>;

    /// Changes one thing in the file system.
    ///
    /// # Errors
    /// What the file system said.
    fn file(&mut self, step: &FileStep) -> SysResult<()>;

    /// What time it is.
    fn now(&mut self) -> Now;

    /// What tells this machine, boot and network namespace from others.
    fn identity(&mut self) -> Identity;
}

/// Devices, addresses, qdiscs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Devices {
    /// The devices.
    pub links: Vec<Link>,
    /// Their addresses.
    pub addresses: Vec<LinkAddress>,
    /// Their queueing disciplines.
    pub qdiscs: Vec<Qdisc>,
}

/// What the driver of a device says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Which driver it is.
    pub driver: Option<Driver>,
    /// Speed and duplex.
    pub mode: Option<LinkMode>,
    /// Ring sizes.
    pub rings: Option<Rings>,
    /// Offloads by the kernel's names.
    pub features: std::collections::BTreeMap<String, Feature>,
}

/// Who may change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// The owner's user id.
    pub uid: u32,
    /// Permission bits.
    pub mode: u32,
    /// Whether it is an ordinary file, rather than a link or a device.
    pub is_file: bool,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds since boot, sleep included. Deadlines count in these, so that setting the clock moves none.
    pub boottime_ns: u64,
    /// Seconds since 1970, for people.
    pub unix_s: u64,
}

/// What tells machine, boot, network namespace and user apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The boot.
    pub boot_id: String,
    /// The network namespace.
    pub network: String,
    /// Whether it is the one that process 1 lives in; `None` if that can't be told.
    pub network_of_init: Option<bool>,
    /// Whether what is under /etc is done for this network namespace at boot.
    pub owns_etc: bool,
    /// The effective user.
    pub uid: u32,
    /// The kernel's release, such as `6.1.0-13-amd64`.
    pub kernel: String,
    /// Whether this process has `CAP_NET_ADMIN`.
    pub net_admin: bool,
}

/// One change in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Action {
    /// Writes a kernel setting.
    Sysctl {
        /// Its name.
        name: String,
        /// What to write.
        value: String,
    },
    /// Sets a device's MTU.
    Mtu {
        /// The device.
        device: Device,
        /// Bytes.
        mtu: u32,
    },
    /// Sets a device's queue length.
    QueueLen {
        /// The device.
        device: Device,
        /// Packets.
        packets: u32,
    },
    /// Makes a qdisc the root of a device.
    Qdisc {
        /// The device.
        device: Device,
        /// What it is.
        kind: String,
        /// Its handle; 0 lets the kernel choose.
        handle: u32,
        /// Its parameters as the kernel describes them, in hexadecimal digits.
        options: String,
    },
    /// Removes the root qdisc of a device, so that the kernel's default takes its place.
    DefaultQdisc {
        /// The device.
        device: Device,
    },
    /// Switches an offload.
    Feature {
        /// The device.
        device: Device,
        /// The kernel's name of it.
        feature: String,
        /// Which way.
        on: bool,
    },
    /// Sets ring sizes.
    Rings {
        /// The device.
        device: Device,
        /// To receive.
        rx: u32,
        /// To send.
        tx: u32,
    },
    /// Adds a route.
    AddRoute {
        /// The route.
        #[serde(with = "as_text")]
        route: Route,
    },
    /// Puts a route in the place of the one with the same key.
    ReplaceRoute {
        /// The route.
        #[serde(with = "as_text")]
        route: Route,
    },
    /// Removes a route.
    DeleteRoute {
        /// The route.
        #[serde(with = "as_text")]
        route: Route,
    },
}

/// A device, by the name that people know and the index that doesn't pass to another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
}

impl Action {
    /// The command that would do the same.
    #[must_use]
    pub fn command(&self, names: &Names) -> String {
        match self {
            Self::Sysctl { name, value } if value.contains(char::is_whitespace) => {
                format!("sysctl -w {name}=\"{}\"", value.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            Self::Sysctl { name, value } => format!("sysctl -w {name}={value}"),
            Self::Mtu { device, mtu } => format!("ip link set dev {} mtu {mtu}", device.name),
            Self::QueueLen { device, packets } => format!("ip link set dev {} txqueuelen {packets}", device.name),
            Self::Qdisc { device, kind, .. } => format!("tc qdisc replace dev {} root {kind}", device.name),
            Self::DefaultQdisc { device } => format!("tc qdisc del dev {} root", device.name),
            Self::Feature { device, feature, on } => {
                format!("ethtool -K {} {feature} {}", device.name, if *on { "on" } else { "off" })
            }
            Self::Rings { device, rx, tx } => format!("ethtool -G {} rx {rx} tx {tx}", device.name),
            Self::AddRoute { route } => route_text::command("add", route, names),
            Self::ReplaceRoute { route } => route_text::command("change", route, names),
            Self::DeleteRoute { route } => route_text::command("del", route, names),
        }
    }

    /// Whether a wrong value of it can cut this machine off.
    #[must_use]
    pub fn can_cut_off(&self) -> bool {
        !matches!(self, Self::Sysctl { .. })
    }
}

/// One change in the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStep {
    /// Makes a directory, and those above it; the last one must be new if `exclusive`.
    MakeDirectory {
        /// The directory.
        path: PathBuf,
        /// Permission bits of what is made.
        mode: u32,
        /// Whether it must not be there.
        exclusive: bool,
    },
    /// Makes a file, which must not be there, and writes it.
    Create {
        /// The file.
        path: PathBuf,
        /// Permission bits.
        mode: u32,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// Waits until a file or a directory is on the disk.
    Sync {
        /// The file.
        path: PathBuf,
    },
    /// Puts a file in the place of another one.
    Rename {
        /// The file.
        from: PathBuf,
        /// Its new name.
        to: PathBuf,
    },
    /// Removes a file; none is as well.
    Remove {
        /// The file.
        path: PathBuf,
    },
}

/// Puts a file in place such that at any time either the old or the new content is there, whole, also after a crash.
///
/// # Errors
/// What the file system said. Then the old content is in place.
pub(crate) fn replace_file(system: &mut dyn System, path: &Path, mode: u32, bytes: &[u8]) -> SysResult<()> {
    let fresh = write_beside(system, path, mode, bytes)?;
    if let Err(error) = system.file(&FileStep::Rename { from: fresh.clone(), to: path.to_owned() }) {
        let _ = system.file(&FileStep::Remove { path: fresh });
        return Err(error);
    }
    // Should the directory not be written before the power fails, the old content comes back, and with it the old state
    // of the kernel: that is whole too.
    let _ = system.file(&FileStep::Sync { path: path.parent().unwrap_or(path).to_owned() });
    Ok(())
}

/// Writes a file beside the one whose place it is to take; returns its name.
///
/// # Errors
/// What the file system said. Then nothing is left.
pub(crate) fn write_beside(system: &mut dyn System, path: &Path, mode: u32, bytes: &[u8]) -> SysResult<PathBuf> {
    let fresh = beside(path);
    system.file(&FileStep::Remove { path: fresh.clone() })?;
    let steps =
        [FileStep::Create { path: fresh.clone(), mode, bytes: bytes.to_vec() }, FileStep::Sync { path: fresh.clone() }];
    for step in &steps {
        if let Err(error) = system.file(step) {
            let _ = system.file(&FileStep::Remove { path: fresh });
            return Err(error);
        }
    }
    Ok(fresh)
}

/// The name of a file that is to take another one's place. Neither sysctl nor any network manager reads hidden files,
/// should a crash leave one behind.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

/// Routes in files: the kernel's message in hexadecimal digits.
pub(crate) mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use wt_sys::route::Route;

    pub(crate) fn serialize<S: Serializer>(route: &Route, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(route)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Route, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
