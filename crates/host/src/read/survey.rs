use super::chain::Chain;
use super::kernel::KernelVersion;
use super::manager::Managers;
use crate::change::DROP_IN_NAME;
use crate::route_text::Names;
use crate::snapshot::{Snapshot, is_unicast};
use crate::system::{Details, Devices, Identity, System};
use std::collections::BTreeMap;
use wt_sys::SysResult;
use wt_sys::link::Link;
use wt_sys::route::{Route, TABLE_MAIN};

/// Everything that is known of the host at one moment.
#[derive(Debug, Clone)]
pub struct Survey {
    /// What can be changed.
    pub snapshot: Snapshot,
    /// Devices, addresses, qdiscs.
    pub devices: Devices,
    /// What drivers say.
    pub details: BTreeMap<String, Details>,
    /// Rules that choose a routing table, in words.
    pub rules: Vec<String>,
    /// What files set at boot.
    pub chain: Chain,
    /// Who else sets things.
    pub managers: Managers,
    /// Machine, boot, namespace, user.
    pub identity: Identity,
    /// Congestion controls that the kernel has loaded.
    pub available_cc: Vec<String>,
    /// Congestion controls that it could load.
    pub loadable_cc: Vec<String>,
    /// The machine's memory.
    pub memory_bytes: u64,
    /// The network namespace as rules for connections name it, or why there can't be any.
    pub connections_here: Result<u64, String>,
}

impl Survey {
    /// Looks at everything.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn take(system: &mut dyn System) -> SysResult<Self> {
        let devices = system.devices()?;
        let details = devices.links.iter().map(|link| (link.name.clone(), system.details(&link.name))).collect();
        let snapshot = Snapshot::of(system, &devices, &details)?;
        let identity = system.identity();
        let available = system.sysctl("net.ipv4.tcp_available_congestion_control")?.unwrap_or_default();
        Ok(Self {
            managers: Managers::find(system, &devices.links),
            chain: Chain::read(system)?,
            rules: system.rules(),
            loadable_cc: loadable_cc(system, &identity.kernel),
            connections_here: system.connections_here(),
            memory_bytes: memory_bytes(system),
            available_cc: available.split_whitespace().map(str::to_owned).collect(),
            snapshot,
            devices,
            details,
            identity,
        })
    }

    /// Names of devices.
    #[must_use]
    pub fn names(&self) -> Names {
        Names::of(&self.devices.links)
    }

    /// The device of this name.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.devices.links.iter().find(|link| link.name == name)
    }

    /// The best default routes: one of IPv4, one of IPv6, as far as there are.
    #[must_use]
    pub fn default_routes(&self) -> Vec<&Route> {
        let best = |v6: bool| {
            let defaults = self.snapshot.routes.iter().filter(|route| {
                route.is_v6() == v6 && route.destination().1 == 0 && route.table() == TABLE_MAIN && is_unicast(route)
            });
            defaults.min_by_key(|route| route.priority())
        };
        [best(false), best(true)].into_iter().flatten().collect()
    }

    /// The device that most traffic goes through: the default route's, or else the only one that is up.
    #[must_use]
    pub fn main_link(&self) -> Option<&Link> {
        let routed =
            self.default_routes().into_iter().flat_map(Route::hops).map(|hop| hop.device).find(|device| *device != 0);
        if let Some(index) = routed {
            return self.devices.links.iter().find(|link| link.index == index);
        }
        let mut up = self.devices.links.iter().filter(|link| link.up && !link.loopback);
        up.next().filter(|_| up.next().is_none())
    }

    /// The version of the kernel.
    #[must_use]
    pub fn kernel(&self) -> KernelVersion {
        KernelVersion::of(&self.identity.kernel)
    }

    /// Who sets a kernel setting besides us: a drop-in that is read after ours, or tuned.
    pub(crate) fn sysctl_manager(&self, name: &str) -> Option<String> {
        if let Some(line) = self.chain.after_ours(name) {
            return Some(format!(
                "{}:{} (read after {DROP_IN_NAME}, so it wins at boot)",
                line.file.display(),
                line.line
            ));
        }
        let tuned = self.managers.tuned.as_ref().filter(|tuned| tuned.sysctls.contains(name))?;
        let wins = if tuned.reapplies_sysctl {
            "sysctl.d wins: reapply_sysctl=1"
        } else {
            "wins over sysctl.d: reapply_sysctl=0"
        };
        Some(format!("tuned profile {} ({wins})", tuned.profile))
    }

    /// Whether a device has addresses of IPv6, which it loses, and its settings with them, below an MTU of 1280.
    #[must_use]
    pub fn has_ipv6(&self, device: u32) -> bool {
        self.devices.addresses.iter().any(|address| address.device == device && address.address.is_ipv6())
    }
}

/// All memory; a great deal if that can't be told.
fn memory_bytes(system: &mut dyn System) -> u64 {
    let text = system.read_file(std::path::Path::new("/proc/meminfo")).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map_or(u64::MAX, |kibibytes| kibibytes.saturating_mul(1024))
}

/// Modules `tcp_…` of this kernel.
fn loadable_cc(system: &mut dyn System, release: &str) -> Vec<String> {
    let path = format!("/lib/modules/{release}/modules.dep");
    let Ok(Some(bytes)) = system.read_file(std::path::Path::new(&path)) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let module = |line: &str| {
        let file = line.split(':').next()?.rsplit('/').next()?;
        let name = file.split('.').next()?.strip_prefix("tcp_")?;
        Some(name.to_owned())
    };
    text.lines().filter(|line| line.contains("/net/ipv4/tcp_")).filter_map(module).collect()
}
