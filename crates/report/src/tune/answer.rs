//! The answer in four lines, the same for a terminal, a page, HTML and JSON: what to set and where, how sure that is, what to
//! do now, where it is kept.

use super::answer_words::{capital, direction_of, does, has_rivals, is_far, looks, plural};
use super::figures::counted_bps;
use super::{DelayReport, GrantedKnob, LimitedBy, LimitsReport, OpenDelayTest, TrialFigure, TuneInputs};
use crate::words;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use wt_experiment::{ArmAssessment, StopReason, VerdictKind};
use wt_trial::{Direction, Scale, Status, TrialRecord};
use wt_units::{Knob, Settings, counted};

/// Between changes for several hosts.
pub(super) const CONFIRM: &str = "sudo windtunnel settings confirm";
/// From this share of what the link can carry on there is nothing left to gain.
const FULL: f64 = 0.9;
/// Where a gain of this share isn't excluded, a budget that is used up leaves the question open.
const LARGE: f64 = 0.2;
/// Where only larger gains are excluded, as the log of a ratio, nothing is said to be: a doubled speed.
const GREAT: f64 = std::f64::consts::LN_2;
/// What is compared where a setting is recommended for its delay.
const DELAY: &str = "delay under load";
/// From this share on a mean is called one beside a table of medians.
const APART: f64 = 0.05;
/// In percent: what is less at least isn't told as a figure.
const LEAST: f64 = 0.1;
/// A lead of less than this is not worth a word.
const WORTH: f64 = 0.01;

/// The answer: what to set, on which host, what it changes, how sure that is, and what to do now.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Answer {
    /// What to do with the settings.
    pub action: AnswerAction,
    /// The first line: a sentence.
    pub what: String,
    /// What to set, `initcwnd=32`; `null` where the current settings stay.
    pub setting: Option<String>,
    /// Where it is set; `null` where nothing is.
    pub host: Option<AnswerHost>,
    /// What was compared: `goodput`, `load time`; `before` and `after` are in the unit of `measured`.
    pub measure: &'static str,
    /// The unit of `before` and `after`.
    pub unit: &'static str,
    /// With the current settings: the geometric mean over the rounds that count for both.
    pub before: Option<f64>,
    /// With what is recommended: `before` times or over the cautious estimate of the ratio, which lies half-way between
    /// what was seen and what is shown at least; `null` where the current settings stay.
    pub after: Option<f64>,
    /// From `before` to `after`, %; negative where the figure gets smaller.
    pub change_percent: Option<f64>,
    /// Of what the link can carry at most, the share that the current settings reach; `null` where the link isn't known, or carries more
    /// than its description allows.
    pub reached: Option<f64>,
    /// How sure it is.
    pub sure: Sure,
    /// What to type, in this order; empty where there is nothing to do.
    #[serde(rename = "do")]
    pub steps: Vec<AnswerStep>,
    /// The experiment's name in the journal.
    pub kept: String,
    /// All of it in four lines.
    pub lines: [String; 4],
}

/// What to do with the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerAction {
    /// Set what is recommended.
    Set,
    /// Keep what is set.
    Keep,
    /// Keep it for now: too little was measured.
    Undecided,
    /// Nothing could be measured.
    Failed,
}

/// The host on which a setting acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerHost {
    /// The host on which the experiment ran.
    Here,
    /// The end that answers.
    Server,
    /// The end that opens the connection.
    Client,
    /// Each end.
    Both,
}

/// How sure an answer is.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Sure {
    /// The least change, %, with the sign of `change_percent`; `null` where none is claimed.
    pub at_least: Option<f64>,
    /// The probability that no claim of the experiment is false, however often one looked.
    pub confidence: f64,
    /// Rounds that count; of less delay those that were run for it, too.
    pub rounds: usize,
    /// How long the trials took, s.
    pub seconds: f64,
}

