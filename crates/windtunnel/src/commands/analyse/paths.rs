//! A table of many paths, each with the log of a ratio and its standard error: what to expect on the next one.

use super::render::Answer;
use super::sheet::Sheet;
use crate::edge::Failure;
use serde_json::json;
use std::fmt::Write as _;
use wt_experiment::meta::{Effect, Summary, summarise};
use wt_report::{Axis, Chart, Rule, Series};

/// Names of the columns that make a sheet such a table.
const ESTIMATES: [&str; 3] = ["estimate", "log_ratio", "effect"];
const ERRORS: [&str; 3] = ["se", "standard_error", "stderr"];
/// More rows than this no plot shows.
const MOST_ROWS: usize = 40;

/// The answer, if the sheet is such a table.
pub(super) fn answer(sheet: &Sheet) -> Option<Result<Answer, Failure>> {
    let column = |names: [&str; 3]| sheet.columns.iter().position(|c| names.contains(&c.name.as_str()));
    let (estimate, error) = (column(ESTIMATES)?, column(ERRORS)?);
    Some(read(sheet, estimate, error).map(|(names, effects)| render(&names, &effects)))
}

type Paths = (Vec<String>, Vec<Effect>);

fn read(sheet: &Sheet, estimate: usize, error: usize) -> Result<Paths, Failure> {
    let estimates = sheet.figures(estimate)?;
    let errors = sheet.outcomes(error)?;
    let label = (0..sheet.columns.len()).find(|i| *i != estimate && *i != error);
    let names =
        label.map_or_else(|| (1..=estimates.len()).map(|i| i.to_string()).collect(), |i| sheet.cells(i).to_vec());
    let pairs = estimates.into_iter().zip(errors);
    let effects = pairs.map(|(estimate, standard_error)| Effect { estimate, standard_error });
    Ok((names, effects.collect()))
}

fn render(names: &[String], effects: &[Effect]) -> Answer {
    let summary = summarise(effects);
    let shown = summary.is_some_and(|s| s.low > 0.0 || s.high < 0.0);
    let verdict = verdict(effects.len(), summary, shown);
    let rows: Vec<_> = names
        .iter()
        .zip(effects)
        .map(|(name, e)| json!({"path": name, "ratio": e.estimate.exp(), "standard_error": e.standard_error}))
        .collect();
    let ratios = summary.map(|s| {
        json!({"ratio": s.mean.exp(), "low": s.low.exp(), "high": s.high.exp(),
            "prediction_low": s.prediction_low.exp(), "prediction_high": s.prediction_high.exp()})
    });
    let json = json!({"schema_version": 1, "design": {"kind": "paths", "blocks": []}, "describe": rows,
        "summary": summary, "ratios": ratios, "verdict": verdict, "difference_shown": shown});
    let chart = chart(names, effects, summary);
    let mut text = verdict;
    let _ = write!(text, "\n\n{}", chart.to_terminal(78, names.len().min(MOST_ROWS) + 7, false).trim_end());
    Answer { text, json, charts: vec![("paths", chart)], difference_shown: shown }
}

fn verdict(paths: usize, summary: Option<Summary>, shown: bool) -> String {
    let Some(s) = summary else {
        return format!(
            "Nothing can be concluded beyond each path: {paths} are too few for a mean; it takes at least 3."
        );
    };
    let times = |log: f64| format!("×{:.2}", log.exp());
    let head = match (shown, s.mean > 0.0) {
        (true, true) => "It helps on average",
        (true, false) => "It costs on average",
        (false, _) => "No effect on average is shown",
    };
    format!(
        "{head}: {} over {} paths (95% {} to {}). On a new path expect {} to {} (95%). {:.0}% of what differs between the \
         paths is more than noise.",
        times(s.mean),
        s.paths,
        times(s.low),
        times(s.high),
        times(s.prediction_low),
        times(s.prediction_high),
        s.i_squared * 100.0
    )
}

fn chart(names: &[String], effects: &[Effect], summary: Option<Summary>) -> Chart {
    let shown = names.len().min(MOST_ROWS);
    let interval = |(i, e): (usize, &Effect)| {
        let half = 1.96 * e.standard_error;
        (i as f64, (e.estimate - half).exp(), e.estimate.exp(), (e.estimate + half).exp())
    };
    let rows: Vec<_> = effects.iter().take(shown).enumerate().map(interval).collect();
    let mut series = vec![Series::intervals("each path, 95%", &rows)];
    let mut categories = names[..shown].to_vec();
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
