use wt_experiment::{EProcess, lower_bound, upper_bound};

/// Differences between whole epochs of one block, one for each block; few, so with the stakes of few rounds.
///
/// Which epoch of a block had which allocation was drawn, every order with the same probability: without an effect the sign of a
/// difference is ±1 with probability ½, given its size.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotMeans {
    differences: Vec<f64>,
    best: [f64; 2],
    now: [f64; 2],
}

impl SlotMeans {
    pub(crate) fn push(&mut self, difference: f64) {
        self.differences.push(difference);
        let now =
            [EProcess::new(), EProcess::below(0.0)].map(|process| process.after(&self.differences).log_evidence());
        self.now = now;
        self.best = [self.best[0].max(now[0]), self.best[1].max(now[1])];
    }

    /// The evidence now for "slower", as a logarithm.
    pub(crate) fn log_lower(&self) -> f64 {
        self.now[1]
    }

    pub(crate) fn blocks(&self) -> usize {
        self.differences.len()
    }

    /// The largest evidence for "faster" and for "slower", as logarithms.
    pub(crate) fn best(&self) -> [f64; 2] {
        self.best
    }

    pub(crate) fn effect(&self) -> Option<f64> {
        let n = self.differences.len();
        (n > 0).then(|| self.differences.iter().sum::<f64>() / n as f64)
    }

    pub(crate) fn interval(&self, threshold: f64) -> (f64, f64) {
        (lower_bound(&self.differences, threshold), upper_bound(&self.differences, threshold))
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        ConnectionFate, ConnectionOutcome, DrawKey, TrafficAllocation, TrafficAnalysis, TrafficArm, TrafficConfig,
        TrafficUnit,
    };

    const BLOCKS: u64 = 600;
    const KEY: DrawKey = DrawKey([5, 6]);

    fn config(arms: &[&str], unit: TrafficUnit, allocation: TrafficAllocation) -> TrafficConfig {
        let arm = |text: &&str| TrafficArm { name: (*text).to_owned(), settings: text.parse().unwrap() };
        let arms = arms.iter().map(arm).collect();
        TrafficConfig { ports: vec![443], arms, unit, allocation, ..TrafficConfig::default() }
    }

    /// A connection whose goodput falls with its epoch's place in time within the block, whatever it was given.
    fn outcome(arm: usize, epoch: u64, client: u64) -> ConnectionOutcome {
        ConnectionOutcome {
            arm,
            epoch,
            offset_us: 0,
            tag: client,
            connection: client,
            by_response: false,
            bytes_acked: 100_000,
            duration_us: 100_000 * (1 + epoch % 3) + client,
            busy_us: None,
            min_rtt_us: 30_000,
            sent_segments: 70,
            retransmitted_segments: 0,
            rtos: None,
            fate: ConnectionFate::Closed,
            set_errors: 0,
            compliant: true,
        }
    }

    /// What is found of such connections where `stopped` says which arms get none in an epoch.
    fn found(config: &TrafficConfig, stopped: impl Fn(u64) -> &'static [usize]) -> TrafficAnalysis {
        let mut analysis = TrafficAnalysis::new(config.clone()).unwrap();
        for epoch in 0..3 * BLOCKS {
            let shares = config.shares(KEY, epoch, 0, stopped(epoch));
            analysis.begin_epoch(epoch, &shares, config.drawn_place(KEY, epoch));
            analysis.hold(epoch, stopped(epoch));
            for (arm, _) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                (0..3).for_each(|client| analysis.record(&outcome(arm, epoch, client)));
            }
            analysis.close_epoch(epoch);
        }
        analysis
    }

    #[test]
    fn what_a_stopped_arm_leaves_to_the_first_isnt_compared_and_signs_stay_a_fair_coin() {
        let three = config(&["initcwnd=10", "initcwnd=20", "initcwnd=32"], TrafficUnit::Slot, TrafficAllocation::Fixed);
        for (stopped, other) in [(&[1], 2), (&[2], 1)] {
            let analysis = found(&three, |_| stopped);
            let total = &analysis.comparisons[other - 1].total;
            assert_eq!(total.blocks() as u64, BLOCKS, "each block says something of the arm that goes on");
            assert_eq!(analysis.comparisons[stopped[0] - 1].total.blocks(), 0);
            // Of 600 fair coins 261 to 339 come up but in 1.3 of 1000 cases; of coins with 2/3, which the earlier of both slots
            // of the first arm would give, in 1 of 10 million.
            let later = total.differences.iter().filter(|difference| **difference < 0.0).count();
            assert!((261..=339).contains(&later), "{later} of {BLOCKS}");
            assert!(total.best().iter().all(|log| *log < 40f64.ln()), "{:?}", total.best());
        }
    }

    #[test]
    fn without_a_stop_each_place_of_a_block_is_compared() {
        let three = config(&["initcwnd=10", "initcwnd=20", "initcwnd=32"], TrafficUnit::Slot, TrafficAllocation::Fixed);
        let mixed = config(&["initcwnd=10", "initcwnd=32"], TrafficUnit::Prefix, TrafficAllocation::Mixed);
        for config in [&three, &mixed] {
            let analysis = found(config, |_| &[]);
            assert!(analysis.comparisons.iter().all(|comparison| comparison.total.blocks() as u64 == BLOCKS));
        }
        assert_eq!(found(&mixed, |_| &[]).comparisons[0].spillover.blocks() as u64, BLOCKS);
    }

    #[test]
    fn an_epoch_of_mixed_allocations_that_nobody_was_given_by_a_stop_is_none_without_anybody() {
        let mixed = config(&["initcwnd=10", "initcwnd=32"], TrafficUnit::Prefix, TrafficAllocation::Mixed);
        // In the first epoch of every other block nobody gets what is tried: what is left of such a block says nothing.
        let analysis = found(&mixed, |epoch| if epoch % 6 == 0 { &[1] } else { &[] });
        let comparison = &analysis.comparisons[0];
        let half = BLOCKS as usize / 2;
        assert_eq!((comparison.total.blocks(), comparison.spillover.blocks()), (half, half));
        // The epoch without anybody is the one that has drawn it, be it the last.
        let at = |block: u64, place| (0..3).position(|i| mixed.drawn_place(KEY, 3 * block + i) == Some(place));
        let later = (0..BLOCKS).filter(|block| block % 2 == 1 && at(*block, 0) > at(*block, 1)).count();
        let faster = comparison.total.differences.iter().filter(|difference| **difference > 0.0).count();
        assert!(later > 0 && faster == later, "{faster} of {later}");
    }

    #[test]
    fn an_arm_that_is_held_back_when_things_are_bad_isnt_compared_where_they_are_good() {
        let three = config(&["initcwnd=10", "initcwnd=20", "initcwnd=32"], TrafficUnit::Slot, TrafficAllocation::Fixed);
        // In the last epoch of every other block, which is the slowest, the third arm gets nothing.
        let analysis = found(&three, |epoch| if epoch % 6 == 2 { &[2] } else { &[] });
        let half = BLOCKS as usize / 2;
        let blocks = [0, 1].map(|at| analysis.comparisons[at].total.blocks());
        assert_eq!(blocks, [BLOCKS as usize, half]);
        // Of 300 fair coins 122 to 178 come up but in 1 of 1000 cases; with what is left of the other blocks 400 of 500 would.
        let later = analysis.comparisons[1].total.differences.iter().filter(|difference| **difference < 0.0).count();
        assert!((122..=178).contains(&later), "{later} of {half}");
    }
}
