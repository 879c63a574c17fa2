//! What a person sees while an experiment runs: on stderr, and only if that is a terminal; or a line of JSON for each
//! event on standard output.

use crate::cli::typed::naming_what_was_typed;
use crate::edge::emit;
use crate::screen::Screen;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;
use wt_trial::Status;
use wt_tune::{RoundEvent, TrialEvent, TuneEvent};
use wt_units::{counted, format_minutes};

/// A lead of less than this is noise.
const LEAD: f64 = 1.001;

/// A lead of so much is told as a multiple.
const MANY_TIMES: f64 = 3.0;

/// How progress is told.
pub(crate) struct Progress {
    bar: ProgressBar,
    stream: bool,
    labels: Vec<String>,
    quiet: bool,
    max_trials: usize,
    /// Whether what is compared gets smaller where a setting is faster.
    smaller: bool,
    /// The time that trials may take, if that is limited.
    budget: Option<Duration>,
    screen: Screen,
}

impl Progress {
    /// `stream`: a line of JSON for each event. `json`: the answer is for a program, so people are told nothing unless
    /// they watch. `quiet`: they are told nothing at all.
    pub(crate) fn new(stream: bool, json: bool, quiet: bool) -> Self {
        if stream {
            crate::commands::samples::stream();
        }
        let screen = Screen::stderr();
        let watched = screen.live;
        let quiet = quiet || stream || (json && !watched);
        let shown = !quiet && watched;
        let bar = ProgressBar::with_draw_target(
            None,
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        Self { bar, stream, labels: Vec::new(), quiet, max_trials: 0, smaller: false, budget: None, screen }
    }

    /// The same where trials may take so long.
    pub(crate) fn within(self, budget: Option<Duration>) -> Self {
        Self { budget, ..self }
    }

    /// Says something to a person.
    fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr().lock(), "{}", self.screen.fitted(text));
        } else {
            self.bar.println(self.screen.fitted(text));
        }
    }

    /// Tells of an event.
    pub(crate) fn event(&mut self, event: &TuneEvent) {
        match event {
            TuneEvent::Note { text } => self.say(text),
            TuneEvent::Warning { text } => self.warn(text),
            TuneEvent::Finished => self.bar.finish_and_clear(),
            TuneEvent::Begin { arms, max_trials, expected_s, measured, .. } => {
                self.smaller = measured.better == "smaller";
                self.begin(arms, *max_trials, *expected_s);
            }
            TuneEvent::Start { .. } => {}
            TuneEvent::Trial(trial) => self.trial(trial),
            TuneEvent::Round(round) => self.round(round),
        }
        let told = matches!(event, TuneEvent::Begin { .. } | TuneEvent::Trial(_) | TuneEvent::Round(_));
        if self.stream
            && told
            && let Ok(line) = serde_json::to_string(event)
        {
            emit!("{line}");
        }
    }

    /// Says what a person must know however quiet it is to be.
    fn warn(&self, text: &str) {
        use std::io::Write as _;
        let text = self.screen.fitted(&format!("windtunnel: {}", naming_what_was_typed(text)));
        self.bar.suspend(|| drop(writeln!(std::io::stderr().lock(), "{text}")));
    }

    fn begin(&mut self, arms: &[String], max_trials: usize, expected_s: f64) {
        self.labels = arms.to_vec();
        self.max_trials = max_trials;
        self.bar.set_length(max_trials as u64);
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len} trials · {elapsed} · {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = if self.screen.is_unicode() { style } else { style.progress_chars("=> ") };
        let style = if self.screen.is_unicode() { style } else { plain(style) };
        self.bar.set_style(style);
        self.bar.set_message(format!("about {} in all", format_minutes(Duration::from_secs_f64(expected_s))));
    }

    fn trial(&mut self, trial: &TrialEvent) {
        if trial.round > 0 {
            self.bar.inc(1);
        }
        match trial.status {
            Status::Invalid => self.say(&format!("trial repeated: {}", trial.notes.join("; "))),
            Status::Incomplete if !trial.notes.is_empty() => {
                self.say(&format!("trial incomplete: {}", trial.notes.join("; ")));
            }
            _ => {}
        }
    }

    /// Who leads, by how much, and how long it may take still: on the bar, or a line of its own where there is none.
    fn round(&mut self, round: &RoundEvent) {
        let text = format!("{} · {}", leader(round, &self.labels, self.smaller), self.left(round));
        if self.bar.is_hidden() {
            self.say(&format!("round {:>2}: {text}; {} left", round.rounds, counted(round.left, "setting")));
        } else {
            self.bar.set_message(self.screen.shown(&text).into_owned());
        }
    }

    /// How long it takes if all trials that are allowed are run as fast as those before: it may end earlier, and takes longer
    /// where trials are repeated.
    fn left(&self, round: &RoundEvent) -> String {
        let more = self.max_trials.saturating_sub(round.trials) as f64;
        let left = round.spent_s / (round.trials.max(1) as f64) * more;
        let allowed = self.budget.map(|budget| (budget.as_secs_f64() - round.spent_s).max(0.0));
        let left = allowed.map_or(left, |allowed| left.min(allowed));
        format!("about {} left", format_minutes(Duration::from_secs_f64(left)))
    }
}

