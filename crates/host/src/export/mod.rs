//! The same settings in the words of other systems and of managers of this one.
//!
//! What this leaves out: nothing in silence. What a target can't express is listed with the reason.

/// FreeBSD and macOS: sysctl names and loader.conf.
mod bsd;
/// Files in the making.
mod file;
/// What is exported.
mod item;
/// systemd-networkd, NetworkManager, netplan, nmstate.
mod managers;
/// Names in files of others.
mod quote;
/// Registry and PowerShell.
mod windows;

pub use file::ExportFile;
pub(crate) use file::FileDraft;
pub(crate) use item::{Item, RouteItem, commands_for, items};
pub(crate) use managers::{by_route, netplan_file, netplan_settings, networkd_drop_in, networkd_route};

use crate::change::{DROP_IN, Plan, Risk};
use crate::drop_in::assignment;
use crate::knob::Value;
use crate::read::Survey;
use crate::route_text::NOT_PLAIN;
use file::Files;
use item::ItemPlace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A system or manager that settings can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// A drop-in for sysctl.d(5).
    #[serde(rename = "sysctl.d")]
    SysctlD,
    /// Commands of ip(8) and tc(8).
    Iproute2,
    /// systemd-networkd.
    Networkd,
    /// NetworkManager.
    NetworkManager,
    /// netplan.
    Netplan,
    /// nmstate.
    Nmstate,
    /// The registry of Windows 2000 to 2003.
    #[serde(rename = "windows-reg")]
    WindowsReg,
    /// The registry of Windows 98 and ME.
    #[serde(rename = "windows-98-reg")]
    Windows98Reg,
    /// PowerShell of Windows 8 and later.
    #[serde(rename = "windows-powershell")]
    WindowsPowershell,
    /// FreeBSD.
    FreeBsd,
    /// macOS.
    MacOs,
}

impl ExportFormat {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::SysctlD,
        Self::Iproute2,
        Self::Networkd,
        Self::NetworkManager,
        Self::Netplan,
        Self::Nmstate,
        Self::WindowsReg,
        Self::Windows98Reg,
        Self::WindowsPowershell,
        Self::FreeBsd,
        Self::MacOs,
    ];

    /// The word in flags and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SysctlD => "sysctl.d",
            Self::Iproute2 => "iproute2",
            Self::Networkd => "networkd",
            Self::NetworkManager => "networkmanager",
            Self::Netplan => "netplan",
            Self::Nmstate => "nmstate",
            Self::WindowsReg => "windows-reg",
            Self::Windows98Reg => "windows-98-reg",
            Self::WindowsPowershell => "windows-powershell",
            Self::FreeBsd => "freebsd",
            Self::MacOs => "macos",
        }
    }

    /// Whether it is for another system than this one: then it is that system that has to have a congestion control.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        let own = [Self::WindowsReg, Self::Windows98Reg, Self::WindowsPowershell, Self::FreeBsd, Self::MacOs];
        own.contains(&self)
    }
}

/// Settings in the words of something else.
#[derive(Debug, Clone, Serialize)]
pub struct Export {
    /// The version of this form.
    pub schema_version: u32,
    /// Whose words.
    pub format: &'static str,
    /// The files.
    pub files: Vec<ExportFile>,
    /// What it can't express, and why.
    pub skipped: Vec<Risk>,
}

/// Exports the changes of a plan; `cc` is a congestion control that only the other system has to have.
#[must_use]
pub fn export(format: ExportFormat, plan: &Plan, cc: Option<&Value>, survey: &Survey) -> Export {
    let mut items = items(&plan.changes, &plan.wanted, survey);
    items.extend(cc.and_then(item::congestion_control));
    let (files, skipped) = match format {
        ExportFormat::SysctlD => sysctl_d(&items),
        ExportFormat::Iproute2 => iproute2(plan, &items),
        ExportFormat::Networkd => managers::networkd(&items, survey),
        ExportFormat::NetworkManager => managers::network_manager(&items, survey),
        ExportFormat::Netplan => managers::netplan(&items, survey),
        ExportFormat::Nmstate => managers::nmstate(&items, survey),
        ExportFormat::WindowsReg => windows::registry(&items, survey),
        ExportFormat::Windows98Reg => windows::registry_98(&items, survey),
        ExportFormat::WindowsPowershell => windows::powershell(&items),
        ExportFormat::FreeBsd => bsd::freebsd(&items),
        ExportFormat::MacOs => bsd::macos(&items),
    };
    Export { schema_version: 1, format: format.name(), files, skipped }
}

fn sysctl_d(items: &[Item]) -> Files {
    let mut settings = BTreeMap::new();
    let mut made = FileDraft::default();
    for item in items {
        match &item.place {
            ItemPlace::Host { sysctl, text } => drop(settings.insert(sysctl.clone(), text.clone())),
            ItemPlace::Route(_) => {
                made.skip(item, "sysctl.d has no routes; see --to networkd, networkmanager, netplan or iproute2")
            }
            ItemPlace::Link { .. } => {
                made.skip(item, "sysctl.d has no devices; see --to networkd, networkmanager, netplan or iproute2")
            }
        }
    }
    let files = if settings.is_empty() { Vec::new() } else { vec![sysctl_file(&settings)] };
    (files, made.skipped)
}

/// A file of kernel settings.
fn sysctl_file(settings: &BTreeMap<String, String>) -> ExportFile {
    let lines: String = settings.iter().map(|(name, value)| assignment(name, value)).collect();
    ExportFile { path: DROP_IN.to_owned(), content: format!("# Written by windtunnel settings export.\n{lines}") }
}

fn iproute2(plan: &Plan, items: &[Item]) -> Files {
    let mut made = FileDraft::default();
    for item in items {
        match &item.place {
            ItemPlace::Host { .. } => {
                made.skip(item, "ip and tc have no settings of the whole host; see --to sysctl.d")
            }
            ItemPlace::Route(place) if !place.route.is_plain() => made.skip(item, NOT_PLAIN),
            ItemPlace::Link { .. } if item.key.starts_with("offload") || item.key.starts_with("ring") => {
                made.skip(item, "ip and tc have neither offloads nor rings: that is ethtool's");
            }
            _ => {}
        }
    }
    let ours = |command: &&String| command.starts_with("ip ") || command.starts_with("tc ");
    let lines: Vec<&str> = plan.commands.iter().filter(ours).map(String::as_str).collect();
    let content = format!("#!/bin/sh\n# Written by windtunnel settings export.\nset -e\n{}\n", lines.join("\n"));
    let file = ExportFile { path: "windtunnel-iproute2.sh".to_owned(), content };
    (if lines.is_empty() { Vec::new() } else { vec![file] }, made.skipped)
}
