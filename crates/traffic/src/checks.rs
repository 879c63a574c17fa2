use crate::report::{TrafficSelfCheck, evidence};
use crate::{TrafficAnalysis, TrafficTally, TrafficUnit};
use wt_units::counted;

/// The evidence at which coins are said to be unfair, either way.
const UNFAIR: f64 = 40.0;
/// Beyond this share one prefix is most of what is seen.
const LARGE: f64 = 0.2;
/// Beyond this share of connections with errors an arm isn't what it says.
const ERRORS: f64 = 0.01;
/// By how much the shares of recorded connections may differ between arms.
const UNEVEN: f64 = 0.01;
/// Fewer connections say nothing about shares.
const FEW: u64 = 200;

impl TrafficAnalysis {
    /// Whether the experiment itself can be trusted.
    pub(crate) fn self_checks(&self, tally: &TrafficTally) -> Vec<TrafficSelfCheck> {
        let mut checks = vec![self.sample_ratio(tally), accounting(tally), self.units()];
        if self.config.unit != TrafficUnit::Slot {
            checks.push(self.largest_prefix());
        }
        checks.push(self.set_errors());
        checks.push(self.compliance());
        checks.extend(own_cc(tally));
        checks.extend(clock(tally));
        checks
    }

    /// Whether an arm breaks by itself, whatever the evidence: more than 1 % of its connections refuse a setting.
    #[must_use]
    pub fn broken_arms(&self) -> Vec<usize> {
        let breaks = |(i, arm): (usize, &crate::analysis::ArmFigures)| {
            let broken = i > 0 && arm.recorded >= FEW && arm.set_errors as f64 > ERRORS * arm.recorded as f64;
            broken.then_some(i)
        };
        self.arms.iter().enumerate().filter_map(breaks).collect()
    }

    fn sample_ratio(&self, tally: &TrafficTally) -> TrafficSelfCheck {
        let logs = self.comparisons.iter().flat_map(|comparison| comparison.coins.best());
        let worst = logs.fold(0.0f64, f64::max);
        let recorded = |arm: &&crate::ArmTally| arm.assigned >= FEW;
        let shares: Vec<f64> =
            tally.arms.iter().filter(recorded).map(|a| (a.recorded + a.open) as f64 / a.assigned as f64).collect();
        let (low, high) = shares.iter().fold((f64::INFINITY, 0.0f64), |(low, high), s| (low.min(*s), high.max(*s)));
        let uneven = shares.len() > 1 && high - low > UNEVEN;
        let (fair, text) = (
            worst < UNFAIR.ln(),
            format!("evidence {:.1} : 1 that the arms don't come as often as their shares", evidence(worst)),
        );
        let text = if uneven {
            format!("{text}; {:.1}% to {:.1}% of the arms' connections are recorded", 100.0 * low, 100.0 * high)
        } else {
            text
        };
        check("sample_ratio", fair && !uneven, text)
    }

    fn units(&self) -> TrafficSelfCheck {
        let mut wrong = Vec::new();
        let mut say = |n: u64, what: &str| {
            if n > 0 {
                wrong.push(format!("{n} connections {what}"));
            }
        };
        say(self.live.overflowed, "came when 100,000 units were open, and don't count; take shorter epochs");
        say(self.live.beyond, "of prefixes with more than 2,000 in an epoch don't count");
        say(self.late, "were still open when their epoch was scored");
        say(self.live.two_arms, "had another arm than their unit, and don't count");
        say(self.strangers, "belong to no open epoch, and don't count");
        say(self.prefixes.forgotten, "are of prefixes that aren't remembered, since there are over 100,000");
        let ok = self.live.overflowed + self.live.two_arms + self.strangers == 0;
        let fine = format!(
            "{} scored, {} open",
            counted(self.epochs_scored as usize, "epoch"),
            counted(self.live.len(), "unit")
        );
        check("units", ok, if wrong.is_empty() { fine } else { wrong.join("; ") })
    }

    fn largest_prefix(&self) -> TrafficSelfCheck {
        match self.prefixes.largest_share() {
            None => check("largest_prefix", true, "no connection has been scored yet".to_owned()),
            Some(share) => {
                let text = format!("the largest prefix has {:.1}% of the connections", 100.0 * share);
                // By connection all of a prefix count as much as twenty of others: behind a proxy one has nearly all.
                check("largest_prefix", share <= LARGE || self.config.unit == TrafficUnit::Connection, text)
            }
        }
    }

