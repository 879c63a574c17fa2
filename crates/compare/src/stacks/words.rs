use super::answer::{FailedTrials, StackFinding, StackResult, StacksAnswer};
use super::verdict::{StackVerdict, threshold};
use crate::rounds::fewest_rounds;

impl StacksAnswer {
    /// What is shown, and what is wrong.
    pub(super) fn to_sentences(&self) -> Vec<String> {
        let shown = self.verdicts.iter().filter(|one| one.is_shown() && !one.alike);
        let mut all: Vec<String> = shown.map(|one| format!("{}.", one.text)).collect();
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
        all.extend(alike(&self.verdicts).iter().map(|names| {
            format!(
                "{} are the same stack with the same settings: they aren't ranked, and what they differ by is chance.",
                and(names)
            )
        }));
        all.extend(self.windows.iter().map(|gain| format!("{}.", gain.text())));
        all.extend(self.lacking());
        all.extend(self.stacks.iter().flat_map(of_stack));
        all.extend(self.adapter_overhead_paired.as_ref().map(|paired| paired.text()));
        if !self.same_bytes {
            all.push("The stacks didn't move the same bytes: a ranking would compare different things.".to_owned());
        }
        all
    }

    /// What stacks can't do, those that lack the same together.
    fn lacking(&self) -> Vec<String> {
        let mut groups: Vec<(Vec<String>, Vec<&str>)> = Vec::new();
        for stack in &self.stacks {
            let lacks = stack.conformance.lacks();
            match groups.iter_mut().find(|group| group.0 == lacks) {
                Some(group) => group.1.push(&stack.title),
                None => groups.push((lacks, vec![&stack.title])),
            }
        }
        let told = groups.iter().filter(|(lacks, _)| !lacks.is_empty());
        told.map(|(lacks, names)| {
            let have = if names.len() == 1 { "has" } else { "have" };
            format!("{} {have} no {}.", and(names), lacks.join(", no "))
        })
        .collect()
    }
}

/// Names of one stack with the same settings, together.
fn alike(verdicts: &[StackVerdict]) -> Vec<Vec<&str>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for StackVerdict { a, b, .. } in verdicts.iter().filter(|one| one.alike) {
        let at = groups.iter().position(|group| group.contains(&a.as_str()) || group.contains(&b.as_str()));
        let at = at.unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        let group = &mut groups[at];
        for name in [a.as_str(), b.as_str()] {
            if !group.contains(&name) {
                group.push(name);
            }
        }
    }
    groups
}

/// `a, b and c`.
fn and(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// What is wrong with one.
fn of_stack(stack: &StackResult) -> Vec<String> {
    let title = &stack.title;
    let mut all: Vec<String> = stack.refused.iter().map(|why| format!("{title}: {why}.")).collect();
    let finding = |StackFinding { workload, text, .. }: &StackFinding| format!("{title} ({workload}): {text}.");
    all.extend(stack.findings.iter().map(finding));
    let failed = |FailedTrials { workload, status, why, trials }: &FailedTrials| {
        format!("{title} ({workload}): {trials} of its trials {status}: {why}.")
    };
    all.extend(stack.failures.iter().map(failed));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_stack_are_told_together_once_whatever_the_workloads() {
        let verdict = |workload: &str, names: [&str; 2]| StackVerdict::of(workload, names, &[], 20.0);
        let pairs = [["a", "b"], ["a", "c"], ["b", "c"], ["d", "e"]];
        let all =
            ["bulk", "page"].iter().flat_map(|workload| pairs.map(|names| verdict(workload, names).of_one_stack()));
        let all: Vec<StackVerdict> = all.chain([verdict("bulk", ["a", "d"])]).collect();
        assert_eq!(alike(&all), [vec!["a", "b", "c"], vec!["d", "e"]]);
        assert_eq!(and(&["a", "b", "c"]), "a, b and c");
    }
}
