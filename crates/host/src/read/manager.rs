use crate::system::System;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wt_sys::link::Link;

/// Who else sets things on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Managers {
    /// tuned, if a profile is active.
    pub tuned: Option<TunedDaemon>,
    /// Devices and who configures them.
    pub devices: BTreeMap<String, Manager>,
    /// Whether netplan has files.
    pub netplan: bool,
}

/// What tuned does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunedDaemon {
    /// The active profile.
    pub profile: String,
    /// Whether it lets sysctl.d win over its profile.
    pub reapplies_sysctl: bool,
    /// The kernel settings of the profile, those that it includes too.
    pub sysctls: BTreeSet<String>,
}

/// Who configures a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Which program.
    pub kind: ManagerKind,
    /// The file in which it found the device.
    pub file: Option<PathBuf>,
    /// Names of the files with which it keeps routes of ours.
    pub routes: BTreeSet<String>,
    /// Whether its own files tell it of gateways, so that it makes routes over them.
    pub names_gateways: bool,
}

/// Programs that configure devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagerKind {
    /// systemd-networkd with files of its own.
    Networkd,
    /// NetworkManager.
    NetworkManager,
    /// systemd-networkd with files that netplan made.
    Netplan,
    /// ifupdown.
    Ifupdown,
    /// ISC's DHCP client, whoever has started it.
    Dhclient,
}

impl ManagerKind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Networkd => "systemd-networkd",
            Self::NetworkManager => "NetworkManager",
            Self::Netplan => "netplan",
            Self::Ifupdown => "ifupdown",
            Self::Dhclient => "dhclient",
        }
    }
}

impl std::fmt::Display for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.name())?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, " ({})", file.display()))
    }
}

/// What the name of a file begins with that keeps a route of ours.
pub(crate) const ROUTE_FILE: &str = "90-windtunnel";

impl Manager {
    /// The directory of files that add to what it says of a device; none if it runs scripts instead.
    pub(crate) fn additions(&self, device: &str) -> Option<String> {
        let base = self.file.as_ref().and_then(|file| file.file_name());
        let base = base.map_or_else(|| format!("70-{device}.network"), |name| name.to_string_lossy().into_owned());
        match self.kind {
            ManagerKind::Networkd => Some(format!("/etc/systemd/network/{base}.d")),
            ManagerKind::Netplan => Some("/etc/netplan".to_owned()),
            ManagerKind::NetworkManager | ManagerKind::Ifupdown | ManagerKind::Dhclient => None,
        }
    }
}

impl Managers {
    /// Looks for them. What can't be read isn't there.
    pub fn find(system: &mut dyn System, links: &[Link]) -> Self {
        let netplan = ["/etc/netplan", "/run/netplan", "/lib/netplan"]
            .iter()
            .any(|directory| names(system, directory).iter().any(|name| name.ends_with(".yaml")));
        let devices = links.iter().filter(|link| !link.loopback);
        let with_routes = |link: &Link| {
            let mut manager = manager(system, link, netplan)?;
            let own = manager.additions(&link.name).map(|directory| names(system, &directory)).unwrap_or_default();
            manager.routes = own.into_iter().filter(|name| name.starts_with(ROUTE_FILE)).collect();
            manager.names_gateways = names_gateways(system, &manager, &link.name);
            Some((link.name.clone(), manager))
        };
        let devices = devices.filter_map(with_routes).collect();
        Self { tuned: tuned(system), devices, netplan }
    }
}

fn names(system: &mut dyn System, directory: &str) -> Vec<String> {
    system.list(Path::new(directory)).unwrap_or_default()
}