    fn set_errors(&self) -> TrafficSelfCheck {
        let broken = self.broken_arms();
        let names: Vec<&str> = broken.iter().map(|i| self.config.arms[*i].name.as_str()).collect();
        let errors: u64 = self.arms.iter().map(|arm| arm.set_errors).sum();
        let text = match names.as_slice() {
            [] => format!("the kernel refused a setting on {errors} connections"),
            _ => format!("the kernel refuses a setting on more than 1% of the connections of {}", names.join(", ")),
        };
        check("set_errors", broken.is_empty(), text)
    }

    fn compliance(&self) -> TrafficSelfCheck {
        let (recorded, not) =
            self.arms.iter().fold((0, 0), |(all, not), arm| (all + arm.recorded, not + arm.not_compliant));
        let text = format!("{not} of {recorded} connections had other settings at their end; they count in their arm");
        check("compliance", not as f64 <= ERRORS * recorded as f64, text)
    }
}

fn accounting(tally: &TrafficTally) -> TrafficSelfCheck {
    let wrong = tally.discrepancies();
    let fine = match tally.passive_opens {
        Some(opens) => format!("all {opens} connections that the kernel accepted are accounted for"),
        None => "the kernel's own count isn't known".to_owned(),
    };
    check("accounting", wrong.is_empty(), if wrong.is_empty() { fine } else { wrong.join("; ") })
}

/// How many connections are left alone for a congestion control of their own: what is found isn't about those, and a setting of the
/// host doesn't reach them.
fn own_cc(tally: &TrafficTally) -> Option<TrafficSelfCheck> {
    let assigned: u64 = tally.arms.iter().map(|arm| arm.assigned).sum();
    let (alone, all) = (tally.own_cc, tally.own_cc + tally.not_assigned + assigned);
    let text = format!(
        "{alone} of {all} connections were left alone, since their sockets have a congestion control of their own; --include own-cc takes them in"
    );
    (alone > 0).then(|| check("own_cc", alone <= assigned, text))
}

/// How many connections were too short for the clock that timed them: of those no difference is seen.
fn clock(tally: &TrafficTally) -> Option<TrafficSelfCheck> {
    let short = tally.short.filter(|short| short.connections > 0)?;
    let recorded: u64 = tally.arms.iter().map(|arm| arm.recorded).sum();
    let text = format!(
        "{} of {recorded} connections were shorter than the {} ms that the kernel's counters tell apart; they count as alike, and --backend \
         sockops times them",
        short.connections,
        short.below_us / 1_000
    );
    Some(check("clock", 2 * short.connections <= recorded, text))
}

fn check(name: &str, ok: bool, text: String) -> TrafficSelfCheck {
    TrafficSelfCheck { name: name.to_owned(), ok, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArmTally;

    #[test]
    fn where_most_connections_are_too_short_for_the_clock_the_experiment_says_so() {
        let check = |connections, recorded| {
            let arms = vec![ArmTally { recorded, ..ArmTally::default() }; 2];
            clock(&TrafficTally {
                short: Some(crate::ShortTransfers { connections, below_us: 8_000 }),
                arms,
                ..TrafficTally::default()
            })
        };
        assert_eq!((check(0, 50), clock(&TrafficTally::default())), (None, None));
        assert!(check(50, 50).unwrap().ok);
        let most = check(90, 50).unwrap();
        assert!(!most.ok && most.text.starts_with("90 of 100 connections were shorter than the 8 ms"), "{most:?}");
    }

    #[test]
    fn where_more_connections_are_left_alone_for_their_congestion_control_than_take_part_the_experiment_says_so() {
        let check = |alone, assigned| {
            let arms = vec![ArmTally { assigned, ..ArmTally::default() }; 2];
            own_cc(&TrafficTally { left_alone: alone + 5, own_cc: alone, arms, ..TrafficTally::default() })
        };
        assert_eq!(check(0, 10), None);
        assert!(check(3, 10).unwrap().ok);
        let most = check(80, 10).unwrap();
        assert!(!most.ok && most.text.starts_with("80 of 100 connections were left alone"), "{most:?}");
    }
}
