use super::kernel::KernelVersion;
use crate::change::{Change, Place};
use crate::knob::{ConnectionKnob, HostKnob, Kind, Knob, LinkKnob, RouteKnob, Value, three};
use crate::route_text::FEATURE_ECN;
use crate::snapshot::{DeviceState, RouteIndex, Snapshot};
use wt_bpf::ConnectionRule;
use wt_sys::route::{Metric, Metrics};

/// A snapshot in which the values of many changes are looked for.
pub(crate) struct Values<'a> {
    snapshot: &'a Snapshot,
    kernel: KernelVersion,
    routes: RouteIndex<'a>,
}

impl<'a> Values<'a> {
    /// The values of a snapshot of this kernel.
    pub(crate) fn of(snapshot: &'a Snapshot, kernel: KernelVersion) -> Self {
        Self { snapshot, kernel, routes: RouteIndex::of(&snapshot.routes) }
    }

    /// The value that is there; `None` when the place is gone.
    pub(crate) fn get(&self, change: &Change) -> Option<Value> {
        let knob = Knob::find(&change.key).ok()?;
        match &change.place {
            Place::Host => host_value(knob, self.snapshot, self.kernel),
            Place::Link(name) => link_value(knob, self.snapshot.devices.get(name)?),
            Place::Route(key) => route_value(knob, &self.routes.get_hex(key)?.metrics()),
            Place::Connections(target) => connection_value(knob, self.snapshot.connections_with(target)),
        }
    }
}

/// The setting as it is for the whole host.
#[must_use]
pub(crate) fn host_value(knob: &Knob, snapshot: &Snapshot, kernel: KernelVersion) -> Option<Value> {
    let host = knob.host?;
    let text = snapshot.sysctls.get(host.sysctl())?;
    Some(match host {
        HostKnob::Sysctl(_) => knob.decode(text),
        HostKnob::Greatest(_) => Value::Number(three(text)?[2]),
        HostKnob::Window => Value::Number(window_of_buffer(three(text)?[2], snapshot, kernel)),
    })
}

/// How much of a receive buffer becomes window.
///
/// # Source
/// ip-sysctl.rst, `tcp_adv_win_scale`; since Linux 6.6 the kernel begins with a half and follows what arrives.
#[must_use]
pub(crate) fn window_of_buffer(buffer: u64, snapshot: &Snapshot, kernel: KernelVersion) -> u64 {
    match win_scale(snapshot, kernel) {
        scale @ 1..=31 => buffer - (buffer >> scale),
        scale => buffer >> scale.unsigned_abs().min(31),
    }
}

/// The least receive buffer that gives a window.
#[must_use]
pub(crate) fn buffer_of_window(window: u64, snapshot: &Snapshot, kernel: KernelVersion) -> u64 {
    let (mut low, mut high) = (window, window.saturating_mul(1 << 12));
    while low < high {
        let middle = low + (high - low) / 2;
        if window_of_buffer(middle, snapshot, kernel) >= window {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Half of an odd buffer is a strange window.
    low.next_multiple_of(2)
}

fn win_scale(snapshot: &Snapshot, kernel: KernelVersion) -> i32 {
    let set = snapshot.sysctls.get("net.ipv4.tcp_adv_win_scale").and_then(|text| text.trim().parse().ok());
    if kernel < KernelVersion(6, 6, 0) { set.unwrap_or(1) } else { 1 }
}

/// The setting as a rule for connections has it; `None` for what such rules don't have.
#[must_use]
pub(crate) fn connection_value(knob: &Knob, rule: Option<&ConnectionRule>) -> Option<Value> {
    let of = |rule: &ConnectionRule| match knob.connection? {
        ConnectionKnob::Window => rule.window,
        ConnectionKnob::SendBuffer => rule.send_buffer,
        ConnectionKnob::UnsentLowWater => rule.unsent_low_water,
    };
    knob.connection?;
    Some(rule.and_then(of).map_or(Value::Auto, |number| Value::Number(u64::from(number))))
}

/// The setting as a route has it; `None` for what routes don't have.
#[must_use]
pub(crate) fn route_value(knob: &Knob, metrics: &Metrics) -> Option<Value> {
    let number = |number: Option<u32>| number.map_or(Value::Auto, |number| Value::Number(u64::from(number)));
    Some(match knob.route? {
        RouteKnob::Number(metric) | RouteKnob::Locked(metric) if matches!(knob.kind, Kind::Choice(_)) => {
            metrics.get(metric).map_or(Value::Auto, |bit| Value::word(if bit == 0 { "off" } else { "on" }))
        }
        RouteKnob::Number(metric) | RouteKnob::Locked(metric) => number(metrics.get(metric)),
        RouteKnob::Ecn => {
            let features = metrics.get(Metric::Features).unwrap_or(0);
            if features & FEATURE_ECN == 0 { Value::Auto } else { Value::word("on") }
        }
        RouteKnob::Congctl => metrics.congctl().map_or(Value::Auto, Value::word),
    })
}

/// The setting as a device has it; `None` for what devices, or this one, don't have.
#[must_use]
pub(crate) fn link_value(knob: &Knob, device: &DeviceState) -> Option<Value> {
    Some(match knob.link? {
        LinkKnob::Mtu => Value::Number(u64::from(device.mtu)),
        LinkKnob::QueueLen => Value::Number(u64::from(device.queue_len)),
        LinkKnob::Qdisc => Value::word(&device.qdisc.kind),
        LinkKnob::RxRing => Value::Number(u64::from(device.rings?.0)),
        LinkKnob::TxRing => Value::Number(u64::from(device.rings?.1)),
        LinkKnob::Features(names) => {
            let known: Vec<bool> = names.iter().filter_map(|name| device.active.get(*name).copied()).collect();
            if known.is_empty() {
                return None;
            }
            Value::word(if known.iter().any(|on| *on) { "on" } else { "off" })
        }
    })
}
