use super::file::{ExportFile, FileDraft, Files};
use super::item::{Item, ItemPlace, RouteItem};
use super::quote::{keyfile_value, pattern, yaml_word};
use crate::knob::Value;
use crate::read::Survey;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use wt_sys::route::Route;

const FIRST_LINE: &str = "# Written by windtunnel.\n";

/// The settings of each device; those of the whole host are noted as left out.
fn by_device<'a>(items: &'a [Item], made: &mut FileDraft, whole_host: &str) -> BTreeMap<&'a str, Vec<&'a Item>> {
    let mut devices: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items {
        match item.device() {
            Some(device) if !device.is_empty() => devices.entry(device).or_default().push(item),
            _ => made.skip(item, whole_host),
        }
    }
    devices
}

/// The settings of each route of a device, in the order of the routes.
pub(crate) fn by_route<'a>(items: &[&'a Item]) -> Vec<(&'a RouteItem, Vec<&'a Item>)> {
    let mut routes: Vec<(&RouteItem, Vec<&Item>)> = Vec::new();
    let mut places = BTreeMap::new();
    for item in items {
        let ItemPlace::Route(route) = &item.place else { continue };
        let at = *places.entry(&route.route).or_insert_with(|| {
            routes.push((route, Vec::new()));
            routes.len() - 1
        });
        routes[at].1.push(item);
    }
    routes
}

fn is_among(there: &BTreeSet<Route>, route: &RouteItem) -> bool {
    there.iter().any(|other| other.key() == route.route.key())
}

fn links<'a>(items: &[&'a Item]) -> Vec<&'a Item> {
    items.iter().filter(|item| matches!(item.place, ItemPlace::Link { .. })).copied().collect()
}

fn yes(item: &Item) -> &'static str {
    if item.is("on") { "yes" } else { "no" }
}

// systemd-networkd.

/// # Source
/// systemd.network(5), systemd.link(5).
pub(super) fn networkd(items: &[Item], survey: &Survey) -> Files {
    let mut made = FileDraft::default();
    let mut files = Vec::new();
    let devices =
        by_device(items, &mut made, "systemd reads settings of the whole host from sysctl.d; see --to sysctl.d");
    for (device, items) in devices {
        let owned: Vec<Item> = items.iter().map(|item| (*item).clone()).collect();
        let drop_in = networkd_drop_in(&owned, device, &survey.snapshot.routes);
        let base = survey.managers.devices.get(device).and_then(|manager| manager.file.as_ref()?.file_name());
        let base = base.map_or_else(|| format!("70-{device}.network"), |name| name.to_string_lossy().into_owned());
        if !drop_in.content.is_empty() {
            files.push(ExportFile {
                path: format!("/etc/systemd/network/{base}.d/90-windtunnel.conf"),
                content: drop_in.content,
            });
        }
        let link = networkd_link(&items, device);
        if !link.is_empty() {
            files.push(ExportFile { path: format!("/etc/systemd/network/70-windtunnel-{device}.link"), content: link });
        }
        let in_link = |key: &str| link_line(key).is_some();
        made.skipped.extend(drop_in.skipped.into_iter().filter(|risk| !in_link(&risk.key)));
    }
    (files, made.skipped)
}

