use super::chain::{Assignment, Chain};
use super::findings::{self, Finding};
use super::kernel::{Caveat, caveats};
use super::survey::{Survey, host_value, link_value, route_value, window_of_buffer};
use crate::knob::{ALL, HostKnob, Knob, LinkKnob, Value, three};
use crate::persist::DROP_IN_NAME;
use crate::route_text::{self, FEATURE_ECN, protocol_name};
use crate::txn::Pending;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::link::Link;
use wt_sys::route::{KIND_UNICAST, Metric, Route};

/// The version of the JSON that [`Report`] becomes.
const SCHEMA_VERSION: u32 = 1;

/// Everything that `settings show` shows.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of this form.
    pub schema_version: u32,
    /// The kernel's release.
    pub kernel: String,
    /// What follows from it.
    pub caveats: Vec<Caveat>,
    /// The device that the default route leads through.
    pub default_adapter: Option<String>,
    /// Network devices.
    pub adapters: Vec<Adapter>,
    /// Congestion controls.
    pub congestion: Congestion,
    /// Every setting.
    pub knobs: Vec<KnobRow>,
    /// Every route.
    pub routes: Vec<RouteRow>,
    /// Programs that set things too.
    pub managers: Vec<String>,
    /// Changes that wait for a confirmation.
    pub pending: Option<Pending>,
    /// What could be better, and why.
    pub findings: Vec<Finding>,
    /// Findings that are there but muted.
    pub muted: Vec<String>,
}

/// A network device.
#[derive(Debug, Clone, Serialize)]
pub struct Adapter {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// The driver, or the kind of a virtual device.
    pub driver: Option<String>,
    /// Version of the driver.
    pub driver_version: Option<String>,
    /// Version of the firmware.
    pub firmware: Option<String>,
    /// Where it is plugged in.
    pub bus: Option<String>,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether there is a signal.
    pub carrier: bool,
    /// Mbit/s.
    pub speed_mbps: Option<u32>,
    /// `full` or `half`.
    pub duplex: Option<&'static str>,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Least MTU.
    pub min_mtu: Option<u32>,
    /// Largest MTU.
    pub max_mtu: Option<u32>,
    /// Root qdisc.
    pub qdisc: String,
    /// Queue length, packets.
    pub txqueuelen: u32,
    /// Offloads by our names.
    pub offloads: BTreeMap<&'static str, bool>,
    /// Descriptors.
    pub rings: Option<RingRow>,
    /// Hardware address.
    pub mac: Option<String>,
    /// Addresses with the bits of their networks.
    pub addresses: Vec<String>,
    /// Whether the default route leads through it.
    pub default_route: bool,
    /// Who configures it.
    pub managed_by: Option<String>,
}

/// Descriptors.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RingRow {
    /// To receive.
    pub rx: u32,
    /// At most.
    pub rx_max: u32,
    /// To send.
    pub tx: u32,
    /// At most.
    pub tx_max: u32,
}

/// Congestion controls.
#[derive(Debug, Clone, Serialize)]
pub struct Congestion {
    /// That of new connections.
    pub current: String,
    /// Registered.
    pub available: Vec<String>,
    /// That every program may choose.
    pub allowed: Vec<String>,
    /// Not loaded, but there.
    pub loadable: Vec<String>,
}

/// A setting.
#[derive(Debug, Clone, Serialize)]
pub struct KnobRow {
    /// Its name.
    pub key: &'static str,
    /// What it is set to; `null` where this kernel or namespace doesn't have it.
    pub value: Option<Value>,
    /// The kernel's name for it.
    pub sysctl: Option<&'static str>,
    /// Where this value holds: `host`, `route`, `link`, `socket`.
    pub scope: &'static str,
    /// Which route or device.
    pub target: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
    /// What the kernel does by itself, if that is known.
    pub default: Option<Value>,
    /// What keeps the value from having its full effect: a limit, or the default route's own value.
    pub clamped_by: Option<String>,
    /// Who else sets it.
    pub managed_by: Option<String>,
    /// What it is.
    pub help: &'static str,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// `file`, `kernel-default`, `run-time`, `route`, `link`, `socket`, `absent`.
    pub kind: &'static str,
    /// The file whose line won.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<usize>,
}

