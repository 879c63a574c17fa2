use super::chain::Chain;
use super::kernel::KernelVersion;
use super::manager::Managers;
use crate::knob::{HostKnob, Knob, LinkKnob, RouteKnob, Value, three};
use crate::route_text::{FEATURE_ECN, Names};
use crate::snapshot::{DeviceState, Snapshot};
use crate::system::{Details, Devices, Identity, System};
use std::collections::BTreeMap;
use wt_sys::SysResult;
use wt_sys::link::Link;
use wt_sys::route::{KIND_UNICAST, Metrics, Route, TABLE_MAIN};

/// Everything that is known of the host at one moment.
#[derive(Debug, Clone)]
pub struct Survey {
    /// What can be changed.
    pub snapshot: Snapshot,
    /// Devices, addresses, qdiscs.
    pub devices: Devices,
    /// What drivers say.
    pub details: BTreeMap<String, Details>,
    /// What files set at boot.
    pub chain: Chain,
    /// Who else sets things.
    pub managers: Managers,
    /// Machine, boot, namespace, user.
    pub identity: Identity,
    /// Congestion controls that the kernel has loaded.
    pub available_cc: Vec<String>,
    /// Congestion controls that it could load.
    pub loadable_cc: Vec<String>,
}

impl Survey {
    /// Looks at everything.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn take(system: &mut dyn System) -> SysResult<Self> {
        let devices = system.devices()?;
        let details = devices.links.iter().map(|link| (link.name.clone(), system.details(&link.name))).collect();
        let snapshot = Snapshot::of(system, &devices, &details)?;
        let identity = system.identity();
        let available = system.sysctl("net.ipv4.tcp_available_congestion_control")?.unwrap_or_default();
        Ok(Self {
            managers: Managers::find(system, &devices.links),
            chain: Chain::read(system)?,
            loadable_cc: loadable_cc(system, &identity.kernel),
            available_cc: available.split_whitespace().map(str::to_owned).collect(),
            snapshot,
            devices,
            details,
            identity,
        })
    }

    /// Names of devices.
    #[must_use]
    pub fn names(&self) -> Names {
        Names::of(&self.devices.links)
    }

    /// The device of this name.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.devices.links.iter().find(|link| link.name == name)
    }

    /// The best default routes: one of IPv4, one of IPv6, as far as there are.
    #[must_use]
    pub fn default_routes(&self) -> Vec<&Route> {
        let best = |v6: bool| {
            let defaults = self.snapshot.routes.iter().filter(|route| {
                route.is_v6() == v6
                    && route.destination().1 == 0
                    && route.table() == TABLE_MAIN
                    && route.kind() == KIND_UNICAST
            });
            defaults.min_by_key(|route| route.priority())
        };
        [best(false), best(true)].into_iter().flatten().collect()
    }

    /// The device that most traffic goes through: the default route's, or else the only one that is up.
    #[must_use]
    pub fn main_link(&self) -> Option<&Link> {
        let routed =
            self.default_routes().into_iter().flat_map(Route::hops).map(|hop| hop.device).find(|device| *device != 0);
        if let Some(index) = routed {
            return self.devices.links.iter().find(|link| link.index == index);
        }
        let mut up = self.devices.links.iter().filter(|link| link.up && !link.loopback);
        up.next().filter(|_| up.next().is_none())
    }

    /// The version of the kernel.
    #[must_use]
    pub fn kernel(&self) -> KernelVersion {
        KernelVersion::of(&self.identity.kernel)
    }

    /// Whether a device has addresses of IPv6, which it loses, and its settings with them, below an MTU of 1280.
    #[must_use]
    pub fn has_ipv6(&self, device: u32) -> bool {
        self.devices.addresses.iter().any(|address| address.device == device && address.address.is_ipv6())
    }
}

/// Modules `tcp_…` of this kernel.
fn loadable_cc(system: &mut dyn System, release: &str) -> Vec<String> {
    let path = format!("/lib/modules/{release}/modules.dep");
    let Ok(Some(bytes)) = system.read_file(std::path::Path::new(&path)) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let module = |line: &str| {
        let file = line.split(':').next()?.rsplit('/').next()?;
        let name = file.split('.').next()?.strip_prefix("tcp_")?;
        Some(name.to_owned())
    };
    text.lines().filter(|line| line.contains("/net/ipv4/tcp_")).filter_map(module).collect()
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

/// The setting as a route has it; `None` for what routes don't have.
#[must_use]
pub(crate) fn route_value(knob: &Knob, metrics: &Metrics) -> Option<Value> {
    let number = |number: Option<u32>| number.map_or(Value::Auto, |number| Value::Number(u64::from(number)));
    Some(match knob.route? {
        RouteKnob::Number(metric) | RouteKnob::Locked(metric) if matches!(knob.kind, crate::knob::Kind::Choice(_)) => {
            metrics.get(metric).map_or(Value::Auto, |bit| Value::word(if bit == 0 { "off" } else { "on" }))
        }
        RouteKnob::Number(metric) | RouteKnob::Locked(metric) => number(metrics.get(metric)),
        RouteKnob::Ecn => {
            let features = metrics.get(wt_sys::route::Metric::Features).unwrap_or(0);
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
