//! BBR version 1, as Linux has it.
//!
//! What this leaves out: the drawing of the first phase of the cycle is from a generator of the flow's own, so it differs
//! from the kernel's as one run of the kernel differs from the next. It matters for single short transfers.
//!
//! | kernel | draft-cardwell-iccrg-bbr-congestion-control-00 | here |
//! |---|---|---|
//! | `bbr_update_model` | §4.1 | [`Bbr::cong_control`] |
//! | `bbr_lt_bw_sampling` | – (policers) | [`LongTerm`] in `policer.rs` |
//! | `bbr_update_ack_aggregation` | – | [`Bbr::update_aggregation`] |
//! | `bbr_set_cwnd` | §4.2.3 | [`Bbr::set_cwnd`] |

/// The detector of policers.
mod policer;

use super::minmax::WindowedMax;
use super::{CaEvent, CaState, CongestionControl, INFINITE_SSTHRESH, JIFFY_NS, RateSample, Tcb};
use policer::LongTerm;

/// Bandwidth is counted in segments per µs, times 2²⁴.
const BW_UNIT: u64 = 1 << 24;
/// Gains are counted in 1/256.
const UNIT: u64 = 256;
/// 2/ln 2.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
/// One phase up, one down, six level.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Rounds over which the bandwidth is the maximum.
const BW_ROUNDS: u64 = 10;
/// How long the smallest RTT holds, ticks.
const MIN_RTT_JIFFIES: u64 = 10_000_000_000 / JIFFY_NS;
/// How long the flight is kept small to measure it anew, ticks.
const PROBE_RTT_JIFFIES: u64 = 200_000_000 / JIFFY_NS;
/// The window while it is measured.
const MIN_CWND: u32 = 4;
/// Below this bursts are of one segment, bytes per second.
const MIN_TSO_RATE: u64 = 1_200_000 / 8;
/// Rounds without growth of a quarter after which the pipe counts as full.
const FULL_ROUNDS: u32 = 3;
const INIT_CWND: u32 = 10;
/// The largest burst in bytes that `GSO_MAX_SIZE` leaves for payload.
const BURST_BYTES: u64 = 65_536 - 1 - 320;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBR.
#[derive(Debug, Clone)]
pub struct Bbr {
    draws: u64,
    mode: Mode,
    prev_state: CaState,
    min_rtt_us: u32,
    min_rtt_stamp: u64,
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    bw: WindowedMax,
    rounds: u64,
    next_round_delivered: u64,
    round_start: bool,
    packet_conservation: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
    cycle_us: u64,
    cycle_phase: usize,
    pacing_gain: u64,
    cwnd_gain: u64,
    full_bw_reached: bool,
    full_bw_rounds: u32,
    full_bw: u64,
    prior_cwnd: u32,
    long_term: LongTerm,
    aggregation: Aggregation,
}

/// How much more is acknowledged at once than the bandwidth explains.
#[derive(Debug, Clone, Copy, Default)]
struct Aggregation {
    epoch_us: u64,
    epoch_acked: u32,
    extra: [u32; 2],
    age: u32,
    slot: usize,
}

