//! The same settings in the words of other systems and of managers of this one.
//!
//! What this leaves out: nothing in silence. What a target can't express is listed with the reason.

/// FreeBSD and macOS: sysctl names and loader.conf.
mod bsd;
/// What is exported.
mod item;
/// systemd-networkd, NetworkManager, netplan, nmstate.
mod managers;
/// Registry and PowerShell.
mod windows;

pub(crate) use item::{Item, commands_for, commands_of, items, items_of};
pub(crate) use managers::{netplan_file, networkd_drop_in};

use crate::persist;
use crate::plan::{Plan, Risk};
use crate::read::Survey;
use item::ItemPlace;
use serde::Serialize;
use std::collections::BTreeMap;

/// A system or manager that settings can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// A drop-in for sysctl.d(5).
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
    WindowsReg,
    /// PowerShell of Windows 8 and later.
    WindowsPowershell,
    /// FreeBSD.
    FreeBsd,
    /// macOS.
    MacOs,
}

impl ExportFormat {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::SysctlD,
        Self::Iproute2,
        Self::Networkd,
        Self::NetworkManager,
        Self::Netplan,
        Self::Nmstate,
        Self::WindowsReg,
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
            Self::WindowsPowershell => "windows-powershell",
            Self::FreeBsd => "freebsd",
            Self::MacOs => "macos",
        }
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

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportFile {
    /// Where it belongs.
    pub path: String,
    /// What it holds.
    pub content: String,
}

/// One file in the making, and what didn't go into it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    /// The file; empty if nothing went in.
    pub(crate) content: String,
    /// What didn't, and why.
    pub(crate) skipped: Vec<Risk>,
}

impl Made {
    /// Notes that an item can't be expressed.
    pub(crate) fn skip(&mut self, item: &Item, why: &str) {
        let risk = Risk { key: item.key.to_owned(), text: format!("{}={}{}: {why}", item.key, item.value, item.on()) };
        if !self.skipped.contains(&risk) {
            self.skipped.push(risk);
        }
    }
}

/// Exports the changes of a plan.
#[must_use]
pub fn export(format: ExportFormat, plan: &Plan, survey: &Survey) -> Export {
    let items = items(&plan.changes, &plan.wanted, survey);
    let (files, skipped) = match format {
        ExportFormat::SysctlD => sysctl_d(&items),
        ExportFormat::Iproute2 => iproute2(plan, &items),
        ExportFormat::Networkd => managers::networkd(&items, survey),
        ExportFormat::NetworkManager => managers::network_manager(&items, survey),
        ExportFormat::Netplan => managers::netplan(&items, survey),
        ExportFormat::Nmstate => managers::nmstate(&items, survey),
        ExportFormat::WindowsReg => windows::registry(&items, survey),
        ExportFormat::WindowsPowershell => windows::powershell(&items),
        ExportFormat::FreeBsd => bsd::freebsd(&items),
        ExportFormat::MacOs => bsd::macos(&items),
    };
    Export { schema_version: 1, format: format.name(), files, skipped }
}

type Files = (Vec<ExportFile>, Vec<Risk>);

fn sysctl_d(items: &[Item]) -> Files {
    let mut settings = BTreeMap::new();
    let mut made = Made::default();
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
    let files = if settings.is_empty() { Vec::new() } else { vec![persist::sysctl_file(&settings)] };
    (files, made.skipped)
}

fn iproute2(plan: &Plan, items: &[Item]) -> Files {
    let mut made = Made::default();
    for item in items {
        match &item.place {
            ItemPlace::Host { .. } => {
                made.skip(item, "ip and tc have no settings of the whole host; see --to sysctl.d")
            }
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
