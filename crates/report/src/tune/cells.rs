//! Two settings, each alone and both together: the four cells of a 2 × 2, and what they do beyond the two effects.

use super::TuneInputs;
use super::answer::AnswerInputs;
use super::figures::counted_bps;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use wt_experiment::{DropReason, DroppedSetting, anytime_half_width};
use wt_trial::{Scale, Status, TrialRecord};
use wt_units::Settings;

/// Four settings that differ in two: none, each alone, both.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FourCells {
    /// What the first changes against the baseline.
    pub first: String,
    /// What the second changes.
    pub second: String,
    /// The arms: neither, the first, the second, both.
    pub arms: [usize; 4],
    /// Their figures, geometric means over the rounds that have all four: see `measured`.
    pub figures: [f64; 4],
    /// Rounds that have all four.
    pub rounds: usize,
    /// What both do together over what their two effects multiply to; above 1 they help each other.
    pub interaction: f64,
    /// The interval's lower end, with the experiment's confidence at any time; `null` while there are too few rounds.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The first of the four that left the race, and after which round: from then on no round counts here.
    #[serde(skip)]
    pub left: Option<(String, DroppedSetting)>,
}

impl TuneInputs<'_> {
    /// The first four arms that are such a square.
    pub(super) fn cells(&self, known: &AnswerInputs<'_>) -> Option<FourCells> {
        let square = self.square()?;
        let mut rounds: BTreeMap<u32, [Option<f64>; 4]> = BTreeMap::new();
        for record in known.records {
            let Some(place) = square.iter().position(|arm| *arm == record.spec.arm) else { continue };
            let figure = figure(record, known.measured.scale).filter(|figure| *figure > 0.0);
            rounds.entry(record.spec.round).or_default()[place] = figure;
        }
        let whole = |cells: &[Option<f64>; 4]| Some([cells[0]?.ln(), cells[1]?.ln(), cells[2]?.ln(), cells[3]?.ln()]);
        let logs: Vec<[f64; 4]> = rounds.values().filter_map(whole).collect();
        if logs.is_empty() {
            return None;
        }
        let mean = |cell: usize| logs.iter().map(|log| log[cell]).sum::<f64>() / logs.len() as f64;
        // What is better when it is smaller is turned over, so that more than 1 is always a help.
        let sign = if known.measured.better == "smaller" { -1.0 } else { 1.0 };
        let all: Vec<f64> = logs.iter().map(|log| sign * (log[3] - log[1] - log[2] + log[0])).collect();
        let (interaction, low, high) = interaction(&all, self.assessment.alpha);
        let (first, second) = (self.asked(square[1]), self.asked(square[2]));
        let base = self.asked(0);
        Some(FourCells {
            first: changed(&first, &base),
            second: changed(&second, &base),
            arms: square,
            figures: [0, 1, 2, 3].map(|cell| mean(cell).exp()),
            rounds: logs.len(),
            interaction,
            low,
            high,
            left: self.left(square),
        })
    }

    fn left(&self, square: [usize; 4]) -> Option<(String, DroppedSetting)> {
        let dropped = square.iter().filter_map(|arm| Some((*arm, self.assessment.arms[*arm].dropped?)));
        let (arm, first) = dropped.min_by_key(|(_, dropped)| dropped.round)?;
        Some((self.settings.get(arm).map_or_else(String::new, |setting| setting.label.clone()), first))
    }

    fn square(&self) -> Option<[usize; 4]> {
        let all: Vec<Settings> = (0..self.assessment.arms.len()).map(|arm| self.asked(arm)).collect();
        square(&all).filter(|square| !square.iter().any(|arm| self.assessment.unset.contains(arm)))
    }
}

/// The first four of these settings of which the first has neither, two have one each, and one has both changes.
#[must_use]
pub fn square(arms: &[Settings]) -> Option<[usize; 4]> {
    let base = arms.first()?;
    // An arm that takes something of the first away is none of a square over it.
    let kept = |own: &Settings| base.iter().all(|(knob, _)| own.get(knob).is_some());
    let over = arms.iter().enumerate().skip(1).filter(|(_, own)| kept(own));
    let own: Vec<(usize, Settings)> = over.map(|(arm, own)| (arm, own.differing_from(base))).collect();
    for (both, joint) in &own {
        for (at, (first, one)) in own.iter().enumerate().filter(|(_, (_, one))| !one.is_empty()) {
            for (second, other) in own[at + 1..].iter().filter(|(_, other)| !other.is_empty()) {
                let apart = one.iter().all(|(knob, _)| other.get(knob).is_none());
                if first != both && second != both && apart && one.overlaid(other) == *joint {
                    return Some([0, *first, *second, *both]);
                }
            }
        }
    }
    None
}

/// The ratio that these logs are of, and its interval at any time; no interval while there are too few.
fn interaction(logs: &[f64], alpha: f64) -> (f64, Option<f64>, Option<f64>) {
    let n = logs.len() as f64;
    let middle = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|one| (one - middle).powi(2)).sum::<f64>() / (n - 1.0);
    let half = anytime_half_width(variance, 1.0 / n, n - 1.0, alpha);
    let end = |log: f64| Some(log.exp()).filter(|end| half.is_finite() && end.is_finite());
    (middle.exp(), end(middle - half), end(middle + half))
}

fn changed(settings: &Settings, base: &Settings) -> String {
    settings.differing_from(base).to_string()
}

