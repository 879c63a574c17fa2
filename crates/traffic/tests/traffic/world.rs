//! Traffic of known truth: prefixes of unequal activity with levels and moods of their own, a level that drifts, and tails.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;
use std::time::Duration;
use wt_traffic::{
    ArmThresholds, ClientPrefix, ConnectionFate, ConnectionOutcome, DrawKey, TrafficAnalysis, TrafficArm,
    TrafficConfig, TrafficRamp, TrafficUnit,
};

/// What a connection's goodput varies by, besides its prefix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tails {
    /// Lognormal, σ = 1.
    Lognormal,
    /// t with 3 degrees of freedom, and 3 % stalls as long as Pareto's tail.
    Stalls,
    /// t with 3 degrees of freedom and a variance of 1, and 3 % stalls that take a hundred times as long, or more: so long that a t
    /// test needs 58,000 connections for +5 %.
    LongStalls,
}

/// What the second arm does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    /// Its goodput over the first's.
    pub(crate) ratio: f64,
    /// Its share of retransmitted segments over the first's.
    pub(crate) retransmissions: f64,
    /// Its resets over the first's.
    pub(crate) resets: f64,
    /// Which part of the goodput that it gains is taken from the others, as logarithms.
    pub(crate) taken: f64,
}

/// None at all.
pub(crate) const NOTHING: Effect = Effect { ratio: 1.0, retransmissions: 1.0, resets: 1.0, taken: 0.0 };

/// Only another goodput.
pub(crate) fn gain(ratio: f64) -> Effect {
    Effect { ratio, ..NOTHING }
}

/// How many prefixes there are.
const PREFIXES: usize = 400;

/// A server's clients.
pub(crate) struct World {
    rng: ChaCha8Rng,
    tails: Tails,
    cumulative: Vec<f64>,
    levels: Vec<f64>,
    loss: Vec<f64>,
    moods: Vec<f64>,
    walk: f64,
    drawn: u64,
}

/// A connection before it has an arm: its prefix, and what it would be like with the first.
pub(crate) struct Arrival {
    pub(crate) prefix: ClientPrefix,
    pub(crate) port: u16,
    log_goodput: f64,
    bytes: u64,
    loss: f64,
    chance: [f64; 4],
}

pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (a, b) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * a.ln()).sqrt() * (TAU * b).cos()
}

fn t3(rng: &mut ChaCha8Rng) -> f64 {
    let chi: f64 = (0..3).map(|_| normal(rng).powi(2)).sum::<f64>() / 3.0;
    normal(rng) / chi.sqrt()
}

impl World {
    pub(crate) fn new(seed: u64, tails: Tails) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sum = 0.0;
        let mut zipf = |i: usize| {
            sum += 1.0 / (i + 1) as f64;
            sum
        };
        Self {
            cumulative: (0..PREFIXES).map(&mut zipf).collect(),
            levels: (0..PREFIXES).map(|_| 0.7 * normal(&mut rng)).collect(),
            loss: (0..PREFIXES).map(|_| 0.02 * rng.random::<f64>().powi(2)).collect(),
            moods: vec![0.0; PREFIXES],
            walk: 0.0,
            drawn: 0,
            tails,
            rng,
        }
    }

    /// A new epoch: every prefix has another mood.
    pub(crate) fn epoch(&mut self) {
        for mood in &mut self.moods {
            *mood = 0.4 * normal(&mut self.rng);
        }
    }

    pub(crate) fn arrival(&mut self) -> Arrival {
        let rng = &mut self.rng;
        let at = rng.random::<f64>() * self.cumulative[PREFIXES - 1];
        let i = self.cumulative.partition_point(|c| *c < at).min(PREFIXES - 1);
        self.walk += 0.005 * normal(rng);
        self.drawn += 1;
        let wave = 0.3 * (TAU * self.drawn as f64 / 18_000.0).sin();
        let noise = match self.tails {
            Tails::Lognormal => normal(rng),
            Tails::Stalls => {
                t3(rng) + if rng.random::<f64>() < 0.03 { (1.0 - rng.random::<f64>()).ln() / 1.5 - 1.0 } else { 0.0 }
            }
            Tails::LongStalls => {
                let long = if rng.random::<f64>() < 0.03 { 4.0 * (1.0 - rng.random::<f64>()).ln() - 4.6 } else { 0.0 };
                t3(rng) / 3f64.sqrt() + long
            }
        };
        let size = 3.0 * rng.random::<f64>();
        Arrival {
            prefix: ClientPrefix(4 << 60 | (0x00c0_0000 + i as u64)),
            port: rng.random(),
            log_goodput: 13.0 + 0.3 * size + self.levels[i] + self.moods[i] + self.walk + wave + noise,
            bytes: (8_000.0 * size.exp2().powi(2)) as u64,
            loss: self.loss[i],
            chance: std::array::from_fn(|_| rng.random()),
        }
    }
}

