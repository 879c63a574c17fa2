use super::answer::{DesignKind, GroupDescription, GroupedAnovas, GroupedAnswer, GroupedDesign};
use super::{Outcome, SCHEMA_VERSION};
use crate::classic::{
    Better, FEWEST_OF_A_LEVEL, WelchComparison, describe, kruskal, one_way_anova, p_value, unlike_pairs,
};

/// The error of all claims together.
const ALPHA: f64 = 0.05;

/// Levels without blocks.
pub(super) fn answer(outcome: Outcome, factor: String, groups: &[(String, Vec<f64>)]) -> GroupedAnswer {
    let Outcome { value, better, notes } = outcome;
    let raw: Vec<&[f64]> = groups.iter().map(|(_, y)| y.as_slice()).collect();
    let logs: Vec<Vec<f64>> = raw.iter().map(|y| y.iter().map(|v| v.ln()).collect()).collect();
    let log_rows: Vec<&[f64]> = logs.iter().map(Vec::as_slice).collect();
    let description =
        |(level, y): &(String, Vec<f64>)| Some(GroupDescription { level: level.clone(), description: describe(y)? });
    let welch = unlike_pairs(groups);
    let words = Words { factor: &factor, groups, better, pairs: &welch };
    GroupedAnswer {
        schema_version: SCHEMA_VERSION,
        notes,
        describe: groups.iter().filter_map(description).collect(),
        kruskal: kruskal(&raw),
        verdict: words.verdict(),
        difference_shown: words.clearest().is_some_and(|pair| pair.p < ALPHA),
        anova: GroupedAnovas { one_way_raw: one_way_anova(&raw), one_way_log: one_way_anova(&log_rows) },
        welch,
        design: GroupedDesign {
            kind: DesignKind::OneWay,
            factor,
            levels: groups.iter().map(|(level, _)| level.clone()).collect(),
            blocks: Vec::new(),
            value,
            better,
        },
    }
}

struct Words<'a> {
    factor: &'a str,
    groups: &'a [(String, Vec<f64>)],
    better: Better,
    pairs: &'a [WelchComparison],
}

impl Words<'_> {
    fn verdict(&self) -> String {
        let (factor, levels) = (self.factor, self.groups.len());
        if self.groups.iter().all(|(_, y)| y.len() < 2) {
            return format!(
                "Nothing can be concluded about {factor}: there is no repetition, so there is no measure of the noise. \
                 Measure every level in each of at least 4 rounds, in random order."
            );
        }
        let mut sentences = match (self.clearest(), self.groups) {
            // Of two there is no question which from which.
            (Some(pair), [_, _]) if pair.p < ALPHA => vec![self.better_of_two(pair)],
            (Some(pair), _) if pair.p < ALPHA => {
                vec![format!("The {levels} levels of {factor} differ (p {}, all pairs together).", p_value(pair.p))]
            }
            (Some(pair), _) => {
                vec![format!("No difference shown between the {levels} levels of {factor} (p {}).", p_value(pair.p))]
            }
            (None, _) => vec![format!("No difference shown between the {levels} levels of {factor}.")],
        };
        sentences.extend(self.too_few());
        sentences.push(
            "There are no blocks, so any change of the path between the measurements would look the same as a difference \
             between the levels."
                .to_owned(),
        );
        sentences.join(" ")
    }

    fn clearest(&self) -> Option<&WelchComparison> {
        self.pairs.iter().min_by(|x, y| x.p.total_cmp(&y.p))
    }

    fn better_of_two(&self, pair: &WelchComparison) -> String {
        let a_better = (pair.ratio > 1.0) == (self.better == Better::Higher);
        let (best, other) = if a_better { (&pair.a, &pair.b) } else { (&pair.b, &pair.a) };
        let over = |ratio: f64| if a_better { ratio } else { 1.0 / ratio };
        let interval = pair.low.zip(pair.high).map_or_else(String::new, |(low, high)| {
            let (low, high) = if a_better { (low, high) } else { (high, low) };
            format!("95% {} to {}; ", change(over(low)), change(over(high)))
        });
        let (change, p) = (change(over(pair.ratio)), p_value(pair.p));
        format!("{} {best} is better than {other}: {change} in the geometric mean ({interval}p {p}).", self.factor)
    }

    /// Of which levels nothing is claimed.
    fn too_few(&self) -> Option<String> {
        let few: Vec<String> = self
            .groups
            .iter()
            .filter(|(_, y)| y.len() < FEWEST_OF_A_LEVEL)
            .map(|(level, y)| format!("{level} ({})", y.len()))
            .collect();
        let hardly =
            if self.pairs.is_empty() { " With so few measurements hardly any difference could show." } else { "" };
        (!few.is_empty()).then(|| {
            format!(
                "Nothing is claimed of a level with fewer than {FEWEST_OF_A_LEVEL} measurements: {}.{hardly}",
                few.join(", ")
            )
        })
    }
}

/// A ratio as a change in percent: whole ones, or two digits of what would round to nothing.
fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = if percent.abs() < 0.95 { (1.0 - percent.abs().log10().floor()).clamp(1.0, 6.0) as usize } else { 0 };
    format!("{percent:+.digits$}%")
}
