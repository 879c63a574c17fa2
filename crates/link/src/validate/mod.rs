mod queue;

use crate::{
    Distribution, JitterConfig, LinkConfig, LossConfig, MediumConfig, OutageConfig, PathConfig, PipeConfig, StageConfig,
};
use queue::{check_airtime, check_bound, check_policer, check_queue, check_thinning};
use std::time::Duration;
use wt_units::{BitsPerSecond, Bytes, Ratio, format_duration};

/// A value of a configuration that can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}: allowed is {allowed}")]
pub struct ConfigError {
    /// Where it stands, such as `links[0].forward[2].queue.packets`.
    pub field: String,
    /// What it is.
    pub value: String,
    /// What it may be.
    pub allowed: String,
}

/// The most links of a path: beyond it a time to live would end anyway.
const MAX_LINKS: usize = 64;
/// The most stages of a direction of a link.
const MAX_STAGES: usize = 32;
/// The most duplicating stages of a direction, because each may double the traffic.
const MAX_DUPLICATES: usize = 3;
/// The longest IP packet.
const MAX_IP_LEN: u64 = 65_535;
/// The smallest MTU that IPv4 allows (RFC 791: "Every internet module must be able to forward a datagram of 68 octets
/// without further fragmentation").
const MIN_MTU: u64 = 68;
/// One petabit per second.
const MAX_RATE: u64 = 1_000_000_000_000_000;
/// A day; nobody waits longer for a packet.
const MAX_DELAY: Duration = Duration::from_secs(86_400);
/// The most windows of an outage, steps of a rate and the like.
const MAX_LIST: usize = 100_000;

/// Where a value stands, for the error.
#[derive(Clone, Copy)]
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'static str),
    Index(&'a At<'a>, usize),
}

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(outer, name) => write!(f, "{outer}.{name}"),
            Self::Index(outer, index) => write!(f, "{outer}[{index}]"),
        }
    }
}

impl At<'_> {
    fn check(&self, name: &'static str, ok: bool, value: impl ToString, allowed: &str) -> Result<(), ConfigError> {
        if ok {
            return Ok(());
        }
        let field = At::Field(self, name).to_string();
        Err(ConfigError { field, value: value.to_string(), allowed: allowed.to_owned() })
    }

    fn ratio(&self, name: &'static str, ratio: Ratio) -> Result<(), ConfigError> {
        self.check(name, (0.0..=1.0).contains(&ratio.get()), ratio, "0% to 100%")
    }

    fn rate(&self, name: &'static str, rate: BitsPerSecond) -> Result<(), ConfigError> {
        self.check(name, (1..=MAX_RATE).contains(&rate.get()), rate, "1bit to 1000000gbit")
    }

    fn delay(&self, name: &'static str, delay: Duration) -> Result<(), ConfigError> {
        self.check(name, delay <= MAX_DELAY, format_duration(delay), "0ms to 24h")
    }

    fn count(&self, name: &'static str, count: usize, min: usize, max: usize) -> Result<(), ConfigError> {
        self.check(name, (min..=max).contains(&count), count, &format!("{min} to {max} of them"))
    }
}

impl PathConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// The first value that can't be, with its field and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        At::Root.count("links", self.links.len(), 1, MAX_LINKS)?;
        let links = At::Field(&At::Root, "links");
        self.links.iter().enumerate().try_for_each(|(index, link)| link.check(&At::Index(&links, index)))
    }
}

impl LinkConfig {
    fn check(&self, at: &At<'_>) -> Result<(), ConfigError> {
        check_stages(&self.forward, at, "forward")?;
        check_stages(&self.backward, at, "backward")?;
        self.medium.as_ref().map_or(Ok(()), |medium| check_medium(medium, &At::Field(at, "medium")))
    }
}

impl PipeConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// The first value that can't be, with its field and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_stages(&self.stages, &At::Root, "stages")
    }
}

fn check_stages(stages: &[StageConfig], outer: &At<'_>, name: &'static str) -> Result<(), ConfigError> {
    outer.count(name, stages.len(), 0, MAX_STAGES)?;
    let doubling = stages.iter().filter(|stage| matches!(stage, StageConfig::Duplicate { .. })).count();
    let list = At::Field(outer, name);
    list.count("duplicate", doubling, 0, MAX_DUPLICATES)?;
    let mut mtu = None;
    for (index, stage) in stages.iter().enumerate() {
        let at = At::Index(&list, index);
        check_stage(stage, &At::Field(&at, stage.name()), mtu)?;
        if let StageConfig::Mtu { mtu: this } = stage {
            mtu = Some(mtu.map_or(*this, |other: Bytes| other.min(*this)));
        }
    }
    Ok(())
}

