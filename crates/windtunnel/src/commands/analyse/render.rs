//! The answer as text and as JSON.

use super::charts;
use super::design::Design;
use rand::Rng;
use serde_json::{Value, json};
use std::fmt::Write as _;
use wt_experiment::classic::{
    Better, FTest, Table, TableAnalysis, describe, kruskal, one_way_anova, p_value, relation,
};
use wt_experiment::means::{MeansComparison, SummaryMean};
use wt_report::Chart;

/// The width and height of a plot in the terminal.
pub(super) const PLOT: (usize, usize) = (78, 12);

/// What the command answers.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) json: Value,
    /// Plots by the names of their files.
    pub(super) charts: Vec<(&'static str, Chart)>,
    pub(super) difference_shown: bool,
}

/// Puts schema, design and notes around what was found.
pub(super) fn object(design: &Design, description: Value, found: Value) -> Value {
    let mut all = json!({"schema_version": 1, "design": description});
    all["design"]["value"] = json!(design.value);
    all["design"]["better"] = json!(design.better);
    all["notes"] = json!(design.notes);
    if let (Value::Object(all), Value::Object(found)) = (&mut all, found) {
        all.extend(found);
    }
    all
}

pub(super) fn with_notes(mut text: String, design: &Design) -> String {
    for note in &design.notes {
        let _ = write!(text, "\nNote: {note}.");
    }
    text
}

/// Levels in blocks.
pub(super) fn blocked(design: &Design, factor: &str, block: &str, table: &Table, a: &TableAnalysis) -> Answer {
    let description = json!({"kind": "blocked", "factor": factor, "levels": table.levels(), "block": block,
        "blocks": table.blocks()});
    let found = serde_json::to_value(a).unwrap_or_default();
    let value = &design.value;
    // The name of the outcome is long where it lists the series' columns.
    let outcome = if table.blocks().iter().any(|b| value.contains(b.as_str())) { "outcome" } else { value.as_str() };
    let mut plots = Vec::new();
    if !a.dunnett.is_empty() {
        plots.push(("ratios", charts::ratios(a, factor, outcome)));
        plots.extend(charts::curve(a, factor, outcome).map(|chart| ("levels", chart)));
    }
    if table.blocks().len() > 1 {
        plots.push(("evidence", charts::evidence(a, block)));
    }
    let mut text = format!("{}\n\n", a.verdict);
    text += &description_table(factor, a);
    if let Some((_, chart)) = plots.first().filter(|(name, _)| *name == "ratios") {
        let _ = write!(text, "\n{}", chart.to_terminal(PLOT.0, PLOT.1.max(a.dunnett.len() + 5), false));
    }
    text += &tests(a, table.blocks().len());
    Answer {
        text: with_notes(text, design),
        json: object(design, description, found),
        charts: plots,
        difference_shown: a.difference_shown,
    }
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
        line("relabelling within blocks", format!("p = {} ({kind} {})", short(t.p), t.of));
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
        line("ranks within blocks (Friedman)", format!("Q = {}, p = {}", short(f.test.q), short(p)));
    }
    if let Some(f) = a.anova.one_way_log {
        line("without regard to blocks (log)", f_and_p(f.f, f.p));
    }
    for pair in a.tukey.iter().filter(|pair| pair.p < 0.2).take(10) {
        let name = format!("{} / {}", pair.a, pair.b);
        let range = format!("×{:.2} ({:.2} to {:.2}), p = {}", pair.ratio, pair.low, pair.high, short(pair.p));
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
    format!("F = {}, p = {}", optional(f), optional(p))
}

/// Levels without blocks.
pub(super) fn grouped(design: &Design, factor: &str, groups: &[(String, Vec<f64>)]) -> Answer {
    let raw: Vec<&[f64]> = groups.iter().map(|(_, y)| y.as_slice()).collect();
    let logs: Vec<Vec<f64>> = raw.iter().map(|y| y.iter().map(|v| v.ln()).collect()).collect();
    let log_rows: Vec<&[f64]> = logs.iter().map(Vec::as_slice).collect();
    let (raw_test, log_test, ranks) = (one_way_anova(&raw), one_way_anova(&log_rows), kruskal(&raw));
    let rows: Vec<Value> = groups
        .iter()
        .filter_map(|(level, y)| {
            let mut row = serde_json::to_value(describe(y)?).ok()?;
            row["level"] = json!(level);
            Some(row)
        })
        .collect();
    let p = log_test.and_then(|t| t.p);
    let shown = p.is_some_and(|p| p < 0.05);
    let verdict = grouped_verdict(factor, groups.len(), log_test, shown);
    let mut text = format!("{verdict}\n");
    for (level, y) in groups {
        if let Some(d) = describe(y) {
            let _ = write!(
                text,
                "\n{factor} {level}: mean {}, SD of the mean {}, n = {}",
                short(d.mean),
                optional(d.sd_of_mean),
                d.n
            );
        }
    }
    if let Some(t) = log_test {
        let _ = write!(text, "\nOne-way analysis of variance (log): {}", f_and_p(t.f, t.p));
    }
    let levels: Vec<&String> = groups.iter().map(|(level, _)| level).collect();
    let description = json!({"kind": "one-way", "factor": factor, "levels": levels, "blocks": []});
    let found = json!({"describe": rows, "anova": {"one_way_raw": raw_test, "one_way_log": log_test},
        "kruskal": ranks, "verdict": verdict, "difference_shown": shown});
    Answer {
        text: with_notes(text, design),
        json: object(design, description, found),
        charts: Vec::new(),
        difference_shown: shown,
    }
}

