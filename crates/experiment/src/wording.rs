//! Verdicts in plain sentences. Every sentence says what is shown, how surely, and what would be needed for more.

use crate::sequential::{ArmAssessment, Assessment, LevelVerdict, Needed, PlateauAssessment, StopReason, VerdictKind};
use std::time::Duration;
use wt_units::counted;

/// A verdict as text: one sentence to act on, and what stands behind it.
///
/// # Example
/// See the crate's documentation; `to_string()` gives the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The one sentence.
    pub headline: String,
    /// What stands behind it, a sentence or two each.
    pub details: Vec<String>,
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.headline)?;
        self.details.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

impl Text {
    /// The text for an assessment. `labels` names the settings by number, 0 being the current one; `per_trial` is what a
    /// trial takes with all that belongs to it.
    #[must_use]
    pub fn new(assessment: &Assessment, labels: &[impl AsRef<str>], per_trial: Duration) -> Self {
        let words = Words { a: assessment, labels: labels.iter().map(|l| l.as_ref().to_owned()).collect(), per_trial };
        match assessment.kind {
            VerdictKind::Faster => words.faster(),
            VerdictKind::NoDifference | VerdictKind::Stopped => words.nothing_shown(),
        }
    }
}

struct Words<'a> {
    a: &'a Assessment,
    labels: Vec<String>,
    per_trial: Duration,
}

