//! Synthetic experiments with a known truth, for tests and for the eye.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use std::time::Duration;
use wt_experiment::{Assessment, Config, Experiment, Observation, PlateauConfig, StopReason};
use wt_trial::{
    Amount, Direction, Limits, Measures, Observed, PathFacts, Phase, Sample, Status, TrialOutcome, TrialRecord,
    TrialSpec, Workload,
};
use wt_units::{Bytes, Knob, Level, Settings};

/// One setting and how it really performs.
pub(crate) struct Truth {
    pub(crate) label: String,
    pub(crate) settings: Settings,
    /// Mean goodput, Mbit/s; with 0 each trial fails.
    pub(crate) mbit: f64,
}

impl Truth {
    pub(crate) fn new(label: &str, settings: Settings, mbit: f64) -> Self {
        Self { label: label.to_owned(), settings, mbit }
    }
}

/// A whole synthetic experiment.
pub(crate) struct Story {
    pub(crate) path: PathFacts,
    pub(crate) current: Settings,
    pub(crate) truths: Vec<Truth>,
    pub(crate) plateau: Option<Knob>,
    pub(crate) assessment: Assessment,
    pub(crate) records: Vec<TrialRecord>,
}

/// What is to be run.
pub(crate) struct Plan {
    pub(crate) truths: Vec<Truth>,
    /// Arms of the ordered knob, ascending.
    pub(crate) levels: Vec<usize>,
    /// Standard deviation of the log goodput of a trial.
    pub(crate) noise: f64,
    pub(crate) budget: usize,
    /// Stop after so many rounds, as a user would.
    pub(crate) stop_after: Option<usize>,
    pub(crate) seed: u64,
}

pub(crate) const LIMIT_MBIT: f64 = 6.792_452;

pub(crate) fn rwin(bytes: u64) -> Settings {
    Settings::new().with(Knob::Rwin, Level::Number(bytes))
}

pub(crate) fn current() -> Settings {
    Settings::new()
        .with(Knob::Rwin, Level::Auto)
        .with(Knob::Mtu, Level::Number(1_492))
        .with(Knob::Cc, Level::Name("cubic".into()))
}

/// A window that is too small, one that suffices, a better MTU and another congestion control.
pub(crate) fn adsl(mtu_gain: f64, budget: usize) -> Plan {
    let cc = Settings::new().with(Knob::Cc, Level::Name("bbr".into()));
    let mtu = Settings::new().with(Knob::Mtu, Level::Number(1_444));
    Plan {
        truths: vec![
            Truth::new("current (rwin=auto mtu=1492 cc=cubic)", Settings::new(), 6.2),
            Truth::new("rwin=14400 (10×1440)", rwin(14_400), 3.3),
            Truth::new("rwin=28800 (20×1440)", rwin(28_800), 6.0),
            Truth::new("rwin=57600 (40×1440)", rwin(57_600), 6.19),
            Truth::new("mtu=1444", mtu, 6.2 * mtu_gain),
            Truth::new("cc=bbr", cc, 6.1),
        ],
        levels: vec![1, 2, 3, 0],
        noise: 0.02,
        budget,
        stop_after: None,
        seed: 7,
    }
}

impl Plan {
    pub(crate) fn run(self) -> Story {
        self.run_at(0.05)
    }

    /// With this probability of a false claim of the race.
    pub(crate) fn run_at(self, alpha: f64) -> Story {
        let mut rng = ChaCha12Rng::seed_from_u64(self.seed);
        let mut config = Config::new(self.truths.len());
        config.max_trials = Some(self.budget);
        config.alpha = alpha;
        let ordered = self.levels.len() >= 2;
        config.plateau = ordered.then(|| PlateauConfig::new(self.levels.clone()));
        let mut experiment = Experiment::new(config).expect("a sound configuration");
        let mut records = Vec::new();
        let mut number = 0;
        while let Some(order) = experiment.next_round(&mut rng) {
            number += 1;
            let mut round = Vec::new();
            for (place, arm) in order.into_iter().enumerate() {
                let record = self.trial(arm, (number, place as u32 + 1), records.len() as i64 + 1, &mut rng);
                let elapsed = Duration::from_micros(record.outcome.elapsed_us);
                round.push(match record.outcome.bytes {
                    0 => Observation::failed(arm, elapsed, Bytes(1_000)),
                    bytes => Observation::completed(arm, Bytes(bytes), elapsed),
                });
                records.push(record);
            }
            experiment.record(&round).expect("a whole round");
            if self.stop_after.is_some_and(|rounds| experiment.rounds() >= rounds) {
                experiment.stop(StopReason::User);
            }
        }
        Story {
            path: PathFacts {
                rtt_us: 34_900,
                pmtu: 1_492,
                bdp_bytes: 29_600,
                physical_goodput_bps: Some((LIMIT_MBIT * 1e6) as u64),
            },
            current: current(),
            plateau: ordered.then_some(Knob::Rwin),
            assessment: experiment.assessment(),
            records,
            truths: self.truths,
        }
    }

