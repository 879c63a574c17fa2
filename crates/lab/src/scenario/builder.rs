use super::limits::{self, StageFault};
use super::sending::table_of;
use super::{Direction, Hop, Link, LossBy, QueueBound, Scenario};
use std::time::Duration;
use wt_link::{Discipline, RateConfig, StageConfig, WireLen};
use wt_units::{BitsPerSecond, Bytes, Ratio, format_duration};
use wt_wire::Framing;

/// Why a scenario that was put together can't be: the link, the field and what is allowed, as the reader of files says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidScenario {
    /// The link, the field and what is allowed.
    pub message: String,
}

impl From<String> for InvalidScenario {
    fn from(message: String) -> Self {
        Self { message }
    }
}

/// A radio that sends several packets at once, as a direction has it; framing, rate and queue are the direction's.
///
/// The fields mean what they do in [`wt_link::AirtimeConfig`].
#[derive(Debug, Clone, PartialEq)]
pub struct Radio {
    /// What an exchange costs besides the bits.
    pub access: Duration,
    /// Up to how much more of it, evenly at random.
    pub backoff: Duration,
    /// Exchanges begin at multiples of this.
    pub slot: Option<Duration>,
    /// The most packets of an exchange.
    pub max_packets: u32,
    /// The most bytes of an exchange.
    pub max_bytes: Bytes,
    /// How many packets fail at each attempt.
    pub failure: Ratio,
    /// After so many repeats a packet is given up.
    pub max_retries: u8,
    /// How long it takes until a failed packet can be repeated.
    pub retry_after: Duration,
}

/// A scenario that is put together from values; [`Self::build`] checks it as a file is checked.
///
/// # Example
/// ```
/// use wt_lab::scenario::{Direction, Link, Scenario};
/// use std::time::Duration;
/// use wt_units::BitsPerSecond;
/// let way = |mbit: u64| Direction::builder(BitsPerSecond(mbit * 1_000_000)).delay(Duration::from_millis(15));
/// let scenario = Scenario::builder("mine").link(Link::builder("dsl", way(8), way(1))).build()?;
/// assert_eq!(scenario.links[0].down.rate, BitsPerSecond(8_000_000));
/// # Ok::<(), wt_lab::scenario::InvalidScenario>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScenarioBuilder {
    name: String,
    title: String,
    source: String,
    client_mtu: Bytes,
    server_mtu: Bytes,
    links: Vec<LinkBuilder>,
}

/// A link that is put together; see [`Link::builder`].
#[derive(Debug, Clone)]
pub struct LinkBuilder {
    name: String,
    hop: Hop,
    mtu: Bytes,
    icmp: bool,
    framing: String,
    half_duplex: bool,
    down: DirectionBuilder,
    up: DirectionBuilder,
}

/// A direction that is put together; see [`Direction::builder`].
#[derive(Debug, Clone)]
pub struct DirectionBuilder {
    rate: RateConfig,
    delay: Duration,
    jitter: Duration,
    queue: QueueBound,
    loss: Ratio,
    loss_by: LossBy,
    discipline: Option<Discipline>,
    radio: Option<Radio>,
    stages: Vec<StageConfig>,
}

impl Scenario {
    /// Begins a scenario of this name, whose hosts have devices with an MTU of 1500 bytes.
    #[must_use]
    pub fn builder(name: &str) -> ScenarioBuilder {
        let mtu = Bytes(u64::from(limits::USUAL_HOST_MTU));
        ScenarioBuilder {
            name: name.to_owned(),
            title: name.to_owned(),
            source: String::new(),
            client_mtu: mtu,
            server_mtu: mtu,
            links: Vec::new(),
        }
    }
}

impl Link {
    /// Begins a link that takes packets of any size, without framing, behind a plain router.
    #[must_use]
    pub fn builder(name: &str, down: DirectionBuilder, up: DirectionBuilder) -> LinkBuilder {
        LinkBuilder {
            name: name.to_owned(),
            hop: Hop::default(),
            mtu: Bytes(u64::from(u16::MAX)),
            icmp: true,
            framing: "raw".to_owned(),
            half_duplex: false,
            down,
            up,
        }
    }
}

impl Direction {
    /// Begins a direction of this rate, without delay or loss, with a queue of 1000 packets.
    #[must_use]
    pub fn builder(rate: BitsPerSecond) -> DirectionBuilder {
        Self::sending(RateConfig::Constant(rate))
    }

    /// The same for a rate that isn't constant.
    #[must_use]
    pub fn sending(rate: RateConfig) -> DirectionBuilder {
        DirectionBuilder {
            rate,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            queue: QueueBound::Packets(limits::USUAL_QUEUE),
            loss: Ratio(0.0),
            loss_by: LossBy::default(),
            discipline: None,
            radio: None,
            stages: Vec::new(),
        }
    }
}