/// The setting with the largest estimate: `mtu=1444 leads by 3.1 %, not yet proven (12 : 1 of 100 : 1)`.
fn leader(round: &RoundEvent, labels: &[String], smaller: bool) -> String {
    let leads = |(arm, ratio): (usize, &Option<f64>)| Some((arm, (*ratio)?)).filter(|(_, ratio)| *ratio >= LEAD);
    let best = round.ratio.iter().enumerate().skip(1).filter_map(leads).max_by(|a, b| a.1.total_cmp(&b.1));
    let evidence = |arm: usize| round.evidence.get(arm).copied().unwrap_or(1.0);
    let shown = |arm: usize| round.shown.get(arm).is_some_and(|shown| *shown);
    // Where the current settings deliver nothing there is no ratio to them, or it is one of the few trials that they completed.
    let alone = |arm: &usize| shown(*arm) || (round.ratio[*arm].is_none() && evidence(*arm) > 1.0);
    let works = (1..round.ratio.len()).filter(alone).max_by(|a, b| evidence(*a).total_cmp(&evidence(*b)));
    let Some((arm, ratio)) = best.map(|(arm, ratio)| (arm, Some(ratio))).or(works.map(|arm| (arm, None))) else {
        return "no setting leads your current one".to_owned();
    };
    let needed = round.needed.get(arm).copied().flatten().unwrap_or(f64::INFINITY);
    let evidence = evidence(arm);
    let proof = if shown(arm) {
        "proven".to_owned()
    } else if evidence >= needed {
        "not yet claimed".to_owned()
    } else {
        format!("not yet proven ({evidence:.0} : 1 of {needed:.0} : 1)")
    };
    let label = labels.get(arm).map_or("", String::as_str);
    let plural = label.ends_with("settings");
    let Some(ratio) = ratio else {
        let delivers = if plural { "deliver" } else { "delivers" };
        return format!("{label} {delivers} where your current one doesn't, {proof}");
    };
    let gain = if smaller { 1.0 - 1.0 / ratio } else { ratio - 1.0 };
    let leads = if plural { "lead" } else { "leads" };
    // A lead of several times as much isn't read as a share.
    if !smaller && ratio >= MANY_TIMES {
        return format!("{label} {leads} {ratio:.1} times, {proof}");
    }
    format!("{label} {leads} by {:.1} %, {proof}", gain * 100.0)
}

fn plain(style: ProgressStyle) -> ProgressStyle {
    let template = style.template("{bar:20} {pos}/{len} trials - {elapsed} - {wide_msg}");
    template.unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ratio: Vec<Option<f64>>, evidence: f64) -> RoundEvent {
        RoundEvent {
            rounds: 3,
            trials: 6,
            evidence: vec![1.0, evidence],
            needed: vec![None, Some(20.0)],
            shown: vec![false, evidence >= 20.0],
            ratio,
            spent_s: 12.0,
            left: 2,
        }
    }

    #[test]
    fn the_leader_is_named_with_its_gain_and_what_is_proven_of_it() {
        let labels = ["current".to_owned(), "mtu=1444".to_owned()];
        let told = |ratio, evidence| leader(&round(vec![Some(1.0), ratio], evidence), &labels, false);
        assert_eq!(told(Some(1.031), 12.0), "mtu=1444 leads by 3.1 %, not yet proven (12 : 1 of 20 : 1)");
        let page = leader(&round(vec![Some(1.0), Some(1.25)], 21.0), &labels, true);
        assert_eq!(page, "mtu=1444 leads by 20.0 %, proven", "a page that takes a fifth less time");
        assert_eq!(told(Some(1.031), 21.0), "mtu=1444 leads by 3.1 %, proven");
        assert_eq!(told(Some(45.4), 21.0), "mtu=1444 leads 45.4 times, proven");
        let doubtful = RoundEvent { shown: vec![false; 2], ..round(vec![Some(1.0), Some(1.347)], 21.0) };
        assert_eq!(leader(&doubtful, &labels, false), "mtu=1444 leads by 34.7 %, not yet claimed");
        assert_eq!(
            told(None, 12.0),
            "mtu=1444 delivers where your current one doesn't, not yet proven (12 : 1 of 20 : 1)"
        );
        for ratio in [None, Some(0.99)] {
            assert_eq!(told(ratio, 21.0), "mtu=1444 delivers where your current one doesn't, proven");
        }
        for none in [None, Some(0.9), Some(1.0)] {
            assert_eq!(told(none, 1.0), "no setting leads your current one");
        }
    }

    #[test]
    fn the_time_that_is_left_goes_by_the_pace_of_the_trials() {
        let mut progress = Progress::new(false, true, true);
        progress.begin(&[], 36, 100.0);
        assert_eq!(progress.left(&round(vec![], 1.0)), "about 1 min 0 s left");
    }
}
