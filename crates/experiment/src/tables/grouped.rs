use super::answer::{DesignKind, GroupDescription, GroupedAnovas, GroupedAnswer, GroupedDesign};
use super::{Outcome, SCHEMA_VERSION};
use crate::classic::{Better, FTest, describe, kruskal, one_way_anova, p_value};

/// Levels without blocks.
pub(super) fn answer(outcome: Outcome, factor: String, groups: &[(String, Vec<f64>)]) -> GroupedAnswer {
    let Outcome { value, better, notes } = outcome;
    let raw: Vec<&[f64]> = groups.iter().map(|(_, y)| y.as_slice()).collect();
    let logs: Vec<Vec<f64>> = raw.iter().map(|y| y.iter().map(|v| v.ln()).collect()).collect();
    let log_rows: Vec<&[f64]> = logs.iter().map(Vec::as_slice).collect();
    let anova = GroupedAnovas { one_way_raw: one_way_anova(&raw), one_way_log: one_way_anova(&log_rows) };
    let description =
        |(level, y): &(String, Vec<f64>)| Some(GroupDescription { level: level.clone(), description: describe(y)? });
    let shown = anova.one_way_log.and_then(|test| test.p).is_some_and(|p| p < 0.05);
    GroupedAnswer {
        schema_version: SCHEMA_VERSION,
        notes,
        describe: groups.iter().filter_map(description).collect(),
        kruskal: kruskal(&raw),
        verdict: verdict(&factor, groups, better, anova.one_way_log, shown),
        difference_shown: shown,
        anova,
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

fn verdict(factor: &str, groups: &[(String, Vec<f64>)], better: Better, test: Option<FTest>, shown: bool) -> String {
    let levels = groups.len();
    let Some((test, p)) = test.and_then(|t| Some((t, t.p?))) else {
        return format!(
            "Nothing can be concluded about {factor}: there is no repetition, so there is no measure of the noise. \
             Measure every level in each of at least 4 rounds, in random order."
        );
    };
    let caution = "There are no blocks, so any change of the path between the measurements would look the same as a \
                   difference between the levels.";
    let few = if test.df2 < 5.0 { " With so few measurements hardly any difference could show." } else { "" };
    // Of two there is no question which from which.
    if let ([a, b], true) = (groups, shown) {
        let mean = |(_, y): &(String, Vec<f64>)| y.iter().map(|v| v.ln()).sum::<f64>() / y.len().max(1) as f64;
        let first = (mean(a) > mean(b)) == (better == Better::Higher);
        let (best, other) = if first { (a, b) } else { (b, a) };
        let percent = ((mean(best) - mean(other)).exp() - 1.0) * 100.0;
        return format!(
            "{factor} {} is better than {}: {percent:+.0}% in the geometric mean (p {}). {caution}",
            best.0,
            other.0,
            p_value(p)
        );
    }
    if shown {
        format!("The {levels} levels of {factor} differ (p {}). {caution}", p_value(p))
    } else {
        format!("No difference shown between the {levels} levels of {factor} (p {}).{few} {caution}", p_value(p))
    }
}