fn figure(record: &TrialRecord, scale: Scale) -> Option<f64> {
    let counts = matches!(record.outcome.status, Status::Completed | Status::Incomplete) && record.outcome.bytes > 0;
    let figure = match (scale, record.outcome.measures.score) {
        (Scale::Goodput, None) => Some(counted_bps(record)),
        (scale, _) => record.outcome.figure(scale),
    };
    figure.filter(|_| counts)
}

impl FourCells {
    /// What the interaction means, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (first, second) = (&self.first, &self.second);
        let what = match (self.low, self.high) {
            (Some(low), _) if low > 1.0 => format!("{first} and {second} help each other"),
            (_, Some(high)) if high < 1.0 => format!("{first} and {second} get in each other's way"),
            _ => format!("{first} and {second} aren't shown to act on each other"),
        };
        let interval = match (self.low, self.high) {
            (Some(low), Some(high)) => format!("×{low:.2} to ×{high:.2}"),
            _ => "no interval yet".to_owned(),
        };
        let rounds = wt_units::counted(self.rounds, "round");
        let left = self.left.as_ref().map_or_else(String::new, |(label, dropped)| {
            let why = match dropped.reason {
                DropReason::Behind => "it lay clearly behind",
                DropReason::Failing => "it failed",
            };
            format!(" No more rounds count: {label} left after round {}, for {why}.", dropped.round)
        });
        let times = self.interaction;
        format!("{what}: together ×{times:.2} of what their effects multiply to ({interval}; {rounds}).{left}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{Plan, Truth};
    use super::super::{Run, RunFacts, Setting, TuneReport};
    use super::*;
    use wt_units::{Knob, Level};

    fn report(together: f64) -> TuneReport {
        let mtu = Settings::new().with(Knob::Mtu, Level::Number(1_400));
        let rwin = Settings::new().with(Knob::Rwin, Level::Number(65_536));
        let both = mtu.overlaid(&rwin);
        let truths = vec![
            Truth::new("current", Settings::new(), 4.0),
            Truth::new("mtu", mtu, 3.9),
            Truth::new("rwin", rwin, 4.1),
            Truth::new("both", both, together),
        ];
        let story = Plan { truths, levels: vec![], noise: 0.01, budget: 120, stop_after: Some(12), seed: 5 }.run();
        let setting = |t: &Truth| Setting { label: t.label.clone(), settings: t.settings.clone() };
        let settings: Vec<Setting> = story.truths.iter().map(setting).collect();
        TuneReport::assemble(&TuneInputs {
            id: "",
            target: "adsl",
            tunnel: "lab",
            path: &story.path,
            current: &story.current,
            settings: &settings,
            plateau: None,
            assessment: &story.assessment,
            records: &story.records,
            run: &Run::default(),
            facts: &RunFacts::default(),
        })
    }

    #[test]
    fn four_cells_have_their_interaction() {
        let cells = report(4.8).cells.unwrap();
        assert_eq!((cells.arms, cells.first.as_str(), cells.second.as_str()), ([0, 1, 2, 3], "mtu=1400", "rwin=65536"));
        let [neither, first, second, both] = cells.figures;
        assert!((cells.interaction - both * neither / (first * second)).abs() < 1e-9, "{cells:?}");
        let true_one = 4.8 * 4.0 / (3.9 * 4.1);
        assert!((cells.interaction / true_one - 1.0).abs() < 0.05, "{cells:?}");
        let whole = FourCells { left: None, ..cells.clone() }.sentence();
        assert!(whole.ends_with("rounds)."), "{whole}");
        let left = Some(("mtu=1400".to_owned(), DroppedSetting { round: 6, reason: DropReason::Failing }));
        let told = FourCells { left, ..cells }.sentence();
        assert!(told.ends_with("No more rounds count: mtu=1400 left after round 6, for it failed."), "{told}");
    }

    #[test]
    fn an_interaction_is_claimed_where_its_interval_leaves_one_out() {
        // Twelve rounds that scatter by 2 %.
        let around = |middle: f64| (0..12).map(|at| middle + 0.02 * f64::from(at % 3 - 1)).collect::<Vec<f64>>();
        let (ratio, low, high) = interaction(&around(0.2), 0.05);
        assert!((ratio / 0.2_f64.exp() - 1.0).abs() < 1e-9);
        assert!(low.unwrap() > 1.1 && high.unwrap() < 1.35, "{low:?} {high:?}");
        let (_, low, high) = interaction(&around(0.0), 0.05);
        assert!(low.unwrap() < 1.0 && high.unwrap() > 1.0, "{low:?} {high:?}");
        assert_eq!((interaction(&[0.2], 0.05).1, interaction(&[0.2, 0.2], 0.05).1), (None, None));
    }

    #[test]
    fn arms_that_take_something_of_the_first_away_are_no_square() {
        let set = |pairs: &[(Knob, u64)]| -> Settings {
            pairs.iter().map(|(knob, level)| (*knob, Level::Number(*level))).collect()
        };
        let (mtu, rwin, ttl) = ((Knob::Mtu, 1_400), (Knob::Rwin, 9_000), (Knob::Ttl, 32));
        let whole = [set(&[ttl]), set(&[ttl, mtu]), set(&[ttl, rwin]), set(&[ttl, mtu, rwin])];
        assert_eq!(square(&whole), Some([0, 1, 2, 3]));
        assert_eq!(square(&[set(&[ttl]), set(&[mtu]), set(&[ttl, rwin]), set(&[ttl, mtu, rwin])]), None);
        assert_eq!(square(&whole[..3]), None);
    }
}
