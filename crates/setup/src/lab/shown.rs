use super::load;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;
use wt_lab::scenario::{DescribedStage, Direction, Link, QueueBound};
use wt_lab::{Scenario, presets};
use wt_problem::Problem;

/// The shipped paths.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PresetsAnswer {
    /// 1.
    pub schema_version: u32,
    /// Each of them.
    pub presets: Vec<Preset>,
}

/// A shipped path.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
}

/// A path: its links, and what follows from its figures.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ScenarioAnswer {
    /// 1.
    pub schema_version: u32,
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Where its figures come from.
    pub source: String,
    /// MTU of the client's device, bytes.
    pub client_mtu: u32,
    /// MTU of the server's device, bytes.
    pub server_mtu: u32,
    /// Its links, from the client to the server.
    pub links: Vec<LinkShown>,
    /// What follows.
    pub path: PathShown,
    /// The most payload that full-sized TCP segments carry, in the long run.
    pub physical_goodput_bps: BothWays<u64>,
}

/// One value for each direction.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BothWays<T> {
    /// To the client.
    pub down: T,
    /// To the server.
    pub up: T,
}

/// What follows from a path's figures.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PathShown {
    /// From a full-sized segment to its ACK on the idle path, µs.
    pub rtt_us: u64,
    /// The largest packet that gets through, bytes.
    pub pmtu: u64,
    /// Bandwidth-delay product, bytes.
    pub bdp_bytes: u64,
}

/// A link.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LinkShown {
    /// Its name.
    pub name: String,
    /// The largest packet that it takes, bytes.
    pub mtu: u64,
    /// Whether the router in front of it reports longer packets.
    pub icmp: bool,
    /// What a packet occupies on it.
    pub framing: String,
    /// Whether only one end can send at a time.
    pub half_duplex: bool,
    /// To the client.
    pub down: DirectionShown,
    /// To the server.
    pub up: DirectionShown,
    /// The router in front of it.
    pub hop: HopShown,
}

/// One direction of a link.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DirectionShown {
    /// Bits on the wire.
    pub rate_bps: u64,
    /// Propagation, µs.
    pub delay_us: u64,
    /// Standard deviation of the delay, µs.
    pub jitter_us: u64,
    /// What the queue in front of it holds.
    pub queue: QueueShown,
    /// Share of packets lost at random.
    pub loss: f64,
    /// What packets pass, in order: each with its field `stage` and its figures as texts.
    #[schema(value_type = Vec<HashMap<String, String>>)]
    pub stages: Vec<BTreeMap<&'static str, String>>,
}

/// What a queue holds.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueShown {
    /// So many bytes.
    Bytes(u64),
    /// So many packets.
    Packets(u64),
}

/// The router in front of a link.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HopShown {
    /// What it does to packets, in words.
    pub does: Vec<String>,
    /// Whether it translates addresses.
    pub nat: bool,
    /// The host that stands in its place, if one does.
    pub host: Option<HostShown>,
}

/// A host on the way.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HostShown {
    /// Its name.
    pub name: String,
    /// Its MTU, bytes.
    pub mtu: u32,
}

/// The shipped paths.
///
/// # Errors
/// None in practice: they are checked by tests.
pub fn list() -> Result<PresetsAnswer, Problem> {
    let preset = |name| load(name).map(|Scenario { name, title, .. }| Preset { name, title });
    let presets = presets::names().into_iter().map(preset).collect::<Result<_, _>>()?;
    Ok(PresetsAnswer { schema_version: 1, presets })
}

/// A path: its links, and what follows from its figures.
///
/// # Errors
/// Those of [`load`].
pub fn show(path: &str) -> Result<ScenarioAnswer, Problem> {
    load(path).map(|scenario| ScenarioAnswer::of(&scenario))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl ScenarioAnswer {
    /// What there is to show of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let full = scenario.full_size(scenario.pmtu());
        let bdp = full.goodput_down * full.rtt;
        let most = |direction| scenario.goodput_at_most(direction).get();
        Self {
            schema_version: 1,
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            client_mtu: scenario.client_mtu,
            server_mtu: scenario.server_mtu,
            links: scenario.links.iter().map(|link| LinkShown::of(scenario, link)).collect(),
            path: PathShown { rtt_us: micros(full.rtt), pmtu: full.pmtu, bdp_bytes: bdp.get() },
            physical_goodput_bps: BothWays { down: most(wt_trial::Direction::Down), up: most(wt_trial::Direction::Up) },
        }
    }
}

impl LinkShown {
    fn of(scenario: &Scenario, link: &Link) -> Self {
        let [up, down] = scenario.described(link);
        let host = link.hop.host.as_ref().map(|host| HostShown { name: host.name.clone(), mtu: host.mtu });
        Self {
            name: link.name.clone(),
            mtu: link.mtu.get(),
            icmp: link.icmp,
            framing: link.framing_name.clone(),
            half_duplex: link.half_duplex,
            down: DirectionShown::of(&link.down, &down),
            up: DirectionShown::of(&link.up, &up),
            hop: HopShown { does: link.hop.describe(), nat: link.hop.nat.is_some(), host },
        }
    }
}

impl DirectionShown {
    fn of(direction: &Direction, stages: &[DescribedStage]) -> Self {
        let stage = |stage: &DescribedStage| {
            let name = ("stage", stage.stage.to_owned());
            std::iter::once(name).chain(stage.fields.iter().cloned()).collect()
        };
        Self {
            rate_bps: direction.rate.get(),
            delay_us: micros(direction.delay),
            jitter_us: micros(direction.jitter),
            queue: match direction.queue {
                QueueBound::Bytes(bytes) => QueueShown::Bytes(bytes.get()),
                QueueBound::Packets(packets) => QueueShown::Packets(packets.into()),
            },
            loss: direction.loss.get(),
            stages: stages.iter().map(stage).collect(),
        }
    }
}
