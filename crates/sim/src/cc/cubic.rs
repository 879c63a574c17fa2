//! CUBIC as Linux has it, with HyStart.
//!
//! What this leaves out: the module's parameters (all at their defaults), and HyStart++ (RFC 9406), which Linux hasn't. It
//! matters on hosts whose parameters were changed.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `bictcp_update` | 9438 §4.2–4.4 | [`Cubic::update`], in integers of the same scale |
//! | `cubictcp_recalc_ssthresh` | 9438 §4.6, §4.7 | β = 717/1024, fast convergence |
//! | `hystart_update` | Ha and Rhee, "Taming the elephants", 2011 | [`Cubic::hystart`]: ACK trains and delay |

use super::{AckSample, CaEvent, CaState, CongestionControl, JIFFY_NS, Tcb};

/// Ticks per second.
const HZ: u64 = 1_000_000_000 / JIFFY_NS;
/// β is 717/1024.
const BETA: u32 = 717;
const BETA_SCALE: u32 = 1024;
/// Time is counted in 1/1024 s.
const TIME_SHIFT: u32 = 10;
/// C is 410/1024 segments/s³.
const CUBE_SCALE: u64 = 410;
/// K³ in (1/1024 s)³ for each segment that is missing to the origin.
const CUBE_FACTOR: u64 = (1 << (10 + 3 * TIME_SHIFT)) / CUBE_SCALE;
/// Eight times 3(1 + β)/(1 − β), inverted: acknowledgements per segment of Reno's growth.
const FRIENDLY_SCALE: u32 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);

/// HyStart begins at this window.
const HYSTART_LOW_WINDOW: u32 = 16;
/// Acknowledgements this close are one train, µs.
const HYSTART_TRAIN_GAP_US: u64 = 2_000;
/// A round's RTT is known after so many samples.
const HYSTART_SAMPLES: u32 = 8;
/// Bounds of the delay that ends slow start, µs.
const HYSTART_DELAY_US: (u32, u32) = (4_000, 16_000);
/// The largest burst a device takes, bytes.
const GSO_MAX_SIZE: u64 = 65_536;

/// CUBIC.
#[derive(Debug, Clone, Default)]
pub struct Cubic {
    /// Acknowledged segments per segment of growth.
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u64,
    origin: u32,
    /// From the beginning of the epoch to the origin, 1/1024 s.
    k: u64,
    delay_min_us: u32,
    /// The tick at which the epoch began.
    epoch_start: Option<u64>,
    ack_cnt: u32,
    /// What Reno would have.
    reno_cwnd: u32,
    round: Round,
}

/// HyStart's view of a round trip.
#[derive(Debug, Clone, Default)]
struct Round {
    samples: u32,
    found: bool,
    start_us: u64,
    end_seq: u64,
    last_ack_us: u64,
    rtt_us: u32,
}

impl Round {
    fn reset(&mut self, tcb: &Tcb) {
        (self.start_us, self.last_ack_us) = (tcb.now_us(), tcb.now_us());
        (self.end_seq, self.rtt_us, self.samples) = (tcb.snd_nxt, u32::MAX, 0);
    }
}

/// The cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    let mut root = (value as f64).cbrt() as u64;
    while (root + 1).pow(3) <= value {
        root += 1;
    }
    while root.pow(3) > value {
        root -= 1;
    }
    root
}

impl Cubic {
    /// K, the time from the beginning of the epoch until the window is back at its origin, 1/1024 s.
    #[must_use]
    pub const fn k(&self) -> u64 {
        self.k
    }

    fn update(&mut self, tcb: &Tcb, acked: u32) {
        let (cwnd, now) = (tcb.snd_cwnd, tcb.jiffies());
        self.ack_cnt = self.ack_cnt.saturating_add(acked);
        if self.last_cwnd == cwnd && now - self.last_time <= HZ / 32 {
            return;
        }
        if self.epoch_start.is_none() || now != self.last_time {
            self.follow_the_curve(cwnd, now, acked);
        }
        self.be_friendly(cwnd);
        // No more than one segment for two: half as much again per round trip.
        self.cnt = self.cnt.max(2);
    }

