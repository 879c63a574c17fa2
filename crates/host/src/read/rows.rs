use crate::knob::Value;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A network device.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
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
#[derive(Debug, Clone, Serialize, ToSchema)]
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
#[derive(Debug, Clone, Serialize, ToSchema)]
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
    #[schema(value_type = Option<String>)]
    pub clamped_by: Option<Clamp>,
    /// Who else sets it.
    pub managed_by: Option<String>,
    /// What it is.
    pub help: &'static str,
}

/// What keeps a value from having its full effect. In JSON it is its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clamp {
    /// The default route's own value, which wins over that of the host or the device for what goes through it.
    Route {
        /// The route, in short.
        route: String,
        /// The setting.
        key: &'static str,
        /// Its value on the route.
        own: Value,
    },
    /// Without window scaling no window exceeds 65535 bytes.
    NoWindowScaling,
    /// Another setting bounds it: which, and at what.
    Limit(String),
}

impl std::fmt::Display for Clamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Route { route, key, own } => write!(f, "{route}: {key}={own}"),
            Self::NoWindowScaling => f.write_str("net.ipv4.tcp_window_scaling=0"),
            Self::Limit(text) => f.write_str(text),
        }
    }
}

impl Serialize for Clamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SettingOrigin)]
pub struct Origin {
    /// `file`, `kernel-default`, `run-time`, `route`, `link`, `socket`, `absent`.
    pub kind: &'static str,
    /// The file whose line won.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<usize>,
}

impl Origin {
    /// One without a file.
    pub(crate) fn of(kind: &'static str) -> Self {
        Self { kind, file: None, line: None }
    }
}

/// A route.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