impl Origin {
    fn of(kind: &'static str) -> Self {
        Self { kind, file: None, line: None }
    }
}

/// A route.
#[derive(Debug, Clone, Serialize)]
pub struct RouteRow {
    /// Where it leads: `default`, `192.0.2.0/24`.
    pub to: String,
    /// 4 or 6.
    pub family: u8,
    /// The next router.
    pub via: Option<String>,
    /// The device.
    pub dev: Option<String>,
    /// The table.
    pub table: u32,
    /// Who made it.
    pub proto: String,
    /// Its priority: the lowest wins.
    pub metric: u32,
    /// The address that packets are sent from.
    pub src: Option<String>,
    /// Segments.
    pub initcwnd: Option<u32>,
    /// Segments.
    pub initrwnd: Option<u32>,
    /// Bytes.
    pub advmss: Option<u32>,
    /// Bytes.
    pub mtu: Option<u32>,
    /// Bytes.
    pub window: Option<u32>,
    /// Congestion control.
    pub congctl: Option<String>,
    /// Time to live.
    pub hoplimit: Option<u32>,
    /// Such as `ecn`.
    pub features: Vec<String>,
    /// Milliseconds.
    pub rto_min: Option<u32>,
    /// Acknowledge at once.
    pub quickack: Option<bool>,
    /// Every other metric.
    pub other: BTreeMap<&'static str, u32>,
    /// Metrics that the kernel may not change.
    pub locked: Vec<&'static str>,
    /// In short.
    pub text: String,
}

impl Report {
    /// Makes the report. `muted` are the ids of findings that nobody wants to see.
    #[must_use]
    pub fn of(survey: &Survey, pending: Option<Pending>, history: &[Finding], muted: &BTreeSet<String>) -> Self {
        Self::at(survey, None, pending, history, muted)
    }

    /// Makes the report with the settings of devices as this one has them, rather than the one that carries the default
    /// route.
    #[must_use]
    pub fn at(
        survey: &Survey,
        adapter_name: Option<&str>,
        pending: Option<Pending>,
        history: &[Finding],
        muted: &BTreeSet<String>,
    ) -> Self {
        let named = adapter_name.and_then(|name| survey.link(name));
        // Where no device stands out, the first that is up is as good an example as any.
        let first = || survey.devices.links.iter().find(|link| link.up && !link.loopback);
        let main = named.or_else(|| survey.main_link()).or_else(first);
        let knobs: Vec<KnobRow> = ALL.iter().map(|knob| row(knob, survey, main)).collect();
        let mut all = history.to_vec();
        all.extend(findings::find(survey, &knobs, pending.as_ref()));
        let (muted, findings) = all.into_iter().partition::<Vec<_>, _>(|finding| muted.contains(&finding.id));
        Self {
            schema_version: SCHEMA_VERSION,
            kernel: survey.identity.kernel.clone(),
            caveats: caveats(survey.kernel()),
            default_adapter: survey.main_link().map(|link| link.name.clone()),
            adapters: survey.devices.links.iter().map(|link| adapter(link, survey)).collect(),
            congestion: congestion(survey),
            knobs,
            routes: survey.snapshot.routes.iter().map(|route| route_row(route, survey)).collect(),
            managers: managers(survey),
            pending,
            findings,
            muted: muted.into_iter().map(|finding| finding.id).collect(),
        }
    }
}

impl RouteRow {
    /// Whether somebody gave it a value of its own.
    #[must_use]
    pub fn has_metrics(&self) -> bool {
        let numbers = [
            self.initcwnd,
            self.initrwnd,
            self.advmss,
            self.mtu,
            self.window,
            self.hoplimit,
            self.rto_min,
            self.quickack.map(u32::from),
        ];
        let named = self.congctl.is_some() || !self.features.is_empty();
        named || numbers.iter().any(Option::is_some) || !self.other.is_empty()
    }
}

