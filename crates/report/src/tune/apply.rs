use super::{PlanStep, TuneInputs};
use wt_experiment::VerdictKind;
use wt_trial::Direction;
use wt_units::{Knob, Recommendation, Role, Settings};

/// What stands for the address that only the user knows, after a rehearsal.
pub(super) const SOME_TARGET: &str = "ADDRESS";

/// Whether all of them can be had by routes to all hosts.
pub(super) fn are_of_routes(mut knobs: impl Iterator<Item = Knob>) -> bool {
    knobs.all(|knob| knob.scopes().route && knob != Knob::Rwin)
}

impl TuneInputs<'_> {
    /// The recommended settings, and what the host on which the experiment ran was; `None` unless something is shown to be faster.
    ///
    /// Nor where it beats a baseline, and what the host has now wasn't compared: that may be better still.
    fn recommended_here(&self) -> Option<(Settings, Role)> {
        if !self.has_current() {
            return None;
        }
        let arm = self.settings.get(self.assessment.pick).filter(|_| self.assessment.kind == VerdictKind::Faster)?;
        let sends = self.records.first().is_some_and(|record| record.spec.workload.direction() == Direction::Up);
        Some((arm.settings.differing_from(self.current), if sends { Role::Sender } else { Role::Receiver }))
    }

    /// The addresses that served, as `settings apply --to` takes them.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.facts.addresses.iter().map(ToString::to_string).collect()
    }

    /// What makes the recommended settings hold on this host, and what to do, with the commands that do it, one for each host that
    /// served; nothing where nothing is shown to be faster.
    pub(super) fn apply(&self) -> (Vec<PlanStep>, Option<String>) {
        let Some((settings, role)) = self.recommended_here() else { return (Vec::new(), None) };
        let addresses = self.addresses();
        let found = Recommendation::of(&settings, role, addresses.first().map_or(SOME_TARGET, String::as_str));
        let (id, side) = (self.id, role.name());
        if !found.elsewhere.is_empty() {
            let (what, other) = (found.elsewhere_text(), found.other_role().name());
            // As the answer's command has it: routes to all hosts take what is of routes.
            let to = if are_of_routes(found.elsewhere.iter().map(|(knob, _)| *knob)) {
                "default".to_owned()
            } else {
                format!("ADDRESS_OF_THE_{}", side.to_uppercase())
            };
            let text = format!(
                "{what} acts on the {other}; this host was the {side}. Apply it there: \
                 sudo windtunnel settings apply {what} --to {to}"
            );
            return (Vec::new(), Some(text));
        }
        if addresses.is_empty() {
            let text = format!(
                "To apply it to connections with one host (to all of them: --to host): \
                 sudo windtunnel settings apply --verdict {id} --to {SOME_TARGET}"
            );
            return (Vec::new(), Some(text).filter(|_| !found.here.is_empty()));
        }
        let mut steps: Vec<PlanStep> = Vec::new();
        for one in addresses.iter().flat_map(|address| Recommendation::of(&settings, role, address).here) {
            let command = format!("sudo windtunnel settings apply {}={} --to {}", one.knob, one.level, one.to);
            let (key, side) = (one.knob.name().to_owned(), side.to_owned());
            let step = PlanStep { key, value: one.level, command, to: one.to, side };
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        let text = match Recommendation::commands(&settings, role, &addresses, id).as_slice() {
            [] => None,
            [one] => Some(format!("Apply it (it is put back unless you confirm it): {one}")),
            several => Some(format!(
                "It was measured with {} hosts in turn. Apply it for each (it is put back unless you confirm it, and the next one \
                 waits for that): {}",
                several.len(),
                several.join("; then ")
            )),
        };
        (steps, text)
    }
}
