//! How a page came, object by object, with the current settings and with the others: the trial in the middle of each.

use super::TuneReport;
use crate::{Axis, Chart, Rule, Series};
use wt_experiment::VerdictKind;

/// So many objects are drawn; more can't be told apart.
const MOST_OBJECTS: usize = 100;

impl TuneReport {
    /// The load of the current settings, and that of the setting that won or leads, each the middle one of its trials; none
    /// where no page was loaded. Both have the same scale.
    #[must_use]
    pub fn waterfall_charts(&self) -> Vec<Chart> {
        let after = if self.verdict.kind == VerdictKind::Faster { Some(self.verdict.arm) } else { self.leading() };
        let shown: Vec<(usize, &super::Trial)> =
            std::iter::once(0).chain(after).filter_map(|arm| Some((arm, self.middle_load(arm)?))).collect();
        let ends: Vec<Rule> = shown
            .iter()
            .map(|(arm, trial)| Rule::horizontal(trial.elapsed_us as f64 / 1e3, self.arms[*arm].label.clone()))
            .collect();
        shown.iter().map(|(arm, trial)| waterfall(&self.arms[*arm].label, trial, &ends)).collect()
    }

    /// The setting with the largest ratio beside the current one.
    fn leading(&self) -> Option<usize> {
        let ranked = self.arms.iter().enumerate().skip(1).filter(|(_, arm)| arm.is_ranked());
        let known = ranked.filter_map(|(place, arm)| Some((place, arm.ratio?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place)
    }

    /// The load with the median time of a setting's whole ones.
    fn middle_load(&self, arm: usize) -> Option<&super::Trial> {
        let whole = |trial: &&super::Trial| {
            trial.arm == arm && trial.status == "completed" && !trial.measures.objects.is_empty()
        };
        let mut loads: Vec<&super::Trial> = self.trial_table.iter().filter(whole).collect();
        loads.sort_by_key(|trial| trial.elapsed_us);
        loads.get(loads.len().saturating_sub(1) / 2).copied()
    }
}

/// A row for each object: from when it was asked for to its last byte, with a mark at the first one.
fn waterfall(label: &str, trial: &super::Trial, ends: &[Rule]) -> Chart {
    let objects = &trial.measures.objects[..trial.measures.objects.len().min(MOST_OBJECTS)];
    let ms = |us: u64| us as f64 / 1e3;
    let rows: Vec<_> = objects
        .iter()
        .enumerate()
        .map(|(place, one)| (place as f64, ms(one.asked_us), ms(one.first_byte_us), ms(one.done_us)))
        .collect();
    let name = |one: &wt_trial::ObjectTime| format!("{} ({:.1} kB)", one.object + 1, one.bytes as f64 / 1e3);
    Chart {
        title: format!("How the page came: {label}"),
        subtitle: format!("From the request to the last byte, marks at the first; the middle trial ({})", trial.trial),
        y: Axis::linear("after the load began", "ms"),
        categories: objects.iter().map(name).collect(),
        series: vec![Series::intervals("", &rows)],
        rules: ends.to_vec(),
        ..Chart::default()
    }
}
