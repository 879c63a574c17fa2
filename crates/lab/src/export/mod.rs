//! A path for other emulators: what they can express as a script, and a list of what they can't.

/// For mahimahi.
mod mahimahi;
/// For tc-netem.
mod netem;

use crate::Scenario;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_link::{JitterConfig, LossConfig, QueueConfig, RateConfig, StageConfig};
use wt_units::{BitsPerSecond, Ratio};

/// Another emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulator {
    /// tc-netem(8), on a router with a device on each side.
    Netem,
    /// mm-delay, mm-loss and mm-link.
    Mahimahi,
}

/// What was made of a path for another emulator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportedPath {
    /// The commands.
    pub script: String,
    /// What isn't in them, or not exactly.
    pub missing: Vec<String>,
    /// Files that belong to them: name and content.
    pub files: Vec<(String, String)>,
}

/// An export as JSON: the contract of `windtunnel lab export --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// The path's name.
    pub path: String,
    /// The commands.
    pub script: String,
    /// The files that belong to them.
    pub files: Vec<PathBuf>,
    /// What isn't in them, or not exactly.
    pub not_expressed: Vec<String>,
}

impl ExportedPath {
    /// Makes commands of a path; they name their files in this folder. Nothing is written.
    #[must_use]
    pub fn new(scenario: &Scenario, emulator: Emulator, folder: &Path) -> Self {
        match emulator {
            Emulator::Netem => netem::export(scenario),
            Emulator::Mahimahi => mahimahi::export(scenario, folder),
        }
    }

    /// The commands, and as comments what isn't in them.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = self.script.trim_end().to_owned();
        if !self.missing.is_empty() {
            text.push_str("\n\n# Not expressed, or not exactly:");
            self.missing.iter().for_each(|line| text.push_str(&format!("\n# - {}", one_line(line))));
        }
        text
    }

    /// The documented object.
    #[must_use]
    pub fn answer(self, scenario: &Scenario, folder: &Path) -> ExportAnswer {
        ExportAnswer {
            schema_version: 1,
            path: scenario.name.clone(),
            script: self.script,
            files: self.files.iter().map(|(name, _)| folder.join(name)).collect(),
            not_expressed: self.missing,
        }
    }
}

/// One direction of a whole path, as far as a single emulated link can have it.
#[derive(Debug, Default)]
struct OneWay {
    /// The slowest link's sender.
    queue: Option<QueueConfig>,
    delay: Duration,
    jitter: Option<JitterConfig>,
    /// Independent losses of all links together.
    loss: f64,
    model: Option<LossConfig>,
    duplicate: Ratio,
    corrupt: Ratio,
    missing: Vec<String>,
}

impl OneWay {
    /// Joins the links of a path in one direction.
    fn of(scenario: &Scenario, up: bool) -> Self {
        let mut one = Self::default();
        let mut through = 1.0;
        for (link, stages) in scenario.links.iter().zip(scenario.path().links) {
            if stages.medium.is_some() {
                one.missing.push(format!("link \"{}\": the shared medium with its collisions", link.name));
            }
            for stage in if up { &stages.forward } else { &stages.backward } {
                one.add(&link.name, stage, &mut through);
            }
            if u64::from(scenario.client_mtu.min(scenario.server_mtu)) > link.mtu.get() {
                one.missing.push(format!(
                    "link \"{}\": its MTU of {} (set it on the device)",
                    link.name,
                    link.mtu.get()
                ));
            }
            one.missing
                .extend(link.hop.describe().into_iter().map(|what| format!("hop before \"{}\": {what}", link.name)));
        }
        if scenario.links.len() > 1 {
            let (count, of) =
                (scenario.links.len(), "one link: the routers between them, and queues but at the slowest");
            one.missing.push(format!("{count} links became {of}"));
        }
        one.loss = 1.0 - through;
        one
    }

    fn add(&mut self, link: &str, stage: &StageConfig, through: &mut f64) {
        let mut lacks = |what: &str| self.missing.push(format!("link \"{link}\": {what}"));
        match stage {
            StageConfig::Mtu { .. } => {}
            StageConfig::Delay { delay } => self.delay += *delay,
            StageConfig::Loss(LossConfig::Bernoulli { probability }) => *through *= 1.0 - probability.get(),
            StageConfig::Loss(LossConfig::ByDataIndex { probability }) => {
                *through *= 1.0 - probability.get();
                lacks("loss by the index of the data packet (became random loss)");
            }
            StageConfig::Loss(model) if self.model.is_none() => self.model = Some(model.clone()),
            StageConfig::Loss(_) => lacks("a second model of loss"),
            StageConfig::Jitter(jitter) if self.jitter.is_none() => self.jitter = Some(jitter.clone()),
            StageConfig::Jitter(_) => lacks("a second jitter"),
            StageConfig::Duplicate { probability } => self.duplicate = either(self.duplicate, *probability),
            // What the link notices is lost.
            StageConfig::Corrupt { probability, detected: true } => *through *= 1.0 - probability.get(),
            StageConfig::Corrupt { probability, .. } => self.corrupt = either(self.corrupt, *probability),
            StageConfig::Queue(queue) => {
                if self.queue.as_ref().is_none_or(|known| mean_rate(&queue.rate) < mean_rate(&known.rate)) {
                    self.queue = Some(queue.clone());
                }
            }
            StageConfig::Outages(_) => lacks("outages"),
            StageConfig::DelaySteps { .. } => lacks("steps of the delay"),
            StageConfig::Policer(_) => lacks("the policer"),
            StageConfig::Reorder { .. } => lacks("reordering"),
            StageConfig::Thinning(_) => lacks("thinning of ACKs"),
            StageConfig::Airtime(radio) => {
                lacks("the radio's airtime (became a queue of its rate)");
                let queue = QueueConfig {
                    framing: radio.framing.clone(),
                    rate: RateConfig::Constant(radio.rate),
                    bound: radio.bound,
                    discipline: wt_link::Discipline::DropTail,
                };
                if self.queue.as_ref().is_none_or(|known| radio.rate < mean_rate(&known.rate)) {
                    self.queue = Some(queue);
                }
            }
        }
    }

    /// Packets of 1500 bytes that the queue holds.
    fn queue_packets(&self) -> u64 {
        let Some(queue) = &self.queue else { return 1000 };
        let bytes = queue.bound.bytes.map_or(u64::MAX, |bytes| bytes.get().div_ceil(1500));
        bytes.min(queue.bound.packets.map_or(u64::MAX, u64::from)).clamp(1, 1_000_000)
    }
}

/// As a comment of a shell script takes it: nothing in it ends the line.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// The chance of at least one of two.
fn either(one: Ratio, other: Ratio) -> Ratio {
    Ratio(1.0 - (1.0 - one.get()) * (1.0 - other.get()))
}

/// The rate in the long run; of steps the slowest at which anything passes, of a modem that of the bytes it is given.
fn mean_rate(rate: &RateConfig) -> BitsPerSecond {
    match rate {
        RateConfig::Constant(rate) => *rate,
        // To netem a rate of 0 is none.
        RateConfig::Steps(steps) => {
            let passing = steps.steps.iter().map(|(_, rate)| *rate).filter(|rate| rate.get() > 0);
            passing.min().unwrap_or(BitsPerSecond(1))
        }
        RateConfig::Trace(trace) => BitsPerSecond::over(
            wt_units::Bytes(trace.bytes.get().saturating_mul(trace.trace.len() as u64)),
            trace.trace.period(),
        ),
        RateConfig::TokenBucket(bucket) => bucket.rate,
        RateConfig::Modem(modem) => modem.byte_rate(),
    }
}
