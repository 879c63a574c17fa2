use super::hop::RawHop;
use super::raw;
use super::{Direction, Link, LossBy, QueueBound, Scenario};
use serde::Deserialize;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use wt_link::Trace;
use wt_units::{BitsPerSecond, Bytes, ParseError, Ratio, format_duration, parse_duration, suggestion};
use wt_wire::Framing;

/// What is wrong with a scenario, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {message}")]
pub struct ScenarioError {
    /// The file, or the preset's name.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// The field and what is allowed.
    pub message: String,
}

/// More links, and a path is no path any more.
const MOST_LINKS: usize = 64;
/// No name of a link is longer, characters.
const LONGEST_NAME: usize = 64;
/// No scenario file is larger, bytes.
pub(crate) const LARGEST_FILE: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScenario {
    title: String,
    source: String,
    #[serde(default)]
    client: RawHost,
    #[serde(default)]
    server: RawHost,
    link: Vec<Spanned<RawLink>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawHost {
    mtu: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLink {
    pub(super) name: String,
    pub(super) from: Option<Spanned<String>>,
    pub(super) to: Option<Spanned<String>>,
    hop: Option<Spanned<RawHop>>,
    mtu: Option<Spanned<i64>>,
    icmp: Option<bool>,
    framing: Option<Spanned<String>>,
    half_duplex: Option<bool>,
    down: Spanned<RawDirection>,
    up: Spanned<RawDirection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDirection {
    rate: Option<Spanned<String>>,
    delay: Option<Spanned<String>>,
    jitter: Option<Spanned<String>>,
    queue: Option<Spanned<String>>,
    queue_packets: Option<Spanned<i64>>,
    loss: Option<Spanned<String>>,
    loss_by: Option<Spanned<String>>,
    pub(super) loss_model: Option<Spanned<raw::Loss>>,
    pub(super) outages: Option<Spanned<raw::Outages>>,
    pub(super) jitter_model: Option<Spanned<raw::Jitter>>,
    pub(super) reorder: Option<Spanned<raw::Reorder>>,
    pub(super) duplicate: Option<Spanned<Ratio>>,
    pub(super) corrupt: Option<Spanned<raw::Corrupt>>,
    pub(super) steps: Option<Spanned<raw::Steps>>,
    pub(super) trace: Option<Spanned<raw::TraceFile>>,
    pub(super) bucket: Option<Spanned<raw::Bucket>>,
    pub(super) modem: Option<Spanned<raw::Modem>>,
    pub(super) aqm: Option<Spanned<raw::Aqm>>,
    pub(super) policer: Option<Spanned<raw::Policer>>,
    pub(super) airtime: Option<Spanned<raw::Airtime>>,
    pub(super) thinning: Option<Spanned<raw::Thinning>>,
}

/// Turns spans into lines of one file.
pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    /// The traces that were read: one that several directions name is read and kept once.
    pub(super) traces: RefCell<Vec<(PathBuf, Trace)>>,
}

/// The field whose value, or an item of whose list, begins behind this text.
fn field_at(before: &str) -> Option<&str> {
    let (key, value) = before.rsplit_once('=')?;
    let value = value.trim();
    let open = value.starts_with('[') && value.matches('[').count() > value.matches(']').count();
    let name = key.trim_end().rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
    ((value.is_empty() || open) && !name.is_empty()).then_some(name)
}

impl Scenario {
    /// Reads a scenario. `file` is what errors name; the scenario is called as the file without its ending.
    ///
    /// # Errors
    /// [`ScenarioError`] with file, line, field and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let reader = Reader { file, text, traces: RefCell::default() };
        if text.len() > LARGEST_FILE {
            return Err(
                reader.error(0, format!("the file has {} bytes; a scenario has at most {LARGEST_FILE}", text.len()))
            );
        }
        let raw: RawScenario = toml::from_str(text).map_err(|error| reader.malformed(&error))?;
        if raw.link.is_empty() || raw.link.len() > MOST_LINKS {
            return Err(reader
                .error(0, format!("link: there must be 1 to {MOST_LINKS} links, and there are {}", raw.link.len())));
        }
        let order = reader.chain(&raw.link)?;
        let ordered = order.iter().enumerate().map(|(place, index)| reader.link(&raw.link[*index], place == 0));
        let links = ordered.collect::<Result<Vec<_>, _>>()?;
        reader.hosts_apart(&raw.link, &order, &links)?;
        let name = file.rsplit('/').next().unwrap_or(file);
        let scenario = Self {
            name: name.strip_suffix(".toml").unwrap_or(name).to_owned(),
            title: raw.title.trim().to_owned(),
            source: raw.source.trim().to_owned(),
            client_mtu: reader.host_mtu("client.mtu", raw.client.mtu.as_ref())?,
            server_mtu: reader.host_mtu("server.mtu", raw.server.mtu.as_ref())?,
            links,
        };
        reader.whole_path(&raw.link, &order, &scenario)?;
        Ok(scenario)
    }
}

impl Reader<'_> {
    /// What the TOML reader found, with the field where a value has a bad text, and the nearest name of an unknown field.
    fn malformed(&self, error: &toml::de::Error) -> ScenarioError {
        let (at, message) = (error.span().map_or(0, |span| span.start), error.message());
        let mut words = message.split('`').skip(1).step_by(2);
        if message.starts_with("unknown ")
            && let Some(unknown) = words.next()
        {
            return self.error(at, format!("{message}{}", suggestion(unknown, words)));
        }
        let Some(name) = field_at(self.text.get(..at).unwrap_or_default()) else {
            return self.error(at, message.to_owned());
        };
        let allowed = raw::allowed(name, message).map(|allowed| format!("; allowed is {allowed}")).unwrap_or_default();
        self.error(at, format!("{name}: {message}{allowed}"))
    }

    pub(super) fn error(&self, at: usize, message: String) -> ScenarioError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ScenarioError { file: self.file.to_owned(), line, message }
    }

    /// An error of one field.
    pub(super) fn wrong<T>(&self, field: &str, value: &Spanned<T>, why: impl std::fmt::Display) -> ScenarioError {
        self.error(value.span().start, format!("{field}: {why}"))
    }

    pub(super) fn integer(
        &self,
        field: &str,
        value: &Spanned<i64>,
        allowed: RangeInclusive<u32>,
    ) -> Result<u32, ScenarioError> {
        let number = u32::try_from(*value.get_ref()).ok().filter(|number| allowed.contains(number));
        number.ok_or_else(|| {
            let (low, high) = (allowed.start(), allowed.end());
            self.wrong(field, value, format!("{} is out of range: allowed is {low} to {high}", value.get_ref()))
        })
    }

    pub(super) fn host_mtu(&self, field: &str, value: Option<&Spanned<i64>>) -> Result<u32, ScenarioError> {
        value.map_or(Ok(1500), |value| self.integer(field, value, 576..=65_535))
    }

    pub(super) fn duration(
        &self,
        field: &str,
        value: Option<&Spanned<String>>,
        longest: Duration,
    ) -> Result<Duration, ScenarioError> {
        let Some(value) = value else { return Ok(Duration::ZERO) };
        let allowed = format!("0 to {}", format_duration(longest));
        let time = parse_duration(value.get_ref()).map_err(|error| self.unreadable(field, value, &error, &allowed))?;
        if time > longest { Err(self.out_of_range(field, value, &allowed)) } else { Ok(time) }
    }

    /// An error of a field whose text has no meaning, or one that can't be.
    fn unreadable(&self, field: &str, value: &Spanned<String>, why: &ParseError, allowed: &str) -> ScenarioError {
        self.wrong(field, value, format!("{why}; allowed is {allowed}"))
    }

    /// An error of a field that is too small or too large.
    fn out_of_range(&self, field: &str, value: &Spanned<String>, allowed: &str) -> ScenarioError {
        self.wrong(field, value, format!("{} is out of range: allowed is {allowed}", value.get_ref()))
    }

    fn link(&self, spanned: &Spanned<RawLink>, first: bool) -> Result<Link, ScenarioError> {
        let raw = spanned.get_ref();
        if !(1..=LONGEST_NAME).contains(&raw.name.chars().count()) || raw.name.chars().any(char::is_control) {
            let why = format!("link, name: {:?}: allowed is 1 to {LONGEST_NAME} characters on one line", raw.name);
            return Err(self.error(spanned.span().start, why));
        }
        let field = |name: &str| format!("link \"{}\", {name}", raw.name);
        let mtu = raw.mtu.as_ref().map_or(Ok(65_535), |mtu| self.integer(&field("mtu"), mtu, 68..=65_535))?;
        let framing_name = raw.framing.as_ref().map_or("raw", |framing| framing.get_ref().as_str());
        let framing = Framing::parse(framing_name).map_err(|error| {
            let at = raw.framing.as_ref().map_or(spanned.span().start, |framing| framing.span().start);
            self.error(at, format!("{}: {error}", field("framing")))
        })?;
        let hop = raw.hop.as_ref().map(|hop| self.hop(hop.get_ref(), &field("hop"), first));
        let link = Link {
            name: raw.name.clone(),
            hop: hop.transpose()?.unwrap_or_default(),
            mtu: Bytes(u64::from(mtu)),
            icmp: raw.icmp.unwrap_or(true),
            framing_name: framing_name.to_owned(),
            half_duplex: raw.half_duplex.unwrap_or(false),
            down: self.direction(&raw.down, &field("down"), &framing)?,
            up: self.direction(&raw.up, &field("up"), &framing)?,
            framing,
        };
        self.shared_medium(&link, spanned)?;
        Ok(link)
    }

    /// What no field shows by itself: a queue that doesn't hold one packet of the MTU, say.
    fn whole_path(&self, raw: &[Spanned<RawLink>], order: &[usize], path: &Scenario) -> Result<(), ScenarioError> {
        let Err(error) = path.path().validate() else { return Ok(()) };
        // `links[0].forward[3].queue.bytes` is `link "dsl", up.queue` here.
        let mut parts = error.field.split('.');
        let number = |part: &str| part.split(['[', ']']).nth(1).and_then(|number| number.parse::<usize>().ok());
        let place = parts.next().and_then(number).filter(|place| *place < order.len()).unwrap_or(0);
        let way = if parts.next().is_some_and(|part| part.starts_with("forward")) { "up" } else { "down" };
        let stage = parts.next().unwrap_or_default();
        let link = &raw[order[place]];
        let at = if way == "up" { link.get_ref().up.span() } else { link.get_ref().down.span() };
        let (name, value, allowed) = (&link.get_ref().name, &error.value, &error.allowed);
        let why = format!("link \"{name}\", {way}.{stage}: {value} is out of range: allowed is {allowed}");
        Err(self.error(at.start, why))
    }

    /// No two hosts have one name.
    fn hosts_apart(&self, raw: &[Spanned<RawLink>], order: &[usize], links: &[Link]) -> Result<(), ScenarioError> {
        // With a 6 behind it, a host's name stands for its IPv6 address.
        let names = |link: &Link| link.hop.host.as_ref().map(|host| [host.name.clone(), format!("{}6", host.name)]);
        for (place, link) in links.iter().enumerate() {
            let Some(own) = names(link) else { continue };
            let others = links[..place].iter().filter_map(names);
            if let Some([other, _]) = others.into_iter().find(|other| own.iter().any(|name| other.contains(name))) {
                let field = format!("link \"{}\", hop.host", link.name);
                let at = &raw[order[place]];
                let hop = at.get_ref().hop.as_ref().map_or(at.span().start, |hop| hop.span().start);
                let both = if other == own[0] { "" } else { ", and with a 6 behind it a name stands for IPv6" };
                return Err(
                    self.error(hop, format!("{field}: \"{}\": there is another host \"{other}\"{both}", own[0]))
                );
            }
        }
        Ok(())
    }

    /// One wire has one rate, one length and one way of waiting.
    fn shared_medium(&self, link: &Link, spanned: &Spanned<RawLink>) -> Result<(), ScenarioError> {
        let most = Duration::from_nanos(256_000_000_000 / link.up.rate.get().max(1));
        let why = match (&link.up, &link.down) {
            _ if !link.half_duplex => return Ok(()),
            (up, down) if up.rate != down.rate || up.delay != down.delay || up.queue != down.queue => {
                "with half_duplex, up and down must have the same rate, delay and queue".to_owned()
            }
            (up, _) if up.delay > most => {
                let (is, most) = (format_duration(up.delay), format_duration(most));
                format!("delay: {is} is out of range: with half_duplex allowed is 0 to {most}, half a slot")
            }
            (up, down) if [up, down].iter().any(|way| !way.jitter.is_zero() || !way.after.is_empty()) => {
                "a shared medium has no jitter and no reordering of its own".to_owned()
            }
            (up, down) if up.line.is_some() || down.line.is_some() => {
                "a shared medium is drop-tail and of one rate: no steps, trace, bucket, modem, aqm or airtime"
                    .to_owned()
            }
            _ => return Ok(()),
        };
        Err(self.error(spanned.span().start, format!("link \"{}\", half_duplex: {why}", link.name)))
    }

    fn direction(
        &self,
        spanned: &Spanned<RawDirection>,
        of: &str,
        framing: &Framing,
    ) -> Result<Direction, ScenarioError> {
        let raw = spanned.get_ref();
        let field = |name: &str| format!("{of}.{name}");
        let mut direction = Direction {
            rate: BitsPerSecond(0),
            delay: self.duration(&field("delay"), raw.delay.as_ref(), Duration::from_secs(60))?,
            jitter: self.duration(&field("jitter"), raw.jitter.as_ref(), Duration::from_secs(10))?,
            queue: self.queue(raw, &field)?,
            loss: self.loss(raw, &field)?,
            loss_by: self.loss_by(raw, &field)?,
            line: None,
            before: Vec::new(),
            after: Vec::new(),
        };
        direction.rate = self.rate(spanned, of)?;
        self.stages(raw, of, framing, &mut direction)?;
        Ok(direction)
    }

    /// As written, or the fastest that its steps or its trace come to.
    fn rate(&self, spanned: &Spanned<RawDirection>, of: &str) -> Result<BitsPerSecond, ScenarioError> {
        let raw = spanned.get_ref();
        let varying = raw.steps.is_some() || raw.trace.is_some();
        let Some(value) = &raw.rate else {
            return if varying {
                Ok(BitsPerSecond(0))
            } else {
                Err(self.error(spanned.span().start, format!("{of}: rate is missing (or steps, or trace)")))
            };
        };
        let field = format!("{of}.rate");
        if varying {
            return Err(self.wrong(&field, value, "write only one of rate, steps and trace"));
        }
        let allowed = "300bit to 400gbit";
        let rate: BitsPerSecond =
            value.get_ref().parse().map_err(|error| self.unreadable(&field, value, &error, allowed))?;
        let within = (300..=400_000_000_000).contains(&rate.get());
        if within { Ok(rate) } else { Err(self.out_of_range(&field, value, allowed)) }
    }

    fn queue(&self, raw: &RawDirection, field: &dyn Fn(&str) -> String) -> Result<QueueBound, ScenarioError> {
        match (&raw.queue, &raw.queue_packets) {
            (Some(_), Some(packets)) => {
                Err(self.wrong(&field("queue_packets"), packets, "write either queue or queue_packets, not both"))
            }
            (None, Some(packets)) => {
                self.integer(&field("queue_packets"), packets, 1..=1_000_000).map(QueueBound::Packets)
            }
            (None, None) => Ok(QueueBound::Packets(1000)),
            (Some(bytes), None) => {
                let (field, allowed) = (field("queue"), "1500B to 1GiB");
                let size: Bytes =
                    bytes.get_ref().parse().map_err(|error| self.unreadable(&field, bytes, &error, allowed))?;
                let within = (1_500..=1 << 30).contains(&size.get());
                if within { Ok(QueueBound::Bytes(size)) } else { Err(self.out_of_range(&field, bytes, allowed)) }
            }
        }
    }

    fn loss(&self, raw: &RawDirection, field: &dyn Fn(&str) -> String) -> Result<Ratio, ScenarioError> {
        let Some(value) = &raw.loss else { return Ok(Ratio(0.0)) };
        let (field, allowed) = (field("loss"), "0% to 100%");
        let loss: Ratio = value.get_ref().parse().map_err(|error| self.unreadable(&field, value, &error, allowed))?;
        if loss.get() > 1.0 { Err(self.out_of_range(&field, value, allowed)) } else { Ok(loss) }
    }

    fn loss_by(&self, raw: &RawDirection, field: &dyn Fn(&str) -> String) -> Result<LossBy, ScenarioError> {
        let Some(value) = &raw.loss_by else { return Ok(LossBy::Random) };
        match value.get_ref().as_str() {
            "random" => Ok(LossBy::Random),
            "index" => Ok(LossBy::Index),
            other => {
                Err(self.wrong(&field("loss_by"), value, format!("\"{other}\": allowed is \"random\" or \"index\"")))
            }
        }
    }
}