impl Arrival {
    /// What becomes of it with an arm.
    pub(crate) fn outcome(&self, arm: usize, epoch: u64, key: DrawKey, effect: Effect) -> ConnectionOutcome {
        let effect = if arm == 0 { NOTHING } else { effect };
        let goodput = (self.log_goodput + effect.ratio.ln()).exp();
        let segments = self.bytes.div_ceil(1448) as u32 + 1;
        let loss = self.loss * effect.retransmissions;
        let [lost, timeout, reset, open] = self.chance;
        let retransmitted = if lost < 1.0 - (1.0 - loss).powi(segments as i32) { 1 + segments / 20 } else { 0 };
        let fate = if reset < (2.0 * self.loss * effect.resets).min(1.0) {
            ConnectionFate::Reset
        } else if open < 0.05 + self.loss {
            ConnectionFate::Open
        } else {
            ConnectionFate::Closed
        };
        ConnectionOutcome {
            arm,
            epoch,
            offset_us: 0,
            tag: key.tag(self.prefix),
            connection: self.chance[0].to_bits(),
            by_response: false,
            bytes_acked: self.bytes,
            duration_us: (self.bytes as f64 * 1e6 / goodput).clamp(1.0, 6e9) as u64,
            busy_us: None,
            min_rtt_us: 20_000,
            sent_segments: segments,
            retransmitted_segments: retransmitted.min(segments),
            rtos: Some(u32::from(timeout < loss)),
            fate,
            set_errors: 0,
            compliant: true,
        }
    }
}

pub(crate) fn config(unit: TrafficUnit, ramp: TrafficRamp) -> TrafficConfig {
    let arm = |name: &str, settings: &str| TrafficArm { name: name.to_owned(), settings: settings.parse().unwrap() };
    TrafficConfig {
        ports: vec![443],
        arms: vec![arm("A", "initcwnd=10"), arm("B", "initcwnd=32")],
        unit,
        ramp,
        epoch: Duration::from_secs(600),
        ..TrafficConfig::default()
    }
}

/// A run of whole epochs.
pub(crate) struct Run {
    pub(crate) analysis: TrafficAnalysis,
    /// Connections until something was claimed, and whether it was "faster".
    pub(crate) claimed: Option<(u64, bool)>,
    /// Connections of the second arm until a guard stopped it.
    pub(crate) stopped: Option<u64>,
    /// The largest |t| of a t test over connections, with a look every 500, and the last.
    pub(crate) t: [f64; 2],
}

/// Runs so many epochs with so many connections each, until something is claimed if `until_claimed`.
pub(crate) fn run(
    seed: u64,
    tails: Tails,
    config: TrafficConfig,
    epochs: (u64, u64),
    effect: Effect,
    until_claimed: bool,
) -> Run {
    let needed = 40f64.ln();
    let (mut claimed, mut stopped) = (None, None);
    let mut run = run_with(seed, tails, config, epochs, effect, |analysis| {
        if claimed.is_none() {
            let side = analysis.best_evidence(1).iter().position(|log| *log >= needed);
            claimed = side.map(|side| (analysis.treated() + analysis.controls(), side == 0));
        }
        if stopped.is_none() && !analysis.stopped().is_empty() {
            stopped = Some(analysis.treated());
        }
        until_claimed && claimed.is_some()
    });
    (run.claimed, run.stopped) = (claimed, stopped);
    run
}

/// Runs so many epochs; after each `done` says whether that is enough.
pub(crate) fn run_with(
    seed: u64,
    tails: Tails,
    config: TrafficConfig,
    (epochs, each): (u64, u64),
    effect: Effect,
    mut done: impl FnMut(&TrafficAnalysis) -> bool,
) -> Run {
    let mut world = World::new(seed, tails);
    let (key, tags) = (DrawKey([seed, 1]), DrawKey([seed, 2]));
    let unit = config.unit;
    let analysis = TrafficAnalysis::new(config.clone()).unwrap();
    let mut run = Run { analysis, claimed: None, stopped: None, t: [0.0; 2] };
    let mut sums = [[0.0f64; 3]; 2];
    let mut connections = 0u64;
    for epoch in 0..epochs {
        let shares = config.shares(key, epoch, run.analysis.treated(), &[]);
        run.analysis.begin_epoch(epoch, &shares, config.drawn_place(key, epoch));
        let thresholds = ArmThresholds::new(&shares);
        world.epoch();
        for _ in 0..each {
            let mut arrival = world.arrival();
            arrival.log_goodput -= effect.taken * (shares[0] + shares[1] * effect.ratio).ln();
            let rest = u64::from(arrival.port) << 16 | connections << 34 | 1;
            let Some(arm) = key.arm(arrival.prefix, epoch, unit, rest, &thresholds) else { continue };
            let outcome = arrival.outcome(arm, epoch, tags, effect);
            run.analysis.record(&outcome);
            connections += 1;
            let y = (outcome.bytes_acked as f64 * 1e6 / outcome.duration_us as f64).ln();
            let [n, sum, squares] = sums[arm];
            sums[arm] = [n + 1.0, sum + y, squares + y * y];
            if connections.is_multiple_of(500) {
                run.t = [run.t[0].max(welch(&sums)), welch(&sums)];
            }
        }
        run.analysis.close_epoch(epoch);
        if done(&run.analysis) {
            break;
        }
    }
    run
}

/// Welch's t.
fn welch(sums: &[[f64; 3]; 2]) -> f64 {
    let [a, b] = sums.map(|[n, sum, squares]| {
        let mean = sum / n;
        (mean, (squares / n - mean * mean) / n)
    });
    let t = (a.0 - b.0).abs() / (a.1 + b.1).sqrt();
    if t.is_finite() { t } else { 0.0 }
}
