//! Verdicts in plain sentences. Every sentence says what is shown, how surely, and what would be needed for more.

use crate::sequential::{
    ArmAssessment, Assessment, LevelVerdict, NeededRounds, PlateauAssessment, StopReason, VerdictKind,
};
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

    /// The same where something is recommended for another reason than its speed: that reason, instead of "Keep what you have."
    #[must_use]
    pub fn recommending(mut self, reason: &str) -> Self {
        if self.headline == NONE {
            self.headline = "No difference in speed shown.".to_owned();
        }
        for line in &mut self.details {
            if let Some(effort) = line.strip_prefix(KEEP) {
                *line = format!("{reason} The race: {}", effort.trim_start());
            }
        }
        self
    }
}

/// That nothing is shown.
const NONE: &str = "No difference shown.";
/// What follows from that, if nothing else speaks for a setting.
const KEEP: &str = "Keep what you have.";
/// A lead of less than this isn't worth a sentence.
const WORTH: f64 = 1.01;
/// The logarithm of a ratio, ten, that nobody expects of a setting: that it isn't more rules nothing out.
const GREAT: f64 = std::f64::consts::LN_10;

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
        if let Some((failed, all)) = self.a.works_alone() {
            return self.works_alone(arm, failed, all);
        }
        let headline = if in_total {
            format!("{name} is faster than {}.", self.reference())
        } else {
            let ratio = arm.total_ratio.map_or_else(String::new, times_down);
            format!("{name} is typically faster than {}, but not in total ({ratio}).", self.reference())
        };
        let unknown = || "unknown".to_owned();
        let mut details = vec![format!(
            "At least {} with {} confidence, however often you looked; evidence {} of {}. Best estimate {}; seen so far {}, which is \
             too large, since the best of several was chosen.",
            arm.at_least.map_or_else(unknown, |l| times_down(l.exp())),
            self.confidence(),
            odds(arm.evidence),
            odds(arm.needed.unwrap_or(f64::INFINITY)),
            arm.cautious.map_or_else(unknown, |log| times(log.exp())),
            arm.ratio.map_or_else(unknown, times),
        )];
        details.push(self.effort());
        details.extend(self.a.regret.map(|regret| match regret {
            regret if regret > 0.0 => {
                format!("{name} is the best of the settings tested, or at most {} behind it.", percent_up(regret))
            }
            _ => format!("{name} is the best of the settings tested."),
        }));
        self.finish(headline, details)
    }

    /// The current setting delivers nothing, or mostly nothing: that has no rate, and so no ratio.
    fn works_alone(&self, arm: &ArmAssessment, failed: usize, all: usize) -> Text {
        let mostly = if failed < all { "mostly " } else { "" };
        let seen = arm.ratio.map(|ratio| format!(" Where both delivered something, it was {}.", times(ratio)));
        let headline = format!(
            "{} works, where {} {mostly}delivers nothing ({failed} of {} failed).",
            self.label(arm.arm),
            self.reference(),
            counted(all, "trial")
        );
        let shown = format!(
            "That it is faster is shown with {} confidence, however often you looked; evidence {} of {}. There is no saying by how \
             much: a trial without a byte has no speed.{}",
            self.confidence(),
            odds(arm.evidence),
            odds(arm.needed.unwrap_or(f64::INFINITY)),
            seen.unwrap_or_default()
        );
        self.finish(headline, vec![shown, self.effort()])
    }

    /// Why nothing could be compared, if that is so.
    fn nothing_worked(&self) -> Option<String> {
        let ran = |arm: &ArmAssessment| arm.trials - arm.void;
        if self.a.arms.iter().any(|arm| ran(arm) > 0) && self.a.arms.iter().all(|arm| arm.failed == ran(arm)) {
            return Some("every trial failed".to_owned());
        }
        if self.a.lacks_candidates() {
            return Some(format!("{} couldn't be set", list(&self.unset())));
        }
        let half = || format!("more than half of the trials of {} stalled or failed", self.reference());
        self.a.lacks_current().then(half)
    }

    fn nothing_shown(&self) -> Text {
        if let Some(why) = self.nothing_worked() {
            let headline = format!("Nothing could be compared: {why}.");
            return self.finish(headline, vec![format!("{KEEP} {}", self.effort())]);
        }
        let little: Vec<String> =
            self.candidates().filter(|arm| arm.faster_by_little).map(|arm| self.label(arm.arm)).collect();
        let reference = self.reference().replace("your current setting", "your current one");
        let none = if self.candidates().any(|arm| arm.slower) {
            format!("No setting is shown to be faster than {reference}.")
        } else {
            NONE.to_owned()
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
        details.push(format!("{KEEP} {}", self.effort()));
        self.finish(headline, details)
    }

    /// What both kinds of verdict end with.
    fn finish(&self, headline: String, mut details: Vec<String>) -> Text {
        details.extend(self.unset_line());
        details.extend(self.slower());
        details.extend(self.a.plateau.as_ref().and_then(|p| self.plateau(p)));
        details.extend(self.failures());
        details.extend(self.disagreement());
        details.push(self.assumption());
        Text { headline, details }
    }

    fn candidates(&self) -> impl Iterator<Item = &ArmAssessment> {
        self.a.compared()
    }

    /// The settings of which nothing is said; where what they were to be compared with is among them, that one alone.
    fn unset(&self) -> Vec<String> {
        if self.a.unset.contains(&0) {
            return vec![self.reference()];
        }
        self.a.unset.iter().map(|arm| self.label(*arm)).collect()
    }

    /// That nothing is said of some.
    fn unset_line(&self) -> Option<String> {
        let names = self.unset();
        let them = if names.len() == 1 { "it" } else { "them" };
        let why = || format!("{} couldn't be set: nothing is said of {them}.", list(&names));
        (!names.is_empty() && !self.a.lacks_candidates()).then(why)
    }

    fn effort(&self) -> String {
        let time = self.per_trial.saturating_mul(u32::try_from(self.a.trials).unwrap_or(u32::MAX));
        format!("{}, {}, {}.", counted(self.a.rounds, "round"), counted(self.a.trials, "trial"), rough(time))
    }

    /// Which gains are excluded; a setting that was dropped too early to say is named.
    fn excluded(&self) -> String {
        let fewest = self.a.fewest_to_exclude();
        let Some(most) = self.a.gain_at_most else {
            return format!(
                "No gain can be ruled out yet, however large: that takes {fewest} rounds of each setting at least."
            );
        };
        let gains = if most <= 0.0 {
            format!("Any gain is ruled out ({})", self.confidence())
        } else if most > GREAT {
            // That it isn't more than so much is nothing to go by.
            "No gain of less than ten times as much can be ruled out yet".to_owned()
        } else {
            format!("A gain of more than {} is ruled out ({})", percent_up(most.exp_m1()), self.confidence())
        };
        let dropped: Vec<String> = self.a.not_excluded().map(|arm| self.label(arm.arm)).collect();
        match dropped.as_slice() {
            [] => format!("{gains}."),
            names => format!("{gains}, but for {}: left out early by estimate, or failing.", list(names)),
        }
    }

    fn needed(&self) -> Option<String> {
        let noise = self.a.noise?;
        let more = |n: &NeededRounds| {
            let time = self.per_trial.saturating_mul(u32::try_from(n.more_trials).unwrap_or(u32::MAX));
            format!("{} ({}, {})", counted(n.more_rounds, "more round"), counted(n.more_trials, "trial"), rough(time))
        };
        // The larger gain first: it is the one within reach.
        let mut by_gain: Vec<&NeededRounds> = self.a.needed.iter().collect();
        by_gain.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        // Where nothing is left open there are no more rounds, but others can be run from the first one on.
        let all = |n: &NeededRounds| counted(n.rounds, "round");
        let after = |n: &NeededRounds| if self.a.may_go_on { more(n) } else { all(n) };
        let clauses: Vec<String> =
            by_gain.iter().map(|n| format!("{} faster after about {}", percent(n.gain), after(n))).collect();
        let noise =
            if noise.cv < 0.0005 { "less than 0.1 %".to_owned() } else { format!("about {}", percent(noise.cv)) };
        (!clauses.is_empty()).then(|| {
            format!(
                "Trials of one setting differ by {noise}: four of five experiments find a setting that is {}.",
                clauses.join(", one that is ")
            )
        })
    }

    fn unproven_leader(&self) -> Option<String> {
        let arm = self.a.arms.get(self.a.leader).filter(|arm| arm.arm != 0)?;
        let ratio = arm.ratio.filter(|ratio| *ratio >= WORTH)?;
        let evidence = format!("evidence {} of {}", odds(arm.evidence), odds(arm.needed?));
        Some(format!("{} looks faster ({}), which isn't proven: {evidence}.", self.label(arm.arm), times(ratio)))
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
            LevelVerdict::Below => format!("{} looks too small", self.label(level.arm)),
            _ => format!("{} isn't shown to be enough", self.label(level.arm)),
        });
        let open = p.levels.iter().all(|level| level.arm == p.anchor || level.verdict == LevelVerdict::Undecided);
        if shown.is_none() && open {
            return next.map(|_| format!("Which smaller level is enough, {within}, isn't settled yet."));
        }
        if shown.is_none() {
            return next.map(|next| format!("No smaller level is shown to be enough, {within}: {next}."));
        }
        let smallest = format!("The smallest level shown to be enough, {within}, is {}", self.label(p.smallest));
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
                clean.push((n, format!("{n} of {name}")));
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
            if arm.interrupted > 0 {
                lines.push(format!(
                    "{name}: {} interrupted and run anew; their rounds count as lost.",
                    if arm.interrupted == 1 {
                        "1 trial was".to_owned()
                    } else {
                        format!("{} trials were", arm.interrupted)
                    }
                ));
            }
            if arm.doubtful {
                lines.push(format!(
                    "{name} isn't called faster: trials of it or of {} were refused, spoilt or interrupted. With those rounds \
                     counted as lost the evidence doesn't suffice.",
                    self.reference()
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
        // Of n trials none of which fails, at most 3/n of all would, with 95 %.
        if let Some(fewest) = clean.iter().map(|(n, _)| *n).min() {
            let names: Vec<String> = clean.into_iter().map(|(_, name)| name).collect();
            let rare = match 3.0 / fewest as f64 {
                share if share >= 0.5 => "too few to rule out failures".to_owned(),
                share => format!("too few to rule out that up to {} would", percent_up(share)),
            };
            lines.push(format!("No trial stalled or failed: {}, {rare}.", list(&names)));
        }
        lines
    }

    fn disagreement(&self) -> Vec<String> {
        let led = Some(self.a.leader).filter(|_| self.a.kind != VerdictKind::Faster);
        let odd = |arm: &&ArmAssessment| {
            let seen = arm.ratio.is_some_and(|ratio| ratio >= WORTH) && arm.p_value.is_some_and(|p| p < 0.01);
            arm.claimed.is_none() && seen && Some(arm.arm) != led
        };
        let line = |arm: &ArmAssessment| {
            format!(
                "{} looks faster ({}), but {} aren't enough to prove it.",
                self.label(arm.arm),
                times(arm.ratio.unwrap_or(1.0)),
                counted(arm.rounds, "round")
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
        format!("Valid for this path, at the time of the test.{cut}")
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

/// `17 %`; a decimal below 3 %.
fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p < 2.95 && (p - p.round()).abs() > 0.049 { format!("{p:.1} %") } else { format!("{p:.0} %") }
}

/// As [`percent`], rounded up: for what is at most so much.
fn percent_up(share: f64) -> String {
    let p = share.max(0.0) * 100.0;
    if p < 3.0 {
        format!("{:.1} %", (p * 10.0 - 1e-9).ceil().abs() / 10.0)
    } else {
        format!("{:.0} %", (p - 1e-9).ceil())
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