/// One thing to type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AnswerStep {
    /// On which host.
    pub host: AnswerHost,
    /// The command line.
    pub command: String,
}

impl AnswerHost {
    /// `on the server`.
    #[must_use]
    pub fn place(self) -> &'static str {
        match self {
            Self::Here => "on this host",
            Self::Server => "on the server",
            Self::Client => "on the client",
            Self::Both => "on both ends",
        }
    }
}

/// What the answer is made of beside the inputs.
pub(super) struct AnswerInputs<'a> {
    pub(super) records: &'a [&'a TrialRecord],
    pub(super) measured: &'a TrialFigure,
    pub(super) limits: &'a LimitsReport,
    pub(super) delay: Option<&'a DelayReport>,
    /// The test of less delay that is left open.
    pub(super) open_delay: Option<&'a OpenDelayTest>,
    /// The median figure of the current settings, which is what tables have.
    pub(super) median: Option<f64>,
    /// What each setting asked for, got and showed.
    pub(super) granted: &'a [GrantedKnob],
}

impl AnswerInputs<'_> {
    /// Whether trials of the current settings scatter so much that this mean of theirs is far from what tables have of them.
    fn is_far_from_median(&self, mean: f64) -> bool {
        is_far(mean, self.median, LARGE)
    }
}

impl TuneInputs<'_> {
    /// The answer; `known` is what the report found already.
    pub(super) fn answer(&self, known: &AnswerInputs<'_>) -> Answer {
        let a = self.assessment;
        let failed = a.lacks_current() || self.all_failed() || a.lacks_candidates();
        let less = known.delay.filter(|delay| delay.shown && a.kind != VerdictKind::Faster && !failed);
        let excluded = a.gain_at_most.is_some_and(|most| most <= LARGE.ln_1p());
        let doubtful = a.compared().any(|arm| arm.doubtful);
        let decided = !doubtful
            && match a.stop {
                // What is futile is the end of a budget, foreseen. Where a gain is ruled out, whoever ended it left nothing open.
                None | Some(StopReason::Budget | StopReason::Futile | StopReason::User) => excluded && a.stop.is_some(),
                Some(_) => a.kind == VerdictKind::NoDifference,
            };
        let action = match a.kind {
            VerdictKind::Faster => AnswerAction::Set,
            _ if less.is_some() => AnswerAction::Set,
            _ if failed => AnswerAction::Failed,
            _ if decided => AnswerAction::Keep,
            _ => AnswerAction::Undecided,
        };
        let mut answer = Answer {
            action,
            what: String::new(),
            setting: None,
            host: None,
            measure: known.measured.name,
            unit: known.measured.unit,
            // What wasn't completed counts over all the time that it had: that is no speed that anybody has.
            before: self.before(known, a.pick).filter(|_| action != AnswerAction::Failed),
            after: None,
            change_percent: None,
            // One of several flows that share a line says nothing of how full it is.
            reached: known.limits.reached().filter(|_| known.measured.is_goodput() && !has_rivals(known.records)),
            sure: Sure {
                at_least: None,
                // What is claimed of delay has its share of the same risk.
                confidence: 1.0 - a.alpha - self.facts.delay.map_or(0.0, |rules| rules.alpha),
                rounds: a.rounds,
                seconds: self.run.spent.as_secs_f64(),
            },
            steps: Vec::new(),
            kept: self.id.to_owned(),
            lines: Default::default(),
        };
        if let Some(delay) = less {
            self.calm(&mut answer, delay, known);
        } else if let Some(arm) = a.arms.get(a.pick).filter(|_| action == AnswerAction::Set) {
            self.recommend(&mut answer, arm, known);
        } else {
            self.keep(&mut answer, known);
        }
        if self.facts.is_running {
            self.put_off(&mut answer);
        }
        let to_do = if self.facts.is_running {
            "nothing yet; it still runs.".to_owned()
        } else if answer.setting.is_some() && !self.has_current() {
            answer.steps.clear();
            format!(
                "nothing yet: what you have now ({}) wasn't compared, and may be better still. Add --arm current.",
                self.current
            )
        } else {
            answer.commands()
        };
        answer.lines = [
            answer.what.clone(),
            format!(
                "Sure: {}",
                less.map_or_else(|| self.how_sure(&answer, known), |delay| self.how_sure_of(delay, &answer))
            ),
            format!("Do: {to_do}"),
            format!("Kept: windtunnel report {} --full", answer.kept),
        ];
        answer
    }

    /// Whether every trial of every setting failed.
    fn all_failed(&self) -> bool {
        let mut ran = self.assessment.arms.iter().filter(|arm| arm.trials > arm.void).peekable();
        ran.peek().is_some() && ran.all(|arm| arm.failed == arm.trials - arm.void)
    }

    fn recommend(&self, answer: &mut Answer, arm: &ArmAssessment, known: &AnswerInputs<'_>) {
        let settings = self.asked(arm.arm);
        let direction = known.records.first().map_or(Direction::Down, |r| direction_of(&r.spec.workload));
        let known_ratio = |log: Option<f64>| log.map(f64::exp).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        // What is chosen for being large looks larger than it is.
        let ratio = known_ratio(arm.cautious);
        answer.after = answer.before.zip(ratio).map(|(before, ratio)| before * known.measured.changed(ratio));
        answer.change_percent = ratio.map(|ratio| known.measured.change_percent(ratio));
        answer.sure.at_least = known_ratio(arm.at_least).map(|ratio| known.measured.change_percent(ratio));
        let (mut name, mut several) = self.place(answer, arm.arm, &settings, direction);
        let than = self.baseline().map_or_else(String::new, |baseline| format!(" than the {}", baseline.label));
        if !than.is_empty() {
            // What it sets beside the baseline would hide what was asked.
            (name, several) = (self.label(arm.arm), false);
        }
        if let Some((failed, all)) = self.assessment.works_alone() {
            // What moved nothing but now and then has no speed that one could be told to have.
            answer.before = None;
            answer.what = self.works_alone(&name, several, (failed, all));
            return;
        }
        let gain = answer.change_percent.map_or_else(|| "some".to_owned(), words::change);
        let figures = match (answer.before, answer.after) {
            (Some(before), Some(after)) => {
                let mean = if known.is_far_from_median(before) { " on average" } else { "" };
                format!(": {} → {}{mean}", known.measured.show(Some(before)), known.measured.show(Some(after)))
            }
            _ => String::new(),
        };
        let does = known.records.first().map_or_else(|| format!("is {gain} faster"), |r| does(&r.spec.workload, &gain));
        // Several settings load, one loads.
        let does = if several { plural(does) } else { does };
        let total = arm.total_ratio.filter(|total| *total < 1.0).map_or_else(String::new, |total| {
            let slower = words::times(Some((total * 100.0 + 1e-9).floor() / 100.0));
            format!(" That is typical; in total {} slower ({slower}).", if several { "they are" } else { "it is" })
        });
        let larger = self.larger_window(known);
        answer.what = format!("{name} {does}{than}{figures}.{total}{larger}");
    }

    /// What a larger first window than the sparing one that is recommended is shown to gain.
    fn larger_window(&self, known: &AnswerInputs<'_>) -> String {
        let faster =
            self.spared().filter(|arm| arm.claimed.is_some()).and_then(|arm| Some((arm.arm, arm.cautious?.exp())));
        let Some((arm, ratio)) = faster.filter(|(_, ratio)| ratio.is_finite()) else { return String::new() };
        if known.granted.iter().any(|granted| granted.arm == arm && granted.mostly_differs()) {
            return String::new();
        }
        let gain = words::change(known.measured.change_percent(ratio));
        let does = known.records.first().map_or_else(|| format!("is {gain} faster"), |r| does(&r.spec.workload, &gain));
        format!(" {} {does} by a larger burst: a smaller --epsilon prefers it.", self.label(arm))
    }

    /// What is said where the current settings deliver nothing, or mostly nothing: `failed` of `all` their trials.
    fn works_alone(&self, name: &str, several: bool, (failed, all): (usize, usize)) -> String {
        let mostly = if failed < all { "mostly " } else { "" };
        let base = self.baseline().map(|base| format!("the {} {mostly}delivers", base.label));
        let base = base.unwrap_or_else(|| format!("your current settings {mostly}deliver"));
        let works = if several { "work" } else { "works" };
        format!("{name} {works}, where {base} nothing ({failed} of {} failed).", counted(all, "trial"))
    }

    /// Says on which hosts a setting is made, with the commands; what it is called, and whether there are several.
    fn place(&self, answer: &mut Answer, arm: usize, settings: &Settings, direction: Direction) -> (String, bool) {
        let mut hosts: BTreeMap<AnswerHost, Settings> = BTreeMap::new();
        // Of a candidate over a baseline, what is in force already needn't be set.
        let named = self.baseline().map(|_| settings.differing_from(self.current));
        for (knob, level) in named.as_ref().unwrap_or(settings).iter() {
            hosts.entry(self.host_of(knob, direction)).or_default().set(knob, level.clone());
        }
        answer.host = match hosts.keys().collect::<Vec<_>>().as_slice() {
            [] => None,
            [one] => Some(**one),
            _ => Some(AnswerHost::Both),
        };
        answer.setting = (!hosts.is_empty()).then(|| named.as_ref().unwrap_or(settings).to_string());
        answer.steps = self.steps(&hosts, direction);
        let each: Vec<String> = hosts.iter().map(|(host, settings)| format!("{settings} {}", host.place())).collect();
        (if each.is_empty() { self.label(arm) } else { each.join(" and ") }, each.len() > 1)
    }

    /// The same speed with less delay.
    fn calm(&self, answer: &mut Answer, delay: &DelayReport, known: &AnswerInputs<'_>) {
        let direction = known.records.first().map_or(Direction::Down, |r| direction_of(&r.spec.workload));
        let (name, several) = self.place(answer, delay.arm, &self.asked(delay.arm), direction);
        (answer.measure, answer.unit) = (DELAY, "ms");
        (answer.before, answer.after) = (Some(delay.against_delay_us / 1e3), Some(delay.delay_us / 1e3));
        answer.change_percent = Some(-delay.less() * 100.0);
        answer.sure.at_least = delay.at_least.map(|share| -share * 100.0);
        answer.sure.rounds += delay.rounds;
        let speed = delay.goodput_bps / delay.against_goodput_bps;
        let baseline = self.baseline().filter(|_| delay.against == 0);
        let than = baseline.map_or_else(String::new, |baseline| format!(" than the {}", baseline.label));
        answer.what = format!(
            "{name} {} {}the speed with {} less delay{than}: {} → {} ({} of {}).",
            if several { "keep" } else { "keeps" },
            if speed < 0.995 { format!("{} of ", words::whole_percent(speed * 100.0)) } else { String::new() },
            words::change(-delay.less() * 100.0),
            words::milliseconds(delay.against_delay_us as u64),
            words::milliseconds(delay.delay_us as u64),
            known.measured.show(Some(delay.goodput_bps)),
            known.measured.show(Some(delay.against_goodput_bps))
        );
    }

    fn how_sure_of(&self, delay: &DelayReport, answer: &Answer) -> String {
        let least = words::percent_down(delay.at_least.unwrap_or(0.0) * 100.0);
        let behind = words::percent(delay.epsilon * 100.0);
        format!(
            "at least {least} less delay, at most {behind} slower, with {:.0} % confidence; {}, {}.",
            answer.sure.confidence * 100.0,
            counted(answer.sure.rounds, "round"),
            words::duration(answer.sure.seconds)
        )
    }

    fn keep(&self, answer: &mut Answer, known: &AnswerInputs<'_>) {
        let full = answer.reached.filter(|share| *share >= FULL);
        let nothing = self.nothing_faster();
        let carries = |share: f64| format!("{} of what it can carry", words::whole_percent(share * 100.0));
        answer.what = match (answer.action, full, answer.reached) {
            (AnswerAction::Keep, ..) if self.baseline().is_some() => {
                let base = self.baseline().map_or("", |baseline| baseline.label.as_str());
                format!(
                    "Nothing to set: {nothing} than the {base}.{}",
                    now(answer, known).replace("You have", "That has")
                )
            }
            (AnswerAction::Failed, ..) if self.all_failed() => {
                "Nothing could be compared: every trial failed.".to_owned()
            }
            (AnswerAction::Failed, ..) if self.assessment.lacks_candidates() => self.nothing_set(known.granted),
            (AnswerAction::Failed, ..) => {
                let of = self.baseline().map(|base| format!("the {}", base.label));
                let of = of.as_deref().unwrap_or("your current settings");
                format!("Nothing could be compared: more than half of the trials with {of} weren't completed.")
            }
            (AnswerAction::Undecided, ..) => {
                let why = match self.assessment.stop {
                    _ if self.facts.is_running => self.so_far(),
                    Some(StopReason::User) => {
                        format!("Stopped after {}", counted(self.assessment.rounds, "round"))
                    }
                    _ => "No answer yet".to_owned(),
                };
                let so = if self.facts.is_running { "nothing is decided yet" } else { "keep your settings for now" };
                format!("{why}: {so}.{}", self.lead(known))
            }
            (_, Some(share), _) => {
                format!("Keep your settings: {nothing}, and this line already runs at {}.", carries(share))
            }
            (_, None, Some(share)) => format!(
                "Keep your settings: {nothing}. This line runs at {}: {}.",
                carries(share),
                known.limits.reason()
            ),
            (_, None, None) if known.limits.by == LimitedBy::Path || known.limits.by == LimitedBy::Unknown => {
                format!("Keep your settings: {nothing}.{}", now(answer, known))
            }
            (_, None, None) => {
                format!("Keep your settings: {nothing}.{} {}.", now(answer, known), capital(&known.limits.reason()))
            }
        };
        let more = match answer.action {
            AnswerAction::Undecided => Some(self.go_on(known.records, known.open_delay)),
            AnswerAction::Failed => Some(self.look().to_owned()),
            _ => known.open_delay.map(|open| self.test_delay(open)),
        };
        answer.what.push_str(&self.less_delay_unproven(known));
        answer.steps = more.into_iter().map(|command| AnswerStep { host: AnswerHost::Here, command }).collect();
        let windows = matches!(known.limits.by, LimitedBy::Rwnd | LimitedBy::Sndbuf) && full.is_none();
        if answer.action == AnswerAction::Keep && windows && known.measured.is_goodput() {
            let direction = known.records.first().map_or(Direction::Down, |r| direction_of(&r.spec.workload));
            let knob = if known.limits.by == LimitedBy::Rwnd { Knob::Rwin } else { Knob::Sndbuf };
            let host = self.host_of(knob, direction);
            answer.steps.push(AnswerStep { host, command: "windtunnel settings show".to_owned() });
        }
    }

    /// The leader that is unproven, if its lead is worth a word, and why it is.
    fn lead(&self, known: &AnswerInputs<'_>) -> String {
        let a = self.assessment;
        if let Some(arm) = a.compared().find(|arm| arm.doubtful) {
            let label = self.label(arm.arm);
            let both = || std::iter::once(arm).chain(a.arms.first());
            let lost = |what| format!("{what}, and its round counts as lost: more rounds can make up for it");
            let why = match both().map(|arm| arm.spoilt).sum() {
                0_usize if both().any(|arm| arm.interrupted > 0) => lost("a trial was interrupted"),
                1 => lost("an attempt was refused or spoilt"),
                _ => "too many attempts of one of the two were refused or spoilt to say so".to_owned(),
            };
            return format!(" {label} {} faster, but {why}.", looks(&label));
        }
        let arm = a.arms.get(a.leader).filter(|arm| arm.arm != 0);
        let ratio = arm.and_then(|arm| arm.ratio).filter(|ratio| *ratio >= 1.0 + WORTH && ratio.is_finite());
        arm.zip(ratio).map_or_else(String::new, |(arm, ratio)| {
            let by = words::change(known.measured.change_percent(ratio));
            let label = self.label(arm.arm);
            let workload = known.records.first().map(|record| &record.spec.workload);
            let like = match workload.filter(|of| !matches!(of.scale(), Scale::Goodput | Scale::Time)) {
                Some(workload) => format!("to {}", plural(does(workload, &by))),
                None => format!("{by} faster"),
            };
            format!(" {label} {} {like}, which isn't proven.", looks(&label))
        })
    }

    /// What is shown of the settings that are kept out: nothing is faster, or by too little to matter.
    fn nothing_faster(&self) -> String {
        let a = self.assessment;
        let little: Vec<String> =
            a.compared().filter(|arm| arm.faster_by_little).map(|arm| self.label(arm.arm)).collect();
        match little.as_slice() {
            [] => "nothing tested is shown to be faster".to_owned(),
            [one] => format!("{one} is faster by less than {}", words::percent(a.relevant * 100.0)),
            several => {
                format!("{} are faster by less than {}", several.join(" and "), words::percent(a.relevant * 100.0))
            }
        }
    }

    fn how_sure(&self, answer: &Answer, known: &AnswerInputs<'_>) -> String {
        let a = self.assessment;
        let effort = format!("{}, {}", counted(a.rounds, "round"), words::duration(answer.sure.seconds));
        let sure = format!("{:.0} % confidence", answer.sure.confidence * 100.0);
        // What is less than a tenth of a percent at least is no figure to hold out.
        if let Some(least) = answer.sure.at_least.filter(|least| least.abs() >= LEAST) {
            return format!("at least {} with {sure}; {effort}.", words::percent_down(least.abs()));
        }
        // Of these no gain is excluded: they left the race before.
        let but = match a.not_excluded().count() {
            0 => String::new(),
            left => format!(", but for {} left out early by estimate", counted(left, "setting")),
        };
        match (answer.action, a.gain_at_most) {
            (AnswerAction::Set, ..) => format!("that it is faster, with {sure}; {effort}."),
            (AnswerAction::Failed, ..) if self.all_failed() => {
                format!("all {} failed; {effort}.", counted(a.trials, "trial"))
            }
            (AnswerAction::Failed, ..) if a.lacks_candidates() => {
                format!("nothing is shown of what wasn't there; {effort}.")
            }
            (AnswerAction::Failed, ..) => {
                let bad = a.arms.iter().map(|arm| arm.failed + arm.incomplete).sum::<usize>();
                format!("{bad} of {} stalled, broke off or failed; {effort}.", counted(a.trials, "trial"))
            }
            (_, Some(most)) if most <= 0.0 => format!("any gain is ruled out with {sure}{but}; {effort}."),
            // That it isn't a hundredfold is nothing to go by.
            (_, Some(most)) if most < GREAT => {
                let gain = words::percent_up(known.measured.change_percent(most.exp()).abs());
                let gain = gain
                    .strip_prefix("< ")
                    .map_or_else(|| format!("more than {gain}"), |least| format!("{least} or more"));
                format!("a gain of {gain} is ruled out with {sure}{but}; {effort}.")
            }
            (_, None) if a.stop == Some(StopReason::OnlyCurrentLeft) => {
                format!("every other setting lies behind, by estimate; {effort}.")
            }
            _ => format!("no; even a large gain may not have shown yet; {effort}."),
        }
    }

    /// The figure of the current settings, over the rounds in which they and that arm have one.
    fn before(&self, known: &AnswerInputs<'_>, arm: usize) -> Option<f64> {
        // On a quiet path a round may have each of them twice.
        let mut rounds: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
        for record in known.records {
            let counts =
                matches!(record.outcome.status, Status::Completed | Status::Incomplete) && record.outcome.bytes > 0;
            let figure = match (known.measured.scale, record.outcome.measures.score) {
                (Scale::Goodput, None) => Some(counted_bps(record)),
                (scale, _) => record.outcome.figure(scale),
            };
            let Some(figure) = figure.filter(|figure| counts && *figure > 0.0) else { continue };
            for (place, of) in [0, arm].into_iter().enumerate() {
                if record.spec.arm == of {
                    rounds.entry(record.spec.round).or_default()[place].push(figure.ln());
                }
            }
        }
        let both = rounds.into_values().filter(|[_, other]| !other.is_empty());
        let logs: Vec<f64> = both.flat_map(|[own, _]| own).collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }
}

