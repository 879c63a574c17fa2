//! Tables that somebody measured: what was found, for terminals and as charts.

/// What stands behind the answer as plots.
mod charts;

use crate::chart::Chart;
use charts::MOST_ROWS;
use std::fmt::Write as _;
use wt_experiment::classic::{Square, TableAnalysis, p_value};
use wt_experiment::tables::{
    BlockedAnswer, FactorLevels, GroupedAnswer, ListingAnswer, OneSquareAnswer, PathsAnswer, SquareDesign,
    SquaresAnswer, TableAnswer, short, short_or_dash as optional,
};

/// The width and height of a plot in the terminal.
const PLOT: (usize, usize) = (78, 12);
/// So many pairs of levels have lines in the text; the JSON has all.
const MOST_PAIRS: usize = 10;

/// The plots of an answer, by the names that their files may have.
#[must_use]
pub fn table_charts(answer: &TableAnswer) -> Vec<(&'static str, Chart)> {
    match answer {
        TableAnswer::Blocked(answer) => blocked_charts(answer),
        TableAnswer::OneSquare(OneSquareAnswer { design, cells, .. }) => {
            vec![("interaction", charts::interaction(design, cells, &design.value))]
        }
        TableAnswer::Squares(answer) => {
            let SquaresAnswer { design, cells, effects, .. } = answer.as_ref();
            let squares = charts::interaction(design, cells, &design.value);
            vec![("interaction", squares), ("effects", charts::effects(effects))]
        }
        TableAnswer::Listing(answer) => {
            let charts = answer.figures.iter().zip(["relation", "relation-2", "relation-3"]);
            let chart = |x: &[f64], name: &str| charts::scatter(x, &answer.outcomes, name, &answer.design.value);
            charts.map(|((name, x), file)| (file, chart(x, name))).collect()
        }
        TableAnswer::Paths(answer) => vec![("paths", charts::paths(answer))],
        TableAnswer::Grouped(_) | TableAnswer::Means(_) => Vec::new(),
    }
}

/// The answer as a person reads it: first what the data allow one to say, then what that rests on.
#[must_use]
pub fn table_text(answer: &TableAnswer) -> String {
    let mut text = match answer {
        TableAnswer::Blocked(answer) => blocked(answer),
        TableAnswer::Grouped(answer) => grouped(answer),
        TableAnswer::OneSquare(answer) => one_square(answer),
        TableAnswer::Squares(answer) => squares(answer),
        TableAnswer::Listing(answer) => listing(answer),
        TableAnswer::Paths(answer) => paths(answer),
        TableAnswer::Means(answer) => answer.verdict.clone(),
    };
    for note in answer.notes() {
        let _ = write!(text, "\nNote: {note}.");
    }
    text
}

fn plot(chart: &Chart) -> String {
    format!("\n\n{}", chart.to_terminal(PLOT.0, PLOT.1, false).trim_end())
}

fn blocked_charts(answer: &BlockedAnswer) -> Vec<(&'static str, Chart)> {
    let BlockedAnswer { design, analysis: a, .. } = answer;
    // The name of the outcome is long where it lists the series' columns.
    let lists_series = design.blocks.iter().any(|block| design.value.contains(block.as_str()));
    let outcome = if lists_series { "outcome" } else { design.value.as_str() };
    let mut plots = Vec::new();
    if !a.dunnett.is_empty() {
        plots.push(("ratios", charts::ratios(a, &design.factor, outcome)));
        plots.extend(charts::curve(a, &design.factor, outcome).map(|chart| ("levels", chart)));
    }
    if design.blocks.len() > 1 {
        plots.push(("evidence", charts::evidence(a, &design.block)));
    }
    plots
}

fn blocked(answer: &BlockedAnswer) -> String {
    let BlockedAnswer { design, analysis: a, .. } = answer;
    let mut text = format!("{}\n\n", a.verdict);
    text += &description_table(&design.factor, a);
    if let Some((_, chart)) = blocked_charts(answer).first().filter(|(name, _)| *name == "ratios") {
        let _ = write!(text, "\n{}", chart.to_terminal(PLOT.0, PLOT.1.max(a.dunnett.len() + 5), false));
    }
    text + &tests(a, design.blocks.len())
}

