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
            for stage in if up { &stages.forward } else { &stages.backward } {
                one.add(&link.name, stage, &mut through);
            }
            if let Some(medium) = &stages.medium {
                let what = "the shared medium with its collisions (became a queue of its rate each way)";
                one.missing.push(format!("link \"{}\": {what}", link.name));
                one.delay += medium.extent;
                one.take_slower(medium.one_way());
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
            StageConfig::Jitter(jitter) => {
                lacks("a second jitter (its mean became delay)");
                self.delay = self.delay.saturating_add(jitter.distribution.mean());
            }
            StageConfig::Duplicate { probability } => self.duplicate = either(self.duplicate, *probability),
            // What the link notices is lost.
            StageConfig::Corrupt { probability, detected: true } => *through *= 1.0 - probability.get(),
            StageConfig::Corrupt { probability, .. } => self.corrupt = either(self.corrupt, *probability),
            StageConfig::Queue(queue) => self.take_slower(queue.clone()),
            StageConfig::Outages(_) => lacks("outages"),
            StageConfig::DelaySteps { .. } => lacks("steps of the delay"),
            StageConfig::Policer(_) => lacks("the policer"),
            StageConfig::Reorder { .. } => lacks("reordering"),
            StageConfig::Thinning(_) => lacks("thinning of ACKs"),
            StageConfig::Airtime(radio) => {
                lacks("the radio's airtime (became a queue of its rate)");
                self.take_slower(QueueConfig {
                    framing: radio.framing.clone(),
                    rate: RateConfig::Constant(radio.rate),
                    bound: radio.bound,
                    discipline: wt_link::Discipline::DropTail,
                });
            }
        }
    }

    /// Of all queues the slowest one stays, the first of those that are equally slow.
    fn take_slower(&mut self, queue: QueueConfig) {
        if self.queue.as_ref().is_none_or(|known| mean_rate(&queue.rate) < mean_rate(&known.rate)) {
            self.queue = Some(queue);
        }
    }

    /// Propagation, with the mean of the jitter.
    fn mean_delay(&self) -> Duration {
        let jitter = self.jitter.as_ref().map_or(Duration::ZERO, |jitter| jitter.distribution.mean());
        self.delay.saturating_add(jitter)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The preset with a faster link behind it, and without.
    fn hub(behind: &str) -> Scenario {
        let text = crate::presets::text("ethernet-hub").unwrap();
        Scenario::parse("hub", &format!("{text}\n{behind}")).unwrap()
    }

    #[test]
    fn a_shared_medium_is_exported_as_a_queue_of_its_rate_each_way() {
        let alone = hub("");
        let medium = alone.path().links[0].medium.unwrap();
        assert_eq!(medium.one_way().framing, alone.links[0].framing.clone().into(), "that of Ethernet");
        let way = "{ rate = \"100mbit\", delay = \"1ms\", queue_packets = 50 }";
        let before = hub(&format!("[[link]]\nname = \"wan\"\nmtu = 1500\ndown = {way}\nup = {way}\n"));
        for (scenario, delay) in [(&alone, "0.0025ms"), (&before, "1.0025ms")] {
            let netem = ExportedPath::new(scenario, Emulator::Netem, Path::new("."));
            assert_eq!(netem.script.matches(&format!(" delay {delay} rate 10000000bit 24\n")).count(), 2, "{netem:?}");
            assert!(
                netem.missing.iter().filter(|what| what.contains("became a queue of its rate each way")).count() == 2
            );
            let mahimahi = ExportedPath::new(scenario, Emulator::Mahimahi, Path::new("."));
            assert_eq!(mahimahi.script.matches("-queue-args=packets=100").count(), 2, "{mahimahi:?}");
            for (name, trace) in &mahimahi.files {
                // Each opportunity is one of 1504 bytes.
                let last: u64 = trace.lines().last().unwrap().parse().unwrap();
                assert_eq!(trace.lines().count() as u64 * 1504 * 8 / last, 10_000, "{name}: bits in a millisecond");
            }
        }
    }

    /// A link of 100 Mbit/s and 1 ms with a queue of 100 packets, and something more.
    fn link(more: &str) -> Scenario {
        let way = format!("{{ rate = \"100mbit\", delay = \"1ms\", queue_packets = 100, {more} }}");
        let text = format!("title = \"t\"\n[[link]]\nname = \"l\"\nmtu = 1500\ndown = {way}\nup = {way}\n");
        Scenario::parse("link", &text).unwrap()
    }

    #[test]
    fn what_jitter_holds_has_room_in_netems_limit_and_its_mean_is_in_mahimahis_delay() {
        let model = |model: &str| format!("jitter_model = {{ kind = \"{model} }}");
        // 100 packets, and as many as 100 Mbit/s carry in 1 ms and the longest jitter: the range's end, the mean and three deviations.
        for (more, delay, held_ms, round) in [
            (String::new(), "1ms", 1, 1),
            ("jitter = \"10ms\"".to_owned(), "31ms 10ms distribution normal", 61, 31),
            (model("normal\", mean = \"6ms\", deviation = \"3ms\""), "7ms 3ms distribution normal", 16, 7),
            (model("uniform\", min = \"2ms\", max = \"12ms\""), "8ms 5ms", 13, 8),
            (model("pareto\", scale = \"2ms\", shape = 2.0, max = \"1s\""), "5ms 4ms distribution pareto", 17, 5),
        ] {
            let scenario = link(&more);
            let netem = ExportedPath::new(&scenario, Emulator::Netem, Path::new("."));
            let limit = 100 + (held_ms * 12_500_u64).div_ceil(1500);
            let wanted = format!("netem limit {limit} delay {delay} rate ");
            assert_eq!(netem.script.matches(&wanted).count(), 2, "{wanted}: {}", netem.script);
            let mahimahi = ExportedPath::new(&scenario, Emulator::Mahimahi, Path::new("."));
            assert!(mahimahi.script.contains(&format!("\nmm-delay {round} mm-link ")), "{round}: {}", mahimahi.script);
            assert_eq!(mahimahi.missing.iter().any(|what| what.contains("jitter")), !more.is_empty(), "{mahimahi:?}");
        }
    }

    #[test]
    fn the_mean_of_all_jitter_is_in_the_delay_of_both_emulators() {
        let two = Scenario::parse("two", &{
            let way = "{ rate = \"100mbit\", delay = \"1ms\", queue_packets = 100, jitter = \"2ms\" }";
            let link = |name: &str| format!("[[link]]\nname = \"{name}\"\nmtu = 1500\ndown = {way}\nup = {way}\n");
            format!("title = \"t\"\n{}{}", link("a"), link("b"))
        });
        let netem = ExportedPath::new(&two.unwrap(), Emulator::Netem, Path::new("."));
        assert_eq!(netem.script.matches(" delay 14ms 2ms ").count(), 2, "two links: {}", netem.script);
        let leo = Scenario::parse("leo", crate::presets::text("leo-satellite").unwrap()).unwrap();
        let netem = ExportedPath::new(&leo, Emulator::Netem, Path::new("."));
        assert_eq!(netem.script.matches(" delay 25ms ").count(), 2, "{}", netem.script);
        let mahimahi = ExportedPath::new(&leo, Emulator::Mahimahi, Path::new("."));
        assert!(mahimahi.script.contains("mm-delay 25 "), "{}", mahimahi.script);
    }
}
