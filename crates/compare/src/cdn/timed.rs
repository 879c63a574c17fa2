use super::answer::HopSeconds;
use super::windows::{HOPS, WINDOWS};
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

    /// The geometric mean of those combinations, each of which counts alike however often it was drawn: in a round the windows of one
    /// hop go with those of the other. `None` while one of them was never drawn.
    fn mean_of_each(&self, wanted: impl Fn(&Run) -> bool) -> Option<f64> {
        let combinations = (0..1_usize << WINDOWS.len())
            .map(|number| (0..WINDOWS.len()).map(|knob| number >> knob & 1 == 1).collect::<Run>())
            .filter(|run| wanted(run));
        let logs: Vec<f64> =
            combinations.map(|run| self.mean(|drawn| *drawn == run).map(f64::ln)).collect::<Option<_>>()?;
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
                    seconds: self.mean_of_each(|run| run[*cwnd] == c && run[*rwnd] == r),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_one_hop_are_told_apart_from_those_of_the_other() {
        // The backend's window halves the time; those of the other hop do nothing.
        let took = |run: &Run| Duration::from_millis(if run[0] { 100 } else { 200 });
        let all = (0..16).map(|number| (0..4).map(|knob| number >> knob & 1 == 1).collect::<Run>());
        let half: Vec<Run> = all.clone().filter(|run| !run.iter().fold(false, |odd, large| odd ^ large)).collect();
        let mut timed = TimedRequests::default();
        let draw = |timed: &mut TimedRequests, runs: Vec<Run>| {
            timed.0.extend(runs.into_iter().map(|run| (run.clone(), took(&run))));
        };
        draw(&mut timed, half.clone());
        assert!(timed.hops((10, 40)).iter().all(|one| one.seconds.is_none()), "half of them were never drawn");
        draw(&mut timed, all.collect());
        // Those with a large backend's window come with a large one at the edge more often.
        draw(&mut timed, half.into_iter().filter(|run| run[0] == run[2]).collect());
        let seconds: Vec<f64> = timed.hops((10, 40)).iter().map(|one| one.seconds.unwrap()).collect();
        let wanted = [0.2, 0.2, 0.1, 0.1, 0.02_f64.sqrt(), 0.02_f64.sqrt(), 0.02_f64.sqrt(), 0.02_f64.sqrt()];
        assert!(seconds.iter().zip(wanted).all(|(is, wanted)| (is - wanted).abs() < 1e-9), "{seconds:?}");
    }
}
