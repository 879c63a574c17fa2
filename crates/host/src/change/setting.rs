use crate::knob::Value;
use crate::snapshot::{RouteIndex, Snapshot};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wt_sys::route::Route;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SettingChange)]
pub struct Change {
    /// The setting.
    pub key: String,
    /// Its value now.
    pub old: Value,
    /// Its value then.
    pub new: Value,
    /// `host`, `route`, `link` or `connection`.
    pub scope: ScopeName,
    /// Which route or device, or the kernel setting.
    pub target: String,
    /// Of a route, which version of IP it is for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub family: Option<RouteFamily>,
    /// Why here, and why at all if somebody said so.
    pub why: String,
    /// What was asked, where that is more than the value: `4x`, `from-mtu`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked: Option<Value>,
    /// Whether it is so already.
    pub unchanged: bool,
    /// Where to look for the value.
    #[serde(default)]
    pub place: Place,
}

impl Change {
    /// Whether it was so already on the route that leads to its target, and there is none of its own.
    pub(crate) fn is_idle(&self, wanted: &Snapshot) -> bool {
        let Place::Route(key) = &self.place else { return false };
        self.unchanged && RouteIndex::of(&wanted.routes).get_hex(key).is_none()
    }
}

/// The version of IP that a route is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RouteFamily {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl RouteFamily {
    /// That of a route.
    pub(crate) fn of(route: &Route) -> Self {
        if route.is_v6() { Self::Ipv6 } else { Self::Ipv4 }
    }
}

/// The narrowest place that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeName {
    /// Every connection of the host.
    Host,
    /// Connections that use a route.
    Route,
    /// A device.
    Link,
    /// Connections with one target.
    Connection,
}

/// Where a value is found in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = SettingPlace)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Among the kernel settings.
    #[default]
    Host,
    /// On the route with this key.
    Route(String),
    /// On the device of this name.
    Link(String),
    /// On connections with this target.
    Connections(String),
}

/// What could go wrong, or was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Risk {
    /// The setting.
    pub key: String,
    /// In words.
    pub text: String,
}

impl Risk {
    /// A note for people on a setting.
    pub(crate) fn new(key: &str, text: impl Into<String>) -> Self {
        Self { key: key.to_owned(), text: text.into() }
    }
}
