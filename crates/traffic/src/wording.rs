//! The report as text, 80 columns wide: the first four lines say what is shown, how sure it is, what to do and what is claimed.

use crate::report::{
    TrafficArmReport, TrafficClaim, TrafficClassReport, TrafficEffect, TrafficNoData, TrafficReport, TrafficVerdict,
    TrafficVerdictKind,
};
use crate::{GUARD_WARNING, HoldbackState, ReceiverSettings, TrafficGuard, TrafficUnit};
use std::fmt::Write as _;

/// The widest line.
const COLUMNS: usize = 80;

/// The verdict in one sentence. `receiver` are the settings of what the server receives in which its arm differs from the first.
pub(crate) fn sentence(
    verdict: &TrafficVerdict,
    first: &str,
    stopped_by: Option<TrafficGuard>,
    receiver: Option<&ReceiverSettings>,
) -> String {
    let arm = verdict.arm.as_deref().unwrap_or("it");
    let of = match verdict.claim {
        TrafficClaim::Beside => format!("beside {first}"),
        TrafficClaim::Everybody => format!("than with {first}"),
    };
    let by = |ratio: Option<f64>| ratio.map(change).unwrap_or_default();
    match (verdict.kind, verdict.claim) {
        (TrafficVerdictKind::Faster, TrafficClaim::Beside) => {
            format!("Connections with {arm} are faster {of}: goodput {}.", by(verdict.ratio))
        }
        (TrafficVerdictKind::Faster, TrafficClaim::Everybody) => {
            format!("With {arm} everybody is faster {of}: goodput {}.", by(verdict.ratio))
        }
        (TrafficVerdictKind::Slower, TrafficClaim::Beside) => {
            format!("Connections with {arm} are slower {of}: goodput {}.", by(verdict.ratio))
        }
        (TrafficVerdictKind::Slower, TrafficClaim::Everybody) => {
            format!("With {arm} everybody is slower {of}: goodput {}.", by(verdict.ratio))
        }
        (TrafficVerdictKind::Stopped, _) => {
            let why = stopped_by.map_or("a guard", TrafficGuard::text);
            format!("{arm} is stopped: {why} {of}.")
        }
        (TrafficVerdictKind::Undecided, _) => match receiver.filter(|receiver| receiver.alone) {
            None => format!("No difference between {arm} and {first} is shown yet."),
            Some(receiver) => format!(
                "No difference between {arm} and {first} is shown yet in what the server sends; {} on what it receives.",
                receiver.act()
            ),
        },
        (TrafficVerdictKind::NoData, _) => "No epoch is old enough to be scored yet.".to_owned(),
    }
}

/// `+12%`, `−3.4%`, `×2.4`.
fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match percent {
        p if p >= 100.0 => format!("×{ratio:.1}"),
        p if p.abs() >= 9.95 => format!("{p:+.0}%").replace('-', "−"),
        p => format!("{p:+.1}%").replace('-', "−"),
    }
}

/// `85 : 1`.
fn odds(evidence: f64) -> String {
    match evidence {
        e if e >= 1e6 => "over 1,000,000 : 1".to_owned(),
        e if e >= 10.0 => format!("{e:.0} : 1"),
        e => format!("{e:.1} : 1"),
    }
}

impl TrafficReport {
    /// Whether an arm is claimed to be faster only beside the others, while epochs in which everybody has it lean to slower.
    #[must_use]
    pub fn leans_to_slower_for_everybody(&self) -> bool {
        let effect = self.effects.iter().find(|effect| Some(&effect.arm) == self.verdict.arm.as_ref());
        self.verdict.kind == TrafficVerdictKind::Faster
            && self.verdict.claim == TrafficClaim::Beside
            && effect.and_then(|effect| effect.total_ratio).is_some_and(|ratio| ratio < 1.0)
    }