/// The drop-in for the `.network` file of a device. What belongs into a `.link` file is noted as left out, and of a route that is
/// there already, that its section is for somebody to put in the place of what makes it.
pub(crate) fn networkd_drop_in(items: &[Item], device: &str, there: &BTreeSet<Route>) -> FileDraft {
    let mut made = FileDraft::default();
    let items: Vec<&Item> = items.iter().filter(|item| item.device() == Some(device)).collect();
    let mut text = String::new();
    for item in links(&items) {
        match item.key {
            "mtu" => {
                let _ = write!(text, "\n[Link]\nMTUBytes={}\n", item.value);
            }
            "qdisc" => match qdisc_section(&item.value.to_string()) {
                Some(section) => {
                    let _ = write!(text, "\n[{section}]\nParent=root\n{}", queue_limit(&item.value, &items));
                }
                None => made.skip(item, "systemd-networkd has no section for this qdisc"),
            },
            _ => made.skip(item, "systemd.network can't express it; a .link file, read when the device appears, can"),
        }
    }
    for (route, settings) in by_route(&items) {
        let lines = networkd_route(&settings, &mut made);
        if !lines.is_empty() {
            let note = if is_among(there, route) {
                "# In the place of what makes this route already (Gateway=, a lease): of two, systemd-networkd makes two routes.\n"
            } else {
                ""
            };
            let _ = write!(text, "\n[Route]\n{note}{}{lines}", networkd_target(route));
        }
    }
    if !text.is_empty() {
        made.content = format!("{FIRST_LINE}{text}");
    }
    made
}

/// The limit of a plain queue, for which systemd-networkd sends the kernel a 0 if it isn't given: nothing would get
/// through.
fn queue_limit(qdisc: &Value, items: &[&Item]) -> String {
    /// The queue length of Ethernet devices: `DEFAULT_TX_QUEUE_LEN` of the kernel.
    const USUAL: u64 = 1_000;
    /// An Ethernet frame of 1500 bytes of IP.
    const FRAME: u64 = 1_514;
    let asked = items.iter().find(|item| item.key == "txqueuelen").and_then(|item| item.number());
    let packets = asked.unwrap_or(USUAL).max(1);
    match qdisc.to_string().as_str() {
        "pfifo" | "pfifo_head_drop" => format!("PacketLimit={packets}\n"),
        "bfifo" => format!("LimitBytes={}\n", packets * FRAME),
        _ => String::new(),
    }
}

fn networkd_target(route: &RouteItem) -> String {
    let mut text = String::new();
    match route.gateway {
        Some(_) if route.is_leased => {
            text.push_str(if route.route.is_v6() { "Gateway=_ipv6ra\n" } else { "Gateway=_dhcp4\n" })
        }
        Some(gateway) => {
            let _ = writeln!(text, "Gateway={gateway}");
        }
        None => {}
    }
    if !route.is_default() || route.gateway.is_none() {
        let _ = writeln!(text, "Destination={}", route.network);
    }
    if route.gateway.is_none() && !route.route.is_v6() {
        text.push_str("Scope=link\n");
    }
    if let Some(metric) = route.metric {
        let _ = writeln!(text, "Metric={metric}");
    }
    text
}

pub(crate) fn networkd_route(settings: &[&Item], made: &mut FileDraft) -> String {
    let mut text = String::new();
    for item in settings {
        let Some(number) = item.number() else {
            match item.key {
                "cc" => drop(writeln!(text, "TCPCongestionControlAlgorithm={}", item.value)),
                "quickack" => drop(writeln!(text, "QuickAck={}", yes(item))),
                "ecn" => made.skip(item, "systemd.network has no features of routes"),
                _ => made.skip(item, "systemd.network has no such value of a route"),
            }
            continue;
        };
        let name = match item.key {
            "initcwnd" => "InitialCongestionWindow",
            "initrwnd" => "InitialAdvertisedReceiveWindow",
            "mtu" => "MTUBytes",
            "mss" => "TCPAdvertisedMaximumSegmentSize",
            "ttl" => {
                made.skip(item, "systemd before 255 has no hop limit of routes; later it is HopLimit=");
                continue;
            }
            "rto-min" => {
                made.skip(
                    item,
                    "systemd before 255 has no timeout of routes; later it is TCPRetransmissionTimeoutSec=",
                );
                continue;
            }
            _ => {
                made.skip(item, "systemd.network has no such value of a route");
                continue;
            }
        };
        let _ = writeln!(text, "{name}={number}");
    }
    text
}