fn description_table(factor: &str, a: &TableAnalysis) -> String {
    let width = a.describe.iter().map(|d| d.level.chars().count()).chain([factor.chars().count()]).max().unwrap_or(0);
    let mut text =
        format!("{factor:<width$} {:>10} {:>14} {:>10} {:>12}\n", "mean", "geometric mean", "SD", "SD of mean");
    for d in &a.describe {
        let (mean, geometric, sd, of_mean) =
            (short(d.mean), short(d.geometric_mean), optional(d.sd), optional(d.sd_of_mean));
        let _ = writeln!(text, "{:<width$} {mean:>10} {geometric:>14} {sd:>10} {of_mean:>12}", d.level);
    }
    text
}

/// What the verdict rests on.
fn tests(a: &TableAnalysis, blocks: usize) -> String {
    if blocks < 2 {
        return String::new();
    }
    let mut text = String::from("\nWhat this rests on (ratios: logs within blocks)\n");
    let mut line = |name: &str, figure: String| {
        let _ = writeln!(text, "  {name:<44} {figure}");
    };
    if let Some(t) = a.permutation.log {
        let kind = if t.exact { "all" } else { "a sample of" };
        line("relabelling within blocks", format!("p {} ({kind} {})", p_value(t.p), t.of));
    }
    if let Some(v) = a.anova.blocked_log {
        line("analysis of variance within blocks", f_and_p(v.f, v.p));
        line("noise of one measurement", format!("{:.1}% (CV)", v.all.mse.exp_m1().sqrt() * 100.0));
        if let Some(times) = v.all.relative_efficiency {
            line("trials saved by blocks", format!("{} times as many without", short(times)));
        }
    }
    if let Some(f) = &a.friedman {
        let p = f.p_exact.unwrap_or(f.test.p);
        line("ranks within blocks (Friedman)", format!("Q = {}, p {}", short(f.test.q), p_value(p)));
    }
    if let Some(f) = a.anova.one_way_log {
        line("without regard to blocks (log)", f_and_p(f.f, f.p));
    }
    if let Some(rule) = &a.two_deviations {
        let chance = rule.by_chance / rule.pairs.max(1) as f64 * 100.0;
        let said = format!("{} of {} pairs; so are {chance:.0}% of equal ones", rule.beyond, rule.pairs);
        line(&format!("two deviations of a mean apart (2 × {})", short(rule.of_mean)), said);
    }
    for pair in a.tukey.iter().filter(|pair| pair.p < 0.2).take(MOST_PAIRS) {
        let name = format!("{} / {}", pair.a, pair.b);
        let range = format!("×{:.2} ({:.2} to {:.2}), p {}", pair.ratio, pair.low, pair.high, p_value(pair.p));
        line(&format!("{name} (Tukey, all pairs)"), range);
    }
    let best = a.evidence.iter().flat_map(|e| {
        let last = |series: &[f64]| series.iter().copied().fold(1.0, f64::max);
        [(last(&e.e), &e.a, &e.b), (last(&e.e_worse), &e.b, &e.a)]
    });
    if let Some((e, a_, b_)) = best.max_by(|x, y| x.0.total_cmp(&y.0)) {
        let name = format!("evidence, however often looked at: {a_} over {b_}");
        let needed = a.evidence_needed;
        line(&name, format!("{e:.1} : 1 ({needed:.0} : 1 needed against the first level)"));
    }
    text.trim_end().to_owned()
}

fn f_and_p(f: Option<f64>, p: Option<f64>) -> String {
    format!("F = {}, p {}", optional(f), optional_p(p))
}

/// What a p value is, to stand behind "p ".
fn optional_p(p: Option<f64>) -> String {
    p.map_or_else(|| optional(p), p_value)
}

