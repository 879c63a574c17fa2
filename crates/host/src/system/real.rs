use super::action::{Action, Device};
use super::connection;
use super::facts::{Details, Devices, Identity, Now, ObservedConnection, ObservedPlace, Ownership};
use super::files::FileStep;
use super::interface::System;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use wt_bpf::ConnectionRule;
use wt_sys::ethtool::Ethtool;
use wt_sys::link::Qdisc;
use wt_sys::netlink::Netlink;
use wt_sys::route::Route;
use wt_sys::{SysError, SysResult};

/// Files larger than this aren't read: nothing that concerns us is.
const LARGEST_FILE: u64 = 64 << 20;

/// This machine, as seen from this thread's network namespace.
#[derive(Debug)]
pub struct RealSystem {
    netlink: Netlink,
    ethtool: Option<Ethtool>,
    root: Option<PathBuf>,
}

impl RealSystem {
    /// Opens what is needed to ask the kernel. With a root, configuration files are read and written below it.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn open(root: Option<PathBuf>) -> SysResult<Self> {
        Ok(Self { netlink: Netlink::open()?, ethtool: Ethtool::open().ok(), root })
    }

    /// A path below the root. State directories are given as they are: the caller puts them where they belong.
    fn below(&self, path: &Path) -> PathBuf {
        const CONFIGURATION: [&str; 4] = ["/etc", "/run", "/usr", "/lib"];
        let is_ours = CONFIGURATION.iter().any(|top| path.starts_with(top));
        match (&self.root, path.strip_prefix("/")) {
            (Some(root), Ok(relative)) if is_ours && !path.starts_with(root) => root.join(relative),
            _ => path.to_owned(),
        }
    }

    /// The name of a device that still has the index it had: the name may have passed to another one.
    fn check(&mut self, device: &Device) -> SysResult<()> {
        let is_same = self.netlink.index(&device.name)? == device.index;
        if is_same { Ok(()) } else { Err(wt_sys::link::no_such_device(&device.name)) }
    }

    fn ethtool(&self) -> SysResult<&Ethtool> {
        self.ethtool.as_ref().ok_or_else(|| SysError {
            doing: "ask a driver".to_owned(),
            source: io::Error::from(ErrorKind::Unsupported),
        })
    }
}

impl System for RealSystem {
    fn sysctl(&mut self, name: &str) -> SysResult<Option<String>> {
        wt_sys::sysctl::read(name)
    }

    fn devices(&mut self) -> SysResult<Devices> {
        let links = self.netlink.links()?;
        Ok(Devices { links, addresses: self.netlink.addresses()?, qdiscs: self.netlink.qdiscs()? })
    }

    fn details(&mut self, device: &str) -> Details {
        let Some(ethtool) = &self.ethtool else { return Details::default() };
        Details {
            driver: ethtool.driver(device).ok(),
            mode: ethtool.link_mode(device).ok(),
            rings: ethtool.rings(device).ok(),
            features: ethtool.features(device).unwrap_or_default(),
        }
    }

    fn routes(&mut self) -> SysResult<Vec<Route>> {
        self.netlink.routes()
    }

    fn rules(&mut self) -> Vec<String> {
        self.netlink.rules().unwrap_or_default()
    }

    fn route_to(&mut self, target: IpAddr) -> SysResult<Route> {
        self.netlink.route_to(target)
    }

    fn connections(&mut self) -> Vec<ConnectionRule> {
        wt_sys::ns::network_cookie().map(ConnectionRule::in_force).unwrap_or_default()
    }

    fn connections_here(&mut self) -> Result<u64, String> {
        match ConnectionRule::unavailable() {
            Some(why) => Err(why),
            None => wt_sys::ns::network_cookie().map_err(|error| error.to_string()),
        }
    }

    fn observe(&mut self, place: &ObservedPlace) -> SysResult<ObservedConnection> {
        match place {
            ObservedPlace::Target(target) => {
                connection::to(SocketAddr::new(*target, connection::PORT), connection::PATIENCE)
            }
            ObservedPlace::Neighbour { address, device } => {
                // Rules may send what goes there another way, which would show another device.
                if !self.netlink.route_to(*address)?.uses(*device) {
                    let elsewhere = io::Error::other("the route there uses another device");
                    return Err(SysError::io("reach a neighbour")(elsewhere));
                }
                // An MTU shows in the SYN's connection, whether anybody answers or not.
                connection::begun_to(SocketAddr::new(*address, connection::PORT))
            }
            ObservedPlace::ThisHost => connection::to_this_host(),
            ObservedPlace::Pair { metrics, v6 } => super::pair::over(metrics, *v6),
        }
    }

    fn act(&mut self, action: &Action) -> SysResult<()> {
        match action {
            Action::Sysctl { name, value } => wt_sys::sysctl::write(name, value),
            Action::Mtu { device, mtu } => {
                self.check(device)?;
                self.netlink.set_mtu(device.index, *mtu)
            }
            Action::QueueLen { device, packets } => {
                self.check(device)?;
                self.netlink.set_queue_len(device.index, *packets)
            }
            Action::Qdisc { device, kind, handle, options } => {
                self.check(device)?;
                let options = crate::hex::from_hex(options).unwrap_or_default();
                let root = Qdisc { device: device.index, handle: *handle, parent: 0, kind: kind.clone(), options };
                self.netlink.set_root_qdisc(&root)
            }
            Action::DefaultQdisc { device } => {
                self.check(device)?;
                self.netlink.remove_root_qdisc(device.index)
            }
            Action::Feature { device, feature, on } => {
                self.check(device)?;
                self.ethtool()?.set_feature(&device.name, feature, *on)
            }
            Action::Rings { device, rx, tx } => {
                self.check(device)?;
                self.ethtool()?.set_rings(&device.name, *rx, *tx)
            }
            Action::AddRoute { route } => self.netlink.add_route(route),
            Action::AppendRoute { route } => self.netlink.append_route(route),
            Action::ReplaceRoute { route } => self.netlink.replace_route(route),
            Action::DeleteRoute { route } => self.netlink.delete_route(route),
            Action::AddConnections { rule } => rule.add(),
            Action::RemoveConnections { rule } => rule.remove(),
        }
    }

