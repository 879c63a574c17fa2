//! What of a budget is the delay's: trials that the race leaves to the test of less delay.

use wt_report::tune::{DelayRules, OpenDelayTest};

/// Rounds of all settings before one of them can promise less delay.
const BEFORE: usize = 2;
/// Where a gain is looked for as much as less delay is, the test has no more than one part of so many of the budget.
const PART: usize = 3;

/// What of a session's budget is the delay's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DelayRoom {
    /// How less delay is claimed, if it is.
    pub(crate) rules: Option<DelayRules>,
    /// Whether it comes before gains.
    pub(crate) is_first: bool,
    /// Whether trials are counted: without a budget the test has time of its own.
    pub(crate) is_budgeted: bool,
    /// Trials at the end of the budget that the race leaves to the test, where a setting promises less delay.
    pub(crate) trials: usize,
    /// Trials of the budget that the test has had.
    pub(crate) taken: usize,
}

impl DelayRoom {
    /// That of a session of `most` trials with so many settings, whose race runs the risk `race` of a false claim. `open` is the test
    /// that is left open by sessions before.
    pub(crate) fn of(
        rules: Option<DelayRules>,
        open: Option<&OpenDelayTest>,
        race: f64,
        (most, settings): (usize, usize),
        is_budgeted: bool,
    ) -> Self {
        let Some(rules) = rules else { return Self::default() };
        let is_first = rules.alpha > race;
        let (least, full) = trials_of(&rules, open);
        // Where it is known who promises less delay, no round has to come before.
        let left = most.saturating_sub(if open.is_some() { 0 } else { BEFORE * settings });
        let trials = match is_first {
            _ if !is_budgeted => 0,
            true if left >= least => full.min(most / 2).max(least).min(left),
            false if most >= PART * least => least,
            _ => 0,
        };
        Self { rules: Some(rules), is_first, is_budgeted, trials, taken: 0 }
    }

    /// What to say of a budget of `most` trials beforehand that keeps no room for the test; whether that is told before each run, and not
    /// only of what would be run.
    pub(crate) fn lacks(&self, most: usize, settings: usize) -> Option<(String, bool)> {
        let rules = self.rules.filter(|_| self.is_budgeted && self.trials == 0)?;
        let (least, _) = trials_of(&rules, None);
        let told = if self.is_first {
            let enough = least + BEFORE * settings;
            format!(
                "this budget has no room for less delay to be shown: of {most} trials that takes {least}, after {BEFORE} rounds of \
                 {settings} settings; --budget \"{enough} trials\" has"
            )
        } else {
            format!(
                "less delay is tested only with what the race leaves of this budget, if that is {least} trials; --budget \"{} trials\" \
                 keeps them",
                PART * least
            )
        };
        Some((told, self.is_first))
    }
}

/// The trials of a test of less delay: at the least, and where there is room.
fn trials_of(rules: &DelayRules, open: Option<&OpenDelayTest>) -> (usize, usize) {
    let begun = open.copied().unwrap_or_else(|| rules.whole_test());
    (2 * begun.fewest, 2 * begun.most)
}
