//! Stages in the words of scenario files, to be shown.

use super::{Direction, Link, Scenario};
use std::time::Duration;
use wt_link::{Discipline, Distribution, JitterConfig, LossConfig, QueueBound, QueueConfig, RateConfig, StageConfig};
use wt_units::format_duration;

/// A stage with its figures, in the text grammar of scenario files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedStage {
    /// What it is.
    pub stage: &'static str,
    /// Field and value.
    pub fields: Vec<(&'static str, String)>,
}

impl std::fmt::Display for DescribedStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.stage)?;
        for (index, (field, value)) in self.fields.iter().enumerate() {
            write!(f, "{} {field} {value}", if index == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl Direction {
    /// What packets pass before the queue, in order: losses, outages, a policer.
    pub(crate) fn described_before(&self) -> impl Iterator<Item = DescribedStage> + '_ {
        self.before.iter().map(described)
    }
}

impl Scenario {
    /// What packets pass on a link, in order: towards the server, and towards the client.
    #[must_use]
    pub fn described(&self, link: &Link) -> [Vec<DescribedStage>; 2] {
        let stages = link.stages();
        let shared = stages.medium.map(|medium| {
            let fields = [("rate", medium.rate.to_string()), ("delay", time(medium.extent))].into_iter();
            DescribedStage { stage: "shared medium", fields: fields.chain(bound(&medium.bound)).collect() }
        });
        [&stages.forward, &stages.backward]
            .map(|stages| stages.iter().map(described).chain(shared.iter().cloned()).collect())
    }
}

fn time(time: Duration) -> String {
    format_duration(time)
}

fn described(stage: &StageConfig) -> DescribedStage {
    let fields = match stage {
        StageConfig::Mtu { mtu } => vec![("bytes", mtu.get().to_string())],
        StageConfig::Loss(config) => loss(config),
        StageConfig::Outages(outages) => {
            let windows = outages.windows.iter().map(|(from, until)| format!("{}–{}", time(*from), time(*until)));
            let mut fields = vec![("windows", windows.collect::<Vec<_>>().join(" "))];
            fields.extend(outages.period.map(|period| ("period", time(period))));
            fields
        }
        StageConfig::Queue(config) => queue(config),
        StageConfig::Policer(policer) => {
            vec![("rate", policer.rate.to_string()), ("burst", policer.burst.to_string())]
        }
        StageConfig::Delay { delay } => vec![("delay", time(*delay))],
        StageConfig::DelaySteps { steps } => {
            let steps = steps.iter().map(|(from, delay)| format!("from {}: {}", time(*from), time(*delay)));
            vec![("delays", steps.collect::<Vec<_>>().join(" "))]
        }
        StageConfig::Jitter(config) => jitter(config),
        StageConfig::Reorder { probability, by } => vec![("probability", probability.to_string()), ("by", time(*by))],
        StageConfig::Duplicate { probability } => vec![("probability", probability.to_string())],
        StageConfig::Corrupt { probability, detected } => {
            vec![("probability", probability.to_string()), ("detected", detected.to_string())]
        }
        StageConfig::Thinning(thinning) => vec![("every", thinning.every.to_string()), ("hold", time(thinning.hold))],
        StageConfig::Airtime(radio) => {
            let mut fields = vec![
                ("rate", radio.rate.to_string()),
                ("access", time(radio.access)),
                ("backoff", time(radio.backoff)),
                ("max_packets", radio.max_packets.to_string()),
                ("max_bytes", radio.max_bytes.to_string()),
                ("failure", radio.failure.to_string()),
                ("max_retries", radio.max_retries.to_string()),
                ("retry_after", time(radio.retry_after)),
            ];
            fields.extend(radio.slot.map(|slot| ("slot", time(slot))));
            fields.extend(bound(&radio.bound));
            fields
        }
    };
    DescribedStage { stage: stage.name(), fields }
}

fn loss(config: &LossConfig) -> Vec<(&'static str, String)> {
    let kind = |kind: &str| ("kind", kind.to_owned());
    match config {
        LossConfig::Bernoulli { probability } => vec![kind("random"), ("probability", probability.to_string())],
        LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => vec![
            kind("gilbert-elliott"),
            ("to_bad", to_bad.to_string()),
            ("to_good", to_good.to_string()),
            ("loss_good", loss_good.to_string()),
            ("loss_bad", loss_bad.to_string()),
        ],
        LossConfig::EveryNth { n } => vec![kind("every-nth"), ("n", n.to_string())],
        LossConfig::BySize { above, long, short } => vec![
            kind("by-size"),
            ("above", above.to_string()),
            ("long", long.to_string()),
            ("short", short.to_string()),
        ],
        LossConfig::ByDataIndex { probability } => vec![kind("index"), ("probability", probability.to_string())],
        LossConfig::Numbered { packets } => {
            let numbers: Vec<String> = packets.iter().map(u64::to_string).collect();
            vec![kind("numbered"), ("packets", numbers.join(","))]
        }
        LossConfig::Next { from, packets } => {
            vec![kind("next"), ("from", time(*from)), ("packets", packets.to_string())]
        }
    }
}

fn jitter(config: &JitterConfig) -> Vec<(&'static str, String)> {
    let kind = |kind: &str| ("kind", kind.to_owned());
    let mut fields = match config.distribution {
        Distribution::Uniform { min, max } => vec![kind("uniform"), ("min", time(min)), ("max", time(max))],
        Distribution::Normal { mean, deviation } => {
            vec![kind("normal"), ("mean", time(mean)), ("deviation", time(deviation))]
        }
        Distribution::Pareto { scale, shape, max } => {
            vec![kind("pareto"), ("scale", time(scale)), ("shape", shape.to_string()), ("max", time(max))]
        }
    };
    fields.extend([("correlation", config.correlation.to_string()), ("reorder", config.reorder.to_string())]);
    fields
}

fn queue(config: &QueueConfig) -> Vec<(&'static str, String)> {
    let mut fields = rate(&config.rate);
    fields.extend(bound(&config.bound));
    let (name, more) = discipline(&config.discipline);
    fields.push(("discipline", name.to_owned()));
    fields.extend(more);
    fields
}

fn rate(config: &RateConfig) -> Vec<(&'static str, String)> {
    match config {
        RateConfig::Constant(rate) => vec![("rate", rate.to_string())],
        RateConfig::Steps(steps) => {
            let each = steps.steps.iter().map(|(from, rate)| format!("{rate} from {}", time(*from)));
            let mut fields = vec![("steps", each.collect::<Vec<_>>().join(" "))];
            fields.extend(steps.period.map(|period| ("period", time(period))));
            fields
        }
        RateConfig::Trace(trace) => vec![
            ("trace", format!("{} opportunities in {}", trace.trace.len(), time(trace.trace.period()))),
            ("bytes_per_opportunity", trace.bytes.to_string()),
        ],
        RateConfig::TokenBucket(bucket) => {
            let mut fields = vec![("rate", bucket.rate.to_string()), ("burst", bucket.burst.to_string())];
            fields.extend(bucket.peak.map(|peak| ("peak", peak.to_string())));
            fields
        }
        RateConfig::Modem(modem) => {
            let mut fields = vec![
                ("rate", modem.rate.to_string()),
                ("bits_per_byte", modem.bits_per_byte.to_string()),
                ("escapes", modem.escapes.to_string()),
                ("compression", modem.compression.to_string()),
            ];
            fields.extend(modem.retrain.map(|retrain| ("retrain_every", time(retrain.every))));
            fields.extend(modem.retrain.map(|retrain| ("retrain_lasts", time(retrain.lasts))));
            fields
        }
    }
}

fn bound(bound: &QueueBound) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let packets = bound.packets.map(|packets| ("queue_packets", packets.to_string()));
    packets.into_iter().chain(bound.bytes.map(|bytes| ("queue", bytes.to_string())))
}