fn adapter(link: &Link, survey: &Survey) -> Adapter {
    let details = survey.details.get(&link.name).cloned().unwrap_or_default();
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let driver = details.driver.as_ref();
    let state = survey.snapshot.devices.get(&link.name);
    let offload = |knob: &Knob| {
        let on = matches!(knob.link, Some(LinkKnob::Features(_))).then(|| link_value(knob, state?)).flatten()?;
        Some((knob.name, on == Value::word("on")))
    };
    let addresses = survey.devices.addresses.iter().filter(|address| address.device == link.index);
    Adapter {
        name: link.name.clone(),
        index: link.index,
        driver: driver.and_then(|driver| text(&driver.name)).or_else(|| link.kind.clone()),
        driver_version: driver.and_then(|driver| text(&driver.version)),
        firmware: driver.and_then(|driver| text(&driver.firmware)),
        bus: driver.and_then(|driver| text(&driver.bus)),
        up: link.up,
        carrier: link.carrier,
        speed_mbps: details.mode.and_then(|mode| mode.speed_mbps),
        duplex: details.mode.and_then(|mode| mode.full_duplex).map(|full| if full { "full" } else { "half" }),
        mtu: link.mtu,
        min_mtu: link.min_mtu,
        max_mtu: link.max_mtu,
        qdisc: state.map_or_else(|| link.qdisc.clone(), |state| state.qdisc.kind.clone()),
        txqueuelen: link.tx_queue_len,
        offloads: ALL.iter().filter_map(offload).collect(),
        rings: details.rings.map(|r| RingRow { rx: r.rx, rx_max: r.rx_max, tx: r.tx, tx_max: r.tx_max }),
        mac: Some(link.address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
            .filter(|mac| !mac.is_empty()),
        addresses: addresses.map(|address| format!("{}/{}", address.address, address.prefix)).collect(),
        default_route: survey.default_routes().iter().any(|route| route.uses(link.index)),
        managed_by: survey.managers.devices.get(&link.name).map(ToString::to_string),
    }
}

fn congestion(survey: &Survey) -> Congestion {
    let words = |name: &str| -> Vec<String> {
        let text = survey.snapshot.sysctls.get(name).cloned().unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let loaded = &survey.available_cc;
    Congestion {
        current: words(crate::snapshot::CC).pop().unwrap_or_default(),
        available: loaded.clone(),
        allowed: words(crate::snapshot::ALLOWED_CC),
        loadable: survey.loadable_cc.iter().filter(|name| !loaded.contains(name)).cloned().collect(),
    }
}

fn managers(survey: &Survey) -> Vec<String> {
    let mut found = BTreeSet::new();
    if let Some(tuned) = &survey.managers.tuned {
        found.insert(format!("tuned (profile {}, reapply_sysctl={})", tuned.profile, u8::from(tuned.reapplies_sysctl)));
    }
    found.extend(survey.managers.devices.values().map(|manager| manager.kind.name().to_owned()));
    if survey.managers.netplan {
        found.insert("netplan".to_owned());
    }
    found.into_iter().collect()
}

fn row(knob: &Knob, survey: &Survey, main: Option<&Link>) -> KnobRow {
    let (scope, value, origin, target) = place(knob, survey, main);
    let managed_by = match scope {
        "host" => knob.host.and_then(|host| sysctl_manager(host.sysctl(), survey)),
        "socket" => None,
        _ => main.and_then(|link| survey.managers.devices.get(&link.name)).map(ToString::to_string),
    };
    KnobRow {
        key: knob.name,
        sysctl: knob.host.map(HostKnob::sysctl),
        scope,
        target,
        origin,
        default: knob.sure_default().map(|text| knob.decode(text)),
        clamped_by: value.as_ref().and_then(|value| clamp(knob, value, survey, main)),
        value,
        managed_by,
        help: knob.help,
    }
}

/// Where the value that is shown holds, what it is, where it comes from, and the route or device.
fn place(knob: &Knob, survey: &Survey, main: Option<&Link>) -> (&'static str, Option<Value>, Origin, Option<String>) {
    if let Some(host) = knob.host {
        let value = host_value(knob, &survey.snapshot, survey.kernel());
        let origin = if value.is_some() { sysctl_origin(knob, host.sysctl(), survey) } else { Origin::of("absent") };
        return ("host", value, origin, None);
    }
    if knob.link.is_some() {
        let state = main.and_then(|link| survey.snapshot.devices.get(&link.name));
        let value = state.and_then(|state| link_value(knob, state));
        let kind = if value.is_some() { "link" } else { "absent" };
        return ("link", value, Origin::of(kind), main.map(|link| link.name.clone()));
    }
    if knob.route.is_some() {
        let default = survey.default_routes().into_iter().next();
        let value = default.and_then(|route| route_value(knob, &route.metrics())).unwrap_or(Value::Auto);
        let kind = if value == Value::Auto { "kernel-default" } else { "route" };
        return (
            "route",
            Some(value),
            Origin::of(kind),
            default.map(|route| route_text::short(route, &survey.names())),
        );
    }
    ("socket", Some(Value::Auto), Origin::of("socket"), knob.socket.map(str::to_owned))
}

fn sysctl_origin(knob: &Knob, name: &str, survey: &Survey) -> Origin {
    let now = survey.snapshot.sysctls.get(name).map(String::as_str).unwrap_or_default();
    let same = |line: &&Assignment| crate::snapshot::same_text(name, &line.value, now);
    if let Some(line) = survey.chain.winner(name).filter(same) {
        return Origin { kind: "file", file: Some(line.file.display().to_string()), line: Some(line.line) };
    }
    let is_default = match knob.host {
        Some(HostKnob::Sysctl(_)) | None => knob.may_be_default(now),
        // A part of a setting that is a setting of its own.
        Some(_) => ALL.iter().any(|other| {
            matches!(other.host, Some(HostKnob::Sysctl(whole)) if whole == name) && other.may_be_default(now)
        }),
    };
    let overridden = survey.chain.winner(name).is_some();
    Origin::of(if is_default && !overridden { "kernel-default" } else { "run-time" })
}

/// Who sets a kernel setting besides us: a drop-in that is read after ours, or tuned.
pub(crate) fn sysctl_manager(name: &str, survey: &Survey) -> Option<String> {
    if let Some(line) = late_line(&survey.chain, name) {
        return Some(format!("{}:{} (read after {DROP_IN_NAME}, so it wins at boot)", line.file.display(), line.line));
    }
    let tuned = survey.managers.tuned.as_ref().filter(|tuned| tuned.sysctls.contains(name))?;
    let wins =
        if tuned.reapplies_sysctl { "sysctl.d wins: reapply_sysctl=1" } else { "wins over sysctl.d: reapply_sysctl=0" };
    Some(format!("tuned profile {} ({wins})", tuned.profile))
}

/// The line that wins over our drop-in at boot.
pub(crate) fn late_line<'a>(chain: &'a Chain, name: &str) -> Option<&'a Assignment> {
    chain.winner(name).filter(|line| {
        let file = line.file.file_name().unwrap_or_default().to_string_lossy();
        file == "sysctl.conf" || *file > *DROP_IN_NAME
    })
}

