use crate::calibrate::{TablePath, table_paths, table_settings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use utoipa::ToSchema;
use wt_lab::Scenario;
use wt_lab::scenario::{Direction as Way, Hop, Link, QueueBound};
use wt_trial::{Direction, Workload};
use wt_units::{Knob, Settings};

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

/// Whether the queue that a link's payload waits in holds as many full packets as the shortest one of the table (eight). In a shorter one
/// a few microseconds decide which packets are lost: where it held two to five, the model, which always has the same ones, was 40 to 75 %
/// off.
fn has_room_for_bursts(link: &Link, direction: Direction, hosts_mtu: u32) -> bool {
    let way = if direction == Direction::Down { &link.down } else { &link.up };
    let packets = match way.queue {
        QueueBound::Packets(packets) => u64::from(packets),
        QueueBound::Bytes(bytes) => bytes.get() / link.mtu.get().min(u64::from(hosts_mtu)).max(1),
    };
    compared().iter().map(|path| path.queue_packets).min().is_some_and(|shortest| packets >= shortest)
}

/// The region of the table's path that is most like this one for payload in a direction; none where none is like it.
fn region_of(scenario: &Scenario, direction: Direction) -> Option<&'static str> {
    let hosts_mtu = scenario.client_mtu.min(scenario.server_mtu);
    let has_room =
        |link: &Link| has_room_for_acks(link, direction, hosts_mtu) && has_room_for_bursts(link, direction, hosts_mtu);
    let is_like = |link: &Link| is_compared(link, hosts_mtu) && has_room(link);
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

/// The model's known error on paths like this one; none where it was never compared with a kernel on such a path, or in such a
/// workload: the table has nothing but single transfers, and the longest of them takes a few seconds. It holds for settings without
/// [`uncompared_knobs`].
pub(crate) fn error_on(scenario: &Scenario, workload: &Workload) -> Option<&'static KnownError> {
    let Workload::Bulk { direction, .. } = workload else { return None };
    let wanted = region_of(scenario, *direction)?;
    shipped().iter().find(|error| error.region == wanted)
}

/// The knobs of settings with which the model was never compared with a kernel, on whatever path: no row of the table sets them, or none
/// this congestion control.
pub(crate) fn uncompared_knobs(settings: &Settings) -> Vec<Knob> {
    static SETTINGS: OnceLock<(BTreeSet<Knob>, BTreeSet<String>)> = OnceLock::new();
    let (knobs, controls) = SETTINGS.get_or_init(table_settings);
    let is_compared = |knob: Knob| match settings.name(Knob::Cc).filter(|_| knob == Knob::Cc) {
        Some(control) => controls.contains(control),
        None => knobs.contains(&knob),
    };
    settings.iter().map(|(knob, _)| knob).filter(|knob| !is_compared(*knob)).collect()
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
    use wt_trial::{Amount, Page, PageObject, Repeat};
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
    fn where_a_queue_holds_fewer_packets_than_any_of_the_table_no_error_is_known() {
        let with_queue = |queue: &str, mtu: u32, direction| {
            let text = format!(
                "title = \"x\"\n[[link]]\nname = \"a\"\nmtu = {mtu}\ndown = {{ rate = \"8mbit\", delay = \"15ms\", {queue} }}\n\
                 up = {{ rate = \"8mbit\", delay = \"15ms\", queue = \"64KiB\" }}\n"
            );
            region_of(&Scenario::parse("x.toml", &text).unwrap(), direction)
        };
        for queue in ["queue_packets = 3", "queue_packets = 7", "queue = \"8KiB\""] {
            assert_eq!(with_queue(queue, 1500, Direction::Down), None, "{queue}");
            assert!(with_queue(queue, 1500, Direction::Up).is_some(), "{queue}: acknowledgements fit in");
        }
        assert!(with_queue("queue_packets = 8", 1500, Direction::Down).is_some());
        assert!(with_queue("queue = \"8KiB\"", 576, Direction::Down).is_some(), "14 packets of 576 bytes");
    }

    #[test]
    fn the_model_was_compared_with_a_kernel_under_what_the_rows_of_the_table_set_and_nothing_else() {
        let uncompared = |text: &str| {
            let asked = text.split(',').map(|one| one.parse::<wt_units::Assignment>().unwrap());
            uncompared_knobs(&asked.map(|one| (one.knob, one.level)).collect())
        };
        for text in ["rwin=64KiB,cc=bbr", "mtu=1400,sack=off,timestamps=off", "initcwnd=40,window-scaling=off"] {
            assert_eq!(uncompared(text), [], "{text}");
        }
        for (text, knobs) in [
            ("sndbuf=32KiB,cc=cubic", &[Knob::Sndbuf][..]),
            ("rwin=64KiB,mss=536,ecn=on", &[Knob::Mss, Knob::Ecn]),
            ("cc=vegas", &[Knob::Cc]),
        ] {
            assert_eq!(uncompared(text), knobs, "{text}");
        }
    }

    #[test]
    fn only_single_transfers_have_a_known_error_and_one_flow_beside_others_the_largest_guess() {
        let adsl = presets::load("adsl").unwrap();
        let (direction, time) = (Direction::Down, Duration::from_secs(10));
        let transfer = Workload::Bulk { direction, amount: Amount::Time(time) };
        assert!(taken_error(error_on(&adsl, &transfer), &transfer) < 0.01);
        let beside = Workload::Competing { direction, rivals: 3, time };
        let (request, response, amount) = (Bytes(200), Bytes(10_000), Repeat::Time(time));
        let transactions = Workload::Transactions { request, response, think: Duration::ZERO, amount };
        let objects = vec![PageObject { path: None, size: response }];
        let page =
            Page { name: "page".to_owned(), objects, connections: 1, http2: false, close_each: false, tls: false };
        for workload in [
            transactions.clone(),
            Workload::Bursts { request, blocks: vec![response], pause: Duration::ZERO, amount },
            Workload::Stream { direction, message: request, interval: Duration::from_millis(20), time },
            Workload::Page { page },
            Workload::Soak { direction, time },
            Workload::Duplex { time },
            Workload::Load { direction, time },
            beside.clone(),
        ] {
            assert_eq!(error_on(&adsl, &workload), None, "{workload}");
        }
        assert!(taken_error(None, &beside) > taken_error(None, &transactions));
    }
}
