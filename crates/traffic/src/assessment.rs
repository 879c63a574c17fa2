//! The report of an analysis.

use crate::analysis::{ArmFigures, ClassFigures, Comparison};
use crate::class::SIZE_NAMES;
use crate::report::{
    TRAFFIC_SCHEMA_VERSION, TrafficArmReport, TrafficClaim, TrafficClassArm, TrafficClassReport, TrafficEffect,
    TrafficGuardReport, TrafficNoData, TrafficReport, TrafficVerdict, TrafficVerdictKind, evidence, finite,
};
use crate::{
    ArmTally, GUARD_THRESHOLD, ReceiverSettings, TrafficAllocation, TrafficAnalysis, TrafficGuard, TrafficTally,
    TrafficUnit, wording,
};

/// The name of an experiment, and what carried it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficRun<'a> {
    /// Its name in the journal.
    pub id: &'a str,
    /// What assigned and recorded.
    pub backend: &'a str,
}

impl TrafficAnalysis {
    /// What the experiment shows now. It may be asked for as often as one likes: the evidence holds under peeking.
    #[must_use]
    pub fn report(&self, run: TrafficRun<'_>, tally: &TrafficTally) -> TrafficReport {
        let slots = self.config.unit == TrafficUnit::Slot;
        let effects: Vec<TrafficEffect> =
            self.comparisons.iter().map(|comparison| self.effect(comparison, slots)).collect();
        let mut report = TrafficReport {
            schema_version: TRAFFIC_SCHEMA_VERSION,
            id: run.id.to_owned(),
            unit: self.config.unit,
            backend: run.backend.to_owned(),
            arms: (0..self.arms.len()).map(|i| self.arm(i, tally)).collect(),
            classes: self.classes(),
            verdict: self.verdict(&effects),
            effects,
            receiver_settings: ReceiverSettings::of(&self.config.arms),
            guardrails: self.guardrails(),
            self_checks: self.self_checks(tally),
            holdback: self.config.holdback.map(|claimed| self.holdback(claimed)),
            no_data: None,
            ended: false,
            next: Vec::new(),
        };
        report.no_data = (report.verdict.kind == TrafficVerdictKind::NoData).then(|| TrafficNoData {
            left_alone: tally.left_alone,
            assigned: report.arms.iter().map(|arm| arm.assigned).sum(),
            epochs: self.epochs_scored,
            ended: false,
        });
        report.next = crate::next::steps(&self.config, &report);
        report
    }

    fn arm(&self, i: usize, tally: &TrafficTally) -> TrafficArmReport {
        let figures = &self.arms[i];
        let unknown = ArmTally { assigned: figures.recorded, recorded: figures.recorded, ..ArmTally::default() };
        let counts = tally.arms.get(i).copied().unwrap_or(unknown);
        let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        TrafficArmReport {
            name: self.config.arms[i].name.clone(),
            settings: self.config.arms[i].settings.clone(),
            assigned: counts.assigned,
            recorded: counts.recorded,
            missed: counts.assigned.saturating_sub(counts.recorded + counts.open),
            open: counts.open,
            outcomes: (counts.open > 0 || figures.recorded != counts.recorded).then_some(figures.recorded),
            set_errors: figures.set_errors.max(counts.set_errors),
            not_compliant: figures.not_compliant.max(counts.not_compliant),
            retransmitted_share: share(figures.retransmitted, figures.segments),
            rto_per_1000: share(figures.rtos, figures.rto_known).map(|share| 1000.0 * share),
            aborted_share: share(figures.aborted, figures.recorded),
            unfinished_share: share(figures.open, figures.recorded),
            responses: (figures.by_response > 0).then_some(figures.responses),
        }
    }

    fn classes(&self) -> Vec<TrafficClassReport> {
        let row = |k: usize| TrafficClassReport {
            name: SIZE_NAMES[k].to_owned(),
            arms: self.arms.iter().map(|arm| class_arm(arm, &arm.classes[k])).collect(),
        };
        let seen = |k: &usize| self.arms.iter().any(|arm| arm.classes[*k].outcomes > 0);
        (0..SIZE_NAMES.len()).filter(seen).map(row).collect()
    }

