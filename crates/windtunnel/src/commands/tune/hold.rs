//! `--hold`: settings that are the same in every trial, so that others are compared beside them.

use super::{Session, TuneArgs};
use crate::commands::predict::asked::{self, One};
use crate::edge::Failure;
use serde_json::json;
use wt_journal::StoredExperiment;
use wt_trial::Tunnel;
use wt_units::{Level, Settings};

impl TuneArgs {
    /// Whether what is held goes together with what is varied, and with what trials do.
    pub(super) fn check_hold(&self) -> Result<(), Failure> {
        let varied = |knob| {
            let named = self.knobs.iter().flatten().any(|varied| *varied == knob);
            named || self.levels.iter().any(|levels| levels.knob == knob)
        };
        if let Some(both) = self.hold.iter().map(One::knob).find(|knob| varied(*knob)) {
            return Err(Failure::usage(format!("{both} is to be varied and to be held"))
                .hint(format!("leave {both} out of --hold, or out of --knobs and --levels")));
        }
        if !self.hold.is_empty() && self.workload.has_rivals() {
            return Err(Failure::usage("--hold is for the connection that is judged; its rivals would not have it")
                .hint("set it on the host, or choose another workload"));
        }
        Ok(())
    }

    /// What is held in every trial of a tunnel.
    ///
    /// # Errors
    /// A usage failure where a knob is held twice.
    pub(super) fn held(&self, tunnel: &impl Tunnel) -> Result<Settings, Failure> {
        let pmtu = tunnel.path(self.direction.into()).pmtu;
        asked::settings(&self.hold, pmtu.saturating_sub(tunnel.header_len()).max(1))
    }

    /// The names among levels that are varied or held: congestion controls of ours have to be loaded before the lab is made.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let varied = self.levels.iter().flat_map(|levels| &levels.levels);
        let all = varied.chain(self.hold.iter().map(One::level));
        all.filter_map(|level| if let Level::Name(name) = level { Some(name.as_str()) } else { None })
    }
}

impl<T: Tunnel> Session<'_, T> {
    /// What is held, for the journaled configuration.
    pub(super) fn held(&self) -> Option<(&'static str, serde_json::Value)> {
        let held = self.tunnel.held();
        (!held.is_empty()).then(|| ("hold", json!(held)))
    }
}

/// What was held in every trial of an experiment.
///
/// # Errors
/// A [`Failure`] when the journal doesn't say it in our words.
pub(super) fn held_in(stored: &StoredExperiment) -> Result<Settings, Failure> {
    let held = &stored.config["hold"];
    if held.is_null() {
        return Ok(Settings::new());
    }
    serde_json::from_value(held.clone())
        .map_err(|error| Failure::ours(format!("what was held in {} can't be read: {error}", stored.id)))
}
