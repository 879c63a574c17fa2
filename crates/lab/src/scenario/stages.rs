use super::raw::{self, AqmKind, JitterKind, LossKind};
use super::read::{RawDirection, Reader};
use super::value::SpannedValue;
use super::{Direction, Radio, ScenarioError, limits};
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;
use wt_link::{
    CoDelConfig, Discipline, Distribution, FqCoDelConfig, JitterConfig, LossConfig, MAX_TRACE_BYTES, ModemConfig,
    OutageConfig, PieConfig, PolicerConfig, RateConfig, RedConfig, RetrainConfig, StageConfig, StepsConfig,
    ThinningConfig, TokenBucketConfig, Trace, TraceConfig, WireLen,
};
use wt_units::{BitsPerSecond, Bytes, Ratio};
use wt_wire::Framing;

/// What mahimahi lets leave at each opportunity.
const MAHIMAHI_BYTES: Bytes = Bytes(1504);

/// All traces of a scenario together have at most so many lines: two of the longest. Tests don't read millions.
const MOST_OPPORTUNITIES: usize = if cfg!(test) { 1000 } else { MAX_TRACE_BYTES };

/// Where one table stands.
struct Table<'a> {
    reader: &'a Reader<'a>,
    of: &'a str,
    name: &'static str,
    span: std::ops::Range<usize>,
}

impl Table<'_> {
    fn wrong(&self, field: &str, why: impl std::fmt::Display) -> ScenarioError {
        let dot = if field.is_empty() { "" } else { "." };
        self.reader.error(self.place(field), format!("{}.{}{dot}{field}: {why}", self.of, self.name))
    }

    /// The place of a field within the table, or the table's beginning.
    fn place(&self, field: &str) -> usize {
        let key = field.split(['.', '[']).next().unwrap_or_default();
        let rest = self.reader.text.get(self.span.start..).unwrap_or_default();
        // An inline table is as long as its span; one with a header ends before the next header.
        let inline = rest.get(..self.span.len()).unwrap_or(rest);
        let text = if rest.starts_with('[') { rest.split("\n[").next().unwrap_or(rest) } else { inline };
        let found = text.match_indices(key).find(|(index, _)| {
            let apart = !text[..*index].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            apart && text[index + key.len()..].trim_start().starts_with('=')
        });
        self.span.start + found.filter(|_| !key.is_empty()).map_or(0, |(index, _)| index)
    }

    /// What `wt-link` allows holds for the file.
    fn checked(&self, stage: StageConfig) -> Result<StageConfig, ScenarioError> {
        match limits::stage(&stage) {
            Ok(()) => Ok(stage),
            // The file calls steps by what they are.
            Err(fault) => {
                Err(self.wrong(&fault.field.replacen("steps", "rates", usize::from(self.name == "steps")), fault.why))
            }
        }
    }

    /// A field that this kind of table must have.
    fn needed<T>(&self, field: &str, value: Option<T>) -> Result<T, ScenarioError> {
        value.ok_or_else(|| self.wrong(field, "is missing for this kind"))
    }

    /// A field of another kind is a mistake, and not to be passed over: its name, whether it is written, whether this kind has it.
    fn no_other(&self, fields: &[(&str, bool, bool)]) -> Result<(), ScenarioError> {
        match fields.iter().find(|(_, written, known)| *written && !known) {
            Some((field, ..)) => Err(self.wrong(field, format!("this kind of {} has no such field", self.name))),
            None => Ok(()),
        }
    }
}

