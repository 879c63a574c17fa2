use super::answer::HopSeconds;
use super::windows::HOPS;
use std::time::Duration;
use wt_experiment::factorial::Run;

/// Which windows were large, and how long it took.
#[derive(Debug, Default)]
pub(super) struct TimedRequests(pub(super) Vec<(Run, Duration)>);

impl TimedRequests {
    /// The geometric mean of the times of those requests, seconds.
    pub(super) fn mean(&self, wanted: impl Fn(&Run) -> bool) -> Option<f64> {
        let logs: Vec<f64> =
            self.0.iter().filter(|(run, _)| wanted(run)).map(|(_, took)| took.as_secs_f64().ln()).collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// Each hop's two windows with the seconds.
    pub(super) fn hops(&self, (low, high): (u32, u32)) -> Vec<HopSeconds> {
        let level = |large: bool| if large { high } else { low };
        HOPS.iter()
            .flat_map(|(hop, cwnd, rwnd)| {
                [(false, false), (false, true), (true, false), (true, true)].map(|(c, r)| HopSeconds {
                    hop,
                    initcwnd: level(c),
                    initrwnd: level(r),
                    seconds: self.mean(|run| run[*cwnd] == c && run[*rwnd] == r),
                })
            })
            .collect()
    }
}
