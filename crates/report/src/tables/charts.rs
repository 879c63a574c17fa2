//! The plots of an analysis.

use crate::chart::{Axis, Chart, Rule, Series};
use wt_experiment::classic::{PairEvidence, Square, TableAnalysis};
use wt_experiment::tables::{PathsAnswer, SquareDesign, SquareEffect};

/// More rows than this no plot shows.
pub(super) const MOST_ROWS: usize = 40;
/// More pairs than this no plot of evidence can tell apart.
const MOST_LINES: usize = 6;

/// Every level against the first, with simultaneous intervals.
pub(super) fn ratios(a: &TableAnalysis, factor: &str, value: &str) -> Chart {
    let first = a.describe.first().map_or("", |d| d.level.as_str());
    let rows: Vec<(f64, f64, f64, f64)> =
        a.dunnett.iter().enumerate().map(|(i, row)| (i as f64, row.low, row.ratio, row.high)).collect();
    Chart {
        title: format!("{value}: ratio to {factor} {first}"),
        subtitle: "intervals of 95%, all together (Dunnett)".into(),
        x: Axis::linear(factor, ""),
        y: Axis::linear("ratio", ""),
        series: vec![Series::intervals("", &rows)],
        rules: vec![Rule::horizontal(1.0, format!("{factor} {first}"))],
        categories: a.dunnett.iter().map(|row| row.a.clone()).collect(),
    }
}

/// The geometric means along a factor whose levels are numbers, with simultaneous intervals.
pub(super) fn curve(a: &TableAnalysis, factor: &str, value: &str) -> Option<Chart> {
    let levels: Option<Vec<f64>> = a.describe.iter().map(|d| d.level.parse().ok().filter(|l| *l > 0.0)).collect();
    let levels = levels.filter(|l| l.len() > 2)?;
    // Half of Tukey's width for each: two levels differ where their intervals don't touch.
    let half = a.tukey.first().map_or(1.0, |pair| (pair.high / pair.ratio).sqrt());
    let mut rows: Vec<(f64, f64, f64, f64)> = levels
        .iter()
        .zip(&a.describe)
        .map(|(level, d)| (*level, d.geometric_mean / half, d.geometric_mean, d.geometric_mean * half))
        .collect();
    rows.sort_by(|x, y| x.0.total_cmp(&y.0));
    Some(Chart {
        title: format!("{value} by {factor}"),
        subtitle: "geometric means; levels differ where intervals don't touch (95%, all pairs)".into(),
        x: Axis::log2(factor, ""),
        y: Axis::linear(value, ""),
        series: vec![Series::line("", rows.iter().map(|row| (row.0, row.2)).collect()), Series::intervals("", &rows)],
        ..Chart::default()
    })
}

/// The evidence of pairs, block after block.
pub(super) fn evidence(a: &TableAnalysis, block: &str) -> Chart {
    let mut pairs: Vec<_> = a.evidence.iter().collect();
    let last = |e: &[f64]| e.last().copied().unwrap_or(1.0);
    pairs.sort_by(|x, y| last(&y.e).max(last(&y.e_worse)).total_cmp(&last(&x.e).max(last(&x.e_worse))));
    let line = |pair: &&PairEvidence| {
        let (name, e) = if last(&pair.e) >= last(&pair.e_worse) {
            (format!("{} over {}", pair.a, pair.b), &pair.e)
        } else {
            (format!("{} over {}", pair.b, pair.a), &pair.e_worse)
        };
        let start = std::iter::once((0.0, 1.0));
        Series::steps(name, start.chain(e.iter().enumerate().map(|(i, e)| ((i + 1) as f64, *e))).collect())
    };
    Chart {
        title: "Evidence".into(),
        subtitle: "how many to one; holds however often one looks".into(),
        x: Axis::linear(block, ""),
        y: Axis::log10("evidence", ""),
        series: pairs.iter().take(MOST_LINES).map(line).collect(),
        rules: vec![Rule::horizontal(a.evidence_needed, "needed")],
        ..Chart::default()
    }
}

