use super::{BW_UNIT, UNIT};
use crate::cc::{RateSample, Tcb};

/// Rounds of an interval, at least.
const MIN_ROUNDS: u32 = 4;
/// An interval with a fifth of its packets lost may tell of a policer, 1/256.
const LOSSY: u64 = 50;
/// Rounds for which a policer's rate is believed.
const BELIEVED_ROUNDS: u32 = 48;
/// Rates that differ by so many bytes per second are the same.
const SAME_RATE: u64 = 4_000 / 8;

/// Two intervals in a row with a fifth of the packets lost and the same rate: there is a policer, and that is its rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LongTerm {
    bw: u64,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    last_delivered: u64,
    last_lost: u64,
    last_ms: u64,
}

impl LongTerm {
    /// The policer's rate, if one was found.
    pub(super) fn bandwidth(&self) -> Option<u64> {
        self.in_use.then_some(self.bw)
    }

    fn begin_interval(&mut self, tcb: &Tcb) {
        self.last_ms = tcb.delivered_us / 1_000;
        (self.last_delivered, self.last_lost, self.rounds) = (tcb.delivered, tcb.lost, 0);
    }

    /// Forgets everything.
    pub(super) fn restart(&mut self, tcb: &Tcb) {
        *self = Self::default();
        self.begin_interval(tcb);
    }

    /// Takes a sample in; true when a policer was believed long enough and probing should begin again.
    pub(super) fn sample(&mut self, tcb: &Tcb, sample: &RateSample, round_start: bool, probing: bool) -> bool {
        if self.in_use {
            if probing && round_start {
                self.rounds += 1;
                if self.rounds >= BELIEVED_ROUNDS {
                    self.restart(tcb);
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            if sample.losses == 0 {
                return false;
            }
            self.begin_interval(tcb);
            self.sampling = true;
        }
        if sample.is_app_limited {
            self.restart(tcb);
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds > 4 * MIN_ROUNDS {
            self.restart(tcb);
        } else if self.rounds >= MIN_ROUNDS && sample.losses > 0 {
            self.end_interval(tcb);
        }
        false
    }

    fn end_interval(&mut self, tcb: &Tcb) {
        let (lost, delivered) = (tcb.lost - self.last_lost, tcb.delivered - self.last_delivered);
        let ms = (tcb.delivered_us / 1_000).saturating_sub(self.last_ms);
        if delivered == 0 || lost * UNIT < LOSSY * delivered || ms == 0 {
            return;
        }
        let bw = delivered * BW_UNIT / (ms * 1_000);
        if self.bw > 0 {
            let difference = bw.abs_diff(self.bw);
            let rate = super::Bbr::rate(tcb, difference, UNIT);
            if difference * UNIT <= UNIT / 8 * self.bw || rate <= SAME_RATE {
                self.bw = (bw + self.bw) / 2;
                (self.in_use, self.rounds) = (true, 0);
                return;
            }
        }
        self.bw = bw;
        self.begin_interval(tcb);
    }
}
