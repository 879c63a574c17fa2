//! `--hold`: settings that are the same in every trial, so that others are compared beside them.

use super::request::TuneRequest;
use super::session::Session;
use wt_journal::StoredExperiment;
use wt_problem::Problem;
use wt_setup::Baseline;
use wt_setup::settings_of;
use wt_trial::Tunnel;
use wt_units::{Assignment, FullPacket, Level, Settings};

impl TuneRequest {
    /// Whether what is held goes together with what is varied, and with what trials do.
    pub(crate) fn check_hold(&self) -> Result<(), Problem> {
        let varied = |knob| {
            let named = self.knobs.iter().flatten().any(|varied| *varied == knob);
            let level = self.levels.iter().any(|levels| levels.knob == knob);
            named || level || self.assigned().any(|one| one.knob == knob)
        };
        if let Some(both) = self.hold.iter().map(|held| held.knob).find(|knob| varied(*knob)) {
            return Err(Problem::usage(format!("{both} is named both in --knobs and in --hold; choose one"))
                .hint(format!("leave {both} out of --hold, or out of --knobs, --levels, --baseline and --arm")));
        }
        if !self.hold.is_empty() && self.workload.has_rivals() {
            return Err(Problem::usage("--hold is for the connection that is judged; its rivals would not have it")
                .hint("set it on the host, or choose another workload"));
        }
        Ok(())
    }

    /// What is held in every trial of a tunnel.
    ///
    /// # Errors
    /// A usage failure where a knob is held twice.
    pub(crate) fn held(&self, tunnel: &impl Tunnel) -> Result<Settings, Problem> {
        let pmtu = tunnel.path(self.payload_direction()).pmtu;
        let mss = pmtu.saturating_sub(tunnel.header_len()).max(1);
        settings_of(&self.hold, FullPacket { mtu: pmtu, mss })
    }

    /// What the baseline and the arms set.
    fn assigned(&self) -> impl Iterator<Item = &Assignment> {
        let baseline = match &self.baseline {
            Some(Baseline::Settings(list)) => list.as_slice(),
            _ => &[],
        };
        baseline.iter().chain(self.arms.iter().flat_map(|arm| &arm.settings))
    }

    /// The names among levels that are varied or held: congestion controls of ours have to be loaded before the lab is made.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let varied = self.levels.iter().flat_map(|levels| &levels.levels);
        let all = varied.chain(self.hold.iter().chain(self.assigned()).map(|one| &one.level));
        all.filter_map(|level| if let Level::Name(name) = level { Some(name.as_str()) } else { None })
    }
}

impl<T: Tunnel> Session<'_, T> {
    /// What is held, for the journaled configuration.
    pub(crate) fn held(&self) -> Option<Settings> {
        Some(self.tunnel.held()).filter(|held| !held.is_empty()).cloned()
    }
}

/// What was held in every trial of an experiment.
///
/// # Errors
/// A [`Problem`] when the journal doesn't say it in our words.
pub(crate) fn held_in(stored: &StoredExperiment) -> Result<Settings, Problem> {
    let held = stored.config.tune().held();
    held.map_err(|error| Problem::internal(format!("what was held in {} can't be read: {error}", stored.id)))
}