/// Both main effects and the interaction: one line for each level of the second factor.
pub(super) fn interaction(design: &SquareDesign, cells: &Square, value: &str) -> Chart {
    let [first, second] = &design.factors;
    let numbers = first.levels.each_ref().map(|level| level.parse().ok().filter(|number: &f64| number.is_finite()));
    // Where one is a name, both stand at their names.
    let (positions, x) = match numbers {
        [Some(low), Some(high)] => ([low, high], Axis::linear(&first.factor, "")),
        _ => ([0.0, 1.0], Axis::named(&first.factor, first.levels.to_vec())),
    };
    let line = |(j, level): (usize, &String)| {
        let points = (0..2).map(|i| (positions[i], cells[i][j])).collect();
        Series::line(format!("{} {level}", second.factor), points)
    };
    Chart {
        title: format!("{value} by {} and {}", first.factor, second.factor),
        subtitle: "parallel lines: no interaction".into(),
        x,
        y: Axis::linear(value, ""),
        series: second.levels.iter().enumerate().map(line).collect(),
        ..Chart::default()
    }
}

/// The effects of two factors and their interaction, with simultaneous intervals.
pub(super) fn effects(effects: &[SquareEffect; 3]) -> Chart {
    let row = |(i, e): (usize, &SquareEffect)| (i as f64, e.estimate.low, e.estimate.ratio, e.estimate.high);
    let rows: Vec<(f64, f64, f64, f64)> = effects.iter().enumerate().map(row).collect();
    Chart {
        title: "Effects: the second level over the first".into(),
        subtitle: "intervals of 95%, all three together (Bonferroni)".into(),
        x: Axis::linear("effect", ""),
        y: Axis::linear("ratio", ""),
        series: vec![Series::intervals("", &rows)],
        rules: vec![Rule::horizontal(1.0, "no effect")],
        categories: effects.iter().map(|effect| effect.effect.clone()).collect(),
    }
}

/// Outcomes against another figure.
pub(super) fn scatter(x: &[f64], y: &[f64], name: &str, value: &str) -> Chart {
    Chart {
        title: format!("{value} against {name}"),
        x: Axis::linear(name, ""),
        y: Axis::linear(value, ""),
        series: vec![Series::points("", x.iter().copied().zip(y.iter().copied()).collect())],
        ..Chart::default()
    }
}

/// Each path's ratio, their mean, and what to expect on a new one.
pub(super) fn paths(answer: &PathsAnswer) -> Chart {
    let PathsAnswer { describe, effects, summary, .. } = answer;
    let shown = describe.len().min(MOST_ROWS);
    let interval = |(i, e): (usize, &wt_experiment::meta::Effect)| {
        let half = 1.96 * e.standard_error;
        (i as f64, (e.estimate - half).exp(), e.estimate.exp(), (e.estimate + half).exp())
    };
    let rows: Vec<_> = effects.iter().take(shown).enumerate().map(interval).collect();
    let mut series = vec![Series::intervals("each path, 95%", &rows)];
    let mut categories = describe[..shown].iter().map(|path| path.path.clone()).collect::<Vec<_>>();
    if let Some(s) = summary {
        let at = shown as f64;
        series.push(Series::intervals("mean, 95%", &[(at, s.low.exp(), s.mean.exp(), s.high.exp())]));
        let ends = (at + 1.0, s.prediction_low.exp(), s.mean.exp(), s.prediction_high.exp());
        series.push(Series::intervals("a new path, 95%", &[ends]));
        categories.extend(["mean".to_owned(), "a new path".to_owned()]);
    }
    Chart {
        title: "Ratio on each path".into(),
        x: Axis::linear("path", ""),
        y: Axis::linear("ratio", ""),
        series,
        rules: vec![Rule::horizontal(1.0, "no difference")],
        categories,
        ..Chart::default()
    }
}
