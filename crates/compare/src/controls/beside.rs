use super::control::{ControlTrials, CountedTrial};
use super::units::{goodput_figure, goodput_unit};
use serde::Serialize;
use serde_json::Value;
use wt_trial::Sample;
use wt_trial::bulk::{Arrivals, DisturbanceTimes, convergence, jain, median_until, quantile, smallest_share};

/// How far from a half a share may be, as usual (RFC 5166 calls it delta-fair).
const DELTA: f64 = 0.1;

/// Another flow in one trial.
struct Beside {
    control: String,
    at_us: u64,
    own: Arrivals,
    other: Arrivals,
}

impl Beside {
    fn of(trial: &CountedTrial) -> Option<Self> {
        let outcome = &trial.outcome;
        let seen = outcome.observed.beside.as_ref()?;
        let number = |name: &str| seen[name].as_u64();
        let pair =
            |pair: &Value| Some(Sample { t_us: pair[0].as_u64()?, bytes: pair[1].as_u64()?, ..Sample::default() });
        let samples: Vec<Sample> = seen["arrivals"].as_array()?.iter().filter_map(pair).collect();
        Some(Self {
            control: seen["cc"].as_str()?.to_owned(),
            at_us: number("at_us")?,
            own: Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes),
            other: Arrivals::new(&samples, number("elapsed_us")?, number("bytes")?),
        })
    }

    fn over_us(&self) -> u64 {
        self.at_us + self.other.end_us()
    }

    /// Rates of both over the second half of their time together, bytes/s.
    fn rates(&self) -> Option<[f64; 2]> {
        let (from, until) = (self.at_us + self.other.end_us() / 2, self.over_us().min(self.own.end_us()));
        Some([self.own.mean(from, until)?, self.other.mean(from - self.at_us, until - self.at_us)?])
    }
}

/// When the other flow was there, on the clock of the trial's own.
pub(super) fn when(trial: &CountedTrial) -> Option<DisturbanceTimes> {
    let beside = Beside::of(trial)?;
    Some(DisturbanceTimes { at_us: beside.at_us, over_us: beside.over_us() })
}

/// How the flows of a congestion control shared the path with another flow: medians of its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedWithFlow {
    /// The other flow's congestion control.
    pub name: String,
    /// The own rate while both had settled, kB/s.
    #[serde(rename = "own_kBps")]
    pub own_kbytes_per_s: Option<f64>,
    /// The other's, kB/s.
    #[serde(rename = "other_kBps")]
    pub other_kbytes_per_s: Option<f64>,
    /// The own share of what both got.
    pub share: Option<f64>,
    /// Jain's index of fairness.
    pub jain: Option<f64>,
    /// The smaller share.
    pub smallest_share: Option<f64>,
    /// How long it took until both had about the same.
    pub convergence: Convergence,
}

/// How long flows took to share evenly.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Convergence {
    /// Trials with another flow.
    pub events: usize,
    /// Those in which both had about the same at a time.
    pub converged: usize,
    /// The median time until then, seconds; `None` where most never got there.
    pub median_s: Option<f64>,
}

impl SharedWithFlow {
    /// Of all trials of one; `None` if there was no other flow.
    pub(super) fn of(control: &ControlTrials, window_us: u64) -> Option<Self> {
        let all: Vec<Beside> = control.counted.iter().filter_map(Beside::of).collect();
        let name = all.first()?.control.clone();
        let rates: Vec<[f64; 2]> = all.iter().filter_map(Beside::rates).collect();
        let median = |of: &dyn Fn(&[f64; 2]) -> Option<f64>| {
            let mut values: Vec<f64> = rates.iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            quantile(&values, 0.5)
        };
        // Those that never share evenly are known to take longer than the other flow stayed.
        let times: Vec<(f64, bool)> = all
            .iter()
            .map(|beside| {
                let time = convergence(&beside.own, &beside.other, beside.at_us, window_us, DELTA);
                (time.unwrap_or(beside.other.end_us()) as f64 / 1e6, time.is_some())
            })
            .collect();
        Some(Self {
            name,
            own_kbytes_per_s: median(&|both| Some(both[0] / 1e3)),
            other_kbytes_per_s: median(&|both| Some(both[1] / 1e3)),
            share: median(&|both| (both[0] + both[1] > 0.0).then(|| both[0] / (both[0] + both[1]))),
            jain: median(&|both| jain(both)),
            smallest_share: median(&|both| smallest_share(both)),
            convergence: Convergence {
                events: times.len(),
                converged: times.iter().filter(|(_, seen)| *seen).count(),
                median_s: median_until(&times),
            },
        })
    }

    /// The same in words.
    pub(super) fn sentence(&self) -> String {
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let (unit, _) = goodput_unit();
        let time = self.convergence.median_s;
        let time =
            time.map_or_else(|| "no even shares in most trials".to_owned(), |s| format!("even shares after {s:.1} s"));
        format!(
            "{:.0} % of what both got ({} {unit} beside {}), Jain's index {:.2}, {time}",
            number(self.share) * 100.0,
            goodput_figure(number(self.own_kbytes_per_s)),
            goodput_figure(number(self.other_kbytes_per_s)),
            number(self.jain),
        )
    }
}
