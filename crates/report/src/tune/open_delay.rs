//! The test of less delay that an experiment leaves open: what is promised, and what it takes to show that.

use super::answer::AnswerInputs;
use super::{OpenDelayTest, TuneInputs};
use crate::words;
use wt_experiment::StopReason;

/// A smaller share of the delay than this isn't told.
const LITTLE: f64 = 0.01;

impl TuneInputs<'_> {
    /// The test of less delay that is left open: none where one of the two couldn't be set, nor while it is run or before the race is
    /// over, unless its rounds have begun.
    pub(super) fn open_delay(&self) -> Option<OpenDelayTest> {
        let (a, facts) = (self.assessment, self.facts);
        let was_compared = !a.lacks_current() && !a.lacks_candidates();
        let is_last = !facts.is_running && facts.continued_by.is_none();
        let rules = facts.delay.filter(|_| facts.tells_of_open_delay && is_last && was_compared)?;
        let open = rules.open_test(self.records, a.pick)?;
        let is_over = a.stop.is_some_and(|reason| reason != StopReason::User) || open.rounds > 0;
        let was_set = !a.unset.contains(&open.arm) && !a.unset.contains(&open.against);
        Some(open).filter(|open| is_over && was_set && open.less >= LITTLE)
    }

    /// What an answer that keeps the settings says of less delay that isn't shown; empty where none is promised.
    pub(super) fn less_delay_unproven(&self, known: &AnswerInputs<'_>) -> String {
        if let Some(delay) = known.delay.filter(|delay| !delay.shown && delay.less() >= LITTLE) {
            let less = words::change(-delay.less() * 100.0);
            return format!(" {} looks to have {less} less delay, which isn't proven.", self.label(delay.arm));
        }
        known.open_delay.map_or_else(String::new, |open| format!(" {}, which isn't proven.", self.promises(open)))
    }

    /// `rwin=40960 promises 48 % less delay at the same speed`.
    pub(super) fn promises(&self, open: &OpenDelayTest) -> String {
        let less = words::change(-open.less * 100.0);
        format!("{} promises {less} less delay at the same speed", self.label(open.arm))
    }

    /// How many trials show whether that is so, with what runs them.
    pub(super) fn shows_less_delay(&self, open: &OpenDelayTest) -> String {
        let (promises, least, most) = (self.promises(open), 2 * open.fewest, 2 * open.most);
        format!("{promises}: {least} to {most} more trials show whether that is so: {}", self.test_delay(open))
    }

    /// What goes on with a test of less delay until it is decided.
    pub(super) fn test_delay(&self, open: &OpenDelayTest) -> String {
        self.go_on_for(&format!("\"{} trials\"", 2 * open.most))
    }
}