impl Reader<'_> {
    /// Reads the tables of a direction, each checked by itself.
    pub(super) fn stages(
        &self,
        raw: &RawDirection,
        of: &str,
        framing: &Framing,
        direction: &mut Direction,
    ) -> Result<(), ScenarioError> {
        let framing = WireLen::from(framing.clone());
        self.line(raw, of, &framing, direction)?;
        direction.before = self.before(raw, of, &framing)?;
        if let Some((table, raw)) = self.table(of, "jitter_model", raw.jitter_model.as_ref()) {
            if !direction.jitter.is_zero() {
                return Err(table.wrong("", "write either jitter or jitter_model, not both"));
            }
            direction.after.push(table.checked(StageConfig::Jitter(jitter(&table, raw)?))?);
        }
        if let Some((table, raw)) = self.table(of, "reorder", raw.reorder.as_ref()) {
            let stage = StageConfig::Reorder { probability: raw.probability, by: raw.by };
            direction.after.push(table.checked(stage)?);
        }
        Ok(())
    }

    fn table<'a, T>(
        &'a self,
        of: &'a str,
        name: &'static str,
        value: Option<&'a SpannedValue<T>>,
    ) -> Option<(Table<'a>, &'a T)> {
        value.map(|value| (Table { reader: self, of, name, span: value.span() }, value.get_ref()))
    }

    fn before(&self, raw: &RawDirection, of: &str, framing: &WireLen) -> Result<Vec<StageConfig>, ScenarioError> {
        let mut stages = Vec::new();
        if let Some((table, raw)) = self.table(of, "loss_model", raw.loss_model.as_ref()) {
            stages.push(table.checked(StageConfig::Loss(loss(&table, raw)?))?);
        }
        if let Some((table, raw)) = self.table(of, "outages", raw.outages.as_ref()) {
            let windows = raw.windows.iter().map(|(from, until)| (from.0, until.0)).collect();
            stages.push(table.checked(StageConfig::Outages(OutageConfig { windows, period: raw.period }))?);
        }
        if let Some((table, probability)) = self.table(of, "duplicate", raw.duplicate.as_ref()) {
            let stage = StageConfig::Duplicate { probability: *probability };
            stages.push(table.checked(stage)?);
        }
        if let Some((table, raw)) = self.table(of, "corrupt", raw.corrupt.as_ref()) {
            stages.push(table.checked(StageConfig::Corrupt { probability: raw.probability, detected: raw.detected })?);
        }
        if let Some((table, raw)) = self.table(of, "policer", raw.policer.as_ref()) {
            let policer = PolicerConfig { framing: framing.clone(), rate: raw.rate, burst: raw.burst };
            stages.push(table.checked(StageConfig::Policer(policer))?);
        }
        if let Some((table, raw)) = self.table(of, "thinning", raw.thinning.as_ref()) {
            let thinning = ThinningConfig { every: raw.every, hold: raw.hold };
            stages.push(table.checked(StageConfig::Thinning(thinning))?);
        }
        Ok(stages)
    }

    /// What sends: a radio, or a queue with its rate and its discipline.
    fn line(
        &self,
        raw: &RawDirection,
        of: &str,
        framing: &WireLen,
        direction: &mut Direction,
    ) -> Result<(), ScenarioError> {
        let mut rates = Vec::new();
        if let Some((table, raw)) = self.table(of, "steps", raw.steps.as_ref()) {
            let steps: Vec<_> = raw.rates.iter().map(|(from, rate)| (from.0, *rate)).collect();
            rates.push((table, RateConfig::Steps(StepsConfig { steps, period: raw.period })));
        }
        if let Some((table, raw)) = self.table(of, "trace", raw.trace.as_ref()) {
            let trace = trace(&table, Path::new(&raw.file))?;
            let bytes = raw.bytes_per_opportunity.unwrap_or(MAHIMAHI_BYTES);
            rates.push((table, RateConfig::Trace(TraceConfig { trace, bytes })));
        }
        if let Some((table, raw)) = self.table(of, "bucket", raw.bucket.as_ref()) {
            let bucket = TokenBucketConfig { rate: direction.rate, burst: raw.burst, peak: raw.peak };
            rates.push((table, RateConfig::TokenBucket(bucket)));
        }
        if let Some((table, raw)) = self.table(of, "modem", raw.modem.as_ref()) {
            rates.push((table, RateConfig::Modem(modem(direction.rate, raw))));
        }
        if rates.len() > 1 {
            return Err(rates[1].0.wrong("", "write only one of steps, trace, bucket and modem"));
        }
        let own = rates.pop();
        let aqm = self.table(of, "aqm", raw.aqm.as_ref());
        if let Some((table, airtime)) = self.table(of, "airtime", raw.airtime.as_ref()) {
            if own.is_some() || aqm.is_some() {
                return Err(
                    table.wrong("", "a radio has a rate and a queue of its own: no steps, trace, bucket, modem or aqm")
                );
            }
            let sent = direction.send_by_radio(framing, direction.rate, &radio(airtime));
            return sent.map_err(|(_, fault)| table.wrong(&fault.field, fault.why));
        }
        let discipline = aqm.as_ref().map(|(table, aqm)| discipline(table, aqm)).transpose()?;
        let (own, rate) = own.map_or((None, RateConfig::Constant(direction.rate)), |(table, rate)| (Some(table), rate));
        direction.send_through(framing, rate, discipline).map_err(|(name, fault)| {
            let tables = own.iter().chain(aqm.iter().map(|(table, _)| table));
            match tables.into_iter().find(|table| table.name == name) {
                Some(table) => table.wrong(&fault.field, fault.why),
                None => self.error(0, format!("{of}.{name}: {}", fault.why)),
            }
        })
    }
}