fn grouped_verdict(factor: &str, levels: usize, test: Option<FTest>, shown: bool) -> String {
    let Some((test, p)) = test.and_then(|t| Some((t, t.p?))) else {
        return format!(
            "Nothing can be concluded about {factor}: there is no repetition, so there is no measure of the noise. \
             Measure every level in each of at least 4 rounds, in random order."
        );
    };
    let caution = "There are no blocks, so any change of the path between the measurements would look the same as a \
                   difference between the levels.";
    let few = if test.df2 < 5.0 { " With so few measurements hardly any difference could show." } else { "" };
    if shown {
        format!("The {levels} levels of {factor} differ (p {}). {caution}", p_value(p))
    } else {
        format!("No difference shown between the {levels} levels of {factor} (p {}).{few} {caution}", p_value(p))
    }
}

/// A list of hosts.
pub(super) fn listing(
    design: &Design,
    label: &str,
    rows: &[(String, f64)],
    figures: &[(String, Vec<f64>)],
    rng: &mut impl Rng,
) -> Answer {
    let y: Vec<f64> = rows.iter().map(|(_, y)| *y).collect();
    let all = describe(&y);
    let value = &design.value;
    let relations: Vec<(String, _)> =
        figures.iter().filter_map(|(name, x)| Some((name.clone(), relation(x, &y, rng)?))).collect();
    let clear: Vec<&(String, _)> = relations.iter().filter(|(_, r)| r.p * relations.len() as f64 <= 0.05).collect();
    let mut verdict = match all {
        Some(d) => format!(
            "{} measurements of {value}: mean {} ± {} (SD of the mean), SD of a single one {}.",
            d.n,
            short(d.mean),
            optional(d.sd_of_mean),
            optional(d.sd)
        ),
        None => String::new(),
    };
    for (name, r) in &relations {
        let relation = if clear.iter().any(|(other, _)| other == name) {
            let way = if r.spearman > 0.0 { "rises" } else { "falls" };
            format!(" It {way} with {name} (rank correlation {:.2}, p {}).", r.spearman, p_value(r.p))
        } else {
            format!(" No relation to {name} is shown (rank correlation {:.2}, p {}).", r.spearman, p_value(r.p))
        };
        verdict += &relation;
    }
    verdict += &format!(" One measurement of each {label} says nothing about any single one.");
    let repeated = rows.len() - rows.iter().map(|(name, _)| name).collect::<std::collections::HashSet<_>>().len();
    if repeated > 0 {
        verdict += &format!(" {repeated} rows repeat a {label}; they count as if independent.");
    }
    let charts = figures.iter().zip(["relation", "relation-2", "relation-3"]);
    let charts: Vec<_> = charts.map(|((name, x), file)| (file, charts::scatter(x, &y, name, value))).collect();
    let mut text = verdict.clone();
    if let Some((_, chart)) = charts.first() {
        let _ = write!(text, "\n\n{}", chart.to_terminal(PLOT.0, PLOT.1, false).trim_end());
    }
    let shown = !clear.is_empty();
    let description = json!({"kind": "listing", "label": label, "rows": rows.len(), "blocks": []});
    let list: Vec<Value> = relations
        .iter()
        .map(|(name, r)| json!({"column": name, "spearman": r.spearman, "p": r.p, "slope_percent": r.slope.map(|s| s * 100.0)}))
        .collect();
    let found = json!({"describe": [all], "relations": list, "verdict": verdict, "difference_shown": shown});
    Answer { text: with_notes(text, design), json: object(design, description, found), charts, difference_shown: shown }
}

/// Two means.
pub(super) fn means(a: SummaryMean, b: SummaryMean, c: &MeansComparison) -> Answer {
    let shown = c.p < 0.05;
    let verdict = format!(
        "{}: {} ± {} against {} ± {} differ by {} ± {} (p {}); ratio {:.3}, 95% {:.3} to {:.3}. The two share no \
         rounds, so whatever else differed between them is part of this: not a controlled comparison.",
        if shown { "A difference is shown" } else { "No difference shown" },
        short(a.mean),
        short(a.sd_of_mean),
        short(b.mean),
        short(b.sd_of_mean),
        short(c.difference),
        short(c.standard_error),
        p_value(c.p),
        c.ratio,
        c.low,
        c.high
    );
    let better = json!(Better::Higher);
    let json = json!({"schema_version": 1, "design": {"kind": "two-means", "better": better}, "means": [a, b],
        "comparison": c, "verdict": verdict, "difference_shown": shown});
    Answer { text: verdict, json, charts: Vec::new(), difference_shown: shown }
}

pub(super) fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

/// Four significant digits.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..=6).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    format!("{value:.*}", usize::try_from(3 - magnitude).unwrap_or(0))
}