impl Bbr {
    /// The seed draws the phase with which each cycle begins.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            draws: seed,
            mode: Mode::Startup,
            prev_state: CaState::Open,
            min_rtt_us: u32::MAX,
            min_rtt_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            bw: WindowedMax::default(),
            rounds: 0,
            next_round_delivered: 0,
            round_start: false,
            packet_conservation: false,
            idle_restart: false,
            has_seen_rtt: false,
            cycle_us: 0,
            cycle_phase: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            full_bw_reached: false,
            full_bw_rounds: 0,
            full_bw: 0,
            prior_cwnd: 0,
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
        }
    }

    fn bandwidth(&self) -> u64 {
        self.long_term.bandwidth().unwrap_or_else(|| self.bw.get())
    }

    /// Bytes per second at a gain, one percent below the estimate so that queues drain.
    fn rate(tcb: &Tcb, bw: u64, gain: u64) -> u64 {
        ((((u128::from(bw * u64::from(tcb.mss)) * u128::from(gain)) >> 8) * (1_000_000 / 100 * 99)) >> 24) as u64
    }

    fn pace_by_rtt(&mut self, tcb: &mut Tcb) {
        let rtt_us = if tcb.srtt_us > 0 {
            self.has_seen_rtt = true;
            (tcb.srtt_us >> 3).max(1)
        } else {
            1_000
        };
        let bw = u64::from(tcb.snd_cwnd) * BW_UNIT / u64::from(rtt_us);
        tcb.pacing_rate = Self::rate(tcb, bw, HIGH_GAIN);
    }

    fn set_pacing_rate(&mut self, tcb: &mut Tcb, bw: u64, gain: u64) {
        let rate = Self::rate(tcb, bw, gain);
        if !self.has_seen_rtt && tcb.srtt_us > 0 {
            self.pace_by_rtt(tcb);
        }
        if self.full_bw_reached || rate > tcb.pacing_rate {
            tcb.pacing_rate = rate;
        }
    }

    fn burst(&self, tcb: &Tcb) -> u32 {
        let bytes = (tcb.pacing_rate >> 10).min(BURST_BYTES);
        ((bytes / u64::from(tcb.mss)) as u32).max(self.min_tso_segs(tcb)).min(0x7F)
    }

    fn bdp(&self, bw: u64, gain: u64) -> u32 {
        if self.min_rtt_us == u32::MAX {
            return INIT_CWND;
        }
        let segments =
            ((u128::from(bw) * u128::from(self.min_rtt_us) * u128::from(gain)) >> 8) + u128::from(BW_UNIT - 1);
        u32::try_from(segments >> 24).unwrap_or(u32::MAX / 4)
    }

    /// Room for what the ends hold: three bursts, an even number, two more while probing.
    fn quantize(&self, tcb: &Tcb, cwnd: u32) -> u32 {
        let cwnd = (cwnd + 3 * self.burst(tcb) + 1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle_phase == 0 { cwnd + 2 } else { cwnd }
    }

    fn inflight(&self, tcb: &Tcb, bw: u64, gain: u64) -> u32 {
        self.quantize(tcb, self.bdp(bw, gain))
    }

    /// What will be in the network when the next packet is let go by the pacing.
    fn in_net_at_departure(&self, tcb: &Tcb, in_flight: u32) -> u32 {
        let wait_us = tcb.wstamp_ns.saturating_sub(tcb.now_ns) / 1_000;
        let delivered = (self.bandwidth() * wait_us) >> 24;
        let then = in_flight + if self.pacing_gain > UNIT { self.burst(tcb) } else { 0 };
        u64::from(then).saturating_sub(delivered) as u32
    }

    fn save_cwnd(&mut self, tcb: &Tcb) {
        let good = self.prev_state < CaState::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { tcb.snd_cwnd } else { self.prior_cwnd.max(tcb.snd_cwnd) };
    }

    fn advance_cycle(&mut self, tcb: &Tcb) {
        self.cycle_phase = (self.cycle_phase + 1) & 7;
        self.cycle_us = tcb.delivered_us;
    }

    fn enter_probe_bw(&mut self, tcb: &Tcb) {
        self.mode = Mode::ProbeBw;
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.cycle_phase = 7 - ((self.draws >> 33) % 7) as usize;
        self.advance_cycle(tcb);
    }

    fn leave_probe_rtt(&mut self, tcb: &Tcb) {
        if self.full_bw_reached { self.enter_probe_bw(tcb) } else { self.mode = Mode::Startup }
    }

    fn update_bandwidth(&mut self, tcb: &Tcb, sample: &RateSample) {
        self.round_start = false;
        let (Some(delivered), Some(interval)) = (sample.delivered, sample.interval_us.filter(|us| *us > 0)) else {
            return;
        };
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = tcb.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        if self.long_term.sample(tcb, sample, self.round_start, self.mode == Mode::ProbeBw) {
            self.enter_probe_bw(tcb);
        }
        let bw = u64::from(delivered) * BW_UNIT / interval;
        if !sample.is_app_limited || bw >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.rounds, bw);
        }
    }

    fn update_aggregation(&mut self, tcb: &Tcb, sample: &RateSample) {
        if sample.acked_sacked == 0 || sample.delivered.is_none() || sample.interval_us.is_none_or(|us| us == 0) {
            return;
        }
        let bw = self.bandwidth();
        let state = &mut self.aggregation;
        if self.round_start {
            state.age = (state.age + 1).min(0x1F);
            if state.age >= 5 {
                (state.age, state.slot) = (0, 1 - state.slot);
                state.extra[state.slot] = 0;
            }
        }
        let epoch = tcb.delivered_us.saturating_sub(state.epoch_us);
        let mut expected = u64::from(((u128::from(bw) * u128::from(epoch)) >> 24) as u32);
        if u64::from(state.epoch_acked) <= expected || state.epoch_acked + sample.acked_sacked >= 1 << 20 {
            (state.epoch_acked, state.epoch_us, expected) = (0, tcb.delivered_us, 0);
        }
        state.epoch_acked = (state.epoch_acked + sample.acked_sacked).min(0xF_FFFF);
        let extra = u64::from(state.epoch_acked).saturating_sub(expected).min(u64::from(tcb.snd_cwnd)) as u32;
        state.extra[state.slot] = state.extra[state.slot].max(extra);
    }

    fn is_next_phase(&self, tcb: &Tcb, sample: &RateSample) -> bool {
        let full_length = tcb.delivered_us.saturating_sub(self.cycle_us) > u64::from(self.min_rtt_us);
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_flight = self.in_net_at_departure(tcb, sample.prior_in_flight);
        let bw = self.bw.get();
        if self.pacing_gain > UNIT {
            return full_length && (sample.losses > 0 || in_flight >= self.inflight(tcb, bw, self.pacing_gain));
        }
        full_length || in_flight <= self.inflight(tcb, bw, UNIT)
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.full_bw_reached || !self.round_start || sample.is_app_limited {
            return;
        }
        if self.bw.get() >= self.full_bw * 5 / 4 {
            (self.full_bw, self.full_bw_rounds) = (self.bw.get(), 0);
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_reached = self.full_bw_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, tcb: &mut Tcb) {
        let target = |bbr: &Self, tcb: &Tcb| bbr.inflight(tcb, bbr.bw.get(), UNIT);
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            tcb.snd_ssthresh = target(self, tcb);
        }
        if self.mode == Mode::Drain && self.in_net_at_departure(tcb, tcb.in_flight()) <= target(self, tcb) {
            self.enter_probe_bw(tcb);
        }
    }

    fn check_probe_rtt_done(&mut self, tcb: &mut Tcb) {
        if self.probe_rtt_done.is_none_or(|done| tcb.jiffies() <= done) {
            return;
        }
        self.min_rtt_stamp = tcb.jiffies();
        tcb.snd_cwnd = tcb.snd_cwnd.max(self.prior_cwnd);
        self.leave_probe_rtt(tcb);
    }

    fn update_min_rtt(&mut self, tcb: &mut Tcb, sample: &RateSample) {
        let expired = tcb.jiffies() > self.min_rtt_stamp + MIN_RTT_JIFFIES;
        if let Some(rtt) = sample.rtt_us
            && (rtt < self.min_rtt_us || (expired && !sample.is_ack_delayed))
        {
            (self.min_rtt_us, self.min_rtt_stamp) = (rtt, tcb.jiffies());
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(tcb);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            tcb.app_limited = (tcb.delivered + u64::from(tcb.in_flight())).max(1);
            if self.probe_rtt_done.is_none() {
                if tcb.in_flight() <= MIN_CWND {
                    self.probe_rtt_done = Some(tcb.jiffies() + PROBE_RTT_JIFFIES);
                    self.probe_rtt_round_done = false;
                    self.next_round_delivered = tcb.delivered;
                }
            } else {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(tcb);
                }
            }
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.bandwidth().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle_phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// In the first round of a recovery as much is sent as arrives; returns whether that decides the window.
    fn recover(&mut self, tcb: &Tcb, sample: &RateSample, cwnd: &mut u32) -> bool {
        let (before, state) = (self.prev_state, tcb.ca_state);
        let conserved = tcb.in_flight() + sample.acked_sacked;
        if sample.losses > 0 {
            *cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        if state == CaState::Recovery && before != CaState::Recovery {
            self.packet_conservation = true;
            self.next_round_delivered = tcb.delivered;
            *cwnd = conserved;
        } else if before >= CaState::Recovery && state < CaState::Recovery {
            *cwnd = (*cwnd).max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_state = state;
        if self.packet_conservation {
            *cwnd = (*cwnd).max(conserved);
        }
        self.packet_conservation
    }

    fn set_cwnd(&mut self, tcb: &mut Tcb, sample: &RateSample, bw: u64, gain: u64) {
        let acked = sample.acked_sacked;
        let mut cwnd = tcb.snd_cwnd;
        if acked > 0 && !self.recover(tcb, sample, &mut cwnd) {
            let mut target = self.bdp(bw, gain);
            if self.full_bw_reached {
                let most = ((self.bandwidth() * 100_000) >> 24) as u32;
                target += self.aggregation.extra[0].max(self.aggregation.extra[1]).min(most);
            }
            target = self.quantize(tcb, target);
            if self.full_bw_reached {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || tcb.delivered < u64::from(INIT_CWND) {
                cwnd += acked;
            }
            cwnd = cwnd.max(MIN_CWND);
        }
        tcb.snd_cwnd = cwnd.min(tcb.snd_cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            tcb.snd_cwnd = tcb.snd_cwnd.min(MIN_CWND);
        }
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn init(&mut self, tcb: &mut Tcb) {
        *self = Self::new(self.draws);
        tcb.snd_ssthresh = INFINITE_SSTHRESH;
        (self.min_rtt_us, self.min_rtt_stamp) = (tcb.min_rtt_us, tcb.jiffies());
        self.pace_by_rtt(tcb);
        self.long_term.restart(tcb);
        self.aggregation.epoch_us = tcb.now_us();
        tcb.pacing = true;
    }

    fn ssthresh(&mut self, tcb: &mut Tcb) -> u32 {
        self.save_cwnd(tcb);
        tcb.snd_ssthresh
    }

    fn cong_avoid(&mut self, _tcb: &mut Tcb, _acked: u32) {}

    fn undo_cwnd(&mut self, tcb: &mut Tcb) -> u32 {
        (self.full_bw, self.full_bw_rounds) = (0, 0);
        self.long_term.restart(tcb);
        tcb.snd_cwnd
    }

    fn controls_rate(&self) -> bool {
        true
    }

    fn cong_control(&mut self, tcb: &mut Tcb, sample: &RateSample) {
        self.update_bandwidth(tcb, sample);
        self.update_aggregation(tcb, sample);
        if self.mode == Mode::ProbeBw && self.is_next_phase(tcb, sample) {
            self.advance_cycle(tcb);
        }
        self.check_full(sample);
        self.check_drain(tcb);
        self.update_min_rtt(tcb, sample);
        self.update_gains();
        let bw = self.bandwidth();
        self.set_pacing_rate(tcb, bw, self.pacing_gain);
        self.set_cwnd(tcb, sample, bw, self.cwnd_gain);
    }

    fn set_state(&mut self, tcb: &mut Tcb, new: CaState) {
        if new == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.full_bw = 0;
            self.round_start = true;
            let lost = RateSample { losses: 1, ..RateSample::default() };
            if self.long_term.sample(tcb, &lost, true, self.mode == Mode::ProbeBw) {
                self.enter_probe_bw(tcb);
            }
        }
    }

    fn cwnd_event(&mut self, tcb: &mut Tcb, event: CaEvent) {
        if event == CaEvent::TxStart && tcb.app_limited > 0 {
            self.idle_restart = true;
            (self.aggregation.epoch_us, self.aggregation.epoch_acked) = (tcb.now_us(), 0);
            match self.mode {
                Mode::ProbeBw => self.set_pacing_rate(tcb, self.bandwidth(), UNIT),
                Mode::ProbeRtt => self.check_probe_rtt_done(tcb),
                Mode::Startup | Mode::Drain => {}
            }
        }
    }

    fn min_tso_segs(&self, tcb: &Tcb) -> u32 {
        if tcb.pacing_rate < MIN_TSO_RATE { 1 } else { 2 }
    }

    fn sndbuf_expand(&self) -> u32 {
        3
    }
}
