use super::limits::{self, Limit};
use super::raw::{self, RawHop};
use super::value::{self, Mistake, SpannedValue, ValueError};
use super::{Direction, Link, LossBy, QueueBound, Scenario};
use serde::Deserialize;
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;
use wt_link::Trace;
use wt_units::{BitsPerSecond, Bytes, ParseError, Ratio, parse_duration, suggestion};
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

/// No scenario file is larger, bytes.
pub(crate) const LARGEST_FILE: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScenario {
    title: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    client: RawHost,
    #[serde(default)]
    server: RawHost,
    link: Vec<SpannedValue<RawLink>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawHost {
    mtu: Option<SpannedValue<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLink {
    pub(super) name: String,
    pub(super) from: Option<SpannedValue<String>>,
    pub(super) to: Option<SpannedValue<String>>,
    hop: Option<SpannedValue<RawHop>>,
    mtu: Option<SpannedValue<i64>>,
    icmp: Option<bool>,
    framing: Option<SpannedValue<String>>,
    half_duplex: Option<bool>,
    down: SpannedValue<RawDirection>,
    up: SpannedValue<RawDirection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDirection {
    rate: Option<SpannedValue<String>>,
    delay: Option<SpannedValue<String>>,
    jitter: Option<SpannedValue<String>>,
    queue: Option<SpannedValue<String>>,
    queue_packets: Option<SpannedValue<i64>>,
    loss: Option<SpannedValue<String>>,
    loss_by: Option<SpannedValue<String>>,
    pub(super) loss_model: Option<SpannedValue<raw::Loss>>,
    pub(super) outages: Option<SpannedValue<raw::Outages>>,
    pub(super) jitter_model: Option<SpannedValue<raw::Jitter>>,
    pub(super) reorder: Option<SpannedValue<raw::Reorder>>,
    pub(super) duplicate: Option<SpannedValue<Ratio>>,
    pub(super) corrupt: Option<SpannedValue<raw::Corrupt>>,
    pub(super) steps: Option<SpannedValue<raw::Steps>>,
    pub(super) trace: Option<SpannedValue<raw::TraceFile>>,
    pub(super) bucket: Option<SpannedValue<raw::Bucket>>,
    pub(super) modem: Option<SpannedValue<raw::Modem>>,
    pub(super) aqm: Option<SpannedValue<raw::Aqm>>,
    pub(super) policer: Option<SpannedValue<raw::Policer>>,
    pub(super) airtime: Option<SpannedValue<raw::Airtime>>,
    pub(super) thinning: Option<SpannedValue<raw::Thinning>>,
}

/// Turns spans into lines of one file.
pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    /// The traces that were read: one that several directions name is read and kept once.
    pub(super) traces: RefCell<Vec<(PathBuf, Trace)>>,
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
        let raw: RawScenario = value::read(text).map_err(|error| reader.malformed(&error))?;
        limits::links(raw.link.len()).map_err(|why| reader.error(0, why))?;
        let order = reader.chain(&raw.link)?;
        let ordered = order.iter().enumerate().map(|(place, index)| reader.link(&raw.link[*index], place == 0));
        let links = ordered.collect::<Result<Vec<_>, _>>()?;
        limits::hosts_apart(&links).map_err(|(place, why)| {
            let link = &raw.link[order[place]];
            reader.error(link.get_ref().hop.as_ref().map_or(link.span().start, |hop| hop.span().start), why)
        })?;
        let name = file.rsplit('/').next().unwrap_or(file);
        let scenario = Self {
            name: name.strip_suffix(".toml").unwrap_or(name).to_owned(),
            title: raw.title.trim().to_owned(),
            source: raw.source.trim().to_owned(),
            client_mtu: reader.host_mtu("client.mtu", raw.client.mtu.as_ref())?,
            server_mtu: reader.host_mtu("server.mtu", raw.server.mtu.as_ref())?,
            links,
        };
        limits::whole_path(&scenario).map_err(|fault| {
            let link = raw.link[order[fault.link]].get_ref();
            reader.error(if fault.up { link.up.span().start } else { link.down.span().start }, fault.why)
        })?;
        Ok(scenario)
    }
}

impl Reader<'_> {
    /// A value that can't be read, with its field and what it may be, or the nearest name of one that isn't known.
    fn malformed(&self, error: &ValueError) -> ScenarioError {
        let (at, message) = (error.at.unwrap_or(0), &error.message);
        let field = self.field(error);
        let field = if field.is_empty() { field } else { format!("{field}: ") };
        if let Mistake::Unknown { word, known } = &error.mistake {
            return self.error(at, format!("{field}{message}{}", suggestion(word, known.iter().copied())));
        }
        let [name, tables @ ..] = error.path.as_slice() else {
            let none =
                if message.ends_with("`link`") { ": a path has a table [[link]] for each of its links" } else { "" };
            return self.error(at, format!("{message}{none}"));
        };
        let table = tables.first().map_or("", String::as_str);
        let rest = match error.mistake {
            Mistake::Type => raw::written(table, name, error.item).map(|written| format!("; write {written}")),
            _ => raw::allowed(table, name, error.item).map(|allowed| format!("; allowed is {allowed}")),
        };
        self.error(at, format!("{field}{message}{}", rest.unwrap_or_default()))
    }

    /// A field as all messages name it: `link "dsl", down.policer.burst`. Nothing for the file itself.
    fn field(&self, error: &ValueError) -> String {
        let within = |path: &[String]| path.iter().rev().map(String::as_str).collect::<Vec<_>>().join(".");
        match error.path.split_last() {
            Some((list, rest)) if list == "link" && (error.table.is_some() || error.item.is_some()) => {
                let place = error.table.or(error.item).unwrap_or(0);
                let name = value::name_of(self.text, list, place);
                let link = name.map_or_else(|| format!("link {}", place + 1), |name| format!("link {name:?}"));
                if rest.is_empty() { link } else { format!("{link}, {}", within(rest)) }
            }
            _ => within(&error.path),
        }
    }

    pub(super) fn error(&self, at: usize, message: String) -> ScenarioError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ScenarioError { file: self.file.to_owned(), line, message }
    }

    /// An error of one field.
    pub(super) fn wrong<T>(&self, field: &str, value: &SpannedValue<T>, why: impl std::fmt::Display) -> ScenarioError {
        self.error(value.span().start, format!("{field}: {why}"))
    }

    pub(super) fn integer(
        &self,
        field: &str,
        value: &SpannedValue<i64>,
        limit: &Limit<u32>,
    ) -> Result<u32, ScenarioError> {
        let number = u32::try_from(*value.get_ref()).ok().filter(|number| limit.allows(number));
        number.ok_or_else(|| self.wrong(field, value, limit.out_of_range(value.get_ref())))
    }

    pub(super) fn host_mtu(&self, field: &str, value: Option<&SpannedValue<i64>>) -> Result<u32, ScenarioError> {
        value.map_or(Ok(limits::USUAL_HOST_MTU), |value| self.integer(field, value, &limits::HOST_MTU))
    }

    pub(super) fn duration(
        &self,
        field: &str,
        value: Option<&SpannedValue<String>>,
        limit: &Limit<Duration>,
    ) -> Result<Duration, ScenarioError> {
        let Some(value) = value else { return Ok(Duration::ZERO) };
        let time =
            parse_duration(value.get_ref()).map_err(|error| self.unreadable(field, value, &error, limit.allowed))?;
        limit.check(&time, value.get_ref()).map_err(|why| self.wrong(field, value, why))?;
        Ok(time)
    }

    /// An error of a field whose text has no meaning, or one that can't be.
    fn unreadable(&self, field: &str, value: &SpannedValue<String>, why: &ParseError, allowed: &str) -> ScenarioError {
        self.wrong(field, value, format!("{why}; allowed is {allowed}"))
    }

    fn link(&self, spanned: &SpannedValue<RawLink>, first: bool) -> Result<Link, ScenarioError> {
        let raw = spanned.get_ref();
        limits::link_name(&raw.name).map_err(|why| self.error(spanned.span().start, why))?;
        let field = |name: &str| format!("link \"{}\", {name}", raw.name);
        let mtu = raw.mtu.as_ref().map_or(Ok(65_535), |mtu| self.integer(&field("mtu"), mtu, &limits::LINK_MTU))?;
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
        limits::shared_medium(&link).map_err(|why| self.error(spanned.span().start, why))?;
        Ok(link)
    }

    fn direction(
        &self,
        spanned: &SpannedValue<RawDirection>,
        of: &str,
        framing: &Framing,
    ) -> Result<Direction, ScenarioError> {
        let raw = spanned.get_ref();
        let field = |name: &str| format!("{of}.{name}");
        let mut direction = Direction {
            rate: BitsPerSecond(0),
            delay: self.duration(&field("delay"), raw.delay.as_ref(), &limits::DELAY)?,
            jitter: self.duration(&field("jitter"), raw.jitter.as_ref(), &limits::JITTER)?,
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
    fn rate(&self, spanned: &SpannedValue<RawDirection>, of: &str) -> Result<BitsPerSecond, ScenarioError> {
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
        let rate: BitsPerSecond =
            value.get_ref().parse().map_err(|error| self.unreadable(&field, value, &error, limits::RATE.allowed))?;
        limits::RATE.check(&rate.get(), value.get_ref()).map_err(|why| self.wrong(&field, value, why))?;
        Ok(rate)
    }

    fn queue(&self, raw: &RawDirection, field: &dyn Fn(&str) -> String) -> Result<QueueBound, ScenarioError> {
        match (&raw.queue, &raw.queue_packets) {
            (Some(_), Some(packets)) => {
                Err(self.wrong(&field("queue_packets"), packets, "write either queue or queue_packets, not both"))
            }
            (None, Some(packets)) => {
                self.integer(&field("queue_packets"), packets, &limits::QUEUE_PACKETS).map(QueueBound::Packets)
            }
            (None, None) => Ok(QueueBound::Packets(limits::USUAL_QUEUE)),
            (Some(bytes), None) => {
                let (field, limit) = (field("queue"), &limits::QUEUE);
                let size: Bytes =
                    bytes.get_ref().parse().map_err(|error| self.unreadable(&field, bytes, &error, limit.allowed))?;
                limit.check(&size.get(), bytes.get_ref()).map_err(|why| self.wrong(&field, bytes, why))?;
                Ok(QueueBound::Bytes(size))
            }
        }
    }

    fn loss(&self, raw: &RawDirection, field: &dyn Fn(&str) -> String) -> Result<Ratio, ScenarioError> {
        let Some(value) = &raw.loss else { return Ok(Ratio(0.0)) };
        let (field, limit) = (field("loss"), &limits::LOSS);
        let loss: Ratio =
            value.get_ref().parse().map_err(|error| self.unreadable(&field, value, &error, limit.allowed))?;
        limit.check(&loss.get(), value.get_ref()).map_err(|why| self.wrong(&field, value, why))?;
        Ok(loss)
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