fn discipline(config: &Discipline) -> (&'static str, Vec<(&'static str, String)>) {
    match config {
        Discipline::DropTail => ("drop-tail", Vec::new()),
        Discipline::Red(red) => (
            "red",
            vec![
                ("min", red.min.to_string()),
                ("max", red.max.to_string()),
                ("max_probability", red.max_probability.to_string()),
                ("weight", red.weight.to_string()),
                ("gentle", red.gentle.to_string()),
                ("ecn", red.ecn.to_string()),
            ],
        ),
        Discipline::CoDel(codel) => (
            "codel",
            vec![("target", time(codel.target)), ("interval", time(codel.interval)), ("ecn", codel.ecn.to_string())],
        ),
        Discipline::FqCoDel(fair) => (
            "fq-codel",
            vec![
                ("target", time(fair.codel.target)),
                ("interval", time(fair.codel.interval)),
                ("ecn", fair.codel.ecn.to_string()),
                ("flows", fair.flows.to_string()),
                ("quantum", fair.quantum.to_string()),
            ],
        ),
        Discipline::Pie(pie) => (
            "pie",
            vec![
                ("target", time(pie.target)),
                ("update", time(pie.update)),
                ("alpha", pie.alpha.to_string()),
                ("beta", pie.beta.to_string()),
                ("max_burst", time(pie.max_burst)),
                ("ecn", pie.ecn.to_string()),
            ],
        ),
    }
}
