use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use utoipa::ToSchema;
use wt_lab::Scenario;
use wt_trial::PathFacts;

/// The result of `windtunnel calibrate --json`, without its rows.
const SHIPPED: &str = include_str!("../data/calibration.json");

#[derive(Debug, Deserialize)]
struct Calibration {
    kernel: String,
    regions: Vec<KnownError>,
}

/// The model's error in one part of the world, as shares of the completion time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KnownError {
    /// The part of the world: `dsl`, `lossy`, `grid`, …
    pub region: String,
    /// The kernel that the model was compared with.
    #[serde(default)]
    pub kernel: String,
    /// Transfers that were compared.
    #[serde(rename(deserialize = "rows"))]
    pub transfers: u32,
    /// Half of the transfers are nearer than this.
    pub median: f64,
    /// Nine in ten are nearer than this.
    pub p90: f64,
    /// None was farther away.
    pub worst: f64,
}

impl KnownError {
    /// Which paths it holds for, in words.
    #[must_use]
    pub fn paths(&self) -> &str {
        if self.region == "grid" { "fast long-distance" } else { &self.region }
    }
}

/// The shipped errors, read once.
fn shipped() -> &'static [KnownError] {
    static ERRORS: OnceLock<Vec<KnownError>> = OnceLock::new();
    ERRORS.get_or_init(|| {
        let Ok(Calibration { kernel, mut regions }) = serde_json::from_str(SHIPPED) else { return Vec::new() };
        regions.iter_mut().for_each(|region| region.kernel.clone_from(&kernel));
        regions
    })
}

/// The region that a path belongs to, as the table of `calibrate` has them.
fn region_of(scenario: &Scenario, facts: &PathFacts) -> &'static str {
    let lossy = scenario.links.iter().any(|link| link.down.loss.get() > 0.0 || link.up.loss.get() > 0.0);
    let rate = scenario.bottleneck().down.rate.get();
    match facts.rtt_us {
        _ if lossy => "lossy",
        _ if rate < 200_000 => "dial-up",
        rtt if rtt < 10_000 => "lan",
        // Rows of 100 and 1000 Mbit/s with RTTs of 20 and 100 ms.
        rtt if rtt <= 250_000 && rate >= 75_000_000 => "grid",
        rtt if rtt >= 100_000 => "long",
        _ if rate < 15_000_000 => "dsl",
        _ => "web",
    }
}

/// The model's known error on paths like this one.
pub(crate) fn error_on(scenario: &Scenario, facts: &PathFacts) -> Option<&'static KnownError> {
    let wanted = region_of(scenario, facts);
    shipped().iter().find(|error| error.region == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_lab::presets;
    use wt_trial::Direction;

    #[test]
    fn a_path_is_judged_by_those_that_are_like_it() {
        for (name, region) in [
            ("dialup", "dial-up"),
            ("adsl", "dsl"),
            ("lte", "web"),
            ("cdn-chain", "grid"),
            ("geo-satellite", "long"),
            ("lan", "lan"),
            ("freebsd-scp", "lossy"),
        ] {
            let scenario = presets::load(name).unwrap();
            assert_eq!(region_of(&scenario, &scenario.facts(Direction::Down)), region, "{name}");
        }
    }

    #[test]
    fn every_shipped_path_has_a_known_error() {
        for name in presets::names() {
            let scenario = presets::load(name).unwrap();
            let region = error_on(&scenario, &scenario.facts(Direction::Down));
            let region = region.unwrap_or_else(|| panic!("{name} has no region"));
            assert!(region.median <= region.p90 && region.p90 <= region.worst && !region.kernel.is_empty(), "{name}");
        }
    }
}
