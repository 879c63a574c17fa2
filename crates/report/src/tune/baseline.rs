//! Experiments whose candidates were compared with settings that somebody named, instead of the current ones.

use super::TuneInputs;
use super::assemble::Setting;
use wt_units::{Knob, Level};

/// What the label of such a baseline begins with.
const BASELINE: &str = "baseline";

impl TuneInputs<'_> {
    /// What the others were compared with, if somebody named it.
    pub(super) fn baseline(&self) -> Option<&Setting> {
        self.settings.first().filter(|first| first.label.starts_with(BASELINE))
    }

    /// Whether anything is known of the settings that the host has now: they are what others were compared with, or were compared
    /// themselves.
    pub(super) fn has_current(&self) -> bool {
        let is_current = |arm: &Setting| arm.settings.differing_from(self.current).is_empty();
        self.baseline().is_none() || self.settings.iter().any(is_current)
    }

    /// A sentence about the current settings, said of the baseline if somebody named one.
    pub(super) fn of_baseline(&self, text: String) -> String {
        if self.baseline().is_none() {
            return text;
        }
        let text = text.replace("Your current settings reach", "The baseline reaches");
        let text = text.replace("Your current settings fill", "The baseline fills");
        text.replace("the current settings", "the baseline").replace("your current settings", "the baseline")
    }

    /// Whether an arm differs from what it was compared with in this knob alone: such arms lie on one curve.
    pub(super) fn differs_in(&self, arm: usize, knob: Knob) -> bool {
        let (base, own) = (self.asked(0), self.asked(arm));
        let same = |(other, level): (Knob, &Level)| other == knob || base.get(other) == Some(level);
        own.iter().all(same) && base.iter().all(|(other, _)| other == knob || own.get(other).is_some())
    }
}