/// Sections of systemd.network(5) for qdiscs.
fn qdisc_section(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "fq" => "FairQueueing",
        "fq_codel" => "FairQueueingControlledDelay",
        "cake" => "CAKE",
        "codel" => "ControlledDelay",
        "pfifo" => "PFIFO",
        "bfifo" => "BFIFO",
        "pfifo_fast" => "PFIFOFast",
        "pie" => "PIE",
        "sfq" => "StochasticFairnessQueueing",
        _ => return None,
    })
}

/// The name in systemd.link(5).
fn link_line(key: &str) -> Option<&'static str> {
    Some(match key {
        "txqueuelen" => "TransmitQueueLength",
        "offload-tso" => "TCPSegmentationOffload",
        "offload-gso" => "GenericSegmentationOffload",
        "offload-gro" => "GenericReceiveOffload",
        "offload-lro" => "LargeReceiveOffload",
        "offload-rx-checksum" => "ReceiveChecksumOffload",
        "ring-rx" => "RxBufferSize",
        "ring-tx" => "TxBufferSize",
        _ => return None,
    })
}

fn networkd_link(items: &[&Item], device: &str) -> String {
    let line = |item: &&Item| {
        let value = if item.number().is_some() { item.value.to_string() } else { yes(item).to_owned() };
        link_line(item.key).map(|name| format!("{name}={value}\n"))
    };
    let lines: String = links(items).iter().filter_map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("{FIRST_LINE}\n[Match]\nOriginalName={}\n\n[Link]\n{lines}", pattern(device))
}

// NetworkManager.

/// # Source
/// nm-settings-keyfile(5), the attributes of routes in nm-settings-nmcli(5).
pub(super) fn network_manager(items: &[Item], survey: &Survey) -> Files {
    let mut made = FileDraft::default();
    let mut files = Vec::new();
    let devices = by_device(items, &mut made, "NetworkManager has no settings of the whole host; see --to sysctl.d");
    for (device, items) in devices {
        let kind = survey.link(device).and_then(|link| link.kind.clone()).unwrap_or_else(|| "ethernet".to_owned());
        let mut text = format!(
            "{FIRST_LINE}# Merge this into the connection of {device}: nmcli -f filename,name connection show\n"
        );
        let (name, kind) = (keyfile_value(device), nm_type(&kind));
        let _ = write!(text, "[connection]\nid=windtunnel-{name}\ntype={kind}\ninterface-name={name}\n");
        text.push_str(&nm_link(&links(&items), kind, &mut made));
        let routes = by_route(&items);
        for (section, v6) in [("ipv4", false), ("ipv6", true)] {
            let own = routes.iter().filter(|(route, _)| route.route.is_v6() == v6);
            let _ = write!(text, "\n[{section}]\nmethod=auto\n");
            for (at, (route, settings)) in own.enumerate() {
                let options = nm_route(settings, &mut made);
                let gateway = route.gateway.map_or_else(String::new, |gateway| format!(",{gateway}"));
                let metric = route.metric.map_or_else(String::new, |metric| {
                    format!("{}{metric}", if gateway.is_empty() { ",," } else { "," })
                });
                let _ = writeln!(text, "route{}={}{gateway}{metric}", at + 1, route.network);
                if !options.is_empty() {
                    let _ = writeln!(text, "route{}_options={}", at + 1, options.join(","));
                }
            }
        }
        files.push(ExportFile {
            path: format!("/etc/NetworkManager/system-connections/windtunnel-{device}.nmconnection"),
            content: text,
        });
    }
    (files, made.skipped)
}

fn nm_type(kind: &str) -> &'static str {
    match kind {
        "bridge" => "bridge",
        "bond" => "bond",
        "vlan" => "vlan",
        // One of type veth must name its peer; those of Ethernet fit veth devices too.
        "wireguard" => "wireguard",
        "tun" => "tun",
        "dummy" => "dummy",
        _ => "ethernet",
    }
}

