//! The same speed with less delay: after the race, rounds of two with the setting that promises it.

use super::drive::{Driver, Place};
use super::event::TuneEvent;
use super::observed::{Attempts, order_of};
use super::request::{Goal, TuneRequest};
use rand::seq::SliceRandom as _;
use std::time::Duration;
use wt_experiment::{Experiment, StopReason};
use wt_problem::Problem;
use wt_report::tune::{DelayRules, OpenDelayTest};
use wt_setup::Design;
use wt_trial::{Phase, Workload};

/// So long the test may take beyond the race, if nobody says what the experiment may cost.
const USUAL: Duration = Duration::from_secs(120);
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
    /// Whether the race has to end before a round of so many trials: what is left of the budget, or of the time, is the delay's, since a
    /// setting promises less of it, and no gain is about to show.
    pub(crate) fn leaves_to_delay(&self, experiment: &Experiment, next: usize) -> bool {
        let room = &self.room;
        let left = experiment.trials_left().unwrap_or(usize::MAX).saturating_sub(room.taken);
        if left < next {
            return room.taken > 0;
        }
        let scarce = |trials: usize| left < next + trials || (self.is_late(next + trials) && !self.is_late(trials));
        let Some(rules) = room.rules.filter(|_| room.trials > 0 && scarce(room.trials)) else { return false };
        let open = || rules.open_test(&self.records, experiment.pick());
        (room.is_first || !experiment.is_hopeful())
            && open().is_some_and(|open| left >= 2 * open.fewest && scarce(room.trials.min(2 * open.most)))
    }

    /// Tests the setting that promises less delay, if there is one and there is room for as many rounds as that takes.
    ///
    /// The setting is chosen by the rounds before; what is claimed comes from these rounds alone, those of sessions that this one
    /// goes on with among them.
    ///
    /// # Errors
    /// A [`Problem`] when the tunnel or the journal can't.
    pub(crate) fn delay_rounds(&mut self, design: &Design, experiment: &Experiment) -> Result<(), Problem> {
        if experiment.stop_reason().is_none_or(|reason| reason == StopReason::User) {
            return Ok(());
        }
        self.test_delay(design, experiment)
    }

    /// The same, whether or not the race is over: what is left open of the test is gone on with first.
    ///
    /// # Errors
    /// As [`delay_rounds`](Self::delay_rounds).
    pub(crate) fn test_delay(&mut self, design: &Design, experiment: &Experiment) -> Result<(), Problem> {
        let Some(rules) = self.room.rules.filter(|_| self.ended.is_none()) else { return Ok(()) };
        let against = experiment.pick();
        let Some(OpenDelayTest { arm, fewest, most, .. }) = rules.open_test(&self.records, against) else {
            return Ok(());
        };
        let pair = self.plan.per_trial(Duration::ZERO).saturating_mul(2);
        let extra = if self.room.is_budgeted { 0 } else { (USUAL.as_nanos() / pair.as_nanos().max(1)) as usize };
        let left = experiment.trials_left().unwrap_or(0).saturating_sub(self.room.taken);
        let room = (left / 2).max(extra);
        let label = |arm: usize| design.arms.get(arm).map_or("", |arm| arm.label.as_str());
        let other = match against {
            0 if !label(0).starts_with("baseline") => "your current settings",
            other => label(other),
        };
        let promises = format!("{} promises less delay at the same speed", label(arm));
        if room < fewest {
            let needs = more_rounds(fewest, fewest);
            (self.events)(TuneEvent::note(format!("{promises}: nothing is left for {needs} of it and {other}")));
            return Ok(());
        }
        let rounds = room.min(most);
        (self.events)(TuneEvent::note(format!("{promises}: {} of it and {other}", more_rounds(fewest, rounds))));
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
                self.room.taken += usize::from(self.room.is_budgeted);
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
    use super::super::delay_room::DelayRoom;
    use super::super::{TuneAnswer, run};
    use super::*;
    use wt_report::tune::AnswerAction;
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

    /// One window that keeps the speed with less delay, on a budget.
    fn of_two(goal: Goal, trials: usize) -> impl Fn(&mut TuneRequest) {
        move |request| {
            (request.knobs, request.goal) = (None, goal);
            request.levels = vec!["rwin=40KiB".parse().unwrap()];
            request.hold = vec!["cc=cubic".parse().unwrap()];
            request.budget = Some(format!("{trials} trials").parse().unwrap());
        }
    }

    #[test]
    fn where_delay_comes_first_the_race_leaves_room_for_its_test() {
        for seed in 1..=2 {
            let found = report("adsl", seed, of_two(Goal::Delay, 24));
            let delay = found.delay.as_ref().unwrap_or_else(|| panic!("{}", found.to_terminal(120, false)));
            assert!(delay.shown && delay.less() > 0.3, "{delay:?}");
            assert_eq!(found.verdict.answer.action, AnswerAction::Set, "{}", found.to_terminal(120, false));
            let trials = found.trials + found.delay_trials.len();
            assert!(trials <= 24 && found.trials >= 4, "{trials}");
        }
    }

    #[test]
    fn a_budget_without_room_for_the_test_says_so_before_and_what_promises_less_delay_after() {
        let plan = |goal: Goal, trials: usize| {
            let mut request = TuneRequest { lab: Some("adsl".to_owned()), model: true, ..TuneRequest::default() };
            of_two(goal, trials)(&mut request);
            request.dry_run = true;
            match run(&request, &Cancel::new(), &mut |_| ()) {
                Ok(TuneAnswer::Plan(plan)) => plan.cost_notes.join("; "),
                other => panic!("{other:?}"),
            }
        };
        let (small, large) = (plan(Goal::Delay, 16), plan(Goal::Delay, 24));
        assert!(small.contains("has no room for less delay to be shown: of 16 trials that takes 14"), "{small}");
        assert!(small.contains("--budget \"18 trials\" has") && !large.contains("less delay"), "{small} {large}");
        let balanced = plan(Goal::Balanced, 24);
        assert!(balanced.contains("less delay is tested only with what the race leaves of this budget"), "{balanced}");
        assert!(!plan(Goal::Goodput, 8).contains("delay") && !plan(Goal::Balanced, 60).contains("delay"));
        let found = report("adsl", 1, of_two(Goal::Delay, 16));
        let answer = &found.verdict.answer;
        assert!(
            answer.what.contains(" promises ") && answer.what.contains(" less delay at the same speed"),
            "{answer:?}"
        );
        let command = format!("windtunnel tune --resume {} --budget \"26 trials\"", found.id);
        assert!(answer.lines[2].contains(&command), "{answer:?}");
        let next = found.next.join("\n");
        assert!(next.contains("14 to 26 more trials show whether that is so: ") && next.contains(&command), "{next}");
    }

    #[test]
    fn room_is_kept_as_far_as_the_goal_allows() {
        let rules = |alpha: f64| DelayRules { alpha, epsilon: 0.1 };
        let kept =
            |alpha: f64, most: usize| DelayRoom::of(Some(rules(alpha)), None, 0.05 - alpha, (most, 2), true).trials;
        // Seven rounds of two can show it at a risk of 4 %.
        assert_eq!([14, 17, 18, 24, 30, 60].map(|most| kept(0.04, most)), [0, 0, 14, 14, 15, 26]);
        let least = 2 * rules(0.01).fewest_rounds();
        assert_eq!([least, 3 * least - 1, 3 * least, 200].map(|most| kept(0.01, most)), [0, 0, least, least]);
        assert_eq!(DelayRoom::of(Some(rules(0.04)), None, 0.01, (100, 2), false).trials, 0, "it has time of its own");
        assert_eq!(DelayRoom::of(None, None, 0.05, (100, 2), true).trials, 0);
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