fn text(system: &mut dyn System, path: &str) -> Option<String> {
    let bytes = system.read_file(Path::new(path)).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of `key=` in a file without regard to sections.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// Whether the `.network` file of a device, netplan's too, or a drop-in of it that isn't ours has a gateway or asks for a lease. Where
/// netplan's files are all that there is, they may.
fn names_gateways(system: &mut dyn System, manager: &Manager, device: &str) -> bool {
    let Some(file) = manager.file.as_ref().map(|file| file.display().to_string()) else {
        return manager.kind == ManagerKind::Netplan;
    };
    let mut files = vec![file.clone()];
    let base = file.rsplit('/').next().unwrap_or(device);
    for directory in [format!("{file}.d"), format!("/etc/systemd/network/{base}.d")] {
        let others = names(system, &directory).into_iter().filter(|name| !name.starts_with(ROUTE_FILE));
        files.extend(others.map(|name| format!("{directory}/{name}")));
    }
    files.iter().filter_map(|file| text(system, file)).any(|text| {
        let leases = field(&text, "DHCP").is_some_and(|value| !matches!(value, "no" | "false" | "0" | "off"));
        leases || field(&text, "Gateway").is_some()
    })
}

/// # Source
/// The state files of sd-network (systemd) and `/run/NetworkManager/devices` (NetworkManager), interfaces(5), dhclient(8); ifupdown's
/// dhclient writes `/run/dhclient.IFACE.pid`.
fn manager(system: &mut dyn System, link: &Link, netplan: bool) -> Option<Manager> {
    if let Some(state) = text(system, &format!("/run/systemd/netif/links/{}", link.index)) {
        let managed = !matches!(field(&state, "ADMIN_STATE"), Some("unmanaged" | "linger") | None);
        let file = field(&state, "NETWORK_FILE").map(PathBuf::from);
        if managed {
            let by_netplan = file.as_ref().is_some_and(|file| file.to_string_lossy().contains("-netplan-"));
            let kind = if by_netplan { ManagerKind::Netplan } else { ManagerKind::Networkd };
            return Some(Manager { kind, file, routes: BTreeSet::new(), names_gateways: false });
        }
    }
    if let Some(state) = text(system, &format!("/run/NetworkManager/devices/{}", link.index))
        && field(&state, "connection-uuid").is_some()
    {
        return Some(Manager {
            kind: ManagerKind::NetworkManager,
            file: None,
            routes: BTreeSet::new(),
            names_gateways: false,
        });
    }
    if netplan && netplan_names(system, &link.name) {
        return Some(Manager {
            kind: ManagerKind::Netplan,
            file: None,
            routes: BTreeSet::new(),
            names_gateways: false,
        });
    }
    // Whoever has started it, its own script sets the routes again with each lease.
    let mut pids = ["-", "."].iter().map(|mark| format!("/run/dhclient{mark}{}.pid", link.name));
    if let Some(file) = pids.find(|path| text(system, path).is_some()) {
        return Some(Manager {
            kind: ManagerKind::Dhclient,
            file: Some(PathBuf::from(file)),
            routes: BTreeSet::new(),
            names_gateways: false,
        });
    }
    let file = "/etc/network/interfaces";
    let interfaces = text(system, file)?;
    let named = interfaces.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("iface") && words.next() == Some(link.name.as_str())
    });
    named.then(|| Manager {
        kind: ManagerKind::Ifupdown,
        file: Some(PathBuf::from(file)),
        routes: BTreeSet::new(),
        names_gateways: false,
    })
}

/// Whether a file of netplan names the device as a key.
fn netplan_names(system: &mut dyn System, device: &str) -> bool {
    let key = format!("{device}:");
    let files = names(system, "/etc/netplan");
    files
        .iter()
        .filter(|name| name.ends_with(".yaml"))
        .filter_map(|name| text(system, &format!("/etc/netplan/{name}")))
        .any(|text| text.lines().any(|line| line.trim() == key))
}

/// # Source
/// tuned(8), tuned-main.conf(5), tuned.conf(5).
fn tuned(system: &mut dyn System) -> Option<TunedDaemon> {
    let profile = text(system, "/etc/tuned/active_profile")?.split_whitespace().collect::<Vec<_>>().join(" ");
    if profile.is_empty() {
        return None;
    }
    let main = text(system, "/etc/tuned/tuned-main.conf").unwrap_or_default();
    let reapplies_sysctl = !matches!(field(&main, "reapply_sysctl"), Some("0" | "false" | "False" | "no"));
    let mut sysctls = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut wanted: Vec<String> = profile.split_whitespace().map(str::to_owned).collect();
    while let Some(name) = wanted.pop() {
        // Names with slashes would lead elsewhere.
        if name.contains('/') || seen.len() > 64 || !seen.insert(name.clone()) {
            continue;
        }
        if let Some(conf) = profile_text(system, &name) {
            let includes = field(&conf, "include").unwrap_or_default();
            wanted.extend(includes.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned));
            sysctls.extend(profile_sysctls(&conf));
        }
    }
    Some(TunedDaemon { profile, reapplies_sysctl, sysctls })
}

fn profile_text(system: &mut dyn System, name: &str) -> Option<String> {
    let places = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
    places.iter().find_map(|place| text(system, &format!("{place}/{name}/tuned.conf")))
}

fn profile_sysctls(conf: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in conf.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[sysctl]";
        } else if let (true, false, Some((name, _))) = (inside, line.starts_with('#'), line.split_once('=')) {
            found.push(name.trim().replace('/', "."));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{field, profile_sysctls};

    #[test]
    fn settings_of_a_tuned_profile_are_those_of_its_sysctl_section() {
        let conf = "[main]\ninclude=other\n[sysctl]\n# no=1\nnet.ipv4.tcp_rmem = 4096 87380 1\nnet/core/rmem_max=1\n[cpu]\ngovernor=performance\n";
        assert_eq!(profile_sysctls(conf), ["net.ipv4.tcp_rmem", "net.core.rmem_max"]);
        assert_eq!(field(conf, "include"), Some("other"));
    }
}