    /// What is shown, how sure it is, what to do and what is claimed: a sentence each.
    #[must_use]
    pub fn answer(&self) -> [String; 4] {
        let why = self.no_data.and_then(|facts| facts.why(self.unit));
        let verdict = why.as_ref().unwrap_or(&self.verdict.text);
        let first = self.holdback.as_ref().map_or(verdict, |holdback| &holdback.text);
        [first.clone(), self.how_sure(self.leading()), self.what_to_do(), self.what_is_claimed()]
    }

    /// The effect that the verdict is about.
    fn leading(&self) -> Option<&TrafficEffect> {
        self.verdict.arm.as_ref().and_then(|arm| self.effects.iter().find(|effect| effect.arm == *arm))
    }

    /// What it says to a person, at most 80 columns wide.
    #[must_use]
    pub fn text(&self) -> String {
        let effect = self.leading();
        let mut lines = self.answer().to_vec();
        lines.extend(self.receiver_settings.iter().map(|receiver| receiver.text.clone()));
        lines.push(String::new());
        lines.push("arm              connections  retransmitted  RTOs/1000  aborted  settings".to_owned());
        lines.extend(self.arms.iter().map(arm_row));
        lines.extend(self.open_line());
        if let Some(effect) = effect {
            lines.push(String::new());
            lines.push(interval_line(effect, self.beside()));
            lines.push(rank_line(effect));
            lines.extend(mixed_line(effect));
        }
        if !self.classes.is_empty() {
            lines.push(String::new());
            lines.push(class_head(&self.arms));
            lines.extend(self.classes.iter().map(class_row));
        }
        // What a holdback keeps back is slower on purpose.
        let guards = self.guardrails.iter().filter(|_| self.holdback.is_none());
        let tripped = guards.filter(|guard| guard.stopped || guard.evidence >= GUARD_WARNING);
        for guard in tripped {
            lines.push(String::new());
            let what = guard.guard.text();
            let rule = match guard.stopped {
                true => "it is stopped".to_owned(),
                false => format!("at {:.0} : 1 this guard alone stops it", guard.needed),
            };
            lines.push(format!("Guard: with {} {what}, evidence {}; {rule}.", guard.arm, odds(guard.evidence)));
        }
        let wrong: Vec<_> = self.self_checks.iter().filter(|check| !check.ok).collect();
        if !wrong.is_empty() {
            lines.push(String::new());
        }
        lines.extend(wrong.iter().map(|check| format!("Check {}: {}.", check.name, check.text)));
        let mut text = String::new();
        for line in lines {
            wrap(&mut text, &wt_units::harmless(&line));
        }
        text
    }

    /// Those that are open, where this is told of connections with an outcome: they are among these once they are old enough.
    fn open_line(&self) -> Option<String> {
        let are_told = self.arms.iter().any(|arm| arm.open > 0)
            && self.arms.iter().all(|arm| arm.open == 0 || arm.outcomes.is_some());
        let open: Vec<String> = self.arms.iter().map(|arm| format!("{} with {}", arm.open, arm.name)).collect();
        are_told.then(|| {
            format!("Open: {}; those as old as the experiment's age count as they were then.", open.join(", "))
        })
    }

    fn how_sure(&self, effect: Option<&TrafficEffect>) -> String {
        let units = effect.map_or(0, |effect| effect.units);
        let looked_at: u64 = self.arms.iter().map(TrafficArmReport::looked_at).sum();
        let (units, kind) = match (self.verdict.blocks, self.unit) {
            (Some(blocks), _) => (blocks, "blocks of epochs"),
            (None, TrafficUnit::Prefix | TrafficUnit::Connection) => (units, "units"),
            (None, TrafficUnit::Slot) => (units, "blocks of slots"),
        };
        let evidence = odds(self.verdict.evidence);
        format!(
            "Evidence {evidence}, {:.0} : 1 is needed: {units} {kind}, {looked_at} connections.",
            self.verdict.needed
        )
    }