impl Words<'_> {
    fn label(&self, arm: usize) -> String {
        self.labels.get(arm).cloned().unwrap_or_else(|| format!("setting {arm}"))
    }

    /// What the others are compared with: the current settings, unless the first label is that of a baseline.
    fn reference(&self) -> String {
        let named = self.labels.first().filter(|label| label.starts_with("baseline"));
        named.map_or_else(|| "your current setting".to_owned(), |label| format!("the {label}"))
    }

    fn confidence(&self) -> String {
        percent(1.0 - self.a.alpha)
    }

    fn faster(&self) -> Text {
        let arm = &self.a.arms[self.a.pick];
        let name = self.label(arm.arm);
        let in_total = arm.total_ratio.is_none_or(|r| r >= 1.0);
        let headline = if in_total {
            format!("{name} is faster than {}.", self.reference())
        } else {
            let ratio = arm.total_ratio.map_or_else(String::new, times_down);
            format!("{name} is typically faster than {}, but not in total ({ratio}).", self.reference())
        };
        let mut details = vec![format!(
            "Best estimate {} ({} as seen so far: what is chosen for being large looks larger than it is); at least {} ({}, \
             holds however long you watched). Evidence {}, {} needed.",
            arm.cautious.map_or_else(|| "unknown".to_owned(), |log| times(log.exp())),
            arm.ratio.map_or_else(|| "unknown".to_owned(), times),
            arm.at_least.map_or_else(|| "unknown".to_owned(), |l| times_down(l.exp())),
            self.confidence(),
            odds(arm.evidence),
            odds(arm.needed.unwrap_or(f64::INFINITY)),
        )];
        details.push(self.effort());
        if let Some(regret) = self.a.regret {
            details.push(format!("{name} is at most {} behind the best setting tested.", percent_up(regret)));
        }
        self.finish(headline, details)
    }

    /// Whether every trial of every setting failed.
    fn nothing_worked(&self) -> bool {
        let ran = |arm: &ArmAssessment| arm.trials - arm.void;
        self.a.arms.iter().any(|arm| ran(arm) > 0) && self.a.arms.iter().all(|arm| arm.failed == ran(arm))
    }

    fn nothing_shown(&self) -> Text {
        if self.nothing_worked() {
            let headline = "Nothing could be compared: every trial failed.".to_owned();
            return self.finish(headline, vec![format!("Keep what you have. {}", self.effort())]);
        }
        let little: Vec<String> =
            self.candidates().filter(|arm| arm.faster_by_little).map(|arm| self.label(arm.arm)).collect();
        let reference = self.reference().replace("your current setting", "your current one");
        let none = if self.candidates().any(|arm| arm.slower) {
            format!("No setting is shown to be faster than {reference}.")
        } else {
            "No difference shown.".to_owned()
        };
        let headline = match self.a.stop {
            _ if !little.is_empty() => {
                let verb = if little.len() == 1 { "is" } else { "are" };
                let least = percent(self.a.relevant);
                format!("{} {verb} faster by less than {least}: not worth a change.", list(&little))
            }
            _ if self.a.all_same => {
                format!("All settings are the same within {} ({}).", percent(self.a.indifference), self.confidence())
            }
            None | Some(StopReason::User) => "No difference shown so far.".to_owned(),
            Some(_) => none,
        };
        let mut details = vec![self.excluded()];
        details.extend(self.needed());
        details.extend(self.unproven_leader());
        details.push(format!("Keep what you have. {}", self.effort()));
        self.finish(headline, details)
    }

    /// What both kinds of verdict end with.
    fn finish(&self, headline: String, mut details: Vec<String>) -> Text {
        details.extend(self.slower());
        details.extend(self.a.plateau.as_ref().and_then(|p| self.plateau(p)));
        details.extend(self.failures());
        details.extend(self.disagreement());
        details.push(self.assumption());
        Text { headline, details }
    }

    fn candidates(&self) -> impl Iterator<Item = &ArmAssessment> {
        self.a.arms.iter().skip(1)
    }

    fn effort(&self) -> String {
        let time = self.per_trial.saturating_mul(u32::try_from(self.a.trials).unwrap_or(u32::MAX));
        format!("{}, {}, {}.", counted(self.a.rounds, "round"), counted(self.a.trials, "trial"), rough(time))
    }

    /// Which gains are excluded; a setting that was dropped too early to say is named.
    fn excluded(&self) -> String {
        let fewest = self.a.fewest_to_exclude();
        let Some(most) = self.a.gain_at_most else {
            return format!("No gain can be excluded before {} of each setting.", counted(fewest, "round"));
        };
        let gains = if most <= 0.0 {
            format!("Any gain is excluded ({})", self.confidence())
        } else {
            format!("Gains above +{} are excluded ({})", percent_up(most.exp_m1()), self.confidence())
        };
        let dropped: Vec<String> = self.a.not_excluded().map(|arm| self.label(arm.arm)).collect();
        match dropped.as_slice() {
            [] => format!("{gains}."),
            names => format!("{gains}, but for {}: left out early by estimate, or failing.", list(names)),
        }
    }

    fn needed(&self) -> Option<String> {
        let noise = self.a.noise?;
        let more = |n: &Needed| {
            let time = self.per_trial.saturating_mul(u32::try_from(n.more_trials).unwrap_or(u32::MAX));
            format!("{} ({}, {})", counted(n.more_rounds, "more round"), counted(n.more_trials, "trial"), rough(time))
        };
        // The larger gain first: it is the one within reach.
        let mut by_gain: Vec<&Needed> = self.a.needed.iter().collect();
        by_gain.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let clauses: Vec<String> = by_gain
            .iter()
            .map(|n| format!("a true +{} would show (80% chance) after about {}", percent(n.gain), more(n)))
            .collect();
        (!clauses.is_empty()).then(|| format!("With the noise seen (CV {}) {}.", percent(noise.cv), clauses.join(", ")))
    }

    fn unproven_leader(&self) -> Option<String> {
        let arm = self.a.arms.get(self.a.leader).filter(|arm| arm.arm != 0)?;
        Some(format!(
            "{} leads ({}) but is unproven: evidence {}, {} needed.",
            self.label(arm.arm),
            times(arm.ratio?),
            odds(arm.evidence),
            odds(arm.needed?)
        ))
    }

    fn slower(&self) -> Option<String> {
        let names: Vec<String> = self.candidates().filter(|arm| arm.slower).map(|arm| self.label(arm.arm)).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        (!names.is_empty()).then(|| {
            let than = self.reference();
            format!("{} {verb} shown to be slower than {than} ({}).", list(&names), self.confidence())
        })
    }

    fn plateau(&self, p: &PlateauAssessment) -> Option<String> {
        let anchor = match (p.strict, p.anchor) {
            (true, _) => "the best of all levels".to_owned(),
            (false, 0) => self.reference(),
            (false, arm) => self.label(arm),
        };
        let within = format!("within {} of {anchor} ({})", percent(p.epsilon), self.confidence());
        let shown = p.levels.iter().position(|l| l.arm == p.smallest && l.verdict == LevelVerdict::Within);
        // The next smaller level, or without a shown one the largest below the anchor.
        let below = p.levels.iter().take(shown.unwrap_or(p.levels.len())).rev();
        let next = below.clone().find(|l| l.arm != p.anchor && l.verdict != LevelVerdict::Within);
        let next = next.map(|level| match level.verdict {
            LevelVerdict::Below => format!("{} lies below by estimate", self.label(level.arm)),
            _ => format!("{} is not shown to be", self.label(level.arm)),
        });
        if shown.is_none() {
            return next.map(|next| format!("No smaller level is shown to be {within}: {next}."));
        }
        let smallest = format!("The smallest level shown to be {within} is {}", self.label(p.smallest));
        Some(next.map_or(format!("{smallest}."), |next| format!("{smallest}; {next}.")))
    }

    fn failures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut clean = Vec::new();
        let shown = if self.a.kind == VerdictKind::Faster { vec![0, self.a.pick] } else { Vec::new() };
        for arm in &self.a.arms {
            let (bad, n) = (arm.failed + arm.incomplete, arm.trials - arm.void);
            let name = self.label(arm.arm);
            if bad > 0 {
                lines.push(format!("{name}: {bad} of {} stalled or failed.", counted(n, "trial")));
            } else if shown.contains(&arm.arm) && n > 0 {
                clean.push(format!(
                    "0 of {n} of {name} (the true rate may be up to {})",
                    percent((3.0 / n as f64).min(1.0))
                ));
            }
            if arm.spoilt > 0 {
                lines.push(format!(
                    "{name}: {} said nothing (refused, or spoilt by this machine).",
                    counted(arm.spoilt, "attempt")
                ));
            }
            if arm.needed.is_some_and(|need| arm.spoilt_more >= need) {
                lines.push(format!(
                    "Attempts of {name} say nothing more often than those of {}: evidence {}.",
                    self.reference(),
                    odds(arm.spoilt_more)
                ));
            }
            if arm.doubtful {
                lines.push(format!(
                    "{name} isn't called faster: attempts of one of the two say nothing more often, and what is left may be \
                     a selection."
                ));
            }
            if arm.arm != 0 && arm.mostly_bad {
                lines.push(format!("{name} isn't called faster: more than half of its trials stalled or failed."));
            }
            if arm.needed.is_some_and(|need| arm.fails_more >= need) {
                lines.push(format!(
                    "{name} fails more often than {}: evidence {}.",
                    self.reference(),
                    odds(arm.fails_more)
                ));
            }
        }
        if !clean.is_empty() {
            lines.push(format!("Trials that stalled or failed: {}.", clean.join(", ")));
        }
        lines
    }

    fn disagreement(&self) -> Vec<String> {
        let odd = |arm: &&ArmAssessment| {
            arm.claimed.is_none() && arm.estimate.is_some_and(|e| e > 0.0) && arm.p_value.is_some_and(|p| p < 0.01)
        };
        let line = |arm: &ArmAssessment| {
            format!(
                "A model with normal noise would call {} faster (p = {:.2e}, as if looked at once); the random order \
                 alone does not bear that out yet (evidence {}).",
                self.label(arm.arm),
                arm.p_value.unwrap_or(1.0),
                odds(arm.evidence)
            )
        };
        self.candidates().filter(odd).map(line).collect()
    }

    fn assumption(&self) -> String {
        let cut = match self.a.discarded_rounds {
            0 => String::new(),
            n => format!(
                " {} cut short and not counted.",
                if n == 1 { "1 round was".into() } else { format!("{n} rounds were") }
            ),
        };
        format!(
            "Holds for this path in these hours. Assumes that a setting does not influence the next trial; bounds also that \
             it changes every trial by the same ratio.{cut}"
        )
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// `×1.03`, rounded down: for what is at least so much.
fn times_down(ratio: f64) -> String {
    times((ratio * 100.0 + 1e-9).floor() / 100.0)
}

/// `×1.19`.
fn times(ratio: f64) -> String {
    if ratio >= 100.0 { format!("×{ratio:.0}") } else { format!("×{ratio:.2}") }
}

/// `17%`; a decimal below 3 %.
fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p < 2.95 && (p - p.round()).abs() > 0.049 { format!("{p:.1}%") } else { format!("{p:.0}%") }
}

/// As [`percent`], rounded up: for what is at most so much.
fn percent_up(share: f64) -> String {
    let p = share.max(0.0) * 100.0;
    if p < 3.0 {
        format!("{:.1}%", (p * 10.0 - 1e-9).ceil().abs() / 10.0)
    } else {
        format!("{:.0}%", (p - 1e-9).ceil())
    }
}

/// `71 : 1`.
fn odds(evidence: f64) -> String {
    match evidence {
        e if e.is_nan() => "unknown".to_owned(),
        e if e > 1e4 => "over 10000 : 1".to_owned(),
        e if e >= 3.0 => format!("{:.0} : 1", e.floor()),
        e => format!("{e:.1} : 1"),
    }
}

/// A duration to the precision in which one plans: `40 s`, `25 min`, `8 h`, `3 days`.
fn rough(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 90.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests;
