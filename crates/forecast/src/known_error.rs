use crate::calibrate::{TablePath, table_paths};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use utoipa::ToSchema;
use wt_lab::Scenario;
use wt_lab::scenario::{Direction as Way, Hop, Link};
use wt_trial::{Direction, Workload};

/// The result of `windtunnel calibrate --json`, without its rows.
const SHIPPED: &str = include_str!("../data/calibration.json");

/// What the model's error is taken as where it was never compared with a kernel.
const UNKNOWN_ERROR: f64 = 0.1;
/// The same of one flow beside others: in mixes of flows the completion times of one congestion control are off by so much at worst.
const MIX_ERROR: f64 = 0.2;
/// A path is like one of the table if its rate and its RTT are within this factor of that one's.
const LIKE: f64 = 4.0;
/// Bytes that an acknowledgement takes at most on the links of the table: two ATM cells.
const ACK_BYTES: f64 = 106.0;
/// More loss than this isn't like any of the table: twice the most there.
const MOST_LOSS: f64 = 0.1;

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
        if self.region == "grid" { "10 to 1000 Mbit/s" } else { &self.region }
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

/// The table's paths, made once.
fn compared() -> &'static [TablePath] {
    static PATHS: OnceLock<Vec<TablePath>> = OnceLock::new();
    PATHS.get_or_init(table_paths)
}

/// Whether a way has nothing but what the table's have: a drop-tail queue, a rate, a delay, and losses by themselves.
fn is_plain(way: &Way) -> bool {
    way.line.is_none() && way.jitter.is_zero() && way.before.is_empty() && way.after.is_empty()
}

/// Whether a link is such a one both ways, behind a plain router; a host there changes nothing.
fn is_compared(link: &Link, hosts_mtu: u32) -> bool {
    let is_router = Hop { host: None, ..link.hop.clone() } == Hop::default();
    let is_black_hole = !link.icmp && link.mtu.get() < u64::from(hosts_mtu);
    is_router && !is_black_hole && !link.half_duplex && is_plain(&link.down) && is_plain(&link.up)
}

/// Whether a link's way back carries an acknowledgement for every other full packet. Where it doesn't, acknowledgements queue and get
/// lost, and which of them decides; the model was up to a quarter off there.
fn has_room_for_acks(link: &Link, direction: Direction, hosts_mtu: u32) -> bool {
    let (there, back) = match direction {
        Direction::Down => (link.down.rate.get(), link.up.rate.get()),
        Direction::Up => (link.up.rate.get(), link.down.rate.get()),
    };
    let full = link.mtu.get().min(u64::from(hosts_mtu)) as f64;
    back as f64 * 2.0 * full >= there as f64 * ACK_BYTES
}

/// The region of the table's path that is most like this one for payload in a direction; none where none is like it.
fn region_of(scenario: &Scenario, direction: Direction) -> Option<&'static str> {
    let hosts_mtu = scenario.client_mtu.min(scenario.server_mtu);
    let is_like = |link: &Link| is_compared(link, hosts_mtu) && has_room_for_acks(link, direction, hosts_mtu);
    if !scenario.links.iter().all(is_like) {
        return None;
    }
    let ways = |link: &Link| match direction {
        Direction::Down => (link.down.loss.get(), link.up.loss.get(), link.down.rate.get()),
        Direction::Up => (link.up.loss.get(), link.down.loss.get(), link.up.rate.get()),
    };
    let (mut lost, mut lost_back, mut rate) = (0.0, 0.0, u64::MAX);
    for (there, back, bps) in scenario.links.iter().map(ways) {
        (lost, lost_back, rate) = (lost + there, lost_back + back, rate.min(bps));
    }
    if lost > MOST_LOSS || lost_back > 0.0 {
        return None;
    }
    let rtt = scenario.facts(direction).rtt_us;
    let distance = |path: &TablePath| {
        let by = |a: u64, b: u64| (a.max(1) as f64 / b.max(1) as f64).ln().abs();
        (by(path.rate_bps, rate), by(path.rtt_us, rtt))
    };
    let like = compared().iter().filter(|path| path.lossy == (lost > 0.0)).map(|path| (path.region, distance(path)));
    let like = like.filter(|(_, (rate, rtt))| rate.max(*rtt) <= LIKE.ln());
    like.min_by(|(_, a), (_, b)| a.0.hypot(a.1).total_cmp(&b.0.hypot(b.1))).map(|(region, _)| region)
}