fn nm_link(items: &[&Item], kind: &str, made: &mut FileDraft) -> String {
    let mut sections: BTreeMap<&str, String> = BTreeMap::new();
    // A virtual Ethernet device has its MTU in the section of Ethernet.
    let ethernet = if matches!(kind, "wireguard") { "wireguard" } else { "ethernet" };
    for item in items {
        let bool_of = |item: &Item| if item.is("on") { "true" } else { "false" };
        let (section, line) = match item.key {
            "mtu" => (ethernet, format!("mtu={}", item.value)),
            "txqueuelen" => {
                made.skip(
                    item,
                    "NetworkManager before 1.44 has no queue length; later it is tx-queue-length= in [link]",
                );
                continue;
            }
            "qdisc" => ("tc", format!("qdisc.root={}", item.value)),
            "ring-rx" | "ring-tx" => ("ethtool", format!("{}={}", item.key, item.value)),
            "offload-tso" => ("ethtool", format!("feature-tso={}", bool_of(item))),
            "offload-gso" => ("ethtool", format!("feature-gso={}", bool_of(item))),
            "offload-gro" => ("ethtool", format!("feature-gro={}", bool_of(item))),
            "offload-lro" => ("ethtool", format!("feature-lro={}", bool_of(item))),
            "offload-rx-checksum" => ("ethtool", format!("feature-rx={}", bool_of(item))),
            "offload-sg" => ("ethtool", format!("feature-sg={}", bool_of(item))),
            _ => {
                made.skip(item, "NetworkManager has no such value of a device");
                continue;
            }
        };
        let _ = writeln!(sections.entry(section).or_default(), "{line}");
    }
    sections.into_iter().fold(String::new(), |mut text, (section, lines)| {
        let _ = write!(text, "\n[{section}]\n{lines}");
        text
    })
}

fn nm_route(settings: &[&Item], made: &mut FileDraft) -> Vec<String> {
    let mut options = Vec::new();
    for item in settings {
        match (item.key, item.number()) {
            ("initcwnd" | "initrwnd", Some(number)) => options.push(format!("{}={number}", item.key)),
            ("mtu", Some(number)) => options.extend([format!("mtu={number}"), "lock-mtu=true".to_owned()]),
            ("mss", Some(number)) => options.push(format!("advmss={number}")),
            ("syn-window", Some(number)) => options.push(format!("window={number}")),
            ("rto-min", Some(number)) => options.push(format!("rto_min={number}")),
            ("quickack", None) => options.push(format!("quickack={}", item.is("on"))),
            _ => made
                .skip(item, "NetworkManager has no such attribute of a route; a dispatcher script with ip route can"),
        }
    }
    options
}

// netplan.

/// # Source
/// netplan-yaml reference, "Properties for all device types" and "Routing".
pub(super) fn netplan(items: &[Item], survey: &Survey) -> Files {
    let mut made = FileDraft::default();
    let mut files = Vec::new();
    let devices = by_device(items, &mut made, "netplan has no settings of the whole host; see --to sysctl.d");
    let mut kinds: BTreeMap<&str, String> = BTreeMap::new();
    for (device, items) in devices {
        let owned: Vec<Item> = items.iter().map(|item| (*item).clone()).collect();
        let (kind, text) = netplan_device(&owned, device, survey, &survey.snapshot.routes, &mut made);
        if !text.is_empty() {
            kinds.entry(kind).or_default().push_str(&text);
        }
    }
    if !kinds.is_empty() {
        files
            .push(ExportFile { path: "/etc/netplan/90-windtunnel.yaml".to_owned(), content: netplan_document(&kinds) });
    }
    (files, made.skipped)
}

/// The file of one device.
pub(crate) fn netplan_file(items: &[Item], device: &str, survey: &Survey) -> FileDraft {
    let mut made = FileDraft::default();
    let (kind, text) = netplan_device(items, device, survey, &BTreeSet::new(), &mut made);
    if !text.is_empty() {
        made.content = netplan_document(&BTreeMap::from([(kind, text)]));
    }
    made
}