/// What keeps a value from having its full effect.
fn clamp(knob: &Knob, value: &Value, survey: &Survey, main: Option<&Link>) -> Option<String> {
    routed(knob, value, survey).or_else(|| limit(knob, value, survey, main))
}

/// The default route's own value, which wins over that of the host or the device for what goes through it.
fn routed(knob: &Knob, value: &Value, survey: &Survey) -> Option<String> {
    if knob.host.is_none() && knob.link.is_none() {
        return None;
    }
    survey.default_routes().into_iter().find_map(|route| {
        let own = route_value(knob, &route.metrics())?;
        let says = own != Value::Auto && own != *value;
        says.then(|| format!("{}: {}={own}", route_text::short(route, &survey.names()), knob.name))
    })
}

/// Another setting that bounds a value.
fn limit(knob: &Knob, value: &Value, survey: &Survey, main: Option<&Link>) -> Option<String> {
    let number = |name: &str| survey.snapshot.sysctls.get(name)?.trim().parse::<u64>().ok();
    let greatest = |name: &str| survey.snapshot.sysctls.get(name).and_then(|text| three(text)).map(|sizes| sizes[2]);
    let above = |ours: Option<u64>, name: &str| {
        let limit = number(name)?;
        (ours? > limit).then(|| format!("{name}={limit}"))
    };
    match knob.name {
        "rwin" | "tcp-rmem" => {
            let scaled =
                survey.snapshot.sysctls.get("net.ipv4.tcp_window_scaling").is_none_or(|text| text.trim() != "0");
            if knob.name == "rwin" && !scaled && value.number() > Some(65_535) {
                return Some("net.ipv4.tcp_window_scaling=0".to_owned());
            }
            above(greatest("net.ipv4.tcp_rmem"), "net.core.rmem_max")
        }
        "sndbuf" | "tcp-wmem" => above(greatest("net.ipv4.tcp_wmem"), "net.core.wmem_max"),
        "initrwnd" => {
            let initial = survey.snapshot.sysctls.get("net.ipv4.tcp_rmem").and_then(|text| three(text))?[1];
            let window = window_of_buffer(initial, &survey.snapshot, survey.kernel());
            let asked = value.number()?.saturating_mul(u64::from(main?.mtu).saturating_sub(40));
            (asked > window).then(|| format!("net.ipv4.tcp_rmem's initial {initial}: {window} bytes of window"))
        }
        "max-syn-backlog" => above(value.number(), "net.core.somaxconn"),
        "mss" => {
            let most = u64::from(main?.mtu).saturating_sub(40);
            (value.number()? > most).then(|| format!("mtu={}", main.map_or(0, |link| link.mtu)))
        }
        _ => None,
    }
}