/// Whether more than one connection is busy at once, which the table has nowhere.
fn has_several_flows(workload: &Workload) -> bool {
    match workload {
        Workload::Page { page } => page.connections > 1,
        Workload::Duplex { .. } | Workload::Competing { .. } | Workload::Load { .. } => true,
        _ => false,
    }
}

/// The model's known error on paths like this one; none where it was never compared with a kernel on such a path, or in such a
/// workload.
pub(crate) fn error_on(scenario: &Scenario, workload: &Workload) -> Option<&'static KnownError> {
    let wanted = region_of(scenario, workload.direction()).filter(|_| !has_several_flows(workload))?;
    shipped().iter().find(|error| error.region == wanted)
}

/// What nine in ten of the model's answers are taken to be nearer than: the known error, or a guess.
pub(crate) fn taken_error(known: Option<&KnownError>, workload: &Workload) -> f64 {
    match (known, workload) {
        (Some(known), _) => known.p90,
        (None, Workload::Competing { .. }) => MIX_ERROR,
        (None, _) => UNKNOWN_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wt_lab::presets;
    use wt_trial::Amount;
    use wt_units::Bytes;

    #[test]
    fn a_path_is_judged_by_those_that_are_like_it() {
        for (name, region) in [
            ("dialup", "dial-up"),
            ("isdn", "dial-up"),
            ("adsl", "dsl"),
            ("adsl-2200", "dsl"),
            ("cdn-chain", "grid"),
            ("lan", "lan"),
            ("transatlantic", "lossy"),
        ] {
            let scenario = presets::load(name).unwrap();
            assert_eq!(region_of(&scenario, Direction::Down), Some(region), "{name}");
        }
        let adsl = presets::load("adsl").unwrap();
        assert_eq!(region_of(&adsl, Direction::Up), None, "1 Mbit/s over 30 ms is like none of the table");
    }

    #[test]
    fn what_was_never_compared_with_a_kernel_has_no_known_error() {
        let bulk = |name: &str| {
            let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(1_000_000)) };
            error_on(&presets::load(name).unwrap(), &workload)
        };
        for (name, why) in [
            ("lte", "a radio"),
            ("wifi", "another"),
            ("leo-satellite", "jitter, and losses in bursts"),
            ("docsis", "PIE"),
            ("dialup-33k", "a modem"),
            ("ethernet-hub", "CSMA/CD"),
            ("market-data", "losses by size"),
            ("black-hole", "no ICMP"),
            ("datacentre-10g", "ten times the fastest of the table"),
            ("freebsd-scp", "3 % of the acknowledgements lost, too"),
        ] {
            assert_eq!(bulk(name), None, "{name}: {why}");
        }
        for name in presets::names() {
            let Some(known) = bulk(name) else { continue };
            assert!(known.median <= known.p90 && known.p90 <= known.worst && !known.kernel.is_empty(), "{name}");
        }
    }

    #[test]
    fn where_acknowledgements_are_the_bottleneck_no_error_is_known() {
        let with_uplink = |rate: &str| {
            let text = format!(
                "title = \"x\"\n[[link]]\nname = \"a\"\nmtu = 1500\n\
                 down = {{ rate = \"20mbit\", delay = \"10ms\", queue = \"50kB\" }}\n\
                 up = {{ rate = \"{rate}\", delay = \"10ms\", queue = \"50kB\" }}\n"
            );
            region_of(&Scenario::parse("x.toml", &text).unwrap(), Direction::Down)
        };
        assert_eq!(with_uplink("256kbit"), None, "a third of what acknowledgements take");
        assert!(with_uplink("1mbit").is_some());
    }

    #[test]
    fn several_flows_have_no_known_error_and_one_beside_others_the_largest_guess() {
        let adsl = presets::load("adsl").unwrap();
        let (direction, time) = (Direction::Down, Duration::from_secs(10));
        let soak = Workload::Soak { direction, time };
        let beside = Workload::Competing { direction, rivals: 3, time };
        assert!(error_on(&adsl, &soak).is_some());
        for workload in [Workload::Duplex { time }, Workload::Load { direction, time }, beside.clone()] {
            assert_eq!(error_on(&adsl, &workload), None, "{workload}");
        }
        assert!(taken_error(None, &beside) > taken_error(None, &soak));
        assert!(taken_error(error_on(&adsl, &soak), &soak) < 0.01);
    }
}