fn loss(table: &Table<'_>, raw: &raw::Loss) -> Result<LossConfig, ScenarioError> {
    let (bursts, nth) = (matches!(raw.kind, LossKind::GilbertElliott), matches!(raw.kind, LossKind::EveryNth));
    let (sizes, numbers) = (matches!(raw.kind, LossKind::BySize), matches!(raw.kind, LossKind::Numbered));
    table.no_other(&[
        ("to_bad", raw.to_bad.is_some(), bursts),
        ("to_good", raw.to_good.is_some(), bursts),
        ("loss_good", raw.loss_good.is_some(), bursts),
        ("loss_bad", raw.loss_bad.is_some(), bursts),
        ("n", raw.n.is_some(), nth),
        ("packets", raw.packets.is_some(), numbers),
        ("above", raw.above.is_some(), sizes),
        ("long", raw.long.is_some(), sizes),
        ("short", raw.short.is_some(), sizes),
    ])?;
    Ok(match raw.kind {
        LossKind::GilbertElliott => LossConfig::GilbertElliott {
            to_bad: table.needed("to_bad", raw.to_bad)?,
            to_good: table.needed("to_good", raw.to_good)?,
            loss_good: raw.loss_good.unwrap_or(Ratio(0.0)),
            loss_bad: raw.loss_bad.unwrap_or(Ratio(1.0)),
        },
        LossKind::EveryNth => LossConfig::EveryNth { n: table.needed("n", raw.n)? },
        LossKind::Numbered => LossConfig::Numbered { packets: table.needed("packets", raw.packets.clone())? },
        LossKind::BySize => LossConfig::BySize {
            above: table.needed("above", raw.above)?,
            long: table.needed("long", raw.long)?,
            short: table.needed("short", raw.short)?,
        },
    })
}

fn jitter(table: &Table<'_>, raw: &raw::Jitter) -> Result<JitterConfig, ScenarioError> {
    let (uniform, normal) = (matches!(raw.kind, JitterKind::Uniform), matches!(raw.kind, JitterKind::Normal));
    let pareto = matches!(raw.kind, JitterKind::Pareto);
    table.no_other(&[
        ("min", raw.min.is_some(), uniform),
        ("max", raw.max.is_some(), uniform || pareto),
        ("mean", raw.mean.is_some(), normal),
        ("deviation", raw.deviation.is_some(), normal),
        ("scale", raw.scale.is_some(), pareto),
        ("shape", raw.shape.is_some(), pareto),
    ])?;
    let distribution = match raw.kind {
        JitterKind::Uniform => {
            Distribution::Uniform { min: raw.min.unwrap_or_default(), max: table.needed("max", raw.max)? }
        }
        JitterKind::Normal => Distribution::Normal {
            mean: table.needed("mean", raw.mean)?,
            deviation: table.needed("deviation", raw.deviation)?,
        },
        JitterKind::Pareto => Distribution::Pareto {
            scale: table.needed("scale", raw.scale)?,
            shape: table.needed("shape", raw.shape)?,
            max: table.needed("max", raw.max)?,
        },
    };
    Ok(JitterConfig { distribution, correlation: raw.correlation, reorder: raw.reorder })
}

/// Reads a trace, whose path is relative to the scenario's.
fn trace(table: &Table<'_>, file: &Path) -> Result<Trace, ScenarioError> {
    let path = Path::new(table.reader.file).parent().unwrap_or(Path::new("")).join(file);
    let mut known = table.reader.traces.borrow_mut();
    if let Some((_, trace)) = known.iter().find(|(other, _)| *other == path) {
        return Ok(trace.clone());
    }
    let wrong = |why: &dyn std::fmt::Display| table.wrong("file", format!("{}: {why}", path.display()));
    let metadata = path.metadata().map_err(|error| wrong(&error))?;
    if !metadata.is_file() {
        return Err(wrong(&"is not a file"));
    }
    if metadata.len() > MAX_TRACE_BYTES as u64 {
        return Err(wrong(&format!("has {} bytes: allowed are 2 to {MAX_TRACE_BYTES}", metadata.len())));
    }
    let opened = std::fs::File::open(&path).map_err(|error| wrong(&error))?;
    let mut text = Vec::new();
    opened.take(MAX_TRACE_BYTES as u64 + 1).read_to_end(&mut text).map_err(|error| wrong(&error))?;
    let trace = Trace::parse(&text).map_err(|error| wrong(&error))?;
    let all: usize = known.iter().map(|(_, trace)| trace.len()).sum::<usize>() + trace.len();
    if all > MOST_OPPORTUNITIES {
        return Err(wrong(&format!(
            "with it the traces of this file have {all} lines: allowed are {MOST_OPPORTUNITIES}"
        )));
    }
    known.push((path, trace.clone()));
    Ok(trace)
}

