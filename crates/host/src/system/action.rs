use crate::route_text::{self, Names};
use serde::{Deserialize, Serialize};
use wt_bpf::ConnectionRule;
use wt_sys::route::Route;
use wt_units::shell_word;

/// One change in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Action {
    /// Writes a kernel setting.
    Sysctl {
        /// Its name.
        name: String,
        /// What to write.
        value: String,
    },
    /// Sets a device's MTU.
    Mtu {
        /// The device.
        device: Device,
        /// Bytes.
        mtu: u32,
    },
    /// Sets a device's queue length.
    QueueLen {
        /// The device.
        device: Device,
        /// Packets.
        packets: u32,
    },
    /// Makes a qdisc the root of a device.
    Qdisc {
        /// The device.
        device: Device,
        /// What it is.
        kind: String,
        /// Its handle; 0 lets the kernel choose.
        handle: u32,
        /// Its parameters as the kernel describes them, in hexadecimal digits.
        options: String,
    },
    /// Removes the root qdisc of a device, so that the kernel's default takes its place.
    DefaultQdisc {
        /// The device.
        device: Device,
    },
    /// Switches an offload.
    Feature {
        /// The device.
        device: Device,
        /// The kernel's name of it.
        feature: String,
        /// Which way.
        on: bool,
    },
    /// Sets ring sizes.
    Rings {
        /// The device.
        device: Device,
        /// To receive.
        rx: u32,
        /// To send.
        tx: u32,
    },
    /// Adds a route.
    AddRoute {
        /// The route.
        #[serde(with = "as_text")]
        route: Route,
    },
    /// Adds a route where others have the same key, as fe80::/64 on each device.
    AppendRoute {
        /// The route.
        #[serde(with = "as_text")]
        route: Route,
    },
    /// Puts a route in the place of the one with the same key.
    ReplaceRoute {
        /// The route.
        #[serde(with = "as_text")]
        route: Route,
    },
    /// Removes a route.
    DeleteRoute {
        /// The route.
        #[serde(with = "as_text")]
        route: Route,
    },
    /// Gives new connections with a target their settings.
    AddConnections {
        /// Target and settings.
        #[serde(with = "as_text")]
        rule: ConnectionRule,
    },
    /// Takes that away again.
    RemoveConnections {
        /// Target and settings.
        #[serde(with = "as_text")]
        rule: ConnectionRule,
    },
}

/// A device, by the name that people know and the index that doesn't pass to another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
}

impl Action {
    /// The command that would do the same.
    #[must_use]
    pub fn command(&self, names: &Names) -> String {
        let on = |device: &Device| shell_word(&device.name).into_owned();
        match self {
            Self::Sysctl { name, value } => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || "-_.".contains(c);
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                match (value.chars().all(is_plain), value.contains(' ')) {
                    (true, true) => format!("sysctl -w {name}=\"{value}\""),
                    _ => format!("sysctl -w {}", shell_word(&format!("{name}={value}"))),
                }
            }
            Self::Mtu { device, mtu } => format!("ip link set dev {} mtu {mtu}", on(device)),
            Self::QueueLen { device, packets } => format!("ip link set dev {} txqueuelen {packets}", on(device)),
            Self::Qdisc { device, kind, .. } => {
                format!("tc qdisc replace dev {} root {}", on(device), shell_word(kind))
            }
            Self::DefaultQdisc { device } => format!("tc qdisc del dev {} root", on(device)),
            Self::Feature { device, feature, on: wanted } => {
                let wanted = if *wanted { "on" } else { "off" };
                format!("ethtool -K {} {} {wanted}", on(device), shell_word(feature))
            }
            Self::Rings { device, rx, tx } => format!("ethtool -G {} rx {rx} tx {tx}", on(device)),
            Self::AddRoute { route } => route_text::command("add", route, names),
            Self::AppendRoute { route } => route_text::command("append", route, names),
            Self::ReplaceRoute { route } => route_text::command("change", route, names),
            Self::DeleteRoute { route } => route_text::command("del", route, names),
            Self::AddConnections { rule } => {
                format!(
                    "# attach a BPF program that sets {} on connections with {}",
                    options(rule),
                    route_text::network(rule.address, rule.bits)
                )
            }
            Self::RemoveConnections { rule } => {
                format!(
                    "# detach the BPF program that sets {} on connections with {}",
                    options(rule),
                    route_text::network(rule.address, rule.bits)
                )
            }
        }
    }

    /// What it changes: a kernel setting, a device or a route.
    #[must_use]
    pub fn subject(&self, names: &Names) -> String {
        match self {
            Self::Sysctl { name, .. } => name.clone(),
            Self::Mtu { device, .. }
            | Self::QueueLen { device, .. }
            | Self::Qdisc { device, .. }
            | Self::DefaultQdisc { device }
            | Self::Feature { device, .. }
            | Self::Rings { device, .. } => device.name.clone(),
            Self::AddRoute { route }
            | Self::AppendRoute { route }
            | Self::ReplaceRoute { route }
            | Self::DeleteRoute { route } => route_text::short(route, names),
            Self::AddConnections { rule } | Self::RemoveConnections { rule } => {
                route_text::network(rule.address, rule.bits)
            }
        }
    }

    /// Whether a wrong value of it can cut this machine off.
    #[must_use]
    pub fn can_cut_off(&self) -> bool {
        !matches!(self, Self::Sysctl { .. } | Self::AddConnections { .. } | Self::RemoveConnections { .. })
    }
}

/// The options of setsockopt(2) that a rule sets.
fn options(rule: &ConnectionRule) -> String {
    let options = [
        ("TCP_WINDOW_CLAMP", rule.window),
        ("SO_SNDBUF", rule.send_buffer),
        ("TCP_NOTSENT_LOWAT", rule.unsent_low_water),
    ];
    let words = options.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    words.collect::<Vec<_>>().join(" ")
}

/// What has a text that is read again: a route is the kernel's message in hexadecimal digits.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(super) fn serialize<T: Display, S: Serializer>(what: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(what)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
