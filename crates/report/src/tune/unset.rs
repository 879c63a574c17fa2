//! What is said where nothing that was asked for could be set.

use super::{GrantedKnob, TuneInputs};

/// So many settings that couldn't be set are named, each with what was there instead.
const MOST: usize = 4;

impl TuneInputs<'_> {
    /// `Nothing was compared: mtu=1000 couldn't be set (observed: mtu 576).`
    pub(super) fn nothing_set(&self, granted: &[GrantedKnob]) -> String {
        let unset = &self.assessment.unset;
        // Without what they are compared with, it doesn't matter what became of the others.
        let blamed: Vec<usize> = if unset.contains(&0) { vec![0] } else { unset.iter().copied().collect() };
        let mut told: Vec<String> = blamed.iter().take(MOST).map(|arm| self.couldnt(*arm, granted)).collect();
        if blamed.len() > MOST {
            told.push(format!("{} more", blamed.len() - MOST));
        }
        format!("Nothing was compared: {} couldn't be set.", told.join(", "))
    }

    /// A setting with what was there instead: `mtu=1000 (observed: mtu 576)`.
    fn couldnt(&self, arm: usize, granted: &[GrantedKnob]) -> String {
        let rows = granted.iter().filter(|row| row.arm == arm && row.mostly_differs());
        let instead: Vec<String> = rows.filter_map(GrantedKnob::instead).collect();
        let instead = if instead.is_empty() { String::new() } else { format!(" ({})", instead.join(", ")) };
        format!("{}{instead}", self.label(arm))
    }

    /// What says why nothing could be compared: of this host's own settings, where it was they that were in the way.
    pub(super) fn look(&self) -> &'static str {
        let here = self.tunnel == "live" && self.assessment.lacks_candidates();
        if here { "windtunnel settings show --all" } else { "windtunnel doctor" }
    }
}

impl GrantedKnob {
    /// What was there instead of what was asked for.
    fn instead(&self) -> Option<String> {
        if !self.observed.is_empty() {
            return Some(format!("observed: {} {}", self.knob, self.observed.join(" or ")));
        }
        let granted: Vec<String> = self.granted.iter().map(ToString::to_string).collect();
        (!granted.is_empty()).then(|| format!("granted: {} {}", self.knob, granted.join(" or ")))
    }
}
