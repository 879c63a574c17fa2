use super::action::Action;
use super::facts::{Details, Devices, Identity, Now, ObservedConnection, ObservedPlace, Ownership};
use super::files::FileStep;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use wt_bpf::ConnectionRule;
use wt_sys::SysResult;
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

    /// The rules that choose a routing table, in words; none where the kernel has none.
    fn rules(&mut self) -> Vec<String>;

    /// The route that packets to the target follow.
    ///
    /// # Errors
    /// What the kernel said: no route.
    fn route_to(&mut self, target: IpAddr) -> SysResult<Route>;

    /// What the sockets of connections with some targets get.
    fn connections(&mut self) -> Vec<ConnectionRule>;

    /// The network namespace as rules for connections name it, or why there can't be such rules.
    ///
    /// # Errors
    /// The reason, for people.
    fn connections_here(&mut self) -> Result<u64, String>;

    /// What a connection has that is made now.
    ///
    /// # Errors
    /// What the kernel said; a target that doesn't answer is no error.
    fn observe(&mut self, place: &ObservedPlace) -> SysResult<ObservedConnection>;

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

    /// The ordinary file that a symbolic link leads to; the path itself where it leads to none.
    fn followed(&mut self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// Changes one thing in the file system.
    ///
    /// # Errors
    /// What the file system said.
    fn file(&mut self, step: &FileStep) -> SysResult<()>;

    /// What time it is.
    fn now(&mut self) -> Now;

    /// What tells this machine, boot and network namespace from others.
    fn identity(&mut self) -> Identity;

    /// The user on whose behalf this runs, as in [`Self::identity`], of which all else costs far more.
    fn uid(&mut self) -> u32 {
        self.identity().uid
    }
}
