//! What makes settings of devices and routes stay, in the words of whoever configures the device.

use crate::change::{LastingFile, Plan, Risk, ScopeName};
use crate::export::{self, FileDraft, Item, RouteItem};
use crate::hook::{HookScript, is_new, named};
use crate::knob::Value;
use crate::read::{Manager, ManagerKind, ROUTE_FILE, Survey};
use crate::route_text::{self, NOT_PLAIN};
use crate::snapshot::Snapshot;
use crate::system::Action;
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::route::PROTO_BOOT;
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

/// The files for these settings; `name` is part of that of the device. Where it is one of `taken`, the name gets a number.
pub(crate) fn lasting(settings: &DeviceSettings<'_>, name: &str, taken: &dyn Fn(&str) -> bool) -> Vec<LastingFile> {
    let DeviceSettings { device, manager, survey, .. } = *settings;
    if let Some(others) = sharing(device, manager, survey) {
        let path = manager.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let text = format!(
            "{path} configures {others} as well, which would get it, too; with a .network file of its own for {device} it can stay"
        );
        let skipped = vec![Risk::new(device, text)];
        let (device, manager) = (device.to_owned(), manager.to_string());
        return vec![LastingFile { device, manager, path, content: String::new(), mode: 0o644, skipped }];
    }
    let mut files = own_routes(settings);
    let taken = |path: &str| taken(path) || files.iter().any(|file| file.path == path);
    let first = made(settings, name);
    let mut numbered = (2..).map(|number| made(settings, &format!("{name}-{number}")));
    let of_device = if taken(&first.path) { numbered.find(|file| !taken(&file.path)).unwrap_or(first) } else { first };
    if files.is_empty() || !of_device.content.is_empty() || !of_device.skipped.is_empty() {
        files.insert(0, of_device);
    }
    files
}

/// A file for each route of ours that systemd-networkd or netplan is to make. All that the route has is in it, since they make a
/// route of each section, or drop all but the first: a later change of the route replaces the file.
fn own_routes(settings: &DeviceSettings<'_>) -> Vec<LastingFile> {
    let DeviceSettings { device, manager, items, survey, .. } = *settings;
    let Some(directory) = manager.additions(device) else { return Vec::new() };
    let items: Vec<&Item> = items.iter().filter(|item| item.device() == Some(device)).collect();
    let ours = export::by_route(&items).into_iter().filter(|(place, _)| why_not(settings, place).is_none());
    let file = |(place, _): (&RouteItem, Vec<&Item>)| {
        let items = place.settings();
        let (made, ending, mode) = match manager.kind {
            ManagerKind::Netplan => (export::netplan_file(&items, device, survey), "yaml", 0o600),
            _ => (export::networkd_drop_in(&items, device, &BTreeSet::new()), "conf", 0o644),
        };
        let path = format!("{directory}/{}.{ending}", file_of(place));
        let (device, manager) = (device.to_owned(), manager.to_string());
        LastingFile { device, manager, path, content: made.content, mode, skipped: made.skipped }
    };
    ours.map(file).collect()
}

/// The name of the file that keeps a route, without its ending: that of the default route has none to name.
fn file_of(place: &RouteItem) -> String {
    let priority = place.metric.map_or_else(String::new, |metric| format!("-metric-{metric}"));
    let target = if place.network == "0.0.0.0/0" {
        String::new()
    } else {
        format!("-route-{}", place.network.replace('/', "-"))
    };
    format!("{ROUTE_FILE}{target}{priority}")
}

