use super::{Arm, Run};
use serde_json::{Value, json};
use wt_trial::Sample;
use wt_trial::bulk::{Arrivals, Disturbed, convergence, jain, median_until, quantile, smallest_share};

/// The other flow's congestion control.
pub(super) const OURS: &str = "newreno";
/// And where ours can't be loaded.
pub(super) const KERNELS: &str = "reno";

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
    fn of(run: &Run) -> Option<Self> {
        let seen = run.outcome.observed.get("beside")?;
        let number = |name: &str| seen[name].as_u64();
        let pair =
            |pair: &Value| Some(Sample { t_us: pair[0].as_u64()?, bytes: pair[1].as_u64()?, ..Sample::default() });
        let samples: Vec<Sample> = seen["arrivals"].as_array()?.iter().filter_map(pair).collect();
        Some(Self {
            control: seen["cc"].as_str()?.to_owned(),
            at_us: number("at_us")?,
            own: Arrivals::new(&run.outcome.receiver, run.outcome.elapsed_us, run.outcome.bytes),
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
pub(super) fn when(run: &Run) -> Option<Disturbed> {
    let beside = Beside::of(run)?;
    Some(Disturbed { at_us: beside.at_us, over_us: beside.over_us() })
}

/// How the flows of one arm shared the path with the other flow; `None` if there was none.
pub(super) fn summary(arm: &Arm, window_us: u64) -> Option<Value> {
    let all: Vec<Beside> = arm.runs.iter().filter_map(Beside::of).collect();
    let control = all.first()?.control.clone();
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
    Some(json!({
        "name": control,
        "own_kBps": median(&|both| Some(both[0] / 1e3)),
        "other_kBps": median(&|both| Some(both[1] / 1e3)),
        "share": median(&|both| (both[0] + both[1] > 0.0).then(|| both[0] / (both[0] + both[1]))),
        "jain": median(&|both| jain(both)),
        "smallest_share": median(&|both| smallest_share(both)),
        "convergence": {
            "events": times.len(),
            "converged": times.iter().filter(|(_, seen)| *seen).count(),
            "median_s": median_until(&times),
        },
    }))
}

/// The same in words.
pub(super) fn sentence(summary: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let time = summary["convergence"]["median_s"].as_f64();
    let time =
        time.map_or_else(|| "no even shares in most trials".to_owned(), |s| format!("even shares after {s:.1} s"));
    format!(
        "{:.0} % of what both got ({:.1} kB/s beside {:.1}), Jain's index {:.2}, {time}",
        number(&summary["share"]) * 100.0,
        number(&summary["own_kBps"]),
        number(&summary["other_kBps"]),
        number(&summary["jain"]),
    )
}