    fn follow_the_curve(&mut self, cwnd: u32, now: u64, acked: u32) {
        (self.last_cwnd, self.last_time) = (cwnd, now);
        if self.epoch_start.is_none() {
            self.epoch_start = Some(now);
            (self.ack_cnt, self.reno_cwnd) = (acked, cwnd);
            if self.last_max_cwnd <= cwnd {
                (self.k, self.origin) = (0, cwnd);
            } else {
                self.k = cube_root(CUBE_FACTOR * u64::from(self.last_max_cwnd - cwnd));
                self.origin = self.last_max_cwnd;
            }
        }
        let start = self.epoch_start.unwrap_or(now);
        let delay = (u64::from(self.delay_min_us) * 1_000).div_ceil(JIFFY_NS);
        let t = ((now - start + delay) << TIME_SHIFT) / HZ;
        let offset = t.abs_diff(self.k);
        let cube = (u128::from(CUBE_SCALE) * u128::from(offset).pow(3)) >> (10 + 3 * TIME_SHIFT);
        let delta = u32::try_from(cube).unwrap_or(u32::MAX / 2);
        let target = if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        if self.last_max_cwnd == 0 {
            // Nothing is known of the path yet: at least 5 % per round trip.
            self.cnt = self.cnt.min(20);
        }
    }

