//! `windtunnel analyse`: is there a difference in a table that somebody measured?

/// What stands behind the answer as plots.
mod charts;
/// What a sheet is.
mod design;
/// What is read of two factors of two levels.
mod factorial;
/// Many paths together.
mod paths;
/// What a person and a program read.
mod render;
/// A CSV file.
mod sheet;

use crate::edge::{Exit, Failure, Outcome, say};
use design::{Kind, Named};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use render::Answer;
use std::path::{Path, PathBuf};
use wt_experiment::classic::{Better, Square, two_by_two_in_blocks};
use wt_experiment::means::{SummaryMean, compare_means};
use wt_report::Chart;

/// Is there a difference? The analysis of a table of measurements
///
/// Reads one row for each level with one column for each series, or one row for each measurement; lines that begin with #
/// are comments. Says first what the table allows one to say, then what that rests on. Ends with code 1 if no difference
/// is shown. Takes seconds at most.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel analyse studies/dialup-ttl.csv
  windtunnel analyse mine.csv --value goodput_mbps --factor mtu --block day --svg plots
  windtunnel analyse --means 1602±100 1548±89
The file holds at most 5000000 cells, a factor at most 64 levels.")]
pub(crate) struct AnalyseArgs {
    /// The table, CSV with a header; - is standard input
    #[arg(required_unless_present = "means")]
    file: Option<PathBuf>,
    /// The column of outcomes; several, joined by commas, if the series stand side by side
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    value: Vec<String>,
    /// The column of settings that are compared
    #[arg(long, value_name = "COLUMN")]
    factor: Option<String>,
    /// The column of blocks (series, days, rounds) within which settings are compared
    #[arg(long, value_name = "COLUMN")]
    block: Option<String>,
    /// Small outcomes are good [default: if the column is called a time]
    #[arg(long, conflicts_with = "higher_is_better")]
    lower_is_better: bool,
    /// Large outcomes are good
    #[arg(long)]
    higher_is_better: bool,
    /// Compare two means with the standard deviations of the means instead: 1602±100 1548±89
    #[arg(long, num_args = 2, value_names = ["A±SD", "B±SD"], value_parser = mean, conflicts_with = "file")]
    means: Option<Vec<SummaryMean>>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Write the plots as SVG into this directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Seeds what is sampled where there are too many relabellings to try all
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Reads `1602±100`, `1602+-100` or `1602:100`.
fn mean(text: &str) -> Result<SummaryMean, String> {
    let parts = ["±", "+-", ":"].iter().find_map(|separator| text.split_once(separator));
    let (mean, sd) = parts.ok_or("write mean±standard deviation of the mean: 1602±100")?;
    let number = |part: &str| part.trim().parse::<f64>().map_err(|_| format!("'{}' is not a number", part.trim()));
    Ok(SummaryMean { mean: number(mean)?, sd_of_mean: number(sd)? })
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that names line and column of what is wrong with the table.
pub(crate) fn run(args: &AnalyseArgs) -> Outcome {
    let answer = match (&args.means, &args.file) {
        (Some(means), _) => of_means(means)?,
        (None, Some(file)) => of_file(args, file)?,
        (None, None) => return Err(Failure::usage("there is no file to analyse")),
    };
    if let Some(directory) = &args.svg {
        write_plots(directory, &answer.charts)?;
    }
    if args.json {
        say!("{}", answer.json);
    } else {
        say!("{}", answer.text);
    }
    Ok(if answer.difference_shown { Exit::Done } else { Exit::No })
}

fn of_means(means: &[SummaryMean]) -> Result<Answer, Failure> {
    let [a, b] = means else { return Err(Failure::usage("--means takes two means")) };
    let comparison = compare_means(*a, *b).ok_or_else(|| {
        Failure::usage("the two means cannot be compared")
            .because("means must be above zero, standard deviations at least zero and not both zero")
    })?;
    Ok(render::means(*a, *b, &comparison))
}

fn of_file(args: &AnalyseArgs, file: &Path) -> Result<Answer, Failure> {
    let better = match (args.lower_is_better, args.higher_is_better) {
        (true, _) => Some(Better::Lower),
        (_, true) => Some(Better::Higher),
        _ => None,
    };
    let named = Named { values: args.value.clone(), factor: args.factor.clone(), block: args.block.clone(), better };
    let sheet = sheet::Sheet::open(file)?;
    if let Some(answer) = paths::answer(&sheet).filter(|_| args.value.is_empty()) {
        return answer;
    }
    let design = design::recognise(&sheet, &named)?;
    let mut rng = ChaCha12Rng::seed_from_u64(args.seed);
    Ok(match &design.kind {
        Kind::Blocked { factor, block, table } => {
            let analysis = wt_experiment::classic::analyse(table, design.better, factor, block, &mut rng)
                .ok_or_else(|| Failure::ours("an outcome is not above zero"))?;
            render::blocked(&design, factor, block, table, &analysis)
        }
        Kind::Grouped { factor, groups } => render::grouped(&design, factor, groups),
        Kind::TwoByTwo { factors, block, blocks } => {
            let squares: Vec<Square> = blocks.iter().map(|(_, square)| *square).collect();
            match (block, two_by_two_in_blocks(&squares, &mut rng)) {
                (Some(block), Some(analysis)) => factorial::in_blocks(&design, factors, block, blocks, &analysis),
                _ => factorial::single(&design, factors, &squares[0]),
            }
        }
        Kind::Listing { label, rows, figures } => render::listing(&design, label, rows, figures, &mut rng),
    })
}

fn write_plots(directory: &Path, charts: &[(&'static str, Chart)]) -> Result<(), Failure> {
    let failed = |path: &Path, e: std::io::Error| {
        Failure::environment(format!("cannot write {}", path.display())).because(e.to_string())
    };
    std::fs::create_dir_all(directory).map_err(|e| failed(directory, e))?;
    for (name, chart) in charts {
        let path = directory.join(format!("{name}.svg"));
        std::fs::write(&path, chart.to_svg(760, 420)).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}