    fn read_file(&mut self, path: &Path) -> SysResult<Option<Vec<u8>>> {
        let path = self.below(path);
        let read = || {
            if fs::metadata(&path)?.len() > LARGEST_FILE {
                return Err(io::Error::from(ErrorKind::FileTooLarge));
            }
            fs::read(&path)
        };
        found(read()).map_err(SysError::io(format!("read {}", path.display())))
    }

    fn list(&mut self, directory: &Path) -> SysResult<Vec<String>> {
        let path = self.below(directory);
        let read = || {
            let entries: io::Result<Vec<_>> = fs::read_dir(&path)?.collect();
            Ok(entries?.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        let mut names = found(read()).map_err(SysError::io(format!("list {}", path.display())))?.unwrap_or_default();
        names.sort();
        Ok(names)
    }

    fn ownership(&mut self, path: &Path) -> SysResult<Option<Ownership>> {
        let path = self.below(path);
        let data = found(fs::symlink_metadata(&path)).map_err(SysError::io(format!("look at {}", path.display())))?;
        Ok(data.map(|data| Ownership {
            uid: data.uid(),
            mode: data.mode() & 0o7777,
            is_file: data.is_file(),
            is_directory: data.is_dir(),
        }))
    }

    fn followed(&mut self, path: &Path) -> PathBuf {
        let link = self.below(path);
        // A link that leads out of the root would mean another file there.
        let is_below = |target: &PathBuf| {
            self.root.as_ref().is_none_or(|root| fs::canonicalize(root).is_ok_and(|root| target.starts_with(root)))
        };
        let is_link = fs::symlink_metadata(&link).is_ok_and(|data| data.is_symlink());
        // A device at its end, as of what is masked, is nothing to write a file over.
        let is_file = |target: &PathBuf| fs::metadata(target).is_ok_and(|data| data.is_file());
        let target = if is_link { fs::canonicalize(&link).ok().filter(is_below).filter(is_file) } else { None };
        target.unwrap_or_else(|| path.to_owned())
    }

    fn file(&mut self, step: &FileStep) -> SysResult<()> {
        let at = |path: &Path| self.below(path);
        match step {
            FileStep::MakeDirectory { path, mode, exclusive } => {
                let path = at(path);
                let made = if *exclusive {
                    DirBuilder::new().mode(*mode).create(&path)
                } else {
                    DirBuilder::new().recursive(true).mode(*mode).create(&path)
                };
                made.map_err(SysError::io(format!("make {}", path.display())))
            }
            FileStep::Create { path, mode, bytes } => {
                let path = at(path);
                let write = || {
                    let mut file = File::options().write(true).create_new(true).mode(*mode).open(&path)?;
                    // The umask may have taken bits away that others need: programs run as other users read drop-ins.
                    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(*mode))?;
                    file.write_all(bytes)
                };
                write().map_err(SysError::io(format!("write {}", path.display())))
            }
            FileStep::Sync { path } => {
                let path = at(path);
                File::open(&path)
                    .and_then(|file| file.sync_all())
                    .map_err(SysError::io(format!("sync {}", path.display())))
            }
            FileStep::Rename { from, to } => {
                let (from, to) = (at(from), at(to));
                fs::rename(&from, &to).map_err(SysError::io(format!("put {} in place", to.display())))
            }
            FileStep::Remove { path } => {
                let path = at(path);
                found(fs::remove_file(&path)).map(drop).map_err(SysError::io(format!("remove {}", path.display())))
            }
            FileStep::RemoveDirectory { path } => {
                let path = at(path);
                fs::remove_dir(&path).map_err(SysError::io(format!("remove {}", path.display())))
            }
        }
    }

    fn now(&mut self) -> Now {
        let unix_s = u64::try_from(wt_sys::clock::unix_us() / 1_000_000).unwrap_or(0);
        Now { boottime_ns: wt_sys::guard::boottime_ns(), unix_s }
    }

    fn uid(&mut self) -> u32 {
        wt_sys::process::effective_uid()
    }

    fn identity(&mut self) -> Identity {
        let network = |path: &str| fs::read_link(path).map(|link| link.to_string_lossy().into_owned());
        let own = network("/proc/thread-self/ns/net").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let inode = |path: &str| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
        let hosts = inode("/proc/1/root/etc/sysctl.d");
        // Process 1 of a lab is the lab's own, and neither its network nor /etc is that of a machine that boots.
        let is_guest = wt_sys::ns::is_guest_of_a_machine();
        let shares_etc = is_guest || hosts.is_some() && hosts == inode("/etc/sysctl.d");
        let network_of_init =
            if is_guest { Some(false) } else { network("/proc/1/ns/net").ok().map(|init| init == own) };
        Identity {
            boot_id: wt_sys::clock::boot_id(),
            network_of_init,
            owns_etc: self.root.is_some() || network_of_init != Some(false) || !shares_etc,
            network: own,
            network_cookie: wt_sys::ns::network_cookie().ok(),
            uid: wt_sys::process::effective_uid(),
            kernel: kernel.trim().to_owned(),
            net_admin: wt_sys::process::has_capability(wt_sys::process::CAP_NET_ADMIN),
        }
    }
}

/// Nothing there is an answer, not an error.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}
