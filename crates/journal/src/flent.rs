use crate::{Journal, JournalError, StoredExperiment, WithSamples};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::Write;
use wt_trial::{Sample, TrialRecord};

/// The version of the file format that flent 2 writes.
const FORMAT: u32 = 4;
/// Points of one trial at most: flent draws, it doesn't analyse.
const MOST_POINTS: usize = 2_000;

/// What flent has no place for, so that [`import_json`](crate::import_json) can read the experiment again: in `metadata`, which flent
/// keeps as it is, under `WINDTUNNEL`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FlentMetadata {
    pub(crate) schema_version: u32,
    pub(crate) experiment: StoredExperiment,
    pub(crate) trials: Vec<KeptTrial>,
}

/// A trial without its samples, but for the first one of those that are drawn.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptTrial {
    /// Points in the series, without the empty one behind them.
    pub(crate) points: usize,
    /// Whose samples they are.
    pub(crate) series: Series,
    pub(crate) trial: TrialRecord,
}

/// Whose samples are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Series {
    Receiver,
    Sender,
    /// There are none.
    None,
}

/// Writes an experiment as a data file of flent: the rate and the RTT over the time since it began, in the series that its
/// tests `tcp_download` and `tcp_upload` draw, and the rate once more in a series for each of the settings.
///
/// Between trials there are points without a value, so that no line joins them. Rates are of the receiver's samples, or of the
/// sender's where the receiver has none; a trial without samples is one point, its mean. What flent doesn't know stands in the
/// metadata, so that the file can be taken in again: the same but for samples, of which there are the points that are drawn.
///
/// # Errors
/// Those of [`Journal::load`] and [`JournalError::Export`].
///
/// # Source
/// flent 2.1, `flent/resultset.py`: `metadata`, `version`, `x_values` (s), `results` (Mbit/s and ms), `raw_values`.
pub fn export_flent(journal: &dyn Journal, key: &str, out: &mut dyn Write) -> Result<(), JournalError> {
    let experiment = journal.load(key)?;
    let mut chart = Chart::new(experiment.arms.iter().map(|arm| arm.label.clone()).collect());
    let (mut first, mut kept) = (None, Vec::new());
    journal.for_each_trial(&experiment.id, WithSamples::Yes, &mut |trial| {
        let begun = *first.get_or_insert(trial.started_unix_us);
        let since = trial.started_unix_us.saturating_sub(begun) as f64 / 1e6;
        kept.push(chart.add(trial, since));
        Ok(())
    })?;
    let begun = first.unwrap_or(experiment.started_unix_us);
    let up = chart.up;
    let length = chart.x.last().copied().unwrap_or(0.0);
    let time = crate::id::iso_time(begun);
    let results = chart.results();
    let raw = chart.raw(&results, begun as f64 / 1e6);
    let file = json!({
        "metadata": {
            "NAME": if up { "tcp_upload" } else { "tcp_download" },
            "HOST": experiment.target,
            "HOSTS": [experiment.target],
            "LOCAL_HOST": "localhost",
            "TIME": time,
            "T0": time,
            "TITLE": if experiment.comment.is_empty() { &experiment.id } else { &experiment.comment },
            "NOTE": experiment.verdict.as_ref().and_then(|verdict| verdict["text"].as_str()),
            "LENGTH": length,
            "TOTAL_LENGTH": length,
            "STEP_SIZE": 0.1,
            "TEST_PARAMETERS": {},
            "DATA_FILENAME": format!("{}.flent", experiment.id),
            "FLENT_VERSION": null,
            "BATCH_NAME": experiment.id,
            "BATCH_TIME": null,
            "WINDTUNNEL_VERSION": experiment.version,
            "WINDTUNNEL": FlentMetadata { schema_version: crate::export::SCHEMA_VERSION, experiment, trials: kept },
        },
        "version": FORMAT,
        "x_values": chart.x,
        "results": results,
        "raw_values": raw,
    });
    serde_json::to_writer(&mut *out, &file).map_err(|e| JournalError::Export(e.into()))?;
    out.write_all(b"\n").map_err(JournalError::Export)
}