    fn what_to_do(&self) -> String {
        if let Some(holdback) = &self.holdback {
            return match holdback.state {
                HoldbackState::Gone if holdback.is_reversed() => {
                    "Do: windtunnel settings undo, or begin anew with other levels; this path has changed.".to_owned()
                }
                HoldbackState::Gone => {
                    "Do: begin anew with other levels; what is in force isn't shown to be faster any more.".to_owned()
                }
                HoldbackState::Smaller if self.has_ended() => {
                    "Do: nothing; it is still faster, if by less than was claimed.".to_owned()
                }
                HoldbackState::Holds if self.has_ended() => {
                    "Do: nothing; the gain held. Begin it again where it is to go on being measured.".to_owned()
                }
                HoldbackState::Open if self.has_ended() => {
                    "Do: begin it again, for longer; it ended undecided.".to_owned()
                }
                HoldbackState::Smaller => "Do: nothing; it is still faster, and let it run on.".to_owned(),
                HoldbackState::Holds => "Do: nothing; as long as it runs, the gain goes on being measured.".to_owned(),
                HoldbackState::Open => "Do: let it run on; nothing is lost by looking.".to_owned(),
            };
        }
        if let Some(advice) = self.instead_of_running() {
            return format!("Do: {advice}.");
        }
        match self.verdict.kind {
            _ if self.self_checks.iter().any(|check| !check.ok) => {
                "Do: look at the checks below before you act.".to_owned()
            }
            // What `next` says then: it recommends nothing either.
            TrafficVerdictKind::Faster if self.leans_to_slower_for_everybody() && self.has_ended() => {
                "Do: begin it again, for longer; whether everybody gains, whole epochs haven't shown.".to_owned()
            }
            TrafficVerdictKind::Faster if self.leans_to_slower_for_everybody() => {
                "Do: let it run on; whether everybody gains, whole epochs haven't shown.".to_owned()
            }
            TrafficVerdictKind::Faster => format!("Do: sudo windtunnel settings apply --verdict {}", self.id),
            TrafficVerdictKind::Slower | TrafficVerdictKind::Stopped => "Do: keep your current settings.".to_owned(),
            TrafficVerdictKind::Undecided if self.has_ended() && self.compares_alike() => {
                "Do: nothing; the settings are alike, and no difference is shown.".to_owned()
            }
            TrafficVerdictKind::Undecided if self.has_ended() => {
                "Do: begin it again, for longer; it ended before a difference was shown.".to_owned()
            }
            TrafficVerdictKind::Undecided => "Do: let it run on; nothing is lost by looking.".to_owned(),
            TrafficVerdictKind::NoData => match self.no_data.and_then(TrafficNoData::advice) {
                Some(advice) => format!("Do: {advice}."),
                None => "Do: wait until the first epoch has reached the cohort's age.".to_owned(),
            },
        }
    }

    fn what_is_claimed(&self) -> String {
        let first = self.first();
        let beside = self.leading().and_then(|effect| effect.ratio).zip(self.beside());
        match (self.verdict.claim, beside) {
            (TrafficClaim::Everybody, Some((ratio, first))) => {
                format!("Claimed of everybody: whole epochs were compared. Beside {first} it is {}.", change(ratio))
            }
            (TrafficClaim::Everybody, None) => "Claimed of everybody: whole epochs were compared.".to_owned(),
            (TrafficClaim::Beside, _) => {
                format!("Claimed beside {first} only: if everybody has it, it may gain less, or nothing.")
            }
        }
    }

    fn first(&self) -> &str {
        self.arms.first().map_or("the first arm", |arm| arm.name.as_str())
    }

    /// Beside what an effect is measured, where the verdict's own figure is another: that of everybody.
    fn beside(&self) -> Option<&str> {
        self.verdict.blocks.map(|_| self.first())
    }
}

fn arm_row(arm: &TrafficArmReport) -> String {
    let percent = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.2}%", 100.0 * share));
    let rto = arm.rto_per_1000.map_or("–".to_owned(), |rto| format!("{rto:.1}"));
    let (retransmitted, aborted) = (percent(arm.retransmitted_share), percent(arm.aborted_share));
    let name: String = arm.name.chars().take(16).collect();
    format!("{name:16} {:>11}  {retransmitted:>13}  {rto:>9}  {aborted:>7}  {}", arm.looked_at(), arm.settings)
}