    fn be_friendly(&mut self, cwnd: u32) {
        let per = ((u64::from(cwnd) * u64::from(FRIENDLY_SCALE)) >> 3).max(1) as u32;
        if self.ack_cnt > per {
            let steps = (self.ack_cnt - 1) / per;
            self.ack_cnt -= steps * per;
            self.reno_cwnd = self.reno_cwnd.saturating_add(steps);
        }
        if self.reno_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.reno_cwnd - cwnd));
        }
    }

    /// How much longer than the path's delay a train may be for the bursts of the sender's own device.
    fn ack_delay_us(tcb: &Tcb) -> u64 {
        (GSO_MAX_SIZE * 4 * 1_000_000).checked_div(tcb.pacing_rate).unwrap_or(0).min(1_000)
    }

    fn hystart(&mut self, tcb: &mut Tcb, delay_us: u32) {
        if tcb.snd_una > self.round.end_seq {
            self.round.reset(tcb);
        }
        if tcb.snd_cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        let now = tcb.now_us();
        if now - self.round.last_ack_us <= HYSTART_TRAIN_GAP_US {
            self.round.last_ack_us = now;
            let mut threshold = u64::from(self.delay_min_us) + Self::ack_delay_us(tcb);
            if !tcb.pacing {
                threshold >>= 1;
            }
            if now - self.round.start_us > threshold {
                self.round.found = true;
                tcb.snd_ssthresh = tcb.snd_cwnd;
            }
        }
        self.round.rtt_us = self.round.rtt_us.min(delay_us);
        if self.round.samples < HYSTART_SAMPLES {
            self.round.samples += 1;
        } else {
            let more = (self.delay_min_us >> 3).clamp(HYSTART_DELAY_US.0, HYSTART_DELAY_US.1);
            if self.round.rtt_us > self.delay_min_us + more {
                self.round.found = true;
                tcb.snd_ssthresh = tcb.snd_cwnd;
            }
        }
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn init(&mut self, tcb: &mut Tcb) {
        *self = Self::default();
        self.round.reset(tcb);
    }

    fn ssthresh(&mut self, tcb: &mut Tcb) -> u32 {
        self.epoch_start = None;
        let cwnd = tcb.snd_cwnd;
        self.last_max_cwnd = if cwnd < self.last_max_cwnd {
            (u64::from(cwnd) * u64::from(BETA_SCALE + BETA) / u64::from(2 * BETA_SCALE)) as u32
        } else {
            cwnd
        };
        ((u64::from(cwnd) * u64::from(BETA) / u64::from(BETA_SCALE)) as u32).max(2)
    }

    fn cong_avoid(&mut self, tcb: &mut Tcb, acked: u32) {
        if !tcb.limited_by_cwnd() {
            return;
        }
        let left = if tcb.in_slow_start() { tcb.slow_start(acked) } else { acked };
        if left > 0 {
            self.update(tcb, left);
            tcb.cong_avoid_ai(self.cnt, left);
        }
    }

    fn undo_cwnd(&mut self, tcb: &mut Tcb) -> u32 {
        tcb.snd_cwnd.max(tcb.prior_cwnd)
    }

    fn pkts_acked(&mut self, tcb: &mut Tcb, sample: &AckSample) {
        let Some(rtt_us) = sample.rtt_us else { return };
        // Samples right after a recovery still tell of the queue that it came from.
        if self.epoch_start.is_some_and(|start| tcb.jiffies() - start < HZ) {
            return;
        }
        let delay = rtt_us.max(1);
        if self.delay_min_us == 0 || self.delay_min_us > delay {
            self.delay_min_us = delay;
        }
        if !self.round.found && tcb.in_slow_start() {
            self.hystart(tcb, delay);
        }
    }

    fn set_state(&mut self, tcb: &mut Tcb, new: CaState) {
        if new == CaState::Loss {
            self.init(tcb);
        }
    }

    fn cwnd_event(&mut self, tcb: &mut Tcb, event: CaEvent) {
        if event != CaEvent::TxStart {
            return;
        }
        // A pause stands still on the curve.
        let now = tcb.jiffies();
        if let Some(start) = &mut self.epoch_start {
            *start = (*start + now.saturating_sub(tcb.last_send_ns / JIFFY_NS)).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_the_cube_root_of_what_is_missing_over_c() {
        for (max, seconds) in [(16_u32, 2.289), (100, 4.217), (1_000, 9.086)] {
            let mut cubic = Cubic::default();
            let mut tcb = Tcb::new(1448, max);
            tcb.snd_ssthresh = cubic.ssthresh(&mut tcb);
            tcb.snd_cwnd = tcb.snd_ssthresh;
            (tcb.is_cwnd_limited, tcb.now_ns) = (true, 1_000_000_000);
            cubic.cong_avoid(&mut tcb, 1);
            let expected = (f64::from(max) * 0.3 / 0.4_f64).cbrt();
            assert!((expected - seconds).abs() < 0.01, "the RFC's formula gives {expected}");
            let k = cubic.k() as f64 / 1024.0;
            // Windows are whole segments, so K of a small one is coarse.
            assert!((k / expected - 1.0).abs() < 0.03, "K of {max} is {k} s, the formula gives {expected}");
        }
    }

    #[test]
    fn cube_roots_are_exact() {
        for value in [0_u64, 1, 7, 8, 26, 27, 1_000_000, 999_999, u64::from(u32::MAX)] {
            let root = cube_root(value);
            assert!(root.pow(3) <= value && (root + 1).pow(3) > value, "{value} gave {root}");
        }
    }

    #[test]
    fn slow_start_ends_when_the_round_trip_grows_by_an_eighth() {
        let mut cubic = Cubic::default();
        let mut tcb = Tcb::new(1448, 32);
        cubic.init(&mut tcb);
        let ack = |rtt| AckSample { pkts_acked: 1, rtt_us: Some(rtt), in_flight: 32 };
        cubic.pkts_acked(&mut tcb, &ack(100_000));
        for _ in 0..20 {
            tcb.now_ns += 5_000_000; // far apart: no train
            cubic.pkts_acked(&mut tcb, &ack(112_000));
        }
        assert!(tcb.in_slow_start(), "an eighth is 12.5 ms, and this is 12");
        (tcb.snd_una, tcb.snd_nxt) = (1, 2);
        (0..9).for_each(|_| cubic.pkts_acked(&mut tcb, &ack(113_000)));
        assert!(!tcb.in_slow_start());
    }
}
