use super::{PlanStep, TuneInputs};
use wt_experiment::VerdictKind;
use wt_trial::Direction;
use wt_units::{Recommendation, Role};

/// What stands for the address that only the user knows, after a rehearsal.
pub(super) const SOME_TARGET: &str = "ADDRESS";

impl TuneInputs<'_> {
    /// What the recommended settings mean for the host on which the experiment ran; `None` unless something is shown to be faster.
    ///
    /// Nor where it beats a baseline, and what the host has now wasn't compared: that may be better still.
    fn recommendation(&self) -> Option<Recommendation> {
        if !self.has_current() {
            return None;
        }
        let arm = self.settings.get(self.assessment.pick).filter(|_| self.assessment.kind == VerdictKind::Faster)?;
        let sends = self.records.first().is_some_and(|record| record.spec.workload.direction() == Direction::Up);
        let role = if sends { Role::Sender } else { Role::Receiver };
        let target = self.facts.address.map_or_else(|| SOME_TARGET.to_owned(), |address| address.to_string());
        Some(Recommendation::of(&arm.settings.differing_from(self.current), role, &target))
    }

    /// What makes the recommended settings hold on this host, and what to do, with the one command that does it; nothing where
    /// nothing is shown to be faster.
    pub(super) fn apply(&self) -> (Vec<PlanStep>, Option<String>) {
        let Some(found) = self.recommendation() else { return (Vec::new(), None) };
        let (id, role) = (self.id, found.role.name());
        if !found.elsewhere.is_empty() {
            let (what, other) = (found.elsewhere_text(), found.other_role().name());
            let text = format!(
                "{what} acts on the {other}; this host was the {role}. Apply it there: \
                 sudo windtunnel settings apply {what} --to ADDRESS_OF_THE_{}",
                role.to_uppercase()
            );
            return (Vec::new(), Some(text));
        }
        if self.facts.address.is_none() {
            let text = format!(
                "To apply it to connections with one host (to all of them: --to host): \
                 sudo windtunnel settings apply --verdict {id} --to {SOME_TARGET}"
            );
            return (Vec::new(), Some(text).filter(|_| !found.here.is_empty()));
        }
        let command = found.command(id);
        let step = |one: &wt_units::RecommendedSetting| PlanStep {
            key: one.knob.name().to_owned(),
            value: one.level.clone(),
            command: format!("sudo windtunnel settings apply {}={} --to {}", one.knob, one.level, one.to),
            to: one.to.clone(),
            side: role.to_owned(),
        };
        let steps = found.here.iter().map(step).collect();
        (steps, command.map(|command| format!("Apply it (it is put back unless you confirm it): {command}")))
    }
}