impl Answer {
    /// Whether what it recommends has less delay, and isn't shown to be faster.
    pub(super) fn is_of_delay(&self) -> bool {
        self.action == AnswerAction::Set && self.measure == DELAY
    }

    /// What `before` and `after` are called: an average where tables, whose `median` this is of the current settings, tell another figure.
    pub(crate) fn measure_beside(&self, measured: &TrialFigure, median: Option<f64>) -> String {
        let far = self.unit == measured.unit && self.before.is_some_and(|mean| is_far(mean, median, APART));
        format!("{}{}", self.measure, if far { ", on average" } else { "" })
    }

    /// What to know where trials of the current settings scatter: the answer and its ratios are of one mean of them, tables of another.
    pub(super) fn scattered(&self, known: &AnswerInputs<'_>) -> Option<String> {
        let TrialFigure { name, unit, .. } = known.measured;
        let mean = self.before.filter(|mean| self.unit == *unit && known.is_far_from_median(*mean))?;
        Some(format!(
            "Trials of your current settings scatter: their median {name} is {}, the geometric mean {}. Ratios, and what the \
             answer says of now and then, are of the mean; tables have medians.",
            known.measured.show(known.median),
            known.measured.show(Some(mean))
        ))
    }

    /// The commands as one line.
    fn commands(&self) -> String {
        if self.steps.is_empty() {
            return "nothing; your settings stay as they are.".to_owned();
        }
        let mut text = String::new();
        let mut last = None;
        for step in &self.steps {
            let place = Some(step.host).filter(|host| *host != AnswerHost::Here && Some(*host) != last);
            let joint = if text.is_empty() {
                ""
            } else if place.is_some() {
                "; "
            } else if step.command == CONFIRM {
                "; if it works, "
            } else {
                " && "
            };
            text.push_str(joint);
            text.push_str(&place.map_or_else(String::new, |host| format!("{}: ", host.place())));
            text.push_str(&step.command);
            last = Some(step.host);
        }
        text
    }
}

/// What the current settings do now.
fn now(answer: &Answer, known: &AnswerInputs<'_>) -> String {
    let TrialFigure { name, .. } = known.measured;
    let figure = answer.before.map(|before| {
        let mean = if known.is_far_from_median(before) { ", on average" } else { "" };
        let shown = known.measured.show(Some(before));
        match (known.measured.scale, name.split_once(" (")) {
            (Scale::Rate | Scale::Responsiveness, _) => {
                let number = shown.split('/').next().unwrap_or_default();
                format!(" You have {number} {name} now{mean}.")
            }
            (_, Some((noun, which))) => format!(" You have a {noun} of {shown} ({which} now{mean}."),
            _ => format!(" You have a {name} of {shown} now{mean}."),
        }
    });
    figure.unwrap_or_default()
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "answer_place_tests.rs"]
mod place_tests;
