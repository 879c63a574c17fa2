//! Lines: when a packet's last bit is out.

mod modem;
mod opportunities;
mod serialiser;
mod steps;

pub(crate) use serialiser::{Serialiser, time_of};

use crate::dice::Dice;
use crate::{RateConfig, TokenBucketConfig};
use modem::Modem;
use opportunities::Opportunities;
use steps::Steps;

/// How fast a queue is emptied.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    Constant(Serialiser),
    Steps(Box<Steps>),
    Trace(Box<Opportunities>),
    TokenBucket(Box<TokenBucket>),
    Modem(Box<Modem>),
}

impl Line {
    pub(crate) fn new(config: &RateConfig, dice: &mut Dice) -> Self {
        match config {
            RateConfig::Constant(rate) => Self::Constant(Serialiser::new(rate.get())),
            RateConfig::Steps(steps) => Self::Steps(Box::new(Steps::new(steps))),
            RateConfig::Trace(trace) => Self::Trace(Box::new(Opportunities::new(trace))),
            RateConfig::TokenBucket(bucket) => Self::TokenBucket(Box::new(TokenBucket::new(bucket))),
            RateConfig::Modem(modem) => Self::Modem(Box::new(Modem::new(modem, dice.split()))),
        }
    }

    /// When the last bit is out of a packet that is ready at `at`; never before an earlier packet's.
    #[inline]
    pub(crate) fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        match self {
            Self::Constant(serialiser) => serialiser.finish(at, wire_len),
            Self::Steps(steps) => steps.finish(at, wire_len),
            Self::Trace(trace) => trace.finish(at, wire_len),
            Self::TokenBucket(bucket) => bucket.finish(at, wire_len),
            Self::Modem(modem) => modem.finish(at, wire_len),
        }
    }

    /// The same for a packet that has waited since `since` and is taken from its queue at `now`. The bytes of an
    /// opportunity go to whoever came before it, so there the arrival counts.
    pub(crate) fn finish_waiting(&mut self, since: u64, now: u64, wire_len: u32) -> u64 {
        self.finish(if matches!(self, Self::Trace(_)) { since } else { now }, wire_len)
    }

    /// The earliest time at which the next packet may be taken from a queue without a gap on the line.
    pub(crate) fn free(&self) -> u64 {
        match self {
            Self::Constant(serialiser) => serialiser.free(),
            Self::Steps(steps) => steps.free(),
            Self::Trace(trace) => trace.free(),
            Self::TokenBucket(bucket) => bucket.free(),
            Self::Modem(modem) => modem.free(),
        }
    }
}

/// A bucket of tokens that fills at a rate: a packet leaves when the bucket holds its length, or when the peak rate
/// allows.
///
/// A bucket of depth B that fills at rate r is a line of rate r that runs B/r behind: a packet may leave B/r before the
/// line would have sent it.
#[derive(Debug, Clone)]
pub(crate) struct TokenBucket {
    line: Serialiser,
    /// B/r, nanoseconds.
    head_start: u64,
    peak: Option<Serialiser>,
    last: u64,
}

impl TokenBucket {
    pub(crate) fn new(config: &TokenBucketConfig) -> Self {
        Self {
            line: Serialiser::new(config.rate.get()),
            head_start: time_of(config.burst.get(), config.rate.get()),
            peak: config.peak.map(|peak| Serialiser::new(peak.get())),
            last: 0,
        }
    }

    fn finish(&mut self, at: u64, wire_len: u32) -> u64 {
        let ready = at.max(self.line.finish(at, wire_len).saturating_sub(self.head_start));
        self.last = self.peak.as_mut().map_or(ready, |peak| peak.finish(ready, wire_len));
        self.last
    }

    /// Takes the tokens of a packet if there are enough of them.
    pub(crate) fn take(&mut self, at: u64, wire_len: u32) -> bool {
        let mut line = self.line;
        let conforms = line.finish(at, wire_len) <= at.saturating_add(self.head_start);
        if conforms {
            self.line = line;
        }
        conforms
    }

    fn free(&self) -> u64 {
        self.peak.map_or(self.last, |peak| peak.free())
    }
}
