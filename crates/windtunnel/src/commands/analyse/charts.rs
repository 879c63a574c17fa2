//! The plots of an analysis.

use wt_experiment::classic::TableAnalysis;
use wt_report::{Axis, Chart, Rule, Series};

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
    let line = |pair: &&wt_experiment::classic::PairEvidence| {
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
pub(super) fn interaction(factors: &[(String, [String; 2]); 2], cells: &[[f64; 2]; 2], value: &str) -> Chart {
    let [(first, first_levels), (second, second_levels)] = factors;
    let positions: [f64; 2] = std::array::from_fn(|i| first_levels[i].parse().unwrap_or(i as f64));
    let line = |(j, level): (usize, &String)| {
        let points = (0..2).map(|i| (positions[i], cells[i][j])).collect();
        Series::line(format!("{second} {level}"), points)
    };
    Chart {
        title: format!("{value} by {first} and {second}"),
        subtitle: "parallel lines: no interaction".into(),
        x: Axis::linear(first, ""),
        y: Axis::linear(value, ""),
        series: second_levels.iter().enumerate().map(line).collect(),
        ..Chart::default()
    }
}

/// The effects of two factors and their interaction, with simultaneous intervals.
pub(super) fn effects(names: &[String; 3], a: &wt_experiment::classic::TwoByTwoAnalysis) -> Chart {
    let rows: Vec<(f64, f64, f64, f64)> =
        a.effects.iter().enumerate().map(|(i, e)| (i as f64, e.low, e.ratio, e.high)).collect();
    Chart {
        title: "Effects: the second level over the first".into(),
        subtitle: "intervals of 95%, all three together (Bonferroni)".into(),
        x: Axis::linear("effect", ""),
        y: Axis::linear("ratio", ""),
        series: vec![Series::intervals("", &rows)],
        rules: vec![Rule::horizontal(1.0, "no effect")],
        categories: names.to_vec(),
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
