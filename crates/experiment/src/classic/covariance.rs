use crate::describe::{Description, describe, mean};
use crate::distributions::t_quantile;
use serde::Serialize;

/// The share of intervals that cover the true difference.
const CONFIDENCE: f64 = 0.95;

/// An outcome, and what else was known of the moment: the rate at which a modem had connected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CovariedOutcome {
    /// The outcome.
    pub y: f64,
    /// The covariate, where it is known.
    pub x: Option<f64>,
}

/// Groups of outcomes against the first of them, at one and the same value of a covariate where all know it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupComparison {
    /// The covariate; nothing where it isn't known of every outcome, doesn't vary within the groups, or leaves no degree of
    /// freedom.
    pub covariate: Option<CovariateEffect>,
    /// Each group.
    pub groups: Vec<GroupMean>,
}

/// What a covariate does within the groups.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CovariateEffect {
    /// By how much the outcome changes for each unit of it.
    pub slope: f64,
    /// The mean of all its values: adjusted means hold there.
    pub at: f64,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupMean {
    /// Its outcomes by themselves; nothing without any.
    pub own: Option<Description>,
    /// The mean that the group would have at the covariate's mean.
    pub adjusted: Option<f64>,
    /// Its standard error.
    pub adjusted_error: Option<f64>,
    /// How far it lies above the first group, at the covariate's mean where that is known; nothing for the first.
    pub above_first: Option<f64>,
    /// The 95 % interval's lower end.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// Sums within one group.
struct Within {
    n: f64,
    mean_y: f64,
    mean_x: f64,
    /// Sums of squares and products about the group's means.
    yy: f64,
    xy: f64,
    xx: f64,
}

impl Within {
    fn of(group: &[CovariedOutcome]) -> Self {
        let ys: Vec<f64> = group.iter().map(|one| one.y).collect();
        let xs: Vec<f64> = group.iter().map(|one| one.x.unwrap_or(0.0)).collect();
        let (mean_y, mean_x) = (mean(&ys), mean(&xs));
        let products =
            |a: &[f64], ma: f64, b: &[f64], mb: f64| -> f64 { a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum() };
        Self {
            n: group.len() as f64,
            mean_y,
            mean_x,
            yy: products(&ys, mean_y, &ys, mean_y),
            xy: products(&xs, mean_x, &ys, mean_y),
            xx: products(&xs, mean_x, &xs, mean_x),
        }
    }
}

/// Compares groups with the first by least squares: a mean for each, one variance and, where the covariate is known of all and
/// varies within the groups, one slope.
///
/// What this leaves out: nothing was assigned at random, and whoever looked while the table grew has no such intervals.
#[must_use]
pub fn groups_against_first(groups: &[Vec<CovariedOutcome>]) -> GroupComparison {
    let all = || groups.iter().flatten();
    let count = all().count() as f64;
    let sums: Vec<Option<Within>> = groups.iter().map(|group| (!group.is_empty()).then(|| Within::of(group))).collect();
    let filled = || sums.iter().flatten();
    let sum = |of: fn(&Within) -> f64| filled().map(of).sum::<f64>();
    let known = all().all(|one| one.x.is_some());
    let (xx, xy, yy) = (sum(|one| one.xx), sum(|one| one.xy), sum(|one| one.yy));
    let means = filled().count() as f64;
    let at = all().filter_map(|one| one.x).sum::<f64>() / count;
    // What is left of rounding isn't a spread.
    let spread = xx > 1e-12 * all().filter_map(|one| one.x).map(|x| x * x).sum::<f64>();
    let effect = (known && spread && count - means >= 2.0).then(|| CovariateEffect { slope: xy / xx, at });
    let (explained, df) = effect.map_or((0.0, count - means), |own| (own.slope * xy, count - means - 1.0));
    let variance = (df >= 1.0).then(|| ((yy - explained) / df).max(0.0));
    let mean_of = |one: &Within| one.mean_y - effect.map_or(0.0, |own| own.slope * (one.mean_x - own.at));
    let first = sums.first().and_then(Option::as_ref);
    let group = |(place, group): (usize, &Vec<CovariedOutcome>)| {
        let own = sums[place].as_ref();
        let distance = |from: f64, one: &Within| effect.map_or(0.0, |_| (one.mean_x - from).powi(2) / xx);
        let adjusted = own.filter(|_| effect.is_some());
        let other = first.zip(own).filter(|_| place > 0);
        let above_first = other.map(|(first, own)| mean_of(own) - mean_of(first));
        let half = other.zip(variance).map(|((first, own), variance)| {
            let spread = 1.0 / first.n + 1.0 / own.n + distance(first.mean_x, own);
            t_quantile(f64::midpoint(1.0, CONFIDENCE), df) * (variance * spread).sqrt()
        });
        GroupMean {
            own: describe(&group.iter().map(|one| one.y).collect::<Vec<_>>()),
            adjusted: adjusted.map(mean_of),
            adjusted_error: adjusted.zip(variance).map(|(own, v)| (v * (1.0 / own.n + distance(at, own))).sqrt()),
            above_first,
            low: above_first.zip(half).map(|(above, half)| above - half),
            high: above_first.zip(half).map(|(above, half)| above + half),
        }
    };
    GroupComparison { covariate: effect, groups: groups.iter().enumerate().map(group).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(pairs: &[(f64, f64)]) -> Vec<CovariedOutcome> {
        pairs.iter().map(|(y, x)| CovariedOutcome { y: *y, x: Some(*x) }).collect()
    }

    fn close(got: Option<f64>, wanted: f64) {
        assert!(got.is_some_and(|got| (got - wanted).abs() < 1e-6 * wanted.abs()), "{got:?}, not {wanted}");
    }

    #[test]
    fn a_modem_that_connects_faster_is_taken_out() {
        let groups = [
            group(&[(1500.0, 28.8), (1600.0, 31.2), (1700.0, 33.6), (1580.0, 31.2)]),
            group(&[(1650.0, 31.2), (1720.0, 33.6), (1500.0, 28.8)]),
        ];
        // By the normal equations of all three unknowns at once, and Student's t with 4 degrees of freedom, 2.7764451.
        let found = groups_against_first(&groups);
        let effect = found.covariate.unwrap();
        close(Some(effect.slope), 43.75);
        close(Some(effect.at), 31.2);
        close(found.groups[0].adjusted, 1595.0);
        close(found.groups[1].adjusted, 1623.3333333);
        close(found.groups[0].adjusted_error, 9.5742710776);
        close(found.groups[1].adjusted_error, 11.055415968);
        close(found.groups[1].above_first, 28.3333333);
        close(found.groups[1].low, -12.272011);
        close(found.groups[1].high, 68.938678);
        assert_eq!((found.groups[0].above_first, found.groups[0].own.unwrap().n), (None, 4));
    }

    #[test]
    fn a_difference_that_is_all_the_lines_is_none() {
        // Both lie on 10 + 2x; one happened to be measured on better lines.
        let line = |xs: [f64; 3]| group(&xs.map(|x| (10.0 + 2.0 * x, x)));
        let found = groups_against_first(&[line([1.0, 2.0, 3.0]), line([11.0, 12.0, 14.0])]);
        assert!(found.groups[1].own.unwrap().mean > found.groups[0].own.unwrap().mean + 20.0);
        assert!(found.groups[1].above_first.unwrap().abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn without_a_covariate_of_all_it_is_left_out() {
        let known = group(&[(1.0, 5.0), (3.0, 6.0)]);
        let unknown: Vec<CovariedOutcome> = [4.0, 6.0].map(|y| CovariedOutcome { y, x: None }).to_vec();
        let constant = group(&[(4.0, 0.1), (6.0, 0.1)]);
        for groups in [[known.clone(), unknown], [group(&[(1.0, 0.1), (3.0, 0.1)]), constant]] {
            let found = groups_against_first(&groups);
            assert_eq!((found.covariate, found.groups[1].adjusted), (None, None));
            // The pooled variance is 2, with 2 degrees of freedom; t is 4.3026527.
            close(found.groups[1].above_first, 3.0);
            close(found.groups[1].high, 3.0 + 4.3026527 * 2.0_f64.sqrt());
        }
        let single = groups_against_first(&[known, vec![], group(&[(9.0, 1.0)])]);
        assert_eq!(single.groups[1].own, None);
        assert!(single.groups[2].above_first.is_some() && single.groups[1].above_first.is_none());
        assert!(groups_against_first(&[]).groups.is_empty());
        assert_eq!(groups_against_first(&[group(&[(9.0, 1.0)])]).groups[0].adjusted, None);
    }
}
