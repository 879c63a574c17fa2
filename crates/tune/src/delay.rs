//! The same speed with less delay: after the race, rounds of two with the setting that promises it.

use super::drive::{Driver, Place};
use super::event::TuneEvent;
use super::observed::{Attempts, order_of};
use super::request::{Goal, TuneRequest};
use rand::seq::SliceRandom as _;
use std::time::Duration;
use wt_experiment::{Experiment, StopReason};
use wt_problem::Problem;
use wt_report::tune::DelayRules;
use wt_setup::Design;
use wt_trial::{Phase, Workload};

/// So long the test may take beyond the race, if nobody says what the experiment may cost.
const USUAL: Duration = Duration::from_secs(120);
/// Rounds beyond the fewest in which it could be shown.
const SPARE: usize = 6;

impl Goal {
    /// Of the risk of a false claim, the share that is kept for claims of less delay.
    fn delay_share(self) -> f64 {
        match self {
            Self::Goodput => 0.0,
            Self::Balanced => 0.2,
            Self::Delay => 0.8,
        }
    }
}

impl TuneRequest {
    /// How the risk `alpha` of any false claim is shared: what is left for the race, and the rules for claims of delay. All of
    /// it is the race's where nothing but the goodput of one transfer isn't compared, or nothing can be claimed.
    pub(crate) fn split(&self, alpha: f64, workload: &Workload) -> (f64, Option<DelayRules>) {
        let share = self.goal.delay_share();
        let apart = self.identical.is_some() || self.screen || self.resume.is_some();
        if apart || share <= 0.0 || !matches!(workload, Workload::Bulk { .. }) {
            return (alpha, None);
        }
        let rules = DelayRules { alpha: alpha * share, epsilon: self.epsilon.get() };
        (alpha - rules.alpha, Some(rules))
    }
}

