use super::limits::{self, StageFault};
use super::{Direction, Radio};
use wt_link::{AirtimeConfig, Discipline, QueueBound, RateConfig, StageConfig, WireLen};
use wt_units::{BitsPerSecond, Bytes};

/// The fastest that a rate comes to in the long run, as it is shown and computed with.
fn fastest(rate: &RateConfig) -> BitsPerSecond {
    match rate {
        RateConfig::Constant(rate) => *rate,
        RateConfig::Steps(steps) => steps.steps.iter().map(|(_, rate)| *rate).max().unwrap_or(BitsPerSecond(0)),
        RateConfig::Trace(trace) => {
            let all = Bytes(trace.bytes.get().saturating_mul(trace.trace.len() as u64));
            BitsPerSecond::over(all, trace.trace.period())
        }
        RateConfig::TokenBucket(bucket) => bucket.rate,
        RateConfig::Modem(modem) => modem.byte_rate(),
    }
}

/// The table of a scenario file that such a rate is written in.
pub(super) fn table_of(rate: &RateConfig) -> &'static str {
    match rate {
        RateConfig::Constant(_) => "rate",
        RateConfig::Steps(_) => "steps",
        RateConfig::Trace(_) => "trace",
        RateConfig::TokenBucket(_) => "bucket",
        RateConfig::Modem(_) => "modem",
    }
}

/// Refuses thresholds of RED, which are packets, that even a queue full of the shortest ones doesn't come to.
fn within_reach(discipline: Discipline, bound: QueueBound) -> Result<(), StageFault> {
    /// Headers of IPv4 and UDP.
    const SHORTEST: u64 = 28;
    let Discipline::Red(red) = discipline else { return Ok(()) };
    let by_bytes = bound.bytes.map(|bytes| bytes.get() / SHORTEST);
    match bound.packets.map(u64::from).into_iter().chain(by_bytes).min() {
        Some(most) if u64::from(red.min) > most => {
            let why = format!("{} packets are more than the queue ever holds: at most {most}", red.min);
            Err(StageFault { field: "min".to_owned(), why })
        }
        _ => Ok(()),
    }
}

/// What is wrong, and in which table of a direction.
pub(super) type InTable = (&'static str, StageFault);

impl Direction {
    /// Sets what sends: a queue with its rate and its discipline. The queue's bound must stand already.
    pub(super) fn send_through(
        &mut self,
        framing: &WireLen,
        rate: RateConfig,
        discipline: Option<Discipline>,
    ) -> Result<(), InTable> {
        let table = table_of(&rate);
        let constant = matches!(rate, RateConfig::Constant(_));
        let fastest = fastest(&rate);
        let mut queue = self.drop_tail(framing.clone());
        queue.rate = rate;
        if !constant {
            let line = StageConfig::Queue(queue.clone());
            limits::stage(&line).map_err(|fault| (table, fault))?;
            self.line = Some(line);
        }
        self.rate = if constant { fastest } else { fastest.max(BitsPerSecond(1)) };
        if let Some(discipline) = discipline {
            queue.discipline = discipline;
            let line = StageConfig::Queue(queue);
            limits::stage(&line).map_err(|fault| ("aqm", fault))?;
            within_reach(discipline, self.bound()).map_err(|fault| ("aqm", fault))?;
            self.line = Some(line);
        }
        Ok(())
    }

    /// Sets what sends: a radio, with a queue of its own. The queue's bound must stand already.
    pub(super) fn send_by_radio(
        &mut self,
        framing: &WireLen,
        rate: BitsPerSecond,
        radio: &Radio,
    ) -> Result<(), InTable> {
        self.rate = rate;
        let line = StageConfig::Airtime(AirtimeConfig {
            framing: framing.clone(),
            rate,
            access: radio.access,
            backoff: radio.backoff,
            slot: radio.slot,
            max_packets: radio.max_packets,
            max_bytes: radio.max_bytes,
            failure: radio.failure,
            max_retries: radio.max_retries,
            retry_after: radio.retry_after,
            bound: self.bound(),
        });
        limits::stage(&line).map_err(|fault| ("airtime", fault))?;
        self.line = Some(line);
        Ok(())
    }
}