    /// What whole epochs say, or else the coins beside.
    fn effect(&self, comparison: &Comparison, whole: bool) -> TrafficEffect {
        let needed = self.needed();
        let (total, goodput) = (&comparison.total, &comparison.goodput);
        let (total_low, total_high) = total.interval(needed);
        let (effect, (low, high), units, [faster, slower]) = if whole {
            (total.effect(), (total_low, total_high), total.blocks() as u64, total.best())
        } else {
            (goodput.effect(), goodput.interval(needed), goodput.units(), goodput.best())
        };
        let [better, worse] = comparison.ranks.best();
        let control = &self.arms[0];
        let typical_ms = (control.timed > 0).then(|| (control.log_time / control.timed as f64).exp() / 1e3);
        let saved = |effect: Option<f64>| effect.zip(typical_ms).map(|(effect, ms)| ms * (1.0 - (-effect).exp()));
        TrafficEffect {
            arm: self.config.arms[comparison.arm].name.clone(),
            ratio: effect.map(f64::exp),
            low: finite(low).map(f64::exp),
            high: finite(high).map(f64::exp),
            saved_ms: saved(effect),
            saved_low_ms: saved(finite(low)),
            saved_high_ms: saved(finite(high)),
            evidence_faster: evidence(faster),
            evidence_slower: evidence(slower),
            needed,
            units,
            evidence_better_rank: evidence(better),
            evidence_worse_rank: evidence(worse),
            total_ratio: total.effect().map(f64::exp),
            total_low: finite(total_low).map(f64::exp),
            total_high: finite(total_high).map(f64::exp),
            spillover_ratio: comparison.spillover.effect().map(f64::exp),
        }
    }

    fn guardrails(&self) -> Vec<TrafficGuardReport> {
        let of = |comparison: &Comparison| {
            let report = |guard: TrafficGuard| TrafficGuardReport {
                guard,
                arm: self.config.arms[comparison.arm].name.clone(),
                evidence: evidence(comparison.guard_evidence(guard)),
                needed: guard.threshold(),
                stopped: comparison.stopped == Some(guard),
            };
            TrafficGuard::ALL.map(report)
        };
        self.comparisons.iter().flat_map(of).collect()
    }

    pub(crate) fn verdict(&self, effects: &[TrafficEffect]) -> TrafficVerdict {
        let needed = self.needed();
        // Evidence is the largest that there ever was: what the estimate contradicts by now isn't claimed any more.
        let slower =
            effects.iter().filter(|effect| effect.evidence_slower >= needed && effect.ratio.is_none_or(|r| r < 1.0));
        let slower = slower.max_by(|a, b| a.evidence_slower.total_cmp(&b.evidence_slower));
        // Of several that are faster and that no guard has stopped, the one with the largest estimate.
        let going_on = effects.iter().zip(&self.comparisons).filter(|(_, comparison)| comparison.stopped.is_none());
        let faster = going_on
            .map(|(effect, _)| effect)
            .filter(|effect| effect.evidence_faster >= needed && effect.ratio.is_none_or(|r| r > 1.0));
        let faster = faster.max_by(|a, b| a.ratio.unwrap_or(0.0).total_cmp(&b.ratio.unwrap_or(0.0)));
        let stopped = self.comparisons.iter().find(|comparison| comparison.stopped.is_some());
        let stopped = stopped.map(|comparison| &effects[comparison.arm - 1]);
        let (kind, effect) = match (faster, slower, stopped) {
            (Some(effect), ..) => (TrafficVerdictKind::Faster, Some(effect)),
            (None, Some(effect), _) => (TrafficVerdictKind::Slower, Some(effect)),
            (None, None, Some(effect)) => (TrafficVerdictKind::Stopped, Some(effect)),
            (None, None, None) if effects.iter().all(|effect| effect.units == 0) => (TrafficVerdictKind::NoData, None),
            (None, None, None) => {
                let strongest = |effect: &&TrafficEffect| effect.evidence_faster.max(effect.evidence_slower);
                let leader = effects.iter().max_by(|a, b| strongest(a).total_cmp(&strongest(b)));
                (TrafficVerdictKind::Undecided, leader)
            }
        };
        // A claim of everybody is told with the figures that it rests on.
        let of_everybody = self.of_everybody(effect, kind);
        let claim = match self.config.unit == TrafficUnit::Slot || of_everybody.is_some() {
            true => TrafficClaim::Everybody,
            false => TrafficClaim::Beside,
        };
        let effect = of_everybody.as_ref().or(effect);
        let mut verdict = TrafficVerdict {
            kind,
            arm: effect.map(|effect| effect.arm.clone()),
            ratio: effect.and_then(|effect| effect.ratio),
            at_least: match kind {
                TrafficVerdictKind::Faster => effect.and_then(|effect| effect.low),
                TrafficVerdictKind::Slower => effect.and_then(|effect| effect.high),
                _ => None,
            },
            evidence: match (kind, effect) {
                (_, None) => 1.0,
                (TrafficVerdictKind::Faster, Some(effect)) => effect.evidence_faster,
                (TrafficVerdictKind::Slower, Some(effect)) => effect.evidence_slower,
                (TrafficVerdictKind::Stopped, Some(_)) => self.stopping_evidence(),
                (_, Some(effect)) => effect.evidence_faster.max(effect.evidence_slower),
            },
            needed: if kind == TrafficVerdictKind::Stopped { GUARD_THRESHOLD } else { needed },
            text: String::new(),
            claim,
            blocks: of_everybody.as_ref().map(|effect| effect.units),
        };
        let stopped_by = self.comparisons.iter().find_map(|comparison| comparison.stopped);
        let first = &self.config.arms[0];
        let arm = self.config.arms.iter().find(|arm| Some(&arm.name) == verdict.arm.as_ref());
        let receiver = arm.and_then(|arm| ReceiverSettings::among(&[&first.settings, &arm.settings]));
        verdict.text = wording::sentence(&verdict, &first.name, stopped_by, receiver.as_ref());
        verdict
    }