fn check_stage(stage: &StageConfig, at: &At<'_>, mtu: Option<Bytes>) -> Result<(), ConfigError> {
    match stage {
        StageConfig::Mtu { mtu } => {
            at.check("mtu", (MIN_MTU..=MAX_IP_LEN).contains(&mtu.get()), mtu.get(), "68 to 65535 bytes")
        }
        StageConfig::Loss(loss) => check_loss(loss, at),
        StageConfig::Outages(outages) => check_outages(outages, at),
        StageConfig::Queue(queue) => check_queue(queue, at, mtu),
        StageConfig::Delay { delay } => at.delay("delay", *delay),
        StageConfig::DelaySteps { steps } => check_delay_steps(steps, at),
        StageConfig::Jitter(jitter) => check_jitter(jitter, at),
        StageConfig::Reorder { probability, by } => {
            at.ratio("probability", *probability)?;
            at.delay("by", *by)
        }
        StageConfig::Policer(policer) => check_policer(policer, at),
        StageConfig::Thinning(thinning) => check_thinning(thinning, at),
        StageConfig::Airtime(airtime) => check_airtime(airtime, at),
        StageConfig::Duplicate { probability } | StageConfig::Corrupt { probability, .. } => {
            at.ratio("probability", *probability)
        }
    }
}

fn check_loss(loss: &LossConfig, at: &At<'_>) -> Result<(), ConfigError> {
    match loss {
        LossConfig::Bernoulli { probability } | LossConfig::ByDataIndex { probability } => {
            at.ratio("probability", *probability)
        }
        LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            at.ratio("to_bad", *to_bad)?;
            at.ratio("to_good", *to_good)?;
            at.ratio("loss_good", *loss_good)?;
            at.ratio("loss_bad", *loss_bad)
        }
        LossConfig::EveryNth { n } => at.check("n", *n > 0, n, "1 or more"),
        LossConfig::BySize { above, long, short } => {
            at.check("above", above.get() <= MAX_IP_LEN, above.get(), "0 to 65535 bytes")?;
            at.ratio("long", *long)?;
            at.ratio("short", *short)
        }
        LossConfig::Numbered { packets } => {
            at.count("packets", packets.len(), 1, MAX_LIST)?;
            let ascend = packets[0] > 0 && packets.windows(2).all(|pair| pair[0] < pair[1]);
            at.check("packets", ascend, format!("{packets:?}"), "numbers from 1 on, ascending")
        }
        LossConfig::Next { packets, .. } => at.check("packets", *packets > 0, packets, "1 or more"),
    }
}

fn check_delay_steps(steps: &[(Duration, Duration)], at: &At<'_>) -> Result<(), ConfigError> {
    at.count("steps", steps.len(), 1, MAX_LIST)?;
    let mut last = None;
    for (from, delay) in steps {
        at.check("steps", last.is_none_or(|last| *from > last), format_duration(*from), "times in order and apart")?;
        at.delay("steps", *delay)?;
        last = Some(*from);
    }
    Ok(())
}

fn check_outages(outages: &OutageConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.count("windows", outages.windows.len(), 1, MAX_LIST)?;
    let (mut last, mut down) = (Duration::ZERO, Duration::ZERO);
    for (from, until) in &outages.windows {
        let value = format!("{} to {}", format_duration(*from), format_duration(*until));
        at.check("windows", *from >= last && until > from, value, "windows in order, apart, and none of them empty")?;
        down += *until - *from;
        last = *until;
    }
    let Some(period) = outages.period else { return Ok(()) };
    at.check(
        "period",
        period >= last && !period.is_zero(),
        format_duration(period),
        "at least the end of the last window",
    )?;
    // Something must get through in the end.
    at.check(
        "period",
        down < period,
        format_duration(period),
        "more than the windows take together, or nothing ever passes",
    )
}

fn check_jitter(jitter: &JitterConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.ratio("correlation", jitter.correlation)?;
    match jitter.distribution {
        Distribution::Uniform { min, max } => {
            at.delay("max", max)?;
            at.check("min", min <= max, format_duration(min), "0ms to max")
        }
        Distribution::Normal { mean, deviation } => {
            at.delay("mean", mean)?;
            at.delay("deviation", deviation)
        }
        Distribution::Pareto { scale, shape, max } => {
            at.delay("max", max)?;
            at.check("scale", !scale.is_zero() && scale <= max, format_duration(scale), "1ns to max")?;
            at.check("shape", (0.1..=1000.0).contains(&shape), shape, "0.1 to 1000")
        }
    }
}

fn check_medium(medium: &MediumConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.rate("rate", medium.rate)?;
    check_bound(&medium.bound, at, 1)?;
    let most = medium.slot_time() / 2;
    at.check(
        "extent",
        medium.extent <= most,
        format_duration(medium.extent),
        &format!("0ms to {}: half a slot of 512 bits, or collisions go unnoticed", format_duration(most)),
    )
}