fn grouped(answer: &GroupedAnswer) -> String {
    let mut text = format!("{}\n", answer.verdict);
    for group in &answer.describe {
        let d = &group.description;
        let _ = write!(
            text,
            "\n{} {}: mean {}, SD of the mean {}, n = {}",
            answer.design.factor,
            group.level,
            short(d.mean),
            optional(d.sd_of_mean),
            d.n
        );
    }
    if let Some(t) = answer.anova.one_way_log {
        let _ = write!(text, "\nOne-way analysis of variance (log): {}", f_and_p(t.f, t.p));
        text += " as if all were equally noisy";
    }
    // Of two levels the pair in any case; of more those that differ.
    let shown = answer.welch.iter().filter(|pair| pair.p < 0.05 || answer.describe.len() == 2);
    for pair in shown.take(MOST_PAIRS) {
        let by = if pair.t.is_some() {
            "each with its own noise (Welch, log)"
        } else {
            "neither with any noise (relabelling)"
        };
        let interval = pair.low.zip(pair.high).map(|(low, high)| format!(" ({low:.3} to {high:.3})"));
        let (interval, p) = (interval.unwrap_or_default(), p_value(pair.p));
        let _ = write!(text, "\n{} / {}, {by}: ×{:.3}{interval}, p {p}", pair.a, pair.b, pair.ratio);
    }
    text
}

fn one_square(answer: &OneSquareAnswer) -> String {
    let design = &answer.design;
    let mut text =
        format!("{}\n\nWhat the four numbers are, for what they are worth ({}):", answer.verdict, design.value);
    let change = |factor: &FactorLevels| format!("{} to {}", factor.levels[0], factor.levels[1]);
    let [first, second] = &design.factors;
    for (effect, change) in answer.effects.iter().zip([change(first), change(second), "interaction".to_owned()]) {
        let _ = write!(text, "\n  {}, {change}: {:+.4}", effect.effect, effect.difference);
        if let Some(ratio) = effect.ratio {
            let _ = write!(text, " (×{ratio:.3})");
        }
    }
    text + &plot(&charts::interaction(design, &answer.cells, &design.value))
}

fn squares(answer: &SquaresAnswer) -> String {
    let design = &answer.design;
    let mut text = format!("{}\n\n{}\n", answer.verdict, square_table(design, &answer.cells));
    for row in &answer.effects {
        let effect = &row.estimate;
        let interval = format!("×{:.3} ({:.3} to {:.3})", effect.ratio, effect.low, effect.high);
        let evidence = effect.e.iter().chain(&effect.e_below).copied().fold(1.0, f64::max);
        let flips = effect.sign_flip.map(|flip| flip.p);
        let _ = writeln!(
            text,
            "{}\n    {interval}, p {} (Holm {}, signs {}), evidence {evidence:.1} : 1",
            row.effect,
            optional_p(effect.p),
            optional_p(effect.p_holm),
            optional_p(flips)
        );
    }
    let _ = write!(
        text,
        "Intervals hold together with 95%. Noise of one measurement {:.1}% (CV). Evidence holds however often one looks; \
         {:.0} : 1 is needed.",
        answer.mse.exp_m1().sqrt() * 100.0,
        answer.evidence_needed
    );
    text + &plot(&charts::interaction(design, &answer.cells, &design.value))
}

/// The four geometric means.
fn square_table(design: &SquareDesign, means: &Square) -> String {
    let [FactorLevels { factor: first, levels: first_levels }, FactorLevels { factor: second, levels: second_levels }] =
        &design.factors;
    let width = first_levels.iter().map(|l| l.chars().count()).max().unwrap_or(0) + first.chars().count() + 1;
    let mut text = format!("{:<width$}", "");
    for level in second_levels {
        let _ = write!(text, " {:>16}", format!("{second} {level}"));
    }
    for (level, row) in first_levels.iter().zip(means) {
        let _ = write!(text, "\n{:<width$} {:>16} {:>16}", format!("{first} {level}"), short(row[0]), short(row[1]));
    }
    text + "\n"
}

fn listing(answer: &ListingAnswer) -> String {
    let first = answer.figures.first();
    let chart = first.map(|(name, x)| charts::scatter(x, &answer.outcomes, name, &answer.design.value));
    answer.verdict.clone() + &chart.map_or_else(String::new, |chart| plot(&chart))
}

fn paths(answer: &PathsAnswer) -> String {
    let chart = charts::paths(answer).to_terminal(PLOT.0, answer.describe.len().min(MOST_ROWS) + 7, false);
    format!("{}\n\n{}", answer.verdict, chart.trim_end())
}