impl ScenarioBuilder {
    /// What it is, in one line; the name unless this says more.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        Self { title: title.trim().to_owned(), ..self }
    }

    /// Where its figures come from.
    #[must_use]
    pub fn source(self, source: &str) -> Self {
        Self { source: source.trim().to_owned(), ..self }
    }

    /// The MTU of both hosts' devices.
    #[must_use]
    pub fn mtu(self, mtu: Bytes) -> Self {
        Self { client_mtu: mtu, server_mtu: mtu, ..self }
    }

    /// The MTU of the client's device.
    #[must_use]
    pub fn client_mtu(self, mtu: Bytes) -> Self {
        Self { client_mtu: mtu, ..self }
    }

    /// The MTU of the server's device.
    #[must_use]
    pub fn server_mtu(self, mtu: Bytes) -> Self {
        Self { server_mtu: mtu, ..self }
    }

    /// One more link behind those that are there, as seen from the client.
    #[must_use]
    pub fn link(mut self, link: LinkBuilder) -> Self {
        self.links.push(link);
        self
    }

    /// The scenario.
    ///
    /// # Errors
    /// [`InvalidScenario`] with the link, the field and what is allowed.
    pub fn build(self) -> Result<Scenario, InvalidScenario> {
        limits::links(self.links.len())?;
        let links = self.links.into_iter().enumerate().map(|(place, link)| link.build(place == 0));
        let scenario = Scenario {
            links: links.collect::<Result<_, _>>()?,
            name: self.name,
            title: self.title,
            source: self.source,
            client_mtu: mtu("client.mtu", self.client_mtu, &limits::HOST_MTU)?,
            server_mtu: mtu("server.mtu", self.server_mtu, &limits::HOST_MTU)?,
        };
        limits::hosts_apart(&scenario.links).map_err(|(_, why)| why)?;
        limits::whole_path(&scenario).map_err(|fault| fault.why)?;
        Ok(scenario)
    }
}

fn mtu(field: &str, mtu: Bytes, limit: &limits::Limit<u32>) -> Result<u32, String> {
    let number = u32::try_from(mtu.get()).unwrap_or(u32::MAX);
    limit.check(&number, &mtu.get()).map_err(|why| format!("{field}: {why}")).map(|()| number)
}

impl LinkBuilder {
    /// The longest IP packet that it takes.
    #[must_use]
    pub fn mtu(self, mtu: Bytes) -> Self {
        Self { mtu, ..self }
    }

    /// Whether who stands before it tells the sender of longer packets.
    #[must_use]
    pub fn icmp(self, icmp: bool) -> Self {
        Self { icmp, ..self }
    }

    /// What its framing makes of an IP packet, as [`Framing::parse`] reads it.
    #[must_use]
    pub fn framing(self, framing: &str) -> Self {
        Self { framing: framing.to_owned(), ..self }
    }

    /// Both directions share one medium by CSMA/CD.
    #[must_use]
    pub fn half_duplex(self) -> Self {
        Self { half_duplex: true, ..self }
    }

    /// What stands in front of it, as seen from the client.
    #[must_use]
    pub fn hop(self, hop: Hop) -> Self {
        Self { hop, ..self }
    }

    fn build(self, first: bool) -> Result<Link, String> {
        limits::link_name(&self.name)?;
        let field = |name: &str| format!("link \"{}\", {name}", self.name);
        let longest = mtu(&field("mtu"), self.mtu, &limits::LINK_MTU)?;
        let framing = Framing::parse(&self.framing).map_err(|error| format!("{}: {error}", field("framing")))?;
        self.hop.check(first).map_err(|(name, why)| format!("{}.{name}: {why}", field("hop")))?;
        let link = Link {
            mtu: Bytes(u64::from(longest)),
            down: self.down.build(&framing).map_err(|why| format!("{}.{why}", field("down")))?,
            up: self.up.build(&framing).map_err(|why| format!("{}.{why}", field("up")))?,
            name: self.name,
            hop: self.hop,
            icmp: self.icmp,
            framing_name: self.framing,
            half_duplex: self.half_duplex,
            framing,
        };
        limits::shared_medium(&link)?;
        Ok(link)
    }
}

/// A fault of a table of a direction, in words.
fn in_table((table, fault): (&str, StageFault)) -> String {
    let dot = if fault.field.is_empty() { "" } else { "." };
    format!("{table}{dot}{}: {}", fault.field, fault.why)
}