    fn trial(&self, arm: usize, (round, order): (u32, u32), id: i64, rng: &mut ChaCha12Rng) -> TrialRecord {
        let truth = &self.truths[arm];
        // The sum of twelve uniforms is near enough to a normal variable.
        let normal = (0..12).map(|_| rng.random_range(-0.5..0.5)).sum::<f64>();
        let bps = truth.mbit * 1e6 * (self.noise * normal).exp();
        let elapsed_us = 3_000_000;
        let bytes = (bps * elapsed_us as f64 / 8e6) as u64;
        let mut granted = truth.settings.clone();
        if let Some(cc) = truth.settings.get(Knob::Cc) {
            granted.set(Knob::Cc, cc.clone());
        }
        let scopes = truth.settings.iter().map(|(knob, _)| (knob.name().to_owned(), "socket".to_owned()));
        let mss = truth.settings.number(Knob::Mtu).unwrap_or(1_492) - 52;
        let window = truth.settings.number(Knob::Rwin).unwrap_or(393_216);
        let observed = Observed {
            mss: Some(mss),
            pmtu: Some(mss + 52),
            rwin_max: Some(window),
            cc: Some(truth.settings.name(Knob::Cc).unwrap_or("cubic").to_owned()),
            retransmits: Some(id.unsigned_abs() % 7),
            min_rtt_us: Some(31_000 + id.unsigned_abs() % 90),
            ..Observed::default()
        };
        let outcome = TrialOutcome {
            status: if bytes == 0 { Status::Failed } else { Status::Completed },
            bytes,
            elapsed_us,
            granted,
            scopes: scopes.collect(),
            observed,
            sender: samples(bps, window, true, arm),
            receiver: samples(bps, window, false, arm),
            limits: Limits { busy_us: elapsed_us, ..Limits::default() },
            notes: Vec::new(),
            measures: Measures::default(),
        };
        let spec = TrialSpec {
            experiment: "20261121-081500-adsl-3f9a".into(),
            phase: Phase::Round,
            round,
            order,
            arm,
            settings: truth.settings.clone(),
            workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(3)) },
            deadline: Duration::from_secs(30),
            seed: self.seed,
        };
        TrialRecord { id, spec, started_unix_us: 1_795_248_900_000_000 + id * 3_500_000, outcome }
    }
}

/// A slow start, then a sawtooth; every 10 ms.
fn samples(bps: f64, window: u64, sender: bool, arm: usize) -> Vec<Sample> {
    (0..=300u64)
        .map(|i| {
            let t = i as f64 / 100.0;
            let ramp = (t / 0.25).min(1.0);
            let bytes = bps / 8.0 * (t - 0.125 * ramp - (1.0 - ramp) * t * 0.5).max(0.0);
            let saw = 24.0 + 70.0 * ((t * 0.8 + arm as f64 * 0.2).fract());
            let cwnd = if t < 0.2 { 14_400.0 * (t / 0.05).exp2() } else { saw * 1_440.0 };
            let quantum = if sender { 1.0 } else { 1_440.0 };
            Sample {
                t_us: i * 10_000,
                bytes: ((bytes / quantum).floor() * quantum) as u64,
                snd_cwnd: cwnd.min(window as f64 * 1.2) as u64,
                rtt: 34_000 + (i % 37) * 900,
                min_rtt: 31_000,
                snd_wnd: window,
                ..Sample::default()
            }
        })
        .collect()
}
