//! Tables that somebody measured: read, recognised and analysed.
//!
//! [`analyse_table`] takes CSV, finds out what design it is (levels in blocks, groups, a 2 × 2, a list, many paths), and
//! gives a [`TableAnswer`], which says first what the table allows one to say. Reads from what the caller opened, and
//! bounds what it keeps.

/// What was found, with its JSON contract.
mod answer;
/// What a sheet is.
mod design;
/// Why a sheet can't be analysed.
mod error;
/// Two factors of two levels.
mod factorial;
/// Levels without blocks.
mod grouped;
/// Lists of hosts.
mod listing;
/// What a column's name says of what is better.
mod names;
/// Many paths together.
mod paths;
/// A CSV file.
mod sheet;
/// Our own tables of trials.
mod trials;

pub use answer::{
    BlockedAnswer, BlockedDesign, DesignKind, FactorLevels, GroupDescription, GroupedAnovas, GroupedAnswer,
    GroupedDesign, ListingAnswer, ListingDesign, ListingRelation, MeansAnswer, MeansDesign, OneSquareAnswer, PathRatio,
    PathRatios, PathsAnswer, PathsDesign, SquareChange, SquareDesign, SquareEffect, SquaresAnswer, TableAnswer,
};
pub use design::NamedColumns;
pub use error::{CellName, ColumnRole, SheetError};

use crate::classic::{Square, p_value, two_by_two_in_blocks};
use crate::means::{SummaryMean, compare_means};
use design::{Design, Kind};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use std::io::Read;

/// The version of the answers' objects.
const SCHEMA_VERSION: u32 = 1;

/// What is asked of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRequest {
    /// What the file is called in messages.
    pub file: String,
    /// The columns that somebody named.
    pub columns: NamedColumns,
    /// Seeds what is sampled where there are too many relabellings to try all.
    pub seed: u64,
}

/// Reads and analyses a table.
///
/// # Errors
/// [`SheetError`], which names line and column of what is wrong.
pub fn analyse_table(input: impl Read, request: &TableRequest) -> Result<TableAnswer, SheetError> {
    let mut sheet = sheet::Sheet::read(input, &request.file)?;
    let left_out = trials::keep_rounds(&mut sheet);
    if request.columns.values.is_empty()
        && let Some(answer) = paths::answer(&sheet)
    {
        return answer.map(TableAnswer::Paths);
    }
    let Design { kind, value, better, mut notes } = design::recognise(&sheet, &request.columns)?;
    notes.splice(..0, left_out);
    let outcome = Outcome { value, better, notes };
    let mut rng = ChaCha12Rng::seed_from_u64(request.seed);
    Ok(match kind {
        Kind::Blocked { factor, block, table } => {
            let analysis = crate::classic::analyse(&table, better, &factor, &block, &mut rng);
            // Outcomes were read as finite numbers above zero.
            let analysis = analysis.ok_or_else(|| SheetError::NotPositive { file: request.file.clone() })?;
            TableAnswer::Blocked(Box::new(BlockedAnswer::new(outcome, factor, block, &table, analysis)))
        }
        Kind::Grouped { factor, groups } => TableAnswer::Grouped(grouped::answer(outcome, factor, &groups)),
        Kind::TwoByTwo { factors, block, blocks } => {
            let squares: Vec<Square> = blocks.iter().map(|(_, square)| *square).collect();
            match (block, two_by_two_in_blocks(&squares, &mut rng)) {
                (Some(block), Some(analysis)) => {
                    TableAnswer::Squares(Box::new(factorial::in_blocks(outcome, factors, block, &blocks, analysis)))
                }
                _ => TableAnswer::OneSquare(factorial::single(outcome, factors, &squares[0])),
            }
        }
        Kind::Listing { label, rows, figures } => {
            TableAnswer::Listing(listing::answer(outcome, label, &rows, figures, &mut rng))
        }
    })
}

/// The outcome's column, what is good of it, and what was left out of the sheet.
struct Outcome {
    value: String,
    better: crate::classic::Better,
    notes: Vec<String>,
}

/// Compares two published means; `None` unless both are above zero, with standard deviations of at least zero and not
/// both zero.
#[must_use]
pub fn analyse_means(a: SummaryMean, b: SummaryMean) -> Option<TableAnswer> {
    let c = compare_means(a, b)?;
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
    Some(TableAnswer::Means(MeansAnswer::new(a, b, c, verdict, shown)))
}

/// Four significant digits, or a dash.
#[must_use]
pub fn short_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

