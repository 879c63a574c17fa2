use super::kernel::caveats;
use super::rows::{Clamp, KnobRow};
use super::survey::Survey;
use crate::change::{DROP_IN, DROP_IN_NAME, Pending, Phase};
use crate::knob::Value;
use crate::snapshot::same_text;
use serde::Serialize;
use utoipa::ToSchema;
use wt_sys::route::Metric;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// May cost speed, or surprise.
    Warning,
    /// Costs speed or connections.
    Problem,
}

/// Something worth knowing, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Finding {
    /// Stays the same from version to version, so that it can be muted.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What, and why.
    pub text: String,
}

impl Finding {
    /// A finding.
    pub(crate) fn new(id: impl Into<String>, severity: Severity, text: impl Into<String>) -> Self {
        Self { id: id.into(), severity, text: text.into() }
    }
}

/// A setting that is seldom right, and why.
struct Rule {
    id: &'static str,
    key: &'static str,
    value: &'static str,
    severity: Severity,
    text: &'static str,
}

const RULES: [Rule; 9] = [
    Rule {
        id: "sack-off",
        key: "sack",
        value: "off",
        severity: Severity::Problem,
        text: "selective acknowledgements are off: with several losses in a window, each costs a round trip",
    },
    Rule {
        id: "window-scaling-off",
        key: "window-scaling",
        value: "off",
        severity: Severity::Problem,
        text: "window scaling is off: no connection can have more than 64 KiB on the way, so 50 ms of RTT allow 10 Mbit/s",
    },
    Rule {
        id: "timestamps-off",
        key: "timestamps",
        value: "off",
        severity: Severity::Info,
        text: "TCP timestamps are off: fewer RTT samples, and no protection against wrapped sequence numbers",
    },
    Rule {
        id: "autotuning-off",
        key: "moderate-rcvbuf",
        value: "off",
        severity: Severity::Problem,
        text: "receive buffers don't grow: the window stays at its initial size",
    },
    Rule {
        id: "pmtud-off",
        key: "pmtud",
        value: "off",
        severity: Severity::Warning,
        text: "path MTU discovery is off: packets may be cut up on the way",
    },
    Rule {
        id: "mtu-probing-off",
        key: "mtu-probing",
        value: "off",
        severity: Severity::Info,
        text: "black-hole detection is off: where ICMP is filtered and the MTU is smaller than ours, connections hang",
    },
    Rule {
        id: "slow-start-after-idle",
        key: "slow-start-after-idle",
        value: "on",
        severity: Severity::Info,
        text: "connections that were idle start slowly again: costs round trips where requests come in bursts",
    },
    Rule {
        id: "metrics-saved",
        key: "no-metrics-save",
        value: "off",
        severity: Severity::Info,
        text: "the kernel remembers RTT and threshold of past connections: one measurement can influence the next",
    },
    Rule {
        id: "dctcp-host-wide",
        key: "cc",
        value: "dctcp",
        severity: Severity::Problem,
        text: "dctcp is the default: outside of a data centre whose routers mark for it, it starves or is starved",
    },
];

/// What could be better, most important first.
pub(crate) fn find(survey: &Survey, knobs: &[KnobRow], pending: Option<&Pending>) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(pending) = pending {
        found.push(unconfirmed(pending));
    }
    for rule in &RULES {
        if knobs.iter().any(|row| row.key == rule.key && row.value == Some(Value::word(rule.value))) {
            found.push(Finding::new(rule.id, rule.severity, rule.text));
        }
    }
    found.extend(knobs.iter().filter_map(clamped));
    found.extend(overridden(survey, knobs));
    found.extend(devices(survey));
    found.extend(routes(survey));
    let old = caveats(survey.kernel()).into_iter().filter(|caveat| caveat.limits);
    found.extend(old.map(|caveat| Finding::new(caveat.id, Severity::Warning, caveat.text)));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// A change that waits for its confirmation, or couldn't be put back.
fn unconfirmed(change: &Pending) -> Finding {
    let (id, left) = (change.id, change.seconds_left);
    if change.phase == Phase::RevertFailed {
        let text = format!("change {id} couldn't be put back whole: windtunnel settings undo {id} tries again");
        return Finding::new("revert-failed", Severity::Problem, text);
    }
    let text = if change.guarded {
        format!(
            "change {id} waits for its confirmation and is put back in {left} s: windtunnel settings confirm, or undo"
        )
    } else {
        format!(
            "change {id} waits for its confirmation, but its guard is gone: the next windtunnel settings after {left} s puts it back"
        )
    };
    Finding::new("unconfirmed", Severity::Warning, text)
}

