//! What makes settings of devices and routes stay, in the words of whoever configures the device.

use crate::change::{LastingFile, Plan, Risk, ScopeName};
use crate::export::{self, FileDraft, Item};
use crate::hook::HookScript;
use crate::read::{Manager, ManagerKind, Survey};
use crate::route_text::NOT_PLAIN;
use crate::snapshot::Snapshot;
use crate::system::Action;
use std::collections::BTreeMap;
use wt_units::shell_word;

/// The first line of what a confirmation writes.
pub(crate) const HEADER: &str = "# Written by windtunnel settings confirm; windtunnel settings undo takes it back.\n";

/// What is to stay of one device.
pub(crate) struct DeviceSettings<'a> {
    /// The device.
    pub(crate) device: &'a str,
    /// Who configures it.
    pub(crate) manager: &'a Manager,
    /// Its settings.
    pub(crate) items: &'a [Item],
    /// What made them.
    pub(crate) actions: &'a [Action],
    /// How it was before that.
    pub(crate) before: &'a Snapshot,
    /// How it is.
    pub(crate) survey: &'a Survey,
}

/// The file for these settings; `name` is part of the file's. Where it is one of `taken`, the name gets a number.
pub(crate) fn lasting(settings: &DeviceSettings<'_>, name: &str, taken: &dyn Fn(&str) -> bool) -> LastingFile {
    let DeviceSettings { device, manager, survey, .. } = *settings;
    if let Some(others) = sharing(device, manager, survey) {
        let path = manager.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let text = format!(
            "{path} configures {others} as well, which would get it, too; with a .network file of its own for {device} it can stay"
        );
        let skipped = vec![Risk::new(device, text)];
        let (device, manager) = (device.to_owned(), manager.to_string());
        return LastingFile { device, manager, path, content: String::new(), mode: 0o644, skipped };
    }
    let first = made(settings, name);
    let mut numbered = (2..).map(|number| made(settings, &format!("{name}-{number}")));
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
fn made(settings: &DeviceSettings<'_>, name: &str) -> LastingFile {
    let DeviceSettings { device, manager, items, actions, before, survey } = *settings;
    let word = shell_word(device);
    let mut left_out = FileDraft::default();
    let is_plain = |item: &&Item| item.route().is_none_or(|place| place.route.is_plain());
    let (items, others): (Vec<&Item>, Vec<&Item>) = items.iter().partition(is_plain);
    others.into_iter().for_each(|item| left_out.skip(item, NOT_PLAIN));
    let items: Vec<Item> = items.into_iter().cloned().collect();
    let mut script =
        |test: &str| HookScript::of(device, &items, actions, before, survey, &mut left_out).text(HEADER, test);
    let (path, content, mode, skipped) = match manager.kind {
        ManagerKind::Networkd => {
            let made = export::networkd_drop_in(&items, device);
            let base = manager
                .file
                .as_ref()
                .and_then(|file| file.file_name())
                .map_or_else(|| format!("70-{device}.network"), |name| name.to_string_lossy().into_owned());
            (format!("/etc/systemd/network/{base}.d/90-{name}.conf"), made.content, 0o644, made.skipped)
        }
        ManagerKind::Netplan => {
            let made = export::netplan_file(&items, device, survey);
            (format!("/etc/netplan/90-{name}.yaml"), made.content, 0o600, made.skipped)
        }
        // The others run scripts when a device comes up; what their own files can say depends on their versions.
        ManagerKind::NetworkManager => {
            // A lease that is renewed makes it set its routes again.
            let test = format!("[ \"$1\" = {word} ]");
            let when = "case \"$2\" in up|dhcp4-change|dhcp6-change) true;; *) false;; esac";
            (
                format!("/etc/NetworkManager/dispatcher.d/90-{name}"),
                script(&format!("{test} && {when}")),
                0o755,
                Vec::new(),
            )
        }
        ManagerKind::Ifupdown => {
            (format!("/etc/network/if-up.d/{name}"), script(&format!("[ \"$IFACE\" = {word} ]")), 0o755, Vec::new())
        }
        // It reads this file as part of its own script, so it must not exit.
        ManagerKind::Dhclient => {
            let when = "case \"$reason\" in BOUND|RENEW|REBIND|REBOOT) true;; *) false;; esac";
            let test = format!("[ \"$interface\" = {word} ] && {when}");
            (format!("/etc/dhcp/dhclient-exit-hooks.d/{name}"), script(&test), 0o755, Vec::new())
        }
    };
    let skipped = [left_out.skipped, skipped].concat();
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
        let taken = |path: &str| files.iter().any(|file| file.path == path);
        let (actions, before) = (&plan.actions, &survey.snapshot);
        let settings = DeviceSettings { device: &device, manager, items: &items, actions, before, survey };
        let file = lasting(&settings, "windtunnel", &taken);
        if !file.content.is_empty() || !file.skipped.is_empty() {
            files.push(file);
        }
    }
    files
}
