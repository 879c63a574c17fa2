//! What makes settings of devices and routes stay, in the words of whoever configures the device.

use crate::change::{LastingFile, Plan, Risk, ScopeName};
use crate::export::{self, Item};
use crate::read::{Manager, ManagerKind, Survey};
use std::collections::BTreeMap;
use wt_units::shell_word;

/// The first line of what a confirmation writes.
pub(crate) const HEADER: &str = "# Written by windtunnel settings confirm; windtunnel settings undo takes it back.\n";

/// The file for these settings of a device; `name` is part of the file's. Where it is one of `taken`, the name gets a number.
pub(crate) fn lasting(
    device: &str,
    manager: &Manager,
    items: &[Item],
    commands: &[String],
    name: &str,
    survey: &Survey,
    taken: &dyn Fn(&str) -> bool,
) -> LastingFile {
    if let Some(others) = sharing(device, manager, survey) {
        let path = manager.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let text = format!(
            "{path} configures {others} as well, which would get it, too; with a .network file of its own for {device} it can stay"
        );
        let skipped = vec![Risk::new(device, text)];
        let (device, manager) = (device.to_owned(), manager.to_string());
        return LastingFile { device, manager, path, content: String::new(), mode: 0o644, skipped };
    }
    let first = made(device, manager, items, commands, name, survey);
    let mut numbered = (2..).map(|number| made(device, manager, items, commands, &format!("{name}-{number}"), survey));
    if taken(&first.path) { numbered.find(|file| !taken(&file.path)).unwrap_or(first) } else { first }
}

/// The other devices that a file of systemd-networkd is for.
fn sharing(device: &str, manager: &Manager, survey: &Survey) -> Option<String> {
    let file = manager.file.as_ref().filter(|_| manager.kind == ManagerKind::Networkd)?;
    let others =
        survey.managers.devices.iter().filter(|(name, other)| *name != device && other.file.as_ref() == Some(file));
    let names: Vec<&str> = others.map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The file by whoever configures the device.
///
/// # Source
/// systemd.network(5); netplan(5); NetworkManager-dispatcher(8); interfaces(5); dhclient-script(8).
fn made(
    device: &str,
    manager: &Manager,
    items: &[Item],
    commands: &[String],
    name: &str,
    survey: &Survey,
) -> LastingFile {
    let word = shell_word(device);
    let (path, content, mode, skipped) = match manager.kind {
        ManagerKind::Networkd => {
            let made = export::networkd_drop_in(items, device);
            let base = manager
                .file
                .as_ref()
                .and_then(|file| file.file_name())
                .map_or_else(|| format!("70-{device}.network"), |name| name.to_string_lossy().into_owned());
            (format!("/etc/systemd/network/{base}.d/90-{name}.conf"), made.content, 0o644, made.skipped)
        }
        ManagerKind::Netplan => {
            let made = export::netplan_file(items, device, survey);
            (format!("/etc/netplan/90-{name}.yaml"), made.content, 0o600, made.skipped)
        }
        // The others run scripts when a device comes up; what their own files can say depends on their versions.
        ManagerKind::NetworkManager => {
            // A lease that is renewed makes it set its routes again.
            let test = format!("[ \"$1\" = {word} ]");
            let when = "case \"$2\" in up|dhcp4-change|dhcp6-change) true;; *) false;; esac";
            (
                format!("/etc/NetworkManager/dispatcher.d/90-{name}"),
                script(&format!("{test} && {when}"), commands),
                0o755,
                Vec::new(),
            )
        }
        ManagerKind::Ifupdown => (
            format!("/etc/network/if-up.d/{name}"),
            script(&format!("[ \"$IFACE\" = {word} ]"), commands),
            0o755,
            Vec::new(),
        ),
        // It reads this file as part of its own script, so it must not exit.
        ManagerKind::Dhclient => {
            let when = "case \"$reason\" in BOUND|RENEW|REBIND|REBOOT) true;; *) false;; esac";
            let test = format!("[ \"$interface\" = {word} ] && {when}");
            (format!("/etc/dhcp/dhclient-exit-hooks.d/{name}"), script(&test, commands), 0o755, Vec::new())
        }
    };
    LastingFile { device: device.to_owned(), manager: manager.to_string(), path, content, mode, skipped }
}

/// The files that would keep the changes of a plan, one for each device that somebody configures.
pub(crate) fn of_plan(plan: &Plan, survey: &Survey) -> Vec<LastingFile> {
    let changed = plan.changes.iter().filter(|change| !change.unchanged && change.scope != ScopeName::Host);
    let mut devices: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for item in export::items(changed, &plan.wanted, survey) {
        if let Some(device) = item.device().map(str::to_owned) {
            devices.entry(device).or_default().push(item);
        }
    }
    let mut files: Vec<LastingFile> = Vec::new();
    for (device, items) in devices {
        let Some(manager) = survey.managers.devices.get(&device) else { continue };
        let commands = export::commands_for(&plan.actions, &survey.snapshot, survey, &device);
        let taken = |path: &str| files.iter().any(|file| file.path == path);
        let file = lasting(&device, manager, &items, &commands, "windtunnel", survey, &taken);
        if !file.content.is_empty() || !file.skipped.is_empty() {
            files.push(file);
        }
    }
    files
}

fn script(test: &str, commands: &[String]) -> String {
    let lines: String = commands.iter().map(|command| format!("    {command} || true\n")).collect();
    format!("#!/bin/sh\n{HEADER}if {test}; then\n{lines}fi\n")
}