fn netplan_document(kinds: &BTreeMap<&str, String>) -> String {
    let body = kinds.iter().fold(String::new(), |mut text, (kind, devices)| {
        let _ = write!(text, "  {kind}:\n{devices}");
        text
    });
    format!("{FIRST_LINE}network:\n  version: 2\n{body}")
}

fn netplan_device(
    items: &[Item],
    device: &str,
    survey: &Survey,
    there: &BTreeSet<Route>,
    made: &mut FileDraft,
) -> (&'static str, String) {
    let items: Vec<&Item> = items.iter().filter(|item| item.device() == Some(device)).collect();
    let kind = match survey.link(device).and_then(|link| link.kind.as_deref()) {
        Some("bridge") => "bridges",
        Some("bond") => "bonds",
        Some("wireguard") => "tunnels",
        _ => "ethernets",
    };
    let mut text = String::new();
    for item in links(&items) {
        let offload = |name: &str| format!("      {name}: {}\n", if item.is("on") { "true" } else { "false" });
        match item.key {
            "mtu" => text.push_str(&format!("      mtu: {}\n", item.value)),
            "offload-tso" => text.push_str(&offload("tcp-segmentation-offload")),
            "offload-gso" => text.push_str(&offload("generic-segmentation-offload")),
            "offload-gro" => text.push_str(&offload("generic-receive-offload")),
            "offload-lro" => text.push_str(&offload("large-receive-offload")),
            "offload-rx-checksum" => text.push_str(&offload("receive-checksum-offload")),
            _ => made.skip(item, "netplan has no such value of a device"),
        }
    }
    let routes: String = by_route(&items)
        .into_iter()
        .filter_map(|(route, settings)| netplan_route(route, &settings, there, made))
        .collect();
    if !routes.is_empty() {
        let _ = write!(text, "      routes:\n{routes}");
    }
    if text.is_empty() { (kind, text) } else { (kind, format!("    {}:\n{text}", yaml_word(device))) }
}

fn netplan_route(
    route: &RouteItem,
    settings: &[&Item],
    there: &BTreeSet<Route>,
    made: &mut FileDraft,
) -> Option<String> {
    let lines = netplan_settings(settings, made);
    if lines.is_empty() {
        return None;
    }
    let to = if route.is_default() && route.gateway.is_some() { "default".to_owned() } else { route.network.clone() };
    let mut text = String::new();
    if is_among(there, route) {
        text.push_str("        # In the place of the entry that makes this route already: netplan takes nothing from a second one.\n");
    }
    let _ = writeln!(text, "        - to: \"{to}\"");
    match route.gateway {
        Some(gateway) => drop(writeln!(text, "          via: \"{gateway}\"")),
        None => text.push_str("          scope: link\n"),
    }
    if let Some(metric) = route.metric {
        let _ = writeln!(text, "          metric: {metric}");
    }
    Some(text + &lines)
}

/// Lines for what a route of netplan can have.
pub(crate) fn netplan_settings(settings: &[&Item], made: &mut FileDraft) -> String {
    let mut lines = String::new();
    for item in settings {
        match (item.key, item.number()) {
            ("initcwnd", Some(number)) => drop(writeln!(lines, "          congestion-window: {number}")),
            ("initrwnd", Some(number)) => drop(writeln!(lines, "          advertised-receive-window: {number}")),
            ("mtu", Some(number)) => drop(writeln!(lines, "          mtu: {number}")),
            ("mss", _) => made.skip(item, "netplan before 1.1 has no advertised MSS of routes"),
            _ => made.skip(item, "netplan has no such value of a route"),
        }
    }
    lines
}

// nmstate.