fn end(ratio: Option<f64>) -> String {
    ratio.map_or("?".to_owned(), change)
}

fn interval_line(effect: &TrafficEffect, beside: Option<&str>) -> String {
    let beside = beside.map_or_else(String::new, |first| format!(" beside {first}"));
    let (ratio, low, high) = (end(effect.ratio), end(effect.low), end(effect.high));
    let mut line = format!("{}{beside}: goodput {ratio} ({low} to {high})", effect.arm);
    if let Some(ms) = effect.saved_ms {
        let (amount, word) = (ms.abs(), if ms >= 0.0 { "less" } else { "more" });
        let _ = match amount {
            a if a >= 10.0 => write!(line, ", {a:.0} ms {word} per connection"),
            a if a >= 0.95 => write!(line, ", {a:.1} ms {word} per connection"),
            a => write!(line, ", {:.0} µs {word} per connection", a * 1e3),
        };
    }
    line + "."
}

fn rank_line(effect: &TrafficEffect) -> String {
    let (better, worse) = (odds(effect.evidence_better_rank), odds(effect.evidence_worse_rank));
    format!("By ranks, aborted connections last: better {better}, worse {worse}.")
}

fn mixed_line(effect: &TrafficEffect) -> Option<String> {
    let (total, spillover) = (change(effect.total_ratio?), change(effect.spillover_ratio?));
    let ends = effect.total_low.or(effect.total_high);
    let ends = ends.map_or_else(String::new, |_| format!(" ({} to {})", end(effect.total_low), end(effect.total_high)));
    Some(format!("Everybody with it: {total}{ends}; those without it beside it: {spillover}."))
}

fn class_head(arms: &[TrafficArmReport]) -> String {
    let mut head = format!("{:17}", "goodput, Mbit/s");
    for arm in arms.iter().take(3) {
        let name: String = arm.name.chars().take(12).collect();
        let _ = write!(head, " {name:>12} {:>7}", "share");
    }
    head
}

fn class_row(class: &TrafficClassReport) -> String {
    let mut row = format!("{:17}", class.name);
    for arm in class.arms.iter().take(3) {
        let goodput = arm.goodput_bps.map_or("–".to_owned(), |bps| format!("{:.3}", bps / 1e6));
        let share = arm.share.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share));
        let _ = write!(row, " {goodput:>12} {share:>7}");
    }
    row
}

/// Adds a line, broken at spaces before column 80; what is broken is indented by two.
fn wrap(text: &mut String, line: &str) {
    let mut rest = line.trim_end();
    let mut indent = "";
    loop {
        let room = COLUMNS - indent.len();
        let length = rest.chars().count();
        let at = rest.char_indices().nth(room).map(|(at, _)| at);
        let broken =
            at.filter(|_| length > room).and_then(|at| rest[..=at].rfind(' ').filter(|at| *at > 0).or(Some(at)));
        let Some(at) = broken else {
            let _ = writeln!(text, "{indent}{rest}");
            return;
        };
        let _ = writeln!(text, "{indent}{}", rest[..at].trim_end());
        rest = rest[at..].trim_start();
        indent = "  ";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saving_below_a_millisecond_is_no_nothing() {
        let told = |saved_ms| {
            let effect = serde_json::json!({
                "arm": "bbr", "ratio": 1.25, "low": 1.1, "high": null, "saved_ms": saved_ms, "evidence_faster": 85.0,
                "evidence_slower": 0.1, "needed": 20.0, "units": 9, "evidence_better_rank": 1.0, "evidence_worse_rank": 1.0,
            });
            interval_line(&serde_json::from_value(effect).unwrap(), None)
        };
        for (saved, said) in
            [(41.5, "42 ms less"), (4.15, "4.2 ms less"), (0.415, "415 µs less"), (-0.04, "40 µs more")]
        {
            assert!(told(saved).contains(&format!(", {said} per connection.")), "{}", told(saved));
        }
    }
}
