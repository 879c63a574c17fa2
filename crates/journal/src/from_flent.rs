use crate::flent::{FlentMetadata, KeptTrial, Series};
use crate::id::{experiment_id, parse_iso_time};
use crate::{Arm, ExperimentConfig, FlentConfig, Owner, State, StoredExperiment};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_trial::{
    Amount, Direction, Limits, Measures, PathFacts, Phase, Sample, Status, TrialOutcome, TrialRecord, TrialSpec,
    Workload,
};
use wt_units::Settings;

/// Values over time, one for each of the times; those that weren't measured are `None`.
type Values = Vec<Option<f64>>;

/// What is read of the `metadata` of a data file of flent.
///
/// # Source
/// flent 2.1, `flent/resultset.py`: `RECORDED_SETTINGS`, `TIME_SETTINGS`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE", default)]
pub(crate) struct Metadata {
    name: Option<String>,
    host: Option<String>,
    time: Option<String>,
    t0: Option<String>,
    title: Option<String>,
    flent_version: Option<String>,
    step_size: Option<f64>,
    windtunnel: Option<FlentMetadata>,
}

/// A data file of flent.
#[derive(Debug)]
pub(crate) struct FlentFile {
    pub(crate) metadata: Metadata,
    /// s.
    pub(crate) x: Vec<f64>,
    pub(crate) results: BTreeMap<String, Values>,
}

/// No transfer takes longer, s, and none is faster, Mbit/s: what is beyond is nonsense.
const MOST: f64 = 1e9;

