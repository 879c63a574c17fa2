use super::{At, ConfigError, MAX_DELAY, MAX_LIST};
use crate::{
    AirtimeConfig, CoDelConfig, Discipline, FqCoDelConfig, ModemConfig, PieConfig, PolicerConfig, QueueBound,
    QueueConfig, RateConfig, RedConfig, StepsConfig, ThinningConfig, TokenBucketConfig, TraceConfig,
};
use std::time::Duration;
use wt_units::{Bytes, format_duration};

/// The most bytes of a burst or of an exchange.
const MAX_BURST: u64 = 1 << 40;

impl At<'_> {
    fn burst(&self, name: &'static str, burst: Bytes) -> Result<(), ConfigError> {
        self.check(name, (1..=MAX_BURST).contains(&burst.get()), burst.get(), "1 byte to 1 TiB")
    }

    /// A duration that must not be zero.
    fn span(&self, name: &'static str, span: Duration) -> Result<(), ConfigError> {
        self.check(name, !span.is_zero() && span <= MAX_DELAY, format_duration(span), "1ns to 24h")
    }
}

pub(super) fn check_queue(queue: &QueueConfig, at: &At<'_>, mtu: Option<Bytes>) -> Result<(), ConfigError> {
    match &queue.rate {
        RateConfig::Constant(rate) => at.rate("rate", *rate)?,
        RateConfig::Steps(steps) => check_steps(steps, at)?,
        RateConfig::Trace(TraceConfig { bytes, .. }) => at.burst("bytes_per_opportunity", *bytes)?,
        RateConfig::TokenBucket(bucket) => check_bucket(bucket, at)?,
        RateConfig::Modem(modem) => check_modem(modem, at)?,
    }
    check_bound(&queue.bound, at, mtu.map_or(1, Bytes::get))?;
    match &queue.discipline {
        Discipline::DropTail => Ok(()),
        Discipline::Red(red) => check_red(red, &At::Field(at, "red")),
        Discipline::CoDel(codel) => check_codel(codel, &At::Field(at, "codel")),
        Discipline::FqCoDel(fair) => check_fair(fair, &At::Field(at, "fq_codel")),
        Discipline::Pie(pie) => check_pie(pie, &At::Field(at, "pie")),
    }
}

/// At least one packet of the MTU must fit, or nothing long would ever pass.
pub(super) fn check_bound(bound: &QueueBound, at: &At<'_>, least: u64) -> Result<(), ConfigError> {
    if let Some(packets) = bound.packets {
        at.check("packets", packets > 0, packets, "1 or more")?;
    }
    let Some(bytes) = bound.bytes else { return Ok(()) };
    let allowed = format!("{least} bytes or more, for the longest packet to fit");
    at.check("bytes", bytes.get() >= least, bytes.get(), &allowed)
}

fn check_steps(config: &StepsConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.count("steps", config.steps.len(), 1, MAX_LIST)?;
    let list = At::Field(at, "steps");
    let mut last = None;
    for (index, (from, rate)) in config.steps.iter().enumerate() {
        let step = At::Index(&list, index);
        let in_order = last.map_or(from.is_zero(), |last| *from > last);
        step.check("from", in_order, format_duration(*from), "0ms for the first step, then later ones in order")?;
        if rate.get() > 0 {
            step.rate("rate", *rate)?;
        }
        last = Some(*from);
    }
    let last = last.unwrap_or_default();
    if let Some(period) = config.period {
        at.check(
            "period",
            period > last && period <= MAX_DELAY,
            format_duration(period),
            "after the last step, to 24h",
        )?;
    }
    // Something must get through in the end.
    let (lasting, allowed) = match config.period {
        None => (&config.steps[config.steps.len() - 1..], "1bit or more in the last step, which stays"),
        Some(_) => (&config.steps[..], "1bit or more in at least one step"),
    };
    at.check("rate", lasting.iter().any(|step| step.1.get() > 0), "0bit", allowed)
}

fn check_bucket(bucket: &TokenBucketConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.rate("rate", bucket.rate)?;
    at.burst("burst", bucket.burst)?;
    let Some(peak) = bucket.peak else { return Ok(()) };
    at.rate("peak", peak)?;
    at.check("peak", peak >= bucket.rate, peak, "the rate or more")
}

fn check_modem(modem: &ModemConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.check("rate", (1..=10_000_000).contains(&modem.rate.get()), modem.rate, "1bit to 10mbit")?;
    at.check("bits_per_byte", (8..=12).contains(&modem.bits_per_byte), modem.bits_per_byte, "8 to 12")?;
    at.ratio("escapes", modem.escapes)?;
    at.check("compression", (0.5..=16.0).contains(&modem.compression), modem.compression, "0.5 to 16")?;
    let Some(retrain) = modem.retrain else { return Ok(()) };
    // Pauses are stepped through one by one.
    let least = Duration::from_secs(1);
    let every = (least..=MAX_DELAY).contains(&retrain.every);
    at.check("retrain.every", every, format_duration(retrain.every), "1s to 24h")?;
    at.span("retrain.lasts", retrain.lasts)
}

fn check_red(red: &RedConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.check("min", red.min > 0, red.min, "1 or more packets")?;
    at.check("max", red.max > red.min, red.max, "more than min")?;
    at.ratio("max_probability", red.max_probability)?;
    at.check("weight", red.weight > 0.0 && red.weight <= 1.0, red.weight, "above 0, to 1")
}

fn check_codel(codel: &CoDelConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.span("target", codel.target)?;
    at.span("interval", codel.interval)
}

fn check_fair(fair: &FqCoDelConfig, at: &At<'_>) -> Result<(), ConfigError> {
    check_codel(&fair.codel, at)?;
    at.check("flows", (1..=65_536).contains(&fair.flows), fair.flows, "1 to 65536")?;
    at.check("quantum", (256..=1 << 20).contains(&fair.quantum.get()), fair.quantum.get(), "256 bytes to 1 MiB")
}

fn check_pie(pie: &PieConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.span("target", pie.target)?;
    let least = Duration::from_micros(100);
    at.check("update", (least..=MAX_DELAY).contains(&pie.update), format_duration(pie.update), "100us to 24h")?;
    at.check("alpha", (0.0..=1e6).contains(&pie.alpha), pie.alpha, "0 to 1000000")?;
    at.check("beta", (0.0..=1e6).contains(&pie.beta), pie.beta, "0 to 1000000")?;
    at.delay("max_burst", pie.max_burst)
}

pub(super) fn check_policer(policer: &PolicerConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.rate("rate", policer.rate)?;
    at.burst("burst", policer.burst)
}

pub(super) fn check_thinning(thinning: &ThinningConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.check("every", thinning.every > 0, thinning.every, "1 or more")?;
    at.delay("hold", thinning.hold)
}

pub(super) fn check_airtime(airtime: &AirtimeConfig, at: &At<'_>) -> Result<(), ConfigError> {
    at.rate("rate", airtime.rate)?;
    at.delay("access", airtime.access)?;
    at.delay("backoff", airtime.backoff)?;
    airtime.slot.map_or(Ok(()), |slot| at.span("slot", slot))?;
    at.check("max_packets", (1..=4_096).contains(&airtime.max_packets), airtime.max_packets, "1 to 4096")?;
    at.burst("max_bytes", airtime.max_bytes)?;
    at.ratio("failure", airtime.failure)?;
    at.delay("retry_after", airtime.retry_after)?;
    check_bound(&airtime.bound, at, 1)
}
