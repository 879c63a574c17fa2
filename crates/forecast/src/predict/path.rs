use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;
use wt_lab::scenario::{Direction, Link, LossBy, QueueBound, Scenario};
use wt_problem::Problem;
use wt_units::{BitsPerSecond, Bytes, Ratio, format_duration, serde_duration};
use wt_wire::Framing;

/// Where something is asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRequest {
    /// A preset's name, or a scenario's file.
    Scenario(String),
    /// A path of one link.
    Link(LinkRequest),
}

impl PathRequest {
    /// The path, as a scenario.
    ///
    /// # Errors
    /// A usage problem that names what is wrong.
    pub fn scenario(&self) -> Result<Scenario, Problem> {
        let scenario = match self {
            Self::Scenario(name) => wt_setup::lab::load(name),
            Self::Link(link) => link.scenario(),
        }?;
        let Some((link, direction)) = scenario.dead_end() else { return Ok(scenario) };
        let way = if direction == wt_trial::Direction::Down { "down" } else { "up" };
        let dead = format!("link \"{}\", {way}: every packet is lost, and there is nothing to predict", link.name);
        Err(Problem::usage(dead).hint("let something through there: a loss below 100%"))
    }
}

/// MTUs that both the link and the hosts take, bytes.
const MTUS: RangeInclusive<u64> = 576..=65_535;
/// Queues that a scenario takes, bytes: one that nobody named stays among them.
const QUEUES: RangeInclusive<u64> = 1_500..=1 << 30;

/// A path of one link, described by its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "LinkForm")]
pub struct LinkRequest {
    /// Rate of the link towards the client, of bits on the wire.
    pub rate: BitsPerSecond,
    /// Rate the other way, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_rate: Option<BitsPerSecond>,
    /// Round-trip time of the idle path, without serialisation.
    #[serde(with = "serde_duration")]
    pub rtt: Duration,
    /// Share of the packets to the client that is lost at random.
    pub loss: Ratio,
    /// What the queue in front of the link holds, each way; nothing means the bandwidth-delay product of that way, at least
    /// ten packets, and at most 1 GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// What a packet occupies on the link, as an encapsulation stack.
    pub framing: String,
    /// The largest packet that the link takes; by default what its encapsulation leaves of 1500 bytes.
    pub mtu: Bytes,
}

/// The same as it is written, with what may be left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkForm {
    rate: BitsPerSecond,
    #[serde(default)]
    up_rate: Option<BitsPerSecond>,
    #[serde(default = "usual_rtt", with = "serde_duration")]
    rtt: Duration,
    #[serde(default = "no_loss")]
    loss: Ratio,
    #[serde(default)]
    queue: Option<Bytes>,
    #[serde(default = "usual_framing")]
    framing: String,
    #[serde(default)]
    mtu: Option<Bytes>,
}

impl From<LinkForm> for LinkRequest {
    fn from(form: LinkForm) -> Self {
        let LinkForm { rate, up_rate, rtt, loss, queue, framing, mtu } = form;
        let mtu = mtu.unwrap_or_else(|| Self::usual_mtu(&framing));
        Self { rate, up_rate, rtt, loss, queue, framing, mtu }
    }
}

fn usual_rtt() -> Duration {
    Duration::from_millis(40)
}

fn no_loss() -> Ratio {
    Ratio(0.0)
}

fn usual_framing() -> String {
    "raw".to_owned()
}

/// What Ethernet carries, bytes.
const ETHERNET: Bytes = Bytes(1500);

impl LinkRequest {
    /// A link of this rate both ways with an RTT of 40 ms, without loss.
    #[must_use]
    pub fn of(rate: BitsPerSecond) -> Self {
        let (rtt, loss, framing, mtu) = (usual_rtt(), no_loss(), usual_framing(), ETHERNET);
        Self { rate, up_rate: None, rtt, loss, queue: None, framing, mtu }
    }

    /// The largest packet that a link takes with this encapsulation where nobody names one: what it leaves of Ethernet's 1500
    /// bytes, as far as both hosts take that.
    #[must_use]
    pub fn usual_mtu(framing: &str) -> Bytes {
        // What is no stack is refused where the path is made.
        let mtu = Framing::parse(framing).map_or(ETHERNET, |framing| framing.usual_mtu(ETHERNET));
        mtu.max(Bytes(*MTUS.start()))
    }

    /// The link in words: what is as usual is left out.
    fn title(&self) -> String {
        let usual = Self::of(self.rate);
        let mut title = format!("{} with an RTT of {}", self.rate, format_duration(self.rtt));
        let all = [
            self.up_rate.map(|rate| format!("{rate} up")),
            (self.loss != usual.loss).then(|| format!("loss {}", self.loss)),
            self.queue.map(|queue| format!("queue {queue}")),
            (self.framing != usual.framing).then(|| format!("encap {}", self.framing)),
            (self.mtu != usual.mtu).then(|| format!("MTU {}", self.mtu.get())),
        ];
        all.iter().flatten().for_each(|part| title.push_str(&format!(", {part}")));
        title
    }

    /// The path, as a scenario.
    ///
    /// # Errors
    /// A usage problem that names what is wrong.
    pub fn scenario(&self) -> Result<Scenario, Problem> {
        let rate = self.rate;
        if rate.get() == 0 {
            return Err(Problem::usage("a rate of 0: a link without a rate carries nothing")
                .hint("name what the link carries, such as 8mbit"));
        }
        if self.loss.get() >= 1.0 {
            let what = format!("a loss of {}: where everything is lost there is nothing to predict", self.loss);
            return Err(Problem::usage(what).hint("name a smaller one, with its sign: 1% is one packet in a hundred"));
        }
        if !MTUS.contains(&self.mtu.get()) {
            let (low, high) = (MTUS.start(), MTUS.end());
            let range = format!("an MTU of {} is out of range: allowed is {low} to {high} bytes", self.mtu.get());
            return Err(Problem::usage(format!("invalid path description: {range}"))
                .because("the link and both hosts have it")
                .hint("name another --mtu, or describe the path in a TOML file"));
        }
        let up = self.up_rate.unwrap_or(rate);
        let way = |rate: BitsPerSecond, loss| {
            let usual = (rate * self.rtt).get().max(self.mtu.get().saturating_mul(10));
            let queue = self.queue.unwrap_or(Bytes(usual.clamp(*QUEUES.start(), *QUEUES.end())));
            Direction::builder(rate).delay(self.rtt / 2).queue(QueueBound::Bytes(queue)).loss(loss, LossBy::Random)
        };
        let link = Link::builder("link", way(rate, self.loss), way(up, no_loss())).mtu(self.mtu).framing(&self.framing);
        let scenario = Scenario::builder("command-line").title(&self.title()).source("the command line").mtu(self.mtu);
        let scenario = scenario.link(link).build();
        scenario.map_err(|error| Problem::usage(format!("invalid path description: {error}")))
    }
}