fn modem(rate: BitsPerSecond, raw: &raw::Modem) -> ModemConfig {
    let retrain = raw.retrain.as_ref().map(|raw| RetrainConfig { every: raw.every, lasts: raw.lasts });
    let (bits_per_byte, escapes, compression) = (raw.bits_per_byte, raw.escapes, raw.compression);
    ModemConfig { rate, bits_per_byte, escapes, compression, retrain }
}

fn radio(raw: &raw::Airtime) -> Radio {
    Radio {
        access: raw.access,
        backoff: raw.backoff.unwrap_or_default(),
        slot: raw.slot,
        max_packets: raw.max_packets,
        max_bytes: raw.max_bytes,
        failure: raw.failure,
        max_retries: raw.max_retries,
        retry_after: raw.retry_after.unwrap_or(Duration::ZERO),
    }
}

fn discipline(table: &Table<'_>, raw: &raw::Aqm) -> Result<Discipline, ScenarioError> {
    unused(table, raw)?;
    let codel = |or: CoDelConfig| CoDelConfig {
        target: raw.target.unwrap_or(or.target),
        interval: raw.interval.unwrap_or(or.interval),
        ecn: raw.ecn.unwrap_or(or.ecn),
    };
    Ok(match raw.kind {
        AqmKind::Codel => Discipline::CoDel(codel(CoDelConfig::default())),
        AqmKind::FqCodel => {
            let or = FqCoDelConfig::default();
            Discipline::FqCoDel(FqCoDelConfig {
                codel: codel(or.codel),
                flows: raw.flows.unwrap_or(or.flows),
                quantum: raw.quantum.unwrap_or(or.quantum),
            })
        }
        AqmKind::Red => {
            let or = RedConfig::between(table.needed("min", raw.min)?, table.needed("max", raw.max)?);
            Discipline::Red(RedConfig {
                max_probability: raw.max_probability.unwrap_or(or.max_probability),
                weight: raw.weight.unwrap_or(or.weight),
                gentle: raw.gentle.unwrap_or(or.gentle),
                ecn: raw.ecn.unwrap_or(or.ecn),
                ..or
            })
        }
        AqmKind::Pie => {
            let or = PieConfig::default();
            Discipline::Pie(PieConfig {
                target: raw.target.unwrap_or(or.target),
                update: raw.update.unwrap_or(or.update),
                alpha: raw.alpha.unwrap_or(or.alpha),
                beta: raw.beta.unwrap_or(or.beta),
                max_burst: raw.max_burst.unwrap_or(or.max_burst),
                ecn: raw.ecn.unwrap_or(or.ecn),
            })
        }
    })
}

fn unused(table: &Table<'_>, raw: &raw::Aqm) -> Result<(), ScenarioError> {
    use AqmKind::{Codel, FqCodel, Pie, Red};
    let (red, pie) = (matches!(raw.kind, Red), matches!(raw.kind, Pie));
    let fair = matches!(raw.kind, FqCodel);
    let codel = matches!(raw.kind, Codel | FqCodel);
    let fields = [
        ("target", raw.target.is_some(), codel || pie),
        ("interval", raw.interval.is_some(), codel),
        ("update", raw.update.is_some(), pie),
        ("max_burst", raw.max_burst.is_some(), pie),
        ("alpha", raw.alpha.is_some(), pie),
        ("beta", raw.beta.is_some(), pie),
        ("flows", raw.flows.is_some(), fair),
        ("quantum", raw.quantum.is_some(), fair),
        ("min", raw.min.is_some(), red),
        ("max", raw.max.is_some(), red),
        ("max_probability", raw.max_probability.is_some(), red),
        ("weight", raw.weight.is_some(), red),
        ("gentle", raw.gentle.is_some(), red),
    ];
    table.no_other(&fields)
}