/// # Source
/// The types `RouteEntry`, `EthtoolConfig` and `BaseInterface` of nmstate 2.2.
pub(super) fn nmstate(items: &[Item], survey: &Survey) -> Files {
    let mut made = FileDraft::default();
    let devices = by_device(items, &mut made, "nmstate has no settings of the whole host; see --to sysctl.d");
    let (mut interfaces, mut routes) = (String::new(), String::new());
    for (device, items) in devices {
        interfaces.push_str(&nmstate_interface(device, &links(&items), survey, &mut made));
        for (route, settings) in by_route(&items) {
            routes.push_str(&nmstate_route(route, &settings, &mut made).unwrap_or_default());
        }
    }
    let mut text = String::new();
    if !interfaces.is_empty() {
        let _ = write!(text, "interfaces:\n{interfaces}");
    }
    if !routes.is_empty() {
        let _ = write!(text, "routes:\n  config:\n{routes}");
    }
    let file = ExportFile { path: "windtunnel-nmstate.yml".to_owned(), content: format!("{FIRST_LINE}{text}") };
    (if text.is_empty() { Vec::new() } else { vec![file] }, made.skipped)
}

fn nmstate_interface(device: &str, items: &[&Item], survey: &Survey, made: &mut FileDraft) -> String {
    let (mut top, mut features, mut rings) = (String::new(), String::new(), String::new());
    for item in items {
        match item.key {
            "mtu" => drop(writeln!(top, "  mtu: {}", item.value)),
            "ring-rx" => drop(writeln!(rings, "      rx: {}", item.value)),
            "ring-tx" => drop(writeln!(rings, "      tx: {}", item.value)),
            key if key.starts_with("offload-") => {
                let names = crate::knob::Knob::find(key).ok().and_then(|knob| knob.link);
                let Some(crate::knob::LinkKnob::Features(names)) = names else { continue };
                for name in names {
                    let _ = writeln!(features, "      {name}: {}", item.is("on"));
                }
            }
            _ => made.skip(item, "nmstate has no such value of a device"),
        }
    }
    if top.is_empty() && features.is_empty() && rings.is_empty() {
        return String::new();
    }
    let kind = survey.link(device).and_then(|link| link.kind.as_deref()).unwrap_or("ethernet");
    let kind = match kind {
        "bridge" => "linux-bridge",
        known @ ("bond" | "vlan" | "veth" | "dummy" | "vxlan") => known,
        _ => "ethernet",
    };
    let mut text = format!("- name: {}\n  type: {kind}\n  state: up\n{top}", yaml_word(device));
    if !features.is_empty() || !rings.is_empty() {
        text.push_str("  ethtool:\n");
        for (name, lines) in [("feature", features), ("ring", rings)] {
            if !lines.is_empty() {
                let _ = write!(text, "    {name}:\n{lines}");
            }
        }
    }
    text
}

fn nmstate_route(route: &RouteItem, settings: &[&Item], made: &mut FileDraft) -> Option<String> {
    let mut lines = BTreeSet::new();
    for item in settings {
        match (item.key, item.number()) {
            ("initcwnd" | "initrwnd", Some(number)) => drop(lines.insert(format!("    {}: {number}\n", item.key))),
            ("mtu", Some(number)) => {
                lines.extend([format!("    mtu: {number}\n"), "    lock-mtu: true\n".to_owned()]);
            }
            ("mss", Some(number)) => drop(lines.insert(format!("    advmss: {number}\n"))),
            ("quickack", None) => drop(lines.insert(format!("    quickack: {}\n", item.is("on")))),
            _ => made.skip(item, "nmstate has no such value of a route"),
        }
    }
    if lines.is_empty() {
        return None;
    }
    let device = yaml_word(&route.device);
    let mut text = format!("  - destination: {}\n    next-hop-interface: {device}\n", route.network);
    if let Some(gateway) = route.gateway {
        let _ = writeln!(text, "    next-hop-address: {gateway}");
    }
    if let Some(metric) = route.metric {
        let _ = writeln!(text, "    metric: {metric}");
    }
    Some(text + &lines.into_iter().collect::<String>())
}
