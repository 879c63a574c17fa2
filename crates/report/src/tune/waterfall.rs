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

/// A row for each object: from when it was asked for to its last byte, with a mark at the first one. Where a browser kept the request
/// back, a thin line until it was sent.
fn waterfall(label: &str, trial: &super::Trial, ends: &[Rule]) -> Chart {
    let objects = &trial.measures.objects[..trial.measures.objects.len().min(MOST_OBJECTS)];
    let ms = |us: u64| us as f64 / 1e3;
    let row = |(place, one): (usize, &wt_trial::ObjectTime)| {
        let sent = ms(one.sent_us.unwrap_or(one.asked_us));
        (place as f64, ms(one.asked_us), sent, ms(one.first_byte_us), ms(one.done_us))
    };
    let rows: Vec<_> = objects.iter().enumerate().map(row).collect();
    let thin = if objects.iter().any(|one| one.sent_us.is_some()) { ", thin until it was sent" } else { "" };
    let name = |one: &wt_trial::ObjectTime| format!("{} ({:.1} kB)", one.object + 1, one.bytes as f64 / 1e3);
    Chart {
        title: format!("How the page came: {label}"),
        subtitle: format!(
            "From the request to the last byte{thin}, marks at the first; the middle trial ({})",
            trial.trial
        ),
        y: Axis::linear("after the load began", "ms"),
        categories: objects.iter().map(name).collect(),
        series: vec![Series::waits("", &rows)],
        rules: ends.to_vec(),
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use wt_trial::{Measures, ObjectTime, Phase};

    /// A page whose second object is asked for at once and comes late.
    fn loaded(sent_us: Option<u64>) -> Chart {
        let first = ObjectTime { first_byte_us: 45_000, done_us: 90_000, ..ObjectTime::default() };
        let second = ObjectTime { object: 1, asked_us: 90_000, first_byte_us: 1_226_000, done_us: 1_230_000, ..first };
        let objects = vec![first, ObjectTime { sent_us, ..second }];
        let trial = super::super::Trial {
            round: 1,
            order: 1,
            settings: wt_units::Settings::new(),
            goodput_bps: 0.0,
            figure: None,
            status: "completed",
            trial: 7,
            arm: 0,
            phase: Phase::Round,
            bytes: 1,
            elapsed_us: 1_230_000,
            retransmits: 0,
            min_rtt_us: 0,
            measures: Measures { objects, ..Measures::default() },
            server: None,
            notes: Vec::new(),
        };
        waterfall("current", &trial, &[])
    }

    #[test]
    fn a_row_begins_thin_where_a_browser_kept_the_request_back_and_is_as_before_where_nothing_is_known() {
        let chart = loaded(Some(1_180_000));
        let Kind::Waits(rows) = &chart.series[0].kind else { panic!("{chart:?}") };
        assert_eq!(rows[1], (90.0, 1_180.0, 1_230.0));
        assert!(chart.subtitle.starts_with("From the request to the last byte, thin until it was sent, marks"));
        let before = loaded(None);
        assert!(before.subtitle.starts_with("From the request to the last byte, marks at the first"));
        let plain = Series::intervals("", &[(0.0, 0.0, 45.0, 90.0), (1.0, 90.0, 1_226.0, 1_230.0)]);
        assert_eq!(before.to_svg(800, 300), Chart { series: vec![plain], ..before.clone() }.to_svg(800, 300));
    }
}
