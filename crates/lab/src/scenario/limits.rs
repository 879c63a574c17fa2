//! What the fields of a scenario may be. The reader of files and the builder ask here, so that neither takes what the other refuses.

use super::{Direction, Link, Scenario};
use std::time::Duration;
use wt_link::{ConfigError, PipeConfig, StageConfig};
use wt_units::format_duration;

/// A range with both ends, and how it is written in messages.
#[derive(Debug)]
pub(super) struct Limit<T> {
    low: T,
    high: T,
    /// As messages name it.
    pub(super) allowed: &'static str,
}

impl<T: PartialOrd> Limit<T> {
    /// Whether a value lies in the range.
    pub(super) fn allows(&self, value: &T) -> bool {
        (&self.low..=&self.high).contains(&value)
    }

    /// What is wrong with a value, or nothing.
    pub(super) fn check(&self, value: &T, written: &dyn std::fmt::Display) -> Result<(), String> {
        if self.allows(value) { Ok(()) } else { Err(self.out_of_range(written)) }
    }

    /// That a value lies outside.
    pub(super) fn out_of_range(&self, written: &dyn std::fmt::Display) -> String {
        format!("{written} is out of range: allowed is {}", self.allowed)
    }
}

/// A direction's own rate, bits per second.
pub(super) const RATE: Limit<u64> = Limit { low: 300, high: 400_000_000_000, allowed: "300bit to 400gbit" };
/// Propagation.
pub(super) const DELAY: Limit<Duration> =
    Limit { low: Duration::ZERO, high: Duration::from_secs(60), allowed: "0 to 60s" };
/// Standard deviation of a direction's own jitter.
pub(super) const JITTER: Limit<Duration> =
    Limit { low: Duration::ZERO, high: Duration::from_secs(10), allowed: "0 to 10s" };
/// Queues that count bytes.
pub(super) const QUEUE: Limit<u64> = Limit { low: 1_500, high: 1 << 30, allowed: "1500B to 1GiB" };
/// Queues that count packets.
pub(super) const QUEUE_PACKETS: Limit<u32> = Limit { low: 1, high: 1_000_000, allowed: "1 to 1000000" };
/// Random loss.
pub(super) const LOSS: Limit<f64> = Limit { low: 0.0, high: 1.0, allowed: "0% to 100%" };
/// The MTU of a link, bytes: the least is IPv4's.
pub(super) const LINK_MTU: Limit<u32> = Limit { low: 68, high: 65_535, allowed: "68 to 65535" };
/// The MTU of a host's device, bytes: the least is what every host must take.
pub(super) const HOST_MTU: Limit<u32> = Limit { low: 576, high: 65_535, allowed: "576 to 65535" };
/// What a host's device has unless something else is said, bytes.
pub(super) const USUAL_HOST_MTU: u32 = 1_500;
/// What a queue holds unless something else is said, packets.
pub(super) const USUAL_QUEUE: u32 = 1_000;

/// The MSS that a hop leaves or writes: 28 bytes fit the least MTU of IPv4, 65,495 its longest packet.
pub(super) const MSS: Limit<u32> = Limit { low: 28, high: 65_495, allowed: "28 to 65495" };
/// RFC 7323 section 2.3.
pub(super) const WINDOW_SCALE: Limit<u32> = Limit { low: 0, high: 14, allowed: "0 to 14" };
/// How long a translation may live without use.
pub(super) const NAT_IDLE: Limit<Duration> =
    Limit { low: Duration::ZERO, high: Duration::from_secs(86_400), allowed: "0 to 24h" };
/// The MTU that a hop names in ICMP.
pub(super) const NAMED_MTU: Limit<u32> = Limit { low: 0, high: 65_535, allowed: "0 to 65535" };
/// ICMP messages per second.
pub(super) const ICMP_RATE: Limit<u32> = Limit { low: 0, high: 1_000_000, allowed: "0 to 1000000" };
/// ICMP messages at once.
pub(super) const ICMP_BURST: Limit<u32> = Limit { low: 1, high: 1_000_000, allowed: "1 to 1000000" };

/// More links, and a path is no path any more.
const MOST_LINKS: usize = 64;
/// No name of a link is longer, characters.
const LONGEST_NAME: usize = 64;

/// How many links there may be.
pub(super) fn links(number: usize) -> Result<(), String> {
    if (1..=MOST_LINKS).contains(&number) {
        return Ok(());
    }
    Err(format!("link: there must be 1 to {MOST_LINKS} links, and there are {number}"))
}

/// A link's name.
pub(super) fn link_name(name: &str) -> Result<(), String> {
    if (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(format!("link, name: {name:?}: allowed is 1 to {LONGEST_NAME} characters on one line"))
}

/// The name of a host on the way.
pub(super) fn host_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    // `$WT_DEVICE` is taken, too.
    let taken = ["client", "server", "client6", "server6", "localhost", "device"].contains(&name);
    if !taken && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() <= 15 && name.chars().all(plain) {
        return Ok(());
    }
    Err(format!("{name:?}: allowed is a name of 1 to 15 of a-z, 0-9 and -, that no other host has"))
}

/// What is wrong with one stage: the field within its table, empty for the table itself, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StageFault {
    pub(super) field: String,
    pub(super) why: String,
}