impl DirectionBuilder {
    /// Propagation, one way.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Standard deviation of a normal jitter on top, without reordering.
    #[must_use]
    pub fn jitter(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// How much waits at most.
    #[must_use]
    pub fn queue(self, queue: QueueBound) -> Self {
        Self { queue, ..self }
    }

    /// How many packets are lost, and by what.
    #[must_use]
    pub fn loss(self, loss: Ratio, by: LossBy) -> Self {
        Self { loss, loss_by: by, ..self }
    }

    /// What the queue does besides dropping who arrives when it is full.
    #[must_use]
    pub fn aqm(self, discipline: Discipline) -> Self {
        Self { discipline: Some(discipline), ..self }
    }

    /// Sends by radio instead of through a queue at a constant rate.
    #[must_use]
    pub fn airtime(self, radio: Radio) -> Self {
        Self { radio: Some(radio), ..self }
    }

    /// One more stage: loss, outages, duplicates, corruption, a policer and thinning come before the queue, in the order in
    /// which they are added; jitter and reordering come behind the delay.
    #[must_use]
    pub fn stage(mut self, stage: StageConfig) -> Self {
        self.stages.push(stage);
        self
    }

    fn build(&self, framing: &Framing) -> Result<Direction, String> {
        let named = |field: &str, checked: Result<(), String>| checked.map_err(|why| format!("{field}: {why}"));
        named("delay", limits::DELAY.check(&self.delay, &format_duration(self.delay)))?;
        named("jitter", limits::JITTER.check(&self.jitter, &format_duration(self.jitter)))?;
        match self.queue {
            QueueBound::Bytes(bytes) => named("queue", limits::QUEUE.check(&bytes.get(), &bytes))?,
            QueueBound::Packets(packets) => {
                named("queue_packets", limits::QUEUE_PACKETS.check(&packets, &packets))?;
            }
        }
        named("loss", limits::LOSS.check(&self.loss.get(), &self.loss))?;
        if let Some(rate) = nominal(&self.rate) {
            named("rate", limits::RATE.check(&rate.get(), &rate))?;
        }
        let mut direction = Direction {
            rate: BitsPerSecond(0),
            delay: self.delay,
            jitter: self.jitter,
            queue: self.queue,
            loss: self.loss,
            loss_by: self.loss_by,
            line: None,
            before: Vec::new(),
            after: Vec::new(),
        };
        self.sender(&mut direction, &WireLen::from(framing.clone()))?;
        self.other_stages(&mut direction)?;
        Ok(direction)
    }

    fn sender(&self, direction: &mut Direction, framing: &WireLen) -> Result<(), String> {
        let Some(radio) = &self.radio else {
            return direction.send_through(framing, self.rate.clone(), self.discipline).map_err(in_table);
        };
        match &self.rate {
            RateConfig::Constant(rate) if self.discipline.is_none() => {
                direction.send_by_radio(framing, *rate, radio).map_err(in_table)
            }
            _ => {
                Err("airtime: a radio has a rate and a queue of its own: no steps, trace, bucket, modem or aqm"
                    .to_owned())
            }
        }
    }

    fn other_stages(&self, direction: &mut Direction) -> Result<(), String> {
        for stage in &self.stages {
            let (table, behind) = place_of(stage)?;
            limits::stage(stage).map_err(|fault| in_table((table, fault)))?;
            if behind && table == "jitter_model" && !direction.jitter.is_zero() {
                return Err("jitter_model: write either jitter or jitter_model, not both".to_owned());
            }
            if behind { &mut direction.after } else { &mut direction.before }.push(stage.clone());
        }
        Ok(())
    }
}

/// The rate that is asked for, where one is: steps and traces have several.
fn nominal(rate: &RateConfig) -> Option<BitsPerSecond> {
    match rate {
        RateConfig::Constant(rate) => Some(*rate),
        RateConfig::TokenBucket(bucket) => Some(bucket.rate),
        RateConfig::Modem(modem) => Some(modem.rate),
        RateConfig::Steps(_) | RateConfig::Trace(_) => None,
    }
}

/// The table of a file that such a stage is written in, and whether it stands behind the delay.
fn place_of(stage: &StageConfig) -> Result<(&'static str, bool), String> {
    match stage {
        StageConfig::Loss(_) => Ok(("loss_model", false)),
        StageConfig::Outages(_) => Ok(("outages", false)),
        StageConfig::Duplicate { .. } => Ok(("duplicate", false)),
        StageConfig::Corrupt { .. } => Ok(("corrupt", false)),
        StageConfig::Policer(_) => Ok(("policer", false)),
        StageConfig::Thinning(_) => Ok(("thinning", false)),
        StageConfig::Jitter(_) => Ok(("jitter_model", true)),
        StageConfig::Reorder { .. } => Ok(("reorder", true)),
        StageConfig::Queue(queue) => Err(format!("{}: set it by the direction's rate and aqm", table_of(&queue.rate))),
        StageConfig::Mtu { .. } => Err("mtu: set it by the link's".to_owned()),
        StageConfig::Airtime(_) => Err("airtime: set it by the direction's".to_owned()),
        StageConfig::Delay { .. } => Err("delay: set it by the direction's".to_owned()),
        StageConfig::DelaySteps { .. } => Err("delay: a scenario's doesn't change".to_owned()),
    }
}