struct Chart {
    labels: Vec<String>,
    x: Vec<f64>,
    /// Mbit/s, with the arm.
    rate: Vec<Option<(f64, usize)>>,
    /// ms.
    rtt: Vec<Option<f64>>,
    up: bool,
}

impl Chart {
    fn new(labels: Vec<String>) -> Self {
        Self { labels, x: Vec::new(), rate: Vec::new(), rtt: Vec::new(), up: false }
    }

    fn add(&mut self, mut trial: TrialRecord, begun_s: f64) -> KeptTrial {
        // Every workload that has a direction names it so.
        self.up = serde_json::to_value(&trial.spec.workload).is_ok_and(|workload| workload["direction"] == "up");
        let outcome = &trial.outcome;
        let (series, samples) = if outcome.receiver.len() > 1 {
            (Series::Receiver, &outcome.receiver)
        } else {
            (Series::Sender, &outcome.sender)
        };
        let series = if samples.len() < 2 { Series::None } else { series };
        let before = self.x.len();
        // Time goes forward, also if a clock was set back meanwhile.
        let begun_s = begun_s.max(self.x.last().map_or(0.0, |last| last + 1e-6));
        if samples.len() < 2 {
            if outcome.bytes > 0 {
                self.point(begun_s, Some((outcome.goodput_bps() / 1e6, trial.spec.arm)), None);
            }
        } else {
            let step = samples.len().div_ceil(MOST_POINTS).max(1);
            let picked: Vec<&Sample> = samples.iter().step_by(step).collect();
            for pair in picked.windows(2) {
                let [before, after] = pair else { continue };
                let time = after.t_us.saturating_sub(before.t_us);
                let rate = after.bytes.saturating_sub(before.bytes) as f64 * 8.0 / time.max(1) as f64;
                let rtt = (after.rtt > 0).then_some(after.rtt as f64 / 1e3);
                self.point(begun_s + after.t_us as f64 / 1e6, (time > 0).then_some((rate, trial.spec.arm)), rtt);
            }
        }
        let points = self.x.len() - before;
        let gap = self.x.last().map_or(begun_s, |last| last + 1e-3);
        self.point(gap, None, None);
        trial.outcome.receiver.truncate(usize::from(series == Series::Receiver));
        trial.outcome.sender.truncate(usize::from(series == Series::Sender));
        KeptTrial { points, series, trial }
    }

    fn point(&mut self, x: f64, rate: Option<(f64, usize)>, rtt: Option<f64>) {
        self.x.push(x);
        self.rate.push(rate);
        self.rtt.push(rtt);
    }

    /// The same values each with its own time, s since 1970: without them flent takes the file for empty.
    fn raw(&self, results: &Value, begun_s: f64) -> Value {
        let points = |series: &Value| -> Value {
            let values = series.as_array().into_iter().flatten().zip(&self.x);
            values
                .filter(|(value, _)| value.is_number())
                .map(|(value, x)| json!({"t": begun_s + x, "val": value}))
                .collect()
        };
        let series = results.as_object().into_iter().flatten();
        Value::Object(series.map(|(name, series)| (name.clone(), points(series))).collect())
    }

    fn results(&self) -> Value {
        let mut results = Map::new();
        let rates = |wanted: Option<usize>| -> Value {
            let of = |rate: &Option<(f64, usize)>| {
                rate.filter(|(_, arm)| wanted.is_none_or(|w| w == *arm)).map(|(mbit, _)| mbit)
            };
            self.rate.iter().map(of).collect::<Vec<_>>().into()
        };
        results.insert(if self.up { "TCP upload" } else { "TCP download" }.to_owned(), rates(None));
        results.insert("Ping (ms) ICMP".to_owned(), self.rtt.clone().into());
        for (arm, label) in self.labels.iter().enumerate() {
            results.insert(label.clone(), rates(Some(arm)));
        }
        Value::Object(results)
    }
}