impl From<ConfigError> for StageFault {
    fn from(error: ConfigError) -> Self {
        // `stages[0].queue.red.max` is `max` here.
        let field = error.field.split('.').skip(2).collect::<Vec<_>>().join(".");
        let inner = ["red.", "codel.", "fq_codel.", "pie."].iter().find_map(|kind| field.strip_prefix(kind));
        let field = inner.unwrap_or(&field).to_owned();
        Self { field, why: format!("{} is out of range: allowed is {}", error.value, error.allowed) }
    }
}

/// What `wt-link` allows holds for scenarios.
pub(super) fn stage(stage: &StageConfig) -> Result<(), StageFault> {
    let mut fault = match (PipeConfig { stages: vec![stage.clone()] }).validate() {
        Ok(()) => return Ok(()),
        Err(error) => StageFault::from(error),
    };
    if matches!(stage, StageConfig::Duplicate { .. }) {
        // This one is written as a number, not as a table.
        fault.field.clear();
    }
    Err(fault)
}

/// One wire has one rate, one length and one way of waiting.
pub(super) fn shared_medium(link: &Link) -> Result<(), String> {
    let most = Duration::from_nanos(256_000_000_000 / link.up.rate.get().max(1));
    let varied = |way: &Direction| !way.jitter.is_zero() || !way.after.is_empty();
    let why = match (&link.up, &link.down) {
        _ if !link.half_duplex => return Ok(()),
        (up, down) if up.rate != down.rate || up.delay != down.delay || up.queue != down.queue => {
            "with half_duplex, up and down must have the same rate, delay and queue".to_owned()
        }
        (up, _) if up.delay > most => {
            let (is, most) = (format_duration(up.delay), format_duration(most));
            format!("delay: {is} is out of range: with half_duplex allowed is 0 to {most}, half a slot")
        }
        (up, down) if varied(up) || varied(down) => {
            "a shared medium has no jitter and no reordering of its own".to_owned()
        }
        (up, down) if up.line.is_some() || down.line.is_some() => {
            "a shared medium is drop-tail and of one rate: no steps, trace, bucket, modem, aqm or airtime".to_owned()
        }
        _ => return Ok(()),
    };
    Err(format!("link \"{}\", half_duplex: {why}", link.name))
}

/// No two hosts have one name; otherwise the place of the second one's link, and why.
pub(super) fn hosts_apart(links: &[Link]) -> Result<(), (usize, String)> {
    // With a 6 behind it, a host's name stands for its IPv6 address.
    let names = |link: &Link| link.hop.host.as_ref().map(|host| [host.name.clone(), format!("{}6", host.name)]);
    for (place, link) in links.iter().enumerate() {
        let Some(own) = names(link) else { continue };
        let others = links[..place].iter().filter_map(names);
        if let Some([other, _]) = others.into_iter().find(|other| own.iter().any(|name| other.contains(name))) {
            let both = if other == own[0] { "" } else { ", and with a 6 behind it a name stands for IPv6" };
            let field = format!("link \"{}\", hop.host", link.name);
            return Err((place, format!("{field}: \"{}\": there is another host \"{other}\"{both}", own[0])));
        }
    }
    Ok(())
}

/// Where the whole path has a value that can't be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathFault {
    /// The link, in order from the client.
    pub(super) link: usize,
    /// Whether it is the direction to the server.
    pub(super) up: bool,
    /// The field and what is allowed.
    pub(super) why: String,
}

/// What no field shows by itself: a queue that doesn't hold one packet of the MTU, or a policer whose burst doesn't.
pub(super) fn whole_path(scenario: &Scenario) -> Result<(), PathFault> {
    let Err(error) = scenario.path().validate() else { return bursts(scenario) };
    // `links[0].forward[3].queue.bytes` is `link "dsl", up.queue` here.
    let mut parts = error.field.split('.');
    let number = |part: &str| part.split(['[', ']']).nth(1).and_then(|number| number.parse::<usize>().ok());
    let link = parts.next().and_then(number).filter(|place| *place < scenario.links.len()).unwrap_or(0);
    let up = parts.next().is_some_and(|part| part.starts_with("forward"));
    let (way, stage) = (if up { "up" } else { "down" }, parts.next().unwrap_or_default());
    let (of, value, allowed) = (&scenario.links[link], &error.value, &error.allowed);
    let mut why = format!("link \"{}\", {way}.{stage}: {value} is out of range: allowed is {allowed}", of.name);
    if error.field.ends_with(".bytes") && of.mtu.get() == u64::from(LINK_MTU.high) {
        why.push_str(". The link takes packets of 65535 bytes unless it has a smaller mtu, such as mtu = 1500");
    }
    Err(PathFault { link, up, why })
}

/// A policer's bucket never holds more than its burst, so a packet that is longer never passes.
fn bursts(scenario: &Scenario) -> Result<(), PathFault> {
    let longest = u32::try_from(scenario.pmtu()).unwrap_or(u32::MAX);
    for (place, link) in scenario.links.iter().enumerate() {
        for (up, way, direction) in [(false, "down", &link.down), (true, "up", &link.up)] {
            let short =
                direction.policers().find(|policer| policer.burst.get() < u64::from(policer.framing.of(longest)));
            if let Some(policer) = short {
                let (name, burst, least) = (&link.name, policer.burst.get(), policer.framing.of(longest));
                let why = format!(
                    "link \"{name}\", {way}.policer.burst: {burst} is out of range: allowed is {least} bytes or more, for packets of {longest} \
                     bytes to pass"
                );
                return Err(PathFault { link: place, up, why });
            }
        }
    }
    Ok(())
}
