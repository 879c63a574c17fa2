//! What is shown of a setting in every form of report.

use super::{Arm, ArmState};
use crate::words;

impl Arm {
    /// Its interval: that of the random order alone, else, with a `~`, that of the model.
    pub(crate) fn interval(&self) -> String {
        match (self.low, self.high) {
            _ if self.state == ArmState::Current => String::new(),
            _ if self.state == ArmState::Failing => "–".to_owned(),
            (None, None) if self.model_low.is_some() => {
                format!("~{}", words::interval(self.model_low, self.model_high))
            }
            (low, high) => words::interval(low, high),
        }
    }

    /// `54 : 1 of 35 : 1`: its evidence, and what its own claim needs; nothing for the current settings.
    pub(crate) fn odds(&self) -> String {
        let of = |needed| format!("{} of {}", words::odds(self.evidence), words::odds(needed));
        self.needed.map_or_else(String::new, of)
    }

    /// What became of it, in a word or two.
    pub(crate) fn word(&self) -> &'static str {
        match self.state {
            ArmState::NotSet => "couldn't be set",
            ArmState::Current if self.label.starts_with("baseline") => "compared with",
            ArmState::Current => "current",
            ArmState::Faster => "faster",
            ArmState::Slower => "slower",
            ArmState::Same | ArmState::Behind | ArmState::Open if self.is_calmer => "less delay",
            ArmState::Same => "same",
            ArmState::Behind => "left out (estimate)",
            ArmState::Failing => "every trial failed",
            ArmState::Open => "not proven",
        }
    }
}
