use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};
use wt_problem::Problem;

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum IpVersion {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

impl IpVersion {
    /// Whether an address is of it.
    #[must_use]
    pub fn has(self, address: std::net::IpAddr) -> bool {
        address.is_ipv6() == (self == Self::V6)
    }
}

/// What every operation that probes paths takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeOptions {
    /// The version of IP; what the name resolves to first if it isn't said.
    pub ip: Option<IpVersion>,
    /// Send as an ordinary user would: no raw sockets.
    pub unprivileged: bool,
    /// Packets a second at most; 2000 for each host and 20000 for all if it isn't said.
    pub pps: Option<u32>,
    /// The seed of everything random; from the clock if it isn't said.
    pub seed: Option<u64>,
}

impl ProbeOptions {
    /// Refuses rates that are out of range.
    ///
    /// # Errors
    /// A usage problem.
    pub fn check(&self) -> Result<(), Problem> {
        self.pps.map_or(Ok(()), |pps| within("packets a second", pps, 1, 100_000))
    }

    /// The seed that was given, or one from the clock.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(wt_sys::clock::monotonic_ns)
    }

    /// A generator for one machine.
    pub(crate) fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed());
        rng.set_stream(stream);
        rng
    }
}

/// Refuses a value out of range.
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(
    what: &str,
    value: T,
    least: T,
    most: T,
) -> Result<(), Problem> {
    if (&least..=&most).contains(&&value) {
        return Ok(());
    }
    Err(Problem::usage(format!("{value} {what} is out of range: allowed is {least} to {most}")))
}