fn route_row(route: &Route, survey: &Survey) -> RouteRow {
    let names = survey.names();
    let (hops, metrics) = (route.hops(), route.metrics());
    let only = if hops.len() == 1 { hops.first() } else { None };
    let shown = [
        Metric::Initcwnd,
        Metric::Initrwnd,
        Metric::Advmss,
        Metric::Mtu,
        Metric::Window,
        Metric::Hoplimit,
        Metric::Features,
        Metric::RtoMin,
        Metric::Quickack,
    ];
    let others = Metric::ALL.into_iter().filter(|metric| !shown.contains(metric));
    let features = metrics.get(Metric::Features).unwrap_or(0);
    let mut feature_names = Vec::new();
    if features & FEATURE_ECN != 0 {
        feature_names.push("ecn".to_owned());
    }
    if features & !FEATURE_ECN != 0 {
        feature_names.push(format!("{:#x}", features & !FEATURE_ECN));
    }
    RouteRow {
        to: route_text::destination(route),
        family: if route.is_v6() { 6 } else { 4 },
        via: only.and_then(|hop| hop.gateway).map(|gateway| gateway.to_string()),
        dev: only.filter(|hop| hop.device != 0).map(|hop| names.get(hop.device)),
        table: route.table(),
        proto: protocol_name(route.protocol()),
        metric: route.priority(),
        src: route.source().map(|source| source.to_string()),
        initcwnd: metrics.get(Metric::Initcwnd),
        initrwnd: metrics.get(Metric::Initrwnd),
        advmss: metrics.get(Metric::Advmss),
        mtu: metrics.get(Metric::Mtu),
        window: metrics.get(Metric::Window),
        congctl: metrics.congctl().map(str::to_owned),
        hoplimit: metrics.get(Metric::Hoplimit),
        features: feature_names,
        rto_min: metrics.get(Metric::RtoMin),
        quickack: metrics.get(Metric::Quickack).map(|bit| bit != 0),
        other: others.filter_map(|metric| Some((metric.name(), metrics.get(metric)?))).collect(),
        locked: Metric::ALL.into_iter().filter(|metric| metrics.is_locked(*metric)).map(Metric::name).collect(),
        text: format!("{}{}", route_text::short(route, &names), route_text::metrics(&metrics)),
    }
}

/// Whether a route is an ordinary way to somewhere.
pub(crate) fn is_unicast(route: &Route) -> bool {
    route.kind() == KIND_UNICAST
}
