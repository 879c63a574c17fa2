use super::{OpenDelayTest, TrialFigure, TuneInputs};
use wt_experiment::{StopReason, VerdictKind};
use wt_trial::{Phase, Status, TrialRecord};

impl TuneInputs<'_> {
    /// What a person may do next, one thing each.
    pub(super) fn next(&self, measured: &TrialFigure, open_delay: Option<&OpenDelayTest>) -> Vec<String> {
        let a = self.assessment;
        if self.facts.is_running {
            return vec![self.wait_for_it()];
        }
        let mut next = Vec::new();
        if a.kind == VerdictKind::Faster && self.has_current() {
            let why = a.plateau.as_ref().filter(|_| self.spared().is_some()).map_or_else(String::new, |found| {
                format!(
                    ", not {}, which gains less than {:.0} % more by a larger burst",
                    self.label(found.anchor),
                    found.epsilon * 100.0
                )
            });
            next.push(format!("Set {}{why}; the rest stays as it is.", self.asked(a.pick)));
        }
        next.extend(self.report_of_all().or_else(|| self.more_trials(measured, open_delay)));
        next.extend(open_delay.map(|open| self.shows_less_delay(open)));
        if self.tunnel == "lab" || self.tunnel == "sim" {
            next.push("This was an emulated path. Confirm on the real one: windtunnel tune https://HOST/FILE".into());
        }
        next
    }

    /// What more trials of it would show, and how to run them.
    fn more_trials(&self, measured: &TrialFigure, open_delay: Option<&OpenDelayTest>) -> Option<String> {
        let a = self.assessment;
        let undecided = a.kind == VerdictKind::Stopped || a.stop == Some(StopReason::Budget);
        // Nobody looks for a gain that is ruled out.
        let is_open = |gain: f64| a.gain_at_most.is_none_or(|most| most > gain.ln_1p());
        // More trials of what can't be set are trials of something else.
        let undecided =
            undecided && !a.lacks_candidates() && (a.needed.is_empty() || a.needed.iter().any(|n| is_open(n.gain)));
        let gain = a.needed.iter().find(|n| n.more_rounds > 0 && n.more_trials <= 2_000 && is_open(n.gain));
        match gain {
            // What goes on with it would be refused.
            _ if a.is_over() => (open_delay.is_none() && (gain.is_some() || undecided)).then(|| self.nothing_left()),
            // The same as what the answer says: so many attempts that came to nothing aren't in what is needed.
            Some(_) if a.kind != VerdictKind::Faster && self.is_doubtful() => {
                Some(format!("Undecided. Continue with: {}", self.go_on(&[], open_delay)))
            }
            Some(n) if a.kind != VerdictKind::Faster && self.facts.again.is_some() => {
                let rounds = n.rounds.max(self.fewest_anew());
                Some(format!(
                    "A gain of {:.0} %, if there is one, shows after about {rounds} rounds; these {} don't count among them: {}",
                    measured.change_percent(1.0 + n.gain).abs(),
                    a.rounds,
                    self.begin_anew(rounds)?
                ))
            }
            Some(n) if a.kind != VerdictKind::Faster => Some(format!(
                "A gain of {:.0} %, if there is one, shows after about {} more trials: {}",
                measured.change_percent(1.0 + n.gain).abs(),
                n.more_trials,
                self.go_on_for(&format!("\"{} trials\"", n.more_trials))
            )),
            _ if a.kind == VerdictKind::Faster => {
                // That it is faster is decided, and whether another one is more so may not be.
                let open = a.stop == Some(StopReason::Budget) && a.arms.len() > 2;
                let more = || format!("More trials tell it from the others better: {}", self.go_on_for("10min"));
                open.then(more)
            }
            _ if undecided => Some(format!("Undecided. Continue with: {}", self.go_on_for("10min"))),
            _ => None,
        }
    }

    /// That nothing goes on with it, and what looks at its settings again.
    fn nothing_left(&self) -> String {
        let typed = self.run.command.as_str();
        // What went on with another one isn't how its settings were named.
        if typed.starts_with("windtunnel tune ") && !typed.contains(" --resume ") {
            return format!("Nothing is left open in it. A new experiment tries its settings again: {typed}");
        }
        "Nothing is left open in it; a new experiment tries its settings again.".to_owned()
    }

    /// What goes on with the experiment until a large gain would show.
    pub(super) fn go_on(&self, records: &[&TrialRecord], open_delay: Option<&OpenDelayTest>) -> String {
        if let Some(again) = self.begin_anew(self.rounds_anew()) {
            return again;
        }
        // A test of less delay comes first.
        let at_least = open_delay.map_or(0, |open| 2 * open.most);
        // Who is ahead but for attempts that came to nothing needs about as many again that don't.
        let again = self.assessment.trials.max(10).max(at_least);
        if self.is_doubtful() {
            return self.go_on_for(&format!("\"{again} trials\""));
        }
        let wanted = self.assessment.needed.iter().map(|n| n.more_trials).filter(|more| (1..=2_000).contains(more));
        // So will who is ahead once the round is complete that somebody interrupted: it counts as lost.
        let wanted = wanted.min().map(|more| if ends_interrupted(records) { more.max(again) } else { more });
        let wanted = wanted.map(|more| more.max(at_least));
        let budget = wanted.map_or_else(|| "10min".to_owned(), |more| format!("\"{more} trials\""));
        self.go_on_for(&budget)
    }

    /// Whether a setting is ahead but for attempts that came to nothing.
    fn is_doubtful(&self) -> bool {
        self.assessment.compared().any(|arm| arm.doubtful)
    }

    /// That this isn't all of it, where another experiment goes on with it: what is asked then is answered there.
    pub(super) fn is_a_part(&self) -> Option<String> {
        let by = self.facts.continued_by.as_ref()?;
        Some(format!(
            "{by} goes on with it, so this is the answer of a part of the trials; {} tells of all.",
            report(by)
        ))
    }

    /// Where the answer of all its trials is, if another experiment goes on with it.
    fn report_of_all(&self) -> Option<String> {
        let by = self.facts.continued_by.as_ref()?;
        Some(format!("{by} goes on with it. The answer of all trials: {}", report(by)))
    }

    /// What goes on with it for so long, or runs another one; where one goes on with it already, what tells of that.
    pub(super) fn go_on_for(&self, budget: &str) -> String {
        let resumed = || format!("windtunnel tune --resume {} --budget {budget}", self.id);
        let told = self.facts.continued_by.as_deref().map(report);
        told.or_else(|| self.begin_anew(self.rounds_anew())).unwrap_or_else(resumed)
    }

    /// What begins another comparison of so many rounds, where nothing goes on with this one.
    fn begin_anew(&self, rounds: usize) -> Option<String> {
        let again = self.facts.again.as_ref()?;
        Some(format!("{} --runs {}", again.command, rounds.min(MOST_ROUNDS)))
    }

    /// So many rounds at least can show something, though they scatter.
    fn fewest_anew(&self) -> usize {
        let fewest = self.facts.again.as_ref().map_or(0, |again| again.fewest_rounds);
        fewest + fewest / 4
    }

    /// The rounds of a comparison that begins anew: as many as show a large gain, if that is foreseen, or else twice as many as there
    /// were.
    fn rounds_anew(&self) -> usize {
        let a = self.assessment;
        let foreseen = a.needed.iter().filter(|n| n.more_rounds > 0 && n.more_trials <= 2_000).map(|n| n.rounds).min();
        let foreseen = foreseen.filter(|_| !self.is_doubtful());
        foreseen.unwrap_or(2 * a.rounds).max(self.fewest_anew())
    }
}

/// A comparison of loads has no more rounds.
const MOST_ROUNDS: usize = 1000;

fn report(id: &str) -> String {
    format!("windtunnel report {id}")
}

/// Whether a trial of the last round was interrupted and not run anew yet.
fn ends_interrupted(records: &[&TrialRecord]) -> bool {
    let last = records.iter().rfind(|record| record.spec.phase == Phase::Round);
    last.is_some_and(|last| last.outcome.status == Status::Aborted)
}

#[cfg(test)]
#[path = "loads_tests.rs"]
mod tests;