/// Four significant digits.
#[must_use]
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..=6).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    format!("{value:.*}", usize::try_from(3 - magnitude).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<TableAnswer, SheetError> {
        let request = TableRequest { file: "t.csv".into(), columns: NamedColumns::default(), seed: 1 };
        analyse_table(text.as_bytes(), &request)
    }

    #[test]
    fn of_our_own_tables_the_trials_of_rounds_count_against_the_current_settings() {
        let mut text = "trial,phase,round,order,arm,label,status,goodput_bps,bytes\n".to_owned();
        text += "1,pilot,0,0,0,current,completed,999,1\n2,warm-up,0,0,0,current,completed,998,1\n";
        for round in 1..=6 {
            // Drawn so that the current settings come last, and in each round one attempt was spoilt.
            let at = |arm: u32, label: &str, status: &str, rate: u32| {
                format!("{round}{arm},round,{round},1,{arm},{label},{status},{rate},1\n")
            };
            text += &at(1, "rwin=8192", "invalid", 0);
            text += &at(1, "rwin=8192", "incomplete", 500 + round);
            text += &at(0, "current", "completed", 1000 + round);
        }
        let Ok(TableAnswer::Blocked(answer)) = of(&text) else { panic!("{:?}", of(&text)) };
        let told = serde_json::to_value(&answer).unwrap();
        assert_eq!(told["design"]["levels"], serde_json::json!(["current", "rwin=8192"]), "{told:#}");
        assert_eq!(told["design"]["blocks"].as_array().map(Vec::len), Some(6), "{told:#}");
        let left_out = "8 of 20 rows are left out: pilots, warm-ups, and attempts in which nothing was measured";
        assert_eq!(told["notes"][0], left_out, "{told:#}");
    }

    #[test]
    fn every_design_has_the_kind_of_its_contract() {
        for (text, kind) in [
            ("mtu,s1,s2\n1,2,3\n2,3,4\n", "blocked"),
            ("mtu;1;2\n1;2;3\n2;3;4\n", "blocked"),
            ("mtu,rate\n1,3\n2,4\n", "one-way"),
            ("mtu,rwin,rate\n1,5,3\n1,6,3\n2,5,4\n2,6,4\n", "two-by-two"),
            ("host,rate\na,3\nb,4\nc,5\nd,6\n", "listing"),
            ("path,log_ratio,se\na,0.1,0.1\nb,0.2,0.1\nc,0.1,0.2\n", "paths"),
        ] {
            let answer = of(text).unwrap();
            let object = serde_json::to_value(&answer).unwrap();
            assert_eq!((&object["design"]["kind"], &object["schema_version"]), (&kind.into(), &1.into()), "{text}");
            assert_eq!(object["verdict"], answer.verdict());
            assert_eq!(object["difference_shown"], answer.difference_shown());
        }
        let means = [1602.0, 1548.0].map(|mean| SummaryMean { mean, sd_of_mean: 90.0 });
        let object = serde_json::to_value(analyse_means(means[0], means[1])).unwrap();
        assert_eq!(object["design"], serde_json::json!({"kind": "two-means", "better": "higher"}));
    }

    #[test]
    fn the_outcome_is_what_is_called_so_or_has_a_unit_or_is_the_only_column_of_figures() {
        for (head, value) in [("cc,round,x", "x"), ("cc,mbit,level", "mbit"), ("cc,ms,rate", "rate")] {
            let rows: String = (1..9).map(|n| format!("{},{},{}\n", ["a", "b"][n % 2], n.div_ceil(2), n + 7)).collect();
            let answer = serde_json::to_value(of(&format!("{head}\n{rows}")).unwrap()).unwrap();
            assert_eq!(answer["design"]["value"], value, "{head}");
        }
    }

    #[test]
    fn mistakes_are_variants_with_their_places() {
        assert!(matches!(of(""), Err(SheetError::NoHeader { .. })));
        let wide = (0..200_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let found = of(&format!("{wide}\n{wide}\n")).unwrap_err();
        assert!(matches!(found, SheetError::TooManyColumns { found: 200_000, .. }), "{found}");
        assert!(matches!(of("a,b\n1,2\n2,3\n"), Err(SheetError::OutcomeUnclear { several: false, .. })));
        assert!(matches!(of("a,run\nx,1\ny,2\n"), Err(SheetError::OutcomeUnclear { several: false, .. })));
        let Err(SheetError::NotANumber { cell, text }) = of("mtu,s1,s2\n1,2,3\n2,fast,3\n") else { panic!("no error") };
        assert_eq!((cell.line, cell.column, cell.name.as_str(), text.as_str()), (3, 2, "s1", "fast"));
    }

    /// Stands behind every verdict on levels without blocks.
    const CAUTION: &str = " There are no blocks, so any change of the path between the measurements would look the same as a \
                           difference between the levels.";

    /// Ten rounds of two levels, of which b has two fifths more, with an outcome of this name.
    fn rounds(outcome: &str) -> String {
        let row = |n: usize| format!("{n},a,{}\n{n},b,{}\n", 100 + n, 140 + n);
        format!("round,setting,{outcome}\n{}", (1..=10).map(row).collect::<String>())
    }

    #[test]
    fn less_is_better_of_what_nobody_wants_and_what_is_taken_for_better_is_said() {
        let told = |outcome: &str, values: &[&str]| {
            let values = values.iter().map(|&name| name.to_owned()).collect();
            let columns = NamedColumns { values, ..NamedColumns::default() };
            let request = TableRequest { file: "t.csv".into(), columns, seed: 1 };
            let answer = analyse_table(rounds(outcome).as_bytes(), &request).unwrap();
            let best = if answer.verdict().starts_with("Use setting a") { "a" } else { "b" };
            (best, answer.notes().join("; "))
        };
        for name in ["loss_rate", "error_rate", "retransmission_rate"] {
            let note = format!("smaller {name} counts as better (otherwise --higher-is-better)");
            assert_eq!(told(name, &[]), ("a", note));
        }
        for name in ["retransmits", "loss", "lateness", "ttfb", "fct", "drops"] {
            assert_eq!(told(name, &[name]).0, "a", "{name}");
        }
        assert_eq!(told("load_ms", &[]), ("a", String::new()));
        for name in ["rate", "goodput", "throughput_at_loss", "speed", "rate_mbps"] {
            assert_eq!(told(name, &[]), ("b", String::new()), "{name}");
        }
        let note = "larger hit_rate counts as better (otherwise --lower-is-better)".to_owned();
        assert_eq!(told("hit_rate", &[]), ("b", note));
        assert_eq!(told("Bandwidth (Mbits/sec)", &[]), ("b", String::new()));
        let note = "larger Requests/sec counts as better (otherwise --lower-is-better)".to_owned();
        assert_eq!(told("Requests/sec", &[]), ("b", note));
    }

    #[test]
    fn our_own_tables_of_trials_are_compared_by_their_settings() {
        let row = |round: usize, order: usize, arm: usize| {
            let (label, gain) = [("current", 100), ("initcwnd=20", 120)][arm];
            format!("{round},{order},{arm},{label},{label},completed,{},250000,{}\n", gain + round, round * 2 + order)
        };
        let head = "round,order,arm,label,settings,status,goodput_bps,elapsed_us,trial\n";
        let text: String = (1..=10).flat_map(|n| [row(n, 1, n % 2), row(n, 2, 1 - n % 2)]).collect();
        let verdict = |text: &str| of(text).unwrap().verdict().to_owned();
        let found = verdict(&format!("{head}{text}"));
        assert!(found.starts_with("Use label initcwnd=20"), "{found}");
        // Of others' tables the order isn't what was varied, if anything else was, and the bytes may be.
        assert!(verdict("round,order,mtu,rate\n1,1,a,3\n1,2,b,4\n2,1,b,4\n2,2,a,3\n").contains("2 levels of mtu"));
        assert!(verdict("round,bytes,rate\n1,10,3\n1,20,4\n2,20,4\n2,10,3\n").contains("2 levels of bytes"));
    }

    #[test]
    fn without_blocks_a_level_counts_by_its_own_noise_and_from_four_measurements_on() {
        let verdict = |rows: &[(&str, &[&str])]| {
            let row =
                |(level, values): &(&str, &[&str])| values.iter().map(|v| format!("{level},{v}\n")).collect::<String>();
            let answer = of(&format!("setting,load_ms\n{}", rows.iter().map(row).collect::<String>())).unwrap();
            (answer.difference_shown(), answer.verdict().replace(CAUTION, ""))
        };
        let few = verdict(&[("a", &["10", "10.1"]), ("b", &["11", "11.1"])]);
        let says = "No difference shown between the 2 levels of setting. Nothing is claimed of a level with fewer than 4 measurements: \
                    a (2), b (2). With so few measurements hardly any difference could show.";
        assert_eq!(few, (false, says.to_owned()));
        // The noise of the one says nothing of that of the other.
        let quiet = ["100", "101", "99", "100", "101", "99", "100", "101", "99", "100", "101", "99"];
        let (shown, said) = verdict(&[("new", &["60", "95", "80", "95"]), ("old", &quiet)]);
        assert!(!shown && said.starts_with("No difference shown between the 2 levels of setting (p = 0."), "{said}");
        let four = ["10", "10.1", "10.2", "10.1"];
        let (shown, said) = verdict(&[("a", &four), ("b", &["11", "11.1", "11.2", "11.1"])]);
        assert!(shown, "{said}");
        assert_eq!(said, "setting a is better than b: -9% in the geometric mean (95% -10% to -8%; p < 0.0001).");
        let same = verdict(&[("a", &["10"; 12]), ("b", &["10"; 7])]);
        assert_eq!(same, (false, "No difference shown between the 2 levels of setting (p = 1.00).".to_owned()));
        let apart = verdict(&[("a", &["3.0"; 9]), ("b", &["3.3"; 9])]);
        assert_eq!(apart, (true, "setting a is better than b: -9% in the geometric mean (p < 0.0001).".to_owned()));
        let (_, said) =
            verdict(&[("a", &["3.001", "3.002", "3.001", "3.002"]), ("b", &["3.01", "3.011", "3.01", "3.011"])]);
        assert!(
            said.starts_with("setting a is better than b: -0.30% in the geometric mean (95% -0.33% to -0.27%"),
            "{said}"
        );
        let three = verdict(&[("a", &four), ("b", &["11", "11.1", "11.2", "11.1"]), ("c", &["9"])]);
        let says = "The 3 levels of setting differ (p < 0.0001, all pairs together). Nothing is claimed of a level with fewer than 4 \
                    measurements: c (1).";
        assert_eq!(three, (true, says.to_owned()));
    }

    #[test]
    fn a_point_that_may_separate_thousands_is_refused_and_decimals_are_read() {
        let table = |separator: char, cells: [&str; 4]| {
            let [a, b, c, d] = cells;
            format!("day;mtu;goodput\n1;1500;{a}\n1;1492;{b}\n2;1500;{c}\n2;1492;{d}\n")
                .replace(';', &separator.to_string())
        };
        for cells in [["928", "1.026", "963", "1.041"], ["928", "12.026", "963", "904"]] {
            let Err(SheetError::PointUnclear { cell, text }) = of(&table(';', cells)) else {
                panic!("{cells:?} is read")
            };
            assert_eq!((cell.line, cell.name.as_str(), text.as_str()), (3, "goodput", cells[1]));
            assert!(of(&table(',', cells)).is_ok(), "{cells:?} with commas between");
        }
        for cells in [
            ["928.000", "1.026", "963.000", "1.041"],
            ["928", "1.02", "963", "1.041"],
            ["928", "0.026", "963", "1.041"],
            ["9280", "1.026", "963", "1.041"],
            ["928", "1026", "963", "1041"],
        ] {
            assert!(of(&table(';', cells)).is_ok(), "{cells:?}");
        }
    }

    #[test]
    fn what_has_no_finite_answer_is_refused() {
        for (text, says) in [
            ("path,log_ratio,se\na,800,1\nb,800,1\nc,800,1\n", "'800' is no log of a ratio"),
            ("path,log_ratio,se\na,1,1\nb,-20.5,1\nc,1,1\n", "(is it a percentage?)"),
            ("path,log_ratio,se\na,1,1\nb,1,900\nc,1,1\n", "'900' is no standard error"),
            ("mtu,rate\n1,1e308\n2,1.5e308\n", "'1e308' is no measurement"),
            ("mtu,rate\n1,1e-308\n2,1\n", "'1e-308' is no measurement"),
        ] {
            let found = of(text).unwrap_err().to_string();
            assert!(found.contains(says), "{found}");
        }
        let mean = |mean: f64, sd_of_mean: f64| SummaryMean { mean, sd_of_mean };
        assert_eq!(analyse_means(mean(1e308, 1e308), mean(1e-308, 1e-308)), None);
        assert_eq!(analyse_means(mean(1.0, 1e4), mean(1.0, 1.0)), None);
    }

    #[test]
    fn figures_have_four_digits() {
        let shown = [1234.5, 0.012_346, 123_456.0, 1e-9, 0.0].map(short);
        assert_eq!(shown, ["1234", "0.01235", "123456", "1.000e-9", "0"]);
    }
}