/// Why a file can't keep what a route has; none if the route is ours alone.
fn why_not(settings: &DeviceSettings<'_>, place: &RouteItem) -> Option<String> {
    let DeviceSettings { manager, actions, before, .. } = *settings;
    let is_kept =
        || manager.routes.iter().any(|name| name.rsplit_once('.').map(|(stem, _)| stem) == Some(&file_of(place)));
    let route = &place.route;
    if !route.is_plain() {
        return Some(NOT_PLAIN.to_owned());
    }
    // What managers make is `static`, `dhcp` or `ra`, until somebody changes it by hand.
    let by_hand = route.protocol() == PROTO_BOOT && !manager.names_gateways;
    if !is_new(route, actions, before) && !by_hand && !is_kept() {
        let kind = manager.kind.name();
        return Some(match manager.kind {
            ManagerKind::Netplan => {
                format!("{kind} makes that route itself and takes nothing more of it from another file")
            }
            _ => format!("{kind} makes that route itself and would make a second one of another file"),
        });
    }
    if route.hops().len() != 1 || route.nexthop_object().is_some() {
        return Some(format!("{} is told of routes with one gateway only", manager.kind.name()));
    }
    let is_fixed = manager.kind != ManagerKind::Netplan || !place.is_leased;
    (!is_fixed).then(|| "its gateway comes with a lease, the next of which may bring another one".to_owned())
}

/// What somebody can do by hand where no file keeps what a route has.
fn by_hand(settings: &DeviceSettings<'_>, place: &RouteItem, own: &[&Item]) -> String {
    let DeviceSettings { device, manager, actions, before, survey, .. } = *settings;
    let is_new = is_new(&place.route, actions, before);
    let (route, mut made) = (&place.route, FileDraft::default());
    let lines = match manager.kind {
        ManagerKind::Netplan => export::netplan_settings(own, &mut made),
        _ => export::networkd_route(own, &mut made),
    };
    let lines = lines.lines().map(str::trim).collect::<Vec<_>>().join(", ");
    let written = match manager.kind {
        _ if lines.is_empty() || place.is_leased || is_new => String::new(),
        ManagerKind::Netplan => format!("add {lines} to that route in netplan's own file, or "),
        _ => {
            format!("write {lines} into the [Route] section with its gateway (in place of Gateway= in [Network]), or ")
        }
    };
    let command = match &route.hops()[..] {
        [_] if route.is_plain() && route.nexthop_object().is_none() && !is_new => {
            let family = if route.is_v6() { "ip -6" } else { "ip" };
            let (to, device) = (route_text::destination(route), shell_word(device));
            let (_, metrics) = named(own, &route.metrics());
            format!("{family} route change $({family} route show exact {to} dev {device}) dev {device}{metrics}")
        }
        _ => route_text::command(if is_new { "replace" } else { "change" }, route, &survey.names()),
    };
    if command.starts_with('#') {
        String::new()
    } else {
        format!(". To keep it, {written}let your network's start run: {command}")
    }
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
    let by_file = manager.additions(device).is_some();
    let here = |item: &&Item| item.route().is_none_or(|place| !by_file && place.route.is_plain());
    let (items, others): (Vec<&Item>, Vec<&Item>) = items.iter().partition(here);
    for (place, own) in export::by_route(&others) {
        if let Some(why) = if by_file { why_not(settings, place) } else { Some(NOT_PLAIN.to_owned()) } {
            let why = format!("{why}{}", if by_file { by_hand(settings, place, &own) } else { String::new() });
            // What is the kernel's own value needs no file.
            own.iter().filter(|item| item.value != Value::Auto).for_each(|item| left_out.skip(item, &why));
        }
    }
    let items: Vec<Item> = items.into_iter().cloned().collect();
    let mut script =
        |test: &str| HookScript::of(device, &items, actions, before, survey, &mut left_out).text(HEADER, test);
    let (path, content, mode, skipped) = match manager.kind {
        ManagerKind::Networkd => {
            let made = export::networkd_drop_in(&items, device, &BTreeSet::new());
            (
                format!("{}/90-{name}.conf", manager.additions(device).unwrap_or_default()),
                made.content,
                0o644,
                made.skipped,
            )
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
        let made = lasting(&settings, "windtunnel", &taken);
        files.extend(made.into_iter().filter(|file| !file.content.is_empty() || !file.skipped.is_empty()));
    }
    files
}
