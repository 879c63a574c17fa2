use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use utoipa::ToSchema;

/// The experiment that a change rests on, and what was so when it was measured: whether its verdict still applies later is
/// seen by looking again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = ChangeBasis)]
pub struct Basis {
    /// The experiment's name in the journal.
    pub experiment: String,
    /// Where it was measured: `lab`, `live`.
    pub tunnel: String,
    /// What it was measured on: `adsl`, `example.org`.
    pub target: String,
    /// When it began, seconds since 1970.
    pub measured_unix_s: u64,
    /// The name of the host that measured.
    pub host: Option<String>,
    /// The release of the kernel that measured.
    pub kernel: Option<String>,
    /// What was fetched, of what curl can fetch.
    #[serde(default)]
    pub url: Option<String>,
    /// The server, where this host measured a real path to it.
    #[schema(value_type = Option<String>)]
    pub server: Option<SocketAddr>,
    /// The smallest RTT of all trials, µs; of a real path only.
    pub rtt_us: Option<u64>,
    /// The largest IP packet of the path with what is recommended, bytes; of a real path only.
    pub path_mtu: Option<u64>,
    /// The device towards the server, or else of the default route, when the change was planned.
    #[serde(default)]
    pub device: Option<BasisDevice>,
}

/// A device that carried what was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChangeBasisDevice)]
pub struct BasisDevice {
    /// Its name.
    pub name: String,
    /// Its driver, if it says so.
    pub driver: Option<String>,
    /// Its speed, Mbit/s, if it says so.
    pub speed_mbps: Option<u32>,
}

impl std::fmt::Display for BasisDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        let speed = self.speed_mbps.map(|speed| format!("{speed} Mbit/s"));
        let parts: Vec<String> = self.driver.clone().into_iter().chain(speed).collect();
        if parts.is_empty() { Ok(()) } else { write!(f, " ({})", parts.join(", ")) }
    }
}