impl Driver<'_> {
    /// Tests the setting that promises less delay, if there is one and there is room for as many rounds as that takes.
    ///
    /// The setting is chosen by the rounds before; what is claimed comes from these rounds alone, those of sessions that this one
    /// goes on with among them.
    ///
    /// # Errors
    /// A [`Problem`] when the tunnel or the journal can't.
    pub(crate) fn delay_rounds(
        &mut self,
        rules: &DelayRules,
        design: &Design,
        experiment: &Experiment,
        budgeted: bool,
    ) -> Result<(), Problem> {
        if experiment.stop_reason().is_none_or(|reason| reason == StopReason::User) || self.ended.is_some() {
            return Ok(());
        }
        let against = experiment.pick();
        let Some(arm) = rules.next_test(&self.records, against) else { return Ok(()) };
        let before = rules.report(&self.records, against);
        if before.as_ref().is_some_and(|delay| delay.shown || delay.is_futile()) {
            return Ok(());
        }
        let done = before.map_or(0, |delay| delay.rounds);
        let pair = self.plan.per_trial(Duration::ZERO).saturating_mul(2);
        let extra = if budgeted { 0 } else { (USUAL.as_nanos() / pair.as_nanos().max(1)) as usize };
        let room = (experiment.trials_left().unwrap_or(0) / 2).max(extra);
        let fewest = rules.fewest_rounds().saturating_sub(done).max(1);
        if room < fewest {
            return Ok(());
        }
        let rounds = room.min(fewest + SPARE);
        let label = |arm: usize| design.arms.get(arm).map_or("", |arm| arm.label.as_str());
        (self.events)(TuneEvent::note(format!(
            "{} promises less delay at the same speed: {} of it and {}",
            label(arm),
            more_rounds(fewest, rounds),
            match against {
                0 if !label(0).starts_with("baseline") => "your current settings",
                other => label(other),
            },
        )));
        let first = self.records.iter().map(|record| record.spec.round).max().unwrap_or(0) + 1;
        for round in first..first.saturating_add(u32::try_from(rounds).unwrap_or(u32::MAX)) {
            if self.is_late(2) {
                return Ok(());
            }
            if !self.take_turn()? {
                return Ok(());
            }
            let mut order = [against, arm];
            // The numbers of the race's rounds go on: each has an order of its own.
            order.shuffle(&mut order_of(self.plan.order_seed, round));
            for (place, arm) in order.into_iter().enumerate() {
                let place = Place {
                    round,
                    order: place as u32 + 1,
                    arm,
                    phase: Phase::Delay,
                    attempts: Attempts::default(),
                    own_losses: false,
                };
                if self.place(&design.arms[arm].settings, place)?.is_none() {
                    return Ok(());
                }
                if self.tunnel.gives_up_round() {
                    return Ok(());
                }
            }
            self.turns.give_back();
            if rules.report(&self.records, against).is_some_and(|delay| delay.shown || delay.is_futile()) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// `9 to 15 more rounds`.
fn more_rounds(fewest: usize, most: usize) -> String {
    if most > fewest { format!("{fewest} to {most} more rounds") } else { wt_units::counted(fewest, "more round") }
}

#[cfg(test)]
mod tests {
    use super::super::{TuneAnswer, run};
    use super::*;
    use wt_trial::Cancel;
    use wt_units::Knob;

    /// What tuning in the model of a preset's path ends with.
    fn report(lab: &str, seed: u64, change: impl Fn(&mut TuneRequest)) -> Box<wt_report::TuneReport> {
        let home = tempfile::tempdir().unwrap();
        let mut request = TuneRequest {
            lab: Some(lab.to_owned()),
            model: true,
            knobs: Some(vec![Knob::Rwin]),
            seed,
            journal: Some(home.path().join("j.sqlite3")),
            ..TuneRequest::default()
        };
        change(&mut request);
        match run(&request, &Cancel::new(), &mut |_| ()) {
            Ok(TuneAnswer::Report(report)) => report,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_window_with_the_same_speed_and_less_delay_is_found() {
        let report = report("adsl", 3, |_| ());
        let delay = report.delay.as_ref().unwrap_or_else(|| panic!("{}", report.to_terminal(120, false)));
        assert!(delay.shown && delay.less() > 0.1 && delay.goodput_bps > 0.9 * delay.against_goodput_bps, "{delay:?}");
        let answer = &report.verdict.answer;
        assert_eq!((answer.measure, answer.unit), ("delay under load", "ms"), "{answer:?}");
        assert!(answer.lines[0].contains("less delay") && answer.steps[0].command.contains("rwin="), "{answer:?}");
        // The two kinds of claims share one risk.
        assert!((report.verdict.alpha + 1.0 / delay.needed - 0.05).abs() < 1e-12, "{delay:?}");
    }

    /// In how many of ten seeds the default finds such a window on a preset's path.
    fn found_by_default(lab: &str) -> usize {
        let found =
            |seed: &u64| report(lab, *seed, |request| request.knobs = None).delay.is_some_and(|delay| delay.shown);
        (1..=10).filter(found).count()
    }

    #[test]
    #[ignore = "`make truth`: minutes"]
    fn in_full_such_a_window_is_found_by_default_in_eight_of_ten_seeds() {
        for lab in ["adsl", "docsis", "lte"] {
            let found = found_by_default(lab);
            assert!(found >= 8, "{lab}: {found} of 10");
        }
    }

    #[test]
    fn a_radio_link_needs_a_window_between_once_and_twice_its_product() {
        let report = report("lte", 3, |_| ());
        let delay = report.delay.as_ref().unwrap_or_else(|| panic!("{}", report.to_terminal(120, false)));
        assert!(delay.shown && delay.less() > 0.15 && delay.goodput_bps > 0.9 * delay.against_goodput_bps, "{delay:?}");
        assert!(report.arms[delay.arm].label.contains("rwin="), "{:?}", report.arms[delay.arm].label);
    }

    #[test]
    fn the_order_of_its_rounds_is_drawn_from_the_order_seed() {
        let orders = |order_seed: u64| {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("j.sqlite3");
            let report = report("adsl", 3, |request| {
                request.journal = Some(path.clone());
                request.order_seed = Some(order_seed);
            });
            let journal = wt_setup::journal::open(Some(&path)).unwrap();
            let rows = wt_journal::Journal::rows(&journal, &report.id).unwrap();
            let own = rows.iter().filter(|row| row.phase == Phase::Delay);
            own.map(|row| (row.round, row.order, row.arm)).collect::<Vec<_>>()
        };
        let drawn = orders(1);
        let first = |round: u32, pair: [usize; 2]| {
            let mut pair = pair;
            pair.shuffle(&mut order_of(1, round));
            pair[0]
        };
        let arm = drawn.iter().map(|(_, _, arm)| *arm).max().unwrap();
        let against = drawn.iter().map(|(_, _, arm)| *arm).min().unwrap();
        assert!(drawn.len() >= 12, "{drawn:?}");
        assert!(drawn.iter().filter(|row| row.1 == 1).all(|row| row.2 == first(row.0, [against, arm])), "{drawn:?}");
        assert_ne!(drawn, orders(2));
    }

    #[test]
    fn a_range_of_rounds_is_told_only_where_it_is_one() {
        let told = [(9, 15), (9, 9), (1, 1)].map(|(fewest, most)| more_rounds(fewest, most));
        assert_eq!(told, ["9 to 15 more rounds", "9 more rounds", "1 more round"]);
    }

    #[test]
    fn who_wishes_for_goodput_alone_pays_for_nothing_else() {
        let report = report("adsl", 3, |request| request.goal = Goal::Goodput);
        assert_eq!((report.delay.as_ref(), report.verdict.alpha), (None, 0.05));
    }

    #[test]
    fn the_risk_is_shared_only_where_delay_can_be_claimed() {
        let request = |goal| TuneRequest { goal, ..TuneRequest::default() };
        let bulk = request(Goal::Balanced).each_trial(Duration::from_secs(3));
        let alphas = |request: &TuneRequest| {
            let (race, rules) = request.split(0.05, &bulk);
            ((race * 1e3).round(), rules.map(|rules| (rules.alpha * 1e3).round()))
        };
        assert_eq!(alphas(&request(Goal::Goodput)), (50.0, None));
        assert_eq!(alphas(&request(Goal::Balanced)), (40.0, Some(10.0)));
        assert_eq!(alphas(&request(Goal::Delay)), (10.0, Some(40.0)));
        assert_eq!(alphas(&TuneRequest { identical: Some(3), ..TuneRequest::default() }), (50.0, None));
        let page = Workload::Page { page: wt_trial::Page::built_in() };
        assert_eq!(request(Goal::Delay).split(0.05, &page), (0.05, None));
    }
}