    /// With mixed allocations: what the whole epochs say, where they alone have the evidence for what is claimed.
    fn of_everybody(&self, effect: Option<&TrafficEffect>, kind: TrafficVerdictKind) -> Option<TrafficEffect> {
        if self.config.unit == TrafficUnit::Slot || self.config.allocation != TrafficAllocation::Mixed {
            return None;
        }
        let arm = &effect?.arm;
        let comparison = self.comparisons.iter().find(|c| self.config.arms[c.arm].name == *arm)?;
        let whole = self.effect(comparison, true);
        let (evidence, agrees) = match kind {
            TrafficVerdictKind::Faster => (whole.evidence_faster, whole.ratio > Some(1.0)),
            TrafficVerdictKind::Slower => (whole.evidence_slower, whole.ratio < Some(1.0)),
            _ => return None,
        };
        (agrees && evidence >= whole.needed).then_some(whole)
    }

    fn stopping_evidence(&self) -> f64 {
        let stopped = self.comparisons.iter().find(|comparison| comparison.stopped.is_some());
        stopped.map_or(1.0, |comparison| comparison.guards_together)
    }
}

fn class_arm(arm: &ArmFigures, class: &ClassFigures) -> TrafficClassArm {
    let timed: u64 = class.times.iter().map(|n| u64::from(*n)).sum();
    let some = |value: f64| (timed > 0).then_some(value);
    let all: u64 = arm.classes.iter().map(|class| class.outcomes).sum();
    let mut below = 0;
    let p90 = class.times.iter().position(|n| {
        below += u64::from(*n);
        10 * below >= 9 * timed
    });
    TrafficClassArm {
        connections: class.outcomes,
        share: (all > 0).then(|| class.outcomes as f64 / all as f64),
        goodput_bps: some(8.0 * (class.log_goodput / timed.max(1) as f64).exp()),
        overall_bps: some(8e6 * class.bytes as f64 / class.time_us.max(1) as f64),
        p90_ms: p90.and_then(|k| some(((k + 1) as f64 / 4.0).exp2() / 1e3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TrafficArm, TrafficConfig};

    /// The verdict on arms B, C and D beside A, each with the ratio that it is claimed to have and what has stopped it.
    fn verdict(tried: [(f64, Option<TrafficGuard>); 3]) -> (TrafficVerdictKind, String, String) {
        let arm = |(name, level): (&str, u32)| TrafficArm {
            name: name.to_owned(),
            settings: format!("initcwnd={level}").parse().unwrap(),
        };
        let arms = [("A", 10), ("B", 20), ("C", 30), ("D", 40)].map(arm).to_vec();
        let config = TrafficConfig { ports: vec![443], arms, ..TrafficConfig::default() };
        let mut analysis = TrafficAnalysis::new(config).unwrap();
        let run = TrafficRun { id: "traffic-1", backend: "sockops" };
        let mut effects = analysis.report(run, &TrafficTally::default()).effects;
        for (at, (ratio, stopped)) in tried.into_iter().enumerate() {
            effects[at] = TrafficEffect { ratio: Some(ratio), evidence_faster: 1e6, units: 100, ..effects[at].clone() };
            analysis.comparisons[at].stopped = stopped;
        }
        let verdict = analysis.verdict(&effects);
        (verdict.kind, verdict.arm.unwrap(), verdict.text)
    }

    #[test]
    fn an_arm_that_is_stopped_is_never_claimed_and_hides_none_that_goes_on_whatever_the_order() {
        let (aborted, retransmitted) = (Some(TrafficGuard::Resets), Some(TrafficGuard::Retransmissions));
        for tried in [
            [(1.2, None), (1.5, aborted), (1.4, retransmitted)],
            [(1.5, retransmitted), (1.4, aborted), (1.2, None)],
            [(1.1, None), (1.2, None), (1.5, aborted)],
        ] {
            let (kind, arm, text) = verdict(tried);
            let goes_on = ["B", "C", "D"].into_iter().zip(tried).filter(|(_, (ratio, _))| *ratio == 1.2);
            assert_eq!(
                (kind, vec![arm.as_str()]),
                (TrafficVerdictKind::Faster, goes_on.map(|one| one.0).collect()),
                "{text}"
            );
        }
        let (kind, arm, text) = verdict([(1.2, retransmitted), (1.5, aborted), (1.4, aborted)]);
        assert_eq!((kind, arm.as_str()), (TrafficVerdictKind::Stopped, "B"));
        assert!(text.contains(TrafficGuard::Retransmissions.text()), "{text}");
    }
}
