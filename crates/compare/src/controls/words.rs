use super::answer::{AgainstFirst, ControlResult, ControlsAnswer};
use super::scripted::ScriptedDisturbance;
use super::units::percent;
use std::time::Duration;
use wt_lab::scenario::Disturbance;
use wt_units::{change, counted};

impl ControlResult {
    /// What had to be run again, if anything had.
    fn thrown_away(&self) -> Option<String> {
        let [trials, times] = [(self.invalid_trials.into(), "trial"), (self.guard_hits, "time")]
            .map(|(n, noun): (u64, &str)| counted(usize::try_from(n).unwrap_or(usize::MAX), noun));
        (self.invalid_trials > 0 || self.guard_hits > 0).then(|| {
            format!("{}: {trials} thrown away and run again; the kernel skipped a program {times}.", self.label)
        })
    }

    /// How many of its trials failed, if any did.
    fn failures(&self) -> Option<String> {
        (self.failed_trials > 0)
            .then(|| format!("{} failed in {} of {} trials", self.label, self.failed_trials, self.runs.len()))
    }
}

impl ControlsAnswer {
    /// A sentence for each of which trials had to be run again.
    pub fn thrown_away(&self) -> impl Iterator<Item = String> {
        self.algorithms.iter().filter_map(ControlResult::thrown_away)
    }

    /// What became of what was made to happen, its head first; nothing where nothing was.
    pub fn disturbance_lines(&self) -> Vec<String> {
        let Some(disturbance) = self.disturbance else { return Vec::new() };
        let lasted = if disturbance.lasts_s == 0.0 {
            String::new()
        } else {
            format!(" that lasted {:.1} s, from its end", disturbance.lasts_s)
        };
        let (name, at) = (disturbance.kind, disturbance.at_s);
        let mut lines =
            vec![format!("After the {name} at {at:.1} s{lasted}, until 95 % of the rate before it held for two RTTs:")];
        for one in &self.algorithms {
            let Some(after) = &one.after_disturbance else { continue };
            let time = after.median_s.map_or_else(|| "not in most trials".to_owned(), |s| format!("{s:.2} s"));
            let cost = after.mean_cost_bytes.unwrap_or(0.0) / 1e3;
            let (label, back, all) = (&one.label, after.recovered, after.events);
            lines.push(format!(
                "{:<24} {time}, {cost:.1} kB less than without; back in {back} of {all}",
                format!("{label}:")
            ));
            if let Some(shared) = &one.beside {
                lines.push(format!("{:<24} beside {}: {}", "", shared.name, shared.sentence()));
            }
        }
        lines
    }
}

/// One sentence or two that a person can act on.
pub(super) fn verdict(all: &[ControlResult]) -> String {
    let Some((first, others)) = all.split_first() else { return "nothing was compared".to_owned() };
    if others.is_empty() {
        return format!("only {} was run: there is nothing to compare it with", first.label);
    }
    let failed: Vec<String> = all.iter().filter_map(ControlResult::failures).collect();
    if !failed.is_empty() {
        return format!(
            "{}, so no ratio holds for all of them; the means count such trials as they were.",
            failed.join("; ")
        );
    }
    if others.iter().all(|one| one.against_first.is_none()) {
        return "too few rounds to say whether the differences are real; two or more say".to_owned();
    }
    let (faster, slower) = (sorted(others, AgainstFirst::is_larger), sorted(others, AgainstFirst::is_smaller));
    let mut parts = Vec::new();
    if !faster.is_empty() {
        parts.push(format!("faster than {}: {faster}", first.label));
    }
    if !slower.is_empty() {
        parts.push(format!("slower: {slower}"));
    }
    if parts.is_empty() {
        parts.push(format!("no difference from {} is shown", first.label));
    }
    format!(
        "{} (95 % for all comparisons together, by Dunnett's method within rounds, if all are equally noisy).",
        parts.join("; ")
    )
}

/// Whose goodput a verdict is about where another flow was there for a part of each trial; nothing otherwise.
pub(super) fn beside_whom(scripted: Option<ScriptedDisturbance>, length: Duration) -> String {
    let Some(ScriptedDisturbance { what: Disturbance::Flow { lasts }, .. }) = scripted else { return String::new() };
    format!(
        " Goodput and queue are of whole trials, a newreno flow beside each for {:.1} of {:.1} s: who takes more from it counts as faster.",
        lasts.as_secs_f64(),
        length.as_secs_f64()
    )
}

/// Whose start is shown to differ from the first one's, by the time until the first 100 kB.
pub(super) fn start(all: &[ControlResult]) -> String {
    let Some((first, others)) = all.split_first() else { return String::new() };
    if others.is_empty() || others.iter().any(|one| one.start_against_first.is_none()) {
        return String::new();
    }
    let listed = |shown: fn(&AgainstFirst) -> bool| {
        let with = others.iter().filter_map(|one| Some((one, one.start_against_first?)));
        let mut kept: Vec<(&ControlResult, AgainstFirst)> = with.filter(|(_, against)| shown(against)).collect();
        kept.sort_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio));
        let name = |(one, against): &(&ControlResult, AgainstFirst)| {
            let AgainstFirst { ratio, low, high } = *against;
            let [ratio, low, high] = [ratio, low, high].map(|ratio| change(percent(ratio), 0));
            format!("{} ({ratio} %, {low} to {high})", one.label)
        };
        kept.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let (sooner, later) = (listed(AgainstFirst::is_smaller), listed(AgainstFirst::is_larger));
    let mut parts = Vec::new();
    if !sooner.is_empty() {
        parts.push(format!("sooner than {}: {sooner}", first.label));
    }
    if !later.is_empty() {
        parts.push(format!("later: {later}"));
    }
    if parts.is_empty() {
        parts.push(format!("no difference from {} is shown", first.label));
    }
    format!("Start, by the time until the first 100 kB: {}.", parts.join("; "))
}

/// Those of which something is shown, with how far they are ahead; the fastest first.
fn sorted(others: &[ControlResult], shown: fn(&AgainstFirst) -> bool) -> String {
    let mut kept: Vec<&ControlResult> =
        others.iter().filter(|one| one.against_first.as_ref().is_some_and(shown)).collect();
    kept.sort_by(|a, b| b.goodput.mean.total_cmp(&a.goodput.mean));
    let name = |one: &&ControlResult| {
        let gain = one.against_first.map_or(0.0, |against| percent(against.ratio));
        format!("{} ({} %)", one.label, change(gain, 0))
    };
    kept.iter().map(name).collect::<Vec<_>>().join(", ")
}