impl FlentFile {
    /// The experiment that [`export_flent`](crate::export_flent) wrote, or one of a single trial that flent itself ran.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn experiment(mut self) -> Result<(StoredExperiment, Vec<TrialRecord>), String> {
        if let Some((name, _)) = self.results.iter().find(|(_, values)| values.len() != self.x.len()) {
            return Err(format!("the series \"{name}\" hasn't as many values as there are times"));
        }
        let ascend = self.x.windows(2).all(|pair| matches!(pair, [before, after] if before <= after));
        if !ascend || self.x.iter().any(|x| !(0.0..=MOST).contains(x)) {
            return Err("its times are negative, too large, or go backwards".to_owned());
        }
        match self.metadata.windtunnel.take() {
            Some(kept) => self.ours(kept),
            None => self.theirs(),
        }
    }

    /// Everything but the samples stands in the metadata; those are made of the series.
    fn ours(&self, kept: FlentMetadata) -> Result<(StoredExperiment, Vec<TrialRecord>), String> {
        let FlentMetadata { schema_version, experiment, trials } = kept;
        if schema_version != crate::export::SCHEMA_VERSION {
            return Err(format!(
                "its schema_version is {schema_version}, and this program reads {}",
                crate::export::SCHEMA_VERSION
            ));
        }
        let (rates, rtts) = (self.rates("TCP download").or_else(|| self.rates("TCP upload")), self.rtts());
        let (rates, rtts) = (rates.unwrap_or_default(), rtts.unwrap_or_default());
        let begun = trials.first().map_or(experiment.started_unix_us, |first| first.trial.started_unix_us);
        let (mut place, mut last) = (0_usize, None::<f64>);
        let mut whole = Vec::with_capacity(trials.len());
        for KeptTrial { points, series, mut trial } in trials {
            // As the export counts it: time goes forward, also if a clock was set back meanwhile.
            let since = trial.started_unix_us.saturating_sub(begun) as f64 / 1e6;
            let since = since.max(last.map_or(0.0, |last| last + 1e-6));
            let samples = match series {
                Series::Receiver => Some(&mut trial.outcome.receiver),
                Series::Sender => Some(&mut trial.outcome.sender),
                Series::None => None,
            };
            let end = place.saturating_add(points);
            let Some(times) = self.x.get(place..end) else {
                return Err("it has less points than its trials".to_owned());
            };
            if let Some(samples) = samples {
                for (number, x) in (place..).zip(times) {
                    let before = samples.last().copied().ok_or("a trial's first sample is missing")?;
                    let t_us = micros(x - since).max(before.t_us);
                    let rate = rates.get(number).copied().flatten().unwrap_or(0.0).clamp(0.0, MOST);
                    let bytes = before.bytes.saturating_add((rate * (t_us - before.t_us) as f64 / 8.0).round() as u64);
                    let rtt = rtts.get(number).copied().flatten().map_or(0, |ms| micros(ms / 1e3));
                    samples.push(Sample { t_us, bytes, rtt, ..Sample::default() });
                }
            }
            // Behind each trial stands a point without a value.
            last = self.x.get(end).copied();
            place = end.saturating_add(1);
            whole.push(trial);
        }
        Ok((experiment, whole))
    }

    /// One test of flent's: a trial whose payload is the sum of its rates over time.
    fn theirs(self) -> Result<(StoredExperiment, Vec<TrialRecord>), String> {
        let (down, up) = (self.rates("TCP download"), self.rates("TCP upload"));
        let rtts = self.rtts().unwrap_or_default();
        let mut flows = Vec::new();
        for (direction, rates) in [(Direction::Down, &down), (Direction::Up, &up)] {
            if let Some(rates) = rates {
                flows.push((direction, self.samples(rates, &rtts)?));
            }
        }
        let elapsed_us =
            flows.iter().filter_map(|(_, samples)| samples.last()).map(|last| last.t_us).max().unwrap_or(0);
        let Some(time) = Some(Duration::from_micros(elapsed_us)).filter(|time| !time.is_zero()) else {
            return Err("it has no series \"TCP download\" or \"TCP upload\" with values".to_owned());
        };
        let bytes_of = |samples: &[Sample]| samples.last().map_or(0, |last| last.bytes);
        let mut outcome = TrialOutcome {
            status: Status::Completed,
            elapsed_us,
            bytes: flows.iter().fold(0, |sum: u64, (_, samples)| sum.saturating_add(bytes_of(samples))),
            limits: Limits::default(),
            ..TrialOutcome::empty(
                Status::Completed,
                time,
                "taken from flent: its payload is the sum of rates over time",
            )
        };
        let workload = match flows.as_slice() {
            [(direction, _)] => Workload::Bulk { direction: *direction, amount: Amount::Time(time) },
            both => {
                let bps = |samples: &[Sample]| bytes_of(samples) as f64 * 8.0 / time.as_secs_f64();
                let flows_bps: Vec<f64> = both.iter().map(|(_, samples)| bps(samples)).collect();
                let mean = flows_bps.iter().product::<f64>().sqrt();
                outcome.measures = Measures { score: Some(mean / 8.0), flows_bps, ..Measures::default() };
                Workload::Duplex { time }
            }
        };
        outcome.receiver = flows.swap_remove(0).1;
        let Metadata { name, host, time: at, t0, title, flent_version, .. } = self.metadata;
        let (name, target) = (name.unwrap_or_default(), host.unwrap_or_else(|| "unknown".to_owned()));
        let at = t0.or(at).ok_or("it doesn't say when it was: no TIME in its metadata")?;
        let started_unix_us = parse_iso_time(&at).ok_or_else(|| format!("'{at}' is no time"))?;
        let title = title.unwrap_or_default();
        let id = experiment_id(started_unix_us, &target, mark(&[&name, &target, &title]));
        let rtt_us = rtts.iter().flatten().map(|ms| micros(ms / 1e3)).filter(|us| *us > 0).min().unwrap_or(0);
        let spec = TrialSpec {
            experiment: id.clone(),
            phase: Phase::Round,
            round: 1,
            order: 1,
            arm: 0,
            settings: Settings::new(),
            workload,
            deadline: time,
            seed: 0,
        };
        let version = flent_version.map_or_else(|| "flent".to_owned(), |version| format!("flent {version}"));
        let experiment = StoredExperiment {
            id,
            target,
            tunnel: "live".to_owned(),
            state: State::Finished,
            started_unix_us,
            ended_unix_us: Some(started_unix_us.saturating_add_unsigned(elapsed_us)),
            comment: if title.is_empty() { name.clone() } else { format!("{name}: {title}") },
            version,
            current: Settings::new(),
            arms: vec![Arm { label: "current".to_owned(), settings: Settings::new() }],
            config: ExperimentConfig::Flent(Box::new(FlentConfig { flent: Some(name), ..FlentConfig::default() })),
            seed: 0,
            path: PathFacts { rtt_us, ..PathFacts::default() },
            verdict: None,
            owner: Owner::default(),
        };
        Ok((experiment, vec![TrialRecord { id: 0, spec, started_unix_us, outcome }]))
    }

    /// The rates of one direction, Mbit/s: those of its one flow, or the sum of several.
    fn rates(&self, name: &str) -> Option<Values> {
        if let Some(one) = self.results.get(name).or_else(|| self.results.get(&format!("{name} sum"))) {
            return Some(one.clone());
        }
        let flow = |series: &&String| {
            let rest = series.strip_prefix(name).unwrap_or_default();
            // Behind two colons stand other figures of the same flow.
            rest.starts_with(' ') && !rest.contains("::") && rest != " avg"
        };
        let mut all = self.results.keys().filter(flow).filter_map(|series| self.results.get(series));
        let mut sum = all.next()?.clone();
        for more in all {
            for (sum, value) in sum.iter_mut().zip(more) {
                *sum = match (*sum, *value) {
                    (Some(a), Some(b)) => Some(a + b),
                    (a, b) => a.or(b),
                };
            }
        }
        Some(sum)
    }

    /// Round trips beside the transfer, ms.
    fn rtts(&self) -> Option<Values> {
        let usual = ["Ping (ms) ICMP", "Ping (ms) avg"].into_iter().find_map(|name| self.results.get(name));
        let any = || self.results.iter().find(|(name, _)| name.starts_with("Ping (ms)") && !name.contains("::"));
        usual.or_else(|| any().map(|(_, values)| values)).cloned()
    }

    /// Rates and round trips as samples, from one step before the first rate on.
    fn samples(&self, rates: &Values, rtts: &Values) -> Result<Vec<Sample>, String> {
        let first = rates.iter().position(Option::is_some);
        let pair = |at: usize| Some((*self.x.get(at)?, *self.x.get(at + 1)?));
        let usual = self.metadata.step_size.filter(|step| (1e-3..=60.0).contains(step));
        let step = usual.or_else(|| pair(0).map(|(a, b)| b - a)).unwrap_or(0.0);
        let begun = first.map_or(0.0, |at| match at.checked_sub(1).and_then(pair) {
            Some((before, _)) => before,
            None => (self.x.first().copied().unwrap_or(0.0) - step).min(0.0),
        });
        let mut samples = vec![Sample::default()];
        for (number, (x, rate)) in self.x.iter().zip(rates).enumerate() {
            let Some(rate) = rate else { continue };
            if !(0.0..=MOST).contains(rate) {
                return Err(format!("a rate of {rate} Mbit/s is invalid"));
            }
            let before = samples.last().copied().unwrap_or_default();
            let since = number.checked_sub(1).and_then(|at| self.x.get(at)).copied().unwrap_or(begun);
            let t_us = micros(x - begun).max(before.t_us);
            let bytes = before.bytes.saturating_add((rate * 1e6 / 8.0 * (x - since).max(0.0)).round() as u64);
            let rtt = rtts.get(number).copied().flatten().map_or(0, |ms| micros(ms / 1e3));
            samples.push(Sample { t_us, bytes, rtt, ..Sample::default() });
        }
        Ok(samples)
    }
}

/// s as µs; what is below zero is zero.
fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

/// The same number for the same texts, so that a file that is taken in twice is known the second time (FNV-1a).
fn mark(texts: &[&str]) -> u16 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 16) as u16 ^ hash as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_flows_of_more_bytes_than_can_be_counted_are_as_many_as_can() {
        let metadata = Metadata { time: Some("2026-01-02T03:04:05.000000Z".to_owned()), ..Metadata::default() };
        let series = |name: &str| (name.to_owned(), vec![Some(MOST); 2]);
        let results = BTreeMap::from([series("TCP download"), series("TCP upload")]);
        let (_, trials) = FlentFile { metadata, x: vec![0.0, MOST], results }.experiment().unwrap();
        let [trial] = trials.as_slice() else { panic!("{} trials", trials.len()) };
        assert_eq!(trial.outcome.bytes, u64::MAX);
    }
}
