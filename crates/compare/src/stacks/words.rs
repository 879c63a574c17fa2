use super::answer::{FailedTrials, StackFinding, StackResult, StacksAnswer};
use super::verdict::threshold;
use crate::rounds::fewest_rounds;

impl StacksAnswer {
    /// What is shown, and what is wrong.
    pub(super) fn to_sentences(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.verdicts.iter().filter(|one| one.is_shown()).map(|one| format!("{}.", one.text)).collect();
        let rest = self.verdicts.iter().filter(|one| !one.is_shown()).count();
        if rest > 0 {
            let which = match (all.is_empty(), rest) {
                (true, 1) => "between the two".to_owned(),
                (true, _) => format!("in any of the {rest} pairs"),
                (false, 1) => "in the other pair".to_owned(),
                (false, _) => format!("in the other {rest} pairs"),
            };
            let fewest = fewest_rounds(threshold(self.verdicts.len(), 1));
            let too_few = self.verdicts.iter().all(|one| !one.is_shown() && one.rounds < fewest as usize);
            all.push(if too_few {
                format!("No difference can be shown before {fewest} rounds (--rounds {fewest}).")
            } else {
                format!("No difference is shown {which}.")
            });
        }
        all.extend(self.windows.iter().map(|gain| format!("{}.", gain.text())));
        all.extend(self.stacks.iter().flat_map(of_stack));
        all.extend(self.adapter_overhead_paired.as_ref().map(|paired| paired.text()));
        if !self.same_bytes {
            all.push("The stacks didn't move the same bytes: a ranking would compare different things.".to_owned());
        }
        all
    }
}

/// What one can't do, and what is wrong with it.
fn of_stack(stack: &StackResult) -> Vec<String> {
    let title = &stack.title;
    let mut all: Vec<String> = stack.refused.iter().map(|why| format!("{title}: {why}.")).collect();
    let lacks = stack.conformance.lacks();
    if !lacks.is_empty() {
        all.push(format!("{title} has no {}.", lacks.join(", no ")));
    }
    let finding = |StackFinding { workload, text, .. }: &StackFinding| format!("{title} ({workload}): {text}.");
    all.extend(stack.findings.iter().map(finding));
    let failed = |FailedTrials { workload, status, why, trials }: &FailedTrials| {
        format!("{title} ({workload}): {trials} of its trials {status}: {why}.")
    };
    all.extend(stack.failures.iter().map(failed));
    all
}
