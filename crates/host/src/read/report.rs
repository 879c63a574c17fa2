use super::chain::Assignment;
use super::findings::{self, Finding};
use super::kernel::{Caveat, caveats};
use super::rows::{Adapter, Clamp, Congestion, KnobRow, Origin, RingRow, RouteRow};
use super::survey::Survey;
use super::values::{host_value, link_value, route_value, window_of_buffer};
use crate::change::Pending;
use crate::knob::{ALL, HostKnob, Knob, LinkKnob, Value, three};
use crate::route_text::{self, FEATURE_ECN, protocol_name};
use serde::Serialize;
use std::collections::BTreeSet;
use utoipa::ToSchema;
use wt_sys::link::Link;
use wt_sys::route::{Metric, Route};

/// The version of the JSON that [`Report`] becomes.
const SCHEMA_VERSION: u32 = 1;

/// Everything that `settings show` shows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = SettingsReport)]
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
        "host" => knob.host.and_then(|host| survey.sysctl_manager(host.sysctl())),
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

/// What keeps a value from having its full effect.
fn clamp(knob: &Knob, value: &Value, survey: &Survey, main: Option<&Link>) -> Option<Clamp> {
    routed(knob, value, survey).or_else(|| limit(knob, value, survey, main))
}

/// The default route's own value, which wins over that of the host or the device for what goes through it.
fn routed(knob: &Knob, value: &Value, survey: &Survey) -> Option<Clamp> {
    if knob.host.is_none() && knob.link.is_none() {
        return None;
    }
    survey.default_routes().into_iter().find_map(|route| {
        let own = route_value(knob, &route.metrics())?;
        let says = own != Value::Auto && own != *value;
        says.then(|| Clamp::Route { route: route_text::short(route, &survey.names()), key: knob.name, own })
    })
}

/// Another setting that bounds a value.
fn limit(knob: &Knob, value: &Value, survey: &Survey, main: Option<&Link>) -> Option<Clamp> {
    let number = |name: &str| survey.snapshot.sysctls.get(name)?.trim().parse::<u64>().ok();
    let greatest = |name: &str| survey.snapshot.sysctls.get(name).and_then(|text| three(text)).map(|sizes| sizes[2]);
    let above = |ours: Option<u64>, name: &str| {
        let limit = number(name)?;
        (ours? > limit).then(|| Clamp::Limit(format!("{name}={limit}")))
    };
    match knob.name {
        "rwin" | "tcp-rmem" => {
            let scaled =
                survey.snapshot.sysctls.get("net.ipv4.tcp_window_scaling").is_none_or(|text| text.trim() != "0");
            if knob.name == "rwin" && !scaled && value.number() > Some(65_535) {
                return Some(Clamp::NoWindowScaling);
            }
            above(greatest("net.ipv4.tcp_rmem"), "net.core.rmem_max")
        }
        "sndbuf" | "tcp-wmem" => above(greatest("net.ipv4.tcp_wmem"), "net.core.wmem_max"),
        "initrwnd" => {
            let initial = survey.snapshot.sysctls.get("net.ipv4.tcp_rmem").and_then(|text| three(text))?[1];
            let window = window_of_buffer(initial, &survey.snapshot, survey.kernel());
            let asked = value.number()?.saturating_mul(u64::from(main?.mtu).saturating_sub(40));
            (asked > window)
                .then(|| Clamp::Limit(format!("net.ipv4.tcp_rmem's initial {initial}: {window} bytes of window")))
        }
        "max-syn-backlog" => above(value.number(), "net.core.somaxconn"),
        "mss" => {
            let most = u64::from(main?.mtu).saturating_sub(40);
            (value.number()? > most).then(|| Clamp::Limit(format!("mtu={}", main.map_or(0, |link| link.mtu))))
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