fn clamped(row: &KnobRow) -> Option<Finding> {
    let by = row.clamped_by.as_ref()?;
    if let Clamp::Route { .. } = by {
        let text = format!("{by}: for what goes through it, that counts and not {}={}", row.key, row.value.as_ref()?);
        return Some(Finding::new(format!("{}-on-route", row.key), Severity::Info, text));
    }
    let text = match row.key {
        "rwin" if *by == Clamp::NoWindowScaling => format!("the receive window can't exceed 65535 bytes: {by}"),
        "rwin" => format!(
            "tcp_rmem allows more than {by}: buffers that grow by themselves may, programs that ask for one (SO_RCVBUF) get {by} at most"
        ),
        "sndbuf" => format!(
            "tcp_wmem allows more than {by}: buffers that grow by themselves may, programs that ask for one (SO_SNDBUF) get {by} at most"
        ),
        "tcp-rmem" | "tcp-wmem" => return None,
        key => format!("{key} is limited by {by}"),
    };
    Some(Finding::new(format!("{}-clamped", row.key), Severity::Info, text))
}

/// Files that don't have the effect that they seem to have.
fn overridden(survey: &Survey, knobs: &[KnobRow]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for row in knobs {
        let Some(name) = row.sysctl.filter(|name| seen.insert(*name)) else { continue };
        let Some(now) = survey.snapshot.sysctls.get(name) else { continue };
        let lines = survey.chain.all(name);
        if let Some(line) = lines.last().filter(|line| !same_text(name, &line.value, now)) {
            let place = format!("{}:{}", line.file.display(), line.line);
            let text = format!(
                "{name} is {} now, but {place} sets {}: somebody changed it since boot",
                now.trim().replace('\t', " "),
                line.value
            );
            found.push(Finding::new(format!("changed-since-boot-{}", row.key), Severity::Warning, text));
        }
        if let [.., loser, winner] = &lines[..]
            && !same_text(name, &loser.value, &winner.value)
        {
            let text = format!(
                "{name} is set in {}:{} and again, otherwise, in {}:{}, which wins",
                loser.file.display(),
                loser.line,
                winner.file.display(),
                winner.line
            );
            found.push(Finding::new(format!("set-twice-{}", row.key), Severity::Warning, text));
        }
        let ours = lines.iter().any(|line| line.file.ends_with(DROP_IN_NAME));
        if let (true, Some(late)) = (ours, survey.chain.after_ours(name)) {
            let text =
                format!("{}:{} is read after {} and wins for {name} at boot", late.file.display(), late.line, DROP_IN);
            found.push(Finding::new(format!("later-drop-in-{}", row.key), Severity::Problem, text));
        }
    }
    if let Some(tuned) = survey.managers.tuned.as_ref().filter(|tuned| !tuned.sysctls.is_empty()) {
        let text = format!(
            "tuned's profile {} sets {} kernel settings of the network whenever it starts",
            tuned.profile,
            tuned.sysctls.len()
        );
        found.push(Finding::new("tuned-active", Severity::Warning, text));
    }
    found
}

fn devices(survey: &Survey) -> Vec<Finding> {
    let mut found = Vec::new();
    for link in survey.devices.links.iter().filter(|link| link.up && !link.loopback) {
        let Some(details) = survey.details.get(&link.name) else { continue };
        if details.mode.and_then(|mode| mode.full_duplex) == Some(false) && link.carrier {
            let text = format!("{} runs at half duplex: it can't send and receive at once", link.name);
            found.push(Finding::new(format!("half-duplex-{}", link.name), Severity::Problem, text));
        }
        if let Some(rings) = details.rings.filter(|rings| rings.rx_max >= 4 * rings.rx.max(1)) {
            let text = format!(
                "{} receives into {} descriptors of {} possible: bursts may be lost",
                link.name, rings.rx, rings.rx_max
            );
            found.push(Finding::new(format!("small-ring-{}", link.name), Severity::Info, text));
        }
        if link.mtu < 1_280 {
            let text = format!("{} has an MTU of {}: IPv6 needs 1280", link.name, link.mtu);
            found.push(Finding::new(format!("mtu-below-ipv6-{}", link.name), Severity::Warning, text));
        }
    }
    found
}

fn routes(survey: &Survey) -> Vec<Finding> {
    let mut found = Vec::new();
    for route in survey.default_routes() {
        let metrics = route.metrics();
        let family = if route.is_v6() { "ipv6" } else { "ipv4" };
        if let Some(window) = metrics.get(Metric::Initcwnd).filter(|window| *window < 10) {
            let text = format!(
                "the default route ({family}) begins with {window} segments; the kernel's own 10 are more (RFC 6928)"
            );
            found.push(Finding::new(format!("initcwnd-low-{family}"), Severity::Warning, text));
        }
        let too_wide = |hop: &wt_sys::route::NextHop| {
            let link = survey.devices.links.iter().find(|link| link.index == hop.device)?;
            metrics.get(Metric::Mtu).filter(|mtu| *mtu > link.mtu).map(|mtu| (mtu, link))
        };
        if let Some((mtu, link)) = route.hops().iter().find_map(too_wide) {
            let text = format!("the default route ({family}) says MTU {mtu}, but {} has {}", link.name, link.mtu);
            found.push(Finding::new(format!("route-mtu-clamped-{family}"), Severity::Warning, text));
        }
    }
    found
}
