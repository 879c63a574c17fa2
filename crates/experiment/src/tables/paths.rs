//! A table of many paths, each with the log of a ratio and its standard error: what to expect on the next one.

use super::answer::{DesignKind, PathRatio, PathRatios, PathsAnswer, PathsDesign};
use super::sheet::Sheet;
use super::{SCHEMA_VERSION, SheetError};
use crate::meta::{Effect, Summary, summarise};

/// Names of the columns that make a sheet such a table.
const ESTIMATES: [&str; 3] = ["estimate", "log_ratio", "effect"];
const ERRORS: [&str; 3] = ["se", "standard_error", "stderr"];
/// No log of a ratio is larger: that would be half a billion times as fast.
const LARGEST: f64 = 20.0;

/// The answer, if the sheet is such a table.
pub(super) fn answer(sheet: &Sheet) -> Option<Result<PathsAnswer, SheetError>> {
    let column = |names: [&str; 3]| sheet.columns.iter().position(|c| names.contains(&c.name.as_str()));
    let (estimate, error) = (column(ESTIMATES)?, column(ERRORS)?);
    Some(read(sheet, estimate, error).map(|(names, effects)| summed_up(names, effects)))
}

type Paths = (Vec<String>, Vec<Effect>);

fn read(sheet: &Sheet, estimate: usize, error: usize) -> Result<Paths, SheetError> {
    let estimates = sheet.figures(estimate)?;
    let wrong = |column: usize, row: usize| (sheet.at(row, column), sheet.cells(column)[row].clone());
    if let Some(row) = estimates.iter().position(|log| log.abs() > LARGEST) {
        let (cell, text) = wrong(estimate, row);
        return Err(SheetError::NoLogRatio { cell, text });
    }
    let errors = sheet.figures(error)?;
    if let Some(row) = errors.iter().position(|se| *se <= 0.0 || *se > LARGEST) {
        let (cell, text) = wrong(error, row);
        return Err(SheetError::NoStandardError { cell, text });
    }
    let label = (0..sheet.columns.len()).find(|i| *i != estimate && *i != error);
    let names =
        label.map_or_else(|| (1..=estimates.len()).map(|i| i.to_string()).collect(), |i| sheet.cells(i).to_vec());
    let pairs = estimates.into_iter().zip(errors);
    let effects = pairs.map(|(estimate, standard_error)| Effect { estimate, standard_error });
    Ok((names, effects.collect()))
}

fn summed_up(names: Vec<String>, effects: Vec<Effect>) -> PathsAnswer {
    let summary = summarise(&effects);
    let shown = summary.is_some_and(|s| s.low > 0.0 || s.high < 0.0);
    let row =
        |(path, e): (String, &Effect)| PathRatio { path, ratio: e.estimate.exp(), standard_error: e.standard_error };
    PathsAnswer {
        schema_version: SCHEMA_VERSION,
        design: PathsDesign { kind: DesignKind::Paths, blocks: Vec::new() },
        describe: names.into_iter().zip(&effects).map(row).collect(),
        summary,
        ratios: summary.map(|s| PathRatios {
            ratio: s.mean.exp(),
            low: s.low.exp(),
            high: s.high.exp(),
            prediction_low: s.prediction_low.exp(),
            prediction_high: s.prediction_high.exp(),
        }),
        verdict: verdict(effects.len(), summary, shown),
        difference_shown: shown,
        effects,
    }
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
